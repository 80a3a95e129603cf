"""The HTTP/1.1 connection: it reads requests and writes answers one after the other, by h11.

A `ThroughputGuard` ends an exchange whose other end stops or trickles. A body that is cut, or does
not come in time, never counts as whole, and a request that can be read in two ways is refused.
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
from http import HTTPStatus
from threading import Lock
from time import monotonic, perf_counter, time
from typing import Any
from urllib.parse import unquote_to_bytes

import h11

from jidomem.errors import Busy, InvalidRequest, JidomemError, RequestTimeout, TooLarge
from jidomem.runtime.user_config import RootLimits
from jidomem.serve import monitoring, wire
from jidomem.serve.app import HEADERS
from jidomem.serve.server_state import Operation

#: Bytes a second, on average over what was waited for, that are the slowest pace.
SLOWEST = 1024
PIECE = 64 * 1024


class TooSlow(Exception):
    """The other end did not come on in time."""


class ClientDisconnected(Exception):
    """The other end has hung up."""


class ThroughputGuard:
    """How long one way of an exchange may still be waited for: *idle* seconds, and more by each byte that moved."""

    def __init__(self, idle: float) -> None:
        self._idle = idle
        self._waited = 0.0
        self.moved = 0

    def wait(self, connection: socket.socket, event: int) -> None:
        """Return when *connection* can go on; raises TooSlow where that takes too long."""
        left = min(self._idle, self._idle + self.moved / SLOWEST - self._waited)
        began = monotonic()
        ready = left > 0 and _is_ready(connection, event, left)
        self._waited += monotonic() - began
        if not ready:
            raise TooSlow


def _is_ready(connection: socket.socket, event: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(connection, event)
    return bool(waiting.poll(seconds * 1000))


class ClientSocket:
    """One connection, read and written at once by two threads at most.

    What is closed is not used any more by a thread that is late: its number may be another connection's by then.
    """

    def __init__(self, connection: socket.socket, idle: float) -> None:
        """Own *connection*, the other end of which is waited for *idle* seconds."""
        connection.setblocking(True)
        if sys.platform == "linux":  # who is gone for good takes nothing, and would be sent events for minutes
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(idle * 1000))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(int(idle * 1e6), 10**6)))
        self._connection, self._idle = connection, idle
        self._reading, self._sending = Lock(), Lock()
        self._silent_since: float | None = None
        self._closed = False
        self.interrupted = False

    def pace(self) -> ThroughputGuard:
        """Return the pace at which something new is waited for."""
        return ThroughputGuard(self._idle)

    def fileno(self) -> int:
        """Return the descriptor of the connection, as long as it is not closed."""
        return self._connection.fileno()

    def begin(self) -> bytes:
        """Return what comes next; nothing at the end of the connection, or where it was idle for too long.

        To be waited for by the system costs a thread one turn at the interpreter, where to look first costs it two.
        """
        try:
            return self._connection.recv(PIECE)
        except OSError:
            return b""

    def has_more(self) -> bool:
        """Return whether something came that was not read, or the connection is at its end."""
        return _is_ready(self._connection, select.POLLIN, 0)

    def silent(self) -> float:
        """Return for how many seconds the other end has been waited for to send; 0 where it is not."""
        since = self._silent_since
        return 0.0 if since is None else monotonic() - since

    def receive(self, pace: ThroughputGuard) -> bytes:
        """Return what came, nothing at the end of the connection; raises TooSlow and Gone."""
        while True:
            try:
                with self._reading:
                    self._refuse_closed()
                    data = self._connection.recv(PIECE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._silent_since = monotonic()
                try:
                    pace.wait(self._connection, select.POLLIN)
                finally:
                    self._silent_since = None
                continue
            except OSError as error:
                raise ClientDisconnected from error
            pace.moved += len(data)
            return data

    def send(self, data: bytes, pace: ThroughputGuard) -> None:
        """Send all of *data*; raises TooSlow where nobody takes it."""
        rest = memoryview(data)
        while rest:
            try:
                with self._sending:
                    self._refuse_closed()
                    sent = self._connection.send(rest, socket.MSG_DONTWAIT)
            except BlockingIOError:
                pace.wait(self._connection, select.POLLOUT)
                continue
            except OSError as error:
                raise ClientDisconnected from error
            pace.moved += sent
            rest = rest[sent:]

    def end(self, limit: int) -> None:
        """Say that no more is sent, and take in up to *limit* bytes more: a client that sends would not see it.

        Who sends nothing is waited for only a tenth as long as else, and nobody longer.
        """
        pace, until = ThroughputGuard(self._idle / 10), monotonic() + self._idle
        with suppress(OSError, ClientDisconnected, TooSlow):
            self._connection.shutdown(socket.SHUT_WR)
            while limit > 0 and monotonic() < until and (data := self.receive(pace)):
                limit -= len(data)

    def interrupt(self) -> None:
        """Read no more: who waits for the other end goes on at once, as if that had hung up."""
        self.interrupted = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)

    def close(self, *, abort: bool = False) -> None:
        """Let go of the connection; *abort* tells the other end that what it got is not whole."""
        with self._reading, self._sending:
            self._closed = True
            if abort:
                with suppress(OSError):
                    self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self._connection.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ClientDisconnected


#: Lines that end, or go on, as HTTP once allowed: two readers may part them in two ways.
_LOOSE = re.compile(rb"(?<!\r)\n|\n[ \t]")
_HINT = "correct the request: RFC 9112 has how one is written"
_CONTINUE = h11.InformationalResponse(status_code=100, reason=b"Continue", headers=[])


class MalformedRequest(Exception):
    """What came is no HTTP."""


class HttpExchange:
    """One request on *link*, of which *came* came already; two threads may read its body and send the answer."""

    def __init__(self, link: ClientSocket, limits: RootLimits, came: bytes = b"") -> None:
        self.link, self.pace = link, link.pace()
        self.pace.moved = len(came)
        self._limits = limits
        self._most = limits.url + limits.headers
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=self._most)
        self._lock = Lock()
        self._raw = came.lstrip(b"\r\n")  # the head, then the end of what came behind it
        self._is_chunked = False
        self.at_end = False

    def request(self) -> h11.Request:
        """Return the request, once its head came; raises a JidomemError for what is none, Gone at the end."""
        try:
            if self._raw:
                self._h11.receive_data(self._raw)
            while (event := self._h11.next_event()) is h11.NEED_DATA:
                data = self._more()
                if not self._raw:  # some clients end a body with an empty line that is not counted
                    data = data.lstrip(b"\r\n")
                self._raw += data
                if data:
                    self._h11.receive_data(data)
        except TooSlow:
            raise RequestTimeout(
                "the rest of the request did not come in time", hint="send it without a pause"
            ) from None
        except h11.RemoteProtocolError as error:
            raise self._unreadable(error) from None
        assert isinstance(event, h11.Request)
        return self._checked(event)

    def piece(self) -> bytes:
        """Return the next piece of the body, nothing at its end; raises TooSlow, Gone, and Malformed."""
        while not self.at_end:
            with self._lock:
                event = self._next()
                waits = event is h11.NEED_DATA and self._h11.they_are_waiting_for_100_continue
                told = self._h11.send(_CONTINUE) if waits else None
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if told:
                self.link.send(told, self.link.pace())
            if event is h11.NEED_DATA:
                self._feed()
            else:
                self._end()
        return b""

    def waits(self) -> bool:
        """Return whether the client waits to be told before it sends a body."""
        return self._h11.they_are_waiting_for_100_continue

    def written(self, *events: h11.Event) -> list[bytes]:
        """Return the bytes of what is answered; raises LocalProtocolError for what HTTP does not have."""
        with self._lock:
            return [part for event in events for part in self._h11.send_with_data_passthrough(event) or ()]

    def keeps_connection(self) -> bool:
        """Return whether the answer was given, and its head said that the connection is kept."""
        return self._h11.our_state is h11.DONE

    def may_go_on(self) -> bool:
        """Return whether both sides have done, and another request may come."""
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    def rest(self) -> bytes:
        """Return what came behind the request."""
        return self._h11.trailing_data[0]

    def _more(self) -> bytes:
        data = self.link.receive(self.pace)
        if not data:
            raise ClientDisconnected
        return data

    def _next(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            return self._h11.next_event()
        except h11.RemoteProtocolError as error:
            raise MalformedRequest(str(error)) from error

    def _feed(self) -> None:
        data = self._more()
        if self._is_chunked:
            self._raw = self._raw[-4:] + data
        with self._lock:
            self._h11.receive_data(data)

    def _end(self) -> None:
        """Take note of the end of the body; raises Malformed where another reader may see it elsewhere."""
        self.at_end = True
        if self._is_chunked and not self._raw.removesuffix(self._h11.trailing_data[0]).endswith(b"\r\n\r\n"):
            raise MalformedRequest("the last chunk does not end in an empty line")

    def _checked(self, request: h11.Request) -> h11.Request:
        """Return *request*; raises a JidomemError where its head is too large, or its lines are not."""
        behind = len(self._h11.trailing_data[0])
        head, self._raw = self._raw[: len(self._raw) - behind], self._raw[-behind - 4 :]
        self._is_chunked = any(name == b"transfer-encoding" for name, _ in request.headers)
        if len(request.target) > self._limits.url:
            raise self._long_address()
        if len(head) - len(request.target) > self._limits.headers:
            raise self._long_headers()
        if _LOOSE.search(head):
            raise InvalidRequest("each line of a head ends in CR LF, and none goes on in the next one", hint=_HINT)
        return request

    def _unreadable(self, error: h11.RemoteProtocolError) -> InvalidRequest | TooLarge:
        """Return why what came is no request."""
        if error.error_status_hint != 431:
            return InvalidRequest(f"this is no request of HTTP/1.1: {error}", hint=_HINT)
        return self._long_headers() if b"\n" in self._raw[: self._limits.url + 1] else self._long_address()

    def _long_address(self) -> TooLarge:
        most = self._limits.url
        return TooLarge(f"the address has more than {most:,} bytes", hint="send a query as a body", code="uri_too_long")

    def _long_headers(self) -> TooLarge:
        most = self._limits.headers
        return TooLarge(f"the headers have more than {most:,} bytes", hint="send fewer", code="headers_too_large")


#: Bytes on the wire that are read behind what an application has read, to keep the connection.
_DRAIN_STEP = 256 * 1024


class Body:
    """What an application reads as `wsgi.input`."""

    def __init__(self, turn: HttpExchange, length: int | None) -> None:
        """Read the body of *turn*, which has *length* bytes; None where that is not known before its end."""
        self._turn, self._length = turn, length
        self._left = b""
        self._came = 0
        self.failed = False

    def read(self, size: int = -1) -> bytes:
        """Return *size* bytes, or fewer at the end; without a size, all. Raises as `read1` does."""
        found = bytearray()
        while (size < 0 or len(found) < size) and (piece := self.read1(size - len(found) if size >= 0 else -1)):
            found += piece
        return bytes(found)

    def read1(self, size: int = -1) -> bytes:
        """Return what has come, up to *size* bytes, nothing at the end only.

        Raises RequestTimeout where no more comes in time, InvalidRequest where the rest does not come at all, and Busy
        where the server stops.
        """
        if self.failed:
            raise InvalidRequest("the body was not read to its end", hint="send the request again")
        if size == 0:
            return b""
        piece = self._left or self._next()
        self._left = b"" if size < 0 else piece[size:]
        return piece if size < 0 else piece[:size]

    def is_long(self) -> bool:
        """Return whether more is to come than is read to keep the connection; of chunks that is a guess."""
        if self._turn.at_end:
            return False
        return self._came > _DRAIN_STEP if self._length is None else self._length - self._came > _DRAIN_STEP

    def drain(self) -> bool:
        """Return whether the end was met soon, by reading what nobody wants."""
        begun = self._turn.pace.moved
        try:
            while not self.failed and not self._turn.at_end and self._turn.pace.moved - begun < _DRAIN_STEP:
                self._next()
        except JidomemError:
            return False
        return self._turn.at_end and not self.failed

    def _next(self) -> bytes:
        try:
            piece = self._turn.piece()
            self._came += len(piece)
            return piece
        except TooSlow:
            error: JidomemError = RequestTimeout(
                "the rest of the body did not come in time",
                hint=f"send it without a pause, {SLOWEST:,} bytes a second at least",
            )
        except ClientDisconnected:
            error = _stopping() if self._turn.link.interrupted else _cut()
        except MalformedRequest as found:
            error = InvalidRequest(f"the chunks of the body cannot be read: {found}", hint="send it again")
        self.failed = True
        raise error


def _cut() -> InvalidRequest:
    return InvalidRequest("the body was cut", hint="send all of it")


def _stopping() -> Busy:
    return Busy(
        "the server is stopping, and the rest of the body did not come", hint="send it again, when it is there again"
    )


_ABSOLUTE = re.compile(r"https?://([^/?]*)(.*)", re.IGNORECASE)

#: Names that WSGI writes without a prefix.
_BARE = {"HTTP_CONTENT_TYPE": "CONTENT_TYPE", "HTTP_CONTENT_LENGTH": "CONTENT_LENGTH"}
#: What no application is told: this server goes on in HTTP/1.1, and routing would answer for a door that is not here.
_IGNORED = "HTTP_UPGRADE"


def headers(request: h11.Request) -> dict[str, str]:
    """Return the headers as WSGI names them, but Upgrade; one that came several times has all its values."""
    found: dict[str, str] = {}
    for name, value in request.headers:
        key, text = "HTTP_" + name.decode("ascii").upper().replace("-", "_"), value.decode("latin-1")
        key = _BARE.get(key, key)
        found[key] = f"{found[key]}{'; ' if key == 'HTTP_COOKIE' else ', '}{text}" if key in found else text
    found.pop(_IGNORED, None)
    return found


def build_environ(request: h11.Request, named: dict[str, str]) -> dict[str, Any]:
    """Return what WSGI says of *request*, and its headers *named*; raises InvalidRequest for what is not answered."""
    _refuse_ambiguous(request, named)
    target = request.target.decode("ascii")
    place, path, query = _target(target)
    return {
        **named,
        **({} if place is None else {"HTTP_HOST": place}),
        "REQUEST_METHOD": request.method.decode("ascii"),
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1") if "%" in path else path,
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "SERVER_PROTOCOL": f"HTTP/{request.http_version.decode('ascii')}",
    }


def length(environ: dict[str, Any]) -> int | None:
    """Return how many bytes the body of a request has, None where it comes in chunks."""
    return None if "HTTP_TRANSFER_ENCODING" in environ else int(environ.get("CONTENT_LENGTH", "0"))


def _refuse_ambiguous(request: h11.Request, named: dict[str, str]) -> None:
    """Raise InvalidRequest for what h11 lets through, and another reader may take for something else."""
    if request.http_version not in (b"1.1", b"1.0"):
        raise InvalidRequest("this server speaks HTTP/1.1", hint="send HTTP/1.1")
    if any(b"_" in name for name, _ in request.headers):  # one with - in what an application is given
        raise InvalidRequest("a header has _ in its name", hint="write - there, or leave the header out")
    if "HTTP_TRANSFER_ENCODING" in named:
        if "CONTENT_LENGTH" in named:
            raise InvalidRequest("a body has a Content-Length or a Transfer-Encoding", hint="give one of them")
        if request.http_version == b"1.0":
            raise InvalidRequest("a body comes in chunks by HTTP/1.1 only", hint="give its Content-Length")


def _target(target: str) -> tuple[str | None, str, str]:
    """Return the host, where the address is a whole one, the path and the query."""
    absolute = _ABSOLUTE.fullmatch(target)
    place, rest = (absolute[1], absolute[2]) if absolute else (None, target)
    path, _, query = rest.partition("?")
    if "#" in target or (not path.startswith("/") and (place is None or path)):
        raise InvalidRequest(f"{target[:80]!r} is no address here", hint="it begins with /")
    return place, path or "/", query


App = Callable[..., Iterable[bytes]]
#: Pieces up to this size are sent together with what frames them.
_SMALL = 64 * 1024
_dated: tuple[int, bytes] = (0, b"")


class Reply:
    """What an application answers, by WSGI's `start_response`, and piece by piece."""

    def __init__(self, turn: HttpExchange, *, is_bare: bool, keeps: Callable[[], bool]) -> None:
        """Answer by *turn*: without a body where it *is_bare*; *keeps* says whether the connection may be kept."""
        self._turn, self._pace = turn, turn.link.pace()
        self._is_bare, self._keeps = is_bare, keeps
        self._head: tuple[str, list[tuple[str, str]]] | None = None

    def start(self, status: str, headers: list[tuple[str, str]], _: Any = None) -> Callable[[bytes], None]:
        """Keep what the head will say."""
        self._head = status, headers
        self._is_bare = self._is_bare or status[:3] in ("204", "304")
        return self.write

    def write(self, piece: bytes) -> None:
        """Send a piece of the body, behind the head where it is the first."""
        if piece:
            self._send(*self._begun(), *([] if self._is_bare else [h11.Data(data=piece)]))

    def end(self) -> None:
        """Send what is left."""
        self._send(*self._begun(), h11.EndOfMessage())

    def _begun(self) -> list[h11.Event]:
        """Return the head, the first time it is asked for."""
        if self._head is None:
            return []
        (status, headers), self._head = self._head, None
        named = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        named.append((b"Date", _date()))
        if not self._keeps():
            named.append((b"Connection", b"close"))
        return [h11.Response(status_code=int(status[:3]), reason=status[4:].encode("latin-1"), headers=named)]

    def _send(self, *events: h11.Event) -> None:
        small = bytearray()
        for part in self._turn.written(*events):
            if len(part) > _SMALL:
                self._turn.link.send(bytes(small), self._pace)
                self._turn.link.send(part, self._pace)
                small.clear()
            else:
                small += part
        self._turn.link.send(bytes(small), self._pace)


