"""Memory in git: branches are merged by union, with real git; faults caused by git are reported and repaired."""

import os
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import decision, intent

import jidomem
from jidomem.base.clock import Sources
from jidomem.errors import JournalDamaged
from jidomem.index import follower as limits
from jidomem.journal.commit import file_name, parse
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.rewrite import leaves
from jidomem.runtime.location import init
from jidomem_cli.main import cli

STREAM = Stream("p")
#: Options of a merge without renames: older versions of git ignore no-renames.
WITHOUT_RENAMES = ["-X", "find-renames=100%"]
START = datetime(2026, 11, 21, 8, tzinfo=UTC)


def git(folder, *args, check=True):
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    result = subprocess.run(["git", *identity, *args], cwd=folder, env=quiet, capture_output=True, text=True)
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def execute_hint(hint, folder):
    """Run the commands of a hint at the root of the repository, up to its remark in brackets."""
    place, _, commands = hint.split("   (")[0].partition(": ")
    assert place == "from the root of the repository"
    identity = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity}
    subprocess.run(["bash", "-c", commands], cwd=folder, check=True, capture_output=True, env=environment)


class Branch:
    """A clone of the repository, in which memories are recorded at given times with distinct ids."""

    def __init__(self, folder, number):
        self.folder, self.root = folder, folder / ".jidomem"
        self._second = 0
        self.ids = (f"01900000-0000-7000-8000-00000000{number}{n:03x}" for n in count(1))
        self.nonces = (blake2b(f"{number} {n}".encode(), digest_size=32).digest() for n in count())

    def open(self, second=0):
        self._second = second
        return jidomem.open(self.root, sources=Sources(self._now, lambda: next(self.ids), lambda: next(self.nonces)))

    def _now(self):
        self._second += 0.01
        return START + timedelta(seconds=self._second)

    def write(self, second, **fields):
        with self.open(second) as memory:
            return memory.writer.submit_intent("p", intent(**fields)).iri

    def decide(self, second, summary):
        with self.open(second) as memory:
            return memory.writer.submit_intent("p", decision(summary=summary, topic="store")).iri

    def pack(self):
        with self.open() as memory:
            return memory.journal.seal(STREAM)

    def keep(self, message):
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", message)

    def commits(self):
        return list(FileJournal(self.root).read(STREAM))


def build(folder):
    """Make two clones with eight common memories, and then three more each, recorded alternately."""
    (folder / "left").mkdir(parents=True)
    git(folder / "left", "init", "-q")
    init(folder / "left", "p")
    left, right = Branch(folder / "left", 1), Branch(folder / "right", 2)
    for number in range(8):
        left.write(number, summary=f"fact {number} that both know")
    left.keep("base")
    git(folder, "clone", "-q", "left", "right")
    for number in range(3):
        left.write(100 + 2 * number, summary=f"fact {number} of the left")
        right.write(101 + 2 * number, summary=f"fact {number} of the right")
    left.decide(110, "Use Oxigraph")
    right.decide(111, "Use SQLite")


@pytest.fixture
def branches(tmp_path, copy_built):
    """Return the two clones."""
    folder = copy_built(build, tmp_path / "branches")
    return Branch(folder / "left", 3), Branch(folder / "right", 4)


def fetch(left, right):
    """Commit the memories of both clones to git, and fetch those of *right* into *left*."""
    left.keep("left")
    right.keep("right")
    git(left.folder, "fetch", "-q", str(right.folder))


def merge(left, right, *options):
    """Merge the branch of *right* into *left* with git, without a conflict."""
    fetch(left, right)
    result = git(left.folder, "merge", "-q", "--no-edit", *options, "FETCH_HEAD", check=False)
    assert result.returncode == 0, result.stdout + git(left.folder, "status", "--short").stdout
    assert git(left.folder, "status", "--porcelain").stdout == ""


def index_content(memory):
    """Return the triples of memories in an index, and its number of commits."""
    memory.catch_up("p")
    return set(memory.follower.index.triples(STREAM.graph)), memory.follower.index.mark(STREAM.graph).commits


