"""Rollback to the memories that were active at a moment, by corrections in one commit."""

import os
import re
from collections import Counter
from dataclasses import FrozenInstanceError

import pytest
from conftest import decision, files, fixed_sources, intent
from writing import codes, open_with, refusal, triples_of, values_of

import jidomem
from jidomem.check.check import check_project
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import XSD, jido, local_name
from jidomem.read.derived import sessions
from jidomem.records.policy import PolicyChange

NOT_COMPARED = {
    jido(name)
    for name in (
        "supersedes", "invalidates", "revives", "coexistsWith", "conflictsWith", "assertedBy", "assertedIn",
        "settledBy", "hasTimestamp", "recordedAt", "recordedIn", "revisionReason", "idempotencyKey", "requestDigest",
        "receipt",
    )
}  # fmt: skip
ENDS = {jido("supersededBy"), jido("invalidatedBy")}


SECRET = "the token is ghp_" + "aB3dE6gH9" * 4


def active_contents(memory):
    """Return the content of each active memory except markers, without author, time and relations."""
    rows = {}
    for subject, predicate, value in triples_of(memory):
        rows.setdefault(subject, set()).add((predicate, value))
    contents = set()
    for item, properties in rows.items():
        predicates = {predicate for predicate, _ in properties}
        values = {value for _, value in properties}
        if jido("Asserted") in values and not predicates & ENDS and jido("DeletedMarker") not in values:
            # an alternative is named after its decision
            contents.add(
                frozenset((p, v.replace(plain_value(item), "this")) for p, v in properties if p not in NOT_COMPARED)
            )
    return contents


def summaries(memory):
    return sorted(plain_value(v) for content in active_contents(memory) for p, v in content if p == jido("summary"))


def violations(memory):
    return [
        each for each in check_project(memory.follower, memory.schema, "p").problems if each.severity == "violation"
    ]


def test_a_rollback_restores_exactly_the_memories_active_at_a_moment(memory):  # C117
    writer = memory.writer
    store = writer.submit_intent("p", decision(topic="store", alternatives=["SQLite", "Redis"]))
    task = writer.submit_intent("p", intent(type="task", summary="Ship it", assigned_to="ana"))
    fact = writer.submit_intent("p", intent(summary="the build needs Rust 1.80", evidence=["the log of Monday"]))
    last = writer.submit_intent("p", intent(type="risk", summary="the disk is small"))
    before, moment = active_contents(memory), last.version
    other = writer.submit_intent("p", decision(topic="store", summary="Use SQLite", supersedes=[store.iri]))
    writer.revise("p", task.iri, changes={"status": "Completed"}, reason="done")
    writer.invalidate("p", fact.iri, reason="measured wrongly")
    unrelated = writer.submit_intent("p", intent(summary="of another product"))
    triples_before = triples_of(memory)

    rollback = memory.roll_back(str(moment), reason="the import was wrong", project="p")

    assert active_contents(memory) == before
    assert triples_before < triples_of(memory)  # no triple is removed
    assert Counter(correction.change for correction in rollback.corrections) == {"withdrawn": 3, "restated": 3}
    (marker,) = {correction.by for correction in rollback.corrections if correction.change == "withdrawn"}
    (summary,) = values_of(memory, marker, "summary")
    assert re.fullmatch(r'"Rolled back to 2026-11-21T\S+Z: 3 withdrawn"', summary)
    assert {*values_of(memory, marker, "invalidates")} == {
        f"<{correction.iri}>" for correction in (other, unrelated)
    } | {f"<{memory.reader.history('p', task.iri)[1]['entry']}>"}
    assert values_of(memory, unrelated.iri, "invalidatedBy") == [f"<{marker}>"]
    restated_items = {
        correction.item: correction.by for correction in rollback.corrections if correction.change == "restated"
    }
    assert restated_items.keys() == {store.iri, task.iri, fact.iri}
    assert all(values_of(memory, new, "revives") == [f"<{old}>"] for old, new in restated_items.items())
    assert {
        plain_value(reason) for new in restated_items.values() for reason in values_of(memory, new, "revisionReason")
    } == {"the import was wrong"}
    assert violations(memory) == []


