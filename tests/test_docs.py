"""What the docs show is run: console blocks as commands, Python blocks as programs, links as paths.

In this process where they can be, as they are many; those of the README have one of their own: tests/test_readme.py.
"""

import re
import textwrap
from pathlib import Path

import pytest
from shown_commands import Reader

from docs.generate import run_pages
from jidomem.errors import CODES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages whose blocks are run in their order, each beside what it prints: tests/documentation/test_run_pages.py.
BESIDE = {ROOT / "docs" / name for name in run_pages.PAGES}
ANY_ORDER = [page for page in PAGES if page not in {ROOT / "README.md", *BESIDE}]


def blocks(page: Path, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in found]


def commands(page: Path) -> list[str]:
    return [line[2:] for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def repository(tmp_path):
    """A repository with a memory, a decision record and the files the docs name."""
    folder = tmp_path / "my-project"
    (folder / "docs" / "adr").mkdir(parents=True)
    (folder / "docs" / "adr" / "0001-record-decisions.md").write_text(
        "# 1. Record decisions\n\nDate: 2026-01-01\n\n## Status\n\nAccepted\n\n## Context\n\nWe forget.\n\n"
        "## Decision\n\nWe write them down.\n\n## Consequences\n\nWe can ask.\n"
    )
    (folder / "docs" / "adr" / "0002-use-a-journal.md").write_text(
        "# 2. Use a journal\n\n## Status\n\nAccepted\n\n## Context\n\nFiles are lost.\n\n## Decision\n\nAppend.\n"
    )
    (folder / "people.ttl").write_text('@prefix x: <urn:x:> .\nx:ana a x:Person ; x:name "Ana" .\n')
    (folder / "people-shapes.ttl").write_text(
        "@prefix x: <urn:x:> .\n@prefix sh: <http://www.w3.org/ns/shacl#> .\n"
        "x:PersonHasName a sh:NodeShape ; sh:targetClass x:Person ; sh:property [ sh:path x:name ; sh:minCount 1 ] .\n"
    )
    return folder


@pytest.fixture
def reader(repository, request, monkeypatch):
    """Who follows a page, in a repository with a memory of nothing."""
    monkeypatch.chdir(repository)
    with Reader(request.getfixturevalue, monkeypatch) as reader:
        reader.run("jidomem init -q")
        yield reader


@pytest.mark.parametrize("page", [page for page in ANY_ORDER if commands(page)], ids=lambda page: page.name)
def test_every_command_a_page_shows_runs(page, reader):
    for command in commands(page):
        code, printed = reader.run(command)
        assert code == 0, f"{command}\n{printed}"


@pytest.mark.parametrize("page", [page for page in ANY_ORDER if blocks(page, "python")], ids=lambda page: page.name)
def test_every_program_a_page_shows_runs(page, repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    for number, block in enumerate(blocks(page, "python"), 1):
        exec(compile(block, f"{page.name}, program {number}", "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out


def test_every_link_between_pages_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?://)([^)#\s]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_every_page_is_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            links = re.findall(r"\]\((?!https?://)([^)#\s]+\.md)", page.read_text("utf-8"))
            waiting += [(page.parent / link).resolve() for link in links]

    assert {page.resolve() for page in PAGES} <= {page.resolve() for page in reached}


def test_every_link_into_a_page_leads_to_a_heading():
    for page in PAGES:
        for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", page.read_text("utf-8")):
            linked = (page.parent / target).resolve() if target else page
            headings = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{page.name}: {target}#{anchor}"


def test_the_error_page_has_each_code_with_its_status_and_exit():
    rows = re.findall(
        r"^\| `(\w+)` \| .+ \| (\d+) \| (\d+) \|$", (ROOT / "docs/reference/errors.md").read_text(), re.MULTILINE
    )

    assert {code: (int(status), int(exit_)) for code, status, exit_ in rows} == dict(CODES)
