"""The command line: one module per group of commands. It imports every package. Start with `main`."""
