"""The curator's pages: HTML for browsers.

They import the HTTP server. Start with `pages`.
"""
