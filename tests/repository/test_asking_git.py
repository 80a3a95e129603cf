"""Asking git: nothing that a repository names is run, nothing is fetched, and what git lacks is told."""

import subprocess
import tempfile

import pytest
from click.testing import CliRunner
from conftest import fixed_sources, intent

import jidomem
from jidomem.errors import InvalidRequest
from jidomem.repository.git import ask
from jidomem.runtime.location import init
from jidomem_cli.main import cli


def git(folder, *words):
    named = ("-c", "user.name=t", "-c", "user.email=t@t")
    return subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def run(*words, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.stdout + result.stderr
    return result


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository whose memory is about a file that was renamed since; it is the working directory."""
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_text("print(1)\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    with jidomem.open(init(folder, "p"), sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent(about=["src/a.py"]))
    (folder / ".jidomem/ontology").mkdir()
    (folder / "notes.ttl").write_text("# nothing yet, either\n")
    (folder / ".jidomem/ontology/own.ttl").write_text("# nothing yet\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "memory")
    git(folder, "mv", "src/a.py", "src/b.py")
    (folder / "src/b.py").write_text("print(1)\nprint(2)\n")
    git(folder, "add", "src")
    monkeypatch.chdir(folder)
    return folder


def lose(repository, ref, *names):
    """Take the objects of what these names were at a revision away."""
    for name in names:
        identity = git(repository, "rev-parse", f"{ref}:{name}").strip()
        (repository / ".git/objects" / identity[:2] / identity[2:]).unlink()


ASKING = (["check"], ["check", "--since", "HEAD", "notes.ttl"], ["ontology", "diff", "--from", "HEAD"])


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_repository_that_promises_objects_gets_no_program_run(repository, tmp_path, words):
    marker, script = tmp_path / "ran", tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    lose(repository, "HEAD", "src/a.py", "notes.ttl", ".jidomem/ontology/own.ttl")
    for name, value in {"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin",
                        "remote.origin.promisor": "true", "remote.origin.url": f"ext::{script} %S",
                        "remote.origin.uploadpack": str(script), "core.sshCommand": str(script),
                        "protocol.ext.allow": "always", "protocol.file.allow": "always"}.items():  # fmt: skip
        git(repository, "config", name, value)

    CliRunner().invoke(cli, words)

    assert not marker.exists()


def test_a_clone_that_lacks_what_a_revision_held_is_told_and_not_taken_for_empty(repository):
    lose(repository, "HEAD", ".jidomem/ontology/own.ttl")

    refused = run("ontology", "diff", "--from", "HEAD", code=2)

    assert "git lacks the content of ontology/own.ttl in 'HEAD'" in refused.stderr


def test_a_hook_that_says_where_the_repository_is_changes_nothing(repository, monkeypatch):
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")

    assert run("check", "--since", "HEAD", "--json").exit_code == 0
    assert "src/a.py is changed" in run("check").stdout


REFUSING = (["check", "--since", "HEAD"], ["ontology", "diff", "--from", "HEAD"], ["setup", "git"])


@pytest.mark.parametrize("words", REFUSING, ids=" ".join)
def test_a_repository_of_another_user_is_refused_with_the_command_that_allows_it(repository, monkeypatch, words):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    refused = CliRunner().invoke(cli, words)

    assert refused.exit_code == 2
    assert refused.stderr == (
        f"error: git refuses the repository {repository}: it belongs to another user\n"
        f"hint: git config --global --add safe.directory {repository}\n"
    )


def test_doctor_says_of_a_repository_of_another_user_no_more_than_how_to_allow_it(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    shown = run("status", "--doctor").stdout

    (line,) = (line for line in shown.splitlines() if "another user" in line)
    assert line == f"warn  git          git refuses the repository {repository}: it belongs to another user"
    assert f"do: git config --global --add safe.directory {repository}\n" in shown
    assert "line ends" not in shown
    assert "does not ignore" not in shown


def test_doctor_passes_on_why_git_cannot_use_a_repository(repository):
    (repository / ".git/config").write_text("[core\n")

    shown = run("status", "--doctor").stdout

    assert "warn  git          git cannot use the repository: fatal: bad config line 1" in shown
    assert "line ends" not in shown


def test_code_of_a_repository_of_another_user_is_imported_all_the_same(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    run("root", "import", "code", ".")

    assert "src/b.py" in run("ask", "modules").stdout


def test_a_tree_that_somebody_made_up_writes_nothing_elsewhere(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    inner = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], input="", capture_output=True, text=True, check=True
    )
    names = (b"!a.ttl", b"../../x.ttl")
    entry = b"".join(b"100644 %s\0" % name + bytes.fromhex(inner.stdout.strip()) for name in names)
    made = subprocess.run(["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"], input=entry,
                          capture_output=True, check=True).stdout.decode().strip()  # fmt: skip
    own = f"040000 tree {made}\tontology\n"
    top = subprocess.run(["git", "mktree"], input=own, capture_output=True, text=True, check=True).stdout.strip()
    whole = subprocess.run(["git", "mktree"], input=f"040000 tree {top}\t.jidomem\n", capture_output=True, text=True,
                           check=True).stdout.strip()  # fmt: skip
    commit = git(repository, "commit-tree", whole, "-m", "made up").strip()

    CliRunner().invoke(cli, ["ontology", "diff", "--from", commit])

    assert not (tmp_path / "x.ttl").exists()


def test_a_machine_without_git_and_a_folder_that_is_gone_are_told_apart(tmp_path, monkeypatch):
    with pytest.raises(InvalidRequest, match=f"git failed in {tmp_path}/gone: .*No such file") as gone:
        ask(tmp_path / "gone", "status")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidRequest, match="git is not installed") as missing:
        ask(tmp_path, "status")

    assert [each.value.hint for each in (gone, missing)] == ["try it there: git log", "install git, then try again"]
