"""Calls of git: no program of the repository is run, nothing is fetched, and missing objects are reported."""

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


def git(folder, *arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def run(*arguments, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in arguments])
    assert result.exit_code == code, result.stdout + result.stderr
    return result


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository whose memory is about a file renamed later; it is the working directory."""
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


def delete_objects(repository, ref, *names):
    """Delete the objects of these paths at a revision."""
    for name in names:
        identity = git(repository, "rev-parse", f"{ref}:{name}").strip()
        (repository / ".git/objects" / identity[:2] / identity[2:]).unlink()


GIT_COMMANDS = (["check"], ["check", "--since", "HEAD", "notes.ttl"], ["ontology", "diff", "--from", "HEAD"])


@pytest.mark.parametrize("arguments", GIT_COMMANDS, ids=" ".join)
def test_a_promisor_repository_runs_no_program(repository, tmp_path, arguments):
    marker, script = tmp_path / "ran", tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    delete_objects(repository, "HEAD", "src/a.py", "notes.ttl", ".jidomem/ontology/own.ttl")
    for name, value in {"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin",
                        "remote.origin.promisor": "true", "remote.origin.url": f"ext::{script} %S",
                        "remote.origin.uploadpack": str(script), "core.sshCommand": str(script),
                        "protocol.ext.allow": "always", "protocol.file.allow": "always"}.items():  # fmt: skip
        git(repository, "config", name, value)

    CliRunner().invoke(cli, arguments)

    assert not marker.exists()


def test_a_missing_object_of_a_revision_is_an_error(repository):
    delete_objects(repository, "HEAD", ".jidomem/ontology/own.ttl")

    result = run("ontology", "diff", "--from", "HEAD", code=2)

    assert "git lacks the content of ontology/own.ttl in 'HEAD'" in result.stderr


def test_git_variables_of_a_hook_do_not_change_the_check(repository, monkeypatch):
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")

    assert run("check", "--since", "HEAD", "--json").exit_code == 0
    assert "src/a.py is renamed to src/b.py and changed" in run("check").stdout


REFUSED_COMMANDS = (["check", "--since", "HEAD"], ["ontology", "diff", "--from", "HEAD"], ["setup", "git"])


@pytest.mark.parametrize("arguments", REFUSED_COMMANDS, ids=" ".join)
def test_a_repository_of_another_user_is_refused_with_the_command_that_allows_it(repository, monkeypatch, arguments):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    result = CliRunner().invoke(cli, arguments)

    assert result.exit_code == 2
    assert result.stderr == (
        f"error: git refuses the repository {repository}: it belongs to another user\n"
        f"hint: git config --global --add safe.directory {repository}\n"
    )


def test_doctor_reports_a_repository_of_another_user_with_the_command_that_allows_it(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    output = run("status", "--doctor").stdout

    (line,) = (line for line in output.splitlines() if "another user" in line)
    assert line == f"warn  git          git refuses the repository {repository}: it belongs to another user"
    assert f"do: git config --global --add safe.directory {repository}\n" in output
    assert "line ends" not in output
    assert "does not ignore" not in output


@pytest.mark.parametrize("rule", ["*.ttl", "*.toml", ".*"])
def test_the_journal_is_tracked_under_the_ignore_rules_of_the_repository(tmp_path, monkeypatch, rule):
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitignore").write_text(f"{rule}\n")
    made = run("init", "--project", "p")
    run("remember", "the queue has eight workers")
    if rule == ".*":  # git looks at no rule in an ignored folder
        warning = f"git ignores the journal, so no clone has the memory: .gitignore:1:{rule}"
        assert warning in made.stderr
        assert warning in run("status", "--doctor").stdout
        subprocess.run(["sh", "-c", made.stderr.partition("to end that: ")[2].splitlines()[0]], check=True)

    assert "git ignores" not in run("status", "--doctor").stdout
    assert "1 journal file not in git yet" in run("status").stdout
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "memory")
    assert "not in git yet" not in run("status").stdout
    assert {"config.toml", "projects"} <= {*git(tmp_path, "ls-tree", "--name-only", "HEAD:.jidomem").split()}
    assert not {"cache", "state", "index"} & {*git(tmp_path, "ls-tree", "--name-only", "HEAD:.jidomem").split()}


def test_doctor_reports_the_error_of_git(repository):
    (repository / ".git/config").write_text("[core\n")

    output = run("status", "--doctor").stdout

    assert "warn  git          git cannot use the repository: fatal: bad config line 1" in output
    assert "line ends" not in output


def test_code_of_a_repository_of_another_user_is_imported(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    run("root", "import", "code", ".")

    assert "src/b.py" in run("ask", "modules").stdout


def test_a_forged_tree_writes_no_file_outside_its_folder(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    inner = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], input="", capture_output=True, text=True, check=True
    )
    names = (b"!a.ttl", b"../../x.ttl")
    entry = b"".join(b"100644 %s\0" % name + bytes.fromhex(inner.stdout.strip()) for name in names)
    forged = subprocess.run(["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"], input=entry,
                          capture_output=True, check=True).stdout.decode().strip()  # fmt: skip
    own = f"040000 tree {forged}\tontology\n"
    top = subprocess.run(["git", "mktree"], input=own, capture_output=True, text=True, check=True).stdout.strip()
    outer = subprocess.run(["git", "mktree"], input=f"040000 tree {top}\t.jidomem\n", capture_output=True, text=True,
                           check=True).stdout.strip()  # fmt: skip
    commit = git(repository, "commit-tree", outer, "-m", "made up").strip()

    CliRunner().invoke(cli, ["ontology", "diff", "--from", commit])

    assert not (tmp_path / "x.ttl").exists()


def test_missing_and_an_absent_have_different_errors(tmp_path, monkeypatch):
    with pytest.raises(InvalidRequest, match=f"git failed in {tmp_path}/gone: .*No such file") as absent:
        ask(tmp_path / "gone", "status")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidRequest, match="git is not installed") as missing:
        ask(tmp_path, "status")

    assert [each.value.hint for each in (absent, missing)] == [
        "try it there: git log",
        "install git, then try again",
    ]
