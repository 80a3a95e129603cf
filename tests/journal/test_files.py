"""The journal in files: other files in the folder, actions of git and people, and failures of machines."""

import errno
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import verifier
from journal_world import STREAM, add, commit_on, ids, snapshot
from test_contract import appender

from jidomem.base import disk
from jidomem.errors import Busy, Failed, JournalDamaged, NotFound
from jidomem.journal import stream_files
from jidomem.journal.commit import advance
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.stream import FolderSnapshot
from jidomem.records.intent import Version

HERE = Path(__file__).parent


@pytest.fixture
def journal(tmp_path):
    return FileJournal(tmp_path)


@pytest.fixture
def folder(journal):
    return journal.path(STREAM)


def commits_in(folder):
    return sorted(folder.glob("*.ttl"))


def settle():
    """Wait until a further change of a folder changes its time."""
    time.sleep(0.06)


def branches(tmp_path):
    """Return two roots with one common commit and then separate ones, and all these commits."""
    left, right = FileJournal(tmp_path / "left"), FileJournal(tmp_path / "right")
    base = add(left, "base", second=1)
    shutil.copytree(tmp_path / "left", tmp_path / "right")
    return left, right, base, [add(left, "l1", second=10), add(left, "l2", second=30)], [add(right, "r", second=20)]


def bring(source, target):
    """Add the files of one stream to those of another, as `git pull` does."""
    for path in commits_in(source.path(STREAM)):
        if not (target.path(STREAM) / path.name).exists():
            shutil.copy(path, target.path(STREAM))


# -- files of the folder


def test_a_commit_is_one_file_named_by_time_and_id_and_independently_verifiable(journal, folder):
    # C024
    commit = add(journal, "one")
    path = folder / f"20261121T080001.123456Z-{commit.id[:12]}.ttl"
    assert commits_in(folder) == [path]
    assert path.read_bytes() == commit.data
    assert verifier.read(path.read_bytes())[0] == commit.id
    assert folder == journal.folder / "projects" / "demo" / "memory"


@pytest.mark.parametrize("project", ["", ".", "..", "../x", "a/b", "A", "-a", "a\n", "a" * 65, "é", "/etc", "a\x00"])
def test_a_project_id_cannot_lead_out_of_the_folder(project):
    # C028
    with pytest.raises(NotFound) as refused:
        Stream(project)
    assert (refused.value.code, "lower-case" in refused.value.hint) == ("invalid_project", True)


def test_a_stream_is_one_of_the_four_graphs():
    assert Stream("a" * 64, "codebase").graph == f"https://jido.ai/projects/{'a' * 64}/graphs/elixir-codebase"
    with pytest.raises(NotFound, match="no stream 'context'"):
        Stream("p", "context")


def test_writing_adds_files_and_never_changes_one(journal, folder):
    # C014 C015
    previous = {}
    for number in range(20):
        add(journal, f"n{number}")
        current = {path.name: path.read_bytes() for path in commits_in(folder)}
        assert {name: current.get(name) for name in previous} == previous
        previous = current
    assert len(previous) == 20


def test_reading_changes_no_file_and_makes_none(journal, tmp_path):
    # C013
    for name in ("one", "two"):
        add(journal, name)
    settle()
    before = snapshot(tmp_path)
    reader = FileJournal(tmp_path)
    assert len(list(reader.read(STREAM, reader.head(STREAM)))) == 0
    assert len(list(reader.read(STREAM))) == 2
    assert reader.verify(STREAM) == reader.damage(STREAM) == ()
    assert (reader.streams(), reader.head(Stream("nobody")), reader.exists(Stream("nobody"))) == (
        [STREAM],
        Version(),
        False,
    )
    assert snapshot(tmp_path) == before
    assert not (tmp_path / "projects" / "nobody").exists()


@pytest.mark.parametrize("content", [b"", b"garbage\n", b"0000000000000000 [1, 0, 0, 0, []]\n", None])
def test_the_lock_file_is_only_a_cache(journal, tmp_path, folder, content):
    written = [add(journal, name) for name in ("one", "two")]
    (folder / ".lock").unlink()
    if content is not None:
        (folder / ".lock").write_bytes(content)

    other = FileJournal(tmp_path)
    assert other.head(STREAM) == journal.head(STREAM) == Version.of([written[-1].head])
    assert add(other, "three").position == 3
    assert journal.head(STREAM).position == 3


