"""One SQLite file with the vectors of pieces of text, each under the digest of its text, as one model made them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from jidomem.index.kept_file import KeptFile, several
from jidomem.index.kept_files import KeptFiles

#: Where the vectors are, below the root.
FOLDER = Path("cache", "vectors")


class VectorFile(KeptFile):
    """The file at *path*.

    A vector is written as a number of 8 bits for each of its own, the largest of them as 127.
    """

    FORM = 1
    TABLES = """
CREATE TABLE said (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE vector (number INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE, value BLOB);
"""

    def __init__(self, path: str, wait: float, here: int = 0) -> None:
        super().__init__(path, wait, here)
        self._store.execute("PRAGMA secure_delete=ON")

    @property
    def reached(self) -> tuple[str, int]:
        """Return the identity of the text file that was followed, and the id of the last piece of it that was seen."""
        identity, last = self.said("reached") or ("", 0)
        return str(identity), int(last)

    def numbers(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Return the number of the vector of each of *digests* of which there is one.

        It is higher than that of any that was there before.
        """
        found: dict[bytes, int] = {}
        for step in several(digests):
            ask = f"SELECT digest, number FROM vector WHERE digest IN ({', '.join('?' * len(step))})"
            found.update(self._store.execute(ask, step))
        return found

    def known(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return which of *digests* need no vector made."""
        return {*self.numbers(digests)}

    def keep(self, digests: Sequence[bytes], made: Mapping[bytes, bytes]) -> None:
        """Keep the vectors that were *made*, in the order of *digests*, while the turn to write is held."""
        self.put((digest, made[digest]) for digest in digests if digest in made)

    def put(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep vectors, each under the digest of its text, while the turn to write is held."""
        self._store.executemany("INSERT OR IGNORE INTO vector (digest, value) VALUES (?, ?)", vectors)

    def after(self, number: int, limit: int) -> list[tuple[int, bytes, bytes]]:
        """Return the next *limit* vectors after the one of that number: number, digest and value."""
        ask = "SELECT number, digest, value FROM vector WHERE number > ? ORDER BY number LIMIT ?"
        return self._store.execute(ask, (number, limit)).fetchall()

    def digests(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the digest of each of *numbers* that is not gone."""
        ask = "SELECT number, digest FROM vector WHERE number IN (SELECT value FROM json_each(?))"
        return dict(self._store.execute(ask, (json.dumps(numbers),)))

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget vectors, while the turn to write is held."""
        self._store.executemany("DELETE FROM vector WHERE number = ?", ((number,) for number in numbers))
        self.note(swept=(self.said("swept") or 0) + 1)

    def write_out(self) -> None:
        """Leave nothing of what was removed in what is beside the file, as far as nobody reads it now."""
        self._store.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def count(self) -> int:
        """Return how many vectors there are."""
        return int(self._store.execute("SELECT COUNT(*) FROM vector").fetchone()[0])


def forget(root: Path, project: str = "") -> None:
    """Throw away the vectors below *root*, those of one *project* where it is named; raises Failed where some stay."""
    KeptFiles(root / FOLDER, "vectors", VectorFile).forget_all(f"{project}." if project else "")
