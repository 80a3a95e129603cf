"""The base: time, text, JSON values and resources.

It imports the errors alone. Start with `clock`.
"""
