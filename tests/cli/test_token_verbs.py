"""Tokens are created, listed and removed at the command line."""

import json
import re
from datetime import datetime, timedelta

import pytest
from cli_world import create_repository, rows, run

import jidomem
from jidomem.base.clock import Sources, format_timestamp, now
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app
from jidomem.serve.server_state import HTTP, Operation


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return create_repository(tmp_path / "repo", monkeypatch)


def test_a_token_is_printed_once_and_listed_without_its_secret(repository):
    added = run("access", "token", "add", "ana", "--role", "curator", "--project", "p", "--project", "q")

    secret = added.stdout.strip()
    (row,) = rows("access", "token", "list")
    assert re.fullmatch(r"jido_[A-Za-z0-9_-]{43}", secret)
    assert "it is not shown again" in added.stderr
    assert (row["agent"], row["role"], row["projects"]) == ("ana", "curator", ["p", "q"])
    assert row["root"] == str(repository / ".jidomem")
    assert secret not in json.dumps(row)
    assert Keyring(own_config(), repository / ".jidomem").find(secret).id == row["id"]


def test_the_token_list_has_the_last_use_of_each_token_while_the_server_runs(repository):
    secret, unused = (run("access", "token", "add", name).stdout.strip() for name in ("ana", "ben"))
    root = repository / ".jidomem"

    def last_uses():
        return {row["agent"]: row["last_used"] for row in rows("access", "token", "list")}

    with jidomem.open(root) as memory:
        operation = Operation()
        operation.keep_counts(memory.interface_log, HTTP)
        client = create_app(memory, keyring=Keyring(own_config(), root), operation=operation).test_client()
        before, began = last_uses(), format_timestamp(now())
        for token in (secret, "jido_unknown"):
            client.get("/projects", headers={"Authorization": f"Bearer {token}"})
        assert operation.ledger.save()
        first = last_uses()
        client.get("/projects", headers={"Authorization": f"Bearer {secret}"})
        assert operation.ledger.save()
        third = last_uses()  # it is stored at most once a minute
        operation.close()
    last, state = last_uses(), b"".join(path.read_bytes() for path in (root / "state").iterdir())

    assert before == {"ana": "", "ben": ""}
    assert (first["ana"] >= began, first["ben"]) == (True, "")
    assert third == first
    assert last["ana"] > first["ana"]
    assert secret.encode() not in state
    assert unused.encode() not in state


def test_a_token_is_for_the_project_of_the_root_by_default(repository):
    run("access", "token", "add", "ana")
    run("--project", "r", "access", "token", "add", "ben")
    run("access", "token", "add", "ci", "--role", "reader", "--all-projects")

    assert [row["projects"] for row in rows("access", "token", "list")] == [["p"], ["r"], ["*"]]


def test_a_removed_token_is_not_listed(repository):
    token = json.loads(run("access", "token", "add", "ana", "--json").stdout)

    removed = run("access", "token", "remove", token["id"])

    assert (removed.exit_code, removed.stdout) == (0, "")
    assert rows("access", "token", "list") == []
    assert run("access", "token", "remove", token["id"]).exit_code == 4


def test_the_name_of_an_agent_in_place_of_an_id_is_refused_with_the_commands_that_revoke_its_tokens(repository):
    ids = [json.loads(run("access", "token", "add", name, "--json").stdout)["id"] for name in ("ana", "ben", "ana")]

    refused = run("access", "token", "remove", "ana")

    assert (refused.exit_code, "error: 'ana' is an agent, not the id of a token\n" in refused.stderr) == (4, True)
    commands = refused.stderr.partition("hint: ")[2].split("; ")
    assert [run(*command.split()[1:]).exit_code for command in commands] == [0, 0]
    assert [row["id"] for row in rows("access", "token", "list")] == [ids[1]]


@pytest.mark.parametrize("command", [("token", "add", ""), ("policy", "grant", "", "admin")])
def test_the_refusal_of_an_empty_agent_names_the_argument(repository, command):
    refused = run("access", *command)

    assert (refused.exit_code, refused.stderr.splitlines()[1]) == (3, "hint: correct AGENT and resubmit")


def test_a_token_of_a_moved_root_is_listed_and_removed_at_the_named_root_alone(repository, tmp_path):
    here, there = repository / ".jidomem", tmp_path / "there"
    run("remember", "the build needs Rust 1.80")
    secret, token = Keyring(own_config(), here).issue("ana", "agent", ["p"], Sources())
    run("root", "migrate", str(here), str(there))

    ambiguous = run("access", "token", "remove", token.id)
    unknown = run("access", "token", "remove", "nosuch")

    assert (ambiguous.exit_code, unknown.exit_code) == (2, 4)
    assert f"jidomem access token remove {token.id} --root {here};" in ambiguous.stderr
    assert "list the ids: jidomem access token list\n" in unknown.stderr
    assert [row["root"] for row in rows("access", "token", "list")] == [str(here), str(there)]
    assert [row["root"] for row in rows("access", "token", "list", "--root", str(there))] == [str(there)]

    removed = run("access", "token", "remove", token.id, "--root", str(here))

    assert f"revoked: {token.id} of ana, for {here}\n" in removed.stderr
    assert Keyring(own_config(), here).find(secret) is None
    assert Keyring(own_config(), there).find(secret).agent == "ana"
    assert run("access", "token", "remove", token.id).exit_code == 0


@pytest.mark.parametrize(
    ("option", "end"), [("2100-12-31", "2101-01-01T00:00"), ("2100-12-31T08:00Z", "2100-12-31T08:00")]
)
def test_a_token_expires_at_the_end_of_a_day_or_at_a_moment(repository, option, end):
    run("access", "token", "add", "ana", "--expires", option)

    (row,) = rows("access", "token", "list")
    assert row["expires"].startswith(end)


def test_a_token_expires_after_a_number_of_days(repository):
    result = run("access", "token", "add", "ana", "--expires", "90")

    (row,) = rows("access", "token", "list")
    assert f"until {row['expires']}" in result.stderr
    validity = datetime.fromisoformat(row["expires"]) - datetime.fromisoformat(row["added"])
    assert timedelta(days=89, hours=23) < validity <= timedelta(days=90)


def test_a_token_for_an_unknown_project_has_a_warning(repository):
    run("remember", "the build needs Rust 1.80", "--project", "billing")

    result = run("access", "token", "add", "ana", "--project", "billlng", "--project", "billing", "--project", "p")

    assert result.exit_code == 0
    assert re.findall(r"no project '(\w+)'.*there is (.+)", result.stderr) == [("billlng", "billing")]


def test_a_warning_of_an_unknown_project_has_each_known_one_once(repository):
    run("remember", "the build needs Rust 1.80")

    result = run("access", "token", "add", "ana", "--project", "p", "--project", "kitchen")

    assert (
        result.stderr.splitlines()[0] == f"warning: no project 'kitchen' in {repository / '.jidomem'} yet; there is p"
    )


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
def test_an_invalid_token_request_is_refused_and_nothing_is_stored(repository, args, code):
    refused = run("access", "token", *args)

    assert (refused.exit_code, refused.stdout) == (code, "")
    assert not own_config().exists()
