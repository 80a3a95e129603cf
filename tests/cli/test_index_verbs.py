"""What the command line says and does about the index."""

import json

import pytest
from cli_world import run, stand_in

from jidomem.index import follower


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return stand_in(tmp_path / "repository", monkeypatch)


@pytest.fixture
def large(repository, monkeypatch):
    monkeypatch.setattr(follower, "ON_DISK_BYTES", 5_000)
    return repository


def test_a_small_memory_is_indexed_in_memory_and_leaves_nothing_behind(repository):
    assert json.loads(run("status", "--json").stdout)["index"] == {"kind": "memory", "snapshots": [], "store": None}
    rebuilt = run("root", "reindex", "--json")
    found = json.loads(rebuilt.stdout)
    assert (rebuilt.exit_code, found["index"], found["snapshots"], found["damage"]) == (0, "memory", [], [])
    assert not (repository / ".jidomem" / "index").exists()


def test_a_large_memory_is_indexed_on_disk_and_the_status_says_so(large):
    run("status")
    answers = run("ask", "decisions", "--json").stdout
    index = json.loads(run("status", "--json").stdout)["index"]
    (snapshot,) = index["snapshots"]
    graph = "https://jido.ai/projects/p/graphs/long-term-context"
    assert (index["kind"], snapshot["commits"], set(snapshot["versions"])) == ("disk", 7, {graph})
    assert snapshot["bytes"] == sum(
        file.stat().st_size for file in (large / ".jidomem/index/snapshots" / snapshot["name"] / "store").iterdir()
    )
    assert "index             disk\n" in run("status").stdout
    assert run("ask", "decisions", "--json").stdout == answers


def test_reindex_builds_the_index_anew_and_says_what_it_holds(large):
    before = json.loads(run("status", "--json").stdout)["index"]["snapshots"]
    said = run("root", "reindex")
    after = json.loads(run("status", "--json").stdout)["index"]["snapshots"]
    assert said.exit_code == 0
    assert said.stdout.startswith("p/memory  7-")
    assert said.stdout.endswith("  7 commits\n")
    assert f"snapshot of {after[0]['bytes']:,} bytes" in said.stderr
    assert [found["versions"] for found in after] == [found["versions"] for found in before]
    assert after[0]["name"] != before[0]["name"]


def test_reindex_of_a_damaged_journal_keeps_nothing_and_says_where_it_is(large):
    file = sorted((large / ".jidomem" / "projects" / "p" / "memory").glob("*.ttl"))[3]
    file.write_bytes(file.read_bytes()[:-5])
    said = run("root", "reindex")
    assert said.exit_code == 7
    assert file.name in said.stdout
    assert "no snapshot" in said.stderr
    found = json.loads(run("root", "reindex", "--json").stdout)
    assert ([damage["code"] for damage in found["damage"]], found["snapshots"]) == (["journal_damaged"], [])


def test_there_is_nothing_to_reindex_where_there_is_no_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("root", "reindex").exit_code == 4


def test_a_triple_store_that_answers_is_named_without_its_password_and_looked_at(
    repository, oxigraph_server, monkeypatch
):
    monkeypatch.setenv("JIDOMEM_INDEX", oxigraph_server.replace("//", "//reader:secret@"))
    shown = oxigraph_server.removeprefix("sparql+")
    assert json.loads(run("status", "--json").stdout)["index"]["store"] == shown
    assert [line.split()[1] for line in run("status").stdout.splitlines() if line.startswith("store")] == [shown]

    assert store_as_doctor_sees_it() == ("ok", f"{shown} answers all questions")

    monkeypatch.setenv("JIDOMEM_INDEX", "sparql+http://127.0.0.1:9/query")
    level, detail = store_as_doctor_sees_it()
    assert level == "fail"
    assert "127.0.0.1:9" in detail


def store_as_doctor_sees_it():
    (look,) = [
        look for look in json.loads(run("status", "--doctor", "--json").stdout)["checks"] if look["name"] == "store"
    ]
    return look["level"], look["detail"]
