"""What Prometheus reads of a server, and who may."""

import json
import subprocess
from contextlib import suppress
from io import StringIO
from threading import Event, Thread
from time import monotonic

import pytest
from conftest import decision, intent
from prometheus_client import parser

import jidomem
from jidomem.journal.journal import Stream
from jidomem.records.intent import Version
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.log import Log
from jidomem.serve.monitoring import Families, family
from jidomem.serve.server_state import Measures, Operation
from jidomem.serve.shared_state import SharedState


@pytest.fixture
def client(memory):
    return create_app(memory).test_client()


def figures(client, **headers):
    """Every sample as Prometheus reads it: name and labels -> figure."""
    answer = client.get("/metrics", headers=headers)
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    read = {}
    for each in parser.text_string_to_metric_families(answer.text):
        assert each.documentation, each.name
        for sample in each.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in read
            read[key] = sample.value
    return read


def test_requests_refusals_questions_and_commits_are_counted_where_they_happen(client):
    one, route = intent(summary="one"), "/projects/{project}/intents"
    client.post("/projects/p/intents", json=one)
    client.post("/projects/p/intents", json=[decision(topic="store"), intent(confidence="enormous")])
    client.post("/projects/p/intents", json=intent(type="fcat"))
    client.get("/projects/p/queries/curator/facts.csv")
    client.get('/projects/p/queries/no"such\n')
    client.open("/nowhere", method="BREW")

    read = figures(client)

    def requests(route, method, status):
        return read["jidomem_http_requests_total", ("method", method), ("route", route), ("status", status)]

    assert [requests(route, "POST", status) for status in ("201", "200", "422")] == [1, 1, 1]
    assert requests("none", "other", "404") == 1
    assert read["jidomem_refusals_total", ("code", "unknown_type")] == 1
    assert read["jidomem_refusals_total", ("code", "invalid_confidence")] == 1
    assert read["jidomem_refusals_total", ("code", "unknown_query")] == 1
    assert read["jidomem_query_seconds_count", ("query", "facts")] == 1
    assert read["jidomem_http_request_seconds_count", ("route", route)] == 3
    assert read["jidomem_http_request_seconds_bucket", ("le", "+Inf"), ("route", route)] == 3
    assert read["jidomem_commit_seconds_count",] == 2
    assert read["jidomem_commit_seconds_sum",] > 0
    assert read["jidomem_http_requests_in_progress",] == 1
    assert {name for name, *_ in read} >= {"jidomem_writers_waiting", "jidomem_sparql_running", "process_open_fds"}
    assert read["process_resident_memory_bytes",] > 10_000_000


def test_the_buckets_of_a_histogram_only_grow_up_to_the_count(client):
    for number in range(20):
        client.post("/projects/p/intents", json=intent(summary=str(number)))

    read = figures(client)
    buckets = [value for (name, *labels), value in read.items() if name == "jidomem_commit_seconds_bucket" and labels]

    assert buckets == sorted(buckets)
    assert buckets[-1] == read["jidomem_commit_seconds_count",] == 20


def test_versions_and_the_lag_of_the_index_are_told_of_each_project(client, memory):
    for number in range(3):
        memory.writer.submit_intent("p", intent(summary=str(number)))
    memory.catch_up("p")
    with jidomem.open(memory.settings.root) as other:
        other.writer.submit_intent("p", intent(summary="elsewhere"))
        other.writer.submit_intent("q", intent(applies_to_project="q"))

    read = figures(client)

    p, q = ("project", "p"), ("project", "q")
    assert (read["jidomem_journal_position", p], read["jidomem_index_position", p]) == (4, 3)
    assert (read["jidomem_index_behind_commits", p], read["jidomem_index_behind_commits", q]) == (1, 1)
    client.get("/projects/p")
    assert figures(client)["jidomem_index_behind_commits", p] == 0


def test_figures_are_for_who_reaches_every_project(memory):
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("hidden", intent(applies_to_project="hidden"))
    ring = Keyring(own_config(), memory.settings.root)
    bound, _ = ring.give_out("ana", "admin", ["p"], memory.sources)
    every, _ = ring.give_out("prometheus", "reader", ["*"], memory.sources)
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()

    refused = client.get("/metrics", headers={"Authorization": f"Bearer {bound}"})

    assert client.get("/metrics").status_code == 401
    assert (refused.status_code, refused.json["code"]) == (403, "policy_denied")
    assert "hidden" not in refused.text
    assert refused.json["hint"].endswith("jidomem access token add prometheus --role reader --all-projects")
    read = figures(client, Authorization=f"Bearer {every}")
    assert ("jidomem_journal_position", ("project", "hidden")) in read


def test_a_label_cannot_break_out_of_its_quotes():
    hostile = 'a"} 1\nevil 1\n\\'

    text = Families([family("x", "gauge", "A thing.", [({"of": hostile}, 2)])]).text()
    (found,) = parser.text_string_to_metric_families(text)

    assert [(sample.labels, sample.value) for sample in found.samples] == [({"of": hostile}, 2)]


