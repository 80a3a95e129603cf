"""Small limits from the user's own configuration: a request above them is refused, and others are still answered."""

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode, urlsplit

import pytest
from conftest import intent, wait_until
from http_world import NDJSON, Client, children, running

import jidomem
from jidomem.errors import Failed
from jidomem.runtime import user_config
from jidomem.runtime.settings import own_config
from jidomem.runtime.user_config import RootLimits, limits
from jidomem.serve.app import create_app

SMALL = """\
[limits]
query_seconds = 1.0
query_memory = 134217728
query_rows = 1000
query_answer = 33554432
query_text = 8192
query_nesting = 20
body = 16384
line = 1024
stream = 8192
connections = 4
idle_seconds = 0.5
"""
HTTP = "HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CODES = {"query_timeout", "result_too_large"}
TRIPLES = "?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l"
STEPS = " ".join(f"BIND(CONCAT({', '.join([f'?v{n}'] * 16)}) AS ?v{n + 1})" for n in range(9))
NUMBERS = " ".join(f"VALUES ?n{n} {{ {' '.join(map(str, range(100)))} }}" for n in range(6))
ANY = "(!<urn:x>|^!<urn:x>)*"
BOMBS = {
    "a cross product": (f"SELECT (COUNT(*) AS ?n) {{ {TRIPLES} }}", CODES),
    "rows without end": (f"SELECT * {{ {TRIPLES} }}", CODES),
    "one row too many": (f"SELECT * {{ {NUMBERS} }} LIMIT 1001", CODES),
    "a sort of all": (f"SELECT * {{ {TRIPLES} }} ORDER BY ?c ?f ?i ?l", CODES),
    "distinct rows": (f"SELECT DISTINCT * {{ {NUMBERS} }}", CODES),
    "a growing text": (f"SELECT (STRLEN(?v9) AS ?n) {{ BIND('{'a' * 32}' AS ?v0) {STEPS} }}", CODES),
    "a text of all rows": (f"SELECT (GROUP_CONCAT(?n5) AS ?t) {{ {NUMBERS} }}", CODES),
    "triples without end": (f"CONSTRUCT {{ ?a ?e ?l }} {{ {TRIPLES} }}", CODES),
    "paths of any length": (
        "SELECT (COUNT(*) AS ?n) { ?a (!<urn:x>|^!<urn:x>)* ?b . ?c (!<urn:x>)* ?d . ?e ?f ?g }",
        CODES,
    ),
    "deep groups": ("SELECT * " + "{" * 21 + "}" * 21, {"malformed_query"}),
    "deep expressions": ("ASK { FILTER(" + "(" * 21 + "1" + ")" * 21 + ") }", {"malformed_query"}),
    "a long path": ("ASK { ?a " + "/".join(["<p:>"] * 300) + " ?b }", {"malformed_query"}),
    "a long text": ("ASK {} #" + "x" * 8192, {"payload_too_large"}),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limited")
    path = folder / "jidomem" / "config.toml"
    path.parent.mkdir()
    path.write_text(SMALL)
    path.chmod(0o600)
    with running(folder / "root", environment={**os.environ, "XDG_CONFIG_HOME": str(folder)}) as process:
        with Client(process.url) as client:
            for number in range(30):
                client.submit(intent(summary=f"fact {number}"))
        process.address = tuple(urlsplit(process.url).netloc.split(":"))
        yield process


def is_working(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] in "RD"
    except OSError:
        return False


@pytest.mark.parametrize("name", BOMBS)
def test_an_endless_query_is_stopped_with_its_worker_while_others_are_answered(server, name):
    text, codes = BOMBS[name]
    with ThreadPoolExecutor(1) as executor, Client(server.url) as client, Client(server.url) as other:
        cut = executor.submit(client.ask, "POST", "/sparql", urlencode({"query": text}), FORM)
        served = 0
        while not wait([cut], 0.1).done or not served:
            served += len(other.get("/projects/p/queries/facts?limit=3")["rows"])
        status, headers, body = cut.result()

    problem = json.loads(body)
    assert (headers["Content-Type"], problem["status"]) == ("application/problem+json", status)
    assert problem["code"] in codes
    assert "stopped" in problem["detail"] or "more than" in problem["detail"] or "deeper than" in problem["detail"]
    assert wait_until(lambda: not any(is_working(worker) for worker in children(server)))


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def refusals(server, path, body, media):
    with Client(server.url) as client:
        return [json.loads(line) for line in client.ask("POST", path, body, {"Content-Type": media})[2].splitlines()]


def test_bodies_lines_and_streams_are_limited_by_the_configuration(server):
    line = json.dumps(intent(summary="x" * 300)).encode() + b"\n"
    assert refusals(server, "/projects/p/intents", b" " * 16385, "application/json")[0]["code"] == "payload_too_large"
    long = json.dumps(intent(summary="x" * 1024)).encode()
    refusal = refusals(server, "/projects/p/intents", long, NDJSON["Content-Type"])[-1]
    assert refusal["detail"] == "line 1 has more than 1,024 bytes"
    assert "the lines from 1 on" in refusal["hint"]
    answers = refusals(server, "/projects/p/intents", line * 20, NDJSON["Content-Type"])
    assert answers[-1]["detail"] == "the body has more than 8,192 bytes"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"GET /healthz HTTP/1.1\r\n", b"HTTP/1.1 408"),
        (f"GET /healthz {HTTP}\r\n".encode(), b"HTTP/1.1 200"),
    ],
)
def test_an_idle_client_is_disconnected(server, sent, status):
    with socket.create_connection(server.address, timeout=60) as client:  # far beyond the time that a client may idle
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(4096), b""))

    assert answer[:12] == status