def answers(memory, as_of=None):
    return [
        memory.reader.ask(name, project="p", as_of=as_of) for name in ("facts", "decisions", "timeline", "conflicts")
    ]


def replayed(branch, moment, folder):
    """Open a memory with only the commits recorded by *moment*."""
    path = FileJournal(folder).path(STREAM)
    path.mkdir(parents=True)
    for commit in branch.commits():
        if commit.recorded_at <= moment:
            (path / file_name(commit.head)).write_bytes(commit.data)
    return jidomem.open(folder, project="p")


@pytest.mark.parametrize("index", ["memory", "disk"])
@pytest.mark.parametrize("packed", ["none", "left", "both"])
def test_branches_merge_without_conflict_and_every_follower_reads_each_commit_once(
    branches, packed, index, tmp_path, monkeypatch
):
    left, right = branches
    if index == "disk":
        for name, value in (("ON_DISK_BYTES", 3_000), ("SNAPSHOT_COMMITS", 2), ("WRITER_SNAPSHOT_BYTES", 1)):
            monkeypatch.setattr(limits, name, value)
    for branch in {"none": (), "left": (left,), "both": (left, right)}[packed]:
        assert branch.pack() > 5
    right_ids = {commit.id for commit in right.commits()}
    follower, closed = left.open(), left.open()
    before, _ = index_content(follower), index_content(closed)
    closed.close()

    # git may take a pack of one branch for a renamed file of the other
    merge(left, right, *(WITHOUT_RENAMES if packed == "both" else []))

    commits = left.commits()
    assert len({commit.id for commit in commits}) == len(commits) == 12 + 4
    assert right_ids <= {commit.id for commit in commits}
    assert FileJournal(left.root).verify(STREAM) == ()
    reopened = left.open()
    fresh = jidomem.open(left.root)
    fresh.follower.rebuild()
    assert index_content(follower) == index_content(reopened) == index_content(fresh)
    assert before[0] < index_content(follower)[0]
    assert index_content(follower)[1] == len(commits)
    for number, commit in enumerate(commits):
        if number % 5 == 0 or number == len(commits) - 1:
            moment = commit.recorded_at
            with replayed(left, moment, tmp_path / f"replayed{number}") as past:
                assert answers(follower, as_of=moment) == answers(reopened, as_of=moment) == answers(past)

    settled = left.write(200, summary="after the merge")
    assert settled
    assert len(left.commits()[-1].parents) == 2
    assert index_content(follower)[1] == index_content(reopened)[1] == len(commits) + 1
    for memory in (follower, reopened, fresh):
        memory.close()


def test_the_hint_merges_packed_branches_with_renames_detected_by_git(tmp_path):
    (tmp_path / "left").mkdir()
    git(tmp_path / "left", "init", "-q")
    init(tmp_path / "left", "p")
    left, right = Branch(tmp_path / "left", 1), Branch(tmp_path / "right", 2)
    for number in range(6):
        left.write(number, summary=f"fact {number}", detailed_explanation="long\n" * 99)
    left.keep("base")
    git(tmp_path, "clone", "-q", "left", "right")
    left.write(100, summary="fact 100", detailed_explanation="long\n" * 99)
    right.write(101, summary="fact 101", detailed_explanation="long\n" * 99)
    both = {commit.id for commit in [*left.commits(), *right.commits()]}
    assert left.pack() == right.pack() == 6
    fetch(left, right)

    git(left.folder, "merge", "--no-edit", "FETCH_HEAD", check=False)  # whether it stops depends on the version of git

    for damage in FileJournal(left.root).damage(STREAM)[:1]:
        assert "git left the marks of a conflict" in damage.detail
        execute_hint(damage.hint, left.folder)
    assert {commit.id for commit in left.commits()} == both
    assert FileJournal(left.root).verify(STREAM) == ()


