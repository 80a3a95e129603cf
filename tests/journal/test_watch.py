"""A long-lived process follows a folder by its watch, with the same result as a listing."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_world import STREAM, add

from jidomem.base import disk
from jidomem.base.disk import FolderWatch
from jidomem.errors import JournalDamaged
from jidomem.journal.journal import FileJournal

SPACED = 0.06  # seconds: longer than a modification time is in doubt


@cache
def _listings():
    """Return the list of the folders that this process lists from now on; the hook for it stays and costs time."""
    listed = []
    sys.addaudithook(lambda event, arguments: listed.append(str(arguments[0])) if event == "os.listdir" else None)
    return listed


def followed_journal(root):
    """Return a journal that follows its stream by a watch, after two listings."""
    journal = FileJournal(root)
    for name in ("begin-1", "begin-2", "begin-3"):
        add(journal, name)
        time.sleep(SPACED)
        journal.head(STREAM)
    return journal


def listings_of(journal, run):
    """Return how often *run* lists the folder of the stream."""
    _listings().clear()
    run()
    return _listings().count(str(journal.path(STREAM)))


def test_appends_and_reads_far_apart_list_no_folder(tmp_path):
    journal = followed_journal(tmp_path)

    def work():
        for number in range(5):
            add(journal, f"far-{number}")
            time.sleep(SPACED)
            assert journal.head(STREAM) == FileJournal(tmp_path).head(STREAM)

    others = listings_of(journal, lambda: [FileJournal(tmp_path).head(STREAM) for _ in range(5)])
    assert listings_of(journal, work) <= others + 5  # those of the other journals


def test_the_commits_of_another_process_are_seen_without_a_listing(tmp_path):
    journal, other = followed_journal(tmp_path), FileJournal(tmp_path)
    other.head(STREAM)
    for number in range(3):
        commit = add(other, f"theirs-{number}", second=100 * number + 100)
        time.sleep(SPACED)
        assert listings_of(journal, lambda: journal.head(STREAM)) == 0
        assert journal.head(STREAM).ids == (commit.id,)
        assert commit.id in {each.id for each in journal.read(STREAM)}


def test_a_file_that_came_without_a_change_of_the_folders_time_is_seen(tmp_path):
    elsewhere, journal = followed_journal(tmp_path / "a"), None
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    journal = FileJournal(tmp_path / "b")
    for number in range(3):
        add(journal, f"own-{number}", second=100 * number + 100)
        time.sleep(SPACED)
        journal.head(STREAM)
    commit = add(elsewhere, "merged")
    folder = journal.path(STREAM)
    before = os.stat(folder)
    name = max(os.listdir(elsewhere.path(STREAM)))
    shutil.copy2(elsewhere.path(STREAM) / name, folder)
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert commit.id in journal.head(STREAM).ids


@pytest.mark.parametrize("change", ["replaced", "overflow", "removed"])
def test_a_watch_that_can_miss_changes_is_given_up_for_a_listing(tmp_path, change):
    journal = followed_journal(tmp_path)
    folder = journal.path(STREAM)
    version = journal.head(STREAM)
    if change == "replaced":
        shutil.copytree(folder, tmp_path / "copy")
        folder.rename(tmp_path / "former")
        (tmp_path / "copy").rename(folder)
    elif change == "overflow":
        queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        for _ in range(queue // 2 + 10):
            (folder / "junk").touch()
            (folder / "junk").unlink()
    else:
        shutil.rmtree(folder)
    if change == "removed":
        assert journal.head(STREAM).heads == ()
        return
    commit = add(FileJournal(tmp_path), "later")
    time.sleep(SPACED)
    assert journal.head(STREAM).ids == (commit.id,) != version.ids


def truncate(path):
    os.truncate(path, 100)


def edit(path):
    with path.open("r+b") as file:
        file.seek(-5, os.SEEK_END)
        file.write(b"x")


def replace(path):
    path.with_name("other").write_bytes(path.read_bytes().replace(b"summary", b"sammury"))
    path.with_name("other").rename(path)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("spoil", [truncate, edit, replace], ids=lambda spoil: spoil.__name__)
def test_an_edit_of_a_file_that_was_read_stops_the_next_write_until_it_is_repaired(tmp_path, spoil, is_packed):
    journal = FileJournal(tmp_path)
    journal.watch()
    for name in ("first", "second", "third"):
        add(journal, name)
    assert not is_packed or journal.seal(STREAM)
    others = [FileJournal(tmp_path) for _ in range(2)]
    for other in others:
        other.watch()
        assert (other.head(STREAM).position, len(list(other.read(STREAM)))) == (3, 3)
    path = min(journal.path(STREAM).glob("pack-*.ttl" if is_packed else "2*.ttl"))
    sound = path.read_bytes()

    spoil(path)

    for each in (journal, *others):
        with pytest.raises(JournalDamaged) as refusal:
            add(each, "fourth")
        assert refusal.value.path == str(path)
        assert str(path) in {damage.path for damage in each.damage(STREAM)}
    path.write_bytes(sound)
    assert [each.damage(STREAM) for each in (journal, *others)] == [(), (), ()]
    assert add(journal, "fourth").position == 4


def test_a_file_that_may_no_longer_be_read_is_noticed(tmp_path):
    script = """
