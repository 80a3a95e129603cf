"""What a server of MCP over HTTP tells its operator: a line a request, and figures; never what was said."""

import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import anyio
import pytest
from conftest import intent
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

BIN = Path(sys.executable).parent
ID = "build-7"


@contextmanager
def serving(root, *options):
    """`jidomem mcp --http`: its `url`, and once it has ended its `lines` of JSON."""
    command = [BIN / "jidomem", "mcp", "--root", root, "--project", "p", "--http", "--port", "0", *options]
    with subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = []
            while not (served := re.search(r"http://\S+(?=/mcp)", "".join(lines))):  # a warning may precede it
                lines.append(process.stderr.readline())
            process.url = served[0]
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.lines = [json.loads(line) for line in [*lines, *process.stderr]]
            assert process.wait(60) == 0


def talk(process, asks, *, mode, secret=None):
    """What *asks* returns, given a client of the server whose requests all have the id ID."""

    async def main():
        headers = {"X-Request-Id": ID, **({"Authorization": f"Bearer {secret}"} if secret else {})}
        async with create_mcp_http_client(headers) as http:
            peer = streamable_http_client(f"{process.url}/mcp", http_client=http)
            async with Client(peer, mode=mode, client_info=Implementation(name="Claude Code", version="2")) as client:
                return await asks(client)

    return anyio.run(main)


