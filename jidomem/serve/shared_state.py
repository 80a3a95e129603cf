"""The state that the workers of a server share: memory, places, and the messages, results and reports of its pages.

A server of one process has the same parts in its own memory. `FileVerifier` verifies the journal while the server runs.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import secrets
import struct
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import monotonic, sleep

from jidomem.base.background import PeriodicTask
from jidomem.base.clock import now
from jidomem.base.containers import BoundedDict
from jidomem.errors import JidomemError, JournalDamaged
from jidomem.journal.commit import is_pack
from jidomem.journal.journal import LOOSE, FileJournal, Stream
from jidomem.runtime.state import State
from jidomem.runtime.worker_pool import BoundedMapping, Value

MOST_WORKERS = 256
#: The bytes of the figures of each worker.
FIGURES = 512 * 1024
#: The secret key of the server, the flag that callers need a token, the start by the monotonic clock and by that of the
#: day; flag, process and connections of each worker.
_KEY, _NEEDS_TOKEN, _BEGAN, _CROWDED, _PIDS, _OPEN, _HEAD = 0, 32, 64, 1024, 2048, 3072, 4096
#: The first byte of each kind of lock; the locked bytes are beyond the end of the file.
_CONNECTIONS, _FEEDS, _QUERIES, _CHECKS, _LOG = (number << 40 for number in range(1, 6))
#: Seconds between two attempts to get a place.
_PAUSE = 0.02


class SharedPlaces:
    """A semaphore of all workers: a place is a lock on one byte of a file that they all have open.

    The kernel releases the places of a worker that dies.
    """

    def __init__(self, descriptor: int, first: int, count: int) -> None:
        """Use *count* bytes from *first* on; the file must stay open, as closing it releases all places."""
        self._descriptor, self._first, self._count = descriptor, first, count
        self._lock, self._own = Lock(), set[int]()
        self._next = os.getpid() % count

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Return whether a place was reserved, at once or within *timeout* seconds."""
        end = None if timeout is None else monotonic() + timeout
        while not self._take():
            if not blocking or (end is not None and monotonic() >= end):
                return False
            sleep(_PAUSE)
        return True

    def release(self) -> None:
        """Release a place."""
        with self._lock:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, self._first + self._own.pop())

    def _take(self) -> bool:
        with self._lock:
            for step in range(self._count):
                place = (self._next + step) % self._count
                if place not in self._own and self._lock_place(place):
                    self._own.add(place)
                    self._next = place + 1
                    return True
        return False

    def _lock_place(self, place: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._first + place)
        except OSError:
            return False
        return True


_TABLES = """
CREATE TABLE IF NOT EXISTS shared (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,
  text TEXT NOT NULL, data BLOB NOT NULL, UNIQUE (kind, name));
"""
_TRIM = (
    "DELETE FROM shared WHERE number IN"
    " (SELECT number FROM shared WHERE kind = ? ORDER BY number DESC LIMIT -1 OFFSET ?)"
)


class SharedValues:
    """The latest values of one kind, in a file of the workers; a fault of the disk loses values, and stops nothing."""

    def __init__(self, state: State, kind: str, limit: int) -> None:
        self._state, self._kind, self._limit = state, kind, limit

    def get(self, name: str, /) -> Value | None:
        """Return the value of *name*, None if it is not stored."""
        with suppress(JidomemError), self._state.reading() as store:
            if store is not None:
                row = store.execute("SELECT text, data FROM shared WHERE kind = ? AND name = ?", (self._kind, name))
                value: Value | None = row.fetchone()
                return value
        return None

    def __setitem__(self, name: str, value: Value, /) -> None:
        """Store a value, which becomes the newest."""
        with suppress(JidomemError), self._state.changing() as store:
            store.execute("DELETE FROM shared WHERE kind = ? AND name = ?", (self._kind, name))
            columns = "INSERT INTO shared (kind, name, text, data) VALUES (?, ?, ?, ?)"
            store.execute(columns, (self._kind, name, *value))
            store.execute(_TRIM, (self._kind, self._limit))