def test_a_conflict_after_a_merge_is_listed_and_settled(branches, monkeypatch):
    left, right = branches
    merge(left, right)
    monkeypatch.chdir(left.folder)
    run = lambda *args: CliRunner().invoke(cli, [*args])  # noqa: E731
    conflicts = run("review", "--conflicts")
    assert "overlapping_decision" in conflicts.stdout
    assert all(text in conflicts.stdout for text in ("Use Oxigraph", "Use SQLite"))
    command = next(shlex.split(line) for line in conflicts.stdout.splitlines() if "jidomem review" in line)
    assert command[-4::2] == ["--against", "--reason"]  # the printed command runs once its reason is given
    settled = run(*command[1:-1], "the left was measured")
    assert settled.exit_code == 0, settled.stderr
    assert run("review", "--conflicts").stdout == ""
    assert run("journal", "verify").exit_code == 0


def test_a_redaction_on_one_branch_is_merged_with_a_pack_of_the_other(branches):
    left, right = branches
    with left.open(300) as memory:
        plan = memory.maintenance.plan("p", None, texts=["fact 3 that both know"])
        memory.maintenance.redact(plan, agent="ana", reason="it was private")
    right.pack()
    merge(left, right, *WITHOUT_RENAMES)

    with left.open(400) as memory:
        assert not any("fact 3 that" in str(row) for row in memory.reader.ask("facts", project="p"))
        assert memory.journal.verify(STREAM) == ()
        assert len(memory.maintenance.redact_again("p", agent="ana", reason="it came back")) == 1
    assert not any(b"fact 3 that both" in path.read_bytes() for path in left.root.rglob("*") if path.is_file())


@pytest.mark.parametrize("repair", ["redact", "edit"])
def test_check_warns_of_the_successor_on_another_branch_of_a_redacted_memory(branches, repair):
    left, right = branches
    text = "fact 3 that both know"
    with right.open(120) as memory:
        (item,) = (row["fact"] for row in memory.reader.ask("facts", project="p") if row["summary"] == text)
        memory.writer.revise("p", item, changes={"summary": f"{text}, revised"}, reason="r")
    with left.open(300) as memory:
        memory.maintenance.redact(
            memory.maintenance.plan("p", None, texts=[text]), agent="ana", reason="it was private"
        )
    merge(left, right, *WITHOUT_RENAMES)
    check = lambda: CliRunner().invoke(cli, ["--root", str(left.root), "check"]).stdout  # noqa: E731

    (line,) = (line for line in check().splitlines() if "RedactionIsComplete" in line)
    command = next(part for part in line.split("jidomem ") if repair in part.split()[:2])
    words = command.replace("WHY", "private").partition(";")[0].split()
    done = CliRunner().invoke(cli, ["--root", str(left.root), *words, "--agent", "ana"])

    assert done.exit_code == 0, done.output
    assert "RedactionIsComplete" not in check()
    with left.open(400) as memory:
        assert (f"{text}, revised" in str(index_content(memory)[0])) == (repair == "edit")


def test_check_warns_of_the_pending_successor_of_a_memory_redacted_on_another_branch(branches):
    left, right = branches
    text = "fact 3 that both know"
    with right.open(120) as memory:
        (item,) = (row["fact"] for row in memory.reader.ask("facts", project="p") if row["summary"] == text)
        successor = intent(summary=f"{text}, revised", supersedes=[item])
        pending = memory.writer.submit_intent("p", successor, propose=True).iri
    with left.open(300) as memory:
        memory.maintenance.redact(
            memory.maintenance.plan("p", None, texts=[text]), agent="ana", reason="it was private"
        )
    merge(left, right, *WITHOUT_RENAMES)
    check = lambda: CliRunner().invoke(cli, ["--root", str(left.root), "check"]).stdout  # noqa: E731

    (line,) = (line for line in check().splitlines() if "RedactionIsComplete" in line)
    assert f"jidomem review accept {pending[-8:]}" in line
    words = line.partition("jidomem ")[2].partition(";")[0].replace("WHY", "private").split()
    done = CliRunner().invoke(cli, ["--root", str(left.root), *words, "--agent", "ana"])

    assert done.exit_code == 0, done.output
    assert "RedactionIsComplete" not in check()
    with left.open(400) as memory:
        assert f"{text}, revised" not in str(index_content(memory)[0])


