"""The index in a remote SPARQL 1.1 store: synchronised with the journal before each query.

`probe_endpoint` finds out which queries a store answers as the local engine does. `rewrite_query`
writes bindings into a query, and `rewrite_for_virtuoso` adapts queries to Virtuoso 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import pyoxigraph as ox

from jidomem.errors import Failed, InvalidRequest, JidomemError
from jidomem.extras.servers.remote_sync import LINES, ROWS, Feed, RemoteGraphs, SyncThread, refusal_of
from jidomem.index import results
from jidomem.index.results import Answer, AnswerLimits, SerializedAnswer, Solutions, malformed, plain
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.journal.journal import NAMES, FileJournal, Stream
from jidomem.rdf import sparql
from jidomem.rdf.sparql import SparqlToken, first_word, tokens
from jidomem.rdf.sparql_client import TIMEOUT, EndpointError, SparqlEndpoint
from jidomem.rdf.terms import Term, Triple, iri
from jidomem.rdf.vocab import BASE, RDFS, jido


def rewrite_query(text: str, bindings: Mapping[str, Term]) -> str:
    r"""Return *text* with the terms of *bindings* in place of their variables, and without FROM and FROM NAMED.

    The dataset is sent beside the query. A selected variable stays selected, under its name.

    >>> rewrite_query("SELECT ?s ?o FROM <urn:g> { ?s ?p ?o } ORDER BY ?s", {"s": "<urn:a>"}).partition("\n")[2]
    'SELECT (<urn:a> AS ?s) ?o  { <urn:a> ?p ?o } ORDER BY (<urn:a>)'
    """
    pieces = list(_without_from(tokens(text)))
    selects = first_word(pieces) == "SELECT"
    return f"BASE <{BASE}>\n" + "".join(_bound_tokens(pieces, bindings, selects))


def _bound_tokens(pieces: Sequence[SparqlToken], bindings: Mapping[str, Term], selects: bool) -> Iterator[str]:
    """Yield the tokens with the terms of bound variables: with AS in the SELECT, in parentheses after the pattern."""
    braces = brackets = 0
    in_pattern = False
    for piece in pieces:
        braces += (piece.text == "{") - (piece.text == "}") if piece.kind == "sign" else 0
        brackets += (piece.text == "(") - (piece.text == ")") if piece.kind == "sign" else 0
        in_pattern |= braces > 0
        name = piece.text[1:]
        if piece.kind != "variable" or name not in bindings:
            yield piece.text
        elif braces or brackets:
            yield bindings[name]
        else:
            yield f"({bindings[name]})" if in_pattern or not selects else f"({bindings[name]} AS ?{name})"


def _without_from(pieces: Iterator[SparqlToken]) -> Iterator[SparqlToken]:
    """Yield the tokens without FROM, NAMED and their graph: no other token is such a word."""
    for piece in pieces:
        if piece.kind != "word" or piece.text.upper() not in ("FROM", "FROMNAMED"):
            yield piece
            continue
        for graph in pieces:
            if graph.kind in ("iri", "name"):
                break


#: Lines of one request: Virtuoso's compiler fails at 2,000.
VIRTUOSO_LINES = 1_000
#: The shipped queries that Virtuoso answers as the local engine does; a test compares both for every query.
PROVEN = frozenset((
    "active-decisions", "agent-rules", "commits", "completed-tasks", "conflicts", "conventions",
    "dangling-supersessions", "decision-log", "decisions", "decisions-without-rationale", "disagreements",
    "elixir-modules", "evidence-contradictions", "facts", "facts-about",
    "items-without-confidence", "items-without-project", "lessons", "open-errors", "open-tasks", "patterns",
    "policy-changes", "proposals", "recent-decisions", "recent-lessons", "related", "risks",
    "severe-errors", "stale", "strict-conventions", "supersessions", "tasks-of-agent", "tasks-without-assignee",
    "unexplained-root-causes", "verified-conventions",
))  # fmt: skip
#: The patterns that Virtuoso answers wrongly beside OPTIONAL and NOT EXISTS: a class and its subclasses.
_BELOW = re.compile(r"(?:\ba/|(\?\w+) )rdfs:subClassOf\* jido:(\w+)")


def rewrite_for_virtuoso(text: str, below: Callable[[Term], Iterable[Term]]) -> str:
    """Return *text*, a shipped query, with each class pattern replaced by a list of the classes *below* it.

    >>> rewrite_for_virtuoso("{ ?t a/rdfs:subClassOf* jido:Task ; ?p ?o }", lambda name: ["<urn:A>", "<urn:B>"])
    '{ ?t a ?below1 ; ?p ?o  FILTER(?below1 IN (<urn:A>, <urn:B>)) }'
    """
    text = "\n".join(row for row in text.split("\n") if not row.startswith("#"))
    count = 0
    while match := _BELOW.search(text):
        count += match[1] is None
        variable, place = match[1] or f"?below{count}", "" if match[1] else f"a ?below{count}"
        classes, end = ", ".join(sorted(below(jido(match[2])))), _end(text, match.end())
        text = f"{text[: match.start()]}{place}{text[match.end() : end]} FILTER({variable} IN ({classes})) {text[end:]}"
    return text


def _end(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth < 0:
            return place
    return len(text)


def is_virtuoso(query: SparqlEndpoint) -> bool:
    """Return whether a store is Virtuoso: no other store has its function `bif:sys_stat`."""
    try:
        query.ask("SELECT (bif:sys_stat('st_dbms_ver') AS ?version) {}", "application/sparql-results+json")
    except EndpointError:
        return False
    return True


PROBE, ASIDE = "urn:jidomem:index:probe", "urn:jidomem:index:probe:aside"
_DATA = r"""
<urn:p:a> <urn:p:kind> <urn:p:K1> . <urn:p:b> <urn:p:kind> <urn:p:K2> . <urn:p:c> <urn:p:kind> <urn:p:K2> .
<urn:p:K1> <urn:p:under> <urn:p:K> . <urn:p:K2> <urn:p:under> <urn:p:K1> .
<urn:p:a> <urn:p:text> "Zo\u00EB \"\U0001F600\"\n\\end" . <urn:p:b> <urn:p:text> "a" . <urn:p:c> <urn:p:text> "B" .
<urn:p:a> <urn:p:at> "2026-01-01T00:00:00.123456Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:p:b> <urn:p:at> "2026-01-01T00:00:00.123457Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:p:c> <urn:p:at> "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:p:a> <urn:p:sure> "0.85"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<urn:p:a> <urn:p:true> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> . <urn:p:a> <urn:p:said> "chat"@fr .
<urn:p:a> <urn:p:count> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:p:a> <urn:p:url> "urn:x"^^<http://www.w3.org/2001/XMLSchema#anyURI> .
<urn:p:a> <urn:p:by> <urn:p:b> . <urn:p:b> <urn:p:by> <urn:p:c> . <urn:p:c> <urn:p:again> <urn:p:a> .
<urn:p:b> <urn:p:state> <urn:p:Open> .
"""
_AT = '"2026-01-01T00:00:00.123456Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
#: The probe queries by the ability that each shows. All but the first have the forms of the playbook.
PROBES: Mapping[str, str] = {
    "terms are returned as they were written": "SELECT ?p ?o { <urn:p:a> ?p ?o } ORDER BY ?p ?o",
    "GRAPH reaches the named graphs alone": "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g",
    "moments compare to the microsecond": f"SELECT ?s {{ ?s <urn:p:at> ?t FILTER(?t <= {_AT}) }} ORDER BY ?t",
    "texts sort by code point": "SELECT ?t { ?s <urn:p:text> ?t } ORDER BY ?t",
    "OPTIONAL works beside NOT EXISTS": (
        "SELECT DISTINCT ?s ?o { ?s <urn:p:kind>/<urn:p:under>* <urn:p:K> OPTIONAL { ?s <urn:p:state> ?o } "
        "FILTER(!BOUND(?o) || ?o != <urn:p:Done>) FILTER NOT EXISTS { ?s <urn:p:true> ?x } } ORDER BY ?s ?o"
    ),
    "EXISTS works within NOT EXISTS, beside ||": (
        "SELECT DISTINCT ?s { ?s <urn:p:kind> ?k FILTER(false || NOT EXISTS { ?s <urn:p:by>|<urn:p:again> ?e "
        f"FILTER EXISTS {{ ?e <urn:p:at> ?t FILTER(?t <= {_AT}) }} }}) }} ORDER BY ?s"
    ),
    "paths of alternatives and inverses repeat": (
        "SELECT ?o { <urn:p:b> (<urn:p:by>|^<urn:p:again>)* ?o } ORDER BY ?o"
    ),
    "groups are counted": (
        "SELECT (<urn:p:K> AS ?of) ?k (COUNT(DISTINCT ?s) AS ?n) (MAX(?t) AS ?last) "
        "{ ?s <urn:p:kind> ?k ; <urn:p:at> ?t } GROUP BY (<urn:p:K>) ?k ORDER BY ?k ?n"
    ),
    "VALUES, BIND and MINUS join": (
        'SELECT ?s ?l { VALUES ?s { <urn:p:a> <urn:p:b> <urn:p:c> } ?s <urn:p:text> ?t BIND(STRLEN(?t) AS ?l) '
        "MINUS { ?s <urn:p:state> ?x } } ORDER BY ?s"
    ),
    "ASK is answered": "ASK { <urn:p:a> <urn:p:true> true }",
}  # fmt: skip
#: The abilities that every store must have: only the graphs of the query are visible.
_NEEDED = ("GRAPH reaches the named graphs alone",)
_MISFIT = "use a store that conforms to SPARQL 1.1: Oxigraph, or one that docs/backends.md names"


class StoreAbilities(NamedTuple):
    """The abilities of a store; with `proven` it answers only these queries."""

    lines: int = LINES
    conditional: bool = True
    proven: frozenset[str] | None = None
    name: str = "SPARQL 1.1"

    def answers(self, question: str | None) -> bool:
        """Return whether the store answers the shipped query of that name, or any other query for None."""
        return self.proven is None or question in self.proven

    def spelled(self, text: str, below: Callable[[Term], Iterable[Term]]) -> str:
        """Return *text* in the store's dialect; *below* returns a class and its subclasses."""
        return text if self.proven is None else rewrite_for_virtuoso(text, below)


