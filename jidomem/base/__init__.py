"""The base: time, text, JSON values and shipped files.

It imports the errors alone. Start with `clock`.
"""
