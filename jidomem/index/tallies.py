"""Tallies: the number of memories in each group at any moment, as of the active facts or of the tasks of an agent.

A memory enters a group at one moment and may leave it at another. These changes are summed over spans of time of three
lengths, so a number at a moment is a sum of some hundred spans, and of the changes after the last of them. The tables
are in the SQLite file of the search text; the search index (`jidomem.index.search_index`) brings them up to date.

What a memory is counted as follows the queries `counts` and `agent-activity`.

The commits of all streams of a project are listed newest first, and those of each agent. With a commit all its
ancestors are listed, so those that are lacking are reached from the heads.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice, product
from typing import NamedTuple

from jidomem.index.list_texts import Statements
from jidomem.index.projection import PROPOSED, RECORDED, STATUS, IndexedProject, key_parts, ticks, timed
from jidomem.index.results import Solutions
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.journal.commit import COMMIT
from jidomem.rdf.terms import Term, date_time, iri, is_iri, literal, plain_value
from jidomem.rdf.vocab import DECISION_STATUS, TYPE, jido
from jidomem.records.active import (
    ACCEPTED,
    ACTIVE,
    EXPIRED,
    FOREVER,
    INVALIDATED,
    PENDING,
    REJECTED,
    SCHEDULED,
    SUPERSEDED,
)
from jidomem.records.intent import CommitRef

#: A `change` adds a memory to a group, or removes it; a later recorded time of a memory that is in it adds none. The
#: `items` of a `span` are the sum of the changes in the moments at >> LEVELS[level] = place. A memory of a group with
#: `is_dated` has validity dates, which are in `dated` with the interval in which it is in the group.
TABLES = """
CREATE TABLE tally (number INTEGER PRIMARY KEY, question TEXT, name TEXT, is_dated INTEGER,
  UNIQUE (question, name, is_dated));
CREATE TABLE change (tally INTEGER, at INTEGER, node INTEGER, items INTEGER, PRIMARY KEY (tally, at, node))
  WITHOUT ROWID;
CREATE INDEX change_node ON change (node);
CREATE TABLE span (tally INTEGER, level INTEGER, place INTEGER, items INTEGER, PRIMARY KEY (tally, level, place))
  WITHOUT ROWID;
CREATE TABLE dated (tally INTEGER, node INTEGER, since INTEGER, until INTEGER, valid_from INTEGER, valid_until INTEGER,
  PRIMARY KEY (tally, node)) WITHOUT ROWID;
