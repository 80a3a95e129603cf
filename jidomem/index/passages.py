"""What memories, entries and turns say, word for word, kept beside their words: who said what, when, after what."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jidomem.index.documents import Document
from jidomem.index.kept_file import several
from jidomem.pieces import digest, pieces

TABLES = """
CREATE TABLE passage (number INTEGER PRIMARY KEY, content TEXT, speakers TEXT, said_at TEXT, talk TEXT, place TEXT);
CREATE INDEX passage_talk ON passage (talk, place);
CREATE TABLE piece (id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB, number INTEGER, part INTEGER);
CREATE INDEX piece_digest ON piece (digest);
CREATE INDEX piece_number ON piece (number);
CREATE TABLE speaker (name TEXT PRIMARY KEY, since TEXT) WITHOUT ROWID;
"""
_SPOKE = """INSERT INTO speaker VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET since = MIN(since, excluded.since)"""
#: What of a talk is known at a moment, and holds then.
_KNOWN = """SELECT p.number FROM passage p JOIN memory m USING (number) WHERE p.talk = ?1 AND p.place %s ?2
AND m.recorded <= COALESCE(?3, m.recorded) AND (m.ended IS NULL OR m.ended > COALESCE(?3, m.ended))
ORDER BY p.place %s LIMIT ?4"""
_BEFORE, _AFTER = _KNOWN % ("<", "DESC"), _KNOWN % (">", "ASC")


class Passage(NamedTuple):
    """What is kept of one: `talk` is where it was said, nothing where it was said in none; `place` sorts it there."""

    number: int
    text: str
    speakers: tuple[str, ...]
    said_at: str
    talk: str
    place: str


class Piece(NamedTuple):
    """What one vector is made of: `id` is higher than that of any piece that was there before."""

    id: int
    digest: bytes
    number: int
    part: int


class Passages:
    """The passages in the file that *store* has open."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store

    def keep(self, documents: Mapping[int, Document]) -> int:
        """Keep what memories say, by their numbers; return of how many of them pieces of what they said are gone."""
        rows = ((number, one.text, "\n".join(one.speakers), one.said_at, one.talk, one.place)
                for number, one in documents.items())  # fmt: skip
        self._store.executemany("INSERT OR REPLACE INTO passage VALUES (?, ?, ?, ?, ?, ?)", rows)
        speakers = {(name, one.recorded) for one in documents.values() for name in one.speakers}
        self._store.executemany(_SPOKE, speakers)
        given = {number: [*map(digest, pieces(one.text))] for number, one in documents.items()}
        known = self.digests(documents)
        new = {number: found for number, found in given.items() if found != known.get(number, [])}
        gone = self._forget_pieces(number for number in new if number in known)
        every = ((piece, number, part) for number, found in new.items() for part, piece in enumerate(found))
        self._store.executemany("INSERT INTO piece (digest, number, part) VALUES (?, ?, ?)", every)
        return gone

    def forget(self, numbers: Iterable[int]) -> int:
        """Forget what memories say; return of how many pieces are gone."""
        every = [*numbers]
        self._store.executemany("DELETE FROM passage WHERE number = ?", ((number,) for number in every))
        return self._forget_pieces(every)

    def _forget_pieces(self, numbers: Iterable[int]) -> int:
        forget = "DELETE FROM piece WHERE number = ?"
        return sum(self._store.execute(forget, (number,)).rowcount > 0 for number in numbers)

    def of(self, numbers: Iterable[int]) -> dict[int, Passage]:
        """Return what each of *numbers* says, as far as it is there."""
        ask = "SELECT * FROM passage WHERE number IN (SELECT value FROM json_each(?))"
        rows = self._store.execute(ask, (json.dumps([*numbers]),))
        return {row[0]: Passage(row[0], row[1], tuple(row[2].splitlines()), *row[3:]) for row in rows}

    def around(self, one: Passage, before: int, after: int, moment: str | None = None) -> tuple[list[int], list[int]]:
        """Return the numbers of so many as were said before and after *one* in its talk, the nearest first.

        Only what was known at *moment* counts, and held then.
        """
        if not one.talk:
            return [], []
        asked = ((_BEFORE, before), (_AFTER, after))
        found = [self._store.execute(ask, (one.talk, one.place, moment, many)) for ask, many in asked]
        return [row[0] for row in found[0]], [row[0] for row in found[1]]

    def speakers(self, moment: str | None = None) -> set[str]:
        """Return everybody who ever said something that was taken in, and recorded by *moment* where one is given."""
        ask = "SELECT name FROM speaker WHERE since <= COALESCE(?, since)"
        return {name for (name,) in self._store.execute(ask, (moment,))}

    def pieces(self, after: int, limit: int) -> list[Piece]:
        """Return the next *limit* pieces after the one with the id *after*, in the order they were taken in."""
        ask = "SELECT id, digest, number, part FROM piece WHERE id > ? ORDER BY id LIMIT ?"
        return [Piece(*row) for row in self._store.execute(ask, (after, limit))]

    def texts(self, some: Sequence[Piece]) -> list[str]:
        """Return what each of *some* pieces, which are there, is."""
        texts = {number: pieces(one.text) for number, one in self.of({each.number for each in some}).items()}
        return [texts[each.number][each.part] for each in some]

    def last(self) -> int:
        """Return the id of the piece taken in last, 0 where there is none."""
        return int(self._store.execute("SELECT COALESCE(MAX(id), 0) FROM piece").fetchone()[0])

    def waiting(self, after: int) -> int:
        """Return how many pieces there are after the one with the id *after*."""
        return int(self._store.execute("SELECT COUNT(*) FROM piece WHERE id > ?", (after,)).fetchone()[0])

    def digests(self, numbers: Iterable[int]) -> dict[int, list[bytes]]:
        """Return the pieces of each of *numbers*."""
        ask = "SELECT number, digest FROM piece WHERE number IN (SELECT value FROM json_each(?)) ORDER BY part"
        found: dict[int, list[bytes]] = {}
        for number, known in self._store.execute(ask, (json.dumps([*numbers]),)):
            found.setdefault(number, []).append(known)
        return found

    def saying(self, digests: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the numbers of the memories of which each of *digests* is a piece, none where none is."""
        found: dict[bytes, list[int]] = {known: [] for known in digests}
        for step in several([*found]):
            ask = f"SELECT digest, number FROM piece WHERE digest IN ({', '.join('?' * len(step))}) ORDER BY id"
            for known, number in self._store.execute(ask, step):
                found[known].append(number)
        return found
