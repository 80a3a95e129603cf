"""The tables of a root in PostgreSQL: made at the first opening, brought up to date at a later one."""

from __future__ import annotations

from typing import LiteralString

from psycopg import errors
from psycopg.sql import SQL, Composed, Identifier

from jidomem.errors import Failed
from jidomem.shared.postgres_link import Connection, Link

#: What brings the tables from each layout to the next; {s} is the schema. None is changed once it was released.
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
)
#: What two that open a root for the first time at once may run into: one of them made it.
_RACES = (errors.UniqueViolation, errors.DuplicateSchema, errors.DuplicateTable, errors.SerializationFailure)
_TRIES = 10


def prepare(link: Link) -> None:
    """Make the tables, or bring them up to date.

    Raises Failed `invalid_config` for those of a newer jidomem, and where this user may not make them, with the SQL
    that an administrator runs.
    """
    if link.run(lambda connection: _version(connection, link)) < len(STEPS):
        link.run(lambda connection: _made(connection, link))


def _version(connection: Connection, link: Link) -> int:
    """Return which layout the tables have, 0 where there are none; raises Failed for one of a later time."""
    schema = link.address.schema
    try:
        row = connection.execute(_sql("SELECT version FROM {s}.layout", schema)).fetchone()
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


def _made(connection: Connection, link: Link) -> None:
    for _ in range(_TRIES):
        try:
            with connection.transaction():
                _step_up(connection, link)
            return
        except _RACES:
            if _version(connection, link) == len(STEPS):
                return
    raise Failed(f"{link.address.name}: its tables could not be made", hint="open it again", code="busy")


def _step_up(connection: Connection, link: Link) -> None:
    """Do each step that is missing, in a transaction."""
    schema = link.address.schema
    if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None:
        connection.execute(_sql("CREATE SCHEMA {s}", schema))
    connection.execute(_sql("CREATE TABLE IF NOT EXISTS {s}.layout (one integer PRIMARY KEY, version integer)", schema))
    connection.execute(_sql("INSERT INTO {s}.layout VALUES (1, 0) ON CONFLICT DO NOTHING", schema))
    connection.execute(_sql("SELECT version FROM {s}.layout FOR UPDATE", schema))
    for step in STEPS[_version(connection, link) :]:
        connection.execute(_sql(step, schema))
    connection.execute(_sql("UPDATE {s}.layout SET version = %s", schema), (len(STEPS),))


def _sql(text: LiteralString, schema: str) -> Composed:
    """Return a statement of ours, with the schema in place."""
    return SQL(text).format(s=Identifier(schema))
