"""What the docs show is run: console blocks as commands, Python blocks as programs, links as paths.

In this process where they can be, as they are many; those of the README have one of their own: tests/test_readme.py.
"""

import glob
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from jidomem.errors import CODES
from jidomem_cli.main import cli

ROOT = Path(__file__).parent.parent
#: A page whose blocks are run in their order, each beside what it prints: tests/documentation/test_tutorial.py.
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ANY_ORDER = [page for page in PAGES if page not in (TUTORIAL, ROOT / "README.md")]
BIN = Path(sys.executable).parent


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


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
    return folder


def run(command: str) -> tuple[int, str]:
    """The exit code of *command* as a shell runs it, and all it printed."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def run_here(command: str) -> tuple[int, str]:
    """The same of a command of `jidomem`, without a process; `> FILE` at its end keeps what it printed there."""
    words = shlex.split(command, comments=True)[1:]
    file = words[-1] if words[-2:-1] == [">"] else None
    words = words[:-2] if file else words
    given = [path for word in words for path in (sorted(glob.glob(word)) if "*.md" in word else [word])]
    done = CliRunner().invoke(cli, given)
    if file:
        Path(file).write_text(done.stdout, "utf-8")
    return done.exit_code, done.output


@pytest.mark.parametrize("page", [page for page in ANY_ORDER if commands(page)], ids=lambda page: page.name)
def test_every_command_a_page_shows_runs(page, repository, monkeypatch):
    monkeypatch.chdir(repository)
    run_here("jidomem init -q")
    for command in commands(page):
        program = shlex.split(command, comments=True)[0]
        assert program in ("jidomem", "git", "echo", "cat"), command
        code, printed = (run_here if program == "jidomem" else run)(command)
        assert code == 0, f"{command}\n{printed}"


@pytest.mark.parametrize("page", [page for page in ANY_ORDER if blocks(page, "python")], ids=lambda page: page.name)
def test_every_program_a_page_shows_runs(page, repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    for number, block in enumerate(blocks(page, "python"), 1):
        exec(compile(block, f"{page.name}, program {number}", "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page):
    for target in re.findall(r"\]\((?!https?://)([^)#\s]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_page_is_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            links = re.findall(r"\]\((?!https?://)([^)#\s]+\.md)", page.read_text("utf-8"))
            waiting += [(page.parent / link).resolve() for link in links]

    assert {page.resolve() for page in PAGES} <= {page.resolve() for page in reached}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_into_a_page_leads_to_a_heading(page):
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", page.read_text("utf-8")):
        linked = (page.parent / target).resolve() if target else page
        headings = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{target}#{anchor}"


def test_the_error_page_has_each_code_with_its_status_and_exit():
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (\d+) \| (\d+) \|$", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)

    assert {code: (int(status), int(exit_)) for code, status, exit_ in rows} == dict(CODES)
