"""Rollback to the memories that were active at a moment: by corrections in one commit, or by none."""

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

NOT_HELD = {
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
    """The content of each active memory, without author, time and relations; markers have none."""
    rows = {}
    for subject, predicate, value in triples_of(memory):
        rows.setdefault(subject, set()).add((predicate, value))
    found = set()
    for item, rows_of in rows.items():
        told = {predicate for predicate, _ in rows_of}
        values = {value for _, value in rows_of}
        if jido("Asserted") in values and not told & ENDS and jido("DeletedMarker") not in values:
            # an alternative is named after its decision
            found.add(frozenset((p, v.replace(plain_value(item), "this")) for p, v in rows_of if p not in NOT_HELD))
    return found


def summaries(memory):
    return sorted(plain_value(v) for holds in active_contents(memory) for p, v in holds if p == jido("summary"))


def violations(memory):
    return [
        each for each in check_project(memory.follower, memory.schema, "p").problems if each.severity == "violation"
    ]


def test_exactly_the_memories_active_at_a_moment_are_active_again(memory):  # C117
    writer = memory.writer
    store = writer.submit_intent("p", decision(topic="store", alternatives=["SQLite", "Redis"]))
    task = writer.submit_intent("p", intent(type="task", summary="Ship it", assigned_to="ana"))
    fact = writer.submit_intent("p", intent(summary="the build needs Rust 1.80", evidence=["the log of Monday"]))
    kept = writer.submit_intent("p", intent(type="risk", summary="the disk is small"))
    before, then = active_contents(memory), kept.version
    other = writer.submit_intent("p", decision(topic="store", summary="Use SQLite", supersedes=[store.iri]))
    writer.revise("p", task.iri, changes={"status": "Completed"}, reason="done")
    writer.invalidate("p", fact.iri, reason="measured wrongly")
    noise = writer.submit_intent("p", intent(summary="of another product"))
    was = triples_of(memory)

    done = memory.roll_back(str(then), reason="the import was wrong", project="p")

    assert active_contents(memory) == before
    assert was < triples_of(memory)  # nothing is removed
    assert Counter(found.change for found in done.corrections) == {"withdrawn": 3, "restated": 3}
    (marker,) = {found.by for found in done.corrections if found.change == "withdrawn"}
    (summary,) = values_of(memory, marker, "summary")
    assert re.fullmatch(r'"Rolled back to 2026-11-21T\S+Z: 3 withdrawn"', summary)
    assert {*values_of(memory, marker, "invalidates")} == {f"<{found.iri}>" for found in (other, noise)} | {
        f"<{memory.reader.history('p', task.iri)[1]['entry']}>"
    }
    assert values_of(memory, noise.iri, "invalidatedBy") == [f"<{marker}>"]
    again = {found.item: found.by for found in done.corrections if found.change == "restated"}
    assert again.keys() == {store.iri, task.iri, fact.iri}
    assert all(values_of(memory, new, "revives") == [f"<{old}>"] for old, new in again.items())
    assert {plain_value(reason) for new in again.values() for reason in values_of(memory, new, "revisionReason")} == {
        "the import was wrong"
    }
    assert violations(memory) == []


def test_a_rollback_is_one_commit_with_a_recovery_session_of_its_own(memory):  # C117
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="wrong"))
    commits = len(memory.reader.log("p").rows)

    done = memory.roll_back(first.version.recorded_at, reason="an experiment", project="p")

    assert len(memory.reader.log("p").rows) == commits + 1
    (entry,) = [row for row in memory.reader.log("p").rows if row["commit"] == done.commit]
    assert entry["brought"] == {"DeletedMarker": 1, "RecoverySession": 1, "SessionEvent": 1, "Agent": 1}
    (session,) = [row for row in sessions(memory.reader, "p", ended=True) if row["session"] == done.session]
    assert local_name(session["status"]) == "Closed"
    assert plain_value(values_of(memory, done.session, "restoresMoment")[0])[:19] == first.version.recorded_at[:19]
    assert values_of(memory, done.session, "recoveryReason") == ['"an experiment"']


