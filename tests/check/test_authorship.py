"""A merge brings what an agent could write on its branch: check judges it by the policy that applies afterwards."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from jidomem_cli.main import cli

DECISION = ("--type", "decision", "--topic", "store", "--rationale", "r", "--agent", "bob", "--about", "src/a.py")


def run(*words, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.stdout + result.stderr
    return result.stdout


def git(*words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)


def commit(what):
    git("add", "-A")
    git("commit", "-qm", what)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository whose branch `old` is at its first commit; the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    git("init", "-q", "-b", "main")
    run("init")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").touch()
    run("remember", "Seed")
    commit("seed")
    git("branch", "old")
    return tmp_path


def restrict():
    run("access", "policy", "grant", "ana", "admin")
    run("access", "policy", "set", "deny", "--kind", "decision", "--about", "src")
    commit("policy")


def on_branch(*words):
    git("checkout", "-q", "old")
    run(*words)
    commit("branch")
    git("checkout", "-q", "main")


def problems(*words, code=0):
    return json.loads(run("check", "--json", *words, code=code))["problems"]


def test_a_merged_decision_that_its_author_may_not_assert_is_a_violation_and_each_command_settles_it(repository):
    restrict()
    on_branch("remember", "Use MongoDB", *DECISION)
    git("merge", "-q", "--no-edit", "old")

    (found,) = problems(code=1)
    assert found == problems("--since", "HEAD~1", code=1)[0]
    assert found["rule"].endswith("#AuthorMayAssert")
    assert found["line"]
    assert "bob may not write this decision: every agent may not write decision about src" in found["message"]
    first, allow = found["message"].partition("(after: ")[2].partition(")")[0], found["message"].rpartition(": ")[2]
    confirm = found["message"].partition("confirms it: ")[2].partition(";")[0]
    git("branch", "before")
    run(*first.split()[1:])
    run(*confirm.split()[1:])
    assert problems() == []

    git("stash", "-qu")
    run(*allow.split()[1:])
    assert problems() == []


def test_a_rule_recorded_later_on_another_branch_is_a_warning_and_one_on_top_is_none(repository):
    run("remember", "Use Postgres", *DECISION[:-2], "--about", "src/b.py", "--topic", "older")
    commit("allowed then")
    git("branch", "-f", "old")
    on_branch("remember", "Use MongoDB", *DECISION)
    restrict()
    git("merge", "-q", "--no-edit", "old")

    (found,) = problems()
    assert found["severity"] == "warning"
    assert "recorded later on another branch" in found["message"]


def test_a_role_that_an_agent_gave_itself_on_a_branch_is_a_violation_until_an_administrator_decides(repository):
    restrict()
    on_branch("access", "policy", "grant", "bob", "admin", "--agent", "bob")
    git("merge", "-q", "--no-edit", "old")

    (found,) = problems(code=1)
    assert "bob may not change the policy: bob has the role Administrator, though ana" in found["message"]
    seen = problems("--since", "HEAD~1", code=1)
    assert [each["severity"] for each in seen] == ["violation", "warning"]
    assert "the policy changes: bob has the role Administrator (by bob)" in seen[1]["message"]
    undo = found["message"].partition("undoes it: ")[2].partition(",")[0]
    run(*undo.split()[1:])
    assert problems() == []


def test_a_range_names_each_change_of_the_policy_and_of_the_roles_in_the_configuration(repository):
    restrict()
    with (repository / ".jidomem" / "config.toml").open("a") as config:
        config.write('\n[agents.rita]\nrole = "Reviewer"\n')

    found = problems("--since", "HEAD~1")
    assert {each["severity"] for each in found} == {"warning"}
    assert [each["message"].partition(": see")[0] for each in found] == [
        "the roles or the policy change (agents)",
        "the policy changes: ana has the role Administrator (by ana)",
        "the policy changes: every agent may not write decision about src (by ana)",
    ]
    assert problems() == []
