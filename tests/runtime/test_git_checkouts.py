"""Git checks out another branch during writes: no acknowledged commit loses its parents."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import decision, intent

import jidomem
from jidomem.base import disk
from jidomem.errors import BranchChanged, Busy, Conflict, JournalDamaged
from jidomem.journal.commit import parse
from jidomem.journal.journal import Stream
from jidomem.runtime.location import init
from jidomem_cli.main import cli

STREAM = Stream("p")
MEMORY = ".jidomem/projects/p/memory"
WRITER = str(Path(__file__).with_name("checkout_writer.py"))
IDENTITY = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder, *words, check=True):
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    result = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert not check or result.returncode == 0, (words, result.stdout + result.stderr)
    return result


def commit_all(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "on", "--allow-empty")


def record(memory, summary):
    return memory.writer.submit_intent("p", intent(summary=summary, evidence=[]))


def cli_run(*words):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    return result.exit_code, result.stdout + result.stderr


def hints(folder):
    """Return the commands that the doctor prints for commits left on another branch."""
    output = cli_run("--root", folder / ".jidomem", "status", "--doctor")[1]
    starts = ("do: move to ", "do: remove the copies: ")
    return [line.split(": ", 2)[2] for line in output.splitlines() if line.strip().startswith(starts)]


def execute_hint(hint, check=True, folder=None):
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    result = subprocess.run(
        ["bash", "-c", hint], env={**os.environ, **IDENTITY, **quiet}, cwd=folder, capture_output=True, text=True
    )
    assert not check or result.returncode == 0, result.stderr


def build(folder):
    """Make a repository with the branches `main`, checked out, and `other`: one common memory, and one more each."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    init(folder, "p")
    for branch in ("main", "other"):
        with jidomem.open(folder / ".jidomem") as memory:
            record(memory, "before") if branch == "main" else None
            if branch == "main":
                commit_all(folder)
                git(folder, "branch", "other")
            record(memory, f"on {branch}")
        commit_all(folder)
        git(folder, "checkout", "-q", "other" if branch == "main" else "main")


@pytest.fixture
def repository(tmp_path, copy_built):
    return copy_built(build, tmp_path)


def files(folder):
    return sorted(path.name for path in (folder / MEMORY).glob("*.ttl"))


def run_before_disk_call(monkeypatch, name, action):
    """Run *action* once, right before the journal's next call *name* of the disk."""
    original, actions = getattr(disk, name), [action]

    def wrapped(*words):
        if actions:
            actions.pop()()
        return original(*words)

    monkeypatch.setattr(disk, name, wrapped)


@pytest.mark.parametrize("call", ["create", "fsync", "rename", "flush"])
def test_a_write_during_a_checkout_is_undone_and_refused(repository, monkeypatch, call):
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "warm")
        commit_all(repository)
        run_before_disk_call(monkeypatch, call, lambda: git(repository, "checkout", "-q", "other"))

        with pytest.raises(Busy) as refusal:
            record(memory, "too late")

        assert "another branch is checked out; nothing was kept" in refusal.value.detail
        assert refusal.value.hint.startswith("submit again")
        assert memory.journal.verify(STREAM) == ()
        assert git(repository, "status", "--porcelain").stdout == ""

        second = record(memory, "too late")  # validated against the branch that is checked out now
        assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"too late", "on other", "before"}
        assert parse((repository / MEMORY / files(repository)[-1]).read_bytes()).id == second.commit
        commit_all(repository)
        git(repository, "checkout", "-q", "main")
        assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"warm", "on main", "before"}


def test_a_writer_waits_for_a_recent_git_index_lock_and_not_for_an_old_one(repository, monkeypatch):
    lock = repository / ".git" / "index.lock"
    with jidomem.open(repository / ".jidomem") as memory:
        lock.write_bytes(b"")
        writer = threading.Thread(target=record, args=(memory, "waited"))
        writer.start()
        writer.join(0.5)
        assert writer.is_alive()
        lock.unlink()
        writer.join()

        lock.write_bytes(b"")
        os.utime(lock, (1, 1))  # like the lock of a git process killed long ago
        record(memory, "did not wait")
    assert len(files(repository)) == 4


