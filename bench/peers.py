"""What keeping a memory costs beside LangGraph's SqliteStore, which judges nothing: the same memories, in turn.

Its `put` is one transaction, its `batch` one for all; both as they are out of the box, durable when they return.
Measured where it is installed: pip install langgraph-checkpoint-sqlite
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, tee
from pathlib import Path
from typing import Any

import jidomem
from bench import frame, generate, load
from bench.frame import Options, Row, Spread, in_turn, short

AT_ONCE = 200
GOAL = 5_000  # memories a second when many are in flight

Keep = Callable[[Sequence[dict[str, Any]]], object]


def rows(options: Options) -> Iterator[Row]:
    """One memory after another, and many at once."""
    with jidomem.open(options.copy()) as memory:
        source = generate.intents(10**9, project=load.PROJECT)
        known = list(islice(source, options.memories))

        def one_by_one(some: Sequence[dict[str, Any]]) -> None:
            for intent in some:
                memory.writer.submit_intent(load.PROJECT, intent)

        put, batch = _store(options.folder / "peer.sqlite", known)
        sides = {"jidomem": one_by_one, "put": put}
        yield _row("a memory at a time", "-", sides, _slices(source, 5), 5, options)
        sides = {"jidomem": lambda some: memory.writer.submit_many(load.PROJECT, some), "put": put, "batch": batch}
        yield _row(
            f"{AT_ONCE} memories in flight", f"{GOAL:,}/s, not slower than `put`", sides, _slices(source, AT_ONCE),
            AT_ONCE, options,
        )  # fmt: skip


def _row(
    what: str, goal: str, sides: dict[str, Keep | None], slices: dict[str, Iterator[Any]], size: int, options: Options
) -> Row:
    """One row; each side keeps the same memories, in the same order."""
    runs = {name: lambda keep=keep, some=slices[name]: keep(next(some)) for name, keep in sides.items() if keep}
    times = in_turn(runs, options.rounds)
    rate = Spread.of([size / each for each in times["jidomem"]])
    faster = {name: Spread.ratio(found, times["jidomem"]) for name, found in times.items() if name != "jidomem"}
    compared = ", ".join(f"{ratio} x as fast as `{name}`" for name, ratio in faster.items())
    compared = compared or "langgraph-checkpoint-sqlite is not installed"
    promised = goal != "-" and "put" in faster
    met = rate.middle >= GOAL and faster["put"].middle >= 1 if promised else None
    return Row(
        what, goal, f"{short(rate.middle)}/s ({short(rate.low)}-{short(rate.high)})", compared, met, {"s": times}
    )


def _slices(source: Iterator[Any], size: int) -> dict[str, Iterator[Any]]:
    """The memories to come, *size* at a time, for each side the same."""
    some = iter(lambda: list(islice(source, size)), [])
    return dict(zip(("jidomem", "put", "batch"), tee(some, 3), strict=True))


def _store(path: Path, known: Sequence[dict[str, Any]]) -> tuple[Keep | None, Keep | None]:
    """Its `put` and its `batch`, with what jidomem *known*s in it; None where it is not installed."""
    try:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore
    except ImportError:
        return None, None
    store = SqliteStore(sqlite3.connect(path, check_same_thread=False, isolation_level=None))
    store.setup()
    space = ("memories", load.PROJECT)

    def put(some: Sequence[dict[str, Any]]) -> None:
        for intent in some:
            store.put(space, intent["iri"], intent)

    def batch(some: Sequence[dict[str, Any]]) -> None:
        store.batch([PutOp(space, intent["iri"], intent) for intent in some])

    for start in range(0, len(known), 1_000):
        batch(known[start : start + 1_000])
    return put, batch


if __name__ == "__main__":
    frame.main("bench.peers", rows)