class SharedState:
    """The state of all workers of a server, as worker *number* of *workers* sees it, counted from 1.

    *descriptor* is an open file in memory, *folder* a private folder. The supervisor has the number 0.
    """

    def __init__(self, descriptor: int, folder: Path, number: int, workers: int) -> None:
        self.descriptor, self.folder, self.number, self.workers = descriptor, folder, number, workers
        self._memory = memoryview(mmap.mmap(descriptor, _HEAD + workers * FIGURES))
        #: Not 0 once a worker knew of a token: callers then need one, also in a worker that starts later.
        self.needs_token = self._memory[_NEEDS_TOKEN : _NEEDS_TOKEN + 1]
        self._crowded = self._memory[_CROWDED : _CROWDED + workers]
        self._pids = self._memory[_PIDS : _PIDS + 4 * workers].cast("i")
        self._open = self._memory[_OPEN : _OPEN + 4 * workers].cast("i")
        self._state = State(folder, _TABLES)

    @classmethod
    def create(cls, folder: Path, workers: int) -> SharedState:
        """Return the state of a new server with that many *workers*, for its supervisor."""
        descriptor = os.memfd_create("jidomem-workers")
        os.ftruncate(descriptor, _HEAD + workers * FIGURES)
        os.pwrite(descriptor, secrets.token_bytes(_NEEDS_TOKEN), _KEY)
        os.pwrite(descriptor, struct.pack("dd", monotonic(), now().timestamp()), _BEGAN)
        return cls(descriptor, folder, 0, workers)

    @property
    def key(self) -> bytes:
        """Return the secret key of the server."""
        return bytes(self._memory[_KEY:_NEEDS_TOKEN])

    @property
    def began(self) -> float:
        """Return the start of the server, by the monotonic clock, which all processes share."""
        return float(self._memory[_BEGAN : _BEGAN + 8].cast("d")[0])

    @property
    def since(self) -> datetime:
        """Return the moment of the start of the server."""
        return datetime.fromtimestamp(self._memory[_BEGAN + 8 : _BEGAN + 16].cast("d")[0], UTC)

    def figures(self, number: int) -> memoryview:
        """Return the memory with the figures of a worker."""
        return self._memory[_HEAD + (number - 1) * FIGURES : _HEAD + number * FIGURES]

    def set_pid(self, number: int, pid: int) -> None:
        """Set the process that is worker *number* now; 0 if there is none."""
        self._pids[number - 1] = pid
        self._crowded[number - 1] = self._open[number - 1] = 0

    def pids(self) -> dict[int, int]:
        """Return the process of each worker that is ready, by number."""
        return {number: pid for number, pid in enumerate(self._pids, start=1) if pid}

    def set_connections(self, count: int) -> None:
        """Set the number of open connections of this worker."""
        self._open[self.number - 1] = count

    def excess(self) -> int:
        """Return how many more connections this worker has than the one with the fewest."""
        return self._open[self.number - 1] - min((self._open[number - 1] for number in self.pids()), default=0)

    def set_crowded(self, *, is_crowded: bool) -> None:
        """Set whether a connection waits in this worker for a place."""
        self._crowded[self.number - 1] = is_crowded

    def is_crowded(self) -> bool:
        """Return whether a connection waits for a place in any worker."""
        return any(self._crowded)

    def connections(self, limit: int) -> SharedPlaces:
        """Return the places of connections."""
        return SharedPlaces(self.descriptor, _CONNECTIONS, limit)

    def feeds(self, limit: int) -> SharedPlaces:
        """Return the places of requests that wait for new commits."""
        return SharedPlaces(self.descriptor, _FEEDS, limit)

    def queries(self, limit: int) -> SharedPlaces:
        """Return the places of ad hoc queries."""
        return SharedPlaces(self.descriptor, _QUERIES, limit)

    def check(self) -> SharedPlaces:
        """Return the place of the one check that may run."""
        return SharedPlaces(self.descriptor, _CHECKS, 1)

    @contextmanager
    def log_lock(self) -> Iterator[None]:
        """Acquire the lock of the log, so that no worker writes between two parts of a line."""
        fcntl.lockf(self.descriptor, fcntl.LOCK_EX, 1, _LOG)
        try:
            yield
        finally:
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, _LOG)

    def values(self, kind: str, limit: int) -> SharedValues:
        """Return the latest values of a *kind*."""
        return SharedValues(self._state, kind, limit)

    def form_lock(self, name: str) -> AbstractContextManager[bool]:
        """Acquire the lock of the form posts of that *name*."""
        return self._state.lock("form", name, wait=True)

    def close(self) -> None:
        """Close the file of the values; places and figures stay."""
        self._state.close()


#: The most messages, and the most form posts, that are stored; and the errors of a post that was done before.
MOST_FLASH_MESSAGES = MOST_FORM_POSTS = 1_000
_DONE_ALREADY = (400, 404, 409)


class FlashMessages:
    """The messages about the latest form posts of one server, shown by the page after the redirect.

    A message has a name that cannot be guessed, and only the page at its path shows it.
    """

    def __init__(self, shared: SharedState | None = None) -> None:
        """Store messages in the memory of this process, or in *shared*."""
        self._messages: BoundedMapping = BoundedDict[str, Value](MOST_FLASH_MESSAGES)
        self._key, self._lock = secrets.token_bytes(32), Lock()
        if shared is not None:
            self._messages, self._key = shared.values("flash message", MOST_FLASH_MESSAGES), shared.key

    def store(self, path: str, message: Mapping[str, str]) -> str:
        """Return the name of a *message* for the page at *path*; an equal message has the same name."""
        name = blake2b(repr((path, *message.items())).encode(), key=self._key, digest_size=8).hexdigest()
        with self._lock:
            self._messages[name] = (path, json.dumps({**message}).encode())
        return name

    def message(self, path: str, name: str) -> Mapping[str, str]:
        """Return the message *name* for the page at *path*; empty if it is unknown or no longer stored."""
        place, data = self._messages.get(name) or ("", b"")
        message: Mapping[str, str] = json.loads(data) if data and place == path else {}
        return message


