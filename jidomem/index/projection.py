"""The projection: the rows of lists, disagreements and short ids, in the SQLite file of the search text.

Each row has an interval: from when its node is recorded until something ends it. So a page is one range of one table,
now and as of any moment. The rows of a node are made again from the index when a commit describes it; the search index
(`jidomem.index.search_index`) brings them up to date.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from jidomem.base.containers import BoundedDict, grouped, reachable
from jidomem.index.list_texts import ListTexts, Statements, content
from jidomem.index.results import Solutions
from jidomem.index.store import OxigraphIndex, stored_triples
from jidomem.journal.commit import Commit
from jidomem.rdf.terms import Term, Triple, iri, is_iri, literal, plain_value
from jidomem.rdf.vocab import BASE, LABEL, ONTOLOGY_GRAPH, RDFS, SHORT_ID_CHARS, TYPE, graph_iri, graphs_of, jido
from jidomem.records.active import ACCEPTED, FOREVER, NEVER, Convention, Interval, overlapping_pairs, valid_since
from jidomem.records.intent import CLASH, JUDGED, JUDGED_AS, is_named_as_staying, judgement_keys
from jidomem.records.named_query import ListOrder

#: The time of a node without one: before every moment, as SPARQL sorts unbound values.
UNDATED = -1
_KEY_LENGTH = 16
_MOMENT = re.compile(
    r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z"\^\^<http://www.w3.org/2001/XMLSchema#dateTime>'
)
_TICK = timedelta(microseconds=1)
_START = datetime(1, 1, 1)

#: The conflict keys of docs/conflicts.md that two active memories may not share.
CONFLICT_KINDS = ("duplicate", "overlapping_decision", CLASH, "contradiction")
STALE, VALUE, PROPOSAL = "stale_supersession", "contradicting_value", "proposal"
#: The kind of two memories of which one says that a memory stays, and the other that it ends.
OPPOSITE = "opposite_judgements"
#: The conflict key of a property with at most one value, and that of the value.
_SLOT, _VALUE = "value", "value-is"
_COMPARED = {*CONFLICT_KINDS, _SLOT, _VALUE, JUDGED, JUDGED_AS}

#: In `node`, `id` is the last part of the IRI of a memory of the project, `reversed_id` the same backwards, `short_id`
#: its last characters. The time in a key of `listed` is at most `ahead` microseconds after the `since` of its row. A
#: `successor` supersedes the old node, `withdraws` or `revives` it. The `key` of a `pair` is also its sort key.
TABLES = """
CREATE TABLE node (number INTEGER PRIMARY KEY, item TEXT UNIQUE, since INTEGER, until INTEGER, id TEXT,
  reversed_id TEXT, short_id TEXT, has_label INTEGER);
CREATE INDEX node_id ON node (id) WHERE id IS NOT NULL;
CREATE INDEX node_reversed_id ON node (reversed_id) WHERE reversed_id IS NOT NULL;
CREATE INDEX node_short_id ON node (short_id) WHERE short_id IS NOT NULL;
CREATE TABLE list (number INTEGER PRIMARY KEY, definition TEXT UNIQUE, is_sortable INTEGER, ahead INTEGER DEFAULT 0);
CREATE TABLE listed (list INTEGER, key TEXT, since INTEGER, until INTEGER, due INTEGER, PRIMARY KEY (list, key))
  WITHOUT ROWID;
CREATE TABLE holder (key TEXT, number INTEGER, PRIMARY KEY (key, number)) WITHOUT ROWID;
CREATE TABLE successor (old INTEGER, new INTEGER, withdraws, revives, PRIMARY KEY (old, new)) WITHOUT ROWID;
CREATE INDEX successor_new ON successor (new);
CREATE TABLE pair (key TEXT PRIMARY KEY, a INTEGER, b INTEGER, since INTEGER, until INTEGER);
CREATE INDEX pair_a ON pair (a);
CREATE INDEX pair_b ON pair (b);
"""
_PUT_NODE = """INSERT INTO node (item, since, until, id, reversed_id, short_id, has_label) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (item) DO UPDATE SET since = excluded.since, until = excluded.until, id = excluded.id,
reversed_id = excluded.reversed_id, short_id = excluded.short_id, has_label = excluded.has_label"""
#: A successor without statements so far counts as active at any time.
_PUT_NAME = f"INSERT OR IGNORE INTO node (item, since, until) VALUES (?, -1, {FOREVER})"
_PUT_PAIR = "INSERT OR REPLACE INTO pair VALUES (?, ?, ?, ?, ?)"
_RIVALS = """SELECT h.key, n.number, n.item, n.since, n.until FROM holder h JOIN node n USING (number)
WHERE h.key IN (SELECT value FROM json_each(?)) AND h.number <> ? AND n.since < ? AND n.until > ?"""
#: The nodes superseded, withdrawn or revived by the given ones, at any distance, that several nodes ended.
_FORKS = """WITH RECURSIVE before (number) AS (SELECT value FROM json_each(?)
  UNION SELECT old FROM successor JOIN before ON new = number)
