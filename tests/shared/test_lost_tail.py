"""A database that lost the last commits of its log, while servers have them: nobody goes on from what is gone."""

import pytest
from journal_world import STREAM, add, commit_on, ids

from jidomem.journal.files import Moved
from jidomem.shared.mirror import MirroredJournal
from jidomem.shared.postgres import PostgresLog


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

    with here.turn(STREAM) as version:
        lose(postgres, address, 2)
        taken = add(elsewhere, "other")
        answer = here.append(STREAM, version, commit_on(version, "late"))

    assert isinstance(answer, Moved)
    assert ids(opened("new").read(STREAM)) == ids([first, taken])
