"""The PostgreSQL connection of a root: its address, its pool and its tables.

Tables are created at the first opening and migrated at a later one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from threading import BoundedSemaphore, Lock
from time import monotonic, sleep
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg import Error, InterfaceError, OperationalError, ProgrammingError, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from psycopg.sql import SQL, Identifier

from jidomem.errors import Busy, Failed, InvalidRequest, JidomemError, did_you_mean
from jidomem.extras.servers.log import absent_root

#: The schema of the tables, unless the address names another.
SCHEMA = "jidomem"

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_FORM = "postgresql://USER@HOST:5432/DATABASE"
#: The default options of a connection, which fails soon if the machine is gone.
_DEFAULT_OPTIONS = {
    "fallback_application_name": "jidomem",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",
}


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The connection options, the schema, and `name`: the address without its password."""

    options: Mapping[str, Any] = field(repr=False)
    schema: str
    name: str

    def clean(self, text: str) -> str:
        """Return *text* without the password."""
        secret = str(self.options.get("password") or "")
        return text.replace(secret, "***") if secret else text


def read(text: str) -> PostgresAddress:
    """Return the parsed address; raises InvalidRequest, which shows at most a parameter of it, for other texts.

    >>> read("postgresql://ada:secret@db1,db2/notes?schema=team").name
    'postgresql://ada@db1,db2/notes?schema=team'
    """
    url, _, query = text.partition("?")
    user, at, host = url.partition("://")[2].partition("@")
    if at and ("/" in user or "@" in host):  # libpq takes a part of such a password for the name of a host or database
        raise _unreadable()
    pairs = parse_qsl(query, keep_blank_values=True)
    named = [value for key, value in pairs if key == "schema"]
    schema = named[-1] if named else SCHEMA
    if not _SCHEMA.fullmatch(schema):
        hint = "name it with lower-case letters, digits and _, at most 41: ?schema=team"
        raise InvalidRequest(f"{schema[:60]!r} is not a valid schema name", hint=hint)
    rest = urlencode([pair for pair in pairs if pair[0] != "schema"], quote_via=quote)
    try:
        given_options = conninfo_to_dict(f"{url}?{rest}" if rest else url)
    except ProgrammingError:  # its message may show a part of the password
        raise _unreadable([] if "@" in query else [key for key, _ in pairs]) from None
    options = {**_DEFAULT_OPTIONS, **given_options}
    if "," in str(options.get("host", "")):
        options = {"target_session_attrs": "read-write", **options}
    return PostgresAddress(options, schema, _display_name(given_options, schema))


def _unreadable(parameters: Iterable[str] = ()) -> InvalidRequest:
    """Return the refusal of an address, which names the first of its *parameters* that libpq has not."""
    known = [*(each.keyword.decode() for each in Conninfo.get_defaults()), "schema"]
    if unknown := [name for name in parameters if name not in known]:
        hint = did_you_mean(unknown[0], known, "leave it out, or take one of libpq")
        return InvalidRequest(f"an address of PostgreSQL has no parameter {unknown[0][:60]!r}", hint=hint)
    hint = f"write {_FORM}, with other characters than letters and digits of a password as %XX"
    return InvalidRequest("the address of the PostgreSQL database cannot be read", hint=hint)


