"""The facts behind the review queue, cached for each open index: what is due, and what is known of pending memories.

A cache of values derived from the nodes of one graph keeps an entry valid until its node gets new statements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from jidomem.base.containers import grouped
from jidomem.index.projection import IndexedProject
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.terms import Term, Triple, iri, is_iri, literal, plain_value
from jidomem.rdf.vocab import BASE, ONTOLOGY_GRAPH, REDACTED, graph_iri, jido, local_name, type_of
from jidomem.read.reader import MemoryReader
from jidomem.records import active
from jidomem.records.file_anchor import anchors_of
from jidomem.records.intent import IDENTICAL
from jidomem.records.named_query import FOREVER, to_term
from jidomem.write import conflict
from jidomem.write.snapshot import WriteSnapshot

_PREFIXES = "PREFIX jido: <https://jido.ai/ontology#>\nPREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
_ASSUMED = f"{_PREFIXES} SELECT DISTINCT ?kind WHERE {{ ?kind rdfs:subClassOf* jido:Assumption }} ORDER BY ?kind"
#: The query names the one graph of asserted memories: matching each pattern in each graph takes four times as long.
#: FILTER EXISTS and OPTIONAL look up the properties of an item; a join would read those of all items.
_DUE = (
    """
SELECT DISTINCT %(columns)s WHERE { GRAPH <%(graph)s> { %(items)s
  {
    ?item jido:expiresOn ?due
    BIND(IF(EXISTS { ?item jido:hasTaskStatus ?any }, "overdue", "review_due") AS ?reason)
  } UNION {
    ?item jido:validUntil ?due BIND("no_longer_valid" AS ?reason)
  } UNION {
    VALUES ?kind { %(assumed)s } ?item a ?kind BIND("no_review_date" AS ?reason)
    FILTER NOT EXISTS { ?item jido:expiresOn|jido:validUntil ?date }
  } UNION {
    ?withdrawn jido:invalidatedBy ?withdrawal . ?basis (jido:supersededBy|^jido:revives)* ?withdrawn .
    ?item jido:derivedFrom ?basis OPTIONAL { ?withdrawal jido:recordedAt ?due }
    FILTER(?due <= %(as_of)s && EXISTS { ?withdrawal jido:hasAssertionStatus jido:Asserted })
    BIND("basis_withdrawn" AS ?reason)
    FILTER NOT EXISTS {
      ?again jido:revives ?withdrawn ; jido:hasAssertionStatus jido:Asserted ; jido:recordedAt ?back
      FILTER(?back <= %(as_of)s)
    }
  }
  OPTIONAL { ?item jido:recordedAt ?recorded }
  FILTER(?recorded <= %(as_of)s && (?reason NOT IN ("no_longer_valid", "basis_withdrawn") || ?recorded < ?due))
  FILTER EXISTS { ?item jido:appliesToProject <%(project)s> }
  FILTER NOT EXISTS { ?item jido:hasAssertionStatus jido:Proposed }
"""
    + active.accepted()
    + active.unfinished()
    + """
  FILTER NOT EXISTS {
    ?item jido:supersededBy|jido:invalidatedBy ?end
    FILTER EXISTS { ?end jido:hasAssertionStatus jido:Asserted }
    FILTER EXISTS { ?end jido:recordedAt ?endAt FILTER(?endAt <= %(as_of)s) }
  } %(when)s
} }"""
)
_BY = f"""
  FILTER(!BOUND(?due) || ?due <= %(at)s && (?reason != "overdue" || {active.not_due_today("%(at)s")}))
  FILTER(?reason = "no_longer_valid" || NOT EXISTS {{ ?item jido:validUntil ?until FILTER(?until <= %(at)s) }})
  FILTER NOT EXISTS {{ ?item jido:validFrom ?from FILTER(?from > %(at)s) }}"""
_DATES = "OPTIONAL { ?item jido:validFrom ?valid_from } OPTIONAL { ?item jido:validUntil ?valid_until }"
_COLUMNS = "?item ?reason ?due ?recorded"
#: Items named in one query, whose length is limited.
_AT_ONCE = 200


def due(reader: MemoryReader, project: str, at: object) -> list[dict[str, Any]]:
    """Return item, reason, due and recorded of each memory due for review at the moment *at*, in no order."""
    return reader.select(project, _PREFIXES + _text(reader, project, _COLUMNS, at, FOREVER))


def dated(reader: MemoryReader, project: str, items: Collection[str] | None) -> list[dict[str, Any]]:
    """Return the rows of `due` for all moments, with valid_from and valid_until; only those of *items* unless None."""
    terms = [""] if items is None else [*map(iri, items)]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for start in range(0, len(terms), _AT_ONCE):
        named = "" if items is None else f"VALUES ?item {{ {' '.join(terms[start : start + _AT_ONCE])} }}"
        text = _text(reader, project, f"{_COLUMNS} ?valid_from ?valid_until", None, FOREVER, named)
        for row in reader.select(project, _PREFIXES + text):
            one = rows.setdefault((row["item"], row["reason"], row["due"], row["recorded"]), row)
            for name, latest in (("valid_from", max), ("valid_until", min)):
                moments = [each[name] for each in (one, row) if isinstance(each[name], datetime)]
                one[name] = latest(moments, default=one[name])
    return [*rows.values()]


def is_due(row: Mapping[str, Any], at: datetime) -> bool:
    """Return whether the memory of a row of `dated` is due for review at the moment *at*."""
    date, start, end = row["due"], row["valid_from"], row["valid_until"]
    is_task = row["reason"] == "overdue"
    has_come = date is None or (isinstance(date, datetime) and active.is_due(date, at, is_task=is_task))
    is_over = row["reason"] != "no_longer_valid" and isinstance(end, datetime) and end <= at
    return has_come and not is_over and not (isinstance(start, datetime) and start > at)


def count(reader: MemoryReader, project: str, at: object, *, most: int, as_of: object = None) -> int:
    """Return the number of memories due for review, at most *most*, as known at *as_of*."""
    pattern = _text(reader, project, "?item", at, FOREVER if as_of is None else as_of)
    (row,) = reader.select(project, f"{_PREFIXES} SELECT (COUNT(*) AS ?n) WHERE {{ {{ {pattern} LIMIT {most:d} }} }}")
    return int(row["n"])


def open_decisions(reader: MemoryReader, project: str) -> list[str]:
    """Return the recorded decisions with the status proposed, which are no proposals: nobody has decided them yet."""
    return [row["item"] for row in reader.select(project, _OPEN_DECISIONS % graph_iri(project))]


_OPEN_DECISIONS = (
    _PREFIXES
    + """\
