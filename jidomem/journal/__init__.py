"""The journal: commits of Turtle in files, appended and never overwritten.

It imports no index. Start with `journal`.
"""
