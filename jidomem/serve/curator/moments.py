"""From when to when there is something to look back at."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from jidomem.index import overview
from jidomem.journal.files import Stream
from jidomem.moments import parse_moment
from jidomem.serve.curator.asked import Asked


class Span(NamedTuple):
    """The first and the last moment, and the one that is shown, in whole seconds since 1970."""

    first: int
    last: int
    at: int


def span(asked: Asked) -> Span:
    """Return from when to when memories were recorded."""
    found = asked.memory.texts.read(Stream(asked.project), overview.span)
    first, last = (0, 0) if found is None else map(_seconds, found)
    return Span(first, last, last if asked.as_of is None else min(max(_seconds(asked.as_of), first), last))


def _seconds(moment: str) -> int:
    at = parse_moment(moment)
    assert at is not None
    return ceil(at.timestamp())
