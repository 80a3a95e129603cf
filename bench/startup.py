"""How soon the command line answers: whole processes, beside git and sqlite-utils.

Measured with the bytecode an installation has. Each row gives the time on the clock, which is what is promised, and
the processor time of the process and its threads, which says the same of a machine that does something else besides.
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

from bench import frame, load
from bench.frame import Options, Row, Spread, in_turn

HELP_MS, ASK_MS, GUARD_MS = 150, 400, 200
JIDOMEM = Path(sys.executable).with_name("jidomem")


def rows(options: Options) -> Iterator[Row]:
    """Help, and a question asked of a memory, each as a process of its own."""
    root, repository = options.copy(), options.folder / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    subprocess.run(["git", "-C", repository, *_AUTHOR, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    verb = [JIDOMEM, "--root", root, "--project", load.PROJECT]
    size, python = f"{options.memories:,} memories", {"python -c pass": [sys.executable, "-c", "pass"]}
    yield from _row("jidomem --help", [JIDOMEM, "--help"], HELP_MS, {
        "git --version": ["git", "--version"], "sqlite-utils --help": _beside("sqlite-utils", "--help"),
    }, options)  # fmt: skip
    subprocess.run([*verb, "guard", _FILE], check=True, stdout=subprocess.DEVNULL)  # the first reads the index
    for path, what in ((_FILE, "a file that 50 govern"), ("docs/nothing.txt", "one that none does")):
        yield from _row(f"jidomem guard, {size}, {what}", [*verb, "guard", path], GUARD_MS, python, options)
    yield from _row(f"jidomem ask, {size}", [*verb, "ask", "open-tasks", "--limit", "50"], ASK_MS, {
        "git log -1": ["git", "-C", repository, "log", "-1"],
        "sqlite-utils query": _beside("sqlite-utils", "query", str(_rows_in_sqlite(options)), _OPEN),
        **python,
    }, options)  # fmt: skip
    yield from _row(f"jidomem governing, {size}", [*verb, "governing", _FILE], ASK_MS, python, options)
    kept = [*verb, "remember", "the build needs Rust 1.80"]  # at last: what is kept is in no snapshot of the index
    yield from _row(f"jidomem remember, {size}", kept, ASK_MS, python, options)


_FILE = "src/pricing/reader.py"
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
    spent: dict[str, list[float]] = {}
    run = partial(_process, spent, _environment(options))
    commands = {what: ours} | {name: other for name, other in beside.items() if other}
    times = in_turn({name: run(name, command) for name, command in commands.items()}, options.rounds)
    ms = {name: [1000 * each for each in found] for name, found in times.items()}
    cpu = {name: [1000 * each for each in found[1:]] for name, found in spent.items()}  # the first is not measured
    spread = Spread.of(ms[what])
    ratios = [f"{Spread.ratio(ms[what], ms[name])} x {name}" for name in ms if name != what]
    missing = [f"{name.split()[0]} is not installed" for name, other in beside.items() if other is None]
    told = f"{spread} ms; of the processor {Spread.of(cpu[what])} ms"
    yield Row(what, f"{goal} ms", told, ", ".join(ratios + missing), spread.middle <= goal, {"ms": ms, "cpu_ms": cpu})


def _environment(options: Options) -> dict[str, str]:
    """The environment of all processes: whatever this one is told, bytecode is kept, as an installation keeps it."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return own | {"PYTHONPYCACHEPREFIX": str(options.folder / "bytecode")}


def _beside(program: str, *arguments: str) -> Sequence[str | Path] | None:
    """The command line of a program of this environment or of the system, None where there is none."""
    found = shutil.which(program, path=f"{JIDOMEM.parent}{os.pathsep}{os.environ.get('PATH', '')}")
    return [found, *arguments] if found else None


def _process(
    spent: dict[str, list[float]], environment: dict[str, str], name: str, command: Sequence[str | Path]
) -> Callable[[], object]:
    """What runs a command, and adds the seconds of processor time it took to those *spent* under its name."""

    def run() -> None:
        before = _used()
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        spent.setdefault(name, []).append(_used() - before)

    return run


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    frame.main("bench.startup", rows)
