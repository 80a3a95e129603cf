"""The first commits of files: in real histories with renames, merges and shallow clones."""

import os
import subprocess

import pytest

from jidomem.repository.git import first_commits

ADR = "docs/adr/0001-use-a-queue.md"
TEXT = "# Use a queue\n\nOrders come in bursts,\nso they wait in a queue\nuntil somebody has time.\n"


class Repository:
    """A git repository whose commits are made at the given moments."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "-q", "-b", "main", folder, at=folder.parent)

    def git(self, *arguments, at=None, when="2020-01-01T00:00:00Z"):
        author = {
            f"GIT_{role}_{field}": "ana@example.org" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")
        }
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        result = subprocess.run(
            ["git", *map(str, arguments)], cwd=at or self.folder, env={**os.environ, **author, **dates}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        return result.stdout.strip()

    def commit(self, when, files=None, *, moved=None):
        for old, new in (moved or {}).items():
            (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
            self.git("mv", old, new)
        for path, text in (files or {}).items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change", when=f"{when}T12:00:00Z")


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "shop").mkdir()
    return Repository(tmp_path / "shop")


def dates(folder, *paths):
    return {path: moment[:10] for path, moment in first_commits(folder, paths).items()}


def test_a_file_is_dated_by_the_commit_that_added_it(repository):
    repository.commit("2018-03-02", {ADR: TEXT})
    repository.commit("2021-01-01", {ADR: f"{TEXT}\nIt is called Ada.\n", "top.md": "x\n"})
    (repository.folder / "new.md").write_text("not committed\n")

    assert first_commits(repository.folder, [ADR, "top.md", "new.md", "gone.md"]) == {
        ADR: "2018-03-02T12:00:00Z",
        "top.md": "2021-01-01T12:00:00Z",
    }


def test_renames_are_followed_to_the_first_name_of_a_file(repository):
    repository.commit("2018-03-02", {"notes/queue.md": TEXT, "notes/other.md": "other\n" * 9})
    repository.commit(
        "2019-03-02",
        {"doc/adr/1-queue.md": f"{TEXT}\nIt is called Ada.\n"},
        moved={"notes/queue.md": "doc/adr/1-queue.md"},
    )
    repository.commit("2020-03-02", moved={"doc/adr/1-queue.md": ADR})
    repository.commit("2020-04-02", {"docs/adr/0002-new.md": "# Something else\n\nof its own.\n"})

    assert dates(repository.folder, ADR, "docs/adr/0002-new.md") == {
        ADR: "2018-03-02",
        "docs/adr/0002-new.md": "2020-04-02",
    }


def test_a_file_added_on_a_branch_or_in_a_merge_is_dated(repository):
    repository.commit("2018-01-01", {"a.md": "a\n"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("2018-02-01", {ADR: TEXT})
    repository.git("checkout", "-q", "main")
    repository.commit("2018-03-01", {"b.md": "b\n"})
    repository.git("merge", "-q", "--no-commit", "--no-ff", "side")
    repository.commit("2018-04-01", {"docs/adr/0002-merged.md": "# Added while merging\n"})

    assert dates(repository.folder, ADR, "docs/adr/0002-merged.md") == {
        ADR: "2018-02-01",
        "docs/adr/0002-merged.md": "2018-04-01",
    }


def test_a_file_of_the_oldest_commit_of_a_shallow_clone_has_no_date(repository, tmp_path):
    repository.commit("2018-03-02", {ADR: TEXT})
    repository.commit("2019-03-02", {"docs/adr/0002-b.md": "# Something else\n"})
    repository.commit("2020-03-02", {"docs/adr/0003-c.md": "# A third\n"}, moved={ADR: "docs/adr/0004-d.md"})
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth", "2", f"file://{repository.folder}", clone, at=tmp_path)

    assert dates(clone, "docs/adr/0002-b.md", "docs/adr/0003-c.md", "docs/adr/0004-d.md") == {
        "docs/adr/0003-c.md": "2020-03-02"
    }


def test_a_file_of_a_clone_without_blobs_is_dated_without_a_fetch(repository, tmp_path):
    repository.commit("2018-03-02", {"queue.md": TEXT})
    repository.commit("2019-03-02", moved={"queue.md": ADR})
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    repository.git(
        "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repository.folder}", clone, at=tmp_path
    )

    before = repository.git("count-objects", "-v", at=clone)
    assert dates(clone, ADR) == {ADR: "2018-03-02"}
    assert repository.git("count-objects", "-v", at=clone) == before


def test_paths_are_relative_to_the_folder_and_renames_from_outside_are_followed(repository):
    repository.commit("2018-03-02", {"notes/queue.md": TEXT})
    repository.commit("2019-03-02", moved={"notes/queue.md": f"shop [1]/{ADR}"})

    assert dates(repository.folder / "shop [1]", ADR) == {ADR: "2018-03-02"}


def test_files_without_git_or_commits_have_no_date(repository, tmp_path):
    assert first_commits(repository.folder, [ADR]) == {}
    repository.commit("2018-03-02", {ADR: TEXT})
    (tmp_path / "plain").mkdir()

    assert first_commits(tmp_path / "plain", [ADR]) == {}
    assert first_commits(repository.folder, []) == {}
