"""Reads of two servers against one, on one shared root in PostgreSQL: questions a second, and where the time went.

Each server is a process with a home of its own.  The clients are one small process with some connections, which either
all ask one server or half of them each; everything, PostgreSQL as well, runs on this machine.  Beside the rates stand
the milliseconds of a processor that a question took in a server, in PostgreSQL and in the clients: two servers answer
twice as much as one only where what is not the server's leaves them a core each.
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

from bench import frame, http, load
from bench.frame import Options, Row, Spread, in_turn, short
from tests import postgres_server

GOAL = 1.7
SECONDS, CONNECTIONS, DECISIONS = 3.0, 8, 50
PATH = f"/projects/{load.PROJECT}/queries/decisions"
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Run:
    """What some connections were answered in a second, and what a question took of a processor, in milliseconds."""

    rate: float
    server: float
    database: float
    clients: float


def rows(options: Options) -> Iterator[Row]:
    """The questions two servers answer, beside those that one does."""
    if postgres_server.BINARIES is None:
        yield Row("reads of two servers", f"{GOAL} x", "not measured", "there is no PostgreSQL here")
        return
    runs: dict[int, list[Run]] = {1: [], 2: []}
    with ExitStack() as held:
        database = held.enter_context(postgres_server.server(fsync="on", max_connections="100"))
        address = database.address()
        servers = [held.enter_context(http.serving_at(address, options.folder / name)) for name in ("one", "two")]
        _fill(servers[0][0])

        def request(number: int) -> None:
            runs[number].append(_request(servers[:number], database, options))

        in_turn({"one": lambda: request(1), "two": lambda: request(2)}, options.rounds)
    one, two = (runs[number][1:] for number in runs)  # the first of each warmed it
    ratio = Spread.ratio([run.rate for run in two], [run.rate for run in one])
    for number, each in ((1, one), (2, two)):
        yield Row(
            f"reads of {number} server{'s' * (number > 1)} on PostgreSQL, {CONNECTIONS} connections",
            "-" if number == 1 else f"{GOAL} x one",
            f"{Spread.of([run.rate for run in each])} questions/s",
            _where(each) if number == 1 else f"{ratio} x one; {_where(each)}",
            None if number == 1 else ratio.middle >= GOAL,
            {"runs": [[run.rate, run.server, run.database, run.clients] for run in each]},
        )


def _where(runs: Sequence[Run]) -> str:
    parts = ("server", "database", "clients")
    took = ", ".join(f"{name} {short(Spread.of([getattr(run, name) for run in runs]).middle)}" for name in parts)
    return f"ms of a core a question: {took}"


def _request(servers: Sequence[tuple[str, int]], database: Any, options: Options) -> Run:
    """What *servers* answered to connections that are divided among them."""
    ports = [urlsplit(url).port for url, _ in servers]
    asking = [{"kind": "read", "path": PATH, "port": ports[n % len(ports)]} for n in range(CONNECTIONS)]
    backends = [database.process.pid, *(pid for (pid,) in database.sql("SELECT pid FROM pg_stat_activity"))]
    parts = [[pid for _, pid in servers], backends]
    before = [sum(map(used, part)) for part in parts]
    told = http.clients(0, SECONDS / 3 if options.quick else SECONDS, asking)
    server, in_database = (sum(map(used, part)) - was for part, was in zip(parts, before, strict=True))
    answered = len(told["taken"]["read"])
    milliseconds = [1000 * each / answered for each in (server, in_database, told["used"])]
    return Run(answered / told["elapsed"], *milliseconds)


def used(pid: int) -> float:
    """Return the seconds of a processor that a process has used; of one that is gone, none."""
    with suppress(OSError):
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / _TICK
    return 0.0


def _fill(url: str) -> None:
    """Keep some decisions, which every question lists."""
    connection = HTTPConnection(urlsplit(url).netloc)
    for number in range(DECISIONS):
        said = {
            "type": "decision",
            "summary": f"Decision {number}",
            "rationale": "measured",
            "topic": f"t{number}",
            "applies_to_project": load.PROJECT,
            "asserted_by": "ana",
            "asserted_in": "bench",
            "confidence": "high",
        }
        path = f"/projects/{load.PROJECT}/intents"
        connection.request("POST", path, json.dumps(said), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = answer.read()
        assert answer.status == 201, told


if __name__ == "__main__":
    frame.main("bench.servers", rows)
