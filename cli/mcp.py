"""`jidomem mcp`: the memory for agents that speak the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import click

import jidomem
from jidomem.errors import Failed, InvalidRequest
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.server_log import log_options, open_log


@click.command(cls=Verb, writes=("agent", "session", "wait"))
@click.option(
    "--toolset",
    type=click.Choice(("jidomem", "working", "dialogue", "server-memory")),
    default="jidomem",
    show_default=True,
    help="Which tools: our own; with two more for what it holds and says, or for its dialogue; the reference server's.",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="A loopback address, for --http."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8701, show_default=True, help="0 takes a free one.")
@log_options
@pass_door
def mcp(door: Door, toolset: str, http: bool, host: str, port: int, form: str | None, level: str | None) -> None:
    """Serve the memory to an MCP client: tools to remember, recall, ask, revise and explain.

    The agent is named after the client unless --agent says otherwise; its work session is opened with the first thing
    it keeps, and closed when it leaves. Needs the extra: pip install 'jidomem[mcp]'.

    With --http each request is a line on standard error, with its id, and /metrics has figures for Prometheus.

    Examples:
      jidomem mcp
      jidomem mcp --toolset server-memory
      jidomem mcp --http --port 0
      jidomem mcp --http --port 0 --log-format json --log-level warning
    """
    if not http and (form or level):
        option = "--log-format" if form else "--log-level"
        raise InvalidRequest(
            f"{option} is for --http: the log of MCP over HTTP", hint=f"add --http, or leave out {option}"
        )
    try:
        from jidomem.serve import mcp as serving
        from jidomem.serve import mcp_stdio
    except ImportError as error:
        raise Failed(
            f"the MCP SDK is not installed ({error})", hint="pip install 'jidomem[mcp]'", code="missing_extra"
        ) from error
    from jidomem.serve.desk import Desks
    from jidomem.serve.dialogue import FIND_PAGES, KEEP_PAGE
    from jidomem.serve.knowledge import KNOWLEDGE
    from jidomem.serve.tools import TOOLS
    from jidomem.serve.work import SAID, WORKING

    memory = door.open(stays=True)
    memory.settings = replace(memory.settings, configured=memory.project)  # it is there before anything is kept in it
    tools = {
        "jidomem": TOOLS,
        "working": (*TOOLS, WORKING, SAID),
        "dialogue": (*TOOLS, KEEP_PAGE, FIND_PAGES),
        "server-memory": KNOWLEDGE,
    }[toolset]
    desks = Desks(memory, door.agent or os.environ.get("JIDOMEM_AGENT"), memory.settings.session)
    from jidomem.serve import ledger
    from jidomem.serve.operation import Operation

    operation = Operation(open_log(door, form, level) if http else None)
    operation.keep_counts(memory.door_log, ledger.MCP_HTTP if http else ledger.MCP_STDIO)

    def leave() -> None:
        operation.close()
        memory.close()

    serving.leave_on_signals(desks, leave)
    if not http:
        if sys.stdin.isatty():
            door.say(f"serving {memory.settings.place} to a client that writes MCP here (stop with Ctrl-C)")
            door.say("a client starts this by itself, once it is told to: jidomem setup claude")
        mcp_stdio.serve_stdio(desks, tools, leave, operation)
        return
    from jidomem.serve import mcp_http, server

    keyring = memory.place.keyring()
    listening = server.listen(host, port)
    url = server.url_of(listening)
    door.say(f"serving {memory.settings.place} at {url}{mcp_http.PATH} (stop with Ctrl-C)")
    operation.leveller.follow(memory)
    operation.tell("info", "started", {"url": url, "root": memory.settings.place, "jidomem": jidomem.__version__})
    mcp_http.serve_http(desks, tools, keyring, listening, leave, operation)
