"""A server rereads the files of its journal while it runs, to find damage to files that are indexed already."""

import json
import os
from io import StringIO

import pytest
from conftest import intent, wait_until
from test_workers import client_per_worker, serving, wait_for

import jidomem
from jidomem.journal.journal import Stream
from jidomem.serve.app import create_app
from jidomem.serve.log import Log
from jidomem.serve.server_state import Operation
from jidomem.serve.shared_state import STEPS, FileVerifier, SharedState

NAMES = ("first", "second", "third")


def submit_all(memory):
    for name in NAMES:
        memory.writer.submit_intent("p", intent(summary=name))
        memory.writer.submit_intent("q", intent(applies_to_project="q", summary=name))


def flip(root, text, project="q"):
    """Flip a bit of the file that contains *text*, as a failing disk does: the kernel reports no change."""
    (path,) = [each for each in (root / "projects" / project / "memory").glob("*.ttl") if text in each.read_bytes()]
    beside = root / "beside"
    beside.hardlink_to(path)
    with beside.open("r+b") as file:
        position = file.read().index(text)
        file.seek(position)
        file.write(bytes([text[0] ^ 1]))
    beside.unlink()
    return path


@pytest.mark.parametrize("is_packed", [False, True])
def test_damage_to_an_indexed_file_is_found_and_reported_everywhere(memory, is_packed):
    submit_all(memory)
    if is_packed:
        assert memory.journal.seal(Stream("q"))
    sink = StringIO()
    with jidomem.open(memory.settings.root, project="p") as served:
        operation = Operation(Log(sink))
        client = create_app(served, operation=operation).test_client()
        assert client.get("/projects/q/queries/facts").status_code == 200
        path = flip(memory.settings.root, b"first")
        unnoticed = client.get("/readyz")
        verifier = FileVerifier(served.journal, None, lambda stream: operation.damage(served, stream.project))
        for _ in range(2 * STEPS):
            verifier.step()
        noticed, answer = client.get("/readyz"), client.get("/projects/q/queries/facts")
        other, metrics = client.get("/projects/p/queries/facts"), client.get("/metrics").text
        refused = client.post("/projects/q/intents", json=intent(applies_to_project="q", summary="fourth"))
        operation.close()

    assert unnoticed.json["status"] == "ok"
    assert (noticed.status_code, noticed.json["status"]) == (503, "damaged")
    assert [each["path"] for each in noticed.json["damage"]["q"]] == [str(path)]
    assert ("Warning" in answer.headers, "Warning" in other.headers) == (True, False)
    assert 'jidomem_journal_damaged_files{project="q"} 1.0' in metrics
    assert 'jidomem_journal_damaged_files{project="p"} 0.0' in metrics
    assert refused.json["code"] == "journal_damaged"
    logged = [line for line in map(json.loads, sink.getvalue().splitlines()) if line["event"] == "damaged"]
    assert [(line["level"], str(path) in line["detail"], bool(line["hint"])) for line in logged] == [
        ("warning", True, True)
    ]


def test_an_edit_of_a_file_that_a_server_has_read_stops_the_next_write_until_it_is_repaired(memory):
    submit_all(memory)
    sink = StringIO()
    with jidomem.open(memory.settings.root, project="p") as served:
        operation = Operation(Log(sink))
        client = create_app(served, operation=operation).test_client()
        posted = [client.post("/projects/q/intents", json=intent(applies_to_project="q", summary="fourth"))]
        for path in sorted((memory.settings.root / "projects" / "q" / "memory").glob("2*.ttl"))[1::2]:
            sound = path.read_bytes()
            os.truncate(path, 100)
            posted.append(client.post("/projects/q/intents", json=intent(applies_to_project="q", summary=path.name)))
            damaged, metrics = client.get("/readyz"), client.get("/metrics").text
            path.write_bytes(sound)
            repaired = client.get("/readyz")

            assert (damaged.json["status"], damaged.json["damage"]["q"][0]["path"]) == ("damaged", str(path))
            assert 'jidomem_journal_damaged_files{project="q"} 1.0' in metrics
            assert (repaired.status_code, repaired.json["damage"]) == (200, {})
        posted.append(client.post("/projects/q/intents", json=intent(applies_to_project="q", summary="fifth")))
        operation.close()

    assert [each.status_code for each in posted] == [201, 500, 500, 201]
    assert sink.getvalue().count('"event":"damaged"') == 2


def test_the_table_of_a_pack_is_reread(memory):
    submit_all(memory)
    memory.journal.seal(Stream("q"))
    verifier = FileVerifier(memory.journal, None, lambda stream: None)
    verifier.step()
    assert memory.damage("q") == ()
    flip(memory.settings.root, b"# commit ")
    for _ in range(2 * STEPS):
        verifier.step()

    assert len(memory.damage("q")) == 1


def test_each_step_rereads_a_part_and_all_steps_read_all(memory):
    submit_all(memory)
    parts = [memory.journal.reread(Stream("q"), "", 2)[0]]
    parts.append(memory.journal.reread(Stream("q"), parts[0][-1], 2)[0])

    assert [len(each) for each in parts] == [2, 1]
    assert sorted({*parts[0], *parts[1]}) == [*parts[0], *parts[1]]


@pytest.mark.usefixtures("loaded_program")
def test_damage_found_by_one_worker_is_known_to_all_workers_and_later_processes(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p") as memory:
        submit_all(memory)
    with serving(root, 2, limits="reread_seconds = 1\n") as server, client_per_worker(server, 2) as clients:
        for client in clients.values():
            assert client.get("/readyz")["status"] == "ok"
            client.get("/projects/q/queries/facts")
        flip(root, b"first")
        wait_for(server, "damaged", 1)
        for client in clients.values():
            assert wait_until(lambda client=client: client.ask("GET", "/readyz")[0] == 503)
        with jidomem.open(root, project="p") as later:
            assert len(later.damage("q")) == 1


@pytest.mark.parametrize("is_packed", [False, True])
def test_damage_that_one_worker_knows_is_read_by_the_others(memory, tmp_path, is_packed):
    submit_all(memory)
    if is_packed:
        assert memory.journal.seal(Stream("q"))
    first = SharedState.create(tmp_path, 2)
    second = SharedState(first.descriptor, tmp_path, 2, 2)
    first.number, sink = 1, StringIO()
    one, two = Operation(Log(sink), shared=first), Operation(Log(sink), shared=second)
    with jidomem.open(memory.settings.root, project="p") as other:
        one.reread(memory)
        two.reread(other)
        assert (one.damage(memory, "q"), two.damage(other, "q")) == ((), ())
        path = flip(memory.settings.root, b"first")
        other.journal.reread(Stream("q"), "", 10)
        (known,) = two.damage(other, "q")
        one.verifier.follow()
        (reported,) = one.damage(memory, "q")
    for operation in (one, two):
        operation.close()

    assert known.path == reported.path == str(path)
    lines = [line for line in map(json.loads, sink.getvalue().splitlines()) if line["event"] == "damaged"]
    assert [(line["project"], line["detail"]) for line in lines] == [("q", reported.detail)]