def test_a_rollback_is_one_commit_with_its_own_recovery_session(memory):  # C117
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="wrong"))
    commits = len(memory.reader.log("p").rows)

    rollback = memory.roll_back(first.version.recorded_at, reason="an experiment", project="p")

    assert len(memory.reader.log("p").rows) == commits + 1
    (log_row,) = [row for row in memory.reader.log("p").rows if row["commit"] == rollback.commit]
    assert log_row["brought"] == {"DeletedMarker": 1, "RecoverySession": 1, "SessionEvent": 1, "Agent": 1}
    (session,) = [row for row in sessions(memory.reader, "p", ended=True) if row["session"] == rollback.session]
    assert local_name(session["status"]) == "Closed"
    assert plain_value(values_of(memory, rollback.session, "restoresMoment")[0])[:19] == first.version.recorded_at[:19]
    assert values_of(memory, rollback.session, "recoveryReason") == ['"an experiment"']


def test_a_second_rollback_to_the_same_moment_writes_nothing(memory, tmp_path):  # C117
    first = memory.writer.submit_intent("p", decision(topic="store", alternatives=["SQLite"]))
    memory.writer.revise("p", first.iri, changes={"summary": "Use Redis"}, reason="faster")
    memory.roll_back(str(first.version), reason="it lost data", project="p")
    before = files(tmp_path)

    second = memory.roll_back(str(first.version), reason="it lost data", project="p")

    assert (second.corrections, second.commit, second.session) == ((), None, None)
    assert files(tmp_path) == before


def test_a_dry_run_reports_the_corrections_and_writes_nothing(memory, tmp_path):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.invalidate("p", first.iri, reason="wrong")
    before = files(tmp_path)

    planned = memory.roll_back(str(first.version), reason="it was right", project="p", dry_run=True)

    assert [(correction.change, correction.item, correction.by) for correction in planned.corrections] == [
        ("restated", first.iri, None)
    ]
    assert (planned.session, planned.commit) == (None, None)
    assert files(tmp_path) == before


def test_a_confirmed_memory_is_not_corrected(memory):
    first = memory.writer.submit_intent("p", intent())
    confirmed = memory.writer.confirm("p", first.iri, reason="looked again")

    rollback = memory.roll_back(str(first.version), reason="an experiment", project="p")

    assert rollback.corrections == ()
    assert memory.reader.get_memory("p", confirmed.iri)["status"] == "active"


def test_a_rollback_writes_nothing_where_one_memory_cannot_be_restated(tmp_path):  # C117
    memory = open_with(tmp_path, 'secrets = "off"\n')
    plain, secret = (memory.writer.submit_intent("p", intent(summary=text)) for text in ("one", SECRET))
    for receipt in (plain, secret):
        memory.writer.invalidate("p", receipt.iri, reason="wrong")
    memory.close()
    (tmp_path / "root" / "config.toml").write_text("")
    before = files(tmp_path / "root" / "projects")
    with jidomem.open(tmp_path / "root") as memory:
        error = refusal(memory.roll_back, str(secret.version), reason="they were right", project="p")

    assert error.hint.startswith(f"{secret.iri} cannot be restated")
    assert files(tmp_path / "root" / "projects") == before


def test_a_rollback_writes_nothing_on_a_full_disk(tmp_path, small_disk):  # C117
    with jidomem.open(small_disk / "root", sources=fixed_sources()) as memory:
        first = memory.writer.submit_intent("p", intent())
        memory.writer.submit_many("p", [intent(summary=f"{n} " + "x" * 400) for n in range(300)])
        (small_disk / "ballast").write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize))
        before = files(small_disk / "root" / "projects")

        error = refusal(memory.roll_back, str(first.version), reason="an import", project="p")

        assert error.code == "write_failed"
        assert files(small_disk / "root" / "projects") == before


