"""One SQLite file with the texts of memories, or of entries and turns, for full text search, and what narrows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from jidomem.index.taken_texts import TakenTexts
from jidomem.lexical import FIELDS, Counts, Match

_FIELDS = ", ".join(FIELDS)
_ROW = f"""SELECT m.number, m.item, m.recorded, m.confidence, m.length, m.successors, {_FIELDS}
FROM text JOIN memory m ON m.number = text.rowid WHERE """
_ROWS = f"""SELECT m.number, m.item, k.types, m.recorded, m.ended, m.confidence, m.agent, m.session, m.length,
m.successors, {_FIELDS} FROM memory m JOIN kind k ON k.number = m.kind JOIN text ON text.rowid = m.number WHERE"""
#: What matches is scored by its words alone: whether it is looked through is asked of the best of them, some at a time.
#: To look at each of thousands takes as long as to score it, and to read its texts ten times as long.
_BEST = f"""SELECT rowid, -bm25(text, {", ".join(map(str, FIELDS.values()))}) AS reach FROM text
WHERE text MATCH ? %s ORDER BY reach DESC, rowid DESC"""
#: The plus keeps SQLite from searching for each of them anew.
_ONLY = "AND +rowid IN (SELECT value FROM json_each(?))"
_BEYOND = f"SELECT COUNT(*) FROM text WHERE text MATCH ? AND rowid > ? {_ONLY}"
#: So many of the best are looked at first, and each time twice as many.
AT_FIRST = 128


@dataclass(frozen=True, slots=True)
class Own:
    """What is somebody's own: of these `kinds` only what is of `agent` is looked through, and of one of `sessions`.

    The empty session stands for none, None for all of them; `place` is that of a namespace.
    """

    kinds: frozenset[str]
    agent: str
    sessions: frozenset[str] | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Within:
    """What is looked through: what was known by `moment`, and of that what the rest lets pass; moments in one form."""

    moment: str | None = None
    inactive: bool = False
    kinds: frozenset[str] | None = None
    but: frozenset[str] = frozenset()
    since: str | None = None
    until: str | None = None
    valid_at: str | None = None
    agents: frozenset[str] | None = None
    sessions: frozenset[str] | None = None
    own: Own | None = None


class Found(NamedTuple):
    """A memory that holds some of the words; `reach` is what SQLite scores it with, among all that is there now."""

    number: int
    recorded: str
    confidence: str
    reach: float


class Row(NamedTuple):
    """What is known of a memory, an entry or a turn: `fields` has its stems in the order of FIELDS."""

    number: int
    item: str
    types: tuple[str, ...]
    recorded: str
    ended: str | None
    confidence: str
    agent: str
    session: str
    length: int
    successors: tuple[str, ...]
    fields: tuple[str, ...]


class TextFile(TakenTexts):
    """The file at *path*: memories with their words, and `passages`, what they say word for word."""

    def counts(self, stems: Iterable[str], moment: str | None = None) -> Counts:
        """Return how many memories hold each of *stems*: of those there are, or of those known at *moment*."""
        if moment is None:
            ask = "SELECT COALESCE(MAX(memories), 0) FROM holding WHERE stem = ?"
            holding = {stem: self._store.execute(ask, (stem,)).fetchone()[0] for stem in stems}
            newest = self._store.execute("SELECT MAX(recorded) FROM memory").fetchone()[0]
            return Counts(self.said("memories") or 0, self.said("words") or 0, holding, newest or "")
        known = "SELECT COUNT(*), COALESCE(SUM(length), 0), MAX(recorded) FROM memory WHERE recorded <= ?"
        memories, length, newest = self._store.execute(known, (moment,)).fetchone()
        return Counts(memories, length, self._holding(stems, moment), newest or "")

    def _holding(self, stems: Iterable[str], moment: str) -> dict[str, int]:
        """Return how many of the memories known at *moment* hold each of *stems*.

        Memories are numbered as they are taken in, nearly as they were recorded: all are counted below the first that
        came later, and beyond it those few that came before. It takes a fifth of looking up when
        each was recorded.
        """
        first = self._store.execute("SELECT MIN(number) FROM memory WHERE recorded > ?", (moment,)).fetchone()[0]
        if first is None:
            return dict(self.counts(stems).holding)
        late = self._store.execute("SELECT number FROM memory WHERE number > ? AND recorded <= ?", (first, moment))
        only = json.dumps([row[0] for row in late])
        ask = f"SELECT COUNT(*) FROM text WHERE text MATCH ? AND rowid < ? UNION ALL {_BEYOND}"
        found = {}
        for stem in stems:
            words = matching([stem])
            found[stem] = sum(row[0] for row in self._store.execute(ask, (words, first, words, first, only)))
        return found

    def best(
        self,
        stems: Iterable[str],
        within: Within,
        only: Iterable[int] | None = None,
        beside: Iterable[str] = (),
        but: Iterable[str] = (),
    ) -> Iterator[Found]:
        """Yield the memories that hold one of *stems*, and of *only* where that is given, by what they reach.

        That counts the words *beside* too, which nothing need hold. What holds one of *but* is left out.
        """
        one, other, left = matching(stems), matching(beside), matching(but)
        asked = [f"({one}) NOT ({left})" if left else one]
        if other:
            asked = [f"({asked[0]}) AND ({other})", f"({asked[0]}) NOT ({other})"]
        text, values = (_BEST % "", []) if only is None else (_BEST % _ONLY, [json.dumps([*only])])
        ways = [self._store.execute(text, (each, *values)) for each in asked]
        reached = merge(*ways, key=lambda row: (row[1], row[0]), reverse=True)
        many = AT_FIRST
        while step := dict(islice(reached, many)):
            rows = self._narrow("m.number, m.recorded, m.confidence", step, within)
            found = {number: Found(number, recorded, confidence, step[number]) for number, recorded, confidence in rows}
            yield from (found[number] for number in step if number in found)
            many *= 2

    def newest(self, within: Within, limit: int) -> list[str]:
        """Return the IRIs of the *limit* recorded last, the newest first, whatever they say."""
        clause, values = self._clause(within)
        ask = f"SELECT m.item FROM memory m WHERE {clause} ORDER BY m.recorded DESC, m.item DESC LIMIT ?"
        return [row[0] for row in self._store.execute(ask, (*values, limit))]

    def match(self, which: int | str, moment: str | None) -> Match | None:
        """Return one memory, by its number or IRI, as a match, if it was known at *moment*."""
        by = "number" if isinstance(which, int) else "item"
        text = f"{_ROW} m.{by} = ? AND m.recorded <= COALESCE(?, m.recorded)"
        row = self._store.execute(text, (which, moment)).fetchone()
        return None if row is None else _match(row)

    def rows(self, numbers: Iterable[int], within: Within) -> list[Row]:
        """Return what is known of each of *numbers* that is *within*."""
        clause, values = self._clause(within)
        ask = f"{_ROWS} m.number IN (SELECT value FROM json_each(?)) AND {clause}"
        found = self._store.execute(ask, (json.dumps([*numbers]), *values))
        return [_row(row) for row in found]

    def within(self, numbers: Iterable[int], within: Within) -> frozenset[int]:
        """Return those of *numbers* that are *within*."""
        return frozenset(row[0] for row in self._narrow("m.number", numbers, within))

    def _narrow(self, columns: str, numbers: Iterable[int], within: Within) -> list[Any]:
        clause, values = self._clause(within)
        ask = f"SELECT {columns} FROM memory m WHERE m.number IN (SELECT value FROM json_each(?)) AND {clause}"
        return self._store.execute(ask, (json.dumps([*numbers]), *values)).fetchall()

    def numbers(self, items: Iterable[str]) -> list[int]:
        """Return the numbers of *items*, as far as they are there."""
        ask = "SELECT number FROM memory WHERE item IN (SELECT value FROM json_each(?))"
        return [row[0] for row in self._store.execute(ask, (json.dumps([*items]),))]

    def digests(self, within: Within, limit: int) -> list[bytes]:
        """Return the digests of up to *limit* pieces of what is *within*, of what was recorded last first."""
        clause, values = self._clause(within)
        ask = (
            f"SELECT p.digest FROM memory m JOIN piece p USING (number) WHERE {clause} ORDER BY m.recorded DESC LIMIT ?"
        )
        return list(dict.fromkeys(row[0] for row in self._store.execute(ask, (*values, limit))))

    def places(self) -> Iterator[str]:
        """Yield everything that some memory is about."""
        return (row[0] for row in self._store.execute("SELECT DISTINCT place FROM about"))

    def about(self, places: Iterable[str]) -> frozenset[int]:
        """Return the numbers of the memories that are about one of *places*."""
        ask = "SELECT number FROM about WHERE place IN (SELECT value FROM json_each(?))"
        return frozenset(row[0] for row in self._store.execute(ask, (json.dumps([*places]),)))

    def _clause(self, within: Within) -> tuple[str, list[Any]]:
        """Return what lets pass what is *within*, and the values in it."""
        agents, sessions = (
            None if names is None else json.dumps(sorted(names)) for names in (within.agents, within.sessions)
        )
        asked: Mapping[str, Any] = {
            "m.recorded <= ?": within.moment,
            "m.recorded >= ?": within.since,
            "m.recorded < ?": within.until,
            "(m.valid_from IS NULL OR m.valid_from <= ?)": within.valid_at,
            "(m.valid_until IS NULL OR m.valid_until > ?)": within.valid_at,
            "m.agent IN (SELECT value FROM json_each(?))": agents,
            "m.session IN (SELECT value FROM json_each(?))": sessions,
        }
        clauses = [clause for clause, value in asked.items() if value is not None]
        values = [value for value in asked.values() if value is not None]
        if not within.inactive:
            clauses.append("m.inactive IS NULL AND (m.ended IS NULL OR m.ended > COALESCE(?, m.ended))")
            values.append(within.moment)
        if within.kinds is not None:
            clauses.append(f"m.kind IN ({self._of(within.kinds)})")
        if within.but:
            clauses.append(f"m.kind NOT IN ({self._of(within.but)})")
        if within.own is not None:
            clause, more = self._own(within.own)
            clauses.append(clause)
            values += more
        return " AND ".join(clauses) or "TRUE", values

    def _own(self, own: Own) -> tuple[str, list[Any]]:
        """Return what lets pass what is nobody's own, and what is of this one."""
        clauses, values = ["m.agent = ?"], [own.agent]
        if own.sessions is not None:
            clauses.append("m.session IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(own.sessions)))
        if own.place is not None:
            clauses.append("m.number IN (SELECT number FROM about WHERE place = ?)")
            values.append(own.place)
        return f"(m.kind NOT IN ({self._of(own.kinds)}) OR ({' AND '.join(clauses)}))", values

    def _of(self, classes: frozenset[str]) -> str:
        """Return the numbers of the kinds that are of one of *classes*."""
        kinds = self._store.execute("SELECT number, types FROM kind")
        return ", ".join(str(number) for number, types in kinds if not classes.isdisjoint(types.split()))


def matching(stems: Iterable[str]) -> str:
    """Return the expression that finds what holds one of *stems*, whatever they consist of."""
    return " OR ".join(f'"{stem}"' for stem in stems)


def _row(row: Sequence[Any]) -> Row:
    number, item, types, recorded, ended, confidence, agent, session, length, successors, *fields = row
    return Row(number, item, tuple(types.split()), recorded, ended, confidence, agent, session, length,
               tuple(successors.split()), tuple(fields))  # fmt: skip


def _match(row: Sequence[Any]) -> Match:
    number, item, recorded, confidence, length, successors, *fields = row
    return Match(number, item, recorded, confidence, length, tuple(fields), tuple(successors.split()))
