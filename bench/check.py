"""What `jidomem check` takes, and how much longer pyshacl and owlrl take when they are given everything.

Both ways have to find the same, or the benchmark breaks off.  The reference is measured on at most 2,000 memories.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import jidomem
from bench import frame, load
from bench.frame import Options as Asked
from bench.frame import Row, Spread, in_turn
from jidomem.check.check import Options, check_project
from jidomem.check.report import Problem

GOAL = 50_000, 20.0
REFERENCE = 2_000


def rows(options: Asked) -> Iterator[Row]:
    """The command on a whole memory, and both validators on a smaller one."""
    root, rounds = options.root(), min(options.rounds, 3)
    times = in_turn({"check": _command(root)}, rounds)["check"]
    goal = f"{GOAL[1]:g} s" if options.memories == GOAL[0] else "-"
    met = max(times) <= GOAL[1] if options.memories == GOAL[0] else None
    figures = {"s": times}
    yield Row(f"check of {options.memories:,} memories", goal, f"{Spread.of(times)} s", met=met, figures=figures)
    small = min(options.memories, REFERENCE)
    with jidomem.open(options.root(small)) as memory:
        judge = partial(check_project, memory.follower, memory.schema, load.PROJECT)
        problems: dict[bool, list[Problem]] = {}

        def judged(reference: bool) -> Callable[[], None]:
            def run() -> None:
                problems[reference] = judge(Options(reference=reference)).problems

            return run

        both = in_turn({"check": judged(False), "reference": judged(True)}, 1 if options.quick else rounds)
    if problems[False] != problems[True]:
        raise SystemExit(f"check and its reference differ: {set(problems[False]) ^ set(problems[True])}")
    ratio = Spread.ratio(both["reference"], both["check"])
    what = f"check of {small:,} memories, within a process"
    compared = f"--reference: {ratio} x as long, and finds the same"
    yield Row(what, "-", f"{Spread.of(both['check'])} s", compared, figures={"s": both, "found": len(problems[True])})


def _command(root: Path) -> Callable[[], object]:
    """The verb as a process."""
    verb = Path(sys.executable).with_name("jidomem")
    command = [verb, "check", "--root", str(root), "--project", load.PROJECT, "--json"]
    return partial(subprocess.run, command, check=True, capture_output=True)


if __name__ == "__main__":
    frame.main("bench.check", rows)
