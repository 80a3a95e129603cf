"""The journal: commits of Turtle in files, appended and never overwritten.

It imports the records and RDF terms, and no index. Start with `journal`.
"""
