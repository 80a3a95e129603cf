"""16 HTTP clients that read and write at once for a minute: latencies and lost writes, beside `oxigraph serve`.

    python -m bench.http_mixed [--memories N]

Half of the clients submit intents, and half run a named query. The clients of oxigraph insert the triples of such an
intent with `INSERT DATA`. A lost write was acknowledged and is missing in the stopped server's memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import jidomem
from bench import harness, http, load
from bench.harness import Options, Row, percentile, rounded
from jidomem import MemoryUpdateIntent
from jidomem.rdf.terms import ntriples_line
from jidomem.rdf.vocab import graph_iri

SUBMIT_MS, QUERY_MS = 50, 25
CLIENTS = 16
TOPIC = "https://jido.ai/ontology#topic"
INTENT = {
    "type": "fact",
    "summary": "what was learnt the NUMBERth time",
    "topic": "topic NUMBER",
    **load.COMMON_FIELDS,
}


def rows(options: Options) -> Iterator[Row]:
    """Yield the latencies of submits and of queries, then the lost writes."""
    seconds = 5.0 if options.quick else 60.0
    native = _native_figures(options, seconds)
    ours = _our_figures(options, seconds)
    for kind, goal in (("submit", SUBMIT_MS), ("query", QUERY_MS)):
        label = f"HTTP {kind}, {CLIENTS} mixed clients for {seconds:g} s, {options.memories:,} memories"
        p99 = percentile(ours["latencies"][kind], 99) * 1000
        yield Row(
            label, f"p99 {goal} ms", _latency_words(ours, kind), _comparison(native, kind), p99 <= goal, {"p99_ms": p99}
        )
    missing, comparison = _lost(ours), "-" if native is None else f"{_lost(native)} oxigraph serve"
    yield Row(
        f"acknowledged by HTTP to {CLIENTS} mixed clients", "0 lost", missing, comparison, missing.startswith("0 ")
    )


def _our_figures(options: Options, seconds: float) -> dict[str, Any]:
    """Return the figures of our server, and as "stored" the topics in the journal after it has stopped."""
    root = options.copy_root()
    submit = {"kind": "submit", "path": f"/projects/{load.PROJECT}/intents", "body": json.dumps(INTENT)}
    ask = {"kind": "query", "path": f"/projects/{load.PROJECT}/queries/{http.QUERY}?limit={http.LIMIT}"}
    with http.run_jidomem(root) as (port, _):
        figures = _run_load(port, seconds, submit, ask)
    with jidomem.open(root) as memory:
        memory.catch_up(load.PROJECT)
        graph = memory.index.triples(graph_iri(load.PROJECT))
        return figures | {"stored": {o for _, p, o in graph if p == f"<{TOPIC}>"}}


def _native_figures(options: Options, seconds: float) -> dict[str, Any] | None:
    """Return the same figures of native oxigraph; None if it is not installed."""
    program = http.oxigraph_program()
    if program is None:
        return None
    root, folder = options.copy_root(), options.folder / "native"
    with jidomem.open(root) as memory:
        memory.catch_up(load.PROJECT)
        _, path = http.load_oxigraph(memory, program, folder)
        item = f"<{memory.writer.submit_intent(load.PROJECT, MemoryUpdateIntent.from_dict(INTENT)).iri}>"
        memory.catch_up(load.PROJECT)
        graph = graph_iri(load.PROJECT)
        triples = "".join(ntriples_line(triple) for triple in memory.index.triples(graph) if triple[0] == item)
    update = f"INSERT DATA {{ GRAPH <{graph}> {{ {triples.replace(item, '<urn:item:NUMBER>')} }} }}"
    submit = {"kind": "submit", "path": "/update", "body": update, "media": "application/sparql-update"}
    with http.run_server([program, "serve", "-l", str(folder)], "-b", None) as (port, _):
        figures = _run_load(port, seconds, submit, {"kind": "query", "path": path})
        parameters = urlencode({"query": f"SELECT ?t WHERE {{ GRAPH ?g {{ ?item <{TOPIC}> ?t }} }}", "format": "json"})
        with urlopen(f"http://127.0.0.1:{port}/query?{parameters}") as response:
            bindings = json.load(response)["results"]["bindings"]
        return figures | {"stored": {json.dumps(row["t"]["value"], ensure_ascii=False) for row in bindings}}


def _run_load(port: int, seconds: float, *requests: dict[str, str]) -> dict[str, Any]:
    """Return the figures of the clients, after a second of warm-up."""
    http.run_clients(port, 1.0, requests)
    return http.run_clients(port, seconds, [*requests] * (CLIENTS // len(requests)))


def _latency_words(figures: dict[str, Any], kind: str) -> str:
    ms = [1000 * seconds for seconds in figures["latencies"][kind]]
    return f"p50 {rounded(percentile(ms, 50))} ms, p99 {rounded(percentile(ms, 99))} ms, {len(ms):,} requests"


def _comparison(figures: dict[str, Any] | None, kind: str) -> str:
    return "oxigraph is not installed" if figures is None else f"{_latency_words(figures, kind)}, oxigraph serve"


def _lost(figures: dict[str, Any]) -> str:
    """Return in words how many acknowledged writes are missing."""
    missing = [number for number in figures["acknowledged"] if f'"topic {number}"' not in figures["stored"]]
    return f"{len(missing):,} of {len(figures['acknowledged']):,} lost"


if __name__ == "__main__":
    harness.main("bench.http_mixed", rows)
