"""A redaction killed at any step: another machine's next read finds it not started, or finishes it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import intent
from file_log import FileLog

from jidomem.base.clock import Sources
from jidomem.check.journal_integrity import journal_findings
from jidomem.extras.servers.shared_vectors import SegmentList
from jidomem.journal.journal import Stream
from jidomem.runtime.location import SharedLocation
from jidomem.runtime.root import Jidomem
from jidomem.runtime.settings import Settings

REDACTOR = Path(__file__).parent / "killed_redactor.py"
MEMORY = Stream("p")
SECRET = "hunter2-hunter2"
#: Files that stand for vectors and a checkpoint derived from the secret.
DERIVED = ("vectors/p/memory/m/f", "checkpoints/newest.json")
#: More than a redaction writes to the log.
MAX_WRITES = 30


def open_machine(folder, name):
    """Open the root whose log is in *folder* as the machine *name*."""
    home = folder / name
    home.mkdir(exist_ok=True)
    location = SharedLocation(FileLog(str(folder / "log")), "s3://as/if", home)
    return Jidomem(Settings(home, "p", "here"), Sources(), 10.0, None, location)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A root with a secret, known to two machines, with vectors and a checkpoint; and the memory with the secret."""
    folder = tmp_path_factory.mktemp("first")
    here, there = open_machine(folder, "here"), open_machine(folder, "there")
    item = here.writer.submit_intent("p", intent(summary=f"the door code is {SECRET}")).iri
    here.writer.submit_intent("p", intent(summary="the door is blue"))
    there.catch_up("p")
    for name, data in (("vectors/p/memory/m/list.json", SegmentList().data), *((name, b"") for name in DERIVED)):
        here.place.log.put(name, data)
    here.close()
    there.close()
    return folder, item


def exposures(memory):
    """The parts of this machine, and of the log, that still contain the secret."""
    log, home = memory.place.log, memory.settings.root
    summaries = memory.reader.select("p", "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }")
    return {
        "index": any(SECRET in str(row["s"]) for row in summaries),
        "recall": any(SECRET in str(entry) for entry in memory.recall("door code").entries),
        "copy": any(SECRET.encode() in path.read_bytes() for path in (home / "projects").rglob("*.ttl")),
        "log": any(SECRET.encode() in entry.document for entry in log.read(MEMORY)),
        "made of it": any(log.get(name) for name in DERIVED),
    }


def test_an_interrupted_redaction_is_finished_by_the_next_read_of_another_machine(first, tmp_path):
    source, item = first
    outcomes = []
    with subprocess.Popen(
        [sys.executable, str(REDACTOR)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as redactor:
        for writes in range(1, MAX_WRITES):
            folder = tmp_path / str(writes)
            shutil.copytree(source, folder)
            with open_machine(folder, "there") as there:
                assert all(exposures(there).values())

                redactor.stdin.write(f"{folder / 'here'} {folder / 'log'} {item} {writes}\n")
                redactor.stdin.flush()
                outcome = redactor.stdout.readline().strip()

                exposed = exposures(there)
                assert set(exposed.values()) in ({True}, {False}), (writes, exposed)
                assert journal_findings(there.journal, [MEMORY])[MEMORY] == []
                if there.place.log.names("redacting/"):  # put after a read in the background had carried all out
                    with open_machine(folder, "here") as here:
                        here.catch_up("p")
                assert there.place.log.names("redacting/") == []
            outcomes.append((outcome, any(exposed.values())))
            if outcome != "killed":
                break

    assert outcomes[-1] == ("done", False)
    assert ("killed", False) in outcomes
