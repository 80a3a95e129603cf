"""Correction without deletion: a wrong memory is ended, a right one is restored, and nothing is rewritten."""

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


def details(memory, item):
    return memory.reader.get_memory("p", item)


def statuses(memory, *items):
    return [details(memory, item)["status"] for item in items]


def recorded(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields)).iri


def revised(memory, item, **changes):
    return memory.writer.revise("p", item, changes=changes, reason="newer").iri


def test_undo_restores_a_superseded_memory_and_records_what_it_revives(memory):
    old = memory.writer.submit_intent("p", decision(topic="store", alternatives=["SQLite"], evidence=["a trial"])).iri
    new = revised(memory, old, summary="Use QLever")

    restored = memory.writer.undo("p", old, reason="it lost data").iri

    assert statuses(memory, old, new, restored) == [
        "superseded",
        "superseded",
        "active",
    ]  # superseded is never active again
    original, restated = (memory.writer.restated("p", item) for item in (old, restored))
    differing = {name: restated[name] for name in restated if restated[name] != original.get(name)}
    assert differing.keys() == {"iri", "revives", "supersedes", "reason"}
    assert details(memory, restored)["properties"]["settledBy"] == ["https://jido.ai/agents/ana"]
    assert (restated["revives"], restated["supersedes"]) == ([old], [new])
    entries = memory.reader.history("p", old)
    assert [row["entry"] for row in entries] == [old, new, restored]
    assert entries[-1]["reason"] == "it lost data"


def test_undo_of_the_successor_or_the_marker_restores_the_ended_memory(memory):
    first, second = recorded(memory, summary="one"), recorded(memory, summary="two")
    successor = revised(memory, first, summary="ONE")
    marker = memory.writer.invalidate("p", second, reason="wrong").iri

    restored_items = [memory.writer.undo("p", ending).iri for ending in (successor, marker)]

    assert [details(memory, item)["properties"]["summary"] for item in restored_items] == [["one"], ["two"]]
    assert statuses(memory, successor, marker, *restored_items) == ["superseded", "superseded", "active", "active"]


def test_an_undo_is_itself_undone(memory):
    old = recorded(memory, summary="one")
    new = revised(memory, old, summary="two")
    restored = memory.writer.undo("p", old).iri

    redone = memory.writer.undo("p", restored, reason="two after all").iri

    assert details(memory, redone)["properties"]["revives"] == [new]
    assert statuses(memory, old, new, restored, redone) == ["superseded"] * 3 + ["active"]


def test_repeated_undo_alternates_between_two_versions_with_one_active(memory):
    old = recorded(memory, summary="the port is 80")
    item = revised(memory, old, summary="the port is 90")

    for summary in [80, 90] * 3:
        item = memory.writer.undo("p", item, reason="back").iri

        assert [row["summary"] for row in memory.reader.ask("facts", project="p")] == [f"the port is {summary}"]


def test_a_repeated_undo_is_deduplicated_and_names_the_redo_command(memory):
    new = revised(memory, recorded(memory, summary="the port is 80"), summary="the port is 90")
    restored = memory.writer.undo("p", new)
    commits = len(memory.reader.log("p").rows)

    repeated = memory.writer.undo("p", new)  # like a retry after a lost answer

    assert (repeated.iri, repeated.status, repeated.commit) == (restored.iri, "deduplicated", restored.commit)
    assert repeated.warnings == (
        f"{new} is undone already, by {restored.iri}; to redo it: jidomem edit {restored.iri} --undo",
    )
    assert len(memory.reader.log("p").rows) == commits
    with pytest.raises(InvalidRequest, match="is undone already"):
        memory.writer.undo("p", new, summary="the port is 85")

    redone = memory.writer.undo("p", restored.iri, reason="90 after all").iri
    assert details(memory, redone)["properties"]["summary"] == ["the port is 90"]
    assert memory.writer.undo("p", restored.iri).iri == redone


@pytest.mark.parametrize(
    ("field", "second_field"),
    [("supersedes", "coexists_with"), ("invalidates", "coexists_with"), ("supersedes", "invalidates")],
)
def test_a_memory_named_in_two_exclusive_fields_is_refused(memory, field, second_field):
    old = recorded(memory, summary="the store is MySQL")

    with pytest.raises(IntentRefused, match=f"{old} is named in {field} and in {second_field}: say which"):
        recorded(memory, summary="the store is SQLite", **{field: [old], second_field: [old]})
    assert statuses(memory, old) == ["active"]


def test_a_coexisting_memory_is_later_superseded_by_a_confirmation(memory):
    first = recorded(memory, summary="the port is 80", about=["a.py"])
    second = recorded(memory, summary="the port is 90", about=["b.py"], coexists_with=[first])

    merged = memory.writer.confirm("p", second, supersedes=[second, first], reason="one port")

    assert merged.status == "asserted"
    assert statuses(memory, first, second) == ["superseded", "superseded"]


def test_an_edited_proposal_replaces_what_the_proposal_was_to_replace(memory):  # C008
    first, second = recorded(memory, summary="the port is 80"), recorded(memory, summary="the disk is full")
    marker = intent(type="deleted_marker", summary="Withdrawn", rationale="moved", invalidates=[first])
    withdrawal = memory.writer.submit_intent("p", marker, propose=True).iri
    successor = intent(summary="the disk is half full", supersedes=[second], reason="measured")
    change = memory.writer.submit_intent("p", successor, propose=True).iri

    edited = [revised(memory, withdrawal, rationale="it moved to 90"), revised(memory, change, summary="it is empty")]

    assert statuses(memory, first, second, *edited) == ["invalidated", "superseded", "withdrawal", "active"]
    with pytest.raises(Conflict, match=f"{first} is already invalidated by {edited[0]}"):
        revised(memory, withdrawal, rationale="a second edit")