def test_a_second_rollback_to_the_same_moment_writes_nothing(memory, tmp_path):  # C117
    first = memory.writer.submit_intent("p", decision(topic="store", alternatives=["SQLite"]))
    memory.writer.revise("p", first.iri, changes={"summary": "Use Redis"}, reason="faster")
    memory.roll_back(str(first.version), reason="it lost data", project="p")
    before = files(tmp_path)

    again = memory.roll_back(str(first.version), reason="it lost data", project="p")

    assert (again.corrections, again.commit, again.session) == ((), None, None)
    assert files(tmp_path) == before


def test_a_dry_run_judges_all_of_it_and_keeps_nothing(memory, tmp_path):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.invalidate("p", first.iri, reason="wrong")
    before = files(tmp_path)

    planned = memory.roll_back(str(first.version), reason="it was right", project="p", dry_run=True)

    assert [(found.change, found.item, found.by) for found in planned.corrections] == [("restated", first.iri, None)]
    assert (planned.session, planned.commit) == (None, None)
    assert files(tmp_path) == before


def test_what_was_said_again_with_the_same_words_is_left_as_it_is(memory):
    first = memory.writer.submit_intent("p", intent())
    confirmed = memory.writer.confirm("p", first.iri, reason="looked again")

    done = memory.roll_back(str(first.version), reason="an experiment", project="p")

    assert done.corrections == ()
    assert memory.reader.get_memory("p", confirmed.iri)["status"] == "active"


def test_nothing_at_all_is_kept_where_one_memory_cannot_be_said_again(tmp_path):  # C117
    memory = open_with(tmp_path, 'secrets = "off"\n')
    one, secret = (memory.writer.submit_intent("p", intent(summary=text)) for text in ("one", SECRET))
    for found in (one, secret):
        memory.writer.invalidate("p", found.iri, reason="wrong")
    memory.close()
    (tmp_path / "root" / "config.toml").write_text("")
    before = files(tmp_path / "root" / "projects")
    with jidomem.open(tmp_path / "root") as memory:
        error = refusal(memory.roll_back, str(secret.version), reason="they were right", project="p")

    assert error.hint.startswith(f"{secret.iri} cannot be restated")
    assert files(tmp_path / "root" / "projects") == before


def test_nothing_at_all_is_kept_where_the_disk_refuses(tmp_path, small_disk):  # C117
    with jidomem.open(small_disk / "root", sources=fixed_sources()) as memory:
        first = memory.writer.submit_intent("p", intent())
        memory.writer.submit_many("p", [intent(summary=f"{n} " + "x" * 400) for n in range(300)])
        (small_disk / "ballast").write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize))
        before = files(small_disk / "root" / "projects")

        error = refusal(memory.roll_back, str(first.version), reason="an import", project="p")

        assert error.code == "write_failed"
        assert files(small_disk / "root" / "projects") == before


def test_memories_that_stood_beside_each_other_do_so_again(memory):
    first = memory.writer.submit_intent("p", decision(topic="store", about=["src/a"]))
    second = memory.writer.submit_intent(
        "p", decision(topic="store", summary="Use SQLite", about=["src/b"], coexists_with=[first.iri])
    )
    for found in (first, second):
        memory.writer.invalidate("p", found.iri, reason="wrong")

    done = memory.roll_back(str(second.version), reason="both were right", project="p")

    one, other = (found.by for found in done.corrections)
    assert values_of(memory, other, "coexistsWith") == [f"<{one}>"]
    assert violations(memory) == []


def test_memories_that_disagreed_do_so_again_as_they_stood(tmp_path):
    memory = open_with(tmp_path, '[conflicts]\ndecision = "warn"\n')
    first = memory.writer.submit_intent("p", decision(topic="store"))
    second = memory.writer.submit_intent("p", decision(topic="store", summary="Use SQLite"))
    before = active_contents(memory)
    memory.writer.submit_intent("p", decision(topic="store", summary="Use Redis", supersedes=[first.iri, second.iri]))
    memory.close()

    (tmp_path / "root" / "config.toml").write_text("")
    with jidomem.open(tmp_path / "root") as strict:  # they would be refused as new ones now
        strict.roll_back(str(second.version), reason="back", project="p")

        assert active_contents(strict) == before


