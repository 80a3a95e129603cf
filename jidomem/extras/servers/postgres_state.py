"""The working state of a root in PostgreSQL: the tables, the locks, and the export to and import from a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from hashlib import blake2b
from math import inf
from pathlib import Path
from secrets import token_hex
from sqlite3 import connect
from threading import local
from time import monotonic, sleep
from typing import Any, LiteralString

from psycopg import Cursor, DataError, Error
from psycopg.errors import LockNotAvailable, ProgramLimitExceeded, ProgrammingError
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Identifier

from jidomem.errors import Busy, Failed, InvalidRequest, JidomemError, MemoryClosed
from jidomem.extras.servers import postgres_connection
from jidomem.extras.servers.postgres_connection import STATE, PostgresConnection, PostgresPool, may_pass, prepare

#: Seconds that a transaction waits for one of another process.
WAIT = 5.0
#: Milliseconds after which a silent writer is disconnected, as all other writers wait for it.
_IDLE = 60_000
#: The most named locks of a process, each with its own connection.
_MAX_LOCKS = 32
_CHANGING = f"""
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path TO {{s}}; SET LOCAL lock_timeout TO {WAIT * 1000:.0f};
SET LOCAL idle_in_transaction_session_timeout TO {_IDLE};
SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'remote_apply'
  THEN 'remote_apply' ELSE 'on' END, true)"""
_BEGIN_LOCK = "BEGIN; SET LOCAL idle_in_transaction_session_timeout TO 0"
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO {s}"
#: Excludes all other writers until the transaction ends, and shows afterwards whether it was committed.
_LOCK_WRITERS = "UPDATE {s}.writers SET number = number + 1, token = %s WHERE name = %s RETURNING number"
_LAST_WRITER = "SELECT number, token FROM {s}.writers WHERE name = %s FOR UPDATE"
_INDEXED = re.compile(r"\sINDEXED BY \w+")


class PostgresState:
    """The working state of a root for all its servers, as `jidomem.records.interfaces.StateStore` defines it.

    Each writer first locks one row, so writers run one after the other, as with BEGIN IMMEDIATE. A reader sees the
    state of one moment and does not wait. If the connection is lost during a COMMIT, that row shows the outcome.
    """

    def __init__(self, address: str, name: str = "working", *, wait: float = 10.0) -> None:
        """Use the tables at *address*, the address of a `PostgresLog`; *name* is `working`, or `read` for the read log.

        No request is sent before the first transaction, which raises the errors of `PostgresLog`.
        """
        self.address, self._name = postgres_connection.read(address), name
        self._link, self._locks = PostgresPool(self.address, wait), PostgresPool(self.address, wait, _MAX_LOCKS)
        self._inside, self._ready, self._is_closed = local(), False, False

    @contextmanager
    def changing(self) -> Iterator[Tables]:
        """Yield the tables in a write transaction, durable once the block ends; no other process writes meanwhile.

        Raises Busy if others write for `WAIT` seconds, and Failed `store_unreachable` if nothing was changed.
        """
        token = token_hex(12)
        with self._not_nested(), ExitStack() as stack:
            connection, row = self._open_transaction(stack, _CHANGING, _LOCK_WRITERS, (token, self._name))
            with self._converting_errors():
                with _rollback_on_error(connection):
                    yield Tables(connection)
                try:
                    ended = connection.execute("COMMIT").statusmessage
                except Error as error:
                    if not may_pass(error) or not self._was_committed(row[0], token, error):
                        raise
                    return
            if ended != "COMMIT":
                raise Failed(f"{self.address.name}: a statement failed, and nothing was changed", hint="try it again")

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """Yield the tables in a transaction that sees them as they are now."""
        with self._not_nested(), ExitStack() as stack:
            connection, _ = self._open_transaction(stack, _READING)
            with self._converting_errors():
                with _rollback_on_error(connection):
                    yield Tables(connection)
                connection.execute("COMMIT")

    @contextmanager
    def lock(self, *name: str, wait: bool = False) -> Iterator[bool]:
        """Acquire the lock *name*, across all processes, and yield whether it was acquired; with *wait*, wait for it.

        The server releases the lock when its owner is gone or the connection is lost. Two owners may then do the same
        work; the second one gets an error when it changes what the first one has changed.
        """
        text = "\0".join((self.address.schema, *name)).encode("utf-8", "surrogateescape")
        key, pause = int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True), 0.02
        with ExitStack() as stack, self._converting_errors():
            connection, _ = self._open_transaction(stack, _BEGIN_LOCK, on=self._locks)
            while not (is_acquired := _try_lock(connection, key)) and wait:
                sleep(pause)
                pause = min(2 * pause, 0.5)
            with _rollback_on_error(connection):
                yield is_acquired
            with suppress(Error):  # the lock is released even if the connection is lost
                connection.execute("COMMIT")

    def scrub(self) -> None:
        """Rewrite the tables so that no byte of removed content remains in them; logs and backups still have it.

        Only the owner of the tables may do this; for other users an administrator does it.
        """
        self._prepare()

        def work(connection: PostgresConnection) -> None:
            connection.longest = inf
            connection.execute(f"SET lock_timeout TO {WAIT * 1000:.0f}; SET statement_timeout TO 0")
            for table in STATE:
                connection.execute(SQL("VACUUM FULL {}").format(Identifier(self.address.schema, table)))
            connection.close()  # with its settings

        self._link.run(work)

    def damaged(self, what: str) -> Failed:
        """Return the error for stored data that cannot be read: *what* is wrong with it."""
        return Failed(f"{self.address.name}: {what}", hint="restore its tables from a backup: jidomem root restore")

    def close(self) -> None:
        """Close the connections; later transactions raise MemoryClosed."""
        self._is_closed = True
        self._link.close()
        self._locks.close()

    def _prepare(self) -> None:
        if self._is_closed:
            raise MemoryClosed(self.address.name)
        if not self._ready:
            prepare(self._link)
            self._ready = True

    def _open_transaction(
        self,
        stack: ExitStack,
        begin: LiteralString,
        statement: LiteralString | None = None,
        values: Sequence[Any] = (),
        *,
        on: PostgresPool | None = None,
    ) -> tuple[PostgresConnection, Any]:
        """Return a connection in a transaction, which lasts until *stack* ends, and the row returned by *statement*."""
        self._prepare()
        link = on or self._link
        deadline, pause = monotonic() + link.wait, 0.01
        while True:
            tried = ExitStack()
            try:
                with tried:
                    connection = tried.enter_context(link.borrow())
                    connection.execute(self._link.sql(begin))
                    row = (
                        connection.execute(self._link.sql(statement), values).fetchone()
                        if statement is not None
                        else None
                    )
                    stack.push(tried.pop_all())
                    return connection, row
            except Error as error:
                if not may_pass(error) or monotonic() > deadline:
                    raise self._error_of(error) from None
            sleep(pause)
            pause = min(2 * pause, 0.5)

    def _was_committed(self, number: int, token: str, error: Error) -> bool:
        """Return whether a COMMIT without an answer succeeded; raises Failed `outcome_unknown`."""
        try:
            now, last = self._link.run(lambda connection: self._last(connection))
        except JidomemError as failure:
            raise _unknown_outcome(self.address.name, failure.detail) from None
        if now > number:
            raise _unknown_outcome(
                self.address.name, f"the connection was lost, and others have written since: {error}"
            )
        return bool(now == number and last == token)

    def _last(self, connection: PostgresConnection) -> tuple[int, str]:
        row = connection.execute(self._link.sql(_LAST_WRITER), (self._name,)).fetchone()
        return (int(row[0]), str(row[1])) if row is not None else (0, "")

    @contextmanager
    def _not_nested(self) -> Iterator[None]:
        if getattr(self._inside, "now", False):
            raise RuntimeError(f"this thread is in a transaction on {self.address.name} already")
        self._inside.now = True
        try:
            yield
        finally:
            self._inside.now = False

    @contextmanager
    def _converting_errors(self) -> Iterator[None]:
        try:
            yield
        except Error as error:
            if isinstance(error, ProgrammingError) and error.sqlstate != "42501":
                raise  # a faulty statement is not a fault of the server
            raise self._error_of(error) from error

    def _error_of(self, error: Error) -> JidomemError:
        if isinstance(error, LockNotAvailable):
            return Busy(f"another process has written to {self.address.name} for {WAIT:g} s", hint="try again")
        if isinstance(error, (DataError, ProgramLimitExceeded)):
            hint = "leave out zero characters, and keep names short"
            return InvalidRequest(f"PostgreSQL cannot store this: {self.address.clean(str(error))}", hint=hint)
        return self._link.error_of(error)


class Tables:
    """The tables in a transaction, with the interface of an SQLite connection."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor[tuple[Any, ...]]:
        """Return the result of a statement."""
        return self._connection.cursor(binary=True).execute(_psycopg_statement(sql), parameters)

    def executemany(self, sql: str, parameters: list[tuple[Any, ...]], /) -> None:
        """Execute a statement once for each row of values."""
        if parameters:
            self._connection.cursor().executemany(_psycopg_statement(sql), parameters)