def test_an_edit_of_what_may_only_be_proposed_is_a_proposal_with_the_same_links(memory):  # C008
    old = recorded(memory, summary="the port is 80")
    change = recorded(memory, summary="it is 90", supersedes=[old], reason="r", source_type="ExternalDocumentSource")

    edited = revised(memory, change, summary="it is 91")

    assert statuses(memory, old, edited) == ["active", "pending"]
    assert {*memory.writer.restated("p", edited)["supersedes"]} == {change, old}
    memory.writer.agent = "rita"
    accepted = memory.writer.settle("p", edited, "accept").iri
    assert statuses(memory, old, change, edited, accepted) == ["superseded", "superseded", "superseded", "active"]


def test_an_undo_of_a_curators_settlement_by_an_agent_is_proposed(memory):
    first, other, revised_item = (
        recorded(memory, summary=text) for text in ("the port is 80", "the port is the 80", "three")
    )
    memory.writer.agent = "rita"
    memory.writer.settle("p", first, "accept", other=other, reason="measured")
    revised(memory, revised_item, summary="THREE")

    memory.writer.agent = "ana"
    proposed = [memory.writer.undo("p", item, reason="it was right") for item in (other, revised_item)]
    before = statuses(memory, other, revised_item)
    memory.writer.agent = "rita"
    accepted = [memory.writer.settle("p", receipt.iri, "accept") for receipt in proposed]

    assert [receipt.status for receipt in (*proposed, *accepted)] == ["proposed"] * 2 + ["asserted"] * 2
    assert all("which rita ended" in receipt.warnings[0] for receipt in proposed)
    assert before == ["invalidated", "superseded"]
    restored = [details(memory, receipt.iri)["properties"] for receipt in accepted]
    assert [properties["assertedBy"][0].rpartition("/")[2] for properties in restored] == ["architect"] * 2
    assert memory.writer.undo("p", accepted[0].iri).status == "proposed"  # by a curator, it is pending again


def test_an_undo_of_a_curators_acceptance_by_an_agent_is_denied(memory):
    proposal = memory.writer.submit_intent("p", intent(), propose=True).iri
    memory.writer.agent = "rita"
    accepted = memory.writer.settle("p", proposal, "accept").iri

    memory.writer.agent = "ana"
    for item in (proposal, accepted):
        with pytest.raises(PolicyDenied, match="may not undo what a curator accepted") as refusal:
            memory.writer.undo("p", item, reason="no")
        assert refusal.value.hint == "ask rita"
    assert statuses(memory, accepted) == ["active"]


def test_undo_of_a_withdrawal_supersedes_the_version_restored_in_between(memory):
    old = recorded(memory, summary="the port is 80")
    new = revised(memory, old, summary="the port is 90")
    memory.writer.invalidate("p", new, reason="wrong")
    restored = memory.writer.undo("p", old).iri

    memory.writer.undo("p", new, reason="90 after all")

    assert [row["summary"] for row in memory.reader.ask("facts", project="p")] == ["the port is 90"]
    assert statuses(memory, restored) == ["superseded"]


def test_undo_of_a_joint_replacement_supersedes_each_restored_memory(memory):
    originals = [recorded(memory, summary=text) for text in ("one", "two", "three")]
    replacement = recorded(memory, summary="all", supersedes=originals)
    unaffected = recorded(memory, summary="three", revives=originals[2:])  # beside the active replacement: it stays
    restored_items = [memory.writer.undo("p", original, reason="apart").iri for original in originals[:2]]

    memory.writer.undo("p", replacement, reason="one matter")

    assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"three", "all"}
    assert statuses(memory, unaffected, *restored_items) == ["active", "superseded", "superseded"]


def test_an_undo_with_changes_is_refused_where_it_would_change_another_memory(memory):
    old = recorded(memory, summary="the port is 80")
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
    assert details(memory, restored)["properties"]["summary"] == ["the port is 8080"]
    assert memory.writer.undo("p", proposal, reason="no", asserted_by="bob").status == "proposed"


def test_undo_of_a_joint_replacement_restores_each_memory_that_it_replaced(memory):
    items = [recorded(memory, summary=each) for each in ("one", "two", "three")]
    replacement = recorded(memory, summary="one to three", supersedes=items)

    receipt = memory.writer.undo("p", replacement, reason="they differ")

    assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"one", "two", "three"}
    assert memory.reader.get_memory("p", receipt.iri)["properties"]["revives"] == items[:1]


def test_undo_of_an_incident_restores_all_that_it_withdrew_in_one_commit(memory):
    items = [recorded(memory, summary=f"entry {number} of the intern", topic=f"t{number}") for number in range(5)]
    incident = recorded(memory, type="incident", summary="the intern guessed", invalidates=items)
    memory.writer.undo("p", items[3], reason="this was measured")

    with pytest.raises(InvalidRequest, match="they are restored as they were, without topic") as refusal:
        memory.writer.undo("p", incident, reason="no", topic="x")
    would = memory.writer.undo("p", incident, reason="the intern was right", dry_run=True)
    assert statuses(memory, incident) == ["active"]
    receipt = memory.writer.undo("p", incident, reason="the intern was right")
    repeated = memory.writer.undo("p", incident, reason="the intern was right")

    assert f"jidomem edit {items[0]} --undo" in refusal.value.hint
    assert [len(each.warnings) for each in (would, receipt)] == [3, 3]
    assert f"{items[1]} is active again, as " in receipt.warnings[0]
    again = [receipt.iri, *(warning.rpartition(" ")[2] for warning in receipt.warnings)]
    assert statuses(memory, incident, *again) == ["superseded"] + ["active"] * 4
    assert len({memory.reader.get_memory("p", each)["commit"] for each in again}) == 1
    assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {
        f"entry {number} of the intern" for number in range(5)
    }
    assert (repeated.status, repeated.iri) == ("deduplicated", receipt.iri)


def test_undo_of_an_incident_whose_memories_are_all_active_again_is_refused(memory):
    items = [recorded(memory, summary=f"entry {number}", topic=f"t{number}") for number in range(2)]
    incident = recorded(memory, type="incident", summary="both wrong", invalidates=items)
    for each in items:
        memory.writer.undo("p", each, reason="right")

    with pytest.raises(InvalidRequest, match="not all can be restored together"):
        memory.writer.undo("p", incident, reason="right")


