"""Deliberately faulty memory systems: each scenario of the governance benchmark must detect one of them."""

import json
import os
import time
from array import array
from pathlib import Path

from bench.governance.system import Entry, Origin, Refused, StoredFact, System
from bench.governance.vectors import vector


class Careless(System):
    """One file, read and rewritten as a whole: without comparison, withdrawal, dates, authors or erasure."""

    name = "careless"

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.path = folder / "memory.json"
        self.vectors = None

    def _rows(self):
        return json.loads(self.path.read_text()) if self.path.exists() else []

    def _write(self, rows):
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(rows))
        temporary.replace(self.path)

    def store(self, fact):
        rows = self._rows()
        time.sleep(0.005)  # another process may write here
        self._write([*rows, [fact.text, True]])
        if self.vectors is not None:
            with self.vectors.open("ab") as file:
                file.write(self.written(vector(fact.text)))
        return StoredFact(str(len(rows)))

    def replace(self, old, fact):
        return self.store(fact)

    def active_entries(self):
        return [Entry(str(n), text) for n, (text, is_active) in enumerate(self._rows()) if is_active]

    def embed(self):
        self.vectors = self.folder / "vectors"

    @staticmethod
    def written(vector):
        return array("f", vector).tobytes()

    def as_of(self, moment):
        return self.active_entries()

    def undo_to(self, moment):
        pass

    def origin_of(self, entry):
        return Origin(agent="somebody")

    def replaced_text(self, entry):
        return None

    def end_reason(self, entry):
        raise KeyError(entry)

    def disagreements(self):
        return []

    def require_expiration(self):
        pass

    def entries_of_changed_files(self):
        return []

    def erase(self, text):
        self._write([[stored_text, is_active and text not in stored_text] for stored_text, is_active in self._rows()])


class Failing(Careless):
    """Cannot be written to."""

    name = "failing"

    def store(self, fact):
        raise OSError("no space is left")


class Alarmist(Careless):
    """Refuses each fact about a known subject."""

    name = "alarmist"

    def store(self, fact):
        thing = set(fact.topic.split()) - {"size", "of", "the"}
        if any(thing & set(entry.text.casefold().split()) for entry in self.active_entries()):
            raise Refused(fact.text)
        return super().store(fact)


class Scrambling(Careless):
    """Writes vectors in a form that the search of files does not recognise."""

    name = "scrambling"

    @staticmethod
    def written(vector):
        return bytes(255 - each for each in array("f", vector).tobytes())


class Locked(Careless):
    """Leaves a lock that is never removed if its process is killed."""

    name = "locked"

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.lock = folder / f"{os.getpid()}.lock"
        self.lock.touch()

    def close(self):
        self.lock.unlink()

    def active_entries(self):
        for lock in self.folder.glob("*.lock"):
            os.kill(int(lock.stem), 0)  # raises, where that process is gone
        return super().active_entries()
