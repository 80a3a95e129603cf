"""The bounded dictionary: a cache by key that drops its oldest entry when it is full. Pure."""

from __future__ import annotations

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
