"""A root sets the address of its server only while its user trusts its present content."""

import json
import os

import pytest
from cli_world import run
from conftest import files

from jidomem.errors import Failed
from jidomem.runtime import root_config, user_config
from jidomem.runtime.location import init
from jidomem.runtime.settings import load, own_config


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repo"
    folder.mkdir()
    (init(folder, "p") / "config.toml").write_text('project = "p"\nhost = "::1"\nport = 8705\n')
    monkeypatch.chdir(folder)
    return folder


def refusal_of_load():
    with pytest.raises(Failed) as raised:
        load()
    assert raised.value.code == "invalid_config"
    return raised.value


def test_a_root_sets_its_address_only_while_trusted_and_unchanged(repository):
    before = refusal_of_load()
    trusted = run("access", "trust", ".")
    settings = load()
    (repository / ".jidomem" / "queries" / "curator").mkdir(parents=True)
    (repository / ".jidomem" / "queries" / "curator" / "mine.rq").write_text("SELECT * {}")
    changed = refusal_of_load()

    assert f"jidomem access trust {repository / '.jidomem'}" in before.hint
    assert (trusted.exit_code, (settings.host, settings.port)) == (0, ("::1", 8705))
    assert "changed since you trusted it" in changed.detail
    assert run("access", "trust", repository / ".jidomem").exit_code == 0
    assert load().port == 8705
    assert len(user_config.read(own_config()).trusted) == 1


def test_trust_is_revoked_and_stored_outside_the_root(repository):
    before = files(repository)
    run("access", "trust", ".")

    off = run("access", "trust", ".", "--off", "--json")

    assert files(repository) == before
    assert (json.loads(off.stdout)["trusted"], refusal_of_load().code) == (False, "invalid_config")
    assert run("access", "trust", ".", "--off").exit_code == 4
    assert run("access", "trust", "..").exit_code == 4


def test_a_moved_trusted_root_is_not_trusted(repository, tmp_path, monkeypatch):
    run("access", "trust", ".")
    other = tmp_path / "other"
    other.mkdir()
    os.rename(repository / ".jidomem", other / ".jidomem")
    monkeypatch.chdir(other)

    assert "jidomem access trust" in refusal_of_load().hint


@pytest.mark.parametrize("key", root_config._AUTHORITY)
def test_a_forbidden_setting_is_refused_in_a_trusted_root(repository, key):
    (repository / ".jidomem" / "config.toml").write_text(f'{key} = "http://evil.example"\n')
    run("access", "trust", ".")

    refusal = refusal_of_load()

    assert key in refusal.detail
    assert "jidomem access trust" in refusal.hint
    assert "jidomem access token add" in refusal.hint


@pytest.mark.parametrize("line", ["host = 7", "port = -1", "port = 70000", "port = true", 'port = "8700"'])
def test_an_invalid_host_or_port_is_refused(repository, line):
    (repository / ".jidomem" / "config.toml").write_text(f"{line}\n")
    run("access", "trust", ".")

    assert line.split()[0] in refusal_of_load().detail


def test_a_shared_root_cannot_be_trusted_and_its_password_is_not_printed(repository):
    refusal = run("access", "trust", "postgresql://ana:s3cret@db/team")

    assert refusal.exit_code == 2
    assert "postgresql://ana@db/team" in refusal.stderr
    assert "s3cret" not in refusal.stderr + refusal.stdout
