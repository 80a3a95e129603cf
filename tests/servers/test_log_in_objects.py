"""The log in an object store fulfils the contract of shared logs."""

import os

import pytest
from log_contract import LogContract, ProcessContract

from jidomem.extras.servers.object_log import ObjectLog


def opened(address):
    """Open the log at an address, with the endpoint of the environment."""
    return ObjectLog(address, os.environ)


class TestObjectLog(LogContract, ProcessContract):
    kind = "test_log_in_objects:opened"

    @pytest.fixture
    def address(self, bucket):
        return bucket