def test_a_new_process_uses_the_lock_file_and_reads_few_commits(journal, tmp_path, folder):
    add(journal, "one")
    version = journal.head(STREAM)
    add(journal, "two")
    settle()
    commits_in(folder)[0].write_bytes(b"# never read again\n")

    other = FileJournal(tmp_path)
    assert other.head(STREAM) == journal.head(STREAM)
    assert [commit.position for commit in other.read(STREAM, after=version)] == [2]
    assert other.damage(STREAM) == ()
    assert [damage.path for damage in other.verify(STREAM)][:1] == [str(commits_in(folder)[0])]


def test_a_reader_updates_the_lock_file_but_waits_for_no_writer(journal, tmp_path, folder):
    add(journal, "one")
    head = add(journal, "two").head
    (folder / ".lock").unlink()  # as after a clone
    settle()
    reader = FileJournal(tmp_path, wait=3600)
    assert reader.head(STREAM) == Version.of([head])

    with journal.lock(STREAM):
        reader.store_snapshot(STREAM)
    reader.store_snapshot(STREAM)
    settle()
    commits_in(folder)[0].write_bytes(b"# never read again\n")

    assert FileJournal(tmp_path).head(STREAM) == Version.of([head])
    assert FileJournal(tmp_path).damage(STREAM) == ()


def test_consecutive_appends_and_reads_do_not_list_the_folder_each_time(journal, tmp_path, monkeypatch):
    listed, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    follower = FileJournal(tmp_path)
    start = time.monotonic()
    for number in range(100):
        version = follower.head(STREAM)
        commit = add(journal, f"n{number}")
        assert not version.heads or list(follower.read(STREAM, version)) == [commit]
    assert len(listed) <= 6 + 4 * (time.monotonic() - start) / 0.05


def test_the_lock_file_stays_correct_while_other_threads_read(journal, folder):
    stopped, commits = threading.Event(), []

    def follow():
        version = Version()
        while not stopped.is_set():
            commits.extend(journal.read(STREAM, version))
            version = advance(version, commits)

    reader = threading.Thread(target=follow)
    reader.start()
    written = [add(journal, f"n{number}") for number in range(60)]
    stopped.set()
    reader.join()
    commits.extend(journal.read(STREAM, advance(Version(), commits)))

    cached = FolderSnapshot.load(f"{folder}/.lock", disk.file_place(str(folder)))
    assert (cached.count, cached.version, ids(commits)) == (60, journal.head(STREAM), ids(written))


def test_a_follower_reads_all_later_commits_of_another_process(journal, tmp_path):
    add(journal, "before")
    follower = FileJournal(tmp_path)
    version = follower.head(STREAM)
    written = [add(journal, f"n{number}") for number in range(5)]
    assert follower.head(STREAM) == journal.head(STREAM)
    assert list(follower.read(STREAM, version)) == written


# -- operations of git


def test_two_branches_merge_by_union_and_the_next_commit_has_both_heads_as_parents(tmp_path):
    left, right, base, on_left, on_right = branches(tmp_path)
    before = left.head(STREAM)
    bring(right, left)

    both = Version.of([on_left[-1].head, on_right[-1].head])
    assert left.head(STREAM) == FileJournal(tmp_path / "left").head(STREAM) == both
    assert ids(left.read(STREAM)) == ids([base, on_left[0], on_right[0], on_left[1]])
    assert ids(left.read(STREAM, before)) == ids(on_right)

    merge = add(left, "merge", second=40)
    assert merge.parents == tuple(sorted(both.ids))
    assert (merge.position, left.head(STREAM), left.verify(STREAM)) == (4, Version.of([merge.head]), ())
    assert ids(left.read(STREAM, before)) == ids([*on_right, merge])
    assert ids(FileJournal(tmp_path / "left").read(STREAM, Version.of([on_right[0].head]))) == ids([*on_left, merge])