def test_a_root_cause_and_its_error_are_connected_again(memory):
    because = [["jido:hasRootCause", {"@id": "urn:cause"}]]
    cause, error = memory.writer.submit_many(
        "p",
        [
            intent(type="root_cause", iri="urn:cause", summary="no fsync"),
            intent(type="error", summary="a write was lost", extra_triples=because),
        ],
    )
    for found in (cause, error):
        memory.writer.invalidate("p", found.iri, reason="wrong")

    memory.roll_back(str(error.version), reason="it was right", project="p")

    assert memory.reader.ask("unexplained-root-causes", project="p") == []
    assert violations(memory) == []


def test_what_a_task_waits_for_is_found_when_it_was_brought_back(memory):
    first = memory.writer.submit_intent("p", intent(type="task", summary="Build", assigned_to="ana"))
    then = memory.writer.submit_intent(
        "p", intent(type="task", summary="Ship", extra_triples=[["jido:dependsOn", {"@id": first.iri}]])
    )
    memory.writer.invalidate("p", first.iri, reason="wrong")

    done = memory.roll_back(str(then.version), reason="it was right", project="p")

    (row,) = memory.reader.ask("task-dependencies", project="p")
    assert row["dependsOn"] == done.corrections[0].by


def test_one_memory_that_a_rollback_withdrew_is_brought_back_by_itself(memory):
    first = memory.writer.submit_intent("p", intent())
    one, other = (memory.writer.submit_intent("p", intent(summary=text)) for text in ("one", "other"))
    done = memory.roll_back(str(first.version), reason="an experiment", project="p")

    memory.writer.undo("p", one.iri, reason="this was right")

    assert summaries(memory) == ["one", "the build needs Rust 1.80"]
    assert memory.reader.get_memory("p", done.corrections[0].by)["status"] == "active"
    assert memory.reader.get_memory("p", other.iri)["status"] == "invalidated"


def test_what_was_redacted_is_not_said_again_and_the_rollback_says_so(memory):
    first = memory.writer.submit_intent("p", intent(summary="the key is hunter2"))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    plan = memory.keeper.plan("p", first.iri)
    memory.keeper.redact(plan, agent="user", reason="a secret")

    done = memory.roll_back(str(first.version), reason="back", project="p")

    assert [(found.change, found.item) for found in done.corrections] == [("lost", first.iri)]
    assert done.commit is None


def test_what_has_more_entries_than_an_intent_may_say_now_is_said_again_as_it_was(memory, monkeypatch):
    first = memory.writer.submit_intent("p", intent(about=["a.py", "b.py", "c.py"]))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    monkeypatch.setattr("jidomem.write.normalize.ENTRIES_LIMIT", 2)
    more = intent(summary="another", about=["a.py", "b.py", "c.py"])
    assert refusal(memory.writer.submit_intent, "p", more).code == "payload_too_large"

    done = memory.roll_back(str(first.version), reason="back", project="p")

    assert [(found.change, found.item) for found in done.corrections] == [("restated", first.iri)]
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