class FormDeduplicator:
    """The latest form posts of one server: a post that arrives twice is done once."""

    def __init__(self, shared: SharedState | None = None) -> None:
        """Store the results of posts in the memory of this process, or in *shared*."""
        self._lock = Lock()
        self._locks = BoundedDict[str, Lock](MOST_FORM_POSTS)
        self._results: BoundedMapping = BoundedDict[str, Value](MOST_FORM_POSTS)
        self._lock_of: Callable[[str], AbstractContextManager[bool]] = self._own_lock
        if shared is not None:
            self._results, self._lock_of = shared.values("form post", MOST_FORM_POSTS), shared.form_lock

    def once(self, key: Hashable, do: Callable[[], str]) -> str:
        """Return the result of *do*; if *do* is refused and the post *key* was done before, the earlier result.

        A second post of the same key waits for the first. Raises the error of *do* if there is no earlier result.
        """
        name = blake2b(repr(key).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        with self._lock_of(name):
            try:
                result = do()
            except JidomemError as error:
                earlier = self._results.get(name)
                if earlier is None or error.http_status not in _DONE_ALREADY:
                    raise
                return earlier[0]
            self._results[name] = (result, b"")
            return result

    def _own_lock(self, name: str) -> AbstractContextManager[bool]:
        with self._lock:
            lock = self._locks[name] = self._locks.get(name) or Lock()
        return lock


#: The most damaged files that a worker reports to the others.
MOST_REPORTS = 100
#: The steps in which a journal is read again, and the seconds that the end of a server waits for the present one.
STEPS, _CLOSING = 144, 2.0


class FileVerifier:
    """Reads each file of a *journal* again within so many *seconds*, in small steps; never if that is None.

    Each step also asks a shared log for missing entries. *on_damage* is called with a stream in which damage was found,
    and the journal knows it from then on. What one worker of a server reports, the others, which have the same
    *shared* state, read at their next call of `follow`.
    """

    def __init__(
        self,
        journal: FileJournal,
        seconds: float | None,
        on_damage: Callable[[Stream], object],
        shared: SharedState | None = None,
    ) -> None:
        self._journal, self._on_damage, self._shared = journal, on_damage, shared
        self._reports: BoundedMapping | None = None if shared is None else shared.values("damaged", shared.workers)
        self._reported: list[tuple[str, str, str, int]] = []
        self._followed: dict[int, object] = {}
        self._streams: list[Stream] = []  # those that this round has still to read
        self._after, self._count = "", 1
        self._task = PeriodicTask(None if seconds is None else seconds / STEPS, self.step, "jidomem-reread")

    def step(self) -> None:
        """Read the next part of the journal."""
        with suppress(JidomemError, OSError):  # as while a store is away: the next step tries again
            for stream in self._journal.find_gaps():
                self._on_damage(stream)
            if not self._streams:
                self._streams = self._journal.streams()
                total = sum(self._journal.head(stream).position for stream in self._streams)
                self._after, self._count = "", total // STEPS + 1
            left = self._count
            while left > 0 and self._streams:
                stream = self._streams[0]
                stems, is_damaged = self._journal.reread(stream, self._after, left)
                if is_damaged:
                    self._on_damage(stream)
                if len(stems) < left:
                    self._streams, stems = self._streams[1:], [*stems, ""]
                self._after, left = stems[-1], left - len(stems)

    def report(self, project: str, damage: Iterable[JournalDamaged]) -> None:
        """Let the other workers read the damaged files of *project*."""
        if self._shared is not None and self._reports is not None:
            files = (each.path.split("/")[-2:] for each in damage)
            parts = [(project, name, *_place(file)) for name, file in files]
            self._reported = [*self._reported, *parts][-MOST_REPORTS:]
            self._reports[str(self._shared.number)] = json.dumps(self._reported), b""

    def follow(self) -> None:
        """Read what other workers have reported since the last call."""
        if self._shared is None or self._reports is None:
            return
        for number in {*range(1, self._shared.workers + 1)} - {self._shared.number}:
            value = self._reports.get(str(number))
            parts = [] if value is None else json.loads(value[0])
            is_new, self._followed[number] = parts != self._followed.get(number), parts
            for project, name, after, count in parts if is_new else ():
                with suppress(JidomemError, OSError):
                    self._journal.reread(Stream(project, name), after, count)

    def close(self) -> None:
        """Read no more; waits for the present step, but not for long."""
        self._task.stop(_CLOSING)


def _place(file: str) -> tuple[str, int]:
    """Return the moment before the commits of a file, and the most commits in it."""
    return file.removeprefix("pack-").partition("-")[0], LOOSE if is_pack(file) else 1
