"""The check: shapes, gates, terms and journal integrity of a whole project.

It imports the reader and the writer's rules. Start with `check`.
"""
