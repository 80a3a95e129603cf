"""The generated memories: accepted without change, of every kind, linked, and determined by the seed."""

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
def generated():
    return list(intents(NUMBER))


def test_every_memory_is_accepted_by_the_writer_in_order(tmp_path, generated):
    with jidomem.open(tmp_path / "root") as memory:
        outcomes = memory.writer.submit_many("bench", generated)

    assert [outcome for outcome in outcomes if isinstance(outcome, JidomemError)] == []
    assert Counter(outcome.status for outcome in outcomes) == {"asserted": NUMBER}
    assert [outcome.iri for outcome in outcomes] == [intent["iri"] for intent in generated]


def test_every_kind_is_generated_in_plausible_shares(generated):
    kinds = Counter(intent["type"] for intent in generated)

    assert set(vocab.WRITER_TYPES) <= set(kinds)
    assert all(kinds[kind] > NUMBER / 100 for kind in vocab.WRITER_TYPES)
    assert kinds["task"] + kinds["fact"] < NUMBER * 0.6


def test_about_a_quarter_supersede_or_withdraw_an_earlier_memory_each_once(generated):
    ended = [
        other for intent in generated for field in ("supersedes", "invalidates") for other in intent.get(field, [])
    ]
    positions = {intent["iri"]: number for number, intent in enumerate(generated)}

    assert 0.2 < len(ended) / NUMBER < 0.3
    assert len(set(ended)) == len(ended)
    assert all(
        positions[other] < positions[intent["iri"]] for intent in generated for other in intent.get("supersedes", [])
    )


def test_tasks_have_dependencies_and_errors_have_causes_and_lessons(generated):
    links = Counter(triple[0] for intent in generated for triple in intent.get("extra_triples", []))
    statuses = Counter((intent["type"], intent["status"]) for intent in generated if "status" in intent)

    assert min(links[f"jido:{name}"] for name in ("dependsOn", "blockedBy", "hasRootCause", "producedLesson")) > 10
    assert min(statuses["task", "Completed"], statuses["error", "Resolved"], statuses["task", "Blocked"]) > 10


def test_the_evidence_is_texts_addresses_and_memories(generated):
    evidence = [entry for intent in generated for entry in intent.get("evidence", [])]
    memories = [entry for entry in evidence if entry.startswith("https://jido.ai/memory/")]
    addresses = [entry for entry in evidence if entry.startswith("https://git.")]

    assert min(len(memories), len(addresses), len(evidence) - len(memories) - len(addresses)) > NUMBER / 20


def test_sessions_hold_20_to_200_memories_of_several_agents(generated):
    sizes = Counter(intent["asserted_in"] for intent in generated)
    working = {intent["asserted_in"] for intent in generated[-300:]}
    agents = {(intent["asserted_in"], intent["asserted_by"]) for intent in generated}

    assert all(20 <= size <= 200 for session, size in sizes.items() if session not in working)
    assert len(agents) > 1.5 * len(sizes)


def test_memories_are_about_few_files_often_and_many_files_seldom(generated):
    files = Counter(path for intent in generated for path in intent.get("about", []))

    assert sum(number for _, number in files.most_common(20)) > sum(files.values()) / 5
    assert sum(1 for number in files.values() if number <= 5) > len(files) / 3
    assert len({file_name(rank) for rank in range(50_000)}) == 50_000


def test_a_seed_determines_the_memories_and_a_longer_run_begins_with_them(generated):
    assert list(intents(500)) == generated[:500]
    assert list(islice(intents(10**9), 500)) == generated[:500]
    assert [i["summary"] for i in intents(50, seed=8)] != [i["summary"] for i in generated[:50]]


def test_the_generate_command_prints_one_intent_per_line(generated):
    command = [sys.executable, "-m", "bench.generate", "20", "--project", "bench"]
    root = Path(__file__).parent.parent.parent

    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)

    assert [json.loads(line) for line in result.stdout.splitlines()] == generated[:20]


def test_a_root_built_without_validation_has_the_files_of_the_writer(tmp_path):
    for validated in (True, False):
        nonces = count()
        load.build(
            tmp_path / str(validated), 800, validated=validated, nonce=lambda n=nonces: next(n).to_bytes(32, "big")
        )

    assert len(files(tmp_path / "True" / "projects")) > 10
    assert files(tmp_path / "False" / "projects") == files(tmp_path / "True" / "projects")


def test_a_root_built_without_validation_has_all_memories_across_snapshots(tmp_path, monkeypatch):
    monkeypatch.setattr(group_commit, "VIEW_TRIPLES", 3_000)
    load.build(tmp_path, 600, validated=False)

    with jidomem.open(tmp_path, project=load.PROJECT) as memory:
        assert len(memory.reader.ask("timeline", project=load.PROJECT, include_inactive=True)) == 600


def test_a_loaded_root_has_the_dates_of_its_memories_and_its_copy_is_writable(tmp_path, generated):
    load.build(tmp_path / "root", 200)
    before = {path.name for path in (tmp_path / "root").rglob("*.ttl")}

    copy = load.copy(tmp_path / "root", tmp_path / "copy")
    with jidomem.open(copy) as memory:
        memory.writer.submit_intent(load.PROJECT, generated[200])
        later_tasks = memory.reader.ask("open-tasks", project=load.PROJECT, as_of=generated[200]["timestamp"])
        earlier_tasks = memory.reader.ask("open-tasks", project=load.PROJECT, as_of=generated[0]["timestamp"])

    assert {path.name for path in (tmp_path / "root").rglob("*.ttl")} == before
    assert len(later_tasks) > 0 == len(earlier_tasks)
