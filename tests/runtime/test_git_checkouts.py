"""Git checks another branch out while memories are written: nothing that was acknowledged loses what it follows."""

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
TESTS = str(Path(__file__).parents[1])
NAMED = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder, *words, check=True):
    environment = {**os.environ, **NAMED, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert not check or done.returncode == 0, (words, done.stdout + done.stderr)
    return done


def commit_all(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "on", "--allow-empty")


def keep(memory, summary):
    return memory.writer.submit_intent("p", intent(summary=summary, evidence=[]))


def cli_run(*words):
    done = CliRunner().invoke(cli, [str(word) for word in words])
    return done.exit_code, done.stdout + done.stderr


def hints(folder):
    """The commands that doctor prints for commits that stayed behind."""
    shown = cli_run("--root", folder / ".jidomem", "status", "--doctor")[1]
    starts = ("do: move to ", "do: remove the copies: ")
    return [line.split(": ", 2)[2] for line in shown.splitlines() if line.strip().startswith(starts)]


def paste(hint, check=True, folder=None):
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["bash", "-c", hint], env={**os.environ, **NAMED, **quiet}, cwd=folder, capture_output=True, text=True
    )
    assert not check or done.returncode == 0, done.stderr


@pytest.fixture
def repository(tmp_path):
    """A repository whose branches `main` and `other` have a memory in common, and one more each; `main` is there."""
    git(tmp_path, "init", "-q", "-b", "main")
    init(tmp_path, "p")
    for branch in ("main", "other"):
        with jidomem.open(tmp_path / ".jidomem") as memory:
            keep(memory, "before") if branch == "main" else None
            if branch == "main":
                commit_all(tmp_path)
                git(tmp_path, "branch", "other")
            keep(memory, f"on {branch}")
        commit_all(tmp_path)
        git(tmp_path, "checkout", "-q", "other" if branch == "main" else "main")
    return tmp_path


def files(folder):
    return sorted(path.name for path in (folder / MEMORY).glob("*.ttl"))


def during(monkeypatch, name, action):
    """Let *action* happen once, right before the journal's next call *name* of the disk."""
    real, left = getattr(disk, name), [action]

    def called(*words):
        if left:
            left.pop()()
        return real(*words)

    monkeypatch.setattr(disk, name, called)


@pytest.mark.parametrize("call", ["create", "fsync", "rename", "flush"])
def test_a_write_that_another_branch_was_checked_out_under_is_taken_back_and_refused(repository, monkeypatch, call):
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "warm")
        commit_all(repository)
        during(monkeypatch, call, lambda: git(repository, "checkout", "-q", "other"))

        with pytest.raises(Busy) as refusal:
            keep(memory, "too late")

        assert "another branch is checked out; nothing was kept" in refusal.value.detail
        assert refusal.value.hint.startswith("submit again")
        assert memory.journal.verify(STREAM) == ()
        assert git(repository, "status", "--porcelain").stdout == ""

        again = keep(memory, "too late")  # judged by the branch that is here now
        assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"too late", "on other", "before"}
        assert parse((repository / MEMORY / files(repository)[-1]).read_bytes()).id == again.commit
        commit_all(repository)
        git(repository, "checkout", "-q", "main")
        assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"warm", "on main", "before"}


def test_a_writer_waits_for_the_young_lock_of_gits_index_and_not_for_an_old_one(repository, monkeypatch):
    lock = repository / ".git" / "index.lock"
    with jidomem.open(repository / ".jidomem") as memory:
        lock.write_bytes(b"")
        written = threading.Thread(target=keep, args=(memory, "waited"))
        written.start()
        written.join(0.5)
        assert written.is_alive()
        lock.unlink()
        written.join()

        lock.write_bytes(b"")
        os.utime(lock, (1, 1))  # git was killed long ago
        keep(memory, "did not wait")
    assert len(files(repository)) == 4