SELECT ?item WHERE { GRAPH <%s> { ?item jido:decisionStatus "proposed" ; jido:hasAssertionStatus jido:Asserted .
  FILTER NOT EXISTS { ?item jido:supersededBy|jido:invalidatedBy ?end }
} } ORDER BY ?item
"""
)


def _text(reader: MemoryReader, project: str, columns: str, at: object | None, as_of: object, items: str = "") -> str:
    """Return the query for the moment *at*; with None, for all moments, with the dates of each item."""
    assumed = " ".join(iri(row["kind"]) for row in reader.select(project, _ASSUMED))
    return _DUE % {
        "columns": columns,
        "items": items,
        "when": _DATES if at is None else _BY % {"at": to_term(at, "dateTime", "valid_at")},
        "graph": graph_iri(project),
        "project": f"{BASE}projects/{project}",
        "assumed": assumed,
        "as_of": to_term(as_of, "dateTime", "as_of"),
    }


#: The most bytes of items named in one query, whose length is limited.
_NAMED = 30_000
#: The properties by which a memory depends on another one.
_DEPENDENCIES = tuple(map(jido, ("derivedFrom", "dependsOn", "blockedBy", "about", "supersedes", "invalidates")))
_PLACES = (
    _PREFIXES
    + """\
SELECT ?item ?class ?recorded ?blob ?line WHERE { GRAPH <%s> { VALUES ?item { %s }
  ?item a ?class ; jido:recordedAt ?recorded .
  OPTIONAL { ?item jido:sourceBlob ?blob OPTIONAL { ?item jido:sourceLine ?line } }
} } ORDER BY ?item ?blob ?line
"""
)
_ABOUT = (
    _PREFIXES
    + """\
