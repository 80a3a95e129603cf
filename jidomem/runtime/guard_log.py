"""What the guard did, in the read log: what it showed in which session, what it stopped, and what came of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from jidomem.errors import JidomemError
from jidomem.moments import stamp
from jidomem.runtime.read_log import ReadLog

SHOWN, STOPPED, HEEDED, OVERRIDDEN = "shown", "stopped", "heeded", "overridden"
#: What lets the next edit of a file go ahead, and that it did.
_LET, _USED = "let", "used"
_LET_FOR = timedelta(hours=1)
_COUNTED = (SHOWN, STOPPED, HEEDED, OVERRIDDEN)
_KEEP = "INSERT INTO guarded (project, session, path, item, what, at, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"


class GuardLog:
    """What was kept of the guard of one project; where nothing can be kept, nothing is known."""

    def __init__(self, log: ReadLog, project: str) -> None:
        self._log, self._project = log, project

    def seen(self, session: str) -> set[str]:
        """Return the memories that were shown in *session*."""
        rows = self._rows("SELECT item FROM guarded WHERE project = ? AND session = ? AND what = ?", session, SHOWN)
        return {row[0] for row in rows}

    def forget_shown(self, session: str) -> None:
        """Take what was shown in *session* for not shown: its client has lost it since."""
        if self.seen(session):
            how = "UPDATE guarded SET session = session || ' before' WHERE project = ? AND session = ? AND what = ?"
            self._keep(how, [(self._project, session, SHOWN)])

    def stopped(self, path: str) -> set[str]:
        """Return the memories by which the last edit of *path* was stopped, and nothing came of that yet."""
        last = dict(self._rows("SELECT item, what FROM guarded WHERE project = ? AND path = ? ORDER BY number", path))
        return {item for item, what in last.items() if what == STOPPED}

    def is_let(self, path: str) -> bool:
        """Return whether somebody let the next edit of *path* go ahead."""
        since = stamp(self._log.now() - _LET_FOR)
        asked = "SELECT what, at FROM guarded WHERE project = ? AND path = ? AND item = '' ORDER BY number"
        last = self._rows(asked, path)
        return bool(last) and last[-1][0] == _LET and last[-1][1] > since

    def let(self, session: str, path: str, reason: str) -> None:
        """Let the next edit of *path* go ahead, whatever stops it, for *reason*."""
        self.keep(session, [(path, "", _LET)], reason=reason)

    def keep(self, session: str, rows: Iterable[tuple[str, str, str]], *, reason: str | None = None,
             agent: str | None = None) -> None:  # fmt: skip
        """Keep (path, item, what) of each thing that happened in *session*; what was shown is told by `why`, too."""
        held, at = list(rows), stamp(self._log.now())
        if any(what == OVERRIDDEN for _, _, what in held):
            held += [(path, "", _USED) for path in dict.fromkeys(path for path, _, what in held if what == OVERRIDDEN)]
        if held:
            self._keep(_KEEP, [(self._project, session, path, item, what, at, reason) for path, item, what in held])
        if shown := [item for _, item, what in held if what == SHOWN]:
            self._log.shown(self._project, shown, by=agent, in_="guard")

    def counts(self) -> Mapping[str, int]:
        """Return how often it showed, stopped, was heeded and overridden, in all sessions."""
        found = dict(self._rows("SELECT what, COUNT(*) FROM guarded WHERE project = ? GROUP BY what"))
        return {what: found.get(what, 0) for what in _COUNTED}

    def _rows(self, asked: str, *of: str) -> list[tuple[Any, ...]]:
        with suppress(JidomemError), self._log.state.reading() as store:
            return store.execute(asked, (self._project, *of)).fetchall() if store is not None else []
        return []

    def _keep(self, how: str, rows: list[tuple[Any, ...]]) -> None:
        with suppress(JidomemError), self._log.state.changing() as store:  # an edit goes on also where the disk is full
            store.executemany(how, rows)
