"""The similar memories of a receipt over HTTP and MCP: the calls of their choices succeed."""

import json
import re

import anyio
import pytest
from mcp.client.client import Client
from mcp_types import Implementation

import jidomem
from jidomem.curation.review_queue import queue
from jidomem.records.active import REASON
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions
from jidomem.serve.mcp.server import create_server
from jidomem.serve.mcp.tools import TOOLS

KNOWN = "Nightly backups go to the vault in Zurich"
REPEATED = "Backups are made nightly and go to the vault in Zurich"


@pytest.fixture(autouse=True)
def with_similar(monkeypatch):
    """Receipts show similar memories, as they do by default."""
    monkeypatch.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")


@pytest.fixture
def policy():
    return "ask"


@pytest.fixture
def memory(root, policy):
    root.mkdir()
    (root / "config.toml").write_text(f'[on_similar]\nfact = "{policy}"\n')
    with jidomem.open(root, project="p", agent="ana") as opened:
        opened.similar_within = 60.0
        opened.remember(KNOWN)
        yield opened


def facts(memory):
    return [row["summary"] for row in memory.ask("facts")]


def intent(text):
    """Return *text* as an intent of ben."""
    author = {"applies_to_project": "p", "asserted_by": "ben", "asserted_in": "s", "confidence": "high"}
    return {"type": "fact", "summary": text, **author}


def choose_by_request(memory, choice):
    """Submit REPEATED over HTTP, and send the request of a *choice* in its receipt."""
    client = create_app(memory).test_client()
    (similar,) = client.post("/projects/p/intents", json=intent(REPEATED)).json["similar"]
    method, path, body = re.fullmatch(r".*: (POST) (\S+) (.*)", similar["choices"][choice]).groups()
    body_values = {**json.loads(body), "asserted_by": "ben"}
    if REASON in body:
        assert client.open(path, method=method, json=body_values).status_code == 422
        body_values["reason"] = "measured anew"
    answer = client.open(path, method=method, json=body_values)
    assert answer.status_code == 201, answer.json
    return similar


def choose_by_tool(memory, choice):
    """Call `remember` with REPEATED over MCP, and the tool of a *choice* in its receipt."""

    async def main():
        peer = create_server(ClientSessions(memory, None, None), TOOLS)
        async with Client(peer, mode="legacy", client_info=Implementation(name="ben", version="1")) as client:
            receipt = (await client.call_tool("remember", {"text": REPEATED})).structured_content
            (similar,) = receipt["similar"]
            tool, arguments = re.fullmatch(r".*: the tool (\w+) with (.*)", similar["choices"][choice]).groups()
            values = json.loads(arguments)
            if REASON in arguments:
                assert (await client.call_tool(tool, values)).is_error
                values["reason"] = "measured anew"
            answer = await client.call_tool(tool, values)
            assert not answer.is_error, answer
            return similar

    return anyio.run(main)


@pytest.mark.parametrize("choose", [choose_by_request, choose_by_tool])
@pytest.mark.parametrize(("choice", "remaining"), [("confirm", KNOWN), ("supersede", REPEATED)])
def test_each_choice_for_a_similar_memory_leaves_one_of_the_two(memory, choose, choice, remaining):
    similar = choose(memory, choice)

    assert facts(memory) == [remaining]
    assert {name: similar[name] for name in ("text", "relation", "asserted_by", "differences")} == {
        "text": KNOWN, "relation": "repeats", "asserted_by": "ana", "differences": [],
    }  # fmt: skip
    assert [*similar["choices"]] == ["confirm", "supersede", "keep"]


@pytest.mark.parametrize("policy", ["propose"])
@pytest.mark.parametrize("choose", [choose_by_request, choose_by_tool])
@pytest.mark.parametrize(
    ("choice", "remaining"), [("confirm", [KNOWN]), ("supersede", [REPEATED]), ("keep", [KNOWN, REPEATED])]
)
def test_each_choice_settles_a_proposal(memory, choose, choice, remaining):
    choose(memory, choice)

    assert sorted(facts(memory), reverse=True) == remaining
    assert queue(memory.reader, "p", memory.sources.now()) == []


def test_a_near_memory_over_http_is_not_to_be_confirmed_though_no_value_differs(memory):
    memory.remember("ACME Corp uses the SAP integration")
    new = intent("ACME is connected to us with the integration for SAP")
    (similar,) = create_app(memory).test_client().post("/projects/p/intents", json=new).json["similar"]

    assert (similar["relation"], similar["differences"], [*similar["choices"]]) == ("near", [], ["supersede", "keep"])
