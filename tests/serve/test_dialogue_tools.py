"""The dialogue of an agent over MCP: kept page by page, found by tier, and no other agent's."""

import json

import anyio
import pytest
from conftest import fixed_sources
from mcp.client.client import Client
from mcp_types import Implementation

import jidomem
from jidomem.serve.mcp.client_session import ClientSessions
from jidomem.serve.mcp.server import create_server
from jidomem.serve.mcp.tools import FIND_PAGES, KEEP_PAGE


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        yield memory


def called(memory, name, *calls):
    """The result of each call, (tool, arguments), made by the client of that name."""

    async def main():
        peer = create_server(ClientSessions(memory, None, None), (KEEP_PAGE, FIND_PAGES))
        async with Client(peer, mode="legacy", client_info=Implementation(name=name, version="1")) as client:
            return [await client.call_tool(tool, given) for tool, given in calls]

    return anyio.run(main)


def test_what_is_kept_is_found_by_tier_with_scores_and_by_nobody_else(memory):
    memory.os("ada").configure(stm_capacity=1, heat_threshold=1.5)
    said = [("I work as a nurse.", "Noted."), ("Which index do we use?", "Oxigraph."), ("Thanks.", "")]

    kept = called(memory, "ada", *(("keep_page", {"query": query, "response": response, "about": "user:ana"})
                                   for query, response in said))  # fmt: skip
    memory.os("ada").maintain()
    (found,) = called(memory, "ada", ("find_pages", {"query": "the work of a nurse", "about": "user:ana"}))
    (other,) = called(memory, "bob", ("find_pages", {"query": "the work of a nurse"}))

    values = found.structured_content
    assert [each["id"] for each in values["stm"]] == [kept[2].structured_content["id"]]
    assert values["pages"][0]["query"] == said[0][0]
    assert {"id", "score", "timestamp"} <= values["pages"][0].keys()
    assert values["personas"][0]["knowledge"][0]["text"] == "works as a nurse"
    assert json.loads(found.content[0].text) == values
    assert (other.structured_content["stm"], other.structured_content["pages"]) == ([], [])
    assert "nurse" not in json.dumps(other.structured_content["personas"])


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("keep_page", {"query": "x", "response": "y", "about": "ana"}, 'about="user:ana"'),
        ("keep_page", {"query": "x"}, "response"),
        ("find_pages", {"query": " "}, "is a text that is not blank"),
    ],
)
def test_what_cannot_be_kept_or_asked_is_refused_with_what_would_do(memory, tool, given, said):
    (refused,) = called(memory, "ada", (tool, given))

    assert refused.is_error
    assert said in refused.content[0].text
