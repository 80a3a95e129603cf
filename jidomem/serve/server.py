"""The server process: it listens, serves each connection in a thread, and stops cleanly.

It uses threads because a process with an open root must not fork, and one process owns the index.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from select import select
from threading import BoundedSemaphore, Condition, Event, Thread
from time import monotonic, perf_counter, sleep
from typing import Any

from jidomem.base.background import PeriodicTask
from jidomem.errors import Busy, JidomemError
from jidomem.runtime.user_config import RootLimits
from jidomem.serve import monitoring, wire
from jidomem.serve.app import HEADERS
from jidomem.serve.connection import App, ClientDisconnected, ClientSocket, ClientTooSlow, HttpExchange
from jidomem.serve.listener import GRACE, is_stop, limit_collections, signal_socket
from jidomem.serve.server_state import Operation

#: Seconds between two attempts to accept a connection.
_PAUSE = 0.05
#: Seconds for which a worker leaves new connections to others, for each connection that it has more than another one.
_YIELD = 0.002
#: Seconds of silence in the middle of a request that a stopping server allows.
_SILENT = 1.0
#: Seconds between two looks of a worker for connections that need room, and until a stopping one accepts none.
_ROOM, _ACCEPTS = 0.5, 2.0
#: Beyond the limit of connections: the most that wait for room, and the most probes that are answered at once.
_MOST_WAITING, _MOST_PROBES = 16, 2
#: Seconds that a connection beyond the limit has for a probe, in the thread that accepts others, and in its own.
_PEEKS = (0.01, 0.1)
_PROBE = re.compile(rb"(?:GET|HEAD) /(?:healthz|readyz) HTTP/1\.[01]\r\n(?:[^\r\n]+\r\n)*\r\n")


class ConnectionPool:
    """The connections of a server, each with its own thread, up to a limit.

    At the limit, connections are closed after their answers, and after a while those that are idle or have not sent a
    whole head. A new connection waits for that; if none ends in time, it is refused as busy. A probe is answered
    nevertheless. The workers of a server share the limit.
    """

    def __init__(self, app: App, environ: dict[str, Any], limits: RootLimits, operation: Operation) -> None:
        """Answer by *app*; *environ* is added to every request."""
        self._app, self._environ, self._limits, self._operation = app, environ, limits, operation
        self._open: set[ClientSocket] = set()
        self._changed = Condition()  # of the set of open connections
        self._full_since: float | None = None
        self._waiting, self._probes = BoundedSemaphore(_MOST_WAITING), BoundedSemaphore(_MOST_PROBES)
        self._stopping = Event()

    def serve(self, listening: socket.socket) -> None:
        """Accept and serve connections until `stop`."""
        while not self._stopping.is_set():
            if self._operation.shared is not None and (excess := self._operation.shared.excess()) > 0:
                sleep(min(_YIELD * excess, _PAUSE))
            try:
                accepted, address = listening.accept()
            except BlockingIOError:  # the timeout of a worker, which looks whether it is stopping
                continue
            except OSError:  # the client has disconnected, or the system has no free descriptors
                sleep(_PAUSE)
                continue
            link = ClientSocket(accepted, self._limits.idle_seconds)
            if not self._start(link, address[0]):
                self._turn_away(link, address[0])

    def stop_accepting(self) -> None:
        """Accept no further connection, and close each after its next answer."""
        self._stopping.set()

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

    def make_room(self) -> None:
        """End the connection without a request for longest if another waits for a place in another worker."""
        if self._is_crowded():
            with self._changed:
                self._interrupt_idle()

    def _start(self, link: ClientSocket, client: str) -> bool:
        """Start the thread of *link*; return False if there is no place for it, not even to wait for one."""
        work, places = self._work_for(link)
        try:
            if work is not None:
                Thread(target=work, args=(link, client), name="jidomem-connection", daemon=True).start()
                return True
        except RuntimeError:  # the system cannot start another thread
            if places is not None:
                places.release()
        return False

    def _work_for(
        self, link: ClientSocket
    ) -> tuple[Callable[[ClientSocket, str], None] | None, BoundedSemaphore | None]:
        """Return the work of the thread of *link*, and the places of which it has one; nothing if there is none."""
        if self._full_since is None and self._admit(link):
            return self._serve, None
        if self._is_probe(link, _PEEKS[0]) and self._probes.acquire(blocking=False):
            return self._answer_probe, self._probes
        if self._waiting.acquire(blocking=False):
            return self._wait_for_room, self._waiting
        return None, None

    def _admit(self, link: ClientSocket) -> bool:
        """Return whether there was room for *link* among the open connections."""
        with self._changed:
            if not self._operation.connections.acquire(blocking=False):
                return False
            if self._full_since is not None:
                self._full_since = None
                self._set_crowded(is_crowded=False)
            self._open.add(link)
            self._count_connections()
        return True

    def _wait_for_room(self, link: ClientSocket, client: str) -> None:
        """Serve *link* once there is room; refuse it after the idle time; answer a probe at once."""
        try:
            is_probe, is_admitted = self._is_probe(link, _PEEKS[1]), False
            since = monotonic()
            while not is_probe and not (is_admitted := self._admit(link)) and self._may_wait(since):
                is_probe = self._is_probe(link)
        finally:
            self._waiting.release()
        if is_admitted:
            self._serve(link, client)
        elif is_probe and self._probes.acquire(blocking=False):
            self._answer_probe(link, client)
        else:
            self._turn_away(link, client)

    def _may_wait(self, since: float) -> bool:
        """Return whether a connection that waits *since* then may wait on, after a moment in which one may end."""
        limit = self._limits.idle_seconds
        with self._changed:
            if self._full_since is None:
                self._full_since = monotonic()
                self._set_crowded(is_crowded=True)
            if self._stopping.is_set() or monotonic() > min(self._full_since, since) + limit:
                return False
            self._interrupt_idle()
            self._changed.wait(limit / 20)
        return True

    def _is_probe(self, link: ClientSocket, seconds: float = 0.0) -> bool:
        """Return whether a whole request for /healthz or /readyz arrives within *seconds*."""
        return _PROBE.fullmatch(link.peek(seconds)) is not None

    def _answer_probe(self, link: ClientSocket, client: str) -> None:
        """Answer the one request of *link*, beyond the limit."""
        try:
            self._serve(link, client, keeps=lambda: False)
        finally:
            self._probes.release()

    def _turn_away(self, link: ClientSocket, client: str) -> None:
        detail = f"the server has reached its limit of {self._limits.connections} connections"
        with suppress(ClientDisconnected, ClientTooSlow):
            self._refuse(self._exchange(link), Busy(detail, hint="try again"), client, perf_counter())
            link.end(0)
        self._close(link)

    def _interrupt_idle(self) -> None:
        longest = max(self._open, key=ClientSocket.waiting, default=None)
        if longest and longest.waiting() > self._limits.idle_seconds / 10:
            longest.interrupt()

    def _close(self, link: ClientSocket, *, abort: bool = False) -> None:
        with self._changed:
            link.close(abort=abort)
            if link in self._open:
                self._open.discard(link)
                self._operation.connections.release()
                self._count_connections()
            self._changed.notify_all()

    def _count_connections(self) -> None:
        if self._operation.shared is not None:
            self._operation.shared.set_connections(len(self._open))

    def _set_crowded(self, *, is_crowded: bool) -> None:
        if self._operation.shared is not None:
            self._operation.shared.set_crowded(is_crowded=is_crowded)

    def _is_crowded(self) -> bool:
        return self._operation.shared is not None and self._operation.shared.is_crowded()

    def _keeps_connections(self) -> bool:
        return self._full_since is None and not self._stopping.is_set() and not self._is_crowded()

    def _exchange(self, link: ClientSocket, keeps: Callable[[], bool] | None = None) -> HttpExchange:
        return HttpExchange(link, self._limits, keeps or self._keeps_connections)

    def _serve(self, link: ClientSocket, client: str, keeps: Callable[[], bool] | None = None) -> None:
        """Answer the requests of *link* until it ends, or while it *keeps* the connection; never raises."""
        exchange, is_kept = self._exchange(link), True
        try:
            while is_kept and (received := exchange.surplus() or link.begin()):
                exchange, began = self._exchange(link, keeps), perf_counter()
                try:
                    exchange.receive_head(received)
                except JidomemError as refusal:
                    self._refuse(exchange, refusal, client, began)
                else:
                    exchange.respond(self._app, {**self._environ, "REMOTE_ADDR": client})
                is_kept = exchange.finish()
        except (ClientDisconnected, ClientTooSlow):
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


def serve(
    app: App,
    listening: socket.socket,
    stopping: Callable[[], None],
    limits: RootLimits,
    operation: Operation,
    supervisor: socket.socket | None = None,
) -> None:
    """Serve *app* on *listening* until a signal; then call *stopping*, and wait for the running requests.

    Requests that take longer than GRACE seconds end with the process: acknowledged writes are durable. A worker also
    stops when its *supervisor* has closed its end; after a signal the other workers go on.
    """
    limit_collections()
    signals = signal_socket()
    host, port = listening.getsockname()[:2]
    environ = {**_ENVIRON, "SERVER_NAME": host, "SERVER_PORT": str(port)}
    environ["wsgi.multiprocess"] = supervisor is not None
    pool = ConnectionPool(app, environ, limits, operation)
    accepting = Thread(target=pool.serve, args=(listening,), name="jidomem-listening", daemon=True)
    accepting.start()
    ends = [signals] if supervisor is None else [signals, supervisor]
    room = None if supervisor is None else PeriodicTask(_ROOM, pool.make_room, "jidomem-room")
    while not (ready := select(ends, (), ())[0]) or (ready == [signals] and not is_stop(signals)):
        pass
    if supervisor is None or supervisor in ready:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)  # no new connections
    stopping()
    if room is not None:
        room.stop()
        pool.stop_accepting()
        accepting.join(_ACCEPTS)
    pool.stop(GRACE)
