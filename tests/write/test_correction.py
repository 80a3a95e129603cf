"""Correction without deletion: what was wrong ends, what was right comes back, and nothing is rewritten."""

from datetime import timedelta

import pytest
from conftest import START, decision, fixed_sources, intent

import jidomem
from jidomem.errors import Conflict, IntentRefused, InvalidRequest, NotFound
from jidomem.moments import stamp

CURATED = '[agents.rita]\nrole = "Reviewer"\ncapabilities = ["CanReviewCode"]\n'


@pytest.fixture
def memory(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text(CURATED)
    with jidomem.open(root, agent="ana", sources=fixed_sources()) as opened:
        yield opened


def shown(memory, item):
    return memory.reader.get_memory("p", item)


def status(memory, *items):
    return [shown(memory, item)["status"] for item in items]


def kept(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields)).iri


def revised(memory, item, **changes):
    return memory.writer.revise("p", item, changes=changes, reason="newer").iri


def test_undoing_says_again_what_was_superseded_and_revives_it(memory):
    old = memory.writer.submit_intent("p", decision(topic="store", alternatives=["SQLite"], evidence=["a trial"])).iri
    new = revised(memory, old, summary="Use QLever")

    back = memory.writer.undo("p", old, reason="it lost data").iri

    assert status(memory, old, new, back) == ["superseded", "superseded", "active"]  # superseded is never active again
    said, again = (memory.writer.restated("p", item) for item in (old, back))
    changed = {name: again[name] for name in again if again[name] != said.get(name)}
    assert changed.keys() == {"iri", "timestamp", "asserted_by", "asserted_in", "revives", "supersedes", "reason"}
    assert (again["revives"], again["supersedes"]) == ([old], [new])
    entries = memory.reader.history("p", old)
    assert [row["entry"] for row in entries] == [old, new, back]
    assert entries[-1]["reason"] == "it lost data"


def test_undoing_what_took_the_place_is_the_same_as_undoing_what_ended(memory):
    first, second = kept(memory, summary="one"), kept(memory, summary="two")
    over_first = revised(memory, first, summary="ONE")
    marker = memory.writer.invalidate("p", second, reason="wrong").iri

    backs = [memory.writer.undo("p", end).iri for end in (over_first, marker)]

    assert [shown(memory, back)["properties"]["summary"] for back in backs] == [["one"], ["two"]]
    assert status(memory, over_first, marker, *backs) == ["superseded", "superseded", "active", "active"]


def test_an_undo_is_undone_in_turn(memory):
    old = kept(memory, summary="one")
    new = revised(memory, old, summary="two")
    back = memory.writer.undo("p", old).iri

    again = memory.writer.undo("p", back).iri

    assert shown(memory, again)["properties"]["revives"] == [new]
    assert status(memory, old, new, back, again) == ["superseded"] * 3 + ["active"]


def test_undoing_what_replaced_several_brings_each_back_by_itself(memory):
    one, two = kept(memory, summary="one"), kept(memory, summary="two")
    both = kept(memory, summary="one and two", supersedes=[one, two])

    with pytest.raises(InvalidRequest, match="took the place of several") as refusal:
        memory.writer.undo("p", both)
    backs = [memory.writer.undo("p", old).iri for old in (one, two)]

    assert refusal.value.hint == f"undo them one by one: {one}, {two}"
    assert status(memory, one, two, both, *backs) == ["superseded"] * 3 + ["active"] * 2


def test_undoing_the_withdrawal_of_one_leaves_what_said_more_than_that_it_was_wrong(memory):
    old = kept(memory, summary="the cache is safe")
    incident = kept(memory, type="incident", summary="the cache broke", invalidates=[old])

    back = memory.writer.undo("p", old).iri

    assert status(memory, old, incident, back) == ["invalidated", "active", "active"]


def test_there_is_nothing_to_undo_where_nothing_ended_or_it_is_back_already(memory):
    fresh, old = kept(memory, summary="fresh"), kept(memory, summary="old")
    revised(memory, old, summary="new")
    back = memory.writer.undo("p", old).iri

    with pytest.raises(InvalidRequest, match="nothing to undo"):
        memory.writer.undo("p", fresh)
    with pytest.raises(InvalidRequest, match=f"is in force again, as {back}"):
        memory.writer.undo("p", old)
    with pytest.raises(NotFound):
        memory.writer.undo("p", "https://jido.ai/memory/none")


def test_what_comes_back_is_judged_like_everything_else(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    memory.writer.invalidate("p", old, reason="wrong")
    rival = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="store")).iri

    with pytest.raises(Conflict) as refusal:
        memory.writer.undo("p", old)
    settled = memory.writer.undo("p", old, **refusal.value.conflicts[0].resolve_with).iri

    assert status(memory, rival, settled) == ["superseded", "active"]


def test_only_what_has_ended_is_revived(memory):
    here = kept(memory, summary="here")

    with pytest.raises(IntentRefused, match="has not ended: there is nothing to revive"):
        kept(memory, summary="again", revives=[here])
    with pytest.raises(IntentRefused, match="is no memory of this project"):
        kept(memory, summary="again", revives=["https://jido.ai/memory/none"])