def test_a_commit_from_git_during_a_write_is_included_in_the_next_conflict_check(tmp_path, repository, monkeypatch):
    clone = tmp_path.with_name(f"{tmp_path.name}-clone")
    git(repository, "clone", "-q", repository, clone)
    with jidomem.open(clone / ".jidomem") as clone_memory:
        pulled = clone_memory.writer.submit_intent("p", decision(summary="cache in Redis", topic="cache store"))
    (name,) = set(files(clone)) - set(files(repository))
    lock = repository / ".git" / "index.lock"
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "warm")
        before = len(files(repository))
        run_before_disk_call(
            monkeypatch, "flush", lambda: lock.write_bytes(b"")
        )  # git starts once the commit is in place
        writer = threading.Thread(target=record, args=(memory, "written meanwhile"))
        writer.start()
        while len(files(repository)) == before:
            time.sleep(0.01)
        time.sleep(0.3)  # the writer waits for the lock of git
        (repository / MEMORY / name).write_bytes((clone / MEMORY / name).read_bytes())
        assert pulled.commit in memory.journal.head(STREAM).ids  # visible to a reader
        lock.unlink()
        writer.join()

        with pytest.raises(Conflict) as conflict:
            memory.writer.submit_intent("p", decision(summary="cache in Valkey", topic="cache store"))
        assert [each.iri for each in conflict.value.conflicts] == [pulled.iri]


def test_a_branch_checked_out_during_a_read_of_commits_is_read(repository, monkeypatch):
    with jidomem.open(repository / ".jidomem") as memory, jidomem.open(repository / ".jidomem") as other:
        memory.reader.ask("facts", project="p")
        record(other, "new")
        commit_all(repository)
        original, actions = memory.journal.read, [lambda: git(repository, "checkout", "-q", "other")]

        def read(*words, **options):
            if actions:
                actions.pop()()
            return original(*words, **options)

        monkeypatch.setattr(memory.journal, "read", read)

        assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"on other", "before"}


def test_a_worktree_has_its_own_index_lock(repository):
    tree = repository.parent / f"{repository.name}-tree"
    git(repository, "worktree", "add", "-q", str(tree), "other")
    lock = Path(git(tree, "rev-parse", "--absolute-git-dir").stdout.strip(), "index.lock")
    (repository / ".git" / "index.lock").write_bytes(b"")
    lock.write_bytes(b"")
    with jidomem.open(tree / ".jidomem") as memory:
        writer = threading.Thread(target=record, args=(memory, "waited"))
        writer.start()
        writer.join(0.5)
        assert writer.is_alive()
        lock.unlink()
        writer.join()


@pytest.mark.parametrize("is_tracked", [False, True])
def test_a_commit_left_on_another_branch_is_reported_and_moved_by_the_hint(repository, is_tracked):
    with jidomem.open(repository / ".jidomem") as memory:
        left_commits = [record(memory, "stays behind").commit, record(memory, "and after it").commit]
        git(repository, "checkout", "-q", "other")
        if is_tracked:
            commit_all(repository)
        with pytest.raises(BranchChanged) as refusal:
            record(memory, "on the wrong branch")
        assert (refusal.value.code, refusal.value.branch) == ("branch_changed", "main")
        assert refusal.value.commits == tuple(commit[:12] for commit in left_commits)
        assert "nothing is lost" in refusal.value.detail

        code, verified = cli_run("--root", repository / ".jidomem", "journal", "verify")
        (hint,) = hints(repository)
        assert code == 7
        named = ", ".join(commit[:12] for commit in left_commits)
        assert "  2 of another branch\n" in verified
        assert f"2 commits of p/memory ({named}) were written on the branch main" in verified
        assert hint in verified
        assert refusal.value.hint == f"move to main: {hint}"
        execute_hint(hint)

        assert (hints(repository), memory.journal.verify(STREAM)) == ([], ())
        record(memory, "on the right branch")
        commit_all(repository)
        git(repository, "checkout", "-q", "main")
        assert [parse((repository / MEMORY / name).read_bytes()).id for name in files(repository)[-2:]] == left_commits
        assert memory.journal.verify(STREAM) == ()
    assert git(repository, "status", "--porcelain").stdout == ""


