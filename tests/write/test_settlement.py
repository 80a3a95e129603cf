"""Settlements: the fields and reason of the new memory, and the memories that cannot be settled."""

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


def kept(memory, propose=False, **fields):
    return memory.writer.submit_intent("p", intent(**fields), propose=propose).iri


def settle(memory, item, action, **more):
    return memory.writer.settle("p", item, action, **more).iri


def status(memory, item):
    return memory.reader.get_memory("p", item)["status"]


def reason(memory, made):
    """The reason why a memory was asserted again or withdrawn."""
    return values_of(memory, made, "revisionReason") or values_of(memory, made, "rationale")


def rivals(memory):
    """An active decision, and a proposed one that conflicts with it."""
    given = {"type": "decision", "rationale": "r", "topic": "store", "status": "accepted"}
    old = kept(memory, summary="Use Oxigraph", about=["server"], **given)
    return old, kept(memory, propose=True, summary="Use Lucene", about=["search"], **given)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("accept", "accepted in review"), ("reject", "rejected in review"),
        ("supersede", "accepted in review, in place of what it disagrees with"),
        ("keep-both", "accepted in review, beside what it disagrees with"),
    ],
)  # fmt: skip
def test_what_is_settled_says_why_and_in_whose_place(memory, action, why):
    old, new = (kept(memory), kept(memory, propose=True, summary="two")) if action == "accept" else rivals(memory)

    made = settle(memory, new, action)

    assert reason(memory, made) == [f'"{why}"']
    replaced = {"supersede": {iri(old), iri(new)}, "reject": set()}.get(action, {iri(new)})
    assert set(values_of(memory, made, "supersedes")) == replaced
    assert values_of(memory, made, "invalidates") == ([iri(new)] if action == "reject" else [])
    assert values_of(memory, made, "coexistsWith") == ([iri(old)] if action == "keep-both" else [])
    assert values_of(memory, made, "expiresOn") == []


def test_of_two_that_disagree_the_other_is_withdrawn_for_the_one_that_holds(memory):
    old, new = rivals(memory)
    made = settle(memory, old, "accept", other=new)
    assert reason(memory, made) == [f'"rejected in review: {old} holds"']
    assert values_of(memory, made, "invalidates") == [iri(new)]


@pytest.mark.parametrize("action", ["accept", "reject", "supersede", "keep-both"])
def test_a_reason_that_is_given_is_the_one_that_is_kept_and_a_dry_run_keeps_nothing(memory, action):
    old, new = rivals(memory)
    item, other = (old, {"other": new}) if action == "accept" else (new, {})
    before = files(memory.settings.root)
    assert memory.writer.settle("p", item, action, reason="since", dry_run=True, **other).status == "asserted"
    assert files(memory.settings.root) == before
    assert reason(memory, settle(memory, item, action, reason="since", **other)) == ['"since"']


def test_what_a_proposal_would_replace_is_replaced_by_what_is_accepted_and_so_are_its_twins(memory):
    old = kept(memory, summary="the port is 80")
    first, twin = (
        kept(memory, propose=True, summary="the port is 443", supersedes=[old], asserted_by=who)
        for who in ("ana", "bob")
    )
    kept(memory, propose=True, summary="the port is 443!", supersedes=[old])
    done = kept(memory, propose=True, summary="the port is 443", supersedes=[old], asserted_by="cleo")
    settle(memory, done, "reject")

    made = settle(memory, first, "accept", reason="measured")

    assert values_of(memory, made, "supersedes") == sorted(map(iri, (old, first, twin)))


def test_an_assumption_that_is_due_holds_for_ninety_days_more_and_any_other_memory_as_long_as_it_did(memory):
    due = kept(memory, type="assumption", summary="a")
    others = (
        kept(memory, type="assumption", summary="b", timestamp="2026-11-01", expires_on="2026-11-11"),
        kept(memory, propose=True, type="assumption", summary="d"),
    )  # fmt: skip
    (later,) = values_of(memory, settle(memory, due, "accept"), "expiresOn")
    assert later.startswith(f'"{(START + timedelta(days=90)):%Y-%m-%dT%H:%M}')
    dated, *plain = (values_of(memory, settle(memory, item, "accept"), "expiresOn") for item in others)
    assert dated[0].startswith(f'"{(START + timedelta(days=10)):%Y-%m-%dT%H:%M}')
    assert plain == [[]]


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
def test_a_proposal_without_conflict_is_accepted_or_rejected(memory, action):
    item = kept(memory, propose=True)
    error = refusal(settle, memory, item, action)
    assert (error.detail, error.hint) == (f"{item} disagrees with no active memory", "accept it, or reject it")


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
@pytest.mark.parametrize("config", ["", '[conflicts]\ndecision = "warn"\n', '[conflicts]\ndecision = "propose"\n'])
def test_a_proposal_is_settled_with_memories_asserted_after_it(tmp_path, action, config):
    with open_with(tmp_path, config) as memory:
        given = {"type": "decision", "rationale": "r", "topic": "store", "status": "accepted"}
        late = kept(memory, propose=True, summary="Use Lucene", about=["search"], **given)
        first = kept(memory, summary="Use Oxigraph", about=["server"], **given)
        assert [each.iri for each in refusal(settle, memory, late, "accept").conflicts] == [first]

        made = settle(memory, late, action)

        assert set(values_of(memory, made, "supersedes")) == {
            iri(late),
            *([iri(first)] if action == "supersede" else []),
        }
        assert values_of(memory, made, "coexistsWith") == ([iri(first)] if action == "keep-both" else [])


