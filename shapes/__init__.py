"""The shape files."""
