"""A lock file of a clone, or with forged names, is not trusted."""

import shutil
import subprocess
from binascii import crc32
from dataclasses import replace

import pytest
from journal_world import STREAM, add, ids

from jidomem.base import disk
from jidomem.journal.journal import FileJournal
from jidomem.journal.stream import FolderSnapshot
from jidomem.records.intent import CommitRef, Version

NOWHERE = CommitRef("2026-11-21T09:00:00.000000Z", "f" * 64, 99)


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


@pytest.fixture
def hostile(tmp_path):
    """A repository whose author wrote three commits; git tracks all files beside them, too."""
    root = tmp_path / "hostile"
    journal = FileJournal(root)
    commits = [add(journal, name) for name in "abc"]
    git(tmp_path, "init", "-q", str(root))
    return root, commits


def forge(root, heads):
    """Forge a lock file with the heads *heads* and all values that its author can make consistent."""
    folder = f"{root}/projects/demo/memory"
    cached = FolderSnapshot.load(f"{folder}/.lock", disk.file_place(folder))
    with open(f"{folder}/.lock", "wb") as file:
        file.write(replace(cached, mtime=disk.mtime(folder), since=0, version=Version.of(heads)).dump())
    with_place = FolderSnapshot.load(f"{folder}/.lock", disk.file_place(folder))
    assert with_place is not None
    assert with_place.version.heads == tuple(heads)


def clone(root, method):
    """Return a copy of the repository, made by git or file by file."""
    target = root.with_name("clone")
    if method == "git":
        git(root, "add", "-f", "-A")
        git(root, "commit", "-q", "-m", "x")
        git(root, "clone", "-q", str(root), str(target))
        assert (target / "projects/demo/memory/.lock").exists()
    else:
        shutil.copytree(root, target, copy_function=shutil.copy2)
    return target


@pytest.mark.parametrize("method", ["git", "copied with its times"])
@pytest.mark.parametrize("head", ["a commit that is nowhere", "an earlier commit"])
def test_the_lock_file_of_a_clone_changes_no_version_verdict_or_parent(hostile, method, head):
    root, commits = hostile
    forge(root, [NOWHERE] if head == "a commit that is nowhere" else [commits[0].head])
    journal = FileJournal(clone(root, method))

    assert journal.verify(STREAM) == ()
    assert journal.head(STREAM).ids == (commits[-1].id,)
    assert FileJournal(journal.folder).head(STREAM).ids == (commits[-1].id,)
    assert FileJournal(journal.folder).damage(STREAM) == ()
    written = add(FileJournal(journal.folder), "d", second=100)
    assert written.parents == (commits[-1].id,)
    assert FileJournal(journal.folder).verify(STREAM) == ()
    assert ids(FileJournal(journal.folder).read(STREAM)) == ids([*commits, written])


def test_a_lock_file_without_a_place_is_not_trusted_in_a_folder_without_one(hostile):
    root, commits = hostile
    folder = root / "projects/demo/memory"
    sight = FolderSnapshot.load(f"{folder}/.lock", disk.file_place(str(folder)))
    (folder / disk.LOCAL_MARKER).unlink()
    (folder / ".lock").write_bytes(replace(sight, place="", version=Version.of([NOWHERE])).dump())

    assert FileJournal(root).head(STREAM).ids == (commits[-1].id,)


def test_a_lock_file_of_nested_brackets_or_of_three_gigabytes_is_ignored(hostile):
    root, commits = hostile
    for content in (b"[" * 1_000_000, b"0" * 32 + b" " + b"[" * 1_000_000 + b"\n"):
        (root / "projects/demo/memory/.lock").write_bytes(content)
        assert FileJournal(root).head(STREAM).ids == (commits[-1].id,)
    with open(root / "projects/demo/memory/.lock", "wb") as file:
        file.truncate(3_000_000_000)

    assert FileJournal(root).head(STREAM).ids == (commits[-1].id,)


def twin(name: str) -> str:
    """Return another file name with the same CRC-32: a choice of two for each last character, by linear algebra."""
    base = f"junk-{'0' * 64}.ttl"
    bits = [crc32(base[:n].encode() + b"1" + base[n + 1 :].encode()) ^ crc32(base.encode()) for n in range(5, 69)]
    remaining, rows = crc32(name.encode()) ^ crc32(base.encode()), []
    for place, bit in enumerate(bits):
        value, used = bit, 1 << place
        for pivot, other, mask in rows:
            if value >> pivot & 1:
                value, used = value ^ other, used ^ mask
        if value:
            rows.append((value.bit_length() - 1, value, used))
    chosen = 0
    for pivot, value, used in sorted(rows, reverse=True):
        if remaining >> pivot & 1:
            remaining, chosen = remaining ^ value, chosen ^ used
    digits = "".join("1" if chosen >> place & 1 else "0" for place in range(64))
    return f"junk-{digits}.ttl"


def test_a_renamed_file_with_a_colliding_name_checksum_is_detected(hostile):
    root, commits = hostile
    folder = root / "projects/demo/memory"
    assert FileJournal(root).head(STREAM).ids == (commits[-1].id,)
    newest = max(path.name for path in folder.glob("*.ttl"))
    (folder / newest).rename(folder / twin(newest))

    journal = FileJournal(root)

    assert crc32(newest.encode()) == crc32(twin(newest).encode())
    assert journal.head(STREAM).ids == (commits[1].id,)
    assert [damage.path.rpartition("/")[2] for damage in journal.damage(STREAM)] == [twin(newest)]


def test_a_writer_ignores_a_lock_file_whose_head_does_not_exist(hostile):
    root, commits = hostile
    forge(root, [NOWHERE])  # as a local fault could leave it

    with FileJournal(root).lock(STREAM) as version:
        assert version.ids == (commits[-1].id,)


def test_the_lock_file_of_this_machine_saves_reading_the_commits(hostile, monkeypatch):
    root, commits = hostile
    reads = []
    real = disk.read
    monkeypatch.setattr(disk, "read", lambda path, *more: (reads.append(path), real(path, *more))[1])

    assert FileJournal(root).head(STREAM).ids == (commits[-1].id,)
    assert reads == []
    with FileJournal(root).lock(STREAM) as version:
        assert version.ids == (commits[-1].id,)
    assert [path for path in reads if path.endswith(".ttl")] == [
        str(max((root / "projects/demo/memory").glob("*.ttl")))
    ]


def test_a_warm_append_reads_no_commit_however_many_there_are(hostile, monkeypatch):
    root, _ = hostile
    journal = FileJournal(root)
    add(journal, "warm")
    reads = []
    real = disk.read
    monkeypatch.setattr(disk, "read", lambda path, *more: (reads.append(path), real(path, *more))[1])

    for number in range(5):
        add(journal, f"n{number}")

    assert [path for path in reads if path.endswith(".ttl")] == []
