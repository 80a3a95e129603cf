"""Clients and refusals of each interface, on the pages of any server of the same root."""

import json
import subprocess

import pytest
from conftest import intent
from test_mcp_operation import serving, talk

import jidomem
from jidomem.runtime import logs
from jidomem.runtime.logs import ClientActivity, InterfaceLog, RefusedAt
from jidomem.runtime.state import State
from jidomem.serve.app import create_app
from jidomem.serve.server_state import HTTP, Ledger, Operation, ServerMeasures

pytestmark = pytest.mark.usefixtures("loaded_program")


def page_rows(root):
    """The rows on the pages of a server of *root*: refusals by agent, code and interface, clients by agent and
    interface.
    """
    with jidomem.open(root, project="p") as memory:
        operation = Operation()
        operation.keep_counts(memory.interface_log, HTTP)
        client = create_app(memory, operation=operation).test_client()
        agents, health = client.get("/ui/p/agents.json").json, client.get("/ui/p/health.json").json
        pages = client.get("/ui/p/agents").text + client.get("/ui/p/health").text
        assert pages.count("by all servers of this root") >= 2
        operation.close()
    refused = {(one["agent"], one["code"], one["interface"]): one["count"] for one in agents["refusals"]}
    return refused, {(one["agent"], one["interface"]): one["user_agent"] for one in health["clients"]}


def test_clients_and_refusals_of_mcp_over_http_are_on_the_pages(tmp_path):
    root = tmp_path / "root"

    async def call_tools(client):
        await client.call_tool("remember", {"text": "one"})
        await client.call_tool("remember", {"text": "two", "fields": {"type": "fcat"}})

    with serving(root) as process:
        talk(process, call_tools, mode="legacy")

    refused, clients = page_rows(root)
    assert refused["claude-code", "unknown_type", "MCP over HTTP"] == 1
    assert clients["claude-code", "MCP over HTTP"] == "Claude Code 2"


def test_clients_and_refusals_of_mcp_at_standard_input_are_on_the_pages(tmp_path):
    client_info = {"name": "helper", "version": "1"}
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info}
    call = {"name": "remember", "arguments": {"text": "two", "fields": {"type": "fcat"}}}
    messages = [
        {"id": 1, "method": "initialize", "params": first},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in messages)
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.submit_intent("p", intent())
    command = ["jidomem", "mcp", "--root", tmp_path / "root", "--project", "p"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(lines)
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        process.stdin.close()
        process.wait(60)

    refused, clients = page_rows(tmp_path / "root")
    assert refused["helper", "unknown_type", "MCP over standard input"] == 1
    assert clients["helper", "MCP over standard input"] == "helper 1"


@pytest.fixture
def log(tmp_path):
    return InterfaceLog(State(tmp_path / "root", logs.SERVER_LOG_TABLES))


def test_counts_of_several_servers_are_added_once(log):
    first, second = ServerMeasures(), ServerMeasures()
    ledgers = [Ledger(log, HTTP, measures) for measures in (first, second)]
    for measures in (first, first, second):
        measures.refused("conflict", "ana", "p")
        measures.client_seen("p", "ana", "curl", "127.0.0.1")
        assert all(ledger.save() for ledger in ledgers)
    for ledger in ledgers:
        ledger.close()

    refused, clients = log.read("p")
    assert [(each.agent, each.code, each.times) for each in refused] == [("ana", "conflict", 3)]
    assert [(each.agent, each.address, each.requests) for each in clients] == [("ana", "this machine", 3)]
    assert log.read("q") == ([], [])


def test_the_log_is_bounded_and_a_redacted_name_is_removed(log, monkeypatch):
    monkeypatch.setattr(logs, "REFUSALS", 2)
    monkeypatch.setattr(logs, "CLIENTS", 2)
    days, agents = ("2026-11-01", "2026-11-03", "2026-11-02"), ("ana", "sk-secret", "ben")
    refused = [RefusedAt(day, "p", agent, "conflict", HTTP, 1) for day, agent in zip(days, agents, strict=True)]
    clients = [
        ClientActivity("p", each, "", "elsewhere", HTTP, day, day, 1) for day, each in zip(days, agents, strict=True)
    ]

    log.add(refused, clients)

    assert (
        {each.agent for each in log.read("p")[0]} == {each.agent for each in log.read("p")[1]} == {"sk-secret", "ben"}
    )
    log.forget(lambda text: "secret" in text)
    assert {each.agent for each in log.read("p")[0]} == {"ben"}
    assert b"sk-secret" not in log.state.path.read_bytes()


def test_a_server_with_an_unwritable_log_shows_its_own_counts(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.submit_intent("p", intent())
        (tmp_path / "root" / "state").mkdir(exist_ok=True)
        (tmp_path / "root" / "state" / "working.sqlite").write_bytes(b"this is no file of SQLite")
        operation = Operation()
        operation.keep_counts(memory.interface_log, HTTP)
        client = create_app(memory, operation=operation).test_client()
        client.post("/projects/p/intents", json=intent(type="fcat"))

        page = client.get("/ui/p/agents.json")

        assert [each["code"] for each in page.json["refusals"]] == ["unknown_type"]
        operation.close()
