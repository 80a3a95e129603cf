"""The index in memory: an Oxigraph store that holds the commits of many graphs and answers SPARQL over some of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, Protocol

import pyoxigraph as ox

from jidomem.errors import InvalidRequest
from jidomem.terms import Term, Triple, bare, is_iri, line, parts
from jidomem.vocab import ONTOLOGY_GRAPH

_PLACE = re.compile(r"(?:error )?at (\d+):(\d+): ?")


@dataclass(frozen=True, slots=True)
class Solutions:
    """The rows of a SELECT: the variables, and for each row a term, or None where unbound, in their order."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]


#: What a query answers: rows (SELECT), a truth (ASK) or triples (CONSTRUCT, DESCRIBE).
Answer = Solutions | bool | tuple[Triple, ...]


#: How rows (and the truth of an ASK) and triples may be serialised.
ROW_FORMATS: Mapping[str, Any] = {
    "json": ox.QueryResultsFormat.JSON,
    "xml": ox.QueryResultsFormat.XML,
    "csv": ox.QueryResultsFormat.CSV,
    "tsv": ox.QueryResultsFormat.TSV,
}
GRAPH_FORMATS: Mapping[str, Any] = {
    "turtle": ox.RdfFormat.TURTLE,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
    "trig": ox.RdfFormat.TRIG,
    "nquads": ox.RdfFormat.N_QUADS,
}


@dataclass(frozen=True, slots=True)
class Serialized:
    """An answer as bytes, in the format asked for its kind."""

    kind: Literal["select", "ask", "graph"]
    data: bytes


