"""Durable, validated memories beside LangGraph's SqliteStore, which validates nothing: one by one, and 200 at once.

    python -m bench.peers [--memories N] [--rounds N]

Both sides write the same memories, with their default settings, and are durable when they return.  A `put` of the
SqliteStore is one transaction, its `batch` one for all.  It needs: pip install langgraph-checkpoint-sqlite
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import Any

import jidomem
from bench import harness, load
from bench.harness import Options, Row, Spread, time_sides

AT_ONCE = 200
GOAL = 5_000  # memories a second, written at once

Write = Callable[[Sequence[dict[str, Any]]], object]


def rows(options: Options) -> Iterator[Row]:
    """Yield the rate of memories written one by one, then of AT_ONCE together."""
    with jidomem.open(options.copy_root()) as memory:
        source = load.intents_after(0)
        existing = list(islice(source, options.memories))

        def one_by_one(memories: Sequence[dict[str, Any]]) -> None:
            for intent in memories:
                memory.writer.submit_intent(load.PROJECT, intent)

        put, batch = _sqlite_store(options.folder / "peer.sqlite", existing)
        sides = {"jidomem": one_by_one, "put": put}
        yield _row("a memory at a time", "-", sides, _slices(source, 5), 5, options)
        sides = {"jidomem": partial(load.submit_all, memory), "put": put, "batch": batch}
        yield _row(
            f"{AT_ONCE} memories at once", f"{GOAL:,}/s, not slower than `put`", sides, _slices(source, AT_ONCE),
            AT_ONCE, options,
        )  # fmt: skip


def _row(
    label: str,
    goal: str,
    sides: dict[str, Write | None],
    slices: dict[str, Iterator[Any]],
    batch_size: int,
    options: Options,
) -> Row:
    """Return one row; each side writes the same memories, in the same order."""
    runs = {
        name: lambda write=write, memories=slices[name]: write(next(memories)) for name, write in sides.items() if write
    }
    times = time_sides(runs, options.rounds)
    rate = Spread.of([batch_size / each for each in times["jidomem"]])
    faster = {name: Spread.ratio(durations, times["jidomem"]) for name, durations in times.items() if name != "jidomem"}
    comparison = ", ".join(f"{ratio} x as fast as `{name}`" for name, ratio in faster.items())
    comparison = comparison or "langgraph-checkpoint-sqlite is not installed"
    has_goal = goal != "-" and "put" in faster
    is_met = rate.median >= GOAL and faster["put"].median >= 1 if has_goal else None
    return Row(label, goal, f"{rate} memories/s", comparison, is_met, {"s": times})


def _slices(source: Iterator[Any], batch_size: int) -> dict[str, Iterator[Any]]:
    """Return for each side an iterator of the same batches of memories."""
    memories = iter(lambda: list(islice(source, batch_size)), [])
    return dict(zip(("jidomem", "put", "batch"), tee(memories, 3), strict=True))


def _sqlite_store(path: Path, existing: Sequence[dict[str, Any]]) -> tuple[Write | None, Write | None]:
    """Return `put` and `batch` of an SqliteStore with the *existing* memories; None if it is not installed."""
    try:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore
    except ImportError:
        return None, None
    store = SqliteStore(sqlite3.connect(path, check_same_thread=False, isolation_level=None))
    store.setup()
    space = ("memories", load.PROJECT)

    def put(memories: Sequence[dict[str, Any]]) -> None:
        for intent in memories:
            store.put(space, intent["iri"], intent)

    def batch(memories: Sequence[dict[str, Any]]) -> None:
        store.batch([PutOp(space, intent["iri"], intent) for intent in memories])

    for start in range(0, len(existing), 1_000):
        batch(existing[start : start + 1_000])
    return put, batch


if __name__ == "__main__":
    harness.main("bench.peers", rows)
