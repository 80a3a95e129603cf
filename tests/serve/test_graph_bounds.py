"""The graph where there is more of it than a page can hold."""

import pytest
from conftest import decision, intent

import jidomem
from jidomem.extras.web.memory import LINKS, MOST
from jidomem.serve.app import create_app

RIVALS = 48


@pytest.fixture
def client(tmp_path):
    """A client on decisions that all disagree, one of which was replaced, and a topic of more than is drawn."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
    with jidomem.open(root) as memory:
        rivals = [decision(summary=f"Use store {n}", topic="the store") for n in range(RIVALS)]
        first = memory.writer.submit_many("p", rivals)[0].iri
        memory.writer.submit_intent("p", decision(summary="Use none", topic="the store", supersedes=[first]))
        facts = [intent(type="discovery", summary=f"found {n}", topic="big") for n in range(MOST + 1)]
        memory.writer.submit_many("p", facts)
        yield create_app(memory).test_client()


def test_of_links_that_are_too_many_the_page_keeps_some_and_counts_the_others(client):
    told = client.get("/ui/p/graph.json?topic=the store").json

    kinds = [link["kind"] for node in told["nodes"] for link in node["links"]]
    assert len(kinds) == LINKS
    assert "supersedes" in kinds  # the one that tells most is not among those left out
    assert told["links_left_out"] > 0
    text = client.get("/ui/p/graph?topic=the store").text
    assert f"{told['links_left_out']:,} more links are not shown" in text


def test_of_a_topic_that_is_too_large_the_page_says_that_there_may_be_more(client):
    told = client.get("/ui/p/graph.json?topic=big").json

    assert (len(told["nodes"]), told["is_full"], told["links_left_out"]) == (MOST, True, 0)
    assert "There may be more on this topic" in client.get("/ui/p/graph?topic=big").text
    assert "There may be more" not in client.get("/ui/p/graph?topic=the store").text
