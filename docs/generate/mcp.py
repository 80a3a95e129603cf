"""docs/reference/mcp.md, written from what a server tells a client that connects to it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp import Client

import jidomem
from docs.generate.http import type_of
from docs.generate.tables import code, table
from jidomem.serve.mcp.client_session import ClientSessions, Tool
from jidomem.serve.mcp.server import INSTRUCTIONS, create_server
from jidomem.serve.mcp.server_memory import KNOWLEDGE
from jidomem.serve.mcp.tools import FIND_PAGES, KEEP_PAGE, RECORD_TURN, TOOLS, WORKING

#: What `--toolset` offers, and what it is; those beside the tools of the first.
TOOLSETS: Mapping[str, tuple[str, tuple[Tool, ...]]] = {
    "jidomem": ("is what there is where none is named", TOOLS),
    "working": (
        "adds to these what an agent [holds now](../working-memory.md#from-run-to-run)",
        (WORKING, RECORD_TURN),
    ),
    "dialogue": ("adds to these what an agent [talked about](../memoryos.md)", (KEEP_PAGE, FIND_PAGES)),
    "server-memory": ("has in their place those of the reference memory server", KNOWLEDGE),
}
_INTRODUCTION = f"""\
# MCP: every tool, resource and prompt

What `jidomem mcp` tells a client that connects, written from its answers. [MCP](../mcp.md) shows how it is used. It says of
itself:

> {INSTRUCTIONS}
"""


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    with tempfile.TemporaryDirectory() as folder, jidomem.open(folder, project="my-project") as memory:
        text = anyio.run(_written, ClientSessions(memory))
    return {"reference/mcp.md": text}


async def _written(sessions: ClientSessions) -> str:
    parts = [_INTRODUCTION]
    for name, (what, tools) in TOOLSETS.items():
        async with Client(create_server(sessions, tools)) as client:
            listed = (await client.list_tools()).tools
        parts += [f"\n## Tools: {name}\n\n`--toolset {name}` {what}.\n", *map(_tool, listed)]
    async with Client(create_server(sessions, TOOLS)) as client:
        parts.append(_resources((await client.list_resources()).resources))
        parts.append(_templates((await client.list_resource_templates()).resource_templates))
        parts.append(_prompts((await client.list_prompts()).prompts))
    return "".join(parts)


def _tool(tool: types.Tool) -> str:
    hints = tool.annotations
    does = "It reads." if hints and hints.read_only_hint else "It writes."
    takes = _fields(tool.input_schema, ["argument", "takes", "must", ""])
    gives = _fields(tool.output_schema or {}, ["gives", "", "always", ""])
    description = (tool.description or "").rstrip(".")
    text = "\n".join(part for part in (f"{description}. {does}\n", takes, gives) if part)
    return f"\n### {tool.name}\n\n{text}"


def _fields(schema: Mapping[str, Any], head: list[str]) -> str:
    rows = [
        [code(name), type_of(found), "yes" if name in schema.get("required", []) else "", found.get("description", "")]
        for name, found in schema.get("properties", {}).items()
    ]
    return table(head, rows)


def _resources(resources_of_server: Iterable[types.Resource]) -> str:
    rows = [[code(each.uri), each.mime_type or "", each.description or ""] for each in resources_of_server]
    return "\n## Resources\n\n" + table(["address", "is", "holds"], rows)


def _templates(templates_of_server: Iterable[types.ResourceTemplate]) -> str:
    rows = [[code(each.uri_template), each.mime_type or "", each.description or ""] for each in templates_of_server]
    return "\nAnd, with a part to fill in:\n\n" + table(["address", "is", "holds"], rows)


def _prompts(prompts_of_server: Iterable[types.Prompt]) -> str:
    rows = [
        [
            code(each.name),
            each.description or "",
            ", ".join(
                f"{code(argument.name)}{'' if argument.required else ' (may be left out)'}"
                for argument in each.arguments or []
            ),
        ]
        for each in prompts_of_server
    ]
    return "\n## Prompts\n\n" + table(["prompt", "does", "takes"], rows)
