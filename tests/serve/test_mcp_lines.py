"""Lines on standard input that are no messages: each is answered, none takes memory, and the next one is served."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jidomem.runtime.settings import own_config

BIN = Path(sys.executable).parent
MOST = 4096
PING = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'


@pytest.fixture
def process(tmp_path):
    """`jidomem mcp`, whose lines have at most MOST bytes."""
    own_config().parent.mkdir(parents=True)
    own_config().write_text(f"[limits]\nbody = {MOST}\n")
    own_config().chmod(0o600)
    command = [str(BIN / "jidomem"), "mcp", "--root", str(tmp_path / "root"), "--project", "p"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        yield running
        running.stdin.close()
        assert running.wait(60) == 0


def told(process, line):
    """What *line* is answered."""
    process.stdin.write(line)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def highest(process):
    """The most memory a process had, in bytes."""
    (line,) = [each for each in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in each]
    return int(line.split()[1]) * 1024


def test_what_is_no_message_is_answered_and_the_next_message_is_served(process):
    for line, code in (
        (b"no JSON\n", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method"\n', -32700),
        (b"\xff\xfe\x00\n", -32700),
        (b"[]\n", -32600),
        (b'{"id": 1}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * MOST + b'"}\n', -32600),
    ):
        answer = told(process, line)
        assert (answer["id"], answer["error"]["code"], answer["jsonrpc"]) == (None, code, "2.0"), line
    assert "more than 4,096 bytes" in answer["error"]["message"]

    assert told(process, b"\n  \n" + PING)["id"] == 7
    line = PING[:-2] + b" " * (MOST - len(PING)) + b"}\n"
    assert len(line) == MOST
    assert told(process, line)["id"] == 7


def test_a_line_without_end_takes_no_memory(process):
    assert told(process, PING)["id"] == 7
    before = highest(process)

    for _ in range(64):
        process.stdin.write(b"x" * 1024 * 1024)
    answer = told(process, b"\n")

    assert answer["error"]["code"] == -32600
    assert highest(process) - before < 16 * 1024 * 1024
    assert told(process, PING)["id"] == 7
