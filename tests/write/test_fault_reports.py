"""A refusal lists every detectable fault of form, so that one round repairs an intent."""

import json

import pytest
from conftest import decision, fixed_sources, intent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from writing import MEMORY, open_with, refusal

import jidomem
from jidomem.errors import IntentRefused, JidomemError
from jidomem.records.intent import INTENT_FIELDS, LIST_FIELDS

#: Faults of form, each of another check: the field at fault and how it is refused.
FAULTS = {
    "an unknown field": ({"sumary": "x"}, ("unknown_field", "sumary")),
    "a type there is not": ({"type": "musing"}, ("unknown_type", "type")),
    "a confidence that is none": ({"confidence": "certain"}, ("invalid_confidence", "confidence")),
    "a moment that is none": ({"valid_from": "soon"}, ("shape_violation", "valid_from")),
    "one text for a list": ({"evidence": "a text"}, ("invalid_argument", "evidence")),
    "no agent": ({"asserted_by": None}, ("missing_required_fields", "asserted_by")),
    "another project": ({"applies_to_project": "q"}, ("project_mismatch", "applies_to_project")),
    "a memory there is not": ({"supersedes": [MEMORY + "nobody"]}, ("unknown_reference", "supersedes")),
    "a tracker that is no URL": ({"tracked_by": "ticket 7"}, ("invalid_iri", "tracked_by")),
    "a property there is not": ({"extra_triples": [["jido:topik", "x"]]}, ("unknown_term", "extra_triples")),
    "a secret": ({"rationale": "ghp_" + "a1B2" * 9}, ("policy_denied", "rationale")),
}


def faults(error):
    return {(violation.code, violation.field) for violation in error.violations}


@pytest.mark.parametrize("first", FAULTS)
@pytest.mark.parametrize("second", FAULTS)
def test_two_faults_of_any_two_checks_are_reported_together(writer, first, second):
    values = intent(**FAULTS[first][0] | FAULTS[second][0])

    error = refusal(writer.submit_intent, "p", values)

    needs_type = {"a property there is not"} & {first, second} and {"a type there is not"} & {first, second}
    expected = {FAULTS[name][1] for name in (first, second)}
    assert faults(error) == (expected - {("unknown_term", "extra_triples")} if needs_type else expected)


def test_all_faults_are_reported_together_without_follow_on_faults(writer):
    values = decision()
    for name in FAULTS.keys() - {"a type there is not"}:
        values |= FAULTS[name][0]

    error = refusal(writer.submit_intent, "p", values)

    assert isinstance(error, IntentRefused)
    assert faults(error) == {fault for name, (_, fault) in FAULTS.items() if name != "a type there is not"}
    assert error.code == error.violations[0].code == "unknown_field"


def test_faults_carry_a_hint_and_the_allowed_values(writer):
    error = refusal(writer.submit_intent, "p", {"type": "task", "severity": "high", "evidence": "one"})

    reported = {
        violation["field"]: (violation["hint"], violation["allowed"]) for violation in error.to_dict()["violations"]
    }
    assert reported["confidence"] == (
        "give `confidence`: low, medium, high or a number from 0 to 1",
        ["high", "medium", "low"],
    )
    assert reported["applies_to_project"] == (
        "give `applies_to_project`: 'p', the project it is submitted to", ["https://jido.ai/projects/p", "p"],
    )  # fmt: skip
    assert reported["severity"][0].startswith("leave out `severity`, or give `type` as one of: bug")
    assert all(hint for hint, _ in reported.values())


