"""Settlements: the fields and reason of the new memory, and the settlements that are refused."""

from datetime import timedelta

import pytest
from conftest import START, files, intent
from writing import open_with, refusal, values_of

from jidomem.curation.review_queue import queue, with_endings
from jidomem.errors import Conflict, InvalidRequest, NotFound
from jidomem.rdf.terms import iri
from jidomem.records.policy import PolicyChange
from jidomem.serve.wire import for_requests, for_tools
from jidomem.write.settlement import Settlement


def record(memory, propose=False, **fields):
    return memory.writer.submit_intent("p", intent(**fields), propose=propose).iri


def settle(memory, item, action, **options):
    return memory.writer.settle("p", item, action, **options).iri


def status_of(memory, item):
    return memory.reader.get_memory("p", item)["status"]


def reason(memory, item):
    """Return the reason that a settlement recorded."""
    return values_of(memory, item, "revisionReason") or values_of(memory, item, "rationale")


def conflicting_pair(memory):
    """Record an active decision and a proposed one that conflicts with it."""
    fields = {"type": "decision", "rationale": "r", "topic": "store", "status": "accepted"}
    old = record(memory, summary="Use Oxigraph", about=["server"], **fields)
    return old, record(memory, propose=True, summary="Use Lucene", about=["search"], **fields)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("accept", "accepted in review"), ("reject", "rejected in review"),
        ("supersede", "accepted in review, in place of what it disagrees with"),
        ("keep-both", "accepted in review, beside what it disagrees with"),
    ],
)  # fmt: skip
def test_a_settlement_records_its_reason_and_the_memories_it_replaces(memory, action, expected):
    old, new = (
        (record(memory), record(memory, propose=True, summary="two"))
        if action == "accept"
        else conflicting_pair(memory)
    )

    outcome = settle(memory, new, action)

    assert reason(memory, outcome) == [f'"{expected}"']
    replaced = {"supersede": {iri(old), iri(new)}, "reject": set()}.get(action, {iri(new)})
    assert set(values_of(memory, outcome, "supersedes")) == replaced
    assert values_of(memory, outcome, "invalidates") == ([iri(new)] if action == "reject" else [])
    assert values_of(memory, outcome, "coexistsWith") == ([iri(old)] if action == "keep-both" else [])
    assert values_of(memory, outcome, "expiresOn") == []


def test_accepting_one_of_two_rivals_withdraws_the_other_with_a_reason(memory):
    old, new = conflicting_pair(memory)
    outcome = settle(memory, old, "accept", other=new)
    assert reason(memory, outcome) == [f'"rejected in review: {old} holds"']
    assert values_of(memory, outcome, "invalidates") == [iri(new)]


@pytest.mark.parametrize("action", ["accept", "reject", "supersede", "keep-both"])
def test_a_given_reason_is_recorded_and_a_dry_run_writes_nothing(memory, action):
    old, new = conflicting_pair(memory)
    item, other = (old, {"other": new}) if action == "accept" else (new, {})
    before = files(memory.settings.root)
    assert memory.writer.settle("p", item, action, reason="since", dry_run=True, **other).status == "asserted"
    assert files(memory.settings.root) == before
    assert reason(memory, settle(memory, item, action, reason="since", **other)) == ['"since"']


def test_an_accepted_proposal_replaces_its_target_and_its_identical_proposals(memory):
    old = record(memory, summary="the port is 80")
    first, twin = (
        record(memory, propose=True, summary="the port is 443", supersedes=[old], asserted_by=author)
        for author in ("ana", "bob")
    )
    record(memory, propose=True, summary="the port is 443!", supersedes=[old])
    rejected = record(memory, propose=True, summary="the port is 443", supersedes=[old], asserted_by="cleo")
    settle(memory, rejected, "reject")

    accepted = settle(memory, first, "accept", reason="measured")

    assert values_of(memory, accepted, "supersedes") == sorted(map(iri, (old, first, twin)))


def test_an_accepted_assumption_is_renewed_for_its_former_interval_or_ninety_days(memory):
    due = record(memory, type="assumption", summary="a")
    others = (
        record(memory, type="assumption", summary="b", timestamp="2026-11-01", expires_on="2026-11-11"),
        record(memory, propose=True, type="assumption", summary="d"),
    )  # fmt: skip
    (later,) = values_of(memory, settle(memory, due, "accept"), "expiresOn")
    assert later.startswith(f'"{(START + timedelta(days=90)):%Y-%m-%dT%H:%M}')
    dated, *undated = (values_of(memory, settle(memory, item, "accept"), "expiresOn") for item in others)
    assert dated[0].startswith(f'"{(START + timedelta(days=10)):%Y-%m-%dT%H:%M}')
    assert undated == [[]]


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
def test_a_proposal_without_a_conflict_is_not_settled_against_another_memory(memory, action):
    item = record(memory, propose=True)
    error = refusal(settle, memory, item, action)
    assert (error.detail, error.hint) == (f"{item} disagrees with no active memory", "accept it, or reject it")


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
@pytest.mark.parametrize("config", ["", '[conflicts]\ndecision = "warn"\n', '[conflicts]\ndecision = "propose"\n'])
def test_a_proposal_is_settled_against_a_memory_asserted_after_it(tmp_path, action, config):
    with open_with(tmp_path, config) as memory:
        fields = {"type": "decision", "rationale": "r", "topic": "store", "status": "accepted"}
        proposed = record(memory, propose=True, summary="Use Lucene", about=["search"], **fields)
        first = record(memory, summary="Use Oxigraph", about=["server"], **fields)
        assert [each.iri for each in refusal(settle, memory, proposed, "accept").conflicts] == [first]

        outcome = settle(memory, proposed, action)

        assert set(values_of(memory, outcome, "supersedes")) == {
            iri(proposed),
            *([iri(first)] if action == "supersede" else []),
        }
        assert values_of(memory, outcome, "coexistsWith") == ([iri(first)] if action == "keep-both" else [])


