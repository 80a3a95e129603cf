"""Machines that write to one root at once: compare-and-append keeps the invariants, and a blind append breaks them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jidomem
from jidomem.journal.journal import Stream

COMPETITOR = Path(__file__).parent / "competitor.py"


def compete(address, tmp_path, monkeypatch, rounds, *options):
    """Let two machines decide at the same time; return the topic and the receipt of each decision."""
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "judge"))
    with jidomem.open(address, project="p") as memory:
        memory.writer.remember("p", "two machines write here")
    running = [
        subprocess.Popen(
            [sys.executable, str(COMPETITOR), address, str(tmp_path / name), name, str(rounds), *options],
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
    outputs = [process.communicate()[0].splitlines() for process in running]
    return [tuple(json.loads(line)) for lines in outputs for line in lines]


def violations_of(address, tmp_path, monkeypatch):
    """The broken invariants of the memory at *address*, as a third machine reads it, and its decisions."""
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "judge"))
    violations = []
    with jidomem.open(address, project="p") as memory:
        stream = Stream("p")
        violations += [f"damage: {each.detail}" for each in memory.journal.verify(stream)]
        version = memory.catch_up("p")
        violations += [f"heads: {version}"] if len(version.heads) != 1 else []
        topics = {
            row["d"]: row["t"]
            for row in memory.reader.select("p", "SELECT ?d ?t { ?d <https://jido.ai/ontology#topic> ?t }")
        }
        active = Counter(topics[row["decision"]] for row in memory.reader.ask("decisions", project="p"))
        violations += [f"{topic} has {number} active decisions" for topic, number in active.items() if number != 1]
        violations += [f"conflict: {row['a']} {row['b']}" for row in memory.reader.ask("conflicts", project="p")]
        return violations, set(topics)


def test_two_machines_that_contest_five_topics_break_no_invariant(postgres, tmp_path, monkeypatch):
    address = postgres.address()
    acknowledged = compete(address, tmp_path, monkeypatch, 15)

    violations, stored = violations_of(address, tmp_path, monkeypatch)

    assert len({iri for _, iri in acknowledged}) == 30
    assert stored == {iri for _, iri in acknowledged}
    assert violations == []


def test_a_blind_append_breaks_the_invariant_of_one_active_decision(postgres, tmp_path, monkeypatch):
    address = postgres.address()
    acknowledged = compete(address, tmp_path, monkeypatch, 1, "blind")

    violations, stored = violations_of(address, tmp_path, monkeypatch)

    assert stored == {iri for _, iri in acknowledged}
    assert "index has 2 active decisions" in violations
    assert violations
