"""Correction without deletion: a wrong memory ends, a right one is restored, and nothing is rewritten."""

from dataclasses import replace
from datetime import timedelta

import pytest
from conftest import START, decision, fixed_sources, intent
from writing import open_with, triples_of

import jidomem
from jidomem.base.clock import format_timestamp
from jidomem.errors import Conflict, IdempotencyMismatch, IntentRefused, InvalidRequest, NotFound, PolicyDenied
from jidomem.serve.wire import for_requests, for_tools

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
    assert changed.keys() == {"iri", "revives", "supersedes", "reason"}
    assert shown(memory, back)["properties"]["settledBy"] == ["https://jido.ai/agents/ana"]
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

    again = memory.writer.undo("p", back, reason="two after all").iri

    assert shown(memory, again)["properties"]["revives"] == [new]
    assert status(memory, old, new, back, again) == ["superseded"] * 3 + ["active"]


def test_each_undo_of_the_last_undo_leaves_one_version_active(memory):
    old = kept(memory, summary="the port is 80")
    item = revised(memory, old, summary="the port is 90")

    for summary in [80, 90] * 3:
        item = memory.writer.undo("p", item, reason="back").iri

        assert [row["summary"] for row in memory.reader.ask("facts", project="p")] == [f"the port is {summary}"]


def test_an_undo_that_is_repeated_is_deduplicated_and_names_how_to_redo(memory):
    new = revised(memory, kept(memory, summary="the port is 80"), summary="the port is 90")
    back = memory.writer.undo("p", new)
    commits = len(memory.reader.log("p").rows)

    again = memory.writer.undo("p", new)  # as after an answer that was lost

    assert (again.iri, again.status, again.commit) == (back.iri, "deduplicated", back.commit)
    assert again.warnings == (f"{new} is undone already, by {back.iri}; to redo it: jidomem edit {back.iri} --undo",)
    assert len(memory.reader.log("p").rows) == commits
    with pytest.raises(InvalidRequest, match="is undone already"):
        memory.writer.undo("p", new, summary="the port is 85")

    redone = memory.writer.undo("p", back.iri, reason="90 after all").iri
    assert shown(memory, redone)["properties"]["summary"] == ["the port is 90"]
    assert memory.writer.undo("p", back.iri).iri == redone


@pytest.mark.parametrize(
    ("one", "other"), [("supersedes", "coexists_with"), ("invalidates", "coexists_with"), ("supersedes", "invalidates")]
)
def test_a_memory_that_is_to_end_and_to_stay_is_refused(memory, one, other):
    old = kept(memory, summary="the store is MySQL")

    with pytest.raises(IntentRefused, match=f"{old} is named in {one} and in {other}: say which"):
        kept(memory, summary="the store is SQLite", **{one: [old], other: [old]})
    assert status(memory, old) == ["active"]


def test_a_memory_that_coexists_with_another_may_take_its_place_later(memory):
    first = kept(memory, summary="the port is 80", about=["a.py"])
    second = kept(memory, summary="the port is 90", about=["b.py"], coexists_with=[first])

    merged = memory.writer.confirm("p", second, supersedes=[second, first], reason="one port")

    assert merged.status == "asserted"
    assert status(memory, first, second) == ["superseded", "superseded"]


def test_an_agent_only_proposes_to_revive_what_a_curator_ended(memory):
    first, other, third = (kept(memory, summary=text) for text in ("the port is 80", "the port is the 80", "three"))
    memory.writer.agent = "rita"
    memory.writer.settle("p", first, "accept", other=other, reason="measured")
    revised(memory, third, summary="THREE")

    memory.writer.agent = "ana"
    proposed = [memory.writer.undo("p", item, reason="it was right") for item in (other, third)]
    before = status(memory, other, third)
    memory.writer.agent = "rita"
    accepted = [memory.writer.settle("p", receipt.iri, "accept") for receipt in proposed]

    assert [receipt.status for receipt in (*proposed, *accepted)] == ["proposed"] * 2 + ["asserted"] * 2
    assert all("which rita ended" in receipt.warnings[0] for receipt in proposed)
    assert before == ["invalidated", "superseded"]
    back = [shown(memory, receipt.iri)["properties"] for receipt in accepted]
    assert [each["assertedBy"][0].rpartition("/")[2] for each in back] == ["architect"] * 2
    assert memory.writer.undo("p", accepted[0].iri).status == "proposed"  # by a curator, it is pending again


