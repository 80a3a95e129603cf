"""An error in a configuration names file, table, key and value, and a correct value."""

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
def own_config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    path = settings.own_config()
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    return path


def refusal(path, content, root):
    path.write_text(content)
    with pytest.raises(Failed) as raised:
        settings.load(root)
    assert raised.value.code == "invalid_config"
    file, _, detail = raised.value.detail.partition(": ")
    assert file == str(path)
    return detail, raised.value.hint


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
def test_an_error_in_the_root_configuration_names_key_value_and_correction(root, own_config, content, detail, hint):
    own_config.write_text("")
    if content.startswith(("host", "port")):  # they need trust, and are ignored without it
        (root / "config.toml").write_text(content)
        trust(own_config, root, now())
    reported, shown_hint = refusal(root / "config.toml", content, root)

    assert reported.startswith(detail)
    assert hint is None or shown_hint == hint


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
def test_an_error_in_the_user_configuration_names_key_value_and_correction(root, own_config, content, detail, hint):
    reported, shown_hint = refusal(own_config, content, root)

    assert reported == detail
    assert hint is None or shown_hint == hint


@pytest.mark.parametrize(
    "content", ['tokens = "jido_4711"', 'embedder = "sk-4711"', f'{ENDPOINT}api_key = "sk-4711"', 'key = "sk-4711"']
)
def test_a_possible_secret_in_the_configuration_is_not_printed(root, own_config, content):
    assert "4711" not in "".join(refusal(own_config, content, root))


@pytest.mark.parametrize("name", [field.name for field in fields(RootLimits)])
def test_the_hint_for_a_limit_is_accepted_as_written(root, own_config, name):
    _, hint = refusal(own_config, f"[limits]\n{name} = true", root)

    own_config.write_text(f"[limits]\n{hint.removeprefix('write ')}\n")

    assert settings.load(root).limits == RootLimits()


@pytest.mark.parametrize("path", ["~nosuch-user/key", "keys/endpoint", "/keys/\\u0000"])
def test_a_key_file_without_an_absolute_path_is_refused(root, own_config, path):
    reported, hint = refusal(own_config, f'{ENDPOINT}key_file = "{path}"', root)

    assert reported.startswith("embedder.key_file = ")
    assert reported.endswith(" is not the whole path of a file")
    assert hint == 'write key_file = "~/.secrets/endpoint"'


def test_an_empty_host_means_the_default_address(root, own_config):
    own_config.write_text("")
    (root / "config.toml").write_text('host = ""\n')
    trust(own_config, root, now())

    assert not settings.load(root).host


def test_a_root_in_the_home_folder_of_an_unknown_user_is_refused(own_config):
    with pytest.raises(Failed, match="~nosuch-user/x: there is no home folder of that user") as refused:
        settings.load("~nosuch-user/x")

    assert refused.value.code == "invalid_config"


@pytest.mark.parametrize("home", ["/home/ana", "/home/ana/", "/", "here", "", None])
@pytest.mark.parametrize("base", ["/etc/ana", "/etc/ana/", "config", "", None])
def test_the_user_configuration_is_in_the_folder_of_the_xdg_base_directories(monkeypatch, home, base):
    for name, value in (("HOME", home), ("XDG_CONFIG_HOME", base)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)

    assert settings.own_config() == Path(user_config_dir("jidomem", appauthor=False)) / "config.toml"
