"""The bounded dictionary: a cache by key that forgets what was set first. Pure."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(dict[K, V]):
    """A dictionary of at most *limit* entries; a new one takes the place of the one that was set first.

    Several threads that write need a lock of their own.

    >>> pages = BoundedDict[str, int](2)
    >>> pages["a"], pages["b"], pages["a"], pages["c"] = 1, 2, 3, 4
    >>> pages
    {'a': 3, 'c': 4}
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        """Set an entry, which is the newest now."""
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._limit:
            del self[next(iter(self))]
