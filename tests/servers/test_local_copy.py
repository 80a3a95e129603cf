"""The local copy of a log: it is updated at every read, and replaced whenever it differs from the log."""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
import verifier
from file_log import mirrored_journals
from journal_world import STREAM, add, commit_on, fact, flip_written_bits, ids, order_on

from jidomem.errors import Failed, InvalidRequest, JournalDamaged
from jidomem.extras.servers import checkpoints
from jidomem.journal.journal import Stream, VersionMismatch
from jidomem.journal.stream_files import missing_parent
from jidomem.records.intent import Version


@pytest.fixture
def log_path(tmp_path):
    return str(tmp_path / "log.sqlite")


@pytest.fixture
def open_journal(log_path, tmp_path):
    """Return a function that opens the journal as a process of a machine does."""
    with mirrored_journals(log_path, tmp_path) as open_journal:
        yield open_journal


def files_of(journal):
    return sorted(journal.path(STREAM).glob("*.ttl"))


def test_a_commit_missing_in_the_copy_is_fetched_at_the_next_read(open_journal):
    journal = open_journal()
    first = add(journal, "first")
    killed = commit_on(Version.of([first.head]), "killed")  # as a process leaves it that dies between log and copy

    assert journal.log.append(STREAM, 2, killed.id, killed.data)

    assert ids(journal.read(STREAM)) == [first.id, killed.id]
    assert ids(open_journal().read(STREAM)) == [first.id, killed.id]
    assert add(open_journal(), "next").position == 3


@pytest.mark.parametrize(
    "harm",
    [
        lambda files: files[1].write_bytes(files[1].read_bytes()[:-40]),
        lambda files: files[1].write_bytes(b""),
        lambda files: files[1].unlink(),
        lambda files: files[2].write_bytes(files[2].read_bytes().replace(b"n2", b"nx")),
        lambda files: files[0].rename(files[0].with_name(files[3].name)),
    ],
    ids=["cut short", "empty", "gone", "changed", "in another one's place"],
)
def test_a_damaged_copy_is_fetched_again_without_a_report(open_journal, harm):
    expected = ids([add(open_journal(), f"n{number}") for number in range(4)])

    harm(files_of(open_journal()))

    journal = open_journal()
    assert journal.verify(STREAM) == ()
    assert ids(journal.read(STREAM)) == expected
    assert (journal.damage(STREAM), add(journal, "next").position) == ((), 5)


def test_damage_found_by_a_reader_is_repaired_within_the_process(open_journal):
    here = open_journal()
    expected = ids([add(here, f"n{number}") for number in range(4)])
    path = files_of(here)[1]
    path.write_bytes(path.read_bytes()[:-40])

    other, missed = open_journal(), set()
    list(other.read(STREAM, missed=missed))

    assert missed <= {str(path)}
    assert other.damage(STREAM) == ()
    assert ids(other.read(STREAM)) == expected


@pytest.mark.parametrize("text", [b"", b"{}", b"\0\0\0\0", b'{"length": 2}'])
def test_a_copy_without_a_known_position_is_fetched_again(open_journal, tmp_path, text):
    expected = ids([add(open_journal(), f"n{number}") for number in range(3)])
    Path(checkpoints.path_of(str(tmp_path / "here"), STREAM)).write_bytes(text)
    assert ids(open_journal().read(STREAM)) == expected


def test_a_position_read_during_its_overwrite_is_not_used(open_journal, tmp_path):
    expected = ids([add(open_journal(), f"n{number}") for number in range(3)])
    path = Path(checkpoints.path_of(str(tmp_path / "here"), STREAM))
    assert checkpoints.load(str(path)).reach.length == 3

    path.write_bytes(path.read_bytes().replace(b'"length": 3', b'"length": 2'))

    assert checkpoints.load(str(path)) is None
    assert ids(open_journal().read(STREAM)) == expected
    assert checkpoints.load(str(path)).reach.length == 3


