"""The MCP transport over streamable HTTP, with counters and a log line for each request.

If the root has tokens, every request needs one.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import h11
import uvicorn
from flask import Response as FlaskResponse
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST
from mcp_types.methods import SPEC_CLIENT_METHODS
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from jidomem.base.background import PeriodicTask
from jidomem.errors import JidomemError, NotFound, NotServed, PolicyDenied
from jidomem.runtime.tokens import Keyring
from jidomem.runtime.user_config import ApiToken
from jidomem.serve import wire
from jidomem.serve.app import HEADERS, caller_of, check_host, headers
from jidomem.serve.listener import host_of
from jidomem.serve.mcp import server
from jidomem.serve.mcp.client_session import ClientSessions, Tool
from jidomem.serve.mcp.server import CALLER, SEEN, create_server, leave_all
from jidomem.serve.monitoring import HEADER, MAX_LOG_CHARS, METHODS, NOWHERE, TYPE, figures, id_of, level_of
from jidomem.serve.server_state import Operation, RequestContext
from jidomem.serve.wire import RequestRecord

#: The name of an unknown method or tool.
OTHER = "other"


@dataclass(slots=True)
class SeenCall(RequestRecord):
    """The record of an HTTP request: the status of its response, and its MCP method."""

    status: int = 500
    call: str | None = None
    tool: str | None = None


class McpMonitor:
    """Counts and logs every request of one server, by names and numbers only."""

    def __init__(self, operation: Operation, tools: Collection[str], project: str) -> None:
        self._operation, self._tools, self._project = operation, frozenset(tools), project

    def begin(self, scope: Scope) -> SeenCall:
        """Count a request that arrived."""
        headers = Headers(scope=scope)
        given = {"HTTP_X_REQUEST_ID": headers.get("x-request-id"), "HTTP_TRACEPARENT": headers.get("traceparent")}
        scope[SEEN] = seen = SeenCall(perf_counter(), id_of(given))
        self._operation.measures.begun()
        return seen

    def sending(self, seen: SeenCall, send: Send) -> Send:
        """Return *send*, which also records the status, and adds the request id to the answer."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                MutableHeaders(scope=message)[HEADER] = seen.id
            await send(message)

        return sent

    def end(self, scope: Scope, seen: SeenCall, route: str) -> None:
        """Count a request of *route* that was answered, and log it."""
        seconds, measures = perf_counter() - seen.began, self._operation.measures
        method = scope["method"] if scope["method"] in METHODS else OTHER
        measures.ended(route, method, seen.status, seconds)
        if seen.refusal is not None:
            measures.refused(seen.refusal, seen.agent, self._project if route != NOWHERE else None)
        level = "error" if seen.refusal == "internal_error" else level_of(route, seen.status)
        if self._operation.log is not None and self._operation.log.is_logged(level):
            project = {} if route == NOWHERE else {"project": self._project}
            fields = {**_log_fields(scope, seen), **project, "ms": round(1000 * seconds, 3)}
            self._operation.log_event(level, "request", fields)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Return the answer to a message, and record its method and refusal."""
        began, method_and_tool = perf_counter(), _method_and_tool(ctx, self._tools)
        seen: SeenCall | None = None if ctx.request is None else ctx.request.scope.get(SEEN)

        def note(refusal: str | None) -> None:
            if ctx.request_id is not None:
                outcome = "answered" if refusal is None else "refused"
                self._operation.measures.called(*method_and_tool, outcome, perf_counter() - began)
            if seen is not None:
                seen.call, seen.tool, seen.refusal = method_and_tool[0], method_and_tool[1] or None, refusal

        return await server.noted(ctx, call_next, note)


def _method_and_tool(ctx: ServerRequestContext[Any, Any], tools: Collection[str]) -> tuple[str, str]:
    """Return the method of a message, and the tool that it calls; OTHER for unknown ones."""
    known = ctx.method in SPEC_CLIENT_METHODS or (ctx.request_id is None and ctx.method.startswith("notifications/"))
    if ctx.method != "tools/call":
        return (ctx.method[:MAX_LOG_CHARS] if known else OTHER), ""
    name = (ctx.params or {}).get("name")
    return ctx.method, name if isinstance(name, str) and name in tools else OTHER


def _log_fields(scope: Scope, seen: SeenCall) -> dict[str, Any]:
    """Return the fields of the log line, without query string and body, which may hold secrets."""
    fields = {
        "request_id": seen.id,
        "client": (scope.get("client") or ("",))[0],
        "method": scope["method"][:20],
        "path": scope["path"][:MAX_LOG_CHARS],
        "status": seen.status,
        "call": seen.call,
        "tool": seen.tool,
        "agent": seen.agent,
        "token": seen.token,
        "code": seen.refusal,
    }
    return {name: value for name, value in fields.items() if value is not None}


class LibraryLog(logging.Handler):
    """Log records of libraries: their place in the code, without the text, which may quote a request."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(logging.WARNING)
        self._operation = operation

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        fields = {"logger": record.name, "where": f"{record.filename}:{record.lineno}"}
        if record.exc_info and record.exc_info[0]:
            fields["error"] = record.exc_info[0].__name__
        self._operation.log_event("error" if record.levelno >= logging.ERROR else "warning", "library", fields)


