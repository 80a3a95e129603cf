"""A work session is opened once and changed by events: its state, and the refusal of an unknown state."""

import pytest
from writing import GRAPH, refusal, triples_of, values_of

from jidomem.rdf.terms import date_time, iri, plain_value
from jidomem.rdf.vocab import TYPE, jido

SESSIONS = "https://jido.ai/sessions/"
PHASES = ("PlanningPhase", "ImplementationPhase", "DebuggingPhase", "ReviewPhase")


def events(memory, name):
    """The status and phase of each event of a session, by number."""
    found = {plain_value(s) for s, _, _ in memory.index.triples(GRAPH, None, jido("ofSession"), iri(SESSIONS + name))}
    every = [[values_of(memory, event, each) for each in ("eventNumber", "toStatus", "toPhase")] for event in found]
    return [
        ([plain_value(v).rpartition("#")[2] for v in status], [plain_value(v).rpartition("#")[2] for v in phase])
        for number, status, phase in sorted(every, key=lambda row: int(plain_value(row[0][0])))
    ]


@pytest.mark.parametrize("end", ["Closed", "Abandoned"])
def test_a_session_that_its_first_event_ended_is_moved_no_further_and_its_successor_is_named(memory, end):
    memory.writer.start_session("p", "s")
    memory.writer.move_session("p", "s", status=end)
    before = triples_of(memory)

    for change in ({"status": "Active"}, {"phase": "review"}):
        error = refusal(memory.writer.move_session, "p", "s", **change)
        assert error.detail == f"{SESSIONS}s has ended ({end})"
        assert error.hint == "open a new one with: jidomem agent session start NAME --continues s"
        assert [(v.code, v.field, v.value) for v in error.violations] == [
            ("shape_violation", "session", SESSIONS + "s")
        ]
    assert triples_of(memory) == before


def test_a_session_nobody_opened_is_neither_moved_nor_continued(memory):
    memory.writer.start_session("p", "other")
    before = triples_of(memory)

    moving = refusal(memory.writer.move_session, "p", "s", status="Paused")
    continuing = refusal(memory.writer.start_session, "p", "next", continues="s")

    assert [error.code for error in (moving, continuing)] == ["not_found", "not_found"]
    assert moving.detail == continuing.detail == f"no session {SESSIONS}s"
    assert moving.hint == "open it with: jidomem agent session start NAME"
    assert continuing.hint == "list them with: jidomem agent session list"
    assert triples_of(memory) == before


def test_the_name_of_a_session_is_taken_once(memory):
    memory.writer.start_session("p", "s")
    before = triples_of(memory)

    error = refusal(memory.writer.start_session, "p", "s")

    assert (error.code, error.detail) == ("iri_exists", f"{SESSIONS}s was opened already")
    assert error.hint == "choose another name, or move this one with: jidomem agent session phase|pause|resume|close"
    assert [(v.field, v.value) for v in error.violations] == [("session", SESSIONS + "s")]
    assert triples_of(memory) == before


def test_a_session_that_continues_another_points_at_it_by_both_names_and_one_that_does_not_at_none(memory):
    memory.writer.start_session("p", "first")
    memory.writer.start_session("p", "second", continues="first")

    for name in ("continuesSession", "hasPreviousSession"):
        assert values_of(memory, SESSIONS + "second", name) == [iri(SESSIONS + "first")]
        assert values_of(memory, SESSIONS + "first", name) == []


def test_the_newest_event_says_the_state_after_more_than_nine_of_them_too(memory):
    memory.writer.start_session("p", "s")
    for status in ["Paused", "Active"] * 5 + ["Closed"]:
        memory.writer.move_session("p", "s", status=status)

    assert [status for status, _ in events(memory, "s")] == [["Paused"], ["Active"]] * 5 + [["Closed"]]
    assert refusal(memory.writer.move_session, "p", "s", status="Active").detail.endswith("has ended (Closed)")


def test_an_event_says_what_changed_by_whom_and_only_an_end_has_a_time(memory):
    memory.writer.start_session("p", "s", agent="ana")
    memory.writer.move_session("p", "s", agent="bob", phase="review")
    memory.writer.move_session("p", "s", agent="ana", status="paused", phase="planning")

    assert events(memory, "s") == [([], ["ReviewPhase"]), (["Paused"], ["PlanningPhase"])]
    assert values_of(memory, SESSIONS + "s/events/1", "causedBy") == ["<https://jido.ai/agents/bob>"]
    assert (iri(SESSIONS + "s/events/1"), TYPE, jido("SessionEvent")) in triples_of(memory)
    assert values_of(memory, SESSIONS + "s", "endedAt") == []


def test_a_phase_alone_leaves_a_session_in_the_state_it_was_in(memory):
    memory.writer.start_session("p", "s")
    memory.writer.move_session("p", "s", phase="review")
    memory.writer.move_session("p", "s", status="Closed", phase="debugging")

    assert "has ended (Closed)" in refusal(memory.writer.move_session, "p", "s", status="Active").detail


def test_a_session_ends_when_it_was_ended_but_never_before_it_began(memory):
    node, later = iri(SESSIONS + "later"), "2031-05-01T00:00:00Z"
    rows = [(node, TYPE, jido("WorkSession")), (node, jido("hasStatus"), jido("Active"))]
    memory.writer.declare("p", [*rows, (node, jido("startedAt"), date_time(later))])
    memory.writer.start_session("p", "now")

    for name in ("later", "now"):
        memory.writer.move_session("p", name, status="Closed")

    (ended,), (begun,) = (values_of(memory, SESSIONS + "now", name) for name in ("endedAt", "startedAt"))
    assert plain_value(begun) < plain_value(ended) < "2026-11-22"
    assert values_of(memory, SESSIONS + "later", "endedAt") == [date_time(later)]


@pytest.mark.parametrize(("field", "given", "nearest", "allowed"), [
    ("phase", "Reviewfase", "ReviewPhase", PHASES),
    ("status", "close", "Closed", ("Active", "Paused", "Closed", "Abandoned")),
    ("phase", "zzz", None, PHASES),
])  # fmt: skip
def test_an_unknown_state_is_answered_with_those_there_are_and_the_nearest(memory, field, given, nearest, allowed):
    memory.writer.start_session("p", "s")

    error = refusal(memory.writer.move_session, "p", "s", **{field: given})

    (found,) = error.violations
    assert error.detail == f"{field} is one of {', '.join(allowed)}, not {given!r}"
    assert (found.code, found.field, found.value) == ("shape_violation", field, given)
    assert (found.nearest, sorted(found.allowed)) == (nearest, sorted(allowed))
    assert (found.repair({}) if found.repair else None) == ({field: nearest} if nearest else None)


@pytest.mark.parametrize("name", ["review", "Review", "ReviewPhase", "review-phase", "jido:ReviewPhase"])
def test_a_phase_is_named_in_any_spelling(memory, name):
    memory.writer.start_session("p", "s")
    memory.writer.move_session("p", "s", phase=name)

    assert events(memory, "s") == [([], ["ReviewPhase"])]
