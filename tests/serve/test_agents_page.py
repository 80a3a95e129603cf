"""The pages of agents and of health: memories and refusals by agent, the state of the project, and the roles that see
it.
"""

import re
from datetime import UTC, datetime
from itertools import count

import pytest
from conftest import intent

import jidomem
from jidomem.base.clock import Sources, format_timestamp
from jidomem.index import follower
from jidomem.index.timeline import write_counts
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import BASE
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve import server_state
from jidomem.serve.app import create_app
from jidomem.serve.server_state import Clients, Refusals, ServerMeasures

SCRIPT = "<script>alert(1)</script>\u202e"
INTENTS = "/projects/p/intents"


@pytest.fixture
def client(memory):
    """A client on a memory without tokens."""
    return create_app(memory).test_client()


@pytest.fixture
def client_with_token(memory):
    """Return a function that makes a client with a new token of a name, a role and projects; all use one server."""
    root = memory.settings.root
    for project in ("p", "q"):
        memory.writer.submit_intent(project, intent(applies_to_project=project))
    Keyring(own_config(), root).issue("nobody", "reader", ("p",), memory.sources)
    app = create_app(memory, keyring=Keyring(own_config(), root))

    def make(name, role="agent", projects=("p",)):
        secret, _ = Keyring(own_config(), root).issue(name, role, projects, memory.sources)

        def send(path, **arguments):
            method = app.test_client().post if arguments else app.test_client().get
            headers = {"Authorization": f"Bearer {secret}", "User-Agent": f"{name}/1"}
            return method(path, headers=headers, **arguments)

        return send

    return make


def refusals(answer):
    assert answer.status_code == 200
    return {(each["agent"], each["code"]): each["count"] for each in answer.json["refusals"]}


def test_agents_are_listed_with_their_memories_by_day_and_a_link_to_them(client, memory):
    for agent in ("ana", "ben", "ben"):
        memory.writer.submit_intent("p", intent(summary=f"{agent} {memory.sources.new_id()}", asserted_by=agent))

    page = client.get("/ui/p/agents.json").json

    assert [(each["agent"], each["count"]) for each in page["agents"]] == [("ben", 2), ("ana", 1)]
    assert [sum(each["by_day"]) for each in page["agents"]] == [2, 1]
    link = page["agents"][0]["link"]
    assert f'href="{link}"' in client.get("/ui/p/agents").text
    days = client.get(link.replace("?", ".json?")).json["days"]
    assert {each["agent"] for day in days for each in day["memories"]} == {"ben"}
    assert sum(len(day["memories"]) for day in days) == 2


def test_the_agents_page_with_as_of_counts_no_later_memory(client, memory):
    memory.writer.submit_intent("p", intent(summary="one", asserted_by="ana"))
    cutoff = memory.catch_up("p").recorded_at
    memory.writer.submit_intent("p", intent(summary="two", asserted_by="ben"))

    page = client.get("/ui/p/agents.json", query_string={"as_of": cutoff}).json

    assert [(each["agent"], each["count"]) for each in page["agents"]] == [("ana", 1)]


def test_write_counts_cover_the_last_days_with_a_memory(root):
    now, ids = [datetime(2020, 1, 1, tzinfo=UTC)], count(1)
    sources = Sources(now=lambda: now[0], new_id=lambda: f"01900000-0000-7000-8000-{next(ids):012x}")
    with jidomem.open(root, project="p", sources=sources) as memory:
        for day, agents in ((1, ["a"]), (3, ["a", "b", "b"]), (9, ["b"])):
            now[0] = datetime(2020, 1, day, 8, tzinfo=UTC)
            for agent in agents:
                memory.writer.submit_intent("p", intent(summary=f"number {next(ids)}", asserted_by=agent))
        memory.catch_up("p")
        counts = memory.texts.read(Stream("p"), lambda file: write_counts(file, moment=None, days=2))

    a, b = f"{BASE}agents/a", f"{BASE}agents/b"
    assert counts.days == ("2020-01-03", "2020-01-09")
    assert counts.agents == {b: 3, a: 2}
    assert counts.by_day == {a: {"2020-01-03": 1}, b: {"2020-01-03": 2, "2020-01-09": 1}}


def test_refusals_are_counted_by_agent_and_code_also_those_of_an_array(client):
    client.post(INTENTS, json=intent(type="fcat", asserted_by="ana"))
    client.post(INTENTS, json=[intent(asserted_by="ana"), intent(type="fcat", asserted_by="ben")])
    client.post("/projects/p/entries", json=[{"entry": {"agent_id": "eve", "content": ""}}, {"entry": {}}])
    client.post("/projects/q/intents", json=intent(type="fcat", applies_to_project="q", asserted_by="dan"))

    answer = client.get("/ui/p/agents.json")
    counts = refusals(answer)

    assert (counts["ana", "unknown_type"], counts["ben", "unknown_type"]) == (1, 1)
    assert "eve" in {agent for agent, _ in counts}
    assert "dan" not in {agent for agent, _ in counts}  # refused in another project
    assert {each["day"] for each in answer.json["refusals"]} == {format_timestamp(datetime.now(UTC))[:10]}
    assert "unknown_type" in client.get("/ui/p/agents").text
    assert 'jidomem_refusals_total{code="unknown_type"} 3' in client.get("/metrics").text


