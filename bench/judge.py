"""What judging one item of about 20 triples costs: the compiled shapes beside pyshacl with its shapes held ready.

Both judge the same items in turn in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench import frame
from bench.frame import Options, Row, Spread, in_turn
from jidomem.rdf.terms import Triple, date_time, literal
from jidomem.rdf.vocab import BASE, TYPE, jido
from jidomem.schema import ontology
from jidomem.schema.shacl_compiler import CompiledValidator

KINDS = {
    "Fact": {"derivedFrom": f"<{BASE}evidence/e>"},
    "Task": {"hasTaskStatus": jido("Planned"), "assignedTo": f"<{BASE}agents/a>"},
    "Bug": {"hasErrorStatus": jido("Reported"), "severityLevel": '"high"'},
    "ArchitecturalDecision": {"rationale": '"measured beside the alternative"', "decisionStatus": '"accepted"'},
}


def item(kind: str, number: int) -> list[Triple]:
    """An item as the writer describes it, with the stubs of what it names."""
    node = f"<{BASE}memory/{number}>"
    values = {
        TYPE: jido(kind), "summary": literal(f"what we learnt the {number}th time"), "hasConfidence": jido("High"),
        "appliesToProject": f"<{BASE}projects/p>", "assertedBy": f"<{BASE}agents/a>",
        "assertedIn": f"<{BASE}sessions/s>",
        "hasTimestamp": date_time("2026-11-21T08:00:00.000000Z"), "hasAssertionStatus": jido("Asserted"),
        "recordedAt": date_time("2026-11-21T08:00:00.000000Z"), "topic": '"builds"', "about": '"src/main.py"',
        "detailedExplanation": literal("The build was slow, the cache was cold. " * 4), **KINDS[kind],
    }  # fmt: skip
    rows = [(node, name if name == TYPE else jido(name), value) for name, value in values.items()]
    project, agent = f"<{BASE}projects/p>", f"<{BASE}agents/a>"
    rows += [(project, TYPE, jido("Project")), (project, jido("projectName"), '"p"'), (agent, TYPE, jido("Agent"))]
    rows += [(agent, jido("hasRole"), jido("Implementer")), (agent, jido("hasCapability"), jido("CanQueryMemory"))]
    return rows


def rows(options: Options) -> Iterator[Row]:
    """The two judges, on forty items of four kinds."""
    rules = ontology.load()
    items = [item(kind, number) for number, kind in enumerate(list(KINDS) * 10)]
    items = [[*rows, *rules._entailed(rows)] for rows in items]
    judge = CompiledValidator(rules._rules)
    times = in_turn({"compiled": _all(judge.findings, items), "pyshacl": _all(judge.reference, items)}, options.rounds)
    middle = Spread.of([each / len(items) * 1e6 for each in times["compiled"]])
    ratio = Spread.ratio(times["pyshacl"], times["compiled"])
    yield Row("judging one intent", "-", f"{middle} µs", f"pyshacl: {ratio} x as long", figures={"s": times})


def _all(judge: Callable[..., object], items: list[list[Triple]]) -> Callable[[], None]:
    def run() -> None:
        for some in items:
            assert judge(some, None) == []

    return run


if __name__ == "__main__":
    frame.main("bench.judge", rows)
