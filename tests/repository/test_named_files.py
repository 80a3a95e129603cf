"""The files that a page names are found from its folder, from the repository, or by a name that only one file has."""

import subprocess

import pytest

from jidomem.repository import worktree
from jidomem.repository.worktree import PathFinder


@pytest.fixture
def repository(tmp_path):
    for path in (
        "src/agents/run.py",
        "src/a/same.py",
        "src/b/same.py",
        "docs/guide.md",
        "docs/same.md",
        "build/out.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("page", "word", "path"),
    [
        ("AGENTS.md", "src/agents/run.py", "src/agents/run.py"),
        ("AGENTS.md", "run.py", "src/agents/run.py"),
        ("docs/AGENTS.md", "run.py", "src/agents/run.py"),
        ("docs/AGENTS.md", "same.md", "docs/same.md"),
        ("AGENTS.md", "same.py", None),
        ("src/a/AGENTS.md", "same.py", "src/a/same.py"),
        ("AGENTS.md", "out.py", None),
        ("AGENTS.md", "run", None),
        ("AGENTS.md", "agents/run.py", None),
        ("AGENTS.md", "no.py", None),
    ],
)
def test_a_name_without_a_folder_is_the_one_file_that_has_it_where_no_other_does(repository, page, word, path):
    assert PathFinder(repository).of(page)(word) == path


def test_the_files_are_listed_once_for_all_names(repository, monkeypatch):
    asked = []
    list_files = worktree.listing
    monkeypatch.setattr(worktree, "listing", lambda base: asked.append(base) or list_files(base))
    find = PathFinder(repository).of("AGENTS.md")

    assert [find("run.py"), find("guide.md"), find("no.py"), find("docs/guide.md")] == [
        "src/agents/run.py", "docs/guide.md", None, "docs/guide.md",
    ]  # fmt: skip
    assert len(asked) == 1


def test_no_name_is_looked_up_where_not_all_files_are_known(repository, monkeypatch):
    monkeypatch.setattr(worktree, "MOST_NAMED", 3)

    assert PathFinder(repository).of("AGENTS.md")("run.py") is None


def test_a_file_that_git_lists_and_that_is_gone_is_none(repository):
    subprocess.run(["git", "-C", repository, "add", "."], check=True)
    (repository / "src/agents/run.py").unlink()

    assert PathFinder(repository).of("AGENTS.md")("run.py") is None
