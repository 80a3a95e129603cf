"""The setup of agents: their configuration files and hooks. Start with `setup`."""
