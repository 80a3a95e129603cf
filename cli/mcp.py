"""`jidomem mcp`: the memory for agents that speak the Model Context Protocol."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from jidomem.errors import Failed
from jidomem_cli.door import Door, Verb, pass_door


@click.command(cls=Verb, writes=("agent", "session", "wait"))
@click.option(
    "--toolset",
    type=click.Choice(("jidomem", "server-memory")),
    default="jidomem",
    show_default=True,
    help="Whose tools: our own, or those of the reference memory server.",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="A loopback address, for --http."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8701, show_default=True, help="0 takes a free one.")
@pass_door
def mcp(door: Door, toolset: str, http: bool, host: str, port: int) -> None:
    """Serve the memory to an MCP client: tools to remember, recall, ask, revise and explain.

    The agent is named after the client unless --agent says otherwise; its work session is opened with the first thing
    it keeps, and closed when it leaves. Needs the extra: pip install 'jidomem[mcp]'.

    Examples:
      jidomem mcp
      jidomem mcp --toolset server-memory
      jidomem mcp --http --port 0
    """
    try:
        from jidomem.serve import mcp as serving
    except ImportError as error:
        raise Failed(
            f"the MCP SDK is not installed ({error})", hint="pip install 'jidomem[mcp]'", code="missing_extra"
        ) from error
    from jidomem.serve.desk import Desks
    from jidomem.serve.knowledge import KNOWLEDGE
    from jidomem.serve.tools import TOOLS

    memory = door.open()
    memory.settings = replace(memory.settings, configured=memory.project)  # it is there before anything is kept in it
    tools = KNOWLEDGE if toolset == "server-memory" else TOOLS
    desks = Desks(memory, door.agent or os.environ.get("JIDOMEM_AGENT"), memory.settings.session)
    serving.leave_on_signals(desks, memory.close)
    if not http:
        serving.serve_stdio(desks, tools, memory.close)
        return
    from jidomem.runtime.keyring import Keyring
    from jidomem.runtime.settings import own_config
    from jidomem.serve import mcp_http, server

    keyring = Keyring(own_config(), memory.settings.root)
    listening = server.listen(host, port)
    door.say(f"serving {memory.settings.root} at {server.url_of(listening)}{mcp_http.PATH} (stop with Ctrl-C)")
    mcp_http.serve_http(desks, tools, keyring, listening, memory.close)
