"""Writers are killed at any moment and write side by side: what was acknowledged is there, and nothing is broken."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from submitter import proposal

import jidomem
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import graph_iri, jido

SCRIPT = Path(__file__).with_name("submitter.py")
HANDS = Path(__file__).with_name("hands.py")
STREAM = Stream("p")
KILLS = 16
WRITERS, WRITES = 8, 60
AT_ONCE = 2


def start(root, name, number=10**6, threads=1, first=0):
    command = [sys.executable, str(SCRIPT), str(root), name, str(number), str(threads), str(first)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def said(output):
    """The keys sent and what was acknowledged for each; a line cut short by the kill was not said."""
    lines = [line.split() for line in output.decode().split("\n")[:-1]]
    return {line[1] for line in lines if line[0] == "send"}, {line[1]: line[2] for line in lines if line[0] == "kept"}


def by_key(memory):
    """The memories that are there, by the key they were submitted with; each is whole and there once."""
    memory.catch_up("p")
    rows = list(memory.index.triples(graph_iri("p"), None, jido("idempotencyKey"), None))
    found = {key[1:-1]: item[1:-1] for item, _, key in rows}
    assert len(found) == len(rows)
    whole = {item[1:-1] for item, _, _ in memory.index.triples(graph_iri("p"), None, jido("recordedIn"), None)}
    assert set(found.values()) <= whole
    return found


def test_what_was_acknowledged_survives_any_kill(tmp_path, scale):  # C075 C077 C027
    root, chance, kills = tmp_path / "root", random.Random(20261121), KILLS * scale
    sent, kept, killed, busy = set(), {}, 0, []
    while killed < kills:
        while len(busy) < min(AT_ONCE, kills - killed):
            worker = start(root, f"w{killed}-{len(busy)}")
            begun = chance.random() < 0.9  # else it is killed while it starts
            head = worker.stdout.readline() if begun else b""
            busy.append((worker, head, time.monotonic() + chance.uniform(0, 0.12)))
        worker, head, until = busy.pop(0)
        time.sleep(max(0.0, until - time.monotonic()))
        worker.kill()
        keys, acknowledged = said(head + worker.stdout.read())
        worker.stdout.close()
        assert worker.wait() == -9
        killed += 1
        sent |= keys
        kept |= acknowledged
    assert len(sent) > len(kept) > kills  # some were killed between the asking and the answer

    with jidomem.open(root) as memory:
        assert memory.journal.verify(STREAM) == ()
        found = by_key(memory)
        assert kept.items() <= found.items()
        assert found.keys() <= sent
        receipts = {key: memory.writer.submit_intent("p", proposal(key)) for key in sorted(sent - kept.keys())}
        for key, receipt in receipts.items():
            assert receipt.iri == found.get(key, receipt.iri)  # an unknown outcome is settled by sending it again
        assert by_key(memory).keys() == sent
    with jidomem.open(root) as healed:
        assert by_key(healed).keys() == sent
        fresh = healed.writer.remember("p", "after all that")
        assert healed.reader.get_memory("p", fresh.iri)["status"] == "active"
        assert healed.journal.verify(STREAM) == ()


def finished(*workers):
    """What workers that were let run to their end acknowledged."""
    kept = {}
    for worker in workers:
        output = worker.communicate(timeout=80)[0]
        assert worker.returncode == 0
        kept |= said(output)[1]
    return kept


def test_two_processes_writing_at_once_lose_nothing(tmp_path):  # C023
    kept = finished(*[start(tmp_path / "root", name, 60) for name in ("a", "b")])
    assert len(kept) >= 120
    with jidomem.open(tmp_path / "root") as memory:
        assert by_key(memory) == kept
        assert memory.journal.verify(STREAM) == ()


def test_threads_of_two_processes_and_a_reader_lose_nothing(tmp_path):  # C023 C020
    root = tmp_path / "root"
    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", proposal("first"))
        workers = [start(root, name, 15, 4) for name in ("a", "b")]
        seen = {"first"}
        while any(worker.poll() is None for worker in workers):
            now = by_key(memory).keys()
            assert seen <= now  # what was seen once is not taken back
            seen = set(now)
            time.sleep(0.05)
        kept = finished(*workers)
        assert len(kept) >= 120
        assert kept.items() <= by_key(memory).items()
        assert memory.journal.verify(STREAM) == ()
        assert len(memory.journal.head(STREAM).heads) == 1  # one line of commits, no branches


def test_eight_processes_killed_again_and_again_lose_and_double_nothing(tmp_path, scale):  # C023 C075
    """Each writer is killed at random and goes on from what was not acknowledged, until all it has to say is said."""
    root, chance, number, kept, kills = tmp_path / "root", random.Random(8), WRITES * scale, {}, 0
    while kills < WRITERS * scale:  # a quick machine says it all before it is killed, and then gets more to say
        left = {f"w{n}": len(kept) // WRITERS for n in range(WRITERS)}
        while left:
            running = {name: start(root, name, number, first=first) for name, first in left.items()}
            heads = {name: worker.stdout.readline() for name, worker in running.items()}
            for worker in chance.sample(list(running.values()), (len(running) + 1) // 2):
                time.sleep(chance.uniform(0, 0.1))
                if kills < 2 * WRITERS * scale:
                    worker.kill()
                    kills += worker.wait() == -9
            for name, worker in running.items():
                kept |= said(heads[name] + worker.communicate(timeout=300)[0])[1]
                left[name] = next((n for n in range(number) if f"{name}.0-{n}" not in kept), number)
            left = {name: first for name, first in left.items() if first < number}
        number += WRITES
    with jidomem.open(root) as memory:
        assert by_key(memory) == kept
        assert len(kept) == WRITERS * (number - WRITES)
        assert memory.journal.verify(STREAM) == ()


def keep_house(root, role):
    """A process that does *role* over and over; it has begun when this returns."""
    worker = subprocess.Popen(
        [sys.executable, str(HANDS), str(root), role], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert worker.stdout.readline() == "begun\n"
    return worker


@pytest.mark.parametrize("role", ["seal", "open", "reindex"])
def test_whoever_keeps_house_may_be_killed_at_any_moment_beside_a_writer(role, tmp_path, scale):  # C023 C075
    root, chance = tmp_path / "root", random.Random(role)
    with jidomem.open(root) as memory:
        for n in range(12):  # enough that the index is kept on disk
            memory.writer.remember("p", f"log {n}: " + "x" * 200_000)
    stream, until = root / "projects" / "p" / "memory", time.monotonic() + 120

    def is_packed():
        return role != "seal" or any(stream.glob("pack-*.ttl"))

    with start(root, "beside", 200 * scale) as writer:
        for turn in reversed(range(5 * scale)):
            worker = keep_house(root, role)
            time.sleep(chance.uniform(0, 0.5))
            while turn == 0 and not is_packed() and time.monotonic() < until:  # a machine with much to do takes longer
                time.sleep(0.01)
            worker.kill()
            assert worker.communicate()[1] == ""
            assert worker.returncode == -9  # until then it had nothing to complain of
        kept = finished(writer)
    assert is_packed()

    for _ in range(2):  # healed by whoever opens it, and sound for the next
        with jidomem.open(root) as memory:
            assert by_key(memory) == kept
            assert memory.follower.on_disk
            assert memory.journal.verify(STREAM) == ()
