"""The HTTP client: requests with a total deadline and a limit on the answer, over pooled connections.

Servers are reached directly: proxies of the environment are not used and no redirect is followed,
so that a secret is sent to one host only. Failures are values: no traceback contains a header.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import NamedTuple

import h11

from jidomem.base.clock import monotonic_time

_MAX_HEAD = 64 * 1024
_READ_SIZE = 256 * 1024
#: The most bytes read of an error response.
_MAX_REFUSAL = 64 * 1024


class HttpOrigin(NamedTuple):
    """The server of requests."""

    is_secure: bool
    host: str
    port: int

    @property
    def named(self) -> str:
        """Return host and port as in the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.named}"


class HttpLimits(NamedTuple):
    """The limits of a request: seconds to connect, seconds of silence, its deadline, bytes of the answer."""

    connect: float
    silence: float
    until: float
    most: int | None = None


class HttpResponse(NamedTuple):
    """An answer; if its body exceeds the limit, `is_whole` is False and the body has its beginning only."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_whole: bool = True

    def values(self, name: str) -> list[str]:
        """Return the values of the header *name* (in lower case)."""
        return [value for each, value in self.headers if each == name]

    def header(self, name: str) -> str:
        """Return the values of the header *name* (in lower case), joined by commas."""
        return ", ".join(self.values(name))


class HttpFailure(NamedTuple):
    """The reason why there is no answer; `may_pass` if the same request may succeed later."""

    why: str
    may_pass: bool = True
    is_late: bool = False


Connection = tuple[socket.socket, h11.Connection]


class HttpClient:
    """Sends requests to one server, from any thread; up to *pooled* idle connections stay open."""

    def __init__(self, origin: HttpOrigin, *, pooled: int = 0, monotonic: Callable[[], float] = monotonic_time) -> None:
        self._origin, self._pooled, self._monotonic = origin, pooled, monotonic
        self._idle: list[Connection] = []
        self._lock = Lock()

    def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, limits: HttpLimits
    ) -> HttpResponse | HttpFailure:
        """Return the answer to a request, which is sent again if the server had closed a pooled connection."""
        while True:
            with self._lock:
                pooled = self._idle.pop() if self._idle else None
            answer = self._exchange(pooled, method, target, headers, body, limits)
            if pooled is None or isinstance(answer, HttpResponse) or answer.is_late:
                return answer

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            for connection, _ in self._idle:
                connection.close()
            self._idle.clear()

    def _seconds_left(self, limits: HttpLimits, most: float = float("inf")) -> float:
        """Return the seconds until the deadline, at most *most*; raises TimeoutError after it."""
        left = limits.until - self._monotonic()
        if left <= 0:
            raise TimeoutError
        return min(most, left)

    def _exchange(
        self,
        pooled: Connection | None,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        limits: HttpLimits,
    ) -> HttpResponse | HttpFailure:
        end = {} if self._pooled else {"Connection": "close"}
        head = {"Host": self._origin.named, **headers, "Content-Length": str(len(body)), **end}
        connection = None
        try:
            connection, protocol = pooled or self._connect(limits)
            request = h11.Request(method=method, target=target, headers=[*head.items()])
            parts = [protocol.send(event) for event in (request, h11.Data(data=body), h11.EndOfMessage())]
            connection.settimeout(self._seconds_left(limits))
            _send(connection, b"".join(part for part in parts if part))
            answer = self._read(connection, protocol, limits)
            if protocol.our_state is h11.DONE and protocol.their_state is h11.DONE:
                protocol.start_next_cycle()
                connection = self._pool_connection((connection, protocol))
            return answer
        except TimeoutError:
            is_over = self._monotonic() >= limits.until
            return HttpFailure(
                "did not finish in the stated time" if is_over else "was silent for too long", True, True
            )
        except ssl.SSLCertVerificationError as error:
            return HttpFailure(f"is not who it says: {error.verify_message}", may_pass=False)
        except h11.RemoteProtocolError as error:
            return HttpFailure(f"broke off, or speaks no HTTP: {error}")
        except OSError as error:
            return HttpFailure(f"cannot be reached: {error.strerror or type(error).__name__}")
        finally:
            if connection is not None:
                connection.close()

    def _connect(self, limits: HttpLimits) -> Connection:
        address = (self._origin.host, self._origin.port)
        plain = socket.create_connection(address, timeout=self._seconds_left(limits, limits.connect))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        if not self._origin.is_secure:
            return plain, protocol
        try:
            return _trusted().wrap_socket(plain, server_hostname=self._origin.host), protocol
        except BaseException:
            plain.close()
            raise

    def _read(self, connection: socket.socket, protocol: h11.Connection, limits: HttpLimits) -> HttpResponse:
        status, headers, body, most = 0, tuple[tuple[str, str], ...](), bytearray(), float("inf")
        while True:
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                connection.settimeout(self._seconds_left(limits, limits.silence))
                protocol.receive_data(connection.recv(_READ_SIZE))
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers)
                most = float("inf") if limits.most is None else limits.most
                most = most if 200 <= status < 300 else min(most, _MAX_REFUSAL)
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > most:
                    return HttpResponse(status, headers, bytes(body[: int(most)]), is_whole=False)
            elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                return HttpResponse(status, headers, bytes(body))

    def _pool_connection(self, connection: Connection) -> socket.socket | None:
        """Return *connection* to the pool; return its socket if the pool is full."""
        with self._lock:
            if len(self._idle) >= self._pooled:
                return connection[0]
            self._idle.append(connection)
            return None


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates trusted by this machine, cached: loading them takes longer than a request."""
    return ssl.create_default_context()


def _send(connection: socket.socket, data: bytes) -> None:
    """Send *data*; if the server answers before it has read everything, its answer is still read."""
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(data)
