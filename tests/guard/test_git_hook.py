"""The guard before a commit: it checks the staged files, and keeps the other content of the hook."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guard_world import choice, convention, denied, hooked, record, run

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


def test_a_commit_that_breaks_a_convention_is_stopped_with_the_reason(repository):
    record(repository, convention("No print", "src", forbidsPattern="print"), choice("Use Oxigraph", "src/a.py"))
    assert run("setup", "git").exit_code == 0
    write(repository, "src/a.py", "x = 1\n")
    first = git("commit", "-qm", "first")
    write(repository, "src/a.py", "print(1)\n")
    (repository / "src" / "a.py").write_text("x = 2\n")  # the staged content counts, not the working tree
    stopped = git("commit", "-qm", "second", code=1)
    unverified = git("commit", "-qm", "second", "--no-verify")
    write(repository, "src/a.py", "print(1)\nx = 3\n")
    third = git("commit", "-qm", "third")

    assert "Use Oxigraph" in first.stdout + first.stderr
    assert 'src/a.py: line 1 has "print"' in stopped.stderr
    assert (unverified.stderr, third.stderr) == ("", "")


@pytest.mark.parametrize("has_top", [True, False])
def test_the_memory_of_a_folder_is_asked_from_the_top_of_the_repository(repository, has_top):
    if not has_top:
        shutil.rmtree(repository / ".jidomem")
    billing = repository / "services" / "billing"
    (billing / "src").mkdir(parents=True)
    init(billing, "p")
    record(billing, convention("No print", "src", forbidsPattern="print"))
    assert run("setup", "git").exit_code == 0
    path = "services/billing/src/a.py"
    write(repository, path, "print(1)\n")

    reason = f'{path}: line 1 has "print"'
    assert reason in git("commit", "-qm", "first", code=1).stderr
    for words in (["guard", path], ["guard", "."]):
        assert reason in run(*words).stderr
    new = str(repository / path.replace("a.py", "b.py"))
    assert reason.replace("a.py", "b.py") in denied(hooked(repository, "Write", file_path=new, content="print(2)\n"))
    journal = next(billing.glob(".jidomem/projects/p/memory/*.ttl"))
    assert "belongs to the journal" in denied(hooked(repository, "Write", file_path=str(journal), content="x"))
    assert run("guard", "--override", "the old interface needs it", path).exit_code == 0
    git("commit", "-qm", "first")
    shown = run("governing", path) if has_top else run("governing", "--root", billing / ".jidomem", "src/a.py")
    assert ("(cd " in shown.stderr and "jidomem governing src/a.py)" in shown.stderr) == has_top
    assert ("No print" in shown.stdout) != has_top


def test_a_commit_that_could_not_be_checked_passes_with_the_command_that_trusts_the_check(repository):
    record(repository, convention("It compiles", "src", checkCommand="cc -fsyntax-only -"))
    run("setup", "git")
    write(repository, "src/a.c", "int x;\n")

    passed = git("commit", "-qm", "first")

    assert "not checked: 1 file" in passed.stderr
    assert "jidomem access trust . --command 'cc -fsyntax-only -'" in passed.stderr


def test_a_commit_of_one_path_is_checked_for_that_path_only(repository):
    record(repository, convention("No print", "src", forbidsPattern="print"))
    run("setup", "git")
    write(repository, "src/a.py", "x = 1\n")
    write(repository, "src/b.py", "x = 1\n")
    git("commit", "-qm", "first")
    write(repository, "src/a.py", "print(1)\n")
    (repository / "src" / "b.py").write_text("x = 2\n")

    git("commit", "-qm", "only b", "src/b.py")
    stopped = git("commit", "-qm", "a", code=1)

    assert "src/a.py" in stopped.stderr


def test_an_existing_hook_runs_after_the_guard_and_is_restored_on_removal(repository):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text(THEIRS)
    hook.chmod(0o755)
    record(repository, convention("No print", "src", forbidsPattern="print"))

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


@pytest.mark.parametrize("is_worktree", [False, True])
def test_status_warns_of_a_hook_of_an_earlier_version_until_it_is_set_up_again(repository, monkeypatch, is_worktree):
    warning = "the git hook is that of another version of jidomem: jidomem setup git"
    record(repository, choice("Use Oxigraph", "src/a.py"))
    assert warning not in run("status").stderr
    run("setup", "git")
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text(hook.read_text().replace(str(BIN), "/elsewhere"))
    assert warning not in run("status").stderr
    hook.write_text(hook.read_text().partition(" || ")[0] + " || exit 1\n# <<< jidomem setup git <<<\n")
    if is_worktree:
        git("add", ".jidomem")
        git("commit", "-qm", "memory", "--no-verify")
        git("worktree", "add", "-q", "../other")
        monkeypatch.chdir(repository.parent / "other")

    assert warning in run("status").stderr
    assert "do: jidomem setup git" in run("status", "--doctor").stdout
    run("setup", "git")
    assert warning not in run("status").stderr


def test_the_hook_is_installed_in_core_hooks_path(repository):
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


def test_a_hook_that_is_no_shell_script_is_left_unchanged_with_the_command_to_add(repository):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/usr/bin/env python3\nprint('mine')\n")

    refused = run("setup", "git")

    assert refused.exit_code == 1
    assert f"{BIN}/jidomem guard --staged" in refused.stderr
    assert hook.read_text() == "#!/usr/bin/env python3\nprint('mine')\n"


def test_a_hook_outside_of_a_repository_is_refused(tmp_path, monkeypatch):
    (tmp_path / "plain").mkdir()
    monkeypatch.chdir(tmp_path / "plain")

    assert run("setup", "git").exit_code == 4
    assert list((tmp_path / "plain").iterdir()) == []


def test_faulty_rules_of_the_root_turn_the_guard_off_neither_before_a_commit_nor_before_an_edit(repository):
    record(repository, convention("Nothing prints", "src", forbidsPattern="print"))
    run("setup", "git")
    for name in ("shapes/own.ttl", "queries/curator/own.rq"):
        (repository / ".jidomem" / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / ".jidomem" / name).write_text("shop:A a\n")
    write(repository, "src/a.py", "print(1)\n")

    stopped = git("commit", "-qm", "second", code=1)

    assert "Nothing prints" in stopped.stderr
    assert denied(hooked(repository, "Write", file_path="src/b.py", content="print(2)\n"))


def test_terms_that_cannot_be_read_leave_a_commit_unchecked_and_say_so(repository):
    record(repository, convention("Nothing prints", "src", forbidsPattern="print"))
    run("setup", "git")
    (repository / ".jidomem" / "ontology").mkdir()
    (repository / ".jidomem" / "ontology" / "own.ttl").write_text("shop:A a\n")
    write(repository, "src/a.py", "x = 1\n")

    passed = git("commit", "-qm", "second")

    assert "a rule may be missing" in passed.stderr
    assert "ontology/own.ttl:1" in passed.stderr
    assert passed.stderr.endswith("jidomem: committed UNCHECKED, for the reason above\n")


@pytest.mark.parametrize("is_missing", [True, False], ids=["jidomem is gone", "the memory cannot be read"])
def test_a_guard_that_cannot_run_is_reported_and_stops_no_commit(repository, is_missing):
    record(repository, convention("Nothing prints", "src", forbidsPattern="print"))
    run("setup", "git")
    hook = repository / ".git" / "hooks" / "pre-commit"
    if is_missing:
        hook.write_text(hook.read_text().replace("jidomem guard", "jidomem-that-is-gone guard"))
    else:
        (repository / ".jidomem" / "config.toml").write_text("of_a_later_version = 1\n")
    write(repository, "src/a.py", "print(1)\n")

    output = git("commit", "-qm", "goes on").stderr

    assert ("jidomem-that-is-gone" if is_missing else "of_a_later_version") in output
    assert "committed UNCHECKED" in output
    assert b"goes on" in subprocess.check_output(["git", "log", "--format=%s"])
