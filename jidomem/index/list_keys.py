"""The keys of list rows: texts whose order is the order of the rows, made of a moment and an IRI."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from jidomem.rdf.terms import Term

#: The end of an interval that nothing ended; and of one that never began.
FOREVER = 2**62
NEVER = -1
#: The time of a node that has none: before every moment, as the engine sorts what is unbound.
UNDATED = -1
_KEY_LENGTH = 16
_MOMENT = re.compile(
    r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z"\^\^<http://www.w3.org/2001/XMLSchema#dateTime>'
)
_TICK = timedelta(microseconds=1)
_START = datetime(1, 1, 1)


@lru_cache(maxsize=65536)
def ticks(term: Term) -> int | None:
    """Return the microseconds from the year 1 to a moment in UTC; None for a term that is not written as one.

    >>> ticks('"0001-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
    1000000
    """
    match = _MOMENT.fullmatch(term)
    try:
        return None if match is None else (datetime.fromisoformat(match[1]) - _START) // _TICK
    except ValueError:
        return None


def timed(moment: int, iri: str, newest_first: bool) -> str:
    """Return the key that puts *iri* in its place by time, UNDATED for none, then by its own order.

    >>> key_parts(timed(7, "urn:a", newest_first=True), newest_first=True)
    (7, 'urn:a')
    """
    return f"{FOREVER - moment if newest_first else moment:0{_KEY_LENGTH}x}{iri}"


def key_parts(key: str, newest_first: bool) -> tuple[int, str]:
    """Return the moment and the IRI of a key that `timed` made."""
    number = int(key[:_KEY_LENGTH], 16)
    return FOREVER - number if newest_first else number, key[_KEY_LENGTH:]


def moment_term(number: int) -> Term:
    """Return the moment that many microseconds after the start of the year 1; UNDEF for UNDATED."""
    if number == UNDATED:
        return "UNDEF"
    return f'"{(_START + number * _TICK).isoformat()}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