def test_an_agent_does_not_undo_what_a_curator_accepted(memory):
    proposal = memory.writer.submit_intent("p", intent(), propose=True).iri
    memory.writer.agent = "rita"
    accepted = memory.writer.settle("p", proposal, "accept").iri

    memory.writer.agent = "ana"
    for item in (proposal, accepted):
        with pytest.raises(PolicyDenied, match="may not undo what a curator accepted") as refusal:
            memory.writer.undo("p", item, reason="no")
        assert refusal.value.hint == "ask rita"
    assert status(memory, accepted) == ["active"]


def test_undoing_a_withdrawal_ends_again_what_was_restored_in_the_meantime(memory):
    old = kept(memory, summary="the port is 80")
    new = revised(memory, old, summary="the port is 90")
    memory.writer.invalidate("p", new, reason="wrong")
    back = memory.writer.undo("p", old).iri

    memory.writer.undo("p", new, reason="90 after all")

    assert [row["summary"] for row in memory.reader.ask("facts", project="p")] == ["the port is 90"]
    assert status(memory, back) == ["superseded"]


def test_undoing_the_undos_of_a_joint_replacement_ends_what_each_restored(memory):
    olds = [kept(memory, summary=text) for text in ("one", "two", "three")]
    joint = kept(memory, summary="all", supersedes=olds)
    beside = kept(memory, summary="three", revives=olds[2:])  # beside the active replacement: it stays
    backs = [memory.writer.undo("p", old, reason="apart").iri for old in olds[:2]]

    memory.writer.undo("p", joint, reason="one matter")

    assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"three", "all"}
    assert status(memory, beside, *backs) == ["active", "superseded", "superseded"]


def test_an_agent_changes_no_other_memory_by_the_fields_of_a_proposal_that_it_undoes(memory):
    old = kept(memory, summary="the port is 80")
    proposal = memory.writer.submit_intent("p", intent(summary="the port is 443", supersedes=[old]), propose=True).iri
    memory.writer.agent = "rita"
    accepted = memory.writer.settle("p", proposal, "accept", reason="measured").iri

    memory.writer.agent = "ana"
    for item in (proposal, accepted):
        with pytest.raises(InvalidRequest, match=f"would change {old}") as refusal:
            memory.writer.undo("p", item, reason="no", summary="the port is 8443", topic="port")
        assert (refusal.value.detail.split(" ")[0], "summary, topic" in refusal.value.detail) == (item, True)
        assert f"jidomem edit {old} --undo" in refusal.value.hint

    restored = memory.writer.undo("p", old, reason="no", summary="the port is 8080").iri
    assert shown(memory, restored)["properties"]["summary"] == ["the port is 8080"]
    assert memory.writer.undo("p", proposal, reason="no", asserted_by="bob").status == "proposed"


def test_undoing_what_replaced_several_brings_each_back_by_itself(memory):
    one, two = kept(memory, summary="one"), kept(memory, summary="two")
    both = kept(memory, summary="one and two", supersedes=[one, two])

    with pytest.raises(InvalidRequest, match="replaced several memories") as refusal:
        memory.writer.undo("p", both)
    backs = [memory.writer.undo("p", old, reason="two matters").iri for old in (one, two)]

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
    with pytest.raises(InvalidRequest, match=f"is active again, as {back}"):
        memory.writer.undo("p", old)
    with pytest.raises(NotFound):
        memory.writer.undo("p", "https://jido.ai/memory/none")


def test_what_comes_back_is_judged_like_everything_else(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    memory.writer.invalidate("p", old, reason="wrong")
    rival = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="store")).iri

    with pytest.raises(Conflict) as refusal:
        memory.writer.undo("p", old, reason="it was right")
    settled = memory.writer.undo("p", old, reason="it was right", **refusal.value.conflicts[0].resolve_with).iri

    assert status(memory, rival, settled) == ["superseded", "active"]


def test_only_what_has_ended_is_revived(memory):
    here = kept(memory, summary="here")

    with pytest.raises(IntentRefused, match="has not ended: there is nothing to revive"):
        kept(memory, summary="again", revives=[here])
    with pytest.raises(IntentRefused, match="is not a memory of this project"):
        kept(memory, summary="again", revives=["https://jido.ai/memory/none"])