def test_a_commit_that_git_brings_while_another_is_written_is_judged_by_the_next(tmp_path, repository, monkeypatch):
    clone = tmp_path.with_name(f"{tmp_path.name}-clone")
    git(repository, "clone", "-q", repository, clone)
    with jidomem.open(clone / ".jidomem") as theirs:
        pulled = theirs.writer.submit_intent("p", decision(summary="cache in Redis", topic="cache store"))
    (name,) = set(files(clone)) - set(files(repository))
    lock = repository / ".git" / "index.lock"
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "warm")
        before = len(files(repository))
        during(monkeypatch, "flush", lambda: lock.write_bytes(b""))  # git begins once the commit is in place
        writing = threading.Thread(target=keep, args=(memory, "written meanwhile"))
        writing.start()
        while len(files(repository)) == before:
            time.sleep(0.01)
        time.sleep(0.3)  # the writer waits for git's lock
        (repository / MEMORY / name).write_bytes((clone / MEMORY / name).read_bytes())
        assert pulled.commit in memory.journal.head(STREAM).ids  # a reader sees it
        lock.unlink()
        writing.join()

        with pytest.raises(Conflict) as conflict:
            memory.writer.submit_intent("p", decision(summary="cache in Valkey", topic="cache store"))
        assert [each.iri for each in conflict.value.conflicts] == [pulled.iri]


def test_a_branch_that_is_checked_out_while_new_commits_are_read_is_read_instead(repository, monkeypatch):
    with jidomem.open(repository / ".jidomem") as memory, jidomem.open(repository / ".jidomem") as other:
        memory.reader.ask("facts", project="p")
        keep(other, "new")
        commit_all(repository)
        real, left = memory.journal.read, [lambda: git(repository, "checkout", "-q", "other")]

        def read(*words, **options):
            if left:
                left.pop()()
            return real(*words, **options)

        monkeypatch.setattr(memory.journal, "read", read)

        assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {"on other", "before"}


def test_a_worktree_has_an_index_lock_of_its_own(repository):
    tree = repository.parent / f"{repository.name}-tree"
    git(repository, "worktree", "add", "-q", str(tree), "other")
    own = Path(git(tree, "rev-parse", "--absolute-git-dir").stdout.strip(), "index.lock")
    (repository / ".git" / "index.lock").write_bytes(b"")
    own.write_bytes(b"")
    with jidomem.open(tree / ".jidomem") as memory:
        written = threading.Thread(target=keep, args=(memory, "waited"))
        written.start()
        written.join(0.5)
        assert written.is_alive()
        own.unlink()
        written.join()


@pytest.mark.parametrize("is_tracked", [False, True])
def test_a_commit_that_stayed_behind_is_named_by_doctor_and_verify_and_moved_by_their_hint(repository, is_tracked):
    with jidomem.open(repository / ".jidomem") as memory:
        kept = [keep(memory, "stays behind").commit, keep(memory, "and after it").commit]
        git(repository, "checkout", "-q", "other")
        if is_tracked:
            commit_all(repository)
        with pytest.raises(BranchChanged) as refusal:
            keep(memory, "on the wrong branch")
        assert (refusal.value.code, refusal.value.branch) == ("branch_changed", "main")
        assert refusal.value.commits == tuple(commit[:12] for commit in kept)
        assert "nothing is lost" in refusal.value.detail

        code, verified = cli_run("--root", repository / ".jidomem", "journal", "verify")
        (hint,) = hints(repository)
        assert code == 7
        named = ", ".join(commit[:12] for commit in kept)
        assert "  2 of another branch\n" in verified
        assert f"2 commits of p/memory ({named}) were written on the branch main" in verified
        assert hint in verified
        assert refusal.value.hint == f"move to main: {hint}"
        paste(hint)

        assert (hints(repository), memory.journal.verify(STREAM)) == ([], ())
        keep(memory, "on the right branch")
        commit_all(repository)
        git(repository, "checkout", "-q", "main")
        assert [parse((repository / MEMORY / name).read_bytes()).id for name in files(repository)[-2:]] == kept
        assert memory.journal.verify(STREAM) == ()
    assert git(repository, "status", "--porcelain").stdout == ""


