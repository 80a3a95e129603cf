"""The local copy of a log: it is updated at every read, and replaced whenever it differs from the log."""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
import verifier
from file_log import FileLog
from journal_world import STREAM, add, commit_on, fact, ids, lying, order_on

from jidomem.errors import Failed, InvalidRequest, JournalDamaged
from jidomem.extras.servers import checkpoints
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.journal.journal import Stream, VersionMismatch
from jidomem.records.intent import Version


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "log.sqlite")


@pytest.fixture
def opened(place, tmp_path):
    """Open the journal as a process of that machine does."""
    logs = []

    def opened(machine="here"):
        logs.append(FileLog(place))
        return MirroredJournal(logs[-1], tmp_path / machine)

    yield opened
    for log in logs:
        log.close()


def files_of(journal):
    return sorted(journal.path(STREAM).glob("*.ttl"))


def test_a_commit_missing_in_the_copy_is_fetched_at_the_next_read(opened):
    here = opened()
    first = add(here, "first")
    killed = commit_on(Version.of([first.head]), "killed")  # as a process that dies between log and copy leaves it

    assert here.log.append(STREAM, 2, killed.id, killed.data)

    assert ids(here.read(STREAM)) == [first.id, killed.id]
    assert ids(opened().read(STREAM)) == [first.id, killed.id]
    assert add(opened(), "next").position == 3


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
def test_a_damaged_copy_is_fetched_again_without_a_report(opened, harm):
    written = ids([add(opened(), f"n{number}") for number in range(4)])

    harm(files_of(opened()))

    here = opened()
    assert here.verify(STREAM) == ()
    assert ids(here.read(STREAM)) == written
    assert (here.damage(STREAM), add(here, "next").position) == ((), 5)


def test_damage_that_a_reader_comes_upon_is_mended_while_the_process_lives(opened):
    here = opened()
    written = ids([add(here, f"n{number}") for number in range(4)])
    path = files_of(here)[1]
    path.write_bytes(path.read_bytes()[:-40])

    other, missed = opened(), set()
    list(other.read(STREAM, missed=missed))

    assert missed <= {str(path)}
    assert other.damage(STREAM) == ()
    assert ids(other.read(STREAM)) == written


@pytest.mark.parametrize("text", [b"", b"{}", b"\0\0\0\0", b'{"length": 2}'])
def test_a_copy_without_a_known_position_is_fetched_again(opened, tmp_path, text):
    written = ids([add(opened(), f"n{number}") for number in range(3)])
    Path(checkpoints.path_of(str(tmp_path / "here"), STREAM)).write_bytes(text)
    assert ids(opened().read(STREAM)) == written


def test_a_position_that_is_read_while_it_is_overwritten_is_not_used(opened, tmp_path):
    written = ids([add(opened(), f"n{number}") for number in range(3)])
    path = Path(checkpoints.path_of(str(tmp_path / "here"), STREAM))
    assert checkpoints.load(str(path)).reach.length == 3

    path.write_bytes(path.read_bytes().replace(b'"length": 3', b'"length": 2'))

    assert checkpoints.load(str(path)) is None
    assert ids(opened().read(STREAM)) == written
    assert checkpoints.load(str(path)).reach.length == 3


def test_a_position_stored_by_an_earlier_version_is_used(opened, tmp_path):
    first = add(opened(), "first")
    opened().head(STREAM)
    path = Path(checkpoints.path_of(str(tmp_path / "here"), STREAM))
    position = checkpoints.load(str(path))
    path.write_text(json.dumps({**position.to_dict(), "orders": []}))

    assert checkpoints.load(str(path)) == position
    assert ids([first, add(opened(), "second")]) == ids(opened().read(STREAM))
    assert checkpoints.load(str(path)).reach.length == 2


@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_copy_of_a_recreated_log_is_deleted(opened, place, count):
    for number in range(3):
        add(opened(), f"old{number}")
    with sqlite3.connect(place) as store:
        store.execute("DELETE FROM entries")
    written = [add(opened("elsewhere"), f"new{number}") for number in range(count)]

    here = opened()

    assert ids(here.read(STREAM)) == ids(written)
    assert here.head(STREAM) == Version.of([written[-1].head])
    assert here.verify(STREAM) == ()


def test_a_log_recreated_under_a_process_is_noticed_at_the_next_request(opened, place):
    here = opened()
    for number in range(3):
        add(here, f"old{number}")
    with sqlite3.connect(place) as store:
        store.execute("DELETE FROM entries")

    elsewhere = opened("elsewhere")
    written = [add(elsewhere, "new0")]
    assert ids(here.read(STREAM)) == ids(written)
    written += [add(elsewhere, f"new{number}") for number in (1, 2, 3)]
    assert ids(here.read(STREAM)) == ids(written)


