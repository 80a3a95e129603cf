"""Memories written on a merged branch are checked against the policy that applies after the merge."""

import json
import re
import subprocess

import pytest
from click.testing import CliRunner

import jidomem
from jidomem_cli.main import cli

DECISION = ("--type", "decision", "--topic", "store", "--rationale", "r", "--agent", "bob", "--about", "src/a.py")


def run(*arguments, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in arguments])
    assert result.exit_code == code, result.stdout + result.stderr
    return result.stdout


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


def commit(message):
    git("add", "-A")
    git("commit", "-qm", message)


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    """A repository whose branch `old` is at its first commit; the working directory."""
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")

    def build(folder):
        folder.mkdir()
        monkeypatch.chdir(folder)
        git("init", "-q", "-b", "main")
        run("init")
        (folder / "src").mkdir()
        (folder / "src" / "a.py").touch()
        run("remember", "Seed")
        commit("seed")
        git("branch", "old")

    monkeypatch.chdir(copy_built(build, tmp_path))
    return tmp_path


def restrict():
    run("access", "policy", "grant", "ana", "admin")
    run("access", "policy", "set", "deny", "--kind", "decision", "--about", "src")
    commit("policy")


def run_on_old_branch(*arguments):
    git("checkout", "-q", "old")
    run(*arguments)
    commit("branch")
    git("checkout", "-q", "main")


def problems(*arguments, code=0):
    return json.loads(run("check", "--json", *arguments, code=code))["problems"]


def test_a_merged_decision_without_permission_is_a_violation_that_each_named_command_ends(repository):
    restrict()
    run_on_old_branch("remember", "Use MongoDB", *DECISION)
    git("merge", "-q", "--no-edit", "old")

    (problem,) = problems(code=1)
    assert problem == problems("--since", "HEAD~1", code=1)[0]
    assert problem["rule"].endswith("#AuthorMayAssert")
    assert problem["line"]
    assert "bob may not write this decision: every agent may not write decision about src" in problem["message"]
    first, allow = problem["message"].partition("(after: ")[2].partition(")")[0], problem["message"].rpartition(": ")[2]
    confirm = problem["message"].partition("confirms it: ")[2].partition(";")[0]
    git("branch", "before")
    run(*first.split()[1:])
    run(*confirm.split()[1:])
    assert problems() == []

    git("stash", "-qu")
    run(*allow.split()[1:])
    assert problems() == []


def test_a_decision_forbidden_later_on_another_branch_is_a_warning(repository):
    run("remember", "Use Postgres", *DECISION[:-2], "--about", "src/b.py", "--topic", "older")
    commit("allowed then")
    git("branch", "-f", "old")
    run_on_old_branch("remember", "Use MongoDB", *DECISION)
    restrict()
    git("merge", "-q", "--no-edit", "old")

    (problem,) = problems()
    assert problem["severity"] == "warning"
    assert "recorded later on another branch" in problem["message"]


def test_a_self_granted_role_on_a_merged_branch_is_a_violation_until_an_administrator_undoes_it(repository):
    restrict()
    run_on_old_branch("access", "policy", "grant", "bob", "admin", "--agent", "bob")
    git("merge", "-q", "--no-edit", "old")

    (problem,) = problems(code=1)
    assert "bob may not change the policy: bob has the role Administrator, though ana" in problem["message"]
    changed = problems("--since", "HEAD~1", code=1)
    assert [each["severity"] for each in changed] == ["violation", "warning"]
    assert "the policy changes: bob has the role Administrator (by bob)" in changed[1]["message"]
    undo = problem["message"].partition("undoes it: ")[2].partition(",")[0]
    run(*undo.split()[1:])
    assert problems() == []


