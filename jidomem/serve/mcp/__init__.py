"""The MCP server over standard streams and HTTP. Start with `server`."""