def test_what_is_no_way_to_settle_or_is_settled_already_is_told_so(memory):
    item = kept(memory, propose=True)
    error = refusal(settle, memory, item, "shrug")
    assert error.detail == "'shrug' settles nothing"
    assert error.hint == "one of: accept, reject, supersede, keep-both"
    settle(memory, item, "reject")
    error = refusal(settle, memory, item, "accept")
    assert (error.detail, error.hint) == (f"{item} is settled already: it was rejected", f"see: jidomem show {item}")


def test_what_is_settled_already_is_refused_with_the_memory_in_its_place(memory):
    item = kept(memory, propose=True)
    accepted = settle(memory, item, "accept")

    error = refusal(settle, memory, item, "accept")

    assert error.detail == f"{item} is settled already: it was accepted as {accepted}"
    assert error.hint == f"see: jidomem show {accepted}"
    later = memory.writer.revise("p", accepted, changes={"summary": "otherwise"}, reason="r").iri
    assert refusal(settle, memory, accepted, "accept").detail.endswith(f": it was replaced by {later}")
    memory.writer.invalidate("p", later, reason="r")
    assert refusal(settle, memory, later, "accept").detail.endswith(": it was withdrawn")


def test_a_proposal_takes_the_place_of_what_replaced_the_memory_that_it_was_to_replace(memory):
    old = kept(memory, summary="the port is 80")
    late = kept(memory, propose=True, summary="the port is 443", supersedes=[old])
    newer = memory.writer.revise("p", old, changes={"summary": "the port is 8080"}, reason="r").iri
    assert refusal(settle, memory, late, "accept").conflicts[0].kind == "stale_supersession"

    made = settle(memory, late, "supersede")

    assert set(values_of(memory, made, "supersedes")) == {iri(late), iri(newer)}


@pytest.mark.parametrize(
    ("holds", "goes", "action"),
    [("new", "old", "accept"), ("old", "new", "reject"), ("old", "new", "keep-both")],
    ids=["a proposal accepted over what is active", "what is active for a proposal", "beside a proposal"],
)
def test_what_is_only_proposed_ends_nothing_by_being_held_up_as_the_one(memory, holds, goes, action):
    old, new = rivals(memory)
    named = {"old": old, "new": new}
    before = files(memory.settings.root)

    error = refusal(settle, memory, named[holds], action, other=named[goes])

    assert error.detail.startswith(f"{new} is only proposed, ")
    assert error.hint.endswith(f"jidomem review supersede {new} --against {old}")
    assert files(memory.settings.root) == before
    settle(memory, new, "supersede", other=old)


@pytest.mark.parametrize("action", ["accept", "reject", "supersede", "keep-both"])
def test_a_memory_is_not_settled_against_itself_or_against_what_has_ended(memory, action):
    old, new = rivals(memory)
    assert refusal(settle, memory, old, action, other=old).detail == f"{old} does not disagree with itself"
    settle(memory, new, "reject")
    assert refusal(settle, memory, old, action, other=new).detail == f"{new} is settled already: it was rejected"
    assert values_of(memory, old, "invalidatedBy") == []


