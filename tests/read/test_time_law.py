"""The law of time on a real root: as of t, every function answers as one on a journal that ends at t."""

import shutil
from random import Random

import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.errors import Conflict, InvalidRequest, NotFound, TooLarge
from jidomem.index import follower
from jidomem.rdf.terms import iri
from jidomem.read.derived import counts

LATER = "9999-12-31"
KINDS = ["fact", "assumption", "discovery", "decision", "task"]


def write_random(memory, seed, steps=14):
    """Write random memories, changes, withdrawals, sessions and code; return the memories."""
    random, items = Random(seed), []
    writer = memory.writer
    for step in range(steps):
        action = random.choice(["say", "say", "say", "revise", "withdraw", "undo", "session", "code"])
        pick = random.choice(items) if items else None
        try:
            if action == "say" or pick is None:
                kind = random.choice(KINDS)
                more = {"rationale": "so"} if kind == "decision" else {}
                more |= {"evidence": [pick]} if pick and random.random() < 0.5 else {}
                more |= {"valid_until": "2026-12-01"} if random.random() < 0.3 else {}
                items.append(writer.submit_intent("p", intent(type=kind, summary=f"n {step}", **more)).iri)
            elif action == "revise":
                items.append(writer.revise("p", pick, changes={"summary": f"r {step}"}, reason="newer").iri)
            elif action == "undo":
                items.append(writer.undo("p", pick).iri)
            elif action == "withdraw":
                items.append(writer.invalidate("p", pick, reason="wrong").iri)
            elif action == "session":
                writer.start_session("p", f"s-{step}")
            else:
                rows = [(iri(f"urn:x:{step}"), iri("urn:p"), iri("urn:y"))]
                writer.append("p", "codebase", rows)
                if random.random() < 0.4:
                    writer.clear("p", "codebase")
        except (Conflict, InvalidRequest):  # it ended already, or not
            continue
    return items


def root_at(root, moment, folder):
    """Open a copy of a root whose journal ends at *moment*."""
    shutil.copytree(root, folder, ignore=shutil.ignore_patterns("index", "*.lock"))
    for file in folder.glob("projects/*/*/*.ttl"):
        recorded = file.read_text().split("jido:recordedAt ")[1].split('"')[1]
        if recorded > moment:
            file.unlink()
    return jidomem.open(folder, sources=fixed_sources())


def answer_or_missing(call, *args, **options):
    try:
        return call(*args, **options)
    except NotFound:
        return "not there"


def answers(memory, items, *moments, **options):
    """Return the answers of all functions."""
    reader, results = memory.reader, []
    for item in items:
        for valid in ({}, {"valid_at": "2026-12-24"}):
            for call in (reader.get_memory, reader.describe, reader.history, reader.why):
                results.append(answer_or_missing(call, "p", item, **options, **valid))
    text = "SELECT ?s ?p ?o WHERE { ?s ?p ?o FILTER(!STRSTARTS(STR(?s), STR(jido:))) } ORDER BY ?s ?p ?o"
    results.append(reader.select("p", f"PREFIX jido: <https://jido.ai/ontology#> {text}", **options))
    results += [
        reader.log("p", **options),
        counts(reader, "p", **options),
        counts(reader, "p", valid_at=LATER, **options),
    ]
    return results