def test_commits_that_stayed_behind_staged_are_moved_to_their_branch_too(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "stays behind")
        git(repository, "add", "-A")
        git(repository, "checkout", "-q", "other")

        (hint,) = hints(repository)
        paste(hint)

        assert (hints(repository), memory.journal.verify(STREAM)) == ([], ())
    assert git(repository, "status", "--porcelain").stdout == ""


def test_the_command_for_commits_that_stayed_behind_is_short_and_names_no_file_twice(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        ids = [keep(memory, f"stays behind {number}").commit[:12] for number in range(30)]
    git(repository, "checkout", "-q", "other")

    (loose,) = hints(repository)
    commit_all(repository)
    (committed,) = hints(repository)

    assert len(loose) < 250 + len(str(repository))
    assert all(committed.count(identity) == 1 for identity in ids)
    paste(committed)
    assert hints(repository) == []


def test_a_parent_that_was_deleted_on_this_branch_is_damage_and_no_change_of_branch(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "after the lost one")
    (repository / MEMORY / files(repository)[0]).unlink()  # which the branch other has too

    with jidomem.open(repository / ".jidomem") as memory, pytest.raises(JournalDamaged) as refusal:
        keep(memory, "on damage")

    assert refusal.value.code == "journal_damaged"
    assert hints(repository) == []


def test_a_parent_that_this_branch_removed_is_restored_from_its_history_though_another_branch_has_it(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "after the lost one")
    commit_all(repository)
    lost = files(repository)[1]
    git(repository, "branch", "copy")
    git(repository, "rm", "-q", f"{MEMORY}/{lost}")
    git(repository, "commit", "-qm", "lost")

    with jidomem.open(repository / ".jidomem") as memory, pytest.raises(JournalDamaged) as refusal:
        keep(memory, "on damage")

    assert refusal.value.code == "journal_damaged"
    assert hints(repository) == []
    paste(refusal.value.hint.partition(": ")[2].partition(" && jidomem")[0], folder=repository)
    assert lost in files(repository)
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "writing goes on")


def test_processes_that_stay_open_over_checkouts_answer_as_a_new_process_does(tmp_path):
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
        keep(one, "not committed when the branch changes")
        assert agree(one, two) == 7
        git(tmp_path, "checkout", "-q", "other")
        assert agree(one, two) == 3
        git(tmp_path, "checkout", "-q", "main")
        assert agree(one, two) == 7
        keep(two, "written on main")
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


def test_reading_beside_commits_that_stayed_behind_warns_of_the_branch_and_not_of_damage(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "stays behind")
    git(repository, "checkout", "-q", "other")

    code, shown = cli_run("--root", repository / ".jidomem", "ask", "facts")

    assert (code, "warning: branch_changed: 1 commit of p/memory" in shown, "damage" in shown) == (0, True, False)


def test_a_commit_that_stayed_behind_and_is_on_its_branch_already_is_only_taken_away(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "copied")
        copied = repository / MEMORY / files(repository)[-1]
        data = copied.read_bytes()
        commit_all(repository)
        git(repository, "checkout", "-q", "other")
        copied.write_bytes(data)

        (hint,) = hints(repository)
        paste(hint)

        assert not copied.exists()
        assert (hints(repository), memory.journal.verify(STREAM)) == ([], ())