def test_what_would_still_disagree_is_not_settled_where_the_project_lets_both_stand(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "warn"\n') as memory:
        _, new = rivals(memory)
        before = files(memory.settings.root)
        assert refusal(settle, memory, new, "accept").code == "conflict"
        assert files(memory.settings.root) == before


def test_many_are_settled_in_one_commit_each_judged_with_those_before_it_in_view(memory):
    first, second, third = (
        memory.writer.submit_intent("p", intent(summary=text), propose=True).iri for text in ("one", "two", "three")
    )
    before = memory.catch_up("p")

    held, again, none, gone = memory.writer.settle_many(
        "p", [Settlement(first, "accept"), Settlement(first, "reject"), Settlement("urn:x", "accept"),
              Settlement(second, "reject")]
    )  # fmt: skip

    assert (held.status, gone.status) == ("asserted", "asserted")
    assert held.commit == gone.commit
    assert memory.catch_up("p").position == before.position + 1
    assert [type(each) for each in (again, none)] == [InvalidRequest, NotFound]
    assert "settled already" in again.detail
    assert memory.reader.get_memory("p", third)["status"] == "pending"


def test_a_dry_run_of_many_keeps_nothing_and_answers_as_they_would_be(memory):
    item = memory.writer.submit_intent("p", intent(summary="one"), propose=True).iri
    before = memory.catch_up("p")

    held, again = memory.writer.settle_many("p", [Settlement(item, "accept")] * 2, dry_run=True)

    assert (held.status, held.commit, "settled already" in again.detail) == ("asserted", None, True)
    assert memory.catch_up("p") == before


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_an_active_memory_is_not_settled_in_place_of_what_is_pending_on_it(memory, action):
    item, other = kept(memory), kept(memory, summary="two")
    marker = {"type": "deleted_marker", "summary": "wrong", "rationale": "r", "invalidates": [item]}
    withdrawal = kept(memory, propose=True, **marker)
    before = files(memory.settings.root)

    error = refusal(settle, memory, item, action)

    assert error.detail == f"{item} is active; pending on it: {withdrawal} (a withdrawal)"
    assert f"jidomem review accept {withdrawal}" in error.hint
    assert files(memory.settings.root) == before
    settle(memory, withdrawal, "accept")
    assert values_of(memory, item, "invalidatedBy") != []
    change = kept(memory, propose=True, summary="2", supersedes=[other])
    assert refusal(settle, memory, other, action).detail.endswith(f"pending on it: {change} (a change)")


def test_an_active_memory_on_which_nothing_is_pending_is_not_accepted_again(memory):
    item = kept(memory)

    error = refusal(settle, memory, item, "accept")

    assert error.detail == f"{item} is active, and nothing is pending on it"
    assert error.hint.endswith(f"jidomem edit {item} --confirm")


def test_an_expired_memory_is_not_called_active_and_is_renewed_by_the_hint_of_each_interface(memory):
    item = kept(memory, valid_until="2020-11-20")
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
    change = kept(memory, propose=True, summary="2", supersedes=[item])
    assert refusal(settle, memory, item, "accept").detail == (
        f"{item} expired: it was valid until 2020-11-20; pending on it: {change} (a change)"
    )


MARKER = {"type": "deleted_marker", "summary": "wrong", "rationale": "it was never so"}


def test_undoing_an_acceptance_makes_the_proposal_pending_again(memory):
    proposed = kept(memory, propose=True, timestamp="2020-03-04")
    accepted = settle(memory, proposed, "accept")

    again = memory.writer.undo("p", accepted, reason="too early")

    assert again.status == "proposed"
    assert [row["item"] for row in memory.reader.ask("proposals", project="p")] == [again.iri]
    assert values_of(memory, again.iri, "revives") == [iri(proposed)]
    assert values_of(memory, again.iri, "hasTimestamp") == values_of(memory, proposed, "hasTimestamp")
    assert memory.reader.ask("facts", project="p") == []
    settle(memory, again.iri, "accept")
    assert len(memory.reader.ask("facts", project="p")) == 1


def test_undoing_the_acceptance_of_a_change_restores_what_it_replaced(memory):
    old = kept(memory, summary="the port is 80")
    proposed = kept(memory, propose=True, summary="the port is 443", supersedes=[old])
    accepted = settle(memory, proposed, "accept")
    before = files(memory.settings.root)
    assert memory.writer.undo("p", proposed, dry_run=True).status == "proposed"
    assert files(memory.settings.root) == before

    again = memory.writer.undo("p", proposed).iri

    (restored,) = memory.reader.ask("facts", project="p")
    assert values_of(memory, restored["fact"], "revives") == [iri(old)]
    assert values_of(memory, restored["fact"], "supersedes") == [iri(accepted)]
    assert values_of(memory, again, "supersedes") == [iri(restored["fact"])]


def test_undoing_the_acceptance_of_a_withdrawal_restores_the_memory_and_proposes_the_withdrawal_again(memory):
    item = kept(memory)
    accepted = settle(memory, kept(memory, propose=True, **{**MARKER, "invalidates": [item]}), "accept")

    again = memory.writer.undo("p", accepted).iri

    (restored,) = memory.reader.ask("facts", project="p")
    assert values_of(memory, restored["fact"], "revives") == [iri(item)]
    assert values_of(memory, again, "invalidates") == [iri(restored["fact"])]


def test_undoing_a_rejection_makes_the_proposal_pending_again(memory):
    proposed = kept(memory, propose=True)
    settle(memory, proposed, "reject")

    again = memory.writer.undo("p", proposed)

    assert again.status == "proposed"
    assert memory.reader.ask("facts", project="p") == []
    assert memory.writer.undo("p", proposed).iri == again.iri


def test_what_replaced_an_accepted_proposal_is_undone_first(memory):
    proposed = kept(memory, propose=True)
    accepted = settle(memory, proposed, "accept")
    newer = memory.writer.revise("p", accepted, changes={"summary": "two"}, reason="r").iri

    error = refusal(memory.writer.undo, "p", proposed)

    assert error.detail == f"{proposed} was accepted as {accepted}, which {newer} replaced"
    assert f"jidomem edit {newer} --undo" in error.hint


def accepted_over_its_successor(memory, *, marker):
    """A memory that was confirmed, a proposal on its first version, and its acceptance in place of the second."""
    old = kept(memory, summary="the port is 80")
    change = {**MARKER, "invalidates": [old]} if marker else {"summary": "the port is 443", "supersedes": [old]}
    proposed = kept(memory, propose=True, reason="the audit says so", **change)
    newer = memory.writer.confirm("p", old).iri
    return {"old": old, "newer": newer, "proposed": proposed, "accepted": settle(memory, proposed, "supersede")}


@pytest.mark.parametrize("marker", [False, True])
@pytest.mark.parametrize("name", ["old", "newer", "proposed", "accepted"])
def test_an_acceptance_is_undone_by_the_name_of_any_memory_concerned(memory, name, marker):
    named = accepted_over_its_successor(memory, marker=marker)
    before = files(memory.settings.root)
    assert memory.writer.undo("p", named[name], dry_run=True).commit is None
    assert files(memory.settings.root) == before

    receipt = memory.writer.undo("p", named[name], reason="a mistake")

    (restored,) = memory.reader.ask("facts", project="p")
    (pending,) = memory.reader.ask("proposals", project="p")
    assert restored["summary"] == "the port is 80"
    assert values_of(memory, pending["item"], "revives") == [iri(named["proposed"])]
    told = {restored["fact"]: "active again", pending["item"]: "pending again"}
    other = {*told} - {receipt.iri}
    assert [told[item] in receipt.warnings[0] and item in receipt.warnings[0] for item in other] == [True]
    assert receipt.status == ("asserted" if name in ("old", "newer") else "proposed")
    (one,) = with_endings(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))
    assert one.reason == "the audit says so"  # of the proposer, not of the undo
    assert one.other == (None if name == "old" else restored["fact"])  # it named the earlier version
    settle(memory, pending["item"], "supersede" if one.other else "accept")
    assert status(memory, restored["fact"]) == ("invalidated" if marker else "superseded")


