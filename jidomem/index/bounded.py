"""Answers written by the engine, within a stated number of rows and bytes: never a silently short one."""

from __future__ import annotations

import csv
import io
import json
from itertools import islice
from typing import Any

import pyoxigraph as ox

from jidomem.errors import TooLarge
from jidomem.vocab import JIDO, PROV, RDFS, XSD

MAX_ROWS = 100_000
MAX_BYTES = 64 * 1024 * 1024
_PREFIXES = {"jido": JIDO, "prov": PROV, "rdfs": RDFS, "xsd": XSD}
#: What stands at least once a row; in JSON and CSV it may stand in a text, too.
_ROW_MARKS = {"json": b"},{", "xml": b"<result>", "csv": b"\n", "tsv": b"\n"}


class Sink(io.BytesIO):
    """A file that refuses to grow beyond MAX_BYTES."""

    def write(self, piece: Any) -> int:
        """Take in *piece*; raises TooLarge `result_too_large` where that is too much."""
        if self.tell() + len(piece) > MAX_BYTES:
            raise too_large(f"{MAX_BYTES:,} bytes")
        return super().write(piece)


def rows(found: Any, form: str, engine_form: Any) -> bytes:
    """Return solutions as bytes; raises TooLarge above MAX_ROWS rows."""
    sink = Sink()
    found.serialize(sink, format=engine_form)
    data = sink.getvalue()
    if data.count(_ROW_MARKS[form]) >= MAX_ROWS and _count(data, form) > MAX_ROWS:
        raise too_large(f"{MAX_ROWS:,} rows")
    return data


def _count(data: bytes, form: str) -> int:
    """Return how many rows *data* has."""
    if form == "json":
        return len(json.loads(data)["results"]["bindings"])
    if form == "csv":
        return sum(1 for _ in csv.reader(io.StringIO(data.decode(), newline=""))) - 1
    return data.count(_ROW_MARKS[form]) - (form == "tsv")


def triples(found: Any, engine_form: Any) -> bytes:
    """Return triples as bytes; raises TooLarge above MAX_ROWS of them."""
    taken = list(islice(found, MAX_ROWS + 1))
    if len(taken) > MAX_ROWS:
        raise too_large(f"{MAX_ROWS:,} triples")
    sink = Sink()
    ox.serialize(taken, sink, format=engine_form, prefixes=_PREFIXES)
    return sink.getvalue()


def too_large(limit: str) -> TooLarge:
    """Return the refusal of an answer of more than *limit*."""
    return TooLarge(
        f"the answer has more than {limit}", hint="ask for less: add LIMIT, or a FILTER", code="result_too_large"
    )