def test_files_merged_within_the_clock_tick_of_an_own_commit_are_read_soon(tmp_path):
    left, right, _, on_left, on_right = branches(tmp_path)
    believed = left.head(STREAM)
    moment = left.path(STREAM).stat().st_mtime_ns
    bring(right, left)
    os.utime(left.path(STREAM), ns=(moment, moment))
    other = FileJournal(tmp_path / "left")

    assert believed == Version.of([on_left[-1].head])
    assert len(other.head(STREAM).heads) == 2
    settle()
    assert left.head(STREAM) == Version.of([on_left[-1].head, on_right[-1].head])


def test_files_merged_within_the_clock_tick_of_a_listing_are_read_soon(tmp_path):
    left, right, *_ = branches(tmp_path)
    reader = FileJournal(tmp_path / "left")
    assert len(reader.head(STREAM).heads) == 1
    moment = left.path(STREAM).stat().st_mtime_ns
    bring(right, left)
    os.utime(left.path(STREAM), ns=(moment, moment))
    settle()
    assert len(reader.head(STREAM).heads) == 2


def test_commits_of_others_are_read_at_once_on_a_disk_with_times_in_whole_seconds(tmp_path, monkeypatch):
    mtime = disk.mtime
    monkeypatch.setattr(
        disk, "mtime", lambda path: None if (moment := mtime(path)) is None else moment - moment % 10**9
    )
    reader, writer = FileJournal(tmp_path), FileJournal(tmp_path)
    time.sleep(1 - time.time() % 1)
    first = add(writer, "first")
    settle()
    assert reader.head(STREAM).ids == (first.id,)

    second = add(writer, "second")

    assert reader.head(STREAM).ids == (second.id,)
    settle()
    assert add(reader, "third").parents == (second.id,)


def test_a_busy_writer_reads_files_merged_without_a_changed_folder_time(tmp_path):
    left, right, *_, on_right = branches(tmp_path)
    moment = left.path(STREAM).stat().st_mtime_ns
    bring(right, left)
    os.utime(left.path(STREAM), ns=(moment, moment))
    end, parents = time.monotonic() + 60, []
    while on_right[-1].id not in parents:
        assert time.monotonic() < end, "the busy writer does not see the merged files"
        parents += add(left, f"n{len(parents)}", second=100 + len(parents)).parents


def test_a_commit_of_a_killed_writer_is_read_despite_an_unchanged_folder_time(journal, tmp_path, folder):
    first = add(journal, "first")
    follower = FileJournal(tmp_path)
    assert follower.head(STREAM) == Version.of([first.head])
    second, moment, rename = commit_on(follower.head(STREAM), "second"), folder.stat().st_mtime_ns, os.rename

    def die(source, target):
        rename(source, target)
        os.utime(folder, ns=(moment, moment))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            journal.append(STREAM, Version.of([first.head]), second)
    assert follower.head(STREAM) == journal.head(STREAM) == Version.of([second.head])


def test_a_git_checkout_of_another_branch_changes_the_version_and_removes_its_commits(tmp_path):
    left, right, base, on_left, on_right = branches(tmp_path)
    known = left.head(STREAM)
    for path in commits_in(left.path(STREAM)):
        path.unlink()
    bring(right, left)

    assert left.head(STREAM) == right.head(STREAM)
    assert not left.holds(STREAM, known)
    assert (ids(left.read(STREAM)), left.verify(STREAM)) == (ids([base, *on_right]), ())
    with pytest.raises(NotFound, match="another branch was checked out"):
        left.read(STREAM, known)
    bring(FileJournal(tmp_path / "left"), left)
    assert add(left, "next", second=50).parents == (on_right[-1].id,)
    assert on_left[-1].id not in ids(left.read(STREAM))


def test_a_commit_of_another_process_is_absent_after_a_git_checkout(journal, tmp_path, folder):
    first = add(journal, "first")
    follower = FileJournal(tmp_path)
    assert follower.head(STREAM).ids == (first.id,)
    second = add(journal, "second")
    known = follower.head(STREAM)
    commits_in(folder)[1].unlink()
    third = commit_on(known, "third")
    (folder / f"20261121T080003.123456Z-{third.id[:12]}.ttl").write_bytes(third.data)
    settle()

    assert known == Version.of([second.head])
    assert not follower.holds(STREAM, known)
    assert [f"its parent {second.id} is not here" in damage.detail for damage in follower.damage(STREAM)] == [True]