def test_an_undone_acceptance_is_redone_by_undoing_what_it_restored(memory):
    old = kept(memory, summary="the port is 80")
    proposed = kept(memory, propose=True, summary="the port is 443", supersedes=[old])
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


def test_undoing_the_acceptance_of_what_replaced_several_restores_each(memory):
    olds = [kept(memory, summary=text) for text in ("the port is 80", "the host is a")]
    proposed = kept(memory, propose=True, summary="a:80", supersedes=olds)
    settle(memory, proposed, "accept")

    receipt = memory.writer.undo("p", proposed)

    restored = {row["summary"]: row["fact"] for row in memory.reader.ask("facts", project="p")}
    assert {*restored} == {"the port is 80", "the host is a"}
    assert {*values_of(memory, receipt.iri, "supersedes")} == {*map(iri, restored.values())}
    assert [*map(len, (receipt.warnings, memory.reader.ask("conflicts", project="p")))] == [2, 0]


def accepted_with_a_withdrawal(memory):
    """The acceptance of a proposal that replaced one memory and withdrew another."""
    old, other = kept(memory, summary="the port is 80"), kept(memory, summary="the host is a")
    proposed = kept(memory, propose=True, summary="b:443", supersedes=[old], invalidates=[other])
    accepted = settle(memory, proposed, "accept", reason="measured")
    return {"old": old, "other": other, "proposed": proposed, "accepted": accepted}


@pytest.mark.parametrize("name", ["old", "proposed", "accepted"])
@pytest.mark.parametrize("by", ["revival", "its successor", "an equal one"])
def test_what_is_active_again_already_is_not_restored_by_undoing_the_acceptance(memory, name, by):
    named = accepted_with_a_withdrawal(memory)
    back = kept(memory, summary="the host is a", **({} if by == "an equal one" else {"revives": [named["other"]]}))
    if by == "its successor":
        back = memory.writer.revise("p", back, changes={"summary": "the host is c"}, reason="moved").iri

    memory.writer.undo("p", named[name], reason="a mistake")

    (pending,) = memory.reader.ask("proposals", project="p")
    facts = {row["fact"]: row["summary"] for row in memory.reader.ask("facts", project="p")}
    assert sorted(facts.values()) == [f"the host is {'c' if by == 'its successor' else 'a'}", "the port is 80"]
    assert values_of(memory, pending["item"], "invalidates") == [iri(back)]
    assert {*values_of(memory, pending["item"], "supersedes")} == {*map(iri, facts)} - {iri(back)}