def test_two_memories_of_one_place_are_both_active_once_the_second_has_a_place_of_its_own(memory):
    fields = {"type": "decision", "rationale": "r", "topic": "store", "status": "accepted"}
    first = record(memory, summary="Use Oxigraph", about=["server"], **fields)
    second = record(memory, propose=True, summary="Use Lucene", about=["server"], **fields)

    hint = refusal(settle, memory, second, "keep-both").hint
    accepted = settle(memory, second, "keep-both", changes={"about": ["search"]})

    assert f"jidomem review keep-both {second} --set about=PATH" in hint
    assert [status_of(memory, item) for item in (first, accepted)] == ["active", "active"]


def test_an_unknown_action_and_a_second_settlement_are_refused(memory):
    item = record(memory, propose=True)
    error = refusal(settle, memory, item, "shrug")
    assert error.detail == "'shrug' settles nothing"
    assert error.hint == "one of: accept, reject, supersede, keep-both"
    settle(memory, item, "reject")
    error = refusal(settle, memory, item, "accept")
    assert (error.detail, error.hint) == (f"{item} is settled already: it was rejected", f"see: jidomem show {item}")


def test_a_second_settlement_is_refused_with_the_present_memory(memory):
    item = record(memory, propose=True)
    accepted = settle(memory, item, "accept")

    error = refusal(settle, memory, item, "accept")

    assert error.detail == f"{item} is settled already: it was accepted as {accepted}"
    assert error.hint == f"see: jidomem show {accepted}"
    later = memory.writer.revise("p", accepted, changes={"summary": "otherwise"}, reason="r").iri
    assert refusal(settle, memory, accepted, "accept").detail.endswith(f": it was replaced by {later}")
    memory.writer.invalidate("p", later, reason="r")
    assert refusal(settle, memory, later, "accept").detail.endswith(": it was withdrawn")


def test_a_superseding_proposal_replaces_the_successor_of_its_target(memory):
    old = record(memory, summary="the port is 80")
    proposed = record(memory, propose=True, summary="the port is 443", supersedes=[old])
    newer = memory.writer.revise("p", old, changes={"summary": "the port is 8080"}, reason="r").iri
    assert refusal(settle, memory, proposed, "accept").conflicts[0].kind == "stale_supersession"

    outcome = settle(memory, proposed, "supersede")

    assert set(values_of(memory, outcome, "supersedes")) == {iri(proposed), iri(newer)}


@pytest.mark.parametrize(
    ("prevailing", "ended", "action"),
    [("new", "old", "accept"), ("old", "new", "reject"), ("old", "new", "keep-both")],
    ids=["a proposal accepted over what is active", "what is active for a proposal", "beside a proposal"],
)
def test_a_pending_proposal_ends_no_memory_when_settled_as_the_prevailing_one(memory, prevailing, ended, action):
    old, new = conflicting_pair(memory)
    items = {"old": old, "new": new}
    before = files(memory.settings.root)

    error = refusal(settle, memory, items[prevailing], action, other=items[ended])

    assert error.detail.startswith(f"{new} is only proposed, ")
    assert error.hint.endswith(f"jidomem review supersede {new} --against {old}")
    assert files(memory.settings.root) == before
    settle(memory, new, "supersede", other=old)


@pytest.mark.parametrize("action", ["accept", "reject", "supersede", "keep-both"])
def test_a_memory_is_not_settled_against_itself_or_an_ended_one(memory, action):
    old, new = conflicting_pair(memory)
    assert refusal(settle, memory, old, action, other=old).detail == f"{old} does not disagree with itself"
    settle(memory, new, "reject")
    assert refusal(settle, memory, old, action, other=new).detail == f"{new} is settled already: it was rejected"
    assert values_of(memory, old, "invalidatedBy") == []


