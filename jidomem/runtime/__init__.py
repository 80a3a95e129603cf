"""The opened root: settings, state, workers and the parts built in one place. Start with `root`."""
