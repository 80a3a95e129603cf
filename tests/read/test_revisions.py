"""The revisions of a memory: which fields each version changed, by whom, when and why."""

import pytest
from conftest import decision, intent


@pytest.fixture
def chain(memory):
    """A decision, and three revisions of it by others, oldest first."""
    first = memory.writer.submit_intent("p", decision(topic="store", evidence=["a trial"], alternatives=["SQLite"]))
    second = memory.writer.revise("p", first.iri, changes={"summary": "Use QLever"}, reason="faster loading")
    changes = {"rationale": "it is measured", "evidence": ["a trial", "run 12"], "about": ["src/store.py"]}
    third = memory.writer.revise("p", second.iri, changes=changes, reason="numbers")
    fourth = memory.writer.revise("p", third.iri, changes={"confidence": "low", "topic": None}, reason="doubts")
    return [receipt.iri for receipt in (first, second, third, fourth)]


def changes(row):
    return [(each["field"], each["before"], each["after"]) for each in row["changes"]]


def test_each_version_has_its_changed_fields_and_the_reason_of_its_change(memory, chain):
    first, second, third, fourth = memory.reader.history("p", chain[0])

    assert [row["entry"] for row in (first, second, third, fourth)] == chain
    assert (first["reason"], changes(first)) == (None, [])  # its rationale is no reason of a change
    assert (second["reason"], changes(second)) == ("faster loading", [("summary", "Use Oxigraph", "Use QLever")])
    assert (third["reason"], changes(third)) == (
        "numbers",
        [
            ("rationale", "it embeds", "it is measured"),
            ("about", None, ["src/store.py"]),
            ("evidence", ["a trial"], ["a trial", "run 12"]),
        ],
    )
    assert (fourth["reason"], changes(fourth)) == (
        "doubts",
        [("topic", "store", None), ("confidence", "High", "Low")],
    )


def test_a_withdrawal_and_its_undo_have_a_reason_and_no_changes(memory):
    old = memory.writer.submit_intent("p", intent(summary="one")).iri
    memory.writer.invalidate("p", old, reason="wrong")
    memory.writer.undo("p", old, reason="right after all")

    assert [(row["reason"], changes(row)) for row in memory.reader.history("p", old)] == [
        (None, []),
        ("wrong", []),
        ("right after all", []),
    ]


def test_an_undo_has_the_reverse_changes(memory):
    old = memory.writer.submit_intent("p", intent(summary="one")).iri
    memory.writer.revise("p", old, changes={"summary": "two"}, reason="newer")
    memory.writer.undo("p", old)

    *_, last = memory.reader.history("p", old)
    assert changes(last) == [("summary", "two", "one")]


