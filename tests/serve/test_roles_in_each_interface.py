"""Permissions in one place: each tool and each route answers each role by the policy."""

from datetime import timedelta

import pytest
from conftest import START, decision, files, fixed_sources, intent

import jidomem
from jidomem.records.policy import PRESETS, PolicyChange
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.server_memory import KNOWLEDGE
from jidomem.serve.mcp.tools import FIND_PAGES, KEEP_PAGE, TOOLS
from jidomem.serve.routes import ROUTES

ALL = {tool.name: tool for tool in (*TOOLS, *KNOWLEDGE, KEEP_PAGE, FIND_PAGES)}
_GRAPH = {"entityName": "Ana", "contents": ["sings"]}
#: Valid arguments of each tool; ITEM stands for an architectural decision of another agent.
ARGUMENTS = {
    "remember": {"text": "the API is paged"},
    "revise": {"id": "ITEM", "supersede": "Use Jena", "reason": "it is faster"},
    "recall": {"query": "Oxigraph"},
    "why": {"id": "ITEM"},
    "briefing": {},
    "ask": {"name": "facts"},
    "status": {},
    "create_entities": {"entities": [{"name": "Bob", "entityType": "person", "observations": ["sings"]}]},
    "create_relations": {"relations": [{"from": "Ana", "to": "Ana", "relationType": "knows"}]},
    "add_observations": {"observations": [_GRAPH]},
    "delete_entities": {"entityNames": ["Ana"]},
    "delete_observations": {"deletions": [{"entityName": "Ana", "observations": ["cooks"]}]},
    "delete_relations": {"relations": [{"from": "Ana", "to": "Eve", "relationType": "likes"}]},
    "read_graph": {},
    "search_nodes": {"query": "Ana"},
    "open_nodes": {"names": ["Ana"]},
    "keep_page": {"query": "How are you?", "response": "Well."},
    "find_pages": {"query": "How are you?"},
}
#: The forms of a revision.
REVISIONS = (
    {"supersede": "Use Jena"}, {"invalidate": True}, {"confirm": True}, {"set": {"topic": "stores"}}, {"undo": True},
)  # fmt: skip
READER = "rob"


def build(root):
    with jidomem.open(root, project="p", agent="ana", sources=fixed_sources()) as memory:
        memory.writer.change_policy("p", [PolicyChange(agent="ana", grants="Administrator"), *PRESETS["curated"]])
        memory.writer.change_policy("p", [PolicyChange(agent=READER, grants="MemoryReader")])
        session = ClientSessions(memory, "ana").of(None)
        graph = {"name": "Ana", "entityType": "person", "observations": ["cooks"]}
        assert not call(ALL["create_entities"], session, {"entities": [graph]}).is_error
        likes = {"from": "Ana", "to": "Eve", "relationType": "likes"}
        assert not call(ALL["create_relations"], session, {"relations": [likes]}).is_error


@pytest.fixture
def memory(tmp_path, copy_built):
    sources = fixed_sources(START + timedelta(hours=1), first=1000)
    with jidomem.open(copy_built(build, tmp_path / "root"), project="p", agent="ana", sources=sources) as memory:
        yield memory


@pytest.fixture
def item(memory):
    return memory.writer.submit_intent("p", decision(asserted_by="ana")).iri


def by_token(memory, role):
    """The session of an agent with a token of *role*."""
    _, token = Keyring(own_config(), memory.settings.root).issue("eve", role, ("p",), memory.sources)
    return ClientSessions(memory).of(None, token)


def by_name(memory):
    """The session of a client whose name has the role of a reader."""
    return ClientSessions(memory).of(READER)


SESSIONS = {
    "a reader's token": lambda memory: by_token(memory, "reader"),
    "a name that only reads": by_name,
    "an agent's token": lambda memory: by_token(memory, "agent"),
    "a curator's token": lambda memory: by_token(memory, "curator"),
    "an administrator's token": lambda memory: by_token(memory, "admin"),
}
ONLY_READ = ("a reader's token", "a name that only reads")


def arguments(template, item):
    return {name: item if value == "ITEM" else value for name, value in template.items()}


def journal(memory):
    return files(memory.settings.root / "projects")


def test_the_arguments_cover_each_tool():
    assert {*ARGUMENTS} == {*ALL}


