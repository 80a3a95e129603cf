"""A SQLite file that many read while one writes."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection


def share(store: Connection, wait: float) -> None:
    """Let *store* log ahead what is written; others who open the file at once are waited for so many seconds.

    SQLite itself waits for nobody there: https://sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode.
    Raises sqlite3.OperationalError where that takes longer, or the file cannot be written.
    """
    from sqlite3 import SQLITE_BUSY, OperationalError

    until = monotonic() + wait
    while True:
        try:
            store.execute("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if error.sqlite_errorcode & 0xFF != SQLITE_BUSY or monotonic() >= until:
                raise
        sleep(0.005)
