"""Two branches that import the same source are merged: what they wrote twice is judged as one memory."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from jidomem_cli.main import cli

RECORD = (
    "# 1. Use {name}\n\n## Status\n\nAccepted\n\n## Context\n\nWe choose.\n\n## Decision\n\nUse {name}, we {why} it.\n"
)
ADR = "docs/adr/0001-store.md"


def run(*words, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.stdout + result.stderr
    return result.stdout


def git(*words):
    done = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)
    return done.stdout.decode()


def commit(what):
    git("add", "-A")
    git("commit", "-qm", what)


def adopt(agent):
    run("init", "--from", "auto", "--agent", agent)
    commit(agent)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with notes and a decision record, at the branch `other`; the working directory."""
    monkeypatch.chdir(tmp_path)
    git("init", "-q", "-b", "main")
    (tmp_path / "AGENTS.md").write_text("- Run the tests before each commit\n- Always use pathlib\n")
    (tmp_path / ADR).parent.mkdir(parents=True)
    (tmp_path / ADR).write_text(RECORD.format(name="Postgres", why="know"))
    commit("sources")
    git("branch", "other")
    return tmp_path


def problems(*words, code=0):
    return json.loads(run("check", "--json", *words, code=code))["problems"]


def test_two_branches_that_import_the_same_sources_merge_clean(repository):
    adopt("ana")
    git("checkout", "-q", "other")
    git("clean", "-fdxq")
    adopt("bea")
    git("merge", "-q", "--no-edit", "main")

    assert problems() == problems("--since", "main") == problems("--reference") == []
    rows = json.loads(run("ask", "timeline", "--include-inactive", "--json"))["rows"]
    assert len({(row["item"], row["agent"]) for row in rows}) == len(rows) == 6  # once for each author


def test_a_memory_in_use_merges_clean_when_two_branches_import_the_same_change(repository):
    adopt("ana")
    (repository / "AGENTS.md").write_text("- Run the tests before each commit\n- Always use attrs\n")
    commit("notes")
    git("checkout", "-q", "-B", "other")
    adopt("ana")
    git("checkout", "-q", "main")
    adopt("bea")
    git("merge", "-q", "--no-edit", "other")

    assert problems() == []


def test_a_record_that_two_branches_imported_with_different_text_is_one_finding_which_confirming_ends(repository):
    adopt("ana")
    git("checkout", "-q", "other")
    git("clean", "-fdxq")
    (repository / ADR).write_text(RECORD.format(name="Postgres", why="love"))
    adopt("bea")
    git("merge", "-q", "--no-edit", "main")

    (problem,) = [each for each in problems(code=1) if each["severity"] == "violation"]
    assert "two branches wrote this memory with different rationale: write anew what holds" in problem["message"]
    command = problem["message"].partition("jidomem ")[2].partition(",")[0].split()
    run(*command, "--agent", "ana")

    assert problems() == []
