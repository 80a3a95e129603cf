"""What a root may say of where it is served: nothing, until its user has trusted it as it is."""

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


def refused():
    with pytest.raises(Failed) as refusal:
        load()
    assert refusal.value.code == "invalid_config"
    return refusal.value


def test_a_root_says_where_it_is_served_once_it_is_trusted_and_until_it_changes(repository):
    before = refused()
    trusted = run("access", "trust", ".")
    found = load()
    (repository / ".jidomem" / "queries" / "curator").mkdir(parents=True)
    (repository / ".jidomem" / "queries" / "curator" / "mine.rq").write_text("SELECT * {}")
    changed = refused()

    assert f"jidomem access trust {repository / '.jidomem'}" in before.hint
    assert (trusted.exit_code, (found.host, found.port)) == (0, ("::1", 8705))
    assert "changed since you trusted it" in changed.detail
    assert run("access", "trust", repository / ".jidomem").exit_code == 0
    assert load().port == 8705
    assert len(user_config.read(own_config()).trusted) == 1


def test_trust_is_taken_back_and_lies_in_nothing_of_the_root(repository):
    before = files(repository)
    run("access", "trust", ".")

    off = run("access", "trust", ".", "--off", "--json")

    assert files(repository) == before
    assert (json.loads(off.stdout)["trusted"], refused().code) == (False, "invalid_config")
    assert run("access", "trust", ".", "--off").exit_code == 4
    assert run("access", "trust", "..").exit_code == 4


def test_a_copy_of_a_trusted_root_is_not_trusted(repository, tmp_path, monkeypatch):
    run("access", "trust", ".")
    other = tmp_path / "other"
    other.mkdir()
    os.rename(repository / ".jidomem", other / ".jidomem")
    monkeypatch.chdir(other)

    assert "jidomem access trust" in refused().hint


@pytest.mark.parametrize("key", root_config._AUTHORITY)
def test_what_no_root_may_set_is_refused_in_a_trusted_one_too(repository, key):
    (repository / ".jidomem" / "config.toml").write_text(f'{key} = "http://evil.example"\n')
    run("access", "trust", ".")

    refusal = refused()

    assert key in refusal.detail
    assert "jidomem access trust" in refusal.hint
    assert "jidomem access token add" in refusal.hint


@pytest.mark.parametrize("line", ["host = 7", "port = -1", "port = 70000", "port = true", 'port = "8700"'])
def test_a_place_that_is_none_is_refused(repository, line):
    (repository / ".jidomem" / "config.toml").write_text(f"{line}\n")
    run("access", "trust", ".")

    assert line.split()[0] in refused().detail


def test_a_shared_root_is_not_trusted_and_its_password_is_not_shown(repository):
    refusal = run("access", "trust", "postgresql://ana:s3cret@db/team")

    assert refusal.exit_code == 2
    assert "postgresql://ana@db/team" in refusal.stderr
    assert "s3cret" not in refusal.stderr + refusal.stdout
