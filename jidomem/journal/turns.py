"""Turns: one thread of one process at a time, by a kernel lock that goes with whoever holds it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic, sleep

from jidomem.journal import disk
from jidomem.journal.writing import busy, make_folders, writing


@dataclass(slots=True)
class Turn:
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
