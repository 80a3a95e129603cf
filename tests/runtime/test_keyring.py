"""The user's configuration: tokens are stored by their digest, in a file that only the user may read."""

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
from jidomem.runtime.tokens import Keyring, revoke_token
from jidomem.runtime.user_config import ApiToken, TrustedRoot, UserConfig


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config" / "jidomem" / "config.toml"


@pytest.fixture
def keyring(path, tmp_path):
    return Keyring(path, tmp_path / "root")


def test_a_token_is_returned_once_and_only_its_digest_is_stored_in_a_private_file(keyring, path):
    secret, token = keyring.issue("ana", "agent", ["q", "p", "p"], fixed_sources())

    text = path.read_text()
    assert re.fullmatch(r"jido_[A-Za-z0-9_-]{43}", secret)
    assert (secret in text, secret[5:] in text) == (False, False)
    assert tomllib.loads(text)["tokens"] == [
        {
            "digest": user_config.digest(secret),
            "agent": "ana",
            "role": "agent",
            "projects": ["p", "q"],
            "root": token.root,
            "added": "2026-11-21T08:00:00.000000Z",
        }
    ]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert {file.name for file in path.parent.iterdir()} == {"config.toml", "config.toml.lock"}
    assert keyring.find(secret) == token


def test_a_modified_token_is_not_accepted(keyring):
    secret, _ = keyring.issue("ana", "agent", ["p"], fixed_sources())

    for modified in (secret[:-1], secret + "x", secret.upper(), "", user_config.digest(secret), secret + "\0"):
        assert keyring.find(modified) is None


def test_a_configuration_with_unusual_texts_is_read_back_equal(path):
    odd = 'a "quoted"\\\n\t\x00\x7fé 😀 ]'
    configuration = UserConfig(
        (ApiToken("0" * 64, odd, "reader", (odd, "p"), odd, odd),), (TrustedRoot(odd, odd, odd),)
    )

    user_config.change(path, lambda _: configuration)

    assert user_config.read(path) == configuration


def test_concurrent_changes_are_all_stored(keyring, path):
    with ThreadPoolExecutor(8) as threads:
        tokens = list(threads.map(lambda n: keyring.issue(f"a{n}", "agent", ["p"], own_sources(n))[1], range(40)))

    assert sorted(user_config.read(path).tokens, key=str) == sorted(tokens, key=str)


def own_sources(number):
    return replace(fixed_sources(), nonce=lambda: number.to_bytes(32, "big"))


def test_a_removed_token_is_invalid_and_an_unknown_id_is_refused(keyring, path):
    secret, token = keyring.issue("ana", "agent", ["p"], fixed_sources())

    assert keyring.find(secret) == token
    with pytest.raises(NotFound) as unknown:
        revoke_token(path, "00000000")
    assert unknown.value.hint == "list the ids: jidomem access token list"
    assert revoke_token(path, token.id) == token
    assert (keyring.find(secret), keyring.requires_token()) == (None, True)


def test_a_root_with_its_last_token_removed_requires_a_token_until_its_owner_opens_it(keyring, path, tmp_path):
    _, first = keyring.issue("ana", "agent", ["p"], fixed_sources())
    other = Keyring(path, tmp_path / "other")
    keyring.revoke(first.id)

    assert (Keyring(path, tmp_path / "root").is_needed, other.requires_token()) == (True, False)
    _, second = keyring.issue("ana", "agent", ["p"], fixed_sources())
    assert user_config.read(path).closed == ()
    revoke_token(path, second.id)
    assert user_config.read(path).closed == (str(tmp_path / "root"),)
    user_config.change(path, lambda config: replace(config, closed=()))
    assert Keyring(path, tmp_path / "root").is_needed is False


def test_a_token_expires_at_its_time_and_one_without_expiry_is_stored_without_it(keyring, path):
    past, future = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    expired_secret, expired = keyring.issue("ana", "agent", ["p"], own_sources(1), expires=past)
    valid_secret, valid = keyring.issue("ben", "agent", ["p"], own_sources(2), expires=future)
    keyring.issue("eve", "agent", ["p"], own_sources(3))

    with pytest.raises(Unauthenticated, match=f"the token {expired.id} has expired"):
        keyring.find(expired_secret)
    assert (keyring.has(expired), keyring.has(valid), keyring.find(valid_secret)) == (False, True, valid)
    assert user_config.read(path).tokens[1].expires.startswith("2100-01-01T00:00:00")
    assert path.read_text().count("\nexpires = ") == 2


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_can_read_or_write_is_refused(keyring, path, mode):
    keyring.issue("ana", "agent", ["p"], fixed_sources())
    path.chmod(mode)

    for access in (lambda: user_config.read(path), lambda: keyring.find("x"), lambda: revoke_token(path, "x")):
        with pytest.raises(Failed) as refusal:
            access()
        assert refusal.value.code == "invalid_config"
    with pytest.raises(Failed) as refusal:
        Keyring(path, path.parent)
    assert refusal.value.hint == f"chmod 600 {path}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(keyring, path):
    keyring.issue("ana", "agent", ["p"], fixed_sources())
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
def test_an_invalid_configuration_is_refused_with_the_name_of_its_file(path, text):
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    path.chmod(0o600)

    with pytest.raises(Failed) as refusal:
        user_config.read(path)

    assert refusal.value.code == "invalid_config"
    assert str(path) in refusal.value.detail
    assert refusal.value.hint


def test_an_invalid_role_or_project_creates_no_token(keyring, path):
    with pytest.raises(InvalidRequest, match="is not a role of a token"):
        keyring.issue("ana", "boss", ["p"], fixed_sources())
    with pytest.raises(NotFound) as refusal:
        keyring.issue("ana", "agent", ["Bad Name"], fixed_sources())

    assert refusal.value.code == "invalid_project"
    assert not path.exists()
