"""What the timeline finds by words: what of it is counted, and what is said of the rest."""

import pytest
from conftest import decision, intent

from jidomem.extras.web.memory import COUNT, MOST_HITS
from jidomem.serve.app import create_app

MANY = MOST_HITS + 40


@pytest.fixture
def client(memory):
    """A client on a memory with many facts on walruses, the longest of which was withdrawn, and some on seals."""
    facts = [intent(summary=f"walrus number {n}", asserted_by=f"a{n % 2}") for n in range(MANY)]
    old = intent(summary="walrus " + " ".join(f"among word{n}" for n in range(60)))
    receipts = memory.writer.submit_many("p", [old, *facts, decision(summary="Keep every walrus", topic="walrus")])
    memory.writer.invalidate("p", receipts[0].iri, reason="it is over", asserted_by="ana", asserted_in="s")
    memory.writer.submit_many("p", [intent(summary=f"seal number {n}") for n in range(3)])
    return create_app(memory).test_client()


def page(client, **given):
    answer = client.get("/ui/p/timeline.json", query_string=given)
    assert answer.status_code == 200, answer.text
    return answer.json


def counts(told, facet):
    return {each["value"]: each["count"] for each in told["facets"][facet]["values"]}


def test_what_few_words_find_is_counted_and_nothing_else(client):
    told = page(client, q="seal")

    assert told["found"] == {"count": 3, "fitting": 3, "more": False}
    assert counts(told, "kind") == {"Fact": 3}
    assert counts(told, "state") == {"active": 3}
    shown = client.get("/ui/p/timeline?q=seal").text
    assert "3 found, the best first" in shown
    assert shown.count(">words: 1 of 1 word of the question: seal (rare)<") == 3


def test_of_more_than_is_looked_at_the_page_says_so(client):
    told = page(client, q="walrus")

    assert told["found"] == {"count": MOST_HITS, "fitting": MOST_HITS, "more": True}
    assert len(told["days"][0]["memories"]) == COUNT
    for facet in ("kind", "agent", "session", "state"):
        assert sum(counts(told, facet).values()) == MOST_HITS
    assert f"The first {MOST_HITS} found, the best first" in client.get("/ui/p/timeline?q=walrus").text


def test_what_ended_is_found_behind_many_that_are_in_force(client):
    told = page(client, q="walrus", state="ended")

    assert [each["status"] for each in told["days"][0]["memories"]] == ["invalidated"]
    assert counts(told, "state")["ended"] == 1
    assert counts(told, "kind") == {"Fact": 1}


def test_words_are_narrowed_down_before_the_first_are_taken(client):
    told = page(client, q="walrus", kind="ArchitecturalDecision")

    assert [each["class"] for each in told["days"][0]["memories"]] == ["ArchitecturalDecision"]
    assert told["found"] == {"count": 1, "fitting": 1, "more": False}
