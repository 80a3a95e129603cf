"""The working state of a root: transactions, concurrent users, and invalid files from a clone."""

import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from threading import Thread, Timer

import pytest

from jidomem.base.clock import Sources
from jidomem.errors import Busy, Failed
from jidomem.runtime import logs, state
from jidomem.runtime.logs import ReadLog
from jidomem.runtime.state import FILE, State

TABLES = "CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, count INTEGER NOT NULL);"
ADD = "INSERT INTO note VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1"


@pytest.fixture
def notes(tmp_path):
    state_file = State(tmp_path, TABLES)
    yield state_file
    state_file.close()


def add_note(notes, name="n"):
    with notes.changing() as store:
        store.execute(ADD, (name,))


def stored_notes(notes):
    with notes.reading() as store:
        return dict(store.execute("SELECT name, count FROM note ORDER BY name")) if store is not None else None


def test_states_in_one_file_share_changes_and_have_separate_tables(notes, tmp_path):
    other = State(tmp_path, "CREATE TABLE IF NOT EXISTS mine (x);")
    add_note(notes)
    with other.changing() as store:
        store.execute("INSERT INTO mine VALUES (1)")
    add_note(notes)

    assert stored_notes(State(tmp_path, TABLES)) == {"n": 2}
    with other.reading() as store:
        assert store.execute("SELECT x FROM mine").fetchall() == [(1,)]


def test_a_read_creates_no_file(notes, tmp_path):
    assert stored_notes(notes) is None
    assert list(tmp_path.iterdir()) == []


def test_an_exception_in_a_transaction_rolls_it_back(notes):
    def add_two_and_fail():
        with notes.changing() as store:
            store.executemany(ADD, [("n",), ("m",)])
            raise KeyError

    add_note(notes)
    with pytest.raises(KeyError):
        add_two_and_fail()

    assert stored_notes(notes) == {"n": 1}


def test_a_nested_transaction_is_refused_and_both_are_rolled_back(notes):
    def add_within_transaction():
        with notes.changing() as store:
            store.execute(ADD, ("n",))
            add_note(notes)

    add_note(notes)
    with pytest.raises(RuntimeError, match="in a transaction"):
        add_within_transaction()

    assert stored_notes(notes) == {"n": 1}


