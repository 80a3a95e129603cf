"""The git repository that a root lies in: its files, records and history. Start with `worktree`."""
