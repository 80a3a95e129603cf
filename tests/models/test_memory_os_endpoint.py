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
from jidomem.models.endpoint import EndpointEnvironment, ModelEndpoint, RequestTimeouts

QUERIES = ["Which index do we use?", "Where does it lie?", "And for lunch?"]
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


def valid_reply(body):
    """Return a valid reply, with the vectors in the reverse order of their texts."""
    if "input" in body:
        data = [{"index": number, "embedding": vector(text)} for number, text in enumerate(body["input"])]
        return reply({"data": data[::-1]})
    task = next(name for name in TASKS if f'{{"{name}": ' in body["messages"][0]["content"])
    content = json.dumps({task: TASKS[task], **({"traits": []} if task == "facts" else {})})
    return reply({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})


class FirstReplyFaulty:
    """An endpoint whose first reply to a request for vectors, or to one for text, is faulty."""

    def __init__(self, wrong, of_vectors):
        self.wrong, self.of_vectors = wrong, of_vectors

    def __call__(self, body):
        if self.wrong is not None and self.of_vectors == ("input" in body):
            wrong, self.wrong = self.wrong, None
            return wrong
        return valid_reply(body)


def vectors(*numbers):
    return reply(json.dumps({"data": [{"index": 0, "embedding": numbers}]}))


BUSY = reply("{}", "429 Slow", Retry_After="7")
FAULTS = {
    "too many requests": ([FirstReplyFaulty(BUSY, False)], "answered 429"),
    "too many vectors": ([FirstReplyFaulty(BUSY, True)], "answered 429"),
    "an error of theirs": ([FirstReplyFaulty(reply("{}", "500 Oops"), False)], "answered 500"),
    "a stall": ([STALL, valid_reply], "was silent for too long"),
    "a cut body": ([FirstReplyFaulty(reply({"choices": [1, 2, 3]})[:-4], False)], "broke off"),
    "a cut body of vectors": ([FirstReplyFaulty(vectors(1, 2, 3, 4)[:-4], True)], "broke off"),
    "another dimension": ([FirstReplyFaulty(vectors(1, 2, 3), True)], "returned a vector of 3 numbers, not 4"),
    "no number": ([FirstReplyFaulty(vectors(1, 2, float("nan"), 4), True)], "no JSON object"),
    "a vector that points nowhere": ([FirstReplyFaulty(vectors(0, 0, 0, 0), True)], "zero or infinite length"),
    "words that are no answer": ([FirstReplyFaulty(reply({"choices": []}), False)], "answered with no choice"),
}


def open_agent(root, server, now, patience):
    """Open the agent of a root with a model at an endpoint."""
    waits = []
    outside = EndpointEnvironment(sleep=waits.append, chance=lambda: 1.0, now=now)
    endpoint = ModelEndpoint(server.url, None, patience, outside=outside)
    model = ChatModel(endpoint, "small", EndpointEmbedder(endpoint, "e", 4))
    memory = jidomem.open(root, project="p", agent="ada", sources=Sources(now=now))
    return (
        memory,
        memory.os(model=model, policy=TierPolicy(MemoryOSConfig(stm_capacity=1, heat_threshold=1.5)), work="queued"),
        waits,
    )


def places(tiers):
    by_tier = {
        "stm": tiers.stm,
        "leaving": tiers.leaving,
        "mtm": [one for segment in tiers.mtm for one in segment.pages],
    }
    return sorted((page.query, place) for place, pages in by_tier.items() for page in pages)


# D065 D107
@pytest.mark.parametrize("fault", FAULTS)
def test_an_endpoint_fault_loses_no_page_and_its_job_is_retried(root, fault):
    ticks, further = count(), [timedelta()]
    replies, message = FAULTS[fault]
    with served(*replies) as server:
        memory, ada, _ = open_agent(
            root,
            server,
            lambda: START + timedelta(seconds=next(ticks)) + further[0],
            RequestTimeouts(tries=1, silence=0.3),
        )
        for query in QUERIES:
            ada.add(query, "Noted.")

        failed = [each for each in ada.run_jobs() if not each.ok]
        pages_after_fault = places(ada.tiers)
        while ada.jobs():
            further[0] += timedelta(minutes=1)
            ada.run_jobs()
        pages_after_retry, pages = places(ada.tiers), [*ada.tiers.pages()]
        memory.close()

    assert message in failed[0].error
    assert [query for query, _ in pages_after_fault] == sorted(QUERIES)
    assert pages_after_retry == sorted([(QUERIES[0], "mtm"), (QUERIES[1], "mtm"), (QUERIES[2], "stm")])
    assert {page.query: page.embedding for page in pages} == {page.query: tuple(vector(page.text)) for page in pages}
    assert {page.meta_chain for page in pages} == {"of indexes"}


# D065 D090
def test_a_retry_after_pause_is_waited_and_vectors_are_assigned_to_their_texts(root):
    ticks = count()
    with served(FirstReplyFaulty(BUSY, False)) as server:
        memory, ada, waits = open_agent(
            root, server, lambda: START + timedelta(seconds=next(ticks)), RequestTimeouts(tries=2)
        )
        for query in QUERIES:
            ada.add(query, "Noted.", about=("user", "ana"))

        outcomes = [*ada.run_jobs(), *ada.maintain()]
        facts, system = ada.personas[0].knowledge, ada.system_memory.entries
        memory.close()

    assert ([each.error for each in outcomes if not each.ok], waits) == ([], [7.0])
    assert {fact.text: fact.embedding for fact in facts} == {
        each["text"]: tuple(vector(each["text"])) for each in FACTS}  # fmt: skip
    assert [(entry.content, entry.embedding) for entry in system] == [("likes tea", tuple(vector("likes tea")))]