"""
#: Empties these tables of a file in which memories were counted otherwise; they are filled again.
EMPTY = """DELETE FROM tally;
DELETE FROM change;
DELETE FROM span;
DELETE FROM dated;
DELETE FROM metadata WHERE name = 'tallies';
"""
#: The lengths of spans, as powers of two, in microseconds: 203 days, 9.5 hours, 67 seconds.
LEVELS = (44, 35, 26)
#: The questions: memories by kind and status, and by agent and kind. ODD has the memories that only the engine counts.
BY_STATUS, BY_AGENT, ODD = "status", "agent", "odd"

_NUMBERS = "SELECT item, number FROM node WHERE item IN (SELECT value FROM json_each(?))"
_FORMER = "SELECT node, tally, at, items FROM change WHERE node IN (SELECT value FROM json_each(?))"
_PUT_SPAN = """INSERT INTO span VALUES (?, ?, ?, ?)
ON CONFLICT (tally, level, place) DO UPDATE SET items = items + excluded.items"""
_TALLIES = """SELECT name, MAX(CASE WHEN NOT is_dated THEN number END), MAX(CASE WHEN is_dated THEN number END)
FROM tally WHERE question = ? GROUP BY name ORDER BY name"""
_SPANS = "SELECT items FROM span WHERE tally = :tally AND level = {0} AND place >= :from_{0} AND place < :to_{0}"
_SUM = f"""SELECT COALESCE(SUM(items), 0) FROM ({" UNION ALL ".join(map(_SPANS.format, range(len(LEVELS))))}
UNION ALL SELECT items FROM change WHERE tally = :tally AND at >= :last AND at <= :moment)"""
_FIRST_AND_LAST = """SELECT (SELECT MIN(at) FROM change WHERE tally = :tally),
(SELECT MAX(at) FROM change WHERE tally = :tally AND at <= :moment)"""
_NOT_VALID = """SELECT COALESCE(SUM(valid_until <= :valid_at), 0), COUNT(*) FROM dated WHERE tally = :tally
AND since <= :moment AND until > :moment AND (valid_until <= :valid_at OR valid_from > :valid_at)"""
_VALID = """SELECT COUNT(DISTINCT node), MIN(at), MAX(at) FROM change JOIN dated USING (tally, node)
WHERE tally = :tally AND at <= :moment AND NOT COALESCE(valid_until <= :valid_at, FALSE)
AND NOT COALESCE(valid_from > :valid_at, FALSE)"""

_OF, _DECIDED, _LISTS = jido("appliesToProject"), jido("decisionStatus"), jido("hasAlternative")
_ASSERTED_BY, _SETTLED_BY = jido("assertedBy"), jido("settledBy")
_ASSERTED, _FROM, _UNTIL = jido("Asserted"), jido("validFrom"), jido("validUntil")
_SUPERSEDED_BY, _INVALIDATED_BY = jido("supersededBy"), jido("invalidatedBy")
_STANDINGS = {literal(status): status for status in DECISION_STATUS}
#: The properties of a memory by which each question counts it.
COUNTED_BY = {BY_STATUS: (STATUS,), BY_AGENT: (_ASSERTED_BY, _SETTLED_BY)}


class UncomparableValue(Exception):
    """A memory has a value that only the SPARQL engine compares."""


class Dates(NamedTuple):
    """The latest start and the earliest end of the validity of a memory; None for none."""

    valid_from: int | None
    valid_until: int | None


class Membership(NamedTuple):
    """A group with a memory, and when it is in it: since the first of `since`, the times at which it is recorded."""

    question: str
    name: str
    since: tuple[int, ...]
    until: int = FOREVER
    dates: Dates | None = None


class ActivityRow(NamedTuple):
    """How many memories of a kind an agent recorded, when first and when last."""

    agent: str
    kind: str
    items: int
    first: int
    last: int


class Tallies:
    """The tallies in the open database *store*; the caller of `update` has a write transaction."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store

    def update(self, nodes: Mapping[Term, Statements], source: IndexedProject) -> None:
        """Count *nodes* again, by their statements, and the alternatives that they list."""
        listed = {term for statements in nodes.values() for term in statements.get(_LISTS, ()) if is_iri(term)}
        others = {name: source.statements(name) for name in listed - nodes.keys()}
        items = {plain_value(name) if is_iri(name) else name: name for name in (*nodes, *others)}
        statements = {**nodes, **others}
        rows = self._store.execute(_NUMBERS, (json.dumps([*items]),))
        self._put({number: _memberships(items[item], statements[items[item]], source) for item, number in rows})

    def has_all(self) -> bool:
        """Return whether all memories are counted here: none needs the SPARQL engine."""
        text = "SELECT EXISTS (SELECT 1 FROM tally JOIN change ON tally = number WHERE question = ?)"
        return not self._store.execute(text, (ODD,)).fetchone()[0]

    def by_status(self, kinds: Collection[str], moment: int, valid_at: int | None) -> Iterator[tuple[str, str, int]]:
        """Yield the number of memories of each of *kinds* and status at *moment*, sorted: kind, status, number.

        Memories that are not valid at *valid_at* are expired or scheduled.
        """
        counts: Counter[tuple[str, str]] = Counter()
        for name, tally, dated in self._tallies(BY_STATUS):
            kind, _, status = name.partition(" ")
            if kind in kinds:
                counts[kind, status] += self._sum(tally, moment) + self._sum(dated, moment)
                if dated is not None and valid_at is not None:
                    values = {"tally": dated, "moment": moment, "valid_at": valid_at}
                    expired, invalid = self._store.execute(_NOT_VALID, values).fetchone()
                    counts.update({(kind, EXPIRED): expired, (kind, SCHEDULED): invalid - expired})
                    counts[kind, status] -= invalid
        yield from ((kind, status, number) for (kind, status), number in sorted(counts.items()) if number)

    def by_agent(self, kinds: Collection[str], moment: int, valid_at: int | None) -> Iterator[ActivityRow]:
        """Yield what each agent recorded of each of *kinds* by *moment*, sorted; only memories valid at *valid_at*."""
        for name, tally, dated in self._tallies(BY_AGENT):
            agent, _, kind = name.partition(" ")
            if kind in kinds:
                parts = [self._recorded(tally, moment), self._recorded(dated, moment, valid_at)]
                found = [part for part in parts if part[0]]
                if found:
                    numbers, firsts, lasts = zip(*found, strict=True)
                    yield ActivityRow(agent, kind, sum(numbers), min(firsts), max(lasts))

    def _tallies(self, question: str) -> Iterator[tuple[str, int | None, int | None]]:
        """Yield the names of the groups of a question, sorted, each with its tally and that of memories with dates."""
        return iter(self._store.execute(_TALLIES, (question,)))

    def _sum(self, tally: int | None, moment: int) -> int:
        if tally is None:
            return 0
        values, start = {"tally": tally, "moment": moment}, 0
        for level, length in enumerate(LEVELS):
            end = (moment + 1) >> length
            values |= {f"from_{level}": start >> length, f"to_{level}": end}
            start = end << length
        return int(self._store.execute(_SUM, values | {"last": start}).fetchone()[0])

    def _recorded(self, tally: int | None, moment: int, valid_at: int | None = None) -> tuple[int, int, int]:
        """Return the number of memories in a tally of BY_AGENT, the first time, and the last; only those then valid."""
        if tally is None:
            return 0, 0, 0
        values = {"tally": tally, "moment": moment, "valid_at": valid_at}
        if valid_at is not None:
            number, first, last = self._store.execute(_VALID, values).fetchone()
            return number, first, last
        first, last = self._store.execute(_FIRST_AND_LAST, values).fetchone()
        return self._sum(tally, moment), first, last

    def _put(self, nodes: Mapping[int, Collection[Membership]]) -> None:
        tallies = self._numbered({(each.question, each.name, each.dates is not None) for some in nodes.values()
                                  for each in some})  # fmt: skip
        items: Counter[tuple[int, int, int]] = Counter()
        dated: list[tuple[int | None, ...]] = []
        for node, memberships in nodes.items():
            for each in memberships:
                tally = tallies[each.question, each.name, each.dates is not None]
                first, *later = each.since
                items.update({(node, tally, first): 1, **{(node, tally, at): 0 for at in later}})
                if each.until != FOREVER:  # the same moment at which it may enter the group again
                    items[node, tally, each.until] -= 1
                if each.dates is not None:
                    dated.append((tally, node, first, each.until, *each.dates))
        changes = {(*key, number) for key, number in items.items()}
        former = {*self._store.execute(_FORMER, (json.dumps([*nodes]),))}
        gone, new = former - changes, changes - former
        keys = [(tally, node) for node, tally, _, _ in gone]
        self._store.executemany("DELETE FROM dated WHERE tally = ? AND node = ?", keys)
        self._store.executemany("INSERT OR REPLACE INTO dated VALUES (?, ?, ?, ?, ?, ?)", dated)
        rows = ((tally, at, node) for node, tally, at, _ in gone)
        self._store.executemany("DELETE FROM change WHERE tally = ? AND at = ? AND node = ?", rows)
        self._store.executemany("INSERT INTO change (node, tally, at, items) VALUES (?, ?, ?, ?)", new)
        self._add(((tally, at, items) for _, tally, at, items in new), 1)
        self._add(((tally, at, items) for _, tally, at, items in gone), -1)

    def _add(self, changes: Iterable[tuple[int, int, int]], sign: int) -> None:
        """Add changes to their spans, or with the *sign* -1 take them back."""
        spans: Counter[tuple[int, int, int]] = Counter()
        for tally, at, items in changes:
            for level, length in enumerate(LEVELS):
                spans[tally, level, at >> length] += sign * items
        self._store.executemany(_PUT_SPAN, ((*key, items) for key, items in spans.items() if items))

    def _numbered(self, names: Collection[tuple[str, str, bool]]) -> dict[tuple[str, str, bool], int]:
        """Return the numbers of tallies, new ones for new names."""
        text = "INSERT OR IGNORE INTO tally (question, name, is_dated) VALUES (?, ?, ?)"
        self._store.executemany(text, names)
        text = "SELECT number FROM tally WHERE question = ? AND name = ? AND is_dated = ?"
        return {name: self._store.execute(text, name).fetchone()[0] for name in names}


