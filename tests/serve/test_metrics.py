"""The metrics of a server, the tokens that may read them, and its readiness."""

import json
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import StringIO
from threading import Event, Thread
from time import monotonic

import pytest
from conftest import decision, intent, wait_until
from prometheus_client import parser

import jidomem
from jidomem.base.clock import Sources, now
from jidomem.journal.journal import Stream
from jidomem.records.intent import Version
from jidomem.runtime import doctor
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve import server_state
from jidomem.serve.app import create_app
from jidomem.serve.log import Log
from jidomem.serve.monitoring import MetricFamilies, family
from jidomem.serve.server_state import Operation, ServerMeasures
from jidomem.serve.shared_state import SharedState


@pytest.fixture
def client(memory):
    return create_app(memory).test_client()


def read_metrics(client, **headers):
    """Every sample as Prometheus reads it: name and labels -> value."""
    answer = client.get("/metrics", headers=headers)
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    values = {}
    for each in parser.text_string_to_metric_families(answer.text):
        assert each.documentation, each.name
        for sample in each.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in values
            values[key] = sample.value
    return values


def test_requests_refusals_queries_and_commits_are_counted(client):
    values, route = intent(summary="one"), "/projects/{project}/intents"
    client.post("/projects/p/intents", json=values)
    client.post("/projects/p/intents", json=[decision(topic="store"), intent(confidence="enormous")])
    client.post("/projects/p/intents", json=intent(type="fcat"))
    client.get("/projects/p/queries/curator/facts.csv")
    client.get('/projects/p/queries/no"such\n')
    client.open("/nowhere", method="BREW")

    metrics = read_metrics(client)

    def requests(route, method, status):
        return metrics["jidomem_http_requests_total", ("method", method), ("route", route), ("status", status)]

    assert [requests(route, "POST", status) for status in ("201", "200", "422")] == [1, 1, 1]
    assert requests("none", "other", "404") == 1
    assert metrics["jidomem_refusals_total", ("code", "unknown_type")] == 1
    assert metrics["jidomem_refusals_total", ("code", "invalid_confidence")] == 1
    assert metrics["jidomem_refusals_total", ("code", "unknown_query")] == 1
    assert metrics["jidomem_query_seconds_count", ("query", "facts")] == 1
    assert metrics["jidomem_http_request_seconds_count", ("route", route)] == 3
    assert metrics["jidomem_http_request_seconds_bucket", ("le", "+Inf"), ("route", route)] == 3
    assert metrics["jidomem_commit_seconds_count",] == 2
    assert metrics["jidomem_commit_seconds_sum",] > 0
    assert metrics["jidomem_http_requests_in_progress",] == 1
    assert {name for name, *_ in metrics} >= {"jidomem_writers_waiting", "jidomem_sparql_running", "process_open_fds"}
    assert metrics["process_resident_memory_bytes",] > 10_000_000


def test_the_buckets_of_a_histogram_increase_up_to_the_count(client):
    for number in range(20):
        client.post("/projects/p/intents", json=intent(summary=str(number)))

    metrics = read_metrics(client)
    buckets = [
        value for (name, *labels), value in metrics.items() if name == "jidomem_commit_seconds_bucket" and labels
    ]

    assert buckets == sorted(buckets)
    assert buckets[-1] == metrics["jidomem_commit_seconds_count",] == 20


def test_versions_and_the_lag_of_the_index_are_measured_per_project(client, memory):
    for number in range(3):
        memory.writer.submit_intent("p", intent(summary=str(number)))
    memory.catch_up("p")
    with jidomem.open(memory.settings.root) as other:
        other.writer.submit_intent("p", intent(summary="elsewhere"))
        other.writer.submit_intent("q", intent(applies_to_project="q"))

    metrics = read_metrics(client)

    p, q = ("project", "p"), ("project", "q")
    assert (metrics["jidomem_journal_position", p], metrics["jidomem_index_position", p]) == (4, 3)
    assert (metrics["jidomem_index_behind_commits", p], metrics["jidomem_index_behind_commits", q]) == (1, 1)
    client.get("/projects/p")
    assert read_metrics(client)["jidomem_index_behind_commits", p] == 0


