"""What a server writes about itself: a line a request, whole whatever the request is made of."""

import io
import json
import re
import threading

import pytest
from conftest import intent
from http_world import Client, running

from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.log import Log
from jidomem.serve.server_state import Operation

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HOSTILE = [
    'x", "level": "error', "x\ty", "x\x1b[2J", "x y", "x\x85y", "", "x" * 5000, "../../etc", "{}", "x\\n",
]  # fmt: skip


@pytest.fixture
def logged(memory):
    """A client, and the lines its requests leave once the log is closed."""

    def made(form="json", level="info", keyring=None):
        sink = io.StringIO()
        log = Log(sink, form, level)
        client = create_app(memory, keyring=keyring, operation=Operation(log)).test_client()

        def lines():
            log.close(30)
            assert sink.getvalue().endswith("\n") or not sink.getvalue()
            return sink.getvalue().splitlines()

        return client, lines

    return made


def test_a_request_is_one_line_that_says_who_asked_what_and_how_it_ended(logged, memory):
    memory.writer.submit_intent("p", intent())
    ring = Keyring(own_config(), memory.settings.root)
    secret, made = ring.give_out("ana", "agent", ["p"], memory.sources)
    client, lines = logged(keyring=Keyring(own_config(), memory.settings.root))
    key = {"Authorization": f"Bearer {secret}"}

    answer = client.get("/projects/p/queries/facts?limit=7", headers={**key, "X-Request-Id": "build-7"})
    client.post("/projects/p/intents", json=intent(type="private words"), headers=key)
    client.get("/healthz")

    asked, refused = map(json.loads, lines())
    ms, moment = asked.pop("ms"), asked.pop("time")
    assert ms > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", moment)
    assert asked == {
        "level": "info", "event": "request", "request_id": "build-7", "client": "127.0.0.1", "method": "GET",
        "path": "/projects/p/queries/facts", "status": 200, "bytes": len(answer.data), "project": "p",
        "agent": "ana", "token": made.id, "question": "facts",
    }  # fmt: skip
    assert (refused["status"], refused["code"], refused["project"]) == (422, "unknown_type", "p")


def test_neither_a_token_nor_a_query_nor_a_memory_is_written_anywhere(logged, memory):
    ring = Keyring(own_config(), memory.settings.root)
    secret, _ = ring.give_out("ana", "curator", ["p"], memory.sources)
    client, lines = logged(level="debug", keyring=Keyring(own_config(), memory.settings.root))
    key = {"Authorization": f"Bearer {secret}"}

    kept = client.post("/projects/p/intents", json=intent(summary="hush-1", topic="hush-2"), headers=key)
    client.get("/projects/p/sparql?query=SELECT%20*%20{%20?s%20?p%20%22hush-3%22%20", headers=key)
    client.post("/projects/p/recall", json={"query": "hush-4"}, headers=key)
    client.get("/projects/p/queries/facts-about?topic=hush-5", headers=key)
    client.get("/projects/p", headers={"Authorization": "Bearer hush-6"})
    client.post("/projects/p/intents", json=intent(summary="hush-7", type="hush-8"), headers=key)

    text = "\n".join(lines())
    assert kept.status_code == 201
    assert text.count('"request_id":') == 6
    assert not re.findall("hush-.", text)
    assert secret not in text


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_header_method_or_path_breaks_a_line(logged, form):
    client, lines = logged(form)

    for value in HOSTILE:
        headers = {"X-Request-Id": value, "traceparent": value, "User-Agent": value}
        answer = client.get("/projects", headers=headers)
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"]), value
    client.get('/projects/%0a{"level":"error"}%0d%e2%80%a8%c2%85%1b[2J/queries/x')
    client.open("/projects", method="GET\x1b[2J")

    found = lines()
    assert len(found) == len(HOSTILE) + 2
    assert all(line.isascii() and line.isprintable() for line in found)
    if form == "json":
        assert {json.loads(line)["event"] for line in found} == {"request"}
        assert {json.loads(line)["level"] for line in found} == {"info"}
    else:
        assert all(re.match(r"\S+Z info request request_id=[0-9a-f]{32} client=", line) for line in found)


def test_the_id_of_a_request_is_its_own_or_its_trace_and_stands_in_its_refusal(logged):
    client, lines = logged()
    trace = f"00-{TRACE}-00f067aa0ba902b7-01"

    own = client.get("/nowhere", headers={"X-Request-Id": "a/b:c=1", "traceparent": trace})
    traced = client.get("/projects/p/queries/facts", headers={"traceparent": trace})
    minted = client.get("/projects", headers={"traceparent": trace.replace(TRACE, "0" * 32)})
    bug = client.get("/projects/p", headers={"X-Request-Id": "the-bug"})

    assert (own.headers["X-Request-Id"], own.json["request_id"]) == ("a/b:c=1", "a/b:c=1")
    assert (traced.headers["X-Request-Id"], traced.json["request_id"]) == (TRACE, TRACE)
    assert minted.headers["X-Request-Id"] not in ("", TRACE, "0" * 32)
    ids = [answer.headers["X-Request-Id"] for answer in (own, traced, minted, bug)]
    assert [json.loads(line)["request_id"] for line in lines()] == ids
    assert len(set(ids)) == 4


def test_a_bug_is_a_line_with_its_traceback_under_the_id_of_its_request(logged, memory, monkeypatch):
    memory.writer.submit_intent("p", intent())
    monkeypatch.setattr(memory.reader, "ask_page", None)
    client, lines = logged()

    answer = client.get("/projects/p/queries/facts", headers={"X-Request-Id": "the-bug"})

    bug, request = map(json.loads, lines())
    assert (answer.status_code, answer.json["request_id"]) == (500, "the-bug")
    assert (bug["event"], bug["request_id"], request["request_id"]) == ("bug", "the-bug", "the-bug")
    assert (request["level"], request["code"]) == ("error", "internal_error")
    assert "TypeError" in bug["traceback"]
    assert "TypeError" not in answer.json["hint"]


def test_what_is_below_the_level_is_not_written_and_what_nobody_reads_stops_nobody(logged):
    client, lines = logged(level="warning")
    client.get("/projects")
    assert lines() == []

    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    log = Log(Broken())
    for number in range(3):
        log.add("info", "x", {"number": number})
    log.close(30)
    assert "jidomem-log" not in {each.name for each in threading.enumerate()}


def test_a_server_logs_its_start_its_requests_and_its_stop_on_standard_error_alone(tmp_path):
    with running(tmp_path / "root", "--log-level", "debug") as process:
        with Client(process.url) as client:
            status, headers, _ = client.ask("GET", "/healthz", headers={"X-Request-Id": "look"})
        process.terminate()
        out, words = process.communicate(timeout=20)

    events = [json.loads(line) for line in words.splitlines()]
    assert [each["event"] for each in events] == ["started", "request", "stopping", "stopped"]
    assert events[0]["url"] == process.url
    assert (status, headers["X-Request-Id"], events[1]["request_id"], out) == (200, "look", "look", "")


def test_a_log_that_nobody_reads_stops_neither_requests_nor_the_end(tmp_path):
    with running(tmp_path / "root", "--log-level", "debug") as process:
        with Client(process.url) as client:
            path = "/nowhere/" + 200 * "x"
            for _ in range(400):  # more than a pipe holds
                status, _, _ = client.ask("GET", path)
                assert status == 404
        process.terminate()
        assert process.wait(20) == 0
