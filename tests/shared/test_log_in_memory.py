"""The suite of shared logs, held to one that keeps its promises and to one that does not."""

import pytest
from log_contract import LogContract
from memory_log import BlindLog, MemoryLog, Place


class TestMemoryLog(LogContract):
    @pytest.fixture
    def opened(self):
        place = Place()
        return lambda: MemoryLog(place)


@pytest.mark.parametrize(
    "broken",
    [
        LogContract.test_a_number_is_given_once,
        LogContract.test_the_commit_that_stands_there_already_is_answered_with_yes_and_put_once,
        LogContract.test_of_those_that_want_the_same_number_at_once_one_gets_it,
    ],
)
def test_a_log_that_takes_whatever_comes_is_found_out(broken):
    place = Place()
    with pytest.raises(AssertionError):
        broken(LogContract(), BlindLog(place), lambda: BlindLog(place))
