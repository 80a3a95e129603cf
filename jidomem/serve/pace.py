"""A connection whose other end keeps pace: who stops, or trickles, is waited for no longer than is stated."""

from __future__ import annotations

import select
import socket
import struct
import sys
from contextlib import suppress
from threading import Lock
from time import monotonic

#: Bytes a second, on average over what was waited for, that are the slowest pace.
SLOWEST = 1024
PIECE = 64 * 1024


class TooSlow(Exception):
    """The other end did not come on in time."""


class Gone(Exception):
    """The other end has hung up."""


class Pace:
    """How long one way of an exchange may still be waited for: *idle* seconds, and more by each byte that moved."""

    def __init__(self, idle: float) -> None:
        self._idle = idle
        self._waited = 0.0
        self.moved = 0

    def wait(self, connection: socket.socket, event: int) -> None:
        """Return when *connection* can go on; raises TooSlow where that takes too long."""
        left = min(self._idle, self._idle + self.moved / SLOWEST - self._waited)
        began = monotonic()
        ready = left > 0 and _is_ready(connection, event, left)
        self._waited += monotonic() - began
        if not ready:
            raise TooSlow


def _is_ready(connection: socket.socket, event: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(connection, event)
    return bool(waiting.poll(seconds * 1000))


class Link:
    """One connection, read and written at once by two threads at most.

    What is closed is not used any more by a thread that is late: its number may be another connection's by then.
    """

    def __init__(self, connection: socket.socket, idle: float) -> None:
        """Own *connection*, the other end of which is waited for *idle* seconds."""
        connection.setblocking(True)
        if sys.platform == "linux":  # who is gone for good takes nothing, and would be sent events for minutes
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(idle * 1000))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(int(idle * 1e6), 10**6)))
        self._connection, self._idle = connection, idle
        self._reading, self._sending = Lock(), Lock()
        self._silent_since: float | None = None
        self._closed = False
        self.interrupted = False

    def pace(self) -> Pace:
        """Return the pace at which something new is waited for."""
        return Pace(self._idle)

    def fileno(self) -> int:
        """Return the descriptor of the connection, as long as it is not closed."""
        return self._connection.fileno()

    def begin(self) -> bytes:
        """Return what comes next; nothing at the end of the connection, or where it was idle for too long.

        To be waited for by the system costs a thread one turn at the interpreter, where to look first costs it two.
        """
        try:
            return self._connection.recv(PIECE)
        except OSError:
            return b""

    def has_more(self) -> bool:
        """Return whether something came that was not read, or the connection is at its end."""
        return _is_ready(self._connection, select.POLLIN, 0)

    def silent(self) -> float:
        """Return for how many seconds the other end has been waited for to send; 0 where it is not."""
        since = self._silent_since
        return 0.0 if since is None else monotonic() - since

    def receive(self, pace: Pace) -> bytes:
        """Return what came, nothing at the end of the connection; raises TooSlow and Gone."""
        while True:
            try:
                with self._reading:
                    self._refuse_closed()
                    data = self._connection.recv(PIECE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._silent_since = monotonic()
                try:
                    pace.wait(self._connection, select.POLLIN)
                finally:
                    self._silent_since = None
                continue
            except OSError as error:
                raise Gone from error
            pace.moved += len(data)
            return data

    def send(self, data: bytes, pace: Pace) -> None:
        """Send all of *data*; raises TooSlow where nobody takes it."""
        rest = memoryview(data)
        while rest:
            try:
                with self._sending:
                    self._refuse_closed()
                    sent = self._connection.send(rest, socket.MSG_DONTWAIT)
            except BlockingIOError:
                pace.wait(self._connection, select.POLLOUT)
                continue
            except OSError as error:
                raise Gone from error
            pace.moved += sent
            rest = rest[sent:]

    def end(self, limit: int) -> None:
        """Say that no more is sent, and take in up to *limit* bytes more: a client that sends would not see it.

        Who sends nothing is waited for only a tenth as long as else, and nobody longer.
        """
        pace, until = Pace(self._idle / 10), monotonic() + self._idle
        with suppress(OSError, Gone, TooSlow):
            self._connection.shutdown(socket.SHUT_WR)
            while limit > 0 and monotonic() < until and (data := self.receive(pace)):
                limit -= len(data)

    def interrupt(self) -> None:
        """Read no more: who waits for the other end goes on at once, as if that had hung up."""
        self.interrupted = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)

    def close(self, *, abort: bool = False) -> None:
        """Let go of the connection; *abort* tells the other end that what it got is not whole."""
        with self._reading, self._sending:
            self._closed = True
            if abort:
                with suppress(OSError):
                    self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self._connection.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Gone
