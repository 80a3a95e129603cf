"""Tokens given out, listed and taken back on the command line."""

import json
import re
from datetime import datetime, timedelta

import pytest
from cli_world import rows, run, stand_in

import jidomem
from jidomem.base.clock import format_timestamp, now
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.server_state import HTTP, Operation


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return stand_in(tmp_path / "repo", monkeypatch)


def test_a_token_is_printed_alone_and_listed_without_what_it_is(repository):
    added = run("access", "token", "add", "ana", "--role", "curator", "--project", "p", "--project", "q")

    secret = added.stdout.strip()
    (row,) = rows("access", "token", "list")
    assert re.fullmatch(r"jido_[A-Za-z0-9_-]{43}", secret)
    assert "it is not shown again" in added.stderr
    assert (row["agent"], row["role"], row["projects"]) == ("ana", "curator", ["p", "q"])
    assert row["root"] == str(repository / ".jidomem")
    assert secret not in json.dumps(row)
    assert Keyring(own_config(), repository / ".jidomem").whose(secret).id == row["id"]


def test_the_list_has_the_last_use_of_each_token_while_the_server_runs(repository):
    secret, unused = (run("access", "token", "add", name).stdout.strip() for name in ("ana", "ben"))
    root = repository / ".jidomem"

    def used():
        return {row["agent"]: row["last_used"] for row in rows("access", "token", "list")}

    with jidomem.open(root) as memory:
        operation = Operation()
        operation.keep_counts(memory.door_log, HTTP)
        client = create_app(memory, keyring=Keyring(own_config(), root), operation=operation).test_client()
        before, began = used(), format_timestamp(now())
        for token in (secret, "jido_unknown"):
            client.get("/projects", headers={"Authorization": f"Bearer {token}"})
        assert operation.ledger.keep()
        first = used()
        client.get("/projects", headers={"Authorization": f"Bearer {secret}"})
        assert operation.ledger.keep()
        again = used()  # at most once a minute
        operation.close()
    last, state = used(), b"".join(path.read_bytes() for path in (root / "state").iterdir())

    assert before == {"ana": "", "ben": ""}
    assert (first["ana"] >= began, first["ben"]) == (True, "")
    assert again == first
    assert last["ana"] > first["ana"]
    assert secret.encode() not in state
    assert unused.encode() not in state


def test_it_reaches_the_project_of_the_root_unless_said_otherwise(repository):
    run("access", "token", "add", "ana")
    run("--project", "r", "access", "token", "add", "ben")
    run("access", "token", "add", "ci", "--role", "reader", "--all-projects")

    assert [row["projects"] for row in rows("access", "token", "list")] == [["p"], ["r"], ["*"]]


def test_one_taken_back_is_no_longer_listed(repository):
    made = json.loads(run("access", "token", "add", "ana", "--json").stdout)

    gone = run("access", "token", "remove", made["id"])

    assert (gone.exit_code, gone.stdout) == (0, "")
    assert rows("access", "token", "list") == []
    assert run("access", "token", "remove", made["id"]).exit_code == 4


@pytest.mark.parametrize(
    ("given", "end"), [("2100-12-31", "2101-01-01T00:00"), ("2100-12-31T08:00Z", "2100-12-31T08:00")]
)
def test_a_token_may_end_with_a_day_or_at_a_moment(repository, given, end):
    run("access", "token", "add", "ana", "--expires", given)

    (row,) = rows("access", "token", "list")
    assert row["expires"].startswith(end)


def test_a_token_may_end_after_some_days(repository):
    told = run("access", "token", "add", "ana", "--expires", "90")

    (row,) = rows("access", "token", "list")
    assert f"until {row['expires']}" in told.stderr
    left = datetime.fromisoformat(row["expires"]) - datetime.fromisoformat(row["added"])
    assert timedelta(days=89, hours=23) < left <= timedelta(days=90)


def test_a_token_for_a_project_that_is_not_there_has_a_warning(repository):
    run("remember", "the build needs Rust 1.80", "--project", "billing")

    told = run("access", "token", "add", "ana", "--project", "billlng", "--project", "billing", "--project", "p")

    assert told.exit_code == 0
    assert re.findall(r"no project '(\w+)'.*there is (\w+)", told.stderr) == [("billlng", "billing")]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["add", "ana", "--role", "boss"], 2),
        (["add", "ana", "--project", "Bad Name"], 4),
        (["add", "ana", "--project", "p", "--all-projects"], 2),
        (["add", "ana", "--expires", "soon"], 2),
        (["add", "ana", "--expires", "0"], 2),
        (["add", "ana", "--expires", "2020-01-01"], 2),
        (["add", "http://[x"], 3),
        (["add"], 2),
    ],
)
def test_what_cannot_be_given_out_is_refused_and_nothing_is_kept(repository, args, code):
    refused = run("access", "token", *args)

    assert (refused.exit_code, refused.stdout) == (code, "")
    assert not own_config().exists()