def test_a_conflicting_proposal_is_not_accepted_under_the_policy_warn(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "warn"\n') as memory:
        _, new = conflicting_pair(memory)
        before = files(memory.settings.root)
        assert refusal(settle, memory, new, "accept").code == "conflict"
        assert files(memory.settings.root) == before


def test_settlements_of_a_batch_share_a_commit_and_are_judged_in_order(memory):
    first, second, untouched = (
        memory.writer.submit_intent("p", intent(summary=text), propose=True).iri for text in ("one", "two", "three")
    )
    before = memory.catch_up("p")

    accepted, repeated, unknown, rejected = memory.writer.settle_many(
        "p", [Settlement(first, "accept"), Settlement(first, "reject"), Settlement("urn:x", "accept"),
              Settlement(second, "reject")]
    )  # fmt: skip

    assert (accepted.status, rejected.status) == ("asserted", "asserted")
    assert accepted.commit == rejected.commit
    assert memory.catch_up("p").position == before.position + 1
    assert [type(outcome) for outcome in (repeated, unknown)] == [InvalidRequest, NotFound]
    assert "settled already" in repeated.detail
    assert memory.reader.get_memory("p", untouched)["status"] == "pending"


def test_a_dry_run_of_a_batch_returns_the_outcomes_and_writes_nothing(memory):
    item = memory.writer.submit_intent("p", intent(summary="one"), propose=True).iri
    before = memory.catch_up("p")

    accepted, repeated = memory.writer.settle_many("p", [Settlement(item, "accept")] * 2, dry_run=True)

    assert (accepted.status, accepted.commit, "settled already" in repeated.detail) == ("asserted", None, True)
    assert memory.catch_up("p") == before


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_an_active_memory_is_not_settled_in_place_of_its_pending_proposal(memory, action):
    item, other = record(memory), record(memory, summary="two")
    marker = {"type": "deleted_marker", "summary": "wrong", "rationale": "r", "invalidates": [item]}
    withdrawal = record(memory, propose=True, **marker)
    before = files(memory.settings.root)

    error = refusal(settle, memory, item, action)

    assert error.detail == f"{item} is active; pending on it: {withdrawal} (a withdrawal)"
    assert f"jidomem review accept {withdrawal}" in error.hint
    assert files(memory.settings.root) == before
    settle(memory, withdrawal, "accept")
    assert values_of(memory, item, "invalidatedBy") != []
    change = record(memory, propose=True, summary="2", supersedes=[other])
    assert refusal(settle, memory, other, action).detail.endswith(f"pending on it: {change} (a change)")


def test_an_active_memory_without_a_pending_proposal_is_not_accepted(memory):
    item = record(memory)

    error = refusal(settle, memory, item, "accept")

    assert error.detail == f"{item} is active, and nothing is pending on it"
    assert error.hint.endswith(f"jidomem edit {item} --confirm")


def test_an_expired_memory_is_not_accepted_and_every_interface_hints_how_to_renew_it(memory):
    item = record(memory, valid_until="2020-11-20")
    error = refusal(settle, memory, item, "accept")

    assert error.detail == f"{item} expired: it was valid until 2020-11-20, and nothing is pending on it"
    assert error.hint == f"to renew it: jidomem edit {item} --set valid_until=DATE"
    path = f"memories/{item.rpartition('/')[2]}/revise"
    assert for_requests(error.to_dict(), "p")["hint"] == (
        f'to renew it: POST /projects/p/{path} {{"set": {{"valid_until": "DATE"}}}}'
    )
    assert for_tools(error.to_dict())["hint"] == (
        f'to renew it: the tool revise with id {item.rpartition("/")[2]} and set {{"valid_until": "DATE"}}'
    )
    change = record(memory, propose=True, summary="2", supersedes=[item])
    assert refusal(settle, memory, item, "accept").detail == (
        f"{item} expired: it was valid until 2020-11-20; pending on it: {change} (a change)"
    )


MARKER = {"type": "deleted_marker", "summary": "wrong", "rationale": "it was never so"}


def test_undo_of_an_acceptance_makes_the_proposal_pending(memory):
    proposed = record(memory, propose=True, timestamp="2020-03-04")
    accepted = settle(memory, proposed, "accept")

    pending = memory.writer.undo("p", accepted, reason="too early")

    assert pending.status == "proposed"
    assert [row["item"] for row in memory.reader.ask("proposals", project="p")] == [pending.iri]
    assert values_of(memory, pending.iri, "revives") == [iri(proposed)]
    assert values_of(memory, pending.iri, "hasTimestamp") == values_of(memory, proposed, "hasTimestamp")
    assert memory.reader.ask("facts", project="p") == []
    settle(memory, pending.iri, "accept")
    assert len(memory.reader.ask("facts", project="p")) == 1


def test_undo_of_an_accepted_change_restores_the_replaced_memory(memory):
    old = record(memory, summary="the port is 80")
    proposed = record(memory, propose=True, summary="the port is 443", supersedes=[old])
    accepted = settle(memory, proposed, "accept")
    before = files(memory.settings.root)
    assert memory.writer.undo("p", proposed, dry_run=True).status == "proposed"
    assert files(memory.settings.root) == before

    pending = memory.writer.undo("p", proposed).iri

    (restored,) = memory.reader.ask("facts", project="p")
    assert values_of(memory, restored["fact"], "revives") == [iri(old)]
    assert values_of(memory, restored["fact"], "supersedes") == [iri(accepted)]
    assert values_of(memory, pending, "supersedes") == [iri(restored["fact"])]


def test_undo_of_an_accepted_withdrawal_restores_the_memory_and_the_proposal(memory):
    item = record(memory)
    accepted = settle(memory, record(memory, propose=True, **{**MARKER, "invalidates": [item]}), "accept")

    pending = memory.writer.undo("p", accepted).iri

    (restored,) = memory.reader.ask("facts", project="p")
    assert values_of(memory, restored["fact"], "revives") == [iri(item)]
    assert values_of(memory, pending, "invalidates") == [iri(restored["fact"])]


def test_undo_of_a_rejection_makes_the_proposal_pending(memory):
    proposed = record(memory, propose=True)
    settle(memory, proposed, "reject")

    pending = memory.writer.undo("p", proposed)

    assert pending.status == "proposed"
    assert memory.reader.ask("facts", project="p") == []
    assert memory.writer.undo("p", proposed).iri == pending.iri


def test_undo_of_an_accepted_proposal_is_refused_after_its_replacement(memory):
    proposed = record(memory, propose=True)
    accepted = settle(memory, proposed, "accept")
    newer = memory.writer.revise("p", accepted, changes={"summary": "two"}, reason="r").iri

    error = refusal(memory.writer.undo, "p", proposed)

    assert error.detail == f"{proposed} was accepted as {accepted}, which {newer} replaced"
    assert f"jidomem edit {newer} --undo" in error.hint


def accepted_over_its_successor(memory, *, marker):
    """Record a confirmed memory, a proposal on its first version, and its acceptance in place of the second."""
    old = record(memory, summary="the port is 80")
    change = {**MARKER, "invalidates": [old]} if marker else {"summary": "the port is 443", "supersedes": [old]}
    proposed = record(memory, propose=True, reason="the audit says so", **change)
    newer = memory.writer.confirm("p", old).iri
    return {"old": old, "newer": newer, "proposed": proposed, "accepted": settle(memory, proposed, "supersede")}


@pytest.mark.parametrize("marker", [False, True])
@pytest.mark.parametrize("name", ["old", "newer", "proposed", "accepted"])
def test_an_acceptance_is_undone_by_the_iri_of_any_memory_concerned(memory, name, marker):
    items = accepted_over_its_successor(memory, marker=marker)
    before = files(memory.settings.root)
    assert memory.writer.undo("p", items[name], dry_run=True).commit is None
    assert files(memory.settings.root) == before

    receipt = memory.writer.undo("p", items[name], reason="a mistake")

    (restored,) = memory.reader.ask("facts", project="p")
    (pending,) = memory.reader.ask("proposals", project="p")
    assert restored["summary"] == "the port is 80"
    assert values_of(memory, pending["item"], "revives") == [iri(items["proposed"])]
    expected_warnings = {restored["fact"]: "active again", pending["item"]: "pending again"}
    others = {*expected_warnings} - {receipt.iri}
    assert [expected_warnings[item] in receipt.warnings[0] and item in receipt.warnings[0] for item in others] == [True]
    assert receipt.status == ("asserted" if name in ("old", "newer") else "proposed")
    (queued,) = with_endings(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))
    assert queued.reason == "the audit says so"  # the reason of the proposer, not of the undo
    assert queued.other == (None if name == "old" else restored["fact"])  # it named the earlier version
    settle(memory, pending["item"], "supersede" if queued.other else "accept")
    assert status_of(memory, restored["fact"]) == ("invalidated" if marker else "superseded")


