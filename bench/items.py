"""What LangGraph's items cost in a root beside its SqliteStore: the same operations of one interface, in turn.

Both are durable when they return, as they are out of the box. jidomem holds every item to its ontology and shapes,
looks for secrets and keeps each version. Measured where it is installed: pip install 'jidomem[langgraph]'
langgraph-checkpoint-sqlite
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import jidomem
from bench import frame
from bench.frame import Options, Row, Spread, in_turn, short

AT_ONCE, CALLS, SPACES = 200, 20, 20
MOST = 10_000


def rows(options: Options) -> Iterator[Row]:
    """Puts one by one, by many threads and in a batch; reads by key, by namespace and by what values say."""
    try:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore

        from jidomem.adapters.langgraph import JidomemStore
    except ImportError:
        yield Row("LangGraph's items", "-", "-", "langgraph-checkpoint-sqlite is not installed")
        return
    numbers, many = count(), min(options.memories, MOST)
    peer = SqliteStore(sqlite3.connect(options.folder / "items.sqlite", check_same_thread=False, isolation_level=None))
    peer.setup()

    def some(size: int) -> list[Any]:
        return [PutOp(*item(next(numbers))) for _ in range(size)]

    with jidomem.open(options.folder / "items", project="p", agent="graph") as memory, ThreadPoolExecutor(16) as pool:
        ours = JidomemStore(memory)
        for start in range(0, many, 1_000):
            known = some(min(1_000, many - start))
            ours.batch(known)
            peer.batch(known)
        sides = {"jidomem": ours, "SqliteStore": peer}

        def by_threads(store: Any) -> None:
            list(pool.map(lambda op: store.put(op.namespace, op.key, op.value), some(64)))

        def batches(name: str) -> Callable[[], object]:
            return lambda: sides[name].batch(some(AT_ONCE))

        yield _row(
            "a put", {name: lambda s=store: s.put(*item(next(numbers))) for name, store in sides.items()}, options
        )
        threads = {name: lambda s=store: by_threads(s) for name, store in sides.items()}
        yield _row("a put of 16 threads", threads, options, of=64, calls=1)
        beside_put = {"jidomem": batches("jidomem"), "SqliteStore's put": lambda: [
            peer.put(op.namespace, op.key, op.value) for op in some(AT_ONCE)]}  # fmt: skip
        yield _row(f"a put of {AT_ONCE} in a batch", beside_put, options, of=AT_ONCE, calls=1, goal=1.0)
        yield _row("the same", {name: batches(name) for name in sides}, options, of=AT_ONCE, calls=1)
        yield _row("a get", {name: lambda s=store: s.get(*item(7)[:2]) for name, store in sides.items()}, options)
        space = item(7)[0]
        yield _row("a search in a namespace", {n: lambda s=s: s.search(space) for n, s in sides.items()}, options)
        condition = {"score": {"$lt": many // 10}}
        filtered = {name: lambda s=store: s.search(("users",), filter=condition) for name, store in sides.items()}
        yield _row(f"a search by a value in {many:,}", filtered, options)


def item(number: int) -> tuple[tuple[str, str], str, dict[str, Any]]:
    """An item as agents keep them."""
    text = f"In conversation {number} the customer said that deliveries after noon suit her best."
    return ("users", f"u{number % SPACES}"), f"memory-{number}", {"text": text, "score": number, "tags": ["a", "b"]}


def _row(
    what: str,
    sides: dict[str, Callable[[], object]],
    options: Options,
    *,
    of: int = 1,
    calls: int = CALLS,
    goal: float | None = None,
) -> Row:
    """One row; a call of a side does *of* of what is told."""
    times = in_turn(sides, options.rounds, calls)
    ours, (peer, other) = times["jidomem"], next(each for each in times.items() if each[0] != "jidomem")
    spent, faster = Spread.of([1e6 * each / of for each in ours]), Spread.ratio(other, ours)
    promised = "-" if goal is None else "not slower"
    met = None if goal is None else faster.middle >= goal
    measured = f"{short(spent.middle)} µs ({short(spent.low)}-{short(spent.high)})"
    return Row(what, promised, measured, f"{faster} x as fast as {peer}", met, {"s": times})


if __name__ == "__main__":
    frame.main("bench.items", rows)
