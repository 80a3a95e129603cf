"""Ending a memory of another agent needs a reason in every command of the writer."""

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


def record(memory, **fields):
    return memory.writer.submit_intent("p", intent(**{"asserted_by": "ana", **fields})).iri


def status_of(memory, item):
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


CORRECTIONS = [superseding, invalidating, revising, setting, expiring]


@pytest.mark.parametrize("why", [{"reason": "measured"}, {"rationale": "measured"}], ids=str)
@pytest.mark.parametrize("end", CORRECTIONS, ids=lambda end: end.__name__)
def test_a_memory_of_another_agent_is_ended_only_with_a_reason(memory, end, why):
    old = record(memory, summary="The port is 80", rationale="it always was", valid_from="2026-01-01")

    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason") as refusal:
        end(memory, old)
    before = status_of(memory, old)
    end(memory, old, **why)

    assert (refusal.value.code, before) == ("missing_rationale", "active")
    assert refusal.value.violations[0].field == "reason"
    assert status_of(memory, old) != "active"


@pytest.mark.parametrize("end", CORRECTIONS, ids=lambda end: end.__name__)
def test_an_own_memory_is_ended_without_a_reason(memory, end):
    old = record(memory, summary="The port is 80", asserted_by="ben")

    end(memory, old)

    assert status_of(memory, old) != "active"


def test_the_copied_rationale_is_no_reason_to_end_a_memory(memory):
    old = record(memory, summary="Use a file", type="decision", rationale="it is there", topic="store")

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
    ids=lambda item: item.get("type", "change"),
)
def test_progress_and_confirmation_need_no_reason_and_record_every_agent(memory, fields, changes):
    old = record(memory, summary="x", **fields)

    new = memory.writer.correct("p", old, changes=changes).iri
    confirmed = memory.writer.confirm("p", new, asserted_by="cleo").iri

    assert [status_of(memory, item) for item in (old, new, confirmed)] == ["superseded", "superseded", "active"]
    assert [agents_of(memory, item) for item in (old, new, confirmed)] == [
        ("ana", None),
        ("ana", "ben"),
        ("ana", "cleo"),
    ]
    with pytest.raises(IntentRefused, match="was asserted or confirmed by ana and ben: say in reason"):
        memory.writer.remember("p", "another", supersedes=[confirmed], asserted_by="cleo")
    with pytest.raises(IntentRefused, match="was asserted or confirmed by ben and cleo: say in reason"):
        memory.writer.remember("p", "another", supersedes=[confirmed], asserted_by="ana")


def test_a_changed_confidence_needs_a_reason_and_changes_the_author(memory):
    old = record(memory, summary="The port is 80", confidence="medium")

    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
        memory.writer.correct("p", old, changes={"confidence": "high"})
    new = memory.writer.correct("p", old, changes={"confidence": "high"}, reason="seen in the config").iri

    assert agents_of(memory, new) == ("ben", None)


def test_a_confirmation_by_another_agent_counts_after_a_confirmation_by_the_author(memory):
    old = record(memory, summary="The port is 80")
    confirmed = memory.writer.confirm("p", old).iri
    reconfirmed = memory.writer.confirm("p", confirmed, asserted_by="ana").iri

    with pytest.raises(IntentRefused, match="was asserted or confirmed by ben: say in reason"):
        memory.writer.remember("p", "another", supersedes=[reconfirmed], asserted_by="ana")


def test_a_proposal_that_ends_further_memories_is_accepted_only_with_a_reason(memory):
    active, content = record(memory, summary="Production uses TLS"), {"summary": "Logs are kept 30 days"}
    proposed = memory.writer.submit_intent("p", intent(asserted_by="ana", **content), propose=True).iri
    fields = intent(asserted_by="ben", supersedes=[proposed, active], **content)
    extended = memory.writer.submit_intent("p", fields, propose=True).iri

    assert agents_of(memory, extended) == ("ben", None)
    for accept in (memory.writer.confirm, lambda project, item: memory.writer.settle(project, item, "accept")):
        with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
            accept("p", extended)
    assert status_of(memory, active) == "active"


