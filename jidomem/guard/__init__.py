"""The guard: rules that stop or inform an edit. It imports the opened root. Start with `guard`."""