def test_undo_of_an_invalidation_by_an_incident_leaves_the_incident_active(memory):
    old = recorded(memory, summary="the cache is safe")
    incident = recorded(memory, type="incident", summary="the cache broke", invalidates=[old])

    restored = memory.writer.undo("p", old).iri

    assert statuses(memory, old, incident, restored) == ["invalidated", "active", "active"]


def test_undo_of_an_active_restored_or_unknown_memory_is_refused(memory):
    active, old = recorded(memory, summary="fresh"), recorded(memory, summary="old")
    revised(memory, old, summary="new")
    restored = memory.writer.undo("p", old).iri

    with pytest.raises(InvalidRequest, match="nothing to undo"):
        memory.writer.undo("p", active)
    with pytest.raises(InvalidRequest, match=f"is active again, as {restored}"):
        memory.writer.undo("p", old)
    with pytest.raises(NotFound):
        memory.writer.undo("p", "https://jido.ai/memory/none")


def test_a_restored_memory_that_conflicts_is_refused_until_the_conflict_is_resolved(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    memory.writer.invalidate("p", old, reason="wrong")
    rival = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="store")).iri

    with pytest.raises(Conflict) as refusal:
        memory.writer.undo("p", old, reason="it was right")
    settled = memory.writer.undo("p", old, reason="it was right", **refusal.value.conflicts[0].resolve_with).iri

    assert statuses(memory, rival, settled) == ["superseded", "active"]


def test_revives_accepts_ended_memories_only(memory):
    active = recorded(memory, summary="here")

    with pytest.raises(IntentRefused, match="has not ended: there is nothing to revive"):
        recorded(memory, summary="again", revives=[active])
    with pytest.raises(IntentRefused, match="is not a memory of this project"):
        recorded(memory, summary="again", revives=["https://jido.ai/memory/none"])


def test_a_confirmation_keeps_the_text_and_renews_the_review_interval(memory):
    due = START + timedelta(days=90)
    old = recorded(
        memory,
        type="assumption",
        summary="the API stays free",
        expires_on=format_timestamp(due),
        timestamp=format_timestamp(START),
    )

    new = memory.writer.confirm("p", old, reason="asked them").iri
    dated = memory.writer.confirm("p", new, expires_on="2030-01-01").iri

    versions = [memory.writer.restated("p", item) for item in (old, new, dated)]
    assert statuses(memory, old, new, dated) == ["superseded", "superseded", "active"]
    assert {version["summary"] for version in versions} == {"the API stays free"}
    assert [version["asserted_by"][-3:] for version in versions] == ["ect", "ect", "ect"]
    assert versions[1]["reason"] == "asked them"
    assert due < memory.reader.get_memory("p", new)["properties"]["expiresOn"][0] < due + timedelta(minutes=1)
    assert versions[2]["expires_on"] == "2030-01-01T00:00:00Z"


def test_a_review_date_before_the_date_of_the_memory_is_set_explicitly(memory):
    old = recorded(memory, expires_on="2020-01-01")

    with pytest.raises(InvalidRequest, match="before its own date") as refusal:
        memory.writer.confirm("p", old)

    assert refusal.value.hint.endswith(" --confirm --set expires_on=DATE")


def test_confirming_a_proposal_asserts_it_with_its_supersessions(tmp_path):
    root = tmp_path / "proposing"
    root.mkdir()
    (root / "config.toml").write_text('[conflicts]\ndecision = "propose"\n')
    with jidomem.open(root, sources=fixed_sources()) as memory:
        active = memory.writer.submit_intent("p", decision(topic="store")).iri
        withdrawn = memory.writer.submit_intent("p", decision(summary="Pin it", topic="pin")).iri
        proposal = memory.writer.submit_intent(
            "p", decision(summary="Use SQLite", topic="store", invalidates=[withdrawn])
        )
        assert proposal.status == "proposed"

        new = memory.writer.confirm("p", proposal.iri, supersedes=[proposal.iri, active])

        assert new.status == "asserted"
        assert statuses(memory, active, withdrawn, proposal.iri, new.iri) == [
            "superseded", "invalidated", "superseded", "active",
        ]  # fmt: skip


def test_a_memory_confirmed_by_a_curator_is_verified_until_its_text_changes(memory):
    by_agent = memory.writer.confirm("p", recorded(memory, summary="one")).iri
    by_curator = memory.writer.confirm("p", by_agent, asserted_by="rita").iri
    settled = revised(memory, by_curator, confidence="low")
    changed = revised(memory, settled, summary="two")

    verified = [details(memory, i)["properties"].get("verified") for i in (by_agent, by_curator, settled, changed)]
    assert verified == [None, [True], [True], None]

    end_of_validity = memory.sources.now() + timedelta(minutes=1)
    expired = recorded(memory, valid_until=end_of_validity)
    while memory.sources.now() < end_of_validity:
        pass
    memory.writer.agent = "rita"
    settled_item = memory.writer.settle("p", expired, "accept").iri
    assert details(memory, settled_item)["properties"].get("verified") is None


@pytest.mark.parametrize("fields", [{}, {"expires_on": "2030-01-01"}], ids=str)
def test_an_expired_memory_is_confirmed_only_with_a_new_validity_end(memory, fields):
    item = recorded(memory, valid_until="2020-01-01", asserted_by=memory.writer.agent)
    name = item.rpartition("/")[2]

    with pytest.raises(InvalidRequest, match=f"{item} expired: it was valid until 2020-01-01;") as refusal:
        memory.writer.confirm("p", item, **fields)
    reported = refusal.value.to_dict()
    renewed = memory.writer.confirm("p", item, valid_until="2090-01-01", reason="it goes on", **fields).iri

    assert reported["hint"] == f"to renew it: jidomem edit {item} --confirm --set valid_until=DATE"
    request = f'POST /projects/p/memories/{name}/revise {{"confirm": true, "set": {{"valid_until": "DATE"}}}}'
    assert for_requests(reported, "p")["hint"] == f"to renew it: {request}"
    tool_call = f'the tool revise with id {name}, confirm true and set {{"valid_until": "DATE"}}'
    assert for_tools(reported)["hint"] == f"to renew it: {tool_call}"
    assert statuses(memory, item, renewed) == ["superseded", "active"]


