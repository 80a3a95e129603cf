"""Secrets in the journal: reported by check with their line, and never shown."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import intent

import jidomem
from jidomem.entries import Entry
from jidomem.records.entry import WriteRequest
from jidomem.runtime.location import init
from jidomem_cli.main import cli

TOKEN = "ghp_" + "a1B2" * 9
PASSWORD = "hunter2-Xy7!"
CONFIG = Path(".jidomem/config.toml")
BASELINE = Path(".jidomem/baseline.toml")


def run(*arguments, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in arguments])
    assert result.exit_code == code, result.stdout + result.stderr
    return result


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


def set_secret_policy(policy):
    CONFIG.write_text(f'project = "p"\nsecrets = "{policy}"\n')


def record(**fields):
    set_secret_policy("off")
    with jidomem.open(".jidomem") as memory:
        recorded = memory.writer.submit_intent("p", intent(evidence=[], **fields)).iri
    set_secret_policy("refuse")
    return recorded


def problems(*arguments, code=1):
    findings = json.loads(run("check", "--json", *arguments, code=code).stdout)["problems"]
    return [each for each in findings if each["rule"].endswith("#NothingLooksSecret")]


def waive(item):
    BASELINE.write_text(
        f'[[waiver]]\nrule = "NothingLooksSecret"\nitem = "{item}"\nreason = "rotated"\nuntil = 2099-01-01\n'
    )


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    def build(folder):
        folder.mkdir()
        monkeypatch.chdir(folder)
        git("init", "-q", "-b", "main")
        init(folder, "p")
        record(summary="clean")

    monkeypatch.chdir(copy_built(build, tmp_path))
    return tmp_path


def test_a_secret_in_the_journal_is_a_violation_at_its_line_and_is_not_shown(repository):
    item = record(summary="how to deploy", rationale=f"the token is {TOKEN}")

    (problem,) = problems()

    assert (problem["item"], problem["severity"]) == (item, "violation")
    assert TOKEN in Path(problem["path"]).read_text().splitlines()[problem["line"] - 1]
    assert "rationale seems to contain a GitHub token, at character 13: ****" in problem["message"]
    for form in ("text", "json", "sarif", "junit", "github"):
        result = run("check", "--format", form, code=1)
        assert "NothingLooksSecret" in result.stdout
        assert TOKEN[4:] not in result.stdout + result.stderr


def test_a_waiver_of_a_secret_hides_its_finding_unless_all_secrets_are_requested(repository):
    item = record(summary=f"password = {PASSWORD}")
    (problem,) = problems()
    waive(problem["item"])

    assert problem["item"] == item
    assert problems(code=0) == []
    newer = record(summary=f"the token is {TOKEN}")
    assert [each["item"] for each in problems()] == [newer]
    assert {each["item"] for each in problems("--secrets")} == {item, newer}


def test_since_screens_its_range_unless_all_secrets_are_requested(repository):
    old = record(summary=f"the token is {TOKEN}")
    git("add", "-A")
    git("commit", "-qm", "begin")
    assert problems("--since", "HEAD", code=0) == []
    new = record(summary=f"password = {PASSWORD}")

    assert [each["item"] for each in problems("--since", "HEAD")] == [new]
    assert {each["item"] for each in problems("--since", "HEAD", "--secrets")} == {old, new}


def test_the_secret_policy_of_the_root_sets_the_severity_of_a_secret(repository):
    record(summary=f"the token is {TOKEN}")

    set_secret_policy("warn")
    assert [each["severity"] for each in problems(code=0)] == ["warning"]
    set_secret_policy("off")
    assert problems(code=0) == []
    assert [each["severity"] for each in problems("--secrets")] == ["violation"]


def test_a_secret_in_an_iri_is_reported_with_its_commit_and_not_shown(repository):
    record(summary="x", iri=f"https://example.org/{TOKEN}")

    findings = problems()
    result = run("check", code=1)

    assert {each["item"].startswith("urn:jido:commit:") for each in findings} == {True}
    assert all(each["path"] and each["line"] for each in findings)
    assert TOKEN[4:] not in result.stdout + result.stderr + json.dumps(findings)
    waive(findings[0]["item"])
    assert problems(code=0) == []


def test_entries_of_agents_are_screened(repository):
    set_secret_policy("off")
    with jidomem.open(".jidomem") as memory:
        memory.entries.write(WriteRequest(Entry(agent_id="ana", content=f"the token is {TOKEN}")))
    set_secret_policy("refuse")

    findings = problems()

    assert findings
    assert all("/history/" in each["path"] for each in findings)
    assert TOKEN[4:] not in json.dumps(findings)


def test_the_command_of_a_finding_redacts_the_secret(repository):
    item = record(summary="how to deploy", rationale=f"the token is {TOKEN}")
    (problem,) = problems()
    command = problem["message"].rpartition("jidomem ")[2].replace("TEXT", "leaked").split()

    assert command[:3] == ["journal", "redact", item]
    run(*command)

    assert problems(code=0) == []


def test_packed_commits_are_screened_and_idempotency_keys_are_no_secrets(repository):
    with jidomem.open(".jidomem") as memory:
        writer = memory.writer
        for number in range(5):
            writer.submit_intent(
                "p", intent(summary=f"fact {number}", idempotency_key=f"{number}aB3dE6gH9jK2mN5pQ8sT1vW4yZ7")
            )
    item = record(summary=f"the token is {TOKEN}")
    run("journal", "pack")

    assert [each["item"] for each in problems()] == [item]


def test_the_option_secrets_is_refused_for_files(repository):
    assert "--secrets is for the journal" in run("check", "--secrets", CONFIG, code=2).stderr
