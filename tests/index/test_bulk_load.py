"""A store on disk loads small and large batches in different ways, with the same result."""

from contextlib import suppress
from itertools import pairwise
from threading import Event, Thread
from time import sleep

import pyoxigraph as ox
import pytest
from index_world import STREAM, commit_on

from jidomem.index import store as oxigraph
from jidomem.index.store import OxigraphIndex
from jidomem.records.intent import Version

COMMITS, SUBJECTS = 12, 40


def commits():
    """Return commits that each state one number of every subject."""
    version, chain = Version(), []
    for number in range(COMMITS):
        body = [(f"<urn:s:{subject}>", "<urn:p>", f'"{number}"') for subject in range(SUBJECTS)]
        chain.append(commit_on(version, str(number), body))
        version = Version.of([chain[-1].head])
    return chain


def in_pieces(index, size):
    """Load the commits into *index* in batches of *size*."""
    chain = commits()
    for start in range(0, len(chain), size):
        for commit in chain[start : start + size]:
            index.queue(STREAM.graph, commit)
        index.apply_pending()


@pytest.mark.parametrize("size", [1, 5, COMMITS])
@pytest.mark.parametrize(("bulk", "buffered"), [(0, 10**9), (10**9, 0), (10**9, 10**9)])
def test_content_and_watermark_are_the_same_by_every_load_path(tmp_path, monkeypatch, size, bulk, buffered):
    monkeypatch.setattr(oxigraph, "BULK_LOAD_BYTES", bulk)
    monkeypatch.setattr(oxigraph, "MAX_BUFFERED_BYTES", buffered)
    index, plain = OxigraphIndex(ox.Store(tmp_path / "store")), OxigraphIndex()
    in_pieces(index, size)
    plain.load(STREAM.graph, commits())

    assert set(index.triples(STREAM.graph)) == set(plain.triples(STREAM.graph))
    assert index.marks == plain.marks
    del index
    assert OxigraphIndex(ox.Store(tmp_path / "store")).marks == plain.marks


@pytest.mark.parametrize("bulk", [0, 10**9])
def test_a_concurrent_query_sees_whole_commits_and_never_fewer(tmp_path, monkeypatch, bulk):
    monkeypatch.setattr(oxigraph, "BULK_LOAD_BYTES", bulk)
    store = ox.Store(tmp_path / "store")
    index, ended, counts = OxigraphIndex(store), Event(), []
    writer = Thread(target=lambda: (in_pieces(index, 3), ended.set()))
    writer.start()
    while not ended.is_set():
        counts.append(len(list(store.quads_for_pattern(None, ox.NamedNode("urn:p"), None, None))))
    writer.join()

    assert all(count % SUBJECTS == 0 for count in counts)
    assert all(before <= after for before, after in pairwise(counts))
    assert len(list(index.triples(STREAM.graph, predicate="<urn:p>"))) == COMMITS * SUBJECTS


def test_many_commits_are_loaded_in_order_while_the_next_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(oxigraph, "BATCH_BYTES", 3 * len(commits()[0].data))
    store, plain, follower = ox.Store(tmp_path / "store"), OxigraphIndex(), Follower()
    index, loaded = OxigraphIndex(store), []
    index.observers.append(follower)

    def read():
        for commit in commits():
            loaded.append(len(store) > 0)
            yield commit

    index.bulk_load(STREAM.graph, read())
    plain.load(STREAM.graph, commits())

    assert set(index.triples(STREAM.graph)) == set(plain.triples(STREAM.graph))
    assert index.marks == plain.marks
    assert follower.told == [commit.triples for commit in commits()]
    assert loaded[0] is False
    assert any(loaded)


class CountingLoads:
    """A store that counts the bulk loads that run at the same time."""

    def __init__(self, path):
        self._store, self._running, self.most = ox.Store(path), 0, 0

    def __len__(self):
        return len(self._store)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def bulk_load(self, *arguments, **options):
        self._running += 1
        self.most = max(self.most, self._running)
        sleep(0.002)  # as long as the next commits take to be read
        self._store.bulk_load(*arguments, **options)
        self._running -= 1


def test_one_bulk_load_runs_at_a_time(tmp_path, monkeypatch):
    """Two at once can crash RocksDB, which happens about once in a thousand loads."""
    monkeypatch.setattr(oxigraph, "BATCH_BYTES", 1)
    store = CountingLoads(tmp_path / "store")

    OxigraphIndex(store).bulk_load(STREAM.graph, commits())

    assert store.most == 1


