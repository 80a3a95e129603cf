"""The contract of shared logs, run on a log that fulfils it and on one that does not."""

import pytest
from file_log import BlindLog
from log_contract import LogContract, ProcessContract


class TestFileLog(LogContract, ProcessContract):
    kind = "file_log:FileLog"

    @pytest.fixture
    def address(self, tmp_path):
        return str(tmp_path / "log.sqlite")


@pytest.mark.parametrize(
    "check",
    [
        LogContract.test_a_number_is_given_once,
        LogContract.test_the_commit_that_stands_there_already_is_answered_with_yes_and_put_once,
        LogContract.test_of_those_that_want_the_same_number_at_once_one_gets_it,
    ],
)
def test_a_log_that_accepts_every_append_fails_the_contract(check, tmp_path):
    blind = BlindLog(str(tmp_path / "log.sqlite"))
    with pytest.raises(AssertionError):
        check(LogContract(), blind, lambda: blind)
    blind.close()
