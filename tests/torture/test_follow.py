"""A reader beside writers: it sees complete commits in order, and acknowledged memories at once."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import jidomem
from jidomem.rdf.vocab import graph_iri, jido

PAIR_WRITER = Path(__file__).with_name("pair_writer.py")
COMMITS = 60


def writer(root, name, number):
    command = [sys.executable, str(PAIR_WRITER), str(root), name, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def halves(memory):
    """The stored summaries; each commit of `pair_writer.py` has `... left` and `... right`."""
    memory.catch_up("p")
    return {row[2][1:-1] for row in memory.index.triples(graph_iri("p"), None, jido("summary"), None)}


def test_a_reader_sees_complete_commits_and_every_acknowledged_memory_at_once(tmp_path, scale):  # C020 E050
    root = tmp_path / "root"
    with jidomem.open(root) as memory, ExitStack() as stack:
        memory.writer.remember("p", "the first")
        seen, acknowledged = set(), 0
        workers = [stack.enter_context(writer(root, name, COMMITS * scale)) for name in ("a", "b")]
        while any(worker.poll() is None for worker in workers):
            for worker in workers:
                line = worker.stdout.readline().split()
                if line:
                    acknowledged += 1
                    for iri in line:  # the receipt was given: its memory is there, whoever asks
                        assert memory.reader.get_memory("p", iri)["status"] == "active"
            now = halves(memory)
            assert seen <= now  # what was seen is not taken back
            pairs = {text.rsplit(" ", 1)[0] for text in now - {"the first"}}
            assert now - {"the first"} == {f"{pair} {half}" for pair in pairs for half in ("left", "right")}
            seen = now
        for worker in workers:
            acknowledged += sum(1 for _ in worker.stdout)
            assert worker.wait() == 0
        assert acknowledged == 2 * COMMITS * scale
        assert len(halves(memory)) == 1 + 2 * acknowledged
