"""Staleness: replaced facts, expired facts, and facts about a file that has changed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import sleep

from bench.governance.figures import Measure, Result, Workload
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Unsupported, now

REPLACED = Measure("staleness", "replaced facts that are still returned as active", "of the replaced", "fewer")
EXPIRED = Measure("staleness", "expired facts that are still returned as active", "of the expired", "fewer")
CHANGED = Measure(
    "staleness", "facts that are reported to be about a changed file", "of those whose file changed", "more"
)
GRACE = 1.1  # seconds, for clocks with a resolution of a second


def staleness(open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Run each of the three measures in a folder of its own, with a restart before reading."""
    for measure, measure_part in ((REPLACED, _replaced), (EXPIRED, _expired), (CHANGED, _changed)):
        part_folder = folder / measure_part.__name__
        part_folder.mkdir()
        try:
            values, total, counts = measure_part(open_system, part_folder, size)
            yield Result(measure, [values], [total], counts)
        except Unsupported as error:
            yield Result(measure, unsupported=str(error))


def _replaced(open_system: Open, folder: Path, size: Workload) -> tuple[int, int, dict[str, int]]:
    old = [Fact(f"release {n} is on Friday", f"day of release {n}") for n in range(size.facts)]
    new = [Fact(f"release {n} is on Monday", f"day of release {n}", session="s-2") for n in range(size.facts)]
    with opened(open_system, folder) as system:
        for before, after in zip(old, new, strict=True):
            system.replace(system.store(before).id, after)
    with opened(open_system, folder) as system:
        texts = {entry.text for entry in system.active_entries()}
    stale = len(texts & {fact.text for fact in old})
    return stale, len(old), {"new facts returned": len(texts & {fact.text for fact in new})}


def _expired(open_system: Open, folder: Path, size: Workload) -> tuple[int, int, dict[str, int]]:
    with opened(open_system, folder) as system:
        system.require_expiration()
        texts = {f"freeze {n} is on" for n in range(size.facts)}
        before = 0
        for n, text in enumerate(sorted(texts)):
            system.store(Fact(text, f"freeze {n}", valid_until=now() + timedelta(seconds=size.validity_seconds)))
            before += text in {entry.text for entry in system.active_entries()}
    sleep(size.validity_seconds + GRACE)
    with opened(open_system, folder) as system:
        after = len(texts & {entry.text for entry in system.active_entries()})
    return after, len(texts), {"returned before": before}


def _changed(open_system: Open, folder: Path, size: Workload) -> tuple[int, int, dict[str, int]]:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    paths = [folder / f"module_{n}.py" for n in range(2 * size.facts)]
    with opened(open_system, folder) as system:
        if system.entries_of_changed_files():
            raise ValueError("the system reports changed files before any file changed")
        ids = []
        for n, path in enumerate(paths):
            path.write_text(f"LIMIT = {n}\n")
            ids.append(system.store(Fact(f"module {n} has limit {n}", f"limit of module {n}", about=path.name)).id)
    for path in paths[::2]:
        path.write_text("LIMIT = 100\n")
    with opened(open_system, folder) as system:
        reported = set(system.entries_of_changed_files())
    return len(reported & set(ids[::2])), size.facts, {"reported, of unchanged files": len(reported & set(ids[1::2]))}
