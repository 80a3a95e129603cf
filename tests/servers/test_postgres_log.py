"""The log in PostgreSQL: addresses, permissions, layouts, lost connections and notifications."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
import pytest
from log_contract import LONG, ONE, commit, document, fill
from postgres_server import PASSWORD

from jidomem.errors import Failed, InvalidRequest
from jidomem.extras.servers import postgres_connection, postgres_log
from jidomem.extras.servers.log import LogEntry, StreamPosition
from jidomem.extras.servers.postgres_log import PostgresLog

OPEN = "import sys; from jidomem.extras.servers.postgres_log import PostgresLog; PostgresLog(sys.argv[1]).close()"


@pytest.fixture
def address(postgres):
    return postgres.address()


@pytest.fixture
def log(address):
    opened = PostgresLog(address)
    yield opened
    opened.close()


def schema_of(address):
    return address.rpartition("=")[2]


# the address


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ada:s3cret@db/memory", "postgresql://ada@db/memory"),
        ("postgres://ada@db:5433/memory?password=s3cret&sslmode=require", "postgresql://ada@db:5433/memory"),
        ("postgresql://ada:s3%2Fcret@a:1,b:2/m?schema=team", "postgresql://ada@a:1,b:2/m?schema=team"),
        ("postgresql:///m?host=/run/pg&schema=jidomem", "postgresql://%2Frun%2Fpg/m"),
        ("postgresql://a,b/m?port=5433", "postgresql://a:5433,b:5433/m"),
        ("postgresql://?service=team", "postgresql:///?service=team"),
    ],
)
def test_an_address_is_shown_without_its_password(address, shown):
    parsed = postgres_connection.read(address)
    assert parsed.name == shown
    assert "s3" not in parsed.name + repr(parsed)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:s3cret@db:port/m?hots=x",
        "postgresql://ada:s3cret@db/m?hots=x",
        "postgresql://ada:s3%zzcret@db/m",
        "postgresql://ada:s3cret@db/m?schema=Bad-One",
        "postgresql://ada:s3cret@db/m?schema=",
        "postgresql://[ada:s3cret",
        "postgresql://ada:x/s3cret@db/m",
        "postgresql://ada:x@s3cret@db/m",
        "postgresql://ada:x?s3cret@db/m",
    ],
)
def test_an_invalid_address_is_refused_without_its_password(address):
    with pytest.raises(InvalidRequest) as refused:
        PostgresLog(address)
    assert "s3" not in f"{refused.value.detail}{refused.value.hint}{refused.value.__cause__}"
    assert refused.value.hint


@pytest.mark.parametrize(("given", "meant"), [("shema=x", "'schema'"), ("sslmod=require&schema=x", "'sslmode'")])
def test_an_unknown_parameter_of_an_address_is_named_with_the_one_that_is_meant(given, meant):
    with pytest.raises(InvalidRequest, match=f"no parameter '{given.partition('=')[0]}'") as refused:
        PostgresLog(f"postgresql://ada:s3cret@db/m?{given}")
    assert meant in refused.value.hint


def test_several_hosts_are_searched_for_the_writable_one():
    assert postgres_connection.read("postgresql://a,b/m").options["target_session_attrs"] == "read-write"
    given = postgres_connection.read("postgresql://a,b/m?target_session_attrs=any&connect_timeout=9").options
    assert (given["target_session_attrs"], given["connect_timeout"]) == ("any", "9")


# rights and layouts


def test_a_refused_login_is_reported_without_the_password(postgres):
    for wrong in (
        postgres.url.replace(PASSWORD, "wr0ng"),
        postgres.url + "_none",
        "postgresql://u:wr0ng@127.0.0.1:9/x",
    ):
        with pytest.raises(Failed) as refused:
            PostgresLog(wrong, wait=60)
        text = f"{refused.value.detail} {refused.value.hint}"
        assert (refused.value.code, "wr0ng" in text, PASSWORD in text) == ("store_unreachable", False, False)


def test_a_role_without_permission_is_told_the_statements_for_an_administrator(postgres, address):
    postgres.sql("CREATE ROLE plain LOGIN PASSWORD 'p1ain'")
    plain_address = address.replace("jido:", "plain:").replace(PASSWORD, "p1ain")
    with pytest.raises(Failed) as refused:
        PostgresLog(plain_address)
    schema = schema_of(address)
    assert refused.value.code == "invalid_config"
    first = f"CREATE SCHEMA {schema} AUTHORIZATION plain;"
    assert first in refused.value.hint
    PostgresLog(address).close()  # its owner makes the tables
    with pytest.raises(Failed) as refused:
        PostgresLog(plain_address)
    for statement in refused.value.hint.partition("GRANT")[2].split(";"):
        if statement.strip():
            postgres.sql("GRANT" * (not statement.strip().startswith("GRANT")) + statement)

    permitted = PostgresLog(plain_address)
    fill(permitted, 2)
    permitted.rewrite(ONE, {commit(1): b"new"})
    assert permitted.put("f", b"x")
    assert (permitted.positions([ONE])[ONE], permitted.names()) == (StreamPosition(2, 1), ["f"])
    permitted.close()
    postgres.sql(f"DROP SCHEMA {schema} CASCADE")
    postgres.sql("DROP ROLE plain")


def test_lost_tables_are_reported_with_the_command_that_restores_them(postgres, log, address):
    fill(log, 2)
    postgres.sql(f"DROP SCHEMA {address.rpartition('=')[2]} CASCADE")

    for call in (partial(log.positions, [ONE]), partial(log.append, ONE, 3, commit(3), document(3))):
        with pytest.raises(Failed, match="has lost its tables") as failure:
            call()
        assert (failure.value.code, "jidomem root restore" in failure.value.hint) == ("store_unreachable", True)


def test_a_newer_layout_of_the_tables_is_refused(postgres, log, address):
    postgres.sql(f"UPDATE {schema_of(address)}.layout SET version = 99")
    with pytest.raises(Failed, match=r"its tables have layout 99, and this jidomem knows \d at most") as refused:
        PostgresLog(address)
    assert (refused.value.code, "pip install" in refused.value.hint) == ("invalid_config", True)


def test_an_older_layout_of_the_tables_is_migrated(address, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(postgres_connection, "STEPS", postgres_connection.STEPS[:1])
        first = PostgresLog(address)
        entries = fill(first, 3)
    migrated = PostgresLog(address)
    assert list(migrated.read(ONE)) == list(first.read(ONE)) == entries
    with psycopg.connect(address.partition("?")[0]) as connection:
        (layout,) = connection.execute(f"SELECT version FROM {schema_of(address)}.layout").fetchall()
    assert layout == (len(postgres_connection.STEPS),)
    migrated.close()
    first.close()


def test_processes_that_open_a_new_root_at_once_all_succeed(address):
    processes = [subprocess.Popen([sys.executable, "-c", OPEN, address], stderr=subprocess.PIPE) for _ in range(3)]
    with ThreadPoolExecutor(6) as threads:
        logs = [*threads.map(PostgresLog, [address] * 6)]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 3
    assert [log.append(ONE, 1, commit(1), b"") for log in logs] == [True] * 6
    for log in logs:
        log.close()


# connections


def end_connections(postgres):
    """End every connection to the server."""
    return postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                        " AND backend_type = 'client backend'")  # fmt: skip


def test_lost_connections_are_opened_again(postgres, log):
    entries = fill(log, 3)
    log.wait(ONE, StreamPosition(), 0)
    for number in range(4, 8):
        assert end_connections(postgres)
        if number % 2:
            assert log.positions([ONE])[ONE].length == number - 1
        entries += fill(log, number, first=number)
    assert list(log.read(ONE)) == entries


@pytest.mark.parametrize("is_stored", [True, False], ids=["kept", "not kept"])
def test_an_append_with_a_lost_answer_is_stored_once(postgres, log, monkeypatch, is_stored):
    fill(log, 2)
    execute, queries = postgres_connection.PostgresConnection.execute, []

    def losing(self, query, *rest, **options):
        queries.append(query)
        if len(queries) > 1:
            return execute(self, query, *rest, **options)
        if is_stored:
            execute(self, query, *rest, **options)
        postgres.sql(f"SELECT pg_terminate_backend({self.info.backend_pid})")
        return execute(self, "SELECT 1")

    monkeypatch.setattr(postgres_connection.PostgresConnection, "execute", losing)

    assert log.append(ONE, 3, commit(3), document(3)) is True

    monkeypatch.undo()
    assert len(queries) > 1
    assert list(log.read(ONE, 2)) == [LogEntry(3, commit(3), document(3))]


def test_an_append_that_cannot_be_settled_is_reported_with_its_commit(postgres, address, monkeypatch):
    log = PostgresLog(address, wait=0.0)
    execute = postgres_connection.PostgresConnection.execute

    def losing(self, query, *rest, **options):
        execute(self, query, *rest, **options)
        postgres.sql(f"SELECT pg_terminate_backend({self.info.backend_pid})")
        return execute(self, "SELECT 1")

    with monkeypatch.context() as lost:
        lost.setattr(postgres_connection.PostgresConnection, "execute", losing)
        with pytest.raises(Failed, match=commit(1)) as unknown:
            log.append(ONE, 1, commit(1), document(1))

    assert (unknown.value.code, "same idempotency key" in unknown.value.hint) == ("outcome_unknown", True)
    assert log.append(ONE, 1, commit(1), document(1)) is True
    assert log.positions([ONE])[ONE].length == 1
    log.close()


def test_a_server_that_does_not_answer_is_reported_after_a_timeout(postgres, address, monkeypatch):
    log = PostgresLog(address, wait=0.0)
    fill(log, 1)
    monkeypatch.setattr(postgres_connection.PostgresConnection, "longest", 0.2)
    with psycopg.connect(postgres.url) as blocker:
        blocker.execute(f"LOCK {schema_of(address)}.commits")
        with pytest.raises(Failed, match=r"no answer for 0.2 s") as failure:
            log.positions([ONE])
        with pytest.raises(Failed) as unknown:
            log.append(ONE, 2, commit(2), document(2))
    assert (failure.value.code, unknown.value.code) == ("store_unreachable", "outcome_unknown")
    log.close()


def test_a_look_for_new_commits_is_given_up_earlier_than_a_long_statement(postgres, address, monkeypatch):
    log = PostgresLog(address, wait=0.0)
    fill(log, 1)
    monkeypatch.setattr(postgres_log, "MAX_LOOKUP_SECONDS", 0.2)
    with psycopg.connect(postgres.url) as blocker:
        blocker.execute(f"LOCK {schema_of(address)}.commits, {schema_of(address)}.files")
        for call in (log.streams, partial(log.positions, [ONE]), partial(log.get, "f"), log.check_writable):
            with pytest.raises(Failed, match=r"did not answer: no answer for 0.2 s"):
                call()
    log.close()


def test_a_server_that_answers_and_refuses_is_not_said_to_be_away(postgres, address):
    log = PostgresLog(f"{address}&options=-c%20lock_timeout%3D100", wait=0.0)
    with psycopg.connect(postgres.url) as blocker:
        blocker.execute(f"LOCK {schema_of(address)}.commits")
        with pytest.raises(Failed, match="refused: canceling statement due to lock timeout") as refusal:
            log.append(ONE, 1, commit(1), document(1))
    assert (refusal.value.code, "pg_locks" in refusal.value.hint) == ("store_unreachable", True)
    assert log.append(ONE, 1, commit(1), document(1))
    log.close()


@pytest.mark.parametrize(
    ("limit", "password", "message", "hint"),
    [
        (0, "x", "too many connections for role", "CONNECTION LIMIT of the role"),
        (5, "y", "password authentication failed", "admits this user"),
    ],
)
def test_a_connection_that_is_refused_is_not_said_to_be_unanswered(postgres, address, limit, password, message, hint):
    postgres.sql(f"CREATE ROLE few LOGIN PASSWORD 'x' CONNECTION LIMIT {limit}")
    try:
        with pytest.raises(Failed, match=f"refused the connection: .*{message}") as refusal:
            PostgresLog(address.replace(f"jido:{PASSWORD}", f"few:{password}"), wait=0.0)
    finally:
        postgres.sql("DROP ROLE few")
    assert (refusal.value.code, hint in refusal.value.hint) == ("store_unreachable", True)


def test_a_probe_is_as_large_as_the_commit_that_was_refused_and_stores_nothing(postgres, log, address):
    fill(log, 1)
    table, function = f"{schema_of(address)}.commits", f"{schema_of(address)}.room"
    postgres.sql(f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
                 " IF length(new.document) > 1000 THEN RAISE disk_full; END IF; RETURN new; END'")  # fmt: skip
    postgres.sql(f"CREATE TRIGGER room BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()")
    log.check_writable()
    with pytest.raises(Failed, match="refused"):
        log.append(ONE, 2, commit(2), bytes(2000))

    for size in (0, 500):
        with pytest.raises(Failed, match="refused") as full:
            log.check_writable(size)
        assert "free space" in full.value.hint
    assert log.append(ONE, 2, commit(2), b"short")
    log.check_writable()
    with pytest.raises(Failed, match="refused"):
        log.check_writable(2000)
    assert [entry.number for entry in log.read(ONE)] == [1, 2]
    assert log.streams() == [ONE]


def test_an_append_whose_replication_was_cancelled_is_repeated(postgres, log, monkeypatch):
    execute, warnings = postgres_connection.PostgresConnection.execute, []

    def warning(self, query, *rest, **options):
        result = execute(self, query, *rest, **options)
        if not warnings:
            warnings.append(execute(self, "DO $$ BEGIN RAISE WARNING 'canceling wait for replication'; END $$"))
        return result

    monkeypatch.setattr(postgres_connection.PostgresConnection, "execute", warning)
    attempts = []
    monkeypatch.setattr(log, "_try_append", lambda *given, of=log._try_append: attempts.append(1) or of(*given))

    assert log.append(ONE, 1, commit(1), document(1)) is True
    assert len(attempts) == 2
    assert log.positions([ONE])[ONE].length == 1


def test_more_threads_than_connections_share_them(log, address):
    with ThreadPoolExecutor(24) as threads:
        assert {*threads.map(lambda _: log.positions([ONE])[ONE], range(200))} == {StreamPosition()}
    with psycopg.connect(address.partition("?")[0]) as connection:
        (connections,) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jidomem'"
        ).fetchall()
    assert 0 < connections[0] <= postgres_connection.SIZE


def test_many_entries_are_appended_together_or_not_at_all(log):
    entries = fill(log, 2)
    further = [LogEntry(number, commit(number), document(number)) for number in range(3, 60)]
    rows = [(entry.commit, entry.document) for entry in further]

    assert log.append_many(ONE, 2, rows) is False
    with pytest.raises(ValueError, match="leaves a gap"):
        log.append_many(ONE, 4, rows)
    assert log.append_many(ONE, 3, rows) is True
    assert log.append_many(ONE, 3, rows) is True
    assert log.append_many(ONE, 60, []) is True
    assert log.append_many(ONE, 3, [*rows, (commit(60), document(60)), (commit(61), document(61))]) is False
    assert list(log.read(ONE)) == entries + further


# notifications


def is_listening(address):
    """Whether a connection to the database listens to the notifications of the log."""
    with psycopg.connect(address.partition("?")[0]) as connection:
        news = f'LISTEN "{schema_of(address)}_news"'
        return bool(connection.execute("SELECT 1 FROM pg_stat_activity WHERE query = %s", [news]).fetchall())


def is_notified(log):
    """Whether the log relies on notifications, and polls seldom."""
    return log._listener._is_receiving


def test_a_waiting_thread_is_notified_at_once(log, address, monkeypatch):
    monkeypatch.setattr(postgres_log, "SLOW_POLL", LONG)
    other, reaches = PostgresLog(address), []
    thread = threading.Thread(target=lambda: reaches.append(other.wait(ONE, StreamPosition(), LONG * 5)), daemon=True)
    thread.start()
    while not is_listening(address):
        thread.join(0.01)
    fill(log, 1)
    thread.join(LONG / 2)
    assert reaches == [StreamPosition(1)]
    other.close()


def test_a_waiting_thread_without_notifications_polls(log, address, monkeypatch):
    monkeypatch.setattr(PostgresLog, "_supports_notify", lambda self, connection: False)
    polling, reaches = PostgresLog(address), []
    thread = threading.Thread(target=lambda: reaches.append(polling.wait(ONE, StreamPosition(), LONG * 5)), daemon=True)
    thread.start()
    fill(log, 1)
    thread.join(LONG)
    assert reaches == [StreamPosition(1)]
    assert polling.append(ONE, 2, commit(2), document(2))
    polling.close()


def test_a_pooler_that_drops_notifications_is_detected(log, address, monkeypatch):
    monkeypatch.setattr(postgres_log, "SLOW_POLL", 0.05)
    other, number = PostgresLog(address), 0
    other.wait(ONE, StreamPosition(), 0)
    while not is_notified(other):
        other.wait(ONE, StreamPosition(), 0.01)

    def wait_for_append():
        """Wait while the next entry is appended."""
        timer = threading.Timer(0.02, lambda: fill(log, number, first=number))
        timer.start()
        assert other.wait(ONE, StreamPosition(number - 1), LONG) == StreamPosition(number)
        timer.join()

    log._notifies = False  # as where notifications get lost on their way
    while is_notified(other):
        number += 1
        wait_for_append()
    log._notifies = True
    while not is_notified(other):
        number += 1
        wait_for_append()
    other.close()


def test_a_wait_ends_when_the_log_is_closed(address):
    log, reaches = PostgresLog(address), []
    thread = threading.Thread(target=lambda: reaches.append(log.wait(ONE, StreamPosition(), LONG * 5)), daemon=True)
    thread.start()
    while not is_listening(address):
        thread.join(0.01)
    log.close()
    thread.join(LONG)
    assert reaches == [StreamPosition()]
