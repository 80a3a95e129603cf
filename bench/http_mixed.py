"""16 clients that read and write at once for a minute: latencies, and what of the acknowledged is there afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import jidomem
from bench import frame, http, load
from bench.frame import Options, Row, percentile, short
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
    "applies_to_project": load.PROJECT,
    "asserted_by": "bench",
    "asserted_in": "load",
    "confidence": "high",
}


def rows(options: Options) -> Iterator[Row]:
    """What half of the clients submit and the other half ask, of us and of `oxigraph serve` with the same triples."""
    seconds = 5.0 if options.quick else 60.0
    theirs = _theirs(options, seconds)
    ours = _ours(options, seconds)
    for kind, goal in (("submit", SUBMIT_MS), ("query", QUERY_MS)):
        what = f"HTTP {kind}, {CLIENTS} mixed clients for {seconds:g} s, {options.memories:,} memories"
        p99 = percentile(ours["taken"][kind], 99) * 1000
        yield Row(what, f"p99 {goal} ms", _words(ours, kind), _beside(theirs, kind), p99 <= goal, {"p99_ms": p99})
    lost, beside = _lost(ours), "-" if theirs is None else f"{_lost(theirs)} oxigraph serve"
    yield Row(f"acknowledged by HTTP to {CLIENTS} mixed clients", "0 lost", lost, beside, lost.startswith("0 "))


def _ours(options: Options, seconds: float) -> dict[str, Any]:
    """What was measured of our server, and the topics that are in the journal once it has stopped."""
    root = options.copy()
    submit = {"kind": "submit", "path": f"/projects/{load.PROJECT}/intents", "body": json.dumps(INTENT)}
    ask = {"kind": "query", "path": f"/projects/{load.PROJECT}/queries/{http.QUESTION}?limit={http.LIMIT}"}
    with http.ours(root) as port:
        figures = _loaded(port, seconds, submit, ask)
    with jidomem.open(root) as memory:
        memory.catch_up(load.PROJECT)
        graph = memory.index.triples(graph_iri(load.PROJECT))
        return figures | {"kept": {o for _, p, o in graph if p == f"<{TOPIC}>"}}


def _theirs(options: Options, seconds: float) -> dict[str, Any] | None:
    """The same of native oxigraph, whose clients insert the triples that such an intent becomes."""
    program = http.oxigraph()
    if program is None:
        return None
    root, folder = options.copy(), options.folder / "native"
    with jidomem.open(root) as memory:
        memory.catch_up(load.PROJECT)
        _, path = http.native(memory, program, folder)
        item = f"<{memory.writer.submit_intent(load.PROJECT, MemoryUpdateIntent.from_dict(INTENT)).iri}>"
        memory.catch_up(load.PROJECT)
        graph = graph_iri(load.PROJECT)
        block = "".join(ntriples_line(triple) for triple in memory.index.triples(graph) if triple[0] == item)
    update = f"INSERT DATA {{ GRAPH <{graph}> {{ {block.replace(item, '<urn:item:NUMBER>')} }} }}"
    submit = {"kind": "submit", "path": "/update", "body": update, "media": "application/sparql-update"}
    with http.serving([program, "serve", "-l", str(folder)], "-b", None) as port:
        figures = _loaded(port, seconds, submit, {"kind": "query", "path": path})
        parameters = urlencode({"query": f"SELECT ?t WHERE {{ GRAPH ?g {{ ?item <{TOPIC}> ?t }} }}", "format": "json"})
        with urlopen(f"http://127.0.0.1:{port}/query?{parameters}") as answer:
            bindings = json.load(answer)["results"]["bindings"]
        return figures | {"kept": {json.dumps(row["t"]["value"], ensure_ascii=False) for row in bindings}}


def _loaded(port: int, seconds: float, *asking: dict[str, str]) -> dict[str, Any]:
    """The figures of the clients, after a second of warm-up of the server."""
    http.clients(port, 1.0, asking)
    return http.clients(port, seconds, [*asking] * (CLIENTS // len(asking)))


def _words(latencies: dict[str, Any], kind: str) -> str:
    ms = [1000 * seconds for seconds in latencies["taken"][kind]]
    return f"p50 {short(percentile(ms, 50))} ms, p99 {short(percentile(ms, 99))} ms, {len(ms):,} of them"


def _beside(latencies: dict[str, Any] | None, kind: str) -> str:
    return "oxigraph is not installed" if latencies is None else f"{_words(latencies, kind)}, oxigraph serve"


def _lost(latencies: dict[str, Any]) -> str:
    """The number of acknowledged writes that are missing."""
    lost = [number for number in latencies["acknowledged"] if f'"topic {number}"' not in latencies["kept"]]
    return f"{len(lost):,} of {len(latencies['acknowledged']):,} lost"


if __name__ == "__main__":
    frame.main("bench.http_mixed", rows)
