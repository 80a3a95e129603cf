"""A commit damaged between reading and packing is not packed, and its restored file loses nothing."""

import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import stream_reader
import verifier
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_world import START, STREAM, add, commit_on, fact, flip_written_bits, ids, order_on
from test_erasing import _dies_at, bytes_below, redact_texts
from test_files import commits_in
from test_packs import packs_in
from test_second_reader import quarantine_commit

from jidomem.base import disk
from jidomem.check.journal_integrity import journal_findings
from jidomem.errors import Failed, JournalDamaged, NotFound
from jidomem.journal import journal as files
from jidomem.journal import rewrite
from jidomem.journal.commit import file_name, stem
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.packs import Pack
from jidomem.rdf import terms, vocab
from jidomem.records.intent import Version

HERE = str(Path(__file__).parent)
COUNT = 9
#: The number of a file, a relative position in it, and a bit.
FLIPS = st.lists(st.tuples(st.integers(0, COUNT - 2), st.floats(0, 1, exclude_max=True), st.integers(0, 7)), max_size=4)


def flip(path, share, bit):
    """Flip one bit of a file, as an aging disk does."""
    data = bytearray(path.read_bytes())
    data[int(share * len(data))] ^= 1 << bit
    path.write_bytes(data)


def flip_in(path, mark, bit=0):
    """Flip one bit of the byte after *mark* in a file."""
    data = bytearray(path.read_bytes())
    data[data.index(mark) + len(mark)] ^= 1 << bit
    path.write_bytes(data)


def packed_documents(folder):
    """Return the commit ids of all packs, read by the second implementation, which verifies every byte."""
    return {document[0] for pack in packs_in(folder) for document in verifier.read_pack(pack.name, pack.read_bytes())}


@pytest.fixture(scope="module")
def sound_root(tmp_path_factory):
    """A stream of nine commits, and the commits."""
    root = tmp_path_factory.mktemp("sound")
    journal = FileJournal(root / "root")
    return root, [add(journal, f"n{number}") for number in range(COUNT)]


@pytest.fixture
def journal(tmp_path):
    return FileJournal(tmp_path / "root")


def assert_restored(journal, written, sound):
    """Assert that with restored files every process has all commits, and the rest is packed."""
    for path, data in sound.items():
        path.write_bytes(data)
    for reader in (journal, FileJournal(journal.folder)):
        assert (reader.verify(STREAM), list(reader.read(STREAM))) == ((), written)
        assert reader.head(STREAM).ids == (written[-1].id,)
    result = stream_reader.read(journal.path(STREAM))
    assert ([each.id for each in result.commits], [*result.damaged]) == (ids(written), [])
    written = [*written, add(journal, "after")]
    FileJournal(journal.folder).seal(STREAM)
    assert FileJournal(journal.folder).verify(STREAM) == ()
    assert list(FileJournal(journal.folder).read(STREAM)) == written


@settings(max_examples=60)
@given(flips=FLIPS, follower_reads=st.booleans())
def test_bits_flipped_between_read_and_sealing_are_not_packed(sound_root, flips, follower_reads):
    # C027 C075
    root, written = sound_root
    shutil.copytree(root / "root", root / "copy")
    try:
        journal, follower = FileJournal(root / "copy"), FileJournal(root / "copy")
        folder = journal.path(STREAM)
        assert list(journal.read(STREAM)) == written
        if follower_reads:
            assert list(follower.read(STREAM)) == written
        files = commits_in(folder)
        sound = {files[number]: files[number].read_bytes() for number, _, _ in flips}
        for number, share, bit in flips:
            flip(files[number], share, bit)
        spoiled = {path: path.read_bytes() for path, data in sound.items() if path.read_bytes() != data}

        sealed = journal.seal(STREAM)

        remaining = COUNT - 1 - len(spoiled)
        assert sealed == (remaining if remaining > 1 else 0)
        assert packed_documents(folder) <= set(ids(written))
        assert {path: path.read_bytes() for path in spoiled} == spoiled
        assert {damage.path for damage in journal.damage(STREAM)} == set(map(str, spoiled))
        assert {damage.path for damage in follower.verify(STREAM)} == set(map(str, spoiled))
        assert_restored(journal, written, sound)
        assert list(follower.read(STREAM))[:COUNT] == written
    finally:
        shutil.rmtree(root / "copy")


