"""Entries over HTTP: a store over the routes keeps the contract, and an agent's token writes its own entries alone."""

import json
from itertools import count
from urllib.parse import quote

import pytest
from conftest import fixed_sources, intent

import jidomem
from jidomem.entries import Entry, RecallResult, WriteResult, write
from jidomem.entries.conformance import CHECKS, it_keeps_namespaces_apart
from jidomem.errors import JidomemError
from jidomem.journal.journal import Stream
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.tools import TOOLS

LISTED = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?id ?agent_id ?session_id ?content ?metadata WHERE {
  ?entry jido:entryId ?id ; jido:agentId ?agent_id ; jido:entryText ?content ; jido:recordedAt ?at .
  OPTIONAL { ?entry jido:sessionId ?session_id } OPTIONAL { ?entry jido:entryMetadata ?metadata }
  FILTER NOT EXISTS { ?newer jido:replaces ?entry }
} ORDER BY ?at ?entry"""
PLAN = {"agent_id": "ana", "content": "we ship on Friday", "id": "plan"}


class HttpStore:
    """A store that a client of another team would write from the routes alone; it leaves its caller's objects
    unchanged.
    """

    def __init__(self, client, project, headers=()):
        self.client, self.address, self.headers = client, f"/projects/{project}", dict(headers)

    def post(self, path, values):
        answer = self.client.post(f"{self.address}{path}", json=values, headers=self.headers)
        if answer.status_code >= 400:
            raise JidomemError(answer.json["detail"], hint=answer.json["hint"], code=answer.json["code"])
        return answer.json

    def write(self, request, opts):
        answer = self.post("/entries", {"entry": request.entry.to_dict()})
        return WriteResult(request, answer["entry"], answer["status"], answer["metadata"])

    def recall(self, request, opts):
        values = {name: getattr(request, name) for name in ("agent_id", "query", "session_id", "scope", "limit")}
        namespace = {name: part for name, part in request.metadata.items() if name == "namespace"}
        answer = self.post("/entries/recall", {**values, "metadata": namespace})
        return RecallResult(request, answer["entries"], answer["metadata"])

    def list_entries(self, opts):
        rows = self.client.get(f"{self.address}/sparql", query_string={"query": LISTED}).json["results"]["bindings"]
        values = [{name: term["value"] for name, term in row.items()} for row in rows]
        return [Entry(**{**each, "metadata": json.loads(each.get("metadata", "{}"))}) for each in values]


@pytest.fixture
def memory(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent())
        yield memory


@pytest.fixture
def caller(memory):
    """Return a function that makes a token, and the store of p over HTTP for it."""
    root = memory.settings.root
    client = create_app(memory, keyring=Keyring(own_config(), root)).test_client()

    def store(agent, role="agent"):
        secret, _ = Keyring(own_config(), root).issue(agent, role, ("p",), memory.sources)
        return HttpStore(client, "p", {"Authorization": f"Bearer {secret}"})

    return store


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("entries") / "root", project="p", sources=fixed_sources()) as memory:
        yield memory, create_app(memory).test_client(), count()


@pytest.mark.parametrize("check", [*CHECKS, it_keeps_namespaces_apart], ids=lambda check: check.__name__)
def test_a_store_over_http_passes_every_check_of_the_contract_of_entries(served, check):
    memory, client, number = served

    def make():
        project = f"p{next(number)}"
        memory.writer.submit_intent(project, intent(applies_to_project=project))
        return HttpStore(client, project)

    check(make)


def test_a_removed_entry_is_not_recalled_and_removed_once(memory):
    client = create_app(memory).test_client()
    written = client.post("/projects/p/entries", json={"entry": PLAN}).json
    later = memory.writer.submit_intent("p", intent(summary="later")).version
    query = {"agent_id": "ana", "query": "ship"}

    answers = [client.post("/projects/p/entries/remove", json={"ids": ["plan", "plan", "none"]}) for _ in range(2)]

    assert [(answer.status_code, answer.json) for answer in answers] == [(200, {"removed": 1}), (200, {"removed": 0})]
    assert (written["status"], later.heads != (), memory.entries.list_entries()) == ("ok", True, [])
    assert client.post("/projects/p/entries/recall", json=query).json["entries"] == []


def test_an_agent_removes_its_own_entries_all_or_none(memory, caller):
    ana, ben, rita, reader = caller("ana"), caller("ben"), caller("rita", "curator"), caller("eve", "reader")
    for store, entry in ((ana, PLAN), (ben, {"agent_id": "ben", "content": "x", "id": "of ben"})):
        store.post("/entries", {"entry": entry})

    refusals = []
    for store, ids in ((ben, ["of ben", "plan"]), (reader, ["plan"])):
        with pytest.raises(JidomemError) as refusal:
            store.post("/entries/remove", {"ids": ids})
        refusals.append(refusal.value.code)
    stored = [entry.id for entry in memory.entries.list_entries()]

    assert (refusals, stored) == (["policy_denied", "policy_denied"], ["plan", "of ben"])
    assert ana.post("/entries/remove", {"ids": ["plan"]}) == {"removed": 1}
    assert rita.post("/entries/remove", {"ids": ["of ben"]}) == {"removed": 1}


def test_an_array_of_entries_has_one_outcome_each_and_a_refusal_stops_no_other(memory):
    client = create_app(memory).test_client()
    requests = [{"entry": PLAN}, {"entry": {"agent_id": "ana"}}, 5, {"entry": PLAN, "metadatum": {}},
            {"entry": {**PLAN, "id": "key", "content": "the key is AKIAIOSFODNN7EXAMPLF"}}]  # fmt: skip

    answer = client.post("/projects/p/entries", json=requests)
    accepted = client.post("/projects/p/entries", json=[{"entry": {**PLAN, "content": "or on Monday"}}])

    stored, *refused = answer.json
    assert (answer.status_code, accepted.status_code, stored["status"]) == (200, 201, "ok")
    assert stored["entry"] == {**PLAN, "session_id": None, "metadata": {}}
    assert stored["metadata"]["iri"].startswith("https://jido.ai/entries/")
    assert [refusal["code"] for refusal in refused] == [*3 * ["invalid_argument"], "policy_denied"]
    assert [refusal["position"] for refusal in refused] == [1, 2, 3, 4]
    assert "did you mean 'metadata'?" in refused[2]["hint"]
    assert [entry.content for entry in memory.entries.list_entries()] == ["or on Monday"]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/entries", {"agent_id": "ana", "content": "x"}, "there is no entry"),
        ("/entries", {"entry": {**PLAN, "agent": "ana"}}, "there is no 'agent'"),
        ("/entries", {"entry": {**PLAN, "content": " "}}, "content is missing or empty"),
        ("/entries/recall", [], "not a JSON object"),
        ("/entries/remove", ["plan"], "there are no ids of entries"),
        ("/entries/remove", {"ids": "plan"}, "there are no ids of entries"),
        ("/entries/remove", {"ids": ["plan"], "id": "x"}, "takes no member 'id'"),
        ("/entries/recall", {"agent_id": "ana"}, "query is missing or empty"),
        ("/entries/recall", {"agent_id": "ana", "query": "x", "limit": 0}, "limit=0 is not from 1"),
        ("/entries/recall?include_sessions=maybe", {"agent_id": "ana", "query": "x"}, "is not true or false"),
        ("/entries/recall", {"agent_id": "ana", "query": "x", "include_sessions": True}, "but a parameter"),
        ("/entries/recall?as_of=soon", {"agent_id": "ana", "query": "x"}, "soon"),
    ],
)
def test_an_invalid_request_of_entries_is_refused_with_its_fault(memory, path, body, message):
    answer = create_app(memory).test_client().post(f"/projects/p{path}", json=body)

    assert (answer.status_code, message in answer.json["detail"]) == (400, True), answer.json
    assert memory.entries.list_entries() == []


def test_recall_of_entries_takes_as_of_and_include_sessions(memory):
    store = HttpStore(create_app(memory).test_client(), "p")
    write(store, Entry(**PLAN))
    moment = memory.journal.head(Stream("p", "history")).recorded_at
    write(store, Entry(**{**PLAN, "content": "we ship on Monday"}))
    write(store, Entry(agent_id="ana", content="ship it", session_id="s-1"))
    query = {"agent_id": "ana", "query": "when do we ship?"}

    def contents(arguments):
        return [entry["content"] for entry in store.post(f"/entries/recall{arguments}", query)["entries"]]

    assert contents("") == ["we ship on Monday"]
    assert contents(f"?as_of={moment}") == ["we ship on Friday"]
    assert sorted(contents("?include_sessions=1")) == ["ship it", "we ship on Monday"]


def test_a_token_writes_the_entries_of_its_own_agent_alone_and_recalls_them_by_default(caller, memory):
    ana, ben, eve, rita = caller("ana"), caller("ben"), caller("eve", "reader"), caller("rita", "curator")
    unsigned = {name: part for name, part in PLAN.items() if name != "agent_id"}
    stored = ana.post("/entries", {"entry": unsigned})

    def refusal_code(store, path, values):
        with pytest.raises(JidomemError) as refusal:
            store.post(path, values)
        return refusal.value.code

    assert stored["entry"]["agent_id"] == "ana"
    for path, values in (
        ("/entries", {"entry": {**PLAN, "id": "other"}}),
        ("/entries", {"entry": {**PLAN, "agent_id": "ben"}}),
    ):
        assert refusal_code(ben, path, values) == "policy_denied", values
    assert refusal_code(eve, "/entries", {"entry": {"content": "x"}}) == "policy_denied"
    for reader in (ben, eve):
        assert reader.post("/entries/recall", {"query": "ship"})["entries"] == []
    assert [each["content"] for each in rita.post("/entries/recall", {"agent_id": "ana", "query": "ship"})["entries"]]
    assert rita.post("/entries", {"entry": {**PLAN, "content": "on Monday"}})["status"] == "ok"
    assert [entry.content for entry in memory.entries.list_entries()] == ["on Monday"]


def test_recall_returns_pages_of_the_tokens_own_agent_alone(caller, memory):  # D003
    ana, ben, rita = caller("ana"), caller("ben"), caller("rita", "curator")
    memory.os("ana", project="p").add("when do we ship?", "On Friday.")

    def agents(store, **fields):
        query = {"query": "ship", "kinds": ["page", "fact"], **fields}
        return [each["agent_id"] for each in store.post("/recall", query)["entries"]]

    assert (agents(ana), agents(ben), agents(rita), agents(rita, agent="ana")) == (["ana"], [], [], ["ana"])
    for named in ({"agent": "ana"}, {"agent_id": "ana"}):
        with pytest.raises(JidomemError) as refusal:
            agents(ben, **named)
        assert refusal.value.code == "policy_denied"


def test_every_read_shows_the_entries_of_an_agent_to_the_readers_of_its_project(caller):
    ana, reader, rita = caller("ana"), caller("eve", "reader"), caller("rita", "curator")
    unsigned = {name: part for name, part in PLAN.items() if name != "agent_id"}
    ana.post("/entries", {"entry": unsigned})
    query = {"query": "ship", "kinds": ["entry"]}

    def agents(store, path, values):
        return [each["agent_id"] for each in store.post(path, values)["entries"]]

    for store, own in ((ana, ["ana"]), (reader, []), (rita, [])):
        assert agents(store, "/recall", query) == own
        assert agents(store, "/recall", {**query, "agent": "ana"}) == ["ana"]
        assert agents(store, "/entries/recall", {"agent_id": "ana", "query": "ship"}) == ["ana"]
        for path in ("/queries/entries-of-agent?agent=ana", "/graphs?graph=history", f"/sparql?query={quote(LISTED)}"):
            assert "we ship on Friday" in store.client.get(f"{store.address}{path}", headers=store.headers).text, path
    with pytest.raises(JidomemError, match="eve may not write entries of ana"):
        caller("eve").post("/entries", {"entry": {**PLAN, "agent_id": "ana"}})


def test_mcp_over_http_recalls_pages_of_the_tokens_own_agent_alone(memory):  # D003
    keyring = Keyring(own_config(), memory.settings.root)
    memory.os("ana", project="p").add("when do we ship?", "On Friday.")
    (tool,) = (each for each in TOOLS if each.name == "recall")
    query = {"query": "ship", "kinds": ["page", "fact"]}

    def answer(caller, role="agent", **fields):
        _, token = keyring.issue(caller, role, ("p",), memory.sources)
        return call(tool, ClientSessions(memory).of(None, token), {**query, **fields}).values

    answers = [answer("ana"), answer("ben"), answer("rita", "curator", agent="ana")]
    refused = answer("ben", agent="ana")

    assert [len(each["entries"]) for each in answers] == [1, 0, 1]
    assert (refused["code"], refused["detail"]) == ("policy_denied", "ben may not read the pages of ana")
    assert refused["hint"] == "give ben as agent"
