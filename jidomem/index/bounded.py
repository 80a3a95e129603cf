"""Answers written by the engine, within a stated number of rows and bytes: never a silently short one."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyoxigraph as ox

from jidomem.errors import TooLarge
from jidomem.index.answers import GRAPH_FORMATS, ROW_FORMATS, Serialized
from jidomem.vocab import JIDO, PROV, RDFS, XSD


@dataclass(frozen=True, slots=True)
class Bounds:
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


def written(found: Any, rows_as: str, graph_as: str, within: Bounds) -> Serialized:
    """Return what was found as bytes: rows and truths in *rows_as*, else *graph_as*; a truth as JSON for CSV and TSV.

    Raises TooLarge above the rows, or triples, and bytes it may have.
    """
    if isinstance(found, ox.QueryBoolean):
        form = "json" if rows_as in ("csv", "tsv") else rows_as
        return Serialized("ask", found.serialize(format=ROW_FORMATS[form]) or b"")
    if isinstance(found, ox.QuerySolutions):
        return Serialized("select", rows(found, rows_as, ROW_FORMATS[rows_as], within))
    return Serialized("graph", triples(found, GRAPH_FORMATS[graph_as], within))


def rows(found: Any, form: str, engine_form: Any, within: Bounds) -> bytes:
    """Return solutions as bytes; raises TooLarge above the rows and bytes they may have."""
    sink = Sink(within.size)
    found.serialize(sink, format=engine_form)
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


def triples(found: Any, engine_form: Any, within: Bounds) -> bytes:
    """Return triples as bytes; raises TooLarge above the number and bytes they may have."""
    taken = list(islice(found, within.rows + 1))
    if len(taken) > within.rows:
        raise too_large(f"{within.rows:,} triples")
    sink = Sink(within.size)
    ox.serialize(taken, sink, format=engine_form, prefixes=_PREFIXES)
    return sink.getvalue()


def too_large(limit: str) -> TooLarge:
    """Return the refusal of an answer of more than *limit*."""
    return TooLarge(
        f"the answer has more than {limit}", hint="ask for less: add LIMIT, or a FILTER", code="result_too_large"
    )
