"""What the page for those who come from Elixir names of ours is there."""

import importlib
import re
from pathlib import Path

import pytest

from jidomem_cli.main import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "from-jido.md"
OURS = [row[1] for row in re.findall(r"^\| (.+?) \| (.+?) \|", PAGE.read_text("utf-8"), re.MULTILINE)]
NAMES = sorted({name for cell in OURS for name in re.findall(r"`(jidomem(?:\.\w+)+)`", cell)})


def found(name):
    """What *name* stands for: a module, or what is in one."""
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


def test_the_page_names_most_of_what_elixir_has():
    assert len(NAMES) > 70


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_ours_is_there(name):
    assert found(name) is not None


def test_a_verb_of_ours_is_there():
    verbs = {verb for cell in OURS for verb in re.findall(r"`jidomem (\w+)", cell)}

    assert verbs
    assert verbs <= {*COMMANDS}
