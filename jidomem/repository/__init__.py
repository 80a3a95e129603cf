"""The repository a root lies in: its files, what git ignores, and where files went."""
