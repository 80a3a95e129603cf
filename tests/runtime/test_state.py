"""The working state of a root: its transactions, who shares it, and what a clone may have brought instead."""

import sqlite3
import subprocess
import sys
from contextlib import closing
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
    made = State(tmp_path, TABLES)
    yield made
    made.close()


def add(notes, name="n"):
    with notes.changing() as store:
        store.execute(ADD, (name,))


def held(notes):
    with notes.reading() as store:
        return dict(store.execute("SELECT name, count FROM note ORDER BY name")) if store is not None else None


def test_what_one_changes_another_reads_and_their_tables_lie_beside_each_other(notes, tmp_path):
    other = State(tmp_path, "CREATE TABLE IF NOT EXISTS mine (x);")
    add(notes)
    with other.changing() as store:
        store.execute("INSERT INTO mine VALUES (1)")
    add(notes)

    assert held(State(tmp_path, TABLES)) == {"n": 2}
    with other.reading() as store:
        assert store.execute("SELECT x FROM mine").fetchall() == [(1,)]


def test_reading_makes_nothing_where_nothing_was_kept(notes, tmp_path):
    assert held(notes) is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_raised_in_a_transaction_undoes_all_of_it(notes):
    def adding_two_and_failing():
        with notes.changing() as store:
            store.executemany(ADD, [("n",), ("m",)])
            raise KeyError

    add(notes)
    with pytest.raises(KeyError):
        adding_two_and_failing()

    assert held(notes) == {"n": 1}


def test_a_transaction_in_a_transaction_is_refused_and_both_are_undone(notes):
    def adding_while_adding():
        with notes.changing() as store:
            store.execute(ADD, ("n",))
            add(notes)

    add(notes)
    with pytest.raises(RuntimeError, match="in a transaction"):
        adding_while_adding()

    assert held(notes) == {"n": 1}


def test_threads_and_processes_take_turns_and_lose_nothing(notes, tmp_path):
    here = (
        f"from pathlib import Path; from jidomem.runtime.state import State; notes = State(Path({str(tmp_path)!r}), '')"
    )
    loop = f"for _ in range(40):\n with notes.changing() as store: store.execute({ADD!r}, ('n',))"
    add(notes)
    processes = [subprocess.Popen([sys.executable, "-c", f"{here}\n{loop}"]) for _ in range(2)]
    threads = [Thread(target=lambda: [add(notes) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [process.wait(60) for process in processes] == [0, 0]
    assert held(notes) == {"n": 1 + 2 * 40 + 4 * 20}


def test_a_file_that_another_is_just_making_is_waited_for(notes, tmp_path):
    notes.path.parent.mkdir()
    with closing(sqlite3.connect(notes.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE mine (x)")
        other.execute("BEGIN IMMEDIATE")
        ends = Timer(0.2, other.execute, ["COMMIT"])
        ends.start()
        add(notes)
        ends.join()

    assert held(notes) == {"n": 1}


def test_a_writer_that_takes_too_long_excludes_others_which_get_busy(notes, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "WAIT", 0.05)
    add(notes)
    with State(tmp_path, TABLES).changing():
        with pytest.raises(Busy, match=r"another process has written to .*working\.sqlite"):
            add(notes)
        assert held(notes) == {"n": 1}
    add(notes)

    assert held(notes) == {"n": 2}


def test_a_file_that_was_taken_away_is_made_anew(notes):
    add(notes)
    for file in notes.path.parent.iterdir():
        file.unlink()

    assert held(notes) is None
    add(notes, "later")

    assert held(notes) == {"later": 1}
    assert notes.path.exists()


def test_what_was_taken_out_is_in_no_byte(notes):
    for number in range(50):
        add(notes, f"a secret of {number} " + "x" * 200)
    with notes.changing() as store:
        store.execute("DELETE FROM note")
    notes.scrub()

    assert not [file for file in notes.path.parent.iterdir() if b"a secret of" in file.read_bytes()]
    assert held(notes) == {}


@pytest.mark.parametrize("link", ["state", "state/working.sqlite", "state/working.sqlite-wal"])
def test_a_link_is_refused_for_callers_and_ignored_by_a_log(tmp_path, link):
    root, out = tmp_path / "root", tmp_path / "out"
    out.mkdir()
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(out if link == "state" else out / "theirs.sqlite")

    with pytest.raises(Failed, match="is a symbolic link") as refusal:
        add(State(root, TABLES))
    assert (refusal.value.code, refusal.value.hint.startswith("replace it by its target")) == ("invalid_config", True)
    log = ReadLog(State(root, logs.READ_LOG_TABLES), Sources().now)
    log.shown("p", ["<urn:x>"], by=None, in_="briefing")

    assert log.of("p", "<urn:x>", "9") == []
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    "brought",
    [
        "CREATE TABLE note (name, count); CREATE TRIGGER t AFTER INSERT ON note BEGIN DELETE FROM note; END",
        "CREATE VIEW note AS SELECT 'n' AS name, 1 AS count",
    ],
)
def test_a_file_that_brings_programs_along_is_refused(notes, brought):
    notes.path.parent.mkdir()
    with sqlite3.connect(notes.path) as store:
        store.executescript(brought)

    with pytest.raises(Failed, match="has triggers or views") as refusal:
        held(notes)

    assert refusal.value.hint == f"move it away: mv {notes.path} {notes.path}.old"
    with pytest.raises(Failed, match="has triggers or views"):
        add(notes)


@pytest.mark.parametrize("brought", [b"no database of any kind" * 100, None])
def test_a_file_that_is_none_of_ours_is_refused_by_name(notes, brought):
    notes.path.parent.mkdir()
    if brought:
        notes.path.write_bytes(brought)
    else:
        with sqlite3.connect(notes.path) as store:
            store.execute("CREATE TABLE note (other)")

    with pytest.raises(Failed, match=r"working\.sqlite: ") as refusal:
        held(notes)

    assert refusal.value.code == "invalid_config"


def test_a_folder_that_cannot_be_made_is_a_failure_of_this_machine(tmp_path):
    (tmp_path / FILE.parent).write_text("in the way")

    with pytest.raises(Failed, match=r"working\.sqlite: File exists") as refusal:
        add(State(tmp_path, TABLES))

    assert refusal.value.code == "write_failed"
