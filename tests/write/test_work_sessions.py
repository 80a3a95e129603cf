"""A work session is opened once and changed by events; an unknown state is refused."""

import pytest
from writing import GRAPH, refusal, triples_of, values_of

from jidomem.rdf.terms import date_time, iri, plain_value
from jidomem.rdf.vocab import TYPE, jido

SESSIONS = "https://jido.ai/sessions/"
PHASES = ("PlanningPhase", "ImplementationPhase", "DebuggingPhase", "ReviewPhase")


def events(memory, name):
    """Return the status and phase of each event of a session, ordered by number."""
    nodes = {plain_value(s) for s, _, _ in memory.index.triples(GRAPH, None, jido("ofSession"), iri(SESSIONS + name))}
    rows = [
        [values_of(memory, event, name_of_property) for name_of_property in ("eventNumber", "toStatus", "toPhase")]
        for event in nodes
    ]
    return [
        ([plain_value(v).rpartition("#")[2] for v in status], [plain_value(v).rpartition("#")[2] for v in phase])
        for number, status, phase in sorted(rows, key=lambda row: int(plain_value(row[0][0])))
    ]


def test_a_memory_of_an_ended_session_has_a_warning_with_the_command_for_its_successor(memory):
    memory.writer.start_session("p", "s")
    first = memory.writer.remember("p", "the port is 80", asserted_in="s")
    memory.writer.move_session("p", "s", status="closed")

    late = memory.writer.remember("p", "the gate is shut", asserted_in="s")

    hint = "the session s has ended; open another one: jidomem agent session start NAME --continues s"
    assert (first.warnings, late.status, late.warnings) == ((), "asserted", (hint,))


@pytest.mark.parametrize("final_status", ["Closed", "Abandoned"])
def test_an_ended_session_is_not_moved_and_the_refusal_names_its_successor_command(memory, final_status):
    memory.writer.start_session("p", "s")
    memory.writer.move_session("p", "s", status=final_status)
    before = triples_of(memory)

    for change in ({"status": "Active"}, {"phase": "review"}):
        error = refusal(memory.writer.move_session, "p", "s", **change)
        assert error.detail == f"{SESSIONS}s has ended ({final_status})"
        assert error.hint == "open a new one with: jidomem agent session start NAME --continues s"
        assert [(v.code, v.field, v.value) for v in error.violations] == [
            ("shape_violation", "session", SESSIONS + "s")
        ]
    assert triples_of(memory) == before


def test_an_unknown_session_is_neither_moved_nor_continued(memory):
    memory.writer.start_session("p", "other")
    before = triples_of(memory)

    move_error = refusal(memory.writer.move_session, "p", "s", status="Paused")
    start_error = refusal(memory.writer.start_session, "p", "next", continues="s")

    assert [error.code for error in (move_error, start_error)] == ["not_found", "not_found"]
    assert move_error.detail == start_error.detail == f"no session {SESSIONS}s"
    assert move_error.hint == "open it with: jidomem agent session start NAME"
    assert start_error.hint == "list them with: jidomem agent session list"
    assert triples_of(memory) == before


def test_a_session_name_is_unique(memory):
    memory.writer.start_session("p", "s")
    before = triples_of(memory)

    error = refusal(memory.writer.start_session, "p", "s")

    assert (error.code, error.detail) == ("iri_exists", f"{SESSIONS}s was opened already")
    assert error.hint == "choose another name, or move this one with: jidomem agent session phase|pause|resume|close"
    assert [(v.field, v.value) for v in error.violations] == [("name", SESSIONS + "s")]
    assert triples_of(memory) == before


def test_a_continued_session_refers_to_its_predecessor_by_two_properties(memory):
    memory.writer.start_session("p", "first")
    memory.writer.start_session("p", "second", continues="first")

    for name in ("continuesSession", "hasPreviousSession"):
        assert values_of(memory, SESSIONS + "second", name) == [iri(SESSIONS + "first")]
        assert values_of(memory, SESSIONS + "first", name) == []


def test_the_state_of_a_session_is_that_of_its_newest_event_beyond_nine_events(memory):
    memory.writer.start_session("p", "s")
    for status in ["Paused", "Active"] * 5 + ["Closed"]:
        memory.writer.move_session("p", "s", status=status)

    assert [status for status, _ in events(memory, "s")] == [["Paused"], ["Active"]] * 5 + [["Closed"]]
    assert refusal(memory.writer.move_session, "p", "s", status="Active").detail.endswith("has ended (Closed)")


def test_an_event_records_its_change_and_agent_and_sets_no_end_time(memory):
    memory.writer.start_session("p", "s", agent="ana")
    memory.writer.move_session("p", "s", agent="bob", phase="review")
    memory.writer.move_session("p", "s", agent="ana", status="paused", phase="planning")

    assert events(memory, "s") == [([], ["ReviewPhase"]), (["Paused"], ["PlanningPhase"])]
    assert values_of(memory, SESSIONS + "s/events/1", "causedBy") == ["<https://jido.ai/agents/bob>"]
    assert (iri(SESSIONS + "s/events/1"), TYPE, jido("SessionEvent")) in triples_of(memory)
    assert values_of(memory, SESSIONS + "s", "endedAt") == []


def test_a_phase_change_keeps_the_status(memory):
    memory.writer.start_session("p", "s")
    memory.writer.move_session("p", "s", phase="review")
    memory.writer.move_session("p", "s", status="Closed", phase="debugging")

    assert "has ended (Closed)" in refusal(memory.writer.move_session, "p", "s", status="Active").detail


def test_the_end_of_a_session_is_never_before_its_start(memory):
    node, later = iri(SESSIONS + "later"), "2031-05-01T00:00:00Z"
    rows = [(node, TYPE, jido("WorkSession")), (node, jido("hasStatus"), jido("Active"))]
    memory.writer.declare("p", [*rows, (node, jido("startedAt"), date_time(later))])
    memory.writer.start_session("p", "now")

    for name in ("later", "now"):
        memory.writer.move_session("p", name, status="Closed")

    (ended,), (started,) = (values_of(memory, SESSIONS + "now", name) for name in ("endedAt", "startedAt"))
    assert plain_value(started) < plain_value(ended) < "2026-11-22"
    assert values_of(memory, SESSIONS + "later", "endedAt") == [date_time(later)]


@pytest.mark.parametrize(("field", "raw", "nearest", "allowed"), [
    ("phase", "Reviewfase", "ReviewPhase", PHASES),
    ("status", "close", "Closed", ("Active", "Paused", "Closed", "Abandoned")),
    ("phase", "zzz", None, PHASES),
])  # fmt: skip
def test_an_unknown_state_is_refused_with_the_allowed_and_nearest_states(memory, field, raw, nearest, allowed):
    memory.writer.start_session("p", "s")

    error = refusal(memory.writer.move_session, "p", "s", **{field: raw})

    (violation,) = error.violations
    assert error.detail == f"{field} is one of {', '.join(allowed)}, not {raw!r}"
    assert (violation.code, violation.field, violation.value) == ("shape_violation", field, raw)
    assert (violation.nearest, sorted(violation.allowed)) == (nearest, sorted(allowed))
    assert (violation.repair({}) if violation.repair else None) == ({field: nearest} if nearest else None)


@pytest.mark.parametrize("name", ["review", "Review", "ReviewPhase", "review-phase", "jido:ReviewPhase"])
def test_a_phase_is_accepted_in_any_spelling(memory, name):
    memory.writer.start_session("p", "s")
    memory.writer.move_session("p", "s", phase=name)

    assert events(memory, "s") == [([], ["ReviewPhase"])]
