"""The code graph: modules, functions and their relations as triples. Start with `importer`."""