SELECT number FROM before WHERE (SELECT COUNT(*) FROM successor WHERE old = number AND NOT revives) > 1"""
#: A successor of a fork and its own successors, at any distance, and the withdrawals of these with the given key.
_LINE = """WITH RECURSIVE line (number, withdraws) AS (VALUES (:successor, 0)
  UNION SELECT new, s.withdraws FROM successor s JOIN line ON old = number AND NOT line.withdraws)
SELECT number, item, since, until, MIN(withdraws) FROM line JOIN node USING (number)
WHERE number <> :fork AND (NOT withdraws OR (:key, number) IN (SELECT key, number FROM holder)) GROUP BY number"""
_SUCCESSORS = "SELECT new, withdraws FROM successor WHERE old = ? AND NOT revives"
_KEYS = "SELECT key FROM holder WHERE number = ?"
_PAGE = """SELECT key FROM listed WHERE list = ? AND key >= ? AND since <= ? AND (? OR until > ?)
AND (due IS NULL OR due <= ?) ORDER BY %s key LIMIT ?"""
_PAIRS = """SELECT key FROM pair WHERE key >= :start AND since <= :moment AND until > :moment %s
ORDER BY key LIMIT :count"""
_SOME = "SELECT number FROM node WHERE item IN (SELECT value FROM json_each(:items))"
_AMONG = f"AND rowid IN (SELECT rowid FROM pair WHERE a IN ({_SOME}) UNION SELECT rowid FROM pair WHERE b IN ({_SOME}))"
#: The memories in a span of the list :recorded, and those of that list that a node of the span, or since then, ended.
_CHANGED = """WITH news (item) AS (
  SELECT substr(key, 17) FROM listed WHERE list = :recorded AND key >= :newest AND key < :oldest)
