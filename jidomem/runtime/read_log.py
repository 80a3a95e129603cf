"""The read log: which memories were shown to whom, in which briefing; no text of theirs is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jidomem.moments import parse_moment, stamp

if TYPE_CHECKING:
    from sqlite3 import Connection

FILE = Path("state", "working.sqlite")
#: How many times, the last ones, are kept and told of one memory.
TOLD = 100
TABLES = """
CREATE TABLE IF NOT EXISTS shown (project TEXT NOT NULL, item TEXT NOT NULL, at TEXT NOT NULL, "in" TEXT NOT NULL,
  agent TEXT);
CREATE INDEX IF NOT EXISTS shown_item ON shown (project, item, at);
CREATE TABLE IF NOT EXISTS guarded (number INTEGER PRIMARY KEY, project TEXT NOT NULL, session TEXT NOT NULL,
  path TEXT NOT NULL, item TEXT NOT NULL, what TEXT NOT NULL, at TEXT NOT NULL, reason TEXT);
CREATE INDEX IF NOT EXISTS guarded_session ON guarded (project, session);
CREATE INDEX IF NOT EXISTS guarded_path ON guarded (project, path);
"""
#: What runs when something is read or written; a cloned repository may bring it along.
_FOREIGN = "SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')"
_OF = (
    'SELECT at, "in", agent FROM shown WHERE project = ? AND item = ? AND at <= ? ORDER BY at DESC, rowid DESC LIMIT ?'
)
_OLDER = (
    "DELETE FROM shown WHERE rowid IN (SELECT rowid FROM shown WHERE project = ? AND item = ?"
    " ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?)"
)


class ReadLog:
    """What was shown of one root's memories, kept beside its journal."""

    def __init__(self, root: Path, now: Callable[[], datetime]) -> None:
        """Keep it in the state of *root*, which is made when something is first shown."""
        self.path = root / FILE
        self.now = now

    def shown(self, project: str, items: Iterable[str], *, by: str | None, in_: str) -> None:
        """Remember that *items* were shown to the agent *by* in *in_*; where nothing can be written, nothing is."""
        from sqlite3 import Error

        at = stamp(self.now())
        rows = [(project, item, at, in_, by) for item in dict.fromkeys(items)]
        with suppress(Error, OSError):  # who reads gets an answer also from a disk that is full, or not to be written
            self.path.parent.mkdir(exist_ok=True)
            with self.opened() as store, store:
                store.executescript(TABLES)
                store.executemany("INSERT INTO shown VALUES (?, ?, ?, ?, ?)", rows)
                store.executemany(_OLDER, [(project, item, TOLD) for _, item, *_ in rows])

    def of(self, project: str, item: str, until: str) -> list[dict[str, Any]]:
        """Return when, in what and to whom one memory was shown by the moment *until*, the last first."""
        from sqlite3 import Error

        with suppress(Error, OSError):
            if self.path.exists():
                with self.opened() as store:
                    found = store.execute(_OF, (project, item, until, TOLD)).fetchall()
                return [{"at": parse_moment(at), "in": where, "agent": agent} for at, where, agent in found]
        return []

    def forget(self, project: str, shows: Callable[[str], bool]) -> None:
        """Take out of the file what was kept of memories and agents whose names *shows* says yes to, to the last byte.

        What cannot be taken out, as another process has the file open, is still there.
        """
        from sqlite3 import Error

        if not self.path.exists():
            return
        with suppress(Error, OSError), self.opened() as store:
            store.execute("PRAGMA secure_delete=ON")
            rows = store.execute("SELECT rowid, item, agent FROM shown WHERE project = ?", (project,)).fetchall()
            gone = [(row,) for row, item, agent in rows if shows(item) or (agent and shows(agent))]
            store.executescript(TABLES)
            held = store.execute("SELECT number, item, session, reason FROM guarded WHERE project = ?", (project,))
            also = [(number,) for number, *texts in held.fetchall() if any(text and shows(text) for text in texts)]
            if gone or also:
                with store:
                    store.executemany("DELETE FROM shown WHERE rowid = ?", gone)
                    store.executemany("DELETE FROM guarded WHERE number = ?", also)
                store.execute("VACUUM")
                store.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """Give the file, as the root's own: raises DatabaseError for one that brings programs along."""
        from sqlite3 import DatabaseError, connect

        with closing(connect(self.path, timeout=5.0)) as store:
            if store.execute(_FOREIGN).fetchone() is not None:
                raise DatabaseError(f"{self.path} has what no read log has: it came with the root")
            store.execute("PRAGMA journal_mode=WAL")
            store.execute("PRAGMA synchronous=FULL")
            yield store