def test_staged_commits_left_on_another_branch_are_moved_to_their_branch(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "stays behind")
        git(repository, "add", "-A")
        git(repository, "checkout", "-q", "other")

        (hint,) = hints(repository)
        execute_hint(hint)

        assert (hints(repository), memory.journal.verify(STREAM)) == ([], ())
    assert git(repository, "status", "--porcelain").stdout == ""


def test_the_command_for_commits_left_on_another_branch_names_each_file_once(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        ids = [record(memory, f"stays behind {number}").commit[:12] for number in range(30)]
    git(repository, "checkout", "-q", "other")

    (loose,) = hints(repository)
    commit_all(repository)
    (committed,) = hints(repository)

    assert len(loose) < 250 + len(str(repository))
    assert all(committed.count(identity) == 1 for identity in ids)
    execute_hint(committed)
    assert hints(repository) == []


def test_a_deleted_parent_on_the_same_branch_is_damage(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "after the lost one")
    (repository / MEMORY / files(repository)[0]).unlink()  # the branch `other` has it too

    with jidomem.open(repository / ".jidomem") as memory, pytest.raises(JournalDamaged) as refusal:
        record(memory, "on damage")

    assert refusal.value.code == "journal_damaged"
    assert hints(repository) == []


def test_a_parent_removed_on_this_branch_is_restored_from_its_history(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "after the lost one")
    commit_all(repository)
    removed = files(repository)[1]
    git(repository, "branch", "copy")
    git(repository, "rm", "-q", f"{MEMORY}/{removed}")
    git(repository, "commit", "-qm", "lost")

    with jidomem.open(repository / ".jidomem") as memory, pytest.raises(JournalDamaged) as refusal:
        record(memory, "on damage")

    assert refusal.value.code == "journal_damaged"
    assert hints(repository) == []
    execute_hint(refusal.value.hint.partition(": ")[2].partition(" && jidomem")[0], folder=repository)
    assert removed in files(repository)
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "writing goes on")


