"""The check of a project: shapes, gates, terms and the integrity of the journal.

Start with `check`.
"""
