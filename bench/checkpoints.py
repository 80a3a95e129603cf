"""The start of a new server of a shared root, from a checkpoint and the commits after it, beside a start without one.

    python -m bench.checkpoints [--memories N]

A generated root is copied to PostgreSQL and to SeaweedFS, both on this machine.  The first server there reads every
commit; its copy becomes the checkpoint, and then another 2 % of the memories are written.  A start is timed from the
start of the process `jidomem serve` until `/readyz` answers 200.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jidomem
from bench import backends, harness, http, load
from bench.harness import Options, Row, Spread
from jidomem.extras.servers import addresses, checkpoints
from jidomem.extras.transfer.endpoints import FolderEnd, LogEnd, copy_streams

GOAL_SECONDS, GOAL_MEMORIES = 60.0, 1_000_000
TAIL, AT_ONCE = 50, 1_000  # one of TAIL memories is written after the checkpoint; intents submitted together
DEADLINE = 3600.0  # seconds


def rows(options: Options) -> Iterator[Row]:
    """Yield the start without a checkpoint, then with one, for each backend."""
    source = options.shared_root()
    for name in [name for name in backends.BACKENDS if name != "folder"]:
        folder = options.folder / name.replace(" ", "-")
        folder.mkdir()
        with backends.BACKENDS[name](folder) as address:
            yield from _rows(name, address, source, folder, options)


def _rows(name: str, address: str, source: Path, folder: Path, options: Options) -> Iterator[Row]:
    log = addresses.open_log(address, os.environ)
    start = time.perf_counter()
    copy_streams(FolderEnd(source), LogEnd(log))
    _log(f"{name}: filled in {time.perf_counter() - start:.0f} s")
    label = f"{options.memories:,} memories in {name}: start of a new server"
    with _ready(address, folder / "first") as without:
        yield Row(f"{label}, without a checkpoint", "-", f"{without:.1f} s", figures={"seconds": [without]})
    start = time.perf_counter()
    if not checkpoints.make(log, folder / "first"):
        raise RuntimeError(
            "the index is too small for a snapshot, of which a checkpoint is made: give --memories 5000 or more"
        )
    _log(f"{name}: checkpoint made in {time.perf_counter() - start:.1f} s")
    log.close()
    tail = max(1, options.memories // TAIL)
    _submit_facts(address, folder / "first", tail)
    times = []
    for number in range(1 if options.quick else min(options.rounds, 5)):
        with _ready(address, folder / f"home-{number}") as seconds:
            times.append(seconds)
        shutil.rmtree(folder / f"home-{number}")
    spread = Spread.of(times)
    goal = GOAL_SECONDS * max(1, options.memories / GOAL_MEMORIES)
    yield Row(
        f"{label}, from a checkpoint and {tail:,} later commits",
        f"{goal:g} s",
        f"{spread} s",
        f"{harness.rounded(without / spread.median)} times as fast as without",
        spread.median <= goal,
        {"seconds": times},
    )


@contextmanager
def _ready(address: str, home: Path) -> Iterator[float]:
    """Run a server with its copy in *home*; yield the seconds until it was ready."""
    start = time.perf_counter()
    with http.run_shared(address, home) as (url, _):
        while not http.is_ready(url):
            if time.perf_counter() - start > DEADLINE:
                raise RuntimeError(f"the server is not ready after {DEADLINE:g} s")
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        _log(f"ready after {seconds:.1f} s")
        yield seconds


def _submit_facts(address: str, home: Path, number: int) -> None:
    os.environ["JIDOMEM_HOME"] = str(home)
    with jidomem.open(address, project=load.PROJECT) as memory:
        for first in range(0, number, AT_ONCE):
            load.submit_all(memory, map(load.fact, range(first, min(first + AT_ONCE, number))))


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    harness.main("bench.checkpoints", rows)
