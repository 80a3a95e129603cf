"""The log of a server: one well-formed line per request, for any request."""

import io
import json
import re
import threading

import pytest
from conftest import intent
from http_world import Client, serving

from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.log import Log
from jidomem.serve.server_state import Operation

pytestmark = pytest.mark.usefixtures("loaded_program")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HOSTILE = [
    'x", "level": "error', "x\ty", "x\x1b[2J", "x y", "x\x85y", "", "x" * 5000, "../../etc", "{}", "x\\n",
]  # fmt: skip


@pytest.fixture
def logged_client(memory):
    """Return a function that makes a client; its second result returns the lines of the log once that is closed."""

    def make(line_format="json", level="info", keyring=None):
        sink = io.StringIO()
        log = Log(sink, line_format, level)
        client = create_app(memory, keyring=keyring, operation=Operation(log)).test_client()

        def lines():
            log.close(30)
            assert sink.getvalue().endswith("\n") or not sink.getvalue()
            return sink.getvalue().splitlines()

        return client, lines

    return make


def test_a_request_is_logged_with_its_client_question_and_outcome(logged_client, memory):
    memory.writer.submit_intent("p", intent())
    ring = Keyring(own_config(), memory.settings.root)
    secret, token = ring.issue("ana", "agent", ["p"], memory.sources)
    client, lines = logged_client(keyring=Keyring(own_config(), memory.settings.root))
    key = {"Authorization": f"Bearer {secret}"}

    answer = client.get("/projects/p/queries/facts?limit=7", headers={**key, "X-Request-Id": "build-7"})
    client.post("/projects/p/intents", json=intent(type="private words"), headers=key)
    client.get("/healthz")

    entry, refusal = map(json.loads, lines())
    ms, moment = entry.pop("ms"), entry.pop("time")
    assert ms > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", moment)
    assert entry == {
        "level": "info", "event": "request", "request_id": "build-7", "client": "127.0.0.1", "method": "GET",
        "path": "/projects/p/queries/facts", "status": 200, "bytes": len(answer.data), "project": "p",
        "agent": "ana", "token": token.id, "question": "facts",
    }  # fmt: skip
    assert (refusal["status"], refusal["code"], refusal["project"]) == (422, "unknown_type", "p")


def test_a_request_of_several_intents_is_logged_with_the_counts_and_the_last_refusal(logged_client):
    client, lines = logged_client()
    values = [intent(), intent(type="private words"), intent(summary="another")]
    stream = "".join(json.dumps(each) + "\n" for each in values)

    array = client.post("/projects/p/intents", json=values)
    streamed = client.post("/projects/p/intents", data=stream + "{", content_type="application/x-ndjson")
    sizes = [len(array.data), len(streamed.data)]
    streamed.close()

    logged = [*map(json.loads, lines())]
    assert [(each["accepted"], each["refused"], each["code"]) for each in logged] == [
        (2, 1, "unknown_type"), (2, 2, "malformed_json"),
    ]  # fmt: skip
    assert [each["bytes"] for each in logged] == sizes


def test_tokens_queries_and_memories_are_not_logged(logged_client, memory):
    ring = Keyring(own_config(), memory.settings.root)
    secret, _ = ring.issue("ana", "curator", ["p"], memory.sources)
    client, lines = logged_client(level="debug", keyring=Keyring(own_config(), memory.settings.root))
    key = {"Authorization": f"Bearer {secret}"}

    accepted = client.post("/projects/p/intents", json=intent(summary="hush-1", topic="hush-2"), headers=key)
    client.get("/projects/p/sparql?query=SELECT%20*%20{%20?s%20?p%20%22hush-3%22%20", headers=key)
    client.post("/projects/p/recall", json={"query": "hush-4"}, headers=key)
    client.get("/projects/p/queries/facts-about?topic=hush-5", headers=key)
    client.get("/projects/p", headers={"Authorization": "Bearer hush-6"})
    client.post("/projects/p/intents", json=intent(summary="hush-7", type="hush-8"), headers=key)

    text = "\n".join(lines())
    assert accepted.status_code == 201
    assert text.count('"request_id":') == 7  # of six requests and a commit
    assert not re.findall("hush-.", text)
    assert secret not in text