@lru_cache(maxsize=256)
def _psycopg_statement(sql: str) -> bytes:
    """Return a statement in SQLite's form in psycopg's form.

    >>> _psycopg_statement("SELECT x FROM t INDEXED BY i WHERE a = ? AND b LIKE '50%'")
    b"SELECT x FROM t WHERE a = %s AND b LIKE '50%%'"
    """
    return _INDEXED.sub("", sql).replace("%", "%%").replace("?", "%s").encode()


@contextmanager
def _rollback_on_error(connection: PostgresConnection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()
        raise


def _try_lock(connection: PostgresConnection, key: int) -> bool:
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (key,)).fetchone()
    return row is not None and bool(row[0])


def _unknown_outcome(name: str, why: str) -> Failed:
    hint = "check the stored state before you try again"
    return Failed(f"{why}; whether the change was stored in {name} is not known", hint=hint, code="outcome_unknown")


#: The row of `writers` with the sum of their counts at the last import.
_IMPORTED = "came"
#: Rows that are copied at a time.
_ROWS = 500


def export_state(state: PostgresState, path: Path, tables: str) -> bool:
    """Write the state of one moment to a new SQLite file with the schema *tables*; return False if there is none."""
    with state.reading() as source:
        if not any(source.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in STATE):
            return False
        store = connect(path)
        try:
            store.executescript(tables)
            for table, number in STATE.items():
                _copy(source, store, table, _columns(source, table, number), number)
            store.commit()
        finally:
            store.close()
    return True


