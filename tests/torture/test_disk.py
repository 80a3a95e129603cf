"""A full or read-only disk: writes are refused with the reason, nothing is stored in part, and reads work."""

import os
import subprocess
from contextlib import suppress

import pytest
from conftest import files, intent

import jidomem
from jidomem import JidomemError
from jidomem.journal.journal import Stream

STREAM = Stream("p")


def submit(memory, number):
    return memory.writer.submit_intent("p", intent(summary=f"finding {number} " + "x" * 20_000)).iri


def submit_until_full(memory):
    """Return the memories acknowledged before the disk was full, and the refusal."""
    acknowledged = []
    while len(acknowledged) < 1_000:
        try:
            acknowledged.append(submit(memory, len(acknowledged)))
        except JidomemError as refusal:
            return acknowledged, refusal
    raise AssertionError("the disk never filled up")


def fill(folder):
    """Take the last byte of a disk."""
    with open(folder / "rest", "wb", buffering=0) as rest, suppress(OSError):
        while rest.write(bytes(512)):
            pass


def test_a_full_disk_refuses_writes_and_keeps_acknowledged_memories(small_disk):  # C075 C077
    (small_disk / "ballast").write_bytes(bytes(300_000))
    with jidomem.open(small_disk / "root") as memory:
        acknowledged, refusal = submit_until_full(memory)
        assert (refusal.code, refusal.exit_code) == ("write_failed", 1)
        assert "free some space" in refusal.hint
        assert len(acknowledged) > 10
        for _ in range(3):  # again and again: nothing is half written
            with pytest.raises(JidomemError, match="nothing was stored"):
                submit(memory, 5_000)
        assert {row["fact"] for row in memory.reader.list_facts_with_confidence("p")} == set(acknowledged)

        (small_disk / "ballast").unlink()
        acknowledged.append(submit(memory, 6_000))
    with jidomem.open(small_disk / "root") as reopened:
        assert {row["fact"] for row in reopened.reader.list_facts_with_confidence("p")} == set(acknowledged)
        assert reopened.journal.verify(STREAM) == ()


def test_a_root_on_a_full_disk_is_readable(small_disk):
    with jidomem.open(small_disk / "root") as memory:
        acknowledged, _ = submit_until_full(memory)
    fill(small_disk)

    with jidomem.open(small_disk / "root") as reader:
        assert {row["fact"] for row in reader.reader.list_facts_with_confidence("p")} == set(acknowledged)


def test_a_root_on_a_read_only_disk_is_readable_and_refuses_writes(small_disk):
    with jidomem.open(small_disk / "root") as memory:
        memory.writer.submit_intent("p", intent())
    before = files(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert os.statvfs(small_disk).f_flag & os.ST_RDONLY

    with jidomem.open(small_disk / "root") as memory:
        with pytest.raises(JidomemError) as refusal:
            memory.writer.submit_intent("p", intent(summary="another"))
        rows = memory.reader.list_facts_with_confidence("p")

    assert refusal.value.code == "write_failed"
    assert "remount that disk writable" in refusal.value.hint
    assert [row["summary"] for row in rows] == [intent()["summary"]]
    assert files(small_disk) == before
