"""The query files."""