#: The paths of the protocol, the metrics and the liveness probe, and the seconds that requests get at the end.
PATH, METRICS, HEALTH, GRACE = "/mcp", "/metrics", "/healthz", 10
#: The seconds between two looks for sessions whose clients left without a word.
_LOOK = 60


def serve_http(
    sessions: ClientSessions,
    tools: tuple[Tool, ...],
    keyring: Keyring,
    hosts: Collection[str],
    listening: socket.socket,
    leave: Callable[[], None],
    operation: Operation,
) -> None:
    """Serve at PATH on *listening*, until a signal handled by `leave_on_signals`.

    Requests name one of *hosts*. *operation* counts and logs them.
    """
    sessions.memory.journal.on_durable = operation.measures.committed
    sessions.memory.journal.watch()
    keyring.on_fault, sessions.holders = operation.log_fault, keyring.agents
    watch = McpMonitor(operation, [tool.name for tool in tools], sessions.memory.project)
    mcp_server = create_server(sessions, tools, operation)
    mcp_server.middleware.append(watch)
    most = sessions.memory.settings.limits.body
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the gate checks hosts and origins
    app = mcp_server.streamable_http_app(
        streamable_http_path=PATH, max_request_body_size=most, transport_security=unchecked
    )
    gate = _Gate(app, RequestContext(sessions.memory, keyring, operation=operation), watch, hosts, sessions)
    for name in ("uvicorn", "mcp"):
        logging.getLogger(name).addHandler(LibraryLog(operation))
        logging.getLogger(name).propagate = False
    config = uvicorn.Config(
        gate,
        http=_HttpProtocol,
        log_config=None,
        log_level="warning",
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
        access_log=False,
    )
    idle = PeriodicTask(_LOOK, sessions.leave_idle, "jidomem-idle-sessions")
    uvicorn.Server(config).run(sockets=[listening])
    idle.stop()
    leave_all(sessions, leave)


