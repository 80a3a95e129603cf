"""POST /projects/{project}/recall: the same answers and refusals as in Python."""

import json

import pytest
from conftest import decision, intent

from jidomem.base.clock import format_timestamp
from jidomem.recall.briefing import markdown
from jidomem.serve.app import create_app
from jidomem.serve.memories import RECALL_FIELDS

PATH = "/projects/p/recall"


@pytest.fixture
def client(memory):
    memory.writer.submit_intent("p", decision(summary="Use quagga as the index", topic="store", about=["src/a.py"]))
    memory.writer.submit_intent("p", intent(summary="the quagga is slow", asserted_by="ana"))
    return create_app(memory).test_client()


def test_recall_over_http_answers_as_in_python(client, memory):
    for body in (
        {"query": "which quagga?"},
        {"query": "quagga", "kinds": ["decision"], "explain": True},
        {"query": "quagga", "about": ["src/a.py"], "limit": 1, "agent": "ana"},
        {"query": "quagga", "budget_tokens": 100, "include_inactive": True, "as_of": "2030-01-01"},
        {"query": "nothing of the kind"},
    ):
        in_python = memory.recall(body["query"], "p", **{k: v for k, v in body.items() if k != "query"})
        answer = client.post(PATH, json=body)
        assert answer.status_code == 200
        assert answer.json == json.loads(json.dumps(in_python.to_dict(), default=format_timestamp))
        text = client.post(PATH, json=body, headers={"Accept": "text/markdown"})
        assert text.get_data(as_text=True) == markdown(in_python)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "there is no query"),
        ({"query": 5}, "query is not a text"),
        ({"query": ""}, "query is missing or empty"),
        ({"query": "x", "kind": "fact"}, "takes no member 'kind'"),
        ({"query": "x", "kinds": "fact"}, "kinds is not a list"),
        ({"query": "x", "kinds": ["facd"]}, "'facd' is not a kind of memory"),
        ({"query": "x", "limit": "5"}, "limit is not a whole number"),
        ({"query": "x", "limit": True}, "limit=True"),
        ({"query": "x", "since": "soon"}, "since='soon'"),
        ([], "the body is not a JSON object"),
    ],
)
def test_an_invalid_request_is_refused_with_a_hint(client, body, says):
    answer = client.post(PATH, json=body)
    assert answer.status_code == 400
    assert says in answer.json["detail"]
    assert answer.json["hint"]


def test_the_description_of_the_route_has_every_member(client):
    described = client.get("/openapi.json").json
    assert described["components"]["schemas"]["Recall"]["properties"].keys() == RECALL_FIELDS.keys()
    assert "/projects/{project}/recall" in described["paths"]
    assert client.post("/projects/none/recall", json={"query": "x"}).status_code == 404
    assert client.post(f"{PATH}?x=1", json={"query": "x"}).status_code == 400
    assert client.get(PATH).status_code == 405


def test_governing_rows_are_limited_to_the_nearest_and_counted(client, memory):
    for number in range(12):
        memory.writer.submit_intent("p", decision(summary=f"one {number}", topic=f"{number}", about=["src"]))
    path = "/projects/p/governing"

    answer = client.get(f"{path}?file=src/a.py").json

    assert (answer["count"], len(answer["rows"]), answer["rows"][0]["summary"]) == (13, 10, "Use quagga as the index")
    assert [row["item"] for row in answer["rows"]] == [
        row["item"] for row in memory.governing("src/a.py", project="p", limit=10)
    ]
    assert len(client.get(f"{path}?file=src/a.py&file=src/b.py&limit=2").json["rows"]) == 4
    memory.writer.submit_intent("p", decision(summary="later", topic="later", about=["src/a.py"], status="proposed"))
    assert client.get(f"{path}?file=src/a.py").json["inactive"]["statuses"] == {"proposed": 1}
    for wrong in ("", "?file=../a.py", "?path=src/a.py", "?file=src/a.py&limit=x"):
        assert client.get(path + wrong).status_code == 400, wrong
