"""Malformed lines on standard input: each is answered, none uses memory, and the next message is answered."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jidomem.runtime.settings import own_config

BIN = Path(sys.executable).parent
LIMIT = 4096
PING = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'


@pytest.fixture
def process(tmp_path):
    """`jidomem mcp`, whose lines have at most LIMIT bytes."""
    own_config().parent.mkdir(parents=True)
    own_config().write_text(f"[limits]\nbody = {LIMIT}\n")
    own_config().chmod(0o600)
    command = [str(BIN / "jidomem"), "mcp", "--root", str(tmp_path / "root"), "--project", "p"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        yield running
        running.stdin.close()
        assert running.wait(60) == 0


def answer_to(process, line):
    """The answer to *line*."""
    process.stdin.write(line)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def peak_memory(process):
    """The peak memory of a process, in bytes."""
    (line,) = [each for each in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in each]
    return int(line.split()[1]) * 1024


def test_a_malformed_line_is_answered_and_the_next_message_too(process):
    for line, code in (
        (b"no JSON\n", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method"\n', -32700),
        (b"\xff\xfe\x00\n", -32700),
        (b"[]\n", -32600),
        (b'{"id": 1}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * LIMIT + b'"}\n', -32600),
    ):
        answer = answer_to(process, line)
        assert (answer["id"], answer["error"]["code"], answer["jsonrpc"]) == (None, code, "2.0"), line
    assert "more than 4,096 bytes" in answer["error"]["message"]

    assert answer_to(process, b"\n  \n" + PING)["id"] == 7
    line = PING[:-2] + b" " * (LIMIT - len(PING)) + b"}\n"
    assert len(line) == LIMIT
    assert answer_to(process, line)["id"] == 7


def test_an_endless_line_uses_no_memory(process):
    assert answer_to(process, PING)["id"] == 7
    before = peak_memory(process)

    for _ in range(64):
        process.stdin.write(b"x" * 1024 * 1024)
    answer = answer_to(process, b"\n")

    assert answer["error"]["code"] == -32600
    assert peak_memory(process) - before < 16 * 1024 * 1024
    assert answer_to(process, PING)["id"] == 7
