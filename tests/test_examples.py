"""The examples in docstrings hold."""

import re
from doctest import DocTestFinder, DocTestRunner
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {"jidomem": "jidomem", "cli": "jidomem_cli"}
EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)


def examples():
    """Return how many examples each module has.

    `claude_memory` is left out: its own tests run its examples, as it imports the SDK of Anthropic.
    """
    return {
        ".".join((name, *path.relative_to(ROOT / folder).with_suffix("").parts)).removesuffix(".__init__"): number
        for folder, name in PACKAGES.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.stem != "claude_memory" and (number := len(EXAMPLE.findall(path.read_text("utf-8"))))
    }


class ExampleFinder(DocTestFinder):
    """A finder that reads cached properties too."""

    def _from_module(self, module, object):  # noqa: A002 - the name that doctest gives it
        return super()._from_module(module, object.func if isinstance(object, cached_property) else object)


@pytest.mark.parametrize(("module", "number"), examples().items())
def test_each_example_prints_what_it_shows(module, number):
    runner = DocTestRunner()
    for each in ExampleFinder().find(import_module(module)):
        runner.run(each)

    assert (runner.failures, runner.tries) == (0, number)
