"""Connections to a PostgreSQL server: a few that are lent, each replaced by another where it is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore, Lock
from time import monotonic, sleep
from typing import Any, TypeVar

import psycopg
from psycopg import Error, InterfaceError, OperationalError

from jidomem.errors import Busy, Failed, JidomemError
from jidomem.shared.postgres_address import Address

T = TypeVar("T")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*|USER")

#: How many seconds one statement may take.
LONGEST = 30.0
#: How many connections a process has to one root, each for the log and for the working state.
SIZE = 6
#: Where the schema or a table of it, which were made or seen at the opening, are not there.
_GONE = ("3F000", "42P01")
#: What holds in each session; a machine that is gone without a word lets go of what it held, as it does not answer.
_SETTINGS = """
SELECT set_config('statement_timeout', %s, false), set_config('tcp_keepalives_idle', '10', false),
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)"""
#: Where the next try may do what this one could not: deadlocks, races, a server that starts, ends or is full.
_AGAIN = ("40001", "40P01", "25006", "53300", "57P01", "57P02", "57P03", "57P05")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One connection, which is lost where no statement is answered in time; `warned` is what the server warned of."""

    longest = LONGEST
    warned = ""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Do what the class above does, for as long as a statement may take."""
        return super().wait(self._bounded(gen), interval) if timeout is None else super().wait(gen, interval, timeout)

    def _bounded(self, gen: Any) -> Any:
        deadline = monotonic() + self.longest
        try:
            asked = next(gen)
            while True:
                ready = yield asked
                if not ready and monotonic() > deadline:
                    self.pgconn.finish()
                    raise OperationalError(f"no answer for {self.longest:g} s")
                asked = gen.send(ready)
        except StopIteration as end:
            return end.value


class Link:
    """The connections of one process to a root. Any thread may ask; each statement is a transaction unless it says so.

    It is asked again, for up to *wait* seconds, where a connection is lost that was there before; what is raised then
    is Failed `store_unreachable`.
    """

    def __init__(self, address: Address, wait: float, size: int = SIZE) -> None:
        self.address, self.wait = address, wait
        self._places = BoundedSemaphore(size)
        self._lock = Lock()
        self._idle: list[Connection] = []
        self._was_there = self._closed = False

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return what *work* does with a connection; it is done anew where that is lost, and may have been done."""
        deadline, pause = monotonic() + self.wait, 0.01
        while True:
            try:
                with self.lent() as connection:
                    return work(connection)
            except Error as error:
                if not (self._was_there and may_pass(error)) or monotonic() > deadline:
                    raise self.worded(error) from None
            sleep(pause)
            pause = min(2 * pause, 0.5)

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """Give a connection that nobody else has; raises psycopg's errors, and Busy where all are held for long."""
        if not self._places.acquire(timeout=self.wait):
            raise Busy(f"every connection to {self.address.name} was held for {self.wait:g} s", hint="ask again")
        try:
            connection = self._taken() or self.connected()
            try:
                yield connection
            except Error as error:
                if may_pass(error):
                    connection.close()
                    self.drop()  # the others went to the same server
                raise
            finally:
                self._put_back(connection)
        finally:
            self._places.release()

    def connected(self) -> Connection:
        """Return a new connection."""
        connection = Connection.connect(**self.address.options, autocommit=True, prepare_threshold=None)
        try:
            _look_at(connection, self.address)
            connection.execute(_SETTINGS, (f"{LONGEST * 1000:.0f}",))
        except BaseException:
            connection.close()
            raise
        connection.add_notice_handler(lambda said: _keep_warning(connection, said))
        self._was_there = True
        return connection

    def drop(self) -> None:
        """Close the connections that nobody has."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close the connections, and from now on each once it was used."""
        with self._lock:
            self._closed = True
        self.drop()

    def worded(self, error: Error) -> JidomemError:
        """Return what *error* says of the server, as an error of ours."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        said, name = self.address.clean(" ".join(line.strip() for line in lines[:6])), self.address.name
        if error.sqlstate == "42501":
            return Failed(f"{name}: {said}", hint=grants(self.address), code="invalid_config")
        if error.sqlstate in _GONE:
            hint = "restore the database from a backup; or begin anew there: jidomem init, or jidomem restore FILE"
            return Failed(f"{name} has no memory any more: {said}", hint=hint, code="store_unreachable")
        hint = f"look whether it runs, and lets this user in: psql '{name.partition('?')[0]}' -c 'SELECT 1'"
        return Failed(f"{name} did not answer: {said}", hint=hint, code="store_unreachable")

    def _taken(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _put_back(self, connection: Connection) -> None:
        with self._lock:
            kept = not self._closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            if kept:
                self._idle.append(connection)
        if not kept:
            connection.close()


def may_pass(error: Error) -> bool:
    """Return whether the same may be done by asking again, on another connection."""
    if error.sqlstate is None:
        return isinstance(error, (OperationalError, InterfaceError))
    return error.sqlstate in _AGAIN or error.sqlstate.startswith("08")


def grants(address: Address) -> str:
    """Return what an administrator has to run so that this user may open the root."""
    user = str(address.options.get("user") or "USER")
    user = user if _PLAIN.fullmatch(user) else '"{}"'.format(user.replace('"', '""'))
    return (
        f"an administrator makes its schema: CREATE SCHEMA {address.schema} AUTHORIZATION {user};"
        f" or, where the tables are there: GRANT USAGE ON SCHEMA {address.schema} TO {user};"
        f" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {address.schema} TO {user};"
    )


def _look_at(connection: Connection, address: Address) -> None:
    """Raise Failed `invalid_config` where the database cannot hold every text."""
    encoding = connection.info.parameter_status("server_encoding") or "UTF8"
    if encoding.upper() not in ("UTF8", "UTF-8", "UNICODE"):
        hint = "make one that is: CREATE DATABASE memory ENCODING 'UTF8' TEMPLATE template0;"
        raise Failed(f"{address.name}: the database is in {encoding}, not in UTF8", hint=hint, code="invalid_config")


def _keep_warning(connection: Connection, said: psycopg.errors.Diagnostic) -> None:
    with suppress(AttributeError):
        if said.severity_nonlocalized == "WARNING":
            connection.warned = said.message_primary or "a warning"
