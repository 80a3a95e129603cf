"""HTTP/1.1 on one connection: requests, read by h11, and the answers of a WSGI application.

A body that is cut, or does not arrive in time, never counts as complete, and a request that two
readers could parse differently is refused.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from threading import Lock
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import h11

from jidomem.errors import Busy, InvalidRequest, JidomemError, RequestTimeout, TooLarge
from jidomem.runtime.user_config import RootLimits
from jidomem.serve import monitoring, wire
from jidomem.serve.app import HEADERS

T = TypeVar("T")
App = Callable[..., Iterable[bytes]]
#: The slowest rate of a client, in bytes per second, on average over the time that it is waited for.
SLOWEST = 1024
_READ_SIZE = 64 * 1024
#: Parts of an answer up to this size are sent together.
_SMALL = 64 * 1024
#: Bytes of a body that are read and ignored in order to keep the connection.
_KEEP_LIMIT = 256 * 1024
#: Bytes that are read and ignored before a connection is closed: a client that first sends all would miss the answer.
_CLOSE_LIMIT = 16 * 1024 * 1024


class TooSlow(Exception):
    """The client does not send, or does not read, fast enough."""


class ClientDisconnected(Exception):
    """The client has closed the connection."""


class ThroughputGuard:
    """The time left for one direction of an exchange: *idle* seconds, and more for each byte that moves."""

    def __init__(self, idle: float) -> None:
        self._idle, self._waited = idle, 0.0
        self.moved = 0
        self.since: float | None = None  # the start of the present wait

    def wait(self, connection: socket.socket, event: int) -> None:
        """Return when *connection* is ready for *event*; raise TooSlow when the time is over."""
        left = min(self._idle, self._idle + self.moved / SLOWEST - self._waited)
        self.since = began = monotonic()
        ready = left > 0 and _is_ready(connection, event, left)
        self._waited += monotonic() - began
        self.since = None
        if not ready:
            raise TooSlow


def _is_ready(connection: socket.socket, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(connection, event)
    return bool(poll.poll(seconds * 1000))


class ClientSocket:
    """One connection. One thread may read it while another writes it.

    A thread that is late uses no closed connection: its descriptor may belong to another one by then.
    """

    def __init__(self, connection: socket.socket, idle: float) -> None:
        """Own *connection*, whose client is waited for *idle* seconds."""
        connection.setblocking(True)
        if sys.platform == "linux":  # a client that is gone for good acknowledges nothing, and is noticed by this alone
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(idle * 1000))
        timeout = struct.pack("ll", *divmod(int(idle * 1e6), 10**6))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        self._connection, self._idle = connection, idle
        self._reading, self._sending = Lock(), Lock()
        self._receiving = self.guard()
        self._closed = self.interrupted = False

    def guard(self) -> ThroughputGuard:
        """Return the time that one direction of an exchange gets."""
        return ThroughputGuard(self._idle)

    def fileno(self) -> int:
        """Return the descriptor of the connection; -1 once it is closed."""
        return self._connection.fileno()

    def begin(self) -> bytes:
        """Return the next bytes; empty at the end of the connection, or when it was idle for too long.

        Waiting in the system costs a thread one turn of the interpreter; a poll first would cost two.
        """
        try:
            return self._connection.recv(_READ_SIZE)
        except OSError:
            return b""

    def has_more(self) -> bool:
        """Return whether there are unread bytes, or the connection is at its end."""
        return _is_ready(self._connection, select.POLLIN, 0)

    def silent(self) -> float:
        """Return the seconds for which the client has been waited for to send; 0 if it is not."""
        since = self._receiving.since
        return 0.0 if since is None else monotonic() - since

    def receive(self, guard: ThroughputGuard) -> bytes:
        """Return the next bytes, empty at the end of the connection; raise TooSlow and ClientDisconnected."""
        self._receiving = guard
        receive = partial(self._connection.recv, _READ_SIZE, socket.MSG_DONTWAIT)
        data = self._transfer(receive, self._reading, select.POLLIN, guard)
        guard.moved += len(data)
        return data

    def send(self, data: bytes, guard: ThroughputGuard) -> None:
        """Send all of *data*; raise TooSlow and ClientDisconnected."""
        rest = memoryview(data)
        while rest:
            send = partial(self._connection.send, rest, socket.MSG_DONTWAIT)
            sent = self._transfer(send, self._sending, select.POLLOUT, guard)
            guard.moved += sent
            rest = rest[sent:]

    def _transfer(self, call: Callable[[], T], lock: Lock, event: int, guard: ThroughputGuard) -> T:
        while True:
            try:
                with lock:
                    if self._closed:
                        raise ClientDisconnected
                    return call()
            except BlockingIOError:
                guard.wait(self._connection, event)
            except OSError as error:
                raise ClientDisconnected from error

    def end(self, limit: int) -> None:
        """Send no more, and read up to *limit* bytes: a client that still sends would not see its answer.

        A client that sends nothing is waited for a tenth of the usual time, and none longer than that.
        """
        guard, until = ThroughputGuard(self._idle / 10), monotonic() + self._idle
        with suppress(OSError, ClientDisconnected, TooSlow):
            self._connection.shutdown(socket.SHUT_WR)
            while limit > 0 and monotonic() < until and (data := self.receive(guard)):
                limit -= len(data)

    def interrupt(self) -> None:
        """Read no more: a thread that waits for the client goes on at once, as at the end of the connection."""
        self.interrupted = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)

    def close(self, *, abort: bool = False) -> None:
        """Close the connection; *abort* resets it, so that the client takes no partial answer for complete."""
        with self._reading, self._sending:
            self._closed = True
            if abort:
                with suppress(OSError):
                    self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._connection.close()


#: Line ends and continued lines that HTTP once allowed: two readers may parse them differently.
_LOOSE = re.compile(rb"(?<!\r)\n|\n[ \t]")
_HINT = "correct the request: RFC 9112 has how one is written"
_CONTINUE = h11.InformationalResponse(status_code=100, reason=b"Continue", headers=[])


class HttpExchange:
    """One request, as WSGI's `wsgi.input`, and its answer.

    One thread may read the body while another sends the answer.
    """

    def __init__(
        self, link: ClientSocket, limits: RootLimits, keeps: Callable[[], bool], received: bytes = b""
    ) -> None:
        """Read from *link* the request that begins with *received*; *keeps* says whether the connection is kept."""
        self.link, self._guard, self._sending = link, link.guard(), link.guard()
        self._guard.moved = len(received)
        self._limits, self._keeps = limits, keeps
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.url + limits.headers)
        self._lock = Lock()
        self._raw = received.lstrip(b"\r\n")  # the head; later the last bytes of the body
        self._length: int | None = 0  # of the body; None if it comes in chunks
        self._body_read = 0
        self._rest = b""  # of the last piece of the body
        self._failed = self._is_bare = False
        self._head: tuple[str, list[tuple[str, str]]] | None = None  # of the answer, until it is sent
        self.at_end = self.is_partial = False

    def request(self) -> h11.Request:
        """Return the request once its head is complete; raise a JidomemError if it is not HTTP."""
        try:
            if self._raw:
                self._h11.receive_data(self._raw)
            while (event := self._h11.next_event()) is h11.NEED_DATA:
                data = self._receive()
                if not self._raw:  # some clients send an empty line behind a body
                    data = data.lstrip(b"\r\n")
                if data:
                    self._raw += data
                    self._h11.receive_data(data)
        except TooSlow:
            hint = "send it without a pause"
            raise RequestTimeout("the rest of the request did not come in time", hint=hint) from None
        except h11.RemoteProtocolError as error:
            if error.error_status_hint != 431:
                raise InvalidRequest(f"this is no request of HTTP/1.1: {error}", hint=_HINT) from None
            raise self._too_large(is_address=b"\n" not in self._raw[: self._limits.url + 1]) from None
        assert isinstance(event, h11.Request)
        self._check_head(event)
        given = dict(event.headers)  # h11 accepts one length only
        self._is_bare = event.method == b"HEAD"
        self._length = None if b"transfer-encoding" in given else int(given.get(b"content-length", b"0"))
        return event

    def _check_head(self, request: h11.Request) -> None:
        """Raise a JidomemError if the head of *request* is too large, or its lines are ambiguous."""
        behind = len(self._h11.trailing_data[0])
        head, self._raw = self._raw[: len(self._raw) - behind], self._raw[-behind - 4 :]
        is_long_address = len(request.target) > self._limits.url
        if is_long_address or len(head) - len(request.target) > self._limits.headers:
            raise self._too_large(is_address=is_long_address)
        if _LOOSE.search(head):
            raise InvalidRequest("each line of a head ends in CR LF, and none goes on in the next one", hint=_HINT)

    def _receive(self) -> bytes:
        data = self.link.receive(self._guard)
        if not data:
            raise ClientDisconnected
        return data

    def _too_large(self, *, is_address: bool) -> TooLarge:
        if is_address:
            detail, hint = f"the address has more than {self._limits.url:,} bytes", "send a query as a body"
            return TooLarge(detail, hint=hint, code="uri_too_long")
        detail = f"the headers have more than {self._limits.headers:,} bytes"
        return TooLarge(detail, hint="send fewer", code="headers_too_large")

    def read(self, size: int = -1) -> bytes:
        """Return *size* bytes of the body, or fewer at its end; without a size all. Raise as `read1` does."""
        data = bytearray()
        while (size < 0 or len(data) < size) and (piece := self.read1(size - len(data) if size >= 0 else -1)):
            data += piece
        return bytes(data)

    def read1(self, size: int = -1) -> bytes:
        """Return bytes of the body that have arrived, at most *size*, empty only at its end.

        Raise RequestTimeout if the client is too slow, InvalidRequest if the body is cut or malformed, and Busy if the
        server stops.
        """
        if self._failed:
            raise InvalidRequest("the body was not read to its end", hint="send the request again")
        if size == 0:
            return b""
        piece = self._rest or self._next_piece()
        self._rest = b"" if size < 0 else piece[size:]
        return piece if size < 0 else piece[:size]

    def is_long(self) -> bool:
        """Return whether more of the body is to come than is read to keep the connection; of chunks that is a guess."""
        left = self._body_read if self._length is None else self._length - self._body_read
        return not self.at_end and left > _KEEP_LIMIT

    def drain(self) -> bool:
        """Return whether the body ends within a limit; the bytes are ignored."""
        begun = self._guard.moved
        with suppress(JidomemError):
            while not self._failed and not self.at_end and self._guard.moved - begun < _KEEP_LIMIT:
                self._next_piece()
        return self.at_end and not self._failed

    def _next_piece(self) -> bytes:
        """Return the next piece of the body; raise as `read1` does."""
        try:
            piece = self._next_data()
            self._body_read += len(piece)
            return piece
        except TooSlow:
            hint = f"send it without a pause, {SLOWEST:,} bytes a second at least"
            error: JidomemError = RequestTimeout("the rest of the body did not come in time", hint=hint)
        except ClientDisconnected:
            error = InvalidRequest("the body was cut", hint="send all of it")
            if self.link.interrupted:
                detail = "the server is stopping, and the rest of the body did not come"
                error = Busy(detail, hint="send it again after the server has started")
        except h11.RemoteProtocolError as malformed:
            error = InvalidRequest(f"the chunks of the body cannot be read: {malformed}", hint="send it again")
        self._failed = True
        raise error

    def _next_data(self) -> bytes:
        """Return the next piece, empty at the end of the body, after the interim answer that a client waits for."""
        while not self.at_end:
            with self._lock:
                event = self._h11.next_event()
                waits = event is h11.NEED_DATA and self._h11.they_are_waiting_for_100_continue
                interim = self._h11.send(_CONTINUE) if waits else None
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if interim:
                self.link.send(interim, self.link.guard())
            if event is h11.NEED_DATA:
                data = self._receive()
                self._raw = self._raw[-4:] + data
                with self._lock:
                    self._h11.receive_data(data)
            else:
                self.at_end = True
                sent = self._raw.removesuffix(self._h11.trailing_data[0])
                if self._length is None and not sent.endswith(b"\r\n\r\n"):  # another reader may see the end elsewhere
                    raise h11.RemoteProtocolError("the last chunk does not end in an empty line")
        return b""

    def respond(self, app: App, environ: dict[str, Any]) -> None:
        """Send the answer of *app* to *environ*."""
        self.is_partial = True
        pieces = app(environ, self.start)
        try:
            for piece in pieces:
                self.write(piece)
            self.end()
        finally:
            if hasattr(pieces, "close"):
                pieces.close()
        self.is_partial = False

    def refuse(self, refusal: JidomemError, request_id: str) -> None:
        """Send *refusal* as the last answer of the connection, without an application."""
        document = wire.dump({**wire.described(refusal), "request_id": request_id})
        headers = {"Content-Type": wire.PROBLEM, "Content-Length": str(len(document)), monitoring.HEADER: request_id}
        self._failed = True
        phrase = HTTPStatus(refusal.http_status).phrase
        self.start(f"{refusal.http_status} {phrase}", [*{**headers, **HEADERS}.items(), *wire.retry(refusal)])
        self.write(document)
        self.end()

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], None]:
        """Set the head of the answer, which is sent with the first piece of its body."""
        self._head = status, headers
        self._is_bare = self._is_bare or status[:3] in ("204", "304")
        return self.write

    def write(self, piece: bytes) -> None:
        """Send a piece of the body of the answer."""
        if piece:
            self._send(*self._head_once(), *([] if self._is_bare else [h11.Data(data=piece)]))

    def end(self) -> None:
        """Send the end of the answer."""
        self._send(*self._head_once(), h11.EndOfMessage())

    def _head_once(self) -> list[h11.Event]:
        """Return the head, the first time only."""
        if self._head is None:
            return []
        (status, headers), self._head = self._head, None
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        encoded.append((b"Date", formatdate(usegmt=True).encode("ascii")))
        if not self._keeps() or self._h11.they_are_waiting_for_100_continue or self._failed or self.is_long():
            encoded.append((b"Connection", b"close"))
        return [h11.Response(status_code=int(status[:3]), reason=status[4:].encode("latin-1"), headers=encoded)]

    def _send(self, *events: h11.Event) -> None:
        with self._lock:
            parts = [part for event in events for part in self._h11.send_with_data_passthrough(event) or ()]
        for part in [b"".join(parts)] if sum(map(len, parts)) < _SMALL else parts:
            self.link.send(part, self._sending)

    def finish(self) -> bool:
        """Return whether another request may follow; else end the connection, so that the client gets the answer."""
        if not (self._h11.our_state is h11.DONE and self.drain()) and (not self.at_end or self.link.has_more()):
            self.link.end(_CLOSE_LIMIT)
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    def behind(self) -> bytes:
        """Return the bytes received behind the request."""
        return self._h11.trailing_data[0]


_ABSOLUTE = re.compile(r"https?://([^/?]*)(.*)", re.IGNORECASE)
#: Names that WSGI writes without a prefix.
_BARE = {"HTTP_CONTENT_TYPE": "CONTENT_TYPE", "HTTP_CONTENT_LENGTH": "CONTENT_LENGTH"}
#: Not passed on: the connection stays one of HTTP/1.1, and routing would answer for another protocol.
_IGNORED = "HTTP_UPGRADE"


def wsgi_headers(request: h11.Request) -> dict[str, str]:
    """Return the headers as WSGI names them; a repeated one has all its values."""
    named: dict[str, str] = {}
    for name, value in request.headers:
        key, text = "HTTP_" + name.decode("ascii").upper().replace("-", "_"), value.decode("latin-1")
        key = _BARE.get(key, key)
        named[key] = f"{named[key]}{'; ' if key == 'HTTP_COOKIE' else ', '}{text}" if key in named else text
    named.pop(_IGNORED, None)
    return named


def build_environ(request: h11.Request, named: dict[str, str]) -> dict[str, Any]:
    """Return the WSGI environ of *request* with its headers *named*.

    Raise InvalidRequest for what h11 accepts and another reader may parse differently.
    """
    version, target = request.http_version, request.target.decode("ascii")
    if version not in (b"1.1", b"1.0"):
        raise InvalidRequest("this server speaks HTTP/1.1", hint="send HTTP/1.1")
    if any(b"_" in name for name, _ in request.headers):  # WSGI could not tell it from one with a dash
        raise InvalidRequest("a header has _ in its name", hint="write - there, or leave the header out")
    if "HTTP_TRANSFER_ENCODING" in named:
        if "CONTENT_LENGTH" in named:
            raise InvalidRequest("a body has a Content-Length or a Transfer-Encoding", hint="give one of them")
        if version == b"1.0":
            raise InvalidRequest("a body comes in chunks by HTTP/1.1 only", hint="give its Content-Length")
    absolute = _ABSOLUTE.fullmatch(target)
    path, _, query = (absolute[2] if absolute else target).partition("?")
    if "#" in target or (not path.startswith("/") and (absolute is None or path)):
        raise InvalidRequest(f"{target[:80]!r} is no address here", hint="it begins with /")
    return {
        **named,
        **({"HTTP_HOST": absolute[1]} if absolute else {}),
        "REQUEST_METHOD": request.method.decode("ascii"),
        "PATH_INFO": unquote_to_bytes(path or "/").decode("latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "SERVER_PROTOCOL": f"HTTP/{version.decode('ascii')}",
    }