@pytest.mark.parametrize("name", ["old", "other", "proposed", "accepted"])
def test_an_acceptance_that_also_withdrew_a_memory_is_undone_by_the_name_of_any(memory, name):
    named = accepted_with_a_withdrawal(memory)

    memory.writer.undo("p", named[name], reason="a mistake")

    (pending,) = memory.reader.ask("proposals", project="p")
    facts = {row["summary"]: iri(row["fact"]) for row in memory.reader.ask("facts", project="p")}
    assert {*facts} == {"the port is 80", "the host is a"}
    assert values_of(memory, pending["item"], "supersedes") == [facts["the port is 80"]]
    assert values_of(memory, pending["item"], "invalidates") == [facts["the host is a"]]


@pytest.mark.parametrize("name", ["old", "proposed"])
def test_an_acceptance_that_was_withdrawn_is_undone_by_each_name_alike(memory, name):
    named = {"old": kept(memory, summary="the port is 80")}
    named["proposed"] = kept(memory, propose=True, summary="the port is 443", supersedes=[named["old"]])
    accepted = settle(memory, named["proposed"], "accept")
    memory.writer.invalidate("p", accepted, reason="wrong")
    memory.writer.invalidate("p", memory.writer.undo("p", accepted).iri, reason="wrong")  # its withdrawal was undone

    memory.writer.undo("p", named[name], reason="a mistake")

    (restored,), (pending,) = (memory.reader.ask(query, project="p") for query in ("facts", "proposals"))
    assert (restored["summary"], pending["summary"]) == ("the port is 80", "the port is 443")
    assert values_of(memory, pending["item"], "supersedes") == [iri(restored["fact"])]


def test_what_is_active_again_is_no_name_to_undo_the_acceptance(memory):
    named = accepted_with_a_withdrawal(memory)
    restored = kept(memory, summary="the host is a", revives=[named["other"]])

    error = refusal(memory.writer.undo, "p", named["other"], summary="the host is b")

    assert error.detail == f"{named['other']} is active again, as {restored}"
    assert status(memory, named["accepted"]) == "active"


def test_the_newest_version_is_pending_again_where_several_were_settled(memory):
    first = kept(memory, propose=True, summary="one")
    second = kept(memory, propose=True, summary="two", supersedes=[first])
    accepted = settle(memory, second, "accept")

    again = memory.writer.undo("p", accepted).iri

    assert values_of(memory, again, "revives") == [iri(second)]
    (one,) = queue(memory.reader, "p", memory.sources.now())
    assert (one.item, one.other) == (again, None)


def test_a_rejected_proposal_on_what_was_replaced_since_is_pending_again(memory):
    old = kept(memory, summary="the port is 80")
    proposed = kept(memory, propose=True, summary="the port is 443", supersedes=[old])
    settle(memory, proposed, "reject")
    newer = memory.writer.revise("p", old, changes={"summary": "the port is 8080"}, reason="r").iri

    again = memory.writer.undo("p", proposed).iri

    (one,) = queue(memory.reader, "p", memory.sources.now())
    assert (one.item, one.other) == (again, newer)


def test_a_conflict_of_what_an_undo_restores_is_settled_by_its_own_name(memory):
    given = {"type": "decision", "rationale": "r", "status": "accepted"}
    old = kept(memory, summary="Use Oxigraph", topic="store", **given)
    proposed = kept(memory, propose=True, summary="Use Lucene", topic="search", supersedes=[old], **given)
    accepted = settle(memory, proposed, "accept")
    since = kept(memory, summary="Use QLever", topic="store", **given)

    error = refusal(memory.writer.undo, "p", accepted)
    with pytest.raises(Conflict) as conflict:
        memory.writer.undo("p", old)

    assert (error.code, error.position) == ("conflict", None)
    assert error.detail.startswith(f"{old} would be active again: {since} is active on 'store'")
    assert f"jidomem edit {old} --undo" in error.hint
    assert {*conflict.value.choices[0].fields["supersedes"]} == {accepted, since}
    memory.writer.undo("p", old, supersedes=[since])
    assert [row["summary"] for row in memory.reader.ask("decisions", project="p")] == ["Use Oxigraph"]


def test_the_reason_of_an_undo_is_none_to_end_the_memory_of_another_author(memory):
    old = kept(memory, summary="the port is 80", asserted_by="ben")
    proposed = kept(memory, propose=True, summary="the port is 443", supersedes=[old], asserted_by="cleo")
    settle(memory, proposed, "accept", reason="measured")
    again = memory.writer.undo("p", proposed, reason="too early").iri

    assert refusal(settle, memory, again, "accept").code == "missing_rationale"
    assert refusal(memory.writer.confirm, "p", again).code == "missing_rationale"


