"""What an agent holds now and what was said, over HTTP and MCP: the same as in Python, for those it is there for."""

import json

import anyio
import pytest
from conftest import fixed_sources
from mcp.client.client import Client
from mcp_types import Implementation

import jidomem
from jidomem.rdf.vocab import local_name
from jidomem.read.derived import session, sessions
from jidomem.records.policy import PolicyChange
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions
from jidomem.serve.mcp.server import create_server
from jidomem.serve.mcp.tools import RECORD_TURN, TOOLS, WORKING

PATH = "/projects/p/agents/ana/memory"
TASK = {"do": "tasks_add", "text": "ask about the index", "id": "t1"}
LANGUAGE = {"do": "world_put", "key": "language", "value": "en"}


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        yield memory


@pytest.fixture
def client(memory):
    memory.writer.remember("p", "the build needs Rust 1.80")
    return create_app(memory).test_client()


@pytest.fixture
def token(memory):
    root = memory.settings.root

    def header(agent, role="agent"):
        secret, _ = Keyring(own_config(), root).give_out(agent, role, ("p",), memory.sources)
        return {"headers": {"Authorization": f"Bearer {secret}"}}

    return header


def test_what_is_changed_over_http_is_what_python_holds(client, memory):
    told = client.patch(PATH, json={"changes": [TASK, LANGUAGE], "expected_rev": 0})

    held = memory.agent("ana", project="p").get()
    assert (told.status_code, told.json) == (200, held.to_dict())
    assert (held.tasks_next()["text"], held.world()) == ("ask about the index", {"language": "en"})
    assert client.get(PATH).json == held.to_dict()
    rows = client.get("/projects/p/agents").json["rows"]
    assert [(row["agent"], row["rev"], row["open_tasks"]) for row in rows] == [("ana", 2, 1)]


def test_what_is_forgotten_is_not_there_any_more(client):
    client.patch(PATH, json={"changes": [TASK]})

    assert client.delete(PATH).json == {"forgotten": True}
    assert client.delete(PATH).json == {"forgotten": False}
    missing = client.get(PATH)
    assert (missing.status_code, missing.json["code"]) == (404, "not_found")
    assert "PATCH this address" in missing.json["hint"]


