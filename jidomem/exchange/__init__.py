"""The exchange: decision records, notes and RDF files, imported and exported.

It imports the reader and the writer. Start with `synchroniser`.
"""
