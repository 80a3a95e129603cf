"""The family, the closed vocabularies and the defaults of each kind of memory."""

import pytest

from jidomem.rdf.vocab import family
from jidomem.schema import ontology
from jidomem.write.canonical import SYNONYMS, choices_of, defaults_of
from jidomem.write.normalize import FieldNormalizer

FAMILIES = {
    "decision": ("decision", "architectural_decision", "implementation_decision"),
    "error": ("error", "bug", "failure", "incident"),
    "convention": (
        "convention", "coding_standard", "architectural_convention", "agent_rule", "process_convention",
    ),
    "task": ("task",), "fact": ("fact",),
}  # fmt: skip
STATES = {
    "task": ("Planned", "InProgress", "Blocked", "Completed", "Abandoned"),
    "error": ("Reported", "Investigating", "Resolved", "Deferred"),
    "decision": ("proposed", "accepted", "deprecated", "rejected"),
}
DEFAULTS = {
    "task": {"status": ("hasTaskStatus", "Planned")},
    "error": {"status": ("hasErrorStatus", "Reported"), "severity": ("severityLevel", "medium")},
    "convention": {
        "convention_name": ("conventionName", "Use tabs"), "enforcement_level": ("hasEnforcementLevel", "Advisory"),
        "convention_scope": ("hasConventionScope", "ProjectScope"),
    },
}  # fmt: skip
#: Synonym of a state -> the state it denotes for a task, for an error and for a decision.
NEAREST_STATES = {
    "closed": ("Completed", "Resolved", None), "done": ("Completed", "Resolved", None),
    "fixed": (None, "Resolved", None),
    "finished": ("Completed", "Resolved", None), "new": ("Planned", "Reported", "proposed"),
    "open": ("Planned", "Reported", "proposed"), "started": ("InProgress", "Investigating", None),
    "todo": ("Planned", None, None), "wip": ("InProgress", None, None), "cancelled": ("Abandoned", None, "rejected"),
    "canceled": ("Abandoned", None, "rejected"), "wontfix": ("Abandoned", "Deferred", None),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_a_kind_has_the_states_and_defaults_of_its_family(name):
    for kind in FAMILIES[name]:
        assert family(kind) == name
        assert choices_of(kind).get("status") == STATES.get(name)
        assert defaults_of(kind, {"summary": "Use tabs"}) == DEFAULTS.get(name, {})


def test_choices_other_than_status_are_the_same_for_every_kind():
    assert set(choices_of(None)) == {"severity", "enforcement_level", "convention_scope", "source_type"}
    assert choices_of("task").items() > choices_of("fact").items() == choices_of(None).items()
    assert choices_of("fact")["severity"] == ("low", "medium", "high", "critical")


@pytest.mark.parametrize("synonym", NEAREST_STATES)
def test_a_synonym_of_a_state_is_refused_with_the_state_as_nearest(synonym):
    for kind, expected in zip(("task", "error", "decision"), NEAREST_STATES[synonym], strict=True):
        normalizer = FieldNormalizer(ontology.load())
        assert normalizer.choice("status", synonym, choices_of(kind)["status"], {}) == synonym
        (violation,) = normalizer.violations
        assert expected in (None, violation.nearest)
    assert set(SYNONYMS) == set(NEAREST_STATES)
