"""Raw SPARQL over HTTP: every format, and endless queries, which are stopped in a child process."""

import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest
from conftest import intent, wait_until
from http_world import Client, children, running

CROSS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
SUMMARIES = "SELECT ?s ?o { ?s <https://jido.ai/ontology#summary> ?o } ORDER BY ?o LIMIT 2"
_STEPS = " ".join(f"BIND(CONCAT({', '.join([f'?v{n}'] * 16)}) AS ?v{n + 1})" for n in range(9))
GROWING = f"SELECT (STRLEN(?v9) AS ?n) {{ BIND('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' AS ?v0) {_STEPS} }}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("asked") / "root") as process:
        with Client(process.url) as client:
            client.submit([intent(summary=f"fact {number}") for number in range(200)])
        yield process


@pytest.fixture
def client(server):
    with Client(server.url) as client:
        yield client


def run_query(client, text, accept="*/*", **arguments):
    """The status, the media type and the body of the answer."""
    path = f"/projects/p/sparql?{urlencode({'query': text, **arguments})}"
    status, headers, body = client.ask("GET", path, headers={"Accept": accept})
    return status, headers["Content-Type"], body


@pytest.mark.parametrize(
    ("text", "accept", "media", "start"),
    [
        (SUMMARIES, "*/*", "application/sparql-results+json", b'{"head":{"vars":["s","o"]}'),
        (SUMMARIES, "application/json", "application/json", b'{"head":{"vars":["s","o"]}'),
        (SUMMARIES, "application/sparql-results+xml", "application/sparql-results+xml", b"<?xml"),
        (SUMMARIES, "text/csv;q=0.9, text/html", "text/csv; charset=utf-8", b"s,o\r\nhttps://jido.ai/memory/"),
        (SUMMARIES, "text/tab-separated-values", "text/tab-separated-values; charset=utf-8", b"?s\t?o\n<https:"),
        ("ASK { ?s ?p 'fact 1' }", "*/*", "application/sparql-results+json", b'{"head":{},"boolean":true}'),
        ("DESCRIBE <https://jido.ai/projects/p>", "*/*", "text/turtle; charset=utf-8", b"@prefix"),
        ("DESCRIBE <https://jido.ai/projects/p>", "application/n-triples", "application/n-triples", b"<https:"),
        ("DESCRIBE <https://jido.ai/projects/p>", "application/ld+json", "application/ld+json", b"[{"),
        ("DESCRIBE <https://jido.ai/projects/p>", "application/rdf+xml", "application/rdf+xml", b"<?xml"),
    ],
)
def test_the_answer_has_the_format_of_the_accept_header(client, text, accept, media, start):
    status, content_type, body = run_query(client, text, accept)

    assert (status, content_type) == (200, media)
    assert body.startswith(start)


def test_a_query_is_accepted_by_get_post_and_form_and_for_the_default_project(client):
    as_query = {"Content-Type": "application/sparql-query"}
    as_form = {"Content-Type": "application/x-www-form-urlencoded"}

    answers = [
        run_query(client, SUMMARIES)[2],
        client.ask("POST", "/projects/p/sparql", SUMMARIES, as_query)[2],
        client.ask("POST", "/projects/p/sparql", urlencode({"query": SUMMARIES}), as_form)[2],
        client.ask("GET", f"/sparql?query={quote(SUMMARIES)}")[2],
        client.ask("POST", "/sparql?timeout=5", SUMMARIES, as_query)[2],
    ]

    assert len(set(answers)) == 1
    assert len(json.loads(answers[0])["results"]["bindings"]) == 2


def test_a_submitted_memory_is_in_the_next_answer(client):
    for number in range(5):
        _, receipt = client.submit(intent(summary=f"just now {number}"))
        _, _, body = run_query(client, f"SELECT ?s {{ ?s ?p 'just now {number}' }}")
        assert json.loads(body)["results"]["bindings"][0]["s"]["value"] == receipt["iri"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (CROSS, {"query_timeout"}),
        ("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?c ?f ?i", {"query_timeout", "result_too_large"}),
        (GROWING, {"result_too_large", "query_timeout"}),
        ("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", {"result_too_large", "query_timeout"}),
        ("CONSTRUCT { ?a ?e ?i } { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", {"result_too_large", "query_timeout"}),
    ],
)
def test_an_endless_query_is_stopped_while_other_requests_are_answered(server, client, text, codes):
    with ThreadPoolExecutor(1) as executor, Client(server.url) as other:
        cut = executor.submit(run_query, other, text, timeout=0.3)
        while not wait([cut], 0.1).done:
            assert len(client.get("/projects/p/queries/facts?limit=3")["rows"]) == 3
        status, media, body = cut.result()

    members = json.loads(body)
    assert (status, media) == (members["status"], "application/problem+json")
    assert members["code"] in codes
    assert "stopped" in members["detail"] or "more than" in members["detail"]
    before = [cpu(child) for child in children(server)]
    time.sleep(0.2)
    assert [cpu(child) for child in children(server)] == before
    assert run_query(client, "ASK {}")[0] == 200