def test_confirming_keeps_the_text_and_looks_again_after_as_long_a_time(memory):
    due = START + timedelta(days=90)
    old = kept(
        memory,
        type="assumption",
        summary="the API stays free",
        expires_on=format_timestamp(due),
        timestamp=format_timestamp(START),
    )

    new = memory.writer.confirm("p", old, reason="asked them").iri
    dated = memory.writer.confirm("p", new, expires_on="2030-01-01").iri

    said = [memory.writer.restated("p", item) for item in (old, new, dated)]
    assert status(memory, old, new, dated) == ["superseded", "superseded", "active"]
    assert {each["summary"] for each in said} == {"the API stays free"}
    assert [each["asserted_by"][-3:] for each in said] == ["ect", "ect", "ect"]
    assert said[1]["reason"] == "asked them"
    assert due < memory.reader.get_memory("p", new)["properties"]["expiresOn"][0] < due + timedelta(minutes=1)
    assert said[2]["expires_on"] == "2030-01-01T00:00:00Z"


def test_a_review_that_came_before_what_it_reviews_is_dated_by_hand(memory):
    old = kept(memory, expires_on="2020-01-01")

    with pytest.raises(InvalidRequest, match="before its own date") as refusal:
        memory.writer.confirm("p", old)

    assert refusal.value.hint.endswith(" --confirm --set expires_on=DATE")


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

    until = memory.sources.now() + timedelta(minutes=1)
    over = kept(memory, valid_until=until)
    while memory.sources.now() < until:
        pass
    memory.writer.agent = "rita"
    ended = memory.writer.settle("p", over, "accept").iri
    assert shown(memory, ended)["properties"].get("verified") is None


@pytest.mark.parametrize("fields", [{}, {"expires_on": "2030-01-01"}], ids=str)
def test_an_end_that_has_passed_is_confirmed_with_another_one_only(memory, fields):
    item = kept(memory, valid_until="2020-01-01", asserted_by=memory.writer.agent)
    name = item.rpartition("/")[2]

    with pytest.raises(InvalidRequest, match=f"{item} expired: it was valid until 2020-01-01;") as refusal:
        memory.writer.confirm("p", item, **fields)
    told = refusal.value.to_dict()
    renewed = memory.writer.confirm("p", item, valid_until="2090-01-01", reason="it goes on", **fields).iri

    assert told["hint"] == f"to renew it: jidomem edit {item} --confirm --set valid_until=DATE"
    way = f'POST /projects/p/memories/{name}/revise {{"confirm": true, "set": {{"valid_until": "DATE"}}}}'
    assert for_requests(told, "p")["hint"] == f"to renew it: {way}"
    call = f'the tool revise with id {name}, confirm true and set {{"valid_until": "DATE"}}'
    assert for_tools(told)["hint"] == f"to renew it: {call}"
    assert status(memory, item, renewed) == ["superseded", "active"]


def test_the_hint_that_renews_what_another_agent_wrote_gives_a_reason(memory):
    item = kept(memory, valid_until="2020-01-01", asserted_by="another")
    name = item.rpartition("/")[2]

    with pytest.raises(InvalidRequest, match="expired") as refusal:
        memory.writer.confirm("p", item)
    with pytest.raises(IntentRefused, match="say in reason"):
        memory.writer.confirm("p", item, valid_until="2090-01-01")

    told = refusal.value.to_dict()
    assert told["hint"] == f"to renew it: jidomem edit {item} --confirm --set valid_until=DATE --reason TEXT"
    fields = '{"confirm": true, "set": {"valid_until": "DATE"}, "reason": "..."}'
    assert for_requests(told, "p")["hint"] == f"to renew it: POST /projects/p/memories/{name}/revise {fields}"
    call = f'the tool revise with id {name}, confirm true, set {{"valid_until": "DATE"}} and a reason'
    assert for_tools(told)["hint"] == f"to renew it: {call}"


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
        with pytest.raises(InvalidRequest, match="choose one correction"):
            memory.writer.correct("p", item, **ways)
    with pytest.raises(InvalidRequest, match="a withdrawal needs a reason"):
        memory.writer.correct("p", item, invalidate=True)


def test_what_was_brought_back_is_exported_and_taken_in_again(memory, tmp_path):
    from jidomem.exchange.documents import turtle
    from jidomem.exchange.importer import import_document
    from jidomem.journal.journal import Stream

    old = kept(memory, summary="one")
    memory.writer.invalidate("p", old, reason="wrong")
    back = memory.writer.undo("p", old).iri
    data = turtle("p", memory.journal.read(Stream("p")), memory.schema.version)

    with jidomem.open(tmp_path / "other") as other:
        report = import_document(other.writer, other.schema, "p", "memory.ttl", data)

        assert not report.refusals
        assert shown(other, back)["properties"]["revives"] == [old]
        assert status(other, old, back) == ["invalidated", "active"]


BLOB = "a" * 40


def anchors(memory, item):
    return shown(memory, item)["properties"].get("aboutBlob", [])


