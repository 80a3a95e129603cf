"""The optional packages: the core imports none of them at start."""
