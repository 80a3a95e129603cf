"""The working state of a root in PostgreSQL: transactions of many machines, export to a file and import from it."""

import subprocess
import sys
from itertools import pairwise
from threading import Event, Thread

import pytest
from conftest import START

from jidomem.errors import Busy, Failed, InvalidRequest
from jidomem.extras.memoryos import jobs, storage
from jidomem.extras.servers import postgres_state
from jidomem.extras.servers.postgres_state import PostgresState, export_state, import_state
from jidomem.providers.stores import TABLES as KEY_VALUES
from jidomem.runtime import agent_memory, logs
from jidomem.runtime.logs import MAX_READS, SHOWN, GuardLog, ReadLog
from jidomem.runtime.state import State

PUT = "INSERT INTO key_values VALUES ('a', ?, ?) ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value"
GET = "SELECT value FROM key_values WHERE key = ?"
COUNT = f"""
import sys
from jidomem.extras.servers.postgres_state import PostgresState
state = PostgresState(sys.argv[1])
for _ in range(20):
    with state.changing() as store:
        row = store.execute({GET!r}, ("n",)).fetchone()
        store.execute({PUT!r}, ("n", str(int(row[0] if row else 0) + 1)))
"""
ALL = agent_memory.TABLES + storage.TIER_TABLES + storage.NOTE_TABLES + jobs.TABLES + KEY_VALUES + logs.READ_LOG_TABLES


@pytest.fixture
def address(postgres):
    return postgres.address()


@pytest.fixture
def states(address):
    opened = [PostgresState(address), PostgresState(address)]
    yield opened
    for each in opened:
        each.close()


def put(state, key, value="1"):
    with state.changing() as store:
        store.execute(PUT, (key, value))


def get(state, key):
    with state.reading() as store:
        return store.execute(GET, (key,)).fetchone()


def test_concurrent_processes_and_threads_lose_no_write(states, address):
    others = [subprocess.Popen([sys.executable, "-c", COUNT, address]) for _ in range(2)]

    def count(state):
        for _ in range(20):
            with state.changing() as store:
                row = store.execute(GET, ("n",)).fetchone()
                store.execute(PUT, ("n", str(int(row[0] if row else 0) + 1)))

    threads = [Thread(target=count, args=(states[n % 2],)) for n in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert [other.wait() for other in others] == [0, 0]
    assert get(states[0], "n") == ("100",)


def test_an_exception_rolls_back_and_a_nested_transaction_is_refused(states):
    def raising(state):
        with state.changing() as store:
            store.execute(PUT, ("x", "1"))
            with state.reading():
                pass

    with pytest.raises(RuntimeError, match="is in a transaction"):
        raising(states[0])

    assert get(states[0], "x") is None
    put(states[0], "x")
    assert get(states[1], "x") == ("1",)


def test_a_reader_has_one_snapshot_and_does_not_wait(states):
    put(states[0], "x", "old")
    with states[1].reading() as store:
        before = store.execute(GET, ("x",)).fetchone()
        writer = Thread(target=put, args=(states[0], "x", "new"))
        writer.start()
        writer.join()
        assert (before, store.execute(GET, ("x",)).fetchone()) == (("old",), ("old",))
    assert get(states[1], "x") == ("new",)


def test_a_slow_writer_excludes_others_which_get_busy(address, monkeypatch):
    monkeypatch.setattr(postgres_state, "_CHANGING", postgres_state._CHANGING.replace("5000", "50"))
    first, second, has_begun, may_end = PostgresState(address), PostgresState(address), Event(), Event()

    def hold():
        with first.changing():
            has_begun.set()
            may_end.wait()

    thread = Thread(target=hold)
    thread.start()
    has_begun.wait()
    with pytest.raises(Busy, match="has written to postgresql://"):
        put(second, "x")
    may_end.set()
    thread.join()
    put(second, "x")
    assert get(first, "x") == ("1",)
    first.close()
    second.close()


def test_a_connection_lost_before_the_commit_changes_nothing_and_is_replaced(states, postgres):
    put(states[0], "x", "old")

    def lose_connection():
        with states[0].changing() as store:
            store.execute(PUT, ("x", "new"))
            pid = store.execute("SELECT pg_backend_pid()").fetchone()[0]
            postgres.sql(f"SELECT pg_terminate_backend({pid})")
            store.execute(PUT, ("y", "new"))

    with pytest.raises(Failed) as failure:
        lose_connection()

    assert failure.value.code == "store_unreachable"
    assert (get(states[0], "x"), get(states[0], "y")) == (("old",), None)


@pytest.mark.parametrize("is_committed", [True, False], ids=["after the end", "before the end"])
def test_a_connection_lost_at_the_commit_is_settled_by_the_state_of_the_server(
    states, postgres, monkeypatch, is_committed
):
    put(states[0], "x", "old")
    execute = postgres_state.PostgresConnection.execute

    def losing(self, query, *rest, **options):
        if query != "COMMIT":
            return execute(self, query, *rest, **options)
        monkeypatch.undo()
        result = execute(self, query) if is_committed else None
        postgres.sql(f"SELECT pg_terminate_backend({self.info.backend_pid})")
        return execute(self, query) if not is_committed else (execute(self, "SELECT 1"), result)

    monkeypatch.setattr(postgres_state.PostgresConnection, "execute", losing)
    if is_committed:
        put(states[0], "x", "new")
    else:
        with pytest.raises(Failed) as failure:
            put(states[0], "x", "new")
        assert failure.value.code == "store_unreachable"

    assert get(states[1], "x") == (("new",) if is_committed else ("old",))


def test_a_nul_character_is_refused_and_placeholders_are_literal(states):
    with pytest.raises(InvalidRequest, match="PostgreSQL cannot store this"):
        put(states[0], "zero \0 character")
    put(states[0], "100% of ?", "50%?")
    assert get(states[0], "100% of ?") == ("50%?",)


def test_the_lock_of_a_lost_connection_is_released(states, postgres):
    with states[0].lock("p", "ada") as is_held:
        (pid,) = postgres.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")[0]
        postgres.sql(f"SELECT pg_terminate_backend({pid})")
        with states[1].lock("p", "ada", wait=True) as is_acquired:
            assert (is_held, is_acquired) == (True, True)


def test_the_read_log_and_the_guard_log_are_shared_bounded_and_redacted(address):
    logs = [ReadLog(PostgresState(address, "read"), lambda: START) for _ in range(2)]
    for n in range(MAX_READS + 5):
        logs[n % 2].record_shown("p", ["<urn:a>", "<urn:b>", "<urn:a>"], by=f"agent {n}", in_="briefing")
    GuardLog(logs[0], "p").record("s", [("f.py", "<urn:secret>", SHOWN)])

    reads = logs[1].of("p", "<urn:a>", "9")
    assert [each["agent"] for each in reads] == [f"agent {n}" for n in range(MAX_READS + 4, 4, -1)]
    assert GuardLog(logs[1], "p").shown_memories("s") == {"<urn:secret>"}

    logs[0].forget("p", lambda text: "secret" in text or text == "agent 104")

    assert (len(logs[1].of("p", "<urn:a>", "9")), GuardLog(logs[1], "p").shown_memories("s")) == (MAX_READS - 1, set())
    for log in logs:
        log.state.close()


def test_a_writer_stopped_in_a_transaction_is_disconnected_and_changes_nothing(states):
    # C023
    stopped, other = states

    def write_and_stop():
        with stopped.changing() as store:
            store.execute(PUT, ("x", "of the one that stopped"))
            assert store.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)
            store.execute("SET LOCAL idle_in_transaction_session_timeout TO 100")
            put(other, "x", "of the other")

    with pytest.raises(Failed, match="idle-in-transaction timeout"):
        write_and_stop()

    assert get(stopped, "x") == get(other, "x") == ("of the other",)


