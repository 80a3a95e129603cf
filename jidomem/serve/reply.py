"""The answer to one request, on its way to the client: what an application says, as the events of h11."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from email.utils import formatdate
from time import time
from typing import Any

import h11

from jidomem.serve.turn import Turn

App = Callable[..., Iterable[bytes]]
#: Pieces up to this size are sent together with what frames them.
_SMALL = 64 * 1024
_dated: tuple[int, bytes] = (0, b"")


class Reply:
    """What an application answers, by WSGI's `start_response`, and piece by piece."""

    def __init__(self, turn: Turn, *, is_bare: bool, keeps: Callable[[], bool]) -> None:
        """Answer by *turn*: without a body where it *is_bare*; *keeps* says whether the connection may be kept."""
        self._turn, self._pace = turn, turn.link.pace()
        self._is_bare, self._keeps = is_bare, keeps
        self._head: tuple[str, list[tuple[str, str]]] | None = None

    def start(self, status: str, headers: list[tuple[str, str]], _: Any = None) -> Callable[[bytes], None]:
        """Keep what the head will say."""
        self._head = status, headers
        self._is_bare = self._is_bare or status[:3] in ("204", "304")
        return self.write

    def write(self, piece: bytes) -> None:
        """Send a piece of the body, behind the head where it is the first."""
        if piece:
            self._send(*self._begun(), *([] if self._is_bare else [h11.Data(data=piece)]))

    def end(self) -> None:
        """Send what is left."""
        self._send(*self._begun(), h11.EndOfMessage())

    def _begun(self) -> list[h11.Event]:
        """Return the head, the first time it is asked for."""
        if self._head is None:
            return []
        (status, headers), self._head = self._head, None
        named = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        named.append((b"Date", _date()))
        if not self._keeps():
            named.append((b"Connection", b"close"))
        return [h11.Response(status_code=int(status[:3]), reason=status[4:].encode("latin-1"), headers=named)]

    def _send(self, *events: h11.Event) -> None:
        small = bytearray()
        for part in self._turn.written(*events):
            if len(part) > _SMALL:
                self._turn.link.send(bytes(small), self._pace)
                self._turn.link.send(part, self._pace)
                small.clear()
            else:
                small += part
        self._turn.link.send(bytes(small), self._pace)


def run(app: App, environ: dict[str, Any], reply: Reply) -> None:
    """Answer by *reply* what *app* answers, which is closed however that ends."""
    pieces = app(environ, reply.start)
    try:
        for piece in pieces:
            reply.write(piece)
        reply.end()
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


def _date() -> bytes:
    global _dated
    now = int(time())
    if _dated[0] != now:
        _dated = now, formatdate(now, usegmt=True).encode("ascii")
    return _dated[1]