def test_a_mere_change_of_state_keeps_what_the_files_were_and_who_says_it_anew_has_looked_again(memory):
    old = memory.writer.submit_intent("p", intent(about=["a.py"]), blobs={"a.py": BLOB}).iri
    settled = revised(memory, old, confidence="low")
    memory.writer.invalidate("p", settled, reason="wrong")
    back = memory.writer.undo("p", settled).iri
    said_again = revised(memory, back, rationale="I read it")
    memory.writer.invalidate("p", said_again, reason="wrong")
    looked = memory.writer.undo("p", back, about=["a.py"])

    assert [anchors(memory, item) for item in (old, settled, back)] == [[f"{BLOB} a.py"]] * 3
    assert [anchors(memory, item) for item in (said_again, looked.iri)] == [[], []]


def test_a_withdrawal_is_a_marker_that_says_what_why_and_by_whom(memory):
    memory.writer.agent = "bob"
    old = kept(memory, summary="x" * 10_005)

    planned = memory.writer.invalidate("p", old, reason="it was measured wrongly", dry_run=True)
    assert shown(memory, old)["status"] == "active"
    marker = memory.writer.invalidate("p", old, reason="it was measured wrongly")

    said = memory.writer.restated("p", marker.iri)
    assert planned.status == marker.status == "asserted"
    assert {name: said[name] for name in said if name not in ("iri", "timestamp")} == {
        "type": "deleted_marker",
        "summary": "Withdrawn: " + "x" * 10_000,
        "rationale": "it was measured wrongly",
        "applies_to_project": "https://jido.ai/projects/p",
        "asserted_by": "https://jido.ai/agents/bob",
        "asserted_in": "https://jido.ai/sessions/bob-2026-11-21",
        "confidence": "high",
        "invalidates": [old],
    }


def test_what_is_withdrawn_without_a_text_of_its_own_is_named(memory):
    old = kept(memory, summary="the key is hunter2")
    memory.keeper.redact(memory.keeper.plan("p", old), agent="rita", reason="a secret")

    marker = memory.writer.invalidate("p", old, reason="wrong").iri

    assert shown(memory, marker)["properties"]["summary"] == [f"Withdrawn: {old}"]


def test_a_confirmed_proposal_takes_the_place_of_what_it_named_itself(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        old, wrong = kept(memory, summary="one"), kept(memory, summary="two")
        gone = kept(memory, summary="three")
        memory.writer.invalidate("p", gone, reason="wrong")
        given = intent(summary="ONE", supersedes=[old], invalidates=[wrong], revives=[gone])
        proposal = memory.writer.submit_intent("p", given, propose=True)
        assert (proposal.status, status(memory, old, wrong)) == ("proposed", ["active", "active"])

        assert memory.writer.confirm("p", proposal.iri, dry_run=True).status == "asserted"
        assert status(memory, old, wrong) == ["active", "active"]
        new = memory.writer.confirm("p", proposal.iri).iri

        assert status(memory, old, wrong, proposal.iri, new) == ["superseded", "invalidated", "superseded", "active"]
        said = memory.writer.restated("p", new)
        assert sorted(said["supersedes"]) == sorted([old, proposal.iri])
        assert (said["invalidates"], said["revives"]) == ([wrong], [gone])


def test_what_was_asserted_and_is_confirmed_ends_only_itself(memory):
    old = kept(memory, summary="one")
    newer = kept(memory, summary="ONE", supersedes=[old])

    said = memory.writer.restated("p", memory.writer.confirm("p", newer).iri)

    assert said["supersedes"] == [newer]
    assert "expires_on" not in said


@pytest.mark.parametrize(("agents", "hint"), [
    ("", "the project has no curator; the owner of the repository, not an agent, becomes one with: "
         "jidomem access policy grant ana admin"),
    ('[agents.rita]\nrole = "Curator"\n[agents.tom]\nrole = "Administrator"\n', "ask a curator: rita, tom"),
])  # fmt: skip
def test_who_may_not_confirm_is_told_why_and_who_may(tmp_path, monkeypatch, agents, hint):
    monkeypatch.setenv("USER", "ana")
    with open_with(tmp_path, 'policy = "curated"\n' + agents, agent="bob") as memory:
        proposal = memory.writer.submit_intent("p", decision(asserted_by="bob", topic="store"))
        with pytest.raises(PolicyDenied, match=r"^bob may not settle this: .*may only propose") as refusal:
            memory.writer.confirm("p", proposal.iri)

        assert refusal.value.hint == hint
        assert status(memory, proposal.iri) == ["pending"]


def test_confirming_a_proposal_that_disagrees_names_the_active_memory(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "propose"\n') as memory:
        there = memory.writer.submit_intent("p", decision(topic="store")).iri
        proposal = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="store")).iri

        with pytest.raises(Conflict) as refusal:
            memory.writer.confirm("p", proposal)

        assert [found.iri for found in refusal.value.conflicts] == [there]
        assert status(memory, there, proposal) == ["active", "pending"]


