"""The transfer of a root: moved to another place, backed up in one file, and restored from it.

They import the runtime and the shared log. Start with `move`.
"""