def test_a_check_of_a_git_range_warns_of_each_change_of_policy_and_roles(repository):
    restrict()
    with (repository / ".jidomem" / "config.toml").open("a") as config:
        config.write('secrets = "off"\n[agents.rita]\nrole = "Reviewer"\n')

    findings = problems("--since", "HEAD~1")
    lines = (repository / ".jidomem" / "config.toml").read_text().splitlines()
    assert (findings[0]["item"], findings[0]["line"]) == ("config.toml", lines.index('secrets = "off"') + 1)
    assert {each["severity"] for each in findings} == {"warning"}
    assert [each["message"].partition(": see")[0] for each in findings] == [
        "the configuration changes what is permitted (agents and secrets)",
        "the policy changes: ana has the role Administrator (by ana)",
        "the policy changes: every agent may not write decision about src (by ana)",
    ]
    assert problems() == []


def name_in_config(agent, role="Administrator"):
    with open(".jidomem/config.toml", "a") as config:
        config.write(f'[agents.{agent}]\nrole = "{role}"\n')
    commit(f"{agent} in config.toml")


def test_a_role_of_the_configuration_accuses_nobody_who_changed_the_policy_before(repository):
    restrict()
    name_in_config("rita")

    assert problems() == []
    assert [each["severity"] for each in problems("--since", "HEAD~1")] == ["warning"]
    run("access", "policy", "grant", "bob", "curator", "--agent", "rita")
    assert problems() == []


@pytest.mark.parametrize("act", [
    ("access", "policy", "grant", "eve", "admin"),
    ("remember", "Use MongoDB", "--type", "architectural_decision", "--topic", "store", "--rationale", "r"),
])  # fmt: skip
@pytest.mark.parametrize("preset", ["curated", "open"])
def test_what_the_configuration_permits_since_the_revision_is_a_violation_until_undone(repository, act, preset):
    config = repository / ".jidomem" / "config.toml"
    config.write_text(config.read_text() + 'policy = "curated"\n')
    run("access", "policy", "grant", "ana", "admin")
    commit("policy")
    config.write_text(config.read_text().replace("curated", preset))
    name_in_config("eve")
    run(*act, "--agent", "eve")

    (problem,) = [each for each in problems("--since", "HEAD~1", code=1) if each["severity"] == "violation"]
    assert problem["rule"].endswith("#AuthorMayAssert")
    assert "by the configuration before this range, eve may" in problem["message"]
    assert problem["line"]
    name = problem["message"].partition("undoes it: " if act[0] == "access" else "confirms it: ")[2]
    run(*re.split("[,;]", name)[0].split()[1:])
    assert {each["severity"] for each in problems("--since", "HEAD~1")} == {"warning"}


@pytest.mark.parametrize("author", ["rita", "bob"])
def test_a_decision_of_a_curator_by_token_is_allowed_by_the_grant_that_the_finding_names(repository, author):
    run("access", "policy", "grant", "ana", "admin")
    run("access", "policy", "set", "--preset", "curated")
    with jidomem.open(repository / ".jidomem") as memory:
        writer = memory.writer.acting_as("rita", "curator")
        made = writer.remember(
            memory.project,
            "Use SQLite",
            type="architectural_decision",
            topic="store",
            rationale="r",
            asserted_by=author,
        )
    assert made.status == "asserted"

    (problem,) = problems(code=1)
    words, _, grant = problem["message"].rpartition(": ")
    assert words.endswith("if only a server's token made rita a curator, grant that here")
    run(*grant.split()[1:])
    assert problems() == []


def test_an_active_memory_dated_ahead_is_reported(repository):
    with jidomem.open() as memory:
        ahead = memory.remember("the offer ends", timestamp="9999-12-31T23:59:59Z").iri
        memory.remember("the offer began", timestamp="2001-01-01T00:00:00Z")

    (problem,) = problems()

    assert (problem["item"], problem["severity"]) == (ahead, "warning")
    assert "9999-12-31" in problem["message"]
    run("edit", ahead, "--invalidate", "--reason", "a wrong year")
    assert problems() == []
