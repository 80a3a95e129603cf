"""How fast the index is built anew from the journal, every commit verified, beside `oxigraph load` of the triples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jidomem
from bench import frame, load
from bench.frame import Options, Row, Spread
from jidomem.rdf.terms import ntriples_line

GOAL, TIMES = 200_000, 2.0
ROUNDS = 5


def rows(options: Options) -> Iterator[Row]:
    """Rebuild and load in turn, on one core."""
    root = options.copy()
    native = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        found = [_round(root, native, options.folder, number) for number in range(min(options.rounds, ROUNDS))]
    finally:
        os.sched_setaffinity(0, cores)
    triples = found[0][0]
    ours, theirs = [seconds for _, seconds, _ in found], [seconds for _, _, seconds in found if seconds]
    speed = Spread.of([triples / seconds for seconds in ours])
    ratio = Spread.ratio(ours, theirs) if theirs else None
    yield Row(
        f"rebuild the index from the journal, {triples:,} triples, one core",
        f"{GOAL:,} triples/s; within {TIMES:.0f} x oxigraph load",
        f"{speed} triples/s",
        f"{ratio} x the time of oxigraph load" if ratio else "oxigraph is not installed",
        speed.middle >= GOAL and (ratio is None or ratio.middle <= TIMES),
        {"triples": triples, "ours_seconds": ours, "oxigraph_seconds": theirs},
    )


def _round(root: Path, native: str | None, folder: Path, number: int) -> tuple[int, float, float]:
    """Triples, the seconds of our rebuild, and those of loading the same triples with *native*."""
    with jidomem.open(root, project=load.PROJECT) as memory:
        start = time.perf_counter()
        memory.follower.rebuild()
        seconds = time.perf_counter() - start
        triples = memory.index.triples_loaded
        file = folder / "triples.nt"
        if native and not file.exists():
            _write(memory, file)
    if not native:
        return triples, seconds, 0.0
    start = time.perf_counter()
    command = [native, "load", "--location", folder / f"native-{number}", "--file", file, "--lenient"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return triples, seconds, time.perf_counter() - start


def _write(memory: jidomem.Jidomem, file: Path) -> None:
    with file.open("w", encoding="utf-8") as out:
        for stream in memory.journal.streams():
            for commit in memory.journal.read(stream):
                out.writelines(f"{ntriples_line(triple)}\n" for triple in commit.triples)


if __name__ == "__main__":
    frame.main("bench.rebuild", rows)
