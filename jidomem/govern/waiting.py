"""What the queue of a curator is made from, looked up of all that waits once, and then of what is new alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from jidomem.anchor import anchors_of
from jidomem.govern.due import dated, is_due
from jidomem.index import OxigraphIndex
from jidomem.index.asked import Asked
from jidomem.index.by_node import ByNode
from jidomem.read.reader import MemoryReader
from jidomem.terms import Term, bare, iri, is_iri, literal
from jidomem.vocab import REDACTED, graph_iri, jido, type_of

#: Items of so many bytes are named in one query, whose length is limited.
_NAMED = 30_000
#: By which an item leans on another one.
_LEANS = tuple(map(jido, ("derivedFrom", "dependsOn", "blockedBy", "about", "supersedes", "invalidates")))
_ABOUT = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?item ?class ?recorded ?agent ?because ?key ?quarantined ?summary ?source ?blob ?line ?old WHERE { GRAPH <%s> {
  VALUES ?item { %s }
  ?item a ?class ; jido:recordedAt ?recorded ; jido:assertedBy ?agent .
  OPTIONAL { ?item jido:proposedBecause ?because }
  OPTIONAL { ?item jido:quarantined ?quarantined }
  OPTIONAL { ?item jido:conflictKey ?key }
  OPTIONAL { ?item jido:summary ?summary }
  OPTIONAL { ?item jido:derivedFrom ?evidence . ?evidence rdfs:label ?source }
  OPTIONAL { ?item jido:sourceBlob ?blob OPTIONAL { ?item jido:sourceLine ?line } }
  OPTIONAL { ?item jido:supersedes ?old }
} } ORDER BY ?item ?agent ?key ?source ?blob ?line ?old
"""
_LEANING = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item (COUNT(DISTINCT ?leans) AS ?count) WHERE { GRAPH <%s> { VALUES ?item { %s }
  ?leans jido:derivedFrom|jido:dependsOn|jido:blockedBy|jido:about|jido:supersedes|jido:invalidates ?item .
  FILTER NOT EXISTS { ?leans jido:supersededBy|jido:invalidatedBy ?end }
} } GROUP BY ?item ORDER BY ?item
"""


class _Found:
    """What was found in one project: what each item is, how many lean on it, what it says in force, its dates."""

    def __init__(self, graph: str) -> None:
        self.known: ByNode[dict[str, Any]] = ByNode(graph)
        self.leaning: ByNode[int] = ByNode(graph)
        self.in_force: ByNode[str] = ByNode(graph)
        self.dates: ByNode[list[dict[str, Any]]] = ByNode(graph)

    def all(self) -> tuple[ByNode[Any], ...]:
        return self.known, self.leaning, self.in_force, self.dates


#: What was found in the projects of each index that is open.
_FOUND: WeakKeyDictionary[OxigraphIndex, dict[str, _Found]] = WeakKeyDictionary()


def kept(reader: MemoryReader, project: str) -> Kept:
    """Return what is known of what waits in *project*, level with what *reader* reads."""
    of_index = _FOUND.setdefault(reader.index, {})
    if project not in of_index:
        found = of_index.setdefault(project, _Found(graph_iri(project)))
        reader.index.observers.extend(found.all())
    return Kept(reader, project, of_index[project])


class Kept:
    """What is known of what waits; what was not looked up yet is, and what may be another by now."""

    def __init__(self, reader: MemoryReader, project: str, found: _Found) -> None:
        self._reader, self._project, self._found = reader, project, found
        self._graph, self._index = graph_iri(project), reader.index

    def known(self, items: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return of each of *items* its type, since when it is known, who says it, and its keys."""
        return self._found.known.of(items, _themselves, lambda some: self._looked_up(some or ()))

    def leaning(self, items: Collection[str]) -> dict[str, int]:
        """Return how many memories that were not ended lean on each of *items* on which any does."""
        return self._found.leaning.of(items, self._leant_on, self._counted)

    def in_force(self, items: Collection[str]) -> dict[str, str]:
        """Return what those of *items* say that are in force."""
        return self._found.in_force.of(items, self._ended, self._said)

    def due(self, now: datetime) -> list[dict[str, Any]]:
        """Return what is to be looked at again *now*, each as `due` tells it."""
        rows = self._found.dates.every(self._ended, self._dated)
        return [row for each in rows for row in each if is_due(row, now)]

    def _looked_up(self, items: Collection[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for row in asked(self._reader, self._project, _ABOUT, sorted(items)):
            kind = type_of(row["class"])
            entry = found.setdefault(row["item"], {
                "type": kind, "since": row["recorded"], "agents": {}, "because": row["because"], "keys": {},
                "quarantined": bool(row["quarantined"]), "identical": row["item"], "summary": row["summary"],
                "sources": {}, "path": None, "line": None, "replaces": {},
            })  # fmt: skip
            entry["type"] = entry["type"] or kind
            entry["agents"][row["agent"]] = None
            if row["source"]:
                entry["sources"][row["source"]] = None
            if row["old"]:
                entry["replaces"][row["old"]] = None
            for anchor in anchors_of([literal(row["blob"])] if row["blob"] and entry["path"] is None else ()):
                entry["path"], entry["line"] = anchor.path, row["line"]
            if row["key"]:
                entry["keys"][row["key"]] = None
                if row["key"].startswith("identical:"):
                    entry["identical"] = row["key"]
        return found

    def _counted(self, items: Collection[str] | None) -> Mapping[str, int]:
        rows = asked(self._reader, self._project, _LEANING, sorted(items or ()))
        return {row["item"]: row["count"] for row in rows}

    def _said(self, items: Collection[str] | None) -> Mapping[str, str]:
        memories = {item: self._reader.get_memory(self._project, item) for item in items or ()}
        active = {item: said["properties"] for item, said in memories.items() if said["status"] == "active"}
        return {item: next(iter(said.get("summary", ())), REDACTED) for item, said in active.items()}

    def _dated(self, items: Collection[str] | None) -> Mapping[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for row in dated(self._reader, self._project, items):
            found.setdefault(row["item"], []).append(row)
        return found

    def _ended(self, nodes: set[Term]) -> list[str]:
        """Return the nodes, and what they end."""
        return _themselves(nodes | Asked(self._index).ended([self._graph], nodes))

    def _leant_on(self, nodes: set[Term]) -> Iterator[str]:
        """Yield what nodes lean on: as many as do not, once they were ended."""
        for node in nodes:
            for _, predicate, other in self._index.triples(self._graph, node):
                if predicate in _LEANS and is_iri(other):
                    yield bare(other)


def _themselves(nodes: set[Term]) -> list[str]:
    return [bare(node) for node in nodes if is_iri(node)]


def asked(reader: MemoryReader, project: str, text: str, items: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of *text* about *items*, as many at a time as a query may name."""
    named, size = list[str](), 0
    for item in [*map(iri, items), ""]:
        if named and (not item or size + len(item.encode()) > _NAMED):
            yield from reader.select(project, text % (graph_iri(project), " ".join(named)))
            named, size = [], 0
        named.append(item)
        size += len(item.encode()) + 1
