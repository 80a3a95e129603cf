"""`jidomem check` as a process, and its validators in one process beside pyshacl and owlrl (`--reference`).

    python -m bench.check [--memories N] [--rounds N]

Both ways must report the same problems, or the benchmark fails.  The reference runs on at most 2,000 memories.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import jidomem
from bench import harness, load
from bench.harness import Options, Row, Spread, time_sides
from jidomem.check.check import Options as CheckOptions
from jidomem.check.check import check_project
from jidomem.check.report import Problem

GOAL_MEMORIES, GOAL_SECONDS = 50_000, 20.0
REFERENCE_MEMORIES = 2_000  # at most


def rows(options: Options) -> Iterator[Row]:
    """Yield the time of the command on the whole root, and of both validators on a smaller one."""
    root, rounds = options.shared_root(), min(options.rounds, 3)
    times = time_sides({"check": _command(root)}, rounds)["check"]
    has_goal = options.memories == GOAL_MEMORIES
    goal, is_met = (f"{GOAL_SECONDS:g} s", max(times) <= GOAL_SECONDS) if has_goal else ("-", None)
    figures = {"s": times}
    yield Row(f"check of {options.memories:,} memories", goal, f"{Spread.of(times)} s", is_met=is_met, figures=figures)
    size = min(options.memories, REFERENCE_MEMORIES)
    with jidomem.open(options.shared_root(size)) as memory:
        problems: dict[bool, list[Problem]] = {}

        def check(reference: bool) -> None:
            report = check_project(memory.follower, memory.schema, load.PROJECT, CheckOptions(reference=reference))
            problems[reference] = report.problems

        sides = {"check": partial(check, False), "reference": partial(check, True)}
        seconds = time_sides(sides, 1 if options.quick else rounds)
    if problems[False] != problems[True]:
        raise SystemExit(f"check and its reference differ: {set(problems[False]) ^ set(problems[True])}")
    ratio = Spread.ratio(seconds["reference"], seconds["check"])
    label = f"check of {size:,} memories, within a process"
    comparison = f"--reference: {ratio} x as long, with the same problems"
    figures = {"s": seconds, "problems": len(problems[True])}
    yield Row(label, "-", f"{Spread.of(seconds['check'])} s", comparison, figures=figures)


def _command(root: Path) -> Callable[[], object]:
    """Return a function that runs the command as a process."""
    program = Path(sys.executable).with_name("jidomem")
    command = [program, "check", "--root", str(root), "--project", load.PROJECT, "--json"]
    return partial(subprocess.run, command, check=True, capture_output=True)


if __name__ == "__main__":
    harness.main("bench.check", rows)
