"""Ending a memory of another agent takes a reason, through every verb of the writer."""

import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.errors import IntentRefused
from jidomem.exchange import documents
from jidomem.exchange.importer import import_document
from jidomem.journal.journal import Stream

DAY = "2026-12-01T00:00:00.000000Z"


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", agent="ben", sources=fixed_sources()) as memory:
        yield memory


def kept(memory, **fields):
    return memory.writer.submit_intent("p", intent(**{"asserted_by": "ana", **fields})).iri


def state(memory, item):
    return memory.reader.get_memory("p", item)["status"]


def superseding(memory, item, **why):
    return memory.writer.remember("p", "another", supersedes=[item], **why)


def invalidating(memory, item, **why):
    return memory.writer.remember("p", "another", invalidates=[item], **why)


def revising(memory, item, **why):
    return memory.writer.correct("p", item, supersede="another", reason=why.get("reason", why.get("rationale")))


def setting(memory, item, **why):
    changes = {"topic": "ports", **({"rationale": why["rationale"]} if "rationale" in why else {})}
    return memory.writer.correct("p", item, changes=changes, reason=why.get("reason"))


def expiring(memory, item, **why):
    changes = {"expires_on": "2020-01-01", **({"rationale": why["rationale"]} if "rationale" in why else {})}
    return memory.writer.correct("p", item, changes=changes, reason=why.get("reason"))


WAYS = [superseding, invalidating, revising, setting, expiring]


@pytest.mark.parametrize("why", [{"reason": "measured"}, {"rationale": "measured"}], ids=str)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_another_agent_asserted_ends_for_a_reason_only(memory, way, why):
    old = kept(memory, summary="The port is 80", rationale="it always was", valid_from="2026-01-01")

    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason") as refusal:
        way(memory, old)
    before = state(memory, old)
    way(memory, old, **why)

    assert (refusal.value.code, before) == ("missing_rationale", "active")
    assert refusal.value.violations[0].field == "reason"
    assert state(memory, old) != "active"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ones_own_memory_ends_without_a_reason(memory, way):
    old = kept(memory, summary="The port is 80", asserted_by="ben")

    way(memory, old)

    assert state(memory, old) != "active"


def test_the_rationale_of_the_old_memory_is_no_reason_to_end_it(memory):
    old = kept(memory, summary="Use a file", type="decision", rationale="it is there", topic="store")

    with pytest.raises(IntentRefused, match="was asserted by ana"):
        memory.writer.correct("p", old, supersede="Use a table")


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"type": "task"}, {"status": "Completed", "assigned_to": "ben"}),
        ({"type": "error", "severity": "high"}, {"status": "Resolved", "severity": "low"}),
        ({"type": "decision", "rationale": "r", "valid_from": "2026-01-01"}, {"evidence": ["seen"]}),
        ({"type": "fact"}, {"expires_on": "2030-01-01"}),
    ],
    ids=lambda each: each.get("type", "change"),
)
def test_work_that_goes_on_and_a_memory_that_is_confirmed_need_no_reason(memory, fields, changes):
    old = kept(memory, summary="x", **fields)

    new = memory.writer.correct("p", old, changes=changes).iri
    again = memory.writer.confirm("p", new, asserted_by="cleo").iri

    assert [state(memory, each) for each in (old, new, again)] == ["superseded", "superseded", "active"]
    assert [agents(memory, each) for each in (old, new, again)] == [("ana", None), ("ana", "ben"), ("ana", "cleo")]
    with pytest.raises(IntentRefused, match="was asserted or confirmed by ana and ben: say in reason"):
        memory.writer.remember("p", "another", supersedes=[again], asserted_by="cleo")
    with pytest.raises(IntentRefused, match="was asserted or confirmed by ben and cleo: say in reason"):
        memory.writer.remember("p", "another", supersedes=[again], asserted_by="ana")


def test_another_confidence_needs_a_reason_and_has_the_agent_as_its_author(memory):
    old = kept(memory, summary="The port is 80", confidence="medium")

    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
        memory.writer.correct("p", old, changes={"confidence": "high"})
    new = memory.writer.correct("p", old, changes={"confidence": "high"}, reason="seen in the config").iri

    assert agents(memory, new) == ("ben", None)


