"""A database or bucket that lost the last commits of its log, with servers that have them: no server continues it."""

import os

import pytest
from journal_world import STREAM, add, commit_on, ids

from jidomem.errors import JournalDamaged
from jidomem.extras.servers import object_log
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.extras.servers.object_log import Bucket, ObjectLog
from jidomem.extras.servers.postgres_log import PostgresLog
from jidomem.journal.journal import Stream, VersionMismatch
from jidomem.records.intent import Version


@pytest.fixture
def address(postgres):
    return postgres.address()


@pytest.fixture
def open_journal(address, tmp_path):
    logs = []

    def open_journal(machine):
        logs.append(PostgresLog(address))
        return MirroredJournal(logs[-1], tmp_path / machine)

    yield open_journal
    for log in logs:
        log.close()


def delete_entries(postgres, address, number):
    """Delete entries, as an outdated replica or an older backup lacks them."""
    postgres.sql(f"DELETE FROM {address.rpartition('=')[2]}.commits WHERE number >= {number}")


def test_a_truncated_log_with_another_commit_of_equal_length_is_noticed_at_the_next_read(
    open_journal, postgres, address
):
    # C023
    here, elsewhere = open_journal("here"), open_journal("elsewhere")
    first, _ = add(here, "first"), add(here, "lost")

    delete_entries(postgres, address, 2)
    other = add(elsewhere, "other")

    assert ids(here.read(STREAM)) == ids([first, other])
    after = add(here, "after")
    assert ids(open_journal("new").read(STREAM)) == ids([first, other, after])
    assert open_journal("new").verify(STREAM) == ()


def test_an_append_after_a_truncation_is_refused(open_journal, postgres, address):
    here, elsewhere = open_journal("here"), open_journal("elsewhere")
    first, _ = add(here, "first"), add(here, "lost")

    with here.lock(STREAM) as version:
        delete_entries(postgres, address, 2)
        other = add(elsewhere, "other")
        answer = here.append(STREAM, version, commit_on(version, "late"))

    assert isinstance(answer, VersionMismatch)
    assert ids(open_journal("new").read(STREAM)) == ids([first, other])


def test_a_truncated_log_that_grew_by_a_branch_is_noticed(open_journal, postgres, address):
    # C023
    here, log = open_journal("here"), PostgresLog(address)
    first, _ = add(here, "first"), add(here, "lost")
    after_first = Version.of([first.head])

    delete_entries(postgres, address, 2)
    left, right = commit_on(after_first, "left", second=5), commit_on(after_first, "right", second=6)
    log.append_many(STREAM, 2, [(commit.id, commit.data) for commit in (left, right)])
    log.close()

    assert ids(here.read(STREAM)) == ids([first, left, right])


@pytest.mark.parametrize("is_as_long", [True, False])
def test_an_older_state_of_a_bucket_is_noticed_after_a_moment(bucket, tmp_path, monkeypatch, is_as_long):
    # C023
    monkeypatch.setattr(object_log, "BELIEVED", 0.0)
    logs = [ObjectLog(bucket, os.environ) for _ in range(3)]
    here, elsewhere, new = (MirroredJournal(log, tmp_path / str(number)) for number, log in enumerate(logs))
    commits = [add(here, "first"), add(here, "lost"), add(here, "gone")][:1]

    store = Bucket(bucket, os.environ, 10.0)
    store.delete([key for key in store.below("log") if key.endswith(("002", "003"))])
    if is_as_long:
        commits += [add(elsewhere, "second"), add(elsewhere, "third")]

    assert ids(here.read(STREAM)) == ids(commits)
    commits.append(add(here, "after"))
    assert (ids(new.read(STREAM)), new.verify(STREAM)) == (ids(commits), ())
    for log in logs:
        log.close()


def test_a_log_without_its_first_commit_still_has_its_stream(open_journal, postgres, address):
    here = open_journal("here")
    commits = [add(here, "first"), add(here, "second")]
    others = [Stream("another"), Stream("demo", "history"), Stream("zoo")]
    for stream in others:
        here.log.append(stream, 1, "0" * 64, b"")

    postgres.sql(f"DELETE FROM {address.rpartition('=')[2]}.commits WHERE stream = 'demo/memory' AND number = 1")

    assert open_journal("new").streams() == sorted([*others, STREAM])
    assert [damage.commit for damage in open_journal("new").damage(STREAM)] == ids(commits[1:])


def test_a_server_that_rereads_its_journal_finds_a_missing_object(bucket, tmp_path):
    log = ObjectLog(bucket, os.environ)
    server = MirroredJournal(log, tmp_path)
    commits = [add(server, f"n{number}") for number in range(4)]
    store = Bucket(bucket, os.environ, 10.0)
    store.delete([key for key in store.below("log") if key.endswith("002")])

    assert server.reread(STREAM, "", 9)[1]

    assert "entry 2 of demo/memory: this entry is missing" in server.damage(STREAM)[0].detail
    assert ids(server.read(STREAM)) == ids(commits)
    with pytest.raises(JournalDamaged), server.lock(STREAM):
        pass
    log.close()
