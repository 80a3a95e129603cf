"""Machines that write to one root at once: compare-and-append keeps what must hold, and a blind append would not."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jidomem
from jidomem.journal.journal import Stream

COMPETITOR = Path(__file__).parent / "competitor.py"


def compete(address, tmp_path, monkeypatch, rounds, *more):
    """Let two machines decide at the same time; return what each was told it kept, by topic."""
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "judge"))
    with jidomem.open(address, project="p") as memory:
        memory.writer.remember("p", "two machines write here")
    running = [
        subprocess.Popen(
            [sys.executable, str(COMPETITOR), address, str(tmp_path / name), name, str(rounds), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("ana", "ben")
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate()[0].splitlines() for process in running]
    return [tuple(json.loads(line)) for lines in said for line in lines]


def broken(address, tmp_path, monkeypatch):
    """Say what does not hold of the memory at *address*, as a third machine finds it."""
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "judge"))
    found = []
    with jidomem.open(address, project="p") as memory:
        stream = Stream("p")
        found += [f"damage: {each.detail}" for each in memory.journal.verify(stream)]
        version = memory.catch_up("p")
        found += [f"heads: {version}"] if len(version.heads) != 1 else []
        topics = {
            row["d"]: row["t"]
            for row in memory.reader.select("p", "SELECT ?d ?t { ?d <https://jido.ai/ontology#topic> ?t }")
        }
        held = Counter(topics[row["decision"]] for row in memory.reader.ask("decisions", project="p"))
        found += [f"{topic} has {number} active decisions" for topic, number in held.items() if number != 1]
        found += [f"conflict: {row['a']} {row['b']}" for row in memory.reader.ask("conflicts", project="p")]
        return found, set(topics)


def test_two_machines_that_contest_five_topics_break_nothing(postgres, tmp_path, monkeypatch):
    address = postgres.address()
    kept = compete(address, tmp_path, monkeypatch, 15)

    found, there = broken(address, tmp_path, monkeypatch)

    assert len({iri for _, iri in kept}) == 30
    assert there == {iri for _, iri in kept}
    assert found == []


def test_a_blind_append_breaks_what_must_hold(postgres, tmp_path, monkeypatch):
    address = postgres.address()
    kept = compete(address, tmp_path, monkeypatch, 1, "blind")

    found, there = broken(address, tmp_path, monkeypatch)

    assert there == {iri for _, iri in kept}
    assert "index has 2 active decisions" in found
    assert found
