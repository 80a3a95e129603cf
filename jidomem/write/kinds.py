"""What each kind of memory takes: its closed vocabularies, its defaults, and the family it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jidomem import vocab
from jidomem.schema import Schema
from jidomem.terms import Term

DECISIONS = frozenset(("decision", "architectural_decision", "implementation_decision"))
ERRORS = frozenset(("error", "bug", "failure", "incident"))
CONVENTIONS = frozenset(
    ("convention", "coding_standard", "architectural_convention", "agent_rule", "process_convention")
)


#: What others call a state of ours; refused like a slip of the pen, with ours as the nearest.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "closed": ("Completed", "Resolved"),
    "done": ("Completed", "Resolved"),
    "finished": ("Completed", "Resolved"),
    "fixed": ("Resolved",),
    "new": ("Planned", "Reported", "proposed"),
    "open": ("Planned", "Reported", "proposed"),
    "started": ("InProgress", "Investigating"),
    "todo": ("Planned",),
    "wip": ("InProgress",),
    "cancelled": ("Abandoned", "rejected"),
    "canceled": ("Abandoned", "rejected"),
    "wontfix": ("Abandoned", "Deferred"),
}

#: What others call a type of ours; refused like a slip of the pen, with ours as the nearest.
TYPE_SYNONYMS: Mapping[str, str] = {
    "action": "task",
    "choice": "decision",
    "guideline": "convention",
    "idea": "hypothesis",
    "insight": "lesson_learned",
    "issue": "error",
    "learning": "lesson_learned",
    "memo": "fact",
    "memory": "fact",
    "note": "fact",
    "observation": "discovery",
    "open_question": "unknown",
    "preference": "convention",
    "problem": "error",
    "question": "unknown",
    "rule": "convention",
    "standard": "coding_standard",
    "ticket": "task",
    "to_do": "task",
    "todo": "task",
}


def family(kind: str) -> str:
    """Return the kind directly below MemoryItem that *kind* belongs to.

    >>> family("coding_standard")
    'convention'
    """
    for name, kinds in (("decision", DECISIONS), ("convention", CONVENTIONS), ("error", ERRORS)):
        if kind in kinds:
            return name
    return kind


@cache
def choices_of(kind: str | None) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of *kind* that take one of a few names, with the names."""
    choices: dict[str, tuple[str, ...]] = {
        "severity": vocab.SEVERITY,
        "enforcement_level": vocab.ENFORCEMENT,
        "convention_scope": vocab.SCOPE,
        "source_type": vocab.SOURCE_TYPE,
    }
    if kind == "task":
        choices["status"] = vocab.TASK_STATUS
    elif kind in ERRORS:
        choices["status"] = vocab.ERROR_STATUS
    elif kind in DECISIONS:
        choices["status"] = vocab.DECISION_STATUS
    return choices


def defaults_of(kind: str | None, values: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return what *kind* is filled with: field -> (the property that says it too, value)."""
    if kind == "task":
        return {"status": ("hasTaskStatus", "Planned")}
    if kind in ERRORS:
        return {"status": ("hasErrorStatus", "Reported"), "severity": ("severityLevel", "medium")}
    if kind in CONVENTIONS:
        return {
            "convention_name": ("conventionName", values["summary"]),
            "enforcement_level": ("hasEnforcementLevel", "Advisory"),
            "convention_scope": ("hasConventionScope", "ProjectScope"),
        }
    return {}


def other_kind(cls: Term, own: Term, schema: Schema) -> str | None:
    """Return the closest type of memory that lies above *cls* and not above the class *own*, None where none does."""
    above = [each for each in schema.ancestors(cls) if vocab.type_of(each) and not schema.is_a(own, each)]
    closest = max(above, key=lambda each: (len(schema.ancestors(each)), each), default=None)
    return vocab.type_of(closest) if closest else None
