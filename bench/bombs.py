"""Queries without end: how a named query fares while one runs, when it is cut, and what its worker takes afterwards."""

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

from bench import frame, http, load
from bench.frame import Options, Row, percentile, short

WITHIN = 2.0
CLIENTS, AFTER = 2, 10.0
_ALL = "?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l"
_GROWN = " ".join(f"BIND(CONCAT({', '.join([f'?v{n}'] * 16)}) AS ?v{n + 1})" for n in range(9))
BOMBS = {
    "a cross product": f"SELECT (COUNT(*) AS ?n) {{ {_ALL} }}",
    "rows without end": f"SELECT * {{ {_ALL} }}",
    "a sort of all": f"SELECT * {{ {_ALL} }} ORDER BY ?c ?f ?i ?l",
    "a growing text": f"SELECT (STRLEN(?v9) AS ?n) {{ BIND('{'a' * 32}' AS ?v0) {_GROWN} }}",
    "triples without end": f"CONSTRUCT {{ ?a ?e ?l }} {{ {_ALL} }}",
    "paths of any length": "SELECT (COUNT(*) AS ?n) { ?a (!<urn:x>|^!<urn:x>)* ?b . ?c (!<urn:x>)* ?d . ?e ?f ?g }",
}


def rows(options: Options) -> Iterator[Row]:
    """Each bomb beside clients of a named query, then ten seconds later."""
    folder = Path(tempfile.mkdtemp(dir=options.folder)) / "jidomem"
    folder.mkdir()
    (folder / "config.toml").write_text(f"[limits]\nquery_seconds = {2 if options.quick else 30}\n")
    (folder / "config.toml").chmod(0o600)
    environment = {"XDG_CONFIG_HOME": str(folder.parent)}
    with http.ours(options.copy(), environment=environment) as port, ThreadPoolExecutor(1) as aside:
        _latencies(port, 1.0)
        for name, text in BOMBS.items():
            yield _row(port, name, aside, text, 2.0 if options.quick else 10.0)


def _row(port: int, name: str, aside: ThreadPoolExecutor, text: str, seconds: float) -> Row:
    usual = _while(port, aside.submit(time.sleep, seconds))
    bomb = aside.submit(_cut, port, text)
    meanwhile = _while(port, bomb)
    took, code = bomb.result()
    time.sleep(AFTER)
    busy = _busy()
    ratio = percentile(meanwhile, 99) / percentile(usual, 99)
    measured = f"p99 {short(1000 * percentile(meanwhile, 99))} ms, cut after {short(took)} s ({code}),"
    measured += f" {AFTER:g} s later its worker takes {busy:.0%} of a core"
    compared = f"{short(ratio)} x p99 {short(1000 * percentile(usual, 99))} ms without it"
    figures = {"p99_ratio": ratio, "cut_s": took, "busy": busy}
    what = f"HTTP named query, {CLIENTS} clients, beside {name}"
    return Row(what, f"{WITHIN:g} x, worker gone", measured, compared, ratio < WITHIN and busy < 0.01, figures)


def _while(port: int, bomb: Future[Any]) -> list[float]:
    """Seconds of each answer to a named query until *bomb* is done, measured in slices."""
    latencies = _latencies(port, 0.5)
    while not bomb.done():
        latencies += _latencies(port, 0.5)
    return latencies


def _latencies(port: int, seconds: float) -> list[float]:
    path = f"/projects/{load.PROJECT}/queries/{http.QUESTION}?limit={http.LIMIT}"
    answer = http.clients(port, seconds, [{"kind": "query", "path": path}] * CLIENTS)
    taken: list[float] = answer["taken"]["query"]
    return taken


def _cut(port: int, text: str) -> tuple[float, str]:
    """The seconds until the query was answered, and the code it was refused with."""
    start = time.perf_counter()
    request = Request(f"http://127.0.0.1:{port}/sparql", text.encode(), {"Content-Type": "application/sparql-query"})
    try:
        with urlopen(request, timeout=120) as answer:
            answer.read()
            return time.perf_counter() - start, "answered"
    except HTTPError as refusal:
        return time.perf_counter() - start, json.load(refusal)["code"]


def _busy() -> float:
    """The share of a core that the server's children take over a second."""
    before, start = _ticks(), time.perf_counter()
    time.sleep(1)
    return (_ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - start)


def _ticks() -> int:
    """The processor time of all grandchildren of this process: the workers of the server."""
    stats = [path.read_text().rsplit(")", 1) for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    parents = {int(stat[0].split()[0]): int(stat[1].split()[1]) for stat in stats}
    ours = {pid for pid, parent in parents.items() if parents.get(parent) == os.getpid()}
    return sum(sum(map(int, rest.split()[11:13])) for head, rest in stats if int(head.split()[0]) in ours)


if __name__ == "__main__":
    frame.main("bench.bombs", rows)
