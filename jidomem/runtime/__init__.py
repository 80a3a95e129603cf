"""The opened root: settings, state, workers, and all parts built in one place.

It imports every package above it in docs/architecture.md. Start with `root`.
"""
