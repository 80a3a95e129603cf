"""The index: an Oxigraph store and search text fed from the journal; derived, so it may be deleted.

It imports the journal. Start with `follower`.
"""
