"""What rests on a withdrawn memory: one rule for the list `stale` and its pages, the review queue and the briefing."""

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
    """A memory that is written, and a second process that reads it: after each write, or after several."""

    def __init__(self, root, seed=0):
        self.random, self.now, self.known = Random(seed), datetime(2026, 11, 1, 8, 0, tzinfo=UTC), []
        self.writing, self.reading = (jidomem.open(root, agent="rita", sources=Sources(now=self.clock)) for _ in "wr")
        self.writer = self.writing.writer

    def clock(self):
        self.now += timedelta(seconds=1)
        return self.now

    def say(self, *evidence):
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
        old = [self.random.choice(self.known[-8:]) for _ in range(2)] if self.known else []
        ways = (self.revise, self.withdraw, self.undo, self.accept)
        try:
            way = self.random.choice(ways) if old and self.random.random() < 0.65 else None
            self.known.append(self.say(*old) if way is None else way(old[0]))
        except JidomemError:  # the memory is of another state
            self.known.append(self.say(*old))

    def listed(self):
        """The stale memories, as the engine finds them."""
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
        return sorted(entry["iri"] for one in sections if one["name"] == "questions" for entry in one["entries"])

    def settleable(self):
        """The active memories of which a writer finds that something that they rest on was withdrawn later."""
        graph = graph_iri("p")
        view = WriteSnapshot(lambda *pattern: self.reading.index.triples(graph, *pattern))
        at = {name: self.reading.reader.get_memory("p", name)["recorded_at"] for name in self.known}
        return sorted(
            name
            for name in {*self.known}
            if view.is_active(iri(name)) and any(at[name] < at[end[1:-1]] for end in withdrawals_below(iri(name), view))
        )


@pytest.fixture
def history(root):
    return History(root)


def test_versions_that_come_in_at_once_are_all_followed_to_what_rests_on_them(history):
    first = history.say()
    resting = history.say(first)
    second = history.revise(first)
    assert (history.listed(), history.paged(), history.queued()) == ([], [], [])

    history.withdraw(history.revise(history.revise(second)))
    assert history.paged() == history.queued() == history.listed() == [resting]


def test_queue_follows_a_version_that_ended_before_the_last_read(history):
    first = history.say()
    resting = history.say(first)
    last = history.revise(history.revise(first))
    assert history.queued() == []

    history.withdraw(last)
    assert history.queued() == history.paged() == [resting]


@pytest.mark.parametrize("way", [History.withdraw, History.accept])
def test_briefing_is_without_a_resting_memory_that_ended(history, way):
    first = history.say()
    resting = history.say(first)
    history.withdraw(first)
    history.listed()
    assert history.briefed() == [resting]

    way(history, resting)
    history.listed()
    assert history.briefed() == []


@pytest.mark.parametrize("seed", range(examples(2)))
def test_every_reader_finds_the_same_resting_memories_in_any_history(root, seed):
    history, met = History(root, seed), set()
    for _ in range(10):
        for _ in range(history.random.randint(1, 8)):
            history.step()
        listed = history.listed()
        assert history.paged() == history.queued() == history.briefed() == history.settleable() == listed
        met |= {*listed}
    assert met
