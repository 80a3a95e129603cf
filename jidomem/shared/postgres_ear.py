"""Who is told that something was kept: one connection that listens for all who wait in a process."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import suppress
from math import inf
from os import dup
from threading import Condition, Thread

from psycopg import Error
from psycopg.sql import SQL, Identifier

from jidomem.errors import JidomemError
from jidomem.shared.postgres_link import Connection, Link

#: How many seconds pass between two looks of who waits: while news are heard, and where they are not.
HEARD, DEAF = 1.0, 0.05
#: How many seconds pass before it is tried again to listen.
_AGAIN = 5.0


class Ear:
    """What was told of each stream. Nothing is lost where nobody tells: who waits looks every so often by itself.

    Some servers tell nobody, and some poolers pass nothing on: once a look has found what was not told, looks come
    often, until something is told.
    """

    def __init__(self, link: Link, channel: str) -> None:
        self._link, self._channel = link, channel
        self._news = Condition()
        self._told: Counter[str] = Counter()
        self._thread: Thread | None = None
        self._connection: Connection | None = None
        self._hears, self._closed = False, False

    def listen(self) -> None:
        """Begin to listen, unless it is done."""
        with self._news:
            if self._thread is None and not self._closed:
                self._thread = Thread(target=self._work, name="jidomem-ear", daemon=True)
                self._thread.start()

    def told(self, stream: str) -> int:
        """Return how often something was told of *stream*."""
        with self._news:
            return self._told[stream]

    def wait(self, stream: str, told: int, seconds: float) -> bool:
        """Return True as soon as more was told than *told*, False when it is time for a look, or after *seconds*."""
        with self._news:
            pause = min(seconds, HEARD if self._hears else DEAF)
            return self._news.wait_for(lambda: self._closed or self._told[stream] != told, pause)

    @property
    def closed(self) -> bool:
        """Return whether nobody is to wait any more."""
        return self._closed

    def missed(self) -> None:
        """Take note that a look found what was not told."""
        with self._news:
            self._hears = False

    def close(self) -> None:
        """End it, and whoever waits."""
        with self._news:
            self._closed = True
            self._news.notify_all()
            connection, thread = self._connection, self._thread
        if connection is not None:
            with suppress(OSError, Error), socket.socket(fileno=dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        if thread is not None:
            thread.join(1.0)

    def _work(self) -> None:
        while not self._closed:
            with suppress(Error, OSError, JidomemError):
                self._hear()
            with self._news:
                self._hears = False
                self._told.update(list(self._told))  # what was told meanwhile is not known: everybody looks
                self._news.notify_all()
                self._news.wait_for(lambda: self._closed, _AGAIN if self._connection is None else DEAF)
                self._connection = None

    def _hear(self) -> None:
        with self._link.connected() as connection:
            connection.longest = inf  # there may be no news for long
            connection.execute(SQL("LISTEN {}").format(Identifier(self._channel)))
            with self._news:
                self._connection, self._hears = connection, True
                self._told.update(list(self._told))
                self._news.notify_all()
            while not self._closed:
                for note in connection.notifies(timeout=60.0):
                    with self._news:
                        self._hears = True
                        self._told[note.payload] += 1
                        self._news.notify_all()
