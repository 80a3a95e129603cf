"""Packs: the same commits in fewer files, found without reading them all, with every changed byte detected."""

import errno
import os
import random
import shutil
import threading
from pathlib import Path

import pytest
import verifier
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_world import STREAM, add, commit_on, ids, snapshot
from test_files import branches, bring, commits_in, settle

from jidomem.base import disk
from jidomem.errors import Busy, Failed, JournalDamaged, NotFound
from jidomem.journal import journal as files
from jidomem.journal import rewrite
from jidomem.journal.commit import stem
from jidomem.journal.journal import FileJournal
from jidomem.journal.packs import Pack, PackEntry, unverified_entry, write_pack
from jidomem.records.intent import Version

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def journal(tmp_path):
    return FileJournal(tmp_path)


@pytest.fixture
def folder(journal):
    return journal.path(STREAM)


@pytest.fixture
def small(monkeypatch):
    """Packs of at most four commits."""
    monkeypatch.setattr(rewrite, "COMMITS", 4)


def packs_in(folder):
    return sorted(folder.glob("pack-*.ttl"))


def redact(path, text):
    """Write the redacted form of a commit file, without its triples with *text*, beside it."""
    redacted = verifier.redact(path.read_bytes(), lambda triple: triple[2] == f'"{text}"')
    path.with_name(path.name.replace(".ttl", ".redacted.ttl")).write_bytes(redacted)


def sealed_commits():
    """Return the content of the golden pack: a branch and its merge, one of the commits redacted."""
    first = commit_on(Version(), "first", second=1)
    left = commit_on(Version.of([first.head]), "left", second=2)
    right = commit_on(Version.of([first.head]), "right", second=3)
    merge = commit_on(Version.of([left.head, right.head]), "merge", second=4)
    redacted = verifier.redact(right.data, lambda triple: triple[2] == '"right"')
    forms = [(left, left.data), (right, redacted), (merge, merge.data)]
    return [(PackEntry(commit.head, commit.parents), data != commit.data, data) for commit, data in forms]


def test_a_golden_pack_is_written_exactly_and_read_by_both_implementations():
    # C074
    (golden,) = GOLDEN.glob("pack-*.ttl")
    name, data = write_pack(sealed_commits())
    assert (name, data) == (golden.name, golden.read_bytes())

    documents = verifier.read_pack(golden.name, golden.read_bytes())
    pack = Pack.load(str(golden))
    rows = list(pack.rows().values())
    assert [row.head.id for row in rows] == [identity for identity, *_ in documents]
    assert [row.redacted for row in rows] == [False, True, False]
    assert [pack.document(row) for row in rows] == [data for _, _, data in sealed_commits()]
    assert (pack.tips, len(pack.after)) == ((rows[-1].head,), 1)


def test_the_golden_pack_is_turtle():
    import pyoxigraph

    (golden,) = GOLDEN.glob("pack-*.ttl")
    triples = list(pyoxigraph.parse(golden.read_bytes(), format=pyoxigraph.RdfFormat.TURTLE))
    assert len(triples) == sum(len(document[2]) for document in verifier.read_pack(golden.name, golden.read_bytes()))


@pytest.mark.parametrize("name", ["plain", "merged", "redacted"])
def test_the_outline_of_a_commit_equals_its_description(name):
    data = (GOLDEN / f"{name}.ttl").read_bytes()
    identity, parents, _, _ = verifier.read(data)
    entry = unverified_entry(data)
    assert (entry.head.id, list(entry.parents)) == (identity, sorted(parent.hex() for parent in parents))
    assert entry.head.recorded_at.encode() in data
    assert f'"{entry.head.position}"^^xsd:integer' in data.decode()


