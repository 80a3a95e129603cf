"""One SQLite file with the texts of memories, or of entries and turns, as they are taken in: some at a time, whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

from jidomem.clock import nonce
from jidomem.index.document import Mark
from jidomem.index.documents import Document
from jidomem.index.kept_file import KeptFile
from jidomem.index.passages import TABLES, Passages
from jidomem.lexical import FIELDS
from jidomem.stems import TOKENS, Stemmer

#: Memories taken in at a time.
STEP = 500
_FIELDS = ", ".join(FIELDS)
_TABLES = f"""
CREATE TABLE said (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE kind (number INTEGER PRIMARY KEY, types TEXT UNIQUE);
CREATE TABLE memory (number INTEGER PRIMARY KEY, item TEXT UNIQUE, kind INTEGER, recorded TEXT, ended TEXT,
  inactive TEXT, agent TEXT, session TEXT, confidence TEXT, valid_from TEXT, valid_until TEXT, successors TEXT,
  length INTEGER);
CREATE INDEX memory_recorded ON memory (recorded, length);
CREATE INDEX memory_facets ON memory (session, kind, agent, recorded, ended, inactive, valid_from, valid_until);
CREATE INDEX memory_from ON memory (valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX memory_until ON memory (valid_until) WHERE valid_until IS NOT NULL;
CREATE TABLE about (place TEXT, number INTEGER, PRIMARY KEY (place, number)) WITHOUT ROWID;
CREATE INDEX about_number ON about (number);
CREATE TABLE holding (stem TEXT PRIMARY KEY, memories INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE text USING fts5({_FIELDS}, tokenize="{TOKENS}");
{TABLES}"""
_KEEP = (
    "INSERT INTO memory (number, item, kind, recorded, ended, inactive, agent, session, confidence, valid_from, "
    "valid_until, successors, length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SAY = f"INSERT INTO text(rowid, {_FIELDS}) VALUES (?{', ?' * len(FIELDS)})"
_OLD = f"""SELECT m.item, m.number, m.length, {_FIELDS} FROM memory m JOIN text ON text.rowid = m.number
WHERE m.item IN (SELECT value FROM json_each(?))"""


class _Old(NamedTuple):
    """What was taken in of a memory: `texts` are its stems by field."""

    number: int
    length: int
    texts: tuple[str, ...]


class TakenTexts(KeptFile):
    """The file at *path* as it is written: memories with their words, and `passages`, what they say word for word."""

    FORM = 10
    TABLES = _TABLES

    def __init__(self, path: str, stemmer: Stemmer, wait: float, here: int = 0) -> None:
        super().__init__(path, wait, here)
        self._stemmer = stemmer
        self.passages = Passages(self._store)

    def begun(self) -> None:
        """Give a file that was just made an identity, which no other has."""
        self.note(identity=nonce().hex())

    @property
    def mark(self) -> Mark | None:
        """Return how far the file reaches; None where nothing was written yet."""
        said = self.said("mark")
        return None if said is None else Mark.of(said)

    def put(self, documents: Iterable[Document]) -> None:
        """Take in memories, each in the place of what was known of it, while the turn to write is held."""
        left = iter(documents)
        while step := [*islice(left, STEP)]:
            self._put(step)

    def remove(self, items: Iterable[str]) -> None:
        """Forget memories that were taken in; of others nothing is known anyway."""
        old = [*self._known(items).values()]
        self._forget_rows(old)
        self._note_gone(self.passages.forget(one.number for one in old))
        self._count(self._forget_texts(old), -len(old), -sum(one.length for one in old))

    def tidy(self) -> None:
        """Put in order what was taken in piece by piece, so that a search has fewer places to look into."""
        self._store.execute("INSERT INTO text(text) VALUES ('optimize')")

    def _put(self, documents: Iterable[Document]) -> None:
        """Take in some at once: each statement is given all of them."""
        given = {document.item: document for document in documents}
        known, new = self._known(given), count(self._last() + 1)
        numbers = {item: known[item].number if item in known else next(new) for item in given}
        texts = self._stemmed({numbers[item]: document.texts for item, document in given.items()})
        lengths = {number: sum(len(text.split()) for text in each) for number, each in texts.items()}
        self._forget_rows(known.values())
        self._store.executemany(_KEEP, (self._row(numbers[item], one, lengths) for item, one in given.items()))
        places = ((place, numbers[item]) for item, one in given.items() for place in one.about)
        self._store.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", places)
        self._note_gone(self.passages.keep({numbers[item]: one for item, one in given.items()}))
        same = {old.number for old in known.values() if old.texts == texts[old.number]}
        holding = self._forget_texts(old for old in known.values() if old.number not in same)
        said = {number: each for number, each in texts.items() if number not in same}
        self._store.executemany(_SAY, ((number, *each) for number, each in said.items()))
        for each in said.values():
            holding.update({stem for text in each for stem in text.split()})
        longer = sum(lengths.values()) - sum(old.length for old in known.values())
        self._count(holding, len(given) - len(known), longer)

    def _stemmed(self, texts: Mapping[int, Sequence[str]]) -> dict[int, tuple[str, ...]]:
        """Return the stems of *texts*, each between spaces."""
        found = iter(self._stemmer.every([text for each in texts.values() for text in each]))
        return {
            number: tuple(" ".join([stem for _, stem in next(found)]) for _ in each) for number, each in texts.items()
        }

    def _note_gone(self, memories: int) -> None:
        """Note of how many more memories pieces are gone, so that nobody keeps vectors of them."""
        if memories:
            self.note(gone=(self.said("gone") or 0) + memories)

    def _last(self) -> int:
        """Return the highest number of a memory, 0 where there is none."""
        return int(self._store.execute("SELECT COALESCE(MAX(number), 0) FROM memory").fetchone()[0])

    def _known(self, items: Iterable[str]) -> dict[str, _Old]:
        """Return what is known of those of *items* that were taken in."""
        rows = self._store.execute(_OLD, (json.dumps([*items]),))
        return {item: _Old(number, length, tuple(texts)) for item, number, length, *texts in rows}

    def _forget_rows(self, old: Iterable[_Old]) -> None:
        """Forget what memories are narrowed down by."""
        numbers = [(one.number,) for one in old]
        for table in ("memory", "about"):
            self._store.executemany(f"DELETE FROM {table} WHERE number = ?", numbers)

    def _forget_texts(self, old: Iterable[_Old]) -> Counter[str]:
        """Forget the words of memories; return for each how many fewer hold it, below nothing."""
        fewer: Counter[str] = Counter()
        for one in old:
            self._store.execute("DELETE FROM text WHERE rowid = ?", (one.number,))
            fewer.subtract({stem for text in one.texts for stem in text.split()})
        return fewer

    def _count(self, holding: Mapping[str, int], memories: int, length: int) -> None:
        """Change by so much how many memories hold each word, how many there are, and how many words."""
        self._store.executemany(
            "INSERT INTO holding VALUES (?, ?) ON CONFLICT DO UPDATE SET memories = memories + excluded.memories",
            sorted(holding.items()),
        )
        self.note(memories=(self.said("memories") or 0) + memories, words=(self.said("words") or 0) + length)

    def _row(self, number: int, document: Document, lengths: Mapping[int, int]) -> Sequence[Any]:
        """Return what a memory is narrowed down by."""
        return (
            number, document.item, self._kind(" ".join(document.types)), document.recorded, document.ended,
            document.inactive, document.agent, document.session, document.confidence, document.valid_from,
            document.valid_until, "\n".join(document.successors), lengths[number],
        )  # fmt: skip

    def _kind(self, types: str) -> int:
        """Return the number of a combination of types, a new one where it was not met before."""
        row = self._store.execute("SELECT number FROM kind WHERE types = ?", (types,)).fetchone()
        if row is None:
            self._store.execute("INSERT INTO kind (types) VALUES (?)", (types,))
            return self._kind(types)
        return int(row[0])