def _memberships(name: Term, statements: Statements, source: IndexedProject) -> Collection[Membership]:
    """Return each group that a node is ever in."""
    kinds = [plain_value(kind) for kind in statements.get(TYPE, ()) if is_iri(kind)]
    if not kinds or RECORDED not in statements or source.project not in statements.get(_OF, ()):
        return ()
    try:
        since = tuple(sorted({*map(_moment, statements[RECORDED])}))
        dates = _dates(statements)
        states = {*_states(name, statements, since[0], source)}
        agents = [*map(_agent, statements.get(_SETTLED_BY) or statements.get(_ASSERTED_BY, ()))]
    except UncomparableValue:
        return [Membership(ODD, "", (0,))]
    by_agent = [Membership(BY_AGENT, f"{agent} {kind}", since, dates=dates) for agent in agents for kind in kinds]
    by_status = [
        Membership(BY_STATUS, f"{kind} {status}", (start,), end, dates if status == ACTIVE else None)
        for status, start, end in states
        if start < end
        for kind in kinds
    ]
    return by_agent + by_status


def _states(name: Term, statements: Statements, start: int, source: IndexedProject) -> Iterator[tuple[str, int, int]]:
    """Yield each status of a node recorded at *start*, apart from its validity, with the interval of it."""
    withdrawn = max(start, _end(statements.get(_INVALIDATED_BY, ()), source))
    replaced = min(withdrawn, max(start, _end(statements.get(_SUPERSEDED_BY, ()), source)))
    standings = {*map(_standing, statements.get(_DECIDED, ()))} - {ACCEPTED}
    for asserted in statements.get(STATUS, ()):
        if asserted == PROPOSED:
            yield from () if _is_listed(name, source) else ((PENDING, start, replaced),)
            yield REJECTED, withdrawn, FOREVER
        else:
            yield from ((status, start, replaced) for status in standings or (ACTIVE,))
            yield INVALIDATED, withdrawn, FOREVER
        yield SUPERSEDED, replaced, withdrawn


