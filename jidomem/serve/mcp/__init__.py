"""The MCP server: tools, resources and prompts over standard streams and HTTP.

It imports the opened root. Start with `server`.
"""
