"""The ontology files."""
