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
Derive = Callable[[Collection[str] | None], Mapping[str, V]]
#: Returns the nodes whose values may change after the given nodes got new statements.
Affected = Callable[[set[Term]], Iterable[str]]


class NodeCache(Generic[V]):
    """Observes one graph of an index; a value that may have changed is derived again when it is next read.

    Thread-safe; reads run one after another. The cache has no reference to the index.
    """

    def __init__(self, graph: str) -> None:
        """Make an empty cache of *graph*."""
        self._graph = graph
        self._values: dict[str, V | None] = {}
        self._is_whole = False
        self._stale: set[str] = set()  # nodes whose values may have changed
        self._changed: set[Term] = set()
        self._generation = self._values_generation = 0
        self._lock, self._change_lock = Lock(), Lock()

    def get(self, nodes: Collection[str], affected: Affected, derive: Derive[V]) -> dict[str, V]:
        """Return the values of those of *nodes* that have one."""
        with self._lock:
            if len(self._values) + len(nodes) > MAX_CACHED:
                self.reset(self._graph)
            self._mark_stale(affected)
            self._derive([node for node in nodes if node not in self._values or node in self._stale], derive)
            return {node: value for node in nodes if (value := self._values[node]) is not None}

    def all(self, affected: Affected, derive: Derive[V]) -> list[V]:
        """Return the values of all nodes that have one."""
        with self._lock:
            self._mark_stale(affected)
            if not self._is_whole:
                self._values, self._stale = {**derive(None)}, set()
                self._is_whole = True
            self._derive([*self._stale], derive)
            return [value for value in self._values.values() if value is not None]

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Record which nodes got new statements."""
        if graph == self._graph:
            with self._change_lock:
                self._changed.update(subject for subject, _, _ in triples)
                is_much = len(self._changed) > MAX_CHANGES
            if is_much:
                self.reset(graph)
        elif graph == ONTOLOGY_GRAPH:
            self.reset(graph)

    def reset(self, graph: str) -> None:
        """Invalidate all values."""
        if graph in (self._graph, ONTOLOGY_GRAPH):
            with self._change_lock:
                self._generation += 1
                self._changed = set()

    def _derive(self, nodes: Collection[str], derive: Derive[V]) -> None:
        if nodes:
            values = derive(nodes)
            self._values.update((node, values.get(node)) for node in nodes)
            self._stale.difference_update(nodes)

    def _mark_stale(self, affected: Affected) -> None:
        """Determine which values may have changed since the last read."""
        with self._change_lock:
            generation, self._changed, changed = self._generation, set(), self._changed
        if generation != self._values_generation:
            self._values, self._stale, self._is_whole, self._values_generation = {}, set(), False, generation
        elif changed:
            try:
                self._stale.update(affected(changed))
            except BaseException:
                self.reset(self._graph)
                raise