@pytest.mark.parametrize(
    ("sent", "status", "why"),
    [
        ({}, 400, "there are no changes"),
        ({"changes": LANGUAGE}, 400, "changes is not a list"),
        ({"changes": [{"do": "world_set"}]}, 400, "change 1: do='world_set' is not a change of a memory"),
        ({"changes": [LANGUAGE, {"do": "tasks_complete", "id": "t9"}]}, 404, "change 2: no item of space 'tasks'"),
        ({"changes": [LANGUAGE], "expected_rev": 7}, 409, "the memory of 'ana' is at revision 0, not at 7"),
        ({"changes": [LANGUAGE], "rev": 7}, 400, "takes no member 'rev'"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_held(client, memory, sent, status, why):
    answer = client.patch(PATH, json=sent)

    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert why in answer.json["detail"]
    assert answer.json["hint"]
    assert memory.agent("ana", project="p").get() is None


def test_each_agent_reaches_its_own_and_a_curator_all(client, memory, token):
    ana, ben, reader, curator = token("Ana"), token("ben"), token("rita", "reader"), token("carl", "curator")
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()
    assert client.patch(PATH, json={"changes": [TASK]}, **ana).status_code == 200

    for who in (ben, reader):
        for ask in (client.get, client.delete):
            refused = ask(PATH, **who)
            assert (refused.status_code, refused.json["code"]) == (403, "policy_denied")
            assert "ask about the index" not in refused.text
        assert client.get("/projects/p/agents", **who).json["rows"] == []
    own = client.patch("/projects/p/agents/rita/memory", json={"changes": [TASK]}, **reader)
    assert (own.status_code, "read-only token" in own.json["detail"]) == (403, True)
    assert client.get(PATH, **curator).json["rev"] == 1
    assert [row["agent"] for row in client.get("/projects/p/agents", **curator).json["rows"]] == ["ana"]
    assert client.get("/projects/q/agents/ana/memory", **ana).status_code == 404


def test_a_name_that_is_none_and_a_project_that_is_none_are_told(client):
    assert client.get("/projects/p/agents/.../memory").status_code == 400
    assert client.get("/projects/nowhere/agents/ana/memory").json["code"] == "unknown_project"


def called(desks, *calls, name="Ana", tool="working", reads="memory://working"):
    """The result of each call of the tool, and what the resource says then."""

    async def main():
        who = Implementation(name=name, version="1")
        async with Client(
            create_server(desks, (*TOOLS, WORKING, RECORD_TURN)), mode="legacy", client_info=who
        ) as client:
            told = [await client.call_tool(tool, arguments) for arguments in calls]
            return told, (await client.read_resource(reads)).contents[0].text

    return anyio.run(main)


def test_an_agent_changes_and_reads_over_mcp_what_it_holds(client, memory):
    (empty, changed, refused), text = called(
        ClientSessions(memory), {}, {"changes": [TASK, LANGUAGE]}, {"changes": [TASK], "expected_rev": 2}
    )

    held = {"rev": 2, "world": {"language": "en"}, "tasks": [{"id": "t1", "text": TASK["text"], "status": "open"}]}
    assert empty.structured_content == {"rev": 0, "world": {}, "tasks": [], "spaces": {}}
    assert changed.structured_content == json.loads(text) == {**held, "spaces": {}}
    assert refused.is_error
    assert refused.content[0].text.startswith("refused (invalid_argument): change 1: ")
    assert client.get(PATH).json["rev"] == 2
    _, other = called(ClientSessions(memory), name="ben")
    assert json.loads(other)["tasks"] == []


TALK = "/projects/p/conversations/evening"
TURN = {"prompt": "which index?", "asked_by": "ben", "answer": "Oxigraph",
        "tools": [{"name": "search", "parameters": {"query": "index"}, "result": [1]}],
        "timestamp": "2026-11-20T10:00:00Z"}  # fmt: skip


def test_turns_recorded_over_http_are_those_python_reads_and_evidence_of_a_memory(client, memory):
    first = client.post(TALK, json=TURN)
    second = client.post(TALK, json={"prompt": "and the journal?"})

    turns = memory.conversation("evening").turns()
    assert (first.status_code, second.status_code) == (201, 201)
    assert [first.json, second.json] == [turn.to_dict() for turn in turns] == client.get(TALK).json["rows"]
    assert client.get(f"{TALK}?last=1").json["rows"] == [second.json]
    assert first.json["tools"] == TURN["tools"]
    kept = memory.writer.remember("p", "the index is Oxigraph", evidence=[first.json["iri"]])
    assert memory.reader.get_memory("p", kept.iri)["properties"]["derivedFrom"] == [first.json["iri"]]


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({}, "the turn is empty"),
        ({"prompt": 5}, "prompt is not a text"),
        ({"prompt": "x", "tools": [5]}, "5 is not a call of a tool"),
        ({"prompt": "x", "tools": [{"name": "a", "given": 1}]}, "is not a call of a tool"),
        ({"prompt": "x", "timestamp": "soon"}, "timestamp='soon' is not a date or time"),
        ({"prompt": "x", "answered_by": "ana"}, "answered_by='ana' without a text"),
        ({"question": "x"}, "takes no member 'question'"),
    ],
)
def test_what_is_no_turn_is_refused_and_none_is_recorded(client, memory, sent, why):
    answer = client.post(TALK, json=sent)

    assert answer.status_code == 400
    assert why in answer.json["detail"]
    assert answer.json["hint"]
    assert memory.conversation("evening").turns() == []


def test_an_agent_records_its_own_words_and_no_others(client, memory, token):
    ana, curator = token("ana"), token("carl", "curator")
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()

    refused = client.post(TALK, json={**TURN, "answered_by": "carl"}, **ana)
    own = client.post(TALK, json={**TURN, "asked_by": "ana"}, **ana)
    asked = client.post(TALK, json={**TURN, "asked_by": "boss"}, **ana)
    other = client.post(TALK, json={**TURN, "answered_by": "ana", "asked_by": "boss"}, **curator)

    assert (refused.status_code, refused.json["code"]) == (403, "policy_denied")
    assert (asked.status_code, asked.json["code"], "asked_by" in asked.json["hint"]) == (403, "policy_denied", True)
    assert (own.status_code, other.status_code) == (201, 201)
    assert own.json["answered_by"].endswith("/ana")


def test_a_turn_told_over_mcp_is_of_the_session_in_which_its_client_remembers(memory):
    desks = ClientSessions(memory, session="s-7")
    (told, refused), text = called(
        desks,
        {"prompt": "which index?", "answer": "Oxigraph", "tools": [{"name": "search"}]},
        {"question": "x"},
        tool="said",
        reads="memory://conversation/s-7",
    )

    (turn,) = memory.conversation("s-7").turns()
    assert told.structured_content == turn.to_dict() == json.loads(text)[0]
    assert (turn.answered_by.rsplit("/")[-1], refused.is_error) == ("ana", True)


def test_a_session_that_begins_with_a_prompt_alone_is_opened_and_closed_by_the_agent_who_was_asked(memory):
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    desks = ClientSessions(memory)
    (told,), _ = called(desks, {"prompt": "which index?"}, tool="said")

    (opened,) = sessions(memory.reader, "p")
    desks.leave()

    assert (told.is_error, local_name(opened["agent"])) == (False, "ana")
    assert local_name(session(memory.reader, "p", opened["session"])["status"]) == "Closed"
