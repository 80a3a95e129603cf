"""What a query answers: as values, in the formats it may be serialised in, and why it could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyoxigraph as ox

from jidomem.errors import InvalidRequest
from jidomem.index.nodes import node
from jidomem.terms import Term, Triple

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


def plain(found: Any) -> Answer:
    """Return the answer without store objects."""
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    if isinstance(found, ox.QueryTriples):
        return tuple((str(t.subject), str(t.predicate), str(t.object)) for t in found)
    variables = tuple(variable.value for variable in found.variables)
    return Solutions(variables, tuple(tuple(None if v is None else str(v) for v in row) for row in found))


def solutions(data: bytes) -> Solutions:
    """Return the rows in *data*, an answer to a SELECT written as JSON."""
    found = plain(ox.parse_query_results(data, ox.QueryResultsFormat.JSON))
    assert isinstance(found, Solutions)
    return found


def written(triples: Iterable[Triple], form: str, prefixes: dict[str, str]) -> bytes:
    """Return *triples* as bytes in *form*, one of GRAPH_FORMATS."""
    found = (ox.Triple(*map(node, triple)) for triple in triples)
    data = ox.serialize(found, format=GRAPH_FORMATS[form], prefixes=prefixes)
    assert data is not None
    return data


def malformed(message: str) -> InvalidRequest:
    """Return the refusal of a query that the engine could not parse, with the place it names."""
    place = _PLACE.search(message)
    what = " ".join(_PLACE.sub("", message, count=1).split())[:200]
    where = f"line {place[1]} column {place[2]}: " if place else ""
    return InvalidRequest(f"{where}{what}", hint="correct the SPARQL at that place", code="malformed_query")