def test_sealing_leaves_the_same_commits_in_fewer_files_for_everyone(journal, tmp_path, folder, small):
    # C015 C027
    written = [add(journal, f"n{number}") for number in range(11)]
    follower = FileJournal(tmp_path)
    head_before = follower.head(STREAM)

    assert (journal.loose(STREAM), journal.seal(STREAM), journal.loose(STREAM)) == (11, 10, 1)
    assert (len(packs_in(folder)), len(commits_in(folder))) == (3, 4)
    for pack in packs_in(folder):
        assert verifier.read_pack(pack.name, pack.read_bytes())
    for reader in (journal, follower, FileJournal(tmp_path)):
        assert reader.head(STREAM) == head_before
        assert list(reader.read(STREAM)) == written
        assert (reader.verify(STREAM), reader.streams(), reader.exists(STREAM)) == ((), [STREAM], True)
        for number, commit in enumerate(written):
            version = Version.of([commit.head])
            assert reader.holds(STREAM, version)
            assert list(reader.read(STREAM, version)) == written[number + 1 :]
    with pytest.raises(NotFound):
        journal.read(STREAM, Version.of([commit_on(Version(), "elsewhere").head]))


def test_writing_goes_on_after_sealing_and_sealing_after_writing(journal, tmp_path, folder, small):
    written = []
    for number in range(30):
        written.append(add([journal, FileJournal(tmp_path)][number % 2], f"n{number}"))
        if number % 7 == 6:
            assert journal.seal(STREAM) > 0
    (folder / ".lock").unlink()
    assert journal.seal(STREAM) == 2
    for reader in (journal, FileJournal(tmp_path)):
        assert list(reader.read(STREAM)) == written
        assert (reader.verify(STREAM), reader.head(STREAM).ids) == ((), (written[-1].id,))
    assert (journal.seal(STREAM), FileJournal(tmp_path / "new").seal(STREAM)) == (0, 0)


def test_a_pack_takes_no_more_bytes_than_it_may(journal, folder, monkeypatch):
    for number in range(9):
        add(journal, f"n{number}")
    monkeypatch.setattr(rewrite, "BYTES", 2_500)
    assert journal.seal(STREAM) == 8
    assert all(pack.stat().st_size < 6_000 for pack in packs_in(folder))
    assert len(packs_in(folder)) == 3