def test_an_undone_acceptance_is_redone_by_undo_of_the_restored_memory(memory):
    old = record(memory, summary="the port is 80")
    proposed = record(memory, propose=True, summary="the port is 443", supersedes=[old])
    settle(memory, proposed, "accept")
    for _ in range(2):
        memory.writer.undo("p", old, reason="back")
        (restored,) = memory.reader.ask("facts", project="p")
        assert restored["summary"] == "the port is 80"
        assert len(memory.reader.ask("proposals", project="p")) == 1
        error = refusal(memory.writer.undo, "p", proposed)
        assert error.detail.startswith(f"{proposed} is pending again, as ")

        old = memory.writer.undo("p", restored["fact"], reason="a mistake").iri

        assert [row["summary"] for row in memory.reader.ask("facts", project="p")] == ["the port is 443"]
        assert memory.reader.ask("proposals", project="p") == []


def test_undo_of_a_joint_acceptance_restores_each_replaced_memory(memory):
    replaced = [record(memory, summary=text) for text in ("the port is 80", "the host is a")]
    proposed = record(memory, propose=True, summary="a:80", supersedes=replaced)
    settle(memory, proposed, "accept")

    receipt = memory.writer.undo("p", proposed)

    restored = {row["summary"]: row["fact"] for row in memory.reader.ask("facts", project="p")}
    assert {*restored} == {"the port is 80", "the host is a"}
    assert {*values_of(memory, receipt.iri, "supersedes")} == {*map(iri, restored.values())}
    assert [*map(len, (receipt.warnings, memory.reader.ask("conflicts", project="p")))] == [2, 0]


def accepted_with_a_withdrawal(memory):
    """Accept a proposal that replaces one memory and withdraws another."""
    old, other = record(memory, summary="the port is 80"), record(memory, summary="the host is a")
    proposed = record(memory, propose=True, summary="b:443", supersedes=[old], invalidates=[other])
    accepted = settle(memory, proposed, "accept", reason="measured")
    return {"old": old, "other": other, "proposed": proposed, "accepted": accepted}


@pytest.mark.parametrize("name", ["old", "proposed", "accepted"])
@pytest.mark.parametrize("restoration", ["revival", "its successor", "an equal one"])
def test_undo_of_an_acceptance_does_not_restore_a_memory_that_is_active_again(memory, name, restoration):
    items = accepted_with_a_withdrawal(memory)
    restored = record(
        memory, summary="the host is a", **({} if restoration == "an equal one" else {"revives": [items["other"]]})
    )
    if restoration == "its successor":
        restored = memory.writer.revise("p", restored, changes={"summary": "the host is c"}, reason="moved").iri

    memory.writer.undo("p", items[name], reason="a mistake")

    (pending,) = memory.reader.ask("proposals", project="p")
    facts = {row["fact"]: row["summary"] for row in memory.reader.ask("facts", project="p")}
    assert sorted(facts.values()) == [f"the host is {'c' if restoration == 'its successor' else 'a'}", "the port is 80"]
    assert values_of(memory, pending["item"], "invalidates") == [iri(restored)]
    assert {*values_of(memory, pending["item"], "supersedes")} == {*map(iri, facts)} - {iri(restored)}


