"""Concurrent writers killed at any moment: acknowledged memories are stored, and the journal is intact."""

import random
import time

import maintenance
import pytest
import submitter
from forks import Fork
from submitter import proposal

import jidomem
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import graph_iri, jido

STREAM = Stream("p")
KILLS = 10
WRITERS, WRITES = 8, 40
AT_ONCE = 2


def start(root, name, number=10**6, threads=1, first=0):
    return Fork(submitter.main, root, name, number, threads, first)


def parse_output(output):
    """The keys sent and the acknowledged memory of each; a line truncated by the kill does not count."""
    lines = [line.split() for line in output.decode().split("\n")[:-1]]
    return {line[1] for line in lines if line[0] == "send"}, {line[1]: line[2] for line in lines if line[0] == "stored"}


def by_key(memory):
    """The stored memories by idempotency key; each is complete and stored once."""
    memory.catch_up("p")
    rows = list(memory.index.triples(graph_iri("p"), None, jido("idempotencyKey"), None))
    memories = {key[1:-1]: item[1:-1] for item, _, key in rows}
    assert len(memories) == len(rows)
    complete = {item[1:-1] for item, _, _ in memory.index.triples(graph_iri("p"), None, jido("recordedIn"), None)}
    assert set(memories.values()) <= complete
    return memories


def test_acknowledged_memories_survive_a_kill_at_any_moment(tmp_path, scale):  # C075 C077 C027
    root, chance, kills = tmp_path / "root", random.Random(20261121), KILLS * scale
    sent, acknowledged, killed, busy = set(), {}, 0, []
    while killed < kills:
        while len(busy) < min(AT_ONCE, kills - killed):
            busy.append(start(root, f"w{killed}-{len(busy)}"))
        worker = busy.pop(0)
        lines = chance.randint(1, 20) if chance.random() < 0.9 else 0  # else it may be killed while it starts
        head = b"".join(worker.output.readline() for _ in range(lines))
        time.sleep(chance.uniform(0, 0.03))
        worker.kill()
        rest, code = worker.end()
        keys, confirmed = parse_output(head + rest)
        assert code == -9
        killed += 1
        sent |= keys
        acknowledged |= confirmed
    assert len(sent) > len(acknowledged) > kills  # some were killed between the asking and the answer

    with jidomem.open(root) as memory:
        assert memory.journal.verify(STREAM) == ()
        memories = by_key(memory)
        assert acknowledged.items() <= memories.items()
        assert memories.keys() <= sent
        receipts = {key: memory.writer.submit_intent("p", proposal(key)) for key in sorted(sent - acknowledged.keys())}
        for key, receipt in receipts.items():
            assert receipt.iri == memories.get(key, receipt.iri)  # an unknown outcome is settled by sending it again
        assert by_key(memory).keys() == sent
    with jidomem.open(root) as reopened:
        assert by_key(reopened).keys() == sent
        fresh = reopened.writer.remember("p", "after all that")
        assert reopened.reader.get_memory("p", fresh.iri)["status"] == "active"
        assert reopened.journal.verify(STREAM) == ()


def finished(*workers):
    """The acknowledged memories of workers that ran to their end."""
    acknowledged = {}
    for worker in workers:
        output, code = worker.end()
        assert code == 0, output
        acknowledged |= parse_output(output)[1]
    return acknowledged


def test_two_concurrent_processes_store_all_memories(tmp_path):  # C023
    acknowledged = finished(*[start(tmp_path / "root", name, 60) for name in ("a", "b")])
    assert len(acknowledged) >= 120
    with jidomem.open(tmp_path / "root") as memory:
        assert by_key(memory) == acknowledged
        assert memory.journal.verify(STREAM) == ()


def test_threads_of_two_processes_beside_a_reader_store_all_memories(tmp_path):  # C023 C020
    root = tmp_path / "root"
    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", proposal("first"))
        workers = [start(root, name, 15, 4) for name in ("a", "b")]
        seen = {"first"}
        while any(worker.is_running() for worker in workers):
            now = by_key(memory).keys()
            assert seen <= now  # what was seen once is not taken back
            seen = set(now)
            time.sleep(0.05)
        acknowledged = finished(*workers)
        assert len(acknowledged) >= 120
        assert acknowledged.items() <= by_key(memory).items()
        assert memory.journal.verify(STREAM) == ()
        assert len(memory.journal.head(STREAM).heads) == 1  # one line of commits, no branches


def test_eight_repeatedly_killed_processes_store_each_memory_once(tmp_path, scale):  # C023 C075
    """Each writer is killed at random and goes on from what was not acknowledged, until all it has to say is said."""
    root, chance, number, acknowledged, kills = tmp_path / "root", random.Random(8), WRITES * scale, {}, 0
    while kills < WRITERS * scale:  # a quick machine says it all before it is killed, and then gets more to say
        remaining = {f"w{n}": len(acknowledged) // WRITERS for n in range(WRITERS)}
        while remaining:
            running = {name: start(root, name, number, first=first) for name, first in remaining.items()}
            heads = {name: worker.output.readline() for name, worker in running.items()}
            for worker in chance.sample(list(running.values()), (len(running) + 1) // 2):
                time.sleep(chance.uniform(0, 0.1))
                if kills < 2 * WRITERS * scale:
                    worker.kill()
            for name, worker in running.items():
                rest, code = worker.end()
                kills += code == -9
                acknowledged |= parse_output(heads[name] + rest)[1]
                remaining[name] = next((n for n in range(number) if f"{name}.0-{n}" not in acknowledged), number)
            remaining = {name: first for name, first in remaining.items() if first < number}
        number += WRITES
    with jidomem.open(root) as memory:
        assert by_key(memory) == acknowledged
        assert len(acknowledged) == WRITERS * (number - WRITES)
        assert memory.journal.verify(STREAM) == ()


def start_maintenance(root, role):
    """Start a process that repeats *role*; it has begun when this returns."""
    worker = Fork(maintenance.main, root, role)
    assert worker.output.readline() == b"begun\n"
    return worker


@pytest.mark.parametrize("role", ["seal", "open", "reindex"])
def test_a_maintenance_process_killed_beside_a_writer_loses_nothing(role, tmp_path, scale):  # C023 C075
    root, chance = tmp_path / "root", random.Random(role)
    with jidomem.open(root) as memory:
        for n in range(12):  # enough that the index is kept on disk
            memory.writer.remember("p", f"log {n}: " + "x" * 200_000)
    stream, until = root / "projects" / "p" / "memory", time.monotonic() + 120

    def is_packed():
        return role != "seal" or any(stream.glob("pack-*.ttl"))

    writer = start(root, "beside", 200 * scale)
    for turn in reversed(range(3 * scale)):
        worker = start_maintenance(root, role)
        time.sleep(chance.uniform(0, 0.5))
        while turn == 0 and not is_packed() and time.monotonic() < until:  # a machine with much to do takes longer
            time.sleep(0.01)
        worker.kill()
        assert worker.end() == (b"", -9)  # until then it had nothing to complain of
    acknowledged = finished(writer)
    assert is_packed()

    for _ in range(2):  # healed by whoever opens it, and sound for the next
        with jidomem.open(root) as memory:
            assert by_key(memory) == acknowledged
            assert memory.follower.on_disk
            assert memory.journal.verify(STREAM) == ()