def test_the_redacted_form_of_a_commit_precedes_its_whole_form(journal, tmp_path, folder):
    commit = add(journal, "secret")
    add(journal, "next")
    path = commits_in(folder)[0]
    redacted = verifier.redact(path.read_bytes(), lambda triple: triple[2] == '"secret"')
    path.with_name(path.name.replace(".ttl", ".redacted.ttl")).write_bytes(redacted)

    for reader in (journal, FileJournal(tmp_path)):
        first, _ = reader.read(STREAM)
        assert (first.id, first.redacted, b'"secret"' in first.data) == (commit.id, True, False)
    path.unlink()
    assert (len(list(journal.read(STREAM))), journal.verify(STREAM)) == (2, ())


# -- damage


def spoil_torn(path):
    path.write_bytes(path.read_bytes()[:-40])


def spoil_edited(path):
    path.write_bytes(path.read_bytes().replace(b'summary "', b'summary "not ', 1))


def spoil_future(path):
    path.write_bytes(path.read_bytes().replace(b"journal 1", b"journal 2", 1))


def spoil_moved(path):
    path.rename(path.with_name("20200101T000000.000000Z-" + path.name.partition("-")[2]))


def spoil_stray(path):
    path.with_name("notes.ttl").write_text("<urn:a> <urn:b> <urn:c> .\n")


def spoil_parent(path):
    commits_in(path.parent)[0].unlink()


