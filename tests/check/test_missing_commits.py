"""Commits that git has and the journal lacks: found by check, the shipped hook and a git range."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import intent

import jidomem
from jidomem.journal.journal import Stream
from jidomem.repository import git as asking
from jidomem.runtime.location import init
from jidomem_cli.main import cli

HOOK = Path(__file__).parents[2] / "ci" / "pre-commit"
MEMORY = Path(".jidomem/projects/p/memory")


def run(*args, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in args])
    assert result.exit_code == code, result.stdout + result.stderr
    return result


def git(*args):
    result = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], check=True, capture_output=True
    )
    return result.stdout.decode()


def commit(message="on"):
    git("add", "-A")
    git("commit", "-qm", message)


def record(*summaries):
    with jidomem.open(".jidomem") as memory:
        for summary in summaries:
            memory.writer.submit_intent("p", intent(summary=summary, evidence=[]))


def seal():
    with jidomem.open(".jidomem") as memory:
        memory.journal.seal(Stream("p"))


def files():
    return sorted(MEMORY.glob("*.ttl"))


def problems(*args, code=1):
    return json.loads(run("check", "--json", *args, code=code).stdout)["problems"]


def missing_paths(problems):
    return [one["path"] for one in problems if "no redaction is recorded" in one["message"]]


def build(folder):
    """Make a repository with a memory of three, committed."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        git("init", "-q", "-b", "main")
        init(folder, "p")
        record("one", "two", "three")
        commit("begin")


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    """A repository with a memory of three, committed; it is the working directory."""
    monkeypatch.chdir(copy_built(build, tmp_path))
    return tmp_path


@pytest.mark.parametrize("words", [(), ("--since", "HEAD"), ("--since", "main~1")], ids=str)
def test_a_deleted_newest_commit_is_a_finding_with_the_command_that_restores_it(repository, words):
    Path("notes.txt").write_text("x")
    commit()
    newest = files()[-1]
    newest.unlink()

    (problem,) = problems(*words)

    assert problem["path"] == str(newest)
    assert problem["rule"].endswith("JournalIsIntact")
    assert newest.stem.rpartition("-")[2] in problem["message"]
    restore = problem["message"].rpartition("restore it: ")[2]
    subprocess.run(["sh", "-c", restore], check=True)
    assert problems(*words, code=0) == []


def test_the_shipped_hook_refuses_a_git_commit_that_deletes_a_journal_commit(repository):
    hook = Path(".git/hooks/pre-commit")
    shutil.copy(HOOK, hook)
    hook.chmod(0o755)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    files()[-1].unlink()
    git("add", "-A")

    result = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "away"],
        env={**os.environ, "PATH": path}, capture_output=True, check=False,
    )  # fmt: skip

    assert result.returncode != 0
    assert "JournalIsIntact" in (result.stdout + result.stderr).decode()


def test_a_committed_deletion_is_found_against_an_earlier_revision(repository):
    newest = files()[-1]
    newest.unlink()
    commit("away")

    assert problems(code=0) == []
    assert [one["path"] for one in problems("--since", "HEAD~1")] == [str(newest)]


def test_packed_commits_and_commits_of_a_moved_root_are_not_missing(repository):
    seal()
    assert problems(code=0) == []
    assert problems("--since", "HEAD", code=0) == []
    commit("packed")
    record("four", "five")
    seal()
    assert problems("--since", "HEAD~1", code=0) == []
    Path("below").mkdir()
    Path(".jidomem").rename("below/.jidomem")
    assert json.loads(run("check", "--json", "--root", "below/.jidomem").stdout)["problems"] == []


def test_a_deleted_pack_is_one_finding_with_the_number_of_its_commits(repository):
    seal()
    record("four")
    commit("packed")
    (pack,) = MEMORY.glob("pack-*.ttl")
    pack.unlink()

    (problem,) = problems()

    assert problem["path"] == str(pack)
    assert "commits, " in problem["message"]
    assert "were there at HEAD and are gone" in problem["message"]


def test_a_deleted_commit_in_the_middle_is_one_finding_with_its_path(repository):
    files()[1].unlink()

    assert [one["path"] for one in problems()] == [f"{MEMORY}/{Path(git('ls-files', '-d').strip()).name}"]


def test_a_deleted_stream_is_one_finding(repository):
    for file in files():
        file.unlink()

    (problem,) = problems()

    assert problem["path"] == str(MEMORY)
    assert "3 commits" in problem["message"]


