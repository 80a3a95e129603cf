"""MemoryOS with a model behind a real socket: no fault of the endpoint loses a page, and the job is retried."""

import json
from datetime import timedelta
from itertools import count

import pytest
from conftest import START
from http_endpoint import STALL, reply, served

import jidomem
from jidomem.base.clock import Sources
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.models.chat import ChatModel
from jidomem.models.embeddings import EndpointEmbedder
from jidomem.models.endpoint import ModelEndpoint, Outside, Patience

SAID = ["Which index do we use?", "Where does it lie?", "And for lunch?"]
FACTS = [{"subject": "object", "text": text, "confidence": 0.9} for text in ("likes tea", "has a ox", "is in Oslo")]
TASKS = {
    "facts": FACTS,
    "scores": [0.9, 0.1, 0.1],
    "chain": "of indexes",
    "continues": False,
    "keywords": ["index"],
    "topics": [{"theme": "a", "summary": "b"}],
}


def vector(text):
    return [float(1 + text.count(letter)) for letter in "aeio"]


def sound(body):
    """What a sound endpoint answers, with the vectors in another order than they were asked for."""
    if "input" in body:
        data = [{"index": number, "embedding": vector(text)} for number, text in enumerate(body["input"])]
        return reply({"data": data[::-1]})
    asked = next(name for name in TASKS if f'{{"{name}": ' in body["messages"][0]["content"])
    content = json.dumps({asked: TASKS[asked], **({"traits": []} if asked == "facts" else {})})
    return reply({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})


class AtFirst:
    """An endpoint that is sound but for its first answer to a request for vectors, or to one for words."""

    def __init__(self, wrong, of_vectors):
        self.wrong, self.of_vectors = wrong, of_vectors

    def __call__(self, body):
        if self.wrong is not None and self.of_vectors == ("input" in body):
            wrong, self.wrong = self.wrong, None
            return wrong
        return sound(body)


def vectors(*numbers):
    return reply(json.dumps({"data": [{"index": 0, "embedding": numbers}]}))


BUSY = reply("{}", "429 Slow", Retry_After="7")
FAULTS = {
    "too many requests": ([AtFirst(BUSY, False)], "answered 429"),
    "too many vectors": ([AtFirst(BUSY, True)], "answered 429"),
    "an error of theirs": ([AtFirst(reply("{}", "500 Oops"), False)], "answered 500"),
    "a stall": ([STALL, sound], "was silent for too long"),
    "a cut body": ([AtFirst(reply({"choices": [1, 2, 3]})[:-4], False)], "broke off"),
    "a cut body of vectors": ([AtFirst(vectors(1, 2, 3, 4)[:-4], True)], "broke off"),
    "another dimension": ([AtFirst(vectors(1, 2, 3), True)], "returned a vector of 3 numbers, not 4"),
    "no number": ([AtFirst(vectors(1, 2, float("nan"), 4), True)], "no JSON object"),
    "a vector that points nowhere": ([AtFirst(vectors(0, 0, 0, 0), True)], "zero or infinite length"),
    "words that are no answer": ([AtFirst(reply({"choices": []}), False)], "answered with no choice"),
}


def opened(root, told, now, patience):
    """The agent of a root, whose model is asked at an endpoint."""
    waits = []
    outside = Outside(sleep=waits.append, chance=lambda: 1.0, now=now)
    endpoint = ModelEndpoint(told.url, None, patience, outside=outside)
    model = ChatModel(endpoint, "small", EndpointEmbedder(endpoint, "e", 4))
    memory = jidomem.open(root, project="p", agent="ada", sources=Sources(now=now))
    return (
        memory,
        memory.os(model=model, policy=TierPolicy(MemoryOSConfig(stm_capacity=1, heat_threshold=1.5)), work="queued"),
        waits,
    )


def places(tiers):
    held = {"stm": tiers.stm, "leaving": tiers.leaving, "mtm": [one for each in tiers.mtm for one in each.pages]}
    return sorted((page.query, place) for place, pages in held.items() for page in pages)


# D065 D107
@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_that_will_not_do_loses_nothing_and_is_asked_for_again(root, fault):
    ticks, further = count(), [timedelta()]
    replies, told_as = FAULTS[fault]
    with served(*replies) as told:
        memory, ada, _ = opened(
            root, told, lambda: START + timedelta(seconds=next(ticks)) + further[0], Patience(tries=1, silence=0.3)
        )
        for said in SAID:
            ada.add(said, "Noted.")

        failed = [each for each in ada.run_jobs() if not each.ok]
        met = places(ada.tiers)
        while ada.jobs():
            further[0] += timedelta(minutes=1)
            ada.run_jobs()
        healed, held = places(ada.tiers), [*ada.tiers.pages()]
        memory.close()

    assert told_as in failed[0].error
    assert [said for said, _ in met] == sorted(SAID)
    assert healed == sorted([(SAID[0], "mtm"), (SAID[1], "mtm"), (SAID[2], "stm")])
    assert {page.query: page.embedding for page in held} == {page.query: tuple(vector(page.text)) for page in held}
    assert {page.meta_chain for page in held} == {"of indexes"}


# D065 D090
def test_a_wait_that_is_asked_for_is_kept_and_vectors_in_another_order_are_of_their_texts(root):
    ticks = count()
    with served(AtFirst(BUSY, False)) as told:
        memory, ada, waits = opened(root, told, lambda: START + timedelta(seconds=next(ticks)), Patience(tries=2))
        for said in SAID:
            ada.add(said, "Noted.", about=("user", "ana"))

        outcomes = [*ada.run_jobs(), *ada.maintain()]
        facts, system = ada.personas[0].knowledge, ada.system_memory.entries
        memory.close()

    assert ([each.error for each in outcomes if not each.ok], waits) == ([], [7.0])
    assert {fact.text: fact.embedding for fact in facts} == {
        each["text"]: tuple(vector(each["text"])) for each in FACTS}  # fmt: skip
    assert [(entry.content, entry.embedding) for entry in system] == [("likes tea", tuple(vector("likes tea")))]