def test_restored_memories_coexist_again(memory):
    first = memory.writer.submit_intent("p", decision(topic="store", about=["src/a"]))
    second = memory.writer.submit_intent(
        "p", decision(topic="store", summary="Use SQLite", about=["src/b"], coexists_with=[first.iri])
    )
    for receipt in (first, second):
        memory.writer.invalidate("p", receipt.iri, reason="wrong")

    rollback = memory.roll_back(str(second.version), reason="both were right", project="p")

    first_iri, second_iri = (receipt.by for receipt in rollback.corrections)
    assert values_of(memory, second_iri, "coexistsWith") == [f"<{first_iri}>"]
    assert violations(memory) == []


def test_restored_memories_may_conflict_as_before(tmp_path):
    memory = open_with(tmp_path, '[conflicts]\ndecision = "warn"\n')
    first = memory.writer.submit_intent("p", decision(topic="store"))
    second = memory.writer.submit_intent("p", decision(topic="store", summary="Use SQLite"))
    before = active_contents(memory)
    memory.writer.submit_intent("p", decision(topic="store", summary="Use Redis", supersedes=[first.iri, second.iri]))
    memory.close()

    (tmp_path / "root" / "config.toml").write_text("")
    with jidomem.open(tmp_path / "root") as strict:  # as new memories they would be refused
        strict.roll_back(str(second.version), reason="back", project="p")

        assert active_contents(strict) == before


def test_a_restored_root_cause_is_linked_to_its_restored_error(memory):
    cause_triples = [["jido:hasRootCause", {"@id": "urn:cause"}]]
    cause, error = memory.writer.submit_many(
        "p",
        [
            intent(type="root_cause", iri="urn:cause", summary="no fsync"),
            intent(type="error", summary="a write was lost", extra_triples=cause_triples),
        ],
    )
    for receipt in (cause, error):
        memory.writer.invalidate("p", receipt.iri, reason="wrong")

    memory.roll_back(str(error.version), reason="it was right", project="p")

    assert memory.reader.ask("unexplained-root-causes", project="p") == []
    assert violations(memory) == []


def test_the_dependency_of_a_task_leads_to_the_restored_task(memory):
    first = memory.writer.submit_intent("p", intent(type="task", summary="Build", assigned_to="ana"))
    dependent = memory.writer.submit_intent(
        "p", intent(type="task", summary="Ship", extra_triples=[["jido:dependsOn", {"@id": first.iri}]])
    )
    memory.writer.invalidate("p", first.iri, reason="wrong")

    rollback = memory.roll_back(str(dependent.version), reason="it was right", project="p")

    (row,) = memory.reader.ask("task-dependencies", project="p")
    assert row["dependsOn"] == rollback.corrections[0].by


def test_one_memory_withdrawn_by_a_rollback_is_restored_by_undo(memory):
    first = memory.writer.submit_intent("p", intent())
    restored, withdrawn = (memory.writer.submit_intent("p", intent(summary=text)) for text in ("one", "other"))
    rollback = memory.roll_back(str(first.version), reason="an experiment", project="p")

    memory.writer.undo("p", restored.iri, reason="this was right")

    assert summaries(memory) == ["one", "the build needs Rust 1.80"]
    assert memory.reader.get_memory("p", rollback.corrections[0].by)["status"] == "withdrawal"
    assert memory.reader.get_memory("p", withdrawn.iri)["status"] == "invalidated"


def test_a_redacted_memory_is_reported_as_lost(memory):
    first = memory.writer.submit_intent("p", intent(summary="the key is hunter2"))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    plan = memory.maintenance.plan("p", first.iri)
    memory.maintenance.redact(plan, agent="user", reason="a secret")

    rollback = memory.roll_back(str(first.version), reason="back", project="p")

    assert [(correction.change, correction.item) for correction in rollback.corrections] == [("lost", first.iri)]
    assert rollback.commit is None


