"""A clearing commit empties its graph in every index, whatever the order of commits."""

import shutil
import threading

import pytest
from index_world import STREAM, add, as_stored, commit_on, index_triples, journal_triples, open_tail, small_limits

from jidomem.index.store import Watermark
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.vocab import THIS, jido

HISTORY = Stream("demo", "history")
NAMES = [f"n{number}" for number in range(12)]


@pytest.fixture(params=["memory", "disk"])
def root(request, tmp_path, monkeypatch):
    """A root with a history whose index is in memory, or on disk with snapshots that differ from the journal."""
    small_limits(monkeypatch, large=3_000 if request.param == "disk" else 10**9)
    add(FileJournal(tmp_path / "root"), *NAMES, stream=HISTORY)
    return tmp_path / "root"


def clear(journal, stream=HISTORY, name="clear"):
    with journal.lock(stream) as version:
        commit = commit_on(version, name, [(THIS, jido("clears"), f"<{stream.graph}>")], graph=stream.graph)
        journal.append(stream, version, commit)
        return commit


def triples_of(*commits):
    return as_stored(triple for commit in commits for triple in commit.triples)


def checked_triples(tail, stream=HISTORY):
    """Return the triples of an index, after a check that they equal those of a rebuilt index."""
    triples = index_triples(tail, stream)
    assert tail.index.mark(stream.graph).version == tail.journal.head(stream)
    rebuilt = open_tail(tail.journal.folder)
    for rebuild in (lambda: None, rebuilt.rebuild):
        rebuild()
        assert index_triples(rebuilt, stream) == triples
        mark = rebuilt.index.mark(stream.graph)
        assert (mark.version, mark.cleared) == (tail.journal.head(stream), tail.index.mark(stream.graph).cleared)
    rebuilt.close()
    return triples


def test_a_graph_is_empty_after_a_clearing_commit(root):
    # E045
    tail = open_tail(root)
    assert index_triples(tail, HISTORY) == journal_triples(root, HISTORY) != set()

    clear(tail.journal)

    assert checked_triples(tail) == set()
    after = add(FileJournal(root), "after", stream=HISTORY)
    assert checked_triples(tail) == triples_of(*after)
    tail.close()


def test_a_clearing_commit_takes_effect_at_once_and_leaves_other_graphs(root):
    # E045
    add(FileJournal(root), *NAMES)
    tail = open_tail(root)
    others = index_triples(tail)
    index_triples(tail, HISTORY)

    tail.apply(HISTORY, clear(tail.journal))

    assert set(tail.index.triples(HISTORY.graph)) == set()
    assert index_triples(tail) == others == journal_triples(root)
    tail.close()


def test_after_several_clears_only_later_commits_remain(root):
    tail = open_tail(root)
    index_triples(tail, HISTORY)
    for number in range(4):
        clear(tail.journal, name=f"clear {number}")
        last = add(tail.journal, f"after {number}", stream=HISTORY)

    assert checked_triples(tail) == triples_of(*last)
    assert len(tail.index.mark(HISTORY.graph).cleared.heads) == 1
    tail.close()


def test_a_commit_of_a_branch_without_the_clear_is_kept_after_a_merge(root, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(root, other)
    tail = open_tail(root)
    index_triples(tail, HISTORY)
    (concurrent,) = add(FileJournal(other), "said beside", stream=HISTORY)
    clear(tail.journal)
    after = add(tail.journal, "after", stream=HISTORY)
    index_triples(tail, HISTORY)

    for path in (other / "projects" / "demo" / "history").glob("*.ttl"):
        shutil.copy(path, root / "projects" / "demo" / "history")

    assert checked_triples(tail) == triples_of(concurrent, *after)
    (merge,) = add(tail.journal, "merge", stream=HISTORY)
    assert len(merge.parents) == 2
    assert checked_triples(tail) == triples_of(concurrent, *after, merge)
    tail.close()


def test_commits_after_two_concurrent_clears_are_kept_after_a_merge(root, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(root, other)
    remaining = []
    for folder, name in ((root, "ours"), (other, "theirs")):
        journal = FileJournal(folder)
        add(journal, f"{name} before", stream=HISTORY)
        clear(journal, name=f"{name} clear")
        remaining += add(journal, f"{name} after", stream=HISTORY)
    tail = open_tail(root)
    index_triples(tail, HISTORY)

    for path in (other / "projects" / "demo" / "history").glob("*.ttl"):
        shutil.copy(path, root / "projects" / "demo" / "history")

    assert checked_triples(tail) == triples_of(*remaining)
    assert len(tail.index.mark(HISTORY.graph).cleared.heads) == 2
    clear(tail.journal, name="of both")
    assert checked_triples(tail) == set()
    assert len(tail.index.mark(HISTORY.graph).cleared.heads) == 1
    tail.close()


def test_memories_are_never_cleared_by_a_commit(root):
    tail = open_tail(root)
    add(tail.journal, *NAMES)

    clear(tail.journal, STREAM)

    assert checked_triples(tail, STREAM) == journal_triples(root) != set()
    tail.close()


def test_a_reader_sees_a_graph_whole_or_empty_during_a_clear(root):
    tail = open_tail(root)
    whole, sizes, stopped = len(index_triples(tail, HISTORY)), set(), threading.Event()

    def read():
        while not stopped.is_set():
            sizes.add(len(list(tail.index.triples(HISTORY.graph))))

    reader = threading.Thread(target=read)
    reader.start()
    tail.apply(HISTORY, clear(tail.journal))
    stopped.set()
    reader.join()

    assert sizes <= {whole, 0}
    tail.close()


def test_a_watermark_is_read_back_as_written(root):
    tail = open_tail(root)
    index_triples(tail, HISTORY)
    clear(tail.journal)
    index_triples(tail, HISTORY)

    mark = tail.index.mark(HISTORY.graph)
    assert Watermark.of(mark.term) == mark
    assert mark.cleared == mark.version == tail.journal.head(HISTORY)
    tail.close()