@pytest.mark.parametrize("way", [
    {"supersede": "two"}, {"invalidate": True, "reason": "wrong"}, {"confirm": True}, {"changes": {"summary": "two"}},
    {"confirm": True, "changes": {"topic": "x"}}, {"supersede": "two", "changes": {"topic": "x"}},
    {"undo": True}, {"undo": True, "changes": {"topic": "x"}},
])  # fmt: skip
def test_a_correction_of_each_kind_is_first_tried_and_then_made_in_the_name_of_who_asks(memory, way):
    item = kept(memory, summary="one")
    if "undo" in way:
        memory.writer.invalidate("p", item, reason="wrong")
    asked = {"reason": "because", **way, "who": {"asserted_by": "zoe"}}

    before = triples_of(memory)
    memory.writer.correct("p", item, **asked, dry_run=True)
    assert triples_of(memory) == before
    new = memory.writer.correct("p", item, **asked).iri

    said = memory.writer.restated("p", new)
    is_unchanged = way in ({"confirm": True}, {"undo": True})
    by = memory.reader.get_memory("p", new)["properties"]["settledBy"] if is_unchanged else [said["asserted_by"]]
    assert by == ["https://jido.ai/agents/zoe"]
    assert said["asserted_by"].endswith("architect") == is_unchanged
    assert said.get("rationale" if "invalidate" in way else "reason") == asked["reason"]
    assert said.get("topic") == ("x" if "x" in str(way.get("changes")) else None)
    assert said["summary"] == ("Withdrawn: one" if "invalidate" in way else "two" if "two" in str(way) else "one")
    assert said.get("revives", said.get("supersedes", said.get("invalidates"))) == [item]


def test_what_makes_no_correction_is_answered_with_those_there_are(memory):
    item = kept(memory)
    for way in ({}, {"supersede": "", "confirm": True}, {"supersede": "x", "undo": True}, {"reason": "x"}):
        with pytest.raises(InvalidRequest, match="choose one correction") as refusal:
            memory.writer.correct("p", item, **way)
        assert refusal.value.hint == (
            "give one of `supersede`, `invalidate`, `confirm` and `undo`, or fields to change"
        )
    with pytest.raises(InvalidRequest, match="a withdrawal needs a reason") as refusal:
        memory.writer.correct("p", item, invalidate=True, reason="")
    assert refusal.value.hint == "give `reason`: why it is wrong"


def test_who_corrects_what_was_corrected_already_is_pointed_to_what_took_its_place(memory):
    old = kept(memory, summary="one")
    new = memory.writer.correct("p", old, supersede="two", reason="counted").iri

    more = {"confirm": True, "changes": {"supersedes": [old, kept(memory, summary="four")]}}
    for way in ({"supersede": "three"}, {"confirm": True}, {"invalidate": True, "reason": "wrong"}, more):
        with pytest.raises(Conflict) as refusal:
            memory.writer.correct("p", old, **way)
        assert refusal.value.hint.endswith(f"correct that if it is still wrong: {new}")


def test_who_disagrees_with_another_memory_is_not_pointed_to_it_as_if_it_had_taken_the_place(memory):
    one = memory.writer.submit_intent("p", decision(topic="store")).iri
    other = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="cache")).iri

    with pytest.raises(Conflict) as refusal:
        memory.writer.correct("p", other, changes={"topic": "store"}, reason="it is that")

    assert [found.iri for found in refusal.value.conflicts] == [one]
    assert refusal.value.hint.startswith("choose one: supersedes=")


@pytest.mark.parametrize("name", ["nothing", "two words", "https://jido.ai/memory/none", "https://jido.ai/agents/ana"])
def test_what_is_no_memory_is_not_corrected(memory, name):
    kept(memory)
    for correcting in ({"confirm": True}, {"undo": True}, {"supersede": "x"}, {"invalidate": True, "reason": "x"}):
        with pytest.raises(NotFound) as refusal:
            memory.writer.correct("p", name, **correcting)
        assert refusal.value.detail == f"{name} is not a memory of this project"
        assert refusal.value.hint == "list them with: jidomem ask timeline"