def import_state(state: PostgresState, path: Path) -> None:
    """Replace the tables by the content of the file at *path*, all of it or nothing.

    Raises InvalidRequest if the tables have content that was not imported, or were written to after an import.
    """
    store = connect(f"file:{path}?mode=ro", uri=True)
    try:
        names = {name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        with state.changing() as tables:
            if not _is_unused(tables):
                hint = "restore into an empty root: another ?schema="
                raise InvalidRequest(f"{state.address.name} has a working state of its own", hint=hint)
            for table in STATE:
                tables.execute(f"DELETE FROM {table}")
            tables.execute("DELETE FROM writers WHERE name = ?", (_IMPORTED,))
            tables.execute("INSERT INTO writers SELECT ?, sum(number), '' FROM writers", (_IMPORTED,))
            for table, number in STATE.items():
                if table in names:
                    _copy(store, tables, table, _columns(tables, table, number), number)
    finally:
        store.close()


def _is_unused(tables: Tables) -> bool:
    """Return whether the tables are empty, or unchanged since an import except by this transaction."""
    if not any(tables.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in STATE):
        return True
    rows = dict(tables.execute("SELECT name, number FROM writers").fetchall())
    import_count = rows.pop(_IMPORTED, None)
    return import_count is not None and sum(rows.values()) == import_count + 1


def _copy(source: Any, target: Any, table: str, columns: Sequence[str], number: str | None) -> None:
    """Copy the rows of a table; the database assigns its number column again, in the same order."""
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
    rows = source.execute(f"SELECT {names} FROM {table}{f' ORDER BY {number}' if number else ''}")
    while batch := rows.fetchmany(_ROWS):
        target.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", batch)


def _columns(tables: Tables, table: str, number: str | None) -> list[str]:
    described = tables.execute(f"SELECT * FROM {table} LIMIT 0").description or ()
    return [column.name for column in described if column.name != number]
