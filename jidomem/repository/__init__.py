"""The git repository around a root: its files, records and history.

It imports the records. Start with `worktree`.
"""
