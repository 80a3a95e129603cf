"""What every benchmark shares: alternating time measurements, ratios with their spread, one table, and its context.

A benchmark is a module with `rows(options)`, which yields a `Row` for each measurement, and ends with
`if __name__ == "__main__": harness.main(__spec__.name, rows)`.  It is run by `python -m bench.NAME`, and by
`python -m bench` with all the others."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeVar

from bench import load

REPOSITORY = Path(__file__).parent.parent
FAILED = "**failed**"
Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its lower and upper quartile.

    >>> str(Spread.of([1.0, 2.0, 3.0, 4.0, 100.0]))
    '3.00 (1.50-52.0)'
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        low, _, high = quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
        return cls(median(values), low, high)

    @classmethod
    def ratio(cls, numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
        """Return the ratio of the two medians, with the quartiles of the ratios of single rounds."""
        rounds = cls.of([a / b for a, b in zip(numerators, denominators, strict=True)])
        return cls(median(numerators) / median(denominators), rounds.low, rounds.high)

    def __str__(self) -> str:
        return f"{rounded(self.median)} ({rounded(self.low)}-{rounded(self.high)})"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what is measured, the goal, the measured value, and the value it is compared with.

    *is_met* is None without a goal, or if it could not be measured; *figures* are the raw values of the words.
    """

    label: str
    goal: str
    measured: str
    comparison: str = "-"
    is_met: bool | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run, and the folder it may write to; a *quick* benchmark takes about ten seconds."""

    memories: int
    quick: bool
    rounds: int
    folder: Path

    def shared_root(self, memories: int | None = None) -> Path:
        """Return the folder of a root with that many memories, which all runs share and only read."""
        return load.cached(self.memories if memories is None else memories)

    def copy_root(self, memories: int | None = None) -> Path:
        """Return the folder of a root with that many memories, which this run may write to."""
        return load.copy(self.shared_root(memories), Path(tempfile.mkdtemp(dir=self.folder)) / "root")


def time_sides(sides: Mapping[str, Callable[[], object]], rounds: int, calls: int = 1) -> dict[str, list[float]]:
    """Return the seconds of one call of each side, one value a round, over *calls* calls in a row.

    The sides alternate, so that drift of the machine affects all of them. Each is called once before, unmeasured.
    """
    durations: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for _, name in alternate(sides, rounds):
        durations[name].append(time_calls(sides[name], calls))
    return durations


def alternate(names: Iterable[Name], rounds: int) -> Iterator[tuple[int, Name]]:
    """Yield each round with each name; every second round is reversed.

    >>> [*alternate("ab", 2)]
    [(0, 'a'), (0, 'b'), (1, 'b'), (1, 'a')]
    """
    order = [*names]
    for number in range(rounds):
        yield from ((number, name) for name in order[:: -1 if number % 2 else 1])


def time_calls(run: Callable[[], object], calls: int = 1) -> float:
    """Return the seconds of one call, over *calls* calls."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the least of *values* that at least *percent* of them do not exceed.

    >>> percentile([4, 1, 3, 2], 50), percentile([4, 1, 3, 2], 99)
    (2, 4)
    """
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def rounded(value: float) -> str:
    """Return a figure in words, with about three digits.

    >>> rounded(0.123456), rounded(12.3456), rounded(54321.9)
    ('0.123', '12.3', '54,322')
    """
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"


def resident_bytes(pid: int | str = "self") -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine(folder: Path) -> dict[str, Any]:
    """Return processor, memory, versions, and the file system of *folder*."""
    models = [line.split(":", 1)[1].strip() for line in _read_lines("/proc/cpuinfo") if line.startswith("model name")]
    packages = ("pyoxigraph", "pyshacl", "rdflib", "flask", "h11")
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in packages},
        "file_system": _file_system(folder),
    }


def report(rows: Iterable[Row], options: Options) -> dict[str, Any]:
    """Return the rows with the context of their figures: commit, machine, date and command."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", *sys.orig_argv[1:]]),
        "machine": machine(options.folder),
        "memories": options.memories,
        "quick": options.quick,
        "rounds": options.rounds,
        "rows": [asdict(row) for row in rows],
    }


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table, each as soon as its row is measured."""
    yield "| measurement | goal | measured | compared with | goal met | command |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        is_met = {True: "yes", False: "**no**", None: "-"}[row.is_met]
        cells = (row.label, row.goal, row.measured, row.comparison, is_met, f"`{row.command}`")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser of the options that every benchmark takes."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--memories", type=int, metavar="N", help="size of the root (default: 10000; quick: 2000)")
    options.add_argument("--rounds", type=int, metavar="N", help="measured rounds (default: 15; quick: 5)")
    options.add_argument("--quick", action="store_true", help="small and short: a smoke test, not for publication")
    options.add_argument("--json", type=Path, metavar="FILE", help="write figures, commit and machine to FILE")
    return options


def run(benchmarks: Mapping[str, Callable[[Options], Iterable[Row]]], arguments: argparse.Namespace) -> bool:
    """Run *benchmarks* one after another; print the table, and write the JSON, row by row.

    Return whether all of them completed. A failure is shown in a row of the table, and the others run.
    """
    finished: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="jidomem-bench-", ignore_cleanup_errors=True) as name:
        memories, rounds = (2_000, 5) if arguments.quick else (10_000, 15)
        options = Options(arguments.memories or memories, arguments.quick, arguments.rounds or rounds, Path(name))

        def measured_rows() -> Iterator[Row]:
            for name, measure in benchmarks.items():
                command = f"python -m {name} --memories {options.memories}{' --quick' * arguments.quick}"
                own = replace(options, folder=Path(tempfile.mkdtemp(dir=options.folder)))
                for row in _rows_or_failure(name, measure, own):
                    finished.append(replace(row, command=row.command or command))
                    if arguments.json:
                        arguments.json.write_text(json.dumps(report(finished, options), indent=2) + "\n", "utf-8")
                    yield finished[-1]

        for line in table(measured_rows()):
            print(line, flush=True)
    return not any(row.measured == FAILED for row in finished)


def main(name: str, rows: Callable[[Options], Iterable[Row]]) -> None:
    """Run one benchmark as a command."""
    sys.exit(not run({name: rows}, parser(sys.modules["__main__"].__doc__ or name).parse_args()))


def _rows_or_failure(name: str, measure: Callable[[Options], Iterable[Row]], options: Options) -> Iterator[Row]:
    """Yield the rows of one benchmark; if it fails, the last row reports the error."""
    try:
        yield from measure(options)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        yield Row(name, "-", FAILED, f"{type(error).__name__}: {error}", False)


def _file_system(folder: Path) -> str:
    """Return the type of the file system of *folder*, by the longest mount point above it."""
    mounts = [line.split()[1:3] for line in _read_lines("/proc/mounts")]
    above = {str(path) for path in chain([folder.resolve()], folder.resolve().parents)}
    return max(((len(point), kind) for point, kind in mounts if point in above), default=(0, "unknown"))[1]


def _read_lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _git(*arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip()