@pytest.mark.parametrize("name", ["old", "other", "proposed", "accepted"])
def test_an_acceptance_with_a_withdrawal_is_undone_by_the_iri_of_any_memory_concerned(memory, name):
    items = accepted_with_a_withdrawal(memory)

    memory.writer.undo("p", items[name], reason="a mistake")

    (pending,) = memory.reader.ask("proposals", project="p")
    facts = {row["summary"]: iri(row["fact"]) for row in memory.reader.ask("facts", project="p")}
    assert {*facts} == {"the port is 80", "the host is a"}
    assert values_of(memory, pending["item"], "supersedes") == [facts["the port is 80"]]
    assert values_of(memory, pending["item"], "invalidates") == [facts["the host is a"]]


@pytest.mark.parametrize("name", ["old", "proposed"])
def test_a_withdrawn_acceptance_is_undone_by_the_iri_of_the_target_or_the_proposal(memory, name):
    items = {"old": record(memory, summary="the port is 80")}
    items["proposed"] = record(memory, propose=True, summary="the port is 443", supersedes=[items["old"]])
    accepted = settle(memory, items["proposed"], "accept")
    memory.writer.invalidate("p", accepted, reason="wrong")
    memory.writer.invalidate("p", memory.writer.undo("p", accepted).iri, reason="wrong")  # its withdrawal was undone

    memory.writer.undo("p", items[name], reason="a mistake")

    (restored,), (pending,) = (memory.reader.ask(query, project="p") for query in ("facts", "proposals"))
    assert (restored["summary"], pending["summary"]) == ("the port is 80", "the port is 443")
    assert values_of(memory, pending["item"], "supersedes") == [iri(restored["fact"])]


def test_undo_by_the_iri_of_a_memory_that_is_active_again_is_refused(memory):
    items = accepted_with_a_withdrawal(memory)
    restored = record(memory, summary="the host is a", revives=[items["other"]])

    error = refusal(memory.writer.undo, "p", items["other"], summary="the host is b")

    assert error.detail == f"{items['other']} is active again, as {restored}"
    assert status_of(memory, items["accepted"]) == "active"


def test_undo_of_an_acceptance_makes_the_newest_proposal_pending(memory):
    first = record(memory, propose=True, summary="one")
    second = record(memory, propose=True, summary="two", supersedes=[first])
    accepted = settle(memory, second, "accept")

    pending = memory.writer.undo("p", accepted).iri

    assert values_of(memory, pending, "revives") == [iri(second)]
    (queued,) = queue(memory.reader, "p", memory.sources.now())
    assert (queued.item, queued.other) == (pending, None)


def test_undo_of_a_rejection_makes_a_proposal_pending_against_the_successor_of_its_target(memory):
    old = record(memory, summary="the port is 80")
    proposed = record(memory, propose=True, summary="the port is 443", supersedes=[old])
    settle(memory, proposed, "reject")
    newer = memory.writer.revise("p", old, changes={"summary": "the port is 8080"}, reason="r").iri

    pending = memory.writer.undo("p", proposed).iri

    (queued,) = queue(memory.reader, "p", memory.sources.now())
    assert (queued.item, queued.other) == (pending, newer)


def test_a_conflict_of_a_restored_memory_is_resolved_by_undo_of_that_memory(memory):
    fields = {"type": "decision", "rationale": "r", "status": "accepted"}
    old = record(memory, summary="Use Oxigraph", topic="store", **fields)
    proposed = record(memory, propose=True, summary="Use Lucene", topic="search", supersedes=[old], **fields)
    accepted = settle(memory, proposed, "accept")
    rival = record(memory, summary="Use QLever", topic="store", **fields)

    error = refusal(memory.writer.undo, "p", accepted)
    with pytest.raises(Conflict) as conflict:
        memory.writer.undo("p", old)

    assert (error.code, error.position) == ("conflict", None)
    assert error.detail.startswith(f"{old} would be active again: {rival} is active on 'store'")
    assert f"jidomem edit {old} --undo" in error.hint
    assert {*conflict.value.choices[0].fields["supersedes"]} == {accepted, rival}
    memory.writer.undo("p", old, supersedes=[rival])
    assert [row["summary"] for row in memory.reader.ask("decisions", project="p")] == ["Use Oxigraph"]


def test_the_reason_of_an_undo_is_no_reason_to_end_another_agents_memory(memory):
    old = record(memory, summary="the port is 80", asserted_by="ben")
    proposed = record(memory, propose=True, summary="the port is 443", supersedes=[old], asserted_by="cleo")
    settle(memory, proposed, "accept", reason="measured")
    pending = memory.writer.undo("p", proposed, reason="too early").iri

    assert refusal(settle, memory, pending, "accept").code == "missing_rationale"
    assert refusal(memory.writer.confirm, "p", pending).code == "missing_rationale"


