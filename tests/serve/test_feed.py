"""The change feed: every commit once, whatever was merged, in one answer or as it comes."""

import json
import re
import shutil
import socket
from contextlib import closing
from datetime import timedelta
from threading import Thread
from urllib.parse import quote, urlsplit

import pytest
from conftest import START, decision, fixed_sources, intent
from http_world import Client, running

import jidomem
from jidomem.base.clock import Sources
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring, take_back
from jidomem.serve import wire
from jidomem.serve.app import create_app
from jidomem.serve.server_state import Operation

EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
def client(memory):
    return create_app(memory).test_client()


def feed(client, path="/projects/p/journal", **asked):
    """Each line of one answer."""
    answer = client.get(path, query_string=asked)
    assert (answer.status_code, answer.mimetype) == (200, "application/x-ndjson"), answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def every(client, after="0", limit=2):
    """All commits after a version, read a few at a time, each answer after the last version of the one before."""
    told, path = [], f"/projects/p/journal?after={quote(after)}&limit={limit}"
    while path:
        answer = client.get(path)
        told += map(json.loads, answer.text.splitlines())
        path = (re.match(r'<(.*)>; rel="next"', answer.headers.get("Link", "")) or [None, None])[1]
    return told


def events(text):
    """The events of a stream: id, kind and data of each."""
    found = []
    for block in text.split("\n\n"):
        said = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in said:
            found.append((said.get("id"), said["event"], json.loads(said["data"])))
    return found


def test_a_commit_says_what_it_added_superseded_and_invalidated(client, memory):
    old = memory.writer.submit_intent("p", decision(summary="Use files", topic="store"))
    new = memory.writer.submit_intent("p", decision(topic="store", supersedes=[old.iri]))
    gone = memory.writer.invalidate("p", new.iri, reason="wrong")
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
        (new.iri, "invalidated", gone.iri)
    ]
    assert [(each["kind"], each["redacted"]) for each in third["added"]] == [("DeletedMarker", False)]
    assert [(each["summary"], each["status"]) for each in fourth["added"]] == [("perhaps", "pending")]
    assert [(each["summary"], each["status"]) for each in fifth["invalidated"]] == [("perhaps", "rejected")]


def test_the_feed_goes_on_after_any_version_it_told(client, memory):
    for number in range(5):
        memory.writer.submit_intent("p", intent(summary=str(number)))
    told = feed(client)

    for at, each in enumerate(told):
        assert feed(client, after=each["version"]) == told[at + 1 :]
    assert every(client) == told
    assert feed(client, limit=2) == told[:2]
    short = told[1]["version"][:8]
    assert feed(client, after=short) == told[2:]


def test_a_merge_of_two_branches_loses_no_commit_and_tells_none_twice(client, memory, tmp_path):
    def write(root, word, seconds):
        with jidomem.open(root, sources=Sources(fixed_sources(START + timedelta(seconds=seconds)).now)) as one:
            for number in range(3):
                one.writer.submit_intent("p", intent(summary=f"{word} {number}"))

    memory.writer.submit_intent("p", intent(summary="base"))
    root, other = memory.settings.root, tmp_path / "other"
    base = feed(client)[-1]["version"]
    shutil.copytree(root / "projects", other / "projects")
    write(root, "ours", 1000)
    ours = feed(client, after=base)
    write(other, "theirs", 500)  # recorded before ours
    for path in (other / "projects" / "p" / "memory").glob("*.ttl"):
        shutil.copy(path, root / "projects" / "p" / "memory")

    def summaries(told):
        return [each["added"][0]["summary"] for each in told]

    late = feed(client, after=ours[0]["version"])
    assert sorted(summaries(late)) == ["ours 1", "ours 2", "theirs 0", "theirs 1", "theirs 2"]
    assert sorted(summaries(feed(client, after=ours[-1]["version"]))) == ["theirs 0", "theirs 1", "theirs 2"]
    memory.writer.submit_intent("p", intent(summary="merged"))
    whole = every(client, limit=1)
    assert whole == every(client, limit=3) == feed(client)
    assert sorted(summaries(whole)) == sorted(
        ["base", "merged", *(f"{word} {number}" for word in ("ours", "theirs") for number in range(3))]
    )
    for at, each in enumerate(whole):
        assert every(client, after=each["version"], limit=2) == whole[at + 1 :], each["version"]
    assert summaries(every(client, after=ours[-1]["version"]))[-1] == "merged"
    assert whole[-1]["version"] == str(memory.journal.head(memory.journal.streams()[0]))


