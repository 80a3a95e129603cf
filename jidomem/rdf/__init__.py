"""The RDF terms, statements and SPARQL texts. It imports the base. Start with `terms`."""