def test_a_withdrawal_of_what_was_replaced_meanwhile_withdraws_what_took_its_place(memory):
    item = kept(memory)
    withdrawal = kept(memory, propose=True, **{**MARKER, "invalidates": [item]})
    newer = memory.writer.confirm("p", item).iri
    assert refusal(settle, memory, withdrawal, "accept").code == "conflict"

    marker = settle(memory, withdrawal, "supersede")

    assert values_of(memory, marker, "invalidates") == [iri(newer)]
    assert memory.reader.ask("facts", project="p") == []
    assert memory.reader.ask("proposals", project="p") == []


def test_a_withdrawal_of_what_a_rollback_restated_withdraws_that(memory):
    item = memory.writer.submit_intent("p", intent())
    withdrawal = kept(memory, propose=True, **{**MARKER, "invalidates": [item.iri]})
    memory.writer.revise("p", item.iri, changes={"summary": "two"}, reason="r")
    (_, restated) = memory.roll_back(item.version.recorded_at, reason="too soon", project="p").corrections

    marker = settle(memory, withdrawal, "supersede")

    assert values_of(memory, marker, "invalidates") == [iri(restated.by)]
    assert memory.reader.ask("facts", project="p") == []


def test_a_withdrawal_of_what_has_ended_is_settled_by_accepting_it(memory):
    item = kept(memory)
    withdrawal = kept(memory, propose=True, **{**MARKER, "invalidates": [item]})
    memory.writer.invalidate("p", item, reason="wrong")

    made = settle(memory, withdrawal, "accept")

    assert values_of(memory, made, "rationale") == ['"what it withdraws has ended already"']
    assert memory.reader.ask("proposals", project="p") == []


def test_one_withdrawal_is_proposed_once(memory):
    item = kept(memory)

    first, second = (kept(memory, propose=True, **{**MARKER, "invalidates": [item]}) for _ in range(2))
    other = kept(memory, propose=True, **{**MARKER, "rationale": "another reason", "invalidates": [item]})

    assert first == second != other


def test_who_may_not_accept_a_proposal_neither_rejects_it_nor_withdraws_what_was_accepted(memory):
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    first, second = (kept(memory, summary=text, source_type="ExternalDocumentSource") for text in ("one", "two"))
    memory.writer.agent = "rita"
    accepted = settle(memory, first, "accept")
    memory.writer.agent = "bob"

    assert refusal(settle, memory, second, "reject").code == "policy_denied"
    assert refusal(settle, memory, accepted, "reject").code == "policy_denied"
    assert refusal(memory.writer.undo, "p", accepted).code == "policy_denied"
    withdrawal = memory.writer.invalidate("p", accepted, reason="I do not like it")
    assert (withdrawal.status, values_of(memory, accepted, "invalidatedBy")) == ("proposed", [])
    own = memory.writer.remember("p", "three", source_type="ExternalDocumentSource").iri
    settle(memory, own, "reject")
    memory.writer.agent = "rita"
    settle(memory, withdrawal.iri, "accept")
    assert values_of(memory, accepted, "invalidatedBy") != []


def of_ana(memory):
    """Two facts of another agent than the curator."""
    fields = {"asserted_by": "ana", "asserted_in": "monday"}
    return tuple(kept(memory, summary=text, **fields) for text in ("the port is 80", "the port is the 80"))


@pytest.mark.parametrize("action", ["accept", "reject", "supersede", "keep-both"])
def test_a_settlement_that_ends_or_changes_a_memory_of_another_agent_needs_a_reason(memory, action):
    item, other = of_ana(memory)
    memory.writer.agent = "rita"
    before = files(memory.settings.root)

    error = refusal(settle, memory, item, action, other=other)

    assert (error.code, error.violations[0].field) == ("missing_rationale", "reason")
    assert error.violations[0].message.endswith(" was asserted by ana: say in reason why it ends or changes")
    assert files(memory.settings.root) == before
    assert reason(memory, settle(memory, item, action, other=other, reason="measured")) == ['"measured"']


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
def test_a_memory_that_a_settlement_restates_keeps_its_author_and_names_the_curator(memory, action):
    item, other = of_ana(memory)
    memory.writer.agent = "rita"

    made = settle(memory, item, action, other=other, reason="measured")

    assert values_of(memory, made, "assertedBy") == ["<https://jido.ai/agents/ana>"]
    assert values_of(memory, made, "assertedIn") == ["<https://jido.ai/sessions/monday>"]
    assert values_of(memory, made, "settledBy") == ["<https://jido.ai/agents/rita>"]
    versions = memory.reader.history("p", made)
    assert [row["agent"] for row in versions if row["entry"] == made] == ["https://jido.ai/agents/rita"]
    assert memory.check(project="p").exit_code == 0


def test_a_memory_that_a_settlement_changes_is_of_the_curator(memory):
    item, other = of_ana(memory)
    memory.writer.agent = "rita"

    made = settle(memory, item, "supersede", other=other, changes={"summary": "the port is 8080"}, reason="measured")

    assert values_of(memory, made, "assertedBy") == ["<https://jido.ai/agents/rita>"]
    assert values_of(memory, made, "settledBy") == []


