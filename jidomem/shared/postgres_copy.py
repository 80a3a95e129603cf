"""The working state of a root in PostgreSQL as the file that it is elsewhere: out of the tables, and into them."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import connect

from jidomem.errors import InvalidRequest
from jidomem.shared.postgres_state import PostgresState, Tables
from jidomem.shared.postgres_tables import STATE

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
    """Put what the file at *path* holds into the tables, all of it or nothing; raises InvalidRequest unless empty."""
    store = connect(f"file:{path}?mode=ro", uri=True)
    try:
        there = {name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        with state.changing() as held:
            for table in STATE:
                if held.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
                    hint = "restore into a root in which nothing was kept: another ?schema="
                    raise InvalidRequest(f"{state.address.name}: {table} has rows already", hint=hint)
            for table, number in STATE.items():
                if table in there:
                    names = _columns(held, table, number)
                    rows = store.execute(f"SELECT {names} FROM {table}{f' ORDER BY {number}' if number else ''}")
                    marks = ", ".join("?" * len(names.split(", ")))
                    while some := rows.fetchmany(_ROWS):
                        held.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", some)
    finally:
        store.close()


def _columns(held: Tables, table: str, number: str | None) -> str:
    """Return the columns that both have, but what numbers the rows: that is given anew, in the same order."""
    names = [column.name for column in held.execute(f"SELECT * FROM {table} LIMIT 0").description or ()]
    return ", ".join(f'"{name}"' for name in names if name != number)
