"""The tests name the statements of the mission that they prove, at most three each; none is left without a test."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
STATEMENT = re.compile(r"(?<!noqa: )\b[A-E]\d{3}\b")
#: What is built: working memory, the contract of stores, the writer and the reader, MemoryOS, the two tiers.
PROVED = {
    *(f"A{number:03}" for number in range(1, 157)),
    *(f"B{number:03}" for number in range(1, 75)),
    *(f"C{number:03}" for number in [*range(1, 16), *range(17, 109), 113, 114, 115, 116, 118]),
    *(f"D{number:03}" for number in range(1, 121)),
    *(f"E{number:03}" for number in range(1, 99)),
}


@cache
def named(path):
    """The statements named in comments, by test: those within it, and those on lines directly above it."""
    return [*_named(path)]


def _named(path):
    source = path.read_text("utf-8")
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            while first > 1 and lines[first - 2].startswith("#"):
                first -= 1
            text = "\n".join(line.partition("#")[2] for line in lines[first - 1 : node.end_lineno])
            yield node.name, set(STATEMENT.findall(text))


def test_every_statement_that_is_built_is_proved_by_a_test_that_names_it():
    proved = {found for path in TESTS.rglob("test_*.py") for _, names in named(path) for found in names}
    assert sorted(PROVED - proved) == []


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_names_at_most_three_statements(path):
    assert {name: found for name, found in named(path) if len(found) > 3} == {}
