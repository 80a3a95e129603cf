"""Containers: a bounded cache, values grouped by a key, and the nodes that a step leads to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(dict[K, V]):
    """A dictionary of at most *limit* entries; a new entry replaces the one that was set first.

    Not thread-safe for concurrent writes.

    >>> pages = BoundedDict[str, int](2)
    >>> pages["a"], pages["b"], pages["a"], pages["c"] = 1, 2, 3, 4
    >>> pages
    {'a': 3, 'c': 4}
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        """Set an entry, which becomes the newest."""
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._limit:
            del self[next(iter(self))]


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key; keys and values are in the order of *pairs*.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        group = groups.get(key)
        if group is None:
            groups[key] = [value]
        else:
            group.append(value)
    return groups


def reachable(starts: Iterable[K], step: Callable[[K], Iterable[K]]) -> set[K]:
    """Return *starts* and all nodes that *step* leads to from them, over however many steps; cycles are harmless.

    >>> sorted(reachable([1], lambda number: [number * 2 % 10]))
    [1, 2, 4, 6, 8]
    """
    reached, pending = set[K](), [*starts]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += step(node)
    return reached