@pytest.mark.parametrize("seed", range(3))
def test_every_function_as_of_a_moment_answers_as_the_memory_of_that_moment(seed, tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, sources=fixed_sources()) as memory:
        items = write_random(memory, seed)
        log = memory.reader.log("p").rows
        for row in log[:: max(len(log) // 4, 1)]:
            moment = memory.reader.moment("p", row["recorded_at"])
            with root_at(root, moment, tmp_path / f"then-{row['commit']}") as then:
                assert answers(memory, items, as_of=row["recorded_at"]) == answers(then, items)
                if row["graph"] == "context":
                    assert str(memory.reader.version("p", moment)) == str(then.catch_up("p")) == row["version"]
                    assert memory.reader.diff("p", "0", row["version"]) == then.reader.diff("p", "0")


def test_diffs_add_up_to_the_active_memories(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        write_random(memory, 7, steps=20)
        versions = [row["version"] for row in reversed(memory.reader.log("p").rows) if row["graph"] == "context"]
        middle = versions[len(versions) // 2]

        status = {row["item"]: row["after"] for row in memory.reader.diff("p", "0", middle)}
        for row in memory.reader.diff("p", middle):
            assert row["before"] == status.get(row["item"])
            assert (row["change"] == "added") == (row["before"] is None)
            status[row["item"]] = row["after"]
        known = {row["item"]: row["status"] for row in memory.reader.ask("timeline", project="p")}
    assert {item: state for item, state in status.items() if state in ("active", "withdrawal")} == known
    assert len(set(status.values())) > 1


def test_invalid_moments_and_versions_are_refused(memory):
    memory.writer.submit_intent("p", decision())

    with pytest.raises(NotFound, match="p has no version 7-0123456789ab"):
        memory.reader.diff("p", "7-0123456789ab")
    with pytest.raises(InvalidRequest, match="2027-01-01 is after 2026-01-01"):
        memory.reader.diff("p", "2027-01-01", "2026-01-01")
    with pytest.raises(InvalidRequest, match="'soon' is not a date or time"):
        memory.reader.diff("p", "soon")


def test_sparql_about_the_past_is_limited_by_the_size_of_the_journal(memory, monkeypatch):
    memory.writer.submit_intent("p", decision())
    monkeypatch.setattr(follower, "MAX_REPLAYED_BYTES", 1_000)

    with pytest.raises(TooLarge, match="more than 1,000 bytes") as refusal:
        memory.reader.run("p", "ASK {}", as_of=LATER)

    assert refusal.value.code == "result_too_large"
    assert memory.reader.run("p", "ASK { ?s ?p ?o }", as_of="2020-01-01").truth  # the ontology is always there
    assert memory.reader.run("p", "ASK {}").truth


def test_a_memory_is_not_found_outside_its_validity(memory):
    item = memory.writer.submit_intent("p", intent(valid_from="2026-12-20", valid_until="2027-01-07")).iri

    assert memory.reader.get_memory("p", item, valid_at="2026-12-20")["iri"] == item
    for outside in ("2026-12-19T23:59:59.999999Z", "2027-01-07"):
        with pytest.raises(NotFound, match="is not valid at") as refusal:
            memory.reader.get_memory("p", item, valid_at=outside)
        assert "from 2026-12-20T00:00:00.000000Z until 2027-01-07T00:00:00.000000Z" in refusal.value.hint


@pytest.mark.parametrize(
    ("valid_at", "status"), [("2026-12-01", "scheduled"), ("2026-12-20", "active"), ("2027-01-07", "expired")]
)
def test_with_inactive_memories_a_list_has_each_with_its_status_at_a_moment_of_the_world(memory, valid_at, status):
    frozen = memory.writer.submit_intent("p", intent(valid_from="2026-12-20", valid_until="2027-01-07")).iri
    memory.writer.submit_intent("p", intent(summary="the queue is empty"))
    asked = {"project": "p", "valid_at": valid_at, "include_inactive": True}

    rows = memory.reader.ask("timeline", **asked)
    first = memory.reader.ask_page("timeline", **asked, limit=1)
    second = memory.reader.ask_page("timeline", **asked, limit=1, cursor=first.cursor)
    facts = {row["fact"]: row.get("memory_status", "active") for row in memory.reader.ask("facts", **asked)}
    late = memory.reader.ask("timeline", project="p", valid_at=valid_at)

    assert {row["item"]: row["status"] for row in rows}[frozen] == facts[frozen] == status
    assert (len(facts), [*first.rows, *second.rows]) == (2, rows)
    assert [row["item"] == frozen for row in late].count(True) == (status == "active")
