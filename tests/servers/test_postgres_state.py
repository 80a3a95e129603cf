"""The working state of a root in PostgreSQL: transactions of many machines, and the way into a file and back."""

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
    made = [PostgresState(address), PostgresState(address)]
    yield made
    for each in made:
        each.close()


def put(state, key, value="1"):
    with state.changing() as store:
        store.execute(PUT, (key, value))


def get(state, key):
    with state.reading() as store:
        return store.execute(GET, (key,)).fetchone()


def test_processes_and_threads_that_write_at_once_lose_nothing(states, address):
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


def test_what_is_raised_undoes_all_and_a_transaction_in_another_is_refused(states):
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


def test_a_reader_sees_one_moment_and_does_not_wait(states):
    put(states[0], "x", "old")
    with states[1].reading() as store:
        before = store.execute(GET, ("x",)).fetchone()
        writer = Thread(target=put, args=(states[0], "x", "new"))
        writer.start()
        writer.join()
        assert (before, store.execute(GET, ("x",)).fetchone()) == (("old",), ("old",))
    assert get(states[1], "x") == ("new",)


def test_a_writer_that_takes_too_long_excludes_others_which_get_busy(address, monkeypatch):
    monkeypatch.setattr(postgres_state, "_CHANGING", postgres_state._CHANGING.replace("5000", "50"))
    one, two, begun, end = PostgresState(address), PostgresState(address), Event(), Event()

    def hold():
        with one.changing():
            begun.set()
            end.wait()

    thread = Thread(target=hold)
    thread.start()
    begun.wait()
    with pytest.raises(Busy, match="has written to postgresql://"):
        put(two, "x")
    end.set()
    thread.join()
    put(two, "x")
    assert get(one, "x") == ("1",)
    one.close()
    two.close()


def test_a_connection_lost_before_the_end_changes_nothing_and_the_next_transaction_has_another(states, postgres):
    put(states[0], "x", "old")

    def lost():
        with states[0].changing() as store:
            store.execute(PUT, ("x", "new"))
            pid = store.execute("SELECT pg_backend_pid()").fetchone()[0]
            postgres.sql(f"SELECT pg_terminate_backend({pid})")
            store.execute(PUT, ("y", "new"))

    with pytest.raises(Failed) as failure:
        lost()

    assert failure.value.code == "store_unreachable"
    assert (get(states[0], "x"), get(states[0], "y")) == (("old",), None)


@pytest.mark.parametrize("reached", [True, False], ids=["after the end", "before the end"])
def test_a_connection_lost_at_the_end_is_settled_by_what_the_server_has(states, postgres, monkeypatch, reached):
    put(states[0], "x", "old")
    execute = postgres_state.PostgresConnection.execute

    def losing(self, query, *rest, **more):
        if query != "COMMIT":
            return execute(self, query, *rest, **more)
        monkeypatch.undo()
        done = execute(self, query) if reached else None
        postgres.sql(f"SELECT pg_terminate_backend({self.info.backend_pid})")
        return execute(self, query) if not reached else (execute(self, "SELECT 1"), done)

    monkeypatch.setattr(postgres_state.PostgresConnection, "execute", losing)
    if reached:
        put(states[0], "x", "new")
    else:
        with pytest.raises(Failed) as failure:
            put(states[0], "x", "new")
        assert failure.value.code == "store_unreachable"

    assert get(states[1], "x") == (("new",) if reached else ("old",))


def test_a_text_that_postgresql_has_no_form_for_is_refused(states):
    with pytest.raises(InvalidRequest, match="PostgreSQL cannot store this"):
        put(states[0], "zero \0 character")
    put(states[0], "100% of ?", "50%?")
    assert get(states[0], "100% of ?") == ("50%?",)


def test_the_lock_of_a_lost_connection_is_released(states, postgres):
    with states[0].lock("p", "ada") as mine:
        (pid,) = postgres.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")[0]
        postgres.sql(f"SELECT pg_terminate_backend({pid})")
        with states[1].lock("p", "ada", wait=True) as now_mine:
            assert (mine, now_mine) == (True, True)


def test_what_was_shown_and_guarded_is_kept_for_all_servers(address):
    logs = [ReadLog(PostgresState(address, "read"), lambda: START) for _ in range(2)]
    for n in range(MAX_READS + 5):
        logs[n % 2].shown("p", ["<urn:a>", "<urn:b>", "<urn:a>"], by=f"agent {n}", in_="briefing")
    GuardLog(logs[0], "p").keep("s", [("f.py", "<urn:secret>", SHOWN)])

    told = logs[1].of("p", "<urn:a>", "9")
    assert [each["agent"] for each in told] == [f"agent {n}" for n in range(MAX_READS + 4, 4, -1)]
    assert GuardLog(logs[1], "p").seen("s") == {"<urn:secret>"}

    logs[0].forget("p", lambda text: "secret" in text or text == "agent 104")

    assert (len(logs[1].of("p", "<urn:a>", "9")), GuardLog(logs[1], "p").seen("s")) == (MAX_READS - 1, set())
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


def test_a_machine_that_vanishes_loses_its_lock_within_a_minute(states):
    with states[0].reading() as store:
        asked = [store.execute(f"SHOW tcp_keepalives_{name}").fetchone()[0] for name in ("idle", "interval", "count")]
    assert asked == ["10", "5", "3"]


def test_it_goes_into_a_file_and_out_of_one_as_it_was(states, postgres, tmp_path):
    assert not export_state(states[0], tmp_path / "nothing", ALL)
    queue = jobs.Jobs(states[0], "memory", lambda: START)
    with states[0].changing() as store:
        queue.ask(store, "p", "ada", jobs.Task("describe", "p1"), jobs.Task("transfer", "p1"))
        store.execute("INSERT INTO memoryos_parts VALUES ('p', 'ada', 'page', 'i', '', 1, '{}', ?, 3)", (b"f\0\xff",))
    put(states[0], "x", "漢\n%")
    log = ReadLog(states[0], lambda: START)
    log.shown("p", ["<urn:a>"], by="ada", in_="briefing")

    assert export_state(states[0], tmp_path / "copy", ALL)
    other = PostgresState(postgres.address())
    import_state(other, tmp_path / "copy")

    file = State(tmp_path, ALL)
    file.path.parent.mkdir(exist_ok=True)
    (tmp_path / "copy").rename(file.path)
    every = [
        "SELECT * FROM key_values",
        "SELECT * FROM memoryos_parts",
        "SELECT kind, asked, due FROM jobs ORDER BY id",
    ]
    every += ['SELECT project, item, at, "in", agent FROM shown']
    for each in every:
        found = []
        for state in (states[0], other, file):
            with state.reading() as store:
                found.append(store.execute(each).fetchall())
        assert all(a == b for a, b in pairwise(found))
        assert found[0]
    import_state(other, file.path)  # nobody wrote since
    put(other, "y")
    with pytest.raises(InvalidRequest, match="has a working state of its own"):
        import_state(other, file.path)
    other.close()
    file.close()