def test_refusals_and_clients_of_other_agents_are_shown_to_curators_of_the_project_alone(client_with_token):
    ana, ben, cur, other = (
        client_with_token("ana"),
        client_with_token("ben"),
        client_with_token("cur", "curator"),
        client_with_token("far", "curator", ("q",)),
    )
    for send in (ana, ben):
        assert send(INTENTS, json=[intent(), intent(type="fcat", asserted_by="cur")]).status_code == 200

    def visible(send, project="p"):
        agents, health = send(f"/ui/{project}/agents.json"), send(f"/ui/{project}/health.json")
        return {agent for agent, _ in refusals(agents)}, {each["agent"] for each in health.json["clients"]}

    assert visible(ana) == ({"ana"}, {"ana"})
    assert visible(cur) == ({"ana", "ben"}, {"ana", "ben", "cur"})  # by the token, whichever agent the intent names
    assert visible(other, "q") == (set(), {"far"})
    assert other("/ui/p/health.json").status_code == 404


def test_snapshot_sizes_are_shown_to_tokens_of_all_projects_alone(client_with_token, memory, monkeypatch):
    for name, value in (("ON_DISK_BYTES", 1), ("SNAPSHOT_COMMITS", 0), ("WRITER_SNAPSHOT_BYTES", 0)):
        monkeypatch.setattr(follower, name, value)
    send, send_all = client_with_token("ana"), client_with_token("all", projects=("*",))
    memory.follower.rebuild()

    assert send("/ui/p/health.json").json["snapshots"] == []
    snapshots = send_all("/ui/p/health.json").json["snapshots"]
    assert [each["bytes"] for each in snapshots] == [each.size for each in memory.follower.snapshots()]
    assert snapshots


def test_the_health_page_shows_versions_sizes_counts_and_clients(client, memory, root):
    memory.writer.submit_intent("p", intent())
    client.get("/ui/p/timeline", headers={"User-Agent": "nosy/1 " + "x" * 200})

    page = client.get("/ui/p/health.json", headers={"User-Agent": "me"}).json

    version = str(memory.catch_up("p"))
    assert page["standing"] == {"journal": version, "index": version, "behind": 0}
    assert (page["texts"]["memories"], page["texts"]["version"]) == (1, version)
    written_bytes = sum(path.stat().st_size for path in (root / "projects" / "p").rglob("*") if path.is_file())
    assert page["journal_bytes"] == written_bytes
    assert page["ontology"] == memory.schema.version
    assert page["damage"] == []
    (nosy,) = page["clients"]
    assert nosy["user_agent"] == "nosy/1 " + "x" * 93
    assert (nosy["address"], nosy["requests"]) == ("this machine", 1)
    assert "up to date" in client.get("/ui/p/health").text


def test_the_health_page_lists_the_damage_of_the_journal(root):
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent(summary="Use Oxigraph"))
    file = next(path for path in sorted(root.rglob("*.ttl")) if b"Use Oxigraph" in path.read_bytes())
    file.write_bytes(file.read_bytes()[:-200])

    with jidomem.open(root, project="p") as memory:
        client = create_app(memory).test_client()
        page = client.get("/ui/p/health.json").json
        details = [error.detail for error in memory.damage("p")]

        assert [each["detail"] for each in page["damage"]] == details
        assert details
        assert "Damaged" in client.get("/ui/p/health").text


def test_names_of_agents_and_clients_are_escaped_on_the_pages(client, memory):
    memory.writer.submit_intent("p", intent())
    client.post(
        INTENTS, json=intent(type="fcat", asserted_by=SCRIPT), headers={"User-Agent": "<img src=x onerror=alert(1)>"}
    )

    for page in ("agents", "health"):
        text = client.get(f"/ui/p/{page}").text
        assert not re.search(r"<img|<script>|\u202e", text)
    assert "&lt;img src=x" in client.get("/ui/p/health").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩" in client.get("/ui/p/agents").text


def test_stored_refusals_and_clients_are_bounded(monkeypatch):
    monkeypatch.setattr(server_state, "REFUSALS", 3)
    monkeypatch.setattr(server_state, "CLIENTS", 3)
    refusals, clients, seen_at = Refusals(), Clients(), datetime(2026, 11, 21, tzinfo=UTC)
    for number in range(5):
        refusals.add("2026-11-21", "p", f"agent {number}", "denied")
        clients.add(seen_at, "p", f"agent {number}", "x" * 1_000, "127.0.0.1")
        clients.add(seen_at, "p", "agent 0", "x" * 1_000, "127.0.0.1")

    assert [each.agent for each in refusals.counts] == ["agent 2", "agent 3", "agent 4"]
    assert refusals.others == {"denied": 2}
    assert [each.agent for each in clients.seen] == ["agent 3", "agent 4", "agent 0"]
    assert [visits.requests for visits in clients.seen.values()] == [1, 1, 6]
    assert {len(each.user_agent) for each in clients.seen} == {100}
    measures = ServerMeasures()
    measures.refused("denied")
    assert measures.totals().refusals == {"denied": 1}
