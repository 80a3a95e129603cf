"""A refusal that can be repaired contains the repair, which is accepted unchanged."""

import json
from pathlib import Path

import pytest
from conftest import decision, files, intent
from writing import MEMORY, open_with, refusal

from jidomem import MemoryUpdateIntent
from jidomem.errors import IntentRefused, NotFound, Violation
from jidomem.write import pipeline

CASES = json.loads((Path(__file__).parent / "cases" / "repairs.json").read_text("utf-8"))
KNOWN = MEMORY + "0197a1b2-0000-7000-8000-00000000abcd"
OTHER = MEMORY + "0197a1b2-0000-7000-8000-00000000ffff"


@pytest.fixture
def writer(memory):
    memory.writer.submit_intent("p", intent(iri=KNOWN, summary="the port is 80", topic="port"))
    return memory.writer


def case_params(cases):
    return [pytest.param(case, id=case["name"]) for case in cases]


def intent_of(case):
    values = intent(summary="something new") | case["given"]
    return {key: value for key, value in values.items() if key not in case.get("without", ())}


def test_the_table_has_forty_repairs_and_unique_names():
    assert len([case for case in CASES if "accepted" not in case]) >= 40
    assert len({case["name"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", case_params(case for case in CASES if "accepted" not in case))
def test_a_mechanical_fault_is_repaired_and_its_repair_accepted(memory, writer, case):  # C039 C051
    before = files(memory.settings.root)
    error = refusal(writer.submit_intent, "p", intent_of(case))
    assert error.code == case["code"]
    assert case.get("nearest") in (None, *(violation.nearest for violation in error.violations))
    assert error.fixed_intent is not None
    assert error.to_dict()["fixed_intent"] == error.fixed_intent
    assert files(memory.settings.root) == before
    replayed = json.loads(json.dumps(error.to_dict()["fixed_intent"]))  # as over the wire
    receipt = writer.submit_intent("p", replayed)
    assert receipt.status == "asserted"
    assert memory.reader.get_memory("p", receipt.iri)["status"] in ("active", "expired")


@pytest.mark.parametrize("case", case_params(case for case in CASES if "accepted" in case))
def test_an_unambiguous_intent_is_accepted(writer, case):  # C035 C032
    assert writer.submit_intent("p", intent_of(case)).status == "asserted"


def test_a_repair_changes_only_the_faulty_field(writer):  # C051
    proposal = intent(type="taks", summary="  keep my  spaces ", evidence=["a", "b"], about=["x"], idempotency_key="k")
    fixed = refusal(writer.submit_intent, "p", proposal).fixed_intent
    assert fixed == proposal | {"type": "task"}


def test_an_intent_object_is_repaired(writer):  # C051
    error = refusal(writer.submit_intent, "p", MemoryUpdateIntent(**intent(confidence="hgih", summary="new")))
    assert MemoryUpdateIntent.from_dict(error.fixed_intent).confidence == "high"


def test_the_hint_names_the_repair_or_the_missing_field(writer):  # C051
    assert "fixed_intent" in refusal(writer.submit_intent, "p", intent(type="fct")).hint
    assert "rationale" in refusal(writer.submit_intent, "p", intent(type="decision")).hint


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"type": "decision"}, "missing_rationale"),
        ({"summary": None}, "missing_required_fields"),
        ({"asserted_by": None, "confidence": "hgih"}, "invalid_confidence"),
        ({"type": "desicion"}, "unknown_type"),
        ({"confidence": "certain"}, "invalid_confidence"),
        ({"confidence": 1.5}, "invalid_confidence"),
        ({"type": "xyzzy"}, "unknown_type"),
        ({"xyzzy": 1}, "unknown_field"),
        ({"summary": "a", "title": "b"}, "unknown_field"),
        ({"applies_to_project": "q"}, "project_mismatch"),
        ({"supersedes": ["0197a1b2"]}, "unknown_reference"),
        ({"supersedes": [MEMORY + "nobody"]}, "unknown_reference"),
        ({"supersedes": ["dcba"]}, "unknown_reference"),
        ({"iri": KNOWN}, "iri_exists"),
        ({"expires_on": "soon"}, "shape_violation"),
        ({"expires_on": "01/02/2026"}, "shape_violation"),
        ({"status": "Planned"}, "shape_violation"),
        ({"summary": "a\x00b"}, "invalid_argument"),
        ({"evidence": 5}, "invalid_argument"),
        ({"extra_triples": "jido:topic x"}, "invalid_argument"),
        ({"extra_triples": [["_:b", "jido:topic", "x"]]}, "invalid_iri"),
        ({"extra_triples": [["jido:zzzqqq", "x"]]}, "unknown_term"),
        ({"extra_triples": [["jido:summary", "x"]]}, "shape_violation"),
        ({"tracked_by": "issue 5"}, "invalid_iri"),
    ],
)
def test_a_fault_that_needs_a_decision_is_not_repaired(writer, fields, code):  # C039 C045
    writer.submit_intent("p", intent(iri=OTHER, summary="the host is a", topic="host"))
    error = refusal(writer.submit_intent, "p", intent(summary="something new") | fields)
    assert code in {violation.code for violation in error.violations}
    assert isinstance(error, IntentRefused)
    assert error.fixed_intent is None


def test_a_conflict_is_not_repaired_even_behind_a_mechanical_fault(writer):  # C058
    clash = intent(summary="the port is 443", topic="port")
    assert getattr(refusal(writer.submit_intent, "p", clash), "fixed_intent", None) is None
    error = refusal(writer.submit_intent, "p", clash | {"confidence": "hgih"})
    assert (error.code, error.fixed_intent) == ("invalid_confidence", None)