def test_a_new_rationale_is_the_reason_of_a_change_without_one(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    new = memory.writer.submit_intent("p", decision(topic="store", rationale="it scales", supersedes=[old])).iri

    rows = memory.reader.history("p", old)
    (replaced,) = memory.reader.why("p", new)["replaced"]

    assert [row["reason"] for row in rows] == [None, "it scales"]
    assert replaced["reason"] == "it scales"
    assert [each["reason"] for each in memory.reader.why("p", old)["replaced_by"]] == ["it scales"]


def test_a_diff_has_the_agent_time_and_changes_of_each_revision(memory, chain):
    since = memory.reader.get_memory("p", chain[0])["recorded_at"]
    rows = {row["item"]: row for row in memory.reader.diff("p", since)}

    assert rows[chain[0]]["change"] == "superseded"
    assert (rows[chain[0]]["reason"], rows[chain[0]]["changes"], rows[chain[0]]["agents"]) == (None, [], [])
    second = rows[chain[1]]
    assert (second["change"], second["reason"], changes(second)) == (
        "added",
        "faster loading",
        [("summary", "Use Oxigraph", "Use QLever")],
    )
    values = memory.reader.get_memory("p", chain[1])
    assert (second["recorded"], second["agents"]) == (values["recorded_at"], values["properties"]["assertedBy"])


def test_the_history_has_the_event_of_each_version_and_is_limited_by_as_of(memory):
    first = memory.writer.submit_intent("p", decision(topic="store")).iri
    revised = memory.writer.revise("p", first, changes={"summary": "Use QLever"}, reason="faster").iri
    confirmed = memory.writer.confirm("p", revised, reason="looked again").iri
    marker = memory.writer.invalidate("p", confirmed, reason="wrong").iri
    revived = memory.writer.undo("p", confirmed, reason="right").iri
    proposal = memory.writer.submit_intent("p", intent(summary="the disk is full"), propose=True).iri
    accepted = memory.writer.confirm("p", proposal, reason="seen").iri
    other = memory.writer.submit_intent("p", intent(summary="the disk is slow"), propose=True).iri
    rejection = memory.writer.invalidate("p", other, reason="no").iri

    def events(item, **moment):
        return {row["entry"]: row["event"] for row in memory.reader.history("p", item, **moment)}

    assert events(first) == {
        first: "asserted", revised: "revised", confirmed: "confirmed", marker: "withdrawn", revived: "revived",
    }  # fmt: skip
    assert events(proposal) == {proposal: "proposed", accepted: "accepted"}
    assert events(other) == {other: "proposed", rejection: "rejected"}
    then = memory.reader.get_memory("p", revised)["recorded_at"]
    assert events(first, as_of=then) == {first: "asserted", revised: "revised"}
    known = {row["item"]: row["event"] for row in memory.reader.diff("p", "0")}
    assert (known[proposal], known[accepted], known[confirmed]) == ("proposed", "accepted", "confirmed")


def versions_of(memory, item):
    """Return event, changes and the memories also superseded of each version in the history of *item*."""
    return [
        (row["event"], changes(row), [each["iri"] for each in row["also_superseded"]])
        for row in memory.reader.history("p", item)
    ]


def test_a_memory_superseded_in_review_names_its_confirmed_successor(memory):
    old = memory.writer.submit_intent("p", intent(summary="API listens on 9090")).iri
    new = memory.writer.submit_intent("p", intent(summary="API listens on 8080")).iri
    settled = memory.writer.settle("p", new, "supersede", other=old, reason="moved").iri
    summary = [("summary", "API listens on 9090", "API listens on 8080")]

    assert [row["reason"] for row in memory.reader.history("p", old)] == [None, "moved"]
    assert versions_of(memory, old) == [("asserted", [], []), ("superseded", summary, [new])]
    assert versions_of(memory, new) == [("asserted", [], []), ("confirmed", [], [old])]
    assert versions_of(memory, settled)[-1] == ("confirmed", [], [old])


def test_an_accepted_proposal_supersedes_the_memory_in_conflict(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    new = memory.writer.submit_intent("p", decision(topic="store", summary="Use QLever"), propose=True).iri
    settled = memory.writer.settle("p", new, "supersede", reason="faster").iri

    events = {row["entry"]: (row["event"], changes(row)) for row in memory.reader.history("p", old)}
    assert events[settled] == ("superseded", [("summary", "Use Oxigraph", "Use QLever")])
    assert versions_of(memory, new) == [("proposed", [], []), ("accepted", [], [old])]


def test_a_confirmation_that_ends_a_duplicate_has_no_changes_and_names_it(memory):
    first = memory.writer.submit_intent("p", intent(summary="eight connections")).iri
    second = memory.writer.submit_intent("p", intent(summary="sixteen connections")).iri
    memory.writer.confirm("p", first, reason="it says the same", supersedes=[first, second])

    assert versions_of(memory, first)[-1] == ("confirmed", [], [second])
    assert versions_of(memory, second)[-1] == (
        "superseded", [("summary", "sixteen connections", "eight connections")], [first],
    )  # fmt: skip


def test_a_revision_that_also_ends_a_second_memory_is_a_revision_of_both(memory):
    first = memory.writer.submit_intent("p", intent(summary="one")).iri
    second = memory.writer.submit_intent("p", intent(summary="two")).iri
    memory.writer.revise("p", first, changes={"summary": "three", "supersedes": [first, second]}, reason="both")

    assert versions_of(memory, first)[-1] == ("revised", [("summary", "one", "three")], [second])
    assert versions_of(memory, second)[-1] == ("revised", [("summary", "two", "three")], [first])


def test_an_incident_is_the_withdrawal_in_the_history_of_what_it_withdrew_and_asserted_in_its_own(memory):
    items = [memory.writer.remember("p", each).iri for each in ("the queue is safe", "the cache is safe")]
    incident = memory.writer.submit_intent(
        "p", intent(type="incident", summary="both broke", rationale="seen", invalidates=items)
    ).iri
    confirmed = memory.writer.confirm("p", incident, reason="seen").iri
    back = memory.writer.undo("p", items[0], reason="a false alarm", supersedes=[confirmed]).iri

    events = {
        item: {row["entry"]: row["event"] for row in memory.reader.history("p", item)}
        for item in (*items, incident, confirmed, back)
    }

    assert {events[item][incident] for item in (*items, back)} == {"withdrawn"}
    assert [events[item][incident] for item in (incident, confirmed)] == ["asserted", "asserted"]
    assert (events[items[0]][back], events[incident][confirmed]) == ("revived", "confirmed")


def test_a_restored_memory_is_compared_with_its_last_version_and_not_with_the_incident_that_withdrew_it(memory):
    item = memory.writer.remember("p", "the queue is safe").iri
    incident = memory.writer.submit_intent(
        "p", intent(type="incident", summary="it broke", rationale="seen", invalidates=[item])
    ).iri
    memory.writer.undo("p", incident, reason="a false alarm")

    last = memory.reader.history("p", item)[-1]

    assert (last["event"], changes(last)) == ("revived", [])
