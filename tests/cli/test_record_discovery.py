"""`jidomem init --from auto`: the skipped files, and the dates of imported records."""

import json
import os
import re
import subprocess

import cli_world
import pytest

RECORD = "# {title}\n\n{date}\n\n## Status\n\nAccepted\n\n## Context\n\nBursts.\n\n## Decision\n\nWe do.\n"


def git(*words, when="2018-03-02T12:00:00Z"):
    author = {f"GIT_{who}_{what}": "ana@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    subprocess.run(["git", *words], env={**os.environ, **author, **dates}, check=True, capture_output=True)


def run(*words):
    result = cli_world.run(*words)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a record in an empty repository, the working directory."""
    monkeypatch.chdir(tmp_path)
    git("init", "-q")

    def write(name, title="Use a queue", date=""):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(RECORD.format(title=title, date=date))

    return write


def test_skipped_files_are_listed_with_the_reason_by_folder_and_singly_with_verbose_and_json(write, tmp_path):
    write("docs/adr/0001-a.md")
    for number in range(2, 7):
        write(f"docs/adr/000{number}-b.adoc")
    (tmp_path / "docs/adr/notes.md").write_text("# Notes\n\nWe talked.\n")

    words = ("init", "--from", "auto", "--dry-run")
    result, verbose, skipped = run(*words), run(*words, "-v"), json.loads(run(*words, "--json").stdout)["passed"]

    lines = [line for line in result.stderr.splitlines() if line.startswith("skipped: ")]
    assert lines == [
        "skipped: docs/adr/notes.md: not a decision record (no 'Decision' or 'Decision Outcome' section)",
        "skipped: docs/adr/ (0002-b.adoc, 0003-b.adoc and 3 more): AsciiDoc is not read, only Markdown",
    ]
    assert {f"skipped: {each['path']}: {each['why']}" for each in skipped} == {
        line for line in verbose.stderr.splitlines() if line.startswith("skipped: ")
    }
    assert len(skipped) == 6


def test_a_record_has_its_own_date_or_that_of_its_first_commit(write):
    write("docs/adr/0001-a.md", "Dated", "Date: 2016-02-12")
    write("notes/0002-b.md", "Committed")
    git("add", ".")
    git("commit", "-q", "-m", "two records")
    git("mv", "notes/0002-b.md", "docs/adr/0002-c.md")
    git("commit", "-q", "-m", "move one", when="2020-01-01T12:00:00Z")
    run("init", "--from", "auto")

    rows = json.loads(run("ask", "decision-log", "--json").stdout)["rows"]

    assert [row["timestamp"][:10] for row in rows] == ["2016-02-12", "2018-03-02"]


def test_why_distinguishes_the_date_of_a_decision_from_the_date_of_its_import(write):
    write("docs/adr/0001-a.md", "Dated", "Date: 2016-02-12")
    run("init", "--from", "auto", "--agent", "ana", "--session", "import")

    explanation = json.loads(run("show", "--why", "0001", "--json").stdout)
    lines = dict(line.split(maxsplit=1) for line in run("show", "--why", "0001").stdout.splitlines())

    recorded = f"{explanation['recorded_at'][:10]} {explanation['recorded_at'][11:19]}Z"
    assert not recorded.startswith("2016")
    assert lines["decided"] == "2016-02-12"
    assert lines["recorded"] == f"{recorded} by ana in session import"


def test_records_imported_by_name_are_dated_by_their_first_commit(write):
    write("docs/adr/0001-a.md")
    git("add", ".")
    git("commit", "-q", "-m", "a record")
    run("init")
    run("root", "import", "adr", "docs/adr/0001-a.md")

    (row,) = json.loads(run("ask", "decision-log", "--json").stdout)["rows"]

    assert row["timestamp"].startswith("2018-03-02T12:00:00")


def test_a_record_without_a_date_has_none_and_is_listed_last(write):
    write("docs/adr/0001-a.md", "Dated", "Date: 2016-02-12")
    write("docs/adr/0002-b.md", "Undated")
    run("init", "--from", "auto")

    rows = json.loads(run("ask", "recent-decisions", "--json").stdout)["rows"]

    assert [(row["summary"], row["time"] and row["time"][:10]) for row in rows] == [
        ("Dated", "2016-02-12"),
        ("Undated", None),
    ]
    assert "date unknown" in run("show", "--why", rows[1]["decision"]).stdout
    assert "no findings" in run("check").stderr
    assert run("init", "--from", "auto", "--json").exit_code == 0


def test_the_withdrawal_of_a_removed_note_is_counted_by_each_later_import(write, tmp_path):
    notes = tmp_path / "CLAUDE.md"
    rules = (
        "- Use tabs for indentation\n- Keep it small",
        "- Use tabs for indentation",
        "- Use spaces for indentation",
    )
    texts = [f"# Rules\n\n{each}\n" for each in rules]
    notes.write_text(texts[0])
    run("init", "--from", "auto")
    run("access", "policy", "grant", "user", "admin")
    run("review", "accept", "--all")
    run("remember", "the shop is open", "--agent", "bob")

    for text, pending in zip(texts[1:], (1, 2), strict=True):
        notes.write_text(text)
        result = run("init", "--from", "auto")

        (row,) = (line.split() for line in result.stdout.splitlines() if line.startswith("CLAUDE.md"))
        assert row[-1] == str(pending)
        noun = "proposal" if pending == 1 else "proposals"
        assert re.search(rf"review {pending} pending {noun}$", result.stderr, re.MULTILINE)