@pytest.mark.parametrize("count", [4, 6])
def test_a_longer_log_in_place_of_another_is_noticed_by_the_commit_it_continues(opened, place, count):
    here = opened()
    for number in range(3):
        add(here, f"old{number}")
    with sqlite3.connect(place) as store:
        store.execute("DELETE FROM entries")
    elsewhere = opened("elsewhere")
    written = [add(elsewhere, f"new{number}") for number in range(count)]
    assert ids(here.read(STREAM)) == ids(written)
    assert here.verify(STREAM) == ()


def test_a_store_is_verified_again_after_an_outage(opened, place):
    here = opened()
    for number in range(3):
        add(here, f"old{number}")
    here.log.gone = True
    with pytest.raises(Failed):
        here.head(STREAM)
    with sqlite3.connect(place) as store:
        store.execute("DELETE FROM entries")
    elsewhere = opened("elsewhere")
    written = [add(elsewhere, f"new{number}") for number in range(3)]
    here.log.gone = False
    assert ids(here.read(STREAM)) == ids(written)


def test_an_append_to_a_recreated_log_writes_nothing(opened, place):
    here = opened()
    for number in range(3):
        add(here, f"old{number}")
    with here.lock(STREAM) as version:
        with sqlite3.connect(place) as store:
            store.execute("DELETE FROM entries")
        answer = here.append(STREAM, version, commit_on(version, "late"))
    assert answer == VersionMismatch(Version())
    assert list(opened("elsewhere").read(STREAM)) == []