def test_a_superseding_withdrawal_withdraws_the_successor_of_its_target(memory):
    item = record(memory)
    withdrawal = record(memory, propose=True, **{**MARKER, "invalidates": [item]})
    newer = memory.writer.confirm("p", item).iri
    assert refusal(settle, memory, withdrawal, "accept").code == "conflict"

    marker = settle(memory, withdrawal, "supersede")

    assert values_of(memory, marker, "invalidates") == [iri(newer)]
    assert memory.reader.ask("facts", project="p") == []
    assert memory.reader.ask("proposals", project="p") == []


def test_a_superseding_withdrawal_withdraws_the_version_restated_by_a_rollback(memory):
    item = memory.writer.submit_intent("p", intent())
    withdrawal = record(memory, propose=True, **{**MARKER, "invalidates": [item.iri]})
    memory.writer.revise("p", item.iri, changes={"summary": "two"}, reason="r")
    (_, restated) = memory.roll_back(item.version.recorded_at, reason="too soon", project="p").corrections

    marker = settle(memory, withdrawal, "supersede")

    assert values_of(memory, marker, "invalidates") == [iri(restated.by)]
    assert memory.reader.ask("facts", project="p") == []


def test_a_withdrawal_of_an_ended_memory_is_settled_by_acceptance(memory):
    item = record(memory)
    withdrawal = record(memory, propose=True, **{**MARKER, "invalidates": [item]})
    memory.writer.invalidate("p", item, reason="wrong")

    outcome = settle(memory, withdrawal, "accept")

    assert values_of(memory, outcome, "rationale") == ['"what it withdraws has ended already"']
    assert memory.reader.ask("proposals", project="p") == []


def test_a_repeated_withdrawal_proposal_is_deduplicated(memory):
    item = record(memory)

    first, second = (record(memory, propose=True, **{**MARKER, "invalidates": [item]}) for _ in range(2))
    other = record(memory, propose=True, **{**MARKER, "rationale": "another reason", "invalidates": [item]})

    assert first == second != other


def test_an_agent_without_the_right_to_accept_may_not_reject_or_undo(memory):
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    first, second = (record(memory, summary=text, source_type="ExternalDocumentSource") for text in ("one", "two"))
    memory.writer.agent = "rita"
    accepted = settle(memory, first, "accept")
    memory.writer.agent = "bob"

    assert refusal(settle, memory, second, "reject").code == "policy_denied"
    assert refusal(settle, memory, accepted, "reject").code == "policy_denied"
    assert refusal(memory.writer.undo, "p", accepted).code == "policy_denied"
    withdrawal = memory.writer.invalidate("p", accepted, reason="I do not like it")
    assert (withdrawal.status, values_of(memory, accepted, "invalidatedBy")) == ("proposed", [])
    own_proposal = memory.writer.remember("p", "three", source_type="ExternalDocumentSource").iri
    settle(memory, own_proposal, "reject")
    memory.writer.agent = "rita"
    settle(memory, withdrawal.iri, "accept")
    assert values_of(memory, accepted, "invalidatedBy") != []


def facts_of_ana(memory):
    """Record two facts of an agent who is not the curator."""
    fields = {"asserted_by": "ana", "asserted_in": "monday"}
    return tuple(record(memory, summary=text, **fields) for text in ("the port is 80", "the port is the 80"))


@pytest.mark.parametrize("action", ["accept", "reject", "supersede", "keep-both"])
def test_a_settlement_of_another_agents_memory_needs_a_reason(memory, action):
    item, other = facts_of_ana(memory)
    memory.writer.agent = "rita"
    before = files(memory.settings.root)

    error = refusal(settle, memory, item, action, other=other)

    assert (error.code, error.violations[0].field) == ("missing_rationale", "reason")
    assert error.violations[0].message.endswith(" was asserted by ana: say in reason why it ends or changes")
    assert files(memory.settings.root) == before
    assert reason(memory, settle(memory, item, action, other=other, reason="measured")) == ['"measured"']


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
def test_a_memory_restated_by_a_settlement_keeps_its_author_and_records_the_curator(memory, action):
    item, other = facts_of_ana(memory)
    memory.writer.agent = "rita"

    outcome = settle(memory, item, action, other=other, reason="measured")

    assert values_of(memory, outcome, "assertedBy") == ["<https://jido.ai/agents/ana>"]
    assert values_of(memory, outcome, "assertedIn") == ["<https://jido.ai/sessions/monday>"]
    assert values_of(memory, outcome, "settledBy") == ["<https://jido.ai/agents/rita>"]
    versions = memory.reader.history("p", outcome)
    assert [row["agent"] for row in versions if row["entry"] == outcome] == ["https://jido.ai/agents/rita"]
    assert memory.check(project="p").exit_code == 0


def test_a_memory_changed_by_a_settlement_has_the_curator_as_author(memory):
    item, other = facts_of_ana(memory)
    memory.writer.agent = "rita"

    outcome = settle(memory, item, "supersede", other=other, changes={"summary": "the port is 8080"}, reason="measured")

    assert values_of(memory, outcome, "assertedBy") == ["<https://jido.ai/agents/rita>"]
    assert values_of(memory, outcome, "settledBy") == []


