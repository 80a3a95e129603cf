"""The operation of a server of MCP over HTTP: a log line per request and metrics, without any text of clients."""

import json
import re
import signal
import subprocess
from contextlib import contextmanager
from socket import create_connection
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import anyio
import pytest
from click.testing import CliRunner
from conftest import intent, wait_until
from http_world import as_root
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation
from prometheus_client import parser

import jidomem
from jidomem.base.clock import Sources
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import HEADERS
from jidomem_cli.main import cli

pytestmark = pytest.mark.usefixtures("loaded_program")
ID = "build-7"


@contextmanager
def serving(root, *options):
    """`jidomem mcp --http`: its `url`, and once it has ended its `lines` of JSON."""
    command = ["jidomem", "mcp", "--root", as_root(root), "--project", "p", "--http", "--port", "0", *options]
    with subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = []
            while not (announced := re.search(r"http://\S+(?=/mcp)", "".join(lines))):  # a warning may precede it
                lines.append(process.stderr.readline())
            process.url = announced[0]
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.lines = [json.loads(line) for line in [*lines, *process.stderr]]
            assert process.wait(60) == 0


def talk(process, use, *, mode, secret=None):
    """The result of *use*, given a client of the server whose requests all have the id ID."""

    async def main():
        headers = {"X-Request-Id": ID, **({"Authorization": f"Bearer {secret}"} if secret else {})}
        async with create_mcp_http_client(headers) as http:
            peer = streamable_http_client(f"{process.url}/mcp", http_client=http)
            async with Client(peer, mode=mode, client_info=Implementation(name="Claude Code", version="2")) as client:
                return await use(client)

    return anyio.run(main)