def test_a_memory_in_the_place_of_another_stands_beside_what_that_stood_beside(memory):
    def stored(topic, **fields):
        return memory.writer.submit_intent("p", decision(topic=topic, summary=f"Use {topic} {fields}", **fields)).iri

    first = memory.writer.submit_intent("p", decision(topic="store", about=["a"])).iri
    second = stored("store", about=["b"], coexists_with=[first])
    third = stored("store", about=["c"], coexists_with=[first, second])
    memory.writer.invalidate("p", second, reason="wrong")

    by_both = [memory.writer.restated("p", revised(memory, item, confidence="low")) for item in (first, third)]

    assert by_both[0]["coexists_with"] == [third]
    assert by_both[1]["coexists_with"] == [by_both[0]["iri"]]


def test_evidence_and_alternatives_come_back_as_what_they_were_given_as(memory):
    other = kept(memory, summary="a run")
    given = decision(
        topic="x", evidence=["a trial", other, "https://example.org/log"], alternatives=["SQLite", "Lucene"]
    )
    item = memory.writer.submit_intent("p", given).iri

    said = memory.writer.restated("p", item)

    assert sorted(said["evidence"]) == sorted(["a trial", other, "https://example.org/log"])
    assert said["alternatives"] == ["SQLite", "Lucene"]


def test_a_review_due_the_moment_it_was_said_is_dated_by_hand(memory):
    old = kept(memory, timestamp=format_timestamp(START), expires_on=format_timestamp(START))

    with pytest.raises(InvalidRequest) as refusal:
        memory.writer.confirm("p", old)

    assert refusal.value.detail == "its review was due on 2026-11-21T08:00:00Z, before its own date"
    assert status(memory, memory.writer.confirm("p", old, expires_on="2030-01-01").iri) == ["active"]


def test_a_proposal_has_ended_nothing_that_could_be_undone(memory):
    old, other = kept(memory, summary="one"), kept(memory, summary="two")
    for ends in ([old], [old, other]):
        proposal = memory.writer.submit_intent("p", intent(summary=f"new {ends}", supersedes=ends), propose=True).iri
        with pytest.raises(InvalidRequest) as refusal:
            memory.writer.undo("p", proposal)
        assert refusal.value.detail == f"{proposal} has not ended, and ended nothing: there is nothing to undo"
        assert refusal.value.hint == "to withdraw it: `invalidate`, and say why in `reason`"


def test_what_is_back_already_is_pointed_to(memory):
    old = kept(memory, summary="old")
    revised(memory, old, summary="new")
    back = memory.writer.undo("p", old).iri

    with pytest.raises(InvalidRequest) as refusal:
        memory.writer.undo("p", old)
    assert refusal.value.detail == f"{old} is active again, as {back}"
    assert refusal.value.hint == "to replace it: supersede that one"
    memory.writer.invalidate("p", back, reason="wrong")
    assert status(memory, memory.writer.undo("p", old).iri) == ["active"]


def test_what_was_replaced_again_and_again_is_undone_at_the_end_of_the_chain(memory):
    first = kept(memory, summary="one")
    second = revised(memory, first, summary="two")
    third = revised(memory, second, summary="three")

    back = memory.writer.undo("p", first).iri

    assert memory.writer.restated("p", back)["supersedes"] == [third]
    assert status(memory, first, second, third, back) == ["superseded"] * 3 + ["active"]


def test_undoing_a_withdrawal_takes_the_place_of_its_marker(memory):
    old = kept(memory, summary="one")
    marker = memory.writer.invalidate("p", old, reason="wrong").iri

    back = memory.writer.undo("p", old).iri

    assert memory.writer.restated("p", back)["supersedes"] == [marker]
    assert status(memory, old, marker, back) == ["invalidated", "superseded", "active"]


def test_undoing_one_of_several_withdrawn_at_once_leaves_their_marker(memory):
    one, two = kept(memory, summary="one"), kept(memory, summary="two")
    marker = memory.writer.invalidate("p", one, reason="wrong", invalidates=[one, two]).iri

    back = memory.writer.undo("p", one).iri

    assert status(memory, one, two, marker, back) == ["invalidated", "invalidated", "active", "active"]


def test_a_correction_that_confirms_asserts_what_waited_and_dates_the_next_review(memory):
    due = START + timedelta(days=90)
    given = intent(summary="one", expires_on=format_timestamp(due), timestamp=format_timestamp(START))
    waiting = memory.writer.submit_intent("p", given, propose=True).iri

    new = memory.writer.correct("p", waiting, confirm=True, who={"asserted_by": "rita"})

    told = shown(memory, new.iri)
    assert (new.status, told["status"], told["properties"]["verified"]) == ("asserted", "active", [True])
    assert told["properties"]["expiresOn"][0] > due


