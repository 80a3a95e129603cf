"""The change feed: every commit once, after merges too, in one answer or as events."""

import json
import re
import shutil
import socket
from contextlib import closing
from datetime import timedelta
from itertools import count
from threading import Thread
from urllib.parse import quote, urlsplit

import pytest
from conftest import START, decision, fixed_sources, intent, wait_until
from http_world import Client, serving

import jidomem
from jidomem.base.clock import Sources
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring, revoke_token
from jidomem.serve import wire
from jidomem.serve.app import create_app
from jidomem.serve.server_state import Operation

pytestmark = pytest.mark.usefixtures("loaded_program")
EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
def client(memory):
    return create_app(memory).test_client()


def feed(client, path="/projects/p/journal", **query):
    """The lines of one answer."""
    answer = client.get(path, query_string=query)
    assert (answer.status_code, answer.mimetype) == (200, "application/x-ndjson"), answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def all_commits(client, after="0", limit=2):
    """All commits after a version, a few per answer, each answer after the last version of the one before."""
    commits, path = [], f"/projects/p/journal?after={quote(after)}&limit={limit}"
    while path:
        answer = client.get(path)
        commits += map(json.loads, answer.text.splitlines())
        path = (re.match(r'<(.*)>; rel="next"', answer.headers.get("Link", "")) or [None, None])[1]
    return commits


def events(text):
    """The events of a stream: id, kind and data of each."""
    rows = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            rows.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
    return rows


def test_a_commit_lists_added_superseded_and_invalidated_memories(client, memory):
    old = memory.writer.submit_intent("p", decision(summary="Use files", topic="store"))
    new = memory.writer.submit_intent("p", decision(topic="store", supersedes=[old.iri]))
    withdrawal = memory.writer.invalidate("p", new.iri, reason="wrong")
    proposal = memory.writer.submit_intent("p", intent(summary="perhaps"), propose=True)
    memory.writer.settle("p", proposal.iri, "reject")

    first, second, third, fourth, fifth = feed(client)

    assert first == {
        "version": str(old.version), "commit": old.commit, "recorded_at": old.version.recorded_at, "redacted": False,
        "added": [{"iri": old.iri, "kind": "ArchitecturalDecision", "summary": "Use files", "status": "active",
                   "redacted": False}],
        "superseded": [], "invalidated": [],
    }  # fmt: skip
    ended = {"iri": old.iri, "kind": "ArchitecturalDecision", "summary": "Use files", "status": "superseded"}
    assert second["superseded"] == [{**ended, "redacted": False, "by": new.iri}]
    assert [(each["iri"], each["status"], each["by"]) for each in third["invalidated"]] == [
        (new.iri, "invalidated", withdrawal.iri)
    ]
    assert [(each["kind"], each["redacted"]) for each in third["added"]] == [("DeletedMarker", False)]
    assert [(each["summary"], each["status"]) for each in fourth["added"]] == [("perhaps", "pending")]
    assert [(each["summary"], each["status"]) for each in fifth["invalidated"]] == [("perhaps", "rejected")]


def test_the_feed_continues_after_any_of_its_versions(client, memory):
    for number in range(5):
        memory.writer.submit_intent("p", intent(summary=str(number)))
    commits = feed(client)

    for position, each in enumerate(commits):
        assert feed(client, after=each["version"]) == commits[position + 1 :]
    assert all_commits(client) == commits
    assert feed(client, limit=2) == commits[:2]
    abbreviated = commits[1]["version"][:8]
    assert feed(client, after=abbreviated) == commits[2:]


