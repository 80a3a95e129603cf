"""An index follows its journal, in memory or on disk, after changes and damage of either."""

import errno
import os
import shutil

import pytest
from index_world import STREAM, add, as_stored, commit_on, index_triples, journal_triples, open_tail, small_limits

from jidomem.base import disk as calls
from jidomem.index.store import Watermark
from jidomem.journal.journal import FileJournal, Stream
from jidomem.records.intent import Version

OTHER = Stream("other", "history")
NAMES = [f"n{number}" for number in range(12)]


@pytest.fixture(params=["memory", "disk"])
def root(request, tmp_path, monkeypatch):
    """A root whose index is in memory, or on disk with snapshots that differ from the journal."""
    small_limits(monkeypatch, large=3_000 if request.param == "disk" else 10**9)
    return tmp_path / "root"


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A root with a journal of twelve commits and a snapshot of its index."""
    small_limits(monkeypatch)
    add(FileJournal(tmp_path), *NAMES)
    build_index(tmp_path)
    return tmp_path


def build_index(root):
    tail = open_tail(root)
    assert index_triples(tail) == journal_triples(root)
    tail.close()


def snapshots(root):
    return sorted((root / "index" / "snapshots").iterdir())


def live(root):
    return sorted((root / "index" / "live").iterdir())


def test_an_index_equals_its_journal_and_is_created_on_first_use(root):
    add(FileJournal(root), *NAMES)
    tail = open_tail(root)
    assert not (root / "index").exists()
    assert index_triples(tail) == journal_triples(root)
    assert tail.index.mark(STREAM.graph) == Watermark(12, FileJournal(root).head(STREAM))
    assert tail.on_disk == (root / "index").exists()
    tail.close()


def test_two_indexes_read_the_commits_of_each_other_at_the_next_update(root):  # C021
    journal = FileJournal(root)
    add(journal, *NAMES)
    ours, theirs = open_tail(root), open_tail(root)
    for number in range(5):
        mine, yours = (ours, theirs) if number % 2 else (theirs, ours)
        (commit,) = add(mine.journal, f"late {number}")
        mine.apply(STREAM, commit)
        add(mine.journal, f"other {number}", stream=OTHER)
        assert index_triples(yours) == index_triples(mine) == journal_triples(root)
        assert index_triples(yours, OTHER) == journal_triples(root, OTHER)
    ours.close()
    theirs.close()


def test_a_commit_without_its_parent_waits_for_the_next_update(root):
    tail = open_tail(root)
    tail.catch_up(STREAM)
    first, second = add(FileJournal(root), "a", "b")
    tail.apply(STREAM, second)
    assert list(tail.index.triples(STREAM.graph)) == []
    tail.apply(STREAM, first)
    tail.apply(STREAM, first)
    assert tail.index.mark(STREAM.graph) == Watermark(1, Version.of([first.head]))
    assert index_triples(tail) == journal_triples(root)


def test_a_replaced_history_is_read_again(root):
    add(FileJournal(root), *NAMES)
    add(FileJournal(root), "kept", stream=OTHER)
    tail, events = open_tail(root), []
    assert index_triples(tail) == journal_triples(root)
    assert index_triples(tail, OTHER) == journal_triples(root, OTHER)
    tail.index.observers.append(Recorder(events))

    while (root / "projects" / "demo").exists():  # a snapshot that is being kept may put its lock file back
        shutil.rmtree(root / "projects" / "demo", ignore_errors=True)
    add(FileJournal(root), "of", "another", "branch")

    assert index_triples(tail) == journal_triples(root)
    assert as_stored(tail.index.triples(OTHER.graph)) == journal_triples(root, OTHER)
    assert events == [("reset", STREAM.graph)]  # the other graph is what it was
    tail.close()


class Recorder:
    """An observer that records its notifications."""

    def __init__(self, events):
        self.told = events

    def applied(self, graph, triples):
        self.told.append(("applied", graph))

    def reset(self, graph):
        self.told.append(("reset", graph))


def test_a_damaged_commit_is_read_once_restored(root):
    add(FileJournal(root), *NAMES)
    file = sorted((root / "projects" / "demo" / "memory").glob("*.ttl"))[4]
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    tail = open_tail(root)
    assert index_triples(tail) < journal_triples_whole(root, file, whole)
    assert not list((root / "index").glob("snapshots/*"))  # none is kept of what is not whole
    assert [damage.path for damage in tail.journal.damage(STREAM)] == [str(file)]

    file.unlink()
    file.write_bytes(whole)

    assert index_triples(tail) == journal_triples(root)
    tail.close()


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOENT])
@pytest.mark.parametrize(("started", "failing"), [(False, 1), (False, 2), (True, 1), (True, 2)])
def test_a_commit_with_a_temporary_read_error_is_not_skipped(root, monkeypatch, started, failing, error):
    tail, read, times = open_tail(root), calls.read, []
    add(FileJournal(root), *NAMES[:2])
    if started:
        tail.catch_up(STREAM)
    passing = add(FileJournal(root), *NAMES[2:])[1].id[:12]

    def failing_once(path, *limits):
        times.extend([path] if passing in path else [])
        if passing in path and len(times) == failing:
            raise OSError(error, os.strerror(error))  # a new one: its traceback refers to the store, and ends with it
        return read(path, *limits)

    monkeypatch.setattr(calls, "read", failing_once)
    assert index_triples(tail) == journal_triples(root)
    assert len(times) > failing
    tail.close()


def journal_triples_whole(root, file, whole):
    torn = file.read_bytes()
    file.write_bytes(whole)
    try:
        return journal_triples(root)
    finally:
        file.write_bytes(torn)


def test_a_small_journal_is_indexed_in_memory_and_a_large_one_on_disk(tmp_path, monkeypatch):
    small_limits(monkeypatch)
    add(FileJournal(tmp_path), "a")
    tail = open_tail(tmp_path)
    assert index_triples(tail) == journal_triples(tmp_path)
    assert not tail.on_disk
    tail.close()
    assert not (tmp_path / "index").exists()
    add(FileJournal(tmp_path), *NAMES)
    tail = open_tail(tmp_path)
    assert index_triples(tail) == journal_triples(tmp_path)
    assert tail.on_disk
    tail.close()
    assert len(snapshots(tmp_path)) == 1
    assert live(tmp_path) == []


def test_an_index_in_memory_that_grows_large_moves_to_disk(tmp_path, monkeypatch):
    small_limits(monkeypatch, outgrown=60)
    tail = open_tail(tmp_path)
    tail.catch_up(STREAM)
    kinds = []
    for name in NAMES:
        (commit,) = add(tail.journal, name)
        tail.apply(STREAM, commit)
        kinds.append(tail.on_disk)
        assert set(tail.index.triples(STREAM.graph)) == journal_triples(tmp_path)
    assert kinds == sorted(kinds)
    assert (kinds[0], kinds[-1]) == (False, True)
    tail.close()


def test_a_snapshot_is_reused_and_only_later_commits_are_read(disk):
    (late,) = add(FileJournal(disk), "late")
    commits_read = []
    tail = open_tail(disk, RecordingJournal(FileJournal(disk), commits_read))
    assert index_triples(tail) == journal_triples(disk)
    assert [commit.id for commit in commits_read] == [late.id]
    tail.close()
    assert len(snapshots(disk)) == 1


class RecordingJournal:
    """A journal that records the commits read from it."""

    def __init__(self, journal, events):
        self._journal, self._told = journal, events

    def __getattr__(self, name):
        return getattr(self._journal, name)

    def read(self, stream, **asked):
        for commit in self._journal.read(stream, **asked):
            self._told.append(commit)
            yield commit


class LiveFoldersRecorder:
    """A journal that records the live folders of *root* while commits are first read from it.

    A snapshot is published in the background: once the commits are read, the clone may be there already.
    """

    def __init__(self, journal, root):
        self._journal, self._root, self.live = journal, root, []

    def __getattr__(self, name):
        return getattr(self._journal, name)

    def read(self, stream, **asked):
        for commit in self._journal.read(stream, **asked):
            self.live = self.live or live(self._root)
            yield commit


def test_a_process_continues_on_a_clone_of_its_snapshot_without_a_reset(tmp_path, monkeypatch):
    small_limits(monkeypatch)
    add(FileJournal(tmp_path), *NAMES)
    tail, events = open_tail(tmp_path, LiveFoldersRecorder(FileJournal(tmp_path), tmp_path)), []
    tail.catch_up(STREAM)
    tail.index.observers.append(Recorder(events))
    before = tail.journal.live
    assert len(before) == 2
    assert len(tail.snapshots()) == 1
    (late,) = add(tail.journal, "late")
    tail.apply(STREAM, late)
    assert set(tail.index.triples(STREAM.graph)) == journal_triples(tmp_path)
    assert tail.index.mark(STREAM.graph).commits == 13
    assert len(live(tmp_path)) == 2  # one folder and its lock
    assert not set(live(tmp_path)) & set(before)
    assert events == [("applied", STREAM.graph)]
    assert index_triples(tail) == journal_triples(tmp_path)
    tail.close()


def test_a_process_that_read_many_commits_adds_a_snapshot_and_two_are_kept(disk):
    for turn in range(4):
        add(FileJournal(disk), *(f"{turn} {name}" for name in NAMES))
        build_index(disk)
    assert len(snapshots(disk)) == 2
    commits_read = []
    tail = open_tail(disk, RecordingJournal(FileJournal(disk), commits_read))
    assert index_triples(tail) == journal_triples(disk)
    assert commits_read == []


def test_an_older_snapshot_serves_the_branch_it_was_taken_on(disk):
    for name in NAMES:
        add(FileJournal(disk), f"feature {name}")
    build_index(disk)
    names = sorted((disk / "projects" / "demo" / "memory").glob("*.ttl"))
    for file in names[12:]:
        file.unlink()
    commits_read = []
    tail = open_tail(disk, RecordingJournal(FileJournal(disk), commits_read))
    assert index_triples(tail) == journal_triples(disk)
    assert commits_read == []


@pytest.mark.parametrize("harm", ["truncate", "remove", "flip", "empty", "words", "form"])
def test_a_damaged_snapshot_is_discarded(disk, harm):
    (snapshot,) = snapshots(disk)
    tables = sorted((snapshot / "store").glob("*.sst"), key=lambda file: file.stat().st_size)
    if harm == "truncate":
        with tables[-1].open("r+b") as file:
            file.truncate(10)
    elif harm == "remove":
        tables[-1].unlink()
    elif harm == "empty":
        shutil.rmtree(snapshot / "store")
    elif harm == "flip":
        for table in tables:
            flip(table)
    elif harm == "words":
        (snapshot / "snapshot.json").write_text("{")
    else:
        metadata = (snapshot / "snapshot.json").read_text()
        (snapshot / "snapshot.json").write_text(metadata.replace('"form": "1 ', '"form": "0 '))
    build_index(disk)
    assert snapshot not in snapshots(disk) or harm in ("words", "form")
    build_index(disk)


def flip(table):
    """Change some bytes in the middle of a file, without changing the file others have a link to."""
    data = bytearray(table.read_bytes())
    for at in range(len(data) // 3, len(data) // 3 + 40):
        data[at] ^= 0xFF
    table.unlink()
    table.write_bytes(data)


def test_a_damaged_store_is_rebuilt_during_a_query(disk):
    tail = open_tail(disk)
    tail.catch_up(STREAM)
    before = index_triples(tail)
    assert live(disk)

    class Broken:
        def __getattr__(self, name):
            raise RuntimeError("Corruption: block checksum mismatch")

    def damage():
        tail.index._store = tail._live.store = Broken()

    damage()
    assert set(tail.index.triples(STREAM.graph)) == before
    damage()
    assert tail.index.query("ASK { ?s ?p ?o }", graphs=[STREAM.graph]) is True
    damage()
    add(FileJournal(disk), "more")
    assert index_triples(tail) == journal_triples(disk)
    tail.close()


def test_an_index_without_a_folder_for_clones_stays_in_memory(tmp_path, monkeypatch):
    small_limits(monkeypatch, outgrown=10)
    add(FileJournal(tmp_path), *NAMES)
    (tmp_path / "index").write_text("not a folder")
    tail = open_tail(tmp_path)
    assert index_triples(tail) == journal_triples(tmp_path)
    assert not tail.on_disk


def test_a_closed_index_reopens_on_use(root):
    add(FileJournal(root), *NAMES)
    tail = open_tail(root)
    before = index_triples(tail)
    tail.close()
    assert list(tail.index.triples(STREAM.graph)) == []
    assert index_triples(tail) == before
    tail.close()
    tail.close()


def test_a_rebuilt_index_equals_the_journal(root):
    commits = add(FileJournal(root), *NAMES)
    add(FileJournal(root), "other", stream=OTHER)
    tail = open_tail(root)
    tail.catch_up(STREAM)
    tail.index.load(STREAM.graph, [commit_on(Version.of([commits[-1].head]), "nobody's")])
    sizes = []
    marks = tail.rebuild(sizes.append)
    assert {stream: mark.commits for stream, mark in marks.items()} == {STREAM: 12, OTHER: 1}
    assert sizes == [len(commit.data) for stream in marks for commit in FileJournal(root).read(stream)]
    assert index_triples(tail) == journal_triples(root)
    tail.close()
