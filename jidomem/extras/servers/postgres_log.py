"""The shared log in PostgreSQL: an append is one conditional insert.

The `NotificationListener` is the one connection of a process that listens for new commits.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from os import dup
from secrets import token_hex
from threading import Condition, Thread
from time import monotonic
from typing import Any, LiteralString

from psycopg import Error, OperationalError
from psycopg.errors import UndefinedFunction, UniqueViolation
from psycopg.sql import SQL, Identifier

from jidomem.errors import Failed, JidomemError, NotFound
from jidomem.extras.servers import postgres_connection
from jidomem.extras.servers.log import File, LogEntry, LogState, Reach, check_file
from jidomem.extras.servers.postgres_connection import PostgresConnection, PostgresPool, may_pass, prepare
from jidomem.journal.journal import Stream

#: How many seconds pass between two looks of who waits: while news are heard, and where they are not.
HEARD, DEAF = 1.0, 0.05
#: How many seconds pass before it is tried again to listen.
_AGAIN = 5.0


class NotificationListener:
    """The notifications of each stream. None is required: a waiting thread also polls.

    Some servers tell nobody, and some poolers pass nothing on: once a look has found what was not told, looks come
    often, until something is told.
    """

    def __init__(self, link: PostgresPool, channel: str) -> None:
        self._link, self._channel = link, channel
        self._news = Condition()
        self._counts: Counter[str] = Counter()
        self._thread: Thread | None = None
        self._connection: PostgresConnection | None = None
        self._hears, self._closed = False, False

    def listen(self) -> None:
        """Begin to listen, unless it is done."""
        with self._news:
            if self._thread is None and not self._closed:
                self._thread = Thread(target=self._work, name="jidomem-ear", daemon=True)
                self._thread.start()

    def count(self, stream: str) -> int:
        """Return how often something was told of *stream*."""
        with self._news:
            return self._counts[stream]

    def wait(self, stream: str, count: int, seconds: float) -> bool:
        """Return True as soon as more was told than *count*, False when it is time for a look, or after *seconds*."""
        with self._news:
            pause = min(seconds, HEARD if self._hears else DEAF)
            return self._news.wait_for(lambda: self._closed or self._counts[stream] != count, pause)

    @property
    def closed(self) -> bool:
        """Return whether nobody is to wait any more."""
        return self._closed

    def missed(self) -> None:
        """Take note that a look found what was not told."""
        with self._news:
            self._hears = False

    def close(self) -> None:
        """End the thread, and every wait."""
        with self._news:
            self._closed = True
            self._news.notify_all()
            connection, thread = self._connection, self._thread
        if connection is not None:
            with suppress(OSError, Error), socket.socket(fileno=dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        if thread is not None:
            thread.join(1.0)

    def _work(self) -> None:
        while not self._closed:
            with suppress(Error, OSError, JidomemError):
                self._hear()
            with self._news:
                self._hears = False
                self._counts.update(list(self._counts))  # what was told meanwhile is not known: everybody looks
                self._news.notify_all()
                self._news.wait_for(lambda: self._closed, _AGAIN if self._connection is None else DEAF)
                self._connection = None

    def _hear(self) -> None:
        with self._link.connected() as connection:
            connection.longest = inf  # there may be no news for long
            connection.execute(SQL("LISTEN {}").format(Identifier(self._channel)))
            with self._news:
                self._connection, self._hears = connection, True
                self._counts.update(list(self._counts))
                self._news.notify_all()
            while not self._closed:
                for note in connection.notifies(timeout=60.0):
                    with self._news:
                        self._hears = True
                        self._counts[note.payload] += 1
                        self._news.notify_all()


#: How many entries are read at first, how many at most, and how many bytes at a time about.
_FEW, _MANY, _BYTES = 16, 2_000, 4 << 20
#: Nothing is acknowledged before it is durable, whatever the server, the database or the role have set.
_DURABLE = (
    "FROM set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'remote_apply'"
    " THEN 'remote_apply' ELSE 'on' END, true) AS durable WHERE durable IS NOT NULL"
)
_APPEND = f"""
INSERT INTO {{s}}.commits (stream, number, commit, document)
SELECT %(stream)s, %(number)s, %(commit)s, %(document)b {_DURABLE}
  AND %(number)s = 1 + coalesce((SELECT max(number) FROM {{s}}.commits WHERE stream = %(stream)s), 0)
  AND (%(after)s = '' OR EXISTS (
    SELECT 1 FROM {{s}}.commits WHERE stream = %(stream)s AND number = %(number)s - 1 AND commit = %(after)s))
