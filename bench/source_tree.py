"""Figures of the source tree: modules, lines, names, words, and the files and calls that an intent and a request enter.

    python -m bench.source_tree [--json]

The trace counts the functions of jidomem that a warm `submit_intent` and `GET .../queries/active-decisions` enter.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import jidomem
from jidomem import MemoryUpdateIntent
from jidomem.base.disk import SETTLE

ROOT = Path(__file__).parent.parent
PACKAGES = (ROOT / "jidomem", ROOT / "cli")
TESTS = ROOT / "tests"
#: Everyday words, which name nothing of the field.
EVERYDAY = {
    "told", "said", "held", "kept", "asked", "found", "amiss", "anew", "besides", "gone", "here", "law", "desk",
    "deeds", "sight", "harm", "shelf", "manner",
}  # fmt: skip
#: `NotFound` is the word of HTTP, `asked_by` a field of a conversation turn in JSON.
WORDS_OF_THE_FIELD = {"NotFound", "asked_by"}
LONGEST_LINE = 100


def modules() -> list[Path]:
    """Return every Python file of the library and the command line."""
    return sorted(path for package in PACKAGES for path in package.rglob("*.py"))


def count_modules(trees: Mapping[Path, ast.Module], package: Path) -> int:
    """Return how many modules of *package* are more than the docstring of a package."""
    return sum(
        path.is_relative_to(package) and len(tree.body) > (ast.get_docstring(tree) is not None)
        for path, tree in trees.items()
    )


def source_figures() -> dict[str, int]:
    """Return the figures of the text of the source, by name."""
    paths = modules()
    trees = {path: ast.parse(path.read_text("utf-8")) for path in paths}
    lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
    classes = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {
        "modules in jidomem/": count_modules(trees, PACKAGES[0]),
        "modules in cli/": count_modules(trees, PACKAGES[1]),
        "lines in both": len(lines),
        "entries in jidomem/": sum(each.name != "__pycache__" for each in PACKAGES[0].iterdir()),
        "longest module, lines": max(len(path.read_text("utf-8").splitlines()) for path in paths),
        f"lines over {LONGEST_LINE} columns": sum(len(line) > LONGEST_LINE for line in lines),
        "own modules imported inside functions": sum(1 for tree in trees.values() for _ in _inner_imports(tree)),
        "public class names used more than once": sum(
            count > 1 for name, count in classes.items() if not name.startswith("_")
        ),
        "definitions named by an everyday word": sum(
            is_everyday(name) for tree in trees.values() for name in definitions(tree)
        ),
        "words in README and docs": len(documentation_text().split()),
        "private attributes used in tests": sum(
            1
            for path in TESTS.rglob("*.py")
            if "node_modules" not in path.parts
            for _ in private_attributes(ast.parse(path.read_text("utf-8")))
        ),
    }


def documentation_text() -> str:
    """Return the text of the README and the docs, without the generated reference and the statements."""
    docs = ROOT / "docs"
    pages = (path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] not in ("reference", "statements"))
    return "\n".join(path.read_text("utf-8") for path in (ROOT / "README.md", *sorted(pages)))


def private_attributes(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Yield the uses of private attributes of anything but `self` and `cls`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = node.value.id if isinstance(node.value, ast.Name) else None
            if owner not in ("self", "cls"):
                yield node


def definitions(tree: ast.Module) -> Iterator[str]:
    """Yield the names of classes, functions, parameters and constants of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
            yield from (each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
        elif isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def is_everyday(name: str) -> bool:
    """Return whether a word of *name*, in either case style, is an everyday one that no format requires."""
    if name in WORDS_OF_THE_FIELD:
        return False
    separated = name if name.isupper() else "".join(f"_{letter}" if letter.isupper() else letter for letter in name)
    return not EVERYDAY.isdisjoint(separated.lower().split("_"))


def _inner_imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Yield the imports of own modules inside functions."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("jidomem", "jidomem_cli"):
                    yield node


@dataclass
class Trace:
    """The functions of jidomem that a call entered, as file and qualified name in order, and their greatest depth."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    max_depth: int = 0

    @property
    def files(self) -> int:
        """Return the number of entered files."""
        return len({file for file, _ in self.calls})

    @property
    def file_changes(self) -> int:
        """Return how often a call follows one of another file."""
        return sum(a[0] != b[0] for a, b in zip(self.calls, self.calls[1:], strict=False))


def trace(call: Callable[[], Any]) -> Trace:
    """Call *call* and return its trace in this thread."""
    own, result = f"{PACKAGES[0]}{os.sep}", Trace()
    depth = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if not frame.f_code.co_filename.startswith(own) or event not in ("call", "return"):
            return
        depth += 1 if event == "call" else -1
        if event == "call":
            result.calls.append((frame.f_code.co_filename.removeprefix(own), frame.f_code.co_qualname))
            result.max_depth = max(result.max_depth, depth)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return result


def traces() -> dict[str, Trace]:
    """Return the traces of a warm write and a warm request, in a new root."""
    from jidomem.serve.app import create_app

    with tempfile.TemporaryDirectory() as folder, jidomem.open(Path(folder) / ".jidomem", project="p") as memory:

        def fact(summary: str) -> MemoryUpdateIntent:
            return MemoryUpdateIntent(
                type="fact",
                summary=summary,
                asserted_by="a",
                asserted_in="s",
                applies_to_project="p",
                confidence="high",
            )

        writer = memory.writer
        for number in range(3):
            writer.submit_intent("p", fact(f"the build needs Rust 1.{number}"))
        intents = [fact(f"the build needs Rust 1.{number}") for number in range(80, 85)]
        writes = [trace(partial(writer.submit_intent, "p", each)) for each in intents]
        write = min(writes, key=lambda each: len(each.calls))  # after a pause, a write lists the folder again
        time.sleep(2 * SETTLE / 1e9)  # each request reads a recently changed folder again
        client = create_app(memory).test_client()
        address = "/projects/p/queries/active-decisions"
        for _ in range(2):
            answer = client.get(address)
            assert answer.status_code == 200, answer.text
        read = trace(lambda: client.get(address))
    return {"submit_intent": write, "GET .../queries/active-decisions": read}


def main() -> None:
    """Print the figures."""
    figures = source_figures()
    for name, each in traces().items():
        figures |= {
            f"{name}: files": each.files,
            f"{name}: calls": len(each.calls),
            f"{name}: changes of file": each.file_changes,
            f"{name}: depth of own frames": each.max_depth,
        }
    if "--json" in sys.argv:
        print(json.dumps(figures, indent=1))
    else:
        for name, figure in figures.items():
            print(f"{figure:>8,}  {name}")


if __name__ == "__main__":
    main()
