"""Every kind of server of a shared root makes checkpoints, from which new servers start."""

import os
import subprocess
import sys
import time

import pytest
from conftest import intent

import jidomem
from jidomem.extras.servers import addresses
from jidomem.extras.servers.checkpoints import NEWEST, fetch

LONG = 60.0
#: jidomem with small limits and short intervals.
PROGRAM = """
from jidomem.index import follower as tail
from jidomem.runtime import location as place
from jidomem.extras.servers import checkpoints
from jidomem_cli.main import main
place.LOOK, checkpoints.FAR = 0.2, 0
tail.ON_DISK_BYTES = tail.SNAPSHOT_COMMITS = tail.WRITER_SNAPSHOT_BYTES = 0
main()
"""


@pytest.mark.parametrize("verb", [("serve",), ("mcp", "--http")], ids=" ".join)
def test_a_server_makes_a_checkpoint_that_a_new_one_starts_from(verb, postgres, tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "none")
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "writer"))
    address = postgres.address()
    with jidomem.open(address, project="p") as memory:
        for number in range(20):
            memory.writer.submit_intent("p", intent(summary=f"fact {number}", about=[f"f{number}"]))
    command = [sys.executable, "-c", PROGRAM, *verb, "--root", address, "--project", "p", "--port", "0"]
    environment = {**os.environ, "JIDOMEM_HOME": str(tmp_path / "first")}

    with subprocess.Popen(command, stdout=-1, stderr=subprocess.STDOUT, env=environment) as server:
        log, end = addresses.open_log(address, os.environ), time.monotonic() + LONG
        try:
            while log.get(NEWEST) is None and time.monotonic() < end and server.poll() is None:
                time.sleep(0.05)
        finally:
            server.terminate()
            output = server.stdout.read().decode()

    assert fetch(log, tmp_path / "second"), output
    assert [*(tmp_path / "second" / "index" / "snapshots").iterdir()]
    assert server.returncode == 0, output
    log.close()
