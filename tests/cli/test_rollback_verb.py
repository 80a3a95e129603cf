"""`jidomem journal rollback` as text, as JSON and on a terminal."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import create_repository, rows, run

JIDOMEM = Path(sys.executable).with_name("jidomem")
ROLLBACK = ("journal", "rollback", "--to", "2026-11-21T08:00:10Z", "--agent", "curator")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository in which, after the moment of BACK, a decision was superseded and a fact was recorded."""
    folder = create_repository(tmp_path / "repo", monkeypatch)
    assert run("edit", "1a2b3c4d", "--supersede", "Use Redis", "--reason", "it is there").exit_code == 0
    assert run("remember", "noise").exit_code == 0
    return folder


def decisions():
    return [row["summary"] for row in rows("ask", "decisions")]


def test_a_dry_run_shows_each_correction_and_writes_nothing(repository):
    preview = run(*ROLLBACK, "--reason", "an experiment", "--dry-run")

    assert preview.exit_code == 0
    assert [line.split()[0] for line in preview.stdout.splitlines()[1:]] == ["withdrawn", "withdrawn", "restated"]
    assert "1 restated, 2 withdrawn; nothing was written" in preview.stderr
    assert "Use Redis" in decisions()


def test_a_rollback_with_yes_restores_the_past_decisions_and_reports_corrections_as_json(repository):  # C117
    report = json.loads(run(*ROLLBACK, "--reason", "an experiment", "--yes", "--json").stdout)

    assert [correction["change"] for correction in report["corrections"]] == ["withdrawn", "withdrawn", "restated"]
    assert report["commit"] == rows("journal", "log", "--limit", "1")[0]["commit"]
    assert report["session"] in [row["session"] for row in rows("agent", "session", "list", "--all")]
    assert "Use Oxigraph 0.4" in decisions()
    assert "Use Redis" not in decisions()
    second = run(*ROLLBACK, "--reason", "an experiment", "--yes")
    assert "nothing to correct" in second.stderr


def test_a_rollback_to_a_redacted_decision_names_its_repaired_version_and_the_command_that_restores_it(repository):
    redaction = ("journal", "redact", "1a2b3c4d", "--property", "rationale", "--reason", "a name", "--agent", "curator")
    assert run(*redaction).exit_code == 0

    preview = run(*ROLLBACK, "--reason", "an experiment", "--dry-run")
    done = run(*ROLLBACK, "--reason", "an experiment", "--yes")

    (line,) = [line for line in done.stderr.splitlines() if line.startswith("lost: ")]
    assert line in preview.stderr.splitlines()
    assert line.startswith("lost: a redaction removed the text of 1a2b3c4d; ")
    assert decisions() == ["One journal a project"]
    command = line.partition("then: jidomem ")[2].replace("TEXT", "repaired").split()
    assert run(*command).exit_code == 0
    assert decisions() == ["Use Redis", "One journal a project"]


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        ((), "add --reason", 2),
        (("--reason", "why"), "show it with --dry-run, then add --yes", 2),
        (("--reason", "why", "--yes", "--agent", "bob"), "bob, an Implementer, may not roll a memory back", 3),
        (("--reason", "why", "--yes", "--to", "77-abcdef"), "has no version 77-abcdef", 4),
    ],
)
def test_a_missing_or_forbidden_argument_is_refused(repository, options, message, code):
    refused = run(*ROLLBACK, *options)

    assert (refused.exit_code, message in refused.stderr) == (code, True), refused.stderr
    assert "Use Redis" in decisions()


@pytest.mark.parametrize(("answer", "decision"), [(b"y\n", "Use Oxigraph 0.4"), (b"n\n", "Use Redis")])
def test_a_rollback_on_a_terminal_shows_its_corrections_and_asks_for_confirmation(repository, answer, decision):
    master, terminal = pty.openpty()
    os.write(master, answer)

    result = subprocess.run(
        [JIDOMEM, *ROLLBACK, "--reason", "an experiment"], stdin=terminal, capture_output=True, text=True, check=False
    )

    os.close(master)
    os.close(terminal)
    assert "withdrawn" in result.stdout
    assert "Do this?" in result.stderr
    assert [text for text in decisions() if text.startswith("Use")] == [decision]
