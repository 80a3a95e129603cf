"""The records: intents, entries, policies and protocols as values.

They depend on `base`, `rdf` and `errors` only. Start with `intent`.
"""