def test_concurrent_threads_and_processes_lose_no_change(notes, tmp_path):
    setup = (
        f"from pathlib import Path; from jidomem.runtime.state import State; notes = State(Path({str(tmp_path)!r}), '')"
    )
    loop = f"for _ in range(40):\n with notes.changing() as store: store.execute({ADD!r}, ('n',))"
    add_note(notes)
    processes = [subprocess.Popen([sys.executable, "-c", f"{setup}\n{loop}"]) for _ in range(2)]
    threads = [Thread(target=lambda: [add_note(notes) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [process.wait(60) for process in processes] == [0, 0]
    assert stored_notes(notes) == {"n": 1 + 2 * 40 + 4 * 20}


def test_a_change_waits_for_another_process_that_creates_the_file(notes, tmp_path):
    notes.path.parent.mkdir()
    with closing(sqlite3.connect(notes.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE mine (x)")
        other.execute("BEGIN IMMEDIATE")
        timer = Timer(0.2, other.execute, ["COMMIT"])
        timer.start()
        add_note(notes)
        timer.join()

    assert stored_notes(notes) == {"n": 1}


def test_a_long_transaction_of_another_writer_gives_busy(notes, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "WAIT", 0.05)
    add_note(notes)
    with State(tmp_path, TABLES).changing():
        with pytest.raises(Busy, match=r"another process has written to .*working\.sqlite"):
            add_note(notes)
        assert stored_notes(notes) == {"n": 1}
    add_note(notes)

    assert stored_notes(notes) == {"n": 2}


def test_a_removed_file_is_created_again(notes):
    add_note(notes)
    for file in notes.path.parent.iterdir():
        file.unlink()

    assert stored_notes(notes) is None
    add_note(notes, "later")

    assert stored_notes(notes) == {"later": 1}
    assert notes.path.exists()


def test_scrubbed_data_is_in_no_byte_of_the_files(notes):
    for number in range(50):
        add_note(notes, f"a secret of {number} " + "x" * 200)
    with notes.changing() as store:
        store.execute("DELETE FROM note")
    notes.scrub()

    assert not [file for file in notes.path.parent.iterdir() if b"a secret of" in file.read_bytes()]
    assert stored_notes(notes) == {}


@pytest.mark.parametrize("link", ["state", "state/working.sqlite", "state/working.sqlite-wal"])
def test_a_link_is_refused_by_the_state_and_ignored_by_the_read_log(tmp_path, link):
    root, out = tmp_path / "root", tmp_path / "out"
    out.mkdir()
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(out if link == "state" else out / "theirs.sqlite")

    with pytest.raises(Failed, match="is a symbolic link") as refusal:
        add_note(State(root, TABLES))
    assert (refusal.value.code, refusal.value.hint.startswith("replace it by its target")) == ("invalid_config", True)
    log = ReadLog(State(root, logs.READ_LOG_TABLES), Sources().now)
    log.record_shown("p", ["<urn:x>"], by=None, in_="briefing")

    assert log.of("p", "<urn:x>", "9") == []
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE note (name, count); CREATE TRIGGER t AFTER INSERT ON note BEGIN DELETE FROM note; END",
        "CREATE VIEW note AS SELECT 'n' AS name, 1 AS count",
    ],
)
def test_a_file_with_triggers_or_views_is_refused(notes, script):
    notes.path.parent.mkdir()
    with sqlite3.connect(notes.path) as store:
        store.executescript(script)

    with pytest.raises(Failed, match="has triggers or views") as refusal:
        stored_notes(notes)

    assert refusal.value.hint == f"move it away: mv {notes.path} {notes.path}.old"
    with pytest.raises(Failed, match="has triggers or views"):
        add_note(notes)


@pytest.mark.parametrize("content", [b"no database of any kind" * 100, None])
def test_an_invalid_file_is_refused_by_name(notes, content):
    notes.path.parent.mkdir()
    if content:
        notes.path.write_bytes(content)
    else:
        with sqlite3.connect(notes.path) as store:
            store.execute("CREATE TABLE note (other)")

    with pytest.raises(Failed, match=r"working\.sqlite: ") as refusal:
        stored_notes(notes)

    assert refusal.value.code == "invalid_config"


def test_a_folder_that_cannot_be_made_is_a_failure_of_this_machine(tmp_path):
    (tmp_path / FILE.parent).write_text("in the way")

    with pytest.raises(Failed, match=r"working\.sqlite: File exists") as refusal:
        add_note(State(tmp_path, TABLES))

    assert refusal.value.code == "write_failed"


@contextmanager
def no_file_grows():
    """Refuse every write that makes a file longer, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_snapshot_of_the_state_on_a_full_disk_is_complete(tmp_path, is_killed):
    left, root = tmp_path / "left", tmp_path / "root"
    with closing(State(left, "CREATE TABLE IF NOT EXISTS t (a)")) as state:
        with state.changing() as store:
            store.execute("INSERT INTO t VALUES (7)")
        if is_killed:  # the last transaction is in the log of SQLite
            shutil.copytree(left, root)
    if not is_killed:
        left.rename(root)
    root.joinpath(f"{FILE}-shm").unlink(missing_ok=True)

    with closing(State(root, "")) as state, no_file_grows():
        with pytest.raises(Failed, match="I/O"), state.reading():
            pass
        snapshot = state.snapshot()

    copy = tmp_path / "copy"
    copy.joinpath(FILE.parent).mkdir(parents=True)
    copy.joinpath(FILE).write_bytes(snapshot)
    for place in (copy, root):
        with closing(State(place, "")) as state, state.reading() as store:
            assert store.execute("SELECT a FROM t").fetchall() == [(7,)]
