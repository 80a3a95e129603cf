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

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
STEPS = 40


class Life:
    """Random writes, with an hour between them."""

    def __init__(self, root, seed):
        self.random, self.now, self.known = Random(seed), START, []
        (root / "config.toml").write_text('[conflicts]\ndecision = "warn"\nfact = "propose"\n')
        self.memory = jidomem.open(root, agent="rita", sources=Sources(now=lambda: self.now))
        self.later = jidomem.open(root, agent="rita", sources=Sources(now=lambda: self.now))

    def step(self):
        self.now += timedelta(hours=self.random.choice((1, 30, 400)))
        ways = (self.say, self.decide, self.propose, self.say_the_same, self.end, self.settle)
        try:
            self.known.append(self.random.choice(ways)().iri)
        except JidomemError:
            self.say()

    def say(self):
        dates = {}
        if self.random.random() < 0.5:
            dates["expires_on"] = self.moment()
        if self.random.random() < 0.3:
            dates["valid_from"] = self.moment()
        return self.submit(intent(summary=f"says {self.random.random()}", evidence=self.some(), **dates))

    def decide(self):
        topic = f"topic {self.random.randint(0, 2)}"
        return self.submit(decision(summary=f"decides {self.random.random()}", topic=topic, evidence=self.some()))

    def propose(self):
        wanted = self.some() if self.random.random() < 0.5 else []
        found = intent(summary=f"proposes {self.random.random()}", supersedes=wanted)
        return self.memory.writer.submit_intent("p", found, propose=True)

    def say_the_same(self):
        return self.submit(intent(summary=f"says {self.random.random()}", topic="one", about=["a/file"]))

    def end(self):
        item = (self.some() or [self.say().iri])[0]
        ways = {"invalidate": True} if self.random.random() < 0.5 else {"supersede": f"now {self.random.random()}"}
        return self.memory.writer.correct("p", item, reason="it is so", **ways)

    def settle(self):
        waiting = self.queue(self.memory)[0]
        one = self.random.choice([*waiting] or [None])
        if one is None:
            return self.say()
        way = self.random.choice(one.actions)
        return self.memory.writer.settle("p", one.item, way, other=one.other, reason="it is so")

    def submit(self, values):
        return self.memory.writer.submit_intent("p", values)

    def moment(self):
        return (START + timedelta(hours=self.random.randint(0, 4_000))).isoformat()

    def some(self):
        return [self.random.choice(self.known)] if self.known else []

    def queue(self, memory):
        memory.catch_up("p")
        found = queued(memory.reader, "p", self.now)
        return found.waiting, found.total


@pytest.mark.parametrize("seed", [1, 2])
def test_after_every_step_of_any_life_the_queue_is_that_of_who_looks_everything_up(root, seed):
    root.mkdir(exist_ok=True)
    life, met = Life(root, seed), set()
    for _ in range(STEPS):
        life.step()
        fresh = life.later
        for observer in fresh.index.observers:
            observer.reset("https://jido.ai/projects/p/graphs/long-term-context")

        assert life.queue(life.memory) == life.queue(fresh)
        told = {(row["item"], row["reason"], row["due"]) for row in review_cache(life.memory.reader, "p").due(life.now)}
        assert told == {(row["item"], row["reason"], row["due"]) for row in due(fresh.reader, "p", life.now)}
        met |= {one.kind for one in life.queue(fresh)[0]}

    assert met >= {"conflict", "proposal", "review_due"}
