"""Query answers: their values, serialisation formats and size limits, and the error of a malformed query.

An answer above the limits is refused, never cut short.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import pyoxigraph as ox

from jidomem.errors import InvalidRequest, TooLarge
from jidomem.rdf.terms import Term, Triple
from jidomem.rdf.vocab import JIDO, PREFIXES, PROV, RDFS, XSD

T = TypeVar("T")
_PLACE = re.compile(r"(?:error )?at (\d+):(\d+): ?")


class Solutions(NamedTuple):
    """The rows of a SELECT: the variables, and for each row a term, or None where unbound, in their order."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]


#: The answer of a query: rows (SELECT), a boolean (ASK) or triples (CONSTRUCT, DESCRIBE).
Answer = Solutions | bool | tuple[Triple, ...]


#: The formats of rows and booleans, and those of triples.
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


class SerializedAnswer(NamedTuple):
    """An answer as bytes, in the format requested for its kind."""

    kind: Literal["select", "ask", "graph"]
    data: bytes


def _freed(read: Callable[..., T]) -> Callable[..., T]:
    """Free the engine's answer, the first argument of *read*, also if that fails: only the thread that asked may.

    The frames of an error, which another thread may free, do not have it.
    """

    @wraps(read)
    def read_and_free(answer: Any, *values: Any) -> T:
        try:
            return read(answer, *values)
        except BaseException as error:
            error.__traceback__ = None
            raise
        finally:
            del answer

    return read_and_free


@_freed
def plain(answer: Any) -> Answer:
    """Return the answer of the engine as plain values."""
    if isinstance(answer, ox.QueryBoolean):
        return bool(answer)
    if isinstance(answer, ox.QueryTriples):
        return tuple((str(t.subject), str(t.predicate), str(t.object)) for t in answer)
    variables = tuple(variable.value for variable in answer.variables)
    return Solutions(variables, tuple(tuple(None if v is None else str(v) for v in row) for row in answer))


def solutions(data: bytes) -> Solutions:
    """Parse *data*, the answer to a SELECT as JSON."""
    answer = plain(ox.parse_query_results(data, ox.QueryResultsFormat.JSON))
    assert isinstance(answer, Solutions)
    return answer


def malformed(message: str) -> InvalidRequest:
    """Return the error for a query that the engine could not parse, with line and column if the engine names them."""
    place = _PLACE.search(message)
    what = " ".join(_PLACE.sub("", message, count=1).split())[:200]
    where = f"line {place[1]} column {place[2]}: " if place else ""
    if "Prefix not found" in what:
        declared = " ".join(f"PREFIX {name}: <{namespace}>" for name, namespace in PREFIXES.items())
        detail, hint = f"{where}a prefix is not declared", f"begin the query with those it uses of: {declared}"
        return InvalidRequest(detail, hint=hint, code="malformed_query")
    return InvalidRequest(f"{where}{what}", hint="correct the SPARQL at that place", code="malformed_query")


class AnswerLimits(NamedTuple):
    """The most rows, or triples, and bytes of an answer."""

    rows: int = 100_000
    size: int = 64 * 1024 * 1024


_PREFIXES = {"jido": JIDO, "prov": PROV, "rdfs": RDFS, "xsd": XSD}
#: A text that occurs at least once a row; in JSON and CSV it may also occur in a value.
_ROW_MARKS = {"json": b"},{", "xml": b"<result>", "csv": b"\n", "tsv": b"\n"}


class LimitedFile(io.BytesIO):
    """A file that refuses to grow beyond *most* bytes."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def write(self, piece: Any) -> int:
        """Append *piece*; raises TooLarge `result_too_large` if the file would exceed its limit."""
        if self.tell() + len(piece) > self._most:
            raise too_large(f"{self._most:,} bytes")
        return super().write(piece)


@_freed
def write_result(answer: Any, rows_as: str, graph_as: str, within: AnswerLimits) -> SerializedAnswer:
    """Serialise an answer: rows and booleans as *rows_as*, else *graph_as*; booleans as JSON instead of CSV or TSV.

    Raises TooLarge above the rows, or triples, and bytes of *within*.
    """
    if isinstance(answer, ox.QueryBoolean):
        form = "json" if rows_as in ("csv", "tsv") else rows_as
        return SerializedAnswer("ask", answer.serialize(format=ROW_FORMATS[form]) or b"")
    if isinstance(answer, ox.QuerySolutions):
        return SerializedAnswer("select", _rows(answer, rows_as, ROW_FORMATS[rows_as], within))
    return SerializedAnswer("graph", _triples(answer, GRAPH_FORMATS[graph_as], within))


def _rows(answer: Any, form: str, engine_form: Any, within: AnswerLimits) -> bytes:
    """Serialise solutions; raises TooLarge above the rows and bytes of *within*."""
    sink = LimitedFile(within.size)
    answer.serialize(sink, format=engine_form)
    data = with_returns(sink.getvalue(), engine_form)
    if data.count(_ROW_MARKS[form]) >= within.rows and _count(data, form) > within.rows:
        raise too_large(f"{within.rows:,} rows")
    return data


def _count(data: bytes, form: str) -> int:
    if form == "json":
        return len(json.loads(data)["results"]["bindings"])
    if form == "csv":
        return sum(1 for _ in csv.reader(io.StringIO(data.decode(), newline=""))) - 1
    return data.count(_ROW_MARKS[form]) - (form == "tsv")


def _triples(answer: Any, engine_form: Any, within: AnswerLimits) -> bytes:
    """Serialise triples; raises TooLarge above the number and bytes of *within*."""
    rows_read = list(islice(answer, within.rows + 1))
    if len(rows_read) > within.rows:
        raise too_large(f"{within.rows:,} triples")
    sink = LimitedFile(within.size)
    ox.serialize(rows_read, sink, format=engine_form, prefixes=_PREFIXES)
    return with_returns(sink.getvalue(), engine_form)


def with_returns(data: bytes, engine_form: Any) -> bytes:
    """Return *data* with carriage returns as character references in XML, whose parsers make a raw one a line feed."""
    is_xml = engine_form in (ox.QueryResultsFormat.XML, ox.RdfFormat.RDF_XML)
    return data.replace(b"\r", b"&#xD;") if is_xml else data


def too_large(limit: str) -> TooLarge:
    """Return the error for an answer of more than *limit*."""
    return TooLarge(
        f"the answer has more than {limit}", hint="ask for less: add LIMIT, or a FILTER", code="result_too_large"
    )
