"""One HTTP exchange over a connection of its own, which ends in the stated time whatever the other side does."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

import h11

from jidomem.errors import InvalidRequest

_HEADERS = 64 * 1024
_PIECE = 256 * 1024
_OF_REFUSAL = 64 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where requests go: the path of each is put behind that of the address."""

    is_secure: bool
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Address:
        """Return the address that *url* names; raises InvalidRequest for one that names none, or says more."""
        hint = 'give it with its version, as in base_url = "https://api.openai.com/v1"'
        try:
            split = urlsplit(url)
            port = split.port
            (split.hostname or "").encode("idna")
        except ValueError:
            split, port = urlsplit(""), None
        if split.scheme not in ("http", "https") or not split.hostname or not re.fullmatch(r"[!-~]+", url):
            raise InvalidRequest("the base URL is no http or https address", hint=hint)
        if split.username is not None or split.query or split.fragment:
            raise InvalidRequest(
                "the base URL has a name, a password or a query in it", hint=f"{hint}; a key is in the environment"
            )
        secure = split.scheme == "https"
        return cls(secure, split.hostname, port or (443 if secure else 80), split.path.rstrip("/"))

    def __str__(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.named}{self.path}"

    @property
    def named(self) -> str:
        """Return host and port as the header `Host` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Return whether what is sent there stays on this machine."""
        return self.host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", self.host) is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; of a body longer than was asked for the first part, and then `is_whole` is False."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Broken:
    """Why there is no answer, in words; `may_pass` unless it would be the same another time."""

    why: str
    may_pass: bool = True


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one exchange may take: seconds to connect, seconds of silence, the moment it ends, bytes of an answer."""

    connect: float
    silence: float
    until: float
    most: int


def exchange(
    address: Address,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    bounds: Bounds,
    monotonic: Callable[[], float],
) -> Answer | Broken:
    """Return what is answered when *body* is posted to *path*; what goes wrong outside is returned, never raised.

    So no traceback that anybody records has a header in it. The body of a refusal is read to 64 KiB.
    """
    said = {"Host": address.named, **headers, "Content-Length": str(len(body)), "Connection": "close"}

    def left(most: float) -> float:
        """Return the seconds that may be waited now."""
        return max(min(most, bounds.until - monotonic()), 0.001)

    try:
        with _connected(address, left(bounds.connect)) as connection:
            protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADERS)
            request = h11.Request(method="POST", target=address.path + path, headers=list(said.items()))
            _send(connection, [protocol.send(request), protocol.send(h11.Data(data=body))], left(float("inf")))
            protocol.send(h11.EndOfMessage())
            return _answer(protocol, lambda: _piece(connection, left(bounds.silence), bounds, monotonic), bounds.most)
    except TimeoutError:
        over = monotonic() >= bounds.until
        return Broken("was not done in the stated time" if over else "said nothing for too long")
    except ssl.SSLCertVerificationError as error:
        return Broken(f"is not who it says: {error.verify_message}", may_pass=False)
    except h11.RemoteProtocolError as error:
        return Broken(f"broke off, or speaks no HTTP: {error}")
    except OSError as error:
        return Broken(f"cannot be reached: {error.strerror or type(error).__name__}")


def _connected(address: Address, seconds: float) -> socket.socket:
    """Return a connection to *address*; whoever opened it closes it."""
    plain = socket.create_connection((address.host, address.port), timeout=seconds)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not address.is_secure:
        return plain
    try:
        return _trusted().wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise


@cache
def _trusted() -> ssl.SSLContext:
    """Return what this machine trusts; it takes longer to read than an answer may take."""
    return ssl.create_default_context()


def _send(connection: socket.socket, pieces: list[bytes | None], seconds: float) -> None:
    """Send *pieces*; who answers before it has read them all is heard all the same."""
    connection.settimeout(seconds)
    try:
        for piece in pieces:
            connection.sendall(piece or b"")
    except (BrokenPipeError, ConnectionResetError):
        pass


def _piece(connection: socket.socket, seconds: float, bounds: Bounds, monotonic: Callable[[], float]) -> bytes:
    """Return what comes next, empty at the end; raises TimeoutError."""
    if monotonic() >= bounds.until:
        raise TimeoutError
    connection.settimeout(seconds)
    return connection.recv(_PIECE)


def _answer(protocol: h11.Connection, receive: Callable[[], bytes], most: int) -> Answer:
    """Return the answer that *receive* brings; raises what receiving it raises."""
    status, headers, body = 0, dict[str, str](), bytearray()
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(receive())
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in event.headers}
            most = most if status == 200 else min(most, _OF_REFUSAL)
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most:
                return Answer(status, headers, bytes(body[:most]), is_whole=False)
        elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
            return Answer(status, headers, bytes(body))