def test_open_processes_answer_like_a_new_one_after_checkouts(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    root = init(tmp_path, "p")
    with jidomem.open(root) as memory:
        for number in range(3):
            memory.writer.submit_intent("p", decision(summary=f"first {number}", topic=f"f{number}"))
        commit_all(tmp_path)
        git(tmp_path, "branch", "other")
        for number in range(4):
            memory.writer.submit_intent("p", decision(summary=f"second {number}", topic=f"s{number}"))
    commit_all(tmp_path)

    def decisions(memory):
        return sorted(row["summary"] for row in memory.reader.ask("decisions"))

    def agree(*memories):
        with jidomem.open(root, project="p") as new:
            assert [decisions(each) for each in memories] == [decisions(new)] * len(memories)
            return len(decisions(new))

    with jidomem.open(root, project="p") as one, jidomem.open(root, project="p") as two:
        assert agree(one, two) == 7
        record(one, "not committed when the branch changes")
        assert agree(one, two) == 7
        git(tmp_path, "checkout", "-q", "other")
        assert agree(one, two) == 3
        git(tmp_path, "checkout", "-q", "main")
        assert agree(one, two) == 7
        record(two, "written on main")
        assert agree(one, two) == 7
        assert isinstance(_refusal(two, decision(summary="against it", topic="s1")), Conflict)
        commit_all(tmp_path)
        git(tmp_path, "checkout", "-q", "other")
        assert agree(one, two) == 3
        git(tmp_path, "checkout", "-q", "main")
        assert agree(one, two) == 7


def _refusal(memory, intent):
    with pytest.raises(Conflict) as refusal:
        memory.writer.submit_intent("p", intent)
    return refusal.value


def test_reading_next_to_commits_of_another_branch_warns_of_the_branch_and_not_of_damage(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "stays behind")
    git(repository, "checkout", "-q", "other")

    code, output = cli_run("--root", repository / ".jidomem", "ask", "facts")

    assert (code, "warning: branch_changed: 1 commit of p/memory" in output, "damage" in output) == (0, True, False)


def test_a_left_commit_that_its_branch_has_already_is_only_removed(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "copied")
        copied = repository / MEMORY / files(repository)[-1]
        data = copied.read_bytes()
        commit_all(repository)
        git(repository, "checkout", "-q", "other")
        copied.write_bytes(data)

        (hint,) = hints(repository)
        execute_hint(hint)

        assert not copied.exists()
        assert (hints(repository), memory.journal.verify(STREAM)) == ([], ())


@pytest.mark.parametrize("is_tracked", [False, True], ids=["untracked", "tracked"])
def test_commits_after_both_branches_are_moved_with_the_parents_their_branch_lacks(tmp_path, is_tracked):
    git(tmp_path, "init", "-q", "-b", "main")
    init(tmp_path, "p")
    with jidomem.open(tmp_path / ".jidomem") as memory:
        record(memory, "before")
        commit_all(tmp_path)
        git(tmp_path, "checkout", "-qb", "feature")
        record(memory, "on the feature")
        commit_all(tmp_path)
        git(tmp_path, "checkout", "-q", "main")
        record(memory, "on main, not committed")
        git(tmp_path, "checkout", "-q", "feature")
        record(memory, "after both")
        git(tmp_path, "checkout", "-q", "main")
        if is_tracked:
            commit_all(tmp_path)

        (hint,) = hints(tmp_path)
        execute_hint(hint)

        assert (hints(tmp_path), memory.journal.verify(STREAM)) == ([], ())
        summaries = {row["summary"] for row in memory.reader.ask("facts", project="p")}
        assert summaries == {"before", "on main, not committed"}
    worktree = tmp_path.with_name(f"{tmp_path.name}-feature")
    git(tmp_path, "worktree", "add", "-q", worktree, "feature")
    assert cli_run("--root", worktree / ".jidomem", "journal", "verify")[0] == 0
    with jidomem.open(worktree / ".jidomem") as memory:
        assert len(memory.reader.ask("facts", project="p")) == 4


def test_verify_and_doctor_report_commits_missing_from_the_folder_but_in_head(repository):
    newest = repository / MEMORY / files(repository)[-1]
    newest.unlink()

    code, verified = cli_run("--root", repository / ".jidomem", "journal", "verify")
    assert (code, "1 missing" in verified, "sound" in verified) == (7, True, False)
    for full in ([], ["--full"]):
        code, report = cli_run("--root", repository / ".jidomem", "status", "--doctor", *full)
        assert (code, "was there at HEAD and is gone" in report, "is at 1-" in report) == (1, True, False)
    hint = next(line.partition("restore it: ")[2] for line in report.splitlines() if "restore it: " in line)
    execute_hint(hint, folder=repository)

    assert newest.exists()
    assert cli_run("--root", repository / ".jidomem", "journal", "verify")[0] == 0


def test_no_acknowledged_write_is_lost_while_branches_change(repository):
    """Two processes write while a user commits, changes the branch and runs the hints of the doctor."""
    command = [sys.executable, WRITER, str(repository / ".jidomem")]
    writers = [subprocess.Popen([*command, name], stdin=-1, stdout=-1, text=True) for name in ("ana", "bob")]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        lines = [[] for _ in writers]
        readers = [
            threading.Thread(target=lambda writer=writer, to=to: to.extend(writer.stdout))
            for writer, to in zip(writers, lines, strict=True)
        ]
        for reader in readers:
            reader.start()
        for turn in range(8):
            commit_all(repository)
            git(repository, "checkout", "-q", ("other", "main")[turn % 2])
            for hint in hints(repository):
                execute_hint(hint, check=False)  # a concurrent write may prevent it; then the hint is repeated
    finally:
        for writer in writers:
            writer.stdin.close()
    for reader, writer in zip(readers, writers, strict=True):
        reader.join()
        writer.stdout.close()
        assert writer.wait() == 0
    for _ in range(4):
        for branch in ("main", "other"):
            commit_all(repository)
            git(repository, "checkout", "-q", branch)
            for hint in hints(repository):
                execute_hint(hint)

    acknowledged = {line.split()[1] for of in lines for line in of if line.startswith("kept")}
    refused = {line.split()[1] for of in lines for line in of if line.startswith("refused")}
    assert refused <= {"busy", "journal_damaged", "branch_changed"}
    stored = dict[str, set[str]]()
    for branch in ("main", "other"):
        git(repository, "checkout", "-q", branch)
        commits = {
            commit.id: commit for commit in map(parse, map(Path.read_bytes, (repository / MEMORY).glob("*.ttl")))
        }
        assert all(parent in commits for commit in commits.values() for parent in commit.parents)
        stored[branch] = {*commits}
    assert len(acknowledged) > 20
    assert acknowledged <= stored["main"] | stored["other"]


def test_pack_prints_the_command_that_commits_the_pack_and_the_removed_files(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        record(memory, "never committed")

    code, output = cli_run("--root", repository / ".jidomem", "journal", "pack")
    command = output.splitlines()[-1].strip()
    execute_hint(command)

    assert code == 0
    assert "the new packs (pack-*.ttl) and 2 removed commit files" in output
    assert git(repository, "status", "--porcelain").stdout == ""
    assert git(repository, "log", "--format=%s", "-1").stdout == "Memory: pack commits\n"
    assert "commit to git" not in cli_run("--root", repository / ".jidomem", "journal", "pack")[1]  # nothing was packed


@pytest.fixture
def picked(tmp_path):
    """Return a repository whose branch main has the last of two memories of the branch feature, by git cherry-pick."""
    git(tmp_path, "init", "-q", "-b", "main")
    init(tmp_path, "p")
    with jidomem.open(tmp_path / ".jidomem") as memory:
        record(memory, "before")
        commit_all(tmp_path)
        git(tmp_path, "checkout", "-qb", "feature")
        for text in ("first of the feature", "second of the feature"):
            record(memory, text)
            commit_all(tmp_path)
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "cherry-pick", "feature")
    return tmp_path


@pytest.mark.parametrize(("way", "facts"), [("merge", 4), ("take it out", 2)])
def test_a_memory_picked_without_its_parents_is_reported_with_two_ways_out(picked, way, facts):
    before = git(picked, "rev-parse", "HEAD").stdout.strip()
    with jidomem.open(picked / ".jidomem") as memory:
        with pytest.raises(BranchChanged, match=r"1 commit of p/memory .* is on main without the parents") as refusal:
            record(memory, "on the picked one")
        merge, _, removal = refusal.value.hint.partition("; or take it out here: ")
        assert merge == "bring the parents: git merge feature"
        execute_hint(removal if way == "take it out" else "git merge -q --no-edit feature", folder=picked)

        assert cli_run("--root", picked / ".jidomem", "check", "--since", before)[0] == 0  # as in CI
        record(memory, "writing goes on")
        assert (len(memory.reader.ask("facts")), memory.journal.verify(STREAM)) == (facts, ())


def test_a_memory_picked_from_a_branch_that_is_gone_stays_without_its_parent(picked):
    git(picked, "branch", "-qD", "feature")
    with jidomem.open(picked / ".jidomem") as memory:
        with pytest.raises(JournalDamaged) as refusal:
            record(memory, "on the picked one")
        _, _, command = refusal.value.hint.rpartition(" --quarantine ")
        cli_run("--root", picked / ".jidomem", "journal", "verify", "--quarantine", command.split()[0], "--reason", "r")

        record(memory, "writing goes on")
        assert {row["summary"] for row in memory.reader.ask("facts")} == {
            "before", "second of the feature", "writing goes on"
        }  # fmt: skip
