"""A lock that another process never releases: writers name the process, probes and the doctor report it."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from conftest import intent, wait_until

import jidomem
from jidomem.errors import Busy
from jidomem.serve.app import create_app
from jidomem_cli.main import cli

HOLDER = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(path):
    """Yield the id of a process that has the lock of the file *path*."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        yield process.pid
        process.stdin.close()


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", wait=0.3) as memory:
        memory.writer.submit_intent("p", intent())
        yield memory


def test_a_busy_writer_names_the_process_that_has_the_lock(memory):
    with locked(memory.settings.root / "projects/p/memory/.lock") as process:
        with pytest.raises(Busy) as refusal:
            memory.writer.submit_intent("p", intent(summary="late"))

        assert f"stop process {process} ('python" in refusal.value.hint

    assert memory.writer.submit_intent("p", intent(summary="late")).commit


def test_a_server_is_not_ready_while_a_lock_is_not_released(memory):
    client = create_app(memory).test_client()
    with locked(memory.settings.root / "projects/p/memory/.lock") as process:
        assert client.get("/readyz").status_code == 200  # a commit may have it for a moment
        state = wait_until(lambda: (state := client.get("/readyz")).status_code == 503 and state.json)

        assert (state["status"], state["unwritable"]["code"]) == ("unwritable", "busy")
        assert f"process {process}" in state["unwritable"]["hint"]

    assert client.get("/readyz").status_code == 200


def test_the_doctor_names_the_process_that_has_a_lock(memory):
    root = memory.settings.root
    with locked(root / "projects/p/memory/.lock") as process:
        result = CliRunner().invoke(cli, ["--root", str(root), "status", "--doctor"])

    assert "another writer has locked" in result.output
    assert f"stop process {process} (" in result.output


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o600), (0o775, 0o660), (0o777, 0o666), (0o750, 0o600)])
def test_only_who_may_write_can_open_a_lock_file(tmp_path, folder, file):
    root = tmp_path / "root"
    root.mkdir(mode=folder)
    root.chmod(folder)
    for _ in range(2):
        with jidomem.open(root, project="p") as memory:
            memory.writer.submit_intent("p", intent())
            memory.journal.seal(memory.journal.streams()[0])
        locks = [*root.glob("projects/**/.lock"), *root.glob("projects/**/.seal.lock")]
        assert {path.stat().st_mode & 0o777 for path in locks} == {file}
        for path in locks:
            path.chmod(folder & 0o666)  # as an earlier version made them
