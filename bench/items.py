"""LangGraph items in a root (`JidomemStore`), beside its SqliteStore: the same operations of one interface.

    python -m bench.items [--memories N] [--rounds N]

Both are durable when they return, with their default settings. jidomem validates every item, scans it for secrets and
stores each version. It needs: pip install 'jidomem[langgraph]' langgraph-checkpoint-sqlite
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import jidomem
from bench import harness
from bench.harness import Options, Row, Spread, time_sides

AT_ONCE, CALLS, NAMESPACES = 200, 20, 20
MAX_ITEMS = 10_000


def rows(options: Options) -> Iterator[Row]:
    """Yield puts one by one, by threads and in a batch; then reads by key, by namespace and by a value."""
    try:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore

        from jidomem.adapters.langgraph import JidomemStore
    except ImportError:
        yield Row("LangGraph's items", "-", "-", "langgraph-checkpoint-sqlite is not installed")
        return
    numbers, total = count(), min(options.memories, MAX_ITEMS)
    peer = SqliteStore(sqlite3.connect(options.folder / "items.sqlite", check_same_thread=False, isolation_level=None))
    peer.setup()

    def puts(size: int) -> list[Any]:
        return [PutOp(*item(next(numbers))) for _ in range(size)]

    with jidomem.open(options.folder / "items", project="p", agent="graph") as memory, ThreadPoolExecutor(16) as pool:
        ours = JidomemStore(memory)
        for start in range(0, total, 1_000):
            batch = puts(min(1_000, total - start))
            ours.batch(batch)
            peer.batch(batch)
        sides = {"jidomem": ours, "SqliteStore": peer}

        def put_in_threads(store: Any) -> None:
            list(pool.map(lambda op: store.put(op.namespace, op.key, op.value), puts(64)))

        def batches(name: str) -> Callable[[], object]:
            return lambda: sides[name].batch(puts(AT_ONCE))

        yield _row(
            "a put", {name: lambda s=store: s.put(*item(next(numbers))) for name, store in sides.items()}, options
        )
        threads = {name: lambda s=store: put_in_threads(s) for name, store in sides.items()}
        yield _row("a put of 16 threads", threads, options, items=64, calls=1)
        batch_or_puts = {"jidomem": batches("jidomem"), "SqliteStore's put": lambda: [
            peer.put(op.namespace, op.key, op.value) for op in puts(AT_ONCE)]}  # fmt: skip
        yield _row(f"a put of {AT_ONCE} in a batch", batch_or_puts, options, items=AT_ONCE, calls=1, goal=1.0)
        yield _row("the same", {name: batches(name) for name in sides}, options, items=AT_ONCE, calls=1)
        yield _row("a get", {name: lambda s=store: s.get(*item(7)[:2]) for name, store in sides.items()}, options)
        namespace = item(7)[0]
        yield _row("a search in a namespace", {n: lambda s=s: s.search(namespace) for n, s in sides.items()}, options)
        condition = {"score": {"$lt": total // 10}}
        filtered = {name: lambda s=store: s.search(("users",), filter=condition) for name, store in sides.items()}
        yield _row(f"a search by a value in {total:,}", filtered, options)


def item(number: int) -> tuple[tuple[str, str], str, dict[str, Any]]:
    """Return namespace, key and value of an item."""
    text = f"In conversation {number} the customer said that deliveries after noon suit her best."
    return ("users", f"u{number % NAMESPACES}"), f"memory-{number}", {"text": text, "score": number, "tags": ["a", "b"]}


def _row(
    label: str,
    sides: dict[str, Callable[[], object]],
    options: Options,
    *,
    items: int = 1,
    calls: int = CALLS,
    goal: float | None = None,
) -> Row:
    """Return one row; a call of a side handles so many *items*."""
    times = time_sides(sides, options.rounds, calls)
    ours, (peer, other) = times["jidomem"], next(each for each in times.items() if each[0] != "jidomem")
    spread, faster = Spread.of([1e6 * each / items for each in ours]), Spread.ratio(other, ours)
    goal_words = "-" if goal is None else "not slower"
    is_met = None if goal is None else faster.median >= goal
    return Row(label, goal_words, f"{spread} µs", f"{faster} x as fast as {peer}", is_met, {"s": times})


if __name__ == "__main__":
    harness.main("bench.items", rows)
