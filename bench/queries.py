"""What each question of the playbook costs: its first 50 rows, as of a past moment too, beside bare pyoxigraph.

    python -m bench.queries [--memories 100000] [--root FOLDER] [--json FILE]

The root is the one that benchmarks share, or FOLDER, of the same generated project: it is only asked, so its index and
its search file are built once.  Bare pyoxigraph is asked the same SPARQL with the same values and LIMIT 50, of the same
store in the same process; what takes it longer than a quarter of a second it is asked once.  Both sides give what
Python can use: pyoxigraph its terms, the reader its rows.  *Again* is the very same page once more.  The first page of
a list, for which what it goes over is put in order once, is not in the median; its seconds are in the JSON.
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
from bench import frame, generate, load
from bench.frame import Options, Row, Spread, in_turn, seconds, short
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import GRAPHS, ONTOLOGY_GRAPH, graph_iri
from jidomem.records.named_query import NamedQuery, QueryParameter, snake, to_term
from jidomem.runtime.root import Jidomem

LIMIT = 50
#: A page is kept until the memory changes: each time another moment, none of which is there yet, is asked for.
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
GOAL_MS, AS_OF, BARE = 20, 3, 1.3
#: Bare queries slower than this are asked once.
SLOW = 0.25
JIDO = "https://jido.ai/ontology#"
#: What to ask for where a question needs to be told: some value of that property, or some node that has it.
PROPERTIES = {
    "topic": "topic",
    "module": "affectedModule",
    "file": "about",
    "evidence": "derivedFrom",
    "item": "supersedes",
}


def rows(options: Options, root: Path | None = None) -> Iterator[Row]:
    """A row for each question as soon as it is measured, and one for the slowest of all."""
    with jidomem.open(root or options.root(), project=load.PROJECT) as memory:
        end = datetime.fromisoformat(memory.catch_up(load.PROJECT).recorded_at)
        past = generate.START + (end - generate.START) / 2
        store = memory.index._store  # the bare side: the very same store, asked directly
        number = memory.texts.read(Stream(load.PROJECT), lambda file: file.metadata("memories"))
        measured: list[Row] = []
        for query in memory.playbook:
            if _value_of(query, store):
                measured.append(_row(query, memory, store, past, options))
                yield measured[-1]
    slowest = max(measured, key=lambda row: row.figures["ms"])
    what = f"slowest of {len(measured)} questions, limit {LIMIT}, {number:,} memories"
    yield Row(what, f"{GOAL_MS} ms", f"{slowest.what}: {short(slowest.figures['ms'])} ms",
              met=slowest.figures["ms"] <= GOAL_MS)  # fmt: skip


def _row(query: NamedQuery, memory: Jidomem, store: Any, past: datetime, options: Options) -> Row:
    parameters = {snake(param.name): _value(param, store) for param in _needed(query)}
    call = partial(memory.reader.ask, query.name, project=load.PROJECT, limit=LIMIT, **parameters)
    first = seconds(call)
    ticks = count()
    times = in_turn({
        "now": lambda: call(as_of=FUTURE + timedelta(seconds=next(ticks))),
        "past": lambda: call(as_of=past + timedelta(microseconds=next(ticks))),
        "again": call,
    }, options.rounds)  # fmt: skip
    ours = Spread.of([second * 1000 for second in times["now"]])
    as_of = Spread.ratio(times["past"], times["now"])
    bare = _bare(query, parameters, store)
    alone = seconds(bare)
    beside = [alone] if alone > SLOW else in_turn({"bare": bare}, options.rounds)["bare"]
    is_found = query.list_order is not None and query.list_order.pairs  # no SPARQL: bare pyoxigraph finds nothing
    ratio = 0.0 if is_found else median(times["now"]) / median(beside)
    return Row(
        f"{query.role}/{query.name}",
        f"{GOAL_MS} ms; as of {AS_OF} x; {BARE} x bare",
        f"{ours} ms; as of {as_of} x; again {short(median(times['again']) * 1000)} ms",
        "nothing" if is_found else f"{short(ratio)} x bare pyoxigraph",
        ours.middle <= GOAL_MS and as_of.middle <= AS_OF and ratio <= BARE,
        {"ms": ours.middle, "first_s": first, "as_of_ratio": as_of.middle, "bare_ms": median(beside) * 1000} | times,
    )


def _bare(query: NamedQuery, variables: dict[str, str], store: Any) -> Callable[[], object]:
    """The same question put to the store itself."""
    names = {snake(param.name): param.name for param in query.params}
    terms = query.bind({"project": load.PROJECT} | {names[name]: value for name, value in variables.items()}
                       if query.takes("project") else {})  # fmt: skip
    held = [
        graph for graph in (*(graph_iri(load.PROJECT, name) for name in GRAPHS), ONTOLOGY_GRAPH) if _holds(store, graph)
    ]
    parsed = {name: next(ox.parse(f"<urn:s> <urn:p> {term} .", ox.RdfFormat.N_TRIPLES)).object
              for name, term in terms.items()}  # fmt: skip

    def ask() -> object:
        found = store.query(
            f"{query.text}\nLIMIT {LIMIT}",
            default_graph=[ox.NamedNode(graph) for graph in held],
            substitutions={ox.Variable(name): term for name, term in parsed.items()},
        )
        return [tuple(map(str, row)) for row in found]

    return ask


def _holds(store: Any, graph: str) -> bool:
    return next(store.quads_for_pattern(None, None, None, ox.NamedNode(graph)), None) is not None


def _needed(query: NamedQuery) -> list[QueryParameter]:
    return [param for param in query.params if param.default is None and param.name != "project"]


def _value_of(query: NamedQuery, store: Any) -> bool:
    """Whether there is something to ask this question with."""
    return all(_value(param, store) for param in _needed(query))


def _value(param: QueryParameter, store: Any) -> str:
    """Some value for a parameter; empty where none can be found."""
    quad = next(store.quads_for_pattern(None, ox.NamedNode(JIDO + PROPERTIES.get(param.name, param.name)), None), None)
    value = "" if quad is None else str(quad.object.value)
    return value if value and to_term(value, param.type, param.name) else ""


def main() -> None:
    parser = frame.parser(__doc__ or "")
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="ask this root, in place of the shared one")
    given = parser.parse_args()
    sys.exit(not frame.run({"bench.queries": partial(rows, root=given.root)}, given))


if __name__ == "__main__":
    main()