def test_the_renewal_hint_for_another_agents_memory_includes_a_reason(memory):
    item = recorded(memory, valid_until="2020-01-01", asserted_by="another")
    name = item.rpartition("/")[2]

    with pytest.raises(InvalidRequest, match="expired") as refusal:
        memory.writer.confirm("p", item)
    with pytest.raises(IntentRefused, match="say in reason"):
        memory.writer.confirm("p", item, valid_until="2090-01-01")

    reported = refusal.value.to_dict()
    assert reported["hint"] == f"to renew it: jidomem edit {item} --confirm --set valid_until=DATE --reason TEXT"
    fields = '{"confirm": true, "set": {"valid_until": "DATE"}, "reason": "..."}'
    assert for_requests(reported, "p")["hint"] == f"to renew it: POST /projects/p/memories/{name}/revise {fields}"
    tool_call = f'the tool revise with id {name}, confirm true, set {{"valid_until": "DATE"}} and a reason'
    assert for_tools(reported)["hint"] == f"to renew it: {tool_call}"


@pytest.mark.parametrize("guess", ["assumption", "hypothesis"])
def test_a_guess_becomes_a_fact_by_evidence_or_by_a_curator(memory, guess):
    old = recorded(memory, type=guess, summary="loading is slow", expires_on="2030-01-01")
    withdrawn = recorded(memory, type=guess, summary="parsing is slow", expires_on="2030-01-01")
    memory.writer.invalidate("p", withdrawn, reason="too soon")

    for fields in ({"supersedes": [old]}, {"revives": [withdrawn]}):
        with pytest.raises(IntentRefused, match=f"is an? {guess}: it becomes a fact by evidence") as refusal:
            recorded(memory, summary="it is slow", **fields)
        assert [violation.field for violation in refusal.value.violations] == ["evidence"]
    by_curator = memory.writer.revise("p", old, changes={"type": "fact", "asserted_by": "rita"}, reason="seen it")
    by_evidence = recorded(memory, summary="parsing is slow", revives=[withdrawn], evidence=["a profile"])

    assert by_curator.filled["evidence"] == ["judged by rita: seen it"]
    assert statuses(memory, old, by_curator.iri, by_evidence) == ["superseded", "active", "active"]


def test_no_correction_or_several_at_once_are_refused(memory):
    item = recorded(memory)
    for corrections in (
        {},
        {"confirm": True, "undo": True},
        {"invalidate": True, "changes": {"topic": "x"}, "reason": "x"},
    ):
        with pytest.raises(InvalidRequest, match="choose one correction"):
            memory.writer.correct("p", item, **corrections)
    with pytest.raises(InvalidRequest, match="a withdrawal needs a reason"):
        memory.writer.correct("p", item, invalidate=True)


def test_a_restored_memory_is_exported_and_imported(memory, tmp_path):
    from jidomem.exchange.documents import turtle
    from jidomem.exchange.importer import import_document
    from jidomem.journal.journal import Stream

    old = recorded(memory, summary="one")
    memory.writer.invalidate("p", old, reason="wrong")
    restored = memory.writer.undo("p", old).iri
    data = turtle("p", memory.journal.read(Stream("p")), memory.schema.version)

    with jidomem.open(tmp_path / "other") as other:
        report = import_document(other.writer, other.schema, "p", "memory.ttl", data)

        assert not report.refusals
        assert details(other, restored)["properties"]["revives"] == [old]
        assert statuses(other, old, restored) == ["invalidated", "active"]


BLOB = "a" * 40


def anchors(memory, item):
    return details(memory, item)["properties"].get("aboutBlob", [])


def test_file_anchors_survive_a_change_of_state_and_are_reset_by_a_new_text_or_about(memory):
    old = memory.writer.submit_intent("p", intent(about=["a.py"]), blobs={"a.py": BLOB}).iri
    settled = revised(memory, old, confidence="low")
    memory.writer.invalidate("p", settled, reason="wrong")
    restored = memory.writer.undo("p", settled).iri
    reworded = revised(memory, restored, rationale="I read it")
    memory.writer.invalidate("p", reworded, reason="wrong")
    rechecked = memory.writer.undo("p", restored, about=["a.py"])

    assert [anchors(memory, item) for item in (old, settled, restored)] == [[f"{BLOB} a.py"]] * 3
    assert [anchors(memory, item) for item in (reworded, rechecked.iri)] == [[], []]


def test_a_withdrawal_marker_records_the_text_reason_and_agent(memory):
    memory.writer.agent = "bob"
    old = recorded(memory, summary="x" * 10_005)

    planned = memory.writer.invalidate("p", old, reason="it was measured wrongly", dry_run=True)
    assert details(memory, old)["status"] == "active"
    marker = memory.writer.invalidate("p", old, reason="it was measured wrongly")

    restated = memory.writer.restated("p", marker.iri)
    assert planned.status == marker.status == "asserted"
    assert {name: restated[name] for name in restated if name not in ("iri", "timestamp")} == {
        "type": "deleted_marker",
        "summary": "Withdrawn: " + "x" * 10_000,
        "rationale": "it was measured wrongly",
        "applies_to_project": "https://jido.ai/projects/p",
        "asserted_by": "https://jido.ai/agents/bob",
        "asserted_in": "https://jido.ai/sessions/bob-2026-11-21",
        "confidence": "high",
        "invalidates": [old],
    }


def test_a_withdrawal_of_a_redacted_memory_is_summarized_by_its_iri(memory):
    old = recorded(memory, summary="the key is hunter2")
    memory.maintenance.redact(memory.maintenance.plan("p", old), agent="rita", reason="a secret")

    marker = memory.writer.invalidate("p", old, reason="wrong").iri

    assert details(memory, marker)["properties"]["summary"] == [f"Withdrawn: {old}"]