def test_the_feed_of_merged_branches_has_each_commit_once(client, memory, tmp_path):
    def write(root, word, seconds):
        with jidomem.open(root, sources=Sources(fixed_sources(START + timedelta(seconds=seconds)).now)) as branch:
            for number in range(3):
                branch.writer.submit_intent("p", intent(summary=f"{word} {number}"))

    memory.writer.submit_intent("p", intent(summary="base"))
    root, other = memory.settings.root, tmp_path / "other"
    base = feed(client)[-1]["version"]
    shutil.copytree(root / "projects", other / "projects")
    write(root, "ours", 1000)
    ours = feed(client, after=base)
    write(other, "theirs", 500)  # recorded before ours
    for path in (other / "projects" / "p" / "memory").glob("*.ttl"):
        shutil.copy(path, root / "projects" / "p" / "memory")

    def summaries(commits):
        return [each["added"][0]["summary"] for each in commits]

    new_commits = feed(client, after=ours[0]["version"])
    assert sorted(summaries(new_commits)) == ["ours 1", "ours 2", "theirs 0", "theirs 1", "theirs 2"]
    assert sorted(summaries(feed(client, after=ours[-1]["version"]))) == ["theirs 0", "theirs 1", "theirs 2"]
    memory.writer.submit_intent("p", intent(summary="merged"))
    commits = all_commits(client, limit=1)
    assert commits == all_commits(client, limit=3) == feed(client)
    assert sorted(summaries(commits)) == sorted(
        ["base", "merged", *(f"{word} {number}" for word in ("ours", "theirs") for number in range(3))]
    )
    for position, each in enumerate(commits):
        assert all_commits(client, after=each["version"], limit=2) == commits[position + 1 :], each["version"]
    assert summaries(all_commits(client, after=ours[-1]["version"]))[-1] == "merged"
    assert commits[-1]["version"] == str(memory.journal.head(memory.journal.streams()[0]))


def test_a_redacted_memory_is_redacted_in_every_commit_of_the_feed(client, memory):
    secret = memory.writer.submit_intent("p", intent(summary="our neighbour is called hunter2"))
    memory.writer.submit_intent("p", intent(summary="another one", supersedes=[secret.iri]))
    before = feed(client)
    memory.maintenance.redact(memory.maintenance.plan("p", secret.iri), agent="ana", reason="private")

    answer = client.get("/projects/p/journal")

    commits = [json.loads(line) for line in answer.text.splitlines()]
    assert "hunter2" not in answer.text
    assert [each["version"] for each in commits[:2]] == [each["version"] for each in before]
    (added,), (ended,) = commits[0]["added"], commits[1]["superseded"]
    assert (commits[0]["redacted"], added["redacted"], added["summary"]) == (True, True, None)
    assert (ended["iri"], ended["redacted"], ended["summary"]) == (secret.iri, True, None)
    assert commits[1]["added"][0]["redacted"] is False


def test_invalid_parameters_of_the_feed_are_refused(client, memory):
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    (foreign,) = feed(client, "/projects/q/journal")

    def refusal(headers=None, **query):
        answer = client.get("/projects/p/journal", query_string=query, headers=headers)
        return answer.status_code, answer.json["code"]

    assert refusal(after="yesterday") == (400, "invalid_argument")
    assert refusal(after="1-0123456789ab") == refusal(after=foreign["version"]) == (404, "not_found")
    assert refusal(limit=0) == refusal(limit=10_001) == refusal(wait=31) == (400, "invalid_argument")
    assert refusal(EVENTS, wait=1) == refusal(as_of="2026-01-01") == (400, "invalid_argument")
    assert refusal({"Accept": "text/turtle"}) == (406, "not_acceptable")
    assert client.get("/projects/none/journal").json["code"] == "unknown_project"


def test_the_feed_stops_before_a_damaged_commit_and_reports_the_damage_after_it(client, memory):
    receipts = [memory.writer.submit_intent("p", intent(summary=str(number))) for number in range(3)]
    folder = memory.settings.root / "projects" / "p" / "memory"
    broken = next(path for path in folder.glob("*.ttl") if receipts[1].commit[:12] in path.name)
    broken.write_bytes(broken.read_bytes().replace(b'"1"', b'"7"'))

    with jidomem.open(memory.settings.root) as fresh:
        client = create_app(fresh).test_client()
        first = feed(client)
        next_answer = client.get("/projects/p/journal", query_string={"after": str(receipts[0].version)})

    assert [each["version"] for each in first] == [str(receipts[0].version)]
    assert (next_answer.status_code, next_answer.json["code"]) == (500, "journal_damaged")


def test_events_continue_after_the_last_event_id_and_end_with_the_server(memory):
    operation = Operation()
    client = create_app(memory, operation=operation).test_client()
    receipts = [memory.writer.submit_intent("p", intent(summary=str(number))) for number in range(3)]
    versions = [str(receipt.version) for receipt in receipts]

    first_events = client.get("/projects/p/journal?limit=2", headers=EVENTS)
    assert [(each[0], each[1]) for each in events(first_events.text)] == [
        (version, "commit") for version in versions[:2]
    ]
    assert [each[2] for each in events(first_events.text)] == feed(client, limit=2)
    operation.stop()
    last_events = client.get("/projects/p/journal?after=0", headers={**EVENTS, "Last-Event-ID": versions[1]})
    assert last_events.text == "retry: 1000\n\n"


