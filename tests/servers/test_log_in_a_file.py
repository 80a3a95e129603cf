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
        LogContract.test_a_number_is_assigned_once,
        LogContract.test_an_existing_commit_is_accepted_again_and_stored_once,
        LogContract.test_one_of_several_concurrent_appends_of_a_number_succeeds,
    ],
)
def test_a_log_that_accepts_every_append_fails_the_contract(check, tmp_path):
    blind = BlindLog(str(tmp_path / "log.sqlite"))
    with pytest.raises(AssertionError):
        check(LogContract(), blind, lambda: blind)
    blind.close()