@pytest.mark.parametrize("caller", SESSIONS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_tool_that_writes_the_journal_is_refused_to_readers_alone(memory, item, name, caller):
    session, before = SESSIONS[caller](memory), journal(memory)

    answer = call(ALL[name], session, arguments(ARGUMENTS[name], item))

    is_private = (
        name in ("keep_page", "find_pages") and caller == "a name that only reads"
    )  # stored for that client alone
    if caller in ONLY_READ and not ALL[name].reads and not is_private:
        assert (answer.is_error, answer.values.get("code")) == (True, "policy_denied")
        assert journal(memory) == before
    else:
        assert not answer.is_error, answer.words()


@pytest.mark.parametrize("caller", SESSIONS)
@pytest.mark.parametrize("revision", REVISIONS, ids=lambda revision: next(iter(revision)))
@pytest.mark.parametrize("dry_run", [False, True])
def test_each_revision_of_a_decision_is_denied_proposed_or_asserted_by_role(memory, item, caller, revision, dry_run):
    if "undo" in revision:
        item = memory.writer.correct("p", item, supersede="Use SQLite")
        item = item.iri
    before = journal(memory)

    answer = call(
        ALL["revise"], SESSIONS[caller](memory), {"id": item, **revision, "reason": "so it is", "dry_run": dry_run}
    )

    if caller in ONLY_READ:
        assert (answer.values.get("code"), journal(memory)) == ("policy_denied", before)
    else:
        assert answer.values.get("status") == ("proposed" if caller == "an agent's token" else "asserted"), (
            answer.words()
        )


@pytest.mark.parametrize("kind", ["fact", "architectural_decision", "convention", "task", "hypothesis"])
@pytest.mark.parametrize("caller", SESSIONS)
def test_each_kind_of_memory_is_denied_proposed_or_asserted_by_role(memory, caller, kind):
    answer = call(ALL["remember"], SESSIONS[caller](memory), {"text": "a text", "type": kind, "rationale": "because"})

    if caller in ONLY_READ:
        assert answer.values.get("code") == "policy_denied"
    else:
        is_proposed = caller == "an agent's token" and kind in ("architectural_decision", "convention")
        assert answer.values["status"] == ("proposed" if is_proposed else "asserted")


@pytest.mark.parametrize("route", [route for route in ROUTES if route.writes], ids=lambda r: f"{r.method} {r.path}")
def test_a_route_that_writes_is_refused_to_a_readers_token(memory, item, route):
    keyring = Keyring(own_config(), memory.settings.root)
    secret, _ = keyring.issue("eve", "reader", ("*",), memory.sources)
    path, before = route.path.replace("{project}", "p").replace("{id}", item[-8:]), journal(memory)
    for part in ("{agent}", "{session}", "{name}", "{graph}"):
        path = path.replace(part, "eve")

    client = create_app(memory, keyring=keyring).test_client()
    answer = client.open(path, method=route.method, json={}, headers={"Authorization": f"Bearer {secret}"})

    assert (answer.status_code, answer.json["code"]) == (403, "policy_denied")
    assert journal(memory) == before


#: The bodies that a client without a token sends in the name of a reader.
BODIES = {
    ("POST", "/projects/p/intents"): intent(asserted_by=READER),
    ("POST", "/projects/p/memories/ITEM/revise"): {"supersede": "Use Jena", "reason": "so", "asserted_by": READER},
    ("POST", "/projects/p/sessions"): {"name": "s-9", "agent": READER},
    ("POST", "/projects/p/entries"): {"entry": {"content": "a note", "agent_id": READER}},
    ("POST", "/projects/p/conversations/s-1"): {"prompt": "a", "answer": "b", "answered_by": READER},
}


@pytest.mark.parametrize("address", BODIES, ids=" ".join)
def test_a_route_that_writes_is_refused_in_the_name_of_a_reader(memory, item, address):
    (method, path), before = address, journal(memory)

    answer = create_app(memory).test_client().open(path.replace("ITEM", item[-8:]), method=method, json=BODIES[address])

    refusal = answer.json if isinstance(answer.json, dict) else answer.json[0]
    assert refusal["code"] == "policy_denied", refusal
    assert journal(memory) == before


def test_a_rule_of_the_policy_lets_a_reader_propose(memory):
    memory.writer.change_policy("p", [PolicyChange(role="MemoryReader", kind="convention", allows="propose")])

    session = by_name(memory)
    answers = [call(ALL["remember"], session, {"text": "No print", "type": kind}) for kind in ("convention", "fact")]

    assert [each.values.get("status", each.values.get("code")) for each in answers] == ["proposed", "policy_denied"]