def test_the_withdrawal_of_a_withdrawal_says_so(memory):
    marker = memory.writer.invalidate("p", recorded(memory, summary="the window is 14 days"), reason="wrong").iri

    again = memory.writer.invalidate("p", marker, reason="it was right").iri

    assert details(memory, again)["properties"]["summary"] == ["Withdrawn: the withdrawal of the window is 14 days"]


def test_a_confirmed_proposal_ends_the_memories_it_named(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        old, wrong = recorded(memory, summary="one"), recorded(memory, summary="two")
        withdrawn = recorded(memory, summary="three")
        memory.writer.invalidate("p", withdrawn, reason="wrong")
        fields = intent(summary="ONE", supersedes=[old], invalidates=[wrong], revives=[withdrawn])
        proposal = memory.writer.submit_intent("p", fields, propose=True)
        assert (proposal.status, statuses(memory, old, wrong)) == ("proposed", ["active", "active"])

        assert memory.writer.confirm("p", proposal.iri, dry_run=True).status == "asserted"
        assert statuses(memory, old, wrong) == ["active", "active"]
        new = memory.writer.confirm("p", proposal.iri).iri

        assert statuses(memory, old, wrong, proposal.iri, new) == ["superseded", "invalidated", "superseded", "active"]
        restated = memory.writer.restated("p", new)
        assert sorted(restated["supersedes"]) == sorted([old, proposal.iri])
        assert (restated["invalidates"], restated["revives"]) == ([wrong], [withdrawn])


def test_a_confirmation_of_an_asserted_memory_supersedes_only_that_memory(memory):
    old = recorded(memory, summary="one")
    newer = recorded(memory, summary="ONE", supersedes=[old])

    restated = memory.writer.restated("p", memory.writer.confirm("p", newer).iri)

    assert restated["supersedes"] == [newer]
    assert "expires_on" not in restated


@pytest.mark.parametrize(("agents", "hint"), [
    ("", "the project has no curator; the owner of the repository, not an agent, becomes one with: "
         "jidomem access policy grant ana admin"),
    ('[agents.rita]\nrole = "Curator"\n[agents.tom]\nrole = "Administrator"\n', "ask a curator: rita, tom"),
])  # fmt: skip
def test_a_denied_confirmation_names_the_agents_who_may_confirm(tmp_path, monkeypatch, agents, hint):
    monkeypatch.setenv("USER", "ana")
    with open_with(tmp_path, 'policy = "curated"\n' + agents, agent="bob") as memory:
        proposal = memory.writer.submit_intent("p", decision(asserted_by="bob", topic="store"))
        with pytest.raises(PolicyDenied, match=r"^bob may not settle this: .*may only propose") as refusal:
            memory.writer.confirm("p", proposal.iri)

        assert refusal.value.hint == hint
        assert statuses(memory, proposal.iri) == ["pending"]


def test_confirming_a_conflicting_proposal_names_the_active_memory(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "propose"\n') as memory:
        active = memory.writer.submit_intent("p", decision(topic="store")).iri
        proposal = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="store")).iri

        with pytest.raises(Conflict) as refusal:
            memory.writer.confirm("p", proposal)

        assert [clash.iri for clash in refusal.value.conflicts] == [active]
        assert statuses(memory, active, proposal) == ["active", "pending"]


@pytest.mark.parametrize("correction", [
    {"supersede": "two"}, {"invalidate": True, "reason": "wrong"}, {"confirm": True}, {"changes": {"summary": "two"}},
    {"confirm": True, "changes": {"topic": "x"}}, {"supersede": "two", "changes": {"topic": "x"}},
    {"undo": True}, {"undo": True, "changes": {"topic": "x"}},
])  # fmt: skip
def test_each_correction_has_a_dry_run_and_is_attributed_to_the_requesting_agent(memory, correction):
    item = recorded(memory, summary="one")
    if "undo" in correction:
        memory.writer.invalidate("p", item, reason="wrong")
    arguments = {"reason": "because", **correction, "who": {"asserted_by": "zoe"}}

    before = triples_of(memory)
    memory.writer.correct("p", item, **arguments, dry_run=True)
    assert triples_of(memory) == before
    new = memory.writer.correct("p", item, **arguments).iri

    restated = memory.writer.restated("p", new)
    is_unchanged = correction in ({"confirm": True}, {"undo": True})
    agents = (
        memory.reader.get_memory("p", new)["properties"]["settledBy"] if is_unchanged else [restated["asserted_by"]]
    )
    assert agents == ["https://jido.ai/agents/zoe"]
    assert restated["asserted_by"].endswith("architect") == is_unchanged
    assert restated.get("rationale" if "invalidate" in correction else "reason") == arguments["reason"]
    assert restated.get("topic") == ("x" if "x" in str(correction.get("changes")) else None)
    assert restated["summary"] == (
        "Withdrawn: one" if "invalidate" in correction else "two" if "two" in str(correction) else "one"
    )
    assert restated.get("revives", restated.get("supersedes", restated.get("invalidates"))) == [item]


def test_invalid_corrections_are_refused_with_the_available_ones(memory):
    item = recorded(memory)
    for correction in ({}, {"supersede": "", "confirm": True}, {"supersede": "x", "undo": True}, {"reason": "x"}):
        with pytest.raises(InvalidRequest, match="choose one correction") as refusal:
            memory.writer.correct("p", item, **correction)
        assert refusal.value.hint == (
            "give one of `supersede`, `invalidate`, `confirm` and `undo`, or fields to change"
        )
    with pytest.raises(InvalidRequest, match="a withdrawal needs a reason") as refusal:
        memory.writer.correct("p", item, invalidate=True, reason="")
    assert refusal.value.hint == "give `reason`: why it is wrong"


def test_correcting_a_superseded_memory_names_its_successor(memory):
    old = recorded(memory, summary="one")
    new = memory.writer.correct("p", old, supersede="two", reason="counted").iri

    coexisting = {"confirm": True, "changes": {"supersedes": [old, recorded(memory, summary="four")]}}
    for correction in ({"supersede": "three"}, {"confirm": True}, {"invalidate": True, "reason": "wrong"}, coexisting):
        with pytest.raises(Conflict) as refusal:
            memory.writer.correct("p", old, **correction)
        call = f"correct that if it is still wrong: memory.writer.correct('p', {new!r}, "
        assert call in refusal.value.hint


