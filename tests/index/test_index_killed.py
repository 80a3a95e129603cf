"""An index after kills of its processes at any moment: it opens, and equals the journal."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from index_world import add, index_triples, journal_triples, open_tail, small_limits

from jidomem.journal.journal import FileJournal

WORKER = Path(__file__).parent / "worker.py"


def kill_workers(root, actions, seconds):
    """Run a worker for each of *actions* concurrently, and kill each after *seconds* of work."""
    workers = [
        subprocess.Popen([sys.executable, WORKER, root, action], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for action in actions
    ]
    for worker in workers:
        assert worker.stdout.read(1) == b".", (worker.wait(), worker.stderr.read().decode())
    time.sleep(seconds)
    for worker in workers:
        worker.kill()
    for worker in workers:
        _, errors = worker.communicate()
        assert errors == b""


@pytest.mark.parametrize("actions", [["read", "reindex"], ["write", "read", "reindex"]], ids=" and ".join)
def test_processes_killed_at_any_moment_leave_an_index_equal_to_the_journal(tmp_path, monkeypatch, actions):
    small_limits(monkeypatch)
    add(FileJournal(tmp_path), *(f"n{number}" for number in range(40)))
    for number in range(2):
        kill_workers(tmp_path, actions, random.Random(number).uniform(0, 0.3))
        before = {path.name for path in (tmp_path / "index" / "live").iterdir() if path.is_dir()}

        tail = open_tail(tmp_path)

        assert index_triples(tail) == journal_triples(tmp_path)
        assert tail.on_disk
        assert tail.snapshots()  # the process continues on a clone of the newest
        after = {path.name for path in (tmp_path / "index" / "live").iterdir() if path.is_dir()}
        assert len(after) == 1  # the clones of killed processes are deleted
        assert after.isdisjoint(before)
        tail.close()
        for snapshot in tail.snapshots():
            assert set(snapshot.marks) == {"https://jido.ai/projects/demo/graphs/long-term-context"}
