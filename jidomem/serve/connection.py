"""HTTP/1.1 on one connection: requests, parsed by h11, and the answers of a WSGI application.

A body that is truncated, or does not arrive in time, never counts as complete, and a request that two
parsers could read differently is refused.
"""

from __future__ import annotations

import io
import re
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from threading import Lock
from time import monotonic, time
from typing import Any
from urllib.parse import unquote_to_bytes

import h11

from jidomem.errors import Busy, InvalidRequest, JidomemError, RequestTimeout, TooLarge
from jidomem.runtime.user_config import RootLimits
from jidomem.serve import wire

App = Callable[..., Iterable[bytes]]
#: The minimum throughput of a client, in bytes per second, averaged over the time the server waits for it.
SLOWEST = 1024
#: Bytes read at once, and up to which the parts of an answer are sent together.
_PIECE = 64 * 1024
#: The most bytes of an unread body that are skipped to keep the connection open.
_KEEP_LIMIT = 256 * 1024
#: The most bytes skipped before closing: a client that sends its whole body first would otherwise miss the answer.
_CLOSE_LIMIT = 16 * 1024 * 1024


class ClientTooSlow(Exception):
    """The client sends or reads too slowly."""


class ClientDisconnected(Exception):
    """The client has closed the connection."""


class ThroughputGuard:
    """One direction of a connection with the time its client has: some seconds, and more for each byte."""

    def __init__(self, connection: socket.socket, event: int, idle: float) -> None:
        """Guard the direction of *connection* whose readiness is *event*."""
        self._connection, self._event = connection, event
        self.lock = Lock()
        self.since: float | None = None  # the start of the present wait
        self.restart(idle)

    def restart(self, idle: float, moved: int = 0) -> None:
        """Give the client *idle* seconds from now on, plus time for each byte; *moved* bytes count already."""
        self._idle, self._waited, self.moved = idle, 0.0, moved

    def transfer(self, call: Callable[..., Any], argument: Any) -> Any:
        """Return the result of *call*, a method of the socket; raise ClientTooSlow and ClientDisconnected."""
        while True:
            try:
                with self.lock:
                    return call(argument, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait()
            except OSError as error:  # such as a connection that another thread has closed
                raise ClientDisconnected from error

    def _wait(self) -> None:
        left = self._idle + min(0.0, self.moved / SLOWEST - self._waited)
        self.since = began = monotonic()
        is_ready = left > 0 and self.is_ready(left)
        self._waited += monotonic() - began
        self.since = None
        if not is_ready:
            raise ClientTooSlow

    def is_ready(self, seconds: float = 0.0) -> bool:
        """Return whether bytes can be transferred, or the connection has ended, within *seconds*."""
        poll = select.poll()
        poll.register(self._connection, self._event)
        return bool(poll.poll(seconds * 1000))

    def silent(self) -> float:
        """Return the seconds of the present wait for the client; 0 if there is none."""
        since = self.since
        return 0.0 if since is None else monotonic() - since


class ClientSocket:
    """One connection. One thread may read while another writes.

    A closed connection must not be used: its descriptor may belong to another one by then.
    """

    def __init__(self, connection: socket.socket, idle: float) -> None:
        """Take over *connection*; its client may be silent for *idle* seconds."""
        if sys.platform == "linux":  # the only way to notice a client that vanished: it acknowledges nothing
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(idle * 1000))
        timeout = struct.pack("ll", *divmod(int(idle * 1e6), 10**6))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        self.connection, self._idle = connection, idle
        self.reading = ThroughputGuard(connection, select.POLLIN, idle)
        self.sending = ThroughputGuard(connection, select.POLLOUT, idle)
        self.is_idle = self.interrupted = False
        self.head_since: float | None = None  # the start of a head that is not complete

    def waiting(self) -> float:
        """Return the seconds for which the client has sent no complete head of a request; 0 while it is served."""
        if (since := self.head_since) is not None:
            return monotonic() - since
        return self.reading.silent() if self.is_idle and not self.reading.is_ready() else 0.0

    def begin(self) -> bytes:
        """Return the first bytes of a request; empty at the end of the connection, or after the idle time.

        A blocking read takes the interpreter lock once; polling first would take it twice.
        """
        self.is_idle, self.reading.since = True, monotonic()
        try:
            return self.connection.recv(_PIECE)
        except OSError:
            return b""
        finally:
            self.is_idle, self.reading.since = False, None

    def peek(self, seconds: float) -> bytes:
        """Return the first bytes that arrive within *seconds*, which `begin` returns again."""
        with suppress(OSError):
            if self.reading.is_ready(seconds):
                return self.connection.recv(_PIECE, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return b""

    def restart(self, received: int) -> None:
        """Restart the time for a request, of which some bytes are *received*, and for its answer."""
        self.reading.restart(self._idle, received)
        self.sending.restart(self._idle)

    def receive(self) -> bytes:
        """Return the next bytes, empty at the end of the connection; raise ClientTooSlow and ClientDisconnected."""
        data: bytes = self.reading.transfer(self.connection.recv, _PIECE)
        self.reading.moved += len(data)
        return data

    def send(self, data: bytes) -> None:
        """Send all of *data*; raise ClientTooSlow and ClientDisconnected."""
        rest = memoryview(data)
        while rest:
            sent = self.sending.transfer(self.connection.send, rest)
            self.sending.moved += sent
            rest = rest[sent:]

    def end(self, limit: int) -> None:
        """Send no more, and skip up to *limit* bytes: a client that is still sending would not see its answer."""
        self.reading.restart(self._idle / 10)  # a silent client gets a tenth of the usual time,
        until = monotonic() + self._idle  # and no client gets more than that time
        with suppress(OSError, ClientDisconnected, ClientTooSlow):
            self.connection.shutdown(socket.SHUT_WR)
            while self.reading.moved < limit and monotonic() < until and self.receive():
                pass

    def interrupt(self) -> None:
        """Stop reading: a thread that waits for the client continues at once, as at the end of the connection."""
        self.interrupted = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def close(self, *, abort: bool = False) -> None:
        """Close the connection; *abort* resets it, so that the client does not take a partial answer for complete."""
        with self.reading.lock, self.sending.lock:
            if abort:
                with suppress(OSError):
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


#: Bare line feeds and folded headers, which HTTP once allowed: parsers may read them differently.
_LOOSE = re.compile(rb"(?<!\r)\n|\n[ \t]")
_HINT = "correct the request: RFC 9112 has how one is written"
_CONTINUE = h11.InformationalResponse(status_code=100, reason=b"Continue", headers=[])


class HttpExchange(io.RawIOBase):
    """One request, whose body is a raw stream, and its answer.

    One thread may read the body while another sends the answer.
    """

    def __init__(self, link: ClientSocket, limits: RootLimits, keeps: Callable[[], bool]) -> None:
        """Read from *link* within *limits*; *keeps* returns whether the connection may stay open."""
        self.link, self._limits, self._keeps = link, limits, keeps
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.url + limits.headers)
        self._lock = Lock()  # of the parser
        self._raw = b""  # the head; later the last bytes of the body
        self._size: int | None = None  # of head and body; None if the body comes in chunks
        self._rest = b""  # of the last piece of the body
        self._malformed: h11.RemoteProtocolError | None = None  # behind that piece
        self._failed = True  # until the head is read
        self._head: list[h11.Event] = []  # of the answer, until it is sent
        self.environ: dict[str, Any] = {"REQUEST_METHOD": "GET"}  # of WSGI, once the head is complete

    def receive_head(self, received: bytes) -> None:
        """Parse the head, which begins with *received*, into `environ`; raise a JidomemError if it is invalid HTTP."""
        self.link.restart(len(received))
        self.link.head_since = monotonic()
        try:
            self._feed(received)
            while (event := self._h11.next_event()) is h11.NEED_DATA:
                self._feed(self.link.receive())
        except ClientTooSlow:
            detail = "the rest of the request did not arrive in time"
            raise RequestTimeout(detail, hint="send it without a pause") from None
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == 431:
                self._check_size(self._raw)
            raise InvalidRequest(f"this is not an HTTP/1.1 request: {error}", hint=_HINT) from None
        finally:
            self.link.head_since = None
        assert isinstance(event, h11.Request)
        behind = len(self._h11.trailing_data[0])
        head, self._raw = self._raw[: len(self._raw) - behind], self._raw[-behind - 4 :]
        self._check_size(head)
        if _LOOSE.search(head):
            raise InvalidRequest("a header line does not end in CR LF, or is folded", hint=_HINT)
        self.environ = build_environ(event)
        if "HTTP_TRANSFER_ENCODING" not in self.environ:
            self._size = len(head) + int(self.environ.get("CONTENT_LENGTH", 0))  # h11 accepts one number only
        check_request(event, self.environ)
        self._failed = False

    def _feed(self, data: bytes) -> None:
        if not data:
            raise ClientDisconnected
        if not self._raw:  # some clients send an empty line after a body
            data = data.lstrip(b"\r\n")
        self._raw += data
        if data:
            with self._lock:
                self._h11.receive_data(data)

    def _check_size(self, head: bytes) -> None:
        """Raise TooLarge if *head*, which may be incomplete, exceeds the limits."""
        limits, address = self._limits, head.partition(b" ")[2].partition(b" ")[0]
        if len(address) > limits.url:
            detail = f"the address has more than {limits.url:,} bytes"
            raise TooLarge(detail, hint="send a query as a body", code="uri_too_long")
        if len(head) - len(address) > limits.headers:
            detail = f"the headers have more than {limits.headers:,} bytes"
            raise TooLarge(detail, hint="send fewer", code="headers_too_large")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Copy bytes of the body that have arrived to *buffer*, and return their number; 0 only at its end.

        Raises RequestTimeout if the client is too slow, InvalidRequest if the body is truncated or malformed, and Busy
        if the server stops.
        """
        if self._failed:
            raise InvalidRequest("the body was not read to its end", hint="send the request again")
        try:
            piece = self._rest or self._next_piece()
            if piece and len(piece) < len(buffer):
                piece += self._received_pieces(len(buffer) - len(piece))
            size = min(len(buffer), len(piece))
            buffer[:size], self._rest = piece[:size], piece[size:]
            return size
        except ClientTooSlow:
            hint = f"send it without a pause, {SLOWEST:,} bytes a second at least"
            error: JidomemError = RequestTimeout("the rest of the body did not arrive in time", hint=hint)
        except ClientDisconnected:
            error = InvalidRequest("the body is incomplete", hint="send all of it")
            if self.link.interrupted:
                detail = "the server is stopping, and the rest of the body did not arrive"
                error = Busy(detail, hint="send it again after the server has started")
        except h11.RemoteProtocolError as malformed:
            error = InvalidRequest(f"the chunks of the body cannot be read: {malformed}", hint="send it again")
        self._failed = True
        raise error

    def _received_pieces(self, most: int) -> bytes:
        """Return the pieces after the last one that were received with it, until they have *most* bytes."""
        pieces, size = list[bytes](), 0
        try:
            while size < most and (piece := self._next_piece(receives=False)):
                pieces.append(piece)
                size += len(piece)
        except h11.RemoteProtocolError as malformed:
            self._malformed = malformed  # raised by the next read, as these pieces are valid
        return b"".join(pieces)

    def _next_piece(self, *, receives: bool = True) -> bytes:
        """Return the next piece, empty at the end of the body; first send the interim answer that a client expects.

        Without *receives* it is empty, too, where no whole piece was received yet.
        """
        if self._malformed is not None:
            raise self._malformed
        while not self._at_end():
            with self._lock:
                event = self._h11.next_event()
                if event is h11.NEED_DATA and not receives:
                    return b""
                waits = event is h11.NEED_DATA and self._h11.they_are_waiting_for_100_continue
                interim = self._h11.send(_CONTINUE) if waits else None
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if interim:
                self.link.send(interim)
            if event is h11.NEED_DATA:
                self._raw = self._raw[-4:]
                self._feed(self.link.receive())
            elif self._size is None and not self._raw.removesuffix(self.surplus()).endswith(b"\r\n\r\n"):
                raise h11.RemoteProtocolError("the last chunk does not end in an empty line")  # for other parsers
        return b""

    def _at_end(self) -> bool:
        return self._h11.their_state not in (h11.IDLE, h11.SEND_BODY, h11.ERROR)

    def surplus(self) -> bytes:
        """Return the bytes received after the request."""
        return self._h11.trailing_data[0]

    def respond(self, app: App, environ: dict[str, Any]) -> None:
        """Send the answer of *app* to the request; *environ* is added to that of the request."""
        own = {"wsgi.input": io.BufferedReader(self), wire.CONNECTION: self.link.connection.fileno()}
        pieces = app({**environ, **self.environ, **own}, self.start)
        try:
            for piece in pieces:
                self._send(h11.Data(data=piece))
            self._send(h11.EndOfMessage())
        finally:
            if hasattr(pieces, "close"):
                pieces.close()

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], None]:
        """Set the head of the answer, which is sent with the first piece of its body."""
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        encoded.append((b"Date", _date(int(time()))))
        if not self._keeps() or self._h11.they_are_waiting_for_100_continue or self._failed or self._is_long():
            encoded.append((b"Connection", b"close"))
        code, _, reason = status.partition(" ")
        self._head = [h11.Response(status_code=int(code), reason=reason.encode("latin-1"), headers=encoded)]
        return lambda piece: self._send(h11.Data(data=piece))

    def _is_long(self) -> bool:
        """Return whether more of the body follows than is skipped to keep the connection; a guess for chunks."""
        left = self.link.reading.moved if self._size is None else self._size - self.link.reading.moved
        return not self._at_end() and left > _KEEP_LIMIT

    def _send(self, event: h11.Event) -> None:
        events, self._head = [*self._head, event], []
        with self._lock:
            parts = [part for each in events for part in self._h11.send_with_data_passthrough(each) or ()]
        for part in [b"".join(parts)] if sum(map(len, parts)) < _PIECE else parts:
            self.link.send(part)

    def is_partial(self) -> bool:
        """Return whether a part of the answer was sent, and not all of it."""
        return self._h11.our_state is h11.SEND_BODY

    def finish(self) -> bool:
        """Return whether another request may follow; else end the connection so that the client gets the answer."""
        is_kept = self._h11.our_state is h11.DONE and self._drain()
        if not is_kept and (not self._at_end() or self.link.reading.is_ready()):
            self.link.end(_CLOSE_LIMIT)
        return is_kept

    def _drain(self) -> bool:
        """Return whether the rest of the body, which is skipped, ends within the limit."""
        start = self.link.reading.moved
        with suppress(JidomemError):
            while self.link.reading.moved - start < _KEEP_LIMIT and self.read(_PIECE):
                pass
        return self._at_end() and not self._failed


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode("ascii")


_ABSOLUTE = re.compile(r"https?://([^/?]*)(.*)", re.IGNORECASE)
#: The headers that WSGI names without a prefix.
_BARE = {"HTTP_CONTENT_TYPE": "CONTENT_TYPE", "HTTP_CONTENT_LENGTH": "CONTENT_LENGTH"}


def build_environ(request: h11.Request) -> dict[str, Any]:
    """Return the WSGI environ of *request*; a repeated header has all its values."""
    environ: dict[str, Any] = {}
    for name, value in request.headers:
        key, text = "HTTP_" + name.decode("ascii").upper().replace("-", "_"), value.decode("latin-1")
        key = _BARE.get(key, key)
        environ[key] = f"{environ[key]}{'; ' if key == 'HTTP_COOKIE' else ', '}{text}" if key in environ else text
    environ.pop("HTTP_UPGRADE", None)  # the connection stays HTTP/1.1; werkzeug would match routes of other protocols
    target = place = request.target.decode("ascii")
    if absolute := _ABSOLUTE.fullmatch(target):
        environ["HTTP_HOST"], place = absolute[1], absolute[2]
    path, _, query = place.partition("?")
    return {
        **environ,
        "REQUEST_METHOD": request.method.decode("ascii"),
        "PATH_INFO": unquote_to_bytes(path or "/").decode("latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "SERVER_PROTOCOL": f"HTTP/{request.http_version.decode('ascii')}",
    }


def check_request(request: h11.Request, environ: dict[str, Any]) -> None:
    """Raise InvalidRequest for a request that h11 accepts and another parser may read differently."""
    target, in_chunks = environ["REQUEST_URI"], "HTTP_TRANSFER_ENCODING" in environ
    if request.http_version not in (b"1.1", b"1.0"):
        raise InvalidRequest("this server speaks HTTP/1.1", hint="send HTTP/1.1")
    if any(b"_" in name for name, _ in request.headers):  # in WSGI it equals a name with a dash
        raise InvalidRequest("a header has _ in its name", hint="write - there, or leave the header out")
    if in_chunks and "CONTENT_LENGTH" in environ:
        raise InvalidRequest("a body has a Content-Length or a Transfer-Encoding", hint="give one of them")
    if in_chunks and request.http_version == b"1.0":
        raise InvalidRequest("chunked bodies need HTTP/1.1", hint="give its Content-Length")
    if "#" in target or not (target.startswith("/") or _ABSOLUTE.fullmatch(target)):
        raise InvalidRequest(f"{target[:80]!r} is not an address here", hint="it begins with /")