def test_a_decision_whose_rationale_was_redacted_is_reported_as_lost_and_stops_no_rollback(memory):
    first = memory.writer.submit_intent("p", decision(summary="Use A", topic="t"))
    memory.writer.submit_intent("p", intent(summary="one"))
    plan = memory.maintenance.plan("p", first.iri, properties=[jido("rationale")[1:-1]])
    memory.maintenance.redact(plan, agent="user", reason="it names a customer")
    memory.writer.revise("p", first.iri, changes={"rationale": "it is fast"}, reason="the text was redacted")
    memory.writer.submit_intent("p", intent(summary="a bad import"))

    rollback = memory.roll_back(str(first.version), reason="back", project="p")

    assert [each.item for each in rollback.corrections if each.change == "lost"] == [first.iri]
    assert rollback.commit is not None
    assert summaries(memory) == []


def test_a_memory_above_the_current_entry_limit_is_restated(memory, monkeypatch):
    first = memory.writer.submit_intent("p", intent(about=["a.py", "b.py", "c.py"]))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    monkeypatch.setattr("jidomem.write.normalize.ENTRIES_LIMIT", 2)
    oversized = intent(summary="another", about=["a.py", "b.py", "c.py"])
    assert refusal(memory.writer.submit_intent, "p", oversized).code == "payload_too_large"

    rollback = memory.roll_back(str(first.version), reason="back", project="p")

    assert [(correction.change, correction.item) for correction in rollback.corrections] == [("restated", first.iri)]
    assert summaries(memory) == ["the build needs Rust 1.80"]


def test_only_a_curator_rolls_back_where_the_project_has_one(tmp_path):
    config = '[agents.rita]\nrole = "Curator"\n'
    with open_with(tmp_path, config, agent="bob") as memory:
        first = memory.writer.submit_intent("p", intent())
        memory.writer.submit_intent("p", intent(summary="wrong"))

        error = refusal(memory.roll_back, str(first.version), reason="back", project="p", dry_run=True)

        assert (error.code, error.hint) == ("policy_denied", "ask rita")
    with jidomem.open(tmp_path / "root", agent="rita") as memory:
        assert memory.roll_back(str(first.version), reason="back", project="p").commit


