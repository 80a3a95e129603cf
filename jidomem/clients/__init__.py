"""The clients: configuration files and hooks of coding agents.

They import the repository. Start with `setup`.
"""
