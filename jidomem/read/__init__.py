"""The reader: named queries, lists, history and provenance.

It imports the index and the schema. Start with `reader`.
"""