def test_what_else_a_memory_says_is_carried_over_by_another_text_and_by_a_curators_confirmation(memory):
    mood = "https://example.org/mood"
    old = kept(memory, summary="one", extra_triples=[[mood, "sunny"]])
    changed = revised(memory, old, summary="two")
    confirmed = memory.writer.confirm("p", changed, asserted_by="rita").iri
    confirmed_again = memory.writer.confirm("p", confirmed, asserted_by="rita").iri

    said = [memory.writer.restated("p", item)["extra_triples"] for item in (old, changed, confirmed, confirmed_again)]
    assert [[value["@value"] for name, value in each if name == mood] for each in said] == [["sunny"]] * 4
    assert [sum(name.endswith("#verified") for name, _ in each) for each in said] == [0, 0, 1, 1]


def test_evidence_with_an_iri_of_its_own_keeps_it_whatever_it_is_labelled(memory):
    log = "https://example.org/log"
    label = [log, "http://www.w3.org/2000/01/rdf-schema#label", "the log of Monday"]
    item = kept(memory, summary="one", evidence=[log], extra_triples=[label])

    assert memory.writer.restated("p", item)["evidence"] == [log]


def test_what_takes_a_memorys_place_does_not_end_again_what_that_had_ended(memory):
    old, wrong = kept(memory, summary="one"), kept(memory, summary="two")
    ending = kept(memory, type="incident", summary="it broke", supersedes=[old], invalidates=[wrong])

    new = revised(memory, ending, summary="it broke twice")

    said = memory.writer.restated("p", new)
    assert (said["supersedes"], said.get("invalidates")) == ([ending], None)
    assert status(memory, old, wrong, ending, new) == ["superseded", "invalidated", "superseded", "active"]


def dates(memory, *items):
    return [memory.writer.restated("p", item)["timestamp"][:10] for item in items]


def test_a_correction_that_does_not_set_the_date_of_a_memory_keeps_it(memory):
    old = kept(memory, **decision(topic="store", timestamp="2020-03-04"))

    confirmed = memory.writer.confirm("p", old).iri
    changed = revised(memory, confirmed, topic="storage", rationale="it is one file")
    memory.writer.invalidate("p", changed, reason="wrong")
    back = memory.writer.undo("p", changed).iri

    assert dates(memory, confirmed, changed, back) == ["2020-03-04"] * 3
    assert {shown(memory, item)["recorded_at"].year for item in (confirmed, changed, back)} == {START.year}


def test_another_summary_is_dated_now_unless_its_date_is_given(memory):
    old = kept(memory, summary="the build needs Rust 1.80", timestamp="2020-03-04")

    same = revised(memory, old, summary="the build needs Rust 1.80", topic="build")
    new = revised(memory, same, summary="the build needs Rust 1.85")
    given = revised(memory, new, summary="the build needs Rust 1.86", timestamp="2021-01-01")

    assert dates(memory, same, new, given) == ["2020-03-04", format_timestamp(START)[:10], "2021-01-01"]


def test_an_accepted_proposal_keeps_its_date(memory):
    proposed = memory.writer.submit_intent("p", decision(timestamp="2020-03-04"), propose=True).iri

    accepted = memory.writer.settle("p", proposed, "accept").iri

    assert dates(memory, accepted) == ["2020-03-04"]


def test_a_memory_confirmed_again_is_reviewed_after_as_long_a_time_as_before(memory):
    due = START + timedelta(days=90)
    item = kept(
        memory,
        type="assumption",
        summary="it stays free",
        expires_on=format_timestamp(due),
        timestamp=format_timestamp(START),
    )

    for _ in range(3):
        item = memory.writer.confirm("p", item).iri

    assert due < shown(memory, item)["properties"]["expiresOn"][0] < due + timedelta(minutes=1)


@pytest.mark.parametrize(("reason", "rationale", "named"), [
    ("A was slow", "A was slow", "evidence"), (None, "A is fast", "rationale, evidence"),
])  # fmt: skip
def test_another_text_is_explained_by_the_reason_of_the_change(memory, reason, rationale, named):
    old = memory.writer.submit_intent("p", decision(summary="Use A", rationale="A is fast", evidence=["a trial"])).iri

    receipt = memory.writer.correct("p", old, supersede="Use B", reason=reason, who={"asserted_by": "architect"})

    assert memory.writer.restated("p", receipt.iri)["rationale"] == rationale
    assert f"copied from the old memory: {named};" in receipt.warnings[-1]
    replaced = "the reason replaces the rationale: A is fast; to keep it, set rationale too"
    assert (replaced in receipt.warnings) == (reason is not None)