SELECT ?item ?agent ?because ?key ?quarantined ?summary ?source ?old ?level WHERE { GRAPH <%s> { VALUES ?item { %s }
  OPTIONAL { { ?item jido:assertedBy ?agent } UNION {
    ?item jido:settledBy ?agent FILTER EXISTS { ?item jido:hasAssertionStatus jido:Asserted }
  } }
  OPTIONAL { ?item jido:proposedBecause ?because } OPTIONAL { ?item jido:quarantined ?quarantined }
  OPTIONAL { ?item jido:conflictKey ?key } OPTIONAL { ?item jido:hasEnforcementLevel ?level }
  OPTIONAL { ?item jido:summary ?summary } OPTIONAL { ?item jido:supersedes ?old }
  OPTIONAL { { ?item jido:derivedFrom/rdfs:label ?source } UNION { ?item jido:judgement ?source } }
} } ORDER BY ?item ?agent ?key ?source ?old
"""
)
_LEANING = (
    _PREFIXES
    + """\
SELECT ?item (COUNT(DISTINCT ?leans) AS ?count) WHERE { GRAPH <%s> { VALUES ?item { %s }
  ?leans jido:derivedFrom|jido:dependsOn|jido:blockedBy|jido:about|jido:supersedes|jido:invalidates ?item .
  FILTER NOT EXISTS { ?leans jido:supersededBy|jido:invalidatedBy ?end }
} } GROUP BY ?item ORDER BY ?item
"""
)


class _QueueFacts:
    """The cached facts of a project: places, descriptions, dependents, active summaries and dates."""

    def __init__(self, graph: str) -> None:
        self.places: NodeCache[dict[str, Any]] = NodeCache(graph)
        self.known: NodeCache[dict[str, Any]] = NodeCache(graph)
        self.leaning: NodeCache[int] = NodeCache(graph)
        self.active_summaries: NodeCache[str] = NodeCache(graph)
        self.dates: NodeCache[list[dict[str, Any]]] = NodeCache(graph)
        self.rivals: tuple[object, dict[str, tuple[list[str], set[str]]]] = None, {}  # of one version of the index

    def all(self) -> tuple[NodeCache[Any], ...]:
        return self.places, self.known, self.leaning, self.active_summaries, self.dates


#: The facts about the projects of each open index.
_FACTS: WeakKeyDictionary[OxigraphIndex, dict[str, _QueueFacts]] = WeakKeyDictionary()


def review_cache(reader: MemoryReader, project: str) -> ReviewCache:
    """Return the cached facts about the pending memories of *project*, up to date with the index of *reader*."""
    of_index = _FACTS.setdefault(reader.index, {})
    if project not in of_index:
        facts = of_index.setdefault(project, _QueueFacts(graph_iri(project)))
        reader.index.observers.extend(facts.all())
    return ReviewCache(reader, project, of_index[project])


class ReviewCache:
    """The facts about pending memories, queried if they are missing or may have changed."""

    def __init__(self, reader: MemoryReader, project: str, facts: _QueueFacts) -> None:
        self._reader, self._project, self._facts = reader, project, facts
        self._graph, self._index = graph_iri(project), reader.index

    def places(self, items: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return what decides the place of each of *items* in the queue: type, recording time, and file with line."""
        return self._facts.places.get(items, _themselves, lambda some: self._load_places(some or ()))

    def facts_of(self, items: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return the facts of each of *items*: those of `places`, agents, keys, sources and others."""
        return self._facts.known.get(items, _themselves, lambda some: self._load_facts(some or ()))

    def dependent_counts(self, items: Collection[str]) -> dict[str, int]:
        """Return the number of dependents, not ended, of each of *items* that has any."""
        return self._facts.leaning.get(items, self._dependencies, self._counted)

    def active_summaries(self, items: Collection[str]) -> dict[str, str]:
        """Return the summaries of those of *items* that are active."""
        return self._facts.active_summaries.get(items, self._ended, self._load_summaries)

    def rivals(self, items: Iterable[str], view: WriteSnapshot) -> dict[str, tuple[list[str], set[str]]]:
        """Return for each proposal the active memories that it conflicts with, and those in the place of ended ones."""
        version = self._index.generation, self._index.mark(self._graph)
        if self._facts.rivals[0] != version:
            self._facts.rivals = version, {}
        known = self._facts.rivals[1]
        for item in items:
            if item not in known:
                opposed = [*map(plain_value, conflict.rivals(iri(item), view))]
                known[item] = opposed, {*map(plain_value, conflict.places_taken(iri(item), view))}
        return known

    def due(self, now: datetime) -> list[dict[str, Any]]:
        """Return the rows of `due` at the moment *now*."""
        rows = self._facts.dates.all(self._ended_or_resting, self._dated)
        return [row for each in rows for row in each if is_due(row, now)]

    def _load_places(self, items: Collection[str]) -> dict[str, dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = {}
        for row in rows_about(self._reader, self._project, _PLACES, sorted(items)):
            place = {"type": None, "since": row["recorded"], "path": None, "line": None}
            entry = entries.setdefault(row["item"], place)
            entry["type"] = entry["type"] or type_of(row["class"])
            for anchor in anchors_of([literal(row["blob"])] if row["blob"] and entry["path"] is None else ()):
                entry["path"], entry["line"] = anchor.path, row["line"]
        return entries

    def _load_facts(self, items: Collection[str]) -> dict[str, dict[str, Any]]:
        places, entries = self._load_places(items), dict[str, dict[str, Any]]()
        for row in rows_about(self._reader, self._project, _ABOUT, sorted(places)):
            entry = entries.setdefault(row["item"], {
                "agents": {}, "because": row["because"], "keys": {}, "quarantined": bool(row["quarantined"]),
                "identical": row["item"], "summary": row["summary"], "sources": {}, "replaces": {},
                "level": local_name(row["level"] or "none"), **places[row["item"]],
            })  # fmt: skip
            if row["agent"]:  # else the author was redacted
                entry["agents"][row["agent"]] = None
            if row["source"]:
                entry["sources"][row["source"]] = None
            if row["old"]:
                entry["replaces"][row["old"]] = None
            if row["key"]:
                entry["keys"][row["key"]] = None
                if row["key"].startswith(IDENTICAL):
                    entry["identical"] = row["key"]
        return entries

    def _counted(self, items: Collection[str] | None) -> Mapping[str, int]:
        rows = rows_about(self._reader, self._project, _LEANING, sorted(items or ()))
        return {row["item"]: row["count"] for row in rows}

    def _load_summaries(self, items: Collection[str] | None) -> Mapping[str, str]:
        memories = {item: self._reader.get_memory(self._project, item) for item in items or ()}
        active = {item: memory["properties"] for item, memory in memories.items() if memory["status"] == "active"}
        return {item: next(iter(memory.get("summary", ())), REDACTED) for item, memory in active.items()}

    def _dated(self, items: Collection[str] | None) -> Mapping[str, list[dict[str, Any]]]:
        return grouped((row["item"], row) for row in dated(self._reader, self._project, items))

    def _ended(self, nodes: set[Term]) -> list[str]:
        """Return the nodes, and the memories that they end."""
        return _themselves(nodes | IndexedProject(self._index, self._project).ended(nodes))

    def _ended_or_resting(self, nodes: set[Term]) -> list[str]:
        """Return the nodes, the memories that they end, and those that rest on one that ended."""
        project = IndexedProject(self._index, self._project)
        changed = nodes | project.ended(nodes)
        return _themselves(changed | project.resting_on(changed))

    def _dependencies(self, nodes: set[Term]) -> Iterator[str]:
        """Yield the memories on which nodes depend: their counts change when a node is added or ended."""
        for node in nodes:
            for _, predicate, other in self._index.triples(self._graph, node):
                if predicate in _DEPENDENCIES and is_iri(other):
                    yield plain_value(other)


def _themselves(nodes: set[Term]) -> list[str]:
    return [plain_value(node) for node in nodes if is_iri(node)]


def rows_about(reader: MemoryReader, project: str, text: str, items: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the query *text* about *items*, in batches that one query may name."""
    named, size = list[str](), 0
    for item in [*map(iri, items), ""]:
        if named and (not item or size + len(item.encode()) > _NAMED):
            yield from reader.select(project, text % (graph_iri(project), " ".join(named)))
            named, size = [], 0
        named.append(item)
        size += len(item.encode()) + 1


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
