"""The address of a SPARQL 1.1 endpoint: what is sent to it, over connections that are kept, and what comes back."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Lock
from urllib.parse import unquote, urlencode, urlsplit

from jidomem.errors import Failed, InvalidRequest, QueryTimeout, TooLarge
from jidomem.index.digest import Digest

TIMEOUT = 30.0
#: How a query is sent: as a field of a form, since Virtuoso 7 waits without end for one that comes as it is. An update
#: comes as it is: it may be long, and a form would make it twice as long.
_FORM, _UPDATE = "application/x-www-form-urlencoded", "application/sparql-update"
#: Connections kept open while nobody asks.
_KEPT = 8
#: How a store that answers `query` is told where updates go: the end of one address, and that of the other.
_BESIDE = ((re.compile(r"/query$"), "/update"), (re.compile(r"(/repositories/[^/]+)$"), r"\1/statements"))


class Refused(Exception):
    """The store answered, and not with what was asked: its status, and its words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status
        self.words = words


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go; `shown` leaves out the password that the address may carry."""

    secure: bool
    host: str
    port: int | None
    path: str
    query: str
    login: str | None = field(repr=False)
    shown: str
    code: str = "store_unavailable"
    _idle: list[HTTPConnection] = field(default_factory=list, repr=False, compare=False)
    _digests: list[Digest] = field(default_factory=list, repr=False, compare=False)  # at most one
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def of(cls, url: str, code: str = "store_unavailable") -> Endpoint:
        """Return the parts of *url*; raises InvalidRequest for what is no http or https address.

        A store that does not answer is Failed with *code*.
        """
        try:
            split = urlsplit(url)
            port = split.port
        except (ValueError, AttributeError):
            split, port = urlsplit(""), None
        if split.scheme not in ("http", "https") or not split.hostname or not re.fullmatch(r"[!-~]+", url):
            hint = 'give the address of its SPARQL endpoint, such as endpoint="http://localhost:7878/query"'
            raise InvalidRequest("the endpoint is not an http or https address", hint=hint)
        named = None if split.username is None else f"{unquote(split.username)}:{unquote(split.password or '')}"
        login = None if named is None else base64.b64encode(named.encode()).decode()
        shown = f"{split.scheme}://{split.hostname}{f':{port}' if port else ''}{split.path}"
        return cls(split.scheme == "https", split.hostname, port, split.path or "/", split.query, login, shown, code)

    def ask(
        self,
        text: str,
        accept: str,
        default: Sequence[str] = (),
        named: Sequence[str] = (),
        *,
        seconds: float = TIMEOUT,
        most: int | None = None,
    ) -> bytes:
        """Return the answer, in the form *accept*, over the union of *default*; GRAPH reaches *named*.

        Without either it is asked of what the store asks then. Raises Refused for an answer that is none, Failed where
        there is none, QueryTimeout after *seconds*, and TooLarge `result_too_large` for one of more than *most* bytes.
        """
        fields = {"query": text, "default-graph-uri": default, "named-graph-uri": named}
        return self._post(urlencode(fields, doseq=True).encode(), _FORM, accept, seconds, most)

    def change(self, text: str, *, seconds: float = TIMEOUT) -> None:
        """Have an update done; raises as `ask` does. Where a connection had been closed, it may be done twice."""
        self._post(text.encode(), _UPDATE, "*/*", seconds, None)

    def _post(self, body: bytes, kind: str, accept: str, seconds: float, most: int | None) -> bytes:
        headers = {"Content-Type": kind, "Accept": accept}
        target = f"{self.path}?{self.query}" if self.query else self.path
        bare, met = False, 0  # how often this request was refused for want of a login
        while True:
            headers["Authorization"] = "" if bare else self._authorization(target)
            kept = self._kept()
            connection = kept or self._new()
            try:
                if connection.sock is None:
                    connection.timeout = min(seconds, TIMEOUT)
                    connection.connect()
            except (OSError, HTTPException) as error:
                raise self._silent(error) from error
            try:
                connection.sock.settimeout(seconds)
                connection.request("POST", target, body, {name: value for name, value in headers.items() if value})
                answer = connection.getresponse()
                data = answer.read() if most is None else answer.read(most + 1)
            except TimeoutError as error:
                connection.close()
                raise _late(self.shown, seconds) from error
            except (OSError, HTTPException) as error:
                connection.close()
                if kept is None:
                    raise self._silent(error) from error
                continue
            if answer.status == 401 and self.login and met < 3:
                met, is_asked = met + 1, self._is_asked(answer)
                bare = not (is_asked or bare or answer.headers["WWW-Authenticate"])  # some ask only who says nothing
                if is_asked or bare:
                    self._keep(connection, answer)
                    continue
            return self._answered(connection, answer, data, most)

    def _authorization(self, target: str) -> str:
        """Return what says who asks: as Digest has it where the store asked for that, else as Basic has it."""
        if not self.login:
            return ""
        with self._lock:
            digest = self._digests[-1] if self._digests else None
        return digest.header("POST", target) if digest else f"Basic {self.login}"

    def _is_asked(self, answer: HTTPResponse) -> bool:
        """Return whether the store asks for a login by Digest, which is answered from then on."""
        user, _, password = base64.b64decode(self.login or "").decode().partition(":")
        digest = Digest.of(answer.headers.get_all("WWW-Authenticate") or [], user, password)
        with self._lock:
            self._digests[:] = [digest] if digest else []
        return digest is not None

    def _answered(self, connection: HTTPConnection, answer: HTTPResponse, data: bytes, most: int | None) -> bytes:
        if most is not None and len(data) > most:
            connection.close()
            hint = "ask for less: add LIMIT, or a FILTER"
            raise TooLarge(f"the answer has more than {most:,} bytes", hint=hint, code="result_too_large")
        self._keep(connection, answer)
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, " ".join(data[:1000].decode("utf-8", "replace").split())[:300])
        return data

    def beside(self) -> str:
        """Return the path of updates beside this one of queries: the same, unless stores of that kind have another."""
        for ending, other in _BESIDE:
            if ending.search(self.path):
                return ending.sub(other, self.path)
        return self.path

    def close(self) -> None:
        """Close the connections that were kept."""
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def unavailable(self, what: str, hint: str | None = None) -> Failed:
        """Return why the store is of no use: *what* it did."""
        usual = "see that it runs and takes this request, then try again: what is there already is not put in twice"
        return Failed(f"{self.shown} {what}", hint=hint or usual, code=self.code)

    def _silent(self, error: Exception) -> Failed:
        return self.unavailable(f"did not answer: {error or type(error).__name__}")

    def _new(self) -> HTTPConnection:
        return (HTTPSConnection if self.secure else HTTPConnection)(self.host, self.port)

    def _kept(self) -> HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: HTTPConnection, answer: HTTPResponse) -> None:
        with self._lock:
            if not answer.will_close and answer.isclosed() and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()


def _late(shown: str, seconds: float) -> QueryTimeout:
    return QueryTimeout(
        f"{shown} did not answer in {seconds:g} seconds", hint="ask for less: add LIMIT or a FILTER, or try again"
    )
