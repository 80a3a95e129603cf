"""The listening socket of a server, the host names by which clients reach it, and the signals that stop it.

It imports little: the supervisor of several workers needs no more of a server.
"""

from __future__ import annotations

import errno
import gc
import ipaddress
import os
import re
import signal
import socket
import sys
from collections.abc import Collection, Iterable
from shlex import quote

from jidomem.errors import InvalidRequest

HOST, PORT = "127.0.0.1", 8700
#: Seconds that running requests get when the server stops.
GRACE = 10
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: The host names of this machine for itself.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is any free one.

    Raises InvalidRequest for a port in use.
    """
    address = parse_address(host)
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        listening = socket.create_server((str(address), port), family=family, backlog=128)
    except OSError as error:
        problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be served: {error.strerror}"
        hint = "stop what listens there, or give another port: --port 0 takes any that is free"
        raise InvalidRequest(f"{host}:{port} {problem}", hint=hint) from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited by connections; saves 40 ms each
    return listening


_ORIGIN = re.compile(r"https?://([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_PUBLIC_URL_HINT = (
    "give scheme and host as clients ask them, without a path, as the server needs a host of its own:"
    " --public-url https://memory.example.org"
)


def parse_origins(
    texts: Iterable[str], hint: str = "name each origin: --allow-origin https://yasgui.example.org"
) -> frozenset[str]:
    """Return origins as browsers send them; raise InvalidRequest, with *hint*, for anything else.

    >>> sorted(parse_origins(["https://Example.org"]))
    ['https://example.org']
    """
    origins = frozenset(text.lower() for text in texts)
    for text in sorted(origins):
        if not _ORIGIN.fullmatch(text):
            raise InvalidRequest(
                f"{text!r} is not an origin: a scheme, a host and, if it is not the default, a port", hint=hint
            )
    return origins


def parse_public_url(text: str) -> str:
    """Return the origin that clients use; raise InvalidRequest if *text* is none."""
    return next(iter(parse_origins([text], _PUBLIC_URL_HINT)))


def host_of(origin: str) -> str | None:
    """Return the host of an *origin* as browsers send it, without the port; None if it is none.

    >>> host_of("https://example.org:8443"), host_of("null")
    ('example.org', None)
    """
    match = _ORIGIN.fullmatch(origin)
    return match and match[1]


def refuse_unprotected(hosts: Iterable[str], root: str, place: str) -> None:
    """Raise InvalidRequest for the server of a *root* without tokens if one of *hosts* leads here from elsewhere.

    *place* says where a token was looked for.
    """
    for name in hosts:
        if name not in LOOPBACK:
            raise InvalidRequest(
                f"clients reach this server as {name}, and it has no tokens: there is none {place}",
                hint=f"issue one as the user that runs it: jidomem access token add AGENT --root {quote(root)};"
                " or serve this machine only, without --host, --allow-host and --public-url",
            )


#: The thresholds of the garbage collector in a server: a full collection stops all threads for some 50 ms.
_COLLECTIONS = (2_000, 10, 100)


def limit_collections() -> None:
    """Exempt the objects of the start, which live as long as the server, from garbage collection, and collect rarely.

    Few objects of a request are in cycles, and most of these are found by the collections of young objects.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)


def url_of(listening: socket.socket) -> str:
    """Return the URL of *listening*."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address *host*; raise InvalidRequest if it is not one."""
    try:
        return ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)
    except ValueError as error:
        raise InvalidRequest(f"{host!r} is not an address", hint="give an address: --host 127.0.0.1") from error


def hosts_of(host: str, names: Collection[str]) -> list[str]:
    """Return the host names that clients may use for a server at the address *host*: the address, and *names*.

    Raises InvalidRequest for the address of all interfaces without a name.
    """
    address = parse_address(host)
    for name in names:
        if not _HOST_NAME.fullmatch(name):
            hint = "give it without scheme and port: --allow-host memory.example.org"
            raise InvalidRequest(f"{name!r} is not a host name", hint=hint)
    if address.is_unspecified and not names:
        detail = f"{host} is every address of this machine, and a request names the one that it was sent to"
        raise InvalidRequest(detail, hint="name the host that clients use: --allow-host memory.example.org")
    own = [] if address.is_loopback or address.is_unspecified else [f"[{address}]" if address.version == 6 else host]
    return [*LOOPBACK, *own, *(name.lower() for name in names)]


#: The sockets of `signal_socket`, open as long as the process: a signal may arrive while it ends.
_OPEN: list[socket.socket] = []


def signal_socket() -> socket.socket:
    """Return a socket with one byte for each signal that arrives from now on, in whichever thread it is handled."""
    signals, sending = socket.socketpair()
    _OPEN.append(signals)
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach())
    for number in _STOPS:
        signal.signal(number, lambda *_: None)
    return signals


def is_stop(signals: socket.socket) -> bool:
    """Return whether the next signal of `signal_socket` stops a server."""
    return signals.recv(1)[0] in _STOPS


def leave() -> None:
    """End this process without waiting for threads, after a clean stop: one more signal cannot disturb it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
