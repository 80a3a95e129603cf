"""A database or bucket that lost the last commits of its log on servers that have them: no server continues it."""

import os

import pytest
from journal_world import STREAM, add, commit_on, ids

from jidomem.extras.servers import object_log
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.extras.servers.object_log import Bucket, ObjectLog
from jidomem.extras.servers.postgres_log import PostgresLog
from jidomem.journal.journal import VersionMismatch
from jidomem.records.intent import Version


@pytest.fixture
def address(postgres):
    return postgres.address()


@pytest.fixture
def opened(address, tmp_path):
    logs = []

    def opened(machine):
        logs.append(PostgresLog(address))
        return MirroredJournal(logs[-1], tmp_path / machine)

    yield opened
    for log in logs:
        log.close()


def lose(postgres, address, number):
    """Lose an entry, as a replica has it that was behind, or a backup that is older."""
    postgres.sql(f"DELETE FROM {address.rpartition('=')[2]}.commits WHERE number >= {number}")


def test_a_log_that_is_as_long_again_with_another_end_is_noticed_at_the_next_look(opened, postgres, address):
    # C023
    here, elsewhere = opened("here"), opened("elsewhere")
    first, _ = add(here, "first"), add(here, "lost")

    lose(postgres, address, 2)
    taken = add(elsewhere, "other")

    assert ids(here.read(STREAM)) == ids([first, taken])
    after = add(here, "after")
    assert ids(opened("new").read(STREAM)) == ids([first, taken, after])
    assert opened("new").verify(STREAM) == ()


def test_nothing_is_appended_to_an_end_that_is_another_since_it_was_looked_at(opened, postgres, address):
    here, elsewhere = opened("here"), opened("elsewhere")
    first, _ = add(here, "first"), add(here, "lost")

    with here.lock(STREAM) as version:
        lose(postgres, address, 2)
        taken = add(elsewhere, "other")
        answer = here.append(STREAM, version, commit_on(version, "late"))

    assert isinstance(answer, VersionMismatch)
    assert ids(opened("new").read(STREAM)) == ids([first, taken])


def test_a_log_that_is_longer_again_by_a_branch_that_came_in_is_noticed_too(opened, postgres, address):
    # C023
    here, log = opened("here"), PostgresLog(address)
    first, _ = add(here, "first"), add(here, "lost")
    after_first = Version.of([first.head])

    lose(postgres, address, 2)
    left, right = commit_on(after_first, "left", second=5), commit_on(after_first, "right", second=6)
    log.append_many(STREAM, 2, [(commit.id, commit.data) for commit in (left, right)])
    log.close()

    assert ids(here.read(STREAM)) == ids([first, left, right])


@pytest.mark.parametrize("is_as_long", [True, False])
def test_a_bucket_in_which_an_older_state_was_restored_is_noticed_after_a_moment(
    bucket, tmp_path, monkeypatch, is_as_long
):
    # C023
    monkeypatch.setattr(object_log, "BELIEVED", 0.0)
    logs = [ObjectLog(bucket, os.environ) for _ in range(3)]
    here, elsewhere, new = (MirroredJournal(log, tmp_path / str(number)) for number, log in enumerate(logs))
    written = [add(here, "first"), add(here, "lost"), add(here, "gone")][:1]

    store = Bucket(bucket, os.environ, 10.0)
    store.delete([key for key in store.below("log") if key.endswith(("002", "003"))])
    if is_as_long:
        written += [add(elsewhere, "second"), add(elsewhere, "third")]

    assert ids(here.read(STREAM)) == ids(written)
    written.append(add(here, "after"))
    assert (ids(new.read(STREAM)), new.verify(STREAM)) == (ids(written), ())
    for log in logs:
        log.close()
