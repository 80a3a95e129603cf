"""What a store takes in at once: commits, and the mark of how far their graph reaches with them, as one TriG text.

Terms as the store's own objects, and the marks that a store holds.

What a query answers: as values, in the formats it may be serialised in, and why it could not be read.

Answers written by the engine, within a stated number of rows and bytes: never a silently short one.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

import pyoxigraph as ox

from jidomem.errors import InvalidRequest, TooLarge
from jidomem.journal.commit import Commit, advance
from jidomem.rdf.terms import Term, Triple, is_iri, literal, ntriples_line, parse_literal, plain_value
from jidomem.rdf.vocab import JIDO, ONTOLOGY_GRAPH, PREFIXES, PROV, RDFS, XSD
from jidomem.records.active import lacking
from jidomem.records.intent import CommitRef, Version

#: The graph of the marks, and what a mark says of a graph; no query is given that graph.
MARKS = "urn:jidomem:index:marks"
HOLDS = "urn:jidomem:index:holds"
_TOPIC = b"jido:topic "


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a graph reaches: of how many commits it is made, at which version of its stream, and what cleared it.

    Of `cleared`, and of all that came before it, nothing is held.
    """

    commits: int = 0
    version: Version = Version()
    cleared: Version = Version()

    def after(self, commits: Iterable[Commit]) -> Watermark:
        """Return the mark once *commits*, which follow from this one, are in."""
        added = list(commits)
        return Watermark(self.commits + len(added), advance(self.version, added), self.cleared)

    @property
    def term(self) -> Term:
        """Return the mark as a literal."""
        heads, cleared = (
            [(head.recorded_at, head.id, head.position) for head in version.heads]
            for version in (self.version, self.cleared)
        )
        return literal(json.dumps([self.commits, heads, cleared], separators=(",", ":")))

    @classmethod
    def of(cls, term: Term) -> Watermark:
        """Return the mark that a literal says.

        >>> Watermark.of(Watermark().term) == Watermark()
        True
        """
        commits, heads, cleared = json.loads(plain_value(term))
        return cls(commits, *(Version.of(CommitRef(*head) for head in of) for of in (heads, cleared)))


def trig(graph: str, commits: Iterable[Commit], mark: Watermark | None = None) -> bytes:
    """Return *commits*, at least one, in *graph*, with *mark* where it is to be set by the same write.

    A commit's own document is Turtle of one form, its prefixes before the first empty line, so it is put together
    from those as they are; none of its triples passes through Python again. The conflict keys that a commit of an
    earlier version lacks follow it.
    """
    head, bodies = b"", [b"\n<", graph.encode(), b"> {\n"]
    for commit in commits:
        head, _, body = commit.data.partition(b"\n\n")
        bodies.append(body)
        if _TOPIC in body:
            bodies += [f"\n{ntriples_line(triple)}".encode() for triple in lacking(commit.triples)]
    said = f"<{MARKS}> {{ <{graph}> <{HOLDS}> {mark.term} }}\n" if mark else ""
    return b"".join([head, *bodies, b"}\n", said.encode()])


_STRING = XSD + "string"


def marks(store: Any) -> dict[str, Watermark]:
    """Return how far each graph of a store reaches; of two marks, left by a crash between, the later one counts."""
    answer: dict[str, Watermark] = {}
    for quad in store.quads_for_pattern(None, ox.NamedNode(HOLDS), None, ox.NamedNode(MARKS)):
        if quad.subject.value != ONTOLOGY_GRAPH:
            mark = Watermark.of(str(quad.object))
            if mark.commits >= answer.get(quad.subject.value, mark).commits:
                answer[quad.subject.value] = mark
    return answer


@lru_cache(maxsize=512)  # properties, agents, sessions and graphs are asked about again and again
def named(term: Term) -> Any:
    """Return the pyoxigraph object of an IRI."""
    return ox.NamedNode(plain_value(term))


def node(term: Term) -> Any:
    """Return the pyoxigraph object of a term."""
    if is_iri(term):
        return named(term)
    if term.startswith("_:"):
        return ox.BlankNode(term[2:])
    text, datatype, language = parse_literal(term)
    if language:
        return ox.Literal(text, language=language)
    return ox.Literal(text) if datatype == _STRING else ox.Literal(text, datatype=ox.NamedNode(datatype))


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


def plain(answer: Any) -> Answer:
    """Return the answer without store objects."""
    if isinstance(answer, ox.QueryBoolean):
        return bool(answer)
    if isinstance(answer, ox.QueryTriples):
        return tuple((str(t.subject), str(t.predicate), str(t.object)) for t in answer)
    variables = tuple(variable.value for variable in answer.variables)
    return Solutions(variables, tuple(tuple(None if v is None else str(v) for v in row) for row in answer))