import os, sys
from pathlib import Path
from journal_world import STREAM, add
from jidomem.journal.journal import FileJournal
journal = FileJournal(Path(sys.argv[1]))
journal.watch()
for name in ("first", "second"):
    add(journal, name)
path = min(journal.path(STREAM).glob("2*.ttl"))
path.chmod(0)
print([each.detail.endswith("Permission denied") for each in journal.damage(STREAM)])
path.chmod(0o600)
print(journal.damage(STREAM))
"""
    unprivileged = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*unprivileged, sys.executable, "-c", script, str(tmp_path / "root")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.stdout.splitlines() == ["[True]", "()"], result.stderr


def test_only_a_local_folder_is_watched(tmp_path):
    assert FolderWatch.of(str(tmp_path)) is not None
    assert FolderWatch.of("/proc/self") is None
    assert FolderWatch.of(str(tmp_path / "absent")) is None


STEPS = st.lists(
    st.sampled_from(["append", "theirs", "merge", "remove", "restore", "seal", "pack", "touch", "look", "wait"]),
    max_size=12,
)


@settings(max_examples=examples(25), derandomize=True)
@given(STEPS)
def test_a_watched_folder_equals_its_listing_after_any_changes(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("followed")
    journal, other = followed_journal(root), FileJournal(root)
    folder, aside = journal.path(STREAM), root / "aside"
    aside.mkdir()
    branch = FileJournal(root / "branch")
    shutil.copytree(root / "projects", root / "branch" / "projects")
    for number, step in enumerate(steps):
        damaged = bool(FileJournal(root).damage(STREAM))
        if step == "append" and not damaged:
            add(journal, f"own-{number}", second=100 * number + 100)
        elif step == "theirs" and not damaged:
            add(other, f"theirs-{number}", second=100 * number + 100)
        elif step == "merge":
            add(branch, f"merged-{number}", second=100 * number + 150)
            for file in branch.path(STREAM).glob("*.ttl"):
                if not (folder / file.name).exists():
                    shutil.copy2(file, folder)
        elif step == "remove" and len(files := sorted(folder.glob("2*.ttl"))) > 1:
            files[-1].rename(aside / files[-1].name)
        elif step == "restore":
            for file in aside.iterdir():
                file.rename(folder / file.name)
        elif step == "seal" and not damaged:
            other.seal(STREAM)
        elif step == "pack" and not damaged:
            journal.seal(STREAM)
        elif step == "touch":
            (folder / "note.txt").write_text("no commit")
        elif step == "wait":
            time.sleep(SPACED)
        fresh = FileJournal(root)
        assert journal.head(STREAM) == fresh.head(STREAM), (number, step)
        assert {each.path for each in journal.damage(STREAM)} == {each.path for each in fresh.damage(STREAM)}
    assert [each.id for each in journal.read(STREAM)] == [each.id for each in FileJournal(root).read(STREAM)]


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), KeyboardInterrupt()])
def test_a_listing_that_fails_part_way_hides_no_commit_from_later_looks(tmp_path, monkeypatch, error):
    journal = followed_journal(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    commit = add(FileJournal(tmp_path / "b"), "merged", second=50)
    add(journal, "own", second=60)  # later, so that a listing is needed
    time.sleep(SPACED)
    journal.head(STREAM)
    names = disk.names

    def fail(path):
        monkeypatch.setattr(disk, "names", names)
        raise error

    for file in (tmp_path / "b").rglob(f"*{commit.id[:12]}*"):
        shutil.copy2(file, journal.path(STREAM))
    monkeypatch.setattr(disk, "names", fail)
    with pytest.raises(type(error)):
        journal.head(STREAM)

    assert journal.head(STREAM) == FileJournal(tmp_path / "a").head(STREAM)
    assert commit.id in {each.id for each in journal.read(STREAM)}


def test_a_look_of_a_forked_child_takes_no_change_from_its_parent(tmp_path):
    journal = followed_journal(tmp_path)
    commit = add(FileJournal(tmp_path), "theirs")
    child = os.fork()
    if not child:
        os._exit(0 if journal.head(STREAM).ids == (commit.id,) else 1)
    assert os.waitpid(child, 0)[1] == 0
    time.sleep(SPACED)

    assert journal.head(STREAM).ids == (commit.id,)


def test_all_watches_of_a_process_share_one_instance_and_end_with_their_journal(tmp_path):
    journals = [followed_journal(tmp_path / str(number)) for number in range(5)]

    def watches():
        text = ""
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/self/fd/{descriptor}") == "anon_inode:inotify":
                    text += "instance\n" + Path(f"/proc/self/fdinfo/{descriptor}").read_text()
        return text.count("instance"), text.count("inotify wd")

    instances, before = watches()
    for journal in journals:
        journal.close("closed")
    followed_journal(tmp_path / "another")

    assert instances == 1
    assert before >= 5
    assert watches() == (1, before - 5 + 1)
