"""Reads of a server with two workers against one process, from clients in one small process.

Beside the rates stand the milliseconds of a processor that a request took in the server and in the clients: two workers
answer twice as much only where the clients leave them a core each.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

from bench import frame, http, load
from bench.frame import Options, Row, Spread, percentile, short
from bench.servers import used

CONNECTIONS, SECONDS = 8, 3.0
READ = {"kind": "query", "path": f"/projects/{load.PROJECT}/queries/{http.QUESTION}?limit={http.LIMIT}"}


@dataclass(frozen=True, slots=True)
class Run:
    """What some connections were answered in a second, with percentiles in ms, and what a request took of a core."""

    rate: float
    p50: float
    p99: float
    server: float
    clients: float


def rows(options: Options) -> Iterator[Row]:
    """The rate of reads, and the memory of each process."""
    with ExitStack() as stack:
        servers = {}
        for workers in (1, 2):
            command = [*http.serve(options.copy()), "--workers", str(workers)]
            port, pid = stack.enter_context(http.started(command, "--port", None))
            _await_workers(port, workers)
            servers[workers] = (port, pid)
        runs: dict[int, list[Run]] = {1: [], 2: []}
        for number in range(options.rounds + 1):
            for workers in sorted(servers, reverse=bool(number % 2)):
                runs[workers].append(_run(*servers[workers], options))
        yield _row({workers: each[1:] for workers, each in runs.items()})  # the first round warms
        for workers, (_, pid) in servers.items():
            told = ", ".join(f"{name} {short(size)} MB" for name, size in _sizes(pid))
            yield Row(f"memory of a server with {workers} worker{'s' * (workers > 1)}", "-", told)


def _row(runs: Mapping[int, list[Run]]) -> Row:
    one, two = runs[1], runs[2]
    ratio = Spread.ratio([run.rate for run in two], [run.rate for run in one])
    latency = Spread.ratio([run.p99 for run in one], [run.p99 for run in two])
    measured = f"{ratio} x the rate of one process, p99 {latency} times shorter; {_words(two)}"
    figures = {
        str(workers): [[run.rate, run.p50, run.p99, run.server, run.clients] for run in each]
        for workers, each in runs.items()
    }
    return Row(f"HTTP named query, {CONNECTIONS} connections, 2 workers", "-", measured, _words(one), None, figures)


def _words(runs: list[Run]) -> str:
    def middle(name: str) -> str:
        return short(Spread.of([getattr(run, name) for run in runs]).middle)

    rate, latencies = Spread.of([run.rate for run in runs]), f"p50 {middle('p50')} ms, p99 {middle('p99')} ms"
    return (
        f"{rate} queries/s, {latencies}; ms of a core a request: server {middle('server')}, clients {middle('clients')}"
    )


def _run(port: int, pid: int, options: Options) -> Run:
    pids = [pid, *_children(pid)]
    before = sum(map(used, pids))
    told = http.clients(port, SECONDS / 3 if options.quick else SECONDS, [READ] * CONNECTIONS)
    reads = told["taken"]["query"]
    server, clients = (1000 * each / len(reads) for each in (sum(map(used, pids)) - before, told["used"]))
    p50, p99 = (1000 * percentile(reads, share) for share in (50, 99))
    return Run(len(reads) / told["elapsed"], p50, p99, server, clients)


def _await_workers(port: int, workers: int) -> None:
    """Return when all workers answer and have caught up."""
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        if (workers == 1 or f"jidomem_workers {workers}.0" in text) and "behind_commits{" in text and _is_ready(port):
            return
        time.sleep(0.2)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=600):
            return True
    except HTTPError as error:
        if error.code != 503:
            raise
        return False


def _children(pid: int) -> list[int]:
    return [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]


def _sizes(pid: int) -> Iterator[tuple[str, float]]:
    """The resident memory of the processes of a server, those that answer ad hoc queries left out."""
    for each in (pid, *_children(pid)):
        command = Path(f"/proc/{each}/cmdline").read_bytes()
        if b"runtime.worker" not in command:
            pages = int(Path(f"/proc/{each}/statm").read_text().split()[1])
            yield "worker" if b"serve.workers" in command else "first process", pages * 4096 / 1e6


if __name__ == "__main__":
    frame.main("bench.workers", rows)
