"""The code graph: modules, functions and their relations as triples.

It imports the writer. Start with `importer`.
"""