class Observer(Protocol):
    """Something derived from the index that is told of every change, under the index's lock: it must not wait.

    A call comes after the store has changed and before whoever brought the index up to date may read; a reader that
    asked for nothing newer may still see the store ahead of what is derived.
    """

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Take in that *triples*, of whole commits, were added to *graph*, some of which may have been there."""

    def reset(self, graph: str) -> None:
        """Forget all that is known of *graph*: it has other content now, to be read from the index when needed."""


class OxigraphIndex:
    """An index that lives as long as the process; any thread may read while another applies.

    `observers` are told of every change of a stream's graph; more may be added before the first one.
    """

    def __init__(self) -> None:
        self.observers: list[Observer] = []
        self._store = ox.Store()
        self._applied: dict[str, set[str]] = {}
        self._lock = Lock()

    def apply(self, graph: str, commit_id: str, triples: Iterable[Triple]) -> None:
        """Add one commit's triples to *graph*, all at once; a commit that was applied before adds nothing."""
        with self._lock:
            done = self._applied.setdefault(graph, set())
            if commit_id not in done:
                added = frozenset(triples)
                self._load(graph, added)
                done.add(commit_id)
                for observer in self.observers:
                    observer.applied(graph, added)

    def applied(self, graph: str) -> frozenset[str]:
        """Return the ids of the commits *graph* holds."""
        with self._lock:
            return frozenset(self._applied.get(graph, ()))

    def reset(self, graph: str, commits: Mapping[str, Iterable[Triple]]) -> None:
        """Make *commits*, id -> triples, the whole content of *graph*; a reader sees what was or what is, whole."""
        rows = (line(triple) for triples in commits.values() for triple in triples)
        with self._lock:
            self._replace(graph, rows)
            self._applied[graph] = set(commits)
            for observer in self.observers:
                observer.reset(graph)

    def put_ontology(self, triples: Iterable[Triple]) -> None:
        """Make *triples* the whole content of the ontology graph, in one step."""
        with self._lock:
            self._replace(ONTOLOGY_GRAPH, map(line, triples))

    def triples(
        self,
        graph: str,
        subject: Term | None = None,
        predicate: Term | None = None,
        object: Term | None = None,  # noqa: A002 - the third part of a triple has no other name
    ) -> Iterator[Triple]:
        """Return the triples of *graph* that match, as they are at this moment."""
        s, p, o = (None if term is None else _node(term) for term in (subject, predicate, object))
        quads = self._store.quads_for_pattern(s, p, o, ox.NamedNode(graph))
        return iter([(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads])

    def query(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
    ) -> Answer:
        """Return the answer over the union of *graphs*; GRAPH reaches *named*, which are the same unless given.

        Raises InvalidRequest `malformed_query`, with line and column, when *sparql* does not parse.
        """
        return plain(self._query(sparql, graphs, named, bindings))

    def serialized(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
        rows_as: str = "json",
        graph_as: str = "turtle",
    ) -> Serialized:
        """Return what `query` answers as bytes, written by the engine: rows and truths in *rows_as*, else *graph_as*.

        *rows_as* is one of ROW_FORMATS, *graph_as* one of GRAPH_FORMATS. A truth is not written as CSV or TSV, which
        have no form for it: it is then JSON. Raises InvalidRequest `malformed_query` as `query` does.
        """
        found = self._query(sparql, graphs, named, bindings)
        if isinstance(found, ox.QueryTriples):
            return Serialized("graph", found.serialize(format=GRAPH_FORMATS[graph_as]) or b"")
        if isinstance(found, ox.QuerySolutions):
            return Serialized("select", found.serialize(format=ROW_FORMATS[rows_as]) or b"")
        form = "json" if rows_as in ("csv", "tsv") else rows_as
        return Serialized("ask", found.serialize(format=ROW_FORMATS[form]))

    def _query(
        self, sparql: str, graphs: Sequence[str], named: Sequence[str] | None, bindings: Mapping[str, Term] | None
    ) -> Any:
        """Return what the engine answers; an iterator must be used up by the thread that asked."""
        try:
            return self._store.query(
                sparql,
                default_graph=[ox.NamedNode(graph) for graph in self._held(graphs)],
                named_graphs=[ox.NamedNode(graph) for graph in (graphs if named is None else named)],
                substitutions={ox.Variable(name): _node(term) for name, term in (bindings or {}).items()},
            )
        except SyntaxError as error:
            raise malformed(str(error)) from error

    def _held(self, graphs: Sequence[str]) -> list[str]:
        """Return the graphs that hold anything: every further one costs a look-up for each pattern."""
        return [graph for graph in graphs if graph in self._applied or graph == ONTOLOGY_GRAPH]

    def _replace(self, graph: str, rows: Iterable[str]) -> None:
        content = "\n".join(rows)
        self._store.update(f"DROP SILENT GRAPH <{graph}> ; INSERT DATA {{ GRAPH <{graph}> {{ {content} }} }}")

    def _load(self, graph: str, triples: Iterable[Triple]) -> None:
        document = "".join(f"{line(triple)}\n" for triple in triples).encode()
        self._store.load(document, ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(graph), lenient=True)


def _node(term: Term) -> Any:
    """Return the pyoxigraph object of a term."""
    if is_iri(term):
        return ox.NamedNode(bare(term))
    if term.startswith("_:"):
        return ox.BlankNode(term[2:])
    text, datatype, language = parts(term)
    if language:
        return ox.Literal(text, language=language)
    return ox.Literal(text, datatype=ox.NamedNode(datatype))


def plain(found: Any) -> Answer:
    """Return the answer without store objects."""
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    if isinstance(found, ox.QueryTriples):
        return tuple((str(t.subject), str(t.predicate), str(t.object)) for t in found)
    variables = tuple(variable.value for variable in found.variables)
    return Solutions(variables, tuple(tuple(None if v is None else str(v) for v in row) for row in found))


def malformed(message: str) -> InvalidRequest:
    """Return the refusal of a query that the engine could not parse, with the place it names."""
    place = _PLACE.search(message)
    what = " ".join(_PLACE.sub("", message, count=1).split())[:200]
    where = f"line {place[1]} column {place[2]}: " if place else ""
    return InvalidRequest(f"{where}{what}", hint="correct the SPARQL at that place", code="malformed_query")
