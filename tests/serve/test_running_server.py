"""`jidomem serve` as a process, with real clients."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from threading import Thread

import pytest
from conftest import decision, intent, wait_until
from http_world import JSON, NDJSON, Client, as_root, serving

import jidomem
from jidomem.base.clock import Sources
from jidomem.records.policy import PolicyChange
from jidomem.runtime.location import init
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring, revoke_token
from jidomem_cli.serve import serve

pytestmark = pytest.mark.usefixtures("loaded_program")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("served") / "root"
    with serving(root) as process:
        process.root = root
        yield process


@pytest.fixture
def client(server):
    with Client(server.url) as client:
        yield client


def test_a_submitted_intent_is_readable_at_once_by_the_client_and_by_another_process(server, client):
    status, receipt = client.submit(intent(summary="over HTTP"))

    assert status == 201
    assert receipt["iri"] in [row["fact"] for row in client.get("/projects/p/queries/facts")["rows"]]
    with jidomem.open(server.root) as other:
        assert receipt["iri"] in [row["fact"] for row in other.reader.list_facts_with_confidence("p")]


def test_a_memory_of_another_process_is_read_at_once(server, client):
    with jidomem.open(server.root) as other:
        receipt = other.writer.submit_intent("p", intent(summary="by another process"))

    assert client.get(f"/projects/p/memories/{receipt.iri.rsplit('/', 1)[1]}")["iri"] == receipt.iri


def test_lines_are_streamed_in_while_the_outcomes_wait_for_a_late_reader(client):
    lines = b"".join(json.dumps(intent(summary=f"line {n}")).encode() + b"\n" for n in range(1200))

    status, _, body = client.ask("POST", "/projects/p/intents", lines + b'{"type":\n', NDJSON)

    outcomes = [json.loads(line) for line in body.splitlines()]
    assert (status, len(outcomes)) == (200, 1201)
    assert {outcome.get("status") for outcome in outcomes[:-1]} == {"asserted"}
    assert (outcomes[-1]["code"], outcomes[-1]["position"]) == ("malformed_json", 1200)
    assert outcomes[-1]["detail"].startswith("line 1201 column ")


def test_a_body_above_the_limit_is_refused_while_the_client_still_sends(client):
    for request_body in (b" " * 5_000_000, iter([b" " * 500_000] * 10)):
        status, headers, body = client.ask(
            "POST", "/projects/p/intents", request_body, {"Content-Type": "application/json"}
        )

        assert (status, json.loads(body)["code"]) == (413, "payload_too_large")
        assert headers["Connection"] == "close"  # so that no client sends its next request here
        assert client.ask("GET", "/healthz")[0] == 200


def test_a_refusal_keeps_the_connection_after_a_short_unread_body(client):
    status, headers, _ = client.ask("POST", "/projects/p/nothing", b" " * 100_000, {"Content-Type": "application/json"})

    assert (status, headers["Connection"]) == (404, None)
    assert client.ask("GET", "/healthz")[0] == 200


def test_a_body_in_chunks_is_read(client):
    text = json.dumps(intent(summary="in chunks")).encode()

    client.connection.request(
        "POST", "/projects/p/intents", iter([text[:9], text[9:]]), {"Content-Type": "application/json"}
    )
    response = client.connection.getresponse()

    assert (response.status, json.loads(response.read())["status"]) == (201, "asserted")


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_after_its_requests(tmp_path, stop):
    with serving(tmp_path / "root", "-q") as process:
        answers = []

        def submit():
            with Client(process.url) as client:
                answers.append(client.submit([intent(summary=str(number)) for number in range(300)]))

        slow = Thread(target=submit)
        slow.start()
        wait_until(lambda: answers or (tmp_path / "root" / "projects" / "p").exists())
        process.send_signal(stop)
        slow.join()
        _, error_output = process.communicate(timeout=15)

    ((status, outcomes),) = answers
    assert (status, len(outcomes), process.returncode, error_output) == (201, 300, 0, "")


def test_a_port_in_use_and_an_unprotected_public_address_are_refused(server, tmp_path):
    def refused(*options):
        command = ["jidomem", "serve", "--root", as_root(tmp_path), "--json", *options]
        result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return result.returncode, json.loads(result.stdout)

    port = server.url.rsplit(":", 1)[1]
    code, in_use = refused("--port", port)
    assert (code, in_use["code"]) == (2, "invalid_argument")
    assert in_use["detail"] == f"127.0.0.1:{port} is in use"
    code, without_host = refused("--host", "0.0.0.0")
    assert (code, without_host["code"]) == (2, "invalid_argument")
    assert without_host["hint"] == "name the host that clients use: --allow-host memory.example.org"
    code, no_tokens = refused("--host", "0.0.0.0", "--allow-host", "memory.example.org")
    assert (code, no_tokens["code"]) == (2, "invalid_argument")
    assert "has no tokens" in no_tokens["detail"]
    assert f"of {tmp_path} in {own_config()}" in no_tokens["detail"]
    assert f"jidomem access token add AGENT --root {tmp_path}" in no_tokens["hint"]


COMMANDS = [["serve", "--workers", "1"], ["serve", "--workers", "2"], ["mcp", "--http"]]
ADDRESSES = [
    ["--allow-host", "memory.example.org"],
    ["--public-url", "https://memory.example.org"],
    ["--host", "0.0.0.0", "--allow-host", "memory.example.org"],
]
#: Runs command lines in order, each in a copy of its process, and prints the exit code after each to standard error.
RUN = """
import json, os, sys
import jidomem.serve.app, jidomem.serve.mcp.http, jidomem_cli.serve
from jidomem_cli.main import cli
for words in json.loads(sys.argv[1]):
    if os.fork() == 0:
        cli(words)
    print(f"ended with {os.waitstatus_to_exitcode(os.wait()[1])}", file=sys.stderr, flush=True)
