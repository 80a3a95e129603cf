"""How soon a new server of a shared root is ready: from a checkpoint and what came since, or without.

The root is a generated one that was moved to PostgreSQL and to SeaweedFS, both on this machine.  The first server there
reads every commit; of its copy a checkpoint is made, and then another 2 % of the memories are kept.  What is timed is a
process of `jidomem serve` from its start until `/readyz` says 200.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jidomem
from bench import backends, frame, http, load
from bench.frame import Options, Row, Spread
from jidomem.extras.servers import addresses, checkpoints
from jidomem.extras.transfer.endpoints import FolderEnd, LogEnd, bring

GOAL, OF = 60.0, 1_000_000
TAIL, AT_ONCE = 50, 1_000  # one of so many memories comes after the checkpoint
LONGEST = 3600.0


def rows(options: Options) -> Iterator[Row]:
    """A server without a checkpoint, then some with it, at each place."""
    source = options.root()
    for name in [name for name in backends.PLACES if name != "folder"]:
        own = options.folder / name.replace(" ", "-")
        own.mkdir()
        with backends.PLACES[name](own) as address:
            yield from _started(name, address, source, own, options)


def _started(name: str, address: str, source: Path, folder: Path, options: Options) -> Iterator[Row]:
    log = addresses.open_log(address, os.environ)
    begun = time.perf_counter()
    bring(FolderEnd(source), LogEnd(log))
    _say(f"{name}: filled in {time.perf_counter() - begun:.0f} s")
    what = f"{options.memories:,} memories in {name}: a new server is ready"
    with _ready(address, folder / "first") as bare:
        yield Row(f"{what}, without a checkpoint", "-", f"{bare:.1f} s", figures={"seconds": [bare]})
    begun = time.perf_counter()
    if not checkpoints.make(log, folder / "first"):
        raise RuntimeError("there is no snapshot to make a checkpoint of: give --memories 5000 or more")
    _say(f"{name}: checkpoint made in {time.perf_counter() - begun:.1f} s")
    log.close()
    tail = max(1, options.memories // TAIL)
    _add(address, folder / "first", tail)
    times = []
    for number in range(1 if options.quick else min(options.rounds, 5)):
        with _ready(address, folder / f"home-{number}") as seconds:
            times.append(seconds)
        shutil.rmtree(folder / f"home-{number}")
    spread, goal = Spread.of(times), GOAL if options.memories <= OF else GOAL * options.memories / OF
    yield Row(
        f"{what}, from one and {tail:,} commits after it",
        f"{goal:g} s",
        f"{spread} s",
        f"{frame.short(bare / spread.middle)} times as soon as without",
        spread.middle <= goal,
        {"seconds": times},
    )


@contextmanager
def _ready(address: str, home: Path) -> Iterator[float]:
    """Start a server with its copy in *home*, and give the seconds until it was ready; it is stopped at the end."""
    begun = time.perf_counter()
    with http.serving_at(address, home) as (url, _):
        _until(lambda: _answers(f"{url}/readyz"))
        seconds = time.perf_counter() - begun
        _say(f"ready after {seconds:.1f} s")
        yield seconds


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=60).close()
        return True
    except (urllib.error.HTTPError, OSError):
        return False


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST
    while not done():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {LONGEST:g} s")
        time.sleep(0.05)


def _add(address: str, home: Path, number: int) -> None:
    """Submit *number* facts to the root at *address*."""
    os.environ["JIDOMEM_HOME"] = str(home)
    common = {"applies_to_project": load.PROJECT, "asserted_by": "bench", "asserted_in": "bench", "confidence": "low"}
    intents = [{"type": "fact", "summary": f"seen in passing: {each}", **common} for each in range(number)]
    with jidomem.open(address, project=load.PROJECT) as memory:
        for first in range(0, number, AT_ONCE):
            for outcome in memory.writer.submit_many(load.PROJECT, intents[first : first + AT_ONCE]):
                if isinstance(outcome, Exception):
                    raise outcome


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    frame.main("bench.checkpoints", rows)