def probe_endpoint(query: SparqlEndpoint, update: SparqlEndpoint) -> StoreAbilities:
    """Return the abilities of a store, after probe queries on a graph of a few triples, which is written if necessary.

    Raises Failed `store_unfit`, which names the first deviation, for a store that neither follows the standard nor is
    Virtuoso.
    """
    deviations = _deviations(query)
    if deviations:
        _write_probe(update)
        deviations = _deviations(query)
    if not deviations:
        return StoreAbilities()
    name = next(iter(deviations))
    if is_virtuoso(query) and not any(needed in deviations for needed in _NEEDED):
        return StoreAbilities(VIRTUOSO_LINES, False, PROVEN, "Virtuoso")
    detail = f"{query.shown} cannot be used as an index: {name!r} fails there ({deviations[name]})"
    raise Failed(detail, hint=_MISFIT, code="store_unfit")


def _deviations(query: SparqlEndpoint) -> dict[str, str]:
    """Return the probes that a store answers unlike the local engine: ability -> answer."""
    local = ox.Store()
    local.load(_DATA.encode(), ox.RdfFormat.TURTLE, to_graph=ox.NamedNode(PROBE))
    differences: dict[str, str] = {}
    for name, text in PROBES.items():
        graphs: list[Any] = [ox.NamedNode(PROBE)]
        wanted = plain(local.query(text, default_graph=graphs, named_graphs=graphs))
        try:
            data = query.ask(rewrite_query(text, {}), ROWS, [PROBE], [PROBE])
            answer: Answer | str = plain(ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON))
        except (EndpointError, SyntaxError, ValueError) as error:
            answer = str(error)
        if answer != wanted:
            differences[name] = f"{answer!s:.200}"
    return differences