def got(process, path="/metrics", *, method="GET", **headers):
    """Status, headers and text of an answer."""
    try:
        with urlopen(Request(f"{process.url}{path}", method=method, headers=headers), timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def figures(process, **headers):
    """Every sample as Prometheus reads it: name and labels -> figure."""
    status, told, text = got(process, **headers)
    assert (status, told["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = parser.text_string_to_metric_families(text)
    return {(each.name, *sorted(each.labels.items())): each.value for family in families for each in family.samples}


def calls(read, method, tool="", outcome="answered"):
    return read["jidomem_mcp_requests_total", ("method", method), ("outcome", outcome), ("tool", tool)]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_each_request_is_a_line_and_is_counted_with_its_tool_and_refusal_and_nothing_that_was_said(tmp_path, mode):
    async def asks(client):
        await client.call_tool("remember", {"text": "hush-1"})
        await client.call_tool("remember", {"text": "hush-2", "fields": {"type": "hush-3"}})
        await client.call_tool("recall", {"query": "hush-4"})
        await client.list_resources()
        for refused in (client.call_tool("hush-5", {}), client.read_resource("memory://item/hush-6")):
            with pytest.raises(MCPError):
                await refused

    with serving(tmp_path / "root") as process:
        talk(process, asks, mode=mode)
        read = figures(process)

    # the figures
    assert [calls(read, "tools/call", "remember", outcome) for outcome in ("answered", "refused")] == [1, 1]
    assert calls(read, "tools/call", "other", "refused") == calls(read, "resources/read", "", "refused") == 1
    assert calls(read, "resources/list") == 1
    assert [read["jidomem_refusals_total", ("code", code)] for code in ("unknown_type", "not_found")] == [1, 1]
    assert read["jidomem_mcp_tool_seconds_count", ("tool", "remember")] == 2
    assert read["jidomem_commit_seconds_count",] == read["jidomem_journal_position", ("project", "p")] == 1
    assert read["jidomem_http_requests_total", ("method", "POST"), ("route", "/mcp"), ("status", "200")] >= 6

    # the log
    assert [line["event"] for line in (*process.lines[:2], process.lines[-1])] == ["message", "started", "stopped"]
    told = [line for line in process.lines if line["event"] == "request"]
    assert {line["request_id"] for line in told} == {ID}
    assert {line["path"] for line in told} == {"/mcp"}
    assert all(line["ms"] > 0 and line["client"] == "127.0.0.1" for line in told)
    by_tool = [(line["tool"], line.get("code"), line.get("agent")) for line in told if line.get("call") == "tools/call"]
    assert by_tool == [
        ("remember", None, "claude-code"),
        ("remember", "unknown_type", "claude-code"),
        ("recall", None, "claude-code"),
        ("other", "invalid_params", None),
    ]
    assert [line["code"] for line in told if line.get("call") == "resources/read"] == ["not_found"]
    assert "hush" not in json.dumps(process.lines)


def test_the_figures_are_for_who_reaches_every_project_and_no_library_puts_its_words_into_the_log(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
        memory.writer.submit_intent("hidden", intent(applies_to_project="hidden"))

    with serving(root, "--log-level", "debug") as process:
        status, headers, text = got(process, Host="evil.example:80")
        assert (status, json.loads(text)["code"]) == (403, "unknown_host")
        assert headers["X-Request-Id"] == json.loads(text)["request_id"]
        assert got(process, method="POST")[:1] == (405,)
        assert ("jidomem_journal_position", ("project", "hidden")) in figures(process)

        ring = Keyring(own_config(), root)
        ana = ring.give_out("ana", "admin", ["p"], Sources())[0]
        every = ring.give_out("prometheus", "reader", ["*"], Sources())[0]
        assert got(process)[0] == 401
        status, _, text = got(process, Authorization=f"Bearer {ana}")
        assert (status, json.loads(text)["code"], "hidden" in text) == (403, "policy_denied", False)
        read = figures(process, Authorization=f"Bearer {every}")
        talk(process, lambda client: client.call_tool("ask", {"name": "facts"}), mode="auto", secret=ana)
        with create_connection(urlsplit(process.url).netloc.split(":")) as connection:
            connection.sendall(b"hush \x00 HTTP/9\r\n\r\n")
            while connection.recv(4096):
                pass

    assert read["jidomem_refusals_total", ("code", "unauthenticated")] == 1
    codes = [line.get("code") for line in process.lines if line["event"] == "request"]
    assert {"policy_denied", "unauthenticated", "method_not_allowed"} <= {*codes}
    asked = [line["agent"] for line in process.lines if line.get("tool") == "ask"]
    assert asked == ["ana"]
    (complaint,) = [line for line in process.lines if line["event"] == "library"]
    assert (complaint["level"], complaint["logger"]) == ("warning", "uvicorn.error")
    assert not any(secret in json.dumps(process.lines) for secret in (ana, every, "hush"))


def test_every_answer_says_to_a_browser_what_those_of_the_other_door_do(tmp_path):
    secret = Keyring(own_config(), tmp_path / "root").give_out("ana", "admin", ["*"], Sources())[0]
    mine = {"Authorization": f"Bearer {secret}"}

    with serving(tmp_path / "root") as process:
        answers = [got(process, path, **who) for path in ("/mcp", "/metrics", "/nowhere") for who in (mine, {})]

    assert {status for status, _, _ in answers} > {200, 401}
    for name, value in {**HEADERS, "Cache-Control": "no-store"}.items():
        assert [headers[name] for _, headers, _ in answers] == [value] * 6


def test_agents_of_other_machines_reach_it_by_the_names_it_was_given_and_pages_of_others_do_not(tmp_path):
    secret = Keyring(own_config(), tmp_path / "root").give_out("ana", "agent", ["p"], Sources())[0]
    mine = {"Authorization": f"Bearer {secret}"}
    names = ("--host", "0.0.0.0", "--allow-host", "one.example.org", "--public-url", "https://two.example.org")

    with serving(tmp_path / "root", *names) as process:
        process.url = process.url.replace("0.0.0.0", "127.0.0.1")
        hosts = ("127.0.0.1", "one.example.org:9000", "two.example.org", "three.example.org")
        by_name = [got(process, "/mcp", Host=host, **mine) for host in hosts]
        pages = [got(process, "/mcp", Origin=origin, **mine) for origin in ("https://two.example.org", "null")]
        talk(process, lambda client: client.call_tool("status", {}), mode="auto", secret=secret)

    assert [status for status, _, _ in by_name] == [*3 * [by_name[0][0]], 403]
    assert "unknown_host" not in by_name[0][2]
    assert json.loads(by_name[3][2])["code"] == "unknown_host"
    assert (pages[0][0], json.loads(pages[1][2])["code"]) == (by_name[0][0], "policy_denied")


def test_a_client_with_a_token_is_told_no_path_of_the_server_and_the_log_has_it(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
    secret = Keyring(own_config(), root).give_out("ana", "agent", ["p"], Sources())[0]

    with serving(root) as process:
        (root / "projects" / "p" / "memory").rename(root / "elsewhere")
        (root / "projects" / "p" / "memory").write_text("in the way")
        told = talk(process, lambda client: client.call_tool("remember", {"text": "x"}), mode="auto", secret=secret)

    assert (told.is_error, told.structured_content["code"]) == (True, "write_failed")
    assert "tell the operator" in told.content[0].text
    assert str(root) not in told.model_dump_json()
    (fault,) = [line for line in process.lines if line["event"] == "fault"]
    assert (fault["agent"], fault["code"], str(root) in fault["detail"]) == ("ana", "write_failed", True)


@pytest.mark.parametrize("option", [
    ("--port", "0"), ("--allow-host", "one.example.org"), ("--public-url", "https://two.example.org"),
])  # fmt: skip
def test_options_of_the_address_are_refused_on_standard_input(tmp_path, option):
    command = [str(BIN / "jidomem"), "mcp", "--root", str(tmp_path), *option]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    assert (done.returncode, f"{option[0]} is for --http" in done.stderr) == (2, True)


def test_options_of_the_log_are_refused_where_there_is_none(tmp_path):
    command = [str(BIN / "jidomem"), "mcp", "--root", str(tmp_path), "--log-level", "debug"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    assert done.returncode == 2
    assert "--log-level is for --http" in done.stderr


def test_a_probe_needs_no_token_and_is_answered_to_this_machine_only(tmp_path):
    root = tmp_path / "root"
    Keyring(own_config(), root).give_out("ana", "admin", ["*"], Sources())
    with serving(root) as process:
        probed, metrics = got(process, "/healthz"), got(process, "/metrics")
        foreign, posted = got(process, "/healthz", Host="rebound.example.org"), got(process, "/healthz", method="POST")
        head = got(process, "/healthz", method="HEAD")

    assert (probed[0], json.loads(probed[2]), probed[1]["Content-Type"]) == (200, {"status": "ok"}, "application/json")
    assert (head[0], head[2], metrics[0], foreign[0], posted[0]) == (200, "", 401, 403, 405)
    assert posted[1]["Allow"] == "GET, HEAD"