def test_what_was_redacted_appears_redacted_wherever_it_is_told(client, memory):
    secret = memory.writer.submit_intent("p", intent(summary="our neighbour is called hunter2"))
    memory.writer.submit_intent("p", intent(summary="another one", supersedes=[secret.iri]))
    before = feed(client)
    memory.keeper.redact(memory.keeper.plan("p", secret.iri), agent="ana", reason="private")

    answer = client.get("/projects/p/journal")

    told = [json.loads(line) for line in answer.text.splitlines()]
    assert "hunter2" not in answer.text
    assert [each["version"] for each in told[:2]] == [each["version"] for each in before]
    (added,), (ended,) = told[0]["added"], told[1]["superseded"]
    assert (told[0]["redacted"], added["redacted"], added["summary"]) == (True, True, None)
    assert (ended["iri"], ended["redacted"], ended["summary"]) == (secret.iri, True, None)
    assert told[1]["added"][0]["redacted"] is False


def test_what_the_feed_cannot_honour_is_refused(client, memory):
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    (foreign,) = feed(client, "/projects/q/journal")

    def refused(headers=None, **asked):
        answer = client.get("/projects/p/journal", query_string=asked, headers=headers)
        return answer.status_code, answer.json["code"]

    assert refused(after="yesterday") == (400, "invalid_argument")
    assert refused(after="1-0123456789ab") == refused(after=foreign["version"]) == (404, "not_found")
    assert refused(limit=0) == refused(limit=10_001) == refused(wait=31) == (400, "invalid_argument")
    assert refused(EVENTS, wait=1) == refused(as_of="2026-01-01") == (400, "invalid_argument")
    assert refused({"Accept": "text/turtle"}) == (406, "not_acceptable")
    assert client.get("/projects/none/journal").json["code"] == "unknown_project"


def test_the_feed_stops_before_damage_and_then_says_so(client, memory):
    receipts = [memory.writer.submit_intent("p", intent(summary=str(number))) for number in range(3)]
    folder = memory.settings.root / "projects" / "p" / "memory"
    broken = next(path for path in folder.glob("*.ttl") if receipts[1].commit[:12] in path.name)
    broken.write_bytes(broken.read_bytes().replace(b'"1"', b'"7"'))

    with jidomem.open(memory.settings.root) as fresh:
        client = create_app(fresh).test_client()
        first = feed(client)
        then = client.get("/projects/p/journal", query_string={"after": str(receipts[0].version)})

    assert [each["version"] for each in first] == [str(receipts[0].version)]
    assert (then.status_code, then.json["code"]) == (500, "journal_damaged")


def test_events_go_on_after_the_last_one_read_and_end_with_the_server(memory):
    operation = Operation()
    client = create_app(memory, operation=operation).test_client()
    receipts = [memory.writer.submit_intent("p", intent(summary=str(number))) for number in range(3)]
    versions = [str(receipt.version) for receipt in receipts]

    some = client.get("/projects/p/journal?limit=2", headers=EVENTS)
    assert [(each[0], each[1]) for each in events(some.text)] == [(version, "commit") for version in versions[:2]]
    assert [each[2] for each in events(some.text)] == feed(client, limit=2)
    operation.stop()
    rest = client.get("/projects/p/journal?after=0", headers={**EVENTS, "Last-Event-ID": versions[1]})
    assert rest.text == "retry: 1000\n\n"