def test_valid_entries_of_a_list_are_checked_beside_an_invalid_one(writer):
    error = refusal(writer.submit_intent, "p", intent(supersedes=["https://", MEMORY + "nobody"]))

    assert faults(error) == {("invalid_iri", "supersedes"), ("unknown_reference", "supersedes")}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"type": "decison", "sumary": "x", "summary": None, "status": "open", "rationale": None},
            {("unknown_type", "type"), ("unknown_field", "sumary"), ("shape_violation", "status"),
             ("missing_rationale", "rationale")},
        ),
        (
            {"colour": "red", "confidence": "certain", "asserted_by": None, "valid_from": "2026-02-01",
             "valid_until": "2026-01-01"},
            {("unknown_field", "colour"), ("invalid_confidence", "confidence"),
             ("missing_required_fields", "asserted_by"), ("shape_violation", "valid_from")},
        ),
        (
            {"type": None, "colour": "red", "valid_from": "2026-02-01", "valid_until": "2026-01-01"},
            {("unknown_field", "colour"), ("missing_required_fields", "type"), ("shape_violation", "valid_from")},
        ),
        (
            {"type": "error", "sevrity": "huge", "confidence": 7, "supersedes": ["deadbeef"]},
            {("unknown_field", "sevrity"), ("shape_violation", "severity"), ("invalid_confidence", "confidence"),
             ("unknown_reference", "supersedes")},
        ),
    ],
)  # fmt: skip
def test_unknown_fields_wrong_values_missing_fields_and_broken_shapes_are_reported_together(writer, values, expected):
    assert faults(refusal(writer.submit_intent, "p", intent(**values))) == expected


def test_a_fault_of_a_memory_without_an_iri_is_reported_once_and_names_no_id(writer):
    error = refusal(writer.submit_intent, "p", intent(extra_triples=[["jido:hasTaskStatus", {"@id": "jido:Planned"}]]))

    (violation,) = error.violations
    name = "https://jido.ai/ontology#hasTaskStatus"
    assert violation.message == f"{name} is a property of Task, and this memory is not one"


def test_a_faulty_value_that_looks_like_a_secret_is_not_shown_in_the_refusal(writer):
    secret = "ghp_" + "a1B2" * 9

    error = refusal(writer.submit_intent, "p", intent(assigned_to=secret, confidence="certain"))

    assert faults(error) == {("policy_denied", "assigned_to"), ("invalid_confidence", "confidence")}
    assert secret not in json.dumps(error.to_dict())


def test_every_fault_of_an_intent_in_a_batch_is_reported_with_its_position(writer):
    values = intent(**FAULTS["another project"][0] | FAULTS["a moment that is none"][0])

    valid, faulty = writer.submit_many("p", [intent(), values])

    assert valid.status == "asserted"
    assert (faults(faulty), faulty.position) == (
        {("project_mismatch", "applies_to_project"), ("shape_violation", "valid_from")}, 1,
    )  # fmt: skip


def test_asserted_by_is_not_reported_missing_for_an_authenticated_agent(memory):
    writer = memory.writer.acting_as("ana", "implementer")

    error = refusal(writer.submit_intent, "p", intent(asserted_by=None, confidence="certain", valid_from="soon"))

    assert faults(error) == {("invalid_confidence", "confidence"), ("shape_violation", "valid_from")}


def test_a_refused_intent_consumes_no_id(tmp_path):
    with jidomem.open(tmp_path / "a", sources=fixed_sources()) as memory:
        expected = memory.writer.submit_intent("p", intent(valid_from="2026-01-01")).iri
    with open_with(tmp_path, name="b") as memory:
        refusal(memory.writer.submit_intent, "p", intent(sumary="x"))  # refused before it gets an id
        assert memory.writer.submit_intent("p", intent(valid_from="2026-01-01")).iri == expected


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just("Open"), st.just("high"),
    st.lists(st.one_of(st.text(max_size=12), st.integers(), st.just(["jido:topic", "x"]), st.just(["this", "a", 1]))),
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(st.sampled_from([*INTENT_FIELDS, "sumary"]), _VALUES, max_size=6), kind=st.sampled_from(
    ["fact", "decision", "task", "convention", "error", "deleted_marker", "alternative", "musing"]))  # fmt: skip
def test_any_intent_is_stored_or_each_of_its_faults_is_reported_once(writer, values, kind):
    (outcome,) = writer.submit_many("p", [{"type": kind, **values}])

    faults = outcome.violations if isinstance(outcome, JidomemError) else ()
    assert len({(fault.field, fault.message) for fault in faults}) == len(faults)


def test_list_fields_are_checked_entry_by_entry(writer):
    for name in LIST_FIELDS:
        error = refusal(writer.submit_intent, "p", intent(**{name: [7]}, confidence="certain"))
        assert {field for _, field in faults(error)} == {name, "confidence"}
