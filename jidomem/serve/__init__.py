"""The HTTP server: routes, SPARQL protocol, requests and their log.

It imports the opened root. Start with `routes`.
"""