def test_a_reader_sees_the_events_of_its_own_projects_until_its_token_is_taken_back(memory):
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    ring = Keyring(own_config(), memory.settings.root)
    secret, made = ring.give_out("ana", "reader", ["p"], memory.sources)
    client = create_app(memory, keyring=Keyring(own_config(), memory.settings.root)).test_client()
    key = {"Authorization": f"Bearer {secret}", **EVENTS}

    hidden, none = (client.get(f"/projects/{name}/journal", headers=key) for name in ("q", "z"))
    stream = client.get("/projects/p/journal", headers=key)
    pieces = iter(stream.response)
    told = [next(pieces), next(pieces)]
    take_back(own_config(), made.id)
    told += pieces

    assert (hidden.status_code, hidden.json["code"], none.json["code"]) == (404, "unknown_project", "unknown_project")
    assert [each[1] for each in events(b"".join(told).decode())] == ["commit", "refused"]
    assert events(b"".join(told).decode())[-1][2]["code"] == "unauthenticated"


def test_only_so_many_wait_at_once_and_who_leaves_makes_room(memory):
    memory.writer.submit_intent("p", intent())
    client = create_app(memory, operation=Operation(connections=4)).test_client()
    at = feed(client)[-1]["version"]

    stream = client.get("/projects/p/journal", headers=EVENTS)
    refused = [client.get("/projects/p/journal", headers=EVENTS), client.get(f"/projects/p/journal?after={at}&wait=1")]
    stream.close()

    assert [each.json["code"] for each in refused] == ["too_many_requests"] * 2
    assert feed(client, after=at, wait=1) == []


def test_a_running_server_tells_what_another_process_wrote_to_who_waits_and_ends_streams_as_it_stops(tmp_path):
    root, told = tmp_path / "root", []
    with jidomem.open(root) as memory:
        first = memory.writer.submit_intent("p", intent(summary="first"))
        with running(root, "-q") as process:

            def wait():
                with Client(process.url) as waiting:
                    told.append(waiting.ask("GET", f"/projects/p/journal?after={first.version}&wait=30"))

            waiter = Thread(target=wait)
            waiter.start()
            place = urlsplit(process.url)
            with closing(socket.create_connection((place.hostname, place.port), timeout=30)) as reader:
                reader.sendall(
                    b"GET /projects/p/journal HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
                )
                heard = b""
                while b"first" not in heard:
                    heard += reader.recv(65536)
                second = memory.writer.submit_intent("p", intent(summary="second"))
                while b"second" not in heard:
                    heard += reader.recv(65536)
                waiter.join()
                process.terminate()
                while piece := reader.recv(65536):
                    heard += piece
            _, words = process.communicate(timeout=20)

    ((status, _, body),) = told
    assert (status, json.loads(body)["version"]) == (200, str(second.version))
    assert re.findall(rb"^id: (.*)$", heard, re.MULTILINE) == [
        str(first.version).encode(),
        str(second.version).encode(),
    ]
    assert heard.endswith(b"\r\n0\r\n\r\n")
    assert (process.returncode, words) == (0, "")


def test_readers_who_hang_up_free_their_place(tmp_path):
    with running(tmp_path / "root", "-q") as process, Client(process.url) as client:
        client.submit(intent())
        place = urlsplit(process.url)
        for _ in range(40):  # more than may wait at once
            while True:
                with closing(socket.create_connection((place.hostname, place.port), timeout=30)) as reader:
                    reader.sendall(
                        b"GET /projects/p/journal HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
                    )
                    heard = reader.recv(4096)
                if b" 429 " not in heard.splitlines()[0]:
                    break
                client.submit(intent(summary=f"wake {_}"))


def test_a_stream_of_events_ends_at_once_where_its_reader_has_closed_the_connection(client, memory):
    memory.writer.submit_intent("p", intent())
    ours, theirs = socket.socketpair()
    theirs.close()

    with ours:
        here = {"environ_overrides": {wire.CONNECTION: ours.fileno()}}
        told = client.get("/projects/p/journal", headers=EVENTS, **here).text

    assert "event: commit" in told
    assert "\n: \n" not in told  # no sign of life: it was not waited for