def test_a_redacted_or_quarantined_commit_is_not_missing(repository):
    run("journal", "redact", "--text", "three", "--reason", "not for all")
    assert missing_paths(problems(code=0)) == []
    commit("redacted")
    file = files()[0]
    file.write_text(file.read_text().replace("one", "1ne"))
    run("journal", "verify", "--quarantine", file.stem.rpartition("-")[2], "--reason", "the disk failed")
    assert missing_paths(problems("--since", "HEAD~1", code=0)) == []


def test_damage_of_an_uncommitted_file_is_repaired_by_quarantine(repository):
    record("later")
    file = max(files())
    file.write_text(file.read_text().replace("later", "sooner"))

    (hint,) = [line for line in run("journal", "verify", code=7).output.splitlines() if line.startswith("hint:")]
    words = hint.partition("set it aside: jidomem ")[2].partition("   (")[0].replace("TEXT", "edited").split()

    assert "git checkout" not in hint
    run(*words)
    run("journal", "verify")


def damage_hint():
    (problem,) = problems()
    return problem["message"]


def test_damage_that_was_committed_as_it_is_is_repaired_by_quarantine(repository):
    record("later")
    file = max(files())
    file.write_text(file.read_text().replace("later", "sooner"))
    commit("edited before the first commit")

    hint = damage_hint()
    assert "git has no intact version of it" in hint
    run(*hint.partition("set it aside: jidomem ")[2].partition("   (")[0].replace("TEXT", "edited").split())
    assert missing_paths(problems("--since", "HEAD~1", code=0)) == []
    run("journal", "verify")


def test_a_committed_file_that_is_no_commit_is_removed_by_git(repository):
    (MEMORY / "foo.ttl").write_text("x")
    commit("stray")

    hint = damage_hint()
    git(*hint.partition("git ")[2].partition("   (")[0].split())
    assert problems(code=0) == []
    commit("removed")
    assert problems("--since", "HEAD~1", code=0) == []


def test_a_commit_in_a_renamed_file_is_moved_back_by_the_command_of_the_finding(repository):
    max(files()).rename(MEMORY / "foo.ttl")
    commit("renamed")

    subprocess.run(["sh", "-ec", damage_hint().partition("; ")[2].partition(" && jidomem")[0]], check=True)
    assert problems(code=0) == []


def test_an_edited_commit_is_one_finding(repository):
    file = files()[1]
    file.write_text(file.read_text().replace("two", "2wo"))

    assert [one["path"] for one in problems()] == [str(file)]


def test_a_branch_behind_the_revision_has_no_missing_commits(repository):
    git("checkout", "-qb", "topic")
    git("checkout", "-q", "main")
    record("four")
    commit("on main")
    git("checkout", "-q", "topic")

    assert problems("--since", "main", code=0) == []


def test_without_git_or_git_commits_no_commit_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    init(tmp_path, "p")
    record("one", "two")
    files()[-1].unlink()
    assert problems(code=0) == []
    git("init", "-q")
    assert problems(code=0) == []


def test_a_broken_git_repository_is_reported_as_unchecked(repository):
    Path(".git/refs/heads/main").write_text("1" * 40 + "\n")

    answer = json.loads(run("check", "--json", code=3).stdout)

    assert answer["unchecked"][0].startswith("missing commits: ")


def test_the_number_of_git_calls_does_not_grow_with_the_commits(repository, monkeypatch):
    calls = []
    ask = asking.ask
    monkeypatch.setattr(asking, "ask", lambda *args, **options: calls.append(args) or ask(*args, **options))

    def count_calls():
        calls.clear()
        assert problems("--since", "HEAD", code=0) == []
        return len(calls)

    few = count_calls()
    record(*map(str, range(40)))
    commit("many")
    many = count_calls()
    seal()

    assert few == many == count_calls()


@pytest.mark.parametrize("is_committed", [False, True])
def test_the_commands_of_the_hint_restore_a_hand_edited_file_and_record_its_change(repository, is_committed):
    edited = files()[-1]
    edited.write_text(edited.read_text().replace('jido:summary "', 'jido:summary "Edited: '))
    if is_committed:
        commit("edit")

    (problem,) = problems()
    hint = problem["message"].partition("from the root of the repository: ")[2]
    restore, _, change = hint.removesuffix(")").partition("   (if somebody edited it, change the memory: ")
    assert str(Path.cwd()) not in problem["message"]
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    change = change.replace("FIELD=VALUE", "'summary=Edited as it should be'").replace("TEXT", "corrected")
    result = subprocess.run(["sh", "-ec", f"{restore}\n{change}"], env=path, capture_output=True, text=True)

    assert result.returncode == 0, result.stderr
    assert "Edited as it should be" in run("ask", "timeline").stdout
    assert problems(code=0) == []