def test_a_conflicting_correction_offers_choices_rather_than_a_successor(memory):
    one = memory.writer.submit_intent("p", decision(topic="store")).iri
    other = memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="cache")).iri

    with pytest.raises(Conflict) as refusal:
        memory.writer.correct("p", other, changes={"topic": "store"}, reason="it is that")

    assert [clash.iri for clash in refusal.value.conflicts] == [one]
    assert refusal.value.hint.startswith("choose one: supersedes=")


@pytest.mark.parametrize("name", ["nothing", "two words", "https://jido.ai/memory/none", "https://jido.ai/agents/ana"])
def test_correcting_an_unknown_memory_is_refused(memory, name):
    recorded(memory)
    for correcting in ({"confirm": True}, {"undo": True}, {"supersede": "x"}, {"invalidate": True, "reason": "x"}):
        with pytest.raises(NotFound) as refusal:
            memory.writer.correct("p", name, **correcting)
        assert refusal.value.detail == f"{name} is not a memory of this project"
        assert refusal.value.hint == "list them with: jidomem ask timeline"


def test_a_successor_inherits_the_active_coexistences_of_its_predecessor(memory):
    def stored(topic, **fields):
        return memory.writer.submit_intent("p", decision(topic=topic, summary=f"Use {topic} {fields}", **fields)).iri

    first = memory.writer.submit_intent("p", decision(topic="store", about=["a"])).iri
    second = stored("store", about=["b"], coexists_with=[first])
    third = stored("store", about=["c"], coexists_with=[first, second])
    memory.writer.invalidate("p", second, reason="wrong")

    by_both = [memory.writer.restated("p", revised(memory, item, confidence="low")) for item in (first, third)]

    assert by_both[0]["coexists_with"] == [third]
    assert by_both[1]["coexists_with"] == [by_both[0]["iri"]]


def test_evidence_and_alternatives_are_restated_as_given(memory):
    other = recorded(memory, summary="a run")
    proposal = decision(
        topic="x", evidence=["a trial", other, "https://example.org/log"], alternatives=["SQLite", "Lucene"]
    )
    item = memory.writer.submit_intent("p", proposal).iri

    restated = memory.writer.restated("p", item)

    assert sorted(restated["evidence"]) == sorted(["a trial", other, "https://example.org/log"])
    assert restated["alternatives"] == ["SQLite", "Lucene"]


def test_a_review_due_at_the_date_of_the_memory_is_set_explicitly(memory):
    old = recorded(memory, timestamp=format_timestamp(START), expires_on=format_timestamp(START))

    with pytest.raises(InvalidRequest) as refusal:
        memory.writer.confirm("p", old)

    assert refusal.value.detail == "its review was due on 2026-11-21T08:00:00Z, before its own date"
    assert statuses(memory, memory.writer.confirm("p", old, expires_on="2030-01-01").iri) == ["active"]


def test_undo_of_a_pending_proposal_is_refused(memory):
    old, other = recorded(memory, summary="one"), recorded(memory, summary="two")
    for superseded in ([old], [old, other]):
        proposal = memory.writer.submit_intent(
            "p", intent(summary=f"new {superseded}", supersedes=superseded), propose=True
        ).iri
        with pytest.raises(InvalidRequest) as refusal:
            memory.writer.undo("p", proposal)
        assert refusal.value.detail == f"{proposal} has not ended, and ended nothing: there is nothing to undo"
        assert refusal.value.hint == "to withdraw it: `invalidate`, and say why in `reason`"


def test_undo_of_a_restored_memory_is_refused_with_the_iri_of_the_restored_one(memory):
    old = recorded(memory, summary="old")
    revised(memory, old, summary="new")
    restored = memory.writer.undo("p", old).iri

    with pytest.raises(InvalidRequest) as refusal:
        memory.writer.undo("p", old)
    assert refusal.value.detail == f"{old} is active again, as {restored}"
    assert refusal.value.hint == "to replace it: supersede that one"
    memory.writer.invalidate("p", restored, reason="wrong")
    assert statuses(memory, memory.writer.undo("p", old).iri) == ["active"]


def test_undo_of_a_memory_superseded_several_times_supersedes_the_last_successor(memory):
    first = recorded(memory, summary="one")
    second = revised(memory, first, summary="two")
    third = revised(memory, second, summary="three")

    restored = memory.writer.undo("p", first).iri

    assert memory.writer.restated("p", restored)["supersedes"] == [third]
    assert statuses(memory, first, second, third, restored) == ["superseded"] * 3 + ["active"]


def test_undo_of_a_withdrawal_supersedes_its_marker(memory):
    old = recorded(memory, summary="one")
    marker = memory.writer.invalidate("p", old, reason="wrong").iri

    restored = memory.writer.undo("p", old).iri

    assert memory.writer.restated("p", restored)["supersedes"] == [marker]
    assert statuses(memory, old, marker, restored) == ["invalidated", "superseded", "active"]


def test_undo_of_one_of_several_withdrawals_leaves_their_common_marker_active(memory):
    one, two = recorded(memory, summary="one"), recorded(memory, summary="two")
    marker = memory.writer.invalidate("p", one, reason="wrong", invalidates=[one, two]).iri

    restored = memory.writer.undo("p", one).iri

    assert statuses(memory, one, two, marker, restored) == ["invalidated", "invalidated", "withdrawal", "active"]


def test_confirming_a_proposal_asserts_it_and_sets_the_next_review_date(memory):
    due = START + timedelta(days=90)
    fields = intent(summary="one", expires_on=format_timestamp(due), timestamp=format_timestamp(START))
    proposed = memory.writer.submit_intent("p", fields, propose=True).iri

    new = memory.writer.correct("p", proposed, confirm=True, who={"asserted_by": "rita"})

    reported = details(memory, new.iri)
    assert (new.status, reported["status"], reported["properties"]["verified"]) == ("asserted", "active", [True])
    assert reported["properties"]["expiresOn"][0] > due


