"""Intervals of time in microseconds, in which nodes of the projection are recorded and not ended. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

#: The end of the interval of a node that nothing ends, and of one that is never active.
FOREVER = 2**62
NEVER = -1

Interval = tuple[int, int]


def overlapping_pairs(spans: Mapping[str, Interval]) -> Iterator[tuple[str, str, Interval]]:
    """Yield each two items whose intervals overlap, sorted, with the common interval.

    >>> [*overlapping_pairs({"urn:b": (0, 5), "urn:a": (4, 9), "urn:c": (5, 9)})][0]
    ('urn:a', 'urn:b', (4, 5))
    """
    running: list[tuple[int, str]] = []
    for since, until, item in sorted((since, until, item) for item, (since, until) in spans.items()):
        running = [entry for entry in running if entry[0] > since]
        for ends, other in running:
            first, second = sorted((item, other))
            yield first, second, (since, min(until, ends))
        running.append((until, item))


def valid_since(spans: Iterable[Interval], until: int) -> int:
    """Return the start of the last period, up to *until*, that *spans* cover without a gap; *until* if there is none.

    >>> valid_since([(1, 3), (3, FOREVER)], FOREVER), valid_since([(1, 2), (5, 9)], 9), valid_since([(1, 3)], 9)
    (1, 5, 9)
    """
    for since, end in sorted(spans, key=lambda span: span[1], reverse=True):
        if end < until:
            break
        until = min(since, until)
    return until
