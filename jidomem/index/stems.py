"""Words by their stems, as the Porter stemmer of SQLite's full text search finds them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from threading import Lock

#: A word is what stands between spaces, and nothing in it is changed: `jidomem.words` has done that.
TOKENS = "ascii tokenchars '_'"
#: So many words are kept with their stems: about 20 MB.
KEPT = 200_000


class Stemmer:
    """The stems of words, each found once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._lock = Lock()
        self._engine = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._engine.execute(f"CREATE VIRTUAL TABLE word USING fts5(text, content='', tokenize=\"porter {TOKENS}\")")
        self._engine.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(word, 'instance')")

    def stems(self, words: Iterable[str]) -> list[str]:
        """Return the stem of each of *words*, as `jidomem.words` gives them.

        >>> Stemmer().stems(["indexes", "indexed", "store_index"])
        ['index', 'index', 'store_index']
        """
        asked = list(words)
        with self._lock:
            if len(self._known) > KEPT:
                self._known.clear()
            new = [*{word for word in asked if word not in self._known}]
            if new:
                self._learn(new)
            return [self._known[word] for word in asked]

    def _learn(self, words: list[str]) -> None:
        self._engine.execute("BEGIN")
        self._engine.executemany("INSERT INTO word(rowid, text) VALUES (?, ?)", enumerate(words))
        self._known.update((words[number], stem) for stem, number in self._engine.execute("SELECT term, doc FROM stem"))
        self._engine.execute("INSERT INTO word(word) VALUES ('delete-all')")
        self._engine.execute("COMMIT")
