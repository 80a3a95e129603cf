"""The remains of a killed process are those in docs/integrity.md, and are repaired as documented there."""

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import files, intent

import jidomem
from jidomem.journal.journal import Stream
from jidomem.journal.rewrite import redaction_records
from jidomem_cli.main import cli

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "integrity.md"
HERE, SECRET = "torture/test_left_behind.py::", "hunter2-hunter2"
#: Row of the table -> the test that kills a process there.
PROVED_BY = {
    "has a lock": "journal/test_files.py::test_the_turn_of_a_killed_process_is_free_at_once",
    "writes a commit": f"{HERE}test_a_commit_is_absent_or_whole_and_submitting_it_again_settles_which",
    "answers a write": f"{HERE}test_a_commit_is_absent_or_whole_and_submitting_it_again_settles_which",
    "packs": "journal/test_spoiled.py::test_a_sealer_killed_at_any_moment_beside_a_spoiled_file_loses_nothing",
    "redacts": f"{HERE}test_a_redaction_is_finished_by_the_same_command_and_again",
    "quarantines": f"{HERE}test_a_quarantine_is_finished_by_the_same_command",
    "updates the index": "index/test_index_killed.py::"
    "test_processes_killed_at_any_moment_leave_an_index_equal_to_the_journal",
    "fills lists, tallies or search text": f"{HERE}test_lists_and_tallies_are_filled_by_the_next_read",
    "makes vectors": "index/test_vectors.py::test_an_embedding_killed_halfway_is_continued_by_the_next_process",
    "changes working memory": "runtime/test_agent_memory.py::test_updates_acknowledged_before_a_kill_are_kept",
    "runs a job of MemoryOS": "memoryos/test_memory_os_killed.py::"
    "test_an_agent_killed_before_any_change_keeps_each_page_in_one_place_and_completes_its_jobs",
    "copies a shared log": "servers/test_killed_reader.py::"
    "test_a_copy_that_was_cut_short_is_completed_by_the_next_read",
    "imports": f"{HERE}test_an_import_is_finished_by_the_same_command",
    "puts entries back": "servers/test_restored_log.py::test_a_restore_killed_at_any_step_is_finished_by_the_next",
    "migrates or restores": f"{HERE}test_a_move_is_finished_by_the_same_command",
    "backs up or restores": f"{HERE}test_a_backup_is_there_or_not_and_a_restore_is_finished_by_the_same_command",
    "writes another file": f"{HERE}test_another_file_is_the_old_or_the_new_one",
}


def rows():
    """The rows of the table: four cells each."""
    section = PAGE.read_text("utf-8").partition("## What a kill leaves behind\n")[2].partition("\n## ")[0]
    return [row.strip("|").split(" | ") for row in re.findall(r"^\|.*\|$", section, re.MULTILINE)[2:]]


def test_each_row_of_the_table_has_a_test_that_kills_a_process_there():
    assert {len(row) for row in rows()} == {4}
    assert [row[0].strip() for row in rows()] == [*PROVED_BY]
    for test in PROVED_BY.values():
        path, _, name = test.partition("::")
        text = (TESTS / path).read_text("utf-8")
        assert name in {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}, test
        assert re.search(r"SIGKILL|\.kill\(|killed_|KilledCommands", text), test


