"""The report of `jidomem check` over HTTP: made in a process of its own, so that no other request waits for it."""

import json
import os
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import decision, fixed_sources, intent, wait_until
from http_world import Client, running

import jidomem
from jidomem.rdf.vocab import local_name
from jidomem.serve import wire
from jidomem.serve.app import create_app


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A memory with an error and a warning, which no test changes."""
    folder, journal = tmp_path_factory.mktemp("checked"), "projects/p/memory"
    with jidomem.open(folder / "root", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", decision(topic="store"))
        with jidomem.open(folder / "branch", sources=fixed_sources()) as branch:  # merged, so not validated
            branch.writer.submit_intent("p", decision(iri="urn:x:branch", topic="store", summary="Use SQLite"))
        shutil.copytree(folder / "branch" / journal, memory.settings.root / journal, dirs_exist_ok=True)
        memory.writer.submit_intent("p", intent(type="root_cause", summary="no fsync"))  # which explains no error
        yield memory


@pytest.fixture
def checked_client(checked):
    return create_app(checked).test_client()


@pytest.fixture
def client(memory):
    memory.writer.submit_intent("p", intent())
    return create_app(memory).test_client()


def write_endless_shapes(root):
    """Give a root shapes whose validation takes 4 to the power of 14 steps, for each memory opened from now on."""
    (root / "shapes").mkdir()
    lines = ["@prefix my: <https://my.example/kitchen#> .", "@prefix sh: <http://www.w3.org/ns/shacl#> ."]
    lines += ["my:S0x0 sh:targetClass <https://jido.ai/ontology#Fact> ."]
    for level in range(14):
        members = " ".join(f"my:S{level + 1}x{n}" for n in range(4))
        lines += [f"my:S{level}x{n} a sh:NodeShape ; sh:and ( {members} ) ." for n in range(4)]
    lines += [f"my:S14x{n} a sh:NodeShape ; sh:nodeKind sh:IRI ." for n in range(4)]
    (root / "shapes" / "endless.ttl").write_text("\n".join(lines))


@pytest.fixture
def endless(memory, client):
    write_endless_shapes(memory.settings.root)
    return memory.settings.root


def is_checked(root):
    """Whether there is a process that checks *root*."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if b"jidomem.runtime.worker" in words and os.fsencode(root) in words:
                return True
    return False


def test_the_report_equals_that_of_the_library_with_paths_relative_to_the_root(checked_client, checked):
    answer = checked_client.get("/projects/p/check")

    report = checked.check("p").to_dict()
    for problem in report["problems"]:
        problem["path"] = os.path.relpath(problem["path"], checked.settings.root)
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    assert answer.json == json.loads(json.dumps(report))
    assert answer.json["conforms"] is False
    assert answer.json["problems"][0]["path"].startswith("projects/p/memory/")


def test_the_report_is_available_as_sarif(checked_client):
    answer = checked_client.get("/projects/p/check?format=sarif")

    assert answer.content_type == "application/sarif+json"
    (run,) = json.loads(answer.data)["runs"]
    assert {(local_name(result["ruleId"]), result["level"]) for result in run["results"]} == {
        ("NothingInForceDisagrees", "error"),
        ("RootCauseExplainsAnError", "warning"),
    }


def test_the_report_is_available_as_junit_and_in_an_accepted_format(client):
    junit = client.get("/projects/p/check?format=junit")
    sarif = client.get("/projects/p/check", headers={"Accept": "application/sarif+json"})

    assert junit.content_type == "application/xml; charset=utf-8"
    assert ElementTree.fromstring(junit.data).tag == "testsuites"
    assert sarif.content_type == "application/sarif+json"
    assert [run["results"] for run in sarif.json["runs"]] == [[]]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("p/check?since=main", 400, "invalid_argument"),
        ("p/check?format=github", 400, "invalid_argument"),
        ("p/check?min_position=99-abcdef", 503, "index_behind"),
        ("q/check", 404, "unknown_project"),
    ],
)
def test_a_check_with_unsupported_parameters_is_refused(checked_client, query, status, code):
    answer = checked_client.get(f"/projects/{query}")

    assert (answer.status_code, answer.json["code"]) == (status, code)


def test_a_check_in_an_unknown_format_is_refused(checked_client):
    answer = checked_client.get("/projects/p/check", headers={"Accept": "text/html"})

    assert (answer.status_code, answer.json["code"]) == (406, "not_acceptable")


def test_a_second_check_is_refused_with_retry_after_while_other_routes_are_answered(client, endless, memory):
    with ThreadPoolExecutor(1) as executor:
        first = executor.submit(client.get, "/projects/p/check")
        wait_until(lambda: is_checked(endless))
        second = client.application.test_client().get("/projects/p/check")
        assert (second.status_code, second.json["code"]) == (429, "too_many_requests")
        assert "Retry-After" in second.headers
        assert client.application.test_client().get("/projects/p/queries/facts").status_code == 200
        memory.stop()
        stopped = first.result()

    assert (stopped.status_code, stopped.json["code"]) == (503, "busy")


def test_a_check_beyond_its_time_limit_is_stopped(client, endless, memory):
    memory.checks.seconds = 0.2

    answer = client.get("/projects/p/check")

    assert (answer.status_code, answer.json["code"]) == (503, "query_timeout")
    assert "jidomem check" in answer.json["hint"]


def test_an_error_within_the_check_is_reported_with_its_code(client, memory):
    (memory.settings.root / "config.toml").write_text("colour = 1\n")

    answer = client.get("/projects/p/check")

    assert (answer.status_code, answer.json["code"]) == (500, "invalid_config")


def test_the_process_of_a_check_ends_with_the_server(tmp_path):
    with jidomem.open(tmp_path / "root") as memory:
        memory.writer.submit_intent("p", intent())
    with running(tmp_path / "root") as server, Client(server.url) as client:
        client.get("/sparql?query=ASK%7B%7D")  # the process that answers it has opened the root by now
        write_endless_shapes(tmp_path / "root")
        client.connection.request("GET", "/projects/p/check")
        wait_until(lambda: is_checked(tmp_path / "root"))
        server.kill()
        server.wait()

        assert wait_until(lambda: not is_checked(tmp_path / "root"))


def test_a_check_of_a_disconnected_client_is_stopped(memory, endless):
    server = create_app(memory).test_client()
    server_end, client_end = socket.socketpair()

    with server_end, ThreadPoolExecutor(1) as executor:
        options = {"environ_overrides": {wire.CONNECTION: server_end.fileno()}}
        pending = executor.submit(server.get, "/projects/p/check", **options)
        wait_until(lambda: is_checked(endless))
        client_end.close()
        refusal = pending.result()

    assert (refusal.status_code, refusal.json["code"]) == (400, "invalid_argument")
    assert "has disconnected" in refusal.json["detail"]
    assert not is_checked(endless)
