"""What the servers of a root on this machine counted: who was refused what, on which day, and who asked; bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from jidomem.errors import JidomemError
from jidomem.keeping import Keeping

#: So many rows are kept of each: those of the latest days, and of who asked last.
REFUSALS, CLIENTS = 10_000, 1_000
#: What the state of a `DoorLog` must have.
TABLES = """
CREATE TABLE IF NOT EXISTS refused (day TEXT NOT NULL, project TEXT NOT NULL, agent TEXT NOT NULL, code TEXT NOT NULL,
  door TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (day, project, agent, code, door));
CREATE TABLE IF NOT EXISTS clients (project TEXT NOT NULL, agent TEXT NOT NULL, user_agent TEXT NOT NULL,
  address TEXT NOT NULL, door TEXT NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL, requests INTEGER NOT NULL,
  PRIMARY KEY (project, agent, user_agent, address, door));
CREATE INDEX IF NOT EXISTS clients_last ON clients (last);
"""
_REFUSED = (
    "INSERT INTO refused VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (day, project, agent, code, door)"
    " DO UPDATE SET count = refused.count + excluded.count"
)
_ASKED = (
    "INSERT INTO clients VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, agent, user_agent, address, door)"
    " DO UPDATE SET last = excluded.last, requests = clients.requests + excluded.requests"
)
_FEWER = (
    "DELETE FROM refused WHERE rowid IN (SELECT rowid FROM refused ORDER BY day DESC, rowid DESC LIMIT -1 OFFSET ?)",
    "DELETE FROM clients WHERE rowid IN (SELECT rowid FROM clients ORDER BY last DESC LIMIT -1 OFFSET ?)",
)


class RefusedAt(NamedTuple):
    """How often an agent of a project was refused with a code, on a day, at a door; a text is empty where not known."""

    day: str
    project: str
    agent: str
    code: str
    door: str
    times: int


class AskedAt(NamedTuple):
    """Who asked a project at a door: first, last, and how often."""

    project: str
    agent: str
    user_agent: str
    address: str
    door: str
    first: str
    last: str
    requests: int


class DoorLog:
    """What all servers of one root counted, in its working state."""

    def __init__(self, state: Keeping) -> None:
        """Keep it in *state*, which has `TABLES`; it is made when something is first counted."""
        self.state = state

    def add(self, refused: Sequence[RefusedAt], asked: Sequence[AskedAt]) -> None:
        """Add what was counted since the last time; raises what `changing` raises."""
        with self.state.changing() as store:
            store.executemany(_REFUSED, [tuple(row) for row in refused])
            store.executemany(_ASKED, [tuple(row) for row in asked])
            for statement, most in zip(_FEWER, (REFUSALS, CLIENTS), strict=True):
                store.execute(statement, (most,))

    def read(self, project: str) -> tuple[list[RefusedAt], list[AskedAt]]:
        """Return what was counted of *project*, and the refusals that were of none; who asked last is the first."""
        with self.state.reading() as store:
            if store is None:
                return [], []
            refused = store.execute("SELECT * FROM refused WHERE project IN (?, '')", (project,)).fetchall()
            asked = store.execute("SELECT * FROM clients WHERE project = ? ORDER BY last DESC", (project,)).fetchall()
        return [RefusedAt(*row) for row in refused], [AskedAt(*row) for row in asked]

    def forget(self, shows: Callable[[str], bool]) -> None:
        """Take out of the file each row with a text that *shows* says yes to, to the last byte."""
        with suppress(JidomemError):
            with self.state.reading() as store:
                if store is None:
                    return
            with self.state.changing() as store:
                gone = [*self._gone(store, "refused", shows), *self._gone(store, "clients", shows)]
            if gone:
                self.state.scrub()

    def _gone(self, store: Any, table: str, shows: Callable[[str], bool]) -> Iterable[int]:
        rows = store.execute(f"SELECT rowid, * FROM {table}").fetchall()
        gone = [row[0] for row in rows if any(isinstance(text, str) and text and shows(text) for text in row[1:])]
        store.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(number,) for number in gone])
        return gone