def fetch(process, path="/metrics", *, method="GET", body=None, **headers):
    """Status, headers and text of an answer."""
    try:
        with urlopen(Request(f"{process.url}{path}", body, headers, method=method), timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def read_metrics(process, **headers):
    """Every sample as Prometheus reads it: name and labels -> value."""
    status, headers_read, text = fetch(process, **headers)
    assert (status, headers_read["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = parser.text_string_to_metric_families(text)
    return {(each.name, *sorted(each.labels.items())): each.value for family in families for each in family.samples}


def calls(metrics, method, tool="", outcome="answered"):
    return metrics["jidomem_mcp_requests_total", ("method", method), ("outcome", outcome), ("tool", tool)]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_requests_are_logged_and_counted_by_tool_and_refusal_without_the_text_of_clients(tmp_path, mode):
    async def use(client):
        await client.call_tool("remember", {"text": "hush-1"})
        await client.call_tool("remember", {"text": "hush-2", "fields": {"type": "hush-3"}})
        await client.call_tool("recall", {"query": "hush-4"})
        await client.list_resources()
        for refused in (client.call_tool("hush-5", {}), client.read_resource("memory://item/hush-6")):
            with pytest.raises(MCPError):
                await refused

    with serving(tmp_path / "root") as process:
        talk(process, use, mode=mode)
        commits = 1 + (mode == "legacy")  # the memory, and the end of its work session after that of the connection
        wait_until(lambda: read_metrics(process)["jidomem_commit_seconds_count",] == commits)
        metrics = read_metrics(process)

    # the figures
    assert [calls(metrics, "tools/call", "remember", outcome) for outcome in ("answered", "refused")] == [1, 1]
    assert calls(metrics, "tools/call", "other", "refused") == calls(metrics, "resources/read", "", "refused") == 1
    assert calls(metrics, "resources/list") == 1
    assert [metrics["jidomem_refusals_total", ("code", code)] for code in ("unknown_type", "not_found")] == [1, 1]
    assert metrics["jidomem_mcp_tool_seconds_count", ("tool", "remember")] == 2
    assert metrics["jidomem_journal_position", ("project", "p")] == commits
    assert metrics["jidomem_http_requests_total", ("method", "POST"), ("route", "/mcp"), ("status", "200")] >= 6

    # the log
    assert [line["event"] for line in (*process.lines[:2], process.lines[-1])] == ["message", "started", "stopped"]
    requests = [line for line in process.lines if line["event"] == "request"]
    assert {line["request_id"] for line in requests} == {ID}
    assert {(line["path"], line["project"]) for line in requests} == {("/mcp", "p")}
    assert all(line["ms"] > 0 and line["client"] == "127.0.0.1" for line in requests)
    by_tool = [
        (line["tool"], line.get("code"), line.get("agent")) for line in requests if line.get("call") == "tools/call"
    ]
    assert by_tool == [
        ("remember", None, "claude-code"),
        ("remember", "unknown_type", "claude-code"),
        ("recall", None, "claude-code"),
        ("other", "invalid_params", None),
    ]
    assert [line["code"] for line in requests if line.get("call") == "resources/read"] == ["not_found"]
    assert "hush" not in json.dumps(process.lines)


def test_metrics_are_for_tokens_of_all_projects_and_messages_of_libraries_are_logged_without_content(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
        memory.writer.submit_intent("hidden", intent(applies_to_project="hidden"))

    with serving(root, "--log-level", "debug") as process:
        status, headers, text = fetch(process, Host="evil.example:80")
        assert (status, json.loads(text)["code"]) == (403, "unknown_host")
        assert headers["X-Request-Id"] == json.loads(text)["request_id"]
        assert fetch(process, method="POST")[:1] == (405,)
        assert ("jidomem_journal_position", ("project", "hidden")) in read_metrics(process)

        ring = Keyring(own_config(), root)
        ana = ring.issue("ana", "admin", ["p"], Sources())[0]
        all_projects = ring.issue("prometheus", "reader", ["*"], Sources())[0]
        assert fetch(process)[0] == 401
        status, _, text = fetch(process, Authorization=f"Bearer {ana}")
        assert (status, json.loads(text)["code"], "hidden" in text) == (403, "policy_denied", False)
        metrics = read_metrics(process, Authorization=f"Bearer {all_projects}")
        talk(process, lambda client: client.call_tool("ask", {"name": "facts"}), mode="auto", secret=ana)
        talk(process, lambda client: client.call_tool("remember", {"text": "x"}), mode="auto", secret=ana)
        with create_connection(urlsplit(process.url).netloc.split(":")) as connection:
            connection.sendall(b"hush \x00 HTTP/9\r\n\r\n")
            while connection.recv(4096):
                pass

    assert metrics["jidomem_refusals_total", ("code", "unauthenticated")] == 1
    codes = [line.get("code") for line in process.lines if line["event"] == "request"]
    assert {"policy_denied", "unauthenticated", "method_not_allowed"} <= {*codes}
    agents = [line["agent"] for line in process.lines if line.get("tool") == "ask"]
    assert agents == ["ana"]
    with jidomem.open(root, project="p") as memory:
        ended, added = (row["commit"][:12] for row in memory.reader.log("p").rows[:2])
    commits = [line for line in process.lines if line["event"] == "commit"]
    assert [(line.get("request_id"), line["agent"], line["commit"]) for line in commits] == [
        (ID, "ana", added),
        (None, "ana", ended),  # the end of its work session, at that of the server
    ]
    (library_line,) = [line for line in process.lines if line["event"] == "library"]
    assert (library_line["level"], library_line["logger"]) == ("warning", "uvicorn.error")
    assert not any(secret in json.dumps(process.lines) for secret in (ana, all_projects, "hush"))


def test_every_answer_of_mcp_over_http_has_the_security_headers(tmp_path):
    secret = Keyring(own_config(), tmp_path / "root").issue("ana", "admin", ["*"], Sources())[0]
    authorization = {"Authorization": f"Bearer {secret}"}

    with serving(tmp_path / "root") as process:
        answers = [
            fetch(process, path, **headers_sent)
            for path in ("/mcp", "/metrics", "/nowhere")
            for headers_sent in (authorization, {})
        ]

    assert {status for status, _, _ in answers} > {200, 401}
    for name, value in {**HEADERS, "Cache-Control": "no-store"}.items():
        assert [headers[name] for _, headers, _ in answers] == [value] * 6


def test_other_machines_are_answered_under_the_allowed_host_names_alone(tmp_path):
    secret = Keyring(own_config(), tmp_path / "root").issue("ana", "agent", ["p"], Sources())[0]
    authorization = {"Authorization": f"Bearer {secret}"}
    names = ("--host", "0.0.0.0", "--allow-host", "one.example.org", "--public-url", "https://two.example.org")

    with serving(tmp_path / "root", *names) as process:
        process.url = process.url.replace("0.0.0.0", "127.0.0.1")
        hosts = ("127.0.0.1", "one.example.org:9000", "two.example.org", "three.example.org")
        by_name = [fetch(process, "/mcp", Host=host, **authorization) for host in hosts]
        pages = [
            fetch(process, "/mcp", Origin=origin, **authorization) for origin in ("https://two.example.org", "null")
        ]
        talk(process, lambda client: client.call_tool("status", {}), mode="auto", secret=secret)

    assert [status for status, _, _ in by_name] == [*3 * [by_name[0][0]], 403]
    assert "unknown_host" not in by_name[0][2]
    assert json.loads(by_name[3][2])["code"] == "unknown_host"
    assert (pages[0][0], json.loads(pages[1][2])["code"]) == (by_name[0][0], "policy_denied")


def test_a_write_error_is_logged_with_its_path_and_reported_to_a_token_without_it(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
    secret = Keyring(own_config(), root).issue("ana", "agent", ["p"], Sources())[0]

    with serving(root) as process:
        (root / "projects" / "p" / "memory").rename(root / "elsewhere")
        (root / "projects" / "p" / "memory").write_text("in the way")
        answer = talk(process, lambda client: client.call_tool("remember", {"text": "x"}), mode="auto", secret=secret)

    assert (answer.is_error, answer.structured_content["code"]) == (True, "write_failed")
    assert "tell the operator" in answer.content[0].text
    assert str(root) not in answer.model_dump_json()
    (fault,) = [line for line in process.lines if line["event"] == "fault"]
    assert (fault["agent"], fault["code"], str(root) in fault["detail"]) == ("ana", "write_failed", True)


def test_a_connection_is_used_and_ended_by_the_token_that_opened_it_alone(tmp_path):
    root = tmp_path / "root"
    ring = Keyring(own_config(), root)
    ana, bob = (ring.issue(name, "agent", ["p"], Sources())[0] for name in ("ana", "bob"))

    def send(secret, method, params=None, connection=None, http_method="POST"):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream",
                   **({"Mcp-Session-Id": connection} if connection else {})}  # fmt: skip
        return fetch(process, "/mcp", method=http_method, body=body, **headers)

    def remember(secret, connection):
        answer = send(secret, "tools/call", {"name": "remember", "arguments": {"text": Sources().new_id()}}, connection)
        return answer[0], *re.findall(r'"asserted_in": ?"([^"]+)"', answer[2].replace("\\", ""))[:1]

    with serving(root) as process:
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        connection = send(ana, "initialize", start)[1]["Mcp-Session-Id"]
        first = remember(ana, connection)
        by_another = [send(bob, "", None, connection, "DELETE")[0], *remember(bob, connection)]
        second = remember(ana, connection)
        ended = [send(ana, "", None, connection, "DELETE")[0], *remember(ana, connection)]

    assert by_another == [404, 404]
    assert first == second
    assert (first[0], len(first)) == (200, 2)
    assert ended == [200, 404]


@pytest.mark.parametrize("option", [
    ("--port", "0"), ("--allow-host", "one.example.org"), ("--public-url", "https://two.example.org"),
    ("--log-level", "debug"),
])  # fmt: skip
def test_options_of_the_address_and_the_log_are_refused_on_standard_input(tmp_path, option):
    result = CliRunner().invoke(cli, ["mcp", "--root", str(tmp_path), *option])

    assert (result.exit_code, f"{option[0]} is for --http" in result.stderr) == (2, True)


def test_the_health_probe_needs_no_token_and_is_answered_to_this_machine_only(tmp_path):
    root = tmp_path / "root"
    Keyring(own_config(), root).issue("ana", "admin", ["*"], Sources())
    with serving(root) as process:
        probed, metrics = fetch(process, "/healthz"), fetch(process, "/metrics")
        foreign, posted = (
            fetch(process, "/healthz", Host="rebound.example.org"),
            fetch(process, "/healthz", method="POST"),
        )
        head = fetch(process, "/healthz", method="HEAD")

    assert (probed[0], json.loads(probed[2]), probed[1]["Content-Type"]) == (200, {"status": "ok"}, "application/json")
    assert (head[0], head[2], metrics[0], foreign[0], posted[0]) == (200, "", 401, 403, 405)
    assert posted[1]["Allow"] == "GET, HEAD"