def _display_name(options: Mapping[str, Any], schema: str) -> str:
    """Return the address for display: hosts, ports, user, database, and the service or schema."""
    hosts = str(options.get("host") or options.get("hostaddr") or "").split(",")
    ports = str(options.get("port") or "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    where = ",".join(quote(host, safe="") + (f":{port}" if port else "") for host, port in zip(hosts, ports))  # noqa: B905
    user = f"{quote(str(options['user']), safe='')}@" if options.get("user") else ""
    more = {key: options[key] for key in ("service",) if key in options} | (
        {"schema": schema} if schema != SCHEMA else {}
    )
    return f"postgresql://{user}{where}/{quote(str(options.get('dbname') or ''))}" + (
        f"?{urlencode(more)}" if more else ""
    )


T = TypeVar("T")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*|USER")

#: Seconds that one statement may take, and one on which every read waits, as it looks for new commits.
MAX_STATEMENT_SECONDS, MAX_LOOKUP_SECONDS = 30.0, 10.0
#: The most connections of a process to one root, for the log and for the working state each.
SIZE = 6
#: The error states of a schema or table that existed at the opening and is missing now.
_MISSING_OBJECT_CODES = ("3F000", "42P01")
#: The error states of a server that answers and refuses, with the repair of each.
_REPAIRS = {
    "25006": "it is read-only: name the primary, not a replica; or an administrator ends it, for the database or the"
    " role: ALTER DATABASE ... RESET default_transaction_read_only",
    "53100": "its disk is full: free space there, and writes go on",
    "57014": "a statement took too long: see what it waits for in pg_stat_activity, and statement_timeout of the role",
    "55P03": "a lock was not released in time: see who has it in pg_locks, and lock_timeout of the role",
}
_NO_SLOT = "close other connections, or an administrator allows more: max_connections, or CONNECTION LIMIT of the role"
#: The settings of each session. Keepalives let the server release the locks of a machine that is gone.
_SETTINGS = """
SELECT set_config('statement_timeout', %s, false), set_config('tcp_keepalives_idle', '10', false),
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)"""
#: The errors after which a retry may succeed: deadlocks, races, a server that starts, stops or is full.
_RETRYABLE = ("40001", "40P01", "25006", "53300", "57P01", "57P02", "57P03", "57P05")


class PostgresConnection(psycopg.Connection[tuple[Any, ...]]):
    """One connection, closed when a statement exceeds its time; `warned` is the last warning of the server."""

    longest = MAX_STATEMENT_SECONDS
    limit = inf
    warned = ""

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Limit each statement to *seconds*."""
        self.limit = seconds
        try:
            yield
        finally:
            self.limit = inf

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait as the superclass does, but no longer than a statement may take."""
        return super().wait(self._bounded(gen), interval) if timeout is None else super().wait(gen, interval, timeout)

    def _bounded(self, gen: Any) -> Any:
        seconds = min(self.longest, self.limit)
        deadline = monotonic() + seconds
        try:
            waiting_for = next(gen)
            while True:
                ready = yield waiting_for
                if not ready and monotonic() > deadline:
                    self.pgconn.finish()
                    raise OperationalError(f"no answer for {seconds:g} s")
                waiting_for = gen.send(ready)
        except StopIteration as end:
            return end.value


class PostgresPool:
    """The connections of one process to a root, for any thread. Each statement is a transaction unless it begins one.

    A statement is retried for up to *wait* seconds if an established connection is lost; then Failed
    `store_unreachable` is raised.
    """

    def __init__(self, address: PostgresAddress, wait: float, size: int = SIZE) -> None:
        self.address, self.wait = address, wait
        self._slots = BoundedSemaphore(size)
        self._lock = Lock()
        self._idle: list[PostgresConnection] = []
        self._statements: dict[str, bytes] = {}  # by their text: composing one costs as much as sending it
        self._has_connected = self._closed = False

    def run(self, work: Callable[[PostgresConnection], T]) -> T:
        """Return the result of *work* with a connection; it is called again, maybe twice, after a lost connection."""
        deadline, pause = monotonic() + self.wait, 0.01
        while True:
            try:
                with self.borrow() as connection:
                    return work(connection)
            except Error as error:
                if not (self._has_connected and may_pass(error)) or monotonic() > deadline:
                    raise self.error_of(error) from None
            sleep(pause)
            pause = min(2 * pause, 0.5)

    @contextmanager
    def borrow(self) -> Iterator[PostgresConnection]:
        """Yield a connection for exclusive use; raises psycopg's errors, and Busy if none is free in time."""
        if not self._slots.acquire(timeout=self.wait):
            raise Busy(f"every connection to {self.address.name} was in use for {self.wait:g} s", hint="try again")
        try:
            connection = self._take_idle() or self.new_connection()
            try:
                yield connection
            except Error as error:
                if may_pass(error):
                    connection.close()
                    self.drop()  # the others went to the same server
                raise
            finally:
                self._return(connection)
        finally:
            self._slots.release()

    def new_connection(self) -> PostgresConnection:
        """Return a new connection."""
        connection = PostgresConnection.connect(**self.address.options, autocommit=True, prepare_threshold=None)
        try:
            _refuse_other_encoding(connection, self.address)
            connection.execute(_SETTINGS, (f"{MAX_STATEMENT_SECONDS * 1000:.0f}",))
        except BaseException:
            connection.close()
            raise
        connection.add_notice_handler(lambda notice: _record_warning(connection, notice))
        self._has_connected = True
        return connection

    def sql(self, text: LiteralString) -> bytes:
        """Return a statement with the schema of the root in place of `{s}`."""
        if (statement := self._statements.get(text)) is None:
            statement = self._statements[text] = SQL(text).format(s=Identifier(self.address.schema)).as_bytes()
        return statement

    def drop(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close the idle connections now and the others when they are returned."""
        with self._lock:
            self._closed = True
        self.drop()

    def error_of(self, error: Error) -> JidomemError:
        """Return the error of jidomem that reports *error* of the server."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        message, name = self.address.clean(" ".join(line.strip() for line in lines[:6])), self.address.name
        if error.sqlstate == "42501":
            return Failed(f"{name}: {message}", hint=grants(self.address), code="invalid_config")
        if error.sqlstate in _MISSING_OBJECT_CODES:
            hint = (
                "restore the database from a backup; or start again there: jidomem init, or jidomem root restore FILE"
            )
            return Failed(f"{name} has lost its tables: {message}", hint=hint, code="store_unreachable")
        if (repair := _REPAIRS.get(error.sqlstate or "")) is not None:
            return Failed(f"{name} refused: {message}", hint=repair, code="store_unreachable")
        hint = f"check that it runs and admits this user: psql '{name.partition('?')[0]}' -c 'SELECT 1'"
        if error.sqlstate is None and "FATAL:" in message:  # psycopg has no code for a connection that is refused
            hint = _NO_SLOT if "too many" in message or "slots" in message else hint
            return Failed(f"{name} refused the connection: {message}", hint=hint, code="store_unreachable")
        return Failed(f"{name} did not answer: {message}", hint=hint, code="store_unreachable")

    def _take_idle(self) -> PostgresConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _return(self, connection: PostgresConnection) -> None:
        with self._lock:
            is_usable = not self._closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            if is_usable:
                self._idle.append(connection)
        if not is_usable:
            connection.close()


def may_pass(error: Error) -> bool:
    """Return whether another try, on another connection, may succeed."""
    if error.sqlstate is None:
        return isinstance(error, (OperationalError, InterfaceError))
    return error.sqlstate in _RETRYABLE or error.sqlstate.startswith("08")


def grants(address: PostgresAddress) -> str:
    """Return the SQL by which an administrator lets this user open the root."""
    user = str(address.options.get("user") or "USER")
    user = user if _PLAIN.fullmatch(user) else '"{}"'.format(user.replace('"', '""'))
    return (
        f"an administrator creates its schema: CREATE SCHEMA {address.schema} AUTHORIZATION {user};"
        f" or, if the tables exist: GRANT USAGE ON SCHEMA {address.schema} TO {user};"
        f" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {address.schema} TO {user};"
    )


def _refuse_other_encoding(connection: PostgresConnection, address: PostgresAddress) -> None:
    encoding = connection.info.parameter_status("server_encoding") or "UTF8"
    if encoding.upper() not in ("UTF8", "UTF-8", "UNICODE"):
        hint = "create one that is: CREATE DATABASE memory ENCODING 'UTF8' TEMPLATE template0;"
        raise Failed(f"{address.name}: the database is in {encoding}, not in UTF8", hint=hint, code="invalid_config")


def _record_warning(connection: PostgresConnection, notice: psycopg.errors.Diagnostic) -> None:
    with suppress(AttributeError):
        if notice.severity_nonlocalized == "WARNING":
            connection.warned = notice.message_primary or "a warning"


#: The migrations from each layout of the tables to the next; {s} is the schema. A released one never changes.
STEPS = (
    """
    CREATE TABLE {s}.commits (
      stream text NOT NULL, number bigint NOT NULL, commit text NOT NULL, document bytea NOT NULL,
      PRIMARY KEY (stream, number)
    );
    CREATE INDEX commits_first ON {s}.commits (stream) WHERE number = 1;
    CREATE TABLE {s}.rewrites (stream text PRIMARY KEY, times bigint NOT NULL);
    CREATE TABLE {s}.files (name text PRIMARY KEY, tag text NOT NULL, data bytea NOT NULL);
    """,
    """
    CREATE TABLE {s}.writers (name text PRIMARY KEY, number bigint NOT NULL, token text NOT NULL);
    INSERT INTO {s}.writers VALUES ('working', 0, ''), ('read', 0, '');
    CREATE TABLE {s}.agents (
      project text COLLATE "C", agent text COLLATE "C", memory text NOT NULL, PRIMARY KEY (project, agent));
    CREATE TABLE {s}.key_values (
      namespace text COLLATE "C", key text COLLATE "C", value text NOT NULL, PRIMARY KEY (namespace, key));
    CREATE TABLE {s}.memoryos_holders (
      project text COLLATE "C", holder text COLLATE "C", lineage text NOT NULL, rev bigint NOT NULL,
      PRIMARY KEY (project, holder));
    CREATE TABLE {s}.memoryos_parts (
      project text COLLATE "C", holder text COLLATE "C", kind text COLLATE "C", id text COLLATE "C",
      place text NOT NULL, position bigint NOT NULL, held text NOT NULL, vector bytea, rev bigint NOT NULL,
      PRIMARY KEY (project, holder, kind, id));
    CREATE INDEX memoryos_places ON {s}.memoryos_parts (project, holder, rev);
    CREATE TABLE {s}.memoryos_asked (
      project text COLLATE "C", holder text COLLATE "C", request text COLLATE "C", directive text NOT NULL,
      PRIMARY KEY (project, holder, request));
    CREATE TABLE {s}.memoryos_notes (
      project text COLLATE "C", kind text COLLATE "C", name text COLLATE "C", held text NOT NULL,
      PRIMARY KEY (project, kind, name));
    CREATE TABLE {s}.jobs (
      id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, queue text NOT NULL, project text NOT NULL,
      agent text NOT NULL, kind text NOT NULL, subject text NOT NULL, payload text NOT NULL,
      asked bigint NOT NULL DEFAULT 1, attempts bigint NOT NULL DEFAULT 0, due double precision NOT NULL,
      failed bigint NOT NULL DEFAULT 0, error text, UNIQUE (queue, project, agent, kind, subject));
    CREATE INDEX jobs_due ON {s}.jobs (queue, project, agent, failed, due);
    CREATE TABLE {s}.shown (
      project text COLLATE "C" NOT NULL, item text COLLATE "C" NOT NULL, at text COLLATE "C" NOT NULL,
      "in" text NOT NULL, agent text, rowid bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY);
    CREATE INDEX shown_item ON {s}.shown (project, item, at);
    CREATE TABLE {s}.guarded (
      number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, project text COLLATE "C" NOT NULL,
      session text COLLATE "C" NOT NULL, path text COLLATE "C" NOT NULL, item text NOT NULL, what text NOT NULL,
      at text COLLATE "C" NOT NULL, reason text);
    CREATE INDEX guarded_session ON {s}.guarded (project, session);
    CREATE INDEX guarded_path ON {s}.guarded (project, path);
    """,
    """
    ALTER TABLE {s}.layout ADD COLUMN life text NOT NULL DEFAULT gen_random_uuid()::text;
    """,
)
#: The tables of the working state, each with its number column if the SQLite file has no such column.
STATE = {
    **dict.fromkeys(("agents", "key_values", "memoryos_holders", "memoryos_parts", "memoryos_asked", "memoryos_notes")),
    "jobs": "id",
    "shown": "rowid",
    "guarded": "number",
}
#: The errors of two processes that open a root for the first time concurrently: one of them created the tables.
_RACES = (errors.UniqueViolation, errors.DuplicateSchema, errors.DuplicateTable, errors.SerializationFailure)
_TRIES = 10


def prepare(link: PostgresPool, *, creates: bool = True) -> None:
    """Create the tables, or migrate them; raise NotFound if there are none, unless this call *creates* them.

    Raises Failed `invalid_config` for tables of a newer jidomem, and, with the SQL for an administrator, if this user
    may not create them.
    """
    version = link.run(lambda connection: _version(connection, link))
    if not version and not creates:
        raise absent_root(link.address.name)
    if version < len(STEPS):
        link.run(lambda connection: _migrate(connection, link))


def _version(connection: PostgresConnection, link: PostgresPool) -> int:
    """Return the layout of the tables, 0 if there are none; raises Failed for a later one."""
    try:
        row = connection.execute(link.sql("SELECT version FROM {s}.layout")).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    version = int(row[0]) if row is not None else 0
    if version > len(STEPS):
        raise Failed(
            f"{link.address.name}: its tables have layout {version}, and this jidomem knows {len(STEPS)} at most",
            hint="use the version of jidomem that others use there: pip install --upgrade 'jidomem[postgres]'",
            code="invalid_config",
        )
    return version


def _migrate(connection: PostgresConnection, link: PostgresPool) -> None:
    for _ in range(_TRIES):
        try:
            with connection.transaction():
                _apply_steps(connection, link)
            return
        except _RACES:
            if _version(connection, link) == len(STEPS):
                return
    raise Failed(f"{link.address.name}: its tables could not be created", hint="open it again", code="busy")


def _apply_steps(connection: PostgresConnection, link: PostgresPool) -> None:
    by_name = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    if connection.execute(by_name, (link.address.schema,)).fetchone() is None:
        connection.execute(link.sql("CREATE SCHEMA {s}"))
    connection.execute(link.sql("CREATE TABLE IF NOT EXISTS {s}.layout (one integer PRIMARY KEY, version integer)"))
    connection.execute(link.sql("INSERT INTO {s}.layout (one, version) VALUES (1, 0) ON CONFLICT DO NOTHING"))
    connection.execute(link.sql("SELECT version FROM {s}.layout FOR UPDATE"))
    for step in STEPS[_version(connection, link) :]:
        connection.execute(link.sql(step))
    connection.execute(link.sql("UPDATE {s}.layout SET version = %s"), (len(STEPS),))
