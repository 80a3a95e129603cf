"""The working state of a root in PostgreSQL as the file that it is elsewhere: out of the tables, and into them."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import connect

from jidomem.errors import InvalidRequest
from jidomem.shared.postgres_state import PostgresState, Tables
from jidomem.shared.postgres_tables import STATE

#: Among those who write, and count it: how often all of them had when a state was put there as a whole.
_CAME = "came"
#: How many rows are carried at a time.
_ROWS = 500


def export_state(state: PostgresState, path: Path, tables: str) -> bool:
    """Return whether anything is kept; it lies in a new file then, all of one moment, with the *tables* of that."""
    with state.reading() as held:
        if not any(held.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in STATE):
            return False
        store = connect(path)
        try:
            store.executescript(tables)
            for table, number in STATE.items():
                names = _columns(held, table, number)
                rows = held.execute(f"SELECT {names} FROM {table}{f' ORDER BY {number}' if number else ''}")
                marks = ", ".join("?" * len(names.split(", ")))
                while some := rows.fetchmany(_ROWS):
                    store.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", some)
            store.commit()
        finally:
            store.close()
    return True


def import_state(state: PostgresState, path: Path) -> None:
    """Put what the file at *path* holds into the tables, all of it or nothing, in the place of what came so before.

    Raises InvalidRequest where something is kept there that did not come so, or anybody wrote there since.
    """
    store = connect(f"file:{path}?mode=ro", uri=True)
    try:
        there = {name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        with state.changing() as held:
            if not _is_as_it_came(held):
                hint = "restore into a root in which nothing was kept: another ?schema="
                raise InvalidRequest(f"{state.address.name} has a working state that was used", hint=hint)
            for table in STATE:
                held.execute(f"DELETE FROM {table}")
            held.execute("DELETE FROM writers WHERE name = ?", (_CAME,))
            held.execute("INSERT INTO writers SELECT ?, sum(number), '' FROM writers", (_CAME,))
            for table, number in STATE.items():
                if table in there:
                    names = _columns(held, table, number)
                    rows = store.execute(f"SELECT {names} FROM {table}{f' ORDER BY {number}' if number else ''}")
                    marks = ", ".join("?" * len(names.split(", ")))
                    while some := rows.fetchmany(_ROWS):
                        held.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", some)
    finally:
        store.close()


def _is_as_it_came(held: Tables) -> bool:
    """Return whether nothing is kept, or what was put there as a whole, and nobody wrote since but who asks."""
    if not any(held.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in STATE):
        return True
    rows = dict(held.execute("SELECT name, number FROM writers").fetchall())
    came = rows.pop(_CAME, None)
    return came is not None and sum(rows.values()) == came + 1


def _columns(held: Tables, table: str, number: str | None) -> str:
    """Return the columns that both have, but what numbers the rows: that is given anew, in the same order."""
    names = [column.name for column in held.execute(f"SELECT * FROM {table} LIMIT 0").description or ()]
    return ", ".join(f'"{name}"' for name in names if name != number)
