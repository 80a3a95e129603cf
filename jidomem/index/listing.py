"""What a list query may show, kept in the order of its rows: a page costs what it shows, not what is remembered."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache

from jidomem.terms import Term

#: Nobody ended it; and: it was never in force.
FOREVER = 2**62
NEVER = -1
#: The time of what has none: before every moment, as the engine sorts what is unbound.
UNDATED = -1
BLOCK = 512
_KEY = 16
_MOMENT = re.compile(
    r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z"\^\^<http://www.w3.org/2001/XMLSchema#dateTime>'
)
_TICK = timedelta(microseconds=1)
_START = datetime(1, 1, 1)


@lru_cache(maxsize=65536)
def ticks(term: Term) -> int | None:
    """Return the microseconds from the year 1 to a moment in UTC; None for what is not written as one.

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
    return f"{FOREVER - moment if newest_first else moment:0{_KEY}x}{iri}"


def key_parts(key: str, newest_first: bool) -> tuple[int, str]:
    """Return the moment and the IRI of a key that `timed` made."""
    number = int(key[:_KEY], 16)
    return FOREVER - number if newest_first else number, key[_KEY:]


def moment_term(number: int) -> Term:
    """Return the moment that many microseconds after the start of the year 1; UNDEF for UNDATED."""
    if number == UNDATED:
        return "UNDEF"
    return f'"{(_START + number * _TICK).isoformat()}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


class _Block:
    """Some neighbours of a listing: their keys, since when each is known, and until when it is in force."""

    __slots__ = ("earliest", "keys", "latest", "since", "until")

    def __init__(self, rows: Iterable[tuple[str, int, int]]) -> None:
        keys, since, until = zip(*rows, strict=True)
        self.keys: list[str] = list(keys)
        self.since, self.until = array("q", since), array("q", until)
        self.measure()

    def measure(self) -> None:
        """Find again what holds of all."""
        self.earliest, self.latest = min(self.since), max(self.until)

    def rows(self) -> Iterator[tuple[str, int, int]]:
        return zip(self.keys, self.since, self.until, strict=True)

    def put(self, key: str, since: int, until: int) -> None:
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            self.since[at], self.until[at] = since, until
        else:
            self.keys.insert(at, key)
            self.since.insert(at, since)
            self.until.insert(at, until)
        self.measure()


class Listing:
    """Keys in order, each with the time it was known since, and in force until."""

    def __init__(self, rows: Iterable[tuple[str, int, int]]) -> None:
        """Take any rows; of two with one key the later counts."""
        whole = sorted({row[0]: row for row in rows}.values())
        self._blocks = [_Block(whole[at : at + BLOCK]) for at in range(0, len(whole), BLOCK)]
        self._firsts = [block.keys[0] for block in self._blocks]

    def __len__(self) -> int:
        return sum(len(block.keys) for block in self._blocks)

    def rows(self) -> Iterator[tuple[str, int, int]]:
        """Yield every key with its moments, in order."""
        return (row for block in self._blocks for row in block.rows())

    def put(self, key: str, since: int, until: int) -> None:
        """Add a key, or say anew what holds of it."""
        if not self._blocks:
            self._blocks, self._firsts = [_Block([(key, since, until)])], [key]
            return
        at = max(bisect_right(self._firsts, key) - 1, 0)
        block = self._blocks[at]
        block.put(key, since, until)
        self._firsts[at] = block.keys[0]
        if len(block.keys) > 2 * BLOCK:
            rows = list(block.rows())
            self._blocks[at : at + 1] = halves = [_Block(rows[:BLOCK]), _Block(rows[BLOCK:])]
            self._firsts[at : at + 1] = [half.keys[0] for half in halves]

    def page(self, start: str, moment: int, inactive: bool, count: int) -> list[str]:
        """Return up to *count* keys from *start* on that were known at *moment* and, unless *inactive*, in force."""
        found: list[str] = []
        first = max(bisect_right(self._firsts, start) - 1, 0)
        for block in self._blocks[first : first + 1]:
            found += self._of(block, bisect_left(block.keys, start), moment, inactive)
        for block in self._blocks[first + 1 :]:
            if len(found) >= count:
                break
            found += self._of(block, 0, moment, inactive)
        return found[:count]

    @staticmethod
    def _of(block: _Block, start: int, moment: int, inactive: bool) -> list[str]:
        if block.earliest > moment or not (inactive or block.latest > moment):
            return []
        keys, since, until = block.keys, block.since, block.until
        return [keys[at] for at in range(start, len(keys)) if since[at] <= moment and (inactive or until[at] > moment)]
