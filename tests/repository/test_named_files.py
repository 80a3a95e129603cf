"""Files named in a page are found from its folder, from the repository, or by a unique name."""

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
def test_a_name_without_a_folder_is_resolved_if_it_is_unique(repository, page, word, path):
    assert PathFinder(repository).of(page)(word) == path


def test_the_files_are_listed_once_for_all_names(repository, monkeypatch):
    calls = []
    list_files = worktree.listing
    monkeypatch.setattr(worktree, "listing", lambda base: calls.append(base) or list_files(base))
    find = PathFinder(repository).of("AGENTS.md")

    assert [find("run.py"), find("guide.md"), find("no.py"), find("docs/guide.md")] == [
        "src/agents/run.py", "docs/guide.md", None, "docs/guide.md",
    ]  # fmt: skip
    assert len(calls) == 1


def test_a_name_is_not_resolved_with_more_files_than_the_limit(repository, monkeypatch):
    monkeypatch.setattr(worktree, "MOST_NAMED", 3)

    assert PathFinder(repository).of("AGENTS.md")("run.py") is None


def test_a_deleted_file_that_git_lists_is_not_found(repository):
    subprocess.run(["git", "-C", repository, "add", "."], check=True)
    (repository / "src/agents/run.py").unlink()

    assert PathFinder(repository).of("AGENTS.md")("run.py") is None
