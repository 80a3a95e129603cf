"""The log in PostgreSQL fulfils the contract of shared logs."""

import pytest
from log_contract import LogContract, ProcessContract


class TestPostgresLog(LogContract, ProcessContract):
    kind = "jidomem.extras.servers.postgres_log:PostgresLog"

    @pytest.fixture
    def address(self, postgres):
        return postgres.address()