def test_an_author_redacted_on_another_branch_is_removed_by_the_printed_command_and_not_copied(branches):
    left, right = branches
    with right.open(120) as memory:
        (item,) = (
            row["fact"] for row in memory.reader.ask("facts", project="p") if row["summary"].startswith("fact 3")
        )
        confirmed = memory.writer.confirm("p", item, reason="still so", asserted_by="cem").iri
    with left.open(300) as memory:
        memory.maintenance.redact(
            memory.maintenance.plan("p", None, texts=["architect"]), agent="ana", reason="they left"
        )
    merge(left, right, *WITHOUT_RENAMES)
    with left.open(400) as memory:
        again = memory.writer.confirm("p", confirmed, reason="yes", asserted_by="cem").iri
        assert memory.reader.get_memory("p", again)["properties"]["assertedBy"] == ["https://jido.ai/agents/cem"]
    check = lambda: CliRunner().invoke(cli, ["--root", str(left.root), "check"]).stdout  # noqa: E731

    lines = [line for line in check().splitlines() if "EveryReferenceExists" in line]
    assert confirmed in str(lines)
    assert "RedactionIsComplete" not in check()
    (command,) = {line.partition("jidomem ")[2].partition(";")[0] for line in lines}
    words = shlex.split(command.replace("WHY", "left"))
    done = CliRunner().invoke(cli, ["--root", str(left.root), *words, "--agent", "ana"])

    assert done.exit_code == 0, done.output
    assert "EveryReferenceExists" not in check()


def test_a_parent_that_a_force_push_took_away_is_brought_back_by_the_hint(branches):
    left, right = branches
    merge(left, right)
    git(left.folder, "push", "-q", str(right.folder), "HEAD:refs/heads/shared")
    before = git(left.folder, "rev-parse", "HEAD").stdout.strip()
    left.write(200, summary="forced away")
    left.keep("forced away")
    left.write(201, summary="on top")
    left.keep("on top")
    git(left.folder, "rebase", "-q", "--onto", before, "HEAD~1")

    (damage,) = FileJournal(left.root).damage(STREAM)
    assert "git checkout" in damage.hint
    assert "--quarantine" in damage.hint  # if it is not wanted
    execute_hint(damage.hint, left.folder)

    assert FileJournal(left.root).verify(STREAM) == ()
    assert "forced away" in str(left.commits()[-2].triples)


def test_line_ends_rewritten_by_git_are_reported_and_repaired_by_the_hint(branches, tmp_path):
    left, _ = branches
    (left.root / ".gitattributes").unlink()
    left.keep("no attributes")
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", str(left.folder), "windows")
    clone = Branch(tmp_path / "windows", 3)
    journal = FileJournal(clone.root)
    damage = journal.damage(STREAM)
    assert len(damage) == 12
    assert "its line ends were rewritten: git did so where it was checked out (core.autocrlf)" in damage[0].detail
    assert clone.commits() == []

    execute_hint(damage[0].hint, clone.folder)

    assert FileJournal(clone.root).verify(STREAM) == ()
    assert [commit.id for commit in clone.commits()] == [commit.id for commit in left.commits()]


def test_line_ends_committed_by_an_editor_are_repaired_by_the_second_command_of_the_hint(branches):
    left, _ = branches
    path = next(Path(FileJournal(left.root).path(STREAM)).glob("*.ttl"))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    left.keep("saved by an editor")
    (damage,) = FileJournal(left.root).damage(STREAM)
    folder = damage.hint.partition("cd ")[2].partition(" && ")[0]

    execute_hint(damage.hint, left.folder)
    assert FileJournal(left.root).verify(STREAM) != ()
    command = damage.hint.partition("if it was committed like this: ")[2].removesuffix(")")
    subprocess.run(["bash", "-ec", f"cd {folder}; {command}"], cwd=left.folder, check=True)

    assert FileJournal(left.root).verify(STREAM) == ()


