"""Reads of two servers of one root in PostgreSQL, beside one server: queries a second, and CPU time by part.

    python -m bench.servers [--rounds N]

Each server is a process with a local copy of its own.  The clients are one small process whose connections go to one
server or are divided between both; everything, PostgreSQL as well, runs on this machine.  Beside the rates stand the
CPU milliseconds of a query in the server, in PostgreSQL and in the clients: two servers answer twice as many queries
as one only if the rest leaves each of them a core.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench import harness, http, load
from bench.harness import Options, Row, Spread, rounded
from tests import postgres_server

GOAL_RATIO = 1.7
SECONDS, CONNECTIONS, DECISIONS = 3.0, 8, 50
PATH = f"/projects/{load.PROJECT}/queries/decisions"
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Run:
    """Answered queries a second, and the CPU milliseconds of a query by part."""

    rate: float
    server: float
    database: float
    clients: float


def rows(options: Options) -> Iterator[Row]:
    """Yield the rate of one server, then that of two."""
    if postgres_server.BINARIES is None:
        yield Row("reads of two servers", f"{GOAL_RATIO} x", "not measured", "PostgreSQL is not installed")
        return
    runs: dict[int, list[Run]] = {1: [], 2: []}
    with ExitStack() as stack:
        database = stack.enter_context(postgres_server.server(fsync="on", max_connections="100"))
        address = database.address()
        servers = [stack.enter_context(http.run_shared(address, options.folder / name)) for name in ("one", "two")]
        _submit_decisions(servers[0][0])

        for _, number in harness.alternate(runs, options.rounds + 1):
            runs[number].append(_run(servers[:number], database, options))
    one, two = (runs[number][1:] for number in runs)  # the first run of each warms
    ratio = Spread.ratio([run.rate for run in two], [run.rate for run in one])
    for number, each in ((1, one), (2, two)):
        yield Row(
            f"reads of {number} server{'s' * (number > 1)} on PostgreSQL, {CONNECTIONS} connections",
            "-" if number == 1 else f"{GOAL_RATIO} x one",
            f"{Spread.of([run.rate for run in each])} queries/s",
            _cpu_words(each) if number == 1 else f"{ratio} x one; {_cpu_words(each)}",
            None if number == 1 else ratio.median >= GOAL_RATIO,
            {"runs": [[run.rate, run.server, run.database, run.clients] for run in each]},
        )


def _cpu_words(runs: Sequence[Run]) -> str:
    parts = ("server", "database", "clients")
    words = ", ".join(f"{name} {rounded(Spread.of([getattr(run, name) for run in runs]).median)}" for name in parts)
    return f"CPU ms a query: {words}"


def _run(servers: Sequence[tuple[str, int]], database: Any, options: Options) -> Run:
    """Return the figures of connections that are divided among *servers*."""
    ports = [urlsplit(url).port for url, _ in servers]
    requests = [{"kind": "read", "path": PATH, "port": ports[n % len(ports)]} for n in range(CONNECTIONS)]
    backends = [database.process.pid, *(pid for (pid,) in database.sql("SELECT pid FROM pg_stat_activity"))]
    parts = [[pid for _, pid in servers], backends]
    before = [sum(map(cpu_seconds, part)) for part in parts]
    figures = http.run_clients(0, SECONDS / 3 if options.quick else SECONDS, requests)
    server, in_database = (sum(map(cpu_seconds, part)) - start for part, start in zip(parts, before, strict=True))
    answered = len(figures["latencies"]["read"])
    milliseconds = [1000 * each / answered for each in (server, in_database, figures["cpu_seconds"])]
    return Run(answered / figures["elapsed"], *milliseconds)


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used; 0 if it has ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK
    return 0.0


def _submit_decisions(url: str) -> None:
    """Submit the decisions that every query lists."""
    connection = HTTPConnection(urlsplit(url).netloc)
    for number in range(DECISIONS):
        topic = {"summary": f"Decision {number}", "rationale": "measured", "topic": f"t{number}"}
        intent = {"type": "decision", **topic, **load.COMMON_FIELDS}
        path = f"/projects/{load.PROJECT}/intents"
        connection.request("POST", path, json.dumps(intent), {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = response.read()
        assert response.status == 201, body


if __name__ == "__main__":
    harness.main("bench.servers", rows)
