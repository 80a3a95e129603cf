"""Operations on short-term and long-term memory in one process, beside a look-up in a dict and the short-term get.

    python -m bench.working [--memories N] [--rounds N]

Short-term memory has one free entry.  Long-term memory is a root with the memories of the run, one of them promoted
under a key.  Each operation is called once before, so that indexes are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import jidomem
from bench import harness, load
from bench.harness import Options, Row, Spread, time_sides
from jidomem import ContextManager
from jidomem.working.tiers import MAXIMUM

#: Calls in a row of operations that take nanoseconds, and of those that take milliseconds.
FAST, SLOW = 50_000, 10
GOAL_NS = 1_000
ITEM = {"type": "decision", "content": "Use the sixth index", "rationale": "it was measured"}


def rows(options: Options) -> Iterator[Row]:
    """Yield a row for each operation on each tier."""
    with (
        jidomem.open(options.copy_root(), project=load.PROJECT, agent="bench") as memory,
        memory.context("bench", interval=None) as context,
    ):
        fast, slow = _short_term_calls(context), _long_term_calls(memory, context)
        times = {name: [] for name in (*fast, *slow)}
        for _ in range(options.rounds):  # both tiers in each round: drift of the machine affects both
            for sides, calls in ((fast, FAST // (10 if options.quick else 1)), (slow, SLOW)):
                for name, seconds in time_sides(sides, 1, calls).items():
                    times[name] += seconds
    get = times["short-term get"]
    for name in ("short-term get", "short-term put"):
        ns, comparison = Spread.of([1e9 * each for each in times[name]]), Spread.ratio(times[name], times["a dict"])
        goal, is_met = ("-", None) if name != "short-term get" else (f"{GOAL_NS:,} ns", ns.median <= GOAL_NS)
        figures = {"s": times[name], "dict_s": times["a dict"]}
        yield Row(name, goal, f"{ns} ns", f"{comparison} x a look-up in a dict", is_met, figures)
    for name in slow:
        ms, ratio = Spread.of([1e3 * each for each in times[name]]), Spread.ratio(times[name], get)
        label = f"{name}, {options.memories:,} memories"
        yield Row(label, "-", f"{ms} ms", f"{ratio} x short-term get", figures={"s": times[name]})


def _short_term_calls(context: ContextManager) -> Mapping[str, Callable[[], object]]:
    """Return the calls of short-term memory, and of a dict with the same entries."""
    short, mapping = context.short_term, {}
    for number in range(MAXIMUM - 1):
        short.put(f"key {number}", number)
        mapping[f"key {number}"] = number
    return {
        "a dict": lambda: mapping["key 500"],
        "short-term get": lambda: short.get("key 500"),
        "short-term put": lambda: short.put("key 500", 7),
    }


def _long_term_calls(memory: jidomem.Jidomem, context: ContextManager) -> Mapping[str, Callable[[], object]]:
    """Return the calls of long-term memory: by key, by a named query, by words, and a promotion."""
    earlier = memory.context("earlier", interval=None)
    if earlier.store("choice", ITEM, promote=True).outcome != "promoted":
        raise SystemExit("the item to retrieve was not promoted")
    numbers = count()

    def promote() -> Any:
        item = {**ITEM, "content": f"Use the index number {next(numbers)}"}
        return earlier.store("last", item, promote=True)

    return {
        "long-term get by key": lambda: context.retrieve("choice"),
        "open tasks, the first 50": lambda: memory.reader.ask("open-tasks", project=load.PROJECT, limit=50),
        "context of a query, both tiers": lambda: context.get_context("which index was measured"),
        "promotion, durable": promote,
    }


if __name__ == "__main__":
    harness.main("bench.working", rows)
