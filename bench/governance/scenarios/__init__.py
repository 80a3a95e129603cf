"""The scenarios: the same seeded workload for every system, each a function `(open, folder, size)` with figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.governance.figures import Measured, Size
from bench.governance.process import Open
from bench.governance.scenarios import erasure as erasing
from bench.governance.scenarios import keeping, past
from bench.governance.scenarios import lost_writes as losing
from bench.governance.scenarios import staleness as ageing
from bench.governance.system import Unsupported

#: Each scenario, by its name, with what it measures.
SCENARIOS = {
    "lost_writes": (losing.lost_writes, (losing.LOST, losing.UNREADABLE, losing.RATE)),
    "duplicates": (keeping.duplicates, (keeping.DUPLICATES,)),
    "contradictions": (keeping.contradictions, (keeping.CONTRADICTIONS, keeping.ALARMS)),
    "staleness": (ageing.staleness, (ageing.REPLACED, ageing.EXPIRED, ageing.CHANGED)),
    "undo": (past.undo, (past.RESTORED, past.EXPLAINED)),
    "as_of": (past.as_of, (past.AS_OF,)),
    "provenance": (past.provenance, (past.COMPLETE, past.REPLACED)),
    "erasure": (erasing.erasure, (erasing.ERASED, erasing.VECTORS)),
}


def run(name: str, open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """Yield what a scenario found for the system that *open_* opens: each of its measures, or why there is none."""
    scenario, measures = SCENARIOS[name]
    open_measures = dict.fromkeys(measures)
    try:
        for found in scenario(open_, folder, size):
            del open_measures[found.measure]
            yield found
    except Unsupported as error:
        yield from (Measured(each, unsupported=str(error)) for each in open_measures)