SPOILT = {
    spoil_torn: ("second", "Parser error", 19),
    spoil_edited: ("second", "hash mismatch: edited after it was written", 9),
    spoil_future: ("second", "journal format '2' is not known", 1),
    spoil_moved: ("20200101", "it was moved", 1),
    spoil_stray: ("notes.ttl", "does not begin with '# jidomem journal 1'", 1),
    spoil_parent: ("second", "its parent [0-9a-f]{64} is not here", 16),
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_damage_is_reported_with_its_file_blocks_writes_and_leaves_the_file_unchanged(tmp_path, journal, folder, spoil):
    # C027
    written = [add(journal, name) for name in ("first", "second", "third")]
    second = commits_in(folder)[1]
    sound = snapshot(folder)
    spoil(second)
    (folder / ".lock").unlink()
    spoilt = {path: path.read_bytes() for path in commits_in(folder)}
    where, message, line = SPOILT[spoil]

    other = FileJournal(tmp_path)
    remaining = ids(other.read(STREAM))
    (damage,) = [
        damage_found
        for damage_found in other.damage(STREAM)
        if where in damage_found.path or second.name in damage_found.path
    ]
    damage_again = other.verify(STREAM)
    with pytest.raises(JournalDamaged), other.lock(STREAM):
        raise AssertionError("a turn was given")
    with pytest.raises(JournalDamaged):
        other.append(STREAM, other.head(STREAM), commit_on(other.head(STREAM), "x", second=9))

    assert re.search(message, damage.detail), damage.detail
    assert damage.line == line or spoil is spoil_torn
    assert damage.commit is None or written[1].id.startswith(damage.commit) or spoil is spoil_parent
    assert (str(damage) in [str(damage_found) for damage_found in damage_again], len(remaining) in (2, 3)) == (
        True,
        True,
    )
    assert {path: path.read_bytes() for path in commits_in(folder)} == spoilt

    for path in commits_in(folder):
        path.unlink()
    for path, (data, _) in sound.items():
        Path(path).write_bytes(data)
    assert (other.damage(STREAM), other.head(STREAM).position) == ((), 3)
    assert add(other, "healed").position == 4


@pytest.mark.parametrize("lock_file", ["kept", "gone"])
def test_a_damaged_commit_hides_no_earlier_commits(tmp_path, journal, folder, lock_file):
    first, _, third = (add(journal, name) for name in ("first", "second", "third"))
    elsewhere = FileJournal(tmp_path / "else")
    version = Version.of([add(elsewhere, "else", second=1).head])
    bring(elsewhere, journal)
    settle()
    with journal.lock(STREAM):
        spoil_torn(folder / f"20261121T080002.123456Z-{first_parent(third)}.ttl")
    if lock_file == "gone":
        (folder / ".lock").unlink()

    other = FileJournal(tmp_path)
    assert set(ids(other.read(STREAM, version))) == set(ids([first, third]))
    assert [damage.commit for damage in other.damage(STREAM)] == [first_parent(third)]


def first_parent(commit):
    return commit.parents[0][:12]


def test_damage_reported_by_verify_is_known_to_later_processes_despite_a_cached_snapshot(journal, folder):
    first = add(journal, "first")
    add(journal, "second")
    settle()
    FileJournal(journal.folder).store_snapshot(STREAM)
    (path,) = [each for each in folder.glob("*.ttl") if first.id[:12] in each.name]
    path.write_bytes(path.read_bytes().replace(b"first", b"other"))
    assert FileJournal(journal.folder).damage(STREAM) == ()  # from the snapshot of the lock file, without a read

    assert FileJournal(journal.folder).verify(STREAM)

    later = FileJournal(journal.folder)
    later.head(STREAM)
    assert [each.path for each in later.damage(STREAM)] == [str(path)]
    with pytest.raises(JournalDamaged), later.lock(STREAM):
        pass


def test_damage_of_a_head_is_known_without_a_write_despite_a_cached_snapshot(journal, folder):
    add(journal, "first")
    add(journal, "second")
    settle()
    FileJournal(journal.folder).store_snapshot(STREAM)
    head = commits_in(folder)[1]
    sound = head.read_bytes()
    head.write_bytes(sound[:100])

    reader = FileJournal(journal.folder)
    reader.head(STREAM)
    assert [each.path for each in reader.damage(STREAM)] == [str(head)]
    head.write_bytes(sound)
    assert reader.damage(STREAM) == ()


def test_verify_finds_a_later_hand_edit_which_then_stops_writes(journal, folder):
    add(journal, "first")
    spoil_edited(commits_in(folder)[0])
    assert [(damage.line, damage.path) for damage in journal.verify(STREAM)] == [(9, str(commits_in(folder)[0]))]
    with pytest.raises(JournalDamaged, match="hash mismatch: edited after it was written") as refused:
        add(journal, "second")
    assert refused.value.hint.endswith(
        "   (if somebody edited it, change the memory: jidomem edit ID --set FIELD=VALUE --reason TEXT)"
    )


def test_the_commands_of_a_cut_file_restore_it_from_a_backup_or_set_it_aside(tmp_path, journal, folder):
    add(journal, "first")
    cut = commits_in(folder)[0]
    sound = cut.read_bytes()
    with tarfile.open(tmp_path / "BACKUP.tar", "w") as backup:
        backup.add(cut, cut.relative_to(tmp_path))
    cut.write_bytes(sound[:100])

    (damage,) = journal.verify(STREAM)
    restored, aside = damage.hint.removeprefix("restore the file from a backup: ").split("; if there is none: ")
    subprocess.run(restored.partition(" && ")[0], shell=True, check=True, cwd=tmp_path)

    assert "hash mismatch: its end is missing" in damage.detail
    assert cut.read_bytes() == sound
    assert aside == f"jidomem journal verify --quarantine {cut.name} --reason TEXT"


def test_a_position_that_does_not_follow_from_the_parents_is_damage(journal, folder):
    first = add(journal, "first")
    invalid = Version.of([type(first.head)(first.recorded_at, first.id, 5)])
    bad = commit_on(invalid, "bad", second=9)
    (folder / f"20261121T080009.123456Z-{bad.id[:12]}.ttl").write_bytes(bad.data)
    (damage,) = journal.damage(STREAM)
    assert "its position 6 does not follow from its parents" in damage.detail


# -- failures of machines


def in_a_process(code, *arguments):
    """Run *code* in a process, and return its output."""
    script = f"import sys; sys.path.insert(0, {str(HERE)!r})\n" + textwrap.dedent(code)
    result = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


TRY_TO_ADD = """
    from pathlib import Path
    from journal_world import *
    from jidomem.errors import Failed
    journal = FileJournal(Path(sys.argv[1]))
    {before}
    try:
        add(journal, "refused")
    except Failed as failed:
        print(failed.code, "|", failed.detail, "|", failed.hint)
    {after}
"""


def test_a_file_that_cannot_grow_fails_with_a_hint_and_nothing_changes(journal, tmp_path, folder):
    # C075
    add(journal, "first")
    before = [(path, path.read_bytes()) for path in commits_in(folder)]
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))"
    unlimited = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({resource.RLIM_INFINITY}, {resource.RLIM_INFINITY}))"
    output = in_a_process(
        TRY_TO_ADD.format(before=limit, after=unlimited + "; print(add(journal, 'second').position)"), tmp_path
    )

    assert output.startswith("write_failed | ")
    assert "nothing was stored: File too large | raise the file size limit" in output
    assert output.splitlines()[-1] == "2"
    assert [(path, path.read_bytes()) for path in commits_in(folder)][:1] == before
    assert (sorted(os.listdir(folder))[:2], len(os.listdir(folder))) == ([".here.lock", ".lock"], 4)
    assert journal.verify(STREAM) == ()


