"""A new copy starts from the newest checkpoint and reads the rest from the log, which prevails over it."""

import json
import shutil
import time
import zlib
from pathlib import Path

import pytest
from conftest import fixed_sources, intent
from file_log import FileLog
from journal_world import order_on

import jidomem
from jidomem.extras.servers import checkpoints
from jidomem.extras.servers.checkpoints import MAKING, NEWEST, PIECES, fetch, make
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.extras.transfer.endpoints import FolderEnd, LogEnd, copy_streams
from jidomem.index import follower as limits
from jidomem.index.follower import IndexFollower
from jidomem.index.snapshots import Clones
from jidomem.index.store import OxigraphIndex
from jidomem.journal.commit import parse
from jidomem.journal.journal import Stream
from jidomem.journal.rewrite import leaves
from jidomem.schema import ontology

MEMORY = Stream("p")
SECRET = "the key is hunter2-hunter2"


class Server:
    """A copy of a log with its index, as a server has it."""

    def __init__(self, log: FileLog, home: Path) -> None:
        self.log, self.home = log, home
        self.journal = MirroredJournal(log, home)
        self.follower = IndexFollower(self.journal, OxigraphIndex(), Clones(home / "index"), ontology.load([]).triples)

    def holds(self) -> int:
        """The number of triples in the index after it caught up."""
        self.follower.catch_up(MEMORY)
        return len([*self.follower.index.triples(MEMORY.graph)])


@pytest.fixture
def log(tmp_path, monkeypatch) -> FileLog:
    """A log of some commits, and snapshots of an index after every one."""
    for name in ("ON_DISK_BYTES", "SNAPSHOT_COMMITS", "WRITER_SNAPSHOT_BYTES"):
        monkeypatch.setattr(limits, name, 0)
    monkeypatch.setattr(checkpoints, "PIECE", 20_000)
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        for number in range(5):
            memory.writer.submit_intent("p", intent(summary=f"fact {number}", about=[f"f{number}"]))
        memory.writer.submit_intent("p", intent(summary=SECRET))
    file_log = FileLog(str(tmp_path / "log"))
    copy_streams(FolderEnd(tmp_path / "root"), LogEnd(file_log))
    return file_log


@pytest.fixture
def first(log, tmp_path):
    """A server with a snapshot of its index."""
    server = Server(log, tmp_path / "first")
    server.holds()
    assert server.follower.snapshots()
    yield server
    server.follower.close()


def grow(log, tmp_path, number=1):
    """Append more commits to the log, from another root."""
    with jidomem.open(tmp_path / "root", project="p") as memory:
        for each in range(number):
            memory.writer.submit_intent("p", intent(summary=f"later {each} {log.requests.total()}", about=[f"l{each}"]))
    copy_streams(FolderEnd(tmp_path / "root"), LogEnd(log))


def pieces(log):
    return set(log.names(PIECES))


def held_lease():
    """The lease of a server that makes a checkpoint and continues for ten minutes."""
    return json.dumps({"until": time.time() + 600}).encode()


def test_a_new_copy_loads_the_checkpoint_and_reads_later_commits_alone(log, first, tmp_path):
    assert make(log, first.home)
    grow(log, tmp_path)
    home = tmp_path / "second"

    assert fetch(log, home)
    second = Server(log, home)
    triples = second.holds()

    assert triples == first.holds()
    assert [live.snapshot for live in [second.follower._live]] != [None]
    assert len([*(home / "projects" / "p" / "memory").glob("pack-*.ttl")]) == 1
    assert second.journal.verify(MEMORY) == ()
    second.follower.close()


def test_a_damaged_copy_makes_no_checkpoint_until_it_is_repaired(log, first, tmp_path):
    path = sorted(first.journal.path(MEMORY).glob("2*.ttl"))[2]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    assert (make(log, first.home), pieces(log)) == (False, set())

    assert first.journal.verify(MEMORY) == ()
    assert make(log, first.home)
    assert fetch(log, tmp_path / "second")


def test_unchanged_pieces_are_not_put_again_and_unnamed_ones_are_removed_later(log, first, tmp_path, monkeypatch):
    make(log, first.home)
    before, log.requests["put"] = pieces(log), 0
    make(log, first.home)
    assert pieces(log) == before

    grow(log, tmp_path, 3)
    first.holds()
    first.follower.snapshots()
    make(log, first.home)
    assert before < pieces(log)
    monkeypatch.setattr(checkpoints, "GRACE", 0.0)
    make(log, first.home)
    make(log, first.home)

    named = {PIECES + digest for digests in json.loads(log.get(NEWEST).data)["files"].values() for digest in digests}
    assert pieces(log) == named


def test_one_server_makes_a_checkpoint_until_its_lease_ends(log, first, monkeypatch):
    log.put(PIECES + "0" * 64, b"of the dead")
    log.put(MAKING, held_lease())
    assert not make(log, first.home)

    monkeypatch.setattr(checkpoints, "_is_leased", lambda file: False)

    assert make(log, first.home)
    assert PIECES + "0" * 64 not in pieces(log)
    assert log.get(MAKING) is None


class DelayedLog(FileLog):
    """A log whose client sleeps once, longer than its lease: when a piece is put, or when pieces are listed."""

    def __init__(self, address, meanwhile, *, when="put"):
        super().__init__(address)
        self.meanwhile, self.when = meanwhile, when

    def put(self, name, data, expected=None, *, force=False):
        put = super().put(name, data, expected, force=force)
        if name.startswith(PIECES):
            self.sleep("put")
        return put

    def names(self, prefix=""):
        names = super().names(prefix)
        self.sleep("names")
        return names

    def sleep(self, when):
        if when == self.when and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()