def test_the_confirmation_of_another_agent_counts_after_the_author_confirms_again(memory):
    old = kept(memory, summary="The port is 80")
    confirmed = memory.writer.confirm("p", old).iri
    again = memory.writer.confirm("p", confirmed, asserted_by="ana").iri

    with pytest.raises(IntentRefused, match="was asserted or confirmed by ben: say in reason"):
        memory.writer.remember("p", "another", supersedes=[again], asserted_by="ana")


def test_a_proposal_that_ends_more_is_of_its_own_agent_and_is_accepted_with_a_reason(memory):
    active, logs = kept(memory, summary="Production uses TLS"), {"summary": "Logs are kept 30 days"}
    proposed = memory.writer.submit_intent("p", intent(asserted_by="ana", **logs), propose=True).iri
    ending = intent(asserted_by="ben", supersedes=[proposed, active], **logs)
    copied = memory.writer.submit_intent("p", ending, propose=True).iri

    assert agents(memory, copied) == ("ben", None)
    for accept in (memory.writer.confirm, lambda project, item: memory.writer.settle(project, item, "accept")):
        with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
            accept("p", copied)
    assert state(memory, active) == "active"


def agents(memory, item):
    properties = memory.reader.get_memory("p", item)["properties"]
    names = [properties.get(name, [None])[0] for name in ("assertedBy", "settledBy")]
    return tuple(name and name.rpartition("/")[2] for name in names)


def test_the_receipt_of_a_repeated_text_names_the_author_that_stays(memory):
    old = kept(memory, summary="one")
    receipts = [memory.writer.remember("p", "one", type="fact", supersedes=[old], asserted_by="ben", confidence="high")]
    receipts.append(memory.writer.remember("p", "two", supersedes=[receipts[0].iri], asserted_by="ben", reason="new"))
    task = kept(memory, summary="do it", type="task", assigned_to="ana")
    receipts.append(memory.writer.correct("p", task, changes={"status": "Completed"}, who={"asserted_by": "ben"}))

    assert [receipt.warnings for receipt in receipts] == [
        (f"it repeats and so confirms {old}: the author stays ana",), (), (),
    ]  # fmt: skip


def test_the_activity_of_agents_counts_by_the_agent_that_recorded(memory):
    kept(memory, summary="one")
    proposal = memory.writer.submit_intent("p", intent(summary="two", asserted_by="cleo"), propose=True).iri
    memory.writer.settle("p", proposal, "accept", reason="seen")

    rows = memory.reader.ask("agent-activity", project="p")

    assert {row["agent"].rpartition("/")[2]: row["items"] for row in rows} == {"ana": 1, "ben": 1, "cleo": 1}


def test_an_agent_that_revives_a_memory_of_another_does_not_become_its_author(memory):
    old = kept(memory, summary="one")
    memory.writer.invalidate("p", old, reason="looked wrong")
    back = memory.writer.undo("p", old).iri

    assert agents(memory, back) == ("ana", "ben")
    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
        memory.writer.remember("p", "another", supersedes=[back])
    memory.writer.invalidate("p", back, reason="still wrong")
    changed = memory.writer.undo("p", back, topic="ports").iri
    assert agents(memory, changed) == ("ben", None)


def test_the_alternatives_of_another_agent_are_no_restatement(memory):
    fields = {"summary": "x", "type": "decision", "rationale": "r", "alternatives": ["a", "b"]}
    old = kept(memory, **fields)

    same = kept(memory, **fields, supersedes=[old], asserted_by="ben")
    other = kept(memory, **{**fields, "alternatives": ["a"]}, supersedes=[same], asserted_by="ben", reason="b is gone")

    alternatives = memory.reader.get_memory("p", same)["properties"]["hasAlternative"]
    assert {agents(memory, each) for each in (same, other)} == {("ana", "ben"), ("ben", None)}
    assert {agents(memory, each)[0] for each in alternatives} == {"ana"}


def test_an_accepted_proposal_is_of_its_proposer_unless_it_repeats_an_active_memory(memory):
    old = kept(memory, summary="one")
    other = memory.writer.submit_intent("p", intent(summary="two", asserted_by="cleo"), propose=True).iri
    same = memory.writer.submit_intent("p", intent(summary="one", supersedes=[old], asserted_by="cleo"), propose=True)

    accepted = [memory.writer.settle("p", each, "accept", reason="seen").iri for each in (other, same.iri)]

    assert [agents(memory, each) for each in accepted] == [("cleo", "ben"), ("ana", "ben")]
    why = memory.reader.why("p", accepted[0])
    assert [why[name][0].rpartition("/")[2] for name in ("asserted_by", "settled_by")] == ["cleo", "ben"]
    assert memory.reader.history("p", accepted[0])[-1]["agent"].endswith("/ben")


