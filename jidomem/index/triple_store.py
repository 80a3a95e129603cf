"""The public TripleStore: named graphs in memory, in a folder, or behind a SPARQL 1.1 endpoint.

A remote store takes one request a query and one an insert. A root's index is a read-only triple store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import Any, NoReturn, Protocol
from typing import Literal as OneOf

import pyoxigraph as ox

from jidomem.errors import Busy, Failed, InvalidRequest, JidomemError, NotFound, PolicyDenied, nearest_names
from jidomem.index.results import Answer, Solutions, malformed, plain
from jidomem.index.store import OxigraphIndex
from jidomem.rdf import sparql
from jidomem.rdf.sparql import dataset
from jidomem.rdf.sparql_client import EndpointError, SparqlEndpoint
from jidomem.rdf.statements import Statement, Value, as_statement, to_iri, to_triples, to_value
from jidomem.rdf.terms import Literal, Term, Triple, ntriples_line, plain_value
from jidomem.rdf.vocab import BASE, GRAPHS, local_name


class LocalStore:
    """Graphs in memory, or in a folder that only one process at a time can open."""

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self._store: ox.Store | None = _open_store(path)

    def graphs(self) -> list[str]:
        """Return the graphs that have triples."""
        return [graph.value for graph in self._open.named_graphs() if isinstance(graph, ox.NamedNode)]

    def insert(self, graph: str, triples: Iterable[Triple]) -> None:
        """Add *triples* to *graph* in one transaction; raises InvalidRequest for no triples, Failed for the disk."""
        document = "\n".join(map(ntriples_line, triples)).encode()
        try:
            self._open.load(document, ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(graph))
        except SyntaxError as error:
            raise InvalidRequest(
                f"a statement is not a triple: {error.msg}", hint="correct it and try again"
            ) from error
        except OSError as error:
            raise _failed(error) from error

    def clear(self, graph: str) -> None:
        """Delete *graph* in one transaction; raises Failed if the disk cannot be written."""
        try:
            self._open.remove_graph(ox.NamedNode(graph))
        except OSError as error:
            raise _failed(error) from error

    def ask(self, text: str, default: Sequence[str], named: Sequence[str]) -> Answer:
        """Return the answer over the union of *default*; GRAPH reaches *named*. Raises InvalidRequest if malformed."""
        try:
            return plain(self._open.query(text, default_graph=_nodes(default), named_graphs=_nodes(named)))
        except SyntaxError as error:
            raise malformed(str(error)) from error

    def close(self) -> None:
        """Flush the store and release the folder."""
        if self._store is not None:
            self._store.flush()
            self._store = None

    @property
    def _open(self) -> ox.Store:
        if self._store is None:
            raise InvalidRequest("this store was closed", hint="open it again")
        return self._store


def _open_store(path: str | PathLike[str] | None) -> ox.Store:
    if path is None:
        return ox.Store()
    try:
        return ox.Store(path)
    except OSError as error:
        if "lock" in str(error).lower():
            hint = "close it there, or put a SPARQL server before it and use the backend 'sparql'"
            raise Busy(
                f"{path} is open already; only one process at a time can open a store on disk", hint=hint
            ) from error
        raise _failed(error) from error


def _failed(error: OSError) -> JidomemError:
    return Failed(f"the store could not be used: {error}", hint="check that folder, and try again")


def _nodes(graphs: Sequence[str]) -> list[Any]:
    return [ox.NamedNode(graph) for graph in graphs]


ROWS, GRAPH = "application/sparql-results+json", "application/n-triples"


class RemoteStore:
    """The graphs of a SPARQL 1.1 store, which other programs may use as well."""

    def __init__(self, endpoint: str, update_endpoint: str | None) -> None:
        """Query *endpoint*; update at *update_endpoint*, else at `/update` beside `/query`, else at *endpoint*."""
        self._query = SparqlEndpoint.of(endpoint)
        self._update = SparqlEndpoint.of(update_endpoint) if update_endpoint else _update_endpoint(self._query)

    def graphs(self) -> list[str]:
        """Return the graphs that have triples; the store scans all its triples for this."""
        answer = self.ask("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", [], [])
        return [plain_value(row[0]) for row in getattr(answer, "rows", ())]

    def insert(self, graph: str, triples: Iterable[Triple]) -> None:
        """Add *triples* to *graph* in one update."""
        rows = "\n".join(map(ntriples_line, triples))
        self._change(f"INSERT DATA {{ GRAPH <{graph}> {{\n{rows}\n}} }}")

    def clear(self, graph: str) -> None:
        """Delete *graph*."""
        self._change(f"DROP SILENT GRAPH <{graph}>")

    def ask(self, text: str, default: Sequence[str], named: Sequence[str]) -> Answer:
        """Return the answer over the union of *default*; GRAPH reaches *named*.

        Raises Failed if the store does not answer, InvalidRequest `malformed_query` if it cannot parse *text*.
        """
        triples = sparql.first_word(sparql.check(text)) in ("CONSTRUCT", "DESCRIBE")
        try:
            data = self._query.ask(text, GRAPH if triples else ROWS, default, named)
        except EndpointError as refusal:
            raise _refused(self._query, refusal) from refusal
        try:
            if triples:
                quads = ox.parse(data, format=ox.RdfFormat.N_TRIPLES)
                return tuple(dict.fromkeys((str(q.subject), str(q.predicate), str(q.object)) for q in quads))
            return plain(ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON))
        except (SyntaxError, ValueError) as error:
            raise self._query.unavailable(f"answered with what cannot be read: {error}") from error

    def close(self) -> None:
        """Close the idle connections."""
        self._query.close()
        self._update.close()

    def _change(self, text: str) -> None:
        try:
            self._update.change(text)
        except EndpointError as refusal:
            raise _refused(self._update, refusal) from refusal


def _update_endpoint(query: SparqlEndpoint) -> SparqlEndpoint:
    path = query.update_path()
    return replace(query, path=path, shown=query.shown.removesuffix(query.path) + path)


def _refused(store: SparqlEndpoint, refusal: EndpointError) -> JidomemError:
    """Return InvalidRequest for a query that was refused, Failed for any other error of the store."""
    if refusal.status == 400:
        detail = f"{store.shown} refused it: {refusal.words}"
        return InvalidRequest(detail, hint="correct the SPARQL it names", code="malformed_query")
    return store.unavailable(f"answered {refusal.status}: {refusal.words}")


Rows = list[dict[str, Value]]
#: The result of `query`: rows (SELECT), a boolean (ASK), or triples that `insert` accepts (CONSTRUCT, DESCRIBE).
QueryResult = Rows | bool | list[tuple[Term, Term, Term | Literal]]

DEFAULT = "default"
BACKENDS = ("memory", "disk", "sparql")
_FOREIGN = re.compile(r"https?://jidoka\.ai/graphs/(.+)")


class Backend(Protocol):
    """The storage of the graphs; each insert is atomic for readers."""

    def graphs(self) -> list[str]:
        """Return the graphs that have triples."""

    def insert(self, graph: str, triples: Iterable[Triple]) -> None:
        """Add *triples* to *graph*."""

    def clear(self, graph: str) -> None:
        """Delete *graph*."""

    def ask(self, text: str, default: Sequence[str], named: Sequence[str]) -> Answer:
        """Return the answer over the union of *default*; GRAPH reaches *named*."""

    def close(self) -> None:
        """Release all resources."""


class TripleStore:
    """Graphs of triples, without validation or history.

    A graph is named by its IRI, or by one of `default context codebase history system` (or the long names, such as
    `long-term-context`), which stand for `<base>graphs/<long name>`. Any number of threads may share a store.
    """

    def __init__(
        self,
        backend: OneOf["memory", "disk", "sparql"] = "memory",
        *,
        path: str | PathLike[str] | None = None,
        endpoint: str | None = None,
        update_endpoint: str | None = None,
        base: str = BASE,
    ) -> None:
        """Open a store: in memory, on disk at the folder *path*, or the SPARQL 1.1 store at *endpoint*.

        Updates go to *update_endpoint*; without it to `/update` beside an endpoint that ends in `/query`, else to the
        endpoint itself. Raises InvalidRequest for an option that is missing or that the backend does not have,
        Busy for a folder that another process has open, Failed for one that cannot be used.
        """
        if backend not in BACKENDS:
            raise InvalidRequest(f"there is no backend {backend!r}", hint=f"use one of: {', '.join(BACKENDS)}")
        _check_options(backend, "disk", path=path)
        _check_options(backend, "sparql", endpoint=endpoint, update_endpoint=update_endpoint)
        if to_iri(base) is None or not base.endswith(("/", "#")):
            raise InvalidRequest(
                f"base={base!r} is not an IRI that ends in / or #", hint=f"leave it out, or give {BASE!r}"
            )
        self.base = base
        self._graphs = {name: f"{base}graphs/{long}" for name, long in {DEFAULT: DEFAULT, **GRAPHS}.items()}
        self._backend: Backend = RemoteStore(endpoint, update_endpoint) if endpoint else LocalStore(path)

    def insert(self, triples: Iterable[Statement], graph: str = DEFAULT) -> OneOf[True]:
        """Add *triples* to *graph*, and return True; a reader sees all of them or none.

        Each is (subject, predicate, object) by the rule of `jidomem.rdf.statements`; triples that exist are ignored.
        Raises InvalidRequest for an invalid statement, NotFound for an unknown graph name; then, and if the store
        fails, nothing was inserted.
        """
        return self.insert_triples(to_triples(triples), self.graph_iri(graph))

    def insert_triples(self, rows: Collection[Triple], graph: str) -> OneOf[True]:
        """Add *rows* to the graph of that IRI, and return True."""
        if rows:
            self._backend.insert(graph, rows)
        return True

    def query(self, text: str, *, graphs: Iterable[str] | None = None) -> QueryResult:
        """Return the answer to a SPARQL query over the union of *graphs* (default: all): rows, a boolean or triples.

        A value in a row is a plain Python value, None where unbound. GRAPH and FROM name single graphs. Raises
        PolicyDenied for an update or SERVICE, TooLarge, InvalidRequest for a malformed query.
        """
        return shown(self.answer(text, None if graphs is None else [self.graph_iri(name) for name in graphs]))

    def answer(self, text: str, graphs: Sequence[str] | None = None) -> Answer:
        """Return the answer of `query` as terms; *graphs* are IRIs."""
        text = sparql.without_service_prefixes(text)
        code = _checked(text)
        default, named = dataset(code, self.graphs() if graphs is None else graphs)
        return self._backend.ask(text, default, named)

    def clear_graph(self, graph: str = DEFAULT) -> OneOf[True]:
        """Delete all triples of *graph*, and return True."""
        self._backend.clear(self.graph_iri(graph))
        return True

    def graphs(self) -> list[str]:
        """Return the IRIs of the graphs that have triples, and of the default one, sorted."""
        return sorted({*self._backend.graphs(), self.graph_iri(DEFAULT)})

    def graph_iri(self, graph: str) -> str:
        """Return the IRI of a graph from its name or IRI; raises NotFound, with the nearest names, otherwise."""
        return named_graph(graph, self._graphs, any_iri=True)

    def close(self) -> None:
        """Close the store; one on disk is durable then."""
        self._backend.close()

    def __enter__(self) -> TripleStore:
        """Return the open store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()