class KilledCommands:
    """Commands in processes that are killed."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("killed_commands.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, number, *arguments, what="disk"):
        """Run a command that is killed at the change *number*; return None, or its exit code and its changes."""
        own = {name: os.environ[name] for name in ("JIDOMEM_AGENT", "XDG_CONFIG_HOME")}
        self._process.stdin.write(json.dumps([number, what, [*map(str, arguments)], own]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return None if answer == "killed" else answer

    def close(self):
        self._process.communicate()


@pytest.fixture(scope="module")
def killed():
    commands = KilledCommands()
    yield commands
    commands.close()


def run(*arguments):
    """Run a command to its end, and return its output."""
    result = CliRunner().invoke(cli, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A root with two memories; one has a secret, which is also in the history."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "config.toml").write_text('project = "p"\n')
    with jidomem.open(tmp_path / "source", project="p") as memory:
        memory.writer.submit_intent("p", intent(iri="urn:m:secret", summary=f"the door opens with {SECRET}"))
        memory.conversation("s-1", "p").record("how?", f"say {SECRET}", asked_by="ben", answered_by="ana")
        memory.writer.submit_intent("p", intent(summary="the door is blue"))
    return tmp_path / "source"


#: The maximum number of changes at which a command is killed, evenly distributed.
MOST = 10
#: The changes that a command may make or not: it writes a snapshot again if the clock has not moved since the last.
OPTIONAL = 3


def kill_at_each_change(killed, root, arguments, **more):
    """Yield copies of *root*, each after a command with *arguments* of the copy was killed at another change."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    code, changes = killed.run(10**9, *arguments(copy), **more)
    assert (code, changes > 3) == (0, True)
    shutil.rmtree(copy)
    for number in sorted({1 + place * (changes - 1) // (MOST - 1) for place in range(MOST)}):
        shutil.copytree(root, copy)
        ended = killed.run(number, *arguments(copy), **more)
        assert ended is None or (ended[0], number > changes - OPTIONAL) == (0, True)
        yield copy
        shutil.rmtree(copy)


def names(root, pattern):
    return sorted(path.name for path in root.rglob(pattern))


def summaries(root):
    with jidomem.open(root, project="p") as memory:
        assert memory.journal.verify(Stream("p")) == ()
        return sorted(row["summary"] for row in memory.ask("facts"))


def test_a_commit_is_absent_or_whole_and_submitting_it_again_settles_which(killed, root, tmp_path):
    given = tmp_path / "intent.json"
    given.write_text(json.dumps(intent(summary="the door is red", idempotency_key="k")))
    before, states = summaries(root), set()

    for copy in kill_at_each_change(killed, root, lambda copy: ["--root", copy, "submit", given]):
        written = len(names(copy / "projects/p/memory", "*.ttl")) == 3
        left = names(copy, ".incoming.lock")
        assert (summaries(copy) != before) == written
        receipt = json.loads(run("--root", copy, "submit", given, "--json"))
        assert summaries(copy) == sorted([*before, "the door is red"])
        assert names(copy, ".incoming.lock") == []
        states.add((written, bool(left), receipt["status"]))

    assert {(False, True, "asserted"), (True, False, "asserted")} <= states


def test_a_redaction_is_finished_by_the_same_command_and_again(killed, root):
    order = ["journal", "redact", "--text", SECRET, "--reason", "a key"]
    states = set()

    for copy in kill_at_each_change(killed, root, lambda copy: ["--root", copy, *order]):
        with jidomem.open(copy, project="p") as memory:
            records = [*redaction_records(memory.journal.inspect(Stream("p")))]
            shown = [row["summary"] for row in memory.ask("facts")]
        forms = names(copy, "*.redacted.ttl")
        states.add((bool(forms), bool(records), any(SECRET in (text or "") for text in shown)))
        CliRunner().invoke(cli, ["--root", str(copy), *order])  # refused if nothing is left for it
        run("--root", copy, "journal", "redact", "--again", "--reason", "a key")
        run("--root", copy, "ask", "facts")
        run("--root", copy, "journal", "verify")
        assert not [path for path in copy.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]

    assert {(False, False, True), (True, False, False), (True, True, False)} <= states


def test_a_quarantine_is_finished_by_the_same_command(killed, root):
    path = min((root / "projects/p/memory").glob("*.ttl"))
    path.write_bytes(path.read_bytes().replace(b"door", b"gate"))
    order = ["journal", "verify", "--quarantine", path.stem.rpartition("-")[2], "--reason", "the disk failed"]
    states = set()

    for copy in kill_at_each_change(killed, root, lambda copy: ["--root", copy, *order]):
        states.add(bool(names(copy, "*.aside")))
        run("--root", copy, *order)
        assert "set aside by" in run("--root", copy, "journal", "verify")
        assert summaries(copy) == ["the door is blue"]

    assert states == {False, True}


def test_lists_and_tallies_are_filled_by_the_next_read(killed, root):
    def answers(copy):
        return [run("--root", copy, "ask", name, "--json") for name in ("counts", "timeline", "agent-activity")]

    expected, chance = answers(root), random.Random(5)
    shutil.rmtree(root / "cache")
    _, statements = killed.run(10**9, "--root", root, "ask", "counts", what="sql")
    for number in sorted(chance.sample(range(1, statements), 8)):
        shutil.rmtree(root / "cache")
        assert killed.run(number, "--root", root, "ask", "counts", what="sql") is None
        assert answers(root) == expected


def test_a_review_leaves_no_file(killed, root):
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent(summary="the door is green"), propose=True)
    output = run("--root", root, "review")
    before = files(root)

    assert killed.run(0, "--root", root, "review") is None

    assert files(root) == before
    assert run("--root", root, "review") == output


def test_an_import_is_finished_by_the_same_command(killed, root, tmp_path):
    issues = tmp_path / "issues.jsonl"
    rows = [{"id": f"bd-{n}", "title": f"Ship part {n}", "status": "open", "issue_type": "task"} for n in range(3)]
    issues.write_text("".join(json.dumps(row) + "\n" for row in rows))
    states = set()

    for copy in kill_at_each_change(killed, root, lambda copy: ["--root", copy, "root", "import", "beads", issues]):
        states.add(len(names(copy / "projects/p/memory", "*.ttl")))
        run("--root", copy, "root", "import", "beads", issues)
        *entries, _ = map(json.loads, run("--root", copy, "root", "import", "beads", issues, "--json").splitlines())
        assert {entry["change"] for entry in entries} == {"unchanged"}
        proposals = json.loads(run("--root", copy, "ask", "proposals", "--json"))["rows"]
        assert sorted(row["summary"] for row in proposals) == [row["title"] for row in rows]

    assert len(states) > 1


def commits(root):
    with jidomem.open(root, project="p") as memory:
        return {commit.id: commit.data for stream in memory.journal.streams() for commit in memory.journal.read(stream)}


def test_a_move_is_finished_by_the_same_command(killed, root):
    expected, states = commits(root), set()

    for copy in kill_at_each_change(killed, root, lambda copy: ["root", "migrate", copy, copy / "there"]):
        states.add(len(names(copy / "there", "*.ttl")))
        run("root", "migrate", copy, copy / "there")
        assert commits(copy / "there") == expected

    assert states >= {0, 1, len(expected)}


def test_a_backup_is_there_or_not_and_a_restore_is_finished_by_the_same_command(killed, root, tmp_path):
    whole, states = tmp_path / "whole.tar", set()
    run("--root", root, "root", "backup", whole)

    for copy in kill_at_each_change(killed, root, lambda copy: ["--root", copy, "root", "backup", copy / "memory.tar"]):
        left = [path for path in copy.glob(".memory.tar.*") if path.is_dir()]
        states.add((bool(left), (copy / "memory.tar").exists()))
        if not (copy / "memory.tar").exists():
            run("--root", copy, "root", "backup", copy / "memory.tar")
            assert not [*copy.glob(".memory.tar.*")]
        assert (copy / "memory.tar").read_bytes() == whole.read_bytes()
    assert {(True, False), (True, True)} <= states

    for copy in kill_at_each_change(killed, root, lambda copy: ["--root", copy / "there", "root", "restore", whole]):
        run("--root", copy / "there", "root", "restore", whole)
        assert not [*tmp_path.glob(".whole.tar.*")]
        assert commits(copy / "there") == commits(root)


def test_another_file_is_the_old_or_the_new_one(killed, root, tmp_path):
    config = tmp_path / "config" / "jidomem" / "config.toml"
    run("access", "trust", root)
    before, states = config.read_bytes(), set()

    for number in count(1):
        config.write_bytes(before)
        ended = killed.run(number, "access", "trust", root, "--off")
        if ended is not None:
            break
        left = list(config.parent.glob(".config.toml.*.lock"))
        states.add((config.read_bytes() == before, bool(left)))
        for path in left:
            path.unlink()
        if config.read_bytes() == before:
            run("access", "trust", root, "--off")

    assert ended[0] == 0
    assert (True, True) in states
    assert config.read_bytes() != before
