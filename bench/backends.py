"""What a write costs where a root may lie, in a folder or beyond one machine, and how soon another sees it.

Each place is of this machine: PostgreSQL is Debian's, on the same disk, and forces every commit to it; the object store
is SeaweedFS, which forces none.  Another machine adds the way there and back: one for an append, one for a look.  Who
sees it is a process with a copy of its own, which waits for news and answers from its index once it is level.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import jidomem
from bench import frame, generate, load
from bench.frame import Options, Row, Spread, in_turn, percentile, short
from jidomem import Jidomem
from jidomem.errors import JidomemError
from jidomem.extras.servers import addresses
from jidomem.journal.journal import Stream
from tests import postgres_server, seaweed
from tests.servers.wire import Wire

CALLS = 5  # submits timed together in one round
AT_ONCE = 1_000
REBUILDS = 5  # at most
SEEN = 100  # commits whose way to another process is timed, in each round of five
APART = 0.01  # seconds between two of them
STREAM = Stream(load.PROJECT)
#: How many seconds pass between two looks where nobody tells of news.
PAUSES = {"folder": "0.01"}
_WATCHER = """
import sys, time, jidomem
from jidomem.journal.journal import Stream
with jidomem.open(sys.argv[1], project=sys.argv[2]) as memory:
    stream, seen = Stream(sys.argv[2]), memory.catch_up(sys.argv[2])
    print(seen.position, flush=True)
    while True:
        if memory.journal.wait_for_change(stream, seen, float(sys.argv[3])):
            seen = memory.catch_up(sys.argv[2])
            print(seen.position, time.monotonic(), flush=True)
"""

_WRITER = """
import sys, jidomem
from itertools import islice
from bench import generate
from jidomem.errors import JidomemError
address, project, number, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
coming = generate.intents(10**9, project=project)
batches = [list(islice(coming, number)) for _ in range(rounds)]
with jidomem.open(address, project=project) as memory:
    print(flush=True)
    for batch in batches:
        sys.stdin.readline()
        refused = [out for out in memory.writer.submit_many(project, batch) if isinstance(out, JidomemError)]
        assert not refused, refused[0]
        print(flush=True)
