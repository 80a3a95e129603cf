"""A governance benchmark of memory systems for agents: eight scenarios, several systems, one table.

    python -m bench.governance [--quick] [--only NAME ...] [--systems NAME ...] [--json FILE]

A system is a name below, or MODULE:CLASS of your own adapter (bench/governance/README.md). What a system documents no
way to do is unsupported, which is no score.
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

from bench import harness
from bench.governance.figures import QUICK, Measure, Result, Workload
from bench.governance.process import Process, system
from bench.governance.scenarios import SCENARIOS, run
from bench.governance.systems import SYSTEMS

Table = dict[Measure, dict[str, Result]]


def measure(
    locations: Sequence[str], scenarios: Sequence[str], workload: Workload, folder: Path, log: Any = print
) -> Table:
    """Return the results of each scenario for each system; each has its own folder below *folder*."""
    table: Table = {}
    for scenario in scenarios:
        for location in locations:
            system_folder = folder / scenario / system(location).name
            system_folder.mkdir(parents=True)
            start = perf_counter()
            cells: dict[Measure, Result] = {}
            try:
                cells |= {
                    each.measure: each for each in run(scenario, partial(Process, location), system_folder, workload)
                }
            except Exception as error:  # the others run
                traceback.print_exc()
                cells = {
                    each: Result(each, failed=f"{type(error).__name__}: {error}") for each in SCENARIOS[scenario][1]
                }
            for each, cell in cells.items():
                table.setdefault(each, {})[system(location).name] = cell
            log(f"{scenario}, {system(location).name}: {perf_counter() - start:.1f} s", file=sys.stderr)
    return table


def table_lines(table: Table, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table, and below it the reasons of unsupported measures."""
    yield "| scenario | counted | better | " + " | ".join(names) + " |"
    yield "|---" * (3 + len(names)) + "|"
    for each, cells in table.items():
        yield (
            f"| {each.dimension} | {each.description} | {each.better} | "
            + " | ".join(str(cells[n]) for n in names)
            + " |"
        )
    yield ""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each, cells in table.items():
        for name, cell in cells.items():
            if cell.unsupported:
                reasons.setdefault((name, cell.unsupported), []).append(each.dimension)
    for (name, reason), dimensions in reasons.items():
        yield f"- {name}, {', '.join(dict.fromkeys(dimensions))}: unsupported; {reason}."


def report(
    table: Table, locations: Sequence[str], workload: Workload, folder: Path, seconds: float
) -> Mapping[str, Any]:
    """Return the figures with their context: commit, machine, versions."""
    rows = [
        {**asdict(each), "systems": {name: _cell_figures(cell) for name, cell in cells.items()}}
        for each, cells in table.items()
    ]
    versions = {each.name: each.version() for each in map(system, locations)}
    context = harness.report([], harness.Options(0, False, workload.rounds, folder))
    del context["rows"], context["memories"], context["quick"]
    return {
        **context,
        "seconds": seconds,
        "size": asdict(workload),
        "measures": rows,
        "sqlite": _sqlite(),
        "systems": versions,
    }


def _cell_figures(cell: Result) -> dict[str, Any]:
    if cell.failed:
        return {"failed": cell.failed}
    if cell.unsupported:
        return {"unsupported": cell.unsupported, "counts": cell.counts}
    return {"values": cell.values, "totals": cell.totals, "counts": cell.counts}


def _sqlite() -> dict[str, Any]:
    """Return the version of SQLite, and whether it overwrites deleted rows, which matters to erasure."""
    with closing(sqlite3.connect(":memory:")) as connection:
        (secure,) = connection.execute("PRAGMA secure_delete").fetchone()
    return {"version": sqlite3.sqlite_version, "secure_delete": bool(secure)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), metavar="NAME", help=", ".join(SYSTEMS))
    parser.add_argument("--only", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS), metavar="NAME",
                        help=", ".join(SCENARIOS))  # fmt: skip
    parser.add_argument(
        "--seed",
        type=int,
        default=Workload().seed,
        help="seed of the moments of the kills and of random orders (default: 7)",
    )
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of the scenario with killed processes (default: 3; quick: 1)"
    )
    parser.add_argument("--quick", action="store_true", help="small and short: a smoke test, not for publication")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write figures, raw counts, commit and machine to FILE"
    )
    arguments = parser.parse_args()
    workload = QUICK if arguments.quick else Workload()
    workload = replace(workload, seed=arguments.seed, rounds=arguments.rounds or workload.rounds)
    locations = []
    for name in arguments.systems:
        location = SYSTEMS.get(name, name)
        if missing := system(location).missing():
            print(f"{name} is left out, because it is not installed: {missing}", file=sys.stderr)
        else:
            locations.append(location)
    start = perf_counter()
    with tempfile.TemporaryDirectory(prefix="jidomem-governance-", ignore_cleanup_errors=True) as folder:
        table = measure(locations, arguments.only, workload, Path(folder))
        for line in table_lines(table, [system(location).name for location in locations]):
            print(line)
        for each in map(system, locations):
            print(f"- {each.name} {each.version()}: {each.usage}.")
        if arguments.json:
            figures = report(table, locations, workload, Path(folder), perf_counter() - start)
            arguments.json.write_text(json.dumps(figures, indent=2, default=str) + "\n", "utf-8")
    print(f"\n`{shlex.join(['python', *sys.orig_argv[1:]])}`: {perf_counter() - start:.0f} s", file=sys.stderr)
    sys.exit(any(cell.failed for cells in table.values() for cell in cells.values()))


if __name__ == "__main__":
    main()
