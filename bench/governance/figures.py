"""The rows and cells of the governance table: what a measure counts, and the result of one system; sizes of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from bench.harness import rounded


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table: what it counts, in *unit*, and whether fewer or more is better."""

    dimension: str
    description: str
    unit: str
    better: Literal["fewer", "more"]


@dataclass(frozen=True, slots=True)
class Result:
    """One cell: *values* counted of *totals*, round by round, with raw *counts*; or why there are none."""

    measure: Measure
    values: Sequence[float] = ()
    totals: Sequence[int] = ()
    counts: Mapping[str, Any] = field(default_factory=dict)
    unsupported: str = ""
    failed: str = ""

    def __str__(self) -> str:
        """Return the text of the cell: `3 of 40`; of several rounds the median, with the least and the greatest."""
        if self.failed or self.unsupported:
            return "**failed**" if self.failed else "unsupported"
        least, middle, most = min(self.values), median(self.values), max(self.values)
        if not self.totals:
            return f"{rounded(middle)} ({rounded(least)}-{rounded(most)})" if len(self.values) > 1 else rounded(middle)
        total = f"of {median(self.totals):g}"
        return f"{middle:g} {total} ({least:g}-{most:g})" if len(self.values) > 1 else f"{middle:g} {total}"


@dataclass(frozen=True, slots=True)
class Workload:
    """The sizes of a run, and the seed of its random choices."""

    facts: int = 20
    processes: int = 4
    killed: int = 2
    writes: int = 25
    rounds: int = 3
    validity_seconds: float = 2.0  # until a fact with an end expires
    seed: int = 7


QUICK = Workload(facts=4, processes=2, killed=1, writes=6, rounds=1, validity_seconds=0.5)