def test_a_rollback_is_denied_to_an_agent_who_may_only_propose_an_affected_kind(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n') as memory:
        first = memory.writer.submit_intent("p", intent())
        memory.writer.submit_intent("p", intent(type="convention", summary="Tabs"))
        memory.writer.acting_as("rita", "curator").submit_intent("p", intent(
            type="convention", summary="Spaces", asserted_by="rita"))  # fmt: skip

        error = refusal(memory.roll_back, str(first.version), reason="back", project="p")

        assert error.code == "policy_denied"
        assert summaries(memory) == ["Spaces", "the build needs Rust 1.80"]


@pytest.mark.parametrize(
    ("to", "reason", "message"),
    [("2999-01-01", "why", "not a moment in the past"), ("0", "  ", "recorded with its reason")],
)
def test_a_future_moment_or_a_blank_reason_is_refused(memory, to, reason, message):
    memory.writer.submit_intent("p", intent())

    error = refusal(memory.roll_back, to, reason=reason, project="p")

    assert error.code == "invalid_argument"
    assert message in error.detail


def test_a_rollback_to_the_beginning_leaves_no_active_memory(memory):
    memory.writer.submit_intent("p", intent())

    memory.roll_back("0", reason="a fresh start", project="p")

    assert active_contents(memory) == set()
    assert [each for each in memory.check("p").problems if each.severity == "violation"] == []


def test_a_memory_added_after_a_dry_run_is_withdrawn_too(memory, tmp_path):
    first = memory.writer.submit_intent("p", intent())
    memory.roll_back(str(first.version), reason="look", project="p", dry_run=True)
    with jidomem.open(tmp_path / "root") as other:
        added = other.writer.submit_intent("p", intent(summary="late"))

    rollback = memory.roll_back(str(first.version), reason="now", project="p")

    assert [correction.item for correction in rollback.corrections] == [added.iri]


def test_thousands_of_corrections_are_one_commit(memory):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_many("p", [intent(summary=f"noise {n}") for n in range(1500)])

    rollback = memory.roll_back(str(first.version), reason="an import", project="p")

    assert len(rollback.corrections) == 1500
    assert memory.reader.log("p", limit=1).rows[0]["commit"] == rollback.commit
    assert summaries(memory) == ["the build needs Rust 1.80"]


def test_a_rollback_result_is_serialized_to_plain_values_and_immutable(memory):
    first = memory.writer.submit_intent("p", decision(topic="store"))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    risk = memory.writer.submit_intent("p", intent(type="risk", summary="noise"))

    rollback = memory.roll_back(str(first.version), reason="back", project="p")

    marker, restated_iri = (correction.by for correction in rollback.corrections)
    restated = {"change": "restated", "item": first.iri, "type": "architectural_decision", "summary": "Use Oxigraph"}
    assert rollback.to_dict() == {
        "to": first.version.recorded_at,
        "session": rollback.session,
        "commit": rollback.commit,
        "version": str(rollback.version),
        "corrections": [
            {"change": "withdrawn", "item": risk.iri, "type": "risk", "summary": "noise", "by": marker},
            {**restated, "by": restated_iri},
        ],
    }
    for value, name in ((rollback, "to"), (rollback.corrections[0], "item")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, "otherwise")


def test_the_marker_and_session_of_a_rollback_record_reason_agent_and_moment(memory):
    first = memory.writer.submit_intent("p", intent())
    noise = memory.writer.submit_intent("p", intent(summary="noise"))
    memory.writer.agent = "rita"

    rollback = memory.roll_back(first.version.recorded_at, reason="  an experiment ", project="p")

    marker = memory.writer.restated("p", rollback.corrections[0].by)
    assert {name: marker[name] for name in marker if name not in ("iri", "timestamp")} == {
        "type": "deleted_marker",
        "summary": f"Rolled back to {first.version.recorded_at}: 1 withdrawn",
        "rationale": "an experiment",
        "applies_to_project": "https://jido.ai/projects/p",
        "asserted_by": "https://jido.ai/agents/rita",
        "asserted_in": rollback.session,
        "confidence": "high",
        "invalidates": [noise.iri],
    }
    assert rollback.session.startswith("https://jido.ai/sessions/recovery-")
    assert rollback.corrections[0].by.startswith("https://jido.ai/memory/")
    assert values_of(memory, rollback.session, "partOfProject") == ["<https://jido.ai/projects/p>"]
    assert values_of(memory, rollback.session, "hasPrimaryAgent") == ["<https://jido.ai/agents/rita>"]
    assert values_of(memory, f"{rollback.session}/events/1", "toStatus") == [jido("Closed")]
    assert values_of(memory, f"{rollback.session}/events/1", "toPhase") == []


def test_a_restated_memory_records_the_reason_the_curator_and_its_file_anchors(memory):
    blob = "a" * 40
    first = memory.writer.submit_intent("p", intent(about=["a.py"]), blobs={"a.py": blob})
    memory.writer.invalidate("p", first.iri, reason="wrong")
    memory.writer.agent = "rita"

    rollback = memory.roll_back(str(first.version), reason="it was right", project="p")

    (correction,) = rollback.corrections
    restated = memory.writer.restated("p", correction.by)
    assert (restated["revives"], restated["reason"]) == ([first.iri], "it was right")
    assert restated["asserted_by"] == "https://jido.ai/agents/architect"
    assert values_of(memory, correction.by, "settledBy") == ["<https://jido.ai/agents/rita>"]
    assert values_of(memory, correction.by, "aboutBlob") == [f'"{blob} a.py"']


def test_a_memory_that_was_not_active_at_the_moment_is_not_restated(memory):
    writer = memory.writer
    ended = writer.submit_intent("p", intent(summary="ended before"))
    successor = writer.submit_intent("p", intent(summary="over it", supersedes=[ended.iri]))
    withdrawn = writer.submit_intent("p", intent(summary="withdrawn before"))
    marker = writer.invalidate("p", withdrawn.iri, reason="wrong")
    proposed = writer.submit_intent("p", intent(summary="only proposed"), propose=True)
    moment = memory.catch_up("p")
    before = active_contents(memory)
    restored = writer.undo("p", ended.iri, reason="it was right")  # supersedes its successor
    unwithdrawn = writer.undo("p", withdrawn.iri, reason="it was right")  # supersedes the marker
    settled = writer.confirm("p", proposed.iri)

    rollback = memory.roll_back(str(moment), reason="back", project="p")

    assert active_contents(memory) == before
    assert {correction.item for correction in rollback.corrections if correction.change == "withdrawn"} == {
        restored.iri, unwithdrawn.iri, settled.iri,
    }  # fmt: skip
    assert [correction.item for correction in rollback.corrections if correction.change == "restated"] == [
        successor.iri
    ]
    assert memory.reader.get_memory("p", marker.iri)["status"] == "superseded"


def test_a_memory_added_and_ended_since_stays_ended(memory):
    first = memory.writer.submit_intent("p", intent())
    temporary = memory.writer.submit_intent("p", intent(summary="passing"))
    memory.writer.invalidate("p", temporary.iri, reason="wrong")

    rollback = memory.roll_back(str(first.version), reason="back", project="p")

    assert (rollback.corrections, rollback.commit, rollback.session) == ((), None, None)


def test_a_restated_memory_coexists_with_the_active_versions(memory):
    def stored(name, **fields):
        return memory.writer.submit_intent("p", decision(topic="store", summary=f"Use {name}", about=[name], **fields))

    first = stored("a")
    second = stored("b", coexists_with=[first.iri])
    third = stored("c", coexists_with=[first.iri, second.iri])
    memory.writer.invalidate("p", second.iri, reason="wrong")

    rollback = memory.roll_back(str(third.version), reason="it was right", project="p")

    (correction,) = rollback.corrections
    assert values_of(memory, correction.by, "coexistsWith") == sorted(f"<{item.iri}>" for item in (first, third))
    assert violations(memory) == []


def test_a_lost_memory_is_reported_by_its_type_only(memory):
    first = memory.writer.submit_intent("p", intent(type="risk", summary="the key is hunter2"))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    memory.maintenance.redact(memory.maintenance.plan("p", first.iri), agent="user", reason="a secret")
    noise = memory.writer.submit_intent("p", intent(summary="noise"))

    rollback = memory.roll_back(str(first.version), reason="back", project="p")

    lost = next(correction for correction in rollback.corrections if correction.change == "lost")
    assert (lost.item, lost.type, lost.summary, lost.by) == (first.iri, "risk", None, None)
    assert [correction.item for correction in rollback.corrections if correction.change == "withdrawn"] == [noise.iri]


def test_a_denied_rollback_names_the_rule_and_the_contact(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n', agent="bob") as memory:
        tabs = memory.writer.acting_as("rita", "curator").submit_intent("p", intent(
            type="convention", summary="Tabs", asserted_by="rita"))  # fmt: skip
        memory.writer.acting_as("rita", "curator").invalidate("p", tabs.iri, reason="wrong")

        error = refusal(memory.roll_back, str(tabs.version), reason="back", project="p")

        assert error.detail.startswith("bob may not roll a memory back: ")
        assert "may only propose convention" in error.detail
        assert error.hint == "ask a curator, listed by: jidomem access policy show"


def test_a_rollback_is_denied_to_an_agent_who_may_not_open_sessions(memory):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="noise"))
    memory.writer.change_policy("p", [PolicyChange(kind="session", allows="deny")])
    before = triples_of(memory)

    error = refusal(memory.roll_back, str(first.version), reason="back", project="p")

    assert (error.code, "may not write a session" in error.detail) == ("policy_denied", True)
    assert triples_of(memory) == before