def test_the_acceptance_of_another_agent_is_undone_for_a_reason_only_and_the_proposer_stays_the_author(memory):
    proposal = memory.writer.submit_intent("p", intent(summary="two", asserted_by="cleo"), propose=True).iri
    memory.writer.settle("p", proposal, "accept")

    memory.writer.agent = "dan"
    with pytest.raises(IntentRefused, match="was asserted or confirmed by ben and cleo: say in reason"):
        memory.writer.undo("p", proposal)
    memory.writer.agent = "ben"
    again = memory.writer.undo("p", proposal).iri

    assert (agents(memory, again), state(memory, again)) == (("cleo", "ben"), "pending")


def test_a_retry_of_a_confirmation_gets_the_first_receipt(memory):
    old = kept(memory, summary="one")
    given = intent(summary="one", supersedes=[old], asserted_by="ben", idempotency_key="k")
    first = memory.writer.submit_intent("p", given)

    assert memory.writer.submit_intent("p", given).iri == first.iri
    assert kept(memory, summary="of ana", idempotency_key="k") != first.iri


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"type": "decision", "rationale": "r"}, {"status": "deprecated"}),
        ({"type": "convention", "enforcement_level": "Strict"}, {"enforcement_level": "Advisory"}),
        ({"type": "task"}, {"summary": "y"}),
        ({"type": "fact"}, {"valid_until": DAY}),
        ({"type": "fact"}, {"extra_triples": [["jido:key", {"@value": "port"}]]}),
    ],
    ids=lambda each: each.get("type", "change"),
)
def test_a_change_of_what_another_agents_memory_says_or_counts_for_needs_a_reason(memory, fields, changes):
    old = kept(memory, summary="x", **fields)

    with pytest.raises(IntentRefused, match="was asserted by ana"):
        memory.writer.correct("p", old, changes=changes)

    assert memory.writer.correct("p", old, changes=changes, reason="agreed").status == "asserted"


def test_undoing_what_another_agent_did_needs_a_reason(memory):
    old = kept(memory, summary="one")
    kept(memory, summary="two", supersedes=[old])

    with pytest.raises(IntentRefused, match="was asserted by ana"):
        memory.writer.undo("p", old)

    assert state(memory, memory.writer.undo("p", old, reason="it was right").iri) == "active"


def test_a_proposal_ends_nothing_and_needs_no_reason_unless_its_acceptance_ends_what_another_asserted(memory):
    old = kept(memory, summary="one")
    waits = memory.writer.submit_intent(
        "p", intent(summary="two", supersedes=[old], asserted_by="ben"), propose=True
    ).iri

    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
        memory.writer.settle("p", waits, "accept")
    new = memory.writer.settle("p", waits, "accept", reason="measured").iri

    assert state(memory, old) == "superseded"
    assert memory.writer.restated("p", new)["reason"] == "measured"


def test_a_batch_is_refused_where_one_of_it_has_no_reason_and_the_others_are_kept(memory):
    old = kept(memory, summary="one")

    refused, good = memory.writer.submit_many("p", [
        intent(summary="two", supersedes=[old], asserted_by="ben"), intent(summary="three", asserted_by="ben"),
    ])  # fmt: skip

    assert (refused.code, good.status) == ("missing_rationale", "asserted")


def test_history_that_gives_no_reason_is_imported_and_once(memory, tmp_path):
    with jidomem.open(tmp_path / "old", sources=fixed_sources()) as other:
        first = other.writer.submit_intent("p", intent(summary="one", asserted_by="ana")).iri
        other.writer.submit_intent("p", decision(summary="two", asserted_by="ben", supersedes=[first], topic="t"))
        other.writer.submit_intent("p", intent(summary="three", asserted_by="ana"))
        text = documents.turtle("p", other.journal.read(Stream("p")), other.schema.version)
    data = (text if isinstance(text, bytes) else text.encode()).replace(b"jido:rationale", b"jido:detailedExplanation")
    data = data.replace(b"jido:ArchitecturalDecision", b"jido:Fact")

    report = import_document(memory.writer, memory.schema, "p", "old.ttl", data)
    again = import_document(memory.writer, memory.schema, "p", "old.ttl", data)

    assert (report.refusals, len(report.accepted)) == ([], 3)
    assert (again.refusals, again.accepted) == ([], [])
    assert state(memory, first) == "superseded"
