"""A cache of values derived from the nodes of one graph; an entry is valid until its node gets new statements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

from jidomem.rdf.terms import Term, Triple
from jidomem.rdf.vocab import ONTOLOGY_GRAPH

V = TypeVar("V")

#: Changed nodes above which deriving all values again is cheaper than deriving theirs.
MAX_CHANGES = 5_000
#: The most nodes with a cached value.
MAX_CACHED = 50_000
#: Returns the values of the given nodes; of all nodes for None.
Find = Callable[[Collection[str] | None], Mapping[str, V]]
#: Returns the nodes whose values may change after the given nodes got new statements.
Touched = Callable[[set[Term]], Iterable[str]]


class NodeCache(Generic[V]):
    """Observes one graph of an index; a value that may have changed is derived again when it is next read.

    Thread-safe; reads run one after another. The cache has no reference to the index.
    """

    def __init__(self, graph: str) -> None:
        """Make an empty cache of *graph*."""
        self._graph = graph
        self._found: dict[str, V | None] = {}
        self._is_whole = False
        self._again: set[str] = set()  # nodes whose values may have changed
        self._news: set[Term] = set()
        self._life = self._found_in = 0
        self._lock, self._telling = Lock(), Lock()

    def of(self, nodes: Collection[str], touched: Touched, find: Find[V]) -> dict[str, V]:
        """Return the values of those of *nodes* that have one."""
        with self._lock:
            if len(self._found) + len(nodes) > MAX_CACHED:
                self.reset(self._graph)
            self._level(touched)
            self._look([node for node in nodes if node not in self._found or node in self._again], find)
            return {node: value for node in nodes if (value := self._found[node]) is not None}

    def every(self, touched: Touched, find: Find[V]) -> list[V]:
        """Return the values of all nodes that have one."""
        with self._lock:
            self._level(touched)
            if not self._is_whole:
                self._found, self._again = {**find(None)}, set()
                self._is_whole = True
            self._look([*self._again], find)
            return [value for value in self._found.values() if value is not None]

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Record which nodes got new statements."""
        if graph == self._graph:
            with self._telling:
                self._news.update(subject for subject, _, _ in triples)
                is_much = len(self._news) > MAX_CHANGES
            if is_much:
                self.reset(graph)
        elif graph == ONTOLOGY_GRAPH:
            self.reset(graph)

    def reset(self, graph: str) -> None:
        """Invalidate all values."""
        if graph in (self._graph, ONTOLOGY_GRAPH):
            with self._telling:
                self._life += 1
                self._news = set()

    def _look(self, nodes: Collection[str], find: Find[V]) -> None:
        if nodes:
            found = find(nodes)
            self._found.update((node, found.get(node)) for node in nodes)
            self._again.difference_update(nodes)

    def _level(self, touched: Touched) -> None:
        """Determine which values may have changed since the last read."""
        with self._telling:
            life, self._news, new = self._life, set(), self._news
        if life != self._found_in:
            self._found, self._again, self._is_whole, self._found_in = {}, set(), False, life
        elif new:
            try:
                self._again.update(touched(new))
            except BaseException:
                self.reset(self._graph)
                raise