def test_who_may_only_propose_a_kind_rolls_back_none_of_it(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n') as memory:
        first = memory.writer.submit_intent("p", intent())
        memory.writer.submit_intent("p", intent(type="convention", summary="Tabs"))
        memory.writer.acting_as("rita", "curator").submit_intent("p", intent(
            type="convention", summary="Spaces", asserted_by="rita"))  # fmt: skip

        error = refusal(memory.roll_back, str(first.version), reason="back", project="p")

        assert error.code == "policy_denied"
        assert summaries(memory) == ["Spaces", "the build needs Rust 1.80"]


@pytest.mark.parametrize(
    ("to", "reason", "says"),
    [("2999-01-01", "why", "not a moment in the past"), ("0", "  ", "recorded with its reason")],
)
def test_a_moment_to_come_and_a_missing_reason_are_refused(memory, to, reason, says):
    memory.writer.submit_intent("p", intent())

    error = refusal(memory.roll_back, to, reason=reason, project="p")

    assert error.code == "invalid_argument"
    assert says in error.detail


def test_the_beginning_is_a_moment_like_others(memory):
    memory.writer.submit_intent("p", intent())

    memory.roll_back("0", reason="a fresh start", project="p")

    assert active_contents(memory) == set()
    assert [each for each in memory.check("p").problems if each.severity == "violation"] == []


def test_what_came_while_it_was_looked_at_is_taken_back_too(memory, tmp_path):
    first = memory.writer.submit_intent("p", intent())
    memory.roll_back(str(first.version), reason="look", project="p", dry_run=True)
    with jidomem.open(tmp_path / "root") as other:
        late = other.writer.submit_intent("p", intent(summary="late"))

    done = memory.roll_back(str(first.version), reason="now", project="p")

    assert [found.item for found in done.corrections] == [late.iri]


def test_thousands_of_corrections_are_one_commit(memory):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_many("p", [intent(summary=f"noise {n}") for n in range(1500)])

    done = memory.roll_back(str(first.version), reason="an import", project="p")

    assert len(done.corrections) == 1500
    assert memory.reader.log("p", limit=1).rows[0]["commit"] == done.commit
    assert summaries(memory) == ["the build needs Rust 1.80"]


def test_a_rollback_says_what_it_did_in_plain_values_and_is_one(memory):
    first = memory.writer.submit_intent("p", decision(topic="store"))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    noise = memory.writer.submit_intent("p", intent(type="risk", summary="noise"))

    done = memory.roll_back(str(first.version), reason="back", project="p")

    marker, again = (found.by for found in done.corrections)
    restated = {"change": "restated", "item": first.iri, "type": "architectural_decision", "summary": "Use Oxigraph"}
    assert done.to_dict() == {
        "to": first.version.recorded_at,
        "session": done.session,
        "commit": done.commit,
        "version": str(done.version),
        "corrections": [
            {"change": "withdrawn", "item": noise.iri, "type": "risk", "summary": "noise", "by": marker},
            {**restated, "by": again},
        ],
    }
    for value, name in ((done, "to"), (done.corrections[0], "item")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, "otherwise")


def test_the_marker_and_the_session_of_a_rollback_say_why_by_whom_and_to_which_moment(memory):
    first = memory.writer.submit_intent("p", intent())
    noise = memory.writer.submit_intent("p", intent(summary="noise"))
    memory.writer.agent = "rita"

    done = memory.roll_back(first.version.recorded_at, reason="  an experiment ", project="p")

    told = memory.writer.restated("p", done.corrections[0].by)
    assert {name: told[name] for name in told if name not in ("iri", "timestamp")} == {
        "type": "deleted_marker",
        "summary": f"Rolled back to {first.version.recorded_at}: 1 withdrawn",
        "rationale": "an experiment",
        "applies_to_project": "https://jido.ai/projects/p",
        "asserted_by": "https://jido.ai/agents/rita",
        "asserted_in": done.session,
        "confidence": "high",
        "invalidates": [noise.iri],
    }
    assert done.session.startswith("https://jido.ai/sessions/recovery-")
    assert done.corrections[0].by.startswith("https://jido.ai/memory/")
    assert values_of(memory, done.session, "partOfProject") == ["<https://jido.ai/projects/p>"]
    assert values_of(memory, done.session, "hasPrimaryAgent") == ["<https://jido.ai/agents/rita>"]
    assert values_of(memory, f"{done.session}/events/1", "toStatus") == [jido("Closed")]
    assert values_of(memory, f"{done.session}/events/1", "toPhase") == []


def test_what_is_said_again_says_so_with_the_reason_and_the_files_as_they_were(memory):
    blob = "a" * 40
    first = memory.writer.submit_intent("p", intent(about=["a.py"]), blobs={"a.py": blob})
    memory.writer.invalidate("p", first.iri, reason="wrong")
    memory.writer.agent = "rita"

    done = memory.roll_back(str(first.version), reason="it was right", project="p")

    (found,) = done.corrections
    told = memory.writer.restated("p", found.by)
    assert (told["revives"], told["reason"]) == ([first.iri], "it was right")
    assert told["asserted_by"] == "https://jido.ai/agents/architect"
    assert values_of(memory, found.by, "settledBy") == ["<https://jido.ai/agents/rita>"]
    assert values_of(memory, found.by, "aboutBlob") == [f'"{blob} a.py"']


def test_a_memory_that_was_not_active_at_the_moment_is_not_restated(memory):
    writer = memory.writer
    ended = writer.submit_intent("p", intent(summary="ended before"))
    over = writer.submit_intent("p", intent(summary="over it", supersedes=[ended.iri]))
    gone = writer.submit_intent("p", intent(summary="withdrawn before"))
    marker = writer.invalidate("p", gone.iri, reason="wrong")
    waiting = writer.submit_intent("p", intent(summary="only proposed"), propose=True)
    then = memory.catch_up("p")
    before = active_contents(memory)
    again = writer.undo("p", ended.iri, reason="it was right")  # supersedes what took its place
    brought = writer.undo("p", gone.iri, reason="it was right")  # and this the marker
    settled = writer.confirm("p", waiting.iri)

    done = memory.roll_back(str(then), reason="back", project="p")

    assert active_contents(memory) == before
    assert {found.item for found in done.corrections if found.change == "withdrawn"} == {
        again.iri, brought.iri, settled.iri,
    }  # fmt: skip
    assert [found.item for found in done.corrections if found.change == "restated"] == [over.iri]
    assert memory.reader.get_memory("p", marker.iri)["status"] == "superseded"


def test_what_came_and_ended_since_is_left_ended(memory):
    first = memory.writer.submit_intent("p", intent())
    passing = memory.writer.submit_intent("p", intent(summary="passing"))
    memory.writer.invalidate("p", passing.iri, reason="wrong")

    done = memory.roll_back(str(first.version), reason="back", project="p")

    assert (done.corrections, done.commit, done.session) == ((), None, None)


def test_what_is_said_again_stands_beside_what_stayed_and_beside_what_took_the_others_place(memory):
    def stored(name, **fields):
        return memory.writer.submit_intent("p", decision(topic="store", summary=f"Use {name}", about=[name], **fields))

    first = stored("a")
    second = stored("b", coexists_with=[first.iri])
    third = stored("c", coexists_with=[first.iri, second.iri])
    memory.writer.invalidate("p", second.iri, reason="wrong")

    done = memory.roll_back(str(third.version), reason="it was right", project="p")

    (found,) = done.corrections
    assert values_of(memory, found.by, "coexistsWith") == sorted(f"<{item.iri}>" for item in (first, third))
    assert violations(memory) == []


def test_what_is_lost_is_told_by_its_kind_alone(memory):
    first = memory.writer.submit_intent("p", intent(type="risk", summary="the key is hunter2"))
    memory.writer.invalidate("p", first.iri, reason="wrong")
    memory.keeper.redact(memory.keeper.plan("p", first.iri), agent="user", reason="a secret")
    noise = memory.writer.submit_intent("p", intent(summary="noise"))

    done = memory.roll_back(str(first.version), reason="back", project="p")

    lost = next(found for found in done.corrections if found.change == "lost")
    assert (lost.item, lost.type, lost.summary, lost.by) == (first.iri, "risk", None, None)
    assert [found.item for found in done.corrections if found.change == "withdrawn"] == [noise.iri]


def test_who_may_only_propose_what_is_to_be_said_again_is_told_why_and_whom_to_ask(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n', agent="bob") as memory:
        tabs = memory.writer.acting_as("rita", "curator").submit_intent("p", intent(
            type="convention", summary="Tabs", asserted_by="rita"))  # fmt: skip
        memory.writer.acting_as("rita", "curator").invalidate("p", tabs.iri, reason="wrong")

        error = refusal(memory.roll_back, str(tabs.version), reason="back", project="p")

        assert error.detail.startswith("bob may not roll a memory back: ")
        assert "may only propose convention" in error.detail
        assert error.hint == "ask a curator, listed by: jidomem access policy show"


def test_who_may_not_open_a_session_rolls_nothing_back(memory):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="noise"))
    memory.writer.change_policy("p", [PolicyChange(kind="session", allows="deny")])
    before = triples_of(memory)

    error = refusal(memory.roll_back, str(first.version), reason="back", project="p")

    assert (error.code, "may not write a session" in error.detail) == ("policy_denied", True)
    assert triples_of(memory) == before


