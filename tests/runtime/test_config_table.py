"""Every fault of a configuration has one form: file, table, key, value, and what to write instead."""

from dataclasses import fields
from pathlib import Path

import pytest
from platformdirs import user_config_dir

from jidomem.base.clock import now
from jidomem.errors import Failed
from jidomem.runtime import settings
from jidomem.runtime.root_config import trust
from jidomem.runtime.user_config import RootLimits

ENDPOINT = '[embedder]\nuse = "endpoint"\n'


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    path = settings.own_config()
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    return path


def refusal(path, content, root):
    path.write_text(content)
    with pytest.raises(Failed) as refused:
        settings.load(root)
    assert refused.value.code == "invalid_config"
    file, _, detail = refused.value.detail.partition(": ")
    assert file == str(path)
    return detail, refused.value.hint


@pytest.mark.parametrize(
    ("content", "detail", "hint"),
    [
        ("strikt = true", "strikt is not known here", "did you mean 'strict'?"),
        ("strict = 1", "strict = 1 is not true or false", "write strict = true"),
        ("port = 70_000", "port = 70000 is not a whole number from 0 to 65,535", "write port = 8700"),
        ("host = 127", "host = 127 is not a text", 'write host = "127.0.0.1"'),
        (
            'project = "My Käse"',
            'project = "My Käse" is not a project id: a-z, 0-9, - and _, at most 64',
            'write project = "my-kase"',
        ),
        ("agents = 2026-11-28", "agents is not a table", "write [agents]"),
        ("[agents.ana]\nroll = 1", "agents.ana.roll is not known here", "did you mean 'role'?"),
        (
            '[agents.ana]\nrole = "reviewer"',
            'agents.ana.role = "reviewer" is not one of ',
            "did you mean 'Reviewer'?",
        ),
        (
            "[agents.ana]\ncapabilities = []",
            "agents.ana.capabilities = [] is not a list of at least one of ",
            None,
        ),
        ("[conflicts]\ndecisions = 1", "conflicts.decisions is not known here", "did you mean 'decision'?"),
    ],
)
def test_a_fault_in_the_file_of_a_root_names_the_key_its_value_and_what_to_write(root, own, content, detail, hint):
    own.write_text("")
    if content.startswith(("host", "port")):  # they need trust, and are not looked at without it
        (root / "config.toml").write_text(content)
        trust(own, root, now())
    told, shown = refusal(root / "config.toml", content, root)

    assert told.startswith(detail)
    assert hint is None or shown == hint


@pytest.mark.parametrize(
    ("content", "detail", "hint"),
    [
        ("limit = 1", "limit is not known here", "did you mean 'limits'?"),
        ("[limits]\nquerys = 1", "limits.querys is not known here", "did you mean 'queries'?"),
        ("[limits]\nqueries = 0", "limits.queries = 0 is not a whole number from 1 to 256", "write queries = 4"),
        (
            "[limits]\nidle_seconds = inf",
            "limits.idle_seconds = inf is not a number from 0.1 to 3,600",
            "write idle_seconds = 10",
        ),
        (
            '[embedder]\nuse = "lokal"',
            'embedder.use = "lokal" is not one of local, endpoint, none',
            "did you mean 'local'?",
        ),
        (
            f"{ENDPOINT}dimensions = '768'",
            'embedder.dimensions = "768" is not a whole number from 1 to 65,536',
            "write dimensions = 768",
        ),
        (f"{ENDPOINT}model = {['x' * 50] * 9}", f'embedder.model = ["{"x" * 50}", "{"x" * 44}... is not a text', None),
        ('[[trusted]]\nroot = "/r"\ndigest = "0"', "trusted.added is missing", 'write added = "..."'),
        ("index = 1", "index = 1 is not a text", 'write index = "sparql+http://localhost:7878/query"'),
    ],
)
def test_a_fault_in_the_users_own_file_does_too(root, own, content, detail, hint):
    told, shown = refusal(own, content, root)

    assert told == detail
    assert hint is None or shown == hint


@pytest.mark.parametrize(
    "content", ['tokens = "jido_4711"', 'embedder = "sk-4711"', f'{ENDPOINT}api_key = "sk-4711"', 'key = "sk-4711"']
)
def test_what_may_be_a_secret_is_not_shown(root, own, content):
    assert "4711" not in "".join(refusal(own, content, root))


@pytest.mark.parametrize("name", [field.name for field in fields(RootLimits)])
def test_the_hint_for_a_limit_is_accepted_when_it_is_followed(root, own, name):
    _, hint = refusal(own, f"[limits]\n{name} = true", root)

    own.write_text(f"[limits]\n{hint.removeprefix('write ')}\n")

    assert settings.load(root).limits == RootLimits()


@pytest.mark.parametrize("path", ["~nosuch-user/key", "keys/endpoint", "/keys/\\u0000"])
def test_a_key_file_without_a_whole_path_is_refused_as_any_value(root, own, path):
    told, hint = refusal(own, f'{ENDPOINT}key_file = "{path}"', root)

    assert told.startswith("embedder.key_file = ")
    assert told.endswith(" is not the whole path of a file")
    assert hint == 'write key_file = "~/.secrets/endpoint"'


def test_an_empty_host_is_the_default_address(root, own):
    own.write_text("")
    (root / "config.toml").write_text('host = ""\n')
    trust(own, root, now())

    assert not settings.load(root).host


def test_a_root_in_the_home_folder_of_an_unknown_user_is_refused(own):
    with pytest.raises(Failed, match="~nosuch-user/x: there is no home folder of that user") as refused:
        settings.load("~nosuch-user/x")

    assert refused.value.code == "invalid_config"


@pytest.mark.parametrize("home", ["/home/ana", "/home/ana/", "/", "here", "", None])
@pytest.mark.parametrize("base", ["/etc/ana", "/etc/ana/", "config", "", None])
def test_the_own_configuration_is_in_the_folder_of_the_base_directories(monkeypatch, home, base):
    for name, value in (("HOME", home), ("XDG_CONFIG_HOME", base)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)

    assert settings.own_config() == Path(user_config_dir("jidomem", appauthor=False)) / "config.toml"
