"""An MCP server of the same SDK with one tool, which returns its arguments: a baseline for `bench.mcp`."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server


async def _list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {"entities": {"type": "array"}}}
    return types.ListToolsResult(tools=[types.Tool(name="create_entities", input_schema=schema, output_schema=schema)])


async def _call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = types.TextContent(type="text", text=str(params.arguments))
    return types.CallToolResult(content=[text], structured_content=params.arguments)


async def _serve() -> None:
    server = Server("empty", version="1", on_list_tools=_list_tools, on_call_tool=_call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve)
