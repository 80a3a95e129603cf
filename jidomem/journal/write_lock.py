"""The lock of git's index: while it is there git may be changing the files of a journal, as a checkout does.

What was seen of a stream's folder, and when: the cache that saves a listing.

Whoever cloned a root must not believe what its author put there. So a sight names the `place` it was made in, which no
clone can choose (`disk.place`): it is the key of the checksum, and of the sum of the names.

Turns: one thread of one process at a time, by a kernel lock that goes with whoever holds it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from heapq import nlargest
from pathlib import Path
from time import monotonic, sleep, time

from jidomem.journal import disk
from jidomem.journal.commit import is_pack
from jidomem.journal.disk import busy, make_folders, writing
from jidomem.records.intent import CommitRef, Version

#: So many seconds after it was made a lock is waited for: `git commit` keeps one while a message is written.
YOUNG = 5.0
_PAUSE = 0.01
#: The longest file that may say where a repository is.
_LONGEST_WAIT = 4096


class GitLock:
    """The lock of the index of the repository that a folder lies in; without a repository there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wait(self, seconds: float) -> None:
        """Return once git is done, or its lock is no longer young, or after so many *seconds*."""
        until = monotonic() + seconds
        while self._is_young() and monotonic() < until:
            sleep(_PAUSE)

    def _is_young(self) -> bool:
        if self._path is None:
            return False
        made = disk.mtime(self._path)
        return made is not None and time() - made / 1e9 < YOUNG

    @cached_property
    def _path(self) -> str | None:
        for folder in (self._folder, *self._folder.parents):
            found = f"{folder}/.git"
            if disk.exists(f"{found}/HEAD"):
                return f"{found}/index.lock"
            with suppress(OSError, UnicodeDecodeError):  # a worktree, or a submodule
                leads = disk.read(found, _LONGEST_WAIT).decode()
                if leads.startswith("gitdir: "):
                    return str(Path(folder, leads.removeprefix("gitdir: ").strip(), "index.lock"))
        return None


#: A folder's modification time is certain to have moved with every change more than this after it, in nanoseconds.
SETTLE = 50_000_000
#: The same of one that says whole seconds, as a file system does that keeps no less of it, or only every other second.
_COARSE = 2_100_000_000


#: The longest line of a lock file that is read: some thousand heads.
_LONGEST = 1 << 20
#: Sums of names are modulo this.
_WHOLE = 1 << 64


@dataclass(frozen=True, slots=True)
class FolderSnapshot:
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

    def is_of_names(self, other: FolderSnapshot) -> bool:
        """Return whether this and another were made of the same names."""
        return (self.count, self.sum, self.place) == (other.count, other.sum, other.place)

    def newer(self, names: set[str], total: int) -> list[str] | None:
        """Return which of *names*, with the sum *total*, came since, where all others are exactly those seen here."""
        more = len(names) - self.count
        if more < 0:
            return None
        newest = nlargest(more, (name for name in names if not is_pack(name)))
        return newest if self.sum == (total - self.sum_of(newest)) % _WHOLE else None

    def changed(self, mtime: int, since: int, came: Sequence[str], gone: Sequence[str]) -> FolderSnapshot:
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
    def load(cls, path: str, place: str) -> FolderSnapshot | None:
        """Return the sight kept in a lock file; None where there is none made in *place*, or it is being written."""
        try:
            checksum, _, text = disk.read_part(path, 0, _LONGEST).partition(b"\n")[0].partition(b" ")
        except OSError:
            return None
        if not place or checksum != _checksum(text, place):
            return None
        mtime, since, count, total, loose, heads = json.loads(text)
        return cls(mtime, since, count, total, loose, Version.of([CommitRef(*head) for head in heads]), place)


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
NOTHING = FolderSnapshot(-1, 0, 0, 0, 0, Version())


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


@dataclass(slots=True)
class StreamLock:
    """Who in this process holds a turn, and the descriptor of the locked file."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    holder: int | None = None
    descriptor: int = -1

    @contextmanager
    def taken(self, folder: str, path: str, seconds: float) -> Iterator[None]:
        """Hold the turn, in this process and by the lock of the file *path* in *folder*.

        Raise Busy where it is not free in so many *seconds*, Failed where the folder cannot be written.
        """
        deadline = monotonic() + seconds
        if not self.lock.acquire(timeout=seconds):
            raise busy(path, seconds)
        try:
            self.descriptor = locked(folder, path, deadline, seconds)
            try:
                self.holder = threading.get_ident()
                yield
            finally:
                self.holder = None
                with suppress(OSError):  # what the lock file says is a cache
                    disk.close(self.descriptor)
        finally:
            self.lock.release()

    @property
    def is_mine(self) -> bool:
        """Return whether this thread holds it."""
        return self.holder == threading.get_ident()


def locked(folder: str, path: str, deadline: float, seconds: float) -> int:
    """Return the descriptor of a locked file of a folder; raise Busy, after *seconds*, where it is not free in time."""
    pause = 0.0002
    while True:
        with writing(folder):
            make_folders(folder)
            descriptor = disk.open_shared(path)
            try:
                if disk.lock(descriptor):
                    return descriptor
            except OSError:  # a file system without locks
                disk.close(descriptor)
                raise
            disk.close(descriptor)
        if monotonic() > deadline:
            raise busy(path, seconds)
        sleep(pause)
        pause = min(2 * pause, 0.005)
