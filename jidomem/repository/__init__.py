"""The git repository around a root: its files, records and history.

It depends on the records and what they depend on. Start with `worktree`.
"""
