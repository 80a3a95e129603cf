"""The log in PostgreSQL: addresses, rights, layouts, lost connections, and notifications."""

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
from jidomem.extras.servers.log import LogEntry, Reach
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
    read = postgres_connection.read(address)
    assert read.name == shown
    assert "s3" not in read.name + repr(read)


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
def test_what_is_no_address_is_refused_and_nothing_of_its_password_shown(address):
    with pytest.raises(InvalidRequest) as refused:
        PostgresLog(address)
    assert "s3" not in f"{refused.value.detail}{refused.value.hint}{refused.value.__cause__}"
    assert refused.value.hint


def test_several_hosts_are_asked_for_the_one_that_is_written_to():
    assert postgres_connection.read("postgresql://a,b/m").options["target_session_attrs"] == "read-write"
    own = postgres_connection.read("postgresql://a,b/m?target_session_attrs=any&connect_timeout=9").options
    assert (own["target_session_attrs"], own["connect_timeout"]) == ("any", "9")


# rights and layouts


def test_who_may_not_come_in_is_told_without_the_password(postgres):
    for wrong in (
        postgres.url.replace(PASSWORD, "wr0ng"),
        postgres.url + "_none",
        "postgresql://u:wr0ng@127.0.0.1:9/x",
    ):
        with pytest.raises(Failed) as refused:
            PostgresLog(wrong, wait=60)
        told = f"{refused.value.detail} {refused.value.hint}"
        assert (refused.value.code, "wr0ng" in told, PASSWORD in told) == ("store_unreachable", False, False)


def test_a_role_that_may_make_nothing_is_told_what_an_administrator_runs(postgres, address):
    postgres.sql("CREATE ROLE plain LOGIN PASSWORD 'p1ain'")
    theirs = address.replace("jido:", "plain:").replace(PASSWORD, "p1ain")
    with pytest.raises(Failed) as refused:
        PostgresLog(theirs)
    schema = schema_of(address)
    assert refused.value.code == "invalid_config"
    first = f"CREATE SCHEMA {schema} AUTHORIZATION plain;"
    assert first in refused.value.hint
    PostgresLog(address).close()  # its owner makes the tables
    with pytest.raises(Failed) as refused:
        PostgresLog(theirs)
    for statement in refused.value.hint.partition("GRANT")[2].split(";"):
        if statement.strip():
            postgres.sql("GRANT" * (not statement.strip().startswith("GRANT")) + statement)

    least = PostgresLog(theirs)
    fill(least, 2)
    least.rewrite(ONE, {commit(1): b"new"})
    assert least.put("f", b"x")
    assert (least.reach([ONE])[ONE], least.names()) == (Reach(2, 1), ["f"])
    least.close()
    postgres.sql(f"DROP SCHEMA {schema} CASCADE")
    postgres.sql("DROP ROLE plain")


def test_tables_that_are_gone_are_said_with_what_brings_them_back(postgres, log, address):
    fill(log, 2)
    postgres.sql(f"DROP SCHEMA {address.rpartition('=')[2]} CASCADE")

    for asked in (partial(log.reach, [ONE]), partial(log.append, ONE, 3, commit(3), document(3))):
        with pytest.raises(Failed, match="has lost its tables") as told:
            asked()
        assert (told.value.code, "jidomem root restore" in told.value.hint) == ("store_unreachable", True)


def test_tables_of_a_later_time_are_refused_by_name(postgres, log, address):
    postgres.sql(f"UPDATE {schema_of(address)}.layout SET version = 99")
    with pytest.raises(Failed, match=r"its tables have layout 99, and this jidomem knows \d at most") as refused:
        PostgresLog(address)
    assert (refused.value.code, "pip install" in refused.value.hint) == ("invalid_config", True)


def test_tables_of_an_earlier_time_are_brought_up_to_date(address, monkeypatch):
    with monkeypatch.context() as then:
        then.setattr(postgres_connection, "STEPS", postgres_connection.STEPS[:1])
        first = PostgresLog(address)
        written = fill(first, 3)
    now = PostgresLog(address)
    assert list(now.read(ONE)) == list(first.read(ONE)) == written
    with psycopg.connect(address.partition("?")[0]) as connection:
        (found,) = connection.execute(f"SELECT version FROM {schema_of(address)}.layout").fetchall()
    assert found == (len(postgres_connection.STEPS),)
    now.close()
    first.close()


