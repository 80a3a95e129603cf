"""Edits of a TOML text: one table changes, and every other character stays."""

import tomllib

import pytest

from jidomem.clients.config_files import NotEditable, remove_toml, set_toml

PATH = ("mcp_servers", "ours")
TABLE = {"command": "jidomem", "args": ["mcp", 'a "b"']}
OTHER_TABLES = '# mine\nmodel = "x"  # why\n\n[mcp_servers.docs]\ncommand = "docs"\n\n[other]\nlist = [\n  1,\n]\n'


@pytest.mark.parametrize("text", ["", OTHER_TABLES, OTHER_TABLES + "\n", OTHER_TABLES.rstrip("\n")])
def test_a_table_is_added_at_the_end_and_removed_again(text):
    changed = set_toml(text, PATH, TABLE)

    assert changed.startswith(text)
    assert tomllib.loads(changed)["mcp_servers"]["ours"] == TABLE
    assert set_toml(changed, PATH, TABLE) == changed
    assert remove_toml(changed, PATH).rstrip("\n") == text.rstrip("\n")
    assert remove_toml(text, PATH) == text


def test_other_keys_of_the_table_stay_until_it_is_removed():
    existing = '[mcp_servers.ours]\ncommand = "/old"\ntimeout = 5 # mine\n\n[mcp_servers.ours.env]\nA = "1"\n\n'
    existing += "# its\n[z]\nb = 1\n"

    changed = set_toml(OTHER_TABLES + existing, PATH, TABLE)

    assert tomllib.loads(changed)["mcp_servers"]["ours"] == {**TABLE, "timeout": 5, "env": {"A": "1"}}
    assert "timeout = 5 # mine\n" in changed
    assert remove_toml(changed, PATH) == OTHER_TABLES + "# its\n[z]\nb = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = {ours = {command = "x"}}\n',
        '[mcp_servers]\nours = {command = "x"}\n',
        'mcp_servers.ours.command = "x"\n',
        'a = """\n[mcp_servers.ours]\n"""\n[mcp_servers.ours]\ncommand = "x"\n',
        '[mcp_servers.ours]\ncommand = """\nx\n"""\n',
    ],
)
def test_a_table_in_another_notation_is_refused(text):
    with pytest.raises(NotEditable):
        set_toml(text, PATH, TABLE)
    if not text.startswith("[mcp_servers.ours]"):
        with pytest.raises(NotEditable):
            remove_toml(text, PATH)


def test_invalid_toml_is_refused_with_its_line():
    with pytest.raises(tomllib.TOMLDecodeError, match="line 2"):
        set_toml("a = 1\nb = \n", PATH, TABLE)