def _end(ends: Iterable[Term], source: IndexedProject) -> int:
    """Return when the first asserted memory of *ends* was recorded."""
    asserted = [end for end in ends if any(source.triples(source.graph, end, STATUS, _ASSERTED))]
    recorded = (at for end in asserted for _, _, at in source.triples(source.graph, end, RECORDED))
    return min(map(_moment, recorded), default=FOREVER)


def _is_listed(name: Term, source: IndexedProject) -> bool:
    """Return whether a node is an alternative of a decision, with which it is settled."""
    if not is_iri(name) or "/alternatives/" not in name:
        return False
    decisions = (decision for decision, _, _ in source.triples(source.graph, None, _LISTS, name))
    return any(is_iri(one) and name.startswith(f"{one[:-1]}/alternatives/") for one in decisions)


def _dates(statements: Statements) -> Dates | None:
    starts, ends = ([*map(_moment, statements.get(date, ()))] for date in (_FROM, _UNTIL))
    return Dates(max(starts, default=None), min(ends, default=None)) if starts or ends else None


def _moment(term: Term) -> int:
    moment = ticks(term)
    if moment is None:
        raise UncomparableValue(term)
    return moment


def _standing(term: Term) -> str:
    if term not in _STANDINGS:
        raise UncomparableValue(term)
    return _STANDINGS[term]


