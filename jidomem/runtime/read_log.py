"""The read log: which memories were shown to whom, in which briefing; no text of theirs is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

from jidomem.errors import JidomemError
from jidomem.keeping import Keeping
from jidomem.moments import parse_moment, stamp

#: How many times, the last ones, are kept and told of one memory.
TOLD = 100
#: What the state of a `ReadLog` must have.
TABLES = """
CREATE TABLE IF NOT EXISTS shown (project TEXT NOT NULL, item TEXT NOT NULL, at TEXT NOT NULL, "in" TEXT NOT NULL,
  agent TEXT);
CREATE INDEX IF NOT EXISTS shown_item ON shown (project, item, at);
CREATE TABLE IF NOT EXISTS guarded (number INTEGER PRIMARY KEY, project TEXT NOT NULL, session TEXT NOT NULL,
  path TEXT NOT NULL, item TEXT NOT NULL, what TEXT NOT NULL, at TEXT NOT NULL, reason TEXT);
CREATE INDEX IF NOT EXISTS guarded_session ON guarded (project, session);
CREATE INDEX IF NOT EXISTS guarded_path ON guarded (project, path);
"""
_OF = (
    'SELECT at, "in", agent FROM shown WHERE project = ? AND item = ? AND at <= ? ORDER BY at DESC, rowid DESC LIMIT ?'
)
_OLDER = (
    "DELETE FROM shown WHERE rowid IN (SELECT rowid FROM shown WHERE project = ? AND item = ?"
    " ORDER BY at DESC, rowid DESC LIMIT 1000000 OFFSET ?)"
)


class ReadLog:
    """What was shown of one root's memories, in its working state."""

    def __init__(self, state: Keeping, now: Callable[[], datetime]) -> None:
        """Keep it in *state*, which has `TABLES`; it is made when something is first shown."""
        self.state = state
        self.now = now

    def shown(self, project: str, items: Iterable[str], *, by: str | None, in_: str) -> None:
        """Remember that *items* were shown to the agent *by* in *in_*; where nothing can be written, nothing is."""
        at = stamp(self.now())
        rows = [(project, item, at, in_, by) for item in dict.fromkeys(items)]
        with suppress(JidomemError), self.state.changing() as store:  # who reads gets an answer also from a full disk
            store.executemany("INSERT INTO shown VALUES (?, ?, ?, ?, ?)", rows)
            store.executemany(_OLDER, [(project, item, TOLD) for _, item, *_ in rows])

    def of(self, project: str, item: str, until: str) -> list[dict[str, Any]]:
        """Return when, in what and to whom one memory was shown by the moment *until*, the last first."""
        with suppress(JidomemError), self.state.reading() as store:
            found = store.execute(_OF, (project, item, until, TOLD)) if store is not None else ()
            return [{"at": parse_moment(at), "in": where, "agent": agent} for at, where, agent in found]
        return []

    def forget(self, project: str, shows: Callable[[str], bool]) -> None:
        """Take out of the file what was kept of memories and agents whose names *shows* says yes to, to the last byte.

        What cannot be taken out, as another process writes to it, is still there.
        """
        with suppress(JidomemError):
            with self.state.reading() as store:
                if store is None:
                    return
            with self.state.changing() as store:
                shown = store.execute("SELECT rowid, item, agent FROM shown WHERE project = ?", (project,))
                gone = [(row,) for row, *texts in shown if any(text and shows(text) for text in texts)]
                held = store.execute("SELECT number, item, session, reason FROM guarded WHERE project = ?", (project,))
                also = [(number,) for number, *texts in held if any(text and shows(text) for text in texts)]
                store.executemany("DELETE FROM shown WHERE rowid = ?", gone)
                store.executemany("DELETE FROM guarded WHERE number = ?", also)
            if gone or also:
                self.state.scrub()
