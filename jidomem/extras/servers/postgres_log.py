"""The shared log in PostgreSQL: an append is one conditional insert.

The `NotificationListener` is the one connection of a process that listens for new commits.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from os import dup, urandom
from secrets import token_hex
from threading import Condition, Thread
from time import monotonic
from typing import Any, LiteralString

from psycopg import Error, OperationalError, Rollback
from psycopg.errors import UndefinedFunction, UniqueViolation
from psycopg.sql import SQL, Identifier

from jidomem.errors import Failed, JidomemError, NotFound
from jidomem.extras.servers import postgres_connection
from jidomem.extras.servers.log import File, LogEntry, LogState, StreamPosition, check_file
from jidomem.extras.servers.postgres_connection import (
    MAX_LOOKUP_SECONDS,
    PostgresConnection,
    PostgresPool,
    may_pass,
    prepare,
)
from jidomem.journal.journal import Stream

#: Seconds between two polls of a waiting thread: with notifications, and without.
SLOW_POLL, FAST_POLL = 1.0, 0.05
#: Seconds between two attempts to listen.
_AGAIN = 5.0


class NotificationListener:
    """The notifications of each stream. None is required: a waiting thread also polls.

    Some servers and poolers deliver no notifications. After a poll has found a change without a notification, polls are
    frequent until one arrives.
    """

    def __init__(self, link: PostgresPool, channel: str) -> None:
        self._link, self._channel = link, channel
        self._news = Condition()
        self._counts: Counter[str] = Counter()
        self._thread: Thread | None = None
        self._connection: PostgresConnection | None = None
        self._is_receiving, self._closed = False, False

    def listen(self) -> None:
        """Start the listener thread, unless it runs."""
        with self._news:
            if self._thread is None and not self._closed:
                self._thread = Thread(target=self._run, name="jidomem-ear", daemon=True)
                self._thread.start()

    def count(self, stream: str) -> int:
        """Return the number of notifications of *stream*."""
        with self._news:
            return self._counts[stream]

    def wait(self, stream: str, count: int, seconds: float) -> bool:
        """Return True as soon as the number of notifications differs from *count*, False when a poll is due."""
        with self._news:
            pause = min(seconds, SLOW_POLL if self._is_receiving else FAST_POLL)
            return self._news.wait_for(lambda: self._closed or self._counts[stream] != count, pause)

    @property
    def closed(self) -> bool:
        """Return whether the listener is closed, so that every wait ends."""
        return self._closed

    def record_missed_change(self) -> None:
        """Record that a poll found a change without a notification."""
        with self._news:
            self._is_receiving = False

    def close(self) -> None:
        """Stop the thread, and end every wait."""
        with self._news:
            self._closed = True
            self._news.notify_all()
            connection, thread = self._connection, self._thread
        if connection is not None:
            with suppress(OSError, Error), socket.socket(fileno=dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        if thread is not None:
            thread.join(1.0)

    def _run(self) -> None:
        while not self._closed:
            with suppress(Error, OSError, JidomemError):
                self._receive()
            with self._news:
                self._is_receiving = False
                self._counts.update(list(self._counts))  # notifications may have been lost: every waiting thread polls
                self._news.notify_all()
                self._news.wait_for(lambda: self._closed, _AGAIN if self._connection is None else FAST_POLL)
                self._connection = None

    def _receive(self) -> None:
        with self._link.new_connection() as connection:
            connection.longest = inf  # there may be no notification for long
            connection.execute(SQL("LISTEN {}").format(Identifier(self._channel)))
            with self._news:
                self._connection, self._is_receiving = connection, True
                self._counts.update(list(self._counts))
                self._news.notify_all()
            while not self._closed:
                for note in connection.notifies(timeout=60.0):
                    with self._news:
                        self._is_receiving = True
                        self._counts[note.payload] += 1
                        self._news.notify_all()


#: Entries read by the first request, by any request, and about how many bytes.
_FEW, _MANY, _BYTES = 16, 2_000, 4 << 20
#: Nothing is acknowledged before it is durable, whatever the settings of the server, database or role.
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
#: A separate transaction: notifying transactions run one after another, each until its commit is durable.
_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"
#: A separate transaction: notifying transactions commit one after another, and each would wait for the disk.
_SETTLE = f"""
UPDATE {{s}}.commits SET commit = commit
WHERE stream = %(stream)s AND number = %(number)s AND commit = %(commit)s AND EXISTS (SELECT 1 {_DURABLE})"""
#: Without bytes it inserts nothing, but needs the same permissions as an append, and a primary.
_PROBE = """
INSERT INTO {s}.commits (stream, number, commit, document) SELECT '', 0, '', %(document)b WHERE %(document)b <> ''"""
_REACH = """
SELECT asked.stream, coalesce(latest.number, 0), coalesce(latest.commit, ''),
  coalesce((SELECT times FROM {s}.rewrites r WHERE r.stream = asked.stream), 0),
  coalesce((SELECT convert_from(data, 'UTF8') FROM {s}.files WHERE name = 'damaged/' || asked.stream), ''),
  (SELECT tag FROM {s}.files WHERE name = %s), (SELECT life FROM {s}.layout)
