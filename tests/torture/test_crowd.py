"""Many threads of one process, an index on disk that is built anew, and snapshots: nobody waits without end."""

import subprocess
import sys
from pathlib import Path

CROWD = Path(__file__).with_name("crowd.py")
PATIENCE = 120  # seconds, after which a thread that still waits will do so for ever


def test_who_writes_reads_it_at_once_and_nobody_waits_without_end(tmp_path, scale):
    command = [sys.executable, str(CROWD), str(tmp_path / "root"), str(4 * scale)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * scale + PATIENCE)

    assert done.returncode == 0, done.stderr
    count, held = done.stdout.split()
    assert int(count) > 20
    assert held == "True"
