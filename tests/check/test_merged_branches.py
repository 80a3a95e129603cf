"""Merged branches that import the same source: a memory written on both is judged as one."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from jidomem_cli.main import cli

RECORD = (
    "# 1. Use {name}\n\n## Status\n\nAccepted\n\n## Context\n\nWe choose.\n\n## Decision\n\nUse {name}, we {why} it.\n"
)
ADR = "docs/adr/0001-store.md"


def run(*args, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in args])
    assert result.exit_code == code, result.stdout + result.stderr
    return result.stdout


def git(*args):
    result = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], check=True, capture_output=True
    )
    return result.stdout.decode()


def commit(message):
    git("add", "-A")
    git("commit", "-qm", message)


def import_sources(agent):
    run("init", "--from", "auto", "--agent", agent)
    commit(agent)


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    """A repository with notes and a decision record, at the branch `other`; the working directory."""

    def build(folder):
        folder.mkdir()
        monkeypatch.chdir(folder)
        git("init", "-q", "-b", "main")
        (folder / "AGENTS.md").write_text("- Run the tests before each commit\n- Always use pathlib\n")
        (folder / ADR).parent.mkdir(parents=True)
        (folder / ADR).write_text(RECORD.format(name="Postgres", why="know"))
        commit("sources")
        git("branch", "other")

    monkeypatch.chdir(copy_built(build, tmp_path))
    return tmp_path


def problems(*args, code=0):
    return json.loads(run("check", "--json", *args, code=code))["problems"]


def test_branches_that_import_the_same_sources_merge_without_findings(repository):
    import_sources("ana")
    git("checkout", "-q", "other")
    git("clean", "-fdxq")
    import_sources("bea")
    git("merge", "-q", "--no-edit", "main")

    assert problems() == problems("--since", "main") == problems("--reference") == []
    rows = json.loads(run("ask", "timeline", "--include-inactive", "--json"))["rows"]
    assert len({(row["item"], row["agent"]) for row in rows}) == len(rows) == 6  # once for each author
    of_kind = json.loads(run("ask", "memories-of-kind", "kind=Decision", "--json"))["rows"]
    assert {row["agent"].rpartition("/")[2] for row in of_kind} == {"ana", "bea"}
    assert len(of_kind) == 2


def test_branches_that_import_the_same_change_merge_without_findings(repository):
    import_sources("ana")
    (repository / "AGENTS.md").write_text("- Run the tests before each commit\n- Always use attrs\n")
    commit("notes")
    git("checkout", "-q", "-B", "other")
    import_sources("ana")
    git("checkout", "-q", "main")
    import_sources("bea")
    git("merge", "-q", "--no-edit", "other")

    assert problems() == []


def test_a_record_imported_with_different_texts_is_a_violation_that_its_command_ends(repository):
    import_sources("ana")
    git("checkout", "-q", "other")
    git("clean", "-fdxq")
    (repository / ADR).write_text(RECORD.format(name="Postgres", why="love"))
    import_sources("bea")
    git("merge", "-q", "--no-edit", "main")

    (problem,) = [each for each in problems(code=1) if each["severity"] == "violation"]
    assert "two branches wrote this memory with different rationale: write anew what holds" in problem["message"]
    assert "--confirm --reason WHY, or --supersede TEXT --reason WHY" in problem["message"]
    command = problem["message"].partition("jidomem ")[2].partition(",")[0].split()
    run(*command, "--agent", "ana")

    assert problems() == []


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("why", ["hate", "love", "habit"])
def test_another_import_of_a_record_settles_the_texts_of_two_branches(repository, is_known, why):
    if is_known:
        import_sources("ana")
        git("branch", "-f", "other")
    (repository / ADR).write_text(RECORD.format(name="Postgres", why="love"))
    import_sources("ana")
    git("checkout", "-q", "other")
    git("clean", "-fdxq")
    (repository / ADR).write_text(RECORD.format(name="Postgres", why="hate"))
    import_sources("bea")
    git("merge", "-q", "--no-edit", "-X", "ours", "main")
    (repository / ADR).write_text(RECORD.format(name="Postgres", why=why))
    (before,) = (each["rule"] for each in problems(code=1) if each["severity"] == "violation")

    import_sources("ana")

    assert before.endswith("SupersessionHasOneEnd" if is_known else "NothingInForceDisagrees")
    assert problems() == []
    (row,) = json.loads(run("ask", "decisions", "--json"))["rows"]
    assert f"we {why} it" in run("show", row["decision"])