def test_a_position_stored_by_an_earlier_version_is_used(open_journal, tmp_path):
    first = add(open_journal(), "first")
    open_journal().head(STREAM)
    path = Path(checkpoints.path_of(str(tmp_path / "here"), STREAM))
    position = checkpoints.load(str(path))
    path.write_text(json.dumps({**position.to_dict(), "orders": []}))

    assert checkpoints.load(str(path)) == position
    assert ids([first, add(open_journal(), "second")]) == ids(open_journal().read(STREAM))
    assert checkpoints.load(str(path)).reach.length == 2


@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_copy_of_a_recreated_log_is_deleted(open_journal, log_path, count):
    for number in range(3):
        add(open_journal(), f"old{number}")
    with sqlite3.connect(log_path) as store:
        store.execute("DELETE FROM entries")
    commits = [add(open_journal("elsewhere"), f"new{number}") for number in range(count)]

    here = open_journal()

    assert ids(here.read(STREAM)) == ids(commits)
    assert here.head(STREAM) == Version.of([commits[-1].head])
    assert here.verify(STREAM) == ()


def test_a_log_recreated_under_a_process_is_noticed_at_the_next_request(open_journal, log_path):
    here = open_journal()
    for number in range(3):
        add(here, f"old{number}")
    with sqlite3.connect(log_path) as store:
        store.execute("DELETE FROM entries")

    elsewhere = open_journal("elsewhere")
    commits = [add(elsewhere, "new0")]
    assert ids(here.read(STREAM)) == ids(commits)
    commits += [add(elsewhere, f"new{number}") for number in (1, 2, 3)]
    assert ids(here.read(STREAM)) == ids(commits)


@pytest.mark.parametrize("count", [4, 6])
def test_a_longer_log_in_place_of_another_is_noticed_by_the_commit_it_continues(open_journal, log_path, count):
    here = open_journal()
    for number in range(3):
        add(here, f"old{number}")
    with sqlite3.connect(log_path) as store:
        store.execute("DELETE FROM entries")
    elsewhere = open_journal("elsewhere")
    commits = [add(elsewhere, f"new{number}") for number in range(count)]
    assert ids(here.read(STREAM)) == ids(commits)
    assert here.verify(STREAM) == ()


def test_a_store_is_verified_again_after_an_outage(open_journal, log_path):
    here = open_journal()
    for number in range(3):
        add(here, f"old{number}")
    here.log.is_unreachable = True
    with pytest.raises(Failed):
        here.head(STREAM)
    with sqlite3.connect(log_path) as store:
        store.execute("DELETE FROM entries")
    elsewhere = open_journal("elsewhere")
    commits = [add(elsewhere, f"new{number}") for number in range(3)]
    here.log.is_unreachable = False
    assert ids(here.read(STREAM)) == ids(commits)


def test_an_append_to_a_recreated_log_writes_nothing(open_journal, log_path):
    here = open_journal()
    for number in range(3):
        add(here, f"old{number}")
    with here.lock(STREAM) as version:
        with sqlite3.connect(log_path) as store:
            store.execute("DELETE FROM entries")
        answer = here.append(STREAM, version, commit_on(version, "late"))
    assert answer == VersionMismatch(Version())
    assert list(open_journal("elsewhere").read(STREAM)) == []