class FailingBulkLoad:
    """A store whose second bulk load fails."""

    def __init__(self):
        self._store, self.loads = ox.Store(), 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def bulk_load(self, *given, **named):
        self.loads += 1
        if self.loads == 2:
            raise OSError("the disk is full")
        self._store.bulk_load(*given, **named)


def test_a_failed_bulk_load_sets_no_watermark(monkeypatch):
    monkeypatch.setattr(oxigraph, "BATCH_BYTES", 1)
    index = OxigraphIndex(FailingBulkLoad())
    with pytest.raises(OSError, match="the disk is full"):
        index.bulk_load(STREAM.graph, commits())
    assert index.marks == {}

    def read():
        yield from commits()[:5]
        raise KeyboardInterrupt

    index = OxigraphIndex()
    with pytest.raises(KeyboardInterrupt):
        index.bulk_load(STREAM.graph, read())
    assert index.marks == {}


class InterruptedOnce:
    """A store whose first load raises KeyboardInterrupt after its completion."""

    def __init__(self):
        self._store, self._is_due = ox.Store(), True

    def __getattr__(self, name):
        return getattr(self._store, name)

    def load(self, *given, **named):
        self._store.load(*given, **named)
        if self._is_due:
            self._is_due = False
            raise KeyboardInterrupt


class Follower:
    def __init__(self):
        self.told = []

    def applied(self, graph, triples):
        self.told.append(triples)


def test_a_commit_loaded_by_an_interrupted_call_is_marked_and_notified_once():
    first, second = commits()[:2]
    index, follower = OxigraphIndex(InterruptedOnce()), Follower()
    index.observers.append(follower)
    index.queue(STREAM.graph, first)

    with pytest.raises(KeyboardInterrupt):
        index.apply_pending()
    assert index.mark(STREAM.graph).version == Version.of([first.head])
    index.load(STREAM.graph, [first, second])

    assert index.mark(STREAM.graph).commits == 2
    assert follower.told == [first.triples, second.triples]


class Slow:
    """A store whose first load waits for an event, and then continues or fails."""

    def __init__(self, *, fails=False):
        self._store, self.began, self.may_go_on, self._fails = ox.Store(), Event(), Event(), fails

    def __getattr__(self, name):
        return getattr(self._store, name)

    def load(self, *given, **named):
        if not self.began.is_set():
            self.began.set()
            self.may_go_on.wait()
            if self._fails:
                raise OSError("the disk is full")
        self._store.load(*given, **named)


def load_in_thread(index):
    """Start a thread that loads the queued commits, and ignore an error of the disk."""

    def take_in():
        with suppress(OSError):
            index.load_queued()

    thread = Thread(target=take_in)
    thread.start()
    return thread


def test_commits_queued_during_a_load_are_applied_by_the_next():
    store, plain, (first, *later) = Slow(), OxigraphIndex(), commits()
    index = OxigraphIndex(store)
    index.queue(STREAM.graph, first)
    thread = load_in_thread(index)
    store.began.wait()
    for commit in later:
        index.queue(STREAM.graph, commit)
    ahead = index.mark(STREAM.graph)
    store.may_go_on.set()
    thread.join()
    plain.load(STREAM.graph, [first, *later])

    assert ahead == index.mark(STREAM.graph) == plain.mark(STREAM.graph)
    assert set(index.triples(STREAM.graph)) == set(plain.triples(STREAM.graph))


def test_a_commit_after_a_failed_load_is_not_marked_as_loaded():
    store, (first, second, *_) = Slow(fails=True), commits()
    index = OxigraphIndex(store)
    index.queue(STREAM.graph, first)
    thread = load_in_thread(index)
    store.began.wait()
    index.queue(STREAM.graph, second)
    store.may_go_on.set()
    thread.join()

    assert index.mark(STREAM.graph).commits == 0
    index.load(STREAM.graph, [first, second])
    assert index.mark(STREAM.graph).commits == 2
    assert len(list(index.triples(STREAM.graph, predicate="<urn:p>"))) == 2 * SUBJECTS


def test_the_bytes_of_queued_commits_are_counted_during_a_concurrent_load():
    store, (first, second, third, *_) = Slow(), commits()
    index = OxigraphIndex(store)
    assert index.queue(STREAM.graph, first) == len(first.data)
    applying = load_in_thread(index)
    store.began.wait()
    assert index.queue(STREAM.graph, second) == len(first.data) + len(second.data)
    store.may_go_on.set()
    applying.join()

    assert index.queue(STREAM.graph, third) == len(second.data) + len(third.data)
    index.apply_pending()
    assert index.mark(STREAM.graph).commits == 3