def test_a_reason_that_replaces_a_long_rationale_shows_its_beginning(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use A", rationale="it is fast " * 100)).iri

    (warning,) = memory.writer.correct("p", old, supersede="Use A 2", reason="fix typo").warnings

    assert warning.startswith("the reason replaces the rationale: it is fast")
    assert len(warning) < 400


def test_a_rationale_that_is_given_explains_another_text(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use A", rationale="A is fast")).iri

    receipt = memory.writer.correct("p", old, supersede="Use B", changes={"rationale": "B is small"}, reason="slow")

    assert memory.writer.restated("p", receipt.iri)["rationale"] == "B is small"
    assert receipt.warnings == ()


@pytest.mark.parametrize("change", [{"supersede": "Use C"}, {"invalidate": True}])
def test_a_change_of_what_was_withdrawn_is_refused_with_the_ways_that_are_left(memory, change):
    old = memory.writer.submit_intent("p", decision()).iri
    marker = memory.writer.invalidate("p", old, reason="wrong").iri

    with pytest.raises(Conflict) as refusal:
        memory.writer.correct("p", old, reason="again", **change)

    first, last = refusal.value.choices
    replacing = {"supersedes": [marker]} if "supersede" in change else {}
    assert (first.fields, last.effect) == (replacing, "submit nothing: it stays withdrawn")
    assert replacing == {} or first.effect.endswith("the withdrawal ends, and yours takes its place")
    assert "took" not in refusal.value.hint

    old = memory.writer.submit_intent("p", decision()).iri
    revised(memory, old, summary="Use QLever")

    with pytest.raises(Conflict) as refusal:
        memory.writer.correct("p", old, invalidate=True, reason="wrong")

    assert refusal.value.choices[0].effect == "read the memory that took the place first: it is withdrawn"


@pytest.mark.parametrize(("given", "after"), [({}, "Use spaces"), ({"convention_name": "Indent"}, "Indent")])
def test_a_convention_named_by_its_summary_has_the_new_summary_as_its_name(memory, given, after):
    rule = intent(type="convention", summary="Use tabs", enforcement_level="Strict", **given)
    old = memory.writer.submit_intent("p", rule).iri

    new = memory.writer.correct("p", old, supersede="Use spaces", reason="team vote").iri

    assert memory.reader.ask("strict-conventions", project="p") == [{"conv": new, "name": after}]


def retried(memory, correct, item, **fields):
    """The receipts of a correction, of a retry, and of one in a memory that was opened again, without what is near."""
    first, again = (correct(memory.writer)("p", item, idempotency_key="k-1", **fields) for _ in range(2))
    with jidomem.open(memory.settings.root, agent="ana") as later:
        third = correct(later.writer)("p", item, idempotency_key="k-1", **fields)
        assert [len(later.reader.log("p").rows)] == [len(memory.reader.log("p").rows)]
    return [replace(each, similar=None) for each in (first, again, third)]


@pytest.mark.parametrize("by", ["old", "new"])
def test_the_retry_of_an_undo_gets_the_receipt_of_the_first(memory, by):
    named = {"old": kept(memory, summary="one")}
    named["new"] = revised(memory, named["old"], summary="two")

    first, again, later = retried(memory, lambda writer: writer.undo, named[by], reason="back")

    assert first == again == later
    assert status(memory, first.iri) == ["active"]
    with pytest.raises(IdempotencyMismatch):
        memory.writer.undo("p", named[by], reason="another", idempotency_key="k-1")


@pytest.mark.parametrize("by", ["old", "other", "proposal", "accepted"])
def test_the_retry_of_the_undo_of_an_acceptance_names_all_that_the_first_restored(memory, by):
    named = {"old": kept(memory, summary="the port is 80"), "other": kept(memory, summary="the host is a")}
    ends = {"supersedes": [named["old"]], "invalidates": [named["other"]]}
    named["proposal"] = memory.writer.submit_intent("p", intent(summary="b:443", **ends), propose=True).iri
    named["accepted"] = memory.writer.settle("p", named["proposal"], "accept", reason="measured").iri

    first, again, later = retried(memory, lambda writer: writer.undo, named[by], reason="back")

    assert first == again == later
    assert len([text for text in first.warnings if "again, as" in text]) == 2
    assert len(memory.reader.ask("proposals", project="p")) == 1


def test_the_retry_of_a_confirmation_gets_the_receipt_of_the_first(memory):
    old = kept(memory, expires_on=START + timedelta(days=30))

    first, again, later = retried(memory, lambda writer: writer.confirm, old)

    assert first == again == later