def test_many_entries_come_as_packs_and_go_on_as_files(opened, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHUNK", 10)
    written = [add(opened(), f"n{number}") for number in range(20)]

    there = opened("there")
    assert (ids(there.read(STREAM)), there.loose(STREAM)) == (ids(written), 0)
    assert len(files_of(there)) == 2
    written += [add(there, f"n{number}") for number in range(20, 25)]
    assert (ids(opened("there").read(STREAM)), there.loose(STREAM)) == (ids(written), 5)
    assert opened("there").verify(STREAM) == ()


@pytest.mark.parametrize("mark", [b'"n4"', b"jido:parent <urn:jido:commit:", b"\n\n<urn:jido:commit:"])
def test_a_spoiled_entry_of_the_log_comes_into_no_pack_of_the_copy(opened, place, monkeypatch, mark):
    # C027
    monkeypatch.setattr(checkpoints, "CHUNK", 10)
    written = [add(opened(), f"n{number}") for number in range(20)]
    turned = bytearray(written[4].data)
    turned[turned.index(mark) + len(mark) - (mark == b'"n4"') * 2] ^= 1
    spoil(place, 5, bytes(turned))

    there = opened("there")
    (damage,) = there.verify(STREAM)

    assert damage.commit == written[4].id[:12]
    packs = [path for path in files_of(there) if path.name.startswith("pack-")]
    found = [found[0] for path in packs for found in verifier.read_pack(path.name, path.read_bytes())]
    assert set(found) == {*ids(written)} - {written[4].id}
    spoil(place, 5, written[4].data)
    assert (there.verify(STREAM), ids(there.read(STREAM))) == ((), ids(written))


def test_a_pack_of_the_copy_that_is_not_what_was_written_is_refused_and_made_again(opened, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHUNK", 10)
    written = [add(opened(), f"n{number}") for number in range(20)]

    with monkeypatch.context() as patched:
        lying(patched)
        with pytest.raises(Failed, match="the bytes read back differ from those written"):
            opened("there").head(STREAM)

    there = opened("there")
    assert (ids(there.read(STREAM)), there.verify(STREAM), len(files_of(there))) == (ids(written), (), 2)


def test_a_stream_that_was_rewritten_is_fetched_anew_everywhere(opened):
    here, there = opened(), opened("there")
    written = [add(here, "one"), add(here, "two")]
    assert ids(there.read(STREAM)) == ids(written)
    leaf = next(iter(_leaves(written[0], "one")))

    gone = {written[0].id: frozenset([leaf])}
    with here.redacting(STREAM, gone) as version:
        order = order_on(version, gone)
        assert here.append(STREAM, version, order) == Version.of([order.head])

    for journal in (here, there, opened("new")):
        assert ids(journal.read(STREAM)) == [*ids(written), order.id]
        assert next(iter(journal.read(STREAM))).redacted
        assert not any(b'summary "one"' in path.read_bytes() for path in files_of(journal))
        assert journal.verify(STREAM) == ()


def _leaves(commit, summary):
    from jidomem.journal.rewrite import leaves

    return [leaf for triple, leaf in leaves(commit).items() if triple[2] == f'"{summary}"']


def test_damage_of_the_log_itself_is_reported_and_stops_writes_until_it_is_restored(opened, place):
    here = opened()
    written = [add(here, f"n{number}") for number in range(3)]
    spoil(place, 2, written[1].data.replace(b'"n1"', b'"nx"'))

    (found,) = here.verify(STREAM)
    assert (found.commit, "hash mismatch" in found.detail) == (written[1].id[:12], True)
    for journal in (here, opened("there")):
        missed = set()
        assert ids(journal.read(STREAM, missed=missed)) == ids([written[0], written[2]])
        assert len(missed) == 1
        with pytest.raises(JournalDamaged), journal.lock(STREAM):
            pass

    spoil(place, 2, written[1].data)
    assert [journal.verify(STREAM) for journal in (here, opened("there"))] == [(), ()]
    assert ids(opened("there").read(STREAM)) == ids(written)


def test_a_document_that_is_no_commit_is_damage_that_names_it(opened, place):
    written = [add(opened(), f"n{number}") for number in range(3)]
    spoil(place, 2, b"nothing")

    here = opened("new")
    (found,) = here.verify(STREAM)

    assert found.commit == written[1].id[:12]
    assert ids(here.read(STREAM)) == ids([written[0], written[2]])


def test_a_commit_that_stands_under_the_name_of_another_is_damage(opened, place):
    written = [add(opened(), f"n{number}") for number in range(3)]
    spoil(place, 2, commit_on(Version.of([written[0].head]), "another").data)

    here = opened("new")
    (found,) = here.verify(STREAM)
    assert ("it was moved" in found.detail, written[1].id[:12] in found.path) == (True, True)
    assert ids(here.read(STREAM)) == ids([written[0], written[2]])


def spoil(place, number, document):
    with sqlite3.connect(place) as store:
        store.execute("UPDATE entries SET document = ? WHERE number = ?", (document, number))


def test_an_unreachable_store_is_reported_at_each_read_until_it_is_back(opened):
    here = opened()
    first = add(here, "first")
    here.log.gone = True
    for look in (here.head, here.read, here.exists, here.inspect, lambda stream: here.lock(stream).__enter__()):
        with pytest.raises(Failed) as refused:
            look(STREAM)
        assert refused.value.code == "store_unreachable"
    here.log.gone = False
    assert ids(here.read(STREAM)) == [first.id]
    assert add(here, "second").position == 2


def test_a_copy_that_cannot_be_written_loses_no_commit_and_says_where_it_is(opened, tmp_path):
    here = opened()
    first = add(here, "first")
    kept = Path(checkpoints.path_of(str(tmp_path / "here"), STREAM))
    with here.lock(STREAM) as version:
        second = commit_on(version, "second")
        kept.write_bytes(kept.read_bytes().rstrip())  # of another size, so that a new file replaces it
        kept.with_name(f"{kept.name}.new").mkdir()  # where a disk that is full would refuse as well
        assert here.append(STREAM, version, second) == Version.of([second.head])

    with pytest.raises(Failed, match=r"the copy of sqlite:.* could not be written") as refused:
        here.head(STREAM)
    assert (refused.value.code, "JIDOMEM_HOME" in refused.value.hint) == ("write_failed", True)
    assert ids(opened("there").read(STREAM)) == [first.id, second.id]

    kept.with_name(f"{kept.name}.new").rmdir()
    assert ids(here.read(STREAM)) == [first.id, second.id]
    assert here.verify(STREAM) == ()


def test_how_far_four_streams_reach_is_one_question(opened):
    here = opened()
    streams = [Stream("demo", name) for name in ("memory", "history", "codebase", "system")]
    add(here, "first")
    here.head(STREAM)
    here.log.asked.clear()

    with here.asking(streams):
        found = [here.head(stream) for stream in streams]
        assert here.knows("demo")

    assert [version.position for version in found] == [1, 0, 0, 0]
    assert here.log.asked == {"reach": 1}


def test_within_one_block_later_commits_are_seen_after_a_new_request(opened):
    here, there = opened(), opened("there")
    add(here, "first")
    with there.asking([STREAM]):
        there.head(STREAM)
        second = add(here, "second")
        assert there.head(STREAM).position == 1
    assert there.head(STREAM) == Version.of([second.head])


def test_a_waiting_thread_is_woken_by_an_append_of_another_machine(opened):
    here, there = opened(), opened("there")
    first = add(here, "first")
    version = there.head(STREAM)
    assert not there.moved(STREAM, version, 0.01)
    add(here, "second")
    assert there.moved(STREAM, version, 60.0)
    assert first.head in version.heads


def test_nothing_is_set_aside_in_a_copy(opened):
    here = opened()
    first = add(here, "first")
    with pytest.raises(InvalidRequest, match="cannot be quarantined") as refused:
        here.set_aside(STREAM, first.id, lambda version, name: first)
    assert "restore" in refused.value.hint


def test_a_commit_that_is_no_successor_never_reaches_the_log(opened):
    here = opened()
    version = Version.of([add(here, "first").head])
    here.log.asked.clear()
    with suppress(ValueError):
        here.append(STREAM, version, commit_on(version, "early", fact("early"), second=0))
    assert here.log.asked["append"] == 0
