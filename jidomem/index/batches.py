"""How many texts an embedder is given at a time: fewer after it failed, so that one it never takes is found."""

from __future__ import annotations

from collections.abc import Collection

MOST = 64
#: So often one text by itself is tried.
TRIES = 3


class Batches:
    """The sizes of the batches of each stream, by name, and which text fails by itself.

    >>> batches = Batches()
    >>> [batches.failed("p", range(size)) for size in (64, 32, 16, 8, 4, 2, 1, 1, 1)][-2:]
    [False, True]
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._alone: dict[str, int] = {}

    def size(self, name: str) -> int:
        """Return how many texts are given next."""
        return self._sizes.get(name, MOST)

    def done(self, name: str) -> None:
        """Take note of a batch that was taken: the next one may be twice as large."""
        self._sizes[name] = min(MOST, 2 * self.size(name))
        self._alone.pop(name, None)

    def failed(self, name: str, batch: Collection[object]) -> bool:
        """Return whether *batch*, which failed, is one text that failed by itself often enough to be passed by."""
        if len(batch) > 1:
            self._sizes[name] = max(1, len(batch) // 2)
            return False
        self._sizes[name] = 1
        self._alone[name] = self._alone.get(name, 0) + 1
        return self._alone[name] >= TRIES
