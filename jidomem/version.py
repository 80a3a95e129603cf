"""A version of a stream: the commits at its tip."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SHORT = 12
_WRITTEN = re.compile(r"([0-9]{1,18})-([0-9a-f]{4,64}(?:\+[0-9a-f]{4,64})*)")


@dataclass(frozen=True, slots=True, order=True)
class Head:
    """A commit at the tip: when it was recorded (UTC text), its id (64 hex digits) and its position (from 1)."""

    recorded_at: str
    id: str
    position: int


@dataclass(frozen=True, slots=True)
class Version:
    """A set of head commits, oldest first; empty for a stream without commits. Two versions are equal or differ."""

    heads: tuple[Head, ...] = ()

    @classmethod
    def of(cls, heads: Iterable[Head]) -> Version:
        """Return the version with these heads, in their one order."""
        return cls(tuple(sorted(heads)))

    @property
    def position(self) -> int:
        """Return the largest position, 0 for an empty stream: a number for people, never compared."""
        return max((head.position for head in self.heads), default=0)

    @property
    def recorded_at(self) -> str:
        """Return when the newest head was recorded, or an empty string."""
        return max((head.recorded_at for head in self.heads), default="")

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the commit ids of the heads."""
        return tuple(head.id for head in self.heads)

    def __str__(self) -> str:
        """Return `<position>-<id prefix>`, with `+<id prefix>` for each further head."""
        if not self.heads:
            return "0"
        return f"{self.position}-" + "+".join(head.id[:SHORT] for head in self.heads)


def read(text: str) -> tuple[int, list[str]] | None:
    """Return the position, and the beginnings of the ids, in a version as it is shown; None for another text.

    >>> read("12-0a1b2c3d4e5f+9f8e")
    (12, ['0a1b2c3d4e5f', '9f8e'])
    """
    match = _WRITTEN.fullmatch(text)
    return None if match is None else (int(match[1]), match[2].split("+"))