class _HttpProtocol(H11Protocol):
    """The HTTP protocol of uvicorn, with the headers of every answer in the refusal of a malformed request."""

    def send_400_response(self, msg: str) -> None:
        headers = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close", **HEADERS}
        response = h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request")
        for event in (response, h11.Data(data=msg.encode("ascii")), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Gate:
    """The gate before the protocol: it checks hosts, origins and, if needed, tokens, and counts requests."""

    def __init__(
        self, app: ASGIApp, site: RequestContext, watch: McpMonitor, hosts: Collection[str], sessions: ClientSessions
    ) -> None:
        self._app, self._site, self._watch, self._sessions = app, site, watch, sessions
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        route = scope["path"] if scope["path"] in (PATH, METRICS, HEALTH) else NOWHERE
        seen = self._watch.begin(scope)
        sending = self._watch.sending(seen, self._headed(send))
        try:
            if route == METRICS:
                await (await run_in_threadpool(self._figures, scope, seen))(scope, receive, sending)
            elif route == HEALTH:
                await self._alive(scope, seen)(scope, receive, sending)
            elif (refusal := await run_in_threadpool(self._refusal, scope, seen)) is not None:
                await refusal(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
                if scope["method"] == "DELETE" and seen.status < 400:
                    connection = Headers(scope=scope).get(MCP_SESSION_ID_HEADER, "")
                    await run_in_threadpool(self._sessions.disconnect, connection)
        finally:
            self._watch.end(scope, seen, route)

    def _headed(self, send: Send) -> Send:
        """Return *send*, which also adds the headers of every answer."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                mutable = MutableHeaders(scope=message)
                for name, value in headers(self._site.keyring).items():
                    mutable.setdefault(name, value)
            await send(message)

        return sent

    def _refusal(self, scope: Scope, seen: SeenCall) -> Response | None:
        """Return the refusal of the caller; None if it is admitted, with the caller in the *scope*."""
        try:
            self._check_host(scope)
            caller = self._caller(scope, seen)
            if caller is not None and not caller.reaches(self._site.memory.project):
                raise NotFound(
                    "this server serves one project, to which this token gives no access",
                    hint=f"use the server of {' or '.join(caller.projects)}, or a token for the project of this one",
                    code="unknown_project",
                )
        except JidomemError as error:
            return _refused(error, seen, is_message=scope["path"] == PATH)
        scope[CALLER] = caller
        if caller is not None:  # the SDK lets only the user that opened a connection use it
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=caller.digest, scopes=[]))
        return None

    def _figures(self, scope: Scope, seen: SeenCall) -> Response:
        """Return the metrics under the rules of `jidomem serve`."""
        try:
            self._check_host(scope)
            caller = self._caller(scope, seen)
            _check_read(scope)
            site = RequestContext(self._site.memory, self._site.keyring, caller, self._site.operation)
            try:
                return Response(figures(site), 200, media_type=TYPE)
            except JidomemError as error:
                raise site.visible_error(error) from error
        except JidomemError as error:
            return _refused(error, seen)

    def _alive(self, scope: Scope, seen: SeenCall) -> Response:
        """Return that the server is running, as `jidomem serve` does; no token is needed."""
        try:
            self._check_host(scope)
            _check_read(scope)
        except JidomemError as error:
            return _refused(error, seen)
        return Response(wire.dump({"status": "ok"}), media_type=wire.JSON)

    def _check_host(self, scope: Scope) -> None:
        """Raise PolicyDenied for a request to another host, or from a page of another one."""
        given = Headers(scope=scope)
        check_host(given.get("host", ""), self._hosts)
        origin = given.get("origin")
        if origin is not None and host_of(origin.lower()) not in self._hosts:
            shown = origin[:MAX_LOG_CHARS]
            raise PolicyDenied(f"pages of {shown!r} may not ask this server", hint="ask without a browser")

    def _caller(self, scope: Scope, seen: SeenCall) -> ApiToken | None:
        keyring = self._site.keyring
        if keyring is None or not keyring.requires_token():
            return None
        caller = caller_of(keyring, Headers(scope=scope).get("authorization", ""))
        seen.agent, seen.token = caller.agent, caller.id
        self._site.operation.measures.token_used(caller.id)
        return caller


def _check_read(scope: Scope) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        detail = f"{scope['path']} has no method {scope['method']}"
        raise NotServed(detail, hint="use one of: GET, HEAD", allow=["GET", "HEAD"])


def _refused(error: JidomemError, seen: SeenCall, *, is_message: bool = False) -> Response:
    """Return the problem response for *error*; to a message of MCP it is an error of JSON-RPC too, for its client."""
    seen.refusal = error.code
    problem = {**wire.described(error), "request_id": seen.id}
    response: FlaskResponse = wire.refused(problem, error)
    if is_message:
        fault = {"code": INVALID_REQUEST, "message": "; ".join(filter(None, (error.detail, error.hint)))}
        response.set_data(wire.dump({"jsonrpc": "2.0", "id": None, "error": fault, **problem}))
        response.content_type = wire.JSON
    return Response(response.get_data(), response.status_code, dict(response.headers))