@pytest.mark.parametrize("mark", [b"\n\n<urn:jido:commit:", b"jido:parent <urn:jido:commit:", b'jido:position "'])
def test_a_commit_with_a_flipped_id_parent_or_position_is_not_packed(journal, mark):
    written = [add(journal, f"n{number}") for number in range(6)]
    path = commits_in(journal.path(STREAM))[2]
    sound = {path: path.read_bytes()}
    flip_in(path, mark)

    assert journal.seal(STREAM) == 4

    (damage,) = journal.damage(STREAM)
    assert (damage.path, damage.commit) == (str(path), written[2].id[:12])
    with pytest.raises(JournalDamaged), journal.lock(STREAM):
        raise AssertionError("a turn was given")
    assert journal.seal(STREAM) == 0
    assert_restored(journal, written, sound)


def test_intact_commits_are_packed_around_known_damage(journal):
    written = [add(journal, f"n{number}") for number in range(8)]
    files = commits_in(journal.path(STREAM))
    sound = {files[4]: files[4].read_bytes()}
    flip_in(files[4], b'summary "')
    late = FileJournal(journal.folder)

    assert len(late.verify(STREAM)) == 1
    assert late.seal(STREAM) == 3  # the commits before the oldest head

    assert_restored(late, written, sound)


def test_a_commit_repaired_in_place_is_read_by_new_processes(journal):
    written = [add(journal, f"n{number}") for number in range(6)]
    path = commits_in(journal.path(STREAM))[3]
    sound = path.read_bytes()
    list(journal.read(STREAM))
    flip_in(path, b'summary "')
    assert journal.seal(STREAM) == 4

    with path.open("r+b") as file:  # in place: the time and names of the folder stay
        file.write(sound)

    assert FileJournal(journal.folder).head(STREAM).ids == (written[-1].id,)
    assert list(FileJournal(journal.folder).read(STREAM)) == written


# -- kills


def test_a_sealing_beside_a_damaged_file_killed_at_any_disk_call_loses_no_commit(tmp_path, monkeypatch):
    # C075
    monkeypatch.setattr(rewrite, "COMMITS", 3)
    monkeypatch.setattr(files, "PAUSE", 0)
    steps, is_done = 0, False
    while not is_done:
        steps += 1
        journal = FileJournal(tmp_path / f"root{steps}")
        written = [add(journal, f"n{number}") for number in range(8)]
        path = commits_in(journal.path(STREAM))[steps % 7]
        sound = {path: path.read_bytes()}
        flip(path, random.Random(steps).random(), steps % 8)

        is_done = _dies_at(monkeypatch, steps, lambda journal=journal: FileJournal(journal.folder).seal(STREAM))

        assert packed_documents(journal.path(STREAM)) <= set(ids(written))
        assert [damage.path for damage in FileJournal(journal.folder).verify(STREAM)] == [str(path)]
        assert_restored(FileJournal(journal.folder), written, sound)
    assert steps > 10


