"""The server process: it listens, gives each connection a thread, and stops cleanly.

One process owns an index, and no process that opens a root may fork: threads of this process
answer the requests. A `ConnectionPool` bounds their number.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from threading import BoundedSemaphore, Event, Lock, Thread
from time import monotonic, sleep
from typing import Any

from jidomem.errors import Busy, InvalidRequest
from jidomem.runtime.user_config import RootLimits
from jidomem.serve.app import LOOPBACK
from jidomem.serve.connection import App, ClientDisconnected, ClientSocket, HttpConnection, TooSlow
from jidomem.serve.server_state import Operation

#: Seconds until another connection is tried where this machine has given none.
_PAUSE = 0.05
#: Seconds that a client may say nothing in the middle of a request while the server stops.
_SILENT = 1.0


class ConnectionPool:
    """Who is attended to, and who has to wait.

    Once all slots are taken, connections are closed after their answers, and those that have been without a request
    for a while. A newcomer waits for that, and is told that the server is busy where none ends for long.
    """

    def __init__(self, app: App, about: dict[str, Any], limits: RootLimits, operation: Operation) -> None:
        """Answer by *app*, for which *about* is what WSGI says of this server."""
        self._app, self._about, self._limits, self._operation = app, about, limits, operation
        self._free = BoundedSemaphore(limits.connections)
        self._attended: set[HttpConnection] = set()
        self._idle: dict[HttpConnection, float] = {}  # since when each waits for a request, the longest first
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
            link = ClientSocket(connected, self._limits.idle_seconds)
            connection = HttpConnection(link, self._app, about, self._limits, self._operation)
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

    def _admit(self, connection: HttpConnection) -> bool:
        """Return whether there was a slot for a connection, which has a thread then."""
        if not self._has_slot():
            return False
        try:
            Thread(target=self._attend, args=(connection,), name="jidomem-connection", daemon=True).start()
        except RuntimeError:  # this machine gives no more threads
            self._free.release()
            return False
        return True

    def _attend(self, connection: HttpConnection) -> None:
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

    def _idles(self, connection: HttpConnection, idles: bool) -> None:
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

    def _turn_away(self, connection: HttpConnection) -> None:
        busy = Busy(f"{self._limits.connections} connections are attended to at once, no more", hint="try again")
        with suppress(ClientDisconnected, TooSlow):
            connection.turn_away(busy)
        connection.link.close()


HOST, PORT = "127.0.0.1", 8700
_NAME = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
#: Seconds that requests under way get when the server stops.
GRACE = 10
_BACKLOG = 128
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # a terminal that is gone stops it, too
_ABOUT: Mapping[str, Any] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}


def listen(host: str, port: int, *, knows_who_asks: bool = False) -> socket.socket:
    """Return a socket that listens on an address; port 0 is any free one.

    Raises InvalidRequest for one that is not of this machine alone unless it *knows_who_asks*, and for a port taken.
    """
    parsed = _address(host)
    address = str(parsed)
    if not (parsed.is_loopback or knows_who_asks):
        raise InvalidRequest(
            f"{host} can be reached from elsewhere, and this server knows no tokens to tell who asks",
            hint="give out one first: jidomem access token add AGENT; or serve on this machine only: --host 127.0.0.1",
        )
    found = socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections have it from here: 40 ms less each
    try:
        found.bind((address, port))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        taken = error.errno == errno.EADDRINUSE
        raise InvalidRequest(
            f"{host}:{port} {'is in use' if taken else f'cannot be served: {error.strerror}'}",
            hint="stop what listens there, or give another port: --port 0 takes any that is free",
        ) from error
    return found


def hosts_of(host: str, names: Collection[str]) -> list[str]:
    """Return the names by which a server at the address *host* is asked: its address, and *names*.

    Raises InvalidRequest for every address of this machine at once unless there is a name.
    """
    parsed = _address(host)
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"{name!r} is no name of a host",
                hint="give it without scheme and port: --allow-host memory.example.org",
            )
    if parsed.is_unspecified and not names:
        raise InvalidRequest(
            f"{host} is every address of this machine, and a request says which one it was sent to",
            hint="say by which name it is asked: --allow-host memory.example.org",
        )
    own = f"[{parsed}]" if parsed.version == 6 else str(parsed)
    return [*LOOPBACK, *([] if parsed.is_loopback or parsed.is_unspecified else [own]), *names]


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError as error:
        raise InvalidRequest(f"{host!r} is no address", hint="give an address: --host 127.0.0.1") from error


def url_of(listening: socket.socket) -> str:
    """Return the address of *listening* as a client writes it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: App, listening: socket.socket, stopping: Callable[[], None], limits: RootLimits, operation: Operation
) -> None:
    """Serve *app* on *listening* until SIGTERM or SIGINT, and end the requests under way.

    *stopping* is called before they are waited for. Those that take longer than GRACE seconds to end, end with the
    process: what was acknowledged is durable.
    """
    told = _signals()
    host, port = listening.getsockname()[:2]
    slots = ConnectionPool(app, {**_ABOUT, "SERVER_NAME": host, "SERVER_PORT": str(port)}, limits, operation)
    Thread(target=slots.serve, args=(listening,), name="jidomem-listening", daemon=True).start()
    while told.recv(1)[0] not in _STOPS:
        pass
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)  # nobody can connect any more
    stopping()
    slots.stop(GRACE)


def _signals() -> socket.socket:
    """Return what a byte comes from for each signal, whichever thread of this process gets that."""
    told, tells = socket.socketpair()
    tells.setblocking(False)
    signal.set_wakeup_fd(tells.detach())
    for number in _STOPS:
        signal.signal(number, lambda *_: None)
    return told


def leave() -> None:
    """End this process at once, after a clean stop: a request that did not end in time is not waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
