"""A disk that fills up or may not be written: each refusal says so, nothing is half kept, and reading goes on."""

import os
import subprocess
from contextlib import suppress

import pytest
from conftest import files, intent

import jidomem
from jidomem import JidomemError
from jidomem.journal.journal import Stream

STREAM = Stream("p")


def submitted(memory, number):
    return memory.writer.submit_intent("p", intent(summary=f"finding {number} " + "x" * 20_000)).iri


def until_full(memory):
    """What was acknowledged before the disk was full, and the refusal."""
    kept = []
    while len(kept) < 1_000:
        try:
            kept.append(submitted(memory, len(kept)))
        except JidomemError as refusal:
            return kept, refusal
    raise AssertionError("the disk never filled up")


def fill(folder):
    """Take the last byte of a disk."""
    with open(folder / "rest", "wb", buffering=0) as rest, suppress(OSError):
        while rest.write(bytes(512)):
            pass


def test_a_full_disk_refuses_and_keeps_what_it_acknowledged(small_disk):  # C075 C077
    (small_disk / "ballast").write_bytes(bytes(300_000))
    with jidomem.open(small_disk / "root") as memory:
        kept, refusal = until_full(memory)
        assert (refusal.code, refusal.exit_code) == ("write_failed", 1)
        assert "free some space" in refusal.hint
        assert len(kept) > 10
        for _ in range(3):  # again and again: nothing is half written
            with pytest.raises(JidomemError, match="nothing was stored"):
                submitted(memory, 5_000)
        assert {row["fact"] for row in memory.reader.list_facts_with_confidence("p")} == set(kept)

        (small_disk / "ballast").unlink()
        kept.append(submitted(memory, 6_000))
    with jidomem.open(small_disk / "root") as again:
        assert {row["fact"] for row in again.reader.list_facts_with_confidence("p")} == set(kept)
        assert again.journal.verify(STREAM) == ()


def test_a_root_on_a_full_disk_can_still_be_read(small_disk):
    with jidomem.open(small_disk / "root") as memory:
        kept, _ = until_full(memory)
    fill(small_disk)

    with jidomem.open(small_disk / "root") as reader:
        assert {row["fact"] for row in reader.reader.list_facts_with_confidence("p")} == set(kept)


def test_a_root_that_may_not_be_written_can_be_read_and_refuses_writes(small_disk):
    with jidomem.open(small_disk / "root") as memory:
        memory.writer.submit_intent("p", intent())
    before = files(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert os.statvfs(small_disk).f_flag & os.ST_RDONLY

    with jidomem.open(small_disk / "root") as memory:
        with pytest.raises(JidomemError) as refused:
            memory.writer.submit_intent("p", intent(summary="another"))
        found = memory.reader.list_facts_with_confidence("p")

    assert refused.value.code == "write_failed"
    assert "remount that disk writable" in refused.value.hint
    assert [row["summary"] for row in found] == [intent()["summary"]]
    assert files(small_disk) == before
