"""Tokens given out, listed and taken back on the command line."""

import json
import re

import pytest
from cli_world import rows, run, stand_in

from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring


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
    ("args", "code"),
    [
        (["add", "ana", "--role", "boss"], 2),
        (["add", "ana", "--project", "Bad Name"], 4),
        (["add", "ana", "--project", "p", "--all-projects"], 2),
        (["add", "http://[x"], 3),
        (["add"], 2),
    ],
)
def test_what_cannot_be_given_out_is_refused_and_nothing_is_kept(repository, args, code):
    refused = run("access", "token", *args)

    assert (refused.exit_code, refused.stdout) == (code, "")
    assert not own_config().exists()
