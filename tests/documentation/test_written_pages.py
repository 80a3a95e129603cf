"""The reference is generated from the code: it is current and complete."""

import ast
import importlib
import inspect
import re
from functools import cache

import click
import pytest

import jidomem
from docs.generate import DOCS, PARTS, configuration, mcp, python, written
from jidomem.base import files
from jidomem.errors import CODES
from jidomem_cli.main import cli
from jidomem_cli.serve import mcp as mcp_verb

ROOT = DOCS.parent
written = cache(written)


@pytest.mark.parametrize("part", PARTS)
def test_a_generated_page_is_current(part):
    pages = written(part)

    assert pages
    for name, text in pages.items():
        assert (DOCS / name).read_text("utf-8") == text, f"run: python -m docs.generate {part}"


def test_every_page_of_the_reference_is_generated():
    names = {name for part in PARTS for name in written(part)}

    assert {path.relative_to(DOCS).as_posix() for path in (DOCS / "reference").rglob("*.md")} == names


def test_every_name_imported_in_the_documentation_is_in_the_reference():
    known = {module for _, modules in python.PAGES.values() for module in modules}
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for block in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jidomem":
                    module = importlib.import_module(node.module)
                    for name in node.names:
                        location = f"{page.name}: from {node.module} import {name.name}"
                        full_name = f"{node.module}.{name.name}"
                        assert full_name in known or (node.module in known and name.name in python.public(module)), (
                            location
                        )


def test_every_type_that_a_public_function_returns_is_in_the_reference():
    names = {
        name: getattr(importlib.import_module(module), name)
        for _, modules in python.PAGES.values()
        for module in modules
        for name in python.public(importlib.import_module(module))
    }
    sources = [path.read_text("utf-8") for path in (ROOT / "jidomem").rglob("*.py")]
    classes = {name for text in sources for name in re.findall(r"^class ([A-Z]\w*)", text, re.MULTILINE)}
    infrastructure = {"Embedding", "EntryCache", "Options", "Texts", "VectorQuery"}  # of the command line and servers

    unknown = {
        f"{name}: {word}"
        for name, value in names.items()
        for key, member in (vars(value).items() if inspect.isclass(value) else [(name, value)])
        if not key.startswith("_")
        for function in [getattr(member, "fget", None) or getattr(member, "__func__", member)]
        for word in re.findall(r"\w+", str(getattr(function, "__annotations__", {}).get("return", "")))
        if word in classes - infrastructure - names.keys()
    }

    assert unknown == set()


@pytest.mark.parametrize("name", ["Jidomem", "MemoryReader", "MemoryWriter"])
def test_every_public_method_of_root_reader_and_writer_is_in_the_reference(name):
    page = written("python")["reference/python/jidomem.md"]
    functions = {
        key for key, _ in inspect.getmembers(getattr(jidomem, name), inspect.isfunction) if not key.startswith("_")
    }

    _, _, section = page.partition(f"\n### {name}\n")
    shown = re.findall(r"^#### (\w+)$", section.partition("\n### ")[0], re.MULTILINE)

    assert functions == set(shown)


def test_every_environment_variable_of_the_code_is_in_the_reference():
    sources = [path.read_text("utf-8") for folder in ("cli", "jidomem") for path in (ROOT / folder).rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\bJIDOMEM_[A-Z_]+", text)}

    assert read - {"JIDOMEM_LIMITS"} == {name for name in configuration.ENVIRONMENT if name.startswith("JIDOMEM_")}


def test_every_toolset_is_in_the_reference():
    (chosen,) = (param for param in mcp_verb.params if param.name == "toolset")

    assert set(chosen.type.choices) == set(mcp.TOOLSETS)


def test_every_shape_with_a_message_is_in_the_reference():
    page = (DOCS / "reference" / "shapes.md").read_text("utf-8")
    named = {
        name
        for path in files.shape_files()
        for name in re.findall(r"^shape:(\w+)[^.]*?sh:message", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    }

    assert named
    assert {name for name in named if f"| `{name}` |" not in page} == set()


def test_the_error_page_has_advice_for_each_code():
    rows = re.findall(
        r"^\| `(\w+)` \| (.+) \| (.+) \| \d+ \| \d+ \|$", (DOCS / "reference" / "errors.md").read_text(), re.MULTILINE
    )

    assert [code for code, _, _ in rows] == [*CODES]
    assert all(len(advice) > 8 for _, _, advice in rows)


def test_an_unknown_settings_key_fails_the_generation(monkeypatch):
    monkeypatch.setitem(configuration._LIMITS, "colour", "which it is")

    with pytest.raises(KeyError, match="colour"):
        configuration.pages()


def unknown_word(words):
    """The first of *words* that is no command of the preceding group; None for an existing command."""
    command = cli
    for word in words:
        if not isinstance(command, click.Group):
            return None
        if not re.fullmatch("[a-z][a-z-]*", word):  # an option, or a name that stands for a command
            return None
        if (command := command.get_command(click.Context(command), word)) is None:
            return word
    return None


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name)
def test_each_command_in_a_page_exists(page):
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    context = click.Context(cli)
    groups = {name for name in cli.list_commands(context) if isinstance(cli.get_command(context, name), click.Group)}
    named = [span.split() for span in re.findall(r"`([a-z][^`\n]* [^`\n]+)`", text)]
    commands = [words[1:] if words[0] == "jidomem" else words for words in named if words[0] in {"jidomem", *groups}]

    assert [" ".join(words) for words in commands if unknown_word(words)] == []
