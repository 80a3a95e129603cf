"""The working tree of a repository: which files have ids, and that these are the ids of git."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.records.file_anchor import path_of
from jidomem.repository.worktree import LARGEST, Worktree, blob_id, is_blob, is_ignored


def git(folder, *arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    result = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return result.stdout


@pytest.fixture
def folder(tmp_path):
    folder = (tmp_path / "repo").resolve()
    (folder / ".jidomem").mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


def tree(folder):
    worktree = Worktree.around(folder / ".jidomem")
    assert worktree is not None
    return worktree


@pytest.mark.parametrize("content", [b"", b"x\n", b"\0\xff" * 1000, b"a\r\nb\r\n"])
def test_the_id_of_a_file_is_its_git_blob_id(folder, content):
    (folder / "a.bin").write_bytes(content)

    assert tree(folder).blobs(["./a.bin"]) == {"a.bin": git(folder, "hash-object", "--no-filters", "a.bin").strip()}


def test_a_sha256_repository_has_sha256_ids(tmp_path):
    folder = (tmp_path / "repo").resolve()
    (folder / ".jidomem").mkdir(parents=True)
    git(folder, "init", "-q", "--object-format=sha256")
    (folder / "a.txt").write_text("x\n")

    (blob,) = tree(folder).blobs(["a.txt"]).values()

    assert blob == git(folder, "hash-object", "a.txt").strip()
    assert is_blob(b"x\n", blob)


def test_paths_outside_the_repository_links_and_special_files_have_no_id(folder, tmp_path):
    (tmp_path / "secret").write_text("s")
    (folder / "src").mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "src" / "up").symlink_to(tmp_path)
    (folder / "inner").symlink_to(folder / "src")
    (folder / "src" / "a.py").write_text("a")
    os.mkfifo(folder / "pipe")
    (folder / ".jidomem" / "config.toml").write_text("")
    entries = ["../secret", str(tmp_path / "secret"), "link", "src/up/secret", "inner/a.py", "pipe", "src", "nothing",
             ".git/config", ".GIT/config", ".jidomem/config.toml", "a\0b", "", ".", "x" * 5000, "é" * 300,
             "https://jido.ai/x"]  # fmt: skip

    assert tree(folder).blobs([*entries, "src/../src/a.py"]) == {"src/a.py": blob_id(b"a")}


def test_an_ignored_file_has_no_id(folder):
    (folder / "sub").mkdir()
    (folder / ".gitignore").write_text("*.env\n!keep.env\nbuild/\n")
    (folder / "sub" / ".gitignore").write_text("/local.txt\n")
    (folder / ".git" / "info" / "exclude").write_text("mine\n")
    names = [".env", "prod.env", "keep.env", "sub/local.txt", "sub/other.txt", "mine", "plain"]
    for name in names:
        (folder / name).write_text("x")

    assert sorted(tree(folder).blobs(names)) == ["keep.env", "plain", "sub/other.txt"]


def test_a_file_above_the_size_limit_has_no_id(folder):
    (folder / "fits").write_bytes(b"x" * LARGEST)
    (folder / "large").write_bytes(b"x" * (LARGEST + 1))

    assert list(tree(folder).blobs(["fits", "large"])) == ["fits"]


def test_a_root_outside_a_repository_has_no_working_tree(tmp_path):
    (tmp_path / ".git").mkdir()  # no repository: it has no HEAD

    assert Worktree.around(tmp_path / "memory") is None


def test_a_linked_working_tree_and_a_nested_root_belong_to_the_repository(folder, tmp_path):
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    git(folder, "worktree", "add", "-q", str(tmp_path / "other"))
    root = (tmp_path / "other" / "service" / ".jidomem").resolve()
    root.mkdir(parents=True)
    (root.parent / "a.py").write_text("x\n")
    (folder / ".git" / "info" / "exclude").write_text("b.py\n")
    (root.parent / "b.py").write_text("x\n")

    assert Worktree.around(root).blobs(["a.py", "b.py"]) == {"a.py": blob_id(b"x\n")}  # paths begin beside the root


def test_changed_line_ends_keep_the_blob_id():
    assert is_blob(b"a\r\nb\r\n", blob_id(b"a\nb\n"))
    assert is_blob(b"a\nb\n", blob_id(b"a\r\nb\r\n"))
    assert not is_blob(b"a\nb", blob_id(b"a\nb\n"))


@settings(max_examples=200)
@given(st.text("./a~\0\\:é", max_size=12))
def test_an_accepted_path_is_normalised_and_below_its_folder(entry):
    path = path_of(entry)

    assert path is None or path_of(path) == path
    assert path is None or os.path.normpath(f"/top/{path}") == f"/top/{path}"


RULES = st.lists(
    st.sampled_from(["a", "*.c", "b/", "/a", "a/b", "**/c", "a/**", "a/**/c", "!c", "!a/c", "[ab].c", "[!a].c", "?",
                     "*", "# a", "\\#a", "a ", "!b.c", "/*", "b*/", "*/c", "a/*/"]),
    max_size=4,
)  # fmt: skip
PATHS = ["a", "b", "c", "d/a", "d/b/c", "e/a/b", "f/a.c", "f/b.c", "#a", "g/c/c", "h/x/y/c"]


@settings(max_examples=40)
@given(RULES, RULES)
def test_ignored_files_are_those_that_git_ignores(tmp_path_factory, rules, inner):
    folder = tmp_path_factory.mktemp("repo")
    git(folder, "init", "-q")
    for path in PATHS:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
    (folder / ".gitignore").write_text("\n".join(rules))
    (folder / "d" / ".gitignore").write_text("\n".join(inner))

    listed = git(folder, "ls-files", "-o", "--exclude-standard", "-z", *PATHS).split("\0")

    texts = [("", "\n".join(rules)), ("d", "\n".join(inner))]
    assert [path for path in PATHS if is_ignored(path, texts)] == [path for path in PATHS if path not in listed]
