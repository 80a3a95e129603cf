"""The schema: the ontology of a project and the validators of its shapes.

It imports the records and RDF terms. Start with `ontology`.
"""