def agents_of(memory, item):
    properties = memory.reader.get_memory("p", item)["properties"]
    names = [properties.get(role, [None])[0] for role in ("assertedBy", "settledBy")]
    return tuple(role and role.rpartition("/")[2] for role in names)


def test_the_receipt_of_a_repeated_text_names_the_retained_author(memory):
    old = record(memory, summary="one")
    receipts = [memory.writer.remember("p", "one", type="fact", supersedes=[old], asserted_by="ben", confidence="high")]
    receipts.append(memory.writer.remember("p", "two", supersedes=[receipts[0].iri], asserted_by="ben", reason="new"))
    task = record(memory, summary="do it", type="task", assigned_to="ana")
    receipts.append(memory.writer.correct("p", task, changes={"status": "Completed"}, who={"asserted_by": "ben"}))

    assert [receipt.warnings for receipt in receipts] == [
        (f"it repeats and so confirms {old}: the author stays ana",), (), (),
    ]  # fmt: skip


def test_the_activity_query_counts_by_recording_agent(memory):
    record(memory, summary="one")
    proposal = memory.writer.submit_intent("p", intent(summary="two", asserted_by="cleo"), propose=True).iri
    memory.writer.settle("p", proposal, "accept", reason="seen")

    rows = memory.reader.ask("agent-activity", project="p")

    assert {row["agent"].rpartition("/")[2]: row["items"] for row in rows} == {"ana": 1, "ben": 1, "cleo": 1}


def test_the_memories_of_an_agent_include_the_work_and_the_facts_of_others_that_it_settled(memory):
    task, known = record(memory, summary="move the bills", type="task"), record(memory, summary="the cap is 100")
    done = memory.writer.correct("p", task, changes={"status": "Completed"}).iri
    confirmed = memory.writer.confirm("p", known).iri

    def items_of(agent):
        return {row["item"] for row in memory.reader.ask("memories-of-agent", project="p", agent=agent)}

    assert items_of("ben") == items_of("ana") == {done, confirmed}
    assert {row["agent"].rpartition("/")[2] for row in memory.reader.ask("timeline", project="p")} == {"ben"}


def test_an_agent_that_revives_a_memory_does_not_become_its_author(memory):
    old = record(memory, summary="one")
    memory.writer.invalidate("p", old, reason="looked wrong")
    restored = memory.writer.undo("p", old).iri

    assert agents_of(memory, restored) == ("ana", "ben")
    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
        memory.writer.remember("p", "another", supersedes=[restored])
    memory.writer.invalidate("p", restored, reason="still wrong")
    modified = memory.writer.undo("p", restored, topic="ports").iri
    assert agents_of(memory, modified) == ("ben", None)


def test_different_alternatives_are_no_restatement(memory):
    fields = {"summary": "x", "type": "decision", "rationale": "r", "alternatives": ["a", "b"]}
    old = record(memory, **fields)

    repeated = record(memory, **fields, supersedes=[old], asserted_by="ben")
    changed = record(
        memory, **{**fields, "alternatives": ["a"]}, supersedes=[repeated], asserted_by="ben", reason="b is gone"
    )

    alternatives = memory.reader.get_memory("p", repeated)["properties"]["hasAlternative"]
    assert {agents_of(memory, item) for item in (repeated, changed)} == {("ana", "ben"), ("ben", None)}
    assert {agents_of(memory, item)[0] for item in alternatives} == {"ana"}


def test_an_accepted_proposal_keeps_its_proposer_unless_it_repeats_an_active_memory(memory):
    old = record(memory, summary="one")
    new_proposal = memory.writer.submit_intent("p", intent(summary="two", asserted_by="cleo"), propose=True).iri
    repeated = memory.writer.submit_intent(
        "p", intent(summary="one", supersedes=[old], asserted_by="cleo"), propose=True
    )

    accepted = [memory.writer.settle("p", item, "accept", reason="seen").iri for item in (new_proposal, repeated.iri)]

    assert [agents_of(memory, item) for item in accepted] == [("cleo", "ben"), ("ana", "ben")]
    why = memory.reader.why("p", accepted[0])
    assert [why[name][0].rpartition("/")[2] for name in ("asserted_by", "settled_by")] == ["cleo", "ben"]
    assert memory.reader.history("p", accepted[0])[-1]["agent"].endswith("/ben")