def test_an_ambiguous_short_id_is_refused_with_the_matching_memories(writer):  # C047
    writer.submit_intent("p", intent(iri=OTHER, summary="the host is a", topic="host"))
    error = refusal(writer.submit_intent, "p", intent(summary="new", supersedes=["0197a1b2"]))
    assert set(error.violations[0].allowed) == {KNOWN, OTHER}
    assert (error.violations[0].nearest, error.fixed_intent) == (None, None)


def test_an_unknown_agent_of_a_strict_project_is_not_repaired(tmp_path):  # C044
    with open_with(tmp_path, "strict = true\n") as memory:
        error = refusal(memory.writer.submit_intent, "p", decision(confidence="hgih"))
        assert (error.code, error.fixed_intent) == ("invalid_confidence", None)
        assert refusal(memory.writer.submit_intent, "p", decision()).code == "unknown_reference"


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("task", "Done", "Completed"), ("task", "todo", "Planned"), ("error", "fixed", "Resolved"),
        ("task", "wip", "InProgress"),
    ],
)  # fmt: skip
def test_a_synonym_of_a_state_is_repaired_to_the_state(memory, kind, status, expected):  # C072
    with pytest.raises(IntentRefused) as refused:
        memory.writer.submit_intent("p", intent(type=kind, status=status))

    assert refused.value.violations[0].nearest == expected
    assert memory.writer.submit_intent("p", refused.value.fixed_intent).status == "asserted"


def test_an_unknown_state_is_not_repaired(memory):
    with pytest.raises(IntentRefused) as refused:
        memory.writer.submit_intent("p", intent(type="task", status="bone"))

    assert refused.value.fixed_intent is None


def test_repair_continues_while_refusals_offer_repairs_and_stops_after_six():
    attempts = []

    def always_refused(values):
        attempts.append(values["n"])
        raise refusal_with_repair()

    def refusal_with_repair(repair=lambda values: values | {"n": values["n"] + 1}):
        return IntentRefused([Violation("shape_violation", "once more", repair=repair)])

    def not_found(values):
        raise NotFound("it is gone")

    proposal = {"n": 0, "about": [], "topic": None, "confidence": 0}
    assert pipeline.repaired_values(proposal, refusal_with_repair(), always_refused) is None
    assert attempts == [1, 2, 3, 4, 5, 6]
    assert pipeline.repaired_values(proposal, refusal_with_repair(), lambda values: None) == {"n": 1, "confidence": 0}
    assert pipeline.repaired_values(proposal, refusal_with_repair(), not_found) is None
    assert pipeline.repaired_values(proposal, refusal_with_repair(None), lambda values: None) is None
    assert proposal["n"] == 0


def test_faults_of_several_stages_are_repaired_at_once(writer):  # C051
    proposal = intent(summary="new", type="taks", status="todo", about="src/", supersedes=[KNOWN.upper()])
    fixed = refusal(writer.submit_intent, "p", proposal).fixed_intent
    assert fixed == proposal | {"type": "task", "status": "Planned", "about": ["src/"], "supersedes": [KNOWN]}
    assert writer.submit_intent("p", fixed).status == "asserted"


@pytest.mark.parametrize(
    ("synonym", "kind"),
    [
        ("todo", "task"),
        ("note", "fact"),
        ("preference", "fact"),
        ("session_summary", "fact"),
        ("rule", "convention"),
        ("Question", "unknown"),
    ],
)
def test_a_synonym_of_a_type_is_repaired_to_the_type(writer, synonym, kind):
    error = refusal(writer.submit_intent, "p", intent(type=synonym))
    assert (error.violations[0].nearest, error.fixed_intent["type"]) == (kind, kind)
    assert "deleted_marker" not in error.violations[0].allowed


@pytest.mark.parametrize("field", ["deadline", "due_date"])
def test_a_due_date_is_repaired_to_expires_on(writer, field):
    error = refusal(writer.submit_intent, "p", intent(type="task", **{field: "2030-01-01"}))
    assert error.fixed_intent["expires_on"] == "2030-01-01"


def test_a_misspelt_project_is_repaired_and_another_project_is_not(memory):
    proposal = intent(applies_to_project="kitchn")
    assert (
        refusal(memory.writer.submit_intent, "kitchen", proposal).fixed_intent["applies_to_project"].endswith("kitchen")
    )
    assert refusal(memory.writer.submit_intent, "billing", proposal).fixed_intent is None


def test_the_hint_has_one_line_for_each_fault(writer):
    error = refusal(writer.submit_intent, "p", intent(type="xyzzy", assignee="ana", severty="huge"))
    lines = error.hint.splitlines()
    assert lines[:2] == ["write 'assigned_to' for 'assignee'", "write 'severity' for 'severty'"]
    assert len(lines) == len(error.violations)


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"valid_until": "2020-01-01"}, "valid_until 2020-01-01T00:00:00.000000Z is in the past"),
        ({"expires_on": "2020-01-01"}, "expires_on 2020-01-01T00:00:00.000000Z is in the past"),
        (
            {"timestamp": "2099-01-01"},
            "timestamp 2099-01-01T00:00:00.000000Z is in the future;"
            " if this is true only from then on: give `valid_from`",
        ),
    ],
)
def test_a_suspicious_date_causes_a_warning_with_its_field(writer, fields, warning):
    assert any(each.startswith(warning) for each in writer.submit_intent("p", intent(**fields)).warnings)


def test_a_timestamp_of_today_causes_no_warning(writer):
    fields = {"timestamp": "2026-11-21T12:00:00Z", "valid_until": "2030-01-01", "expires_on": "2030-01-01"}
    assert writer.submit_intent("p", intent(**fields)).warnings == ()