def test_many_entries_are_fetched_as_packs_and_later_ones_as_files(open_journal, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHUNK", 10)
    commits = [add(open_journal(), f"n{number}") for number in range(20)]

    second = open_journal("there")
    assert (ids(second.read(STREAM)), second.loose(STREAM)) == (ids(commits), 0)
    assert len(files_of(second)) == 2
    commits += [add(second, f"n{number}") for number in range(20, 25)]
    assert (ids(open_journal("there").read(STREAM)), second.loose(STREAM)) == (ids(commits), 5)
    assert open_journal("there").verify(STREAM) == ()


@pytest.mark.parametrize("mark", [b'"n4"', b"jido:parent <urn:jido:commit:", b"\n\n<urn:jido:commit:"])
def test_a_damaged_entry_of_the_log_is_excluded_from_the_packs_of_the_copy(open_journal, log_path, monkeypatch, mark):
    # C027
    monkeypatch.setattr(checkpoints, "CHUNK", 10)
    commits = [add(open_journal(), f"n{number}") for number in range(20)]
    damaged = bytearray(commits[4].data)
    damaged[damaged.index(mark) + len(mark) - (mark == b'"n4"') * 2] ^= 1
    replace_document(log_path, 5, bytes(damaged))

    copy = open_journal("there")
    (damage,) = copy.verify(STREAM)

    assert damage.commit == commits[4].id[:12]
    packs = [path for path in files_of(copy) if path.name.startswith("pack-")]
    packed = [packed[0] for path in packs for packed in verifier.read_pack(path.name, path.read_bytes())]
    assert set(packed) == {*ids(commits)} - {commits[4].id}
    replace_document(log_path, 5, commits[4].data)
    assert (copy.verify(STREAM), ids(copy.read(STREAM))) == ((), ids(commits))


def test_a_falsely_written_pack_of_the_copy_is_refused_and_written_again(open_journal, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHUNK", 10)
    commits = [add(open_journal(), f"n{number}") for number in range(20)]

    with monkeypatch.context() as patched:
        flip_written_bits(patched)
        with pytest.raises(Failed, match="the bytes read back differ from those written"):
            open_journal("there").head(STREAM)

    copy = open_journal("there")
    assert (ids(copy.read(STREAM)), copy.verify(STREAM), len(files_of(copy))) == (ids(commits), (), 2)


def test_a_rewritten_stream_is_fetched_again_by_every_copy(open_journal):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, "one"), add(here, "two")]
    assert ids(there.read(STREAM)) == ids(commits)
    leaf = next(iter(_leaves(commits[0], "one")))

    redacted = {commits[0].id: frozenset([leaf])}
    with here.redacting(STREAM, redacted) as version:
        order = order_on(version, redacted)
        assert here.append(STREAM, version, order) == Version.of([order.head])

    for journal in (here, there, open_journal("new")):
        assert ids(journal.read(STREAM)) == [*ids(commits), order.id]
        assert next(iter(journal.read(STREAM))).redacted
        assert not any(b'summary "one"' in path.read_bytes() for path in files_of(journal))
        assert (journal.verify(STREAM), journal.reread(STREAM, "", 9)[1]) == ((), False)


def _leaves(commit, summary):
    from jidomem.journal.rewrite import leaves

    return [leaf for triple, leaf in leaves(commit).items() if triple[2] == f'"{summary}"']


def test_damage_of_the_log_is_reported_and_blocks_writes_until_it_is_restored(open_journal, log_path):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, f"n{number}") for number in range(3)]
    replace_document(log_path, 2, commits[1].data.replace(b'"n1"', b'"nx"'))

    for journal, readable in ((here, commits), (there, [commits[0], commits[2]])):
        (damage,) = journal.verify(STREAM)
        assert (damage.commit, "hash mismatch" in damage.detail) == (commits[1].id[:12], True)
        assert ("has it" in damage.detail, "jidomem journal restore" in damage.hint) == (journal is here, True)
        missed = set()
        assert ids(journal.read(STREAM, missed=missed)) == ids(readable)
        assert len(missed) == (journal is there)
        with pytest.raises(JournalDamaged), journal.lock(STREAM):
            pass

    replace_document(log_path, 2, commits[1].data)
    assert [journal.verify(STREAM) for journal in (here, open_journal("there"))] == [(), ()]
    assert ids(open_journal("there").read(STREAM)) == ids(commits)


