"""Memories that depend on a withdrawn one: one rule for the query `stale`, its pages, the review queue and briefing."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from conftest import examples, intent

import jidomem
from jidomem.base.clock import Sources
from jidomem.curation.review_cache import review_cache
from jidomem.errors import JidomemError
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import graph_iri
from jidomem.write.snapshot import WriteSnapshot, withdrawals_below


class History:
    """A memory with a writer and a second reader that reads after each write or after several."""

    def __init__(self, root, seed=0):
        self.random, self.now, self.known = Random(seed), datetime(2026, 11, 1, 8, 0, tzinfo=UTC), []
        self.writing, self.reading = (jidomem.open(root, agent="rita", sources=Sources(now=self.clock)) for _ in "wr")
        self.writer = self.writing.writer

    def clock(self):
        self.now += timedelta(seconds=1)
        return self.now

    def record(self, *evidence):
        return self.writer.submit_intent("p", intent(summary=f"says {self.now}", evidence=[*evidence])).iri

    def revise(self, item):
        return self.writer.revise("p", item, changes={"summary": f"now {self.now}"}, reason="new words").iri

    def withdraw(self, item):
        return self.writer.invalidate("p", item, reason="it was wrong").iri

    def undo(self, item):
        return self.writer.undo("p", item, reason="it was right").iri

    def accept(self, item):
        return self.writer.settle("p", item, "accept", reason="it holds").iri

    def step(self):
        evidence = [self.random.choice(self.known[-8:]) for _ in range(2)] if self.known else []
        operations = (self.revise, self.withdraw, self.undo, self.accept)
        try:
            operation = self.random.choice(operations) if evidence and self.random.random() < 0.65 else None
            self.known.append(self.record(*evidence) if operation is None else operation(evidence[0]))
        except JidomemError:  # the state of the memory does not permit it
            self.known.append(self.record(*evidence))

    def listed(self):
        """Return the stale memories by the query engine."""
        self.reading.catch_up("p")
        return sorted({row["item"] for row in self.reading.reader.ask("stale", project="p", valid_at=self.now)})

    def paged(self):
        self.reading.catch_up("p")
        page = self.reading.reader.ask_page("stale", project="p", limit=1000, valid_at=self.now)
        return sorted({row["item"] for row in page.rows})

    def queued(self):
        self.reading.catch_up("p")
        return sorted({row["item"] for row in review_cache(self.reading.reader, "p").due(self.now)})

    def briefed(self):
        sections = self.reading.briefing("p", budget_tokens=20_000).to_dict()["sections"]
        return sorted(
            entry["iri"] for section in sections if section["name"] == "questions" for entry in section["entries"]
        )

    def settleable(self):
        """Return the active memories for which a writer finds evidence that was withdrawn later."""
        graph = graph_iri("p")
        snapshot = WriteSnapshot(lambda *pattern: self.reading.index.triples(graph, *pattern))
        recorded = {name: self.reading.reader.get_memory("p", name)["recorded_at"] for name in self.known}
        return sorted(
            name
            for name in {*self.known}
            if snapshot.is_active(iri(name))
            and any(recorded[name] < recorded[end[1:-1]] for end in withdrawals_below(iri(name), snapshot))
        )


@pytest.fixture
def history(root):
    return History(root)


def test_several_new_versions_are_followed_to_the_dependent_memory(history):
    first = history.record()
    dependent = history.record(first)
    second = history.revise(first)
    assert (history.listed(), history.paged(), history.queued()) == ([], [], [])

    history.withdraw(history.revise(history.revise(second)))
    assert history.paged() == history.queued() == history.listed() == [dependent]


def test_the_queue_follows_a_version_that_ended_before_the_last_read(history):
    first = history.record()
    dependent = history.record(first)
    last = history.revise(history.revise(first))
    assert history.queued() == []

    history.withdraw(last)
    assert history.queued() == history.paged() == [dependent]


@pytest.mark.parametrize("ending", [History.withdraw, History.accept])
def test_the_briefing_omits_a_dependent_memory_that_ended(history, ending):
    first = history.record()
    dependent = history.record(first)
    history.withdraw(first)
    history.listed()
    assert history.briefed() == [dependent]

    ending(history, dependent)
    history.listed()
    assert history.briefed() == []


@pytest.mark.parametrize("seed", range(examples(2)))
def test_every_reader_finds_the_same_dependent_memories_in_any_history(root, seed):
    history, found = History(root, seed), set()
    for _ in range(10):
        for _ in range(history.random.randint(1, 8)):
            history.step()
        listed = history.listed()
        assert history.paged() == history.queued() == history.briefed() == history.settleable() == listed
        found |= {*listed}
    assert found