@pytest.mark.parametrize("is_tracked", [False, True], ids=["untracked", "tracked"])
def test_commits_that_follow_memory_of_both_branches_are_moved_with_what_their_branch_lacks(tmp_path, is_tracked):
    git(tmp_path, "init", "-q", "-b", "main")
    init(tmp_path, "p")
    with jidomem.open(tmp_path / ".jidomem") as memory:
        keep(memory, "before")
        commit_all(tmp_path)
        git(tmp_path, "checkout", "-qb", "feature")
        keep(memory, "on the feature")
        commit_all(tmp_path)
        git(tmp_path, "checkout", "-q", "main")
        keep(memory, "on main, not committed")
        git(tmp_path, "checkout", "-q", "feature")
        keep(memory, "after both")
        git(tmp_path, "checkout", "-q", "main")
        if is_tracked:
            commit_all(tmp_path)

        (hint,) = hints(tmp_path)
        paste(hint)

        assert (hints(tmp_path), memory.journal.verify(STREAM)) == ([], ())
        summaries = {row["summary"] for row in memory.reader.ask("facts", project="p")}
        assert summaries == {"before", "on main, not committed"}
    apart = tmp_path.with_name(f"{tmp_path.name}-feature")
    git(tmp_path, "worktree", "add", "-q", apart, "feature")
    assert cli_run("--root", apart / ".jidomem", "journal", "verify")[0] == 0
    with jidomem.open(apart / ".jidomem") as memory:
        assert len(memory.reader.ask("facts", project="p")) == 4


def test_verify_and_doctor_tell_of_commits_that_head_has_and_the_folder_lacks(repository):
    newest = repository / MEMORY / files(repository)[-1]
    newest.unlink()

    code, verified = cli_run("--root", repository / ".jidomem", "journal", "verify")
    assert (code, "1 missing" in verified, "sound" in verified) == (7, True, False)
    for full in ([], ["--full"]):
        code, looked = cli_run("--root", repository / ".jidomem", "status", "--doctor", *full)
        assert (code, "was there at HEAD and is gone" in looked, "is at 1-" in looked) == (1, True, False)
    hint = next(line.partition("restore it: ")[2] for line in looked.splitlines() if "restore it: " in line)
    paste(hint, folder=repository)

    assert newest.exists()
    assert cli_run("--root", repository / ".jidomem", "journal", "verify")[0] == 0


def test_no_acknowledged_write_is_lost_or_without_parents_while_branches_change(repository):
    """Two writers and a user who commits, changes the branch and does what doctor says."""
    environment = {**os.environ, "PYTHONPATH": TESTS}
    command = [sys.executable, WRITER, str(repository / ".jidomem")]
    writers = [
        subprocess.Popen([*command, name], stdin=-1, stdout=-1, text=True, env=environment) for name in ("ana", "bob")
    ]
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
        for turn in range(12):
            commit_all(repository)
            git(repository, "checkout", "-q", ("other", "main")[turn % 2])
            for hint in hints(repository):
                paste(hint, check=False)  # a write may come between: then it is said again
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
                paste(hint)

    kept = {line.split()[1] for of in lines for line in of if line.startswith("kept")}
    refused = {line.split()[1] for of in lines for line in of if line.startswith("refused")}
    assert refused <= {"busy", "journal_damaged", "branch_changed"}
    found = dict[str, set[str]]()
    for branch in ("main", "other"):
        git(repository, "checkout", "-q", branch)
        commits = {
            commit.id: commit for commit in map(parse, map(Path.read_bytes, (repository / MEMORY).glob("*.ttl")))
        }
        assert all(parent in commits for commit in commits.values() for parent in commit.parents)
        found[branch] = {*commits}
    assert len(kept) > 20
    assert kept <= found["main"] | found["other"]


def test_pack_prints_the_command_that_commits_the_pack_and_the_removed_files(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        keep(memory, "never committed")

    code, shown = cli_run("--root", repository / ".jidomem", "journal", "pack")
    command = shown.splitlines()[-1].strip()
    paste(command)

    assert code == 0
    assert "the new packs (pack-*.ttl) and 2 removed commit files" in shown
    assert git(repository, "status", "--porcelain").stdout == ""
    assert git(repository, "log", "--format=%s", "-1").stdout == "Memory: pack commits\n"
    assert "commit to git" not in cli_run("--root", repository / ".jidomem", "journal", "pack")[1]  # nothing was packed