def run(app: App, environ: dict[str, Any], reply: Reply) -> None:
    """Answer by *reply* what *app* answers, which is closed however that ends."""
    pieces = app(environ, reply.start)
    try:
        for piece in pieces:
            reply.write(piece)
        reply.end()
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


def _date() -> bytes:
    global _dated
    now = int(time())
    if _dated[0] != now:
        _dated = now, formatdate(now, usegmt=True).encode("ascii")
    return _dated[1]


#: How much that nobody reads any more is still taken in: a client that first sends everything would not see the answer.
_LONGEST_DRAIN = 16 * 1024 * 1024


class HttpConnection:
    """What one thread attends to."""

    def __init__(
        self, link: ClientSocket, app: App, about: dict[str, Any], limits: RootLimits, operation: Operation
    ) -> None:
        """Answer by *app* the requests that come by *link*, each of which is told what is known *about* them all."""
        self.link, self._app, self._about = link, app, about
        self._limits, self._operation = limits, operation
        self._is_answering = False

    def attend(self, idles: Callable[[bool], None], keeps: Callable[[], bool]) -> None:
        """Answer until the connection ends, however it does; never raises.

        *idles* is told whether the next request is waited for, *keeps* tells whether one may come.
        """
        try:
            idles(True)
            came = self.link.begin()
            while came:
                idles(False)
                turn = self._answer(came, keeps)
                if not turn.may_go_on():
                    break
                idles(True)
                came = turn.rest() or self.link.begin()
        except (ClientDisconnected, TooSlow):
            pass
        except Exception as error:  # the answer broke off, which the client sees, and why is for who runs the server
            monitoring.broke(self._operation, error)
        finally:
            self.link.close(abort=self._is_answering)  # what was sent of an answer is not taken for whole

    def _answer(self, came: bytes, keeps: Callable[[], bool]) -> HttpExchange:
        """Answer one request, of which *came* came already, and return the turn it was."""
        turn, began, named = HttpExchange(self.link, self._limits, came), perf_counter(), {}
        try:
            request = turn.request()
            named = headers(request)
            environ = build_environ(request, named)
        except JidomemError as refusal:
            self._refuse(refusal, monitoring.id_of(named), began, turn)
            self.link.end(_LONGEST_DRAIN)
            return turn
        body = Body(turn, length(environ))
        reply = Reply(
            turn,
            is_bare=environ["REQUEST_METHOD"] == "HEAD",
            keeps=lambda: keeps() and not (turn.waits() or body.failed or body.is_long()),
        )
        self._is_answering = True
        own = {"wsgi.input": body, wire.CONNECTION: self.link.fileno()}
        run(self._app, {**self._about, **environ, **own}, reply)
        self._is_answering = False
        if not (turn.keeps_connection() and body.drain()) and (not turn.at_end or self.link.has_more()):
            self.link.end(_LONGEST_DRAIN)
        return turn

    def turn_away(self, refusal: JidomemError) -> None:
        """Say *refusal* to who cannot be attended to; nothing is waited for."""
        self._refuse(refusal, monitoring.id_of({}), perf_counter(), HttpExchange(self.link, self._limits))
        self.link.end(0)

    def _refuse(self, refusal: JidomemError, name: str, began: float, turn: HttpExchange) -> None:
        """Answer a request called *name*, which no application sees, with *refusal*."""
        status = refusal.http_status
        monitoring.unread(self._operation, refusal, name, self._about["REMOTE_ADDR"], perf_counter() - began)
        document = wire.dump({**wire.described(refusal), "request_id": name})
        headers = {
            "Content-Type": wire.PROBLEM,
            "Content-Length": str(len(document)),
            monitoring.HEADER: name,
            **HEADERS,
        }
        reply = Reply(turn, is_bare=False, keeps=lambda: False)
        reply.start(f"{status} {HTTPStatus(status).phrase}", [*headers.items(), *wire.retry(refusal)])
        reply.write(document)
        reply.end()
