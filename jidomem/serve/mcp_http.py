"""The Model Context Protocol over streamable HTTP, on this machine; once there are tokens, to those who have one."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import h11
import uvicorn
from flask import Response as Told
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from jidomem.errors import JidomemError, NotFound, NotServed
from jidomem.runtime.keyring import Keyring
from jidomem.runtime.own import Token
from jidomem.serve import wire
from jidomem.serve.desk import Desks
from jidomem.serve.exposition import TYPE
from jidomem.serve.gate import HEADERS, caller_of, headers
from jidomem.serve.http import LOOPBACK, check_host
from jidomem.serve.mcp import CALLER, leave_all, server
from jidomem.serve.mcp_watch import LibraryLog, McpWatch, SeenCall
from jidomem.serve.metrics import figures
from jidomem.serve.operation import Operation
from jidomem.serve.site import Site
from jidomem.serve.tool import Tool
from jidomem.serve.watch import NOWHERE

#: Where it is served and where its figures are, and the seconds that requests under way get when the server stops.
PATH, METRICS, GRACE = "/mcp", "/metrics", 10


def serve_http(
    desks: Desks,
    tools: tuple[Tool, ...],
    keyring: Keyring,
    listening: socket.socket,
    leave: Callable[[], None],
    operation: Operation,
) -> None:
    """Serve at PATH on *listening*, a loopback socket, until a signal that `leave_on_signals` takes.

    *operation* counts what is done, and logs it.
    """
    desks.memory.journal.on_kept = operation.measures.committed
    watch = McpWatch(operation, [tool.name for tool in tools], desks.memory.project)
    speaking = server(desks, tools, operation)
    speaking.middleware.append(watch)
    most = desks.memory.settings.limits.body
    app = speaking.streamable_http_app(streamable_http_path=PATH, max_request_body_size=most)
    door = _Door(app, Site(desks.memory, keyring, operation=operation), watch)
    for name in ("uvicorn", "mcp"):
        logging.getLogger(name).addHandler(LibraryLog(operation))
        logging.getLogger(name).propagate = False
    config = uvicorn.Config(
        door,
        http=_Refusing,
        log_config=None,
        log_level="warning",
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listening])
    leave_all(desks, leave)


class _Refusing(H11Protocol):
    """HTTP as uvicorn speaks it; what is no HTTP is refused with the headers that no answer goes without."""

    def send_400_response(self, msg: str) -> None:
        """Answer what could not be read, and hang up."""
        told = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close", **HEADERS}
        begun = h11.Response(status_code=400, headers=list(told.items()), reason=b"Bad Request")
        for event in (begun, h11.Data(data=msg.encode("ascii")), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Door:
    """The door before the protocol: who asks is told by a token, once there are any; and all who ask are seen."""

    def __init__(self, app: ASGIApp, site: Site, watch: McpWatch) -> None:
        self._app, self._site, self._watch = app, site, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        route = scope["path"] if scope["path"] in (PATH, METRICS) else NOWHERE
        seen = self._watch.begin(scope)
        sending = self._watch.sending(seen, self._headed(send))
        try:
            if route == METRICS:
                await (await run_in_threadpool(self._figures, scope, seen))(scope, receive, sending)
            elif (refusal := await run_in_threadpool(self._refusal, scope, seen)) is not None:
                await refusal(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        finally:
            self._watch.end(scope, seen, route)

    def _headed(self, send: Send) -> Send:
        """Return *send*, which also gives an answer the headers none goes without."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(scope=message)
                for name, value in headers(self._site.keyring).items():
                    told.setdefault(name, value)
            await send(message)

        return sent

    def _refusal(self, scope: Scope, seen: SeenCall) -> Response | None:
        """Return why who asks is not let in; None, with who it is in the *scope*, where it is."""
        try:
            caller = self._caller(scope, seen)
            if caller is not None and not caller.reaches(self._site.memory.project):
                raise NotFound(
                    "there is no project for you here", hint="ask for a token that names it", code="unknown_project"
                )
        except JidomemError as error:
            return _refused(error, seen)
        scope[CALLER] = caller
        return None

    def _figures(self, scope: Scope, seen: SeenCall) -> Response:
        """Return the figures, to those who get them from `jidomem serve`, or why not."""
        try:
            check_host(Headers(scope=scope).get("host", ""), LOOPBACK)
            caller = self._caller(scope, seen)
            if scope["method"] not in ("GET", "HEAD"):
                raise NotServed(
                    f"{METRICS} has no method {scope['method']}", hint="use one of: GET, HEAD", allow=["GET", "HEAD"]
                )
            site = Site(self._site.memory, self._site.keyring, caller, self._site.operation)
            return Response(figures(site), 200, media_type=TYPE)
        except JidomemError as error:
            return _refused(error, seen)

    def _caller(self, scope: Scope, seen: SeenCall) -> Token | None:
        keyring = self._site.keyring
        if keyring is None or not keyring.asks():
            return None
        caller = caller_of(keyring, Headers(scope=scope).get("authorization", ""))
        seen.agent = caller.agent
        return caller


def _refused(error: JidomemError, seen: SeenCall) -> Response:
    seen.refusal = error.code
    told: Told = wire.refused({**wire.described(error), "request_id": seen.id}, error)
    return Response(told.get_data(), told.status_code, dict(told.headers))
