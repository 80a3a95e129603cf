"""A stream between who writes it and who reads it, each at their own pace: what is not read yet waits on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from threading import Condition, Thread

_PIECE = 64 * 1024


class Spool:
    """The pieces of *source*, written by a thread of its own and read as they come.

    So a client that sends everything before it reads an answer does not stop the server from reading on, and neither
    side is kept in memory.
    """

    def __init__(self, source: Iterable[bytes]) -> None:
        self._source = source
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the reader, whenever that is
        self._changed = Condition()
        self._written = 0
        self._ended = self._left = False
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        """Yield what was written, until the source ends; raises what the source raised."""
        Thread(target=self._write, name="jidomem-spool", daemon=True).start()
        try:
            yield from self._read()
        finally:
            with self._changed:
                self._left = True
                self._file.close()

    def _read(self) -> Iterator[bytes]:
        at = 0
        while piece := self._piece(at):
            at += len(piece)
            yield piece
        if self._error is not None:
            raise self._error

    def _piece(self, at: int) -> bytes:
        """Return what was written from *at* on, once there is any; nothing after the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._written > at or self._ended)
            self._file.seek(at)
            return self._file.read(_PIECE)

    def _write(self) -> None:
        try:
            for piece in self._source:
                with self._changed:
                    if self._left:
                        return
                    self._file.seek(self._written)
                    self._written += self._file.write(piece)
                    self._changed.notify()
        except BaseException as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify()