def test_an_append_to_a_read_only_folder_fails_with_a_hint_and_reads_still_work():
    with tempfile.TemporaryDirectory() as root:
        path = Path(root)
        os.chmod(root, 0o755)
        add(FileJournal(path), "first")
        nobody = "import os; os.geteuid() == 0 and (os.setgroups([]), os.setgid(65534), os.setuid(65534))"
        for folder in (path / "projects" / "demo" / "memory", path / "projects" / "demo", path / "projects"):
            os.chmod(folder, 0o555)
        before = snapshot(path)
        output = in_a_process(TRY_TO_ADD.format(before=nobody, after="print(journal.head(STREAM).position)"), path)
        assert output.startswith("write_failed | ")
        folder_path = path / "projects" / "demo" / "memory"
        assert f" may not read and write {folder_path} (mode 0555, " in output
        assert f"u+rwx {folder_path}" in output or f"sudo chgrp 65534 {folder_path} {folder_path}/.lock && " in output
        assert "chown" not in output  # the owner still writes here
        assert (output.splitlines()[-1], snapshot(path)) == ("1", before)
        for folder in (path / "projects", path / "projects" / "demo", path / "projects" / "demo" / "memory"):
            os.chmod(folder, 0o755)


def test_an_append_to_a_full_disk_fails_with_a_hint_and_succeeds_once_there_is_space(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        journal = FileJournal(disk)
        written = [add(journal, "first")]
        with pytest.raises(Failed) as failed:
            written.extend(add(journal, f"n{number}") for number in range(100))
        assert (failed.value.code, failed.value.hint[:4]) == ("write_failed", "free")
        assert ids(FileJournal(disk).read(STREAM)) == ids(written)
        assert (journal.verify(STREAM), len(commits_in(journal.path(STREAM)))) == ((), len(written))
        subprocess.run(["mount", "-o", "remount,size=256k", disk], check=True)
        assert add(journal, "room").position == len(written) + 1
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("failing", ["fsync", "rename", "folder"])
def test_a_write_that_fails_at_any_step_leaves_no_commit_and_the_next_one_succeeds(
    journal, tmp_path, folder, monkeypatch, failing
):
    # C075 C077
    first = add(journal, "first")
    fsync, rename, is_folder = os.fsync, os.rename, lambda fd: os.path.isdir(f"/proc/self/fd/{fd}")

    def broken(*arguments):
        if failing == "folder" and not is_folder(arguments[0]):
            return fsync(*arguments)
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename" if failing == "rename" else "fsync", broken)
        with pytest.raises(Failed, match="nothing was stored: Input/output error"):
            add(journal, "lost")

    assert os.rename is rename
    assert list(FileJournal(tmp_path).read(STREAM)) == list(journal.read(STREAM)) == [first]
    assert sorted(os.listdir(folder)) == [".here.lock", ".lock", commits_in(folder)[0].name]
    assert add(journal, "second").position == 2


def test_a_commit_of_unknown_durability_is_reported_and_settled_by_a_retry(journal, folder, monkeypatch):
    commit = commit_on(Version(), "unsure")
    with journal.lock(STREAM):
        pass
    fsync = os.fsync

    def broken(fd):
        if os.readlink(f"/proc/self/fd/{fd}") == str(folder):
            raise OSError(errno.EIO, "Input/output error")
        return fsync(fd)

    def stuck(path):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        patched.setattr(os, "unlink", stuck)
        with pytest.raises(Failed, match="could not be made durable") as failed:
            journal.append(STREAM, Version(), commit)
    assert commit.id[:12] in failed.value.detail
    assert journal.append(STREAM, Version(), commit) == journal.head(STREAM) == Version.of([commit.head])


def test_removing_the_lock_file_during_two_writes_loses_no_acknowledged_commit(journal, folder, monkeypatch):
    # C023
    first = add(journal, "first")
    fsync, started, stored, acknowledged = disk.fsync, threading.Event(), threading.Event(), [first.id]

    def write(name):
        with suppress(Failed):
            acknowledged.append(add(FileJournal(journal.folder), name).id)

    def delayed_fsync(descriptor):
        if threading.current_thread() is second:
            started.set()
            stored.wait(10)
        elif not second.is_alive():
            (folder / ".lock").unlink()  # as "git clean -x" does
            second.start()
            started.wait(10)
        fsync(descriptor)

    second = threading.Thread(target=write, args=["second"])
    with monkeypatch.context() as patched:
        patched.setattr(disk, "fsync", delayed_fsync)
        write("third")
        stored.set()
        second.join()

    write("fourth")
    reader = FileJournal(journal.folder)
    assert reader.verify(STREAM) == ()
    assert set(ids(reader.read(STREAM))) == set(acknowledged)
    assert len(acknowledged) >= 2


def test_a_writer_with_a_stale_view_of_the_folder_forks_and_loses_no_commit(journal, folder, monkeypatch):
    # C023
    base, late = add(journal, "base"), FileJournal(journal.folder)
    settle()
    late.head(STREAM)
    stale_results = {
        "names": (disk.names, str(folder), os.listdir(folder)),
        "mtime": (disk.mtime, str(folder), disk.mtime(str(folder))),
        "read_part": (disk.read_part, f"{folder}/.lock", (folder / ".lock").read_bytes()),
    }
    first = add(journal, "first")

    with monkeypatch.context() as patched:
        for name, (real, path, old) in stale_results.items():
            patched.setattr(
                disk, name, lambda at, *part, real=real, path=path, old=old: old if at == path else real(at, *part)
            )
        second = add(late, "second", second=30)

    assert first.parents == second.parents == (base.id,)
    for reader in (journal, late, FileJournal(journal.folder)):
        assert (reader.verify(STREAM), ids(reader.read(STREAM))) == ((), ids([base, first, second]))
        assert set(reader.head(STREAM).ids) == {first.id, second.id}
    assert len(add(late, "third", second=40).parents) == 2


def test_a_file_that_cannot_be_read_for_once_stops_nobody(journal, folder, monkeypatch):
    written = [add(journal, "first"), add(journal, "second")]
    path, read, failed = str(commits_in(folder)[0]), disk.read, []
    (folder / ".lock").unlink()

    def fails_once(name, *most):
        if name == path and not failed:
            failed.append(name)
            raise OSError(errno.EIO, "Input/output error", name)
        return read(name, *most)

    monkeypatch.setattr(disk, "read", fails_once)

    assert add(FileJournal(journal.folder), "third").parents == (written[1].id,)
    assert failed


def test_a_commit_is_durable_although_closing_the_lock_file_fails(journal, folder, monkeypatch):
    first, close = add(journal, "first"), os.close

    def closes_and_fails(descriptor):
        close(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched, journal.lock(STREAM) as version:
        second = commit_on(version, "second")
        journal.append(STREAM, version, second)
        patched.setattr(disk, "close", closes_and_fails)

    assert ids(FileJournal(journal.folder).read(STREAM)) == ids([first, second])


def test_a_rename_that_succeeds_but_reports_an_error_stores_no_commit(journal, folder, monkeypatch):
    first, rename = add(journal, "first"), disk.rename

    def renames_and_fails(source, target):
        rename(source, target)
        raise OSError(errno.ETIMEDOUT, "Connection timed out", target)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "rename", renames_and_fails)
        with pytest.raises(Failed, match="nothing was stored"):
            add(journal, "second")

    assert ids(FileJournal(journal.folder).read(STREAM)) == [first.id]
    assert add(journal, "third").parents == (first.id,)


def test_a_partial_file_of_a_killed_writer_is_not_read_and_removed_by_the_next_commit(journal, folder):
    # C077
    first = add(journal, "first")
    (folder / ".incoming.lock").write_bytes(first.data[:100])
    assert (list(journal.read(STREAM)), journal.verify(STREAM)) == ([first], ())
    add(journal, "second")
    assert sorted(os.listdir(folder))[:2] == [".here.lock", ".lock"]
    assert len(os.listdir(folder)) == 4


def test_the_turn_of_a_killed_process_is_free_at_once(journal, tmp_path):
    # C075
    add(journal, "first")
    code = f"""
        import time
        from pathlib import Path
        from journal_world import *
        with FileJournal(Path({str(tmp_path)!r})).lock(STREAM):
            print("mine", flush=True)
            time.sleep(600)
    """
    script = f"import sys; sys.path.insert(0, {str(HERE)!r})\n" + textwrap.dedent(code)
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"mine\n"
    impatient = FileJournal(tmp_path, wait=0)
    with pytest.raises(Busy):
        add(impatient, "too soon")
    holder.kill()
    holder.communicate()
    assert add(impatient, "second").position == 2


def test_writers_killed_at_any_moment_lose_nothing_they_acknowledged(tmp_path):
    # C075
    chance, acknowledged = random.Random(), []
    for number in range(10):
        process = appender(("files", tmp_path, tmp_path), f"k{number}", 0)
        lines = [process.stdout.readline() for _ in range(chance.randrange(1, 12))]
        time.sleep(chance.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        acknowledged += b"".join([*lines, rest]).decode().split("\n")[:-1]
        recorded = ids(FileJournal(tmp_path).read(STREAM))
        assert set(acknowledged) <= set(recorded)
        assert len(recorded) <= len(acknowledged) + number + 1
    assert FileJournal(tmp_path).verify(STREAM) == ()
    assert add(FileJournal(tmp_path), "after", second=5000).parents == (recorded[-1],)


def test_a_follower_reads_each_file_once(journal, tmp_path, monkeypatch):
    first = add(journal, "first")
    monkeypatch.setattr(stream_files, "CACHED_BYTES", 3 * len(first.data))
    reader, read, times = FileJournal(tmp_path), disk.read, []
    version = reader.head(STREAM)
    monkeypatch.setattr(disk, "read", lambda path: times.append(path) or read(path))
    for number in range(8):
        written = [add(journal, f"n{number}{part}") for part in "ab"]
        assert list(reader.read(STREAM, version)) == written
        version = reader.head(STREAM)
    whole = [path for path in times if path.endswith(".ttl") and ".redacted." not in path]
    assert list(Counter(whole).values()) == [1] * 16


def test_the_newest_own_commit_is_read_from_memory_once(journal, monkeypatch):
    head = add(journal, "first").head
    read, times = disk.read, []
    monkeypatch.setattr(disk, "read", lambda path: times.append(path) or read(path))
    second = add(journal, "second")

    assert [list(journal.read(STREAM, Version.of([head]))) for _ in range(2)] == [[second]] * 2

    assert [Path(path).name for path in times if ".redacted." not in path] == [commits_in(journal.path(STREAM))[1].name]


def test_damage_to_the_newest_own_commit_is_found_by_reading_it_again(journal, folder):
    add(journal, "first")
    (path,) = commits_in(folder)
    path.write_bytes(path.read_bytes().replace(b"first", b"forst"))

    assert journal.reread(STREAM, "", 10)[1]


def test_a_folder_that_comes_and_goes_is_seen(journal, folder, tmp_path):
    reader = FileJournal(tmp_path)
    assert reader.head(STREAM) == Version()
    commit = add(journal, "first")
    assert reader.head(STREAM).ids == (commit.id,)
    folder.rename(tmp_path / "away")
    assert reader.head(STREAM) == Version()
    (tmp_path / "away").rename(folder)
    assert reader.head(STREAM).ids == (commit.id,)
