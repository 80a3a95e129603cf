"""The message and the hint of a shape name the field of an intent that repairs it."""

import re

import pyoxigraph as ox
import pytest
from conftest import decision, intent
from writing import MEMORY

from jidomem.base import files
from jidomem.errors import IntentRefused
from jidomem.rdf.vocab import local_name
from jidomem.records.intent import INTENT_FIELDS

#: Shapes of memories; those of agents, sessions, entries and turns apply to data that no intent writes.
MEMORY_SHAPES = ("convention", "core", "decision", "error", "knowledge", "task")
MESSAGES = {
    local_name(quad.subject.value): quad.object.value
    for path in files.shape_files()
    if path.name.removesuffix(".ttl") in MEMORY_SHAPES
    for quad in ox.parse(path=str(path))
    if quad.predicate.value.endswith("shacl#message")
}
ENDED, ACTIVE = MEMORY + "ended", MEMORY + "active"
#: Rule -> an intent that breaks it.
BREAKING = {
    "AnchorNamesContentAndPath": intent(extra_triples=[["jido:aboutBlob", "x"]]),
    "ConventionHasALevel": intent(type="convention", enforcement_level="Firm"),
    "ConventionHasAName": intent(type="convention", extra_triples=[["jido:conventionName", 5]]),
    "ConventionHasAScope": intent(type="convention", convention_scope="Everywhere"),
    "DecisionHasRationale": decision(rationale=" "),
    "DecisionStatusIsKnown": decision(status="guessed"),
    "ErrorHasOneStatus": intent(type="error", status="Planned"),
    "EveryItemIsJudged": intent(extra_triples=[["urn:x:1", "jido:hasTaskStatus", {"@id": "jido:Blocked"}]]),
    "ImpactLevelIsKnown": decision(extra_triples=[["jido:impactLevel", "huge"]]),
    "InvalidatorIsOfTheSameProject": intent(invalidates=[MEMORY + "elsewhere"]),
    "ItemHasASession": intent(asserted_in=None),
    "ItemHasAnAuthor": intent(asserted_by=None),
    "ItemHasOneConfidence": intent(confidence=None),
    "ItemHasOneProject": intent(applies_to_project=None),
    "ItemHasOneSuccessor": intent(supersedes=[MEMORY + "nobody"]),
    "ItemHasOneSummary": intent(summary=" "),
    "ItemHasOneTimestamp": intent(extra_triples=[["jido:isUndated", False]]),
    "ItemHoldsBeforeItEnds": intent(valid_from="2026-02-01", valid_until="2026-01-01"),
    "PromotedHypothesisHasEvidence": intent(supersedes=[ACTIVE], reason="shown"),
    "SeverityIsKnown": intent(type="error", severity="huge"),
    "SuccessorIsOfTheSameProject": intent(supersedes=[MEMORY + "elsewhere"]),
    "SupersessionHasNoCycle": intent(iri=MEMORY + "new", supersedes=[MEMORY + "new"]),
    "TaskHasOneStatus": intent(type="task", status="Someday"),
}
#: Rule that warns -> an intent that is stored with the warning.
WARNING = {
    "AssumptionHasAReviewDate": intent(type="assumption"),
    "LessonHasAnOrigin": intent(type="lesson"),
    "RootCauseExplainsAnError": intent(type="root_cause"),
    "TaskHasAnAssignee": intent(type="task"),
}


@pytest.fixture
def writer(memory):
    memory.writer.submit_intent("p", intent(iri=ACTIVE, type="hypothesis", summary="perhaps"))
    memory.writer.submit_intent("q", intent(iri=MEMORY + "elsewhere", applies_to_project="q"))
    return memory.writer


def names_no_term(text):
    """Return whether the text names no `jido:` term except one for `extra_triples`."""
    return "jido:" not in text or "`extra_triples`" in text


def test_each_rule_of_memories_has_an_intent_that_breaks_it():
    assert BREAKING.keys() | WARNING.keys() == MESSAGES.keys()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_shape_message_names_a_field_and_one_remedy(name):
    fields = re.findall(r"`([a-z_]+)`", MESSAGES[name])

    assert fields
    assert {*fields} <= INTENT_FIELDS.keys()
    assert names_no_term(MESSAGES[name])
    assert MESSAGES[name].count(": ") == 1


@pytest.mark.parametrize("name", BREAKING)
def test_a_refusal_by_a_shape_names_the_field_and_its_remedy(writer, name):
    with pytest.raises(IntentRefused) as refusal:
        writer.submit_intent("p", BREAKING[name])

    for violation in refusal.value.violations:
        assert violation.field in INTENT_FIELDS
        assert violation.remedy
        assert f"`{violation.field}`" in violation.remedy or violation.nearest or violation.allowed
        assert "/ontology#" not in violation.remedy
        if violation.shape:
            assert violation.shape.endswith(name)
            assert names_no_term(violation.message)
        if violation.message in MESSAGES.values():
            assert violation.remedy in violation.message


@pytest.mark.parametrize("name", WARNING)
def test_a_shape_warning_names_the_field(writer, name):
    assert MESSAGES[name] in writer.submit_intent("p", WARNING[name]).warnings
