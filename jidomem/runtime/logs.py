"""The logs in the working state of a root: the read log, the guard log and the counts of its servers.

The read log records which memories were shown to which agent, without their texts. The server log counts refusals and
clients; its size is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.errors import JidomemError

if TYPE_CHECKING:
    from jidomem.records.interfaces import StateStore, StateTables

#: The most rows: refusals of the latest days, clients with the latest requests, and tokens used last.
REFUSALS, CLIENTS, TOKENS = 10_000, 1_000, 1_000
SERVER_LOG_TABLES = """
CREATE TABLE IF NOT EXISTS refused (day TEXT NOT NULL, project TEXT NOT NULL, agent TEXT NOT NULL, code TEXT NOT NULL,
  door TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (day, project, agent, code, door));
CREATE TABLE IF NOT EXISTS clients (project TEXT NOT NULL, agent TEXT NOT NULL, user_agent TEXT NOT NULL,
  address TEXT NOT NULL, door TEXT NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL, requests INTEGER NOT NULL,
  PRIMARY KEY (project, agent, user_agent, address, door));
CREATE INDEX IF NOT EXISTS clients_last ON clients (last);
CREATE TABLE IF NOT EXISTS used (token TEXT PRIMARY KEY, last TEXT NOT NULL);
"""
_REFUSED = (
    "INSERT INTO refused VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (day, project, agent, code, door)"
    " DO UPDATE SET count = refused.count + excluded.count"
)
_COUNT_CLIENT = (
    "INSERT INTO clients VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, agent, user_agent, address, door)"
    " DO UPDATE SET last = excluded.last, requests = clients.requests + excluded.requests"
)
_USE = "INSERT INTO used VALUES (?, ?) ON CONFLICT (token) DO UPDATE SET last = max(last, excluded.last)"
_TRIM = (
    "DELETE FROM refused WHERE rowid IN (SELECT rowid FROM refused ORDER BY day DESC, rowid DESC LIMIT -1 OFFSET ?)",
    "DELETE FROM clients WHERE rowid IN (SELECT rowid FROM clients ORDER BY last DESC LIMIT -1 OFFSET ?)",
    "DELETE FROM used WHERE rowid IN (SELECT rowid FROM used ORDER BY last DESC LIMIT -1 OFFSET ?)",
)


class RefusedAt(NamedTuple):
    """The count of refusals of an agent of a project by code, day and interface; an unknown field is empty."""

    day: str
    project: str
    agent: str
    code: str
    interface: str
    times: int


class ClientActivity(NamedTuple):
    """The activity of a client of a project at an interface: its first and last request, and their count."""

    project: str
    agent: str
    user_agent: str
    address: str
    interface: str
    first: str
    last: str
    requests: int


class InterfaceLog:
    """The counts of all servers of one root, in its working state."""

    def __init__(self, state: StateStore) -> None:
        """Use *state*, which has `SERVER_LOG_TABLES`; the file is created with the first count."""
        self.state = state

    def add(
        self, refused: Sequence[RefusedAt], clients: Sequence[ClientActivity], used: Mapping[str, str] | None = None
    ) -> None:
        """Add new counts, and the last uses of tokens by their ids; raises the errors of `changing`."""
        with self.state.changing() as store:
            store.executemany(_REFUSED, [tuple(row) for row in refused])
            store.executemany(_COUNT_CLIENT, [tuple(row) for row in clients])
            store.executemany(_USE, [*(used or {}).items()])
            for statement, most in zip(_TRIM, (REFUSALS, CLIENTS, TOKENS), strict=True):
                store.execute(statement, (most,))

    def read(self, project: str) -> tuple[list[RefusedAt], list[ClientActivity]]:
        """Return the counts of *project* and of refusals without a project; the latest client comes first."""
        with self.state.reading() as store:
            if store is None:
                return [], []
            refused = store.execute("SELECT * FROM refused WHERE project IN (?, '')", (project,)).fetchall()
            clients = store.execute("SELECT * FROM clients WHERE project = ? ORDER BY last DESC", (project,)).fetchall()
        return [RefusedAt(*row) for row in refused], [ClientActivity(*row) for row in clients]

    def last_uses(self) -> dict[str, str]:
        """Return the moment at which each token was last used, by its id; none if they cannot be read."""
        with suppress(JidomemError), self.state.reading() as store:
            return {} if store is None else dict(store.execute("SELECT token, last FROM used").fetchall())
        return {}

    def forget(self, shows: Callable[[str], bool]) -> None:
        """Delete each row with a text for which *shows* returns True, every byte of it."""
        with suppress(JidomemError):
            with self.state.reading() as store:
                if store is None:
                    return
            with self.state.changing() as store:
                deleted = [*self._delete(store, "refused", shows), *self._delete(store, "clients", shows)]
            if deleted:
                self.state.scrub()

    def matching(self, project: str, shows: Callable[[str], bool]) -> list[tuple[Any, ...]]:
        """Return the rows of `read` with a text for which *shows* returns True."""
        return [tuple(row) for rows in self.read(project) for row in rows if _has_text(row, shows)]

    def _delete(self, store: Any, table: str, shows: Callable[[str], bool]) -> Iterable[int]:
        rows = store.execute(f"SELECT rowid, * FROM {table}").fetchall()
        row_ids = [row[0] for row in rows if _has_text(row[1:], shows)]
        store.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(number,) for number in row_ids])
        return row_ids


def _has_text(row: Iterable[Any], shows: Callable[[str], bool]) -> bool:
    return any(isinstance(text, str) and text and shows(text) for text in row)


#: The most reads of one memory that are stored, the latest ones.
MAX_READS = 100
READ_LOG_TABLES = """
CREATE TABLE IF NOT EXISTS shown (project TEXT NOT NULL, item TEXT NOT NULL, at TEXT NOT NULL, "in" TEXT NOT NULL,
  agent TEXT);
