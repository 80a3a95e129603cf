"""Which agents' tiers are open at a root: one MemoryOS for each."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

from jidomem.errors import InvalidRequest
from jidomem.keeping import Keeping
from jidomem.runtime.memoryos.memory_os import MemoryOS

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem


class MemoryOSes:
    """The open tiers of a root, each by its project and agent."""

    def __init__(self, memory: Jidomem, state: Keeping) -> None:
        self._memory, self._state = memory, state
        self._open: dict[tuple[str, str], MemoryOS] = {}
        self._lock = RLock()

    def open(self, project: str, agent: str, **options: Any) -> MemoryOS:
        """Return the tiers of an agent: until they are closed, the same ones.

        Raises InvalidRequest where *options* are given for some that are open.
        """
        with self._lock:
            place = (project, agent)
            if place in self._open and options:
                hint = "leave the options out, or close it first"
                raise InvalidRequest(f"the tiers of {agent!r} are open already", hint=hint)
            if place not in self._open:
                made = MemoryOS(self._memory, self._state, project, agent, **options)
                made._forget = lambda: self._closed(place, made)
                self._open[place] = made
            return self._open[place]

    def close(self) -> None:
        """Close all of them; the jobs that are being done are waited for together."""
        opened = [*self._open.values()]
        for each in opened:
            each.end()
        for each in opened:
            each.close()

    def _closed(self, place: tuple[str, str], closed: MemoryOS) -> None:
        with self._lock:
            if self._open.get(place) is closed:
                del self._open[place]
