"""The write pipeline of an intent: normalise, validate, detect conflicts, build triples, append.

It imports the journal, the index and the schema. Start with `writer`.
"""