def test_extra_triples_are_carried_over_by_a_revision_and_by_a_confirmation(memory):
    mood = "https://example.org/mood"
    old = recorded(memory, summary="one", extra_triples=[[mood, "sunny"]])
    changed = revised(memory, old, summary="two")
    confirmed = memory.writer.confirm("p", changed, asserted_by="rita").iri
    confirmed_again = memory.writer.confirm("p", confirmed, asserted_by="rita").iri

    triples_of_each = [
        memory.writer.restated("p", item)["extra_triples"] for item in (old, changed, confirmed, confirmed_again)
    ]
    assert [[value["@value"] for name, value in each if name == mood] for each in triples_of_each] == [["sunny"]] * 4
    assert [sum(name.endswith("#verified") for name, _ in each) for each in triples_of_each] == [0, 0, 1, 1]


def test_evidence_with_an_iri_and_a_label_keeps_its_iri(memory):
    log = "https://example.org/log"
    label = [log, "http://www.w3.org/2000/01/rdf-schema#label", "the log of Monday"]
    item = recorded(memory, summary="one", evidence=[log], extra_triples=[label])

    assert memory.writer.restated("p", item)["evidence"] == [log]


def test_a_successor_supersedes_only_its_predecessor(memory):
    old, wrong = recorded(memory, summary="one"), recorded(memory, summary="two")
    ending = recorded(memory, type="incident", summary="it broke", supersedes=[old], invalidates=[wrong])

    new = revised(memory, ending, summary="it broke twice")

    restated = memory.writer.restated("p", new)
    assert (restated["supersedes"], restated.get("invalidates")) == ([ending], None)
    assert statuses(memory, old, wrong, ending, new) == ["superseded", "invalidated", "superseded", "active"]


def dates(memory, *items):
    return [memory.writer.restated("p", item)["timestamp"][:10] for item in items]


def test_a_correction_keeps_the_date_of_a_memory(memory):
    old = recorded(memory, **decision(topic="store", timestamp="2020-03-04"))

    confirmed = memory.writer.confirm("p", old).iri
    changed = revised(memory, confirmed, topic="storage", rationale="it is one file")
    memory.writer.invalidate("p", changed, reason="wrong")
    restored = memory.writer.undo("p", changed).iri

    assert dates(memory, confirmed, changed, restored) == ["2020-03-04"] * 3
    assert {details(memory, item)["recorded_at"].year for item in (confirmed, changed, restored)} == {START.year}


def test_a_new_summary_is_dated_now_unless_a_date_is_given(memory):
    old = recorded(memory, summary="the build needs Rust 1.80", timestamp="2020-03-04")

    unchanged = revised(memory, old, summary="the build needs Rust 1.80", topic="build")
    new = revised(memory, unchanged, summary="the build needs Rust 1.85")
    dated = revised(memory, new, summary="the build needs Rust 1.86", timestamp="2021-01-01")

    assert dates(memory, unchanged, new, dated) == ["2020-03-04", format_timestamp(START)[:10], "2021-01-01"]


def test_an_accepted_proposal_keeps_its_date(memory):
    proposed = memory.writer.submit_intent("p", decision(timestamp="2020-03-04"), propose=True).iri

    accepted = memory.writer.settle("p", proposed, "accept").iri

    assert dates(memory, accepted) == ["2020-03-04"]


def test_repeated_confirmations_keep_the_review_interval(memory):
    due = START + timedelta(days=90)
    item = recorded(
        memory,
        type="assumption",
        summary="it stays free",
        expires_on=format_timestamp(due),
        timestamp=format_timestamp(START),
    )

    for _ in range(3):
        item = memory.writer.confirm("p", item).iri

    assert due < details(memory, item)["properties"]["expiresOn"][0] < due + timedelta(minutes=1)


@pytest.mark.parametrize(("reason", "rationale", "copied"), [
    ("A was slow", "A was slow", "evidence"), (None, "A is fast", "rationale, evidence"),
])  # fmt: skip
def test_a_reason_replaces_the_rationale_of_a_new_text(memory, reason, rationale, copied):
    old = memory.writer.submit_intent("p", decision(summary="Use A", rationale="A is fast", evidence=["a trial"])).iri

    receipt = memory.writer.correct("p", old, supersede="Use B", reason=reason, who={"asserted_by": "architect"})

    assert memory.writer.restated("p", receipt.iri)["rationale"] == rationale
    assert f"copied from the old memory: {copied};" in receipt.warnings[-1]
    replaced = "the reason replaces the rationale: A is fast; to keep it, set rationale too"
    assert (replaced in receipt.warnings) == (reason is not None)


@pytest.mark.parametrize("way", ["confirm", "undo", "accept"])
@pytest.mark.parametrize("confidence", [0, 1, 1.0, 0.50, "high"])
def test_the_author_stays_whatever_number_states_the_confidence(memory, confidence, way):
    memory.writer.agent, as_proposal = "ben", {"propose": True} if way == "accept" else {}
    fields = {"confidence": confidence, "asserted_by": "ana", "extra_triples": [
        ["https://example.org/weight", {"@value": "15.00", "@type": "xsd:decimal"}],
        ["https://example.org/count", {"@value": "007", "@type": "xsd:int"}],
        ["https://example.org/heat", {"@value": "1.0E3", "@type": "xsd:double"}],
        ["https://example.org/fresh", {"@value": "1", "@type": "xsd:boolean"}],
    ]}  # fmt: skip
    old = memory.writer.submit_intent("p", intent(**fields), **as_proposal).iri
    if way == "undo":
        memory.writer.invalidate("p", old, reason="wrong", asserted_by="ana")

    if way == "accept":
        new = memory.writer.settle("p", old, "accept", reason="seen").iri
    else:
        new = getattr(memory.writer, way)("p", old, reason="seen", asserted_by="ben").iri

    properties = details(memory, new)["properties"]
    assert properties["assertedBy"] == ["https://jido.ai/agents/ana"]
    assert properties["settledBy"] == ["https://jido.ai/agents/ben"]


