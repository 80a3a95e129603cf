"""How well a memory of agents is governed: eight questions, asked of several systems, as one table.

    python -m bench.governance [--quick] [--only NAME ...] [--systems NAME ...] [--json FILE]

A system is a name below, or MODULE:CLASS of an adapter of your own (bench/governance/README.md). What a system
documents no way to do is unsupported, which is no score.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from bench import frame
from bench.governance.figures import SMALL, Measure, Measured, Size
from bench.governance.process import Process, system
from bench.governance.scenarios import SCENARIOS, run
from bench.governance.systems import SYSTEMS

Table = dict[Measure, dict[str, Measured]]


def measure(wheres: Sequence[str], only: Sequence[str], size: Size, folder: Path, say: Any = print) -> Table:
    """Return what each scenario found for each system, in folders of their own below *folder*."""
    table: Table = {}
    for scenario in only:
        for where in wheres:
            own = folder / scenario / system(where).name
            own.mkdir(parents=True)
            start = perf_counter()
            cells: dict[Measure, Measured] = {}
            try:
                cells |= {each.measure: each for each in run(scenario, partial(Process, where), own, size)}
            except Exception as error:  # one that fails stops no other
                traceback.print_exc()
                cells = {
                    each: Measured(each, failed=f"{type(error).__name__}: {error}") for each in SCENARIOS[scenario][1]
                }
            for each, cell in cells.items():
                table.setdefault(each, {})[system(where).name] = cell
            say(f"{scenario}, {system(where).name}: {perf_counter() - start:.1f} s", file=sys.stderr)
    return table


def lines(table: Table, names: Sequence[str]) -> Iterator[str]:
    """Return the table, and below it the words for what is unsupported."""
    yield "| | counted | better | " + " | ".join(names) + " |"
    yield "|---" * (3 + len(names)) + "|"
    for each, cells in table.items():
        yield f"| {each.dimension} | {each.words} | {each.better} | " + " | ".join(str(cells[n]) for n in names) + " |"
    yield ""
    words: dict[tuple[str, str], list[str]] = {}
    for each, cells in table.items():
        for name, cell in cells.items():
            if cell.unsupported:
                words.setdefault((name, cell.unsupported), []).append(each.dimension)
    for (name, why), dimensions in words.items():
        yield f"- {name}, {', '.join(dict.fromkeys(dimensions))}: unsupported; {why}."


def report(table: Table, wheres: Sequence[str], size: Size, folder: Path, seconds: float) -> Mapping[str, Any]:
    """Return the figures with what they need to mean anything later."""
    rows = [
        {**asdict(each), "systems": {name: _raw(cell) for name, cell in cells.items()}} for each, cells in table.items()
    ]
    versions = {each.name: each.version() for each in map(system, wheres)}
    kept = frame.report([], frame.Options(0, False, size.rounds, folder))
    del kept["rows"], kept["memories"], kept["quick"]
    return {
        **kept,
        "seconds": seconds,
        "size": asdict(size),
        "measures": rows,
        "sqlite": _sqlite(),
        "systems": versions,
    }


def _raw(cell: Measured) -> dict[str, Any]:
    if cell.failed:
        return {"failed": cell.failed}
    if cell.unsupported:
        return {"unsupported": cell.unsupported, "counts": cell.counts}
    return {"values": cell.values, "of": cell.of, "counts": cell.counts}


def _sqlite() -> dict[str, Any]:
    """Return the SQLite of this Python, and whether it overwrites what is deleted: an erasure may rest on it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        (secure,) = connection.execute("PRAGMA secure_delete").fetchone()
    return {"version": sqlite3.sqlite_version, "secure_delete": bool(secure)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), metavar="NAME", help=", ".join(SYSTEMS))
    parser.add_argument("--only", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS), metavar="NAME",
                        help=", ".join(SCENARIOS))  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=Size().seed, help="draws other moments to kill at, and other orders"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="how often processes are killed")
    parser.add_argument("--quick", action="store_true", help="small and soon: to see that it runs, not to quote")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures, raw counts, commit and machine there")
    given = parser.parse_args()
    size = SMALL if given.quick else Size()
    size = replace(size, seed=given.seed, rounds=given.rounds or size.rounds)
    wheres = []
    for name in given.systems:
        where = SYSTEMS.get(name, name)
        if missing := system(where).missing():
            print(f"{name} is left out, it is not installed: {missing}", file=sys.stderr)
        else:
            wheres.append(where)
    start = perf_counter()
    with tempfile.TemporaryDirectory(prefix="jidomem-governance-", ignore_cleanup_errors=True) as folder:
        table = measure(wheres, given.only, size, Path(folder))
        for line in lines(table, [system(where).name for where in wheres]):
            print(line)
        for each in map(system, wheres):
            print(f"- {each.name} {each.version()}: {each.how}.")
        if given.json:
            told = report(table, wheres, size, Path(folder), perf_counter() - start)
            given.json.write_text(json.dumps(told, indent=2, default=str) + "\n", "utf-8")
    print(f"\n`{shlex.join(['python', *sys.orig_argv[1:]])}`: {perf_counter() - start:.0f} s", file=sys.stderr)
    sys.exit(any(cell.failed for cells in table.values() for cell in cells.values()))


if __name__ == "__main__":
    main()
