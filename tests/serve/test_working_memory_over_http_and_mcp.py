"""The working memory and the conversation of an agent over HTTP and MCP: equal to Python, and private to the agent."""

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
        secret, _ = Keyring(own_config(), root).issue(agent, role, ("p",), memory.sources)
        return {"headers": {"Authorization": f"Bearer {secret}"}}

    return header


def test_an_expired_key_is_shown_nowhere_and_deleted_by_the_next_change(client, memory, tmp_path):
    gate = {"do": "world_put", "key": "gate", "value": "gate 14", "ttl_ms": 1}  # each look at the clock takes a second

    changed = client.patch(PATH, json={"changes": [LANGUAGE, gate]})

    shown = client.get(PATH).json
    assert shown["spaces"]["world"]["data"] == {"language": "en"}
    assert shown["rev"] == changed.json["rev"]
    tools = ClientSessions(memory, None, None)

    async def working():
        async with Client(
            create_server(tools, TOOLS), mode="legacy", client_info=Implementation(name="ana", version="1")
        ) as peer:
            resource = await peer.read_resource("memory://working")
            return resource.contents[0].text

    assert "gate 14" not in anyio.run(working)
    client.patch(PATH, json={"changes": [TASK], "expected_rev": shown["rev"]})
    state = [path.read_bytes() for path in (tmp_path / "root" / "state").iterdir()]
    assert not any(b"gate 14" in each for each in state)


def test_changes_over_http_are_the_working_memory_in_python(client, memory):
    answer = client.patch(PATH, json={"changes": [TASK, LANGUAGE], "expected_rev": 0})

    stored = memory.agent("ana", project="p").get()
    assert (answer.status_code, answer.json) == (200, stored.to_dict())
    assert (stored.tasks_next()["text"], stored.world()) == ("ask about the index", {"language": "en"})
    assert client.get(PATH).json == stored.to_dict()
    rows = client.get("/projects/p/agents").json["rows"]
    assert [(row["agent"], row["rev"], row["open_tasks"]) for row in rows] == [("ana", 2, 1)]


def test_a_forgotten_working_memory_is_not_found(client):
    client.patch(PATH, json={"changes": [TASK]})

    assert client.delete(PATH).json == {"forgotten": True}
    assert client.delete(PATH).json == {"forgotten": False}
    missing = client.get(PATH)
    assert (missing.status_code, missing.json["code"]) == (404, "not_found")
    assert "PATCH this address" in missing.json["hint"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "there are no changes"),
        ({"changes": LANGUAGE}, 400, "changes is not a list"),
        ({"changes": [{"do": "world_set"}]}, 400, "change 1: do='world_set' is not a change of a memory"),
        ({"changes": [LANGUAGE, {"do": "tasks_complete", "id": "t9"}]}, 404, "change 2: no item of space 'tasks'"),
        ({"changes": [LANGUAGE], "expected_rev": 7}, 409, "the memory of 'ana' is at revision 0, not at 7"),
        ({"changes": [LANGUAGE], "rev": 7}, 400, "takes no member 'rev'"),
    ],
)
def test_an_invalid_change_is_refused_and_changes_nothing(client, memory, body, status, message):
    answer = client.patch(PATH, json=body)

    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert message in answer.json["detail"]
    assert answer.json["hint"]
    assert memory.agent("ana", project="p").get() is None


def test_each_agent_reaches_its_own_working_memory_and_a_curator_all(client, memory, token):
    ana, ben, reader, curator = token("Ana"), token("ben"), token("rita", "reader"), token("carl", "curator")
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()
    assert client.patch(PATH, json={"changes": [TASK]}, **ana).status_code == 200

    for caller in (ben, reader):
        for method in (client.get, client.delete):
            refused = method(PATH, **caller)
            assert (refused.status_code, refused.json["code"]) == (403, "policy_denied")
            assert "ask about the index" not in refused.text
        assert client.get("/projects/p/agents", **caller).json["rows"] == []
    own = client.patch("/projects/p/agents/rita/memory", json={"changes": [TASK]}, **reader)
    assert (own.status_code, "read-only token" in own.json["detail"]) == (403, True)
    assert client.get(PATH, **curator).json["rev"] == 1
    assert [row["agent"] for row in client.get("/projects/p/agents", **curator).json["rows"]] == ["ana"]
    assert client.get("/projects/q/agents/ana/memory", **ana).status_code == 404


def test_an_invalid_agent_name_and_an_unknown_project_are_refused(client):
    assert client.get("/projects/p/agents/.../memory").status_code == 400
    assert client.get("/projects/nowhere/agents/ana/memory").json["code"] == "unknown_project"


def call_tools(client_sessions, *calls, name="Ana", tool="working", reads="memory://working"):
    """The result of each call of the tool, and the text of the resource after it."""

    async def main():
        identity = Implementation(name=name, version="1")
        async with Client(
            create_server(client_sessions, (*TOOLS, WORKING, RECORD_TURN)), mode="legacy", client_info=identity
        ) as client:
            results = [await client.call_tool(tool, arguments) for arguments in calls]
            return results, (await client.read_resource(reads)).contents[0].text

    return anyio.run(main)


