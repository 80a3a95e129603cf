"""Many threads of one process, a rebuilt index on disk, and snapshots: no thread waits for ever."""

import subprocess
import sys
from pathlib import Path

WRITERS = Path(__file__).with_name("concurrent_writers.py")
ROUNDS, WRITERS_AT_ONCE = 40, 4
TIME_LIMIT = 300  # seconds, after which a thread that still waits will do so for ever


def test_concurrent_writers_read_their_memories_at_once_and_all_finish(tmp_path, scale):
    command = [sys.executable, str(WRITERS), str(tmp_path / "root"), str(ROUNDS * scale)]

    result = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT * scale)

    assert result.returncode == 0, result.stderr
    count, all_read = result.stdout.split()
    assert int(count) == WRITERS_AT_ONCE * ROUNDS * scale
    assert all_read == "True"
