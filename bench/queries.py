"""Each named query of the playbook: 50 rows, now and as of a past moment, beside the same SPARQL in pyoxigraph.

    python -m bench.queries [--memories 100000] [--root FOLDER] [--json FILE]

The root is the shared one, or FOLDER, of the same generated project; it is only read, so its index and search file are
built once.  Bare pyoxigraph runs the same SPARQL with the same values and LIMIT 50 on the same store in the same
process; a query that takes it longer than a quarter of a second runs once.  Both sides return Python values:
pyoxigraph its terms, the reader its rows.  "again" is a repeated request, from the cache.  The first page of a list,
which sorts it once, is not in the median; its seconds are in the JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import pyoxigraph as ox

import jidomem
from bench import generate, harness, load
from bench.harness import Options, Row, Spread, rounded, time_calls, time_sides
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import GRAPHS, ONTOLOGY_GRAPH, graph_iri
from jidomem.records.named_query import NamedQuery, QueryParameter, snake, to_term
from jidomem.runtime.root import Jidomem

LIMIT = 50
#: A page is cached until the memory changes: each measured query asks for another future moment.
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
GOAL_MS, AS_OF_RATIO, BARE_RATIO = 20, 3, 1.3
#: Bare queries slower than this (seconds) run once.
SLOW = 0.25
JIDO = "https://jido.ai/ontology#"
#: Required parameters: each takes some value of this property of `jido:`.
PROPERTIES = {
    "topic": "topic",
    "module": "affectedModule",
    "file": "about",
    "evidence": "derivedFrom",
    "item": "supersedes",
}


def rows(options: Options, root: Path | None = None) -> Iterator[Row]:
    """Yield a row for each named query as soon as it is measured, then one for the slowest."""
    with jidomem.open(root or options.shared_root(), project=load.PROJECT) as memory:
        end = datetime.fromisoformat(memory.catch_up(load.PROJECT).recorded_at)
        past = generate.START + (end - generate.START) / 2
        store = memory.index._store  # the bare side: the same store, queried directly
        number = memory.texts.read(Stream(load.PROJECT), lambda file: file.metadata("memories"))
        measured: list[Row] = []
        for query in memory.playbook:
            if _has_values(query, store):
                measured.append(_row(query, memory, store, past, options))
                yield measured[-1]
    slowest = max(measured, key=lambda row: row.figures["ms"])
    label = f"slowest of {len(measured)} named queries, limit {LIMIT}, {number:,} memories"
    yield Row(label, f"{GOAL_MS} ms", f"{slowest.label}: {rounded(slowest.figures['ms'])} ms",
              is_met=slowest.figures["ms"] <= GOAL_MS)  # fmt: skip


def _row(query: NamedQuery, memory: Jidomem, store: Any, past: datetime, options: Options) -> Row:
    parameters = {snake(param.name): _example_value(param, store) for param in _required(query)}
    ask = partial(memory.reader.ask, query.name, project=load.PROJECT, limit=LIMIT, **parameters)
    first = time_calls(ask)
    ticks = count()
    times = time_sides({
        "now": lambda: ask(as_of=FUTURE + timedelta(seconds=next(ticks))),
        "past": lambda: ask(as_of=past + timedelta(microseconds=next(ticks))),
        "again": ask,
    }, options.rounds)  # fmt: skip
    spread = Spread.of([second * 1000 for second in times["now"]])
    as_of = Spread.ratio(times["past"], times["now"])
    bare = _bare_query(query, parameters, store)
    single = time_calls(bare)
    bare_times = [single] if single > SLOW else time_sides({"bare": bare}, options.rounds)["bare"]
    is_list = query.list_order is not None and query.list_order.pairs  # no SPARQL: bare pyoxigraph has no solutions
    ratio = 0.0 if is_list else median(times["now"]) / median(bare_times)
    return Row(
        f"{query.role}/{query.name}",
        f"{GOAL_MS} ms; as of {AS_OF_RATIO} x; {BARE_RATIO} x bare",
        f"{spread} ms; as of {as_of} x; again {rounded(median(times['again']) * 1000)} ms",
        "- (a list of the index)" if is_list else f"{rounded(ratio)} x bare pyoxigraph",
        spread.median <= GOAL_MS and as_of.median <= AS_OF_RATIO and ratio <= BARE_RATIO,
        {"ms": spread.median, "first_s": first, "as_of_ratio": as_of.median, "bare_ms": median(bare_times) * 1000}
        | times,
    )


def _bare_query(query: NamedQuery, variables: dict[str, str], store: Any) -> Callable[[], object]:
    """Return a function that runs the SPARQL of *query* on the store itself."""
    names = {snake(param.name): param.name for param in query.params}
    terms = query.bind({"project": load.PROJECT} | {names[name]: value for name, value in variables.items()}
                       if query.takes("project") else {})  # fmt: skip
    graphs = [
        graph
        for graph in (*(graph_iri(load.PROJECT, name) for name in GRAPHS), ONTOLOGY_GRAPH)
        if _has_triples(store, graph)
    ]
    parsed = {name: next(ox.parse(f"<urn:s> <urn:p> {term} .", ox.RdfFormat.N_TRIPLES)).object
              for name, term in terms.items()}  # fmt: skip

    def run_query() -> object:
        solutions = store.query(
            f"{query.text}\nLIMIT {LIMIT}",
            default_graph=[ox.NamedNode(graph) for graph in graphs],
            substitutions={ox.Variable(name): term for name, term in parsed.items()},
        )
        return [tuple(map(str, row)) for row in solutions]

    return run_query


def _has_triples(store: Any, graph: str) -> bool:
    return next(store.quads_for_pattern(None, None, None, ox.NamedNode(graph)), None) is not None


def _required(query: NamedQuery) -> list[QueryParameter]:
    return [param for param in query.params if param.default is None and param.name != "project"]


def _has_values(query: NamedQuery, store: Any) -> bool:
    """Return whether the store has a value for each required parameter."""
    return all(_example_value(param, store) for param in _required(query))


def _example_value(param: QueryParameter, store: Any) -> str:
    """Return some value for a parameter; empty if the store has none."""
    quad = next(store.quads_for_pattern(None, ox.NamedNode(JIDO + PROPERTIES.get(param.name, param.name)), None), None)
    value = "" if quad is None else str(quad.object.value)
    return value if value and to_term(value, param.type, param.name) else ""


def main() -> None:
    parser = harness.parser(__doc__ or "")
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="query this root, in place of the shared one")
    arguments = parser.parse_args()
    sys.exit(not harness.run({"bench.queries": partial(rows, root=arguments.root)}, arguments))


if __name__ == "__main__":
    main()
