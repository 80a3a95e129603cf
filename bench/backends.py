"""Writes, rebuilds and visibility of a root in PostgreSQL and in an object store, beside a root in a folder.

    python -m bench.backends [--memories N] [--rounds N]

All servers run on this machine: Debian's PostgreSQL, on the same disk, which forces every commit to it, and SeaweedFS
as the object store, which forces none.  A remote server adds one round trip to an append and one to a look for news.
Visibility is the delay until another process, with its own copy of the root, answers from an index that has the write.
Servers that are not installed are left out.
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
from bench import harness, load
from bench.harness import Options, Row, Spread, percentile, rounded, time_sides
from jidomem import Jidomem
from jidomem.extras.servers import addresses
from jidomem.journal.journal import Stream
from tests import postgres_server, seaweed
from tests.servers.wire import Wire

CALLS = 5  # submits timed together in one round
AT_ONCE = 1_000  # intents submitted together
REBUILDS = 5  # rounds of the rebuild, at most
TIMED_COMMITS = 100  # commits whose visibility is timed, for every five rounds
COMMIT_INTERVAL = 0.01  # seconds between two of them
STREAM = Stream(load.PROJECT)
#: Seconds between two polls of a backend that does not notify of new commits.
POLL_INTERVALS = {"folder": "0.01"}
_WATCHER = """
import sys, time, jidomem
from jidomem.journal.journal import Stream
with jidomem.open(sys.argv[1], project=sys.argv[2]) as memory:
    stream, version = Stream(sys.argv[2]), memory.catch_up(sys.argv[2])
    print(version.position, flush=True)
    while True:
        if memory.journal.wait_for_change(stream, version, float(sys.argv[3])):
            version = memory.catch_up(sys.argv[2])
            print(version.position, time.monotonic(), flush=True)
"""

_WRITER = """
import sys, jidomem
from itertools import islice
from bench import generate, load
address, project, number, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
intents = generate.intents(10**9, project=project)
batches = [list(islice(intents, number)) for _ in range(rounds)]
with jidomem.open(address, project=project) as memory:
    print(flush=True)
    for batch in batches:
        sys.stdin.readline()
        load.submit_all(memory, batch, project)
        print(flush=True)
"""


@contextmanager
def folder(location: Path) -> Iterator[str]:
    """Yield the address of a root in a folder."""
    yield str(location / "root")


@contextmanager
def postgres(location: Path) -> Iterator[str]:
    """Yield the address of a root in PostgreSQL, which forces every commit to the disk."""
    with postgres_server.server(fsync="on", full_page_writes="on", wal_writer_delay="200ms") as server:
        yield server.address()


@contextmanager
def objects(location: Path) -> Iterator[str]:
    """Yield the address of a root in an object store."""
    with seaweed.server() as server, server.user():
        yield server.address()


BACKENDS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {"folder": folder}
if postgres_server.BINARIES is not None:
    BACKENDS["PostgreSQL"] = postgres
if seaweed.PROGRAM is not None:
    BACKENDS["object store"] = objects


def rows(options: Options) -> Iterator[Row]:
    """Yield rows for single and batched writes, rebuilds, appends, and visibility in another process."""
    with ExitStack() as stack:
        addresses, memories = {}, {}
        for name, location in BACKENDS.items():
            home_folder = options.folder / name
            home_folder.mkdir()
            addresses[name] = stack.enter_context(location(home_folder))
            memories[name] = stack.enter_context(_open(addresses[name], home_folder / "home"))
        intents = {name: load.intents_after(0) for name in memories}
        yield from _write_rows(memories, intents, options)
        if "PostgreSQL" in memories:
            yield _two_processes(addresses["PostgreSQL"], options)
        yield from _rebuild_rows(memories, options)
        for name in [name for name in memories if name != "folder"]:
            yield _append_row(name, addresses[name], options)
        if "object store" in memories:
            yield _puts_row(addresses["object store"])
        for name, memory in memories.items():
            yield _visibility_row(name, memory, addresses[name], intents[name], options)


@contextmanager
def _open(address: str, home: Path) -> Iterator[Jidomem]:
    """Open the root at *address* with its local copy in *home*."""
    os.environ["JIDOMEM_HOME"] = str(home)
    with jidomem.open(address, project=load.PROJECT) as memory:
        yield memory


def _write_rows(memories: dict[str, Jidomem], intents: dict[str, Iterator[Any]], options: Options) -> Iterator[Row]:
    single = time_sides({name: lambda name=name: _submit(memories[name], intents[name], 1) for name in memories},
                     options.rounds, CALLS)  # fmt: skip
    batched = time_sides({name: lambda name=name: _submit(memories[name], intents[name], AT_ONCE) for name in memories},
                         options.rounds)  # fmt: skip
    for name in memories:
        comparison = "-" if name == "folder" else f"{Spread.ratio(single[name], single['folder'])} x a folder"
        spread = Spread.of([each * 1000 for each in single[name]])
        yield Row(f"single submit, {name}", "-", f"{spread} ms", comparison, figures={"s": single[name]})
    for name in memories:
        comparison = "-" if name == "folder" else f"{Spread.ratio(batched['folder'], batched[name])} x a folder's rate"
        rate = Spread.of([AT_ONCE / each for each in batched[name]])
        yield Row(
            f"{AT_ONCE:,} submitted at once, {name}", "-", f"{rate} intents/s", comparison, figures={"s": batched[name]}
        )


def _rebuild_rows(memories: dict[str, Jidomem], options: Options) -> Iterator[Row]:
    """Yield the speed of a rebuild of the index, with each commit verified; of a server, from the local copy."""
    times = time_sides({name: memories[name].follower.rebuild for name in memories}, min(options.rounds, REBUILDS))
    for name, memory in memories.items():
        triples = memory.index.triples_loaded
        per_triple = [seconds / triples for seconds in times[name]]
        folder = [seconds / memories["folder"].index.triples_loaded for seconds in times["folder"]]
        comparison = "-" if name == "folder" else f"{Spread.ratio(folder, per_triple)} x a folder's rate"
        rate = Spread.of([1 / seconds_each for seconds_each in per_triple])
        yield Row(f"rebuild of {triples:,} triples, {name}", "200,000 triples/s", f"{rate} triples/s", comparison,
                  rate.median >= 200_000, {"triples": triples, "s": times[name]})  # fmt: skip


def _two_processes(address: str, options: Options) -> Row:
    """Return the write rate of two processes in one root, each with its own copy and project, beside that of one."""
    with ExitStack() as stack:
        writers = [stack.enter_context(_writer(address, options, project)) for project in ("left", "right")]
        times = time_sides({"one": lambda: _write_all(writers[:1]), "two": lambda: _write_all(writers)}, options.rounds)
    rate = Spread.of([2 * AT_ONCE / each for each in times["two"]])
    comparison = f"{Spread.ratio([2 * each for each in times['one']], times['two'])} x the rate of one"
    label = f"{AT_ONCE:,} at once by each of two processes, PostgreSQL"
    return Row(label, "3,000 intents/s", f"{rate} intents/s", comparison, rate.median >= 3_000, {"s": times})


@contextmanager
def _writer(address: str, options: Options, project: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that submits a batch of prepared intents to *project* for each line it reads."""
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
    """Have each of *writers* submit its next batch, and wait until all batches are acknowledged."""
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in writers:
        assert each.stdout is not None
        each.stdout.readline()


