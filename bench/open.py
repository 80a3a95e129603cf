"""How soon a process can answer from an index on disk, and what it costs to catch up after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyoxigraph as ox

import jidomem
from bench import frame, load
from bench.frame import Options, Row, Spread, in_turn
from jidomem import Jidomem

GOAL_MS = 500
MISSED = (1, 30, 900)  # commits that a killed process had written after its last snapshot


def rows(options: Options) -> Iterator[Row]:
    """Open the index; open it when some commits came after its snapshot."""
    root = options.copy()
    snapshot = with_snapshot(root)
    sides: dict[str, Callable[[], object]] = {"ours": lambda: opened(root), "bare": lambda: bare(snapshot)}
    times = in_turn(sides, options.rounds)
    spread = Spread.of([1000 * each for each in times["ours"]])
    yield Row(
        f"open the index on disk, {options.memories:,} memories",
        f"{GOAL_MS} ms",
        f"{spread} ms",
        f"{Spread.ratio(times['ours'], times['bare'])} x bare pyoxigraph opening the same files",
        spread.middle <= GOAL_MS,
        {"seconds": times},
    )
    written = 0
    for missed in MISSED:
        write(root, written, missed)
        written = missed
        healing = in_turn({"healed": lambda: opened(root), "bare": lambda: bare(snapshot)}, options.rounds)
        found = Spread.of([1000 * each for each in healing["healed"]])
        more = (found.middle - spread.middle) / missed
        yield Row(
            f"open it after a crash, {missed:,} commits after its snapshot",
            "proportional to the tail",
            f"{found} ms: {frame.short(max(more, 0))} ms more a commit",
            f"{Spread.ratio(healing['healed'], times['ours'])} x without a tail",
            None,
            {"seconds": healing, "missed": missed},
        )


def with_snapshot(root: Path) -> Path:
    """The files of a snapshot of *root*, made if there is none that holds all of it."""
    with jidomem.open(root, project=load.PROJECT) as memory:
        memory.catch_up(load.PROJECT)
        held = memory.index.marks
        if not any(snapshot.marks == held for snapshot in memory.follower.snapshots()[:1]):
            memory.follower.rebuild()
        (snapshot, *_) = memory.follower.snapshots() or [None]
    if snapshot is None:
        raise SystemExit("the journal is so small that its index is in memory: give --memories 2000 or more")
    return snapshot.path / "store"


def opened(root: Path) -> None:
    """Open a root, bring its index level, and ask it one thing."""
    with jidomem.open(root, project=load.PROJECT) as memory:
        memory.catch_up(load.PROJECT)
        assert memory.follower.on_disk
        assert memory.reader.run(load.PROJECT, "ASK { ?s ?p ?o }").truth


def bare(snapshot: Path) -> None:
    """Open the same files as they are and ask them one thing."""
    store = ox.Store.read_only(str(snapshot))
    assert next(store.quads_for_pattern(None, None, None, None), None)


def write(root: Path, first: int, end: int) -> None:
    """Append a commit for each of *first* to *end*, and keep no snapshot of them."""
    memory: Jidomem = jidomem.open(root, project=load.PROJECT)
    for number in range(first, end):
        fact = {"type": "fact", "summary": f"seen in passing: {number}", "confidence": "low"}
        where = {"applies_to_project": load.PROJECT, "asserted_by": "bench", "asserted_in": "bench"}
        memory.writer.submit_intent(load.PROJECT, {**fact, **where})
    memory.close()


if __name__ == "__main__":
    frame.main("bench.open", rows)
