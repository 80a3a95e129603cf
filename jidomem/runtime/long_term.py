"""Long-term memory: what a project knows beyond a session, in four named graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal as OneOf
from typing import Protocol, cast

from jidomem import schema
from jidomem.errors import PolicyDenied
from jidomem.exchange import inserting, turtle
from jidomem.index.answers import Answer
from jidomem.index.derived import DerivedStore
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.store import Found, Rows, TripleStore, named_graph, shown
from jidomem.journal.files import NAMES, Stream
from jidomem.schema import Schema
from jidomem.statements import Statement, to_triples
from jidomem.terms import literal
from jidomem.vocab import BASE, GRAPHS, JIDO
from jidomem.write.writer import MemoryWriter

#: The folder of the stream a graph is kept in.
_STREAM_OF = {graph: stream for stream, graph in NAMES.items()}
_FOREIGN = ("http://jidoka.ai/ontology#", "http://jidoka.ai/ontology/")
_FACT = f"""\
SELECT ?subject ?predicate ?object WHERE {{
  VALUES ?class {{ <{JIDO}Fact> {" ".join(f"<{namespace}Fact>" for namespace in _FOREIGN)} }}
  ?subject a ?class ; <{JIDO}localId>{"".join(f"|<{namespace}id>" for namespace in _FOREIGN)} %s ; ?predicate ?object .
}} ORDER BY ?subject ?predicate ?object
"""


class Store(Protocol):
    """What long-term memory asks: a TripleStore, or the index of a root."""

    def answer(self, text: str, graphs: Sequence[str] | None = None) -> Answer:
        """Return what *text* asks of the union of *graphs*."""


class LongTerm:
    """The four graphs of a project, context, codebase, history and system, in a TripleStore that anybody may write.

    What is inserted is kept as it is said; `Jidomem.long_term` gives the same over a root, where it is judged.
    """

    def __init__(self, project: str, store: TripleStore | None = None, *, base: str | None = None) -> None:
        """Keep *project* in *store*, one in memory unless given, its graphs below *base*, the store's unless given."""
        plain = TripleStore(base=base or BASE) if store is None else store
        self.project = Stream(project).project
        self.graphs = _graphs(project, plain.base if base is None else base)
        self.store: Store = plain
        self._plain = plain

    def insert(self, statements: Iterable[Statement], graph: str = "context") -> OneOf[True]:
        """Return True when *statements* are in *graph*: all of them or, when this raises, none.

        Each is (subject, predicate, object) by the rule of `jidomem.statements`; terms of other vocabularies that
        mean one of ours are mapped. Raises NotFound for a graph there is not, InvalidRequest for what is no statement.
        """
        rows = turtle.mapped(to_triples(statements), schema.load([]))
        return self._plain.insert_triples(rows, self.graph_iri(graph))

    def clear_graph(self, graph: str) -> OneOf[True]:
        """Return True when *graph* is empty; the others are left as they are."""
        return self._plain.clear_graph(self.graph_iri(graph))

    def query(self, text: str) -> Found:
        """Return what SPARQL asks of the four graphs together; GRAPH and FROM name one by its IRI.

        Rows are mappings of plain Python values, ASK is a truth, CONSTRUCT gives triples that `insert` takes.
        Raises PolicyDenied for an update or SERVICE, TooLarge, InvalidRequest for what cannot be read.
        """
        return shown(self.store.answer(text, list(self.graphs.values())))

    def get_fact(self, id: str) -> Rows:  # noqa: A002 - the name the memory guide gives it
        """Return subject, predicate and object of everything said of the fact whose `jido:localId` is *id*."""
        return cast(Rows, self.query(_FACT % literal(id)))

    def graph_iri(self, graph: str) -> str:
        """Return the IRI of one of the four graphs; raises NotFound, with the nearest names, for any other."""
        return named_graph(graph, self.graphs)


class RootedLongTerm(LongTerm):
    """The four graphs of a project of a root: what is inserted is judged, and kept in the journal."""

    def __init__(
        self, project: str, index: OxigraphIndex, catch_up: Callable[[], object], writer: MemoryWriter, schema: Schema
    ) -> None:
        self.project = Stream(project).project
        self.graphs = _graphs(project, BASE)
        self.store: Store = DerivedStore(index, list(self.graphs.values()), catch_up)
        self._writer = writer
        self._schema = schema

    def insert(self, statements: Iterable[Statement], graph: str = "context") -> OneOf[True]:
        """Return True when *statements* are durable in *graph*: all of them or, when this raises, none.

        Those on context are memories, judged like every intent (and descriptions of what is none); the others are
        held to the ontology and the shapes. Raises what `MemoryWriter.submit_intent` raises, and what
        `LongTerm.insert` does.
        """
        rows, stream = to_triples(statements), self._stream(graph)
        if rows and stream == "memory":
            inserting.insert(self._writer, self._schema, self.project, rows)
        elif rows:
            self._writer.append(self.project, stream, turtle.mapped(rows, self._schema))
        return True

    def clear_graph(self, graph: str) -> OneOf[True]:
        """Return True when *graph* is empty from now on; its journal keeps what was said.

        Raises PolicyDenied `index_is_derived` for the graph of memories, which are withdrawn one by one.
        """
        stream = self._stream(graph)
        if stream == "memory":
            raise PolicyDenied(
                f"the memories of {self.project} are in a journal, and are never cleared",
                hint="withdraw single ones: memory.writer.invalidate(project, iri, reason=...)",
                code="index_is_derived",
            )
        self._writer.clear(self.project, stream)
        return True

    def _stream(self, graph: str) -> str:
        iri = self.graph_iri(graph)
        return _STREAM_OF[next(name for name, of in self.graphs.items() if of == iri)]


def _graphs(project: str, base: str) -> Mapping[str, str]:
    return {name: f"{base}projects/{project}/graphs/{long}" for name, long in GRAPHS.items()}
