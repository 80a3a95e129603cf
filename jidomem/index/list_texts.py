"""The texts of the nodes of lists that are asked for a text, in the SQLite file of the search text.

A text that few nodes contain is looked up by each three characters of it; for another one a page reads the list in its
order until it is full.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from jidomem.base.words import fold_separators
from jidomem.rdf.terms import Term, plain_value
from jidomem.rdf.vocab import jido

#: The statements about a node: property -> values.
Statements = Mapping[Term, Sequence[Term]]
#: The `text` of each row of some lists; `gram` has its trigrams.
TABLES = """CREATE TABLE list_text (number INTEGER PRIMARY KEY, list INTEGER, key TEXT, text TEXT, UNIQUE (list, key));
CREATE VIRTUAL TABLE gram USING fts5(text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1');
"""
#: A text that more nodes contain is common.
FEW = 2_000
#: The most trigrams of a text that are looked up.
_MOST_GRAMS = 12
_CONTAINS = "(instr(s.text, :text) OR instr(s.text, :topic))"
#: The tables in the order in which they are read.
_ALL = "listed l CROSS JOIN list_text s"
_SOME = "json_each(:numbers) n CROSS JOIN list_text s ON s.number = n.value CROSS JOIN listed l"
_PAGE = f"""SELECT l.key FROM %s ON s.list = l.list AND s.key = l.key
WHERE l.list = :list AND l.key >= :start AND l.since <= :moment AND (:inactive OR l.until > :moment) AND {_CONTAINS}
ORDER BY l.key LIMIT :count"""


class ListTexts:
    """The texts in the open database *store*."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store

    def put(self, number: int, texts: Mapping[str, str]) -> None:
        """Write the texts of rows of the list *number*, by their keys."""
        former = {key: (row, text) for row, key, text in self._store.execute(
            "SELECT number, key, text FROM list_text WHERE list = ? AND key IN (SELECT value FROM json_each(?))",
            (number, json.dumps([*texts])))}  # fmt: skip
        changed = {key: text for key, text in texts.items() if former.get(key, (0, None))[1] != text}
        gone = [former[key] for key in changed if key in former]
        self._store.executemany("DELETE FROM list_text WHERE number = ?", ((row,) for row, _ in gone))
        self._store.executemany("INSERT INTO gram (gram, rowid, text) VALUES ('delete', ?, ?)", gone)
        for key, text in changed.items():
            row = self._store.execute("INSERT INTO list_text (list, key, text) VALUES (?, ?, ?)", (number, key, text))
            self._store.execute("INSERT INTO gram (rowid, text) VALUES (?, ?)", (row.lastrowid, text))

    def delete(self, number: int) -> None:
        """Delete the texts of the list *number*."""
        if self._store.execute("SELECT 1 FROM list_text WHERE list <> ? LIMIT 1", (number,)).fetchone():
            rows = "SELECT 'delete', number, text FROM list_text WHERE list = ?"
            self._store.execute(f"INSERT INTO gram (gram, rowid, text) {rows}", (number,))
        else:  # at once, where row by row takes a minute for a million
            self._store.execute("INSERT INTO gram (gram) VALUES ('delete-all')")
        self._store.execute("DELETE FROM list_text WHERE list = ?", (number,))

    def keys(self, number: int, text: str) -> list[str]:
        """Return the keys of the rows of the list *number* that contain *text*, or have that topic."""
        text, topic = fold_separators(text), _topic(text)
        values = {"list": number, "text": text, "topic": topic}
        table = "list_text s"
        if len(text) >= 3:
            table = "(SELECT rowid AS number FROM gram WHERE gram MATCH :grams) CROSS JOIN list_text s USING (number)"
            values["grams"] = _grams(text, topic)
        return [
            key for (key,) in self._store.execute(f"SELECT key FROM {table} WHERE list = :list AND {_CONTAINS}", values)
        ]

    def page(self, number: int, text: str, start: str, moment: int, inactive: bool, count: int) -> list[str]:
        """Return up to *count* keys of those rows, as `Projection.page` does."""
        text, topic = fold_separators(text), _topic(text)
        values: dict[str, Any] = {"list": number, "text": text, "topic": topic, "start": start, "moment": moment,
                                  "inactive": inactive, "count": count}  # fmt: skip
        few = self._few(text, topic)
        if few is not None:
            values["numbers"] = json.dumps(few)
        rows = self._store.execute(_PAGE % (_ALL if few is None else _SOME), values)
        return [key for (key,) in rows]

    def _few(self, text: str, topic: str) -> list[int] | None:
        """Return the numbers of rows that may contain *text* or *topic*; None if these are many."""
        if len(text) < 3:
            return None
        found = self._store.execute("SELECT rowid FROM gram WHERE gram MATCH ? LIMIT ?", (_grams(text, topic), FEW + 1))
        numbers = [number for (number,) in found]
        return None if len(numbers) > FEW else numbers


def content(statements: Statements) -> str:
    """Return each summary with each explanation of a memory, in the form in which a text is looked for, and topics."""
    summaries, explanations, topics = (
        [*map(plain_value, statements.get(jido(name), ()))] for name in ("summary", "detailedExplanation", "topic")
    )
    texts = [f"{one}\n{other}" for one in summaries for other in explanations or [""]]
    return "".join([fold_separators("\n".join(texts)), *map(_topic, topics)])


def _topic(text: str) -> str:
    """Return what the text of each memory has whose topic is *text*, or differs in marks only."""
    return f"\x1f\x1f{fold_separators(text).replace(' ', '').replace('.', '')}\x1f"


def _grams(*texts: str) -> str:
    """Return the FTS5 expression that matches the trigrams of one of *texts*, each of at least three characters.

    >>> _grams("a bc", "xyz")
    '("a b" AND " bc") OR ("xyz")'
    """
    alternatives = []
    for text in texts:
        grams = [*dict.fromkeys(text[at : at + 3] for at in range(len(text) - 2))]
        quoted = ['"' + gram.replace('"', '""') + '"' for gram in grams[:: len(grams) // _MOST_GRAMS + 1]]
        alternatives.append(f"({' AND '.join(quoted)})")
    return " OR ".join(alternatives)
