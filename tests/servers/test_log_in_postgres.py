"""The log in PostgreSQL keeps what every log promises."""

import pytest
from log_contract import LogContract, ProcessContract


class TestPostgresLog(LogContract, ProcessContract):
    kind = "jidomem.extras.servers.postgres_log:PostgresLog"

    @pytest.fixture
    def address(self, postgres):
        return postgres.address()