def cpu(process):
    """The clock ticks a process has used; 0 if it has ended."""
    try:
        return sum(map(int, Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    except OSError:
        return 0


def test_a_killed_child_is_replaced(server, client):
    assert run_query(client, "ASK {}")[0] == 200
    for child in children(server):
        os.kill(child, signal.SIGKILL)

    assert run_query(client, "ASK {}")[0] == 200


def test_queries_beyond_the_limit_of_parallel_ones_are_refused_with_retry_after(server, client):
    path, running = f"/projects/p/sparql?{urlencode({'query': CROSS})}", "jidomem_sparql_running"
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(Client(server.url)).connection.request("GET", path)
        wait_until(lambda: metric_values(client, running) == [4])
        status, headers, body = client.ask("GET", path)
        assert (status, headers["Retry-After"], json.loads(body)["code"]) == (429, "1", "too_many_requests")
    wait_until(lambda: metric_values(client, running) == [0])


def test_an_answer_above_the_row_limit_is_refused(client):
    def rows(count):
        values = " ".join(f"'}},{{\\n{number}'" for number in range(400))
        return f"SELECT ?a ?b {{ VALUES ?a {{ {values} }} VALUES ?b {{ {values} }} }} LIMIT {count}"

    at_the_limit, above = run_query(client, rows(100_000), "text/csv"), run_query(client, rows(100_001), "text/csv")

    assert at_the_limit[0] == 200
    assert (above[0], json.loads(above[2])["code"]) == (413, "result_too_large")
    assert json.loads(above[2])["detail"] == "the answer has more than 100,000 rows"


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM])
def test_the_children_end_with_the_server(tmp_path, stop):
    with running(tmp_path / "root") as process, Client(process.url) as client, ThreadPoolExecutor(1) as executor:
        client.submit([intent(summary=f"fact {number}") for number in range(100)])
        cut = executor.submit(run_query, client, CROSS)
        with Client(process.url) as other:
            wait_until(lambda: metric_values(other, "jidomem_sparql_running") == [1])
        assert not cut.done()
        orphans = children(process)
        process.send_signal(stop)
        assert cut.exception() is not None or cut.result()[0] == 503
        process.wait(15)
        wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in orphans))


def test_a_query_with_as_of_reads_the_memory_of_that_time(client):
    count = "SELECT (COUNT(*) AS ?n) { ?s <https://jido.ai/ontology#summary> ?o }"

    def counted(**arguments):
        status, _, body = client.ask(
            "GET", f"/sparql?{urlencode({'query': count, **arguments})}", headers={"Accept": "text/csv"}
        )
        return status, body.split()[-1]

    assert counted(as_of="2020-01-01") == (200, b"0")
    assert counted(as_of="2999-01-01") == counted()
    assert counted(as_of="soon")[0] == 400


def metric_values(client, *names):
    """The values of /metrics for *names*."""
    lines = [line.rpartition(" ") for line in client.ask("GET", "/metrics")[2].decode().splitlines()]
    values = {name: value for name, _, value in lines}
    return [float(values.get(name, 0)) for name in names]


def test_a_query_of_a_disconnected_client_is_stopped(server, client):
    late, running = 'jidomem_refusals_total{code="query_timeout"}', "jidomem_sparql_running"
    cut, address = metric_values(client, late)[0], urlsplit(server.url)
    head = f"GET /sparql?{urlencode({'query': CROSS})} HTTP/1.1\r\nHost: localhost\r\n\r\n"

    # When clients disconnect while they wait
    for _ in range(2):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head.encode())
            wait_until(lambda: metric_values(client, running) != [0])
        wait_until(lambda: metric_values(client, running) == [0])

    # Then none of their queries ran until its timeout
    assert metric_values(client, late) == [cut]
    assert run_query(client, "ASK {}")[0] == 200


UNKNOWN = ("SELECT (<http://x/f>(1) AS ?x) {}", "SELECT * { ?s ?p ?o FILTER(<http://x/f>(?o)) }")


@pytest.mark.parametrize("text", UNKNOWN)
def test_an_unknown_function_is_a_malformed_query_and_the_process_goes_on(server, client, text):
    run_query(client, SUMMARIES)
    before = children(server)

    status, _, body = run_query(client, text)

    assert (status, json.loads(body)["code"]) == (400, "malformed_query")
    assert "http://x/f" in json.loads(body)["detail"]
    assert children(server) == before