def test_each_commit_of_a_token_is_logged_also_under_another_name(logged_client, memory):
    secret, token = Keyring(own_config(), memory.settings.root).issue("ben", "curator", ["p"], memory.sources)
    client, lines = logged_client(keyring=Keyring(own_config(), memory.settings.root))
    key = {"Authorization": f"Bearer {secret}"}
    bodies = [intent(summary=f"fact {each}", asserted_by="nina", idempotency_key=f"k-{each}") for each in range(6)]
    stream = b"".join(json.dumps(each).encode() + b"\n" for each in bodies[3:])
    entry = {"entry": {"agent_id": "nina", "content": "a note"}}

    memory.writer.submit_intent("p", intent(summary="by nobody's token"))
    client.post("/projects/p/intents", json=bodies[0], headers=key)
    client.post("/projects/p/intents", json=bodies[:3], headers=key)  # the first is a repetition
    client.post("/projects/p/intents", data=stream, content_type="application/x-ndjson", headers=key).close()
    client.post("/projects/p/sessions", json={"name": "s-9", "agent": "nina"}, headers=key)
    client.post("/projects/p/entries", json=entry, headers=key)
    client.post("/projects/p/intents?dry_run=true", json=intent(summary="not written"), headers=key)
    client.post("/projects/p/intents", json=bodies[0], headers=key)  # repeats
    client.get("/projects/p/queries/facts", headers=key)

    logged = [json.loads(line) for line in lines()]
    first, *added = [row["commit"][:12] for row in reversed(memory.reader.log("p").rows)]
    written = [each for each in logged if each["event"] == "commit"]
    paths = {each["request_id"]: each["path"] for each in logged if each["event"] == "request"}
    assert [each["commit"] for each in written] == added
    assert [paths[each["request_id"]].rpartition("/")[2] for each in written] == [
        "intents", "intents", "intents", "sessions", "entries",
    ]  # fmt: skip
    assert {(each["agent"], each["token"]) for each in written} == {("ben", token.id)}
    assert first not in added


@pytest.mark.parametrize("form", ["json", "text"])
def test_control_characters_in_a_request_break_no_line_of_the_log(logged_client, form):
    client, lines = logged_client(form)

    for value in HOSTILE:
        headers = {"X-Request-Id": value, "traceparent": value, "User-Agent": value}
        answer = client.get("/projects", headers=headers)
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"]), value
    client.get('/projects/%0a{"level":"error"}%0d%e2%80%a8%c2%85%1b[2J/queries/x')
    client.open("/projects", method="GET\x1b[2J")

    logged = lines()
    assert len(logged) == len(HOSTILE) + 2
    assert all(line.isascii() and line.isprintable() for line in logged)
    if form == "json":
        assert {json.loads(line)["event"] for line in logged} == {"request"}
        assert {json.loads(line)["level"] for line in logged} == {"info"}
    else:
        assert all(re.match(r"\S+Z info request request_id=[0-9a-f]{32} client=", line) for line in logged)


def test_the_request_id_is_that_of_the_client_or_its_trace_and_is_in_the_refusal(logged_client):
    client, lines = logged_client()
    trace = f"00-{TRACE}-00f067aa0ba902b7-01"

    given = client.get("/nowhere", headers={"X-Request-Id": "a/b:c=1", "traceparent": trace})
    traced = client.get("/projects/p/queries/facts", headers={"traceparent": trace})
    minted = client.get("/projects", headers={"traceparent": trace.replace(TRACE, "0" * 32)})
    bug = client.get("/projects/p", headers={"X-Request-Id": "the-bug"})

    assert (given.headers["X-Request-Id"], given.json["request_id"]) == ("a/b:c=1", "a/b:c=1")
    assert (traced.headers["X-Request-Id"], traced.json["request_id"]) == (TRACE, TRACE)
    assert minted.headers["X-Request-Id"] not in ("", TRACE, "0" * 32)
    ids = [answer.headers["X-Request-Id"] for answer in (given, traced, minted, bug)]
    assert [json.loads(line)["request_id"] for line in lines()] == ids
    assert len(set(ids)) == 4


def test_an_internal_error_is_logged_with_its_traceback_and_request_id(logged_client, memory, monkeypatch):
    memory.writer.submit_intent("p", intent())
    monkeypatch.setattr(memory.reader, "ask_page", None)
    client, lines = logged_client()

    answer = client.get("/projects/p/queries/facts", headers={"X-Request-Id": "the-bug"})

    bug, request = map(json.loads, lines())
    assert (answer.status_code, answer.json["request_id"]) == (500, "the-bug")
    assert (bug["event"], bug["request_id"], request["request_id"]) == ("bug", "the-bug", "the-bug")
    assert (request["level"], request["code"]) == ("error", "internal_error")
    assert "TypeError" in bug["traceback"]
    assert "TypeError" not in answer.json["hint"]


def test_lines_below_the_level_are_dropped_and_a_broken_sink_ends_the_writer(logged_client):
    client, lines = logged_client(level="warning")
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


def test_a_server_logs_start_requests_and_stop_on_standard_error_alone(tmp_path):
    with serving(tmp_path / "root", "--log-level", "debug") as process:
        with Client(process.url) as client:
            status, headers, _ = client.ask("GET", "/healthz", headers={"X-Request-Id": "look"})
        process.terminate()
        stdout, stderr = process.communicate(timeout=20)

    events = [json.loads(line) for line in stderr.splitlines()]
    assert [each["event"] for each in events] == ["started", "request", "stopping", "stopped"]
    assert events[0]["url"] == process.url
    assert (status, headers["X-Request-Id"], events[1]["request_id"], stdout) == (200, "look", "look", "")


def test_an_unread_log_blocks_neither_requests_nor_the_stop(tmp_path):
    with serving(tmp_path / "root", "--log-level", "debug") as process:
        with Client(process.url) as client:
            path = "/nowhere/" + 200 * "x"
            for _ in range(400):  # more than a pipe holds
                status, _, _ = client.ask("GET", path)
                assert status == 404
        process.terminate()
        assert process.wait(20) == 0