FROM unnest(%s::text[]) AS asked (stream) LEFT JOIN LATERAL (
  SELECT number, commit FROM {s}.commits c WHERE c.stream = asked.stream ORDER BY number DESC LIMIT 1
) AS latest ON true"""
#: One step of the primary key for each stream, whichever of its entries the log still has.
_STREAMS = """
WITH RECURSIVE streams AS (
  SELECT min(stream) AS stream FROM {s}.commits UNION ALL
  SELECT (SELECT min(stream) FROM {s}.commits c WHERE c.stream > streams.stream) FROM streams WHERE stream IS NOT NULL
) SELECT stream FROM streams WHERE stream IS NOT NULL"""
_READ = """
SELECT number, commit, document FROM {s}.commits WHERE stream = %s AND number > %s ORDER BY number LIMIT %s"""
_GAPS = """
SELECT stream, min(place) FROM (
  SELECT stream, number, row_number() OVER (PARTITION BY stream ORDER BY number) AS place FROM {s}.commits
) AS numbered WHERE number <> place GROUP BY stream"""
_RESTORE = {
    "new": """INSERT INTO {s}.commits (stream, number, commit, document)
VALUES (%(stream)s, %(number)s, %(commit)s, %(document)b) ON CONFLICT DO NOTHING""",
    "changed": """UPDATE {s}.commits SET commit = %(commit)s, document = %(document)b
WHERE stream = %(stream)s AND number = %(number)s AND document = %(found)b""",
    "present": """SELECT 1 FROM {s}.commits
