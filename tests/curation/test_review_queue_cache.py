"""The cache of the review queue, compared with the queue of a new process."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from conftest import decision, intent

import jidomem
from jidomem.base.clock import Sources
from jidomem.curation.review_cache import due, review_cache
from jidomem.curation.review_queue import queued
from jidomem.errors import JidomemError
from jidomem.index.store import OxigraphIndex

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
STEPS = 40


class RandomWrites:
    """Random writes at intervals of hours."""

    def __init__(self, root, seed):
        self.random, self.now, self.known = Random(seed), START, []
        (root / "config.toml").write_text('[conflicts]\ndecision = "warn"\nfact = "propose"\n')
        self.memory = jidomem.open(root, agent="rita", sources=Sources(now=lambda: self.now))
        self.second = jidomem.open(root, agent="rita", sources=Sources(now=lambda: self.now))

    def step(self):
        self.now += timedelta(hours=self.random.choice((1, 30, 400)))
        operations = (
            self.record_fact,
            self.record_decision,
            self.propose,
            self.record_duplicate,
            self.end_memory,
            self.settle,
        )
        try:
            self.known.append(self.random.choice(operations)().iri)
        except JidomemError:
            self.record_fact()

    def record_fact(self):
        dates = {}
        if self.random.random() < 0.5:
            dates["expires_on"] = self.moment()
        if self.random.random() < 0.3:
            dates["valid_from"] = self.moment()
        return self.submit(intent(summary=f"says {self.random.random()}", evidence=self.random_evidence(), **dates))

    def record_decision(self):
        topic = f"topic {self.random.randint(0, 2)}"
        return self.submit(
            decision(summary=f"decides {self.random.random()}", topic=topic, evidence=self.random_evidence())
        )

    def propose(self):
        superseded = self.random_evidence() if self.random.random() < 0.5 else []
        proposal = intent(summary=f"proposes {self.random.random()}", supersedes=superseded)
        return self.memory.writer.submit_intent("p", proposal, propose=True)

    def record_duplicate(self):
        return self.submit(intent(summary=f"says {self.random.random()}", topic="one", about=["a/file"]))

    def end_memory(self):
        item = (self.random_evidence() or [self.record_fact().iri])[0]
        correction = (
            {"invalidate": True} if self.random.random() < 0.5 else {"supersede": f"now {self.random.random()}"}
        )
        return self.memory.writer.correct("p", item, reason="it is so", **correction)

    def settle(self):
        pending = self.queue(self.memory)[0]
        entry = self.random.choice([*pending] or [None])
        if entry is None:
            return self.record_fact()
        action = self.random.choice(entry.actions)
        return self.memory.writer.settle("p", entry.item, action, other=entry.other, reason="it is so")

    def submit(self, values):
        return self.memory.writer.submit_intent("p", values)

    def moment(self):
        return (START + timedelta(hours=self.random.randint(0, 4_000))).isoformat()

    def random_evidence(self):
        return [self.random.choice(self.known)] if self.known else []

    def queue(self, memory):
        memory.catch_up("p")
        page = queued(memory.reader, "p", self.now)
        return page.waiting, page.total


@pytest.mark.parametrize("seed", [1, 2])
def test_the_cached_queue_equals_a_new_queue_after_every_random_write(root, seed):
    root.mkdir(exist_ok=True)
    writes, kinds = RandomWrites(root, seed), set()
    for _ in range(STEPS):
        writes.step()
        uncached = writes.second
        for observer in uncached.index.observers:
            observer.reset("https://jido.ai/projects/p/graphs/long-term-context")

        assert writes.queue(writes.memory) == writes.queue(uncached)
        cached = {
            (row["item"], row["reason"], row["due"]) for row in review_cache(writes.memory.reader, "p").due(writes.now)
        }
        assert cached == {(row["item"], row["reason"], row["due"]) for row in due(uncached.reader, "p", writes.now)}
        kinds |= {entry.kind for entry in writes.queue(uncached)[0]}

    assert kinds >= {"conflict", "proposal", "review_due"}


def test_a_page_reads_in_full_only_the_proposals_that_it_shows(root, monkeypatch):
    memory = jidomem.open(root, agent="rita")
    evidence = [f"line {number}" for number in range(10)]
    proposals = [intent(summary=f"proposes {number}", evidence=evidence) for number in range(30)]
    memory.writer.submit_many("p", proposals, propose=True)
    memory.catch_up("p")
    rows, query = [], OxigraphIndex.query

    def counted(index, text, **options):
        answer = query(index, text, **options)
        rows.extend(answer.rows)
        return answer

    monkeypatch.setattr(OxigraphIndex, "query", counted)
    page = queued(memory.reader, "p", START, limit=2)

    assert [one.source for one in page.waiting] == ["; ".join(sorted(evidence))] * 2
    assert page.total == 30
    assert len(rows) < 150  # three for each proposal, and ten for each on the page