"""


@contextmanager
def folder(place: Path) -> Iterator[str]:
    """A root in a folder."""
    yield str(place / "root")


@contextmanager
def postgres(place: Path) -> Iterator[str]:
    """A root in a database of a server that forces every commit to the disk."""
    with postgres_server.server(fsync="on", full_page_writes="on", wal_writer_delay="200ms") as server:
        yield server.address()


@contextmanager
def objects(place: Path) -> Iterator[str]:
    """A root in an object store."""
    with seaweed.server() as server, server.user():
        yield server.address()


PLACES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {"folder": folder}
if postgres_server.BINARIES is not None:
    PLACES["PostgreSQL"] = postgres
if seaweed.PROGRAM is not None:
    PLACES["object store"] = objects


def rows(options: Options) -> Iterator[Row]:
    """Single writes, many at once, rebuilds, and the delay until another process reads a write."""
    with ExitStack() as stack:
        addresses, open_ = {}, {}
        for name, place in PLACES.items():
            own = options.folder / name
            own.mkdir()
            addresses[name] = stack.enter_context(place(own))
            open_[name] = stack.enter_context(_opened(addresses[name], own / "home"))
        coming = {name: islice(generate.intents(10**9, project=load.PROJECT), None) for name in open_}
        yield from _written(open_, coming, options)
        if "PostgreSQL" in open_:
            yield _beside(addresses["PostgreSQL"], options)
        yield from _rebuilt(open_, options)
        for name in [name for name in open_ if name != "folder"]:
            yield _appended(name, addresses[name], options)
        if "object store" in open_:
            yield _puts(addresses["object store"])
        for name, memory in open_.items():
            yield _seen(name, memory, addresses[name], coming[name], options)


@contextmanager
def _opened(address: str, home: Path) -> Iterator[Jidomem]:
    """The root at *address*, with its copy in *home*: each of this process has its own."""
    os.environ["JIDOMEM_HOME"] = str(home)
    with jidomem.open(address, project=load.PROJECT) as memory:
        yield memory


def _written(open_: dict[str, Jidomem], coming: dict[str, Iterator[Any]], options: Options) -> Iterator[Row]:
    single = in_turn({name: lambda name=name: _submit(open_[name], coming[name], 1) for name in open_},
                     options.rounds, CALLS)  # fmt: skip
    many = in_turn({name: lambda name=name: _submit(open_[name], coming[name], AT_ONCE) for name in open_},
                   options.rounds)  # fmt: skip
    for name in open_:
        beside = "-" if name == "folder" else f"{Spread.ratio(single[name], single['folder'])} x a folder"
        middle = Spread.of([each * 1000 for each in single[name]])
        yield Row(f"single submit, {name}", "-", f"{middle} ms", beside, figures={"s": single[name]})
    for name in open_:
        beside = "-" if name == "folder" else f"{Spread.ratio(many['folder'], many[name])} x a folder's rate"
        rate = Spread.of([AT_ONCE / each for each in many[name]])
        yield Row(f"{AT_ONCE:,} submitted at once, {name}", "-", f"{rate} intents/s", beside, figures={"s": many[name]})


def _rebuilt(open_: dict[str, Jidomem], options: Options) -> Iterator[Row]:
    """The speed of a rebuild of the index from the journal, with each commit verified; of a server, from its copy."""
    times = in_turn({name: open_[name].follower.rebuild for name in open_}, min(options.rounds, REBUILDS))
    for name, memory in open_.items():
        triples = memory.index.triples_loaded
        per_triple = [seconds / triples for seconds in times[name]]
        folder = [seconds / open_["folder"].index.triples_loaded for seconds in times["folder"]]
        beside = "-" if name == "folder" else f"{Spread.ratio(folder, per_triple)} x a folder's rate"
        rate = Spread.of([1 / seconds_each for seconds_each in per_triple])
        yield Row(f"rebuild of {triples:,} triples, {name}", "200,000 triples/s", f"{rate} triples/s", beside,
                  rate.middle >= 200_000, {"triples": triples, "s": times[name]})  # fmt: skip


def _beside(address: str, options: Options) -> Row:
    """The write rate of two processes in one root, each with its own copy and project, beside that of one process."""
    with ExitStack() as stack:
        writers = [stack.enter_context(_writer(address, options, project)) for project in ("left", "right")]
        times = in_turn({"one": lambda: _write_all(writers[:1]), "two": lambda: _write_all(writers)}, options.rounds)
    rate = Spread.of([2 * AT_ONCE / each for each in times["two"]])
    beside = f"{Spread.ratio([2 * each for each in times['one']], times['two'])} x the rate of one"
    what = f"{AT_ONCE:,} at once by each of two processes, PostgreSQL"
    return Row(what, "3,000 intents/s", f"{rate} intents/s", beside, rate.middle >= 3_000, {"s": times})


@contextmanager
def _writer(address: str, options: Options, project: str) -> Iterator[subprocess.Popen[str]]:
    """A process that submits a batch of prepared intents to *project* for each line it reads."""
    environment = {**os.environ, "JIDOMEM_HOME": str(options.folder / f"home of {project}")}
    command = [sys.executable, "-c", _WRITER, address, project, str(AT_ONCE), str(2 * options.rounds + 2)]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environment)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def _write_all(writers: list[subprocess.Popen[str]]) -> None:
    """Let each of *writers* submit its next batch, and wait until all have done so."""
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in writers:
        assert each.stdout is not None
        each.stdout.readline()


def _submit(memory: Jidomem, coming: Iterator[Any], number: int) -> None:
    some = list(islice(coming, number))
    refused = [out for out in memory.writer.submit_many(load.PROJECT, some) if isinstance(out, JidomemError)]
    assert not refused, refused[0]


def _appended(name: str, address: str, options: Options) -> Row:
    """The rate of the log alone: commits of 2 KB one after another, each acknowledged."""
    log, numbers = addresses.open_log(address, os.environ), count(1)
    stream = Stream("alone")

    def append() -> None:
        number = next(numbers)
        assert log.append(stream, number, f"{number:064}", os.urandom(2_000))

    times = in_turn({"append": append}, options.rounds, 20 * CALLS)["append"]
    log.close()
    rate = Spread.of([1 / each for each in times])
    return Row(f"appends of 2 KB, {name}, one writer", "-", f"{rate} commits/s", figures={"s": times})


def _puts(address: str) -> Row:
    """The number of objects that an append puts, counted on the wire."""
    wire = Wire(os.environ["AWS_ENDPOINT_URL"])
    log, stream = addresses.open_log(address, {**os.environ, "AWS_ENDPOINT_URL": wire.endpoint}), Stream("counted")
    wire.asked.clear()
    for number in range(1, 101):
        assert log.append(stream, number, f"{number:064}", os.urandom(2_000))
    puts = [path for method, path in wire.asked if method not in ("GET", "HEAD")]
    log.close()
    wire.close()
    each = len(puts) / 100
    return Row("puts an append, object store", "at most 2", short(each), "-", each <= 2, {"puts": [each]})


def _seen(name: str, memory: Jidomem, address: str, coming: Iterator[Any], options: Options) -> Row:
    """The delay from the acknowledgement of a write until another process reads it."""
    arguments = [address, load.PROJECT, PAUSES.get(name, "60")]
    environment = {**os.environ, "JIDOMEM_HOME": str(options.folder / name / "home of the watcher")}
    command = [sys.executable, "-c", _WATCHER, *arguments]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert watcher.stdout is not None
    try:
        watcher.stdout.readline()
        submitted: list[tuple[int, float]] = []
        for _ in range(SEEN * max(1, options.rounds // 5)):
            _submit(memory, coming, 1)
            submitted.append((memory.journal.head(STREAM).position, monotonic()))
            sleep(APART)
        delays, position, at = [], 0, 0.0
        for target, acknowledged in submitted:
            while position < target:
                shown, when = watcher.stdout.readline().split()
                position, at = int(shown), float(when)
            delays.append(max(0.0, at - acknowledged) * 1000)
    finally:
        watcher.kill()
        watcher.communicate()
    p50, p99 = percentile(delays, 50), percentile(delays, 99)
    goal, met = ("p99 100 ms", p99 <= 100) if name == "PostgreSQL" else ("-", None)
    measured = f"p50 {short(p50)} ms, p99 {short(p99)} ms"
    return Row(f"seen by another process, {name}", goal, measured, "-", met, {"ms": delays})


if __name__ == "__main__":
    frame.main(__spec__.name, rows)
