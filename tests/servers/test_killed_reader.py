"""A reader that copies the log of a shared root is killed at any step: the next read completes the copy."""

import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

from conftest import intent
from test_killed_redactor import open_machine

from jidomem.journal.journal import Stream

READER = Path(__file__).parent / "killed_reader.py"


def facts(memory):
    return sorted(row["summary"] for row in memory.ask("facts"))


def test_a_copy_that_was_cut_short_is_completed_by_the_next_read(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    with open_machine(source, "here") as here, open_machine(source, "there") as there:
        here.writer.submit_intent("p", intent(summary="the door is blue"))
        assert facts(there) == ["the door is blue"]
        for colour in ("red", "green"):
            here.writer.submit_intent("p", intent(summary=f"the door is {colour}"))
        expected = facts(here)
    reader = subprocess.Popen([sys.executable, str(READER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    copied = set()
    for number in count(1):
        folder = tmp_path / str(number)
        shutil.copytree(source, folder)
        reader.stdin.write(f"{folder / 'there'} {folder / 'log'} {number}\n")
        reader.stdin.flush()
        outcome = reader.stdout.readline().strip()
        if outcome != "killed":
            break
        copied.add(len([*(folder / "there" / "projects").rglob("*.ttl")]))
        with open_machine(folder, "there") as there:
            assert facts(there) == expected
            assert there.journal.verify(Stream("p")) == ()
    reader.communicate()

    assert outcome == "done"
    assert copied == {1, 2, 3}
