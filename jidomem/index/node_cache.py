"""A cache of what was found of the nodes of one graph, each entry good until something new is said of its node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

from jidomem.rdf.terms import Term, Triple
from jidomem.rdf.vocab import ONTOLOGY_GRAPH

V = TypeVar("V")

#: So many nodes of which something new is said cost more to look at again than to find all anew when it is asked for.
MAX_CHANGES = 5_000
#: Of so many nodes something is kept.
MAX_CACHED = 50_000
#: Returns what is found of each of some nodes; of all there are for None.
Find = Callable[[Collection[str] | None], Mapping[str, V]]
#: Returns the nodes of which another thing may be found once something new is said of some.
Touched = Callable[[set[Term]], Iterable[str]]


class NodeCache(Generic[V]):
    """Follows an index whose graph it is told of; what is found of a node is asked for again where it may be another.

    Any thread may ask; one at a time is answered. Nothing here holds the index.
    """

    def __init__(self, graph: str) -> None:
        """Begin with nothing found in *graph*."""
        self._graph = graph
        self._found: dict[str, V | None] = {}
        self._is_whole = False
        self._again: set[str] = set()  # of these another thing may be found by now
        self._news: set[Term] = set()
        self._life = self._found_in = 0
        self._lock, self._telling = Lock(), Lock()

    def of(self, nodes: Collection[str], touched: Touched, find: Find[V]) -> dict[str, V]:
        """Return what is found of each of *nodes* of which anything is."""
        with self._lock:
            if len(self._found) + len(nodes) > MAX_CACHED:
                self.reset(self._graph)
            self._level(touched)
            self._look([node for node in nodes if node not in self._found or node in self._again], find)
            return {node: value for node in nodes if (value := self._found[node]) is not None}

    def every(self, touched: Touched, find: Find[V]) -> list[V]:
        """Return what is found of all nodes of which anything is."""
        with self._lock:
            self._level(touched)
            if not self._is_whole:
                self._found, self._again = {**find(None)}, set()
                self._is_whole = True
            self._look([*self._again], find)
            return [value for value in self._found.values() if value is not None]

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Remember of which nodes something new is said."""
        if graph == self._graph:
            with self._telling:
                self._news.update(subject for subject, _, _ in triples)
                is_much = len(self._news) > MAX_CHANGES
            if is_much:
                self.reset(graph)
        elif graph == ONTOLOGY_GRAPH:
            self.reset(graph)

    def reset(self, graph: str) -> None:
        """Believe nothing any more that was found so far."""
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
        """Take in of which nodes another thing may be found by now."""
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
