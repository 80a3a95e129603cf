"""The server process: it listens, serves each connection in a thread, and stops cleanly.

A process with an open root must not fork, and one process owns its index: so it has threads.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import BoundedSemaphore, Event, Lock, Thread
from time import monotonic, perf_counter, sleep
from typing import Any

from jidomem.base.background import BackgroundTask
from jidomem.errors import Busy, InvalidRequest, JidomemError
from jidomem.runtime.user_config import RootLimits
from jidomem.serve import monitoring, wire
from jidomem.serve.app import parse_address
from jidomem.serve.connection import (
    App,
    ClientDisconnected,
    ClientSocket,
    HttpExchange,
    TooSlow,
    build_environ,
    wsgi_headers,
)
from jidomem.serve.server_state import Operation

#: Seconds after which a failed accept is tried again.
_PAUSE = 0.05
#: Seconds of silence in the middle of a request that a stopping server allows.
_SILENT = 1.0


class ConnectionPool:
    """The connections of a server, each with a thread of its own, up to a limit.

    At the limit connections are closed after their answers, and those that have waited for a request for a while. A
    new connection waits for that; if none ends in time, it is told that the server is busy.
    """

    def __init__(self, app: App, environ: dict[str, Any], limits: RootLimits, operation: Operation) -> None:
        """Answer by *app*; *environ* is the same for all requests."""
        self._app, self._environ, self._limits, self._operation = app, environ, limits, operation
        self._slots = BoundedSemaphore(limits.connections)
        self._open: set[ClientSocket] = set()
        self._idle: dict[ClientSocket, float] = {}  # since when each waits for a request, the longest first
        self._lock = Lock()
        self._stopping, self._full = Event(), Event()
        self._full_since: float | None = None

    def serve(self, listening: socket.socket) -> None:
        """Accept and serve connections until `stop`."""
        while not self._stopping.is_set():
            try:
                accepted, address = listening.accept()
            except OSError:  # the client is gone again, or this machine gives no more connections
                sleep(_PAUSE)
                continue
            link = ClientSocket(accepted, self._limits.idle_seconds)
            if not (self._acquire_slot() and self._start(link, address[0])):
                detail = f"the server has {self._limits.connections} connections, and takes no more"
                with suppress(ClientDisconnected, TooSlow):
                    self._refuse(self._exchange(link), Busy(detail, hint="try again"), {}, address[0], perf_counter())
                    link.end(0)
                link.close()

    def stop(self, seconds: float) -> None:
        """Accept no further request; return when those under way have ended, or after *seconds*."""
        self._stopping.set()
        with self._lock:
            for link in self._idle:
                link.interrupt()
        end = monotonic() + seconds
        for _ in range(self._limits.connections):
            while not self._slots.acquire(timeout=_PAUSE):
                if monotonic() > end:
                    return
                with self._lock:
                    for link in self._open:
                        if link.silent() > _SILENT:
                            link.interrupt()

    def _start(self, link: ClientSocket, client: str) -> bool:
        """Return whether this machine had a thread for the connection of *client*."""
        try:
            Thread(target=self._serve, args=(link, client), name="jidomem-connection", daemon=True).start()
        except RuntimeError:
            self._slots.release()
            return False
        return True

    def _serve(self, link: ClientSocket, client: str) -> None:
        """Answer the requests of *link* until it ends; raise nothing."""
        exchange = self._exchange(link)
        try:
            received = self._next_request(link)
            while received:
                exchange = self._exchange(link, received)
                if not self._answer(exchange, client):
                    break
                received = exchange.behind() or self._next_request(link)
        except (ClientDisconnected, TooSlow):
            pass
        except Exception as error:  # the client sees that the answer broke off, the operator why
            monitoring.log_bug(self._operation, error)
        finally:
            link.close(abort=exchange.is_partial)
            with self._lock:
                self._open.discard(link)
                self._idle.pop(link, None)
            self._slots.release()

    def _exchange(self, link: ClientSocket, received: bytes = b"") -> HttpExchange:
        return HttpExchange(link, self._limits, self._keeps_connections, received)

    def _keeps_connections(self) -> bool:
        return not (self._full.is_set() or self._stopping.is_set())

    def _next_request(self, link: ClientSocket) -> bytes:
        """Return the first bytes of the next request; empty at the end of the connection."""
        with self._lock:
            self._open.add(link)
            self._idle[link] = monotonic()
            if self._stopping.is_set():
                link.interrupt()
        received = link.begin()
        with self._lock:
            self._idle.pop(link, None)
        return received

    def _answer(self, exchange: HttpExchange, client: str) -> bool:
        """Answer one request, and return whether another one may follow."""
        began, named = perf_counter(), dict[str, str]()
        try:
            request = exchange.request()
            named = wsgi_headers(request)
            environ = build_environ(request, named)
        except JidomemError as refusal:
            self._refuse(exchange, refusal, named, client, began)
            return exchange.finish()
        own = {"REMOTE_ADDR": client, "wsgi.input": exchange, wire.CONNECTION: exchange.link.fileno()}
        exchange.respond(self._app, {**self._environ, **environ, **own})
        return exchange.finish()

    def _refuse(
        self, exchange: HttpExchange, refusal: JidomemError, headers: Mapping[str, str], client: str, began: float
    ) -> None:
        """Send *refusal* to a request that no application sees."""
        request_id = monitoring.id_of(headers)
        monitoring.log_refusal(self._operation, refusal, request_id, client, perf_counter() - began)
        exchange.refuse(refusal, request_id)

    def _acquire_slot(self) -> bool:
        """Return whether a slot became free within the idle time."""
        idle = self._limits.idle_seconds
        is_free = self._slots.acquire(blocking=False)
        if not is_free:
            self._full_since = self._full_since or monotonic()
            self._full.set()
            while not (is_free or self._stopping.is_set()):
                left = self._full_since + idle - monotonic()
                if left <= 0:
                    break
                self._close_idle(monotonic() - idle / 10)
                is_free = self._slots.acquire(timeout=min(left, idle / 20))
            self._full.clear()
        self._full_since = None if is_free else self._full_since
        return is_free

    def _close_idle(self, since: float) -> None:
        """Close a connection that has waited for a request *since* then, or longer."""
        with self._lock:
            for link, began in self._idle.items():
                if began <= since and not link.has_more():
                    del self._idle[link]
                    link.interrupt()
                    return


HOST, PORT = "127.0.0.1", 8700
#: Seconds that requests under way get when the server stops.
GRACE = 10
_BACKLOG = 128
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_ENVIRON: Mapping[str, Any] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}


def listen(host: str, port: int, *, has_tokens: bool = False) -> socket.socket:
    """Return a socket that listens on an address; port 0 is any free one.

    Raise InvalidRequest for a port in use, and, unless the root *has_tokens*, for an address that other machines reach.
    """
    address = parse_address(host)
    if not (address.is_loopback or has_tokens):
        raise InvalidRequest(
            f"{host} can be reached from elsewhere, and this server has no tokens that say who asks",
            hint="give out one first: jidomem access token add AGENT; or serve on this machine only: --host 127.0.0.1",
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        listening = socket.create_server((str(address), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be served: {error.strerror}"
        hint = "stop what listens there, or give another port: --port 0 takes any that is free"
        raise InvalidRequest(f"{host}:{port} {problem}", hint=hint) from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it: 40 ms less each
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the URL of *listening*."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: App, listening: socket.socket, stopping: Callable[[], None], limits: RootLimits, operation: Operation
) -> None:
    """Serve *app* on *listening* until a signal ends it; then call *stopping*, and wait for the requests under way.

    Requests that take longer than GRACE seconds end with the process: what was acknowledged is durable.
    """
    signals = _signals()
    host, port = listening.getsockname()[:2]
    pool = ConnectionPool(app, {**_ENVIRON, "SERVER_NAME": host, "SERVER_PORT": str(port)}, limits, operation)
    BackgroundTask("jidomem-listening", daemon=True).start(partial(pool.serve, listening))
    while signals.recv(1)[0] not in _STOPS:
        pass
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)  # no new connections
    stopping()
    pool.stop(GRACE)


def _signals() -> socket.socket:
    """Return a socket that receives a byte for each signal, whichever thread of this process gets that."""
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach())
    for number in _STOPS:
        signal.signal(number, lambda *_: None)
    return receiving


def leave() -> None:
    """End this process without waiting for threads, after a clean stop."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
