"""Who redacts may be killed at any moment: another machine's next look finds nothing begun, or finishes it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import intent
from file_log import FileLog

from jidomem.base.clock import Sources
from jidomem.check.journal_integrity import findings
from jidomem.extras.servers.shared_vectors import Listed
from jidomem.journal.journal import Stream
from jidomem.runtime.location import SharedLocation
from jidomem.runtime.root import Jidomem
from jidomem.runtime.settings import Settings

REDACTOR = Path(__file__).parent / "killed_redactor.py"
MEMORY = Stream("p")
SECRET = "hunter2-hunter2"
#: What stands for vectors and a checkpoint that were made of the secret.
MADE = ("vectors/p/memory/m/f", "checkpoints/newest.json")
#: More than anybody writes to the log who redacts.
MOST = 30


def opened(folder, name):
    """Open the root whose log is in *folder* as that machine does."""
    home = folder / name
    home.mkdir(exist_ok=True)
    place = SharedLocation(FileLog(str(folder / "log")), "s3://as/if", home)
    return Jidomem(Settings(home, "p", "here"), Sources(), 10.0, None, place)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A root with a secret, known to two machines, with vectors and a checkpoint; and the memory that says it."""
    folder = tmp_path_factory.mktemp("first")
    here, there = opened(folder, "here"), opened(folder, "there")
    item = here.writer.submit_intent("p", intent(summary=f"the door code is {SECRET}")).iri
    here.writer.submit_intent("p", intent(summary="the door is blue"))
    there.catch_up("p")
    for name, data in (("vectors/p/memory/m/list.json", Listed().data), *((name, b"") for name in MADE)):
        here.place.log.put(name, data)
    here.close()
    there.close()
    return folder, item


def shown(memory):
    """What of this machine, and of the log, still has the secret."""
    log, home = memory.place.log, memory.settings.root
    asked = memory.reader.select("p", "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }")
    return {
        "index": any(SECRET in str(row["s"]) for row in asked),
        "recall": any(SECRET in str(entry) for entry in memory.recall("door code").entries),
        "copy": any(SECRET.encode() in path.read_bytes() for path in (home / "projects").rglob("*.ttl")),
        "log": any(SECRET.encode() in entry.document for entry in log.read(MEMORY)),
        "made of it": any(log.get(name) for name in MADE),
    }


def test_wherever_a_redaction_is_cut_short_the_next_look_of_another_machine_ends_it(first, tmp_path):
    source, item = first
    redactor = subprocess.Popen(
        [sys.executable, str(REDACTOR)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    met = []
    for writes in range(1, MOST):
        folder = tmp_path / str(writes)
        shutil.copytree(source, folder)
        with opened(folder, "there") as there:
            assert all(shown(there).values())

            redactor.stdin.write(f"{folder / 'here'} {folder / 'log'} {item} {writes}\n")
            redactor.stdin.flush()
            said = redactor.stdout.readline().strip()

            found = shown(there)
            assert set(found.values()) in ({True}, {False}), (writes, found)
            assert findings(there.journal, MEMORY) == []
            assert there.place.log.names("redacting/") == []
        met.append((said, any(found.values())))
        if said != "killed":
            break
    redactor.communicate()

    assert met[-1] == ("done", False)
    assert ("killed", False) in met
