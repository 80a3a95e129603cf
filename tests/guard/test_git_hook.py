"""The guard before a commit: it checks the staged files, and keeps the other content of the hook."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from guard_world import choice, convention, keep, run

from jidomem.runtime.location import init

BIN = Path(sys.executable).parent
THEIRS = '#!/usr/bin/env bash\nset -e\n[ -z "$STOP" ] || { echo theirs >&2; exit 9; }\nexec true\n'


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    init(folder, "p")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/sh")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    return folder


def git(*words, code=0, **environment):
    done = subprocess.run(["git", *words], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == code, done.stderr
    return done


def write(repository, name, text):
    (repository / name).write_text(text)
    git("add", name)


def test_a_commit_that_breaks_a_convention_is_stopped_and_told_why(repository):
    keep(repository, convention("No print", "src", forbidsPattern="print"), choice("Use Oxigraph", "src/a.py"))
    assert run("setup", "git").exit_code == 0
    write(repository, "src/a.py", "x = 1\n")
    first = git("commit", "-qm", "first")
    write(repository, "src/a.py", "print(1)\n")
    (repository / "src" / "a.py").write_text("x = 2\n")  # the staged content counts, not the working tree
    stopped = git("commit", "-qm", "second", code=1)
    past = git("commit", "-qm", "second", "--no-verify")
    write(repository, "src/a.py", "print(1)\nx = 3\n")
    third = git("commit", "-qm", "third")

    assert "Use Oxigraph" in first.stdout + first.stderr
    assert 'src/a.py: line 1 has "print"' in stopped.stderr
    assert (past.stderr, third.stderr) == ("", "")


def test_a_commit_that_could_not_be_checked_passes_with_the_command_that_trusts_the_check(repository):
    keep(repository, convention("It compiles", "src", checkCommand="cc -fsyntax-only -"))
    run("setup", "git")
    write(repository, "src/a.c", "int x;\n")

    passed = git("commit", "-qm", "first")

    assert "not checked: 1 file" in passed.stderr
    assert "jidomem access trust . --command 'cc -fsyntax-only -'" in passed.stderr


def test_what_is_committed_of_a_path_alone_is_what_is_judged(repository):
    keep(repository, convention("No print", "src", forbidsPattern="print"))
    run("setup", "git")
    write(repository, "src/a.py", "x = 1\n")
    write(repository, "src/b.py", "x = 1\n")
    git("commit", "-qm", "first")
    write(repository, "src/a.py", "print(1)\n")
    (repository / "src" / "b.py").write_text("x = 2\n")

    git("commit", "-qm", "only b", "src/b.py")
    stopped = git("commit", "-qm", "a", code=1)

    assert "src/a.py" in stopped.stderr


def test_a_hook_that_is_there_stays_and_goes_on_after_the_guard(repository):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text(THEIRS)
    hook.chmod(0o755)
    keep(repository, convention("No print", "src", forbidsPattern="print"))

    run("setup", "git")
    written = hook.read_text()
    run("setup", "git")
    write(repository, "src/a.py", "print(1)\n")
    ours = git("commit", "-qm", "first", code=1)
    write(repository, "src/a.py", "x = 1\n")
    theirs = git("commit", "-qm", "first", code=1, STOP="1")
    git("commit", "-qm", "first")

    assert hook.read_text() == written
    assert "No print" in ours.stderr
    assert theirs.stderr.endswith("\ntheirs\n")
    assert run("setup", "git", "--check").exit_code == 0
    assert run("setup", "git", "--remove").exit_code == 0
    assert hook.read_text() == THEIRS
    assert run("setup", "git", "--check").exit_code == 1


def test_the_folder_git_is_told_to_look_in_counts(repository):
    git("config", "core.hooksPath", "tools/hooks")

    assert run("setup", "git").exit_code == 0
    hook = repository / "tools" / "hooks" / "pre-commit"
    made = hook.stat().st_mode & 0o777
    assert run("setup", "git", "--remove").exit_code == 0

    assert made == 0o755
    assert not hook.parent.exists()


def test_a_hook_of_a_linked_worktree_is_the_one_of_its_repository(repository, tmp_path, monkeypatch):
    write(repository, "src/a.py", "x = 1\n")
    git("commit", "-qm", "first")
    git("worktree", "add", "-q", str(tmp_path / "other"))
    monkeypatch.chdir(tmp_path / "other")

    assert run("setup", "git").exit_code == 0
    assert (repository / ".git" / "hooks" / "pre-commit").is_file()


def test_a_hook_that_is_no_shell_script_is_left_alone_and_told_what_to_call(repository):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/usr/bin/env python3\nprint('mine')\n")

    refused = run("setup", "git")

    assert refused.exit_code == 1
    assert f"{BIN}/jidomem guard --staged" in refused.stderr
    assert hook.read_text() == "#!/usr/bin/env python3\nprint('mine')\n"


def test_where_there_is_no_repository_there_is_no_hook(tmp_path, monkeypatch):
    (tmp_path / "plain").mkdir()
    monkeypatch.chdir(tmp_path / "plain")

    assert run("setup", "git").exit_code == 4
    assert list((tmp_path / "plain").iterdir()) == []


@pytest.mark.parametrize("gone", [True, False], ids=["jidomem is gone", "the memory cannot be read"])
def test_what_the_guard_cannot_do_is_said_and_stops_no_commit(repository, gone):
    keep(repository, convention("Nothing prints", "src", forbidsPattern="print"))
    run("setup", "git")
    hook = repository / ".git" / "hooks" / "pre-commit"
    if gone:
        hook.write_text(hook.read_text().replace("jidomem guard", "jidomem-that-is-gone guard"))
    else:
        (repository / ".jidomem" / "config.toml").write_text("of_a_later_version = 1\n")
    write(repository, "src/a.py", "print(1)\n")

    said = git("commit", "-qm", "goes on").stderr

    assert ("jidomem-that-is-gone" if gone else "of_a_later_version") in said
    assert b"goes on" in subprocess.check_output(["git", "log", "--format=%s"])