def test_metrics_are_for_tokens_of_all_projects_alone(memory):
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("hidden", intent(applies_to_project="hidden"))
    ring = Keyring(own_config(), memory.settings.root)
    one_project, _ = ring.issue("ana", "admin", ["p"], memory.sources)
    all_projects, _ = ring.issue("prometheus", "reader", ["*"], memory.sources)
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()

    refused = client.get("/metrics", headers={"Authorization": f"Bearer {one_project}"})

    assert client.get("/metrics").status_code == 401
    assert (refused.status_code, refused.json["code"]) == (403, "policy_denied")
    assert "hidden" not in refused.text
    assert refused.json["hint"].endswith("jidomem access token add prometheus --role reader --all-projects")
    metrics = read_metrics(client, Authorization=f"Bearer {all_projects}")
    assert ("jidomem_journal_position", ("project", "hidden")) in metrics


def test_a_label_is_escaped():
    hostile = 'a"} 1\nevil 1\n\\'

    text = MetricFamilies([family("x", "gauge", "A thing.", [({"of": hostile}, 2)])]).text()
    (parsed,) = parser.text_string_to_metric_families(text)

    assert [(sample.labels, sample.value) for sample in parsed.samples] == [({"of": hostile}, 2)]


def test_a_server_is_not_ready_while_an_index_is_behind_or_a_journal_is_damaged(client, memory):
    receipt = memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    assert client.get("/readyz").status_code == 200

    with jidomem.open(memory.settings.root) as other:
        later = other.writer.submit_intent("p", intent(summary="later"))
    with memory.follower._lock:  # as while an index is built
        behind = client.get("/readyz")
    assert (behind.status_code, behind.json["status"]) == (503, "behind")
    assert behind.headers["Retry-After"]
    lag = {"journal": str(later.version), "index": str(receipt.version), "behind": 1}
    assert behind.json["behind"] == {"p": lag}
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


def test_a_server_that_cannot_write_is_not_ready_and_logs_each_reason_once(small_disk):
    sink = StringIO()
    operation = Operation(Log(sink, level="warning"))
    with jidomem.open(small_disk / "root", project="p") as memory:
        memory.writer.submit_intent("p", intent())
        client = create_app(memory, operation=operation).test_client()
        before = client.get("/readyz")
        with open(small_disk / "rest", "wb", buffering=0) as filler, suppress(OSError):
            while filler.write(bytes(512)):
                pass
        without_room = [client.get("/readyz") for _ in range(2)]
        (small_disk / "rest").unlink()
        with_room = client.get("/readyz")
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        read_only = client.get("/readyz")
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
        leftovers = [*(small_disk / "root").glob(".try*")]
    operation.close()

    assert [each.status_code for each in (before, *without_room, with_room, read_only)] == [200, 503, 503, 200, 503]
    assert [each.json["status"] for each in (*without_room, read_only)] == 3 * ["unwritable"]
    assert "No space left" in without_room[0].json["unwritable"]["detail"]
    events = [json.loads(line) for line in sink.getvalue().splitlines()]
    reasons = [each["detail"] for each in events if each["event"] == "unwritable"]
    assert len(reasons) == 2
    assert "No space left" in reasons[0]
    assert leftovers == []


def test_a_read_only_server_is_ready_on_a_read_only_disk_and_refuses_writes(small_disk):
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


def test_a_server_stays_ready_while_another_process_writes_continuously(client, memory):
    stop = Event()

    def write():
        with jidomem.open(memory.settings.root) as other:
            for number in range(10_000):
                if stop.is_set():
                    return
                other.writer.submit_intent("p", intent(summary=f"fact {number}"))

    writer = Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: memory.journal.head(Stream("p")).heads)
        answers = [client.get("/readyz") for _ in range(100)]
    finally:
        stop.set()
        writer.join()
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json["versions"]["p"] for answer in answers}) > 1


def test_a_restarted_worker_reports_the_start_of_its_server(tmp_path):
    earliest = datetime.now(UTC)
    server, before, latest = SharedState.create(tmp_path, 2), monotonic(), datetime.now(UTC)

    workers = [ServerMeasures(SharedState(server.descriptor, tmp_path, number, 2)) for number in (1, 2)]

    assert workers[0].began == workers[1].began <= before
    assert earliest <= workers[0].since == workers[1].since <= latest


