"""`jidomem recall`, and the search index in the output of other verbs."""

import json
import re
import sqlite3
from itertools import count
from threading import Timer

import pytest
from cli_world import FACT, OLD, build, run
from conftest import intent

import jidomem
from jidomem.index import cache_file, search_index
from jidomem.models.local_embedder import _read


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch, by):
    monkeypatch.chdir(tmp_path)
    return build(tmp_path)


def test_memories_are_recalled_by_words_in_every_format():
    table = run("recall", "which cache holds what?")
    assert table.stdout.splitlines()[0].split() == [
        *("score", "item", "kind", "summary", "about", "agent", "recorded", "status", "time")
    ]
    assert FACT in table.stdout
    assert OLD not in table.stdout  # superseded

    answer = json.loads(run("recall", "journals", "--json").stdout)
    assert answer["entries"][0]["content"] == "One journal a project"
    lines = run("recall", "cache shipping", "--format", "jsonl").stdout.splitlines()
    assert {json.loads(line)["content"] for line in lines[:2]} == {"the cache holds 2 GiB", "Ship the importer"}
    assert run("recall", "cache", "--format", "csv").stdout.startswith(
        "score,item,kind,summary,about,agent,recorded,status,time,text,state,conflicts_with\n"
    )
    score = json.loads(run("recall", "cache", "--json").stdout)["entries"][0]["score"]
    assert f'- {FACT} fact: "the cache holds 2 GiB" (architect, 2026-11-21, score {score:.2g})' in run(
        "recall", "cache", "--format", "md"
    ).stdout  # fmt: skip


def test_options_filter_the_hits_and_explain_shows_their_scores(by):
    assert "Ship the importer" in run("recall", "import", "--kind", "task").stdout
    assert "loses dates" not in run("recall", "import", "--kind", "task").stdout
    explained = run("recall", "import", "--kind", "error", "--explain").stdout
    assert "    words: 1 of 1 word of the question: import\n" in explained
    assert {"words": "    score ", "likeness": "    meaning: cosine "}[by] in explained
    assert "words in no memory: quagga\n" in run("recall", "the quagga", "--kind", "error", "--explain").stderr
    few = run("recall", "import oxigraph journal", "--limit", "1")
    assert len(few.stdout.splitlines()) == 3  # with the line of its text
    assert "there are more" in few.stderr


@pytest.mark.parametrize("option", [("--kind", "facd"), ("--budget-tokens", "2"), ("--since", "soon"), ("--limit", "0"),
                                    ("--as-of", "never")])  # fmt: skip
def test_an_invalid_option_is_refused(option):
    assert run("recall", "x", *option).exit_code == 2


def test_better_matching_inactive_memories_are_counted_with_the_option_that_shows_them():
    args = ("--type", "decision", "--topic", "plan", "--rationale", "room", "--status", "proposed")
    run("remember", "the cache of quaggas", *args)

    result = run("recall", "cache of quaggas", "--limit", "3")
    assert "1 inactive record matches better than the first hit (1 proposed): add --include-inactive\n" in result.stderr
    assert "quaggas" in run("recall", "cache of quaggas", "--include-inactive").stdout
    markdown = run("recall", "cache of quaggas", "--limit", "3", "--format", "md")
    assert markdown.stdout.endswith(
        "1 inactive record matches better than the first hit (1 proposed): add --include-inactive.\n"
    )
    inactive = json.loads(run("recall", "cache of quaggas", "--limit", "3", "--json").stdout)["inactive"]
    assert inactive == {"count": 1, "statuses": {"proposed": 1}, "notice": result.stderr.splitlines()[-1]}


def test_low_scores_are_counted_within_the_limit():
    for number in range(4):
        run("remember", f"quagga number {number}")

    for limit in ("2", "3"):
        result = run("recall", "quagga", "--limit", limit, "--min-score", "1")
        assert f"; {limit} of the best {limit} with a score below 1: --all shows them\n" in result.stderr
        assert result.stderr.startswith("none\n")  # the reason is printed once


def test_a_pending_proposal_as_the_only_match_is_reported_once():
    with jidomem.open() as memory:
        memory.writer.submit_intent("p", intent(summary="quagga in a zoo"), propose=True)

    result = run("recall", "quagga", "--kind", "fact")

    assert result.stderr.startswith("none\n")
    assert result.stderr.endswith("\n1 inactive record matches (1 pending): add --include-inactive\n")
    assert "pending proposals: 1, see: jidomem review" in run("recall", "xylophone", "--kind", "lesson").stderr


def test_recall_without_hits_exits_with_0():
    result = run("recall", "xylophone", "--kind", "lesson")
    first, *others = result.stderr.splitlines()
    assert (result.exit_code, result.stdout, first) == (0, "", "none")
    assert all(line.startswith("nothing here answers this; nearest: ") for line in others)


def test_status_reports_the_text_index_and_the_repair_of_a_damaged_file(root):
    run("recall", "cache")
    assert "up to date; built because there was none" in run("status").stdout

    file = root / "cache" / "text" / "p.sqlite"
    file.write_bytes(b"no database" * 1000)
    assert "built because it was damaged: file is not a database" in run("status").stdout
    assert FACT in run("recall", "cache").stdout