def test_hints_name_files_from_the_root_of_the_repository(repository):
    Path("notes.txt").write_text("x")
    commit()
    files()[-1].unlink()

    for verb in ("check", "journal verify", "status --doctor"):
        result = CliRunner().invoke(cli, verb.split())
        hint = next(line for line in result.output.splitlines() if "git checkout HEAD" in line)
        assert hint.endswith(f"from the root of the repository, restore it: git checkout HEAD -- {git_path()}"), verb


def git_path():
    return git("diff", "--name-only", "--diff-filter=D").strip()


def edit_by_hand():
    path = files()[0]
    path.write_text(path.read_text().replace('"one"', '"won"'))
    return path


def test_a_committed_hand_edit_is_reported_by_check_at_the_edited_line_and_by_guard(repository):
    path = edit_by_hand()
    commit("edited")
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if '"won"' in text)

    (problem,) = problems()
    guarded = run("guard", ".", "--format", "github", code=1).stdout

    assert (problem["path"].rpartition("/")[2], problem["line"]) == (path.name, line)
    assert guarded.startswith(f"::error file={path},line=")


def test_the_repair_of_a_hand_edit_in_a_shallow_clone_fetches_the_history_first(
    repository, tmp_path_factory, monkeypatch
):
    edit_by_hand()
    commit("edited")
    clone = tmp_path_factory.mktemp("clone") / "shallow"
    git("clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    monkeypatch.chdir(clone)

    (problem,) = problems()
    assert "git fetch --unshallow; then from the root of the repository: f=" in problem["message"]
    commands = problem["message"].partition("here: ")[2].partition("   (")[0]
    fetch, _, restore = commands.partition("; then from the root of the repository: ")
    subprocess.run(["bash", "-ec", f"{fetch}; {restore.partition(' && jidomem')[0]}"], check=True, capture_output=True)

    assert problems(code=0) == []


def test_the_hint_after_a_git_revert_restores_the_commit_and_names_the_command_of_withdrawal(repository):
    record("four")
    commit("four")
    reverted = git("rev-parse", "HEAD").strip()
    record("five")
    commit("five")
    git("revert", "--no-edit", reverted)

    hint = run("remember", "six", code=7).stderr.partition("from the root of the repository: ")[2].splitlines()[0]
    command, _, undo = hint.partition("   (")

    assert undo == "to undo what it recorded, then: jidomem edit ID --invalidate --reason TEXT)"
    subprocess.run(["bash", "-ec", command.partition(" && jidomem")[0]], check=True, capture_output=True)
    assert run("remember", "six").exit_code == 0


def test_commits_that_a_force_push_removed_are_noted_and_fail_on_request(repository):
    record("four")
    commit("four")
    before = git("rev-parse", "HEAD").strip()
    lost = files()[-1]
    git("reset", "-q", "--hard", "HEAD~1")
    Path("notes.txt").write_text("x")
    commit("forced")

    assert f"{before} has 1 commit of the memory that HEAD lacks" in run("check", "--since", before).stderr
    (problem,) = problems("--fail-on", "missing", "--since", before)
    assert (problem["path"], problem["rule"].endswith("JournalIsIntact")) == (str(lost), True)
    assert problem["message"].endswith(f"git checkout {before} -- {lost}")
    assert "name it: --since REV" in run("check", "--fail-on", "missing", code=2).stderr
    assert f"git fetch origin {'a' * 40}" in run("check", "--since", "a" * 40, code=2).stderr


def test_a_journal_diff_since_a_git_revision_lists_added_and_superseded_memories(repository):
    git("checkout", "-qb", "work")
    record("four")
    commit("four")
    with jidomem.open(".jidomem") as memory:
        (one,) = [row["fact"] for row in memory.reader.ask("facts") if row["summary"] == "one"]
        revised = memory.writer.correct("p", one, supersede="one and more", reason="more").iri
    commit("revised")
    git("branch", "base")
    with jidomem.open(".jidomem") as memory:
        memory.writer.correct("p", revised, supersede="one and all", reason="all")

    since_base = run("journal", "diff", "--since", "base").stdout
    assert since_base.count("one and more -> one and all") == 1
    assert "one -> one and more" not in since_base  # the change before the range

    rows = json.loads(run("journal", "diff", "--since", "main", "--json").stdout)["rows"]

    assert [(row["change"], row["before"], row["summary"]) for row in rows] == [
        ("superseded", "active", "one"),
        ("added", None, "four"),
        ("added", None, "one and more"),
        ("added", None, "one and all"),
    ]
    assert "jidomem journal diff --since REV" in run("journal", "diff", "--as-of", "main~1", code=2).stderr
    assert run("journal", "diff", "--since", "nowhere", code=2).stderr.startswith(
        "error: --since: git knows no revision"
    )


def test_a_journal_diff_since_a_git_revision_lists_memories_removed_and_counts_commits_of_a_branch_ahead(repository):
    git("checkout", "-qb", "work")
    newest = files()[-1]
    newest.unlink()
    commit("removal")

    removed = run("journal", "diff", "--since", "main", "--json")

    (row,) = json.loads(removed.stdout)["rows"]
    assert (row["change"], row["before"], row["after"], row["summary"]) == ("removed", "active", None, "three")
    assert "1 commit of the memory at main is not here" in removed.stderr
    git("checkout", "-q", "main")
    record("four")
    commit("four")
    git("checkout", "-q", "main~1")
    ahead = run("journal", "diff", "--since", "main", "--json")
    assert (json.loads(ahead.stdout)["rows"], ahead.stderr) == ([], "1 commit of the memory at main is not here\n")


def test_a_version_before_the_merge_of_an_earlier_branch_is_no_moment_for_a_diff_or_a_rollback(repository):
    git("checkout", "-qb", "late")
    record("four")
    commit("four")
    git("checkout", "-q", "main")
    record("five")
    commit("five")
    with jidomem.open(".jidomem") as memory:
        release = str(memory.catch_up("p"))
    git("merge", "-q", "--no-ff", "-m", "late", "late")
    with jidomem.open(".jidomem") as memory:
        merged = str(memory.catch_up("p"))
    record("six")

    for words in (("diff", "--as-of", release), ("rollback", "--to", release, "--reason", "back", "--dry-run")):
        refused = run("journal", *words, code=2).stderr
        assert f"had the version {release} at no moment: 4-" in refused
        moment = refused.partition("give the moment ")[2].partition(",")[0]
        assert "six" in run("journal", *words[:2], moment, *words[3:]).stdout
    (row,) = json.loads(run("journal", "diff", "--as-of", merged, "--json").stdout)["rows"]
    assert row["summary"] == "six"
    table = run("journal", "diff", "--as-of", merged).stdout
    assert f"    {row['agents'][0].rpartition('/')[2]}, {row['recorded'].replace('T', ' ')[:19]}Z\n" in table
    git("worktree", "add", "-q", "../release", "main~1")
    found = [run("ask", "facts", "--root", root).stdout for root in ("../release/.jidomem", ".jidomem")]
    assert [("four" in each, "five" in each) for each in found] == [(False, True), (True, True)]
    assert run("journal", "diff", "--as-of", merged.replace("4-", "5-"), code=4).stdout == ""


def test_memories_about_changed_files_are_one_notice_for_github(repository):
    files = [repository / f"{name}.py" for name in ("a", "b", "c")]
    for file in files:
        file.write_text("x = 1\ny = 2\nz = 3\n")
    commit("code")
    with jidomem.open(".jidomem") as memory:
        for file in files:
            memory.writer.submit_intent("p", intent(summary=f"about {file.name}", about=[file.name], evidence=[]))
    commit("memory")
    for file in files:
        file.write_text("x = 1\ny = 2\nz = 4\n")
    git("mv", "c.py", "d.py")
    commit("renamed and changed")

    assert run("check", "--format", "github").stdout == (
        "::notice title=FileIsAsItWas::3 memories are about files that changed since: jidomem check lists them\n"
    )
    assert "c.py is renamed to d.py and changed: " in run("check").stdout


def test_each_changed_file_of_a_memory_is_a_result_at_the_line_that_names_it(repository):
    for name in ("a", "b"):
        (repository / f"{name}.py").write_text("x = 1\n")
    with jidomem.open(".jidomem") as memory:
        memory.writer.submit_intent("p", intent(summary="about both", about=["a.py", "./b.py"], evidence=[]))
    commit("memory")
    for name in ("a", "b"):
        (repository / f"{name}.py").write_text("x = 2\n")

    (log,) = json.loads(run("check", "--format", "sarif").stdout)["runs"]

    places = [result["locations"][0]["physicalLocation"] for result in log["results"]]
    files = {place["artifactLocation"]["uri"] for place in places}
    lines = Path(files.pop()).read_text().splitlines()
    assert not files
    named = [lines[place["region"]["startLine"] - 1].strip() for place in places]
    assert [line.partition(" ")[0] for line in named] == ["jido:about", "jido:about"]
    assert ["a.py" in named[0], "b.py" in named[1]] == [True, True]
