"""The Model Context Protocol on standard input and output: lines of a bounded length, each of them answered."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from jidomem.serve import mcp_refusals
from jidomem.serve.desk import Desks
from jidomem.serve.mcp import leave_all, server
from jidomem.serve.operation import Operation
from jidomem.serve.tool import Tool

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

_PIECE = 64 * 1024


def serve_stdio(desks: Desks, tools: tuple[Tool, ...], leave: Callable[[], None], operation: Operation) -> None:
    """Serve on standard input and output until the client leaves; then close the open sessions and call *leave*.

    *operation* counts who asks and is refused.
    """
    speaking = server(desks, tools, operation)
    speaking.middleware.append(_Counting(desks, operation))
    lines = _Lines(_input(), desks.memory.settings.limits.body)
    try:
        anyio.run(_serve, speaking, lines)
    except* BrokenPipeError:
        pass  # it left in the middle of an answer
    finally:
        leave_all(desks, leave)


async def _serve(found: Server[Any], lines: _Lines) -> None:
    async with stdio_server(stdin=lines) as (reads, writes):  # type: ignore[arg-type]  # it is iterated over
        answering = _Answering(reads, writes, lines.too_long)
        await found.run(answering, writes, found.create_initialization_options())


class _Counting:
    """Sees every request, and counts those that are refused."""

    def __init__(self, desks: Desks, operation: Operation) -> None:
        self._desks, self._measures = desks, operation.measures

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Return what a message is answered."""

        def note(refusal: str | None) -> None:
            if refusal is not None:
                client = ctx.session.client_params
                desk = self._desks.of(client.client_info.name if client else None)
                self._measures.refused(refusal, desk.agent, desk.project)

        return await mcp_refusals.noted(ctx, call_next, note)


def _input() -> BinaryIO:
    """Return standard input; what else reads it in this process, or in one it starts, finds it at its end."""
    own, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return os.fdopen(own, "rb")


class _Lines:
    """The lines of a file but the blank ones; in the place of one over *most* bytes the text `too_long`."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self.too_long = f"a line has more than {most:,} bytes: send less at once"

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        while line := await anyio.to_thread.run_sync(self._next):
            if not line.isspace():
                return line
        raise StopAsyncIteration

    def _next(self) -> str:
        line = self._file.readline(self._most + 1)
        if len(line) <= self._most or line.endswith(b"\n"):
            return line.decode("utf-8", "replace")
        while (rest := self._file.readline(_PIECE)) and not rest.endswith(b"\n"):
            pass
        return self.too_long


class _Answering:
    """The messages that are read; what is none is answered by an error, for the client would wait for it."""

    def __init__(
        self, reads: ReadStream[SessionMessage | Exception], writes: WriteStream[SessionMessage], too_long: str
    ) -> None:
        self._reads, self._writes, self._too_long = reads, writes, too_long

    @property
    def last_context(self) -> Any:
        """Return the context of who sent the last message."""
        return getattr(self._reads, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        while isinstance(item := await self._reads.receive(), Exception):
            error = types.JSONRPCError(jsonrpc="2.0", id=None, error=_why(item, self._too_long))
            await self._writes.send(SessionMessage(error))
        return item

    async def aclose(self) -> None:
        """Read no more."""
        await self._reads.aclose()

    def __aiter__(self) -> _Answering:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Answering:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _why(error: Exception, too_long: str) -> types.ErrorData:
    """Return what is said of a line that is no message: that it is too long, no JSON, or JSON of another form."""
    found = error.errors()[0] if isinstance(error, ValidationError) else {"type": "json_invalid", "input": None}
    if found["input"] == too_long:
        return types.ErrorData(code=types.INVALID_REQUEST, message=too_long)
    if found["type"] == "json_invalid":
        return types.ErrorData(code=types.PARSE_ERROR, message="a line is no JSON: send one message a line")
    return types.ErrorData(code=types.INVALID_REQUEST, message="a line is no message of JSON-RPC 2.0")