def _write_probe(update: SparqlEndpoint) -> None:
    """Write the probe graph, and another graph that no query may reach."""
    aside = f'INSERT DATA {{ GRAPH <{ASIDE}> {{ <urn:p:a> <urn:p:text> "aside" }} }}'
    try:
        update.change(f"INSERT DATA {{ GRAPH <{PROBE}> {{ {_DATA} }} }} ; {aside}")
    except EndpointError as refusal:
        raise refusal_of(update, refusal) from refusal


SCHEMES = ("sparql+http://", "sparql+https://")
_ROWS, _TRIPLES = "application/sparql-results+json", "application/n-triples"
_BOUNDS = AnswerLimits()
_UNDER = iri(RDFS + "subClassOf")
#: The size of a row in a store, as a multiple of its size in the answer.
_ROOM = 4


class RemoteIndex:
    """The index in a remote store, synchronised with the journal before every query.

    `answers` returns which queries it can answer; the local index answers all others.
    """

    def __init__(self, address: str, journal: FileJournal, own: OxigraphIndex, ontology: Iterable[Triple]) -> None:
        """Use the store at *address*, `sparql+http://...`; nothing is sent before the first query."""
        self._query = endpoint(address)
        path = self._query.update_path()
        self._update = replace(self._query, path=path, shown=self._query.shown.removesuffix(self._query.path) + path)
        self._journal = journal
        self._local = own
        self._ontology = tuple(ontology)
        self._feed: Feed | None = None
        self._fit: StoreAbilities | None = None
        self._lock = Lock()
        self._sync_thread = SyncThread(self.catch_up)

    def put_ontology(self, ontology: Iterable[Triple]) -> None:
        """Write *ontology* to the store from now on; a store with another one is refused until that is replaced."""
        with self._lock:
            self._ontology, self._feed = tuple(ontology), None

    @property
    def shown(self) -> str:
        """Return the address of the store, without its password."""
        return self._query.shown

    def fit(self) -> StoreAbilities:
        """Return the abilities of the store; raises Failed `store_unfit` if it cannot be used."""
        with self._lock:
            if self._fit is None:
                self._fit = probe_endpoint(self._query, self._update)
            return self._fit

    def catch_up(self, streams: Sequence[Stream]) -> None:
        """Return once the store has all commits of *streams*; raises the errors of `Feed.catch_up`."""
        self._open_feed().catch_up(streams)

    def notify(self, stream: Stream) -> None:
        """Record that *stream* has new commits, and return at once: a thread synchronises the store."""
        self._sync_thread.notify(stream)

    def rebuild(self) -> dict[Stream, Watermark]:
        """Write all streams again, and return the watermark of each."""
        return self._open_feed().rebuild(self._journal.streams())

    def answers(self, question: str | None) -> bool:
        """Return whether the store answers the shipped query of that name, or any other query for None."""
        return self.fit().answers(question)

    def query(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
    ) -> Answer:
        """Return what `OxigraphIndex.query` returns; raises also Failed `store_unreachable`."""
        answer = self._execute(sparql, graphs, named, bindings)
        if isinstance(answer, list):
            return tuple((str(each.subject), str(each.predicate), str(each.object)) for each in answer)
        return plain(answer)

    def serialized(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
        rows_as: str = "json",
        graph_as: str = "turtle",
        within: AnswerLimits = _BOUNDS,
        seconds: float = TIMEOUT,
    ) -> SerializedAnswer:
        """Return what `OxigraphIndex.serialized` returns; raises also Failed, and QueryTimeout after *seconds*."""
        answer: Any = self._execute(sparql, graphs, named, bindings, seconds, _ROOM * within.size)
        return results.write_result(answer, rows_as, graph_as, within)

    def close(self) -> None:
        """Close the connections, after a short wait for a synchronisation that is under way."""
        self._sync_thread.close()
        self._query.close()
        self._update.close()

    def _subclasses(self, name: Term, graphs: Sequence[str]) -> list[Term]:
        answer = self._local.query(f"SELECT DISTINCT ?k {{ ?k {_UNDER}* {name} }}", graphs=graphs)
        assert isinstance(answer, Solutions)
        return [row[0] or "" for row in answer.rows]

    def _open_feed(self) -> Feed:
        fit = self.fit()
        with self._lock:
            if self._feed is None:
                remote_graphs = RemoteGraphs(self._query, self._update, lines=fit.lines, conditional=fit.conditional)
                self._feed = Feed(self._journal, remote_graphs, self._ontology)
            return self._feed

    def _execute(
        self,
        text: str,
        graphs: Sequence[str],
        named: Sequence[str] | None,
        bindings: Mapping[str, Term] | None,
        seconds: float = TIMEOUT,
        most: int | None = None,
    ) -> Any:
        """Return the answer as the local engine parses it; triples as a list without duplicates."""
        reached = {*graphs, *(named or ())}
        projects = {stream.project for stream in self._journal.streams()}
        streams = (Stream(project, name) for project in sorted(projects) for name in NAMES)
        reached_streams = [stream for stream in streams if stream.graph in reached]
        keyword = sparql.first_word(tuple(sparql.tokens(text)))
        accept = _TRIPLES if keyword in ("CONSTRUCT", "DESCRIBE") else _ROWS
        try:
            query = self.fit().spelled(rewrite_query(text, bindings or {}), lambda name: self._subclasses(name, graphs))
            named = graphs if named is None else named
            ask = partial(self._query.ask, query, accept, graphs, named, seconds=seconds, most=most)
            data = self._open_feed().ask(reached_streams, ask)
        except EndpointError as refusal:
            raise self._refused(refusal, text) from refusal
        try:
            if accept == _TRIPLES:
                return list(dict.fromkeys(quad.triple for quad in ox.parse(data, format=ox.RdfFormat.N_TRIPLES)))
            return ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON)
        except (SyntaxError, ValueError) as error:
            raise self._query.unavailable(f"answered with invalid data: {error}") from error

    def _refused(self, refusal: EndpointError, text: str) -> JidomemError:
        if refusal.status == 400:
            try:
                ox.Store().query(text)
            except SyntaxError as error:
                return malformed(str(error))
            hint = "correct the query"
            return InvalidRequest(f"{self.shown} refused it: {refusal.words}", hint=hint, code="malformed_query")
        return self._query.unavailable(f"answered {refusal.status}: {refusal.words}")


def endpoint(address: str) -> SparqlEndpoint:
    """Return the endpoint of the store at *address*; raises InvalidRequest if that is not `sparql+http(s)://...`."""
    if not address.startswith(SCHEMES):
        hint = 'index = "sparql+http://localhost:7878/query", or no index at all, for one in this process'
        raise InvalidRequest("the index is not a sparql+http:// or sparql+https:// address", hint=hint)
    return SparqlEndpoint.of(address.removeprefix("sparql+"), "store_unreachable")


def refuse(address: str) -> None:
    """Raise Failed `invalid_config` unless *address* is the address of a store."""
    try:
        endpoint(address)
    except InvalidRequest as error:
        raise Failed(error.detail, hint=error.hint, code="invalid_config") from None
