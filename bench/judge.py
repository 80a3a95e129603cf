"""What judging one item of about 20 triples costs: the compiled shapes beside pyshacl with its shapes held ready.

    .venv/bin/python bench/judge.py [--json FILE] [--rounds 30]

Both judge the same items in turn in one process, so that a machine whose speed drifts drifts for both.  The ratio is
taken round by round and given with its spread; microseconds are medians and belong to this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from jidomem import schema
from jidomem.compiled import CompiledJudge
from jidomem.terms import Triple, date_time, literal
from jidomem.vocab import BASE, TYPE, jido

KINDS = {
    "Fact": {"derivedFrom": f"<{BASE}evidence/e>"},
    "Task": {"hasTaskStatus": jido("Planned"), "assignedTo": f"<{BASE}agents/a>"},
    "Bug": {"hasErrorStatus": jido("Reported"), "severityLevel": '"high"'},
    "ArchitecturalDecision": {"rationale": '"measured beside the alternative"', "decisionStatus": '"accepted"'},
}


def item(kind: str, number: int) -> list[Triple]:
    """An item as the writer describes it, with the stubs of what it names."""
    node = f"<{BASE}memory/{number}>"
    said = {
        TYPE: jido(kind), "summary": literal(f"what we learnt the {number}th time"), "hasConfidence": jido("High"),
        "appliesToProject": f"<{BASE}projects/p>", "assertedBy": f"<{BASE}agents/a>",
        "assertedIn": f"<{BASE}sessions/s>",
        "hasTimestamp": date_time("2026-11-21T08:00:00.000000Z"), "hasAssertionStatus": jido("Asserted"),
        "recordedAt": date_time("2026-11-21T08:00:00.000000Z"), "topic": '"builds"', "about": '"src/main.py"',
        "detailedExplanation": literal("The build was slow, the cache was cold. " * 4), **KINDS[kind],
    }  # fmt: skip
    rows = [(node, name if name == TYPE else jido(name), value) for name, value in said.items()]
    project, agent = f"<{BASE}projects/p>", f"<{BASE}agents/a>"
    rows += [(project, TYPE, jido("Project")), (project, jido("projectName"), '"p"'), (agent, TYPE, jido("Agent"))]
    rows += [(agent, jido("hasRole"), jido("Implementer")), (agent, jido("hasCapability"), jido("CanQueryMemory"))]
    return rows


def timed(judge: Callable[..., object], items: list[list[Triple]], rounds: int = 1) -> float:
    """Microseconds of one item."""
    start = time.perf_counter()
    for _ in range(rounds):
        for rows in items:
            assert judge(rows, None) == []
    return (time.perf_counter() - start) / rounds / len(items) * 1e6


def spread(values: list[float]) -> str:
    return f"{median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    rules = schema.load()
    items = [item(kind, number) for number, kind in enumerate(list(KINDS) * 10)]
    items = [[*rows, *rules._entailed(rows)] for rows in items]
    judge = CompiledJudge(rules._rules)
    timed(judge.findings, items), timed(judge.reference, items)  # warm
    compiled, reference = [], []
    for _ in range(options.rounds):
        compiled.append(timed(judge.findings, items, 5))
        reference.append(timed(judge.reference, items))
    ratios = [slow / fast for fast, slow in zip(compiled, reference, strict=True)]
    print(f"compiled: {spread(compiled)} µs an item of {len(items[0])} triples with the types that follow")
    print(f"pyshacl:  {spread(reference)} µs, {spread(ratios)} x the compiled shapes")
    if options.json:
        machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "system": platform.platform()}
        report = {"machine": machine, "compiled_us": compiled, "pyshacl_us": reference, "ratio": ratios}
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
