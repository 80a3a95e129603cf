"""What a session pays to reach short-term memory, and what it pays to reach long-term memory, in one process.

Short-term memory is full but for one entry.  Long-term memory is a root of that many memories, one of them promoted
under a key; what was asked once is asked again, so that its index is open and warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import jidomem
from bench import frame, load
from bench.frame import Options, Row, Spread, in_turn
from jidomem import ContextManager
from jidomem.working.tiers import MAXIMUM

#: Calls a turn: of what takes nanoseconds, and of what takes milliseconds.
FAST, SLOW = 50_000, 10
GOAL_NS = 1_000
ITEM = {"type": "decision", "content": "Use the sixth index", "rationale": "it was measured"}


def rows(options: Options) -> Iterator[Row]:
    """Each way to reach a tier, and how much longer the long way is than the short one."""
    with (
        jidomem.open(options.copy(), project=load.PROJECT, agent="bench") as memory,
        memory.context("bench", interval=None) as context,
    ):
        fast, slow = _short(context), _long(memory, context)
        times = {name: [] for name in (*fast, *slow)}
        for _ in range(options.rounds):  # both kinds in each round, so that ratios stand a machine that drifts
            for sides, calls in ((fast, FAST // (10 if options.quick else 1)), (slow, SLOW)):
                for name, found in in_turn(sides, 1, calls).items():
                    times[name] += found
    get = times["short-term get"]
    for name in ("short-term get", "short-term put"):
        ns, beside = Spread.of([1e9 * each for each in times[name]]), Spread.ratio(times[name], times["a dict"])
        goal, met = ("-", None) if name != "short-term get" else (f"{GOAL_NS:,} ns", ns.middle <= GOAL_NS)
        figures = {"s": times[name], "dict_s": times["a dict"]}
        yield Row(name, goal, f"{ns} ns", f"{beside} x a look-up in a dict", met, figures)
    for name in slow:
        ms, ratio = Spread.of([1e3 * each for each in times[name]]), Spread.ratio(times[name], get)
        what = f"{name}, {options.memories:,} memories"
        yield Row(what, "-", f"{ms} ms", f"{ratio} x short-term get", figures={"s": times[name]})


def _short(context: ContextManager) -> Mapping[str, Callable[[], object]]:
    """Short-term memory beside the plain dict it stands for."""
    short, plain = context.short_term, {}
    for number in range(MAXIMUM - 1):
        short.put(f"key {number}", number)
        plain[f"key {number}"] = number
    return {
        "a dict": lambda: plain["key 500"],
        "short-term get": lambda: short.get("key 500"),
        "short-term put": lambda: short.put("key 500", 7),
    }


def _long(memory: jidomem.Jidomem, context: ContextManager) -> Mapping[str, Callable[[], object]]:
    """Long-term memory by key, by a named question, by words, and what is promoted into it."""
    earlier = memory.context("earlier", interval=None)
    if earlier.store("choice", ITEM, promote=True).outcome != "promoted":
        raise SystemExit("the memory to look for could not be promoted")
    numbers = count()

    def promoted() -> Any:
        said = {**ITEM, "content": f"Use the index number {next(numbers)}"}
        return earlier.store("last", said, promote=True)

    return {
        "long-term get by key": lambda: context.retrieve("choice"),
        "open tasks, the first 50": lambda: memory.reader.ask("open-tasks", project=load.PROJECT, limit=50),
        "context of a query, both tiers": lambda: context.get_context("which index was measured"),
        "promotion, durable": promoted,
    }


if __name__ == "__main__":
    frame.main("bench.working", rows)
