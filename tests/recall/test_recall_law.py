"""The law of time for recall: as of t it equals the recall on a journal that ends at t, with the same scores."""

import shutil
from random import Random

import pytest
from conftest import ToyEmbedder, fixed_sources, intent

import jidomem
from jidomem.errors import Conflict, InvalidRequest
from jidomem.records.entry import Entry, WriteRequest

WORDS = ["quagga", "zebra", "okapi", "lynx", "tapir", "index", "the", "store"]
KINDS = ["fact", "assumption", "discovery", "decision", "task", "risk"]
OPTIONS = [
    {},
    {"include_inactive": True},
    {"kinds": ["fact", "decision"], "about": ["src/a.py"]},
    {"valid_at": "2026-12-24", "agent": "ana"},
    {"since": "2026-11-21T08:00:06Z", "limit": 2},
    {"include_inactive": True, "about": ["src/a.py"], "limit": 3, "budget_tokens": 200},
    {"kinds": ["turn", "entry"], "session_id": "s"},
    {"kinds": ["entry", "fact"], "include_inactive": True, "limit": 20},
]


def write_random(memory, seed, steps=16):
    """Write random memories, revisions, withdrawals, undos, turns and entries."""
    random, items, writer = Random(seed), [], memory.writer
    for author in ("ana", "ben"):  # known from the start: a recall reports an unknown agent
        writer.submit_intent("p", intent(summary=f"lynx of {author}", asserted_by=author))
    for _ in range(steps):
        action = random.choice(["say", "say", "say", "revise", "withdraw", "undo", "settle", "talk", "note", "note"])
        pick = random.choice(items) if items else None
        text = " ".join(random.choices(WORDS, k=random.randrange(1, 6)))
        try:
            if action == "talk":
                memory.conversation("s").record(text, random.choice(WORDS), asked_by=random.choice(["ana", "ben"]))
            elif action == "note":
                labels = {"speaker": random.choice(["Ana", "Ben", "Zebra"]), "session": random.choice(["1", "2"])}
                options = {"id": random.choice("abcd"), "session_id": random.choice([None, "s"])}
                memory.entries.write(WriteRequest(Entry(agent_id="me", content=text, metadata=labels, **options)))
            elif action == "say" or pick is None:
                kind = random.choice(KINDS)
                more = {"rationale": random.choice(WORDS), "alternatives": ["tapir"]} if kind == "decision" else {}
                more |= {"evidence": [random.choice(WORDS)]} if random.random() < 0.5 else {}
                more |= {"valid_until": "2026-12-01"} if random.random() < 0.2 else {}
                more |= {"source_type": "ExternalDocumentSource"} if random.random() < 0.2 else {}
                more |= {"about": [random.choice(["src/a.py", "src/", "b.py"])]} if random.random() < 0.5 else {}
                author = random.choice(["ana", "ben"])
                items.append(writer.submit_intent("p", intent(type=kind, summary=text, asserted_by=author, **more)).iri)
            elif action == "revise":
                items.append(writer.revise("p", pick, changes={"summary": text}, reason="newer").iri)
            elif action == "undo":
                items.append(writer.undo("p", pick).iri)
            elif action == "settle":
                curator = writer.acting_as("rita", "curator")
                items.append(curator.settle("p", pick, random.choice(["accept", "reject"])).iri)
            else:
                items.append(writer.invalidate("p", pick, reason="wrong").iri)
        except (Conflict, InvalidRequest):  # the memory has ended already, or has not
            continue


def open_root(folder, by):
    """Open a root that recalls *by* words, or also by similarity; a recall waits for all vectors."""
    embedder = ToyEmbedder() if by == "likeness" else None
    memory = jidomem.open(folder, project="p", agent="me", sources=fixed_sources(), embedder=embedder)
    memory.embeds_for = 60.0
    return memory


def root_at(root, moment, folder, by):
    """Open a copy of a root whose journal ends at *moment*."""
    shutil.copytree(root / "projects", folder / "projects")
    for file in folder.glob("projects/*/*/*.ttl"):
        if file.read_text().split("jido:recordedAt ")[1].split('"')[1] > moment:
            file.unlink()
    return open_root(folder, by)


def answers(memory, **options):
    """Return the whole answers to some queries."""
    queries = ("quagga Zebra", "the", "the store index", "okapi lynx tapir quagga")
    return [
        memory.recall(query, explain=True, **{**more, **options}).to_dict() for query in queries for more in OPTIONS
    ]


@pytest.mark.parametrize("by", ["words", "likeness"])
def test_a_recall_as_of_a_moment_equals_the_recall_of_a_journal_cut_at_it(tmp_path, by):
    total = 0
    for seed in range(2):
        root = tmp_path / f"root{seed}"
        with open_root(root, by) as memory:
            write_random(memory, seed, 20)
            moments = sorted({str(commit.recorded_at) for stream in memory.journal.streams()
                              for commit in memory.journal.read(stream)})  # fmt: skip
            for moment in moments[2::6]:
                with root_at(root, moment, tmp_path / f"{seed} {moment}", by) as then:
                    expected = answers(then)
                assert answers(memory, as_of=moment) == expected
                total += sum(len(one["entries"]) for one in expected)
    assert total > 100