def test_own_memories_and_proposals_are_settled_without_a_reason(memory):
    item, other = facts_of_ana(memory)
    memory.writer.agent = "ana"
    assert reason(memory, settle(memory, item, "keep-both", other=other)) == [
        '"accepted in review, beside what it disagrees with"'
    ]
    proposal = record(memory, propose=True, summary="two", asserted_by="ben")
    assert settle(memory, proposal, "reject")


@pytest.mark.parametrize("action", ["keep-both", "supersede"])
def test_a_pair_is_settled_without_settling_conflicts_with_a_third_memory(tmp_path, action):
    with open_with(tmp_path, '[conflicts]\nconvention = "warn"\n') as memory:
        fields = {"type": "convention", "convention_name": "indent"}
        places = {"tabs": ["src"], "two spaces": ["src", "lib"], "four spaces": ["src", "docs"]}
        first, second, third = (record(memory, summary=text, about=about, **fields) for text, about in places.items())

        outcome = settle(memory, first, action, other=second, reason="measured")

        pairs = {frozenset((row["a"], row["b"])) for row in memory.reader.ask("conflicts", project="p")}
        assert pairs == {frozenset((outcome, third)), *([frozenset((second, third))] if action == "keep-both" else [])}


@pytest.mark.parametrize("meanwhile", ["edit", "confirm", "accept", "keep-both", "keep-both of the other"])
def test_a_stale_settlement_ends_no_newer_version(memory, meanwhile):
    item, other = facts_of_ana(memory)
    memory.writer.agent = "ana"
    changes = {"detailed_explanation": "on the staging host", "about": ["staging"]}
    if meanwhile == "edit":
        stale, newer = item, memory.writer.correct("p", item, changes=changes, reason="narrowed").iri
    elif meanwhile == "confirm":
        stale, newer = item, memory.writer.confirm("p", item).iri
    elif meanwhile == "accept":
        third, item = record(memory, summary="port 80 there"), record(memory, propose=True, summary="port 80 here")
        stale, newer = item, settle(memory, item, "keep-both", other=third, changes=changes)
    else:
        stale, rival = (item, other) if meanwhile == "keep-both" else (other, item)
        newer = settle(memory, stale, "keep-both", other=rival)
    memory.writer.agent = "sam"

    with pytest.raises(InvalidRequest, match=f"{stale} is settled already: it was .* {newer}") as error:
        settle(memory, item, "reject", other=other, reason="stale")

    successors = {stale: newer}
    current = [successors.get(memory_iri, memory_iri) for memory_iri in (item, other)]
    assert f"jidomem review reject {current[0]} --against {current[1]}" in error.value.hint
    assert values_of(memory, settle(memory, current[0], "reject", other=current[1], reason="seen"), "invalidates") == [
        iri(current[0])
    ]


@pytest.mark.parametrize("rationale", ["measured", " measured ", " "])
def test_a_blank_or_unchanged_rationale_is_no_reason_for_a_settlement(memory, rationale):
    fields = {"asserted_by": "ana", "asserted_in": "monday", "rationale": "measured"}
    item, other = (record(memory, summary=text, **fields) for text in ("the port is 80", "the port is the 80"))
    memory.writer.agent = "rita"

    error = refusal(settle, memory, item, "supersede", other=other, changes={"rationale": rationale})

    assert error.code == "missing_rationale"
    assert settle(memory, item, "supersede", other=other, changes={"rationale": "seen in the log"})


def test_a_settlement_with_an_author_is_refused(memory):
    item, other = facts_of_ana(memory)

    with pytest.raises(InvalidRequest, match="takes no asserted_by in `changes`"):
        settle(memory, item, "supersede", other=other, changes={"asserted_by": "ben"}, reason="measured")


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
@pytest.mark.parametrize("name", ["supersedes", "invalidates", "coexists_with", "revives", "iri", "reason"])
def test_a_settlement_with_relations_is_refused(memory, action, name):
    old, new = conflicting_pair(memory)
    third = record(memory, summary="cats are nice")

    error = refusal(settle, memory, new, action, changes={name: "urn:x" if name in ("iri", "reason") else [third]})

    assert error.detail.startswith(f"a settlement takes no {name} in `changes`")
    assert [status_of(memory, item) for item in (old, new, third)] == ["active", "pending", "active"]


@pytest.mark.parametrize(("is_active", "action"), [(False, "supersede"), (True, "supersede"), (True, "accept")])
def test_a_proposal_without_a_conflict_is_not_rejected_in_favour_of_another_memory(memory, is_active, action):
    item = record(memory, propose=not is_active, summary="the port is 80", topic="port")
    other = record(memory, propose=True, summary="cats are nice", topic="cats")
    rival = record(memory, propose=True, summary="the port is 90", topic="port")

    error = refusal(settle, memory, item, action, other=other)

    assert error.detail == f"{other} is a proposal that does not disagree with {item}"
    assert f"jidomem review reject {other}" in error.hint
    assert status_of(memory, other) == "pending"
    settle(memory, item, action, other=rival, reason="measured")
    assert status_of(memory, rival) == "rejected"


HINTED_COMMANDS = {
    "accept": "jidomem edit {other} --invalidate --reason", "reject": "jidomem edit {item} --invalidate --reason",
    "supersede": "jidomem edit {item} --set supersedes={item} --set supersedes={other} --reason", "keep-both": "",
}  # fmt: skip


