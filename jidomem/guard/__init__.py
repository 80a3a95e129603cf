"""The guard: rules shown before an edit, or that block it.

It imports the opened root. Start with `guard`.
"""