WHERE stream = %(stream)s AND number = %(number)s AND commit = %(commit)s AND document = %(document)b""",
}
_COUNT = """
INSERT INTO {s}.rewrites (stream, times) VALUES (%s, 1) ON CONFLICT (stream) DO UPDATE SET times = rewrites.times + 1"""
_PUTS = {
    "new": "INSERT INTO {s}.files (name, tag, data) VALUES (%(name)s, %(tag)s, %(data)b) ON CONFLICT DO NOTHING",
    "next": "UPDATE {s}.files SET tag = %(tag)s, data = %(data)b WHERE name = %(name)s AND tag = %(expected)s",
    "any": "INSERT INTO {s}.files (name, tag, data) VALUES (%(name)s, %(tag)s, %(data)b)"
    " ON CONFLICT (name) DO UPDATE SET tag = excluded.tag, data = excluded.data",
}


class PostgresLog:
    """The log in one schema of a database, as `SharedLog` defines it; docs/backends.md has the requirements."""

    def __init__(self, address: str, *, wait: float = 10.0, creates: bool = True) -> None:
        """Open the log at *address*, a URL of libpq that may also have the option `schema`; create its tables.

        Without *creates*, missing tables raise NotFound.

        A lost connection is retried for up to *wait* seconds. Raises InvalidRequest for an invalid address, Failed
        `store_unreachable`, or `invalid_config` if this user may not use or create the tables.
        """
        self.address = postgres_connection.read(address)
        self._link, self._refused_size = PostgresPool(self.address, wait), 0
        self._channel = f"{self.address.schema}_news"
        try:
            prepare(self._link, creates=creates)
            self._notifies = self._link.run(self._supports_notify)
        except BaseException:
            self._link.close()
            raise
        self._listener = NotificationListener(self._link, self._channel)

    @property
    def name(self) -> str:
        """Return the address for display: without a password."""
        return self.address.name

    def streams(self) -> list[Stream]:
        """Return the streams that have an entry, sorted."""
        rows = self._rows(_STREAMS, within=MAX_LOOKUP_SECONDS)
        return sorted(Stream(*row[0].split("/", 1)) for row in rows)

    def positions(self, streams: list[Stream]) -> Mapping[Stream, StreamPosition]:
        """Return the present position of each of *streams*."""
        return self.read_state(streams, "").positions if streams else {}

    def read_state(self, streams: list[Stream], name: str) -> LogState:
        """Return the present position of *streams*, the tag of the file *name* (None without one), and the log id."""
        rows = self._rows(_REACH, name, [_key(stream) for stream in streams], within=MAX_LOOKUP_SECONDS)
        positions = {
            key: StreamPosition(int(length), int(times), last, mark) for key, length, last, times, mark, _, _ in rows
        }
        return LogState({stream: positions[_key(stream)] for stream in streams}, rows[0][5], rows[0][6])

    def read(self, stream: Stream, after: int = 0, *, with_gaps: bool = False) -> Iterator[LogEntry]:
        """Yield the entries with a number above *after*, in order, without those that are missing."""
        count = _FEW
        while True:
            rows = self._rows(_READ, _key(stream), after, count)
            yield from (LogEntry(int(number), commit, bytes(document)) for number, commit, document in rows)
            if len(rows) < count:
                return
            after = int(rows[-1][0])
            size = sum(len(row[2]) for row in rows) // len(rows) + 1
            count = max(_FEW, min(_MANY, _BYTES // size, 8 * count))

    def gaps(self) -> Mapping[Stream, int]:
        """Return the number of the first missing entry of each stream that lacks one before its last."""
        return {Stream(*key.split("/", 1)): int(number) for key, number in self._rows(_GAPS)}

    def mark(self, stream: Stream, damage: str) -> None:
        """Record the damage of a stream; an empty text removes it."""
        name = f"damaged/{_key(stream)}"
        if damage:
            self.put(name, damage.encode(), force=True)
        else:
            self.remove([name])

    def restore(self, stream: Stream, entries: Sequence[tuple[LogEntry, bytes | None]]) -> bool:
        """Return True once the entries are durable, all or none; False if something else is at one of their numbers."""
        key = _key(stream)

        def work(connection: PostgresConnection) -> bool:
            is_stored = False
            with connection.transaction() as transaction:
                connection.execute("SET LOCAL synchronous_commit TO on")
                for entry, found in entries:
                    row = {"stream": key, "number": entry.number, "commit": entry.commit, "found": found}
                    row["document"] = entry.document
                    write, check = _RESTORE["new" if found is None else "changed"], _RESTORE["present"]
                    if (
                        not connection.execute(self._link.sql(write), row).rowcount
                        and not connection.execute(self._link.sql(check), row).fetchone()
                    ):
                        raise Rollback(transaction)
                is_stored = True
            if is_stored:
                self._notify(connection, key)
            return is_stored

        return self._link.run(work)

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        """Return True once *document* is durable under *number*, False if another commit has that number.

        With *after*, also return False if another commit has the number before.
        """
        if number < 1:
            raise ValueError(f"{number} is not a number of an entry: the first is 1")
        row = {"stream": _key(stream), "number": number, "commit": commit, "document": document, "after": after}
        doubt = False

        def work(connection: PostgresConnection) -> bool:
            nonlocal doubt
            doubtful, doubt = doubt, True
            try:
                appended = self._try_append(connection, row)
            except Error as error:
                doubt = doubtful or (may_pass(error) and (error.sqlstate is None or error.sqlstate[:2] in ("57", "08")))
                raise
            if appended:
                self._notify(connection, row["stream"])
            return appended

        try:
            is_stored, self._refused_size = self._link.run(work), 0
            return is_stored
        except Failed as failure:
            self._refused_size = len(document)
            if doubt and failure.code == "store_unreachable":
                raise Failed(
                    f"{failure.detail}; whether commit {commit} was stored there is not known",
                    hint="submit it again with the same idempotency key once the server answers;"
                    " it is stored only once",
                    code="outcome_unknown",
                ) from None
            raise

    def append_many(self, stream: Stream, number: int, entries: Sequence[tuple[str, bytes]]) -> bool:
        """Return True once all of *entries*, ids with documents, are durable from *number* on; else False, and none is.

        They are one transaction; a lost connection is settled as in `append`.
        """
        key = _key(stream)
        rows = [{"stream": key, "number": number + n, "commit": c, "document": d} for n, (c, d) in enumerate(entries)]

        def work(connection: PostgresConnection) -> bool:
            try:
                with connection.transaction():
                    if not self._try_append(connection, {**rows[0], "after": ""}):
                        return False
                    if len(rows) > 1 and connection.execute(self._link.sql(_SETTLE), rows[-1]).rowcount == 1:
                        return True  # stored by a try whose answer was lost
                    connection.cursor().executemany(self._link.sql(_APPEND_NEXT), rows[1:])
            except UniqueViolation:  # the first of them is stored, followed by entries of another writer
                return False
            self._notify(connection, key)
            return True

        return not rows or self._link.run(work)

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        """Replace the documents of these commits, by id, all of them or none, and increase the count of rewrites."""
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
            self._notify(connection, key)

        self._link.run(work)

    def wait(self, stream: Stream, known: StreamPosition, seconds: float) -> StreamPosition:
        """Return the reach of *stream* as soon as it differs from *known*, or after *seconds*."""
        deadline, key = monotonic() + seconds, _key(stream)
        if self._notifies:
            self._listener.listen()
        woken = True
        while True:
            count = self._listener.count(key)
            reach = self.positions([stream])[stream]
            remaining = deadline - monotonic()
            if reach != known and not woken and count == self._listener.count(key):
                self._listener.record_missed_change()
            if reach != known or remaining <= 0 or self._listener.closed:
                return reach
            woken = self._listener.wait(key, count, remaining)

    def get(self, name: str) -> File | None:
        """Return the file *name*, None if there is none."""
        check_file(name)
        rows = self._rows("SELECT data, tag FROM {s}.files WHERE name = %s", name, within=MAX_LOOKUP_SECONDS)
        return File(bytes(rows[0][0]), rows[0][1]) if rows else None

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        """Return the new tag of the file once it is durable; None if its tag is not *expected*."""
        check_file(name, data)
        mode = "any" if force else "new" if expected is None else "next"
        row = {"name": name, "tag": token_hex(12), "data": data, "expected": expected}

        def work(connection: PostgresConnection) -> str | None:
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit TO on")
                done = connection.execute(self._link.sql(_PUTS[mode]), row).rowcount == 1
            own_put = "SELECT tag FROM {s}.files WHERE name = %(name)s AND tag = %(tag)s"  # of an earlier try
            done = done or connection.execute(self._link.sql(own_put), row).fetchone() is not None
            return str(row["tag"]) if done else None

        return self._link.run(work)

    def check_writable(self, size: int = 0) -> None:
        """Raise Failed if the server would refuse a commit now; one of *size* or as the last refused is rolled back."""
        row = {"document": urandom(max(size, self._refused_size))}
        try:
            with (
                self._link.borrow() as connection,
                connection.within(MAX_LOOKUP_SECONDS),
                connection.transaction(force_rollback=True),
            ):
                connection.execute(self._link.sql(_PROBE), row)
        except Error as error:
            raise self._link.error_of(error) from None
        self._refused_size = 0

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with *prefix*, sorted."""
        rows = self._rows("SELECT name FROM {s}.files WHERE left(name, %s) = %s", len(prefix), prefix)
        return sorted(row[0] for row in rows)

    def remove(self, names: list[str]) -> None:
        """Remove these files; a missing file counts as removed."""
        statement = self._link.sql("DELETE FROM {s}.files WHERE name = ANY(%s)")
        self._link.run(lambda connection: connection.execute(statement, (list(names),)).rowcount)

    def close(self) -> None:
        """Release the connections, and end every wait."""
        self._listener.close()
        self._link.close()

    def _try_append(self, connection: PostgresConnection, row: Mapping[str, Any]) -> bool:
        append = self._link.sql(_APPEND)
        while True:
            connection.warned = ""
            done = connection.execute(append, row).rowcount == 1
            done = done or connection.execute(self._link.sql(_SETTLE), row).rowcount == 1
            if done and connection.warned:  # stored, but the wait for the required durability was cut short
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

    def _notify(self, connection: PostgresConnection, stream: object) -> None:
        """Notify the waiting threads; if that fails, their polls find the change."""
        if self._notifies:
            with suppress(Error):
                connection.execute(_NOTIFY, (self._channel, stream))

    def _supports_notify(self, connection: PostgresConnection) -> bool:
        try:
            connection.execute(_NOTIFY, (self._channel, ""))
        except Error as error:
            if isinstance(error, UndefinedFunction) or (error.sqlstate or "").startswith("0A"):
                return False
            raise
        return True

    def _rows(self, text: LiteralString, *values: object, within: float = inf) -> list[tuple[Any, ...]]:
        statement = self._link.sql(text)

        def work(connection: PostgresConnection) -> list[tuple[Any, ...]]:
            with connection.within(within):
                return connection.cursor(binary=True).execute(statement, values).fetchall()

        return self._link.run(work)


def _key(stream: Stream) -> str:
    return f"{stream.project}/{stream.name}"
