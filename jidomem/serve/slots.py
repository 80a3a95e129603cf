"""The connections of a server: so many at once, each with a thread of its own."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import BoundedSemaphore, Event, Lock, Thread
from time import monotonic, sleep
from typing import Any

from jidomem.errors import Busy
from jidomem.runtime.limits import Limits
from jidomem.serve.connection import Connection
from jidomem.serve.operation import Operation
from jidomem.serve.pace import Gone, Link, TooSlow
from jidomem.serve.reply import App

#: Seconds until another connection is tried where this machine has given none.
_PAUSE = 0.05
#: Seconds that a client may say nothing in the middle of a request while the server stops.
_SILENT = 1.0


class Slots:
    """Who is attended to, and who has to wait.

    Once all slots are taken, connections are closed after their answers, and those that have been without a request
    for a while. A newcomer waits for that, and is told that the server is busy where none ends for long.
    """

    def __init__(self, app: App, about: dict[str, Any], limits: Limits, operation: Operation) -> None:
        """Answer by *app*, for which *about* is what WSGI says of this server."""
        self._app, self._about, self._limits, self._operation = app, about, limits, operation
        self._free = BoundedSemaphore(limits.connections)
        self._attended: set[Connection] = set()
        self._idle: dict[Connection, float] = {}  # since when each waits for a request, the longest first
        self._lock = Lock()
        self._stopping, self._wanted = Event(), Event()
        self._full_since: float | None = None

    def serve(self, listening: socket.socket) -> None:
        """Attend to whoever connects, until told to stop."""
        while not self._stopping.is_set():
            try:
                connected, address = listening.accept()
            except OSError:  # the other end has gone again, or this machine gives no more connections
                sleep(_PAUSE)
                continue
            about = {**self._about, "REMOTE_ADDR": address[0], "REMOTE_PORT": str(address[1])}
            link = Link(connected, self._limits.idle_seconds)
            connection = Connection(link, self._app, about, self._limits, self._operation)
            if not self._admit(connection):
                self._turn_away(connection)

    def stop(self, seconds: float) -> None:
        """Attend to no further request, and return when those under way have ended, or *seconds* later."""
        self._stopping.set()
        with self._lock:
            for connection in self._idle:
                connection.link.interrupt()
        end = monotonic() + seconds
        for _ in range(self._limits.connections):
            while not self._free.acquire(timeout=_PAUSE):
                if monotonic() > end:
                    return
                self._hurry()

    def _hurry(self) -> None:
        """End the requests whose rest does not come."""
        with self._lock:
            for connection in self._attended:
                if connection.link.silent() > _SILENT:
                    connection.link.interrupt()

    def _admit(self, connection: Connection) -> bool:
        """Return whether there was a slot for a connection, which has a thread then."""
        if not self._has_slot():
            return False
        try:
            Thread(target=self._attend, args=(connection,), name="jidomem-connection", daemon=True).start()
        except RuntimeError:  # this machine gives no more threads
            self._free.release()
            return False
        return True

    def _attend(self, connection: Connection) -> None:
        try:
            connection.attend(
                lambda idles: self._idles(connection, idles),
                lambda: not (self._wanted.is_set() or self._stopping.is_set()),
            )
        finally:
            with self._lock:
                self._attended.discard(connection)
                self._idle.pop(connection, None)
            self._free.release()

    def _idles(self, connection: Connection, idles: bool) -> None:
        with self._lock:
            self._attended.add(connection)
            self._idle.pop(connection, None)
            if idles:
                self._idle[connection] = monotonic()
                if self._stopping.is_set():
                    connection.link.interrupt()

    def _has_slot(self) -> bool:
        """Return whether a slot was to be had, in the time that none may be free."""
        if self._free.acquire(blocking=False):
            self._full_since = None
            return True
        idle, now = self._limits.idle_seconds, monotonic()
        self._full_since = self._full_since or now
        self._wanted.set()
        try:
            while (left := self._full_since + idle - monotonic()) > 0 and not self._stopping.is_set():
                self._let_go(monotonic() - idle / 10)
                if self._free.acquire(timeout=min(left, idle / 20)):
                    self._full_since = None
                    return True
        finally:
            self._wanted.clear()
        return False

    def _let_go(self, since: float) -> None:
        """Close a connection that has waited for a request *since* then, or longer."""
        with self._lock:
            for connection, began in self._idle.items():
                if began <= since and not connection.link.has_more():
                    del self._idle[connection]
                    connection.link.interrupt()
                    return

    def _turn_away(self, connection: Connection) -> None:
        busy = Busy(f"{self._limits.connections} connections are attended to at once, no more", hint="try again")
        with suppress(Gone, TooSlow):
            connection.turn_away(busy)
        connection.link.close()
