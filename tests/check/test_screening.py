"""Secrets that are in the journal already: found by check where they stand, and never shown."""

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


def run(*words, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.stdout + result.stderr
    return result


def git(*words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)


def let(policy):
    CONFIG.write_text(f'project = "p"\nsecrets = "{policy}"\n')


def keep(**fields):
    let("off")
    with jidomem.open(".jidomem") as memory:
        kept = memory.writer.submit_intent("p", intent(evidence=[], **fields)).iri
    let("refuse")
    return kept


def problems(*words, code=1):
    found = json.loads(run("check", "--json", *words, code=code).stdout)["problems"]
    return [each for each in found if each["rule"].endswith("#NothingLooksSecret")]


def waive(item):
    BASELINE.write_text(
        f'[[waiver]]\nrule = "NothingLooksSecret"\nitem = "{item}"\nreason = "rotated"\nuntil = 2099-01-01\n'
    )


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    git("init", "-q", "-b", "main")
    init(tmp_path, "p")
    keep(summary="clean")
    return tmp_path


def test_a_secret_in_the_journal_is_a_violation_at_its_line_and_is_not_shown(repository):
    item = keep(summary="how to deploy", rationale=f"the token is {TOKEN}")

    (found,) = problems()

    assert (found["item"], found["severity"]) == (item, "violation")
    assert TOKEN in Path(found["path"]).read_text().splitlines()[found["line"] - 1]
    assert "rationale seems to contain a GitHub token, at character 13: ****" in found["message"]
    for form in ("text", "json", "sarif", "junit", "github"):
        result = run("check", "--format", form, code=1)
        assert "NothingLooksSecret" in result.stdout
        assert TOKEN[4:] not in result.stdout + result.stderr


def test_a_waiver_names_the_memory_and_not_the_secret_and_all_are_shown_when_asked_for(repository):
    item = keep(summary=f"password = {PASSWORD}")
    (found,) = problems()
    waive(found["item"])

    assert found["item"] == item
    assert problems(code=0) == []
    newer = keep(summary=f"the token is {TOKEN}")
    assert [each["item"] for each in problems()] == [newer]
    assert {each["item"] for each in problems("--secrets")} == {item, newer}


def test_since_screens_its_range_and_all_of_it_is_screened_when_asked_for(repository):
    old = keep(summary=f"the token is {TOKEN}")
    git("add", "-A")
    git("commit", "-qm", "begin")
    assert problems("--since", "HEAD", code=0) == []
    new = keep(summary=f"password = {PASSWORD}")

    assert [each["item"] for each in problems("--since", "HEAD")] == [new]
    assert {each["item"] for each in problems("--since", "HEAD", "--secrets")} == {old, new}


def test_the_policy_of_the_root_says_what_a_secret_counts_for(repository):
    keep(summary=f"the token is {TOKEN}")

    let("warn")
    assert [each["severity"] for each in problems(code=0)] == ["warning"]
    let("off")
    assert problems(code=0) == []
    assert [each["severity"] for each in problems("--secrets")] == ["violation"]


def test_a_name_that_holds_a_secret_is_reported_by_the_commit_it_is_in(repository):
    keep(summary="x", iri=f"https://example.org/{TOKEN}")

    found = problems()
    shown = run("check", code=1)

    assert {each["item"].startswith("urn:jido:commit:") for each in found} == {True}
    assert all(each["path"] and each["line"] for each in found)
    assert TOKEN[4:] not in shown.stdout + shown.stderr + json.dumps(found)
    waive(found[0]["item"])
    assert problems(code=0) == []


def test_what_agents_hold_in_a_project_is_screened_as_well(repository):
    let("off")
    with jidomem.open(".jidomem") as memory:
        memory.entries.write(WriteRequest(Entry(agent_id="ana", content=f"the token is {TOKEN}")))
    let("refuse")

    found = problems()

    assert found
    assert all("/history/" in each["path"] for each in found)
    assert TOKEN[4:] not in json.dumps(found)


def test_a_secret_that_was_redacted_is_no_longer_found(repository):
    item = keep(summary="how to deploy", rationale=f"the token is {TOKEN}")
    (found,) = problems()
    command = found["message"].rpartition("jidomem ")[2].replace("TEXT", "leaked").split()

    assert command[:3] == ["journal", "redact", item]
    run(*command)

    assert problems(code=0) == []


def test_a_pack_is_screened_and_digests_are_no_secrets(repository):
    with jidomem.open(".jidomem") as memory:
        writer = memory.writer
        for number in range(5):
            writer.submit_intent(
                "p", intent(summary=f"fact {number}", idempotency_key=f"{number}aB3dE6gH9jK2mN5pQ8sT1vW4yZ7")
            )
    item = keep(summary=f"the token is {TOKEN}")
    run("journal", "pack")

    assert [each["item"] for each in problems()] == [item]


def test_secrets_of_files_are_not_asked_for(repository):
    assert "--secrets is for the journal" in run("check", "--secrets", CONFIG, code=2).stderr
