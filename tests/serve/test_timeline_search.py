"""The search of the timeline: counted facets, and the notice about further hits."""

import pytest
from conftest import decision, intent

from jidomem.extras.web.memory import COUNT, MOST_HITS
from jidomem.serve.app import create_app

MANY = MOST_HITS + 40


@pytest.fixture
def client(memory):
    """A client on a memory with many facts on walruses, the longest of which is invalidated, and some on seals."""
    facts = [intent(summary=f"walrus number {n}", asserted_by=f"a{n % 2}") for n in range(MANY)]
    old = intent(summary="walrus " + " ".join(f"among word{n}" for n in range(60)))
    receipts = memory.writer.submit_many("p", [old, *facts, decision(summary="Keep every walrus", topic="walrus")])
    memory.writer.invalidate("p", receipts[0].iri, reason="it is over", asserted_by="ana", asserted_in="s")
    memory.writer.submit_many("p", [intent(summary=f"seal number {n}") for n in range(3)])
    return create_app(memory).test_client()


def page(client, **query):
    answer = client.get("/ui/p/timeline.json", query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.json


def counts(timeline, facet):
    return {each["value"]: each["count"] for each in timeline["facets"][facet]["values"]}


def test_the_hits_of_a_word_are_counted_by_facet(client):
    timeline = page(client, q="seal")

    assert timeline["found"] == {"count": 3, "fitting": 3, "more": False}
    assert counts(timeline, "kind") == {"Fact": 3}
    assert counts(timeline, "state") == {"active": 3}
    shown = client.get("/ui/p/timeline?q=seal").text
    assert "3 found, the best first" in shown
    assert shown.count(">words: 1 of 1 word of the question: seal (rare)<") == 3


def test_hits_above_the_limit_are_announced(client):
    timeline = page(client, q="walrus")

    assert timeline["found"] == {"count": MOST_HITS, "fitting": MOST_HITS, "more": True}
    assert len(timeline["days"][0]["memories"]) == COUNT
    for facet in ("kind", "agent", "session", "state"):
        assert sum(counts(timeline, facet).values()) == MOST_HITS
    assert f"The first {MOST_HITS} found, the best first" in client.get("/ui/p/timeline?q=walrus").text


def test_an_ended_memory_is_found_among_many_active_ones(client):
    timeline = page(client, q="walrus", state="ended")

    assert [each["status"] for each in timeline["days"][0]["memories"]] == ["invalidated"]
    assert counts(timeline, "state")["ended"] == 1
    assert counts(timeline, "kind") == {"Fact": 1}


def test_filters_apply_before_the_limit_of_hits(client):
    timeline = page(client, q="walrus", kind="ArchitecturalDecision")

    assert [each["class"] for each in timeline["days"][0]["memories"]] == ["ArchitecturalDecision"]
    assert timeline["found"] == {"count": 1, "fitting": 1, "more": False}
