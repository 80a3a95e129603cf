"""A page of a long list: candidates in order, a few more each time, each judged by the query itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jidomem.index.listing import UNDATED, key_parts, moment_term, ticks, timed
from jidomem.query import Course
from jidomem.terms import Term, bare, iri, literal

#: The most candidates asked about at once.
MOST = 1024

Row = tuple[Term | None, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a list a page begins: at the candidate of a key, so many of whose rows were given already."""

    key: str = ""
    given: int = 0


def walk(
    course: Course,
    columns: Sequence[str],
    place: Place,
    size: int,
    candidates: Callable[[str, int], list[str] | None],
    judged: Callable[[str], Iterable[Row]],
) -> tuple[list[Row], Place | None] | None:
    """Return up to *size* rows from *place* on, and where the next page begins, if there is one.

    `candidates(start, count)` gives keys; None from it, where the order is the engine's to find, is answered by None.
    `judged(values)` gives the rows of the query, terms in the order of *columns*, for the candidates in *values*.
    """
    rows: list[Row] = []
    wanted, start = place.given + size + 1, place.key
    count = min(wanted + wanted // 8, MOST)
    while len(rows) < wanted:
        keys = candidates(start, count)
        if keys is None:
            return None
        rows += judged(_values(course, keys)) if keys else ()
        if len(keys) < count:
            break
        start, count = keys[-1] + "\0", min(count * 2, MOST)
    page, key_of = rows[place.given : place.given + size], _keys(course, columns)
    if len(rows) < wanted:
        return page, None
    following = key_of(rows[wanted - 1])
    return page, Place(following, sum(key_of(row) == following for row in rows[: wanted - 1]))


def _values(course: Course, keys: Iterable[str]) -> str:
    """Return the SPARQL that holds the query to the candidates of *keys*."""
    if course.pairs:
        rows = " ".join(f"({_pair(key)})" for key in keys)
        return f"VALUES ({' '.join(f'?{name}' for name in course.pairs)}) {{ {rows} }}"
    if course.time is None:
        return f"VALUES ?{course.variable} {{ {' '.join(map(iri, keys))} }}"
    parts = (key_parts(key, course.newest_first) for key in keys)
    pairs = " ".join(f"({moment_term(moment)} {iri(item)})" for moment, item in parts)
    return f"VALUES (?{course.time} ?{course.variable}) {{ {pairs} }}"


def _pair(key: str) -> str:
    """Return the memories and the kind that are the key of what disagrees, as SPARQL writes them.

    >>> _pair("urn:a urn:b duplicate")
    '<urn:a> <urn:b> "duplicate"'
    """
    *items, kind = key.split(" ")
    return " ".join([*map(iri, items), literal(kind)])


def _keys(course: Course, columns: Sequence[str]) -> Callable[[Row], str]:
    """Return what finds the key of a row."""
    if course.pairs:
        places = [columns.index(name) for name in course.pairs]
        return lambda row: " ".join(bare(row[place] or "") for place in places)
    at = columns.index(course.variable)
    when = columns.index(course.time) if course.time else at

    def key_of(row: Row) -> str:
        item = (row[at] or "")[1:-1]
        if course.time is None:
            return item
        moment = UNDATED if row[when] is None else ticks(row[when] or "") or 0
        return timed(moment, item, course.newest_first)

    return key_of
