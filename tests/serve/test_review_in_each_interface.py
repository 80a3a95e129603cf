"""The review queue of one agent is the same in Python, over HTTP and over MCP."""

import json

import pytest
from conftest import fixed_sources, intent

import jidomem
from jidomem.curation.review_queue import queue, queued, with_endings
from jidomem.errors import NotFound
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession
from jidomem.serve.mcp.server import resource_text


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        for number, name in enumerate(("ana", "ben", "ben", "ben")):
            memory.writer.submit_intent("p", intent(summary=f"fact {number} of {name}", asserted_by=name), propose=True)
        yield memory


def test_the_proposals_of_one_agent_are_equal_in_each_interface(memory):
    now = memory.sources.now()
    whole, own = queue(memory.reader, "p", now), queue(memory.reader, "p", now, by="ben")
    rows = jidomem.json_value([one.to_dict() for one in with_endings(memory.reader, "p", own)])
    client = create_app(memory).test_client()

    first = client.get("/projects/p/conflicts?by=ben&limit=2").json
    rest = client.get("/projects/p/conflicts", query_string={"by": "ben", "limit": 9, "cursor": first["cursor"]}).json
    _, text = resource_text(ClientSession(memory, "ana"), "memory://conflicts/ben")

    assert (len(whole), len(own)) == (4, 3)
    assert [one.item for one in queued(memory.reader, "p", now, by="ben").waiting] == [one.item for one in own]
    assert [*first["rows"], *rest["rows"]] == json.loads(json.dumps(rows))
    assert [(row["item"], row["summary"], row["actions"]) for row in json.loads(text)] == [
        (row["item"][-8:], row["summary"], row["actions"]) for row in rows
    ]


def test_an_unknown_agent_is_refused_with_the_nearest_one_in_each_interface(memory):
    with pytest.raises(NotFound, match="'bem'") as in_python:
        queue(memory.reader, "p", memory.sources.now(), by="bem")
    over_http = create_app(memory).test_client().get("/projects/p/conflicts?by=bem")
    with pytest.raises(NotFound, match="'bem'"):
        resource_text(ClientSession(memory, "ana"), "memory://conflicts/bem")

    assert "ben" in in_python.value.hint
    assert (over_http.status_code, "ben" in over_http.json["hint"]) == (404, True)