def test_a_denied_rollback_names_the_denied_action(tmp_path):
    with open_with(tmp_path, '[agents.rita]\nrole = "Curator"\n', agent="bob") as memory:
        first = memory.writer.submit_intent("p", intent())

        error = refusal(memory.roll_back, str(first.version), reason="back", project="p")

        assert error.detail == "bob, an Implementer, may not roll a memory back"


def test_a_reason_that_contains_a_secret_is_refused(memory):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="noise"))
    before = triples_of(memory)

    error = refusal(memory.roll_back, str(first.version), reason=SECRET, project="p")

    assert (codes(error), SECRET in str(error.to_dict())) == (["policy_denied"], False)
    assert triples_of(memory) == before


def test_a_restated_memory_supersedes_and_invalidates_nothing(memory):
    old, wrong = (memory.writer.submit_intent("p", intent(summary=text)) for text in ("one", "two"))
    ending = memory.writer.submit_intent(
        "p", intent(type="incident", summary="it broke", supersedes=[old.iri], invalidates=[wrong.iri])
    )
    memory.writer.invalidate("p", ending.iri, reason="it did not")

    rollback = memory.roll_back(str(ending.version), reason="it did", project="p")

    restated = memory.writer.restated("p", rollback.corrections[0].by)
    assert {"supersedes", "invalidates", "revives"} & restated.keys() == {"revives"}
    assert summaries(memory) == ["it broke"]