ON CONFLICT DO NOTHING"""
_APPEND_NEXT = """
INSERT INTO {s}.commits (stream, number, commit, document)
VALUES (%(stream)s, %(number)s, %(commit)s, %(document)b)"""
#: Apart from what it tells of: those who tell wait for each other, and would for what each of them has on its way.
_TELL = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"
#: Settles an append: what stands there already is durable once this is, and nothing of it is changed.
_SETTLE = f"""
UPDATE {{s}}.commits SET commit = commit
WHERE stream = %(stream)s AND number = %(number)s AND commit = %(commit)s AND EXISTS (SELECT 1 {_DURABLE})"""
_REACH = """
SELECT asked.stream, coalesce(latest.number, 0), coalesce(latest.commit, ''),
  coalesce((SELECT times FROM {s}.rewrites r WHERE r.stream = asked.stream), 0),
  (SELECT tag FROM {s}.files WHERE name = %s), (SELECT life FROM {s}.layout)
FROM unnest(%s::text[]) AS asked (stream) LEFT JOIN LATERAL (
  SELECT number, commit FROM {s}.commits c WHERE c.stream = asked.stream ORDER BY number DESC LIMIT 1
) AS latest ON true"""
_READ = """
SELECT number, commit, document FROM {s}.commits WHERE stream = %s AND number > %s ORDER BY number LIMIT %s"""
_COUNT = """
INSERT INTO {s}.rewrites (stream, times) VALUES (%s, 1) ON CONFLICT (stream) DO UPDATE SET times = rewrites.times + 1"""
_PUTS = {
    "new": "INSERT INTO {s}.files (name, tag, data) VALUES (%(name)s, %(tag)s, %(data)b) ON CONFLICT DO NOTHING",
    "next": "UPDATE {s}.files SET tag = %(tag)s, data = %(data)b WHERE name = %(name)s AND tag = %(expected)s",
    "any": "INSERT INTO {s}.files (name, tag, data) VALUES (%(name)s, %(tag)s, %(data)b)"
    " ON CONFLICT (name) DO UPDATE SET tag = excluded.tag, data = excluded.data",
}


class PostgresLog:
    """The log in one schema of a database, as `SharedLog` has it; docs/backends.md tells what it asks of the server."""

    def __init__(self, address: str, *, wait: float = 10.0) -> None:
        """Open the log at *address*, a URL that libpq reads, with `schema` beside its own options; make its tables.

        A connection that is lost is had again for up to *wait* seconds. Raises InvalidRequest for what is no address,
        Failed `store_unreachable`, or `invalid_config` where this user may not use or make the tables.
        """
        self.address = postgres_connection.read(address)
        self._link = PostgresPool(self.address, wait)
        self._channel = f"{self.address.schema}_news"
        try:
            prepare(self._link)
            self._tells = self._link.run(self._can_tell)
        except BaseException:
            self._link.close()
            raise
        self._ear = NotificationListener(self._link, self._channel)

    @property
    def name(self) -> str:
        """Return the address as it may be shown: without a password."""
        return self.address.name

    def streams(self) -> list[Stream]:
        """Return the streams that hold an entry, sorted."""
        rows = self._rows("SELECT stream FROM {s}.commits WHERE number = 1")
        return sorted(Stream(*row[0].split("/", 1)) for row in rows)

    def reach(self, streams: list[Stream]) -> Mapping[Stream, Reach]:
        """Return how far each of *streams* reaches now."""
        return self.look(streams, "").reaches if streams else {}

    def look(self, streams: list[Stream], name: str) -> LogState:
        """Return how far each of *streams* reaches now, and the tag of the file *name*, None where there is none."""
        rows = self._rows(_REACH, name, [_key(stream) for stream in streams])
        reaches = {key: Reach(int(length), int(times), last) for key, length, last, times, _, _ in rows}
        return LogState({stream: reaches[_key(stream)] for stream in streams}, rows[0][4], rows[0][5])

    def read(self, stream: Stream, after: int = 0) -> Iterator[LogEntry]:
        """Return the entries with a number above *after*, in order; it need not be used up."""
        count = _FEW
        while True:
            rows = self._rows(_READ, _key(stream), after, count)
            yield from (LogEntry(int(number), commit, bytes(document)) for number, commit, document in rows)
            if len(rows) < count:
                return
            after = int(rows[-1][0])
            size = sum(len(row[2]) for row in rows) // len(rows) + 1
            count = max(_FEW, min(_MANY, _BYTES // size, 8 * count))

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        """Return True once *document* is durable under *number*, False where another commit has that number.

        And where another than *after*, if that is said, has the number before.
        """
        if number < 1:
            raise ValueError(f"{number} is no number of an entry: the first is 1")
        row = {"stream": _key(stream), "number": number, "commit": commit, "document": document, "after": after}
        doubt = False

        def work(connection: PostgresConnection) -> bool:
            nonlocal doubt
            doubtful, doubt = doubt, True
            try:
                appended = self._appended(connection, row)
            except Error as error:
                doubt = doubtful or (may_pass(error) and (error.sqlstate is None or error.sqlstate[:2] in ("57", "08")))
                raise
            if appended:
                self._tell(connection, row["stream"])
            return appended

        try:
            return self._link.run(work)
        except Failed as failure:
            if doubt and failure.code == "store_unreachable":
                raise Failed(
                    f"{failure.detail}; whether commit {commit} was kept there is not known",
                    hint="submit it again with the same idempotency key once the server answers;"
                    " nothing is then kept twice",
                    code="outcome_unknown",
                ) from None
            raise

    def append_many(self, stream: Stream, number: int, entries: Sequence[tuple[str, bytes]]) -> bool:
        """Return True once all of *entries*, ids with documents, are durable from *number* on; False where none is.

        They are kept together or not at all; a connection that is lost is settled as `append` does.
        """
        key = _key(stream)
        rows = [{"stream": key, "number": number + n, "commit": c, "document": d} for n, (c, d) in enumerate(entries)]

        def work(connection: PostgresConnection) -> bool:
            try:
                with connection.transaction():
                    if not self._appended(connection, {**rows[0], "after": ""}):
                        return False
                    if len(rows) > 1 and connection.execute(self._link.sql(_SETTLE), rows[-1]).rowcount == 1:
                        return True  # they were kept by a try whose answer was lost
                    connection.cursor().executemany(self._link.sql(_APPEND_NEXT), rows[1:])
            except UniqueViolation:  # the first of them is there, and others of somebody else after it
                return False
            self._tell(connection, key)
            return True

        return not rows or self._link.run(work)

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        """Put other documents in the place of those of these commits, by id: all of them or none, and count it."""
        key = _key(stream)

        def work(connection: PostgresConnection) -> None:
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit TO on")
                for commit, document in documents.items():
                    row = {"stream": key, "commit": commit, "document": document}
                    statement = "UPDATE {s}.commits SET document = %(document)b WHERE stream = %(stream)s"
                    if connection.execute(self._link.sql(f"{statement} AND commit = %(commit)s"), row).rowcount != 1:
                        raise NotFound(f"{self.name}: {key} has no commit {commit}", hint="name one that it has")
                connection.execute(self._link.sql(_COUNT), (key,))
            self._tell(connection, key)

        self._link.run(work)

    def wait(self, stream: Stream, known: Reach, seconds: float) -> Reach:
        """Return how far *stream* reaches, as soon as that is not *known*, or after *seconds*."""
        deadline, key = monotonic() + seconds, _key(stream)
        if self._tells:
            self._ear.listen()
        woken = True
        while True:
            count = self._ear.count(key)
            reach = self.reach([stream])[stream]
            left = deadline - monotonic()
            if reach != known and not woken and count == self._ear.count(key):
                self._ear.missed()
            if reach != known or left <= 0 or self._ear.closed:
                return reach
            woken = self._ear.wait(key, count, left)

    def get(self, name: str) -> File | None:
        """Return the file *name*, None where there is none."""
        check_file(name)
        rows = self._rows("SELECT data, tag FROM {s}.files WHERE name = %s", name)
        return File(bytes(rows[0][0]), rows[0][1]) if rows else None

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        """Return the new tag of the file once it is durable, None where it has another tag than *expected*."""
        check_file(name, data)
        how = "any" if force else "new" if expected is None else "next"
        row = {"name": name, "tag": token_hex(12), "data": data, "expected": expected}

        def work(connection: PostgresConnection) -> str | None:
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit TO on")
                done = connection.execute(self._link.sql(_PUTS[how]), row).rowcount == 1
            mine = "SELECT tag FROM {s}.files WHERE name = %(name)s AND tag = %(tag)s"  # by a try whose answer was lost
            done = done or connection.execute(self._link.sql(mine), row).fetchone() is not None
            return str(row["tag"]) if done else None

        return self._link.run(work)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with *prefix*, sorted."""
        rows = self._rows("SELECT name FROM {s}.files WHERE left(name, %s) = %s", len(prefix), prefix)
        return sorted(row[0] for row in rows)

    def remove(self, names: list[str]) -> None:
        """Remove these files; one that is not there is removed already."""
        statement = self._link.sql("DELETE FROM {s}.files WHERE name = ANY(%s)")
        self._link.run(lambda connection: connection.execute(statement, (list(names),)).rowcount)

    def close(self) -> None:
        """Let go of what is held open, and of who waits."""
        self._ear.close()
        self._link.close()

    def _appended(self, connection: PostgresConnection, row: Mapping[str, Any]) -> bool:
        append = self._link.sql(_APPEND)
        while True:
            connection.warned = ""
            done = connection.execute(append, row).rowcount == 1
            done = done or connection.execute(self._link.sql(_SETTLE), row).rowcount == 1
            if done and connection.warned:  # it is here, and nobody waited until it is durable where it has to be
                raise OperationalError(connection.warned)
            if done:
                return True
            length, last = self._end(connection, row["stream"])
            if length >= row["number"] or (length + 1 == row["number"] and row["after"] not in ("", last)):
                return False
            if length + 1 < row["number"]:
                raise ValueError(f"{row['number']} leaves a gap: {row['stream']} has {length}")

    def _end(self, connection: PostgresConnection, stream: str) -> tuple[int, str]:
        (row,) = connection.execute(self._link.sql(_REACH), ("", [stream])).fetchall()
        return int(row[1]), str(row[2])

    def _tell(self, connection: PostgresConnection, stream: object) -> None:
        """Tell who waits; what is not told is found by who looks."""
        if self._tells:
            with suppress(Error):
                connection.execute(_TELL, (self._channel, stream))

    def _can_tell(self, connection: PostgresConnection) -> bool:
        try:
            connection.execute(_TELL, (self._channel, ""))
        except Error as error:
            if isinstance(error, UndefinedFunction) or (error.sqlstate or "").startswith("0A"):
                return False
            raise
        return True

    def _rows(self, text: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        statement = self._link.sql(text)
        return self._link.run(lambda connection: connection.cursor(binary=True).execute(statement, values).fetchall())


def _key(stream: Stream) -> str:
    return f"{stream.project}/{stream.name}"
