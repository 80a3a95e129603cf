"""Reads over HTTP of a server with two worker processes, beside a single process: rate, latency, CPU time and memory.

    python -m bench.workers [--memories N] [--rounds N]

The clients are one small process.  Beside the rates stand the CPU milliseconds of a request in the server and in the
clients: two workers answer twice as many requests only if the clients leave each of them a core.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import harness, http, load
from bench.harness import Options, Row, Spread, percentile, rounded
from bench.servers import cpu_seconds

CONNECTIONS, SECONDS = 8, 3.0
READ = {"kind": "query", "path": f"/projects/{load.PROJECT}/queries/{http.QUERY}?limit={http.LIMIT}"}


@dataclass(frozen=True, slots=True)
class Run:
    """Answered requests a second, percentiles of the latency in ms, and CPU milliseconds of a request by part."""

    rate: float
    p50: float
    p99: float
    server: float
    clients: float


def rows(options: Options) -> Iterator[Row]:
    """Yield the rate of reads, then the resident memory of each server."""
    with ExitStack() as stack:
        servers = {}
        for workers in (1, 2):
            server = http.run_jidomem(options.copy_root(), "--workers", str(workers))
            servers[workers] = stack.enter_context(server)
            _wait_until_ready(servers[workers][0], workers)
        runs: dict[int, list[Run]] = {1: [], 2: []}
        for _, workers in harness.alternate(servers, options.rounds + 1):
            runs[workers].append(_run(*servers[workers], options))
        yield _row({workers: each[1:] for workers, each in runs.items()})  # the first round warms
        for workers, (_, pid) in servers.items():
            sizes = ", ".join(f"{name} {rounded(size)} MB" for name, size in _sizes(pid))
            yield Row(f"memory of a server with {workers} worker{'s' * (workers > 1)}", "-", sizes)


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
        return rounded(Spread.of([getattr(run, name) for run in runs]).median)

    rate, latencies = Spread.of([run.rate for run in runs]), f"p50 {middle('p50')} ms, p99 {middle('p99')} ms"
    return f"{rate} queries/s, {latencies}; CPU ms a request: server {middle('server')}, clients {middle('clients')}"


def _run(port: int, pid: int, options: Options) -> Run:
    pids = [pid, *_children(pid)]
    before = sum(map(cpu_seconds, pids))
    figures = http.run_clients(port, SECONDS / 3 if options.quick else SECONDS, [READ] * CONNECTIONS)
    reads = figures["latencies"]["query"]
    server, clients = (
        1000 * each / len(reads) for each in (sum(map(cpu_seconds, pids)) - before, figures["cpu_seconds"])
    )
    p50, p99 = (1000 * percentile(reads, share) for share in (50, 99))
    return Run(len(reads) / figures["elapsed"], p50, p99, server, clients)


def _wait_until_ready(port: int, workers: int) -> None:
    """Return when all workers answer and their indexes are current."""
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        are_started = (workers == 1 or f"jidomem_workers {workers}.0" in text) and "behind_commits{" in text
        if are_started and http.is_ready(f"http://127.0.0.1:{port}"):
            return
        time.sleep(0.2)


def _children(pid: int) -> list[int]:
    return [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]


def _sizes(pid: int) -> Iterator[tuple[str, float]]:
    """Yield role and resident MB of the processes of a server, without those of ad hoc queries."""
    for each in (pid, *_children(pid)):
        command = Path(f"/proc/{each}/cmdline").read_bytes()
        if b"runtime.worker" not in command:
            role = "worker" if b"serve.workers" in command else "first process"
            yield role, harness.resident_bytes(each) / 1e6


if __name__ == "__main__":
    harness.main("bench.workers", rows)
