"""A named query over HTTP while an ad hoc query without end runs: latency, the query's time limit, and its cleanup.

    python -m bench.bombs [--memories N] [--quick]

Two clients repeat a named query, first alone, then while one of the BOMBS runs on the same server. Each row has the
ratio of the two p99, the seconds after which the server cancelled the bomb, and the CPU share of the server's workers
ten seconds later.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench import harness, http, load
from bench.harness import Options, Row, percentile, rounded

GOAL_RATIO = 2.0
CLIENTS, CLEANUP_SECONDS = 2, 10.0
_ALL = "?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l"
_DOUBLINGS = " ".join(f"BIND(CONCAT({', '.join([f'?v{n}'] * 16)}) AS ?v{n + 1})" for n in range(9))
BOMBS = {
    "a cross product": f"SELECT (COUNT(*) AS ?n) {{ {_ALL} }}",
    "rows without end": f"SELECT * {{ {_ALL} }}",
    "a sort of all": f"SELECT * {{ {_ALL} }} ORDER BY ?c ?f ?i ?l",
    "a growing text": f"SELECT (STRLEN(?v9) AS ?n) {{ BIND('{'a' * 32}' AS ?v0) {_DOUBLINGS} }}",
    "triples without end": f"CONSTRUCT {{ ?a ?e ?l }} {{ {_ALL} }}",
    "paths of any length": "SELECT (COUNT(*) AS ?n) { ?a (!<urn:x>|^!<urn:x>)* ?b . ?c (!<urn:x>)* ?d . ?e ?f ?g }",
}


def rows(options: Options) -> Iterator[Row]:
    """Yield a row for each bomb."""
    folder = Path(tempfile.mkdtemp(dir=options.folder)) / "jidomem"
    folder.mkdir()
    (folder / "config.toml").write_text(f"[limits]\nquery_seconds = {2 if options.quick else 30}\n")
    (folder / "config.toml").chmod(0o600)
    environment = {"XDG_CONFIG_HOME": str(folder.parent)}
    with (
        http.run_jidomem(options.copy_root(), environment=environment) as (port, _),
        ThreadPoolExecutor(1) as background,
    ):
        _latencies(port, 1.0)
        for name, text in BOMBS.items():
            yield _row(port, name, background, text, 2.0 if options.quick else 10.0)


def _row(port: int, name: str, background: ThreadPoolExecutor, text: str, seconds: float) -> Row:
    quiet = _latencies_until(port, background.submit(time.sleep, seconds))
    bomb = background.submit(_run_bomb, port, text)
    disturbed = _latencies_until(port, bomb)
    cancelled_after, code = bomb.result()
    time.sleep(CLEANUP_SECONDS)
    cpu_share = _cpu_share()
    ratio = percentile(disturbed, 99) / percentile(quiet, 99)
    measured = (
        f"p99 {rounded(1000 * percentile(disturbed, 99))} ms, cancelled after {rounded(cancelled_after)} s ({code}),"
    )
    measured += f" {CLEANUP_SECONDS:g} s later the workers take {cpu_share:.0%} of a core"
    comparison = f"{rounded(ratio)} x p99 {rounded(1000 * percentile(quiet, 99))} ms without it"
    figures = {"p99_ratio": ratio, "cancelled_s": cancelled_after, "cpu_share": cpu_share}
    label = f"HTTP named query, {CLIENTS} clients, beside {name}"
    return Row(
        label, f"{GOAL_RATIO:g} x, worker ended", measured, comparison, ratio < GOAL_RATIO and cpu_share < 0.01, figures
    )


def _latencies_until(port: int, bomb: Future[Any]) -> list[float]:
    """Return the seconds of each answer to a named query until *bomb* is done, measured in slices."""
    latencies = _latencies(port, 0.5)
    while not bomb.done():
        latencies += _latencies(port, 0.5)
    return latencies


def _latencies(port: int, seconds: float) -> list[float]:
    path = f"/projects/{load.PROJECT}/queries/{http.QUERY}?limit={http.LIMIT}"
    latencies: list[float]
    latencies = http.run_clients(port, seconds, [{"kind": "query", "path": path}] * CLIENTS)["latencies"]["query"]
    return latencies


def _run_bomb(port: int, text: str) -> tuple[float, str]:
    """Return the seconds until the query was answered, and the error code, or "answered"."""
    start = time.perf_counter()
    request = Request(f"http://127.0.0.1:{port}/sparql", text.encode(), {"Content-Type": "application/sparql-query"})
    try:
        with urlopen(request, timeout=120) as response:
            response.read()
            return time.perf_counter() - start, "answered"
    except HTTPError as refusal:
        return time.perf_counter() - start, json.load(refusal)["code"]


def _cpu_share() -> float:
    """Return the share of a core that the server's workers take over a second."""
    before, start = _ticks(), time.perf_counter()
    time.sleep(1)
    return (_ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - start)


def _ticks() -> int:
    """Return the CPU time, in clock ticks, of all grandchildren of this process: the workers of the server."""
    stats = [path.read_text().rsplit(")", 1) for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    parents = {int(stat[0].split()[0]): int(stat[1].split()[1]) for stat in stats}
    ours = {pid for pid, parent in parents.items() if parents.get(parent) == os.getpid()}
    return sum(sum(map(int, rest.split()[11:13])) for head, rest in stats if int(head.split()[0]) in ours)


if __name__ == "__main__":
    harness.main("bench.bombs", rows)
