"""How far the index of each project is behind its journal, told without waiting for it; and what brings it level."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from time import monotonic
from typing import Any

from jidomem.errors import JidomemError, NotFound
from jidomem.journal.files import NAMES, Stream
from jidomem.runtime.root import Jidomem
from jidomem.version import Version

#: For how many seconds it is believed whether a server is ready, and while somebody looks whether it still is.
FRESH, LASTS = 1.0, 4.0


@dataclass(frozen=True, slots=True)
class Standing:
    """The versions of a project's memory in the journal and in the index, and `behind`, the commits in between.

    `behind` counts those of all four graphs that the index has not taken in.
    """

    project: str
    journal: Version
    index: Version
    behind: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"journal": str(self.journal), "index": str(self.index), "behind": self.behind}


def standing(memory: Jidomem, project: str) -> Standing:
    """Return how far the index is with *project*; nothing is taken in for it."""
    memory_of = Stream(project)
    behind = sum(_behind(memory, Stream(project, name)) for name in NAMES)
    journal = memory.journal.head(memory_of)
    return Standing(project, journal, memory.index.mark(memory_of.graph).version, behind)


def _behind(memory: Jidomem, stream: Stream) -> int:
    held, folder = memory.index.mark(stream.graph).version, memory.journal.seen(stream)
    try:
        return sum(1 for _ in folder.after(held))
    except NotFound:  # another branch was checked out: all of it is to be read
        return sum(1 for _ in folder.after(Version()))


class Readiness:
    """Whether a server is ready, as anybody may ask as often as they like: it is looked at once a second, by one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found = False
        self._at = -LASTS

    def look(self, is_ready: Callable[[], bool]) -> bool:
        """Return what *is_ready* says, or said less than a second ago; False while that takes longer than it may."""
        if monotonic() - self._at >= FRESH and self._lock.acquire(blocking=False):
            try:
                self._found = is_ready()
                self._at = monotonic()
            finally:
                self._lock.release()
        return self._found and monotonic() - self._at < LASTS


class Leveller:
    """Brings the index level in a thread of its own, one at a time, so that who wants to know need not wait for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: Thread | None = None

    def follow(self, memory: Jidomem) -> None:
        """Begin with what a shared root holds before anybody asks, and make checkpoints of it from now on."""
        if memory.place.is_shared:
            self.wait(memory, 0)
        memory.place.keep_checkpoints(lambda: [memory.catch_up(project) for project in memory.projects()])

    def wait(self, memory: Jidomem, seconds: float) -> None:
        """Return once the index is level with the journal, or after so many *seconds*."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=_level, args=(memory,), name="jidomem-level", daemon=True)
                self._thread.start()
            thread = self._thread
        thread.join(seconds)


def _level(memory: Jidomem) -> None:
    for project in memory.projects():
        with suppress(JidomemError, OSError, RuntimeError):  # then it stays behind, which is what is told
            memory.catch_up(project)
