"""The records: values and contracts of the memory, with the standard library alone.

Start with `intent`.
"""
