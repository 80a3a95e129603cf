"""Rewritings of objects that are all or none: written down first, and carried out by whoever comes next."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex

import orjson

from jidomem.shared.bucket import Bucket

_KEY = "rewrites"


@dataclass(frozen=True, slots=True)
class Rewrites:
    """How often each stream was rewritten, and the rewriting under way: a stream, and new bytes for keys of it.

    *life* is the log's own, given when it is made.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    stream: str = ""
    pending: Mapping[str, bytes] = field(default_factory=dict)
    life: str = ""

    def to_bytes(self) -> bytes:
        """Return what is kept of it."""
        pending = {key: b64encode(data).decode() for key, data in self.pending.items()}
        return orjson.dumps({"counts": self.counts, "stream": self.stream, "pending": pending, "life": self.life})

    @staticmethod
    def from_bytes(data: bytes) -> Rewrites:
        """Return what was kept.

        >>> Rewrites.from_bytes(Rewrites({"p.memory": 2}, "q.memory", {"a": b"b"}).to_bytes()).pending
        {'a': b'b'}
        """
        kept = orjson.loads(data)
        pending = {key: b64decode(text) for key, text in kept["pending"].items()}
        return Rewrites(kept["counts"], kept["stream"], pending, kept.get("life", ""))


class Rewriter:
    """The one object that says what is rewritten. Every look at it first carries out what it finds under way."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._seen: tuple[Rewrites, str | None] = (Rewrites(), None)

    def begin(self) -> str:
        """Return the life of the log, which is given to one that has none."""
        while not (now := self._settled())[0].life:
            self._put(replace(now[0], life=token_hex(8)), now[1])
        return now[0].life

    def state(self) -> Rewrites:
        """Return how often each stream was rewritten, and the life of the log."""
        return self._settled()[0]

    def rewrite(self, stream: str, pending: Mapping[str, bytes]) -> None:
        """Give the objects *pending* other bytes, and count it for *stream*."""
        while True:
            before, tag = self._settled()
            if self._put(replace(before, stream=stream, pending=pending), tag):
                self._settled()
                return

    def _look(self) -> tuple[Rewrites, str | None]:
        found = self._bucket.get(_KEY, unless=self._seen[1])
        if found is not None:
            self._seen = (Rewrites.from_bytes(found.data), found.tag)
        return self._seen

    def _settled(self) -> tuple[Rewrites, str | None]:
        """Return what is there once nothing is under way any more."""
        while True:
            now, tag = self._look()
            if not now.pending:
                return now, tag
            if all(self._replaced(key, data, tag) for key, data in now.pending.items()):
                counts = {**now.counts, now.stream: now.counts.get(now.stream, 0) + 1}
                self._put(replace(now, counts=counts, stream="", pending={}), tag)

    def _replaced(self, key: str, data: bytes, tag: str | None) -> bool:
        """Return True once the object holds *data*, False where the rewriting of that *tag* was ended by another.

        The object is read before it is seen that the rewriting still goes on, and put only if it is still that one:
        so whoever slept in between cannot undo a later rewriting.
        """
        while (there := self._bucket.get(key)) is not None and there.data != data:
            if self._bucket.get(_KEY, unless=tag) is not None:
                return False
            self._bucket.put(key, data, there.tag, lambda now, _: now == data, f"the rewriting of {key}")
        return True

    def _put(self, state: Rewrites, tag: str | None) -> str | None:
        data = state.to_bytes()
        return self._bucket.put(_KEY, data, tag, lambda now, doubt: doubt and now == data, "a rewriting")