def test_who_rolls_back_without_being_a_curator_is_told_what_is_refused(tmp_path):
    with open_with(tmp_path, '[agents.rita]\nrole = "Curator"\n', agent="bob") as memory:
        first = memory.writer.submit_intent("p", intent())

        error = refusal(memory.roll_back, str(first.version), reason="back", project="p")

        assert error.detail == "bob, an Implementer, may not roll a memory back"


def test_a_reason_that_is_a_secret_is_refused_and_nothing_kept(memory):
    first = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="noise"))
    before = triples_of(memory)

    error = refusal(memory.roll_back, str(first.version), reason=SECRET, project="p")

    assert (codes(error), SECRET in str(error.to_dict())) == (["policy_denied"], False)
    assert triples_of(memory) == before


def test_what_is_said_again_does_not_end_again_what_it_had_ended(memory):
    old, wrong = (memory.writer.submit_intent("p", intent(summary=text)) for text in ("one", "two"))
    ending = memory.writer.submit_intent(
        "p", intent(type="incident", summary="it broke", supersedes=[old.iri], invalidates=[wrong.iri])
    )
    memory.writer.invalidate("p", ending.iri, reason="it did not")

    done = memory.roll_back(str(ending.version), reason="it did", project="p")

    told = memory.writer.restated("p", done.corrections[0].by)
    assert {"supersedes", "invalidates", "revives"} & told.keys() == {"revives"}
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
    with jidomem.open(tmp_path / "root") as memory:  # which reads the first from its index
        if revised:
            memory.writer.revise("p", first.iri, changes={"summary": "another"}, reason="wrong")
        else:
            memory.writer.invalidate("p", first.iri, reason="wrong")
        done = memory.roll_back(str(first.version), reason="it was right", project="p")
        before = files(tmp_path)

        again = memory.roll_back(str(first.version), reason="it was right", project="p")

    assert done.corrections[-1].change == "restated"
    assert (again.corrections, again.commit) == ((), None)
    assert files(tmp_path) == before


