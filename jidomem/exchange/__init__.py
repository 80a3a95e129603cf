"""The exchange with other tools: decision records, notes, RDF files. Start with `synchroniser`."""