def test_the_acceptance_of_another_agent_is_undone_only_with_a_reason_and_keeps_the_author(memory):
    proposal = memory.writer.submit_intent("p", intent(summary="two", asserted_by="cleo"), propose=True).iri
    memory.writer.settle("p", proposal, "accept")

    memory.writer.agent = "dan"
    with pytest.raises(IntentRefused, match="was asserted or confirmed by ben and cleo: say in reason"):
        memory.writer.undo("p", proposal)
    memory.writer.agent = "ben"
    restored = memory.writer.undo("p", proposal).iri

    assert (agents_of(memory, restored), status_of(memory, restored)) == (("cleo", "ben"), "pending")


def test_a_retried_confirmation_returns_the_first_receipt(memory):
    old = record(memory, summary="one")
    confirmation = intent(summary="one", supersedes=[old], asserted_by="ben", idempotency_key="k")
    first = memory.writer.submit_intent("p", confirmation)

    assert memory.writer.submit_intent("p", confirmation).iri == first.iri
    assert record(memory, summary="of ana", idempotency_key="k") != first.iri


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
def test_a_change_of_content_or_effect_of_another_agents_memory_needs_a_reason(memory, fields, changes):
    old = record(memory, summary="x", **fields)

    with pytest.raises(IntentRefused, match="was asserted by ana"):
        memory.writer.correct("p", old, changes=changes)

    assert memory.writer.correct("p", old, changes=changes, reason="agreed").status == "asserted"


def test_undo_of_another_agents_change_needs_a_reason(memory):
    old = record(memory, summary="one")
    record(memory, summary="two", supersedes=[old])

    with pytest.raises(IntentRefused, match="was asserted by ana"):
        memory.writer.undo("p", old)

    assert status_of(memory, memory.writer.undo("p", old, reason="it was right").iri) == "active"


def test_a_proposal_needs_no_reason_but_its_acceptance_does(memory):
    old = record(memory, summary="one")
    proposal = memory.writer.submit_intent(
        "p", intent(summary="two", supersedes=[old], asserted_by="ben"), propose=True
    ).iri

    with pytest.raises(IntentRefused, match="was asserted by ana: say in reason"):
        memory.writer.settle("p", proposal, "accept")
    accepted = memory.writer.settle("p", proposal, "accept", reason="measured").iri

    assert status_of(memory, old) == "superseded"
    assert memory.writer.restated("p", accepted)["reason"] == "measured"


def test_a_batch_refuses_only_the_intent_without_a_reason(memory):
    old = record(memory, summary="one")

    refused, accepted = memory.writer.submit_many("p", [
        intent(summary="two", supersedes=[old], asserted_by="ben"), intent(summary="three", asserted_by="ben"),
    ])  # fmt: skip

    assert (refused.code, accepted.status) == ("missing_rationale", "asserted")


def test_an_imported_history_without_reasons_is_accepted_once(memory, tmp_path):
    with jidomem.open(tmp_path / "old", sources=fixed_sources()) as source:
        first = source.writer.submit_intent("p", intent(summary="one", asserted_by="ana")).iri
        source.writer.submit_intent("p", decision(summary="two", asserted_by="ben", supersedes=[first], topic="t"))
        source.writer.submit_intent("p", intent(summary="three", asserted_by="ana"))
        text = documents.turtle("p", source.journal.read(Stream("p")), source.schema.version)
    data = (text if isinstance(text, bytes) else text.encode()).replace(b"jido:rationale", b"jido:detailedExplanation")
    data = data.replace(b"jido:ArchitecturalDecision", b"jido:Fact")

    report = import_document(memory.writer, memory.schema, "p", "old.ttl", data)
    second_report = import_document(memory.writer, memory.schema, "p", "old.ttl", data)

    assert (report.refusals, len(report.accepted)) == ([], 3)
    assert (second_report.refusals, second_report.accepted) == ([], [])
    assert status_of(memory, first) == "superseded"
