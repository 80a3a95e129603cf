"""The server process: where it listens, until when it serves, and a clean stop.

One process has to own an index, and no process that opens a root may fork, so that requests are answered by threads of
this one.
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
from threading import Thread
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.runtime.limits import Limits
from jidomem.serve.http import LOOPBACK
from jidomem.serve.operation import Operation
from jidomem.serve.reply import App
from jidomem.serve.slots import Slots

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
            hint="give out one first: jidomem token add AGENT; or serve on this machine only: --host 127.0.0.1",
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
    app: App, listening: socket.socket, stopping: Callable[[], None], limits: Limits, operation: Operation
) -> None:
    """Serve *app* on *listening* until SIGTERM or SIGINT, and end the requests under way.

    *stopping* is called before they are waited for. Those that take longer than GRACE seconds to end, end with the
    process: what was acknowledged is durable.
    """
    told = _signals()
    host, port = listening.getsockname()[:2]
    slots = Slots(app, {**_ABOUT, "SERVER_NAME": host, "SERVER_PORT": str(port)}, limits, operation)
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
