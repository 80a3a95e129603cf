"""Imported decision records at the command line: review, lists and history after their files change."""

import json

import pytest
from cli_world import rows, run

RECORD = """# {title}

- Status: {status}
- Date: {date}

## Context

We need it.

## Considered Options

- float
- Decimal

## Decision

We {title}.
"""


def write(folder, name, **fields):
    values = {"status": "Accepted", "date": "2025-01-14", **fields}
    (folder / "docs" / "adr" / f"{name}.md").write_text(RECORD.format(**values))


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    """Return a repository with three records, whose changes ana reviews."""
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")

    def build(folder):
        (folder / "docs" / "adr").mkdir(parents=True)
        monkeypatch.chdir(folder)
        write(folder, "0001-use-postgres", title="use PostgreSQL for parcels")
        write(folder, "0002-use-cents", title="use cents")
        write(folder, "0003-use-queues", title="use queues", status="Proposed")
        assert run("init", "--from", "auto").exit_code == 0
        for words in (["grant", "ana", "admin"], ["set", "--preset", "curated"]):
            assert run("access", "policy", *words).exit_code == 0

    monkeypatch.chdir(copy_built(build, tmp_path))
    return tmp_path


def propose_change(repository, name, **fields):
    """Write the record again, import it as bob, who may only propose, and return the proposal."""
    write(repository, name, **fields)
    assert run("init", "--from", "auto", "--agent", "bob").exit_code == 0
    (row,) = rows("review")
    return row["item"]


def test_a_change_of_status_is_reviewed_and_applied_to_the_decision(repository):
    proposal = propose_change(repository, "0001-use-postgres", title="use PostgreSQL for parcels", status="Rejected")

    lines = [line.strip() for line in run("review").stdout.splitlines()]
    rejected, accepted = (
        [row["decision"] for row in rows("ask", "decisions", "--status", status)] for status in ("rejected", "accepted")
    )
    result = run("review", "accept", proposal)

    assert lines[2:4] == ["was: status: accepted", "now: status: rejected"]
    assert (rejected, len(accepted)) == ([], 2)  # the change is pending
    assert result.stderr.splitlines()[-1] == "the decision is rejected, and not active"
    assert [row["decision"] for row in rows("ask", "decisions", "--status", "rejected")] == [result.stdout.strip()]


def test_a_proposed_withdrawal_shows_the_memory_and_the_reason_below_its_row(repository):
    (repository / "docs" / "adr" / "0001-use-postgres.md").unlink()
    assert run("init", "--from", "auto", "--agent", "bob").exit_code == 0

    _, _, below, reason = run("review").stdout.splitlines()

    assert below.partition(": ")[2] == "use PostgreSQL for parcels"
    assert reason.startswith("    reason: ")


def test_the_alternatives_of_an_accepted_record_are_not_pending(repository):
    proposal = propose_change(repository, "0002-use-cents", title="use integer cents")

    assert run("review", "accept", proposal).exit_code == 0

    assert rows("review") == []
    assert rows("ask", "proposals") == []
    message, *others = run("review").stderr.splitlines()
    assert (message[:45], others) == (
        "1 recorded decision has the status proposed; ",
        ["nothing to review", "texts are not compared by meaning, as there are no vectors: near pairs are missing"],
    )  # the record 0003


def test_a_recorded_proposed_decision_is_accepted_by_the_command_in_the_refusal(repository):
    refused = run("review", "accept", "0003")
    command = refused.stderr.splitlines()[-1].partition(": jidomem ")[2]

    assert (refused.exit_code, "with the status proposed" in refused.stderr) == (2, True)
    assert run(*command.split()).exit_code == 0
    assert "use queues" in [row["summary"] for row in rows("ask", "decisions")]


def test_the_session_of_an_import_begins_with_the_import(repository):
    (session,) = rows("agent", "session", "list")

    assert session["start"] == json.loads(run("show", "0001", "--json").stdout)["recorded_at"]


def test_versions_of_one_commit_are_listed_oldest_first_with_the_date_of_the_record(repository):
    write(repository, "0004-use-redis", title="use Redis", status="Superseded by [ADR-0005](0005-use-cookies.md)")
    write(repository, "0005-use-cookies", title="use cookies", date="2025-02-14")
    write(repository, "0006-use-tokens", title="use tokens", status="Superseded by [ADR-0007](0007-use-keys.md)")
    write(repository, "0007-use-keys", title="use keys", date="2025-02-14")
    assert run("init", "--from", "auto").exit_code == 0

    for name in ("0005", "0007"):
        versions = rows("show", name, "--history")
        assert [row["event"] for row in versions] == ["asserted", "revised"]
        assert len({row["recorded"] for row in versions}) == 1
    assert "    dated: 2025-02-14\n" in run("show", "0005", "--history").stdout


def test_a_history_in_markdown_has_events_and_changed_fields(repository):
    assert run("edit", "0001", "--set", "topic=database").exit_code == 0

    head, _, _, last = run("show", "0001", "--history", "--format", "md").stdout.splitlines()

    assert ("event" in head, "changes" in head) == (True, True)
    assert ("| revised |" in last, "-> database" in last) == (True, True)


def test_show_distinguishes_the_status_of_a_decision_from_the_status_of_its_memory(repository):
    lines = run("show", "0003").stdout.splitlines()

    assert [line.split("  ")[0] for line in lines if "status" in line.split("  ")[0]] == ["status", "decision status"]


def test_only_the_newest_version_of_a_proposal_is_offered_and_accepted(repository):
    old = propose_change(repository, "0004-use-rust", title="use Rust")
    write(repository, "0004-use-rust", title="use Rust", status="Rejected")
    assert run("init", "--from", "auto", "--agent", "bob").exit_code == 0

    offered = run("review")
    refused = run("review", "accept", old)
    (new,) = (row["item"] for row in rows("review") if row["type"] == "architectural_decision" and row["item"] != old)
    accepted = run("review", "accept", new)

    assert f"accept {new[-8:]}" in offered.stderr
    assert f"accept {old[-8:]}" not in offered.stderr
    assert f"a newer version is pending: {new[-8:]}" in offered.stdout
    assert "was: status: accepted\n    now: status: rejected" in offered.stdout
    assert (refused.exit_code, refused.stderr.splitlines()[0].endswith(new[-8:])) == (2, True)
    assert f"jidomem review accept {new[-8:]}" in refused.stderr
    assert accepted.stderr.splitlines()[-1] == "the decision is rejected, and not active"


def test_an_older_version_is_accepted_once_the_newer_one_is_rejected(repository):
    old = propose_change(repository, "0004-use-rust", title="use Rust")
    write(repository, "0004-use-rust", title="use Rust", status="Rejected")
    assert run("init", "--from", "auto", "--agent", "bob").exit_code == 0
    (new,) = (row["item"] for row in rows("review") if row["type"] == "architectural_decision" and row["item"] != old)

    assert run("review", "reject", new).exit_code == 0

    assert run("review", "accept", old).exit_code == 0
