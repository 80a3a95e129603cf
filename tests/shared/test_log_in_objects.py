"""The log in an object store keeps what every log promises."""

import pytest
from log_contract import LogContract, ProcessContract
from seaweed import bucket, seaweed  # noqa: F401  (fixtures)


class TestObjectLog(LogContract, ProcessContract):
    kind = "seaweed:opened"

    @pytest.fixture
    def address(self, bucket):  # noqa: F811
        return bucket