def named_graph(graph: str, graphs: Mapping[str, str], *, any_iri: bool = False) -> str:
    """Return the IRI of *graph*: one of *graphs* (short name -> IRI), by its short or long name or its IRI.

    `http://jidoka.ai/graphs/<name>` stands for the name; with *any_iri* an IRI may be any. Raises NotFound, with the
    nearest names, for anything else.
    """
    known = dict(graphs) | {local_name(iri): iri for iri in graphs.values()}
    given = graph[1:-1] if isinstance(graph, str) and to_iri(graph) == graph else graph
    foreign = _FOREIGN.fullmatch(given) if isinstance(given, str) else None
    name = foreign[1] if foreign else given
    if isinstance(name, str) and name in known:
        return known[name]
    if (
        isinstance(name, str)
        and not foreign
        and (iri := to_iri(name))
        and (any_iri or plain_value(iri) in known.values())
    ):
        return plain_value(iri)
    near = nearest_names(name, known, 2)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}"
    raise NotFound(f"there is no graph {graph!r}", hint=hint)


def shown(answer: Answer) -> QueryResult:
    """Return *answer* as plain Python values."""
    if isinstance(answer, Solutions):
        return [dict(zip(answer.variables, map(to_value, row), strict=True)) for row in answer.rows]
    return answer if isinstance(answer, bool) else [as_statement(triple) for triple in answer]