OWN_MOMENTS = [
    {"valid_from": "2026-11-22T00:00:00Z"},
    {"valid_until": "2027-11-22"},
    {"expires_on": "2027-11-22T10:00:00+02:00"},
    {"extra_triples": [[jido("validFrom")[1:-1], {"@value": "2026-11-22T00:00:00Z", "@type": XSD + "dateTime"}]]},
    {"extra_triples": [["urn:x:measured", {"@value": "2026-11-22T00:00:00.50Z", "@type": XSD + "dateTime"}]]},
    {"extra_triples": [["urn:x:measured", {"@value": "1.50", "@type": XSD + "decimal"}]]},
]


@pytest.mark.parametrize("fields", OWN_MOMENTS, ids=str)
@pytest.mark.parametrize("revised", [True, False])
def test_a_second_rollback_writes_nothing_however_an_index_writes_a_value(tmp_path, fields, revised):  # C117
    with open_with(tmp_path) as memory:
        first = memory.writer.submit_intent("p", intent(**fields))
    with jidomem.open(tmp_path / "root") as memory:  # reads the first memory from its index
        if revised:
            memory.writer.revise("p", first.iri, changes={"summary": "another"}, reason="wrong")
        else:
            memory.writer.invalidate("p", first.iri, reason="wrong")
        rollback = memory.roll_back(str(first.version), reason="it was right", project="p")
        before = files(tmp_path)

        second = memory.roll_back(str(first.version), reason="it was right", project="p")

    assert rollback.corrections[-1].change == "restated"
    assert (second.corrections, second.commit) == ((), None)
    assert files(tmp_path) == before


def test_a_memory_restated_by_a_rollback_keeps_its_date(memory):
    old = memory.writer.submit_intent("p", decision(timestamp="2020-03-04"))
    memory.writer.invalidate("p", old.iri, reason="wrong")

    (restated,) = memory.roll_back(old.version.recorded_at, reason="it was right", project="p").corrections

    assert memory.writer.restated("p", restated.by)["timestamp"][:10] == "2020-03-04"


def test_history_after_a_rollback_has_every_branch_of_the_lineage_in_order(memory):
    old = memory.writer.submit_intent("p", intent(summary="the port is 80"))
    unrelated = memory.writer.submit_intent("p", intent(summary="of no lineage here"))
    change = intent(summary="the port is 443", supersedes=[old.iri])
    proposed = memory.writer.submit_intent("p", change, propose=True).iri
    accepted = memory.writer.settle("p", proposed, "accept").iri
    memory.writer.invalidate("p", unrelated.iri, reason="wrong")
    added = memory.writer.remember("p", "noise").iri
    withdrawn, _, *restated = memory.roll_back(unrelated.version.recorded_at, reason="wrong", project="p").corrections
    (restored,) = [each.by for each in restated if each.item == old.iri]

    histories = [memory.reader.history("p", item) for item in (old.iri, proposed, accepted, restored)]

    assert {each.item for each in (withdrawn, _)} == {accepted, added}
    for rows in histories:
        assert [row["entry"] for row in rows] == [old.iri, proposed, accepted, withdrawn.by, restored]
        assert [row["event"] for row in rows] == ["asserted", "proposed", "accepted", "withdrawn", "revived"]
