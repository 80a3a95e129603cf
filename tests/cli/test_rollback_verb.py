"""`jidomem journal rollback` as a person and a program use it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import rows, run, stand_in

JIDOMEM = Path(sys.executable).with_name("jidomem")
BACK = ("journal", "rollback", "--to", "2026-11-21T08:00:10Z", "--agent", "curator")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A memory in which, after that moment, a decision was replaced and a fact came."""
    folder = stand_in(tmp_path / "repo", monkeypatch)
    assert run("edit", "1a2b3c4d", "--supersede", "Use Redis", "--reason", "it is there").exit_code == 0
    assert run("remember", "noise").exit_code == 0
    return folder


def decisions():
    return [row["summary"] for row in rows("ask", "decisions")]


def test_a_dry_run_shows_each_correction_and_keeps_nothing(repository):
    shown = run(*BACK, "--reason", "an experiment", "--dry-run")

    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == ["withdrawn", "withdrawn", "restated"]
    assert "1 restated, 2 withdrawn; nothing was written" in shown.stderr
    assert "Use Redis" in decisions()


def test_with_yes_it_is_done_and_a_program_reads_what_was(repository):  # C117
    done = json.loads(run(*BACK, "--reason", "an experiment", "--yes", "--json").stdout)

    assert [found["change"] for found in done["corrections"]] == ["withdrawn", "withdrawn", "restated"]
    assert done["commit"] == rows("journal", "log", "--limit", "1")[0]["commit"]
    assert done["session"] in [row["session"] for row in rows("agent", "session", "list", "--all")]
    assert "Use Oxigraph 0.4" in decisions()
    assert "Use Redis" not in decisions()
    again = run(*BACK, "--reason", "an experiment", "--yes")
    assert "nothing to correct" in again.stderr


@pytest.mark.parametrize(
    ("more", "says", "code"),
    [
        ((), "add --reason", 2),
        (("--reason", "why"), "show it with --dry-run, then add --yes", 2),
        (("--reason", "why", "--yes", "--agent", "bob"), "bob, an Implementer, may not roll a memory back", 3),
        (("--reason", "why", "--yes", "--to", "77-abcdef"), "has no version 77-abcdef", 4),
    ],
)
def test_what_is_not_given_or_not_allowed_is_refused(repository, more, says, code):
    refused = run(*BACK, *more)

    assert (refused.exit_code, says in refused.stderr) == (code, True), refused.stderr
    assert "Use Redis" in decisions()


@pytest.mark.parametrize(("answer", "kept"), [(b"y\n", "Use Oxigraph 0.4"), (b"n\n", "Use Redis")])
def test_at_a_terminal_it_shows_what_it_will_do_and_asks(repository, answer, kept):
    master, terminal = pty.openpty()
    os.write(master, answer)

    asked = subprocess.run(
        [JIDOMEM, *BACK, "--reason", "an experiment"], stdin=terminal, capture_output=True, text=True, check=False
    )

    os.close(master)
    os.close(terminal)
    assert "withdrawn" in asked.stdout
    assert "Do this?" in asked.stderr
    assert [text for text in decisions() if text.startswith("Use")] == [kept]
