"""Each request of MCP over HTTP, as it comes and goes: what is counted of it, and what the log says."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types.methods import SPEC_CLIENT_METHODS
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Scope, Send

from jidomem.serve import mcp_refusals
from jidomem.serve.mcp import SEEN
from jidomem.serve.operation import Operation
from jidomem.serve.requestid import HEADER, id_of
from jidomem.serve.watch import LONGEST, METHODS, NOWHERE, level_of
from jidomem.serve.wire import Seen

#: What a method or a tool is called that there is not.
OTHER = "other"


@dataclass(slots=True)
class SeenCall(Seen):
    """What is known of a request over HTTP: the status of its answer, and what it asked of the protocol."""

    status: int = 500
    call: str | None = None
    tool: str | None = None


class McpWatch:
    """Sees every request of one server; of what is asked and answered nothing is kept but names and numbers."""

    def __init__(self, operation: Operation, tools: Collection[str], project: str) -> None:
        self._operation, self._tools, self._project = operation, frozenset(tools), project

    def begin(self, scope: Scope) -> SeenCall:
        """Take note of a request that came in."""
        headers = Headers(scope=scope)
        given = {"HTTP_X_REQUEST_ID": headers.get("x-request-id"), "HTTP_TRACEPARENT": headers.get("traceparent")}
        scope[SEEN] = seen = SeenCall(perf_counter(), id_of(given))
        self._operation.measures.begun()
        return seen

    def sending(self, seen: SeenCall, send: Send) -> Send:
        """Return *send*, which also takes note of the status, and gives the answer the id of its request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                MutableHeaders(scope=message)[HEADER] = seen.id
            await send(message)

        return sent

    def end(self, scope: Scope, seen: SeenCall, route: str) -> None:
        """Count a request of *route* that was answered, and write a line about it."""
        seconds, measures = perf_counter() - seen.began, self._operation.measures
        method = scope["method"] if scope["method"] in METHODS else OTHER
        measures.ended(route, method, seen.status, seconds)
        if seen.refusal is not None:
            measures.refused(seen.refusal, seen.agent, self._project if route != NOWHERE else None)
        level = "error" if seen.refusal == "internal_error" else level_of(route, seen.status)
        if self._operation.log is not None and self._operation.log.takes(level):
            self._operation.tell(level, "request", {**_said(scope, seen), "ms": round(1000 * seconds, 3)})

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Return what a message is answered, and take note of what it asked and of its refusal."""
        began, asked = perf_counter(), _asked(ctx, self._tools)
        seen: SeenCall | None = None if ctx.request is None else ctx.request.scope.get(SEEN)

        def note(refusal: str | None) -> None:
            if ctx.request_id is not None:
                outcome = "answered" if refusal is None else "refused"
                self._operation.measures.called(*asked, outcome, perf_counter() - began)
            if seen is not None:
                seen.call, seen.tool, seen.refusal = asked[0], asked[1] or None, refusal

        return await mcp_refusals.noted(ctx, call_next, note)


def _asked(ctx: ServerRequestContext[Any, Any], tools: Collection[str]) -> tuple[str, str]:
    """Return the method of a message, and the tool where it calls one; what there is not is OTHER."""
    known = ctx.method in SPEC_CLIENT_METHODS or (ctx.request_id is None and ctx.method.startswith("notifications/"))
    if ctx.method != "tools/call":
        return (ctx.method[:LONGEST] if known else OTHER), ""
    name = (ctx.params or {}).get("name")
    return ctx.method, name if isinstance(name, str) and name in tools else OTHER


def _said(scope: Scope, seen: SeenCall) -> dict[str, Any]:
    """Return what the log says of a request: neither its query string nor its body, which may hold anything."""
    said = {
        "request_id": seen.id,
        "client": (scope.get("client") or ("",))[0],
        "method": scope["method"][:20],
        "path": scope["path"][:LONGEST],
        "status": seen.status,
        "call": seen.call,
        "tool": seen.tool,
        "agent": seen.agent,
        "code": seen.refusal,
    }
    return {name: value for name, value in said.items() if value is not None}


class LibraryLog(logging.Handler):
    """Lines of libraries in the log of a server: where they come from, not their words, which may quote anything."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(logging.WARNING)
        self._operation = operation

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        said = {"logger": record.name, "where": f"{record.filename}:{record.lineno}"}
        if record.exc_info and record.exc_info[0]:
            said["error"] = record.exc_info[0].__name__
        self._operation.tell("error" if record.levelno >= logging.ERROR else "warning", "library", said)
