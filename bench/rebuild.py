"""Rebuilding the index from the journal on one core, with each commit verified, beside `oxigraph load` of the triples.

python -m bench.rebuild [--memories N] [--rounds N]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jidomem
from bench import harness, load
from bench.harness import Options, Row, Spread
from jidomem.rdf.terms import ntriples_line

GOAL, GOAL_RATIO = 200_000, 2.0
ROUNDS = 5


def rows(options: Options) -> Iterator[Row]:
    """Yield the rate of a rebuild beside that of oxigraph."""
    root = options.copy_root()
    program = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        results = [_round(root, program, options.folder, number) for number in range(min(options.rounds, ROUNDS))]
    finally:
        os.sched_setaffinity(0, cores)
    triples = results[0][0]
    our_seconds = [seconds for _, seconds, _ in results]
    native_seconds = [seconds for _, _, seconds in results if seconds]
    speed = Spread.of([triples / seconds for seconds in our_seconds])
    ratio = Spread.ratio(our_seconds, native_seconds) if native_seconds else None
    yield Row(
        f"rebuild the index from the journal, {triples:,} triples, one core",
        f"{GOAL:,} triples/s; within {GOAL_RATIO:.0f} x oxigraph load",
        f"{speed} triples/s",
        f"{ratio} x the time of oxigraph load" if ratio else "oxigraph is not installed",
        speed.median >= GOAL and (ratio is None or ratio.median <= GOAL_RATIO),
        {"triples": triples, "ours_seconds": our_seconds, "oxigraph_seconds": native_seconds},
    )


def _round(root: Path, program: str | None, folder: Path, number: int) -> tuple[int, float, float]:
    """Return the number of triples, the seconds of our rebuild, and those of *program* (0 without one)."""
    with jidomem.open(root, project=load.PROJECT) as memory:
        start = time.perf_counter()
        memory.follower.rebuild()
        seconds = time.perf_counter() - start
        triples = memory.index.triples_loaded
        file = folder / "triples.nt"
        if program and not file.exists():
            _write_triples(memory, file)
    if not program:
        return triples, seconds, 0.0
    start = time.perf_counter()
    command = [program, "load", "--location", folder / f"native-{number}", "--file", file, "--lenient"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return triples, seconds, time.perf_counter() - start


def _write_triples(memory: jidomem.Jidomem, file: Path) -> None:
    with file.open("w", encoding="utf-8") as out:
        for stream in memory.journal.streams():
            for commit in memory.journal.read(stream):
                out.writelines(f"{ntriples_line(triple)}\n" for triple in commit.triples)


if __name__ == "__main__":
    harness.main("bench.rebuild", rows)