def test_processes_that_open_a_root_for_the_first_time_at_once_all_get_in(address):
    opening = [subprocess.Popen([sys.executable, "-c", OPEN, address], stderr=subprocess.PIPE) for _ in range(3)]
    with ThreadPoolExecutor(6) as threads:
        opened = [*threads.map(PostgresLog, [address] * 6)]
    assert [(process.communicate()[1], process.returncode) for process in opening] == [(b"", 0)] * 3
    assert [log.append(ONE, 1, commit(1), b"") for log in opened] == [True] * 6
    for log in opened:
        log.close()


# connections


def ended(postgres):
    """End every connection to the server."""
    return postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                        " AND backend_type = 'client backend'")  # fmt: skip


def test_connections_that_were_lost_are_had_again(postgres, log):
    written = fill(log, 3)
    log.wait(ONE, Reach(), 0)
    for number in range(4, 8):
        assert ended(postgres)
        if number % 2:
            assert log.reach([ONE])[ONE].length == number - 1
        written += fill(log, number, first=number)
    assert list(log.read(ONE)) == written


@pytest.mark.parametrize("reached", [True, False], ids=["kept", "not kept"])
def test_an_append_whose_answer_was_lost_is_settled_and_kept_once(postgres, log, monkeypatch, reached):
    fill(log, 2)
    execute, tries = postgres_connection.PostgresConnection.execute, []

    def losing(self, query, *rest, **more):
        tries.append(query)
        if len(tries) > 1:
            return execute(self, query, *rest, **more)
        if reached:
            execute(self, query, *rest, **more)
        postgres.sql(f"SELECT pg_terminate_backend({self.info.backend_pid})")
        return execute(self, "SELECT 1")

    monkeypatch.setattr(postgres_connection.PostgresConnection, "execute", losing)

    assert log.append(ONE, 3, commit(3), document(3)) is True

    monkeypatch.undo()
    assert len(tries) > 1
    assert list(log.read(ONE, 2)) == [LogEntry(3, commit(3), document(3))]


def test_an_append_that_cannot_be_settled_is_told_with_its_commit(postgres, address, monkeypatch):
    log = PostgresLog(address, wait=0.0)
    execute = postgres_connection.PostgresConnection.execute

    def losing(self, query, *rest, **more):
        execute(self, query, *rest, **more)
        postgres.sql(f"SELECT pg_terminate_backend({self.info.backend_pid})")
        return execute(self, "SELECT 1")

    with monkeypatch.context() as lost:
        lost.setattr(postgres_connection.PostgresConnection, "execute", losing)
        with pytest.raises(Failed, match=commit(1)) as unknown:
            log.append(ONE, 1, commit(1), document(1))

    assert (unknown.value.code, "same idempotency key" in unknown.value.hint) == ("outcome_unknown", True)
    assert log.append(ONE, 1, commit(1), document(1)) is True
    assert log.reach([ONE])[ONE].length == 1
    log.close()


def test_a_server_that_does_not_answer_is_given_up_after_a_while(postgres, address, monkeypatch):
    log = PostgresLog(address, wait=0.0)
    fill(log, 1)
    monkeypatch.setattr(postgres_connection.PostgresConnection, "longest", 0.2)
    with psycopg.connect(postgres.url) as holding:
        holding.execute(f"LOCK {schema_of(address)}.commits")
        with pytest.raises(Failed, match=r"no answer for 0.2 s") as failure:
            log.reach([ONE])
        with pytest.raises(Failed) as unknown:
            log.append(ONE, 2, commit(2), document(2))
    assert (failure.value.code, unknown.value.code) == ("store_unreachable", "outcome_unknown")
    log.close()


def test_an_append_whose_wait_for_durability_was_cut_short_is_not_acknowledged(postgres, log, monkeypatch):
    execute, warned = postgres_connection.PostgresConnection.execute, []

    def warning(self, query, *rest, **more):
        done = execute(self, query, *rest, **more)
        if not warned:
            warned.append(execute(self, "DO $$ BEGIN RAISE WARNING 'canceling wait for replication'; END $$"))
        return done

    monkeypatch.setattr(postgres_connection.PostgresConnection, "execute", warning)
    asked = []
    monkeypatch.setattr(log, "_try_append", lambda *given, of=log._try_append: asked.append(1) or of(*given))

    assert log.append(ONE, 1, commit(1), document(1)) is True
    assert len(asked) == 2
    assert log.reach([ONE])[ONE].length == 1


