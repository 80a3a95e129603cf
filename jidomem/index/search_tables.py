"""The tables of a search index: one SQLite file with the memories, or the entries and turns, of a project.

It has the texts for full-text search, the columns that searches filter by, and the texts verbatim with their speakers,
times and order within a conversation. Documents are written STEP at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import count, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from jidomem.base.clock import nonce
from jidomem.base.containers import BoundedDict, grouped
from jidomem.base.stems import TOKENS, Stemmer
from jidomem.base.words import chunk_text, digest
from jidomem.index.cache_file import CacheDatabase, chunks
from jidomem.index.list_texts import TABLES as LIST_TEXT_TABLES
from jidomem.index.projection import TABLES as PROJECTION_TABLES
from jidomem.index.projection import IndexedProject, Projection
from jidomem.index.search_documents import TURN, Document, rejected_at
from jidomem.index.store import Watermark
from jidomem.index.tallies import COMMIT_TABLES, EMPTY, LATER_AUTHORS, LISTED_AGAIN, CommitList, Tallies
from jidomem.index.tallies import TABLES as TALLY_TABLES
from jidomem.index.timeline import FACET_INDEX, REJECTED_COLUMN
from jidomem.rdf.terms import plain_value
from jidomem.records.active import PENDING
from jidomem.records.interfaces import FIELD_WEIGHTS, CorpusStats, Match

if TYPE_CHECKING:
    from jidomem.rdf.terms import Term
    from jidomem.records.named_query import ListOrder

TABLES = """
CREATE TABLE passage (number INTEGER PRIMARY KEY, content TEXT, speakers TEXT, said_at TEXT, talk TEXT, place TEXT);
CREATE INDEX passage_talk ON passage (talk, place);
CREATE TABLE piece (id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB, number INTEGER, part INTEGER);
CREATE INDEX piece_digest ON piece (digest);
CREATE INDEX piece_number ON piece (number);
CREATE TABLE speaker (name TEXT PRIMARY KEY, since TEXT) WITHOUT ROWID;
"""
_PUT_SPEAKER = """INSERT INTO speaker VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET since = MIN(since, excluded.since)"""
#: The passages of a conversation before or after another one that are recorded by a moment, and active then.
_NEIGHBOURS = """(SELECT json_group_array(number) FROM (SELECT p.number FROM passage p JOIN memory m USING (number)
WHERE p.talk = middle.talk AND p.place %s middle.place AND m.recorded <= COALESCE(:moment, m.recorded)
AND (m.ended IS NULL OR m.ended > COALESCE(:moment, m.ended)) ORDER BY p.place %s LIMIT :most))"""
_AROUND = f"""SELECT number, {_NEIGHBOURS % ("<", "DESC")}, {_NEIGHBOURS % (">", "ASC")} FROM passage middle
WHERE number IN (SELECT value FROM json_each(:numbers)) AND talk <> ''"""


class Passage(NamedTuple):
    """The verbatim text of a document: `talk` is its conversation ("" if none), `place` its sort key in there."""

    number: int
    text: str
    speakers: tuple[str, ...]
    said_at: str
    talk: str
    place: str


class Piece(NamedTuple):
    """A piece of a text, embedded as one vector: the `id` is higher than that of every earlier piece."""

    id: int
    digest: bytes
    number: int
    part: int


class Passages:
    """The passages in the open database *store*."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store

    def write(self, documents: Mapping[int, Document]) -> int:
        """Write the texts of documents, by their numbers; return the number of documents that lost pieces."""
        rows = ((number, document.text, "\n".join(document.speakers), document.said_at, document.talk, document.place)
                for number, document in documents.items())  # fmt: skip
        self._store.executemany("INSERT OR REPLACE INTO passage VALUES (?, ?, ?, ?, ?, ?)", rows)
        speakers = {(name, document.recorded) for document in documents.values() for name in document.speakers}
        self._store.executemany(_PUT_SPEAKER, speakers)
        digests = {number: [*map(digest, chunk_text(document.text))] for number, document in documents.items()}
        former = self.digests(documents)
        changed = {number: pieces for number, pieces in digests.items() if pieces != former.get(number, [])}
        lost = self._delete_pieces(number for number in changed if number in former)
        new = ((piece, number, part) for number, pieces in changed.items() for part, piece in enumerate(pieces))
        self._store.executemany("INSERT INTO piece (digest, number, part) VALUES (?, ?, ?)", new)
        return lost

    def delete(self, numbers: Iterable[int]) -> int:
        """Delete the texts of *numbers*; return the number of documents that lost pieces."""
        numbers = [*numbers]
        self._store.executemany("DELETE FROM passage WHERE number = ?", ((number,) for number in numbers))
        return self._delete_pieces(numbers)

    def _delete_pieces(self, numbers: Iterable[int]) -> int:
        statement = "DELETE FROM piece WHERE number = ?"
        return sum(self._store.execute(statement, (number,)).rowcount > 0 for number in numbers)

    def get(self, numbers: Iterable[int]) -> dict[int, Passage]:
        """Return the passages of *numbers*; numbers without a passage are left out."""
        sql = "SELECT * FROM passage WHERE number IN (SELECT value FROM json_each(?))"
        rows = self._store.execute(sql, (json.dumps([*numbers]),))
        return {row[0]: Passage._make((*row[:2], tuple(row[2].splitlines()), *row[3:])) for row in rows}

    def around(
        self, numbers: Iterable[int], most: int, moment: str | None = None
    ) -> dict[int, tuple[list[int], list[int]]]:
        """Return the numbers of *most* passages before and after each of *numbers* that is in a conversation.

        The nearest come first. With *moment*, only passages recorded by it, and active then, count.
        """
        values = {"numbers": json.dumps([*numbers]), "most": most, "moment": moment}
        rows = self._store.execute(_AROUND, values)
        return {number: (json.loads(before), json.loads(after)) for number, before, after in rows}

    def speakers(self, moment: str | None = None) -> set[str]:
        """Return the speakers of all passages, or of those recorded by *moment*."""
        sql = "SELECT name FROM speaker WHERE since <= COALESCE(?, since)"
        return {name for (name,) in self._store.execute(sql, (moment,))}

    def pieces(self, after: int, limit: int) -> list[Piece]:
        """Return the next *limit* pieces after the id *after*, in order of their ids."""
        sql = "SELECT id, digest, number, part FROM piece WHERE id > ? ORDER BY id LIMIT ?"
        return [Piece(*row) for row in self._store.execute(sql, (after, limit))]

    def texts(self, pieces: Sequence[Piece]) -> list[str]:
        """Return the texts of pieces that are in the file."""
        passages = self.get({piece.number for piece in pieces})
        texts = {number: chunk_text(passage.text) for number, passage in passages.items()}
        return [texts[piece.number][piece.part] for piece in pieces]

    def count_after(self, after: int) -> int:
        """Return the number of pieces after the id *after*."""
        return int(self._store.execute("SELECT COUNT(*) FROM piece WHERE id > ?", (after,)).fetchone()[0])

    def digests(self, numbers: Iterable[int]) -> dict[int, list[bytes]]:
        """Return the digests of the pieces of each of *numbers*, in order."""
        sql = "SELECT number, digest FROM piece WHERE number IN (SELECT value FROM json_each(?)) ORDER BY part"
        return grouped(self._store.execute(sql, (json.dumps([*numbers]),)))

    def repeated(self, limit: int) -> list[bytes]:
        """Return up to *limit* digests of first pieces that several memories have, the latest first."""
        sql = (
            "SELECT digest FROM piece WHERE part = 0 GROUP BY digest HAVING COUNT(*) > 1 ORDER BY MAX(id) DESC LIMIT ?"
        )
        return [known for (known,) in self._store.execute(sql, (limit,))]

    def numbers_of(self, digests: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return, for each digest, the numbers of the memories that have such a piece."""
        numbers: dict[bytes, list[int]] = {digest_: [] for digest_ in digests}
        for step in chunks([*numbers]):
            sql = f"SELECT digest, number FROM piece WHERE digest IN ({', '.join('?' * len(step))}) ORDER BY id"
            for digest_, number in self._store.execute(sql, step):
                numbers[digest_].append(number)
        return numbers


#: Documents written in one step.
STEP = 500
_WRITTEN_FIELDS = ", ".join(FIELD_WEIGHTS)
_TABLES = f"""
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE kind (number INTEGER PRIMARY KEY, types TEXT UNIQUE);
CREATE TABLE memory (number INTEGER PRIMARY KEY, item TEXT UNIQUE, kind INTEGER, recorded TEXT, ended TEXT,
  inactive TEXT, agent TEXT, session TEXT, confidence TEXT, valid_from TEXT, valid_until TEXT, successors TEXT,
  length INTEGER, rejected TEXT);
CREATE INDEX memory_recorded ON memory (recorded, length);
{FACET_INDEX}CREATE INDEX memory_from ON memory (valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX memory_until ON memory (valid_until) WHERE valid_until IS NOT NULL;
CREATE TABLE about (place TEXT, number INTEGER, PRIMARY KEY (place, number)) WITHOUT ROWID;
CREATE INDEX about_number ON about (number);
CREATE TABLE holding (stem TEXT PRIMARY KEY, memories INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE text USING fts5({_WRITTEN_FIELDS}, tokenize="{TOKENS}");
{TABLES}{PROJECTION_TABLES}{TALLY_TABLES}{COMMIT_TABLES}{LIST_TEXT_TABLES}"""
_LATER_TABLES = f"""{TALLY_TABLES}{COMMIT_TABLES}{LIST_TEXT_TABLES}DROP TABLE content;
ALTER TABLE listed ADD COLUMN due INTEGER;
DELETE FROM holder WHERE key >= 'topic:' AND key < 'topic;';
"""
#: For a file that has proposals in other states; `SearchIndexWriter.fill` states them again.
_STATED_AGAIN, _OF_22 = REJECTED_COLUMN + EMPTY, REJECTED_COLUMN + EMPTY + LATER_AUTHORS
_STATE_PROPOSAL = "UPDATE memory SET inactive = ?, rejected = ? WHERE item = ?"
_INSERT_MEMORY = (
    "INSERT INTO memory (number, item, kind, recorded, ended, inactive, agent, session, confidence, valid_from, "
    "valid_until, successors, length, rejected) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_TEXT = f"INSERT INTO text(rowid, {_WRITTEN_FIELDS}) VALUES (?{', ?' * len(FIELD_WEIGHTS)})"
#: The stems by field in the table where FTS5 has them: a read of this table takes half the time of one of `text`.
_FIELDS, _STEMS = ", ".join(f"c{place}" for place in range(len(FIELD_WEIGHTS))), "text_content ON id = m.number"
_FORMER_ROWS = f"""SELECT m.item, m.number, m.length, {_FIELDS} FROM memory m JOIN {_STEMS}
WHERE m.item IN (SELECT value FROM json_each(?))"""


class _FormerRow(NamedTuple):
    """The former row of a memory: `texts` are its stems by field."""

    number: int
    length: int
    texts: tuple[str, ...]


class SearchIndexWriter(CacheDatabase):
    """The write side of the file at *path*: memories with their words, and `passages`, their verbatim texts."""

    FORM = 26
    TABLES = _TABLES
    UPGRADES: ClassVar[Mapping[int, str]] = {
        18: _LATER_TABLES + _STATED_AGAIN,
        22: _OF_22,
        23: LATER_AUTHORS,
        25: LISTED_AGAIN,
    }

    def __init__(self, path: str, stemmer: Stemmer, wait: float, marker: int = 0) -> None:
        super().__init__(path, wait, marker)
        self._stemmer = stemmer
        self.passages = Passages(self._store)
        self.projection = Projection(self._store)
        self.tallies = Tallies(self._store)
        self.commits = CommitList(self._store)
        self._names = BoundedDict[Any, dict[str, int]](8)  # the last answers of `names`

    def initialise(self) -> None:
        """Give a new or upgraded file a random identity; lists and tallies that it lacks are to be filled."""
        self.set_metadata(identity=nonce().hex(), lists=None)

    @property
    def mark(self) -> Watermark | None:
        """Return the watermark of the file; None before the first write."""
        mark = self.metadata("mark")
        return None if mark is None else Watermark.of(mark)

    def put(self, documents: Iterable[Document]) -> None:
        """Write documents, each instead of its former row, in the caller's write transaction."""
        left = iter(documents)
        while step := [*islice(left, STEP)]:
            self._put(step)

    def remove(self, items: Iterable[str]) -> None:
        """Delete memories by IRI; unknown IRIs are ignored."""
        old = [*self._former_rows(items).values()]
        self._delete_rows(old)
        self._count_lost_pieces(self.passages.delete(row.number for row in old))
        self._count(self._delete_texts(old), -len(old), -sum(row.length for row in old))

    def include(self, orders: Iterable[ListOrder], ontology: str, digest: str) -> None:
        """Add the lists of *orders*, with this *digest*; `fill` fills the new ones, under another *ontology* all."""
        is_changed = self.metadata("ontology") not in (None, ontology)
        lists = {*self.projection.include(orders, rebuilds=is_changed), *self._filling.get("lists", ())}
        is_complete = not lists and self.metadata("tallies")
        filling = None if is_complete else {"lists": sorted(lists), "after": 0}
        self.set_metadata(ontology=ontology, lists=digest, filling=filling)

    def has_lists(self, ontology: str, digest: str) -> bool:
        """Return whether the file has the lists of orders with this *digest* under this *ontology*, filled or not."""
        return (self.metadata("ontology"), self.metadata("lists")) == (ontology, digest)

    @property
    def filled(self) -> tuple[int, int] | None:
        """Return how many nodes were written to the new lists and tallies, and of how many; None if none is left."""
        return (self._filling["after"], self.projection.last_number()) if self._filling else None

    def fill(self, source: IndexedProject) -> None:
        """Write some nodes to the lists and tallies that lack them, in the caller's write transaction."""
        filling = self._filling
        if not filling:  # another process has written the last ones
            return
        last, nodes = self.projection.nodes_after(filling["after"], source)
        self.projection.fill(filling["lists"], nodes, source)
        if not self.metadata("tallies"):
            self.tallies.update({name: node.statements for name, node in nodes.items()}, source)
            rows = ((PENDING, rejected_at(source, source.graph, node.statements), plain_value(name))
                    for name, node in nodes.items() if node.is_proposed)  # fmt: skip
            self._store.executemany(_STATE_PROPOSAL, rows)
        done: dict[str, Any] = {"filling": None, "tallies": True}
        self.set_metadata(**({"filling": {**filling, "after": last}} if nodes else done))

    @property
    def _filling(self) -> dict[str, Any]:
        """Return the numbers of the lists to be filled, and up to which node they are; empty if all are."""
        return self.metadata("filling") or {}

    def update_nodes(
        self, names: Collection[Term], source: IndexedProject, *, ending: Collection[Term] | None = None
    ) -> None:
        """Write what lists and tallies have of *names*, as `Projection.update` does."""
        nodes = self.projection.update(names, source, ending=ending)
        self.tallies.update({name: node.statements for name, node in nodes.items()}, source)

    def optimize(self) -> None:
        """Merge the segments of the full-text index, so that a search reads fewer of them."""
        self._store.execute("INSERT INTO text(text) VALUES ('optimize')")

    def _put(self, documents: Iterable[Document]) -> None:
        """Write some documents at once: each statement runs once for all of them."""
        given = {document.item: document for document in documents}
        (last,) = self._store.execute("SELECT COALESCE(MAX(number), 0) FROM memory").fetchone()
        former, new = self._former_rows(given), count(last + 1)
        numbers = {item: former[item].number if item in former else next(new) for item in given}
        texts = self._stemmed({numbers[item]: document.texts for item, document in given.items()})
        lengths = {number: sum(len(text.split()) for text in stems) for number, stems in texts.items()}
        self._delete_rows(former.values())
        rows = (self._row(numbers[item], document, lengths) for item, document in given.items())
        self._store.executemany(_INSERT_MEMORY, rows)
        places = ((place, numbers[item]) for item, document in given.items() for place in document.about)
        self._store.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", places)
        self._count_lost_pieces(self.passages.write({numbers[item]: document for item, document in given.items()}))
        same = {old.number for old in former.values() if old.texts == texts[old.number]}
        holding = self._delete_texts(old for old in former.values() if old.number not in same)
        changed = {number: stems for number, stems in texts.items() if number not in same}
        self._store.executemany(_INSERT_TEXT, ((number, *stems) for number, stems in changed.items()))
        for stems in changed.values():
            holding.update({stem for text in stems for stem in text.split()})
        longer = sum(lengths.values()) - sum(old.length for old in former.values())
        self._count(holding, len(given) - len(former), longer)

    def _stemmed(self, texts: Mapping[int, Sequence[str]]) -> dict[int, tuple[str, ...]]:
        """Return the stems of *texts*, each between spaces."""
        stems = iter(self._stemmer.stems_of_each([text for fields in texts.values() for text in fields]))
        return {key: tuple(" ".join([stem for _, stem in next(stems)]) for _ in each) for key, each in texts.items()}

    def _count_lost_pieces(self, memories: int) -> None:
        """Add to the number of memories that lost pieces, whose vectors can be deleted."""
        if memories:
            self.set_metadata(gone=(self.metadata("gone") or 0) + memories)

    def _former_rows(self, items: Iterable[str]) -> dict[str, _FormerRow]:
        rows = self._store.execute(_FORMER_ROWS, (json.dumps([*items]),))
        return {item: _FormerRow(number, length, tuple(texts)) for item, number, length, *texts in rows}

    def _delete_rows(self, old: Iterable[_FormerRow]) -> None:
        numbers = [(row.number,) for row in old]
        for table in ("memory", "about"):
            self._store.executemany(f"DELETE FROM {table} WHERE number = ?", numbers)

    def _delete_texts(self, old: Iterable[_FormerRow]) -> Counter[str]:
        """Delete the words of memories; return for each stem the change of the number of memories (negative)."""
        fewer: Counter[str] = Counter()
        for row in old:
            self._store.execute("DELETE FROM text WHERE rowid = ?", (row.number,))
            fewer.subtract({stem for text in row.texts for stem in text.split()})
        return fewer

    def _count(self, holding: Mapping[str, int], memories: int, length: int) -> None:
        """Add to the number of memories by stem, to the number of *memories*, and to the total of words (*length*)."""
        sql = "INSERT INTO holding VALUES (?, ?) ON CONFLICT DO UPDATE SET memories = memories + excluded.memories"
        self._store.executemany(sql, sorted(holding.items()))
        memories, length = (self.metadata("memories") or 0) + memories, (self.metadata("words") or 0) + length
        self.set_metadata(memories=memories, words=length)

    def _row(self, number: int, document: Document, lengths: Mapping[int, int]) -> Sequence[Any]:
        """Return the columns that searches filter by."""
        return (
            number, document.item, self._kind(" ".join(document.types)), document.recorded, document.ended,
            document.inactive, document.agent, document.session, document.confidence, document.valid_from,
            document.valid_until, "\n".join(document.successors), lengths[number], document.rejected,
        )  # fmt: skip

    def _kind(self, types: str) -> int:
        """Return the number of a combination of types, a new one for a new combination."""
        row = self._store.execute("SELECT number FROM kind WHERE types = ?", (types,)).fetchone()
        if row is None:
            self._store.execute("INSERT INTO kind (types) VALUES (?)", (types,))
            return self._kind(types)
        return int(row[0])


_ROW = f"""SELECT m.number, m.item, m.recorded, m.confidence, m.length, m.successors, {_FIELDS}
FROM memory m JOIN {_STEMS} WHERE """
_ROWS = f"""SELECT m.number, m.item, k.types, m.recorded, m.ended, m.confidence, m.agent, m.session, m.length,
m.successors, p.content, p.speakers, p.said_at, p.talk, {_FIELDS} FROM memory m JOIN kind k ON k.number = m.kind
JOIN passage p ON p.number = m.number JOIN {_STEMS} WHERE"""
#: Matches are scored by their words alone; the filter is applied to the best of them, some at a time: to filter
#: thousands takes as long as to score them, and to read their texts ten times as long.
_BEST = f"""SELECT rowid, -bm25(text, {", ".join(map(str, FIELD_WEIGHTS.values()))}) AS reach FROM text
WHERE text MATCH ? %s ORDER BY reach DESC, rowid DESC"""
#: The plus keeps SQLite from a look-up for each number.
_ONLY = "AND +rowid IN (SELECT value FROM json_each(?))"
_WITHIN = "AND +rowid IN (SELECT m.number FROM memory m WHERE %s)"
_BEYOND = f"SELECT COUNT(*) FROM text WHERE text MATCH ? AND rowid > ? {_ONLY}"
#: The number of best matches that are filtered first; it doubles each time.
AT_FIRST = 128


class OwnerFilter(NamedTuple):
    """A restriction to an owner: memories of `kinds` match only if of one of `agents`, and of one of `sessions`.

    None stands for all sessions, "" for memories without a session. With `place`, they must also be about that
    namespace.
    """

    kinds: frozenset[str]
    agents: frozenset[str]
    sessions: frozenset[str] | None = None
    place: str | None = None


#: The condition that a memory is by one of the agents, or a turn in which one of them speaks.
_BY = """(m.agent IN (SELECT value FROM json_each(?)) OR m.kind IN ({}) AND EXISTS (SELECT 1 FROM passage p,
json_each(?) WHERE p.number = m.number AND instr(char(10) || speakers || char(10), char(10) || value || char(10))))"""


class SearchFilter(NamedTuple):
    """The filter of a search: `moment` selects by recorded time, the rest by columns; all moments in one form."""

    moment: str | None = None
    inactive: bool = False
    kinds: frozenset[str] | None = None
    but: frozenset[str] = frozenset()
    since: str | None = None
    until: str | None = None
    valid_at: str | None = None
    agents: frozenset[str] | None = None
    sessions: frozenset[str] | None = None
    items: frozenset[str] | None = None
    own: OwnerFilter | None = None


class TextMatch(NamedTuple):
    """A memory that matches some of the words; `reach` is the BM25 score by SQLite, over the present file."""

    number: int
    recorded: str
    confidence: str
    reach: float


class SearchRow(NamedTuple):
    """The row of a memory, entry or turn, and of its passage; `fields` has its stems in the order of FIELD_WEIGHTS."""

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
    text: str
    speakers: tuple[str, ...]
    said_at: str
    talk: str
    fields: Sequence[str]


class SummaryRow(NamedTuple):
    """The row of a memory with the stems of its summary; it `has_ended` also if it is a decision that was rejected."""

    number: int
    item: str
    agent: str
    has_ended: bool
    stems: Sequence[str]


class SearchIndexReader(SearchIndexWriter):
    """The read side of the file at *path*: memories with their words, and `passages`, their verbatim texts."""

    def counts(self, stems: Iterable[str], moment: str | None = None) -> CorpusStats:
        """Return the number of memories that have each of *stems*: now, or of those recorded by *moment*."""
        if moment is None:
            newest = self._store.execute("SELECT MAX(recorded) FROM memory").fetchone()[0]
            memories, words = self.metadata("memories") or 0, self.metadata("words") or 0
            return CorpusStats(memories, words, self.holding(stems), newest or "")
        sql = "SELECT COUNT(*), COALESCE(SUM(length), 0), MAX(recorded) FROM memory WHERE recorded <= ?"
        memories, length, newest = self._store.execute(sql, (moment,)).fetchone()
        return CorpusStats(memories, length, self._count_holding(stems, moment), newest or "")

    def holding(self, stems: Iterable[str]) -> dict[str, int]:
        """Return the number of memories that have each of *stems*."""
        stems = [*stems]
        sql = "SELECT stem, memories FROM holding WHERE stem IN (SELECT value FROM json_each(?))"
        return dict.fromkeys(stems, 0) | dict(self._store.execute(sql, (json.dumps(stems),)))

    def stems_from(self, beginning: str) -> list[str]:
        """Return the stems of memories that begin with *beginning*."""
        sql = "SELECT stem FROM holding WHERE stem >= ? AND stem < ? AND memories > 0"
        return [stem for (stem,) in self._store.execute(sql, (beginning, f"{beginning}\U0010ffff"))]

    def with_stem(self, stem: str, limit: int) -> list[int]:
        """Return the numbers of the last *limit* memories with *stem* in the summary."""
        rows = "SELECT rowid FROM text WHERE text MATCH ? ORDER BY rowid DESC LIMIT ?"
        sql = f"SELECT json_group_array(rowid) FROM ({rows})"  # one row takes half the time of a thousand
        return list(json.loads(self._store.execute(sql, (f'summary : "{stem}"', limit)).fetchone()[0]))

    def summaries(self, numbers: Collection[int], within: SearchFilter) -> list[SummaryRow]:
        """Return those of *numbers* that pass the filter, in this order, but no pending ones."""
        clause, values = self._condition(within)
        ended = "(m.ended IS NOT NULL OR m.inactive IN ('rejected', 'deprecated')) AS has_ended"
        sql = f"""SELECT m.number, m.item, m.agent, {ended}, text.summary FROM json_each(?) JOIN memory m
            ON m.number = value JOIN text ON text.rowid = number WHERE {clause} AND (m.inactive IS NULL OR has_ended)"""
        rows = self._store.execute(sql, (json.dumps([*numbers]), *values))
        return [SummaryRow(number, item, agent, ended, summary.split()) for number, item, agent, ended, summary in rows]

    def _count_holding(self, stems: Iterable[str], moment: str) -> dict[str, int]:
        """Return the number of memories recorded by *moment* that have each of *stems*.

        Memories are numbered nearly in the order of their recorded times: all are counted below the first that was
        recorded later, and beyond it those few that were recorded earlier, in a fifth of the time of looking up each.
        """
        first = self._store.execute("SELECT MIN(number) FROM memory WHERE recorded > ?", (moment,)).fetchone()[0]
        if first is None:
            return dict(self.counts(stems).holding)
        later = self._store.execute("SELECT number FROM memory WHERE number > ? AND recorded <= ?", (first, moment))
        only = json.dumps([row[0] for row in later])
        sql = f"SELECT COUNT(*) FROM text WHERE text MATCH ? AND rowid < ? UNION ALL {_BEYOND}"
        counts = {}
        for stem in stems:
            words = matching([stem])
            counts[stem] = sum(row[0] for row in self._store.execute(sql, (words, first, words, first, only)))
        return counts

    def best(
        self,
        stems: Iterable[str],
        within: SearchFilter,
        only: Iterable[int] | None = None,
        beside: Iterable[str] = (),
        but: Iterable[str] = (),
    ) -> Iterator[TextMatch]:
        """Yield the memories that have one of *stems*, among *only* if given, by descending score.

        The words *beside* raise the score but need not match. A memory with one of *but* is left out.
        """
        reached = self._reached(stems, only, beside, but)
        limit = AT_FIRST
        while step := dict(islice(reached, limit)):
            rows = self._filter("m.number, m.recorded, m.confidence", step, within)
            matches = {each: TextMatch(each, recorded, sure, step[each]) for each, recorded, sure in rows}
            yield from (matches[number] for number in step if number in matches)
            limit *= 2

    def matches(
        self,
        stems: Iterable[str],
        beside: Iterable[str],
        limit: int,
        only: Iterable[int] | None = None,
        within: SearchFilter | None = None,
    ) -> list[tuple[int, float]]:
        """Return the numbers and scores of the *limit* first memories as `best` has them.

        All that pass the filter *within* are looked up first: this takes less time than to filter thousands of matches.
        """
        return [*islice(self._reached(stems, only, beside, (), limit, within), limit)]

    def _reached(
        self,
        stems: Iterable[str],
        only: Iterable[int] | None,
        beside: Iterable[str],
        but: Iterable[str],
        limit: int | None = None,
        within: SearchFilter | None = None,
    ) -> Iterator[tuple[int, float]]:
        wanted, boosting, excluded = matching(stems), matching(beside), matching(but)
        expressions = [f"({wanted}) NOT ({excluded})" if excluded else wanted]
        if boosting:
            expressions = [f"({expressions[0]}) AND ({boosting})", f"({expressions[0]}) NOT ({boosting})"]
        values: list[Any] = [] if only is None else [json.dumps([*only])]
        restriction = "" if only is None else _ONLY
        if within is not None:
            clause, filter_values = self._condition(within)
            restriction, values = f"{restriction} {_WITHIN % clause}", [*values, *filter_values]
        sql = _BEST % restriction
        if limit is not None:  # a limit that has no effect takes time
            sql, values = f"{sql} LIMIT ?", [*values, limit]
        results = [self._store.execute(sql, (expression, *values)) for expression in expressions]
        return merge(*results, key=lambda row: (row[1], row[0]), reverse=True)

    def newest(self, within: SearchFilter, limit: int) -> list[str]:
        """Return the IRIs of the *limit* memories recorded last, newest first."""
        clause, values = self._condition(within)
        sql = f"SELECT item FROM memory m WHERE {clause} ORDER BY m.recorded DESC, item DESC LIMIT ?"
        return [row[0] for row in self._store.execute(sql, (*values, limit))]

    def during(self, spans: Sequence[tuple[str, str]], within: SearchFilter, limit: int) -> list[int]:
        """Return the numbers of the first *limit* texts said in one of *spans* (half-open), by span, then by time."""
        clause, values = self._condition(within)
        said = "said_at >= json_extract(value, '$[0]') AND said_at < json_extract(value, '$[1]')"
        sql = f"""SELECT m.number FROM json_each(?) JOIN passage ON {said} JOIN memory m USING (number)
            WHERE {clause} ORDER BY key, said_at, m.number LIMIT ?"""
        return [row[0] for row in self._store.execute(sql, (json.dumps(spans), *values, limit))]

    def names(self, column: str, within: SearchFilter) -> Mapping[str, int]:
        """Return the number of memories that pass the filter by `agent` or by `session`, most first."""
        clause, values = self._condition(within)
        sql = f"SELECT m.{column}, COUNT(*) FROM memory m WHERE {clause} AND m.{column} <> '' GROUP BY 1"
        if (key := (self.state, sql, *values)) not in self._names:
            self._names[key] = dict(sorted(self._store.execute(sql, values), key=lambda row: (-row[1], row[0])))
        return self._names[key]

    def match(self, which: int | str, moment: str | None) -> Match | None:
        """Return one memory, by its number or IRI, as a match if it was recorded by *moment*."""
        by = "number" if isinstance(which, int) else "item"
        text = f"{_ROW} m.{by} = ? AND m.recorded <= COALESCE(?, m.recorded)"
        row = self._store.execute(text, (which, moment)).fetchone()
        if row is None:
            return None
        number, item, recorded, confidence, length, successors, *fields = row
        return Match(number, item, recorded, confidence, length, tuple(fields), tuple(successors.split()))

    def rows(self, numbers: Iterable[int], within: SearchFilter) -> list[SearchRow]:
        """Return the rows of those of *numbers* that pass the filter."""
        clause, values = self._condition(within)
        sql = f"{_ROWS} m.number IN (SELECT value FROM json_each(?)) AND {clause}"
        return [*map(_row, self._store.execute(sql, (json.dumps([*numbers]), *values)))]

    def within(self, numbers: Iterable[int], within: SearchFilter) -> frozenset[int]:
        """Return those of *numbers* that pass the filter."""
        return frozenset(row[0] for row in self._filter("m.number", numbers, within))

    def _filter(self, columns: str, numbers: Iterable[int], within: SearchFilter) -> list[Any]:
        clause, values = self._condition(within)
        sql = f"SELECT {columns} FROM memory m WHERE m.number IN (SELECT value FROM json_each(?)) AND {clause}"
        return self._store.execute(sql, (json.dumps([*numbers]), *values)).fetchall()

    def numbers(self, items: Iterable[str]) -> list[int]:
        """Return the numbers of those of *items* that are in the file."""
        sql = "SELECT number FROM memory WHERE item IN (SELECT value FROM json_each(?))"
        return [row[0] for row in self._store.execute(sql, (json.dumps([*items]),))]

    def digests(self, within: SearchFilter, limit: int) -> list[bytes]:
        """Return the digests of up to *limit* pieces that pass the filter, those recorded last first."""
        clause, values = self._condition(within)
        sql = f"SELECT digest FROM memory m JOIN piece USING (number) WHERE {clause} ORDER BY m.recorded DESC LIMIT ?"
        return list(dict.fromkeys(row[0] for row in self._store.execute(sql, (*values, limit))))

    def places(self) -> Iterator[str]:
        """Yield every place that some memory is about."""
        return (row[0] for row in self._store.execute("SELECT DISTINCT place FROM about"))

    def about(self, places: Iterable[str]) -> frozenset[int]:
        """Return the numbers of the memories that are about one of *places*."""
        sql = "SELECT number FROM about WHERE place IN (SELECT value FROM json_each(?))"
        return frozenset(row[0] for row in self._store.execute(sql, (json.dumps([*places]),)))

    def _condition(self, within: SearchFilter) -> tuple[str, list[Any]]:
        sessions, items = (each if each is None else json.dumps([*each]) for each in (within.sessions, within.items))
        conditions: Mapping[str, Any] = {
            "m.recorded <= ?": within.moment,
            "m.recorded >= ?": within.since,
            "m.recorded < ?": within.until,
            "(m.valid_from IS NULL OR m.valid_from <= ?)": within.valid_at,
            "(m.valid_until IS NULL OR m.valid_until > ?)": within.valid_at,
            "m.session IN (SELECT value FROM json_each(?))": sessions,
            "m.item IN (SELECT value FROM json_each(?))": items,
        }
        clauses = [clause for clause, value in conditions.items() if value is not None]
        values = [value for value in conditions.values() if value is not None]
        if not within.inactive:
            clauses.append("m.inactive IS NULL AND (m.ended IS NULL OR m.ended > COALESCE(?, m.ended))")
            values.append(within.moment)
        if within.agents is not None:
            clauses.append(_BY.format(self._kind_numbers(frozenset([plain_value(TURN)]))))
            values += [json.dumps(sorted(within.agents))] * 2
        if within.kinds is not None:
            clauses.append(f"m.kind IN ({self._kind_numbers(within.kinds)})")
        if within.but:
            clauses.append(f"m.kind NOT IN ({self._kind_numbers(within.but)})")
        if within.own is not None:
            clause, owner_values = self._owner_condition(within.own)
            clauses, values = [*clauses, clause], [*values, *owner_values]
        return " AND ".join(clauses) or "TRUE", values

    def _owner_condition(self, own: OwnerFilter) -> tuple[str, list[Any]]:
        """Return the condition that passes memories of other kinds, and those of this owner."""
        clauses, values = ["m.agent IN (SELECT value FROM json_each(?))"], [json.dumps([*own.agents])]
        if own.sessions is not None:
            clauses.append("m.session IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(own.sessions)))
        if own.place is not None:
            clauses.append("m.number IN (SELECT number FROM about WHERE place = ?)")
            values.append(own.place)
        return f"(m.kind NOT IN ({self._kind_numbers(own.kinds)}) OR ({' AND '.join(clauses)}))", values

    def _kind_numbers(self, classes: frozenset[str]) -> str:
        """Return the numbers of the kinds that have one of *classes*."""
        kinds = self._store.execute("SELECT number, types FROM kind")
        return ", ".join(str(number) for number, types in kinds if not classes.isdisjoint(types.split()))


def matching(stems: Iterable[str]) -> str:
    """Return the FTS5 expression that matches any of *stems*, quoted."""
    return " OR ".join(f'"{stem}"' for stem in stems)


def _row(row: Sequence[Any]) -> SearchRow:
    types, successors, speakers = row[2].split(), row[9].split(), row[11].splitlines()
    parts = *row[:2], tuple(types), *row[3:9], tuple(successors), row[10], tuple(speakers), *row[12:14], row[14:]
    return SearchRow._make(parts)
