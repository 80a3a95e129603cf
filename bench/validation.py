"""Validation of one intent of about 20 triples by the compiled shapes, beside pyshacl with prepared shapes.

    python -m bench.validation [--rounds N]

Both validate the same forty items of four classes in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bench import harness
from bench.harness import Options, Row, Spread, time_sides
from jidomem.rdf.terms import Triple, date_time, literal
from jidomem.rdf.vocab import BASE, TYPE, jido
from jidomem.schema import ontology
from jidomem.schema.shacl_compiler import CompiledValidator

CLASSES = {
    "Fact": {"derivedFrom": f"<{BASE}evidence/e>"},
    "Task": {"hasTaskStatus": jido("Planned"), "assignedTo": f"<{BASE}agents/a>"},
    "Bug": {"hasErrorStatus": jido("Reported"), "severityLevel": '"high"'},
    "ArchitecturalDecision": {"rationale": '"measured beside the alternative"', "decisionStatus": '"accepted"'},
}


def item(class_name: str, number: int) -> list[Triple]:
    """Return the triples of an item as the writer makes them, with the stubs of the nodes that it names."""
    node = f"<{BASE}memory/{number}>"
    values = {
        TYPE: jido(class_name), "summary": literal(f"what we learnt the {number}th time"),
        "hasConfidence": jido("High"),
        "appliesToProject": f"<{BASE}projects/p>", "assertedBy": f"<{BASE}agents/a>",
        "assertedIn": f"<{BASE}sessions/s>",
        "hasTimestamp": date_time("2026-11-21T08:00:00.000000Z"), "hasAssertionStatus": jido("Asserted"),
        "recordedAt": date_time("2026-11-21T08:00:00.000000Z"), "topic": '"builds"', "about": '"src/main.py"',
        "detailedExplanation": literal("The build was slow, the cache was cold. " * 4), **CLASSES[class_name],
    }  # fmt: skip
    rows = [(node, name if name == TYPE else jido(name), value) for name, value in values.items()]
    project, agent = f"<{BASE}projects/p>", f"<{BASE}agents/a>"
    rows += [(project, TYPE, jido("Project")), (project, jido("projectName"), '"p"'), (agent, TYPE, jido("Agent"))]
    rows += [(agent, jido("hasRole"), jido("Implementer")), (agent, jido("hasCapability"), jido("CanQueryMemory"))]
    return rows


def rows(options: Options) -> Iterator[Row]:
    """Yield the time of one validation."""
    rules = ontology.load()
    items = [item(class_name, number) for number, class_name in enumerate(list(CLASSES) * 10)]
    items = [[*rows, *rules._entailed(rows)] for rows in items]
    validator = CompiledValidator(rules._rules)
    ways = {"compiled": validator.findings, "pyshacl": validator.reference}
    times = time_sides({name: partial(_validate_all, way, items) for name, way in ways.items()}, options.rounds)
    spread = Spread.of([each / len(items) * 1e6 for each in times["compiled"]])
    ratio = Spread.ratio(times["pyshacl"], times["compiled"])
    yield Row("validation of one intent", "-", f"{spread} µs", f"pyshacl: {ratio} x as long", figures={"s": times})


def _validate_all(validate: Callable[..., object], items: list[list[Triple]]) -> None:
    for triples in items:
        assert validate(triples, None) == []


if __name__ == "__main__":
    harness.main("bench.validation", rows)