"""


def test_a_public_server_without_tokens_does_not_start(tmp_path):
    lines = [
        [*command, "--root", as_root(tmp_path / "root"), "--port", "0", *address]
        for command in COMMANDS
        for address in ADDRESSES
    ]
    command = [sys.executable, "-c", RUN, json.dumps(lines)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60 * len(lines), check=True)

    errors = result.stderr.split("ended with 2\n")
    assert errors.pop() == ""
    assert len(errors) == len(lines)
    assert all("has no tokens" in error and str(own_config()) in error for error in errors), errors


def test_a_server_without_tokens_warns_of_an_unenforced_policy(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.change_policy("p", [PolicyChange(agent="ana", grants="Administrator")])

    for workers in ("1", "2"):
        with serving(tmp_path / "root", "--workers", workers) as process:
            lines = iter(process.stderr.readline, "")
            warning = json.loads(next(line for line in lines if "no_tokens" in line))
        assert (warning["level"], "any agent" in warning["detail"]) == ("warning", True)
        assert warning["hint"].endswith(f"jidomem access token add AGENT --root {tmp_path / 'root'}")


@pytest.mark.parametrize(("command", "address"), [*zip(COMMANDS, ADDRESSES, strict=True)])
def test_each_line_of_a_log_outside_a_terminal_is_json_also_of_revoked_tokens_and_a_fault(tmp_path, command, address):
    root, lines = tmp_path / "root", []
    _, token = Keyring(own_config(), root).issue("ana", "agent", ["p"], Sources())
    revoke_token(own_config(), token.id)
    arguments = ["jidomem", *command, "--root", as_root(root), "--project", "new", "--port", "0", *address]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        while not {"started", "no_tokens"} <= {line["event"] for line in lines}:
            lines.append(json.loads(process.stderr.readline()))
        process.terminate()
        lines += map(json.loads, process.stderr)
    (root / "config.toml").write_text("projcet = 1\n")
    failed = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    (fault,) = map(json.loads, failed.stderr.splitlines())

    assert [line["event"] for line in lines if line["event"] in ("message", "started", "stopped")] == [
        *("message", "started", "stopped")
    ]
    details = {line["event"]: line["detail"] for line in lines if "detail" in line}
    assert f"no project 'new' in {root}" in details["message"]
    assert "no token is valid: every request is refused" in details["no_tokens"]
    assert str(root) in json.dumps([line for line in lines if line["event"] == "no_tokens"])
    assert (failed.returncode, fault["event"], fault["level"], fault["code"]) == (
        1,
        "failed",
        "error",
        "invalid_config",
    )


def test_the_host_of_the_public_url_is_allowed(tmp_path):
    Keyring(own_config(), tmp_path / "root").issue("ana", "agent", ["p"], Sources())
    with (
        serving(tmp_path / "root", "--public-url", "https://Memory.example.org:8443") as process,
        Client(process.url) as client,
    ):
        named = client.ask("GET", "/healthz", headers={"Host": "memory.example.org"})
        other = client.ask("GET", "/healthz", headers={"Host": "example.org"})

    assert named[0] == 200
    refused = json.loads(other[2])
    assert (other[0], refused["code"], "--allow-host" in refused["hint"]) == (403, "unknown_host", True)


def test_a_public_address_is_served_to_valid_tokens_under_allowed_host_names(tmp_path):
    root = tmp_path / "root"
    secret, token = Keyring(own_config(), root).issue("ana", "agent", ["p"], Sources())
    with serving(root, "--host", "0.0.0.0", "--allow-host", "memory.example.org") as process:
        url = process.url.replace("0.0.0.0", "127.0.0.1")
        with Client(url) as client:
            authorization = {"Authorization": f"Bearer {secret}"}
            status, _ = client.submit(intent(asserted_by="ana"), **authorization)
            named = client.ask("GET", "/projects/p", headers={**authorization, "Host": "memory.example.org:8443"})
            foreign = client.ask("GET", "/projects/p", headers={**authorization, "Host": "example.org"})
            unauthenticated = client.ask("GET", "/projects/p")
            assert [status, named[0], foreign[0], unauthenticated[0]] == [201, 200, 403, 401]
            assert client.get("/healthz") == {"status": "ok"}
            revoke_token(own_config(), token.id)
            assert client.ask("GET", "/projects/p", headers=authorization)[0] == 401
            assert client.ask("GET", "/projects/p")[0] == 401


def test_the_examples_of_the_help_text_start_a_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    init(tmp_path, "p")
    lines = [line.split() for line in serve.help.partition("Examples:\n")[2].splitlines() if line.strip()]
    assert [line[:2] for line in lines] == [["jidomem", "serve"]] * 2
    for line in lines:
        with subprocess.Popen(["jidomem", *line[1:], "--json"], stdout=subprocess.PIPE, text=True) as process:
            url = json.loads(process.stdout.readline())["url"]
            with Client(url) as client:
                assert client.get("/healthz") == {"status": "ok"}
            process.terminate()
            assert process.wait(15) == 0


def test_sixteen_clients_that_read_and_write_lose_no_memory(server):
    problems, recorded = [], []

    def work(number):
        with Client(server.url) as client:
            for turn in range(12):
                one(client, number, turn)

    def one(client, number, turn):
        status, receipt = client.submit(decision(summary=f"{number} {turn}", topic=f"topic {number} {turn}"))
        if status != 201:
            problems.append(receipt)
            return
        recorded.append(receipt["iri"])
        shown = client.get(f"/projects/p/memories/{receipt['iri'].rsplit('/', 1)[1]}")
        if shown["iri"] != receipt["iri"]:
            problems.append(shown)

    threads = [Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert len(set(recorded)) == 16 * 12
    with jidomem.open(server.root) as other:
        rows = other.reader.list_active_architectural_decisions("p")
    assert set(recorded) <= {row["decision"] for row in rows}


def test_vectors_are_computed_after_the_answer_and_a_stalled_embedder_does_not_delay_the_stop(tmp_path):
    vector = b'{"data": [{"index": 0, "embedding": [1, 2]}]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(vector)
    with socket.create_server(("127.0.0.1", 0)) as endpoint, ExitStack() as stack:
        own = tmp_path / "jidomem" / "config.toml"
        own.parent.mkdir()
        own.write_text(
            f'embedder = {{ use = "endpoint", model = "m", dimensions = 2, key_env = "",'
            f' base_url = "http://127.0.0.1:{endpoint.getsockname()[1]}/v1" }}'
        )
        own.chmod(0o600)
        environment = {name: value for name, value in os.environ.items() if name != "JIDOMEM_EMBEDDER"}
        with serving(tmp_path / "root", environment={**environment, "XDG_CONFIG_HOME": str(tmp_path)}) as process:
            with Client(process.url) as client:
                client.submit([intent(summary="the build needs Rust"), intent(summary="the build is slow")])
                client.connection.request("POST", "/projects/p/recall", '{"query": "the compiler of the build"}', JSON)
                with endpoint.accept()[0] as query_connection:
                    query_connection.recv(65_536)
                    query_connection.sendall(head + vector)
                answer = json.loads(client.connection.getresponse().read())
            stalled = stack.enter_context(endpoint.accept()[0])
            received = stalled.recv(65_536)
            while b'"input"' not in received:
                received += stalled.recv(65_536)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=15)

    assert answer["metadata"]["vectors"]["pending"] == 2
    assert b"the build needs Rust" in received
    assert process.returncode == 0
