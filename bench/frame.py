"""What every benchmark shares: sides timed in turn, ratios with their spread, rows of one table, where it was measured.

A benchmark is a module with `rows(options)`, which yields a `Row` for each thing it measured, and ends with
`if __name__ == "__main__": frame.main(__spec__.name, rows)`.  It is run by `python -m bench.NAME`, and by
`python -m bench` with all the others.
"""

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
from typing import Any

from bench import load

REPOSITORY = Path(__file__).parent.parent
BROKEN = "**broke off**"


@dataclass(frozen=True, slots=True)
class Spread:
    """A middle, and the quartiles beside it.

    >>> str(Spread.of([1.0, 2.0, 3.0, 4.0, 100.0]))
    '3.00 (1.50-52.0)'
    """

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, _, high = quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
        return cls(median(values), low, high)

    @classmethod
    def ratio(cls, over: Sequence[float], under: Sequence[float]) -> Spread:
        """The ratio of the medians of *over* and *under*, with the quartiles of the ratios of single rounds."""
        each = cls.of([a / b for a, b in zip(over, under, strict=True)])
        return cls(median(over) / median(under), each.low, each.high)

    def __str__(self) -> str:
        return f"{short(self.middle)} ({short(self.low)}-{short(self.high)})"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the goal, the measured value, and the value compared with.

    *met* is None where nothing is promised or it could not be measured; *figures* is what the words were made from.
    """

    what: str
    goal: str
    measured: str
    compared: str = "-"
    met: bool | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run, and the folder it may write in; *quick* means about ten seconds a benchmark."""

    memories: int
    quick: bool
    rounds: int
    folder: Path

    def root(self, memories: int | None = None) -> Path:
        """A root of that many memories, kept from run to run: not to be written to."""
        return load.cached(self.memories if memories is None else memories)

    def copy(self, memories: int | None = None) -> Path:
        """A root of that many memories that this run may write to."""
        return load.copy(self.root(memories), Path(tempfile.mkdtemp(dir=self.folder)) / "root")


def in_turn(sides: Mapping[str, Callable[[], object]], rounds: int, calls: int = 1) -> dict[str, list[float]]:
    """Seconds of one call of each side, round by round: drift of the machine affects all sides.

    Each side is called once before, unmeasured; every second round goes backwards.
    """
    durations: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for number in range(rounds):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            durations[name].append(seconds(sides[name], calls))
    return durations


def seconds(run: Callable[[], object], calls: int = 1) -> float:
    """Seconds of one call, over *calls* calls."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def percentile(values: Sequence[float], share: float) -> float:
    """The value that *share* of a hundred are not above.

    >>> percentile([4, 1, 3, 2], 50), percentile([4, 1, 3, 2], 99)
    (2, 4)
    """
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)]


def short(value: float) -> str:
    """A figure in three digits.

    >>> short(0.123456), short(12.3456), short(54321.9)
    ('0.123', '12.3', '54,322')
    """
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"


def machine(folder: Path) -> dict[str, Any]:
    """Where this runs: processor, memory, versions, and the file system of *folder*."""
    models = [line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
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
    """The rows with the context of their figures: commit, machine, date and command."""
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
    yield "| | goal | measured | compared with | met | command |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        met = {True: "yes", False: "**no**", None: "-"}[row.met]
        cells = (row.what, row.goal, row.measured, row.compared, met, f"`{row.command}`")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def parser(description: str) -> argparse.ArgumentParser:
    """The options every benchmark takes."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--memories", type=int, metavar="N", help="how many there are to begin with (10000; quick: 2000)"
    )
    options.add_argument("--rounds", type=int, metavar="N", help="how often each side has its turn (15; quick: 5)")
    options.add_argument("--quick", action="store_true", help="small and soon: to see that it runs, not to quote")
    options.add_argument("--json", type=Path, metavar="FILE", help="write figures, commit and machine there")
    return options


def run(benchmarks: Mapping[str, Callable[[Options], Iterable[Row]]], parsed: argparse.Namespace) -> bool:
    """Run *benchmarks* one after another, printing the table, and keeping the JSON, as it grows.

    Return whether all of them ran to their end; one that did not has a row that says so, and stops no other.
    """
    finished: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="jidomem-bench-", ignore_cleanup_errors=True) as name:
        memories, rounds = (2_000, 5) if parsed.quick else (10_000, 15)
        options = Options(parsed.memories or memories, parsed.quick, parsed.rounds or rounds, Path(name))

        def measured_rows() -> Iterator[Row]:
            for name, measure in benchmarks.items():
                own = replace(options, folder=Path(tempfile.mkdtemp(dir=options.folder)))
                for row in _whole(name, measure, own):
                    finished.append(
                        row if row.command else replace(row, command=f"python -m {name}{_as(parsed, options)}")
                    )
                    if parsed.json:
                        parsed.json.write_text(json.dumps(report(finished, options), indent=2) + "\n", "utf-8")
                    yield finished[-1]

        for line in table(measured_rows()):
            print(line, flush=True)
    return not any(row.measured == BROKEN for row in finished)


def main(name: str, rows: Callable[[Options], Iterable[Row]]) -> None:
    """Run one benchmark as a command."""
    sys.exit(not run({name: rows}, parser(sys.modules["__main__"].__doc__ or name).parse_args()))


def _whole(name: str, measure: Callable[[Options], Iterable[Row]], options: Options) -> Iterator[Row]:
    """The rows of one benchmark; if it fails, the last row reports the error."""
    try:
        yield from measure(options)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        yield Row(name, "-", BROKEN, f"{type(error).__name__}: {error}", False)


def _as(parsed: argparse.Namespace, options: Options) -> str:
    return f" --memories {options.memories}" + (" --quick" if parsed.quick else "")


def _file_system(folder: Path) -> str:
    """The kind of file system *folder* is on, by the longest mount point above it."""
    mounts = [line.split()[1:3] for line in _lines("/proc/mounts")]
    above = {str(path) for path in chain([folder.resolve()], folder.resolve().parents)}
    return max(((len(point), kind) for point, kind in mounts if point in above), default=(0, "unknown"))[1]


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _git(*arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip()