@pytest.mark.parametrize("action", HINTED_COMMANDS)
@pytest.mark.parametrize("is_proposal", [False, True])
def test_a_memory_without_a_conflict_is_not_ended_by_a_settlement(memory, action, is_proposal):
    old, new = conflicting_pair(memory)
    item = record(memory, summary="Ship weekly") if not is_proposal else new
    other = record(memory, summary="the lunch is at noon")
    before = files(memory.settings.root)

    error = refusal(settle, memory, item, action, other=other, reason="typed")

    assert files(memory.settings.root) == before
    if not (is_proposal and action == "accept"):  # a proposal is not asserted by that action, whatever the pair
        assert error.detail.startswith(f"{item} and {other} are no pair of the review")
        assert HINTED_COMMANDS[action].format(item=item, other=other) in error.hint
        assert (f"jidomem review {action} {item} --against {old}" in error.hint) == is_proposal


def test_the_hinted_command_merges_two_memories_without_a_conflict(memory):
    item, other = record(memory, summary="Ship weekly"), record(memory, summary="the lunch is at noon")

    merged = memory.writer.correct("p", item, changes={"supersedes": [item, other]}, reason="merged").iri

    assert [status_of(memory, each) for each in (item, other, merged)] == ["superseded", "superseded", "active"]


def test_a_settled_pair_is_settled_again_under_its_new_iri(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "warn"\n') as memory:
        fields = {"type": "decision", "rationale": "r", "topic": "store"}
        item, other = (record(memory, summary=text, **fields) for text in ("Use Oxigraph", "Keep files"))
        new = settle(memory, item, "keep-both", other=other, reason="both", changes={"about": ["search"]})

        error = refusal(settle, memory, item, "accept", other=other, reason="late")
        settle(memory, new, "accept", other=other, reason="after all")

        assert error.detail == f"{item} is settled already: it was replaced by {new}"
        assert f"jidomem review accept {new} --against {other}" in error.hint
        assert [status_of(memory, each) for each in (new, other)] == ["active", "invalidated"]


def test_decisions_about_one_file_with_a_warning_are_a_reviewable_pair(memory):
    fields = {"type": "decision", "rationale": "r", "about": ["src/a.py"]}
    old = record(memory, summary="Cache it", topic="cache", **fields)
    receipt = memory.writer.submit_intent("p", intent(summary="Never cache it", topic="waits", **fields))
    assert f"jidomem review supersede {receipt.iri} --against {old}" in receipt.warnings[0]

    settle(memory, receipt.iri, "supersede", other=old, reason="it takes its place")

    assert status_of(memory, old) == "superseded"


@pytest.mark.parametrize("count", [2, 3])
def test_rival_proposals_accepted_in_one_batch_are_all_refused_with_the_settling_commands(memory, count):
    fields = {"type": "decision", "rationale": "r", "topic": "store"}
    items = [record(memory, propose=True, summary=f"Use {n}", **fields) for n in range(count)]
    unrelated = record(memory, propose=True, summary="Ship weekly")

    outcomes = memory.writer.settle_many("p", [Settlement(item, "accept") for item in (*items, unrelated)])

    assert [status_of(memory, item) for item in (*items, unrelated)] == ["pending"] * count + ["superseded"]
    for item, outcome in zip(items, outcomes, strict=False):
        assert outcome.code == "conflict"
        others = [each for each in items if each != item]
        assert all(each in outcome.detail for each in items)
        assert all(each in outcome.hint for each in (item, *others))
    assert outcomes[-1].status == "asserted"


def test_an_invalid_iri_in_a_batch_is_refused_alone(memory):
    first, second = (
        memory.writer.submit_intent("p", intent(summary=text), propose=True).iri
        for text in ("the logo is blue", "tea is served at four")
    )

    refused, accepted = memory.writer.settle_many(
        "p", [Settlement(first, "keep-both", other="abc"), Settlement(second, "accept")]
    )

    assert isinstance(refused, NotFound | InvalidRequest)
    assert "abc" in str(refused)
    assert accepted.status == "asserted"


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_the_winner_of_a_settled_conflict_names_the_decision(tmp_path, action):  # C115
    with open_with(tmp_path, '[conflicts]\nfact = "warn"\n') as memory:
        winner, loser = (record(memory, summary=text, topic="x", about=["f"]) for text in ("one", "two"))
        record(memory, summary="other", topic="y", about=["f"])
        before = memory.reader.why("p", winner)
        items = (winner, loser) if action == "accept" else (loser, winner)
        marker = settle(memory, items[0], action, other=items[1], reason="measured")

        (upheld,) = memory.reader.why("p", winner)["upheld_by"]
        edited = memory.writer.revise("p", winner, changes={"summary": "one!"}, reason="clearer").iri

        assert before["upheld_by"] == memory.reader.why("p", loser)["upheld_by"] == []
        assert (upheld["iri"], upheld["reason"]) == (marker, "measured")
        assert upheld["asserted_by"] == memory.reader.get_memory("p", marker)["properties"]["assertedBy"]
        assert (upheld["against"]["iri"], upheld["against"]["summary"]) == (loser, "two")
        assert [each["iri"] for each in memory.reader.why("p", edited)["upheld_by"]] == [marker]
        assert memory.reader.why("p", winner, as_of=before["recorded_at"])["upheld_by"] == []
        memory.writer.undo("p", loser, reason="it was right")
        assert memory.reader.why("p", edited)["upheld_by"] == []
