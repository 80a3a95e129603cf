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
        other = self.path.with_suffix(f".{os.getpid()}")
        other.write_text(json.dumps(rows))
        other.replace(self.path)

    def keep(self, fact):
        rows = self._rows()
        time.sleep(0.005)  # another process may write here
        self._write([*rows, [fact.text, True]])
        if self.vectors is not None:
            with self.vectors.open("ab") as file:
                file.write(self.written(vector(fact.text)))
        return StoredFact(str(len(rows)))

    def replace(self, old, fact):
        return self.keep(fact)

    def in_force(self):
        return [Entry(str(n), text) for n, (text, shown) in enumerate(self._rows()) if shown]

    def embed(self):
        self.vectors = self.folder / "vectors"

    @staticmethod
    def written(vector):
        return array("f", vector).tobytes()

    def as_of(self, moment):
        return self.in_force()

    def undo_to(self, moment):
        pass

    def explain(self, entry):
        return Origin(who="somebody")

    def replaced(self, entry):
        return None

    def ended(self, entry):
        raise KeyError(entry)

    def disagreements(self):
        return []

    def expires(self):
        pass

    def changed(self):
        return []

    def erase(self, text):
        self._write([[held, shown and text not in held] for held, shown in self._rows()])


class Failing(Careless):
    """Cannot be written to."""

    name = "failing"

    def keep(self, fact):
        raise OSError("no space is left")


class Alarmist(Careless):
    """Refuses each fact about a known subject."""

    name = "alarmist"

    def keep(self, fact):
        thing = set(fact.topic.split()) - {"size", "of", "the"}
        if any(thing & set(entry.text.casefold().split()) for entry in self.in_force()):
            raise Refused(fact.text)
        return super().keep(fact)


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

    def in_force(self):
        for lock in self.folder.glob("*.lock"):
            os.kill(int(lock.stem), 0)  # raises, where that process is gone
        return super().in_force()
