"""Opening an index on disk, also with commits after its snapshot, beside pyoxigraph opening the same files.

python -m bench.open [--memories N] [--rounds N]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyoxigraph as ox

import jidomem
from bench import harness, load
from bench.harness import Options, Row, Spread, time_sides

GOAL_MS = 500
TAILS = (1, 30, 900)  # commits after the snapshot, as a killed process leaves them


def rows(options: Options) -> Iterator[Row]:
    """Yield the time to open the index, then to open it with each number of commits after its snapshot."""
    root = options.copy_root()
    snapshot = with_snapshot(root)
    sides: dict[str, Callable[[], object]] = {"ours": lambda: open_root(root), "store": lambda: open_store(snapshot)}
    times = time_sides(sides, options.rounds)
    spread = Spread.of([1000 * each for each in times["ours"]])
    yield Row(
        f"open the index on disk, {options.memories:,} memories",
        f"{GOAL_MS} ms",
        f"{spread} ms",
        f"{Spread.ratio(times['ours'], times['store'])} x bare pyoxigraph opening the same files",
        spread.median <= GOAL_MS,
        {"seconds": times},
    )
    written = 0
    for tail in TAILS:
        submit_facts(root, written, tail)
        written = tail
        times_with_tail = time_sides(
            {"ours": lambda: open_root(root), "store": lambda: open_store(snapshot)}, options.rounds
        )
        tail_spread = Spread.of([1000 * each for each in times_with_tail["ours"]])
        per_commit = (tail_spread.median - spread.median) / tail
        yield Row(
            f"open it after a crash, {tail:,} commits after its snapshot",
            "proportional to the tail",
            f"{tail_spread} ms: {harness.rounded(max(per_commit, 0))} ms more per commit",
            f"{Spread.ratio(times_with_tail['ours'], times['ours'])} x without a tail",
            None,
            {"seconds": times_with_tail, "tail": tail},
        )


def with_snapshot(root: Path) -> Path:
    """Return the folder of the store in a complete snapshot of *root*, which is made if it is missing."""
    with jidomem.open(root, project=load.PROJECT) as memory:
        memory.catch_up(load.PROJECT)
        marks = memory.index.marks
        if not any(snapshot.marks == marks for snapshot in memory.follower.snapshots()[:1]):
            memory.follower.rebuild()
        (snapshot, *_) = memory.follower.snapshots() or [None]
    if snapshot is None:
        raise SystemExit("the journal is so small that its index is in memory: give --memories 2000 or more")
    return snapshot.path / "store"


def open_root(root: Path) -> None:
    """Open a root, apply pending commits to its index, and query it once."""
    with jidomem.open(root, project=load.PROJECT) as memory:
        memory.catch_up(load.PROJECT)
        assert memory.follower.on_disk
        assert memory.reader.run(load.PROJECT, "ASK { ?s ?p ?o }").truth


def open_store(snapshot: Path) -> None:
    """Open the same files with pyoxigraph and query them once."""
    store = ox.Store.read_only(str(snapshot))
    assert next(store.quads_for_pattern(None, None, None, None), None)


def submit_facts(root: Path, first: int, end: int) -> None:
    """Append one commit for each number from *first* to *end*, without a snapshot of them."""
    memory = jidomem.open(root, project=load.PROJECT)
    for number in range(first, end):
        memory.writer.submit_intent(load.PROJECT, load.fact(number))
    memory.close()


if __name__ == "__main__":
    harness.main("bench.open", rows)
