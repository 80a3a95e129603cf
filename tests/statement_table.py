"""The table of the statements and the tests that prove them: python tests/statement_table.py [RESULTS [TABLE]]

Statements are in docs/statements; tests name those that they prove in comments, `# C014`. RESULTS is the file that
pytest wrote with --junitxml (default: build/tests.xml; without it every test counts as not run). TABLE is the file to
write (default: build/statements.md). The statements without a proof are printed.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PAGES = ROOT / "docs" / "statements"
#: Series -> the page that has it.
SERIES = {
    "A": "working-memory.md",
    "B": "store-contract.md",
    "C": "writer-and-reader.md",
    "D": "memoryos.md",
    "E": "two-tiers.md",
}
#: A comment that names statements and nothing else, but for what may follow a colon.
_NAMING = re.compile(r"#\s+([A-E]\d{3}(?:,? [A-E]\d{3})*)(?::.*)?$", re.MULTILINE)
_LINE = re.compile(r"^- `([A-E]\d{3})` \*\*([MIO])\*\* (.+)$")
#: What came of tests, the worst first: that of several is the first of these that is among them.
OUTCOMES = ("failed", "not run", "skipped", "passed")


class Statement(NamedTuple):
    """A statement: its weight is M, I or O."""

    id: str
    weight: str
    text: str


class Test(NamedTuple):
    """A test function, or the test case of a state machine."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}::{self.name}"


def statements(page: Path) -> list[Statement]:
    """Return the statements of a page, in its order."""
    return [Statement(*found.groups()) for line in page.read_text("utf-8").splitlines() if (found := _LINE.match(line))]


def every_statement() -> dict[str, Statement]:
    """Return all statements by their number."""
    return {each.id: each for page in SERIES.values() for each in statements(PAGES / page)}


@cache
def files_of_tests() -> tuple[Path, ...]:
    """Return every file with tests."""
    return tuple(sorted(path for path in TESTS.rglob("test_*.py") if "node_modules" not in path.parts))


@cache
def named(path: Path) -> list[tuple[Test, frozenset[str]]]:
    """Return each test of a file that names statements, with those in comments within it or on lines directly above."""
    source = path.read_text("utf-8")
    if not _NAMING.search(source):
        return []
    lines = source.splitlines()
    return [
        (Test(path, name), frozenset(_statements_of("\n".join(lines[first:last]))))
        for name, first, last in _tests(ast.parse(source), lines)
    ]


def _statements_of(text: str) -> Iterator[str]:
    for names in _NAMING.findall(text):
        yield from re.split(r",? ", names)


def _tests(module: ast.Module, lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each test, and its lines with the comments above it."""
    suites = (each.body for each in module.body if isinstance(each, ast.ClassDef))
    for node in chain(module.body, *suites):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            while first and lines[first - 1].startswith("#"):
                first -= 1
            yield node.name, first, node.end_lineno or node.lineno
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(".TestCase"):
            yield f"{ast.unparse(node.targets[0])}::runTest", node.lineno - 1, node.end_lineno or node.lineno


def proofs() -> dict[str, list[Test]]:
    """Return the tests that name a statement, by its number."""
    found: dict[str, list[Test]] = defaultdict(list)
    for path in files_of_tests():
        for test, names in named(path):
            for name in names:
                found[name].append(test)
    return found


def outcomes(results: Path) -> dict[str, str]:
    """Return the outcome of each test, by "a.module.of.tests::name"; of several cases the worst."""
    came: dict[str, set[str]] = defaultdict(set)
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        children = {child.tag for child in case}
        outcome = "failed" if children & {"failure", "error"} else "skipped" if "skipped" in children else "passed"
        for name in _names_of(case.get("classname", ""), case.get("name", "").partition("[")[0]):
            came[name].add(outcome)
    return {name: worst(found) for name, found in came.items()}


def _names_of(classname: str, name: str) -> tuple[str, ...]:
    """Return the possible names of a test: its class may be inherited from another module."""
    module, _, last = classname.rpartition(".")
    return (f"{classname}::{name}", f"{module}::{name}", f"{module}::{last}::{name}")


def worst(found: set[str]) -> str:
    """Return the worst of several outcomes; without one, that the test was not run."""
    return next((outcome for outcome in OUTCOMES if outcome in found), "not run")


def outcome_of(test: Test, came: Mapping[str, str]) -> str:
    """Return the outcome of a test."""
    return came.get(f"{'.'.join(test.path.relative_to(ROOT).with_suffix('').parts)}::{test.name}", "not run")


def judged(tests: list[Test], came: Mapping[str, str]) -> str:
    """Return whether a statement is proved, and if not, why."""
    if not tests:
        return "not proved"
    outcome = worst({outcome_of(test, came) for test in tests})
    return "proved" if outcome == "passed" else outcome


def table(came: Mapping[str, str]) -> str:
    """Return the page: the number of proved statements, the unproved ones, and all with their tests."""
    by, every = proofs(), every_statement()
    judgement = {number: judged(by.get(number, []), came) for number in every}
    kinds = ("proved", *OUTCOMES[:3], "not proved")
    lines = [
        "# Statements and their proofs",
        "",
        f"{len(every)} statements; made by `ci/statements` from what a run of the tests came to.",
        "",
        "| series | statements | " + " | ".join(kinds) + " |",
        "|---|---|" + "---|" * len(kinds),
    ]
    for letter in SERIES:
        mine = [said for number, said in judgement.items() if number[0] == letter]
        lines.append(f"| {letter} | {len(mine)} | " + " | ".join(str(mine.count(kind)) for kind in kinds) + " |")
    for letter, page in SERIES.items():
        title = (PAGES / page).read_text("utf-8").partition("\n")[0].removeprefix("# ")
        lines += ["", f"## {letter}: {title}", "", "| | | statement | tests | |", "|---|---|---|---|---|"]
        for number, each in every.items():
            if number[0] == letter:
                tests = "<br>".join(f"`{test}`" for test in sorted(map(str, by.get(number, []))))
                text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", each.text).replace("|", "\\|")
                lines.append(f"| {number} | {each.weight} | {text} | {tests} | {judgement[number]} |")
    return "\n".join(lines) + "\n"


def main(results: str = "build/tests.xml", to: str = "build/statements.md") -> None:
    """Write the table, and print the statements that are not proved."""
    source, target = ROOT / results, ROOT / to
    came = outcomes(source) if source.exists() else {}
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(table(came), "utf-8")
    by = proofs()
    open_ = {number: said for number in every_statement() if (said := judged(by.get(number, []), came)) != "proved"}
    print(f"{to}: {len(every_statement()) - len(open_)} of {len(every_statement())} statements are proved")
    for number, said in open_.items() if came else ():
        print(f"{number}: {said}")


if __name__ == "__main__":
    main(*sys.argv[1:])