def test_a_stream_with_many_files_is_sealed_automatically_unless_git_may_track_it(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LOOSE", 20)
    (tmp_path / "tracked" / ".git").mkdir(parents=True)
    for name, loose in (("server", 1), ("tracked", 21)):
        journal = FileJournal(tmp_path / name / "root")
        written = [add(journal, f"n{number}") for number in range(21)]
        for thread in threading.enumerate():
            if thread.name == "jidomem-seal":
                thread.join()
        assert (journal.loose(STREAM), journal.is_tracked) == (loose, name == "tracked")
        assert list(journal.read(STREAM)) == written


def test_a_reader_that_is_reading_while_files_are_sealed_misses_nothing(journal, tmp_path, small):
    written = [add(journal, f"n{number}") for number in range(10)]
    reader = FileJournal(tmp_path)
    reading, after = reader.read(STREAM), reader.read(STREAM, Version.of([written[1].head]))
    first, later = [next(reading)], [next(after)]
    journal.seal(STREAM)
    assert [*first, *reading] == written
    assert [*later, *after] == written[2:]


def test_readers_and_writers_beside_a_sealer_never_see_less_than_before(journal, tmp_path, small):
    # C020 C023
    stopped, failures = threading.Event(), []

    def follow():
        reader, previous = FileJournal(tmp_path), 0
        while not stopped.is_set():
            commit_ids = ids(reader.read(STREAM))
            if len(commit_ids) < previous or reader.damage(STREAM) or len(set(commit_ids)) != len(commit_ids):
                failures.append((len(commit_ids), previous, reader.damage(STREAM)))
            previous = len(commit_ids)

    readers = [threading.Thread(target=follow) for _ in range(2)]
    for reader in readers:
        reader.start()
    written, sealer = [], FileJournal(tmp_path)
    for number in range(60):
        written.append(add(journal, f"n{number}"))
        if number % 10 == 9:
            sealer.seal(STREAM)
    stopped.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert ids(FileJournal(tmp_path).read(STREAM)) == ids(written)


# -- operations of git


def test_branches_that_packed_the_same_commits_in_different_packs_merge_by_union(tmp_path, small):
    left, right, base, on_left, on_right = branches(tmp_path)
    left_only, right_only = [], []
    for number in range(9):
        left_only.append(add(left, f"left{number}", second=100 + 2 * number))
        right_only.append(add(right, f"right{number}", second=101 + 2 * number))
    shutil.copytree(tmp_path / "left", tmp_path / "copy")
    copy = FileJournal(tmp_path / "copy")
    add(copy, "copy", second=200)
    rewrite.COMMITS = 3
    assert (left.seal(STREAM), copy.seal(STREAM), right.seal(STREAM)) == (11, 12, 9)
    for path in commits_in(left.path(STREAM)):
        if (copy.path(STREAM) / path.name).exists() is False and not path.name.startswith("pack"):
            path.unlink()  # as git does: removed in the copy, unchanged here
    bring(copy, left)
    bring(right, left)

    everything = {base.id, *ids([*on_left, *on_right, *left_only, *right_only])}
    for reader in (left, FileJournal(tmp_path / "left")):
        commits = list(reader.read(STREAM))
        assert set(ids(commits)) == everything | {copy.head(STREAM).ids[0]}
        assert [commit.head for commit in commits] == sorted(commit.head for commit in commits)
        assert (reader.verify(STREAM), len(reader.head(STREAM).heads)) == ((), 2)
        since = Version.of([left_only[-1].head])
        expected = everything - {base.id, *ids([*on_left, *left_only])} | {copy.head(STREAM).ids[0]}
        assert set(ids(reader.read(STREAM, since))) == expected
    merge = add(left, "merge", second=300)
    assert len(merge.parents) == 2
    assert left.seal(STREAM) > 0
    assert set(ids(FileJournal(tmp_path / "left").read(STREAM))) == {*everything, *copy.head(STREAM).ids, merge.id}
    assert left.verify(STREAM) == ()


def test_a_checkout_that_takes_a_pack_away_shows_and_brings_it_back(journal, tmp_path, folder, small):
    written = [add(journal, f"n{number}") for number in range(6)]
    shutil.copytree(tmp_path / "projects", tmp_path / "loose" / "projects")
    journal.seal(STREAM)
    version = journal.head(STREAM)
    packs = {path: path.read_bytes() for path in packs_in(folder)}
    for path in packs:
        path.unlink()
    settle()
    assert not journal.holds(STREAM, Version.of([written[1].head]))
    assert "is not here" in journal.damage(STREAM)[0].detail
    for path, data in packs.items():
        path.write_bytes(data)
    settle()
    assert (journal.damage(STREAM), journal.head(STREAM), list(journal.read(STREAM))) == ((), version, written)


# -- both forms


def assert_redacted(reader, written):
    """Assert that *reader* returns the first of the *written* commits without its secret, and the others unchanged."""
    first, *rest = reader.read(STREAM)
    assert (first.id, first.redacted, b'"secret"' in first.data) == (written[0].id, True, False)
    assert rest == written[1:]


def test_a_redacted_file_beside_a_pack_counts(journal, tmp_path, folder, small):
    written = [add(journal, name) for name in ("secret", "next", "last")]
    redact(commits_in(folder)[0], "secret")
    redacted = next(folder.glob("*.redacted.ttl"))
    data = redacted.read_bytes()
    redacted.unlink()
    assert journal.seal(STREAM) == 2
    redacted.write_bytes(data)

    for reader in (journal, FileJournal(tmp_path)):
        assert_redacted(reader, written)
        assert reader.verify(STREAM) == ()
    add(journal, "more")
    assert journal.seal(STREAM) == 0  # the redacted file stays, a single other one is no pack
    assert redacted.exists()


def test_a_redacted_commit_is_packed_unchanged_and_precedes_its_whole_form(journal, tmp_path, folder, small):
    written = [add(journal, name) for name in ("secret", "next", "last")]
    whole = commits_in(folder)[0]
    redact(whole, "secret")
    data = whole.read_bytes()
    whole.unlink()
    assert journal.seal(STREAM) == 2
    whole.write_bytes(data)

    for reader in (journal, FileJournal(tmp_path)):
        assert_redacted(reader, written)


def test_the_place_of_a_commit_is_given_by_file_and_line(journal, folder, small):
    written = [add(journal, f"n{number}") for number in range(5)]
    assert journal.seal(STREAM) == 4
    redacted = verifier.redact(written[1].data, lambda triple: triple[2] == '"n1"')
    name = f"20261121T080002.123456Z-{written[1].id[:12]}.redacted.ttl"
    (folder / name).write_bytes(redacted)

    for commit in written:
        path, before, document = journal.document(STREAM, commit.head)
        lines = Path(path).read_bytes().split(b"\n")[before:]
        assert b"\n".join(lines).startswith(document)
        assert document == (redacted if commit is written[1] else commit.data)
        assert Path(path).name.startswith("pack-") == (commit not in (written[1], written[-1]))
    assert journal.document(STREAM, commit_on(Version(), "elsewhere").head) is None


# -- damage


def packed(root, number=5):
    """Return a journal with all but its last commit in one pack."""
    journal = FileJournal(root)
    written = [add(journal, f"n{number}") for number in range(number)]
    journal.seal(STREAM)
    return journal, written


@pytest.fixture(scope="module")
def sound_root(tmp_path_factory):
    """A stream with one pack and one commit file, and the documents in it."""
    root = tmp_path_factory.mktemp("bits")
    return root, [commit.data for commit in packed(root)[1]]


@settings(max_examples=80)
@given(place=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_no_bit_of_a_stream_can_turn_unseen(sound_root, place, bit):
    # C027
    root, written = sound_root
    paths = commits_in(FileJournal(root).path(STREAM))
    sizes = [path.stat().st_size for path in paths]
    place %= sum(sizes)
    while place >= sizes[0]:
        place -= sizes.pop(0)
    path = paths[-len(sizes)]
    sound = path.read_bytes()
    flipped = bytearray(sound)
    flipped[place] ^= 1 << bit
    path.write_bytes(flipped)
    try:
        reader = FileJournal(root)
        documents = [commit.data for commit in reader.read(STREAM)]
        assert all(data in written for data in documents)
        assert len(documents) == len(written) or reader.damage(STREAM)
        damage = FileJournal(root).verify(STREAM)
        assert str(path) in [documents.path for documents in damage]
        with pytest.raises(JournalDamaged), reader.lock(STREAM):
            raise AssertionError("a turn was given")
    finally:
        path.write_bytes(sound)


def test_a_pack_cut_short_anywhere_is_damage(tmp_path):
    journal, _ = packed(tmp_path)
    (pack,) = packs_in(journal.path(STREAM))
    sound = pack.read_bytes()
    chance = random.Random(3)
    for length in [0, 1, 20, *(chance.randrange(len(sound)) for _ in range(40)), len(sound) - 1]:
        pack.write_bytes(sound[:length])
        damage = FileJournal(tmp_path).verify(STREAM)
        assert str(pack) in [each.path for each in damage]
    pack.write_bytes(sound + b"\n")
    assert "truncated or extended" in FileJournal(tmp_path).verify(STREAM)[0].detail


def test_a_damaged_commit_of_a_pack_is_reported_with_its_line_and_hides_no_other(tmp_path):
    journal, written = packed(tmp_path)
    (pack,) = packs_in(journal.path(STREAM))
    sound = pack.read_bytes()
    pack.write_bytes(sound.replace(b'summary "n1"', b'summary "m1"'))
    line = sound[: sound.index(b'summary "n1"')].count(b"\n") + 1

    reader = FileJournal(tmp_path)
    assert ids(reader.read(STREAM)) == ids([written[0], *written[2:]])
    (damage,) = reader.damage(STREAM)
    assert (damage.path, damage.commit) == (str(pack), written[1].id)
    assert [each.to_dict() for each in reader.verify(STREAM)] == [damage.to_dict()]
    assert line - 25 < damage.line <= line
    with pytest.raises(JournalDamaged), reader.lock(STREAM):
        raise AssertionError("a turn was given")
    pack.write_bytes(sound)
    assert (reader.damage(STREAM), list(reader.read(STREAM))) == ((), written)
    assert add(reader, "healed").position == 6


@pytest.mark.parametrize("part", ["the top", "the table", "a document"])
def test_an_unreadable_part_of_a_pack_is_damage_and_hides_no_other_file(tmp_path, monkeypatch, part):
    # C075
    journal, written = packed(tmp_path)
    (pack,) = packs_in(journal.path(STREAM))
    sound, read = Pack.load(str(pack)), disk.read_part
    row = sound.rows()[stem(written[1].head)]
    begin = {"the top": 0, "the table": sound.table_at, "a document": row.offset}[part]

    def failing(path, offset, size):
        if (path, offset) == (str(pack), begin):
            raise OSError(errno.EIO, "Input/output error", path)
        return read(path, offset, size)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "read_part", failing)
        for reader in (FileJournal(tmp_path), journal):
            assert {each.path for each in reader.verify(STREAM)} == {str(pack)}
            assert "cannot be read: Input/output error" in reader.verify(STREAM)[0].detail
            assert written[-1] in list(reader.read(STREAM))
            assert written[1].id not in ids(reader.read(STREAM))
            with pytest.raises(JournalDamaged), reader.lock(STREAM):
                raise AssertionError("a turn was given")

    assert (list(journal.read(STREAM)), journal.verify(STREAM)) == (written, ())
    assert add(journal, "healed").position == 6


def test_the_file_of_a_commit_laid_beside_a_damaged_pack_heals_it(tmp_path, folder):
    journal = FileJournal(tmp_path)
    written = [add(journal, f"n{number}") for number in range(5)]
    backup = commits_in(folder)[1]
    sound = backup.read_bytes()
    assert journal.seal(STREAM) == 4
    (pack,) = packs_in(folder)
    pack.write_bytes(pack.read_bytes().replace(b'summary "n1"', b'summary "m1"'))
    reader = FileJournal(tmp_path)
    assert (len(list(reader.read(STREAM))), len(reader.damage(STREAM))) == (4, 1)

    backup.write_bytes(sound)
    for healed in (reader, FileJournal(tmp_path)):
        assert (healed.verify(STREAM), list(healed.read(STREAM)), healed.damage(STREAM)) == ((), written, ())
    assert add(reader, "next").position == 6
    assert (reader.seal(STREAM), reader.verify(STREAM)) == (0, ())


def test_a_pack_under_another_name_or_with_another_top_is_damage(tmp_path):
    journal, written = packed(tmp_path)
    (pack,) = packs_in(journal.path(STREAM))
    moved = pack.rename(pack.with_name(pack.name.replace("20261121", "20261120")))
    (damage, *_) = FileJournal(tmp_path).verify(STREAM)
    assert (damage.path, "moved or changed" in damage.detail) == (str(moved), True)
    entries = [(PackEntry(commit.head, commit.parents), False, commit.data) for commit in reversed(written[:-1])]
    moved.unlink()
    name, data = write_pack(entries)  # not in the order of the stream
    (pack.parent / name).write_bytes(data)
    assert "does not fit its table" in FileJournal(tmp_path).verify(STREAM)[0].detail


# -- failures of machines


def test_one_seals_at_a_time(journal, tmp_path, folder):
    for number in range(4):
        add(journal, f"n{number}")
    descriptor = disk.open_file(f"{folder}/{rewrite.SEAL_LOCK}")
    assert disk.acquire_lock(descriptor, wait=False)
    with pytest.raises(Busy):
        FileJournal(tmp_path).seal(STREAM)
    disk.close(descriptor)
    assert FileJournal(tmp_path).seal(STREAM) == 3


@pytest.mark.parametrize("call", ["create", "write", "fsync", "rename", "flush"])
def test_a_sealing_that_fails_loses_nothing_and_the_next_one_does_it(journal, tmp_path, folder, monkeypatch, call):
    # C075
    written = [add(journal, f"n{number}") for number in range(5)]

    def broken(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(disk, call, broken)
        with pytest.raises(Failed) as failed:
            journal.seal(STREAM)
    assert (failed.value.code, failed.value.hint[:4]) == ("write_failed", "free")
    assert len(commits_in(folder)) - len(packs_in(folder)) == 5
    for reader in (journal, FileJournal(tmp_path)):
        assert (list(reader.read(STREAM)), reader.verify(STREAM)) == (written, ())
    written.append(add(journal, "next"))
    assert journal.seal(STREAM) >= 4
    assert list(FileJournal(tmp_path).read(STREAM)) == written
    assert sorted(os.listdir(folder))[:3] == [".here.lock", ".lock", ".seal.lock"]
    assert journal.loose(STREAM) <= 2


def test_a_lock_file_that_is_removed_while_two_seal_costs_no_commit(journal, folder, monkeypatch):
    # C075
    written, rename = [add(journal, f"n{number}") for number in range(5)], disk.rename

    def rename_after_replacement(source, target):
        if source.endswith(rewrite.SEALING):  # another process has just replaced it
            other = f"{folder}/other"
            Path(other).write_bytes(Path(source).read_bytes()[:-100])
            os.rename(other, source)
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "rename", rename_after_replacement)
        with pytest.raises(Failed, match="a lock file was removed"):
            journal.seal(STREAM)

    assert (journal.verify(STREAM), list(FileJournal(journal.folder).read(STREAM))) == ((), written)
    assert (journal.seal(STREAM), journal.verify(STREAM)) == (4, ())


def test_sealing_on_a_full_disk_fails_and_changes_no_commit(small_disk):
    # C075 C077
    journal = FileJournal(small_disk / "root")
    for number in range(30):
        add(journal, f"n{number}")
    (small_disk / "rest").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize))
    before = snapshot(journal.path(STREAM))
    with pytest.raises(Failed, match="No space left"):
        journal.seal(STREAM)
    after = snapshot(journal.path(STREAM))
    assert {path: data for path, data in after.items() if path.endswith(".ttl")} == {
        path: data for path, data in before.items() if path.endswith(".ttl")
    }
    (small_disk / "rest").unlink()
    assert (journal.seal(STREAM), journal.verify(STREAM)) == (29, ())