SELECT item FROM news WHERE item >= :start UNION
SELECT old.item FROM successor JOIN node old ON old.number = old JOIN node new ON new.number = new
WHERE NOT revives AND old.item >= :start AND (new.since > :since AND new.since <= :moment OR new.item IN news)
AND EXISTS (SELECT 1 FROM listed WHERE list = :recorded AND key = printf('%016x', :forever - old.since) || old.item)
ORDER BY item LIMIT :count"""
_IDS = """SELECT item FROM node WHERE id >= :signs AND id < :signs || char(1114111)
UNION SELECT item FROM node WHERE short_id >= :signs AND short_id < :signs || char(1114111)
UNION SELECT item FROM node WHERE reversed_id >= :signs_reversed AND reversed_id < :signs_reversed || char(1114111)
ORDER BY item LIMIT :most"""

RECORDED, STATUS, DECIDED = jido("recordedAt"), jido("hasAssertionStatus"), jido("decisionStatus")
#: The properties that decide from when on a node ends others.
BEGINS = {RECORDED, STATUS}
PROPOSED, ASSERTED = jido("Proposed"), jido("Asserted")
_SUPERSEDED, _INVALIDATED, _REVIVES = jido("supersededBy"), jido("invalidatedBy"), jido("revives")
_DERIVED = jido("derivedFrom")
_DATES = (jido("validFrom"), jido("validUntil"))
_CONFLICT_KEY, _WITH, _OF = jido("conflictKey"), jido("conflictsWith"), jido("appliesToProject")
_SUBCLASS = iri(RDFS + "subClassOf")
WRITABLE = re.compile(r"<[^\x00-\x20<>\"{}|^`\\]*>")
ID_START = re.compile(r"[/#:]")
NODES_PER_QUERY = 500


class NotSortable(Exception):
    """A member has no sort key that can be computed here, so the list needs the order of the SPARQL engine."""


class ProjectedNode(NamedTuple):
    """A node to be written: its statements, from when it is recorded, and until when nothing ends it."""

    statements: Statements
    since: int
    until: int

    @property
    def is_proposed(self) -> bool:
        """Return whether a curator has yet to accept the node."""
        return PROPOSED in self.statements.get(STATUS, ())

    @property
    def is_accepted(self) -> bool:
        """Return whether the node has no decision status but accepted."""
        return all(term == literal(ACCEPTED) for term in self.statements.get(DECIDED, ()))

    @property
    def active_until(self) -> int:
        """Return until when the node is active: NEVER for a proposal."""
        return NEVER if self.is_proposed else self.until


#: The last answers of `IndexedProject.openings`, by the class hierarchy and the lists: all projects share them.
_OPENINGS = BoundedDict[object, Mapping[Term, Mapping[Term | None, Sequence[int]]]](64)


class IndexedProject:
    """The index as read by the projection of one project, with its answers cached until the next `refresh`."""

    def __init__(self, index: OxigraphIndex, project: str) -> None:
        self.project = iri(f"{BASE}projects/{project}")
        self.graph, self._graphs = graph_iri(project), graphs_of(project)
        self.ontology, self._index = "", index
        self._triples: dict[object, list[Triple]] = {}

    def refresh(self) -> str:
        """Drop the cached answers; return a key of the class hierarchy, which changes with the subclasses."""
        self._triples = {}
        own = sorted(self._index.triples(self.graph, None, _SUBCLASS))
        self.ontology = f"{self._index.ontology} {own}" if own else self._index.ontology
        return self.ontology

    def triples(
        self, graph: str, subject: Term | None = None, predicate: Term | None = None, value: Term | None = None
    ) -> Iterator[Triple]:
        """Return the triples of *graph* that match."""
        pattern = (graph, subject, predicate, value)
        if pattern not in self._triples:
            whole = self._triples.get((graph, subject, None, None)) if subject is not None else None
            rows = self._index.triples(*pattern) if whole is None else _matching(whole, predicate, value)
            self._triples[pattern] = [*rows]
        return iter(self._triples[pattern])

    def describe(self, nodes: Iterable[Term], commits: Iterable[Commit]) -> None:
        """Cache the statements about *nodes* from *commits*, until the next `refresh`: faster than reading the index.

        Statements of later commits are missing.
        """
        rows: dict[Term, dict[Triple, None]] = {name: {} for name in nodes}
        for row in stored_triples(commits):
            if row[0] in rows:
                rows[row[0]][row] = None
        self._triples.update(((self.graph, name, None, None), [*some]) for name, some in rows.items())

    def statements(self, node: Term) -> Statements:
        """Return the memory's statements about *node*."""
        return grouped((predicate, value) for _, predicate, value in self.triples(self.graph, node))

    def node(self, name: Term) -> ProjectedNode:
        """Return a node with the interval from when it is recorded until something ends it."""
        statements = self.statements(name)
        recorded = min((ticks(at) or 0 for at in statements.get(RECORDED, ())), default=0)
        return ProjectedNode(statements, recorded, min(self._ends(statements), default=FOREVER))

    def ended(self, nodes: Iterable[Term]) -> set[Term]:
        """Return the nodes that *nodes* supersede or withdraw, or would as proposals."""
        links = (_SUPERSEDED, _INVALIDATED)
        return {old for node in nodes for link in links for old, _, _ in self.triples(self.graph, None, link, node)}

    def resting_on(self, nodes: Iterable[Term]) -> set[Term]:
        """Return the nodes derived from those of *nodes* that ended, or from a version before a withdrawn one."""
        bases = {node for node in nodes if self._has_ended(node)}

        def earlier(node: Term) -> Iterator[Term]:
            yield from (old for old, _, _ in self.triples(self.graph, None, _SUPERSEDED, node))
            yield from (old for _, _, old in self.triples(self.graph, node, _REVIVES))

        withdrawn = [node for node in bases if any(self.triples(self.graph, node, _INVALIDATED))]
        return {
            node
            for basis in bases | reachable(withdrawn, earlier)
            for node, _, _ in self.triples(self.graph, None, _DERIVED, basis)
        }

    def rests_on_ended(self, node: ProjectedNode) -> bool:
        """Return whether *node* is derived from a node that something superseded, withdrew or revived."""
        return any(
            self._has_ended(basis) or any(self.triples(self.graph, None, _REVIVES, basis))
            for basis in node.statements.get(_DERIVED, ())
        )

    def _has_ended(self, node: Term) -> bool:
        return any(any(self.triples(self.graph, node, link)) for link in (_SUPERSEDED, _INVALIDATED))

    def openings(self, lists: Mapping[int, ListOrder]) -> Mapping[Term, Mapping[Term | None, Sequence[int]]]:
        """Return the numbers of the lists that may have a node, by a property and its value; None for any value."""
        key = self.ontology, *lists.items()
        if (known := _OPENINGS.get(key)) is None:
            result: dict[Term, dict[Term | None, list[int]]] = defaultdict(lambda: defaultdict(list))
            for number, order in lists.items():
                for properties, value in order.openings or ():
                    values = {*self.subclasses(value)} if value and properties == (TYPE,) else {value}
                    for name in properties:
                        for term in values:
                            result[name][term].append(number)
            _OPENINGS[key] = known = result
        return known

    def subclasses(self, name: Term) -> set[Term]:
        """Return a class and its declared subclasses, at any depth."""
        graphs = (ONTOLOGY_GRAPH, self.graph)
        return reachable(
            [name], lambda cls: [row[0] for graph in graphs for row in self.triples(graph, None, _SUBCLASS, cls)]
        )

    def members(self, order: ListOrder, nodes: Mapping[Term, ProjectedNode]) -> Iterator[tuple[Term, Term | None]]:
        """Yield those of *nodes* that match the pattern of a list, each once for each of its times.

        The time is None in a list that is not ordered by one.
        """
        if order.conditions is not None:
            for name, node in nodes.items():
                yield from ((name, time) for time in order.conditions.times(node.statements))
            return
        names = [order.variable] + ([order.time] if order.time else [])
        text = f"{order.prologue} SELECT {' '.join(f'?{name}' for name in names)} WHERE {{ %s {order.pattern} }}"
        for row in self._rows(text, order.variable, nodes):
            yield row[0] or "", row[1] if order.time else None

    def referrers(self, pointer: Term, target: Term) -> Iterator[Interval]:
        """Yield the intervals of the nodes that refer to *target* by *pointer*, the property of `unless` of a list.

        A referrer with validity dates is left out, as it counts at some moments only; so is one that is not accepted,
        which is never active.
        """
        for name, _, _ in self.triples(self.graph, None, pointer, target):
            node = self.node(name)
            if RECORDED in node.statements and node.is_accepted and not any(date in node.statements for date in _DATES):
                yield node.since, node.active_until

    def _ends(self, statements: Statements) -> Iterator[int]:
        for end in (*statements.get(_SUPERSEDED, ()), *statements.get(_INVALIDATED, ())):
            if any(self.triples(self.graph, end, STATUS, ASSERTED)):
                moments = (ticks(at) for _, _, at in self.triples(self.graph, end, RECORDED))
                yield from (at for at in moments if at is not None)

    def _rows(self, text: str, name: str, nodes: Collection[Term]) -> Iterator[tuple[Term | None, ...]]:
        writable = [node for node in nodes if WRITABLE.fullmatch(node)]
        for at in range(0, len(writable), NODES_PER_QUERY):
            named = f"VALUES ?{name} {{ {' '.join(writable[at : at + NODES_PER_QUERY])} }}"
            answer = self._index.query(text.replace("%s", named, 1), graphs=self._graphs)
            assert isinstance(answer, Solutions)
            yield from answer.rows