def test_events_are_limited_to_the_projects_of_a_token_and_end_when_it_is_revoked(memory):
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    ring = Keyring(own_config(), memory.settings.root)
    secret, token = ring.issue("ana", "reader", ["p"], memory.sources)
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()
    key = {"Authorization": f"Bearer {secret}", **EVENTS}

    hidden, none = (client.get(f"/projects/{name}/journal", headers=key) for name in ("q", "z"))
    stream = client.get("/projects/p/journal", headers=key)
    pieces = iter(stream.response)
    chunks = [next(pieces), next(pieces)]
    revoke_token(own_config(), token.id)
    chunks += pieces

    assert (hidden.status_code, hidden.json["code"], none.json["code"]) == (404, "unknown_project", "unknown_project")
    assert [each[1] for each in events(b"".join(chunks).decode())] == ["commit", "refused"]
    assert events(b"".join(chunks).decode())[-1][2]["code"] == "unauthenticated"


def test_waiting_readers_are_limited_and_a_closed_stream_frees_its_place(memory):
    memory.writer.submit_intent("p", intent())
    client = create_app(memory, operation=Operation(connections=4)).test_client()
    version = feed(client)[-1]["version"]

    stream = client.get("/projects/p/journal", headers=EVENTS)
    refused = [
        client.get("/projects/p/journal", headers=EVENTS),
        client.get(f"/projects/p/journal?after={version}&wait=1"),
    ]
    stream.close()

    assert [each.json["code"] for each in refused] == ["too_many_requests"] * 2
    assert feed(client, after=version, wait=1) == []


def test_commits_of_another_process_reach_waiting_readers_and_streams_end_with_the_server(tmp_path):
    root, answers = tmp_path / "root", []
    with jidomem.open(root) as memory:
        first = memory.writer.submit_intent("p", intent(summary="first"))
        with serving(root, "-q") as process:

            def wait():
                with Client(process.url) as waiting:
                    answers.append(waiting.ask("GET", f"/projects/p/journal?after={first.version}&wait=30"))

            waiter = Thread(target=wait)
            waiter.start()
            address = urlsplit(process.url)
            with closing(socket.create_connection((address.hostname, address.port), timeout=30)) as reader:
                reader.sendall(
                    b"GET /projects/p/journal HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
                )
                received = b""
                while b"first" not in received:
                    received += reader.recv(65536)
                second = memory.writer.submit_intent("p", intent(summary="second"))
                while b"second" not in received:
                    received += reader.recv(65536)
                waiter.join()
                process.terminate()
                while piece := reader.recv(65536):
                    received += piece
            _, stderr = process.communicate(timeout=20)

    ((status, _, body),) = answers
    assert (status, json.loads(body)["version"]) == (200, str(second.version))
    assert re.findall(rb"^id: (.*)$", received, re.MULTILINE) == [
        str(first.version).encode(),
        str(second.version).encode(),
    ]
    assert received.endswith(b"\r\n0\r\n\r\n")
    assert (process.returncode, stderr) == (0, "")


def test_disconnected_readers_free_their_places(tmp_path):
    with serving(tmp_path / "root", "-q") as process, Client(process.url) as client:
        client.submit(intent())
        address = urlsplit(process.url)

        def gets_a_place():
            """Return whether a new reader, which disconnects, got a place; otherwise wake those that have one."""
            with socket.create_connection((address.hostname, address.port), timeout=30) as reader:
                reader.sendall(
                    b"GET /projects/p/journal HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
                )
                status = reader.recv(4096).split()[1]
            if status == b"429":
                client.submit(intent(summary=f"wake {next(numbers)}"))
            return status == b"200"

        numbers = count()
        assert all(wait_until(gets_a_place) for _ in range(40))  # more than may wait at once


def test_a_stream_of_events_ends_when_its_reader_has_disconnected(client, memory):
    memory.writer.submit_intent("p", intent())
    server_end, client_end = socket.socketpair()
    client_end.close()

    with server_end:
        options = {"environ_overrides": {wire.CONNECTION: server_end.fileno()}}
        text = client.get("/projects/p/journal", headers=EVENTS, **options).text

    assert "event: commit" in text
    assert "\n: \n" not in text  # no heartbeat: the stream did not wait