def test_a_memory_that_a_rollback_restates_keeps_its_date(memory):
    old = memory.writer.submit_intent("p", decision(timestamp="2020-03-04"))
    memory.writer.invalidate("p", old.iri, reason="wrong")

    (restated,) = memory.roll_back(old.version.recorded_at, reason="it was right", project="p").corrections

    assert memory.writer.restated("p", restated.by)["timestamp"][:10] == "2020-03-04"


def test_history_after_a_rollback_has_every_branch_of_the_lineage_in_order_of_time(memory):
    old = memory.writer.submit_intent("p", intent(summary="the port is 80"))
    beside = memory.writer.submit_intent("p", intent(summary="of no lineage here"))
    change = intent(summary="the port is 443", supersedes=[old.iri])
    proposed = memory.writer.submit_intent("p", change, propose=True).iri
    accepted = memory.writer.settle("p", proposed, "accept").iri
    memory.writer.invalidate("p", beside.iri, reason="wrong")
    later = memory.writer.remember("p", "noise").iri
    withdrawn, _, *restated = memory.roll_back(beside.version.recorded_at, reason="wrong", project="p").corrections
    (again,) = [each.by for each in restated if each.item == old.iri]

    histories = [memory.reader.history("p", item) for item in (old.iri, proposed, accepted, again)]

    assert {each.item for each in (withdrawn, _)} == {accepted, later}
    for rows in histories:
        assert [row["entry"] for row in rows] == [old.iri, proposed, accepted, withdrawn.by, again]
        assert [row["event"] for row in rows] == ["asserted", "proposed", "accepted", "withdrawn", "revived"]
