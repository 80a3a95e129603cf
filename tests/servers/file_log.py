"""A shared log in one SQLite file, which replaces a real store in tests of the layers above."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import RLock
from time import monotonic, sleep

from jidomem.base.files import enable_wal
from jidomem.errors import Failed, NotFound
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.extras.servers.log import File, LogEntry, LogState, StreamPosition, check_file
from jidomem.journal.journal import Stream

TABLES = """
CREATE TABLE IF NOT EXISTS entries (project, stream, number, id, document, PRIMARY KEY (project, stream, number));
CREATE TABLE IF NOT EXISTS rewrites (project, stream, count, PRIMARY KEY (project, stream));
CREATE TABLE IF NOT EXISTS damage (project, stream, damage, PRIMARY KEY (project, stream));
CREATE TABLE IF NOT EXISTS files (name PRIMARY KEY, data, tag);
CREATE TABLE IF NOT EXISTS tags (last);
CREATE TABLE IF NOT EXISTS life (one PRIMARY KEY, life);
INSERT OR IGNORE INTO life VALUES (1, hex(randomblob(8)));
"""


WRITES = ("append", "rewrite", "put", "remove", "mark", "restore")


class FileLog:
    """The log in the file *address*; `requests` counts its requests, and `is_unreachable` makes it fail."""

    def __init__(self, address: str, *, wait: float = 10.0) -> None:
        self.name = f"sqlite:{address}"
        self.requests: Counter[str] = Counter()
        self.is_unreachable = False
        self._lock = RLock()
        self._store = sqlite3.connect(address, timeout=60, isolation_level=None, check_same_thread=False)
        enable_wal(self._store, 60)
        self._store.execute("PRAGMA synchronous=OFF")
        self._store.executescript(TABLES)

    @contextmanager
    def _transaction(self, operation: str) -> Iterator[sqlite3.Connection]:
        """Yield the store in a transaction of its own."""
        self.requests[operation] += 1
        if self.is_unreachable:
            raise Failed(f"{self.name} does not answer", hint="look after it", code="store_unreachable")
        with self._lock:
            self._store.execute("BEGIN IMMEDIATE" if operation in WRITES else "BEGIN")
            try:
                yield self._store
            except BaseException:
                self._store.execute("ROLLBACK")
                raise
            self._store.execute("COMMIT")

    def streams(self) -> list[Stream]:
        with self._transaction("streams") as store:
            return sorted(Stream(*row) for row in store.execute("SELECT DISTINCT project, stream FROM entries"))

    def positions(self, streams: list[Stream]) -> Mapping[Stream, StreamPosition]:
        with self._transaction("reach") as store:
            return {stream: _reach(store, stream) for stream in streams}

    def read_state(self, streams: list[Stream], name: str) -> LogState:
        with self._transaction("reach") as store:
            row = store.execute("SELECT tag FROM files WHERE name = ?", (name,)).fetchone()
            life = store.execute("SELECT life FROM life").fetchone()[0]
            return LogState({stream: _reach(store, stream) for stream in streams}, row[0] if row else None, life)

    def gaps(self) -> Mapping[Stream, int]:
        with self._transaction("gaps") as store:
            rows = store.execute(
                "SELECT project, stream, MIN(place) FROM (SELECT project, stream, number, ROW_NUMBER() OVER"
                " (PARTITION BY project, stream ORDER BY number) AS place FROM entries)"
                " WHERE number <> place GROUP BY 1, 2"
            )
            return {Stream(project, name): number for project, name, number in rows}

    def mark(self, stream: Stream, damage: str) -> None:
        with self._transaction("mark") as store:
            store.execute("REPLACE INTO damage VALUES (?, ?, ?)", (stream.project, stream.name, damage))

    def restore(self, stream: Stream, entries: Sequence[tuple[LogEntry, bytes | None]]) -> bool:
        with self._transaction("restore") as store:
            query = "SELECT document FROM entries WHERE (project, stream, number) = (?, ?, ?)"
            for entry, found in entries:
                key = (stream.project, stream.name, entry.number)
                row = store.execute(query, key).fetchone()
                if row not in ((entry.document,), None if found is None else (found,)):
                    return False
            for entry, _ in entries:
                row = (stream.project, stream.name, entry.number, entry.commit, entry.document)
                store.execute("REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", row)
            return True

    def read(self, stream: Stream, after: int = 0, *, with_gaps: bool = False) -> Iterator[LogEntry]:
        with self._transaction("read") as store:
            query = (
                "SELECT number, id, document FROM entries WHERE (project, stream) = (?, ?) AND number > ? ORDER BY 1"
            )
            rows = store.execute(query, (stream.project, stream.name, after)).fetchall()
        return (LogEntry(*row) for row in rows)

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        with self._transaction("append") as store:
            if not 0 < number <= _reach(store, stream).length + 1:
                raise ValueError(f"{number} is not the next number of {stream}, nor one before")
            row = (stream.project, stream.name, number, commit, document)
            store.execute("INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?)", row)
            query = "SELECT id FROM entries WHERE (project, stream, number) = (?, ?, ?)"
            return store.execute(query, row[:3]).fetchone() == (commit,)

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        with self._transaction("rewrite") as store:
            for commit, document in documents.items():
                statement = "UPDATE entries SET document = ? WHERE (project, stream, id) = (?, ?, ?)"
                if not store.execute(statement, (document, stream.project, stream.name, commit)).rowcount:
                    raise NotFound(f"{stream} has no commit {commit}")
            count = _reach(store, stream).rewrites + 1
            store.execute("REPLACE INTO rewrites VALUES (?, ?, ?)", (stream.project, stream.name, count))

    def wait(self, stream: Stream, known: StreamPosition, seconds: float) -> StreamPosition:
        until = monotonic() + seconds
        while (reached := self.positions([stream])[stream]) == known and monotonic() < until:
            sleep(0.005)
        return reached

    def get(self, name: str) -> File | None:
        check_file(name)
        with self._transaction("get") as store:
            row = store.execute("SELECT data, tag FROM files WHERE name = ?", (name,)).fetchone()
            return File(*row) if row else None

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        check_file(name, data)
        with self._transaction("put") as store:
            row = store.execute("SELECT tag FROM files WHERE name = ?", (name,)).fetchone()
            if not force and (row[0] if row else None) != expected:
                return None
            tag = str(store.execute("INSERT INTO tags VALUES (1)").lastrowid)
            store.execute("REPLACE INTO files VALUES (?, ?, ?)", (name, data, tag))
            return tag

    def check_writable(self, size: int = 0) -> None:
        pass

    def names(self, prefix: str = "") -> list[str]:
        with self._transaction("names") as store:
            stored_names = [name for (name,) in store.execute("SELECT name FROM files ORDER BY name")]
        return [name for name in stored_names if name.startswith(prefix)]

    def remove(self, names: list[str]) -> None:
        with self._transaction("remove") as store:
            store.executemany("DELETE FROM files WHERE name = ?", [(name,) for name in names])

    def close(self) -> None:
        self._store.close()


class BlindLog(FileLog):
    """A log that accepts every append, whatever it follows: a violation of the contract."""

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        with self._transaction("append") as store:
            row = (stream.project, stream.name, _reach(store, stream).length + 1, commit, document)
            store.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
            return True


def _reach(store: sqlite3.Connection, stream: Stream) -> StreamPosition:
    key = (stream.project, stream.name)
    query = "SELECT COALESCE(MAX(number), 0) FROM entries WHERE (project, stream) = (?, ?)"
    rewrites = store.execute("SELECT count FROM rewrites WHERE (project, stream) = (?, ?)", key).fetchone()
    damage = store.execute("SELECT damage FROM damage WHERE (project, stream) = (?, ?)", key).fetchone()
    length = store.execute(query, key).fetchone()[0]
    return StreamPosition(length, rewrites[0] if rewrites else 0, damage=damage[0] if damage else "")


@contextmanager
def mirrored_journals(address: str, folder: Path) -> Iterator[Callable[..., MirroredJournal]]:
    """Yield a function that opens the journal of the log at *address* as a process of a machine does, in *folder*."""
    with ExitStack() as logs:

        def open_journal(machine: str = "here") -> MirroredJournal:
            return MirroredJournal(logs.enter_context(closing(FileLog(address))), folder / machine)

        yield open_journal