def test_confirming_keeps_the_text_and_looks_again_after_as_long_a_time(memory):
    due = START + timedelta(days=90)
    old = kept(memory, type="assumption", summary="the API stays free", expires_on=stamp(due), timestamp=stamp(START))

    new = memory.writer.confirm("p", old, reason="asked them").iri
    dated = memory.writer.confirm("p", new, expires_on="2030-01-01").iri

    said = [memory.writer.restated("p", item) for item in (old, new, dated)]
    assert status(memory, old, new, dated) == ["superseded", "superseded", "active"]
    assert {each["summary"] for each in said} == {"the API stays free"}
    assert [each["asserted_by"][-3:] for each in said] == ["ect", "ana", "ana"]
    assert said[1]["reason"] == "asked them"
    assert due < memory.reader.get_memory("p", new)["properties"]["expiresOn"][0] < due + timedelta(minutes=1)
    assert said[2]["expires_on"] == "2030-01-01T00:00:00Z"


def test_a_review_that_came_before_what_it_reviews_is_dated_by_hand(memory):
    old = kept(memory, expires_on="2020-01-01")

    with pytest.raises(InvalidRequest, match="before it was said") as refusal:
        memory.writer.confirm("p", old)

    assert refusal.value.hint == "say when to look at it next: give expires_on"


def test_confirming_a_proposal_asserts_it_with_all_that_it_replaces(tmp_path):
    root = tmp_path / "proposing"
    root.mkdir()
    (root / "config.toml").write_text('[conflicts]\ndecision = "propose"\n')
    with jidomem.open(root, sources=fixed_sources()) as memory:
        held = memory.writer.submit_intent("p", decision(topic="store")).iri
        other = memory.writer.submit_intent("p", decision(summary="Pin it", topic="pin")).iri
        proposal = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="store", invalidates=[other]))
        assert proposal.status == "proposed"

        new = memory.writer.confirm("p", proposal.iri, supersedes=[proposal.iri, held])

        assert new.status == "asserted"
        assert status(memory, held, other, proposal.iri, new.iri) == [
            "superseded", "invalidated", "superseded", "active",
        ]  # fmt: skip


def test_what_a_curator_confirms_is_verified_until_its_text_changes(memory):
    by_agent = memory.writer.confirm("p", kept(memory, summary="one")).iri
    by_curator = memory.writer.confirm("p", by_agent, asserted_by="rita").iri
    settled = revised(memory, by_curator, confidence="low")
    changed = revised(memory, settled, summary="two")

    verified = [shown(memory, i)["properties"].get("verified") for i in (by_agent, by_curator, settled, changed)]
    assert verified == [None, [True], [True], None]


@pytest.mark.parametrize("guess", ["assumption", "hypothesis"])
def test_a_guess_becomes_a_fact_by_evidence_or_by_a_curator(memory, guess):
    old = kept(memory, type=guess, summary="loading is slow", expires_on="2030-01-01")
    gone = kept(memory, type=guess, summary="parsing is slow", expires_on="2030-01-01")
    memory.writer.invalidate("p", gone, reason="too soon")

    for way in ({"supersedes": [old]}, {"revives": [gone]}):
        with pytest.raises(IntentRefused, match=f"is an? {guess}: it becomes a fact by evidence") as refusal:
            kept(memory, summary="it is slow", **way)
        assert [found.field for found in refusal.value.violations] == ["evidence"]
    judged = memory.writer.revise("p", old, changes={"type": "fact", "asserted_by": "rita"}, reason="seen it")
    shown_by = kept(memory, summary="parsing is slow", revives=[gone], evidence=["a profile"])

    assert judged.filled["evidence"] == ["judged by rita: seen it"]
    assert status(memory, old, judged.iri, shown_by) == ["superseded", "active", "active"]


def test_a_correction_is_one_of_those_there_are(memory):
    item = kept(memory)
    for ways in ({}, {"confirm": True, "undo": True}, {"invalidate": True, "changes": {"topic": "x"}, "reason": "x"}):
        with pytest.raises(InvalidRequest, match="in one way"):
            memory.writer.correct("p", item, **ways)
    with pytest.raises(InvalidRequest, match="for a reason"):
        memory.writer.correct("p", item, invalidate=True)


def test_what_was_brought_back_is_exported_and_taken_in_again(memory, tmp_path):
    from jidomem.exchange.export import turtle
    from jidomem.exchange.importing import import_turtle
    from jidomem.journal.files import Stream

    old = kept(memory, summary="one")
    memory.writer.invalidate("p", old, reason="wrong")
    back = memory.writer.undo("p", old).iri
    data = turtle("p", memory.journal.read(Stream("p")), memory.schema.version)

    with jidomem.open(tmp_path / "other") as other:
        report = import_turtle(other.writer, other.schema, "p", "memory.ttl", data)

        assert not report.refusals
        assert shown(other, back)["properties"]["revives"] == [old]
        assert status(other, old, back) == ["invalidated", "active"]