def test_ones_own_memories_and_proposals_are_settled_without_a_reason(memory):
    item, other = of_ana(memory)
    memory.writer.agent = "ana"
    assert reason(memory, settle(memory, item, "keep-both", other=other)) == [
        '"accepted in review, beside what it disagrees with"'
    ]
    proposal = kept(memory, propose=True, summary="two", asserted_by="ben")
    assert settle(memory, proposal, "reject")


@pytest.mark.parametrize("action", ["keep-both", "supersede"])
def test_a_pair_is_settled_beside_a_third_memory_whose_conflicts_stay(tmp_path, action):
    with open_with(tmp_path, '[conflicts]\nconvention = "warn"\n') as memory:
        given = {"type": "convention", "convention_name": "indent"}
        places = {"tabs": ["src"], "two spaces": ["src", "lib"], "four spaces": ["src", "docs"]}
        first, second, third = (kept(memory, summary=text, about=about, **given) for text, about in places.items())

        made = settle(memory, first, action, other=second, reason="measured")

        pairs = {frozenset((row["a"], row["b"])) for row in memory.reader.ask("conflicts", project="p")}
        assert pairs == {frozenset((made, third)), *([frozenset((second, third))] if action == "keep-both" else [])}


@pytest.mark.parametrize("meanwhile", ["edit", "confirm", "accept", "keep-both", "keep-both of the other"])
def test_a_stale_settlement_ends_no_version_that_its_curator_did_not_see(memory, meanwhile):
    item, other = of_ana(memory)
    memory.writer.agent = "ana"
    changes = {"detailed_explanation": "on the staging host", "about": ["staging"]}
    if meanwhile == "edit":
        stale, newer = item, memory.writer.correct("p", item, changes=changes, reason="narrowed").iri
    elif meanwhile == "confirm":
        stale, newer = item, memory.writer.confirm("p", item).iri
    elif meanwhile == "accept":
        third, item = kept(memory, summary="port 80 there"), kept(memory, propose=True, summary="port 80 here")
        stale, newer = item, settle(memory, item, "keep-both", other=third, changes=changes)
    else:
        stale, rival = (item, other) if meanwhile == "keep-both" else (other, item)
        newer = settle(memory, stale, "keep-both", other=rival)
    memory.writer.agent = "sam"

    with pytest.raises(InvalidRequest, match=f"{stale} is settled already: it was .* {newer}") as error:
        settle(memory, item, "reject", other=other, reason="stale")

    present = {stale: newer}
    named = [present.get(each, each) for each in (item, other)]
    assert f"jidomem review reject {named[0]} --against {named[1]}" in error.value.hint
    assert values_of(memory, settle(memory, named[0], "reject", other=named[1], reason="seen"), "invalidates") == [
        iri(named[0])
    ]


@pytest.mark.parametrize("rationale", ["measured", " measured ", " "])
def test_a_rationale_that_is_blank_or_the_old_one_is_no_reason_to_settle(memory, rationale):
    fields = {"asserted_by": "ana", "asserted_in": "monday", "rationale": "measured"}
    item, other = (kept(memory, summary=text, **fields) for text in ("the port is 80", "the port is the 80"))
    memory.writer.agent = "rita"

    error = refusal(settle, memory, item, "supersede", other=other, changes={"rationale": rationale})

    assert error.code == "missing_rationale"
    assert settle(memory, item, "supersede", other=other, changes={"rationale": "seen in the log"})


def test_a_settlement_takes_no_author(memory):
    item, other = of_ana(memory)

    with pytest.raises(InvalidRequest, match="takes no asserted_by in `changes`"):
        settle(memory, item, "supersede", other=other, changes={"asserted_by": "ben"}, reason="measured")


@pytest.mark.parametrize("action", ["supersede", "keep-both"])
@pytest.mark.parametrize("name", ["supersedes", "invalidates", "coexists_with", "revives", "iri", "reason"])
def test_a_settlement_takes_no_relations(memory, action, name):
    old, new = rivals(memory)
    third = kept(memory, summary="cats are nice")

    error = refusal(settle, memory, new, action, changes={name: "urn:x" if name in ("iri", "reason") else [third]})

    assert error.detail.startswith(f"a settlement takes no {name} in `changes`")
    assert [status(memory, item) for item in (old, new, third)] == ["active", "pending", "active"]


