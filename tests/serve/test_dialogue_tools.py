"""The dialogue of an agent over MCP: stored page by page, searched by tier, and separate by agent."""

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


def call_tools(memory, name, *calls):
    """The result of each call, (tool, arguments), of the client with that name."""

    async def main():
        peer = create_server(ClientSessions(memory, None, None), (KEEP_PAGE, FIND_PAGES))
        async with Client(peer, mode="legacy", client_info=Implementation(name=name, version="1")) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    return anyio.run(main)


def test_pages_are_found_by_tier_with_scores_and_not_by_another_agent(memory):
    memory.os("ada").configure(stm_capacity=1, heat_threshold=1.5)
    turns = [("I work as a nurse.", "Noted."), ("Which index do we use?", "Oxigraph."), ("Thanks.", "")]

    stored = call_tools(memory, "ada", *(("keep_page", {"query": query, "response": response, "about": "user:ana"})
                                   for query, response in turns))  # fmt: skip
    memory.os("ada").maintain()
    (results,) = call_tools(memory, "ada", ("find_pages", {"query": "the work of a nurse", "about": "user:ana"}))
    (other,) = call_tools(memory, "bob", ("find_pages", {"query": "the work of a nurse"}))

    values = results.structured_content
    assert [each["id"] for each in values["stm"]] == [stored[2].structured_content["id"]]
    assert values["pages"][0]["query"] == turns[0][0]
    assert {"id", "score", "timestamp"} <= values["pages"][0].keys()
    assert values["personas"][0]["knowledge"][0]["text"] == "works as a nurse"
    assert json.loads(results.content[0].text) == values
    assert (other.structured_content["stm"], other.structured_content["pages"]) == ([], [])
    assert "nurse" not in json.dumps(other.structured_content["personas"])


def test_where_users_share_a_user_gets_marked_pages_but_no_facts_and_no_private_pages_of_another_user(memory):
    memory.os("ada").configure(stm_capacity=1, heat_threshold=0.5, share_users=True)
    said = [("tobias", "I am a nurse from Porto."), ("tobias", "I have an interview. Please tell nobody."),
            ("tobias", "Thanks."), ("marta", "Is there soup?")]  # fmt: skip
    call_tools(memory, "ada", *(("keep_page", {"query": text, "response": "Noted.", "about": f"user:{user}"})
                                for user, text in said))  # fmt: skip
    memory.os("ada").maintain()

    def find(**about):
        (results,) = call_tools(memory, "ada", ("find_pages", {"query": "nurse interview", **about}))
        return results.structured_content

    for asks in ("user:marta", "user:nobody"):
        values = find(about=asks)
        assert [(each["query"], each["about"]) for each in (*values["stm"], *values["pages"])] == [
            ("Is there soup?", "user:marta"),
            ("I am a nurse from Porto.", "user:tobias"),
            ("Thanks.", "user:tobias"),
        ]
        assert {each["about"] for each in values["segments"]} == {"user:tobias"}
        assert "nurse" not in json.dumps(values["personas"])
        assert "interview" not in json.dumps(values)
    assert "interview" not in json.dumps(find())
    values = find(about="user:tobias")
    assert "interview" in json.dumps(values["pages"])
    assert "interview" in json.dumps(values["personas"])

    memory.os("ada").configure(share_users=False)
    shown = [[(each["query"], each["about"]) for tier in ("stm", "leaving", "pages") for each in find(**about)[tier]]
             for about in ({"about": "user:marta"}, {"about": "user:nobody"}, {})]  # fmt: skip
    assert shown == [[("Is there soup?", "user:marta")], [], []]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("keep_page", {"query": "x", "response": "y", "about": "ana"}, 'about="user:ana"'),
        ("keep_page", {"query": "x"}, "response"),
        ("find_pages", {"query": " "}, "is a text that is not blank"),
    ],
)
def test_invalid_arguments_of_the_dialogue_tools_are_refused_with_a_hint(memory, tool, arguments, message):
    (refused,) = call_tools(memory, "ada", (tool, arguments))

    assert refused.is_error
    assert message in refused.content[0].text
