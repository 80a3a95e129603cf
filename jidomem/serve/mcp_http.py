"""The Model Context Protocol over streamable HTTP, on this machine; once there are tokens, to those who have one."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from jidomem.errors import JidomemError, NotFound
from jidomem.runtime.keyring import Keyring
from jidomem.runtime.own import Token
from jidomem.serve import wire
from jidomem.serve.desk import Desks
from jidomem.serve.gate import caller_of
from jidomem.serve.mcp import CALLER, leave_all, server
from jidomem.serve.tool import Tool

#: Where it is served, the largest request in bytes, and the seconds that requests under way get when the server stops.
PATH, MAX_BODY, GRACE = "/mcp", 1024 * 1024, 10


def serve_http(
    desks: Desks, tools: tuple[Tool, ...], keyring: Keyring, listening: socket.socket, leave: Callable[[], None]
) -> None:
    """Serve at PATH on *listening*, a loopback socket, until a signal that `leave_on_signals` takes."""
    app = server(desks, tools).streamable_http_app(streamable_http_path=PATH, max_request_body_size=MAX_BODY)
    guarded = _Guarded(app, keyring, desks.memory.project)
    config = uvicorn.Config(guarded, log_level="warning", timeout_graceful_shutdown=GRACE, lifespan="on")
    uvicorn.Server(config).run(sockets=[listening])
    leave_all(desks, leave)


class _Guarded:
    """The door before the protocol: who asks is told by a token, once there are any."""

    def __init__(self, app: ASGIApp, keyring: Keyring, project: str) -> None:
        self._app, self._keyring, self._project = app, keyring, project

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                scope[CALLER] = await run_in_threadpool(self._caller, Headers(scope=scope).get("authorization", ""))
            except JidomemError as error:
                told = wire.refused(wire.described(error), error)
                await Response(told.get_data(), told.status_code, dict(told.headers))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _caller(self, authorization: str) -> Token | None:
        if not self._keyring.asks():
            return None
        caller = caller_of(self._keyring, authorization)
        if not caller.reaches(self._project):
            raise NotFound(
                "there is no project for you here", hint="ask for a token that names it", code="unknown_project"
            )
        return caller