def edit(memory, project, before, after):
    """Replace a text in the commit file of *project* that has it, and read the journal again."""
    files = (memory.settings.root / "projects" / project / "memory").glob("*.ttl")
    (path,) = [path for path in files if before in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(before, after))
    memory.journal.verify(Stream(project))
    return path


def test_damage_is_the_first_status_and_has_one_line_in_the_log_each_time(memory, monkeypatch):
    memory.writer.submit_intent("p", intent(summary="first"))
    sink = StringIO()
    operation = Operation(Log(sink))
    monkeypatch.setattr(server_state, "FRESH", 0)
    keyring = Keyring(own_config(), memory.settings.root)
    keyring.issue("ana", "agent", ["p"], memory.sources)
    probe = create_app(memory, keyring=keyring, operation=operation).test_client()

    path = edit(memory, "p", b"first", b"forst")
    statuses = [probe.get("/readyz").status_code for _ in range(2)]
    with jidomem.open(memory.settings.root) as other:
        other.writer.submit_intent("q", intent(applies_to_project="q"))
    with memory.follower._lock:  # as while an index is built
        behind = create_app(memory).test_client().get("/readyz")
    for before, after in ((b"forst", b"first"), (b"first", b"farst")):
        edit(memory, "p", before, after)
        statuses.append(probe.get("/readyz").status_code)
    operation.close()

    assert statuses == [503, 503, 200, 503]
    assert (behind.json["status"], [*behind.json["damage"]], "q" in behind.json["behind"]) == ("damaged", ["p"], True)
    lines = [line for line in map(json.loads, sink.getvalue().splitlines()) if line["event"] == "damaged"]
    assert [(line["level"], line["project"], line["count"]) for line in lines] == 2 * [("warning", "p", 1)]
    assert all(str(path) in line["detail"] and line["hint"] for line in lines)


def test_a_commit_of_a_far_future_stops_writes_and_is_reported_as_such(memory):
    memory.writer.submit_intent("p", intent())
    written = []
    for days in (27_000, 55_000):  # the clock of a machine may be wrong by a century at most
        ahead = Sources(lambda days=days: now() + timedelta(days=days))
        with jidomem.open(memory.settings.root, sources=ahead) as other:
            written.append(other.writer.submit_intent("p", intent(summary=f"far {days}")).commit)
    sink = StringIO()
    operation = Operation(Log(sink))
    client = create_app(memory, operation=operation).test_client()

    refused = client.post("/projects/p/intents", json=intent(summary="after it"))
    ready, gauge = client.get("/readyz"), read_metrics(client)["jidomem_journal_damaged_files", ("project", "p")]
    operation.close()
    diagnostics = list(doctor.clock(memory.journal, now()))

    assert refused.json["code"] == "journal_damaged"
    assert (ready.status_code, ready.json["status"], gauge) == (503, "damaged", 1)
    (error,) = ready.json["damage"]["p"]
    assert "more than 100 years after" in error["detail"]
    assert error["path"].startswith(str(memory.journal.path(Stream("p"))))
    assert sink.getvalue().count('"event":"damaged"') == 1
    assert [each.level for each in diagnostics] == ["fail"]
    assert error["path"] in diagnostics[0].detail
    assert error["commit"] == written[1]
    assert f"--quarantine {written[0][:12]} " in diagnostics[0].hint  # and the later ones


def test_a_machine_whose_clock_is_a_century_fast_writes_nothing_and_is_not_ready(memory):
    memory.writer.submit_intent("p", intent())
    ahead = Sources(lambda: now() + timedelta(days=73_000))
    with jidomem.open(memory.settings.root, sources=ahead) as fast:
        client = create_app(fast).test_client()
        refused, ready = client.post("/projects/p/intents", json=intent(summary="far")), client.get("/readyz")

    assert (refused.json["code"], "set the clock" in refused.json["hint"]) == ("write_failed", True)
    assert (ready.status_code, ready.json["status"]) == (503, "unwritable")
    assert "a century after the newest commit" in ready.json["unwritable"]["detail"]
    assert memory.writer.submit_intent("p", intent(summary="after it")).version.position == 2