CREATE INDEX IF NOT EXISTS shown_item ON shown (project, item, at);
CREATE TABLE IF NOT EXISTS guarded (number INTEGER PRIMARY KEY, project TEXT NOT NULL, session TEXT NOT NULL,
  path TEXT NOT NULL, item TEXT NOT NULL, what TEXT NOT NULL, at TEXT NOT NULL, reason TEXT);
CREATE INDEX IF NOT EXISTS guarded_session ON guarded (project, session);
CREATE INDEX IF NOT EXISTS guarded_path ON guarded (project, path);
"""
_SELECT_SHOWN = (
    'SELECT at, "in", agent FROM shown WHERE project = ? AND item = ? AND at <= ? ORDER BY at DESC, rowid DESC LIMIT ?'
)
_TRIM_SHOWN = (
    "DELETE FROM shown WHERE rowid IN (SELECT rowid FROM shown WHERE project = ? AND item = ?"
    " ORDER BY at DESC, rowid DESC LIMIT 1000000 OFFSET ?)"
)


class ReadLog:
    """The log of the memories of one root that were shown, in its working state."""

    def __init__(self, state: StateStore, now: Callable[[], datetime]) -> None:
        """Use *state*, which has `READ_LOG_TABLES`; the file is created when a memory is first shown."""
        self.state = state
        self.now = now

    def record_shown(self, project: str, items: Iterable[str], *, by: str | None, in_: str) -> None:
        """Record that *items* were shown to the agent *by* in *in_*; errors of writing are ignored."""
        at = format_timestamp(self.now())
        rows = [(project, item, at, in_, by) for item in dict.fromkeys(items)]
        if not rows:
            return
        with suppress(JidomemError), self.state.changing() as store:  # a read succeeds even if the disk is full
            store.executemany("INSERT INTO shown VALUES (?, ?, ?, ?, ?)", rows)
            store.executemany(_TRIM_SHOWN, [(project, item, MAX_READS) for _, item, *_ in rows])

    def of(self, project: str, item: str, until: str) -> list[dict[str, Any]]:
        """Return when, where and to whom a memory was shown up to the moment *until*, the latest first."""
        with suppress(JidomemError), self.state.reading() as store:
            rows = store.execute(_SELECT_SHOWN, (project, item, until, MAX_READS)) if store is not None else ()
            return [{"at": parse_moment(at), "in": where, "agent": agent} for at, where, agent in rows]
        return []

    def forget(self, project: str, shows: Callable[[str], bool]) -> None:
        """Delete the rows with a name, a path or a reason for which *shows* returns True, every byte of them.

        They stay if they cannot be deleted, for example while another process writes.
        """
        with suppress(JidomemError):
            if not self.matching(project, shows):
                return
            with self.state.changing() as store:
                for table, key, rows in _rows_with(store, project, shows):
                    store.executemany(f"DELETE FROM {table} WHERE {key} = ?", [row[:1] for row in rows])
            self.state.scrub()

    def matching(self, project: str, shows: Callable[[str], bool]) -> list[tuple[Any, ...]]:
        """Return the rows that `forget` would delete, without their keys; raises the errors of reading."""
        with self.state.reading() as store:
            found = _rows_with(store, project, shows) if store is not None else ()
            return [row[1:] for *_, rows in found for row in rows]


def _rows_with(
    store: StateTables, project: str, shows: Callable[[str], bool]
) -> list[tuple[str, str, list[tuple[Any, ...]]]]:
    """Return the rows of the read log and the guard log with a text that *shows* accepts: table, name of the key, and
    the rows, each after its key.
    """
    return [
        (table, key, [row for row in rows if _has_text(row[1:], shows)])
        for table, key, columns in (("shown", "rowid", "item, agent"),
                                    ("guarded", "number", "item, session, path, reason"))
        for rows in [store.execute(f"SELECT {key}, {columns} FROM {table} WHERE project = ?", (project,)).fetchall()]
    ]  # fmt: skip


SHOWN, STOPPED, HEEDED, OVERRIDDEN = "shown", "stopped", "heeded", "overridden"
#: The events that the next edit of a file is allowed, and that this permission was used.
_LET, _USED = "let", "used"
#: The event that a client gave its agent a briefing.
_BRIEFED = "briefed"
_LET_FOR = timedelta(hours=1)
_COUNTED = (SHOWN, STOPPED, HEEDED, OVERRIDDEN)
_INSERT_GUARDED = "INSERT INTO guarded (project, session, path, item, what, at, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"


class GuardLog:
    """The log of the guard of one project; only `allow_next_edit` raises errors of reading and writing."""

    def __init__(self, log: ReadLog, project: str) -> None:
        self._log, self._project = log, project

    def shown_memories(self, session: str) -> set[str]:
        """Return the memories that were shown in *session*."""
        rows = self._rows("SELECT item FROM guarded WHERE project = ? AND session = ? AND what = ?", session, SHOWN)
        return {row[0] for row in rows}

    def forget_shown(self, session: str) -> None:
        """Mark the memories shown in *session* as not shown: its client no longer has them in its context."""
        if self.shown_memories(session):
            sql = "UPDATE guarded SET session = session || ' before' WHERE project = ? AND session = ? AND what = ?"
            self._keep(sql, [(self._project, session, SHOWN)])

    def add_briefing(self, session: str, agent: str) -> None:
        """Record that the client of *session* gave its *agent* a briefing."""
        self._keep(_INSERT_GUARDED, [(self._project, session, f"agent:{agent}", "", _BRIEFED, self._at(), None)])

    def is_briefed(self, agent: str, since: datetime) -> bool:
        """Return whether a client gave *agent* a briefing after *since*."""
        rows = self._rows("SELECT MAX(at) FROM guarded WHERE project = ? AND path = ? AND what = ?",
                          f"agent:{agent}", _BRIEFED)  # fmt: skip
        return any(at is not None and at > format_timestamp(since) for (at,) in rows)

    def stopped(self, path: str) -> set[str]:
        """Return the memories that blocked the last edit of *path*, without an outcome yet."""
        last = dict(self._rows("SELECT item, what FROM guarded WHERE project = ? AND path = ? ORDER BY number", path))
        return {item for item, what in last.items() if what == STOPPED}

    def is_let(self, path: str) -> bool:
        """Return whether the next edit of *path* is allowed."""
        since = format_timestamp(self._log.now() - _LET_FOR)
        sql = "SELECT what, at FROM guarded WHERE project = ? AND path = ? AND item = '' ORDER BY number"
        last = self._rows(sql, path)
        return bool(last) and last[-1][0] == _LET and last[-1][1] > since

    def allow_next_edit(self, session: str, path: str, reason: str) -> None:
        """Allow the next edit of *path* unconditionally, for *reason*; raises the error of a log that is read-only."""
        with self._log.state.changing() as store:
            store.execute(_INSERT_GUARDED, (self._project, session, path, "", _LET, self._at(), reason))

    def record(self, session: str, rows: Iterable[tuple[str, str, str]], *, reason: str | None = None,
             agent: str | None = None) -> None:  # fmt: skip
        """Record the events (path, item, what) of *session*; shown memories go to the read log as well."""
        events, at = list(rows), self._at()
        if any(what == OVERRIDDEN for _, _, what in events):
            events += [
                (path, "", _USED) for path in dict.fromkeys(path for path, _, what in events if what == OVERRIDDEN)
            ]
        if events:
            self._keep(
                _INSERT_GUARDED, [(self._project, session, path, item, what, at, reason) for path, item, what in events]
            )
        if shown := [item for _, item, what in events if what == SHOWN]:
            self._log.record_shown(self._project, shown, by=agent, in_="guard")

    def counts(self) -> Mapping[str, int]:
        """Return how often the guard showed, blocked, was heeded and was overridden, in all sessions."""
        counts = dict(self._rows("SELECT what, COUNT(*) FROM guarded WHERE project = ? GROUP BY what"))
        return {what: counts.get(what, 0) for what in _COUNTED}

    def _at(self) -> str:
        return format_timestamp(self._log.now())

    def _rows(self, query: str, *parameters: str) -> list[tuple[Any, ...]]:
        with suppress(JidomemError), self._log.state.reading() as store:
            return store.execute(query, (self._project, *parameters)).fetchall() if store is not None else []
        return []

    def _keep(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        with suppress(JidomemError), self._log.state.changing() as store:  # an edit succeeds even if the disk is full
            store.executemany(sql, rows)
