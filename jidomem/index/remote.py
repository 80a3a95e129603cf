"""A triple store behind the SPARQL 1.1 Protocol: one request a question, one request an insert."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import unquote, urlencode, urlsplit

import pyoxigraph as ox

from jidomem import sparql
from jidomem.errors import Failed, InvalidRequest
from jidomem.index.answers import Answer, plain
from jidomem.terms import Triple, bare, line

TIMEOUT = 30.0
_ROWS, _GRAPH = "application/sparql-results+json", "application/n-triples"


class RemoteStore:
    """The graphs of a store that others may use as well; how it keeps them is its own affair."""

    def __init__(self, endpoint: str, update_endpoint: str | None) -> None:
        """Ask *endpoint*; change at *update_endpoint*, else at the `/update` beside a `/query`, else at *endpoint*."""
        self._query = _Address.of(endpoint)
        beside = endpoint.removesuffix("/query") + "/update" if endpoint.endswith("/query") else endpoint
        self._update = _Address.of(update_endpoint or beside)

    def graphs(self) -> list[str]:
        """Return the graphs that hold anything; the store looks through all it holds for them."""
        found = self.ask("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", [], [])
        return [bare(row[0]) for row in getattr(found, "rows", ())]

    def insert(self, graph: str, triples: Iterable[Triple]) -> None:
        """Add *triples* to *graph* in one update."""
        rows = "\n".join(map(line, triples))
        self._change(f"INSERT DATA {{ GRAPH <{graph}> {{\n{rows}\n}} }}")

    def clear(self, graph: str) -> None:
        """Empty *graph*."""
        self._change(f"DROP SILENT GRAPH <{graph}>")

    def ask(self, text: str, default: Sequence[str], named: Sequence[str]) -> Answer:
        """Return the answer over the union of *default*; GRAPH reaches *named*."""
        triples = sparql.first_word(sparql.check(text)) in ("CONSTRUCT", "DESCRIBE")
        dataset = [("default-graph-uri", graph) for graph in default] + [("named-graph-uri", graph) for graph in named]
        headers = {"Content-Type": "application/sparql-query", "Accept": _GRAPH if triples else _ROWS}
        data = self._query.post(urlencode(dataset), text, headers)
        try:
            if triples:
                return tuple(dict.fromkeys((str(q.subject), str(q.predicate), str(q.object)) for q in _parsed(data)))
            return plain(ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON))
        except (SyntaxError, ValueError) as error:
            raise _unavailable(self._query, f"answered with what cannot be read: {error}") from error

    def close(self) -> None:
        """Nothing is held open between requests."""

    def _change(self, text: str) -> None:
        self._update.post("", text, {"Content-Type": "application/sparql-update"})


def _parsed(data: bytes) -> Iterable[ox.Quad]:
    return ox.parse(data, format=ox.RdfFormat.N_TRIPLES)


@dataclass(frozen=True, slots=True)
class _Address:
    """Where requests go; `shown` leaves out the password that the address may carry."""

    secure: bool
    host: str
    port: int | None
    path: str
    query: str
    login: str | None
    shown: str

    @classmethod
    def of(cls, url: str) -> _Address:
        """Return the parts of *url*; raises InvalidRequest for what is no http or https address."""
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
        return cls(split.scheme == "https", split.hostname, port, split.path or "/", split.query, login, shown)

    def post(self, query: str, text: str, headers: Mapping[str, str]) -> bytes:
        """Return the body of the answer; raises InvalidRequest for a text refused, Failed for a store that fails."""
        said = {**headers, **({"Authorization": f"Basic {self.login}"} if self.login else {})}
        target = "?".join(filter(None, [self.path, "&".join(filter(None, [self.query, query]))]))
        connection = (HTTPSConnection if self.secure else HTTPConnection)(self.host, self.port, timeout=TIMEOUT)
        try:
            connection.request("POST", target, text.encode(), said)
            answer = connection.getresponse()
            status, body = answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise _unavailable(self, f"did not answer: {error or type(error).__name__}") from error
        finally:
            connection.close()
        if status == 400:
            detail = f"{self.shown} refused it: {_words(body)}"
            raise InvalidRequest(detail, hint="correct the SPARQL it names", code="malformed_query")
        if not 200 <= status < 300:
            raise _unavailable(self, f"answered {status}: {_words(body)}")
        return body


def _words(body: bytes) -> str:
    return " ".join(body[:1000].decode("utf-8", "replace").split())[:200]


def _unavailable(address: _Address, what: str) -> Failed:
    hint = "see that it runs and takes this request, then try again: inserting what is there already changes nothing"
    return Failed(f"{address.shown} {what}", hint=hint, code="store_unavailable")