def test_a_sealer_killed_at_any_moment_beside_a_spoiled_file_loses_nothing(tmp_path):
    # C075
    code = """
        import sys
        from journal_world import *
        from jidomem.journal import journal as files, rewrite as sealing
        sealing.COMMITS, files.SLICE = 20, 4
        journal = FileJournal(Path(sys.argv[1]))
        print(len(list(journal.read(STREAM))), flush=True)
        input()
        journal.seal(STREAM)
    """
    script = f"import sys; sys.path.insert(0, {HERE!r})\n" + textwrap.dedent(code)
    chance = random.Random()
    for number in range(2):
        journal = FileJournal(tmp_path / f"root{number}")
        written = [add(journal, f"n{number}") for number in range(100)]
        sealer = subprocess.Popen(
            [sys.executable, "-c", script, str(journal.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert sealer.stdout.readline() == b"100\n"
        path = chance.choice(commits_in(journal.path(STREAM))[:-1])
        sound = {path: path.read_bytes()}
        flip(path, chance.random(), chance.randrange(8))
        sealer.stdin.write(b"\n")
        sealer.stdin.flush()
        time.sleep(chance.random() * 0.15)
        sealer.send_signal(signal.SIGKILL)
        sealer.communicate()

        assert packed_documents(journal.path(STREAM)) <= set(ids(written))
        assert [damage.path for damage in FileJournal(journal.folder).verify(STREAM)] == [str(path)]
        assert_restored(FileJournal(journal.folder), written, sound)


# -- a disk that stores other bytes than those written


def ttl_files(journal):
    return {path.name: path.read_bytes() for path in journal.path(STREAM).glob("*.ttl")}


def test_a_pack_that_reads_back_differently_is_not_renamed_into_place(journal, monkeypatch):
    # C075
    written = [add(journal, f"n{number}") for number in range(6)]
    before = ttl_files(journal)

    with monkeypatch.context() as patched:
        flip_written_bits(patched)
        with pytest.raises(Failed, match="the bytes read back differ from those written") as failed:
            journal.seal(STREAM)

    assert failed.value.code == "write_failed"
    assert ttl_files(journal) == before
    assert not (journal.path(STREAM) / rewrite.SEALING).exists()
    assert journal.seal(STREAM) == 5
    assert (list(FileJournal(journal.folder).read(STREAM)), journal.verify(STREAM)) == (written, ())


def test_a_redaction_whose_pack_reads_back_differently_removes_nothing(journal, monkeypatch):
    written = [add(journal, name) for name in ("first", "hunter2", "third", "fourth", "fifth")]
    journal.seal(STREAM)
    before = ttl_files(journal)

    with monkeypatch.context() as patched:
        flip_written_bits(patched)
        with pytest.raises(Failed, match="the bytes read back"):
            redact_texts(journal, written[1], "hunter2")

    assert ttl_files(journal) == before
    redact_texts(journal, written[1], "hunter2")
    assert b'"hunter2"' not in bytes_below(journal.folder)


def test_quarantine_removes_no_pack_when_the_new_one_reads_back_differently(journal, monkeypatch):
    written = [add(journal, name) for name in ("first", "second", "third", "last")]
    journal.seal(STREAM)
    pack, _ = spoiled_pack(journal, "second")
    assert len(journal.verify(STREAM)) == 1
    spoiled = pack.read_bytes()

    with monkeypatch.context() as patched:
        flip_written_bits(patched)
        with pytest.raises(Failed, match="the bytes read back"):
            journal.quarantine(STREAM, written[1].id, quarantine_commit)

    assert (packs_in(journal.path(STREAM)), pack.read_bytes()) == ([pack], spoiled)
    journal.quarantine(STREAM, written[1].id, quarantine_commit)
    assert packed_documents(journal.path(STREAM)) == {written[0].id, written[2].id}


# -- rewritten packs


def spoiled_pack(journal, *texts):
    """Damage the commits of *texts* in the pack of a stream, and return the pack and its intact bytes."""
    (pack,) = packs_in(journal.path(STREAM))
    sound = pack.read_bytes()
    for text in texts:
        flip_in(pack, f'summary "{text[:1]}'.encode())
    return pack, sound


def test_a_redaction_refuses_to_rewrite_a_pack_with_a_damaged_commit(journal):
    written = [add(journal, name) for name in ("first", "hunter2", "third", "last")]
    journal.seal(STREAM)
    pack, sound = spoiled_pack(journal, "third")
    before = ttl_files(journal)

    with pytest.raises(JournalDamaged) as refused:
        redact_texts(journal, written[1], "hunter2")

    assert (refused.value.path, refused.value.commit) == (str(pack), written[2].id)
    assert ttl_files(journal) == before
    assert [damage.commit for damage in journal.damage(STREAM)] == [written[2].id]
    pack.write_bytes(sound)
    redact_texts(journal, written[1], "hunter2")
    assert (FileJournal(journal.folder).verify(STREAM), b'"hunter2"' in bytes_below(journal.folder)) == ((), False)


def test_a_redaction_drops_a_damaged_commit_of_a_pack_that_has_an_intact_file(journal):
    written = [add(journal, name) for name in ("first", "hunter2", "third", "last")]
    files = commits_in(journal.path(STREAM))
    intact = files[2].read_bytes()
    journal.seal(STREAM)
    spoiled_pack(journal, "third")
    files[2].write_bytes(intact)

    order = redact_texts(journal, written[1], "hunter2")

    assert FileJournal(journal.folder).verify(STREAM) == ()
    assert packed_documents(journal.path(STREAM)) == {written[0].id, written[1].id}
    assert ids(FileJournal(journal.folder).read(STREAM)) == [*ids(written), order.id]


def test_a_redaction_removes_a_damaged_form_in_a_pack_that_has_an_intact_file(journal):
    written = [add(journal, name) for name in ("first", "hunter2", "third", "last")]
    path = commits_in(journal.path(STREAM))[1]
    intact = path.read_bytes()
    journal.seal(STREAM)
    path.write_bytes(intact)
    assert journal.verify(STREAM) == ()
    flip_in(packs_in(journal.path(STREAM))[0], b'"hunter2')

    order = redact_texts(journal, written[1], "hunter2")

    assert b'"hunter2' not in bytes_below(journal.folder)
    assert FileJournal(journal.folder).verify(STREAM) == ()
    assert ids(FileJournal(journal.folder).read(STREAM)) == [*ids(written), order.id]


def test_quarantine_of_one_of_two_damaged_commits_of_a_pack_leaves_the_other_as_a_damaged_file(journal):
    written = [add(journal, name) for name in ("first", "second", "third", "last")]
    files = commits_in(journal.path(STREAM))
    sound = {path: path.read_bytes() for path in files[1:3]}
    journal.seal(STREAM)
    spoiled_pack(journal, "second", "third")
    assert len(journal.verify(STREAM)) == 2

    journal.quarantine(STREAM, written[1].id, quarantine_commit)

    assert packed_documents(journal.path(STREAM)) == {written[0].id}
    (damage,) = FileJournal(journal.folder).verify(STREAM)
    assert (damage.path, damage.commit) == (str(files[2]), written[2].id[:12])
    files[2].write_bytes(sound[files[2]])
    assert FileJournal(journal.folder).verify(STREAM) == ()
    assert set(ids(FileJournal(journal.folder).read(STREAM))) > {written[0].id, written[2].id, written[3].id}
    assert FileJournal(journal.folder).head(STREAM).position == 5


def test_an_old_commit_file_beside_its_pack_is_no_head(journal):
    written = [add(journal, f"n{number}") for number in range(4)]
    old = commits_in(journal.path(STREAM))[1]
    data = old.read_bytes()
    journal.seal(STREAM)
    follower = FileJournal(journal.folder)
    assert follower.head(STREAM).ids == (written[-1].id,)

    old.write_bytes(data)

    assert [each.head(STREAM).ids for each in (journal, follower)] == [(written[-1].id,)] * 2


@pytest.mark.parametrize("is_spoiled", [False, True])
def test_sealing_lists_a_stream_for_each_pack_and_not_for_each_slice(journal, monkeypatch, is_spoiled):
    for number in range(60):
        add(journal, f"n{number}")
    if is_spoiled:
        flip_in(commits_in(journal.path(STREAM))[30], b'summary "')
    monkeypatch.setattr(files, "SLICE", 4)
    monkeypatch.setattr(files, "PAUSE", 0.06)  # long enough to expire every cached snapshot
    listed, names = [], disk.names
    monkeypatch.setattr(disk, "names", lambda path: listed.append(path) or names(path))

    assert FileJournal(journal.folder).seal(STREAM) == 59 - is_spoiled  # which has not read the spoiled file

    assert len(listed) < 59 / 4
    assert len(FileJournal(journal.folder).verify(STREAM)) == is_spoiled


def set_aside_bytes(journal):
    return sorted(path.read_bytes() for path in journal.path(STREAM).glob("*.ttl.aside"))


def test_quarantine_of_another_commit_keeps_both_damaged_forms_of_a_commit(journal):
    # C075
    written = [add(journal, name) for name in ("first", "second", "third", "last")]
    files = commits_in(journal.path(STREAM))
    loose = bytearray(files[2].read_bytes())
    journal.seal(STREAM)
    pack, _ = spoiled_pack(journal, "second", "third")
    rows = {row.head.id: row for row in Pack.load(str(pack)).rows().values()}
    packed = [pack.read_bytes()[row.offset :][: row.size] for row in (rows[written[1].id], rows[written[2].id])]
    loose[loose.index(b'summary "') + 10] ^= 2
    files[2].write_bytes(loose)

    assert len(journal.verify(STREAM)) == 3

    journal.quarantine(STREAM, written[1].id, quarantine_commit)

    (damage,) = journal.verify(STREAM)
    assert (damage.path, set_aside_bytes(journal)) == (str(files[2]), sorted(packed))
    assert files[2].read_bytes() == loose
    journal.quarantine(STREAM, written[2].id, quarantine_commit)
    assert journal.verify(STREAM) == ()
    assert set_aside_bytes(journal) == sorted([*packed, bytes(loose)])
    assert set(ids(FileJournal(journal.folder).read(STREAM))) >= {written[0].id, written[3].id}
    assert len(set_aside_bytes(journal)) == 3


def test_quarantine_stores_both_forms_of_a_commit_after_an_interrupted_first_try(journal, monkeypatch):
    # C075
    written = [add(journal, name) for name in ("first", "second", "last")]
    file = commits_in(journal.path(STREAM))[1]
    data = file.read_bytes()
    journal.seal(STREAM)
    spoiled_pack(journal, "second")
    file.write_bytes(data[:-9])
    assert len(journal.verify(STREAM)) == 2

    with monkeypatch.context() as patched:
        patched.setattr(disk, "unlink", lambda path: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        for _ in range(2):  # the file is renamed; then the pack stays, twice
            with suppress(Failed):
                journal.quarantine(STREAM, written[1].id, quarantine_commit)
    while journal.verify(STREAM):
        journal.quarantine(STREAM, written[1].id, quarantine_commit)

    stored = set_aside_bytes(journal)
    assert len(stored) == 2
    assert data[:-9] in stored
    assert [finding.kind for finding in journal_findings(journal, [STREAM])[STREAM]] == [
        "set_aside"
    ] * 2  # no commit records author and reason


def test_a_quarantine_killed_at_any_disk_call_loses_no_form_and_is_completed_later(tmp_path, monkeypatch):
    # C075
    steps, is_done = 0, False
    while not is_done:
        steps += 1
        journal = FileJournal(tmp_path / f"root{steps}")
        written = [add(journal, name) for name in ("first", "second", "third", "last")]
        loose = commits_in(journal.path(STREAM))[2]
        torn = loose.read_bytes()[:-9]
        journal.seal(STREAM)
        pack, _ = spoiled_pack(journal, "second", "third")
        rows = {row.head.id: row for row in Pack.load(str(pack)).rows().values()}
        forms = [pack.read_bytes()[row.offset :][: row.size] for row in (rows[each.id] for each in written[1:3])]
        loose.write_bytes(torn)
        journal.verify(STREAM)

        is_done = _dies_at(monkeypatch, steps, partial(journal.quarantine, STREAM, written[1].id, quarantine_commit))

        reopened = FileJournal(journal.folder)
        for commit_id in (written[1].id, written[2].id):
            while any(damage.commit[:12] == commit_id[:12] for damage in reopened.verify(STREAM)):
                reopened.quarantine(STREAM, commit_id, quarantine_commit)
        assert reopened.verify(STREAM) == ()
        assert set(set_aside_bytes(reopened)) >= {*forms, torn}
        assert set(ids(reopened.read(STREAM))) >= {written[0].id, written[3].id}
    assert steps > 10


def test_the_redaction_records_of_a_project_are_read_once_for_all_its_streams(tmp_path, monkeypatch):
    journal = FileJournal(tmp_path)
    streams = [Stream("p", name) for name in ("codebase", "history", "memory", "system")]
    commits = [add(journal, f"n{number}", stream=stream) for stream in streams for number in range(3)]
    for stream in streams:
        with journal.lock(stream) as version:
            redacted = {commits[0].id: frozenset(rewrite.leaves(commits[0]).values())}
            journal.append(stream, version, order_on(version, redacted, graph=stream.graph))
    reads, read = Counter(), disk.read

    def read_counted(path, *size):
        reads[path] += 1
        return read(path, *size)

    monkeypatch.setattr(disk, "read", read_counted)
    assert {stream.name: len(each) for stream, each in journal_findings(journal, streams).items()} == {
        "codebase": 1, "history": 0, "memory": 0, "system": 0,
    }  # fmt: skip
    assert {path.rpartition("/")[2] for path in reads} >= {file_name(commit.head) for commit in commits}
    assert max(reads.values()) <= 2


# -- the names of damage, and what a redaction leaves


def test_quarantine_takes_eight_digits_of_an_id_and_names_all_damage_for_another(journal):
    written = [add(journal, name) for name in ("first", "second", "third", "last")]
    files = commits_in(journal.path(STREAM))

    def refused_hint(which):
        with pytest.raises(NotFound) as refused:
            journal.quarantine(STREAM, which, quarantine_commit)
        assert refused.value.detail == f"{which} is not damaged in {journal.path(STREAM)}"
        return refused.value.hint

    assert refused_hint(written[1].id) == "nothing is; see: jidomem journal verify"
    flip_in(files[0], b'summary "')
    files[2].unlink()
    assert len(journal.verify(STREAM)) == 2
    named = f"damaged are: {written[2].id}, {written[0].id[:12]}"
    assert refused_hint(written[0].id[:7]) == refused_hint(written[1].id) == refused_hint("none") == named

    missing = journal.quarantine(STREAM, written[2].id[:8], quarantine_commit)
    assert missing == f"{rewrite.NO_MOMENT}-{written[2].id[:12]}.ttl"
    for which in (written[0].id[:8], written[0].id[:8], f"{files[0].name}.aside"):  # again, as after a kill
        assert journal.quarantine(STREAM, which, quarantine_commit) == files[0].name
    assert (journal.verify(STREAM), len(set_aside_bytes(journal)), set_aside_bytes(journal)[0]) == ((), 2, b"")


def test_a_damaged_file_without_a_moment_is_named_by_its_file(journal):
    add(journal, "first")
    stray = journal.path(STREAM) / "20261121T080009.123456Z-0123456789ab.ttl"
    stray.write_bytes(b"nothing")
    (damage,) = journal.verify(STREAM)

    with pytest.raises(NotFound) as refused:
        journal.quarantine(STREAM, "fedcba9876543210", quarantine_commit)

    assert refused.value.hint == f"damaged are: {damage.commit or stray.name}"
    assert journal.quarantine(STREAM, stray.name, quarantine_commit) == stray.name


def test_a_redaction_keeps_the_only_form_of_a_commit_though_it_is_damaged(journal):
    written = [add(journal, name) for name in ("first", "hunter2", "last")]
    path = commits_in(journal.path(STREAM))[1]
    flip_in(path, b'summary "')
    spoiled = path.read_bytes()

    redact_texts(journal, written[1], "hunter2")

    assert path.read_bytes() == spoiled
    assert [damage.path for damage in journal.verify(STREAM)] == [str(path)]


def test_a_redaction_removes_a_damaged_file_whose_commit_is_intact_in_a_pack(journal):
    written = [add(journal, name) for name in ("first", "hunter2", "last")]
    path = commits_in(journal.path(STREAM))[1]
    intact = path.read_bytes()
    journal.seal(STREAM)
    path.write_bytes(intact)
    assert (journal.verify(STREAM), list(journal.read(STREAM))) == ((), written)
    path.write_bytes(intact[:-9])

    redact_texts(journal, written[1], "hunter2")

    assert not path.exists()
    assert (FileJournal(journal.folder).verify(STREAM), b'"hunter2"' in bytes_below(journal.folder)) == ((), False)


def test_a_commit_redacted_twice_by_one_process_is_read_without_both_texts(journal):
    version = add(journal, "first").head
    both = commit_on(Version.of([version]), "both", fact("both", "hunter2", "swordfish"))
    with journal.lock(STREAM) as at:
        journal.append(STREAM, at, both)

    for text in ("hunter2", "swordfish"):
        redact_texts(journal, next(each for each in journal.read(STREAM) if each.id == both.id), text)
        assert not any(f'"{text}"' in each.data.decode() for each in journal.read(STREAM))
    assert [finding.kind for finding in journal_findings(journal, [STREAM])[STREAM]] == []


def test_a_form_that_comes_back_is_reported_though_its_record_is_packed_and_another_form_is_damaged(journal):
    written = [add(journal, name) for name in ("first", "hunter2", "third")]
    files = commits_in(journal.path(STREAM))
    whole = files[1].read_bytes()
    redact_texts(journal, written[1], "hunter2")
    later = add(journal, "swordfish")
    journal.seal(STREAM)
    redact_texts(journal, later, "swordfish")
    (redacted,) = journal.path(STREAM).glob("*.redacted.ttl")
    redacted.write_bytes(redacted.read_bytes()[:-9])

    files[1].write_bytes(whole)

    exposed = journal_findings(FileJournal(journal.folder), [STREAM])[STREAM]
    assert [(each.kind, each.path, each.commit) for each in exposed] == [("exposed", str(files[1]), written[1].id)]


def test_a_process_that_redacts_a_commit_again_reads_what_it_wrote(journal):
    version = add(journal, "first").head
    both = commit_on(Version.of([version]), "both", fact("both", "hunter2", "swordfish"))
    with journal.lock(STREAM) as at:
        journal.append(STREAM, at, both)
    redact_texts(journal, both, "hunter2")
    other = FileJournal(journal.folder)
    assert both.id in [head.id for head in other.inspect(STREAM).named("")]  # which reads the files

    redact_texts(other, both, "swordfish")

    (commit,) = other.inspect(STREAM).commits([stem(both.head)], set())
    assert b'"swordfish"' not in commit.data


def test_a_repeated_quarantine_sets_no_other_damaged_commit_of_the_pack_aside(journal, monkeypatch):
    written = [add(journal, name) for name in ("first", "second", "third", "last")]
    files = commits_in(journal.path(STREAM))
    journal.seal(STREAM)
    spoiled_pack(journal, "second", "third")
    assert len(journal.verify(STREAM)) == 2

    with monkeypatch.context() as patched:
        patched.setattr(disk, "unlink", lambda path: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        with pytest.raises(Failed):
            journal.quarantine(STREAM, written[1].id, quarantine_commit)
    assert files[2].exists()
    journal.quarantine(STREAM, written[1].id, quarantine_commit)

    assert [path.name for path in journal.path(STREAM).glob("*.aside")] == [f"{files[1].name}.aside"]
    assert [damage.path for damage in journal.verify(STREAM)] == [str(files[2])]


def test_files_of_one_name_that_are_quarantined_in_turn_have_numbered_names(journal):
    written = [add(journal, name) for name in ("first", "second", "last")]
    path = commits_in(journal.path(STREAM))[1]
    names = []
    for size in (-9, -8, -7):
        path.write_bytes(written[1].data[:size])
        assert len(journal.verify(STREAM)) == 1
        names.append(journal.quarantine(STREAM, path.name, quarantine_commit))

    assert names == [path.name, f"{path.stem}.2.ttl", f"{path.stem}.3.ttl"]
    for name, size in zip(names, (-9, -8, -7), strict=True):
        assert (path.parent / f"{name}.aside").read_bytes() == written[1].data[:size]
    assert {each.kind for each in journal_findings(journal, [STREAM])[STREAM]} == {"set_aside"}


def test_a_commit_of_a_fast_clock_is_quarantined_with_the_later_ones_and_no_earlier(journal):
    seconds = (1, 1000, 2000, 3000)
    written = [add(journal, f"n{second}", second=second) for second in seconds]

    def record(version, name):
        rows = [(vocab.THIS, vocab.jido("setsAside"), terms.literal(name))]
        return commit_on(version, f"aside{version.position}", rows, second=1001 + version.position)

    journal.quarantine(STREAM, written[2].id, record, START)

    reader = FileJournal(journal.folder)
    assert (reader.verify(STREAM), ids(reader.read(STREAM))[:2]) == ((), ids(written[:2]))
    assert set_aside_bytes(journal) == sorted(each.data for each in written[2:])
