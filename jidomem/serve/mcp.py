"""The memory over the Model Context Protocol, with the official SDK: tools, resources and prompts of one root.

The SDK speaks every protocol revision from 2024-11-05 on: those that begin with a handshake, and those in which each
request says who asks. Who asks is known by the name of its client either way, so nothing here depends on the revision.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

import jidomem
from jidomem.errors import JidomemError
from jidomem.serve import library
from jidomem.serve.desk import Desk, Desks
from jidomem.serve.hints import for_tools
from jidomem.serve.measures import Measures
from jidomem.serve.operation import Operation
from jidomem.serve.tool import Told, Tool, call

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")
#: Where a request over HTTP keeps the token of who sent it, and what is known of it.
CALLER, SEEN = "jidomem.caller", "jidomem.seen"
_HERE = "127.0.0.1"


def server(desks: Desks, tools: tuple[Tool, ...], operation: Operation | None = None) -> Server[Any]:
    """Return the protocol server that offers *tools* at *desks*; *operation* logs what goes wrong inside."""
    by_name, at_work = {tool.name: tool for tool in tools}, operation or Operation()

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[*map(_tool, tools)])

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; there is {', '.join(by_name)}")
        return _result(
            await _at_desk(
                desks, ctx, at_work.measures, lambda desk: _called(tool, desk, params.arguments or {}, at_work)
            )
        )

    async def list_resources(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=each.uri, name=each.name, description=each.description, mime_type=each.media)
                for each in library.RESOURCES
            ]
        )

    async def list_templates(
        ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        found = [
            types.ResourceTemplate(uri_template=uri, name=name, description=description, mime_type=library.JSON)
            for uri, name, description in library.TEMPLATES
        ]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        media, text = await _at_desk(desks, ctx, at_work.measures, lambda desk: library.read(desk, uri), uri=uri)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=media, text=text)])

    async def list_prompts(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[*map(_prompt, library.PROMPTS)])

    async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = params.arguments or {}
        what, text = await _at_desk(desks, ctx, at_work.measures, lambda desk: library.write(desk, params.name, given))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=what, messages=[message])

    return Server(
        "jidomem",
        version=jidomem.__version__,
        title="jidomem",
        description="The governed memory of AI agents",
        instructions=library.INSTRUCTIONS,
        get_tool_input_schema=lambda name: by_name[name].input_schema() if name in by_name else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _from(ctx: Context) -> tuple[str, str]:
    """Return what a client calls itself, and the address it asks from: this machine where it is at standard input."""
    client = ctx.session.client_params
    named = f"{client.client_info.name} {client.client_info.version}" if client else ""
    if ctx.request is None:
        return named, _HERE
    return named or ctx.request.headers.get("user-agent", ""), ctx.request.client.host if ctx.request.client else ""


async def _at_desk(desks: Desks, ctx: Context, measures: Measures, work: Callable[[Desk], T], **asked: str) -> T:
    """Return what *work* gives at the desk of who asks, done in a thread; raises MCPError with what was *asked*."""
    client = ctx.session.client_params
    caller = None if ctx.request is None else ctx.request.scope.get(CALLER)
    desk = desks.of(client.client_info.name if client else None, caller)
    if ctx.request is not None and (seen := ctx.request.scope.get(SEEN)) is not None:
        seen.agent = desk.agent
    measures.asked(desk.project, desk.agent, *_from(ctx))
    try:
        return await anyio.to_thread.run_sync(partial(work, desk))
    except JidomemError as error:
        values = for_tools(error.to_dict())
        raise MCPError(types.INVALID_PARAMS, f"{error.detail}; {values['hint']}", {**asked, **values}) from error


def _called(tool: Tool, desk: Desk, given: dict[str, Any], operation: Operation) -> Told:
    try:
        return call(tool, desk, given)
    except Exception as error:
        from jidomem.serve.watch import broke  # brings Flask, of which standard input has no need

        broke(operation, error, tool=tool.name)
        detail = f"{type(error).__name__} in {tool.name}"
        hint = "this is a bug in jidomem; its traceback is in the server's standard error"
        told = {"code": "internal_error", "detail": detail, "hint": hint}
        return Told(told, f"{detail}; {hint}", is_error=True)


def _result(told: Told) -> types.CallToolResult:
    text = types.TextContent(type="text", text=told.words())
    return types.CallToolResult(content=[text], structured_content=dict(told.values), is_error=told.is_error)


def _tool(tool: Tool) -> types.Tool:
    writes: dict[str, Any] = {} if tool.reads else {"destructive_hint": False, "idempotent_hint": tool.same}
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=types.ToolAnnotations(read_only_hint=tool.reads, open_world_hint=False, **writes),
    )


def _prompt(prompt: library.Prompt) -> types.Prompt:
    takes = [
        types.PromptArgument(name=name, description=what, required=needed)
        for name, (what, needed) in prompt.takes.items()
    ]
    return types.Prompt(name=prompt.name, description=prompt.description, arguments=takes)


def leave_on_signals(desks: Desks, leave: Callable[[], None]) -> None:
    """Let SIGTERM, SIGHUP and SIGINT end this process: close what sessions are open, call *leave*, and exit with 0.

    That happens at once, for who waits for a line of standard input cannot be waited for; the HTTP server ends the
    requests under way before it raises the signal anew.
    """

    def on_signal(number: int, frame: Any) -> None:
        leave_all(desks, leave)
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, on_signal)


def leave_all(desks: Desks, leave: Callable[[], None]) -> None:
    """Close what sessions are open, and call *leave*."""
    desks.leave()
    leave()