def test_a_lost_machine_is_detected_within_a_minute_by_keepalives(states):
    with states[0].reading() as store:
        keepalives = [
            store.execute(f"SHOW tcp_keepalives_{name}").fetchone()[0] for name in ("idle", "interval", "count")
        ]
    assert keepalives == ["10", "5", "3"]


def test_the_state_is_exported_to_a_file_and_imported_unchanged(states, postgres, tmp_path):
    assert not export_state(states[0], tmp_path / "nothing", ALL)
    queue = jobs.Jobs(states[0], "memory", lambda: START)
    with states[0].changing() as store:
        queue.ask(store, "p", "ada", jobs.Task("describe", "p1"), jobs.Task("transfer", "p1"))
        store.execute("INSERT INTO memoryos_parts VALUES ('p', 'ada', 'page', 'i', '', 1, '{}', ?, 3)", (b"f\0\xff",))
    put(states[0], "x", "漢\n%")
    log = ReadLog(states[0], lambda: START)
    log.record_shown("p", ["<urn:a>"], by="ada", in_="briefing")

    assert export_state(states[0], tmp_path / "copy", ALL)
    other = PostgresState(postgres.address())
    import_state(other, tmp_path / "copy")

    file = State(tmp_path, ALL)
    file.path.parent.mkdir(exist_ok=True)
    (tmp_path / "copy").rename(file.path)
    queries = [
        "SELECT * FROM key_values",
        "SELECT * FROM memoryos_parts",
        "SELECT kind, asked, due FROM jobs ORDER BY id",
    ]
    queries += ['SELECT project, item, at, "in", agent FROM shown']
    for each in queries:
        results = []
        for state in (states[0], other, file):
            with state.reading() as store:
                results.append(store.execute(each).fetchall())
        assert all(a == b for a, b in pairwise(results))
        assert results[0]
    import_state(other, file.path)  # no write in between
    put(other, "y")
    with pytest.raises(InvalidRequest, match="has a working state of its own"):
        import_state(other, file.path)
    other.close()
    file.close()
