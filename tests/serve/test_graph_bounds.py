"""The graph page above its limits."""

import pytest
from conftest import decision, intent

import jidomem
from jidomem.extras.web.memory import LINKS, MOST
from jidomem.serve.app import create_app

RIVALS = 48


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client on decisions that all conflict, one of them superseded, and a topic of more memories than are drawn."""
    root = tmp_path_factory.mktemp("root")
    (root / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
    with jidomem.open(root) as memory:
        rivals = [decision(summary=f"Use store {n}", topic="the store") for n in range(RIVALS)]
        first = memory.writer.submit_many("p", rivals)[0].iri
        memory.writer.submit_intent("p", decision(summary="Use none", topic="the store", supersedes=[first]))
        facts = [intent(type="discovery", summary=f"found {n}", topic="big") for n in range(MOST + 1)]
        memory.writer.submit_many("p", facts)
        yield create_app(memory).test_client()


def test_links_above_the_limit_are_counted_and_supersession_is_shown(client):
    graph = client.get("/ui/p/graph.json?topic=the store").json

    kinds = [link["kind"] for node in graph["nodes"] for link in node["links"]]
    assert len(kinds) == LINKS
    assert "supersedes" in kinds  # this kind is never dropped
    assert graph["links_left_out"] > 0
    text = client.get("/ui/p/graph?topic=the store").text
    assert f"{graph['links_left_out']:,} more links are not shown" in text


def test_a_topic_above_the_limit_is_marked_incomplete(client):
    graph = client.get("/ui/p/graph.json?topic=big").json

    assert (len(graph["nodes"]), graph["is_full"], graph["links_left_out"]) == (MOST, True, 0)
    assert "There may be more on this topic" in client.get("/ui/p/graph?topic=big").text
    assert "There may be more" not in client.get("/ui/p/graph?topic=the store").text