def test_a_delayed_server_removes_nothing_of_another_servers_checkpoint(log, first, tmp_path):
    def make_another():
        log.put(MAKING, json.dumps({"until": 0}).encode(), force=True)
        assert make(log, first.home)

    assert not make(DelayedLog(str(tmp_path / "log"), make_another), first.home)

    assert fetch(log, tmp_path / "new")


def test_a_delayed_server_removes_no_piece_that_another_checkpoint_names(log, first, tmp_path):
    make(log, first.home)
    log.remove([NEWEST])  # so the pieces belong to a server that died before it named them

    def make_another():
        log.put(MAKING, json.dumps({"until": 0}).encode(), force=True)
        assert make(log, first.home)

    assert not make(DelayedLog(str(tmp_path / "log"), make_another, when="names"), first.home)

    assert fetch(log, tmp_path / "new")


def test_a_delayed_server_removes_no_piece_that_another_has_put_and_not_named(log, first, tmp_path):
    uploaded = []

    def start_another():
        log.put(MAKING, held_lease(), force=True)
        uploaded.extend(pieces(log))

    assert not make(DelayedLog(str(tmp_path / "log"), start_another), first.home)

    assert uploaded
    assert set(uploaded) <= pieces(log)


def test_the_next_checkpoint_puts_a_missing_piece_again(log, first, tmp_path):
    make(log, first.home)
    log.remove([max(pieces(log))])

    assert make(log, first.home)

    assert fetch(log, tmp_path / "new")


@pytest.mark.parametrize("harm", ["a piece is another", "a piece is gone", "it leads elsewhere", "no checkpoint"])
def test_an_invalid_checkpoint_is_ignored_and_the_log_is_read(log, first, tmp_path, harm):
    make(log, first.home)
    file = log.get(NEWEST)
    if harm == "a piece is another":
        log.put(min(pieces(log)), b"something", force=True)
    elif harm == "a piece is gone":
        log.remove([min(pieces(log))])
    else:
        manifest = json.loads(file.data)
        manifest["files"] = {"index/../../outside": [min(pieces(log)).removeprefix(PIECES)]}
        log.put(NEWEST, json.dumps(manifest).encode() if harm == "it leads elsewhere" else b"[]", force=True)

    assert not fetch(log, tmp_path / "second")

    assert not (tmp_path / "outside").exists()
    assert [path.name for path in (tmp_path / "second").iterdir()] == ["checkpoint.lock"]
    second = Server(log, tmp_path / "second")
    assert second.holds() == first.holds()
    second.follower.close()


def test_a_checkpoint_that_contradicts_the_log_is_discarded(log, first, tmp_path):
    make(log, first.home)
    manifest = json.loads(log.get(NEWEST).data)
    manifest["streams"]["p/memory"]["last"] = "f" * 64
    log.put(NEWEST, json.dumps(manifest).encode(), force=True)

    fetch(log, tmp_path / "second")
    second = Server(log, tmp_path / "second")

    assert second.holds() == first.holds()
    assert {commit.id for commit in second.journal.read(MEMORY)} == {entry.commit for entry in log.read(MEMORY)}
    second.follower.close()


def test_a_redaction_removes_every_checkpoint_and_prevents_one_with_the_redacted_text(log, first, tmp_path):
    make(log, first.home)
    outdated = tmp_path / "behind"
    shutil.copytree(first.home, outdated)
    commit = next(entry for entry in log.read(MEMORY) if SECRET.encode() in entry.document)
    redacted_leaves = {leaf for triple, leaf in leaves(parse(commit.document)).items() if "hunter2" in triple[2]}
    redacted = {commit.commit: frozenset(redacted_leaves)}
    with first.journal.redacting(MEMORY, redacted) as version:
        first.journal.append(MEMORY, version, order_on(version, redacted, graph=MEMORY.graph))

    assert pieces(log) == set()
    assert not fetch(log, tmp_path / "second")
    assert not make(log, outdated)
    assert not any(b"hunter2" in log.get(name).data for name in log.names())


def test_a_snapshot_from_before_a_redaction_makes_no_checkpoint(log, first, tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        plan = memory.maintenance.plan("p", None, texts=["hunter2-hunter2"])
        memory.maintenance.redact(plan, agent="ana", reason="a secret")
    copy_streams(FolderEnd(tmp_path / "root"), LogEnd(log))
    first.journal.head(MEMORY)  # the copy alone, as before the index catches up
    assert any(b"hunter2" in path.read_bytes() for path in (first.home / "index").rglob("*") if path.is_file())

    was_made = make(log, first.home)

    assert not was_made
    assert pieces(log) == set()
    first.holds()
    assert first.follower.snapshots()
    assert make(log, first.home)
    assert not any(b"hunter2" in log.get(name).data for name in log.names())


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-1], lambda data: b"\0" + data, lambda data: zlib.compress(bytes(1 << 20), 1)]
)
def test_an_invalid_piece_is_refused(log, first, tmp_path, harm):
    make(log, first.home)
    name = max(pieces(log), key=lambda each: len(log.get(each).data))  # a full one
    log.put(name, harm(log.get(name).data), force=True)

    assert not fetch(log, tmp_path / "second")


def test_pieces_are_stored_compressed(log, first, tmp_path):
    make(log, first.home)

    stored = sum(len(log.get(name).data) for name in pieces(log))

    assert fetch(log, tmp_path / "second")
    files = [path for path in (tmp_path / "second").rglob("*") if path.is_file()]
    assert stored < sum(path.stat().st_size for path in files) / 2
