"""Changes of a TOML text: one table changes, every other sign stays."""

import tomllib

import pytest

from jidomem.clients.config_files import NotEditable, remove_toml, set_toml

PATH = ("mcp_servers", "ours")
WANTED = {"command": "jidomem", "args": ["mcp", 'a "b"']}
BESIDE = '# mine\nmodel = "x"  # why\n\n[mcp_servers.docs]\ncommand = "docs"\n\n[other]\nlist = [\n  1,\n]\n'


@pytest.mark.parametrize("text", ["", BESIDE, BESIDE + "\n", BESIDE.rstrip("\n")])
def test_a_table_is_added_at_the_end_and_taken_out_again(text):
    changed = set_toml(text, PATH, WANTED)

    assert changed.startswith(text)
    assert tomllib.loads(changed)["mcp_servers"]["ours"] == WANTED
    assert set_toml(changed, PATH, WANTED) == changed
    assert remove_toml(changed, PATH).rstrip("\n") == text.rstrip("\n")
    assert remove_toml(text, PATH) == text


def test_what_else_is_said_in_the_table_stays_until_it_is_taken_out():
    held = '[mcp_servers.ours]\ncommand = "/old"\ntimeout = 5 # mine\n\n[mcp_servers.ours.env]\nA = "1"\n\n'
    held += "# its\n[z]\nb = 1\n"

    changed = set_toml(BESIDE + held, PATH, WANTED)

    assert tomllib.loads(changed)["mcp_servers"]["ours"] == {**WANTED, "timeout": 5, "env": {"A": "1"}}
    assert "timeout = 5 # mine\n" in changed
    assert remove_toml(changed, PATH) == BESIDE + "# its\n[z]\nb = 1\n"


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
def test_a_table_that_is_written_otherwise_is_left_alone(text):
    with pytest.raises(NotEditable):
        set_toml(text, PATH, WANTED)
    if not text.startswith("[mcp_servers.ours]"):
        with pytest.raises(NotEditable):
            remove_toml(text, PATH)


def test_what_is_no_toml_is_told_with_its_line():
    with pytest.raises(tomllib.TOMLDecodeError, match="line 2"):
        set_toml("a = 1\nb = \n", PATH, WANTED)
