"""The scenarios: the same seeded workload for each system; a function `(open_system, folder, size)` yields results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.governance.figures import Result, Workload
from bench.governance.process import Open
from bench.governance.scenarios import consistency, erasure, lost_writes, past, staleness
from bench.governance.system import Unsupported

#: Each scenario by name, with its measures.
SCENARIOS = {
    "lost_writes": (lost_writes.lost_writes, (lost_writes.LOST, lost_writes.UNREADABLE, lost_writes.RATE)),
    "duplicates": (consistency.duplicates, (consistency.DUPLICATES,)),
    "contradictions": (consistency.contradictions, (consistency.CONTRADICTIONS, consistency.ALARMS)),
    "staleness": (staleness.staleness, (staleness.REPLACED, staleness.EXPIRED, staleness.CHANGED)),
    "undo": (past.undo, (past.RESTORED, past.EXPLAINED)),
    "as_of": (past.as_of, (past.AS_OF,)),
    "provenance": (past.provenance, (past.COMPLETE, past.REPLACED)),
    "erasure": (erasure.erasure, (erasure.ERASED, erasure.VECTORS)),
}


def run(name: str, open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Yield a result for each measure of a scenario, run on the system that *open_system* opens."""
    scenario, measures = SCENARIOS[name]
    remaining = dict.fromkeys(measures)
    try:
        for result in scenario(open_system, folder, size):
            del remaining[result.measure]
            yield result
    except Unsupported as error:
        yield from (Result(each, unsupported=str(error)) for each in remaining)
