"""The names in the page for users of Jido in Elixir exist."""

import importlib
import re
from pathlib import Path

import pytest

from jidomem_cli.main import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "from-jido.md"
OURS = [row[1] for row in re.findall(r"^\| (.+?) \| (.+?) \|", PAGE.read_text("utf-8"), re.MULTILINE)]
NAMES = sorted({name for cell in OURS for name in re.findall(r"`(jidomem(?:\.\w+)+)`", cell)})


def resolve(name):
    """The module or member of a module that *name* denotes."""
    module, rest = name, []
    while module:
        try:
            value = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
            continue
        for part in rest:
            value = getattr(value, part)
        return value
    raise LookupError(name)


def test_the_page_names_more_than_70_names():
    assert len(NAMES) > 70


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_page_exists(name):
    assert resolve(name) is not None


def test_the_commands_in_the_page_exist():
    verbs = {verb for cell in OURS for verb in re.findall(r"`jidomem (\w+)", cell)}

    assert verbs
    assert verbs <= {*COMMANDS}
