"""The user's own configuration: tokens kept by a digest alone, in a file nobody else may read."""

import os
import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from conftest import fixed_sources

from jidomem.errors import Failed, InvalidRequest, NotFound, Unauthenticated
from jidomem.runtime import user_config
from jidomem.runtime.tokens import Keyring, take_back
from jidomem.runtime.user_config import ApiToken, Trusted, UserConfig


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config" / "jidomem" / "config.toml"


@pytest.fixture
def keyring(path, tmp_path):
    return Keyring(path, tmp_path / "root")


def test_a_token_is_told_once_and_only_its_digest_is_kept_where_nobody_else_reads(keyring, path):
    secret, made = keyring.give_out("ana", "agent", ["q", "p", "p"], fixed_sources())

    text = path.read_text()
    assert re.fullmatch(r"jido_[A-Za-z0-9_-]{43}", secret)
    assert (secret in text, secret[5:] in text) == (False, False)
    assert tomllib.loads(text)["tokens"] == [
        {
            "digest": user_config.digest(secret),
            "agent": "ana",
            "role": "agent",
            "projects": ["p", "q"],
            "root": made.root,
            "added": "2026-11-21T08:00:00.000000Z",
        }
    ]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert {file.name for file in path.parent.iterdir()} == {"config.toml", "config.toml.lock"}
    assert keyring.whose(secret) == made


def test_one_that_is_almost_a_token_is_none(keyring):
    secret, _ = keyring.give_out("ana", "agent", ["p"], fixed_sources())

    for wrong in (secret[:-1], secret + "x", secret.upper(), "", user_config.digest(secret), secret + "\0"):
        assert keyring.whose(wrong) is None


def test_what_it_says_is_said_again_whatever_the_texts_hold(path):
    odd = 'a "quoted"\\\n\t\x00\x7fé 😀 ]'
    said = UserConfig((ApiToken("0" * 64, odd, "reader", (odd, "p"), odd, odd),), (Trusted(odd, odd, odd),))

    user_config.change(path, lambda _: said)

    assert user_config.read(path) == said


def test_changes_made_at_once_are_all_kept(keyring, path):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: keyring.give_out(f"a{n}", "agent", ["p"], own_sources(n))[1], range(40)))

    assert sorted(user_config.read(path).tokens, key=str) == sorted(made, key=str)


def own_sources(number):
    return replace(fixed_sources(), nonce=lambda: number.to_bytes(32, "big"))


def test_a_token_taken_back_is_gone_and_an_unknown_one_is_answered_with_those_there_are(keyring, path):
    secret, made = keyring.give_out("ana", "agent", ["p"], fixed_sources())

    assert keyring.whose(secret) == made
    with pytest.raises(NotFound) as unknown:
        take_back(path, "00000000")
    assert (unknown.value.hint, take_back(path, made.id)) == (f"there is {made.id}", made)
    assert (keyring.whose(secret), keyring.asks()) == (None, True)


def test_a_root_whose_last_token_was_taken_back_stays_closed_until_its_owner_opens_it(keyring, path, tmp_path):
    _, first = keyring.give_out("ana", "agent", ["p"], fixed_sources())
    other = Keyring(path, tmp_path / "other")
    keyring.take_back(first.id)

    assert (Keyring(path, tmp_path / "root").is_needed, other.asks()) == (True, False)
    _, second = keyring.give_out("ana", "agent", ["p"], fixed_sources())
    assert user_config.read(path).closed == ()
    take_back(path, second.id)
    assert user_config.read(path).closed == (str(tmp_path / "root"),)
    user_config.change(path, lambda config: replace(config, closed=()))
    assert Keyring(path, tmp_path / "root").is_needed is False


def test_a_token_ends_at_its_moment_and_one_without_is_written_as_before(keyring, path):
    past, future = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    over, ended = keyring.give_out("ana", "agent", ["p"], own_sources(1), expires=past)
    lasting, valid = keyring.give_out("ben", "agent", ["p"], own_sources(2), expires=future)
    keyring.give_out("eve", "agent", ["p"], own_sources(3))

    with pytest.raises(Unauthenticated, match=f"the token {ended.id} has expired"):
        keyring.whose(over)
    assert (keyring.has(ended), keyring.has(valid), keyring.whose(lasting)) == (False, True, valid)
    assert user_config.read(path).tokens[1].expires.startswith("2100-01-01T00:00:00")
    assert path.read_text().count("expires") == 2


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_may_read_or_write_is_refused(keyring, path, mode):
    keyring.give_out("ana", "agent", ["p"], fixed_sources())
    path.chmod(mode)

    for using in (lambda: user_config.read(path), lambda: keyring.whose("x"), lambda: take_back(path, "x")):
        with pytest.raises(Failed) as refused:
            using()
        assert refused.value.code == "invalid_config"
    with pytest.raises(Failed) as refused:
        Keyring(path, path.parent)
    assert refused.value.hint == f"chmod 600 {path}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(keyring, path):
    keyring.give_out("ana", "agent", ["p"], fixed_sources())
    os.chown(path, 12345, -1)

    with pytest.raises(Failed, match="belongs to another user"):
        user_config.read(path)


@pytest.mark.parametrize(
    "text",
    [
        "tokens = ",
        "tokens = 7",
        "[[tokens]]",
        "[[token]]",
        "[tokens]\nagent = 'x'",
        "[[trusted]]\nroot = 7\ndigest = ''\nadded = ''",
        "[[tokens]]\ndigest=''\nagent=''\nrole='boss'\nprojects=[]\nroot=''\nadded=''",
        "[[tokens]]\ndigest=''\nagent=''\nrole='agent'\nprojects='p'\nroot=''\nadded=''",
        "[[tokens]]\ndigest=''\nagent=''\nrole='agent'\nprojects=[7]\nroot=''\nadded=''",
        "\xff",
    ],
)
def test_what_it_cannot_say_is_an_error_that_names_the_file(path, text):
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    path.chmod(0o600)

    with pytest.raises(Failed) as refused:
        user_config.read(path)

    assert refused.value.code == "invalid_config"
    assert str(path) in refused.value.detail
    assert refused.value.hint


def test_a_role_or_a_project_that_is_none_gives_out_nothing(keyring, path):
    with pytest.raises(InvalidRequest, match="is not a role of a token"):
        keyring.give_out("ana", "boss", ["p"], fixed_sources())
    with pytest.raises(NotFound) as refused:
        keyring.give_out("ana", "agent", ["Bad Name"], fixed_sources())

    assert refused.value.code == "invalid_project"
    assert not path.exists()
