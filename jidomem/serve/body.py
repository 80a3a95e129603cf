"""The body of one request, read while it comes: one that is cut, or does not come in time, is never taken for whole."""

from __future__ import annotations

from jidomem.errors import Busy, InvalidRequest, JidomemError, RequestTimeout
from jidomem.serve.pace import SLOWEST, Gone, TooSlow
from jidomem.serve.turn import Malformed, Turn

#: Bytes on the wire that are read behind what an application has read, to keep the connection.
_DRAINED = 256 * 1024


class Body:
    """What an application reads as `wsgi.input`."""

    def __init__(self, turn: Turn, length: int | None) -> None:
        """Read the body of *turn*, which has *length* bytes; None where that is not known before its end."""
        self._turn, self._length = turn, length
        self._left = b""
        self._came = 0
        self.failed = False

    def read(self, size: int = -1) -> bytes:
        """Return *size* bytes, or fewer at the end; without a size, all. Raises as `read1` does."""
        found = bytearray()
        while (size < 0 or len(found) < size) and (piece := self.read1(size - len(found) if size >= 0 else -1)):
            found += piece
        return bytes(found)

    def read1(self, size: int = -1) -> bytes:
        """Return what has come, up to *size* bytes, nothing at the end only.

        Raises RequestTimeout where no more comes in time, InvalidRequest where the rest does not come at all, and Busy
        where the server stops.
        """
        if self.failed:
            raise InvalidRequest("the body was not read to its end", hint="send the request again")
        if size == 0:
            return b""
        piece = self._left or self._next()
        self._left = b"" if size < 0 else piece[size:]
        return piece if size < 0 else piece[:size]

    def is_long(self) -> bool:
        """Return whether more is to come than is read to keep the connection; of chunks that is a guess."""
        if self._turn.at_end:
            return False
        return self._came > _DRAINED if self._length is None else self._length - self._came > _DRAINED

    def drain(self) -> bool:
        """Return whether the end was met soon, by reading what nobody wants."""
        begun = self._turn.pace.moved
        try:
            while not self.failed and not self._turn.at_end and self._turn.pace.moved - begun < _DRAINED:
                self._next()
        except JidomemError:
            return False
        return self._turn.at_end and not self.failed

    def _next(self) -> bytes:
        try:
            piece = self._turn.piece()
            self._came += len(piece)
            return piece
        except TooSlow:
            error: JidomemError = RequestTimeout(
                "the rest of the body did not come in time",
                hint=f"send it without a pause, {SLOWEST:,} bytes a second at least",
            )
        except Gone:
            error = _stopping() if self._turn.link.interrupted else _cut()
        except Malformed as found:
            error = InvalidRequest(f"the chunks of the body cannot be read: {found}", hint="send it again")
        self.failed = True
        raise error


def _cut() -> InvalidRequest:
    return InvalidRequest("the body was cut", hint="send all of it")


def _stopping() -> Busy:
    return Busy(
        "the server is stopping, and the rest of the body did not come", hint="send it again, when it is there again"
    )
