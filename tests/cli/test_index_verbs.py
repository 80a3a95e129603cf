"""The index at the command line: status, reindex, and an external triple store."""

import json

import pytest
from cli_world import create_repository, run

from jidomem.index import follower


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return create_repository(tmp_path / "repository", monkeypatch)


@pytest.fixture
def large(repository, monkeypatch):
    monkeypatch.setattr(follower, "ON_DISK_BYTES", 5_000)
    return repository


def test_a_small_memory_is_indexed_in_memory_without_files(repository):
    assert json.loads(run("status", "--json").stdout)["index"] == {"kind": "memory", "snapshots": [], "store": None}
    rebuilt = run("root", "reindex", "--json")
    report = json.loads(rebuilt.stdout)
    assert (rebuilt.exit_code, report["index"], report["snapshots"], report["damage"]) == (0, "memory", [], [])
    assert not (repository / ".jidomem" / "index").exists()


def test_a_large_memory_is_indexed_on_disk_and_shown_so_in_the_status(large):
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


def test_reindex_rebuilds_the_snapshot_and_reports_commits_and_size(large):
    before = json.loads(run("status", "--json").stdout)["index"]["snapshots"]
    result = run("root", "reindex")
    after = json.loads(run("status", "--json").stdout)["index"]["snapshots"]
    assert result.exit_code == 0
    assert result.stdout.startswith("p/memory  7-")
    assert result.stdout.endswith("  7 commits\n")
    assert f"snapshot of {after[0]['bytes']:,} bytes" in result.stderr
    assert [snapshot["versions"] for snapshot in after] == [snapshot["versions"] for snapshot in before]
    assert after[0]["name"] != before[0]["name"]


def test_reindex_refuses_a_project_as_the_index_is_of_the_whole_root(large):
    refused = run("root", "reindex", "--project", "p")

    assert (refused.exit_code, refused.stderr.splitlines()) == (
        2, ["error: the index is of the whole root: --project does not apply", "hint: leave it out"],
    )  # fmt: skip


def test_reindex_of_a_damaged_journal_stores_no_snapshot_and_names_the_damaged_file(large):
    file = sorted((large / ".jidomem" / "projects" / "p" / "memory").glob("*.ttl"))[3]
    file.write_bytes(file.read_bytes()[:-5])
    result = run("root", "reindex")
    assert result.exit_code == 7
    assert file.name in result.stdout
    assert "no snapshot" in result.stderr
    report = json.loads(run("root", "reindex", "--json").stdout)
    assert ([damage["code"] for damage in report["damage"]], report["snapshots"]) == (["journal_damaged"], [])


def test_reindex_without_a_root_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("root", "reindex").exit_code == 4


def test_a_triple_store_is_shown_without_its_password_and_checked_by_the_doctor(
    repository, oxigraph_server, monkeypatch
):
    monkeypatch.setenv("JIDOMEM_INDEX", oxigraph_server.replace("//", "//reader:secret@"))
    address = oxigraph_server.removeprefix("sparql+")
    assert json.loads(run("status", "--json").stdout)["index"]["store"] == address
    assert [line.split()[1] for line in run("status").stdout.splitlines() if line.startswith("store")] == [address]

    assert store_check_of_doctor() == ("ok", f"{address} answers all questions")

    monkeypatch.setenv("JIDOMEM_INDEX", "sparql+http://127.0.0.1:9/query")
    level, detail = store_check_of_doctor()
    assert level == "fail"
    assert "127.0.0.1:9" in detail


def store_check_of_doctor():
    (check,) = [
        check for check in json.loads(run("status", "--doctor", "--json").stdout)["checks"] if check["name"] == "store"
    ]
    return check["level"], check["detail"]
