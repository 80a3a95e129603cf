"""The RDF terms, statements, SPARQL texts and Turtle.

They import the base. Start with `terms`.
"""