class Projection:
    """The rows in the open database *store*; the caller of a method that writes has a write transaction."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._texts = ListTexts(store)

    def include(self, orders: Iterable[ListOrder], *, rebuilds: bool = False) -> list[int]:
        """Add the lists of *orders* and delete others; return the numbers of the lists to be filled: the new ones.

        All are to be filled if it *rebuilds*, as the class hierarchy changed.
        """
        definitions = dict.fromkeys(_definition(order) for order in orders if order.is_of_nodes)
        former: dict[str, int] = dict(self._store.execute("SELECT definition, number FROM list").fetchall())
        for number in [former.pop(definition) for definition in former.keys() - definitions.keys()]:
            self._store.execute("DELETE FROM list WHERE number = ?", (number,))
            self._store.execute("DELETE FROM listed WHERE list = ?", (number,))
            self._texts.delete(number)
        self._store.executemany("INSERT OR IGNORE INTO list (definition, is_sortable) VALUES (?, 1)", zip(definitions))
        if rebuilds:
            self._store.execute("DELETE FROM listed")
            self._store.execute("UPDATE list SET is_sortable = 1")
        return [number for number in self._lists() if rebuilds or number not in former.values()]

    def nodes_after(self, number: int, source: IndexedProject) -> tuple[int, dict[Term, ProjectedNode]]:
        """Return the next nodes after a number, and the number of the last of them."""
        text = "SELECT number, item FROM node WHERE number > ? ORDER BY number LIMIT ?"
        rows = self._store.execute(text, (number, NODES_PER_QUERY)).fetchall()
        names = [_node_term(item) for _, item in rows]
        return rows[-1][0] if rows else number, {name: source.node(name) for name in names}

    def last_number(self) -> int:
        """Return the highest number of a node, or 0."""
        return int(self._store.execute("SELECT COALESCE(MAX(number), 0) FROM node").fetchone()[0])

    def fill(self, numbers: Collection[int], nodes: Mapping[Term, ProjectedNode], source: IndexedProject) -> None:
        """Write the rows of *nodes* in the lists with these *numbers*."""
        lists = {number: order for number, order in self._lists().items() if number in numbers}
        self._write_list_rows(lists, nodes, source)

    def update(
        self, names: Collection[Term], source: IndexedProject, *, ending: Collection[Term] | None = None
    ) -> Mapping[Term, ProjectedNode]:
        """Write the rows of *names*, which got new statements, and of the nodes that these affect.

        *ending* are those of *names* (default: all) with a new statement that decides from when on they end others.
        Returns *names*, and the nodes that they end.
        """
        lists = self._lists()
        nodes = {name: source.node(name) for name in {*names} | source.ended(names if ending is None else ending)}
        self._write_nodes(nodes, source.project)
        pointers = {order.pointer for order in lists.values() if order.pointer}
        referents = {
            old for name in pointers for node in nodes.values() for old in node.statements.get(name, ()) if is_iri(old)
        }
        if any(order.follows_evidence for order in lists.values()):
            referents |= source.resting_on(nodes)
        others = {name: source.node(name) for name in referents - nodes.keys()}
        self._write_list_rows(lists, {**nodes, **others}, source)
        self._write_pairs(nodes, source)
        return nodes

    def page(
        self,
        order: ListOrder,
        start: str,
        moment: int,
        inactive: bool,
        count: int,
        *,
        text: str | None = None,
        due: int | None = None,
        by_due: bool = False,
    ) -> list[str] | None:
        """Return up to *count* keys of a list, from *start* on, of nodes recorded by *moment* and, unless *inactive*,
        active then; None if the list needs the order of the SPARQL engine.

        With *text* only nodes that contain it, as in `containing`; with *due* none that is due later; *by_due* those
        without a moment come first, then the longest due.
        """
        row = self._list(order)
        if row is None:
            return None
        if order.newest_first:  # keys before this are of nodes recorded later
            start = max(start, timed(moment + row[1], "", newest_first=True))
        if text is not None:
            return self._texts.page(row[0], text, start, moment, inactive, count)
        values = (row[0], start, moment, inactive, moment, FOREVER if due is None else due, count)
        rows = self._store.execute(_PAGE % ("due," if by_due else ""), values)
        return [key for (key,) in rows]

    def pairs(self, start: str, moment: int, count: int, among: Collection[str] | None = None) -> list[str]:
        """Return up to *count* keys, from *start* on, of the pairs that disagree at *moment*.

        With *among*, at least one memory of each pair is in it.
        """
        values = {"start": start, "moment": moment, "count": count, "items": json.dumps([*(among or ())])}
        rows = self._store.execute(_PAIRS % ("" if among is None else _AMONG), values)
        return [key for (key,) in rows]

    def changed(self, recorded: ListOrder, since: int, start: str, moment: int, count: int) -> list[str] | None:
        """Return up to *count* memories, from *start* on, among them all recorded or ended after *since* by *moment*.

        *recorded* is the list of all memories, those recorded last first. None if it needs the order of the engine.
        """
        row = self._list(recorded)
        if row is None or since >= moment:
            return None if row is None else []
        values = {"recorded": row[0], "since": since, "start": start, "moment": moment, "count": count,
                  "newest": timed(moment, "", newest_first=True), "oldest": timed(since, "", newest_first=True),
                  "forever": FOREVER}  # fmt: skip
        return [item for (item,) in self._store.execute(_CHANGED, values)]

    def rivals(self, item: str) -> list[str]:
        """Return a key for each memory that disagrees with *item* at any time: its IRI and the kind of conflict."""
        rows = self._store.execute(f"SELECT key FROM pair WHERE TRUE {_AMONG}", {"items": json.dumps([item])})
        result = []
        for a, b, kind in (key.split(" ") for (key,) in rows):
            result.append(f"{b if a == item else a} {kind}")
        return result

    def containing(self, order: ListOrder, text: str) -> list[Term] | None:
        """Return at least the nodes of a list whose summary with an explanation, or whose topic, contains *text*.

        Case does not count; dashes, underscores and white space stand for each other. None if the list lacks nodes.
        """
        row = self._list(order)
        if row is None:
            return None
        keys = self._texts.keys(row[0], text)
        items = keys if order.time is None else [key_parts(key, order.newest_first)[1] for key in keys]
        return [*map(_node_term, dict.fromkeys(items))]

    def by_short_id(self, signs: str, most: int) -> list[str]:
        """Return up to *most* memories of the project, sorted, whose id begins or ends with *signs*.

        The id is the part of the IRI after the last `/`, `#` or `:`. The beginning of the short id, its last
        characters, matches as well.
        """
        values = {"signs": signs, "signs_reversed": signs[::-1], "most": most}
        with suppress(UnicodeEncodeError):  # no IRI contains half a surrogate pair
            return [item for (item,) in self._store.execute(_IDS, values)] if signs else []
        return []

    def missing(self, names: Collection[Term]) -> list[Term]:
        """Return those of *names* that have no rows yet."""
        text = "SELECT item FROM node WHERE since >= 0 AND item IN (SELECT value FROM json_each(?))"
        existing = {item for (item,) in self._store.execute(text, (json.dumps([*map(_node_text, names)]),))}
        return [name for name in names if _node_text(name) not in existing]

    def labelled(self, names: Collection[Term]) -> list[Term]:
        """Return those of *names* that had a label when their rows were written."""
        text = "SELECT item FROM node WHERE has_label AND item IN (SELECT value FROM json_each(?))"
        return [_node_term(item) for (item,) in self._store.execute(text, (json.dumps([*map(_node_text, names)]),))]

    def _list(self, order: ListOrder) -> tuple[int, int] | None:
        """Return the number of a list, and how far the times of its keys are ahead; None if it cannot be sorted."""
        text = "SELECT number, ahead FROM list WHERE definition = ? AND is_sortable"
        row: tuple[int, int] | None = self._store.execute(text, (_definition(order),)).fetchone()
        return row

    def _lists(self) -> dict[int, ListOrder]:
        rows = self._store.execute("SELECT number, definition FROM list ORDER BY number")
        return {number: _order(definition) for number, definition in rows}

    def _numbers(self, items: Iterable[str]) -> dict[str, int]:
        text = "SELECT item, number FROM node WHERE item IN (SELECT value FROM json_each(?))"
        return dict(self._store.execute(text, (json.dumps([*items]),)))

    def _write_nodes(self, nodes: Mapping[Term, ProjectedNode], project: Term) -> None:
        rows = []
        for name, node in nodes.items():
            item = _node_text(name)
            part = ID_START.split(item)[-1] if project in node.statements.get(_OF, ()) else None
            ids = part, part and part[::-1], part and part[-SHORT_ID_CHARS:]
            rows.append((item, node.since, node.active_until, *ids, LABEL in node.statements))
        self._store.executemany(_PUT_NODE, rows)
        ends = [
            (_node_text(name), _node_text(new), link == _INVALIDATED, False)
            for name, node in nodes.items() for link in (_SUPERSEDED, _INVALIDATED)
            for new in node.statements.get(link, ())
        ]  # fmt: skip
        ends += [(_node_text(old), _node_text(name), False, True)
                 for name, node in nodes.items() for old in node.statements.get(_REVIVES, ())]  # fmt: skip
        self._store.executemany(_PUT_NAME, ((name,) for end in ends for name in end[:2]))
        numbers = self._numbers({*map(_node_text, nodes), *(name for end in ends for name in end[:2])})
        successors = ((numbers[old], numbers[new], *links) for old, new, *links in ends)
        self._store.executemany("INSERT OR IGNORE INTO successor VALUES (?, ?, ?, ?)", successors)
        keys = ((key, numbers[_node_text(name)]) for name, node in nodes.items() for key in _keys(node.statements))
        self._store.executemany("INSERT OR IGNORE INTO holder VALUES (?, ?)", keys)

    def _write_list_rows(
        self, lists: Mapping[int, ListOrder], nodes: Mapping[Term, ProjectedNode], source: IndexedProject
    ) -> None:
        openings, anything = source.openings(lists), [n for n, order in lists.items() if order.openings is None]
        fitting: dict[int, dict[Term, None]] = defaultdict(dict)
        for name, node in nodes.items():
            for number in anything:
                fitting[number][name] = None
            for property_ in openings.keys() & node.statements.keys():
                rests = property_ != _DERIVED or source.rests_on_ended(node)
                for value in (None, *node.statements[property_]):
                    for number in openings[property_].get(value, ()):
                        if rests or not lists[number].follows_evidence:
                            fitting[number][name] = None
        for number, named in fitting.items():
            order, names = lists[number], {name: nodes[name] for name in named}
            pointer = order.pointer
            members = [*source.members(order, names)]
            try:
                keys = [(name, sort_key(order, name, time)) for name, time in members]
            except NotSortable:
                self._store.execute("UPDATE list SET is_sortable = 0 WHERE number = ?", (number,))
                continue
            if order.time:  # a node that has a time now is no longer listed as undated
                undated = ((number, sort_key(order, name, None)) for name, time in members if time)
                self._store.executemany("DELETE FROM listed WHERE list = ? AND key = ?", undated)
            if order.newest_first:
                ahead = max((key_parts(key, newest_first=True)[0] - nodes[name].since for name, key in keys), default=0)
                self._store.execute("UPDATE list SET ahead = MAX(ahead, ?) WHERE number = ?", (ahead, number))
            rows = ((number, key, nodes[name].since,
                     _listed_until(order, nodes[name], source.referrers(pointer, name) if pointer else ()),
                     _due(order, nodes[name], source)) for name, key in keys)  # fmt: skip
            self._store.executemany("INSERT OR REPLACE INTO listed VALUES (?, ?, ?, ?, ?)", rows)
            if order.contains:
                self._texts.put(number, {key: content(nodes[name].statements) for name, key in keys})

    def _write_pairs(self, nodes: Mapping[Term, ProjectedNode], source: IndexedProject) -> None:
        numbers = self._numbers(map(_node_text, nodes))
        parameters = [{"node": number} for number in numbers.values()]
        self._store.executemany("DELETE FROM pair WHERE a = :node OR b = :node", parameters)
        for item, number in numbers.items():
            name = _node_term(item)
            node, keys = nodes[name], _keys(nodes[name].statements)
            if keys and WRITABLE.fullmatch(name) and node.since < node.active_until:
                self._write_pairs_by_keys(number, item, node, keys, source)
        for (fork,) in self._store.execute(_FORKS, (json.dumps([*numbers.values()]),)).fetchall():
            self._write_pairs_after(fork)

    def _write_pairs_by_keys(
        self, number: int, item: str, node: ProjectedNode, keys: Sequence[str], source: IndexedProject
    ) -> None:
        shared: dict[tuple[int, str, int, int], list[str]] = defaultdict(list)
        rivals = self._store.execute(_RIVALS, (json.dumps(keys), number, node.active_until, node.since))
        for key, rival, name, since, until in rivals:
            if WRITABLE.fullmatch(iri(name)):
                shared[rival, name, since, until].append(key.partition(":")[0])
        for (rival, name, since, until), kinds in shared.items():
            counts = Counter(kinds)
            conflicts = [kind for kind in CONFLICT_KINDS if counts[kind]] + [VALUE] * (counts[_SLOT] > counts[_VALUE])
            conflicts += [OPPOSITE] * (counts[JUDGED] > counts[JUDGED_AS])
            if CLASH in conflicts:
                own, other = _convention(node.statements), _convention(source.statements(iri(name)))
                if own is not None and other is not None and not own.clashes(other):
                    conflicts.remove(CLASH)
            span = max(since, node.since), min(until, node.active_until)
            rows = (_pair_row((number, item), (rival, name), kind, span) for kind in conflicts)
            self._store.executemany(_PUT_PAIR, rows)

    def _write_pairs_after(self, fork: int) -> None:
        """Write the pairs of nodes that replaced *fork*, at any distance, by different successors of it.

        The withdrawal of one of these nodes and of *fork* is in its place; withdrawals agree with each other, and with
        a successor that they name as staying. Two nodes of one line, the earlier of which is superseded in name only,
        become a pair once a later fork leads to them by two successors; the pair then counts for the past as well.
        """
        (item,) = self._store.execute("SELECT item FROM node WHERE number = ?", (fork,)).fetchone()
        after: dict[str, set[int]] = defaultdict(set)
        line: dict[str, Interval] = {}
        keys: dict[str, set[str]] = {}  # of each withdrawal
        for successor, is_withdrawal in self._store.execute(_SUCCESSORS, (fork,)).fetchall():
            values = {"successor": successor, "fork": fork, "key": judgement_keys(item, stays=False)[1]}
            for number, name, since, until, withdraws in self._store.execute(_LINE, values):
                after[name].add(successor)
                if since < until and WRITABLE.fullmatch(iri(name)):
                    line[name] = since, until
                    if withdraws or (number == successor and is_withdrawal):
                        keys[name] = {key for (key,) in self._store.execute(_KEYS, (number,))}
        numbers = self._numbers(line)
        for a, b, span in overlapping_pairs(line):
            are_apart = len(after[a] | after[b]) > 1 and not {a, b} <= keys.keys()
            versions = [[each for each in after if after[each] & after[one]] for one in (b, a)]
            if are_apart and not any(map(is_named_as_staying, versions, (keys.get(a, ()), keys.get(b, ())))):
                self._store.execute(_PUT_PAIR, _pair_row((numbers[a], a), (numbers[b], b), STALE, span))


def _matching(rows: Iterable[Triple], predicate: Term | None, value: Term | None) -> Iterator[Triple]:
    return (row for row in rows if predicate in (None, row[1]) and value in (None, row[2]))


def opposing_keys(source: IndexedProject, item: Term) -> list[str]:
    """Return the keys of the memories with which a proposal, *item* or the other one, would disagree."""
    triples = source.triples
    result = {other for _, _, other in triples(source.graph, item, _WITH)}
    result |= {other for other, _, _ in triples(source.graph, None, _WITH, item)}
    return [f"{plain_value(other)} {PROPOSAL}" for other in result if WRITABLE.fullmatch(other)]


def _node_text(name: Term) -> str:
    """Return the form of a node in the file."""
    return plain_value(name) if is_iri(name) else name


def _node_term(item: str) -> Term:
    return item if item.startswith("_:") else iri(item)


@lru_cache(maxsize=256)
def _definition(order: ListOrder) -> str:
    """Return everything that decides the rows of a list, as JSON: not its position in the text of the query."""
    fields = order._asdict() | {"opening": 0, "closing": 0, "branches": ()}
    for name in ("contains", "due", "branches", "is_requested"):  # a list without them is as it was before
        if not fields[name]:
            del fields[name]
    return json.dumps(fields, sort_keys=True)


@lru_cache(maxsize=256)
def _order(definition: str) -> ListOrder:
    return ListOrder(**json.loads(definition) | {"pairs": ()})


def _keys(statements: Statements) -> list[str]:
    """Return the conflict keys by which a node may disagree with others."""
    keys = map(plain_value, statements.get(_CONFLICT_KEY, ()))
    return sorted({key for key in keys if key.partition(":")[0] in _COMPARED})


def sort_key(order: ListOrder, name: Term, time: Term | None) -> str:
    """Return the key of a row; raises NotSortable if only the SPARQL engine knows its place."""
    if not WRITABLE.fullmatch(name):
        raise NotSortable(name)
    if order.time is None:
        return plain_value(name)
    moment = UNDATED if time is None else ticks(time)
    if moment is None:
        raise NotSortable(time)
    return timed(moment, plain_value(name), order.newest_first)


def _listed_until(order: ListOrder, node: ProjectedNode, referrers: Iterable[Interval]) -> int:
    """Return until when a node is listed: until something ends it, or refers to it for good."""
    is_hidden = (node.is_proposed or not node.is_accepted) and not order.proposals
    return NEVER if is_hidden else valid_since(referrers, node.until)


def _due(order: ListOrder, node: ProjectedNode, source: IndexedProject) -> int | None:
    """Return the moment before which a node is not listed; None if there is none, or only the engine compares it."""
    if order.follows_evidence and source.rests_on_ended(node):
        return None
    moments = [ticks(at) for name in order.due_properties for at in node.statements.get(name, ())]
    return min((at for at in moments if at is not None), default=None) if None not in moments else None


def _convention(statements: Statements) -> Convention | None:
    if jido("hasConventionScope") not in statements:
        return None
    summary, level = (next(iter(statements.get(jido(name), ())), None) for name in ("summary", "hasEnforcementLevel"))
    return Convention.of(
        None if summary is None else plain_value(summary),
        None if level is None else plain_value(level),
        map(plain_value, statements.get(jido("about"), ())),
    )


def _pair_row(
    one: tuple[int, str], other: tuple[int, str], kind: str, span: Interval
) -> tuple[str, int, int, int, int]:
    (a, first), (b, second) = sorted((one, other), key=lambda each: each[1])
    return f"{first} {second} {kind}", a, b, *span


@lru_cache(maxsize=65536)
def ticks(term: Term) -> int | None:
    """Return the microseconds from the year 1 to a moment in UTC; None for a term that is no such moment.

    >>> ticks('"0001-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
    1000000
    """
    match = _MOMENT.fullmatch(term)
    try:
        return None if match is None else (datetime.fromisoformat(match[1]) - _START) // _TICK
    except ValueError:
        return None


def timed(moment: int, iri: str, newest_first: bool) -> str:
    """Return a sort key: by time (UNDATED for none), then by IRI.

    >>> key_parts(timed(7, "urn:a", newest_first=True), newest_first=True)
    (7, 'urn:a')
    """
    return f"{FOREVER - moment if newest_first else moment:0{_KEY_LENGTH}x}{iri}"


def key_parts(key: str, newest_first: bool) -> tuple[int, str]:
    """Return the moment and the IRI of a key made by `timed`."""
    number = int(key[:_KEY_LENGTH], 16)
    return FOREVER - number if newest_first else number, key[_KEY_LENGTH:]


def moment_term(number: int) -> Term:
    """Return the moment *number* microseconds after the start of the year 1; UNDEF for UNDATED."""
    if number == UNDATED:
        return "UNDEF"
    return f'"{(_START + number * _TICK).isoformat()}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