@pytest.mark.parametrize(("is_active", "action"), [(False, "supersede"), (True, "supersede"), (True, "accept")])
def test_a_proposal_that_does_not_disagree_is_not_rejected_for_another_memory(memory, is_active, action):
    item = kept(memory, propose=not is_active, summary="the port is 80", topic="port")
    other = kept(memory, propose=True, summary="cats are nice", topic="cats")
    rival = kept(memory, propose=True, summary="the port is 90", topic="port")

    error = refusal(settle, memory, item, action, other=other)

    assert error.detail == f"{other} is a proposal that does not disagree with {item}"
    assert f"jidomem review reject {other}" in error.hint
    assert status(memory, other) == "pending"
    settle(memory, item, action, other=rival, reason="measured")
    assert status(memory, rival) == "rejected"


ON_PURPOSE = {
    "accept": "jidomem edit {other} --invalidate --reason", "reject": "jidomem edit {item} --invalidate --reason",
    "supersede": "jidomem edit {item} --set supersedes={item} --set supersedes={other} --reason", "keep-both": "",
}  # fmt: skip


@pytest.mark.parametrize("action", ON_PURPOSE)
@pytest.mark.parametrize("is_proposal", [False, True])
def test_a_memory_that_is_in_no_pair_with_the_item_is_not_ended_by_a_mistyped_id(memory, action, is_proposal):
    old, new = rivals(memory)
    item = kept(memory, summary="Ship weekly") if not is_proposal else new
    other = kept(memory, summary="the lunch is at noon")
    before = files(memory.settings.root)

    error = refusal(settle, memory, item, action, other=other, reason="typed")

    assert files(memory.settings.root) == before
    if not (is_proposal and action == "accept"):  # a proposal is not asserted by that action, whatever the pair
        assert error.detail.startswith(f"{item} and {other} are no pair of the review")
        assert ON_PURPOSE[action].format(item=item, other=other) in error.hint
        assert (f"jidomem review {action} {item} --against {old}" in error.hint) == is_proposal


def test_the_command_that_replaces_any_two_memories_on_purpose_does_so(memory):
    item, other = kept(memory, summary="Ship weekly"), kept(memory, summary="the lunch is at noon")

    made = memory.writer.correct("p", item, changes={"supersedes": [item, other]}, reason="merged").iri

    assert [status(memory, each) for each in (item, other, made)] == ["superseded", "superseded", "active"]


def test_a_pair_that_another_curator_kept_is_told_to_be_settled_and_is_settled_again_by_its_new_name(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "warn"\n') as memory:
        given = {"type": "decision", "rationale": "r", "topic": "store"}
        item, other = (kept(memory, summary=text, **given) for text in ("Use Oxigraph", "Keep files"))
        new = settle(memory, item, "keep-both", other=other, reason="both", changes={"about": ["search"]})

        error = refusal(settle, memory, item, "accept", other=other, reason="late")
        settle(memory, new, "accept", other=other, reason="after all")

        assert error.detail == f"{item} is settled already: it was replaced by {new}"
        assert f"jidomem review accept {new} --against {other}" in error.hint
        assert [status(memory, each) for each in (new, other)] == ["active", "invalidated"]


def test_decisions_about_one_file_of_which_the_receipt_warned_are_a_pair(memory):
    given = {"type": "decision", "rationale": "r", "about": ["src/a.py"]}
    old = kept(memory, summary="Cache it", topic="cache", **given)
    receipt = memory.writer.submit_intent("p", intent(summary="Never cache it", topic="waits", **given))
    assert f"jidomem review supersede {receipt.iri} --against {old}" in receipt.warnings[0]

    settle(memory, receipt.iri, "supersede", other=old, reason="it takes its place")

    assert status(memory, old) == "superseded"


@pytest.mark.parametrize("count", [2, 3])
def test_of_rival_proposals_accepted_in_one_call_none_is_and_the_commands_for_each_are_named(memory, count):
    given = {"type": "decision", "rationale": "r", "topic": "store"}
    items = [kept(memory, propose=True, summary=f"Use {n}", **given) for n in range(count)]
    apart = kept(memory, propose=True, summary="Ship weekly")

    outcomes = memory.writer.settle_many("p", [Settlement(item, "accept") for item in (*items, apart)])

    assert [status(memory, item) for item in (*items, apart)] == ["pending"] * count + ["superseded"]
    for item, outcome in zip(items, outcomes, strict=False):
        assert outcome.code == "conflict"
        others = [each for each in items if each != item]
        assert all(each in outcome.detail for each in items)
        assert all(each in outcome.hint for each in (item, *others))
    assert outcomes[-1].status == "asserted"


def test_a_name_that_is_no_iri_is_refused_alone(memory):
    first, second = (
        memory.writer.submit_intent("p", intent(summary=text), propose=True).iri
        for text in ("the logo is blue", "tea is served at four")
    )

    wrong, right = memory.writer.settle_many(
        "p", [Settlement(first, "keep-both", other="abc"), Settlement(second, "accept")]
    )

    assert isinstance(wrong, NotFound | InvalidRequest)
    assert "abc" in str(wrong)
    assert right.status == "asserted"
