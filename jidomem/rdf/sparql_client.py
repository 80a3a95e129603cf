"""The client of a SPARQL 1.1 endpoint, with Basic and Digest authentication (RFC 7616)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from threading import Lock
from urllib.parse import unquote, urlencode, urlsplit

from jidomem.base.clock import monotonic_time
from jidomem.base.http_client import HttpClient, HttpLimits, HttpOrigin, HttpResponse
from jidomem.errors import Failed, InvalidRequest, QueryTimeout, TooLarge

_FIELD = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')
_HASHES = {"MD5": "md5", "SHA-256": "sha256"}


class Digest:
    """The Digest authentication for one challenge of a server, with a count for each request; safe for threads."""

    def __init__(self, challenge: Mapping[str, str], user: str, password: str) -> None:
        """Answer the *challenge*, a mapping of its fields, as *user*."""
        self._challenge, self._user, self._password = challenge, user, password
        self._count = 0
        self._lock = Lock()

    @classmethod
    def of(cls, challenges: Iterable[str], user: str, password: str) -> Digest | None:
        """Return the authentication for the first of *challenges* that is supported, or None."""
        for challenge in challenges:
            _, scheme, rest = challenge.partition("Digest ")
            fields = {name.lower(): quoted or plain for name, quoted, plain in _FIELD.findall(rest)}
            modes = re.split(r"[\s,]+", fields.get("qop", ""))
            if scheme and "nonce" in fields and fields.get("algorithm", "MD5") in _HASHES and modes != ["auth-int"]:
                return cls({**fields, "qop": "auth" if "auth" in modes else ""}, user, password)
        return None

    def header(self, method: str, target: str, once: str | None = None) -> str:
        """Return the Authorization header of a request; *once* is a nonce used for no other request."""
        with self._lock:
            self._count += 1
            count, once = f"{self._count:08x}", once or token_hex(16)
        challenge, mode = self._challenge, self._challenge["qop"]
        realm, nonce = challenge.get("realm", ""), challenge["nonce"]
        who, what = self._hash(f"{self._user}:{realm}:{self._password}"), self._hash(f"{method}:{target}")
        middle = f"{nonce}:{count}:{once}:{mode}" if mode else nonce
        quoted = {"username": self._user, "realm": realm, "nonce": nonce, "uri": target}
        quoted |= {"response": self._hash(f"{who}:{middle}:{what}")}
        quoted |= {"opaque": challenge["opaque"]} if "opaque" in challenge else {}
        plain = {"algorithm": challenge["algorithm"]} if "algorithm" in challenge else {}
        if mode:
            quoted["cnonce"] = once
            plain |= {"qop": mode, "nc": count}
        fields = [f'{name}="{value}"' for name, value in quoted.items()]
        return "Digest " + ", ".join([*fields, *(f"{name}={value}" for name, value in plain.items())])

    def _hash(self, text: str) -> str:
        kind = _HASHES[self._challenge.get("algorithm", "MD5")]
        return hashlib.new(kind, text.encode(), usedforsecurity=False).hexdigest()


TIMEOUT = 30.0
#: The content types of requests. A query is sent as a form field, since Virtuoso 7 hangs on a plain one. An update is
#: sent plain, since it may be long and a form would double its length.
_FORM, _UPDATE = "application/x-www-form-urlencoded", "application/sparql-update"
#: The requests that determine the login scheme of a store, and the statuses of an unavailable store.
_ASKS_NOTHING, _TRUTH = urlencode({"query": "ASK {}"}).encode(), "application/sparql-results+json"
_CHANGES_NOTHING = b"INSERT DATA {}"
_AWAY = (502, 503, 504)
_POOLED = 8
#: The end of the address for queries -> that of the address for updates.
_BESIDE = ((re.compile(r"/query$"), "/update"), (re.compile(r"(/repositories/[^/]+)$"), r"\1/statements"))


class EndpointError(Exception):
    """An answer of the store with an error: its status and message."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status
        self.words = words


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """The endpoint of requests; `shown` is its address without a password."""

    client: HttpClient
    path: str
    query: str
    login: str | None = field(repr=False)
    shown: str
    code: str = "store_unavailable"
    #: The login scheme: Digest, or Basic (None); empty until the store has stated it.
    _ways: list[Digest | None] = field(default_factory=list, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def of(cls, url: str, code: str = "store_unavailable") -> SparqlEndpoint:
        """Return the endpoint at *url*; raises InvalidRequest unless that is an http or https address.

        A store that does not answer raises Failed with *code*.
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
        is_secure = split.scheme == "https"
        origin = HttpOrigin(is_secure, split.hostname, port or (443 if is_secure else 80))
        client = HttpClient(origin, pooled=_POOLED)
        return cls(client, split.path or "/", split.query, login, shown, code)

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
        """Return the answer, in the format *accept*, over the union of *default*; GRAPH reaches *named*.

        Without either the store uses its own default. Raises EndpointError for an error status, Failed without an
        answer, QueryTimeout after *seconds*, and TooLarge `result_too_large` for an answer of more than *most* bytes.
        """
        fields = {"query": text, "default-graph-uri": default, "named-graph-uri": named}
        return self._post(urlencode(fields, doseq=True).encode(), _FORM, accept, seconds, most)

    def change(self, text: str, *, seconds: float = TIMEOUT) -> None:
        """Run an update; raises as `ask` does. It may be run twice if a connection was closed."""
        self._post(text.encode(), _UPDATE, "*/*", seconds, None)

    def _post(self, body: bytes, kind: str, accept: str, seconds: float, most: int | None) -> bytes:
        refused = 0  # the number of refused logins
        while True:
            login = self._login(kind, accept, seconds)
            answer = self._sent(body, kind, accept, login, seconds, most)
            if answer.status == 401 and self.login and refused < 3:
                refused += 1
                if self._learnt(answer) or not answer.values("www-authenticate"):  # some send it only without login
                    continue
            return self._checked(answer, most)

    def _sent(self, body: bytes, kind: str, accept: str, login: str, seconds: float, most: int | None) -> HttpResponse:
        """Return the answer; raise QueryTimeout and Failed if there is none."""
        headers = {"Content-Type": kind, "Accept": accept, **({"Authorization": login} if login else {})}
        limits = HttpLimits(min(seconds, TIMEOUT), seconds, monotonic_time() + seconds, most)
        answer = self.client.request("POST", self._target, headers, body, limits)
        if isinstance(answer, HttpResponse):
            return answer
        if answer.is_late:
            hint = "ask for less: add LIMIT or a FILTER, or try again"
            raise QueryTimeout(f"{self.shown} did not answer in {seconds:g} seconds", hint=hint)
        raise self.unavailable(f"did not answer: it {answer.why}")

    @property
    def _target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    def _login(self, kind: str, accept: str, seconds: float) -> str:
        """Return the Authorization header in the scheme that the store requires.

        A request without effect determines the scheme, so that a listener does not get the password of a store that
        requires Digest. A store that requires none gets a Basic login, since it may grant more to a named user.
        """
        if not self.login:
            return ""
        with self._lock:
            ways = tuple(self._ways)
        if not ways:
            body, accept = (_ASKS_NOTHING, _TRUTH) if kind == _FORM else (_CHANGES_NOTHING, accept)
            answer = self._sent(body, kind, accept, "", seconds, None)
            if answer.status in _AWAY:
                self._checked(answer, None)
            self._learnt(answer, basic=True)
            return self._login(kind, accept, seconds)
        return ways[-1].header("POST", self._target) if ways[-1] else f"Basic {self.login}"

    def _learnt(self, answer: HttpResponse, *, basic: bool = False) -> bool:
        """Return whether the store requires Digest; else use Basic if *basic*, or determine the scheme again.

        The scheme is used for all further requests.
        """
        user, _, password = base64.b64decode(self.login or "").decode().partition(":")
        digest = Digest.of(answer.values("www-authenticate"), user, password)
        with self._lock:
            self._ways[:] = [digest] if digest or basic else []
        return digest is not None

    def _checked(self, answer: HttpResponse, most: int | None) -> bytes:
        """Return the body of a success; raise EndpointError for another status, TooLarge beyond *most* bytes."""
        if not 200 <= answer.status < 300:
            raise EndpointError(answer.status, " ".join(answer.body[:1000].decode("utf-8", "replace").split())[:300])
        if not answer.is_whole:
            hint = "ask for less: add LIMIT, or a FILTER"
            raise TooLarge(f"the answer has more than {most:,} bytes", hint=hint, code="result_too_large")
        return answer.body

    def update_path(self) -> str:
        """Return the path for updates: that for queries, unless stores of this kind have another one."""
        for ending, other in _BESIDE:
            if ending.search(self.path):
                return ending.sub(other, self.path)
        return self.path

    def close(self) -> None:
        """Close the idle connections."""
        self.client.close()

    def unavailable(self, what: str, hint: str | None = None) -> Failed:
        """Return the failure of an unavailable store; *what* it did."""
        usual = "check that it runs and accepts this request, then try again: existing data is not inserted twice"
        return Failed(f"{self.shown} {what}", hint=hint or usual, code=self.code)
