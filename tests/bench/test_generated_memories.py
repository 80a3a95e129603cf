"""The generated memories: accepted as they stand, of every kind, connected, and the same for the same seed."""

import json
import subprocess
import sys
from collections import Counter
from itertools import count, islice
from pathlib import Path

import pytest
from conftest import files

import jidomem
from bench import load
from bench.generate import file_name, intents
from jidomem.errors import JidomemError
from jidomem.rdf import vocab
from jidomem.write import group_commit

NUMBER = 2_000


@pytest.fixture(scope="module")
def made():
    return list(intents(NUMBER))


def test_every_memory_is_accepted_by_the_writer_in_order(tmp_path, made):
    with jidomem.open(tmp_path / "root") as memory:
        outcomes = memory.writer.submit_many("bench", made)

    assert [outcome for outcome in outcomes if isinstance(outcome, JidomemError)] == []
    assert Counter(outcome.status for outcome in outcomes) == {"asserted": NUMBER}
    assert [outcome.iri for outcome in outcomes] == [intent["iri"] for intent in made]


def test_every_kind_an_agent_writes_is_there_in_plausible_shares(made):
    kinds = Counter(intent["type"] for intent in made)

    assert set(vocab.WRITER_TYPES) <= set(kinds)
    assert all(kinds[kind] > NUMBER / 100 for kind in vocab.WRITER_TYPES)
    assert kinds["task"] + kinds["fact"] < NUMBER * 0.6


def test_about_a_quarter_end_an_earlier_memory_and_none_is_ended_twice(made):
    ended = [other for intent in made for field in ("supersedes", "invalidates") for other in intent.get(field, [])]
    before = {intent["iri"]: number for number, intent in enumerate(made)}

    assert 0.2 < len(ended) / NUMBER < 0.3
    assert len(set(ended)) == len(ended)
    assert all(before[other] < before[intent["iri"]] for intent in made for other in intent.get("supersedes", []))


def test_tasks_depend_on_tasks_and_resolved_errors_name_their_cause_and_lesson(made):
    links = Counter(triple[0] for intent in made for triple in intent.get("extra_triples", []))
    statuses = Counter((intent["type"], intent["status"]) for intent in made if "status" in intent)

    assert min(links[f"jido:{name}"] for name in ("dependsOn", "blockedBy", "hasRootCause", "producedLesson")) > 10
    assert min(statuses["task", "Completed"], statuses["error", "Resolved"], statuses["task", "Blocked"]) > 10


def test_memories_rest_on_texts_addresses_and_other_memories(made):
    evidence = [entry for intent in made for entry in intent.get("evidence", [])]
    memories = [entry for entry in evidence if entry.startswith("https://jido.ai/memory/")]
    addresses = [entry for entry in evidence if entry.startswith("https://git.")]

    assert min(len(memories), len(addresses), len(evidence) - len(memories) - len(addresses)) > NUMBER / 20


def test_sessions_hold_20_to_200_memories_of_several_agents(made):
    sizes = Counter(intent["asserted_in"] for intent in made)
    working = {intent["asserted_in"] for intent in made[-300:]}
    agents = {(intent["asserted_in"], intent["asserted_by"]) for intent in made}

    assert all(20 <= size <= 200 for session, size in sizes.items() if session not in working)
    assert len(agents) > 1.5 * len(sizes)


def test_a_few_files_are_spoken_of_often_and_many_seldom(made):
    files = Counter(path for intent in made for path in intent.get("about", []))

    assert sum(number for _, number in files.most_common(20)) > sum(files.values()) / 5
    assert sum(1 for number in files.values() if number <= 5) > len(files) / 3
    assert len({file_name(rank) for rank in range(50_000)}) == 50_000


def test_the_same_seed_gives_the_same_memories_and_more_begin_with_the_same(made):
    assert list(intents(500)) == made[:500]
    assert list(islice(intents(10**9), 500)) == made[:500]
    assert [i["summary"] for i in intents(50, seed=8)] != [i["summary"] for i in made[:50]]


def test_the_command_prints_one_intent_a_line(made):
    command = [sys.executable, "-m", "bench.generate", "20", "--project", "bench"]
    root = Path(__file__).parent.parent.parent

    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)

    assert [json.loads(line) for line in done.stdout.splitlines()] == made[:20]


def test_a_root_built_unjudged_has_the_bytes_the_writer_would_have_written(tmp_path):
    for judged in (True, False):
        nonces = count()
        load.build(tmp_path / str(judged), 1_800, judged=judged, nonce=lambda: next(nonces).to_bytes(32, "big"))  # noqa: B023

    assert len(files(tmp_path / "True" / "projects")) > 20
    assert files(tmp_path / "False" / "projects") == files(tmp_path / "True" / "projects")


def test_memories_of_a_root_built_unjudged_may_name_others_of_an_earlier_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(group_commit, "VIEW_TRIPLES", 5_000)
    load.build(tmp_path, 1_000, judged=False)

    with jidomem.open(tmp_path, project=load.PROJECT) as memory:
        assert len(memory.reader.ask("timeline", project=load.PROJECT, include_inactive=True)) == 1_000


def test_a_loaded_root_is_as_old_as_what_is_said_in_it_and_its_copy_may_be_written_to(tmp_path, made):
    load.build(tmp_path / "root", 200)
    before = {path.name for path in (tmp_path / "root").rglob("*.ttl")}

    copy = load.copy(tmp_path / "root", tmp_path / "copy")
    with jidomem.open(copy) as memory:
        memory.writer.submit_intent(load.PROJECT, made[200])
        then = memory.reader.ask("open-tasks", project=load.PROJECT, as_of=made[200]["timestamp"])
        earlier = memory.reader.ask("open-tasks", project=load.PROJECT, as_of=made[0]["timestamp"])

    assert {path.name for path in (tmp_path / "root").rglob("*.ttl")} == before
    assert len(then) > 0 == len(earlier)
