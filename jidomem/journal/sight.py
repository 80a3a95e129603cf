"""What was seen of a stream's folder, and when: the cache that saves a listing.

Whoever cloned a root must not believe what its author put there. So a sight names the `place` it was made in, which no
clone can choose (`disk.place`): it is the key of the checksum, and of the sum of the names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import nlargest

from jidomem.journal import disk
from jidomem.journal.names import is_pack
from jidomem.version import Head, Version

#: A folder's modification time is certain to have moved with every change more than this after it, in nanoseconds.
SETTLE = 50_000_000
#: The same of one that says whole seconds, as a file system does that keeps no less of it, or only every other second.
_COARSE = 2_100_000_000


#: The longest line of a lock file that is read: some thousand heads.
_LONGEST = 1 << 20
#: Sums of names are modulo this.
_WHOLE = 1 << 64


@dataclass(frozen=True, slots=True)
class Sight:
    """A version as it was seen: the folder's time, how many names with which sum, and the heads.

    `since` is when it was last certain, 0 where an unchanged folder time alone makes it certain: a change in the same
    tick of the clock leaves the time as it is. A sight depends on the names alone, so whoever finds the same names
    may take its version over. The lock file keeps the newest one.
    """

    mtime: int
    since: int
    count: int
    sum: int
    loose: int  # how many of the names are no packs
    version: Version
    place: str = ""  # what tells the folder from its copies

    def holds_at(self, mtime: int | None, now: int) -> bool:
        """Return whether this may be believed at *now* of a folder with time *mtime*."""
        return self.mtime == mtime and (self.since == 0 or 0 <= now - self.since < SETTLE)

    def sum_of(self, names: Iterable[str]) -> int:
        """Return what *names* add to the sum: nobody can choose names of the same sum who does not know the place."""
        return _sum(names, self.place)

    def is_of_names(self, other: Sight) -> bool:
        """Return whether this and another were made of the same names."""
        return (self.count, self.sum, self.place) == (other.count, other.sum, other.place)

    def newer(self, names: set[str], total: int) -> list[str] | None:
        """Return which of *names*, with the sum *total*, came since, where all others are exactly those seen here."""
        more = len(names) - self.count
        if more < 0:
            return None
        newest = nlargest(more, (name for name in names if not is_pack(name)))
        return newest if self.sum == (total - self.sum_of(newest)) % _WHOLE else None

    def changed(self, mtime: int, since: int, came: Sequence[str], gone: Sequence[str]) -> Sight:
        """Return the sight after some files came and others, of the same commits, went."""
        count, total = len(came) - len(gone), (self.sum + self.sum_of(came) - self.sum_of(gone)) % _WHOLE
        loose = self.loose + count - sum(map(is_pack, came)) + sum(map(is_pack, gone))
        return replace(self, mtime=mtime, since=since, count=self.count + count, sum=total, loose=loose)

    def dump(self) -> bytes:
        """Return the sight as one line with a checksum; a longer one before it may leave its rest behind it."""
        heads = [(head.recorded_at, head.id, head.position) for head in self.version.heads]
        text = json.dumps([self.mtime, self.since, self.count, self.sum, self.loose, heads]).encode()
        return _checksum(text, self.place) + b" " + text + b"\n"

    @classmethod
    def load(cls, path: str, place: str) -> Sight | None:
        """Return the sight kept in a lock file; None where there is none made in *place*, or it is being written."""
        try:
            checksum, _, text = disk.read_part(path, 0, _LONGEST).partition(b"\n")[0].partition(b" ")
        except OSError:
            return None
        if not place or checksum != _checksum(text, place):
            return None
        mtime, since, count, total, loose, heads = json.loads(text)
        return cls(mtime, since, count, total, loose, Version.of(Head(*head) for head in heads), place)


class Marks:
    """The states of broken files, by name, or by `pack#stem` for a commit in one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._marks: dict[str, tuple[int, ...]] = {}

    def note(self, name: str, began: int) -> None:
        """Note the state of a file that was read from *began* on, where every later change is certain to show."""
        self._marks.pop(name, None)
        with suppress(OSError):
            mark = self._now(name)
            if is_settled(mark[-1], began):
                self._marks[name] = mark

    def drop(self, name: str) -> None:
        """Forget the state of a file: what failed may go well without a change of it."""
        self._marks.pop(name, None)

    def holds(self, name: str) -> bool:
        """Return whether a file is certain to be as it was noted."""
        mark = self._marks.get(name)
        with suppress(OSError):
            return mark is not None and mark == self._now(name)
        return False

    def _now(self, name: str) -> tuple[int, ...]:
        return disk.mark(f"{self._path}/{name.partition('#')[0]}")


#: What was seen of a folder that nobody looked at.
NOTHING = Sight(-1, 0, 0, 0, 0, Version())


def is_settled(mtime: int, now: int) -> bool:
    """Return whether a folder whose time is *mtime* at *now* will have another one after the next change."""
    return now - mtime >= (SETTLE if mtime % 1_000_000_000 else _COARSE)


def _checksum(text: bytes, place: str) -> bytes:
    return blake2b(text, digest_size=16, key=place.encode(), person=b"jidomem sight 3").hexdigest().encode()


def _sum(names: Iterable[str], place: str) -> int:
    keyed, total = blake2b(digest_size=8, key=place.encode()), 0
    for name in names:
        each = keyed.copy()
        each.update(name.encode(errors="surrogateescape"))
        total += int.from_bytes(each.digest(), "little")
    return total % _WHOLE