def test_conflict_marks_are_reported_and_resolved_by_the_hint(branches):
    left, right = branches
    for branch, word in ((left, '"fact 0 that both know"'), (right, '"p"')):
        journal = FileJournal(branch.root)
        first = branch.commits()[0]
        redacted = frozenset(leaf for triple, leaf in leaves(first).items() if triple[2] == word)
        with journal.redacting(STREAM, {first.id: redacted}):
            pass
        branch.keep("redacted")
    git(left.folder, "fetch", "-q", str(right.folder))
    assert git(left.folder, "merge", "-q", "--no-edit", "FETCH_HEAD", check=False).returncode != 0
    (damage,) = FileJournal(left.root).damage(STREAM)
    assert "git left the marks of a conflict in line" in damage.detail
    execute_hint(damage.hint, left.folder)
    assert FileJournal(left.root).verify(STREAM) == ()
    git(left.folder, "commit", "-q", "--no-edit")
    assert parse(next(left.root.rglob("*.redacted.ttl")).read_bytes()).redacted


@pytest.fixture
def branches_with_clock(branches, monkeypatch):
    """Return two clones, and a function that writes to the right one at a given time, as others may that check none."""
    left, right = branches

    def write(moment, summary):
        sources = Sources(lambda: moment, lambda: next(right.ids), lambda: next(right.nonces))
        with monkeypatch.context() as unchecked, jidomem.open(right.root, sources=sources) as memory:
            unchecked.setattr("jidomem.journal.commit.MOST_YEARS", 10_000)
            memory.writer.submit_intent("p", intent(summary=summary))

    return left, right, write


END_OF_CALENDAR = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "moments",
    [[END_OF_CALENDAR], [END_OF_CALENDAR - timedelta(seconds=1), END_OF_CALENDAR], [START + timedelta(days=50_000)]],
)
def test_a_branch_dated_to_the_end_of_the_calendar_is_read_reported_and_quarantined(
    branches_with_clock, moments, packed
):
    left, right, write = branches_with_clock
    for number, moment in enumerate(moments):
        write(moment, f"hostile {number}")
    if packed:
        right.pack()
    merge(left, right)
    root = ["--root", str(left.root)]

    with left.open(300) as memory:
        assert {row["summary"] for row in memory.reader.ask("facts", project="p")} >= {"hostile 0"}
        with pytest.raises(JournalDamaged) as refusal:
            memory.writer.submit_intent("p", intent(summary="after the merge"))
    assert "more than 100 years after the clock of this machine" in refusal.value.detail
    verified = CliRunner().invoke(cli, [*root, "journal", "verify"])
    assert (verified.exit_code, verified.output.count("violation: ")) == (1, len(moments))
    assert str(left.root / "projects" / "p" / "memory") in verified.output
    assert CliRunner().invoke(cli, [*root, "check"]).exit_code == 1
    quarantine = refusal.value.hint.partition("jidomem ")[2].partition(";")[0].replace("TEXT", "hostile")
    result = CliRunner().invoke(cli, [*root, *quarantine.split(), "--agent", "ana"])

    assert result.exit_code == 0, result.output
    left.write(301, summary="after all")
    after = left.commits()[-1]
    assert after.recorded_at < "2100"
    with left.open(400) as memory:
        facts = {row["summary"] for row in memory.reader.ask("facts", project="p")}
    assert {"after all", "fact 0 that both know", "fact 2 of the right"} <= facts
    assert not any(summary.startswith("hostile") for summary in facts)
    verified = CliRunner().invoke(cli, [*root, "journal", "verify"])
    assert (verified.exit_code, verified.output.count("was set aside by")) == (0, len(moments))


def test_a_merged_commit_dated_decades_ahead_does_not_prevent_writes(branches_with_clock):
    left, right, write = branches_with_clock
    write(START + timedelta(days=20_000), "from a wrong clock")
    merge(left, right)

    left.write(300, summary="after it")

    commits = left.commits()
    assert [commit.recorded_at for commit in commits] == sorted({commit.recorded_at for commit in commits})
    assert commits[-1].recorded_at.startswith("2081-")
