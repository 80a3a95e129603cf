"""The server process: a socket, granian's threads, and a clean stop.

granian usually starts worker processes. One process has to own an index, and no process that opens a root may fork,
so the worker is a thread of this process: the threaded server granian has for Pythons without a GIL, which needs
nothing such a Python has. Whether it still does is what the tests of the running server see.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Callable, Collection
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.mt import MTServer

from jidomem.errors import InvalidRequest
from jidomem.runtime.limits import Limits
from jidomem.serve.http import LOOPBACK

HOST, PORT = "127.0.0.1", 8700
_NAME = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
#: Seconds that requests under way get when the server stops.
GRACE = 10
#: Seconds that a client may take nothing of what it is sent.
STALLED = 30
_BACKLOG = 128
#: Seconds after which a signal that came meanwhile is seen at the latest.
_LOOK = 0.2


def listen(host: str, port: int, *, knows_who_asks: bool = False) -> socket.socket:
    """Return a socket that listens on an address; port 0 is any free one.

    Raises InvalidRequest for one that is not of this machine alone unless it *knows_who_asks*, and for a port taken.
    """
    parsed = _address(host)
    address = str(parsed)
    if not (parsed.is_loopback or knows_who_asks):
        raise InvalidRequest(
            f"{host} can be reached from elsewhere, and this server knows no tokens to tell who asks",
            hint="give out one first: jidomem token add AGENT; or serve on this machine only: --host 127.0.0.1",
        )
    found = socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections have it from here: 40 ms less each
    if sys.platform == "linux":  # who takes nothing of an answer for so long is cut off, and its thread is free
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED * 1000)
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


def serve(app: Callable[..., Any], listening: socket.socket, stopping: Callable[[], None], limits: Limits) -> None:
    """Serve *app* on *listening* until SIGTERM or SIGINT, and end the requests under way.

    *stopping* is called before they are waited for. Those that take longer than GRACE seconds to end, end with the
    process: what was acknowledged is durable.
    """
    host, port = listening.getsockname()[:2]
    server = _Server(
        "jidomem",
        host,
        port,
        interface=Interfaces.WSGI,
        blocking_threads=limits.connections,
        backpressure=limits.connections,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=int(limits.idle_seconds * 1000)),
        websockets=False,
        log_enabled=False,
    )
    server.on_shutdown_begun = stopping
    server.holder = SocketHolder(listening.detach(), False, _BACKLOG)  # type: ignore[call-arg]
    server.serve(target_loader=lambda: app, wrap_loader=False)


def leave() -> None:
    """End this process at once, after a clean stop.

    A request that did not end in time would be waited for at the interpreter's end, and a thread of granian that then
    still lets go of a Python object aborts the process.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class _Server(MTServer):
    """One worker thread on a socket that is there already."""

    holder: Any
    on_shutdown_begun: Callable[[], None]
    #: A terminal that is gone stops it, too: there is nothing to load again.
    signal_handler_reload = MTServer.signal_handler_interrupt

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        """Wait for the end, and look up every so often: a signal that another thread took wakes nobody here."""
        while not self.main_loop_interrupt.wait(_LOOK):
            pass
        super()._serve_loop(spawn_target, target_loader)  # type: ignore[no-untyped-call]

    def _check_gil(self) -> None:
        """Let the worker be a thread on a Python with a GIL, too."""

    def _init_shared_socket(self) -> None:
        self._shd = self.holder

    def _stop_workers(self) -> None:
        workers: list[Any] = self.wrks
        for worker in workers:
            worker.terminate()
        self.on_shutdown_begun()
        for worker in workers:
            worker.join(GRACE)