def _check_options(backend: str, needs: str, **options: object) -> None:
    """Raise InvalidRequest unless the first of *options* is given for the backend that *needs* them, and only there."""
    first = next(iter(options))
    example = {"path": 'TripleStore("disk", path="store")'}.get(
        first, 'TripleStore("sparql", endpoint="http://localhost:7878/query")'
    )
    if backend == needs and not options[first]:
        raise InvalidRequest(f"the backend {backend!r} needs {_article(first)}: {first}=...", hint=example)
    for name, value in options.items():
        if backend != needs and value is not None:
            raise InvalidRequest(f"the backend {backend!r} does not use {name}", hint=f"leave it out, or: {example}")


def _article(option: str) -> str:
    return f"{'an' if option[0] in 'aeiou' else 'a'} {option}"


def _checked(text: str) -> tuple[sparql.SparqlToken, ...]:
    """Return the tokens of a query; the error for an update names the methods that change a store."""
    try:
        return sparql.check(text)
    except PolicyDenied as refusal:
        if refusal.code == "update_refused":
            refusal.hint = "store.insert(triples, graph) adds, store.clear_graph(graph) empties"
        raise


class DerivedStore:
    """The graphs of one project of a root, read-only."""

    def __init__(self, index: OxigraphIndex, graphs: Sequence[str], catch_up: Callable[[], object]) -> None:
        """Query *graphs* of *index*, each time after *catch_up* has brought it up to date with the journal."""
        self._index = index
        self._graphs = tuple(graphs)
        self._catch_up = catch_up

    def answer(self, text: str, graphs: Sequence[str] | None = None) -> Answer:
        """Return the answer to *text* over the union of *graphs*; raises the errors of the reader for raw SPARQL."""
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        default, named = dataset(code, self._graphs if graphs is None else graphs)
        self._catch_up()
        return self._index.query(text, graphs=default, named=named)

    def query(self, text: str) -> QueryResult:
        """Return the answer to a SPARQL query over all graphs of the project: rows, a boolean or triples."""
        return shown(self.answer(text))

    def insert(self, triples: Iterable[Statement], graph: str = "default") -> NoReturn:
        """Raise PolicyDenied `index_is_derived`."""
        raise _derived("an insert")

    def clear_graph(self, graph: str = "default") -> NoReturn:
        """Raise PolicyDenied `index_is_derived`."""
        raise _derived("a clear")


def _derived(what: str) -> PolicyDenied:
    return PolicyDenied(
        f"a root's index is built from its journal: {what} would be lost, and is refused",
        hint="memory.long_term(project).insert(statements, graph) writes to the journal",
        code="index_is_derived",
    )