def test_more_threads_than_connections_take_turns(log, address):
    with ThreadPoolExecutor(24) as threads:
        assert {*threads.map(lambda _: log.reach([ONE])[ONE], range(200))} == {Reach()}
    with psycopg.connect(address.partition("?")[0]) as connection:
        (found,) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jidomem'"
        ).fetchall()
    assert 0 < found[0] <= postgres_connection.SIZE


def test_many_entries_are_kept_together_or_not_at_all(log):
    written = fill(log, 2)
    more = [LogEntry(number, commit(number), document(number)) for number in range(3, 60)]
    rows = [(entry.commit, entry.document) for entry in more]

    assert log.append_many(ONE, 2, rows) is False
    with pytest.raises(ValueError, match="leaves a gap"):
        log.append_many(ONE, 4, rows)
    assert log.append_many(ONE, 3, rows) is True
    assert log.append_many(ONE, 3, rows) is True
    assert log.append_many(ONE, 60, []) is True
    assert log.append_many(ONE, 3, [*rows, (commit(60), document(60)), (commit(61), document(61))]) is False
    assert list(log.read(ONE)) == written + more


# who is told


def listens(address):
    """Whether a connection to the database listens to the news of the log."""
    with psycopg.connect(address.partition("?")[0]) as connection:
        news = f'LISTEN "{schema_of(address)}_news"'
        return bool(connection.execute("SELECT 1 FROM pg_stat_activity WHERE query = %s", [news]).fetchall())


def hears(log):
    """Whether the log trusts that it is told, and looks seldom."""
    return log._listener._is_receiving


def test_who_waits_hears_at_once_and_asks_seldom(log, address, monkeypatch):
    monkeypatch.setattr(postgres_log, "SLOW_POLL", LONG)
    other, heard = PostgresLog(address), []
    waiting = threading.Thread(target=lambda: heard.append(other.wait(ONE, Reach(), LONG * 5)), daemon=True)
    waiting.start()
    while not listens(address):
        waiting.join(0.01)
    fill(log, 1)
    waiting.join(LONG / 2)
    assert heard == [Reach(1)]
    other.close()


def test_a_waiting_thread_without_notifications_polls(log, address, monkeypatch):
    monkeypatch.setattr(PostgresLog, "_supports_notify", lambda self, connection: False)
    deaf, heard = PostgresLog(address), []
    waiting = threading.Thread(target=lambda: heard.append(deaf.wait(ONE, Reach(), LONG * 5)), daemon=True)
    waiting.start()
    fill(log, 1)
    waiting.join(LONG)
    assert heard == [Reach(1)]
    assert deaf.append(ONE, 2, commit(2), document(2))
    deaf.close()


def test_a_pooler_that_passes_nothing_on_is_found_out(log, address, monkeypatch):
    monkeypatch.setattr(postgres_log, "SLOW_POLL", 0.05)
    other, number = PostgresLog(address), 0
    other.wait(ONE, Reach(), 0)
    while not hears(other):
        other.wait(ONE, Reach(), 0.01)

    def waited():
        """One that waits while the next entry is kept."""
        later = threading.Timer(0.02, lambda: fill(log, number, first=number))
        later.start()
        assert other.wait(ONE, Reach(number - 1), LONG) == Reach(number)
        later.join()

    log._notifies = False  # as where what is told gets lost on its way
    while hears(other):
        number += 1
        waited()
    log._notifies = True
    while not hears(other):
        number += 1
        waited()
    other.close()


def test_whoever_waits_ends_when_the_log_is_closed(address):
    log, heard = PostgresLog(address), []
    waiting = threading.Thread(target=lambda: heard.append(log.wait(ONE, Reach(), LONG * 5)), daemon=True)
    waiting.start()
    while not listens(address):
        waiting.join(0.01)
    log.close()
    waiting.join(LONG)
    assert heard == [Reach()]