def _agent(term: Term) -> str:
    if not is_iri(term):
        raise UncomparableValue(term)
    return plain_value(term)


#: The moments `at` of the commits with memories or orders of an author.
_AUTHOR_TABLES = """CREATE TABLE author (number INTEGER PRIMARY KEY, agent TEXT UNIQUE);
CREATE TABLE authored (author INTEGER, at INTEGER, PRIMARY KEY (author, at)) WITHOUT ROWID;
"""
COMMIT_TABLES = f"CREATE TABLE committed (key TEXT PRIMARY KEY) WITHOUT ROWID;\n{_AUTHOR_TABLES}"
#: Adds the authors to a file that lacks them: all commits are listed again.
LATER_AUTHORS = f"{_AUTHOR_TABLES}DELETE FROM committed;\n"
#: Lists all commits again, in a file with other authors of them.
LISTED_AGAIN = "DELETE FROM committed;\n"
_PUT_AUTHORED = "INSERT OR IGNORE INTO authored SELECT number, ? FROM author WHERE agent = ?"
_AUTHORED = """SELECT at FROM authored JOIN author ON author = number WHERE agent = ? AND at <= ?
ORDER BY at DESC LIMIT ?"""
_IN_MOMENT = "SELECT key FROM committed WHERE key >= ? AND key < ? ORDER BY key"
_PARENT, _IN, _ORDERED_BY = jido("parent"), jido("recordedIn"), jido("orderedBy")
#: The properties by which a node names the agent that wrote it.
AUTHORS = tuple(map(jido, ("assertedBy", "causedBy", "setBy", "hasPrimaryAgent", "submittedBy")))
#: The agents of the nodes of a commit, with each commit that describes such a node; a read of every node takes seven
#: times as long.
_AGENTS = f"""SELECT DISTINCT ?each ?agent {{ ?node {_IN} %s ; ?by ?agent
FILTER(?by IN ({", ".join((_SETTLED_BY, *AUTHORS))})) ?node {_IN} ?each }}"""


def recorded_between(index: OxigraphIndex, graph: str, start: Watermark, end: Watermark) -> list[Term] | None:
    """Return the nodes recorded by the commits of *graph* that *end* has and *start* lacks; None if these are unknown.

    They are unknown where a branch was merged, as its commits may be before those of *start*.
    """
    known, nodes = {f"{COMMIT}{head.id}" for head in start.version.heads}, list[Term]()
    reached = {f"{COMMIT}{head.id}" for head in end.version.heads} - known
    waiting = [*reached]
    while waiting and len(reached) <= end.commits - start.commits:
        commit = iri(waiting.pop())
        nodes += [node for node, _, _ in index.triples(graph, None, _IN, commit)]
        parents = {plain_value(parent) for _, _, parent in index.triples(graph, commit, _PARENT)} - known - reached
        reached |= parents
        waiting += parents
    return nodes if len(reached) == end.commits - start.commits else None


