"""Entries over HTTP: a store over the two routes keeps the contract, and an agent's token reaches its own alone."""

import json
from itertools import count

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

LISTED = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?id ?agent_id ?session_id ?content ?metadata WHERE {
  ?entry jido:entryId ?id ; jido:agentId ?agent_id ; jido:entryText ?content ; jido:recordedAt ?at .
  OPTIONAL { ?entry jido:sessionId ?session_id } OPTIONAL { ?entry jido:entryMetadata ?metadata }
  FILTER NOT EXISTS { ?newer jido:replaces ?entry }
} ORDER BY ?at ?entry"""
PLAN = {"agent_id": "ana", "content": "we ship on Friday", "id": "plan"}


class HttpStore:
    """A store as somebody would write it who knows nothing of jidomem but its address; it leaves alone what is his."""

    def __init__(self, client, project, headers=()):
        self.client, self.address, self.headers = client, f"/projects/{project}", dict(headers)

    def asked(self, path, values):
        answer = self.client.post(f"{self.address}{path}", json=values, headers=self.headers)
        if answer.status_code >= 400:
            raise JidomemError(answer.json["detail"], hint=answer.json["hint"], code=answer.json["code"])
        return answer.json

    def write(self, request, opts):
        told = self.asked("/entries", {"entry": request.entry.to_dict()})
        return WriteResult(request, told["entry"], told["status"], told["metadata"])

    def recall(self, request, opts):
        values = {name: getattr(request, name) for name in ("agent_id", "query", "session_id", "scope", "limit")}
        namespace = {name: part for name, part in request.metadata.items() if name == "namespace"}
        told = self.asked("/entries/recall", {**values, "metadata": namespace})
        return RecallResult(request, told["entries"], told["metadata"])

    def list_entries(self, opts):
        rows = self.client.get(f"{self.address}/sparql", query_string={"query": LISTED}).json["results"]["bindings"]
        said = [{name: term["value"] for name, term in row.items()} for row in rows]
        return [Entry(**{**each, "metadata": json.loads(each.get("metadata", "{}"))}) for each in said]


@pytest.fixture
def memory(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent())
        yield memory


@pytest.fixture
def caller(memory):
    """Give out a token, and the store of p over HTTP for who has it."""
    root = memory.settings.root
    client = create_app(memory, keyring=Keyring(own_config(), root)).test_client()

    def store(agent, role="agent"):
        secret, _ = Keyring(own_config(), root).give_out(agent, role, ("p",), memory.sources)
        return HttpStore(client, "p", {"Authorization": f"Bearer {secret}"})

    return store


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("entries") / "root", project="p", sources=fixed_sources()) as memory:
        yield memory, create_app(memory).test_client(), count()


@pytest.mark.parametrize("check", [*CHECKS, it_keeps_namespaces_apart], ids=lambda check: check.__name__)
def test_a_store_over_http_passes_every_check_of_the_contract(served, check):
    memory, client, number = served

    def make():
        project = f"p{next(number)}"
        memory.writer.submit_intent(project, intent(applies_to_project=project))
        return HttpStore(client, project)

    check(make)


def test_what_is_taken_back_is_recalled_no_more_and_stays_in_the_history(memory):
    client = create_app(memory).test_client()
    told = client.post("/projects/p/entries", json={"entry": PLAN}).json
    since = memory.writer.submit_intent("p", intent(summary="later")).version
    asked = {"agent_id": "ana", "query": "ship"}

    answers = [client.post("/projects/p/entries/remove", json={"ids": ["plan", "plan", "none"]}) for _ in range(2)]

    assert [(answer.status_code, answer.json) for answer in answers] == [(200, {"removed": 1}), (200, {"removed": 0})]
    assert (told["status"], since.heads != (), memory.entries.list_entries()) == ("ok", True, [])
    assert client.post("/projects/p/entries/recall", json=asked).json["entries"] == []


def test_an_agent_takes_back_its_own_entries_alone_and_all_of_them_or_none(memory, caller):
    ana, ben, rita, reader = caller("ana"), caller("ben"), caller("rita", "curator"), caller("eve", "reader")
    for store, entry in ((ana, PLAN), (ben, {"agent_id": "ben", "content": "x", "id": "of ben"})):
        store.asked("/entries", {"entry": entry})

    refusals = []
    for store, ids in ((ben, ["of ben", "plan"]), (reader, ["plan"])):
        with pytest.raises(JidomemError) as refusal:
            store.asked("/entries/remove", {"ids": ids})
        refusals.append(refusal.value.code)
    kept = [entry.id for entry in memory.entries.list_entries()]

    assert (refusals, kept) == (["policy_denied", "policy_denied"], ["plan", "of ben"])
    assert ana.asked("/entries/remove", {"ids": ["plan"]}) == {"removed": 1}
    assert rita.asked("/entries/remove", {"ids": ["of ben"]}) == {"removed": 1}


def test_an_array_is_told_one_outcome_each_and_what_is_no_entry_stops_no_other(memory):
    client = create_app(memory).test_client()
    sent = [{"entry": PLAN}, {"entry": {"agent_id": "ana"}}, 5, {"entry": PLAN, "metadatum": {}},
            {"entry": {**PLAN, "id": "key", "content": "the key is AKIAIOSFODNN7EXAMPLF"}}]  # fmt: skip

    answer = client.post("/projects/p/entries", json=sent)
    whole = client.post("/projects/p/entries", json=[{"entry": {**PLAN, "content": "or on Monday"}}])

    kept, *refused = answer.json
    assert (answer.status_code, whole.status_code, kept["status"]) == (200, 201, "ok")
    assert kept["entry"] == {**PLAN, "session_id": None, "metadata": {}}
    assert kept["metadata"]["iri"].startswith("https://jido.ai/entries/")
    assert [told["code"] for told in refused] == [*3 * ["invalid_argument"], "policy_denied"]
    assert [told["position"] for told in refused] == [1, 2, 3, 4]
    assert "did you mean 'metadata'?" in refused[2]["hint"]
    assert [entry.content for entry in memory.entries.list_entries()] == ["or on Monday"]


@pytest.mark.parametrize(
    ("path", "sent", "why"),
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
def test_what_is_no_request_is_refused_by_name(memory, path, sent, why):
    answer = create_app(memory).test_client().post(f"/projects/p{path}", json=sent)

    assert (answer.status_code, why in answer.json["detail"]) == (400, True), answer.json
    assert memory.entries.list_entries() == []


def test_recall_over_http_goes_back_to_a_moment_and_into_every_session(memory):
    store = HttpStore(create_app(memory).test_client(), "p")
    write(store, Entry(**PLAN))
    then = memory.journal.head(Stream("p", "history")).recorded_at
    write(store, Entry(**{**PLAN, "content": "we ship on Monday"}))
    write(store, Entry(agent_id="ana", content="ship it", session_id="s-1"))
    asked = {"agent_id": "ana", "query": "when do we ship?"}

    def contents(arguments):
        return [entry["content"] for entry in store.asked(f"/entries/recall{arguments}", asked)["entries"]]

    assert contents("") == ["we ship on Monday"]
    assert contents(f"?as_of={then}") == ["we ship on Friday"]
    assert sorted(contents("?include_sessions=1")) == ["ship it", "we ship on Monday"]


def test_a_token_reaches_the_entries_of_its_agent_and_no_others(caller, memory):
    ana, ben, eve, rita = caller("ana"), caller("ben"), caller("eve", "reader"), caller("rita", "curator")
    unsigned = {name: part for name, part in PLAN.items() if name != "agent_id"}
    kept = ana.asked("/entries", {"entry": unsigned})

    def refused(store, path, values):
        with pytest.raises(JidomemError) as refusal:
            store.asked(path, values)
        return refusal.value.code

    assert kept["entry"]["agent_id"] == "ana"
    for path, values in (
        ("/entries", {"entry": {**PLAN, "id": "other"}}),
        ("/entries", {"entry": {**PLAN, "agent_id": "ben"}}),
        ("/entries/recall", {"agent_id": "ana", "query": "ship"}),
    ):
        assert refused(ben, path, values) == "policy_denied", values
    assert refused(eve, "/entries", {"entry": {"content": "x"}}) == "policy_denied"
    for reader in (ben, eve):
        assert reader.asked("/entries/recall", {"query": "ship"})["entries"] == []
    assert [each["content"] for each in rita.asked("/entries/recall", {"agent_id": "ana", "query": "ship"})["entries"]]
    assert rita.asked("/entries", {"entry": {**PLAN, "content": "on Monday"}})["status"] == "ok"
    assert [entry.content for entry in memory.entries.list_entries()] == ["on Monday"]


def test_recall_gives_who_has_a_token_pages_of_its_own_and_no_others(caller, memory):  # D003
    ana, ben, rita = caller("ana"), caller("ben"), caller("rita", "curator")
    memory.os("ana", project="p").add("when do we ship?", "On Friday.")

    def found(store, **more):
        asked = {"query": "ship", "kinds": ["page", "fact"], **more}
        return [each["agent_id"] for each in store.asked("/recall", asked)["entries"]]

    assert (found(ana), found(ben), found(rita), found(rita, agent="ana")) == (["ana"], [], [], ["ana"])
    for named in ({"agent": "ana"}, {"agent_id": "ana"}):
        with pytest.raises(JidomemError) as refusal:
            found(ben, **named)
        assert refusal.value.code == "policy_denied"


def test_recall_gives_who_has_a_token_entries_of_its_own_and_no_others(caller):
    ana, ben, rita = caller("ana"), caller("ben"), caller("rita", "curator")
    unsigned = {name: part for name, part in PLAN.items() if name != "agent_id"}
    ana.asked("/entries", {"entry": unsigned})

    def found(store, **more):
        return [
            each["agent_id"]
            for each in store.asked("/recall", {"query": "ship", "kinds": ["entry"], **more})["entries"]
        ]

    assert (found(ana), found(ben), found(rita)) == (["ana"], [], [])
    assert found(rita, agent="ana") == ["ana"]
    with pytest.raises(JidomemError, match="ben may not read the entries of ana"):
        found(ben, agent="ana")
    with pytest.raises(JidomemError, match="ben may not write entries of ana"):
        ben.asked("/entries", {"entry": {**PLAN, "agent_id": "ana"}})
    with pytest.raises(JidomemError, match="ben may not read the entries of ana"):
        ben.asked("/entries/recall", {"agent_id": "ana", "query": "ship"})
