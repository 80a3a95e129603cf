"""The records: intents, entries, policies and protocols as values.

They import RDF terms alone. Start with `intent`.
"""
