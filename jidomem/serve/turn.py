"""One turn on a connection: a request and the answer to it, as h11 reads and writes them, at the pace of the link."""

from __future__ import annotations

import re
from threading import Lock

import h11

from jidomem.errors import InvalidRequest, RequestTimeout, TooLarge
from jidomem.runtime.limits import Limits
from jidomem.serve.pace import Gone, Link, TooSlow

#: Lines that end, or go on, as HTTP once allowed: two readers may part them in two ways.
_LOOSE = re.compile(rb"(?<!\r)\n|\n[ \t]")
_HINT = "correct the request: RFC 9112 has how one is written"
_CONTINUE = h11.InformationalResponse(status_code=100, reason=b"Continue", headers=[])


class Malformed(Exception):
    """What came is no HTTP."""


class Turn:
    """One request on *link*, of which *came* came already; two threads may read its body and send the answer."""

    def __init__(self, link: Link, limits: Limits, came: bytes = b"") -> None:
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

    def is_kept(self) -> bool:
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
            raise Gone
        return data

    def _next(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            return self._h11.next_event()
        except h11.RemoteProtocolError as error:
            raise Malformed(str(error)) from error

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
            raise Malformed("the last chunk does not end in an empty line")

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