# -- operations during a sealing


def test_a_listing_that_a_sealing_overtakes_misses_nothing(journal, tmp_path, folder, monkeypatch):
    # a folder of more than some hundred names is not listed in one step
    written = [add(journal, f"n{number}") for number in range(8)]
    listed, overtaken = disk.names, []

    def list_and_seal(path):
        for number, name in enumerate(sorted(listed(path))):
            if path == str(folder) and number == 2 and not overtaken:
                overtaken.append(path)
                journal.seal(STREAM)
            if os.path.exists(f"{path}/{name}"):
                yield name

    monkeypatch.setattr(disk, "names", list_and_seal)
    assert list(FileJournal(tmp_path).read(STREAM)) == written
    assert overtaken


def test_a_branch_that_came_in_and_was_sealed_meanwhile_is_read(tmp_path):
    left, right, _, ours, theirs = branches(tmp_path)
    theirs.append(add(right, "r2", second=25))
    bring(right, left)
    left.head(STREAM)
    left.store_snapshot(STREAM)
    reader = FileJournal(left.folder)
    reader.head(STREAM)  # uses the cached version and reads no file

    assert left.seal(STREAM) == 3
    settle()
    left.store_snapshot(STREAM)

    assert list(reader.read(STREAM, Version.of([ours[-1].head]))) == theirs


def test_a_text_redacted_while_it_is_packed_is_not_in_the_pack(journal, folder, monkeypatch):
    written = [add(journal, name) for name in ("secret", "next", "last")]
    whole, flushed = commits_in(folder)[0], disk.fsync

    def fsync_and_redact(descriptor):
        flushed(descriptor)
        if whole.exists():
            redact(whole, "secret")
            whole.unlink()

    with monkeypatch.context() as patched:
        patched.setattr(disk, "fsync", fsync_and_redact)
        assert journal.seal(STREAM) == 0

    assert not any(b'"secret"' in path.read_bytes() for path in folder.glob("*.ttl"))
    assert ids(journal.read(STREAM)) == ids(written)
    assert journal.seal(STREAM) == 2


def test_an_append_repeated_after_the_sealing_of_its_commit_is_settled(journal):
    first = add(journal, "first")
    add(journal, "second")
    add(journal, "third")
    assert journal.seal(STREAM) == 2
    assert journal.append(STREAM, Version(), first) == journal.head(STREAM)