def test_a_warning_about_a_replaced_long_rationale_is_truncated(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use A", rationale="it is fast " * 100)).iri

    (warning,) = memory.writer.correct("p", old, supersede="Use A 2", reason="fix typo").warnings

    assert warning.startswith("the reason replaces the rationale: it is fast")
    assert len(warning) < 400


def test_a_given_rationale_is_recorded_for_a_new_text(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use A", rationale="A is fast")).iri

    receipt = memory.writer.correct("p", old, supersede="Use B", changes={"rationale": "B is small"}, reason="slow")

    assert memory.writer.restated("p", receipt.iri)["rationale"] == "B is small"
    assert receipt.warnings == ()


def test_a_second_rejection_of_a_proposal_is_told_that_nothing_is_to_be_submitted(memory):
    proposal = memory.writer.submit_intent("p", decision(), propose=True).iri
    memory.writer.invalidate("p", proposal, reason="wrong")

    with pytest.raises(Conflict) as refusal:
        memory.writer.invalidate("p", proposal, reason="wrong again")

    assert refusal.value.hint == "submit nothing: it stays withdrawn"


@pytest.mark.parametrize("change", [{"supersede": "Use C"}, {"invalidate": True}])
def test_a_change_of_an_ended_memory_is_refused_with_the_remaining_choices(memory, change):
    old = memory.writer.submit_intent("p", decision()).iri
    marker = memory.writer.invalidate("p", old, reason="wrong").iri

    with pytest.raises(Conflict) as refusal:
        memory.writer.correct("p", old, reason="again", **change)

    first, last = refusal.value.choices[0], refusal.value.choices[-1]
    resolution = {"supersedes": [marker]} if "supersede" in change else {}
    assert len(refusal.value.choices) == 1 + len(resolution)
    assert (first.fields, last.effect) == (resolution, "submit nothing: it stays withdrawn")
    assert resolution == {} or first.effect.endswith("the withdrawal ends, and yours takes its place")
    assert "took" not in refusal.value.hint

    old = memory.writer.submit_intent("p", decision()).iri
    revised(memory, old, summary="Use QLever")

    with pytest.raises(Conflict) as refusal:
        memory.writer.correct("p", old, invalidate=True, reason="wrong")

    assert refusal.value.choices[0].effect == "read the memory that took the place first: it is withdrawn"


def test_a_memory_is_split_in_two_by_the_choices_of_the_refusal(memory):
    whole = recorded(memory, summary="the shop closes at 18:00, exports run at 19:00")
    first = recorded(memory, summary="the shop closes at 18:00", topic="closing", supersedes=[whole])
    second = intent(summary="exports run at 19:00", topic="exports", supersedes=[whole])

    with pytest.raises(Conflict) as refusal:
        memory.writer.submit_intent("p", second)
    new = next(choice for choice in refusal.value.choices if choice.name == "new")
    receipt = memory.writer.submit_intent("p", second | new.fields)

    assert statuses(memory, whole, first, receipt.iri) == ["superseded", "active", "active"]


@pytest.mark.parametrize(("fields", "expected"), [({}, "Use spaces"), ({"convention_name": "Indent"}, "Indent")])
def test_a_convention_without_a_name_is_renamed_with_its_summary(memory, fields, expected):
    rule = intent(type="convention", summary="Use tabs", enforcement_level="Strict", **fields)
    old = memory.writer.submit_intent("p", rule).iri

    new = memory.writer.correct("p", old, supersede="Use spaces", reason="team vote").iri

    assert memory.reader.ask("strict-conventions", project="p") == [{"conv": new, "name": expected}]


def retried(memory, correct, item, **fields):
    """Return the receipts of a correction, of its retry and of a retry after reopening, without similar memories."""
    first, retry = (correct(memory.writer)("p", item, idempotency_key="k-1", **fields) for _ in range(2))
    with jidomem.open(memory.settings.root, agent="ana") as reopened_memory:
        reopened = correct(reopened_memory.writer)("p", item, idempotency_key="k-1", **fields)
        assert [len(reopened_memory.reader.log("p").rows)] == [len(memory.reader.log("p").rows)]
    return [replace(each, similar=None) for each in (first, retry, reopened)]


@pytest.mark.parametrize("target", ["old", "new"])
def test_the_retry_of_an_undo_returns_the_first_receipt(memory, target):
    targets = {"old": recorded(memory, summary="one")}
    targets["new"] = revised(memory, targets["old"], summary="two")

    first, retry, reopened = retried(memory, lambda writer: writer.undo, targets[target], reason="back")

    assert first == retry == reopened
    assert statuses(memory, first.iri) == ["active"]
    with pytest.raises(IdempotencyMismatch):
        memory.writer.undo("p", targets[target], reason="another", idempotency_key="k-1")


@pytest.mark.parametrize("target", ["old", "other", "proposal", "accepted"])
def test_the_retry_of_the_undo_of_an_acceptance_returns_the_first_receipt(memory, target):
    targets = {"old": recorded(memory, summary="the port is 80"), "other": recorded(memory, summary="the host is a")}
    links = {"supersedes": [targets["old"]], "invalidates": [targets["other"]]}
    targets["proposal"] = memory.writer.submit_intent("p", intent(summary="b:443", **links), propose=True).iri
    targets["accepted"] = memory.writer.settle("p", targets["proposal"], "accept", reason="measured").iri

    first, retry, reopened = retried(memory, lambda writer: writer.undo, targets[target], reason="back")

    assert first == retry == reopened
    assert len([text for text in first.warnings if "again, as" in text]) == 2
    assert len(memory.reader.ask("proposals", project="p")) == 1


def test_the_retry_of_a_confirmation_returns_the_first_receipt(memory):
    old = recorded(memory, expires_on=START + timedelta(days=30))

    first, retry, reopened = retried(memory, lambda writer: writer.confirm, old)

    assert first == retry == reopened
