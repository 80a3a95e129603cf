"""One SQLite file below `cache/`, which says what form it has and where it was made."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar
from weakref import finalize

from jidomem.wal import share

T = TypeVar("T")


#: So many values are given to one statement.
AT_ONCE = 500


def several(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield *values* as many at a time as one statement may be given.

    >>> [len(step) for step in several(range(501))]
    [500, 1]
    """
    return (values[at : at + AT_ONCE] for at in range(0, len(values), AT_ONCE))


class KeptFile:
    """The file at *path*, which is made when it is not there; nothing in it is read before it `fits`.

    It bears the number *here*, as one does that was made in this place.
    """

    #: How a file is written: one of another form is not read.
    FORM: ClassVar[int]
    TABLES: ClassVar[str]

    def __init__(self, path: str, wait: float, here: int = 0) -> None:
        """Open the file; another process is waited for so many seconds."""
        self.path = path
        self._here = here
        self._store = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
        finalize(self, self._store.close)  # also where what follows fails
        share(self._store, wait)
        self._store.execute("PRAGMA synchronous=NORMAL")
        self._store.execute("PRAGMA cache_size=-16000")

    def fits(self) -> bool:
        """Return whether the file is of this form, and made here; an empty one is given both."""
        if self._is_of_form():
            return True
        with self.writing():
            if self._store.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
                return self._is_of_form()
            for statement in filter(str.strip, self.TABLES.split(";\n")):
                self._store.execute(statement)
            self.begun()
            self._store.execute(f"PRAGMA application_id = {self._here}")
            self._store.execute(f"PRAGMA user_version = {self.FORM}")
        return True

    def begun(self) -> None:
        """Note what is to be noted in a file that was just made."""

    def _is_of_form(self) -> bool:
        said = [self._store.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")]
        return said == [self.FORM, self._here]

    def close(self) -> None:
        """Let go of the file."""
        self._store.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the turn to write; what is written is kept at the end, whole, or not at all."""
        self._store.execute("BEGIN IMMEDIATE")
        yield from self._ended()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state, whatever others write meanwhile."""
        self._store.execute("BEGIN")
        yield from self._ended()

    def _ended(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self._store.in_transaction:
                self._store.execute("ROLLBACK")
            raise
        self._store.execute("COMMIT")

    def ask(self, question: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows that answer a question in SQL."""
        return iter(self._store.execute(question, values))

    def said(self, name: str) -> Any:
        """Return what was noted by that name, None where nothing was."""
        row = self._store.execute("SELECT value FROM said WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def note(self, **values: Any) -> None:
        """Note each of *values* by its name."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._store.executemany("INSERT OR REPLACE INTO said VALUES (?, ?)", rows)