def test_an_agent_changes_and_reads_its_working_memory_over_mcp(client, memory):
    (empty, changed, refused), text = call_tools(
        ClientSessions(memory), {}, {"changes": [TASK, LANGUAGE]}, {"changes": [TASK], "expected_rev": 2}
    )

    expected = {"rev": 2, "world": {"language": "en"}, "tasks": [{"id": "t1", "text": TASK["text"], "status": "open"}]}
    assert empty.structured_content == {"rev": 0, "world": {}, "tasks": [], "spaces": {}}
    assert changed.structured_content == json.loads(text) == {**expected, "spaces": {}}
    assert refused.is_error
    assert refused.content[0].text.startswith("refused (invalid_argument): change 1: ")
    assert client.get(PATH).json["rev"] == 2
    _, other = call_tools(ClientSessions(memory), name="ben")
    assert json.loads(other)["tasks"] == []


TALK = "/projects/p/conversations/evening"
TURN = {"prompt": "which index?", "asked_by": "ben", "answer": "Oxigraph",
        "tools": [{"name": "search", "parameters": {"query": "index"}, "result": [1]}],
        "timestamp": "2026-11-20T10:00:00Z"}  # fmt: skip


def test_turns_over_http_are_read_in_python_and_usable_as_evidence(client, memory):
    first = client.post(TALK, json=TURN)
    second = client.post(TALK, json={"prompt": "and the journal?"})

    turns = memory.conversation("evening").turns()
    assert (first.status_code, second.status_code) == (201, 201)
    assert [first.json, second.json] == [turn.to_dict() for turn in turns] == client.get(TALK).json["rows"]
    assert client.get(f"{TALK}?last=1").json["rows"] == [second.json]
    assert first.json["tools"] == TURN["tools"]
    recorded = memory.writer.remember("p", "the index is Oxigraph", evidence=[first.json["iri"]])
    assert memory.reader.get_memory("p", recorded.iri)["properties"]["derivedFrom"] == [first.json["iri"]]


@pytest.mark.parametrize(
    ("body", "message"),
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
def test_an_invalid_turn_is_refused_and_not_recorded(client, memory, body, message):
    answer = client.post(TALK, json=body)

    assert answer.status_code == 400
    assert message in answer.json["detail"]
    assert answer.json["hint"]
    assert memory.conversation("evening").turns() == []


RECORDERS = """PREFIX prov: <http://www.w3.org/ns/prov#>
SELECT ?turn ?agent { ?turn prov:wasAttributedTo ?agent }"""


def test_an_agent_records_its_own_words_and_those_of_who_asked(client, memory, token):
    ana, curator = token("ana"), token("carl", "curator")
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()

    refused = client.post(TALK, json={**TURN, "answered_by": "carl"}, **ana)
    answered = client.post(TALK, json={**TURN, "asked_by": "boss"}, **ana)
    asked = client.post(TALK, json={"prompt": "and now?", "asked_by": "boss"}, **ana)
    other = client.post(TALK, json={**TURN, "answered_by": "ana", "asked_by": "boss"}, **curator)

    assert (refused.status_code, refused.json["code"]) == (403, "policy_denied")
    assert refused.json["hint"] == "leave out `answered_by`, or give ana"
    assert [each.status_code for each in (answered, asked, other)] == [201, 201, 201]
    assert (answered.json["asked_by"][-5:], answered.json["answered_by"][-4:]) == ("/boss", "/ana")
    recorders = {row["turn"]: row["agent"] for row in memory.reader.select("p", RECORDERS)}
    assert recorders == {
        asked.json["iri"]: "https://jido.ai/agents/ana",
        other.json["iri"]: "https://jido.ai/agents/carl",
    }
    assert memory.conversation("evening").turns()[1].asked_by == "https://jido.ai/agents/boss"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("post", "/projects/p/sessions", {"name": "s-9", "agent": "carl"}, "agent"),
        ("post", "/projects/p/entries", {"entry": {"agent_id": "carl", "content": "x"}}, "agent_id"),
        ("patch", "/projects/p/agents/carl/memory", {"changes": [TASK]}, "the agent of the address"),
        ("post", "/projects/p/recall", {"query": "x", "kinds": ["page"], "agent": "carl"}, "agent"),
    ],
)
def test_the_hint_for_another_agent_names_the_field_of_the_request(memory, token, method, path, body, field):
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()

    refused = getattr(client, method)(path, json=body, **token("ana"))

    assert refused.status_code == 403
    assert refused.json["hint"] in (f"give ana as {field}", f"leave out `{field}`, or give ana")


def test_a_turn_over_mcp_belongs_to_the_session_of_the_client(memory):
    client_sessions = ClientSessions(memory, session="s-7")
    (recorded, refused), text = call_tools(
        client_sessions,
        {"prompt": "which index?", "answer": "Oxigraph", "tools": [{"name": "search"}]},
        {"question": "x"},
        tool="said",
        reads="memory://conversation/s-7",
    )

    (turn,) = memory.conversation("s-7").turns()
    assert recorded.structured_content == turn.to_dict() == json.loads(text)[0]
    assert (turn.answered_by.rsplit("/")[-1], refused.is_error) == ("ana", True)


def test_a_session_opened_by_a_prompt_belongs_to_the_agent_of_the_client(memory):
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    client_sessions = ClientSessions(memory)
    (recorded,), _ = call_tools(client_sessions, {"prompt": "which index?"}, tool="said")

    (opened,) = sessions(memory.reader, "p")
    client_sessions.leave()

    assert (recorded.is_error, local_name(opened["agent"])) == (False, "ana")
    assert local_name(session(memory.reader, "p", opened["session"])["status"]) == "Closed"
