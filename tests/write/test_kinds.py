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
#: What others say of a task, of an error and of a decision, and what they mean.
MEANT = {
    "closed": ("Completed", "Resolved", None), "done": ("Completed", "Resolved", None),
    "fixed": (None, "Resolved", None),
    "finished": ("Completed", "Resolved", None), "new": ("Planned", "Reported", "proposed"),
    "open": ("Planned", "Reported", "proposed"), "started": ("InProgress", "Investigating", None),
    "todo": ("Planned", None, None), "wip": ("InProgress", None, None), "cancelled": ("Abandoned", None, "rejected"),
    "canceled": ("Abandoned", None, "rejected"), "wontfix": ("Abandoned", "Deferred", None),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_a_kind_takes_the_states_and_the_defaults_of_its_family(name):
    for kind in FAMILIES[name]:
        assert family(kind) == name
        assert choices_of(kind).get("status") == STATES.get(name)
        assert defaults_of(kind, {"summary": "Use tabs"}) == DEFAULTS.get(name, {})


def test_the_fields_of_one_of_a_few_names_are_the_same_for_every_kind():
    assert set(choices_of(None)) == {"severity", "enforcement_level", "convention_scope", "source_type"}
    assert choices_of("task").items() > choices_of("fact").items() == choices_of(None).items()
    assert choices_of("fact")["severity"] == ("low", "medium", "high", "critical")


@pytest.mark.parametrize("word", MEANT)
def test_what_others_call_a_state_is_the_nearest_to_it_and_refused_all_the_same(word):
    for kind, meant in zip(("task", "error", "decision"), MEANT[word], strict=True):
        tidy = FieldNormalizer(ontology.load())
        assert tidy.choice("status", word, choices_of(kind)["status"], {}) == word
        (found,) = tidy.violations
        assert meant in (None, found.nearest)
    assert set(SYNONYMS) == set(MEANT)
