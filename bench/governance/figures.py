"""A figure in words: what is counted, of what, which way is better; and what was found for one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from bench.frame import short


@dataclass(frozen=True, slots=True)
class Measure:
    """What one row of the table counts, in *unit*, and whether fewer or more is better."""

    dimension: str
    words: str
    unit: str
    better: Literal["fewer", "more"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one system gave, round by round, of how many, with raw *counts*; or why it was not asked, or failed."""

    measure: Measure
    values: Sequence[float] = ()
    of: Sequence[int] = ()
    counts: Mapping[str, Any] = field(default_factory=dict)
    unsupported: str = ""
    failed: str = ""

    def __str__(self) -> str:
        """The cell of the table: `3 of 40`; of several rounds the middle one, with the least and the most."""
        if self.failed or self.unsupported:
            return "**broke off**" if self.failed else "unsupported"
        least, middle, most = min(self.values), median(self.values), max(self.values)
        if not self.of:
            return f"{short(middle)} ({short(least)}-{short(most)})" if len(self.values) > 1 else short(middle)
        of = f"of {median(self.of):g}"
        return f"{middle:g} {of} ({least:g}-{most:g})" if len(self.values) > 1 else f"{middle:g} {of}"


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything there is, and where chance begins."""

    facts: int = 20
    processes: int = 4
    killed: int = 2
    writes: int = 25
    rounds: int = 3
    holds: float = 2.0  # seconds that a fact with an end holds
    seed: int = 7


SMALL = Size(facts=4, processes=2, killed=1, writes=6, rounds=1, holds=0.5)
