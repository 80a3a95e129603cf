"""The command line as whole processes: `--help`, `ask`, `guard`, `governing`, `remember`, beside git and sqlite-utils.

    python -m bench.startup [--memories N] [--rounds N]

Bytecode is cached, as in an installation. Each row has the wall-clock time, which has a goal, and the CPU time of the
process and its threads, which does not depend on the load of the machine.
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from bench import harness, load
from bench.harness import Options, Row, Spread, time_sides

HELP_MS, ASK_MS, GUARD_MS = 150, 400, 200
JIDOMEM = Path(sys.executable).with_name("jidomem")


def rows(options: Options) -> Iterator[Row]:
    """Yield a row for each command, run as a process of its own."""
    root, repository = options.copy_root(), options.folder / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    subprocess.run(["git", "-C", repository, *_AUTHOR, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    command = [JIDOMEM, "--root", root, "--project", load.PROJECT]
    size, python = f"{options.memories:,} memories", {"python -c pass": [sys.executable, "-c", "pass"]}
    yield from _row("jidomem --help", [JIDOMEM, "--help"], HELP_MS, {
        "git --version": ["git", "--version"], "sqlite-utils --help": _command_of("sqlite-utils", "--help"),
    }, options)  # fmt: skip
    # the first run builds its cache
    subprocess.run([*command, "guard", _FILE], check=True, stdout=subprocess.DEVNULL)
    for path, description in ((_FILE, "a file with 50 governing memories"), ("docs/nothing.txt", "a file with none")):
        yield from _row(f"jidomem guard, {size}, {description}", [*command, "guard", path], GUARD_MS, python, options)
    yield from _row(f"jidomem ask, {size}", [*command, "ask", "open-tasks", "--limit", "50"], ASK_MS, {
        "git log -1": ["git", "-C", repository, "log", "-1"],
        "sqlite-utils query": _command_of("sqlite-utils", "query", str(_write_tasks(options)), _OPEN),
        **python,
    }, options)  # fmt: skip
    yield from _row(f"jidomem governing, {size}", [*command, "governing", _FILE], ASK_MS, python, options)
    remember = [*command, "remember", "the build needs Rust 1.80"]  # last: its writes are in no snapshot of the index
    yield from _row(f"jidomem remember, {size}", remember, ASK_MS, python, options)


_FILE = "src/pricing/reader.py"
_OPEN = "select id, summary, assignee, status from tasks where status != 'done' order by id limit 50"


def _write_tasks(options: Options) -> Path:
    """Write as many tasks as the root has memories to an SQLite file, and return its path."""
    path = options.folder / "tasks.db"
    with closing(sqlite3.connect(path)) as store:
        store.execute("create table tasks (id integer primary key, summary text, assignee text, status text)")
        rows = ((n, f"task {n}", f"agent-{n % 7}", "done" if n % 3 else "open") for n in range(options.memories))
        store.executemany("insert into tasks values (?, ?, ?, ?)", rows)
        store.commit()
    return path


_AUTHOR = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")


def _row(
    label: str, ours: Sequence[str | Path], goal: int, others: dict[str, Sequence[str | Path] | None], options: Options
) -> Iterator[Row]:
    """Yield the row of our process beside *others*; a program that is not installed is named, not measured."""
    cpu_seconds: dict[str, list[float]] = {}
    # the unmeasured round caches bytecode
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runner = partial(_runner, cpu_seconds, environment)
    commands = {label: ours} | {name: other for name, other in others.items() if other}
    times = time_sides({name: runner(name, command) for name, command in commands.items()}, options.rounds)
    ms = {name: [1000 * each for each in values] for name, values in times.items()}
    # the first value is of the unmeasured round
    cpu = {name: [1000 * each for each in values[1:]] for name, values in cpu_seconds.items()}
    spread = Spread.of(ms[label])
    ratios = [f"{Spread.ratio(ms[label], ms[name])} x {name}" for name in ms if name != label]
    not_installed = [f"{name.split()[0]} is not installed" for name, other in others.items() if other is None]
    measured = f"{spread} ms; CPU {Spread.of(cpu[label])} ms"
    figures = {"ms": ms, "cpu_ms": cpu}
    yield Row(label, f"{goal} ms", measured, ", ".join(ratios + not_installed), spread.median <= goal, figures)


def _command_of(program: str, *arguments: str) -> Sequence[str | Path] | None:
    """Return the command line of a program; None if it is not installed."""
    path = shutil.which(program, path=f"{JIDOMEM.parent}{os.pathsep}{os.environ.get('PATH', '')}")
    return [path, *arguments] if path else None


def _runner(
    cpu_seconds: dict[str, list[float]], environment: dict[str, str], name: str, command: Sequence[str | Path]
) -> Callable[[], object]:
    """Return a function that runs *command* and adds its CPU seconds to those of its *name*."""

    def run() -> None:
        before = _children_cpu_seconds()
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cpu_seconds.setdefault(name, []).append(_children_cpu_seconds() - before)

    return run


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    harness.main("bench.startup", rows)
