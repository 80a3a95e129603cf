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


def test_each_version_tells_the_fields_it_changed_and_its_reason_apart_from_the_rationale(memory, chain):
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


def test_a_withdrawal_has_a_reason_and_no_changes_and_neither_has_what_says_the_same_again(memory):
    old = memory.writer.submit_intent("p", intent(summary="one")).iri
    memory.writer.invalidate("p", old, reason="wrong")
    memory.writer.undo("p", old, reason="right after all")

    assert [(row["reason"], changes(row)) for row in memory.reader.history("p", old)] == [
        (None, []),
        ("wrong", []),
        ("right after all", []),
    ]


def test_an_undo_changes_back_what_took_the_place(memory):
    old = memory.writer.submit_intent("p", intent(summary="one")).iri
    memory.writer.revise("p", old, changes={"summary": "two"}, reason="newer")
    memory.writer.undo("p", old)

    *_, last = memory.reader.history("p", old)
    assert changes(last) == [("summary", "two", "one")]


def test_a_rationale_of_its_own_is_the_reason_where_none_is_given(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    new = memory.writer.submit_intent("p", decision(topic="store", rationale="it scales", supersedes=[old])).iri

    rows = memory.reader.history("p", old)
    (replaced,) = memory.reader.why("p", new)["replaced"]

    assert [row["reason"] for row in rows] == [None, "it scales"]
    assert replaced["reason"] == "it scales"
    assert [each["reason"] for each in memory.reader.why("p", old)["replaced_by"]] == ["it scales"]


def test_a_difference_tells_of_each_revision_who_made_it_when_and_what_it_changed(memory, chain):
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
    found = memory.reader.get_memory("p", chain[1])
    assert (second["recorded"], second["agents"]) == (found["recorded_at"], found["properties"]["assertedBy"])


def test_the_history_tells_by_which_event_each_version_came_and_what_was_known_then(memory):
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