def solutions(data: bytes) -> Solutions:
    """Return the rows in *data*, an answer to a SELECT written as JSON."""
    answer = plain(ox.parse_query_results(data, ox.QueryResultsFormat.JSON))
    assert isinstance(answer, Solutions)
    return answer


def write_triples(triples: Iterable[Triple], form: str, prefixes: dict[str, str]) -> bytes:
    """Return *triples* as bytes in *form*, one of GRAPH_FORMATS."""
    answer = (ox.Triple(*map(node, triple)) for triple in triples)
    data = ox.serialize(answer, format=GRAPH_FORMATS[form], prefixes=prefixes)
    assert data is not None
    return data


def malformed(message: str) -> InvalidRequest:
    """Return the refusal of a query that the engine could not parse, with the place it names."""
    place = _PLACE.search(message)
    what = " ".join(_PLACE.sub("", message, count=1).split())[:200]
    where = f"line {place[1]} column {place[2]}: " if place else ""
    if "Prefix not found" in what:
        declared = " ".join(f"PREFIX {name}: <{namespace}>" for name, namespace in PREFIXES.items())
        detail, hint = f"{where}a prefix is not declared", f"begin the query with those it uses of: {declared}"
        return InvalidRequest(detail, hint=hint, code="malformed_query")
    return InvalidRequest(f"{where}{what}", hint="correct the SPARQL at that place", code="malformed_query")


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How many rows, or triples, and bytes an answer may have."""

    rows: int = 100_000
    size: int = 64 * 1024 * 1024


_PREFIXES = {"jido": JIDO, "prov": PROV, "rdfs": RDFS, "xsd": XSD}
#: What stands at least once a row; in JSON and CSV it may stand in a text, too.
_ROW_MARKS = {"json": b"},{", "xml": b"<result>", "csv": b"\n", "tsv": b"\n"}


class Sink(io.BytesIO):
    """A file that refuses to grow beyond *most* bytes."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def write(self, piece: Any) -> int:
        """Take in *piece*; raises TooLarge `result_too_large` where that is too much."""
        if self.tell() + len(piece) > self._most:
            raise too_large(f"{self._most:,} bytes")
        return super().write(piece)


def write_result(answer: Any, rows_as: str, graph_as: str, within: AnswerLimits) -> Serialized:
    """Return what was found as bytes: rows and truths in *rows_as*, else *graph_as*; a truth as JSON for CSV and TSV.

    Raises TooLarge above the rows, or triples, and bytes it may have.
    """
    if isinstance(answer, ox.QueryBoolean):
        form = "json" if rows_as in ("csv", "tsv") else rows_as
        return Serialized("ask", answer.serialize(format=ROW_FORMATS[form]) or b"")
    if isinstance(answer, ox.QuerySolutions):
        return Serialized("select", rows(answer, rows_as, ROW_FORMATS[rows_as], within))
    return Serialized("graph", triples(answer, GRAPH_FORMATS[graph_as], within))


def rows(answer: Any, form: str, engine_form: Any, within: AnswerLimits) -> bytes:
    """Return solutions as bytes; raises TooLarge above the rows and bytes they may have."""
    sink = Sink(within.size)
    answer.serialize(sink, format=engine_form)
    data = sink.getvalue()
    if data.count(_ROW_MARKS[form]) >= within.rows and _count(data, form) > within.rows:
        raise too_large(f"{within.rows:,} rows")
    return data


def _count(data: bytes, form: str) -> int:
    """Return how many rows *data* has."""
    if form == "json":
        return len(json.loads(data)["results"]["bindings"])
    if form == "csv":
        return sum(1 for _ in csv.reader(io.StringIO(data.decode(), newline=""))) - 1
    return data.count(_ROW_MARKS[form]) - (form == "tsv")


def triples(answer: Any, engine_form: Any, within: AnswerLimits) -> bytes:
    """Return triples as bytes; raises TooLarge above the number and bytes they may have."""
    rows_read = list(islice(answer, within.rows + 1))
    if len(rows_read) > within.rows:
        raise too_large(f"{within.rows:,} triples")
    sink = Sink(within.size)
    ox.serialize(rows_read, sink, format=engine_form, prefixes=_PREFIXES)
    return sink.getvalue()


def too_large(limit: str) -> TooLarge:
    """Return the refusal of an answer of more than *limit*."""
    return TooLarge(
        f"the answer has more than {limit}", hint="ask for less: add LIMIT, or a FILTER", code="result_too_large"
    )
