"""A store on disk takes in small pieces and large ones by different ways; a reader cannot tell them apart."""

from itertools import pairwise
from threading import Event, Thread

import pyoxigraph as ox
import pytest
from index_world import STREAM, commit_on

from jidomem.index import OxigraphIndex, oxigraph
from jidomem.version import Version

COMMITS, SUBJECTS = 12, 40


def commits():
    """Each says one number of as many subjects."""
    version, made = Version(), []
    for number in range(COMMITS):
        body = [(f"<urn:s:{subject}>", "<urn:p>", f'"{number}"') for subject in range(SUBJECTS)]
        made.append(commit_on(version, str(number), body))
        version = Version.of([made[-1].head])
    return made


def in_pieces(index, size):
    """Let *index* take the commits in, *size* waiting for each other at a time."""
    made = commits()
    for start in range(0, len(made), size):
        for commit in made[start : start + size]:
            index.take_later(STREAM.graph, commit)
        index.settle()


@pytest.mark.parametrize("size", [1, 5, COMMITS])
@pytest.mark.parametrize(("bulk", "kept"), [(0, 10**9), (10**9, 0), (10**9, 10**9)])
def test_the_content_and_the_mark_are_the_same_by_every_way(tmp_path, monkeypatch, size, bulk, kept):
    monkeypatch.setattr(oxigraph, "BULK", bulk)
    monkeypatch.setattr(oxigraph, "HELD", kept)
    index, plain = OxigraphIndex(ox.Store(tmp_path / "store")), OxigraphIndex()
    in_pieces(index, size)
    plain.take(STREAM.graph, commits())

    assert set(index.triples(STREAM.graph)) == set(plain.triples(STREAM.graph))
    assert index.marks == plain.marks
    del index
    assert OxigraphIndex(ox.Store(tmp_path / "store")).marks == plain.marks


@pytest.mark.parametrize("bulk", [0, 10**9])
def test_a_query_beside_it_sees_whole_commits_and_never_fewer(tmp_path, monkeypatch, bulk):
    monkeypatch.setattr(oxigraph, "BULK", bulk)
    store = ox.Store(tmp_path / "store")
    index, ended, seen = OxigraphIndex(store), Event(), []
    writer = Thread(target=lambda: (in_pieces(index, 3), ended.set()))
    writer.start()
    while not ended.is_set():
        seen.append(len(list(store.quads_for_pattern(None, ox.NamedNode("urn:p"), None, None))))
    writer.join()

    assert all(count % SUBJECTS == 0 for count in seen)
    assert all(before <= after for before, after in pairwise(seen))
    assert len(list(index.triples(STREAM.graph, predicate="<urn:p>"))) == COMMITS * SUBJECTS


class InterruptedOnce:
    """A store whose first load is interrupted when all of it is in, as a signal is told of when the call returns."""

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


def test_what_is_in_when_the_one_who_waits_for_it_is_interrupted_is_marked_and_told_of_once():
    first, second = commits()[:2]
    index, follower = OxigraphIndex(InterruptedOnce()), Follower()
    index.observers.append(follower)
    index.take_later(STREAM.graph, first)

    with pytest.raises(KeyboardInterrupt):
        index.settle()
    assert index.mark(STREAM.graph).version == Version.of([first.head])
    index.take(STREAM.graph, [first, second])

    assert index.mark(STREAM.graph).commits == 2
    assert follower.told == [first.triples, second.triples]