def test_reindex_replaces_a_damaged_text_index(root):
    run("recall", "cache")
    file = root / "cache" / "text" / "p.sqlite"
    file.write_bytes(b"no database" * 1000)
    assert run("root", "reindex").exit_code == 0
    assert file.read_bytes().startswith(b"SQLite format 3")
    assert FACT in run("recall", "cache").stdout


def test_a_recall_is_recorded_in_the_read_log(root):
    run("recall", "cache")
    with jidomem.open(root) as memory:
        assert [entry["in"] for entry in memory.reader.why("p", FACT)["shown"]] == ["recall"]


def test_why_counts_how_often_a_memory_was_shown_to_each_agent(root, monkeypatch):
    for agent in ("ana", "ana", "ben", "ana"):
        monkeypatch.setenv("JIDOMEM_AGENT", agent)
        run("recall", "cache")

    lines = run("show", FACT, "--why").stdout.splitlines()
    shown = [line.split()[2:] for line in lines if line.startswith("shown in")]

    assert sorted((words[0], *words[3:]) for words in shown) == [
        ("recall", "ana", "(the", "last", "of", "3", "times)"),
        ("recall", "ben"),
    ]


def test_texts_without_a_vector_are_counted_with_the_command_that_computes_them(monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    monkeypatch.setattr("jidomem_cli.options.EMBEDS_FOR", 0.0)
    answer = run("recall", "cache")
    assert answer.exit_code == 0
    assert (
        "pieces of text have no vector yet and match by words only: jidomem root reindex makes all\n" in answer.stderr
    )

    assert run("root", "reindex").exit_code == 0
    assert "no vector yet" not in run("recall", "cache").stderr


def test_a_question_is_answered_by_similarity_and_status_and_reindex_report_the_vectors(monkeypatch):
    assert run("remember", "the doctor drives a red car").exit_code == 0
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")

    (vectors,) = json.loads(run("root", "reindex", "--json").stdout)["vectors"].values()
    answer = json.loads(run("recall", "which colour has the physician's automobile?", "--json").stdout)
    assert answer["entries"][0]["content"] == "the doctor drives a red car"
    assert answer["metadata"]["vectors"] == {"model": vectors["model"], "pending": 0, "error": None}
    explained = run("recall", "whose car is red?", "--explain")
    assert explained.exit_code == 0
    assert {"words:", "meaning:", "score"} <= set(explained.stdout.split())
    (project,) = json.loads(run("status", "--json").stdout)["projects"]
    assert project["vectors"] == vectors
    assert f"{vectors['vectors']} by {vectors['model']}" in run("status").stdout

    monkeypatch.setattr("jidomem.models.local_embedder._SHA256", "another")
    monkeypatch.setattr("jidomem.models.local_embedder._read", _read.__wrapped__)
    failed = run("recall", "red car")
    assert "the doctor drives a red car" in failed.stdout
    assert "the embedder failed: " in failed.stderr
    assert run("remember", "the bakery opens at six").exit_code == 0
    assert "1 text may not be compared by meaning yet: near pairs may be missing\n" in run("review").stderr

    monkeypatch.setenv("JIDOMEM_EMBEDDER", "somewhere")
    assert "JIDOMEM_EMBEDDER='somewhere' is none of local, none" in run("recall", "car").stderr


@pytest.fixture
def locked(root, monkeypatch):
    """Return the search file of a killed process, which another one has locked."""
    run("recall", "cache")
    monkeypatch.setattr(search_index, "MAX_AWAITED", 0)
    file = sqlite3.connect(root / "cache" / "text" / "p.sqlite", isolation_level=None, check_same_thread=False)
    file.execute("UPDATE metadata SET value = 'false' WHERE name = 'is_whole'")
    file.execute("UPDATE metadata SET value = '0' WHERE name = 'memories'")
    file.execute("DELETE FROM metadata WHERE name = 'mark'")
    file.execute("BEGIN IMMEDIATE")
    yield file
    file.close()


def test_a_recall_waits_until_a_new_search_index_has_all_memories(locked, monkeypatch):
    locked.execute("DELETE FROM memory")
    locked.execute("DELETE FROM metadata WHERE name IN ('memories', 'length')")
    seconds = count(step=1_000)
    monkeypatch.setattr(search_index, "monotonic_time", lambda: next(seconds))
    Timer(0.5, lambda: locked.execute("COMMIT")).start()
    result = run("recall", "cache")
    assert (result.exit_code, FACT in result.stdout) == (0, True), result.stderr
    assert "were searched" not in result.stderr


@pytest.mark.parametrize("form", ["table", "json", "md"])
def test_a_recall_from_a_part_of_the_memories_exits_with_6_and_says_how_many_were_searched(locked, monkeypatch, form):
    monkeypatch.setattr(cache_file, "BUSY_TIMEOUT", 0.05)
    result = run("recall", "xylophone", "--format", form)
    assert (result.exit_code, result.stdout) == (6, "")
    assert re.search(r"only the memories of \d+ of \d+ commits were searched; try again", result.stderr)
    assert "none" not in result.stderr
