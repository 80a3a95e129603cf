"""The server process: it listens, serves each connection in a thread, and stops cleanly.

It uses threads because a process with an open root must not fork, and one process owns the index.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Condition, Event, Thread
from time import monotonic, perf_counter, sleep
from typing import Any

from jidomem.errors import Busy, InvalidRequest, JidomemError
from jidomem.runtime.user_config import RootLimits
from jidomem.serve import monitoring, wire
from jidomem.serve.app import HEADERS, parse_address
from jidomem.serve.connection import App, ClientDisconnected, ClientSocket, HttpExchange, TooSlow
from jidomem.serve.server_state import Operation

#: Seconds between two attempts to accept a connection.
_PAUSE = 0.05
#: Seconds of silence in the middle of a request that a stopping server allows.
_SILENT = 1.0


class ConnectionPool:
    """The connections of a server, each with its own thread, up to a limit.

    At the limit, connections are closed after their answers, and idle ones after a while. A new connection waits for
    that; if none ends in time, it is refused as busy.
    """

    def __init__(self, app: App, environ: dict[str, Any], limits: RootLimits, operation: Operation) -> None:
        """Answer by *app*; *environ* is added to every request."""
        self._app, self._environ, self._limits, self._operation = app, environ, limits, operation
        self._open: set[ClientSocket] = set()
        self._changed = Condition()  # of the set of open connections
        self._full_since: float | None = None
        self._stopping = Event()

    def serve(self, listening: socket.socket) -> None:
        """Accept and serve connections until `stop`."""
        while not self._stopping.is_set():
            try:
                accepted, address = listening.accept()
            except OSError:  # the client has disconnected, or the system has no free descriptors
                sleep(_PAUSE)
                continue
            link = ClientSocket(accepted, self._limits.idle_seconds)
            with suppress(RuntimeError):  # the system cannot start another thread
                if self._admit(link):
                    Thread(target=self._serve, args=(link, address[0]), name="jidomem-connection", daemon=True).start()
                    continue
            detail = f"the server has reached its limit of {self._limits.connections} connections"
            with suppress(ClientDisconnected, TooSlow):
                self._refuse(self._exchange(link), Busy(detail, hint="try again"), address[0], perf_counter())
                link.end(0)
            self._close(link)

    def stop(self, seconds: float) -> None:
        """Accept no further request; return when running requests have ended, or after *seconds*."""
        self._stopping.set()
        end = monotonic() + seconds
        with self._changed:
            while self._open and monotonic() < end:
                for link in self._open:
                    if link.is_idle or link.reading.silent() > _SILENT:
                        link.interrupt()
                self._changed.wait(_PAUSE)

    def _admit(self, link: ClientSocket) -> bool:
        """Return whether *link* was added to the open connections; waits for at most the idle time."""
        limit = self._limits.idle_seconds
        with self._changed:
            while len(self._open) >= self._limits.connections:
                self._full_since = self._full_since or monotonic()
                if self._stopping.is_set() or monotonic() > self._full_since + limit:
                    return False
                idle = [each for each in self._open if each.is_idle and not each.reading.is_ready()]
                longest = max(idle, key=lambda each: each.reading.silent(), default=None)
                if longest and longest.reading.silent() > limit / 10:
                    longest.interrupt()
                self._changed.wait(limit / 20)
            self._full_since = None
            self._open.add(link)
        return True

    def _close(self, link: ClientSocket, *, abort: bool = False) -> None:
        with self._changed:
            link.close(abort=abort)
            self._open.discard(link)
            self._changed.notify_all()

    def _keeps_connections(self) -> bool:
        return self._full_since is None and not self._stopping.is_set()

    def _exchange(self, link: ClientSocket) -> HttpExchange:
        return HttpExchange(link, self._limits, self._keeps_connections)

    def _serve(self, link: ClientSocket, client: str) -> None:
        """Answer the requests of *link* until it ends; never raises."""
        exchange, is_kept = self._exchange(link), True
        try:
            while is_kept and (received := exchange.behind() or link.begin()):
                exchange, began = self._exchange(link), perf_counter()
                try:
                    exchange.receive_head(received)
                except JidomemError as refusal:
                    self._refuse(exchange, refusal, client, began)
                else:
                    exchange.respond(self._app, {**self._environ, "REMOTE_ADDR": client})
                is_kept = exchange.finish()
        except (ClientDisconnected, TooSlow):
            pass
        except Exception as error:  # the client sees a truncated answer, the log has the reason
            monitoring.log_bug(self._operation, error)
        finally:
            self._close(link, abort=exchange.is_partial())

    def _refuse(self, exchange: HttpExchange, refusal: JidomemError, client: str, began: float) -> None:
        """Send *refusal* as the last answer of the connection, without calling the application."""
        request_id = monitoring.id_of(exchange.environ)
        monitoring.log_refusal(self._operation, refusal, request_id, client, perf_counter() - began)
        response = wire.refused({**wire.described(refusal), "request_id": request_id}, refusal)
        response.headers.update({monitoring.HEADER: request_id, **HEADERS})
        exchange.respond(response, {})


HOST, PORT = "127.0.0.1", 8700
#: Seconds that running requests get when the server stops.
GRACE = 10
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

    Raises InvalidRequest for a port in use, and, unless the root *has_tokens*, for an address that other machines can
    reach.
    """
    address = parse_address(host)
    if not (address.is_loopback or has_tokens):
        raise InvalidRequest(
            f"{host} can be reached from other machines, and this root has no tokens",
            hint="issue one first: jidomem access token add AGENT; or serve on this machine only: --host 127.0.0.1",
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        listening = socket.create_server((str(address), port), family=family, backlog=128)
    except OSError as error:
        problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be served: {error.strerror}"
        hint = "stop what listens there, or give another port: --port 0 takes any that is free"
        raise InvalidRequest(f"{host}:{port} {problem}", hint=hint) from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited by connections; saves 40 ms each
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the URL of *listening*."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: App, listening: socket.socket, stopping: Callable[[], None], limits: RootLimits, operation: Operation
) -> None:
    """Serve *app* on *listening* until a signal; then call *stopping*, and wait for the running requests.

    Requests that take longer than GRACE seconds end with the process: acknowledged writes are durable.
    """
    signals, sending = socket.socketpair()  # one byte for each signal, in whichever thread it is handled
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach())
    for number in _STOPS:
        signal.signal(number, lambda *_: None)
    host, port = listening.getsockname()[:2]
    pool = ConnectionPool(app, {**_ENVIRON, "SERVER_NAME": host, "SERVER_PORT": str(port)}, limits, operation)
    Thread(target=pool.serve, args=(listening,), name="jidomem-listening", daemon=True).start()
    while signals.recv(1)[0] not in _STOPS:
        pass
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)  # no new connections
    stopping()
    pool.stop(GRACE)


def leave() -> None:
    """End this process without waiting for threads, after a clean stop."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