class CommitList:
    """The commits in the open database *store*."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self.marks: Mapping[str, Watermark] | None = None  # graph -> the watermark up to which its commits are listed

    def lacking(self, marks: Mapping[str, Watermark]) -> int:
        """Return how many commits up to *marks*, the watermark of each graph, may be lacking."""
        if all(self._has(_key_of(head)) for mark in marks.values() for head in mark.version.heads):
            return 0
        listed = self._store.execute("SELECT COUNT(*) FROM committed").fetchone()[0]
        return max(1, sum(mark.commits for mark in marks.values()) - int(listed))

    def update(self, index: OxigraphIndex, marks: Mapping[str, Watermark]) -> None:
        """List the lacking commits up to *marks*, in the caller's write transaction.

        Once that is committed, the caller sets `marks`: a head that is not in the index cannot be listed.
        """
        former = self.marks or {}
        for graph, mark in marks.items():
            for head in mark.version.heads if mark != former.get(graph) else ():
                if not self._has(_key_of(head)):
                    self._add(index, graph, head)

    def page(self, start: str, moment: int, count: int, agent: str | None = None) -> list[str] | None:
        """Return up to *count* keys, from *start* on, of commits made by *moment*; None if the list lacks commits.

        With *agent* at least those that have memories or orders of it.
        """
        if self.marks is None:
            return None
        start = max(start, timed(moment, "", newest_first=True))
        if agent is not None:
            return [*islice(self._authored(agent, start, count), count)]
        text = "SELECT key FROM committed WHERE key >= ? ORDER BY key LIMIT ?"
        return [key for (key,) in self._store.execute(text, (start, count))]

    def _authored(self, agent: str, start: str, count: int) -> Iterator[str]:
        """Yield the keys from *start* on of the commits at *count* moments of an agent."""
        latest, _ = key_parts(start, newest_first=True)
        for (at,) in self._store.execute(_AUTHORED, (agent, latest, count + 1)).fetchall():
            bounds = (max(start, timed(at, "", newest_first=True)), timed(at - 1, "", newest_first=True))
            yield from (key for (key,) in self._store.execute(_IN_MOMENT, bounds).fetchall())

    def _has(self, key: str) -> bool:
        return any(self._store.execute("SELECT 1 FROM committed WHERE key = ?", (key,)))

    def _add(self, index: OxigraphIndex, graph: str, head: CommitRef) -> None:
        """List a head and its ancestors up to those that are listed; a commit that is not in the index is none."""
        waiting: list[Term] = [iri(f"{COMMIT}{head.id}")]
        while waiting:
            commit = waiting.pop()
            moments = [ticks(at) for _, _, at in index.triples(graph, commit, RECORDED)]
            keys = [timed(at, plain_value(commit), newest_first=True) for at in moments if at is not None]
            if keys and not all(map(self._has, keys)):
                self._store.executemany("INSERT OR IGNORE INTO committed VALUES (?)", ((key,) for key in keys))
                self._add_authors(index, graph, commit)
                waiting += [parent for _, _, parent in index.triples(graph, commit, _PARENT)]

    def _add_authors(self, index: OxigraphIndex, graph: str, commit: Term) -> None:
        """Note the agents of a commit, and those of its nodes for each commit that describes the node."""
        by: dict[Term, set[Term]] = {commit: {agent for _, _, agent in index.triples(graph, commit, _ORDERED_BY)}}
        answer = index.query(_AGENTS % commit, graphs=[graph])
        assert isinstance(answer, Solutions)
        for each, agent in answer.rows:
            if each is not None and agent is not None:
                by.setdefault(each, set()).add(agent)
        for each, agents in by.items():
            names = [*map(plain_value, agents)]
            moments = [at for _, _, term in index.triples(graph, each, RECORDED) if (at := ticks(term)) is not None]
            self._store.executemany("INSERT OR IGNORE INTO author (agent) VALUES (?)", zip(names))
            self._store.executemany(_PUT_AUTHORED, product(moments, names))


def _key_of(head: CommitRef) -> str:
    return timed(ticks(date_time(head.recorded_at)) or 0, f"{COMMIT}{head.id}", newest_first=True)
