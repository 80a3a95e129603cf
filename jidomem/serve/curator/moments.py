"""From when to when there is something to look back at."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from jidomem.moments import parse_moment, stamp
from jidomem.serve.curator.asked import Asked
from jidomem.vocab import graph_iri

#: Each branch that was begun apart has a first commit of its own.
_FIRST = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?at WHERE { GRAPH <%s> { ?commit jido:position 1 ; jido:recordedAt ?at } } ORDER BY ?at"""


class Span(NamedTuple):
    """The first and the last moment, and the one that is shown, in whole seconds since 1970."""

    first: int
    last: int
    at: int


def span(asked: Asked) -> Span:
    """Return from when to when something was recorded, as the first commits and the newest one say."""
    newest = asked.memory.catch_up(asked.project).recorded_at
    rows = asked.memory.reader.select(asked.project, _FIRST % graph_iri(asked.project))
    first = min((stamp(row["at"]) for row in rows), default=newest)
    if not (first and newest):
        return Span(0, 0, 0)
    at = _seconds(newest) if asked.as_of is None else _seconds(asked.as_of)
    return Span(_seconds(first), _seconds(newest), min(max(at, _seconds(first)), _seconds(newest)))


def _seconds(moment: str) -> int:
    at = parse_moment(moment)
    assert at is not None
    return ceil(at.timestamp())
