"""The write pipeline of an intent, from normalise to append.

It imports the journal and the index. Start with `writer`.
"""