def _submit(memory: Jidomem, intents: Iterator[Any], number: int) -> None:
    load.submit_all(memory, list(islice(intents, number)))


def _append_row(name: str, address: str, options: Options) -> Row:
    """Return the rate of the log alone: acknowledged commits of 2 KB, one after another."""
    log, numbers = addresses.open_log(address, os.environ), count(1)
    stream = Stream("alone")

    def append() -> None:
        number = next(numbers)
        assert log.append(stream, number, f"{number:064}", os.urandom(2_000))

    times = time_sides({"append": append}, options.rounds, 20 * CALLS)["append"]
    log.close()
    rate = Spread.of([1 / each for each in times])
    return Row(f"appends of 2 KB, {name}, one writer", "-", f"{rate} commits/s", figures={"s": times})


def _puts_row(address: str) -> Row:
    """Return the number of objects that an append puts, counted by a proxy."""
    wire = Wire(os.environ["AWS_ENDPOINT_URL"])
    log, stream = addresses.open_log(address, {**os.environ, "AWS_ENDPOINT_URL": wire.endpoint}), Stream("counted")
    wire.requests.clear()
    for number in range(1, 101):
        assert log.append(stream, number, f"{number:064}", os.urandom(2_000))
    puts = [path for method, path in wire.requests if method not in ("GET", "HEAD")]
    log.close()
    wire.close()
    each = len(puts) / 100
    return Row("puts an append, object store", "at most 2", rounded(each), "-", each <= 2, {"puts": [each]})


def _visibility_row(name: str, memory: Jidomem, address: str, intents: Iterator[Any], options: Options) -> Row:
    """Return the delay from the acknowledgement of a write until another process reads it."""
    arguments = [address, load.PROJECT, POLL_INTERVALS.get(name, "60")]
    environment = {**os.environ, "JIDOMEM_HOME": str(options.folder / name / "home of the watcher")}
    command = [sys.executable, "-c", _WATCHER, *arguments]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert watcher.stdout is not None
    try:
        watcher.stdout.readline()
        submitted: list[tuple[int, float]] = []
        for _ in range(TIMED_COMMITS * max(1, options.rounds // 5)):
            _submit(memory, intents, 1)
            submitted.append((memory.journal.head(STREAM).position, monotonic()))
            sleep(COMMIT_INTERVAL)
        delays, position, applied_at = [], 0, 0.0
        for target, acknowledged in submitted:
            while position < target:
                position_text, when = watcher.stdout.readline().split()
                position, applied_at = int(position_text), float(when)
            delays.append(max(0.0, applied_at - acknowledged) * 1000)
    finally:
        watcher.kill()
        watcher.communicate()
    p50, p99 = percentile(delays, 50), percentile(delays, 99)
    goal, is_met = ("p99 100 ms", p99 <= 100) if name == "PostgreSQL" else ("-", None)
    measured = f"p50 {rounded(p50)} ms, p99 {rounded(p99)} ms"
    return Row(f"seen by another process, {name}", goal, measured, "-", is_met, {"ms": delays})


if __name__ == "__main__":
    harness.main(__spec__.name, rows)
