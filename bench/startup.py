"""How soon the command line answers: whole processes, beside git and sqlite-utils."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bench import frame, load
from bench.frame import Options, Row, Spread, in_turn

HELP_MS, ASK_MS, GUARD_MS = 150, 400, 200
JIDOMEM = Path(sys.executable).with_name("jidomem")


def rows(options: Options) -> Iterator[Row]:
    """Help, and a question asked of a memory, each as a process of its own."""
    root, repository = options.copy(), options.folder / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    subprocess.run(["git", "-C", repository, *_AUTHOR, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    asked = [JIDOMEM, "--root", root, "--project", load.PROJECT, "ask", "open-tasks", "--limit", "50"]
    yield from _row("jidomem --help", [JIDOMEM, "--help"], HELP_MS, {
        "git --version": ["git", "--version"], "sqlite-utils --help": _beside("sqlite-utils", "--help"),
    }, options)  # fmt: skip
    guarded = [JIDOMEM, "--root", root, "--project", load.PROJECT, "guard", "src/pricing/reader.py"]
    subprocess.run(guarded, check=True, stdout=subprocess.DEVNULL)  # who comes first after a change reads the index
    for path, what in (("src/pricing/reader.py", "a file that 50 govern"), ("docs/nothing.txt", "one that none does")):
        yield from _row(f"jidomem guard, {options.memories:,} memories, {what}", [*guarded[:-1], path], GUARD_MS, {
            "python -c pass": [sys.executable, "-c", "pass"],
        }, options)  # fmt: skip
    yield from _row(f"jidomem ask, {options.memories:,} memories", asked, ASK_MS, {
        "git log -1": ["git", "-C", repository, "log", "-1"],
        "sqlite-utils query": _beside("sqlite-utils", "query", str(_rows_in_sqlite(options)), _OPEN),
        "python -c pass": [sys.executable, "-c", "pass"],
    }, options)  # fmt: skip


_OPEN = "select id, summary, assignee, status from tasks where status != 'done' order by id limit 50"


def _rows_in_sqlite(options: Options) -> Path:
    """A file of SQLite with as many tasks as the memory has memories, none of them judged or kept in order of time."""
    path = options.folder / "tasks.db"
    with closing(sqlite3.connect(path)) as store:
        store.execute("create table tasks (id integer primary key, summary text, assignee text, status text)")
        rows = ((n, f"task {n}", f"agent-{n % 7}", "done" if n % 3 else "open") for n in range(options.memories))
        store.executemany("insert into tasks values (?, ?, ?, ?)", rows)
        store.commit()
    return path


_AUTHOR = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")


def _row(
    what: str, ours: Sequence[str | Path], goal: int, beside: dict[str, Sequence[str | Path] | None], options: Options
) -> Iterator[Row]:
    """One row: our process and those *beside* it, in turn; what is not installed is named, not measured."""
    sides = {what: _process(ours)} | {name: _process(other) for name, other in beside.items() if other}
    times = in_turn(sides, options.rounds)
    spread = Spread.of([1000 * each for each in times[what]])
    ratios = [f"{Spread.ratio(times[what], times[name])} x {name}" for name in times if name != what]
    missing = [f"{name.split()[0]} is not installed" for name, other in beside.items() if other is None]
    figures = {"ms": {name: [1000 * each for each in found] for name, found in times.items()}}
    yield Row(what, f"{goal} ms", f"{spread} ms", ", ".join(ratios + missing), spread.middle <= goal, figures)


def _beside(program: str, *arguments: str) -> Sequence[str | Path] | None:
    """The command line of a program of this environment or of the system, None where there is none."""
    found = shutil.which(program, path=f"{JIDOMEM.parent}{os.pathsep}{os.environ.get('PATH', '')}")
    return [found, *arguments] if found else None


def _process(command: Sequence[str | Path]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    frame.main("bench.startup", rows)