@pytest.mark.parametrize("chunk", [checkpoints.CHUNK, 3])
@pytest.mark.parametrize("number", [1, 3, 6])
def test_a_commit_missing_in_the_log_is_reported_by_every_later_process(
    open_journal, log_path, monkeypatch, number, chunk
):
    monkeypatch.setattr(checkpoints, "CHUNK", chunk)
    commits = [add(open_journal(), f"n{each}") for each in range(7)]
    with sqlite3.connect(log_path) as store:
        store.execute("DELETE FROM entries WHERE number = ?", (number,))
    missing = commits.pop(number - 1)

    (damage,) = open_journal().verify(STREAM)
    assert (f"entry {number} of" in damage.path, damage.commit) == (True, missing.id[:12])
    for machine in ("here", "here", "there", "there"):  # a later process of a machine begins with the copy of the first
        journal = open_journal(machine)
        if machine == "there":
            assert ids(journal.read(STREAM)) == ids(commits)
            assert {missing_parent(damage.detail) for damage in journal.damage(STREAM)} == {missing.id}
        else:
            assert ids(journal.read(STREAM)) == ids(sorted([*commits, missing], key=lambda commit: commit.head))
            assert f"entry {number} of" in journal.damage(STREAM)[0].path
        assert all("jidomem journal restore" in damage.hint for damage in journal.damage(STREAM))
        with pytest.raises(JournalDamaged), open_journal(machine).lock(STREAM):
            pass

    with sqlite3.connect(log_path) as store:
        row = (STREAM.project, STREAM.name, number, missing.id, missing.data)
        store.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
    assert [open_journal(machine).verify(STREAM) for machine in ("here", "there")] == [(), ()]
    assert add(open_journal(), "next").position == 8


def test_a_missing_entry_that_no_other_names_is_reported_by_verify_and_stops_writes(open_journal, log_path):
    here = open_journal()
    after_first = Version.of([add(here, "first").head])
    for number, name in enumerate(("left", "right"), 2):  # as a root with two heads is brought here
        head = commit_on(after_first, name, second=number)
        here.log.append(STREAM, number, head.id, head.data)
    with sqlite3.connect(log_path) as store:
        store.execute("DELETE FROM entries WHERE number = 2")

    new = open_journal("new")
    (damage,) = new.verify(STREAM)

    assert "entry 2 of demo/memory" in damage.path
    with pytest.raises(JournalDamaged), new.lock(STREAM):
        pass


@pytest.mark.parametrize("document", [None, b"nothing"])
def test_a_server_that_rereads_its_journal_finds_damage_of_the_log_and_keeps_its_intact_copy(
    open_journal, log_path, document
):
    server = open_journal()
    commits = [add(server, f"n{number}") for number in range(5)]
    assert (server.reread(STREAM, "", 9)[1], server.damage(STREAM)) == (False, ())
    with sqlite3.connect(log_path) as store:
        if document is None:
            store.execute("DELETE FROM entries WHERE number = 3")
        else:
            store.execute("UPDATE entries SET document = ? WHERE number = 3", (document,))

    assert [server.reread(STREAM, "", 9)[1] for _ in range(2)] == [True, False]
    (damage,) = server.damage(STREAM)
    assert "entry 3 of demo/memory" in damage.path
    assert server.known_damage("demo") == 1
    assert ids(server.read(STREAM)) == ids(commits)
    with pytest.raises(JournalDamaged), server.lock(STREAM):
        pass

    with sqlite3.connect(log_path) as store:
        row = (STREAM.project, STREAM.name, 3, commits[2].id, commits[2].data)
        store.execute("REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", row)
    assert (server.reread(STREAM, "", 9)[1], server.damage(STREAM)) == (False, ())
    assert add(server, "next").position == 6


def test_a_document_that_is_no_commit_is_reported_as_damage(open_journal, log_path):
    commits = [add(open_journal(), f"n{number}") for number in range(3)]
    replace_document(log_path, 2, b"nothing")

    here = open_journal("new")
    (damage,) = here.verify(STREAM)

    assert damage.commit == commits[1].id[:12]
    assert ids(here.read(STREAM)) == ids([commits[0], commits[2]])


