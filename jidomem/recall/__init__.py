"""The recall: ranked search, briefings, and memories that govern a file.

It imports the index and the reader. Start with `memories`.
"""