def test_a_server_is_not_ready_while_an_index_cannot_be_brought_level_or_a_journal_is_damaged(client, memory):
    receipt = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    assert client.get("/readyz").status_code == 200

    with jidomem.open(memory.settings.root) as other:
        later = other.writer.submit_intent("p", intent(summary="later"))
    with memory.follower._lock:  # as while an index is built
        behind = client.get("/readyz")
    assert (behind.status_code, behind.json["status"]) == (503, "behind")
    assert behind.headers["Retry-After"]
    told = {"journal": str(later.version), "index": str(receipt.version), "behind": 1}
    assert behind.json["behind"] == {"p": told}
    assert client.get("/readyz").json["versions"]["p"] == str(later.version)

    (broken,) = (memory.settings.root / "projects" / "q" / "memory").glob("*.ttl")
    broken.write_bytes(broken.read_bytes().replace(b"Rust", b"Rost"))
    assert memory.journal.verify(memory.journal.streams()[-1])
    damaged = client.get("/readyz")
    assert (damaged.status_code, damaged.json["status"], [*damaged.json["damage"]]) == (503, "damaged", ["q"])
    assert damaged.json["damage"]["q"][0]["code"] == "journal_damaged"
    read, incomplete = client.get("/projects/p/queries/facts"), client.get("/projects/q/queries/facts.csv")
    assert (read.status_code, "Warning" in read.headers) == (200, False)
    warning = '199 jidomem "damaged files of q that are left out: 1; /readyz names them"'
    assert (incomplete.status_code, incomplete.headers["Warning"]) == (200, warning)
    assert "Warning" in client.get("/projects/q/sparql?query=ASK{}").headers


def test_a_server_that_cannot_write_is_not_ready_and_the_log_has_the_reason_once(small_disk):
    said = StringIO()
    operation = Operation(Log(said, level="warning"))
    with jidomem.open(small_disk / "root", project="p") as memory:
        memory.writer.submit_intent("p", intent())
        client = create_app(memory, operation=operation).test_client()
        before = client.get("/readyz")
        with open(small_disk / "rest", "wb", buffering=0) as rest, suppress(OSError):
            while rest.write(bytes(512)):
                pass
        full = [client.get("/readyz") for _ in range(2)]
        (small_disk / "rest").unlink()
        with_room = client.get("/readyz")
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        read_only = client.get("/readyz")
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
        left = [*(small_disk / "root").glob(".try*")]
    operation.close()

    assert [each.status_code for each in (before, *full, with_room, read_only)] == [200, 503, 503, 200, 503]
    assert [each.json["status"] for each in (*full, read_only)] == 3 * ["unwritable"]
    assert "No space left" in full[0].json["unwritable"]["detail"]
    events = [json.loads(line) for line in said.getvalue().splitlines()]
    reasons = [each["detail"] for each in events if each["event"] == "unwritable"]
    assert len(reasons) == 2
    assert "No space left" in reasons[0]
    assert left == []


def test_a_server_that_only_reads_is_ready_where_nothing_can_be_written_and_refuses_writes(small_disk):
    with jidomem.open(small_disk / "root", project="p") as memory:
        memory.writer.submit_intent("p", intent())
        client = create_app(memory, operation=Operation(read_only=True)).test_client()
        while_writable = client.post("/projects/p/intents", json=intent(summary="another"))
        form = client.post("/ui/p/review", data={}, headers={"Origin": "http://localhost"})
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        try:
            ready, read = client.get("/readyz"), client.get("/projects/p/queries/facts")
            with memory.follower._lock:  # as while an index is built
                memory.index.empty(Stream("p").graph, Version())
                behind = client.get("/readyz")
        finally:
            subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)

    assert (while_writable.status_code, while_writable.json["code"]) == (403, "policy_denied")
    assert "reading only" in while_writable.json["detail"]
    assert form.status_code == 403
    assert (ready.status_code, ready.json["status"], len(read.json["rows"])) == (200, "ok", 1)
    assert (behind.status_code, behind.json["status"]) == (503, "behind")


def test_a_server_stays_ready_while_another_process_writes_without_pause(client, memory):
    stop = Event()

    def write():
        with jidomem.open(memory.settings.root) as other:
            for number in range(10_000):
                if stop.is_set():
                    return
                other.writer.submit_intent("p", intent(summary=f"fact {number}"))

    writing = Thread(target=write)
    writing.start()
    try:
        while not memory.journal.head(Stream("p")).heads:
            pass
        answers = [client.get("/readyz") for _ in range(100)]
    finally:
        stop.set()
        writing.join()
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json["versions"]["p"] for answer in answers}) > 1


def test_a_worker_that_starts_later_counts_from_the_start_of_its_server(tmp_path):
    server, before = SharedState.create(tmp_path, 2), monotonic()

    workers = [Measures(SharedState(server.descriptor, tmp_path, number, 2)) for number in (1, 2)]

    assert workers[0].began == workers[1].began <= before
    assert workers[0].since <= workers[1].since