def test_clients_that_send_their_headers_slowly_lose_their_places(server):
    slow = [socket.create_connection(server.address, 30) for _ in range(4)]
    for each in slow:
        each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
    ended = Event()

    def drip():
        while not ended.wait(0.05):
            for each in slow:
                with suppress(OSError):
                    each.sendall(b"a" * 200)

    dripping = Thread(target=drip)
    dripping.start()
    try:
        for _ in range(3):
            with Client(server.url) as client:
                assert client.ask("GET", "/projects")[0] == 200
    finally:
        ended.set()
        dripping.join()
        for each in slow:
            each.close()


def test_limits_are_set_by_the_user_alone_and_survive_a_change_of_tokens(tmp_path):
    path = own_config()
    path.parent.mkdir(parents=True)
    path.write_text("[limits]\nqueries = 2\nidle_seconds = 2.5\n")
    path.chmod(0o600)
    user_config.change(path, lambda tables: tables)

    with jidomem.open(tmp_path / "root") as memory:
        assert memory.settings.limits == RootLimits(queries=2, idle_seconds=2.5)

    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "config.toml").write_text("[limits]\nquery_seconds = 3600\n")
    with pytest.raises(Failed, match="limits cannot be set by a root on disk"):
        jidomem.open(tmp_path / "root")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"querys": 1}, "limits.querys is not known here"),
        ({"queries": 0}, "limits.queries = 0 is not a whole number from 1 to 256"),
        ({"queries": 1.5}, "limits.queries = 1.5 is not a whole number"),
        ({"queries": True}, "limits.queries = true is not"),
        ({"literal": 1023}, "limits.literal = 1023 is not a whole number from 1,024 to 2,097,152"),
        ({"query_seconds": float("nan")}, "limits.query_seconds = nan is not a number from"),
        ({"query_nesting": 65}, "limits.query_nesting = 65 is not a whole number from 1 to 64"),
        ({"body": "1 MiB"}, 'limits.body = "1 MiB" is not'),
        ([], "limits is not a table"),
    ],
)
def test_an_invalid_limit_is_refused(table, message):
    with pytest.raises(Failed) as refusal:
        limits(table, "config.toml")

    assert refusal.value.detail.startswith(f"config.toml: {message}")
    assert (refusal.value.code, bool(refusal.value.hint)) == ("invalid_config", True)


@pytest.fixture
def client(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        yield create_app(memory).test_client()


@pytest.mark.parametrize("kind", ["json", "x-ndjson"])
def test_nothing_more_of_a_request_is_submitted_after_a_thousand_refusals(client, kind):
    values = [*[{}] * 1400, intent(summary="not submitted"), {}]
    data = json.dumps(values) if kind == "json" else "\n".join(map(json.dumps, values))

    answer = client.post("/projects/p/intents", data=data, content_type=f"application/{kind}")

    outcomes = answer.json if kind == "json" else [json.loads(line) for line in answer.text.splitlines()]
    codes = [outcome["code"] for outcome in outcomes]
    rest = 402 if kind == "json" else 1
    assert codes == [*1000 * ["missing_required_fields"], *rest * ["result_too_large"]]
    assert [outcome["position"] for outcome in outcomes[:1000]] == [*range(1000)]
    assert outcomes[-1]["detail"] == "1,000 intents were refused; intents without another outcome were not submitted"
    assert [(each["project"], each["version"]) for each in client.get("/projects").json["projects"]] == [("p", "0")]


@pytest.mark.parametrize("kind", ["json", "x-ndjson"])
def test_a_thousand_refused_intents_without_another_have_an_outcome_each(client, kind):
    values = [{}] * 1000
    data = json.dumps(values) if kind == "json" else "".join(json.dumps(each) + "\n" for each in values)

    answer = client.post("/projects/p/intents", data=data, content_type=f"application/{kind}")

    outcomes = answer.json if kind == "json" else [json.loads(line) for line in answer.text.splitlines()]
    codes = [(outcome["code"], outcome["position"]) for outcome in outcomes]
    assert codes == [("missing_required_fields", position) for position in range(1000)]


@pytest.mark.parametrize("route", ["intents", "entries"])
def test_an_array_has_at_most_ten_thousand_items(client, route):
    answer = client.post(f"/projects/p/{route}", json=[{}] * 10_001)

    assert (answer.status_code, answer.json["code"]) == (413, "payload_too_large")
    assert answer.json["detail"] == "the array has 10,001 items; it holds at most 10,000"


def test_an_array_ends_when_its_client_has_gone(client):
    values = [intent(summary=f"item {number}") for number in range(501)]
    here, there = socket.socketpair()
    there.close()

    with here:
        connection = {"environ_overrides": {"jidomem.connection": here.fileno()}}
        answer = client.post("/projects/p/intents", json=values, **connection)

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_argument")
    assert "1 of 501 intents were not submitted" in answer.json["detail"]
    assert len(client.get("/projects/p/queries/facts").json["rows"]) == 500


def test_a_refusal_lists_the_first_of_many_faults(client):
    for fields in ({f"x{number}": 1 for number in range(100)}, {"supersedes": [f"zz{n}" for n in range(100)]}):
        answer = client.post("/projects/p/intents", json=intent(**fields))

        assert len(answer.json["violations"]) == 25
        assert answer.json["detail"].endswith("; and more")


def test_the_default_limits_are_the_documented_ones():
    # the values in the interfaces and docs/http.md
    assert RootLimits() == RootLimits(
        queries=4, query_seconds=30, query_memory=2**30, query_rows=100_000, query_answer=64 * 2**20, query_text=65_536,
        query_nesting=64, body=2**20, stream=2**30, line=2**20, literal=2**18, url=65_536, headers=32_768,
        connections=64, idle_seconds=10,
    )  # fmt: skip