def test_a_commit_under_the_name_of_another_is_reported_as_damage(open_journal, log_path):
    commits = [add(open_journal(), f"n{number}") for number in range(3)]
    replace_document(log_path, 2, commit_on(Version.of([commits[0].head]), "another").data)

    here = open_journal("new")
    (damage,) = here.verify(STREAM)
    assert ("it was moved" in damage.detail, commits[1].id[:12] in damage.path) == (True, True)
    assert ids(here.read(STREAM)) == ids([commits[0], commits[2]])


def replace_document(log_path, number, document):
    with sqlite3.connect(log_path) as store:
        store.execute("UPDATE entries SET document = ? WHERE number = ?", (document, number))


def test_an_unreachable_store_is_reported_at_each_read_until_it_is_back(open_journal):
    here = open_journal()
    first = add(here, "first")
    here.log.is_unreachable = True
    for look in (here.head, here.read, here.exists, here.inspect, lambda stream: here.lock(stream).__enter__()):
        with pytest.raises(Failed) as refused:
            look(STREAM)
        assert refused.value.code == "store_unreachable"
    here.log.is_unreachable = False
    assert ids(here.read(STREAM)) == [first.id]
    assert add(here, "second").position == 2


def test_an_unwritable_copy_loses_no_commit_and_is_reported_with_its_path(open_journal, tmp_path):
    here = open_journal()
    first = add(here, "first")
    position_file = Path(checkpoints.path_of(str(tmp_path / "here"), STREAM))
    with here.lock(STREAM) as version:
        second = commit_on(version, "second")
        position_file.write_bytes(
            position_file.read_bytes().rstrip()
        )  # of another size, so that a new file replaces it
        position_file.with_name(f"{position_file.name}.new").mkdir()  # where a full disk would refuse as well
        assert here.append(STREAM, version, second) == Version.of([second.head])

    with pytest.raises(Failed, match=r"the copy of sqlite:.* could not be written") as refused:
        here.head(STREAM)
    assert (refused.value.code, "JIDOMEM_HOME" in refused.value.hint) == ("write_failed", True)
    assert ids(open_journal("there").read(STREAM)) == [first.id, second.id]

    position_file.with_name(f"{position_file.name}.new").rmdir()
    assert ids(here.read(STREAM)) == [first.id, second.id]
    assert here.verify(STREAM) == ()


def test_the_reaches_of_four_streams_need_one_request(open_journal):
    here = open_journal()
    streams = [Stream("demo", name) for name in ("memory", "history", "codebase", "system")]
    add(here, "first")
    here.head(STREAM)
    here.log.requests.clear()

    with here.asking(streams):
        versions = [here.head(stream) for stream in streams]
        assert here.knows("demo")

    assert [version.position for version in versions] == [1, 0, 0, 0]
    assert here.log.requests == {"reach": 1}


def test_within_one_block_later_commits_are_seen_after_a_new_request(open_journal):
    here, there = open_journal(), open_journal("there")
    add(here, "first")
    with there.asking([STREAM]):
        there.head(STREAM)
        second = add(here, "second")
        assert there.head(STREAM).position == 1
    assert there.head(STREAM) == Version.of([second.head])


def test_a_waiting_thread_is_woken_by_an_append_of_another_machine(open_journal):
    here, there = open_journal(), open_journal("there")
    first = add(here, "first")
    version = there.head(STREAM)
    assert not there.wait_for_change(STREAM, version, 0.01)
    add(here, "second")
    assert there.wait_for_change(STREAM, version, 60.0)
    assert first.head in version.heads


def test_a_copy_refuses_to_quarantine_a_commit(open_journal):
    here = open_journal()
    first = add(here, "first")
    with pytest.raises(InvalidRequest, match="cannot be quarantined") as refused:
        here.quarantine(STREAM, first.id, lambda version, name: first)
    assert "restore" in refused.value.hint


def test_a_commit_that_is_no_successor_is_not_appended_to_the_log(open_journal):
    here = open_journal()
    version = Version.of([add(here, "first").head])
    here.log.requests.clear()
    with suppress(ValueError):
        here.append(STREAM, version, commit_on(version, "early", fact("early"), second=0))
    assert here.log.requests["append"] == 0
