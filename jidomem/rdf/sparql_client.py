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
    """The challenge of a server, answered for each request with its own count, in any thread."""

    def __init__(self, challenge: Mapping[str, str], user: str, password: str) -> None:
        """Answer what the fields *challenge* ask for, as *user*."""
        self._challenge, self._user, self._password = challenge, user, password
        self._count = 0
        self._lock = Lock()

    @classmethod
    def of(cls, challenges: Iterable[str], user: str, password: str) -> Digest | None:
        """Return the answer to the first of *challenges* that can be answered, None where there is none."""
        for challenge in challenges:
            _, scheme, rest = challenge.partition("Digest ")
            fields = {name.lower(): quoted or plain for name, quoted, plain in _FIELD.findall(rest)}
            modes = re.split(r"[\s,]+", fields.get("qop", ""))
            if scheme and "nonce" in fields and fields.get("algorithm", "MD5") in _HASHES and modes != ["auth-int"]:
                return cls({**fields, "qop": "auth" if "auth" in modes else ""}, user, password)
        return None

    def header(self, method: str, target: str, once: str | None = None) -> str:
        """Return what stands in Authorization of a request; *once* is a text that is used for no other."""
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
#: How a query is sent: as a field of a form, since Virtuoso 7 waits without end for one that comes as it is. An update
#: comes as it is: it may be long, and a form would make it twice as long.
_FORM, _UPDATE = "application/x-www-form-urlencoded", "application/sparql-update"
#: The requests that find out the login scheme of a store, and the statuses of a store that is away.
_ASKS_NOTHING, _TRUTH = urlencode({"query": "ASK {}"}).encode(), "application/sparql-results+json"
_CHANGES_NOTHING = b"INSERT DATA {}"
_AWAY = (502, 503, 504)
_POOLED = 8
#: How a store that answers `query` is told where updates go: the end of one address, and that of the other.
_BESIDE = ((re.compile(r"/query$"), "/update"), (re.compile(r"(/repositories/[^/]+)$"), r"\1/statements"))


class EndpointError(Exception):
    """The store answered, and not with what was asked: its status, and its words."""

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
    #: How requests log in: by Digest, or by Basic (None); empty before the store has said which.
    _ways: list[Digest | None] = field(default_factory=list, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def of(cls, url: str, code: str = "store_unavailable") -> SparqlEndpoint:
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
        """Return the answer, in the form *accept*, over the union of *default*; GRAPH reaches *named*.

        Without either the store has its own default. Raises EndpointError for an answer that is none, Failed without
        one, QueryTimeout after *seconds*, and TooLarge `result_too_large` for one of more than *most* bytes.
        """
        fields = {"query": text, "default-graph-uri": default, "named-graph-uri": named}
        return self._post(urlencode(fields, doseq=True).encode(), _FORM, accept, seconds, most)

    def change(self, text: str, *, seconds: float = TIMEOUT) -> None:
        """Have an update done; raises as `ask` does. It may be done twice where a connection had been closed."""
        self._post(text.encode(), _UPDATE, "*/*", seconds, None)

    def _post(self, body: bytes, kind: str, accept: str, seconds: float, most: int | None) -> bytes:
        refused = 0  # how often the login was
        while True:
            login = self._login(kind, accept, seconds)
            answer = self._sent(body, kind, accept, login, seconds, most)
            if answer.status == 401 and self.login and refused < 3:
                refused += 1
                if self._learnt(answer) or not answer.values("www-authenticate"):  # some ask only after one without
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
        """Return what says who asks, in the way the store asks for.

        A request that says nothing and does nothing finds that out: whoever listens learns no password from a store
        that asks for Digest. One that lets everybody ask is told all the same, as Basic has it: it may let who is named
        do more.
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
        """Return whether the store asks for a login by Digest; if not, it is told in *basic*, or has to be asked again.

        It is answered in that way from then on.
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

    def beside(self) -> str:
        """Return the path of updates beside this one of queries: the same, unless stores of that kind have another."""
        for ending, other in _BESIDE:
            if ending.search(self.path):
                return ending.sub(other, self.path)
        return self.path

    def close(self) -> None:
        """Close the idle connections."""
        self.client.close()

    def unavailable(self, what: str, hint: str | None = None) -> Failed:
        """Return why the store is of no use: *what* it did."""
        usual = "see that it runs and takes this request, then try again: what is there already is not put in twice"
        return Failed(f"{self.shown} {what}", hint=hint or usual, code=self.code)
