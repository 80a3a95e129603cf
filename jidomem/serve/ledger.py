"""What a server counts of refusals and clients, put every few seconds where all servers of the root find it."""

from __future__ import annotations

from threading import Event, Lock, Thread
from typing import TypeVar

from jidomem.errors import JidomemError
from jidomem.moments import stamp
from jidomem.runtime.door_log import AskedAt, DoorLog, RefusedAt
from jidomem.serve.measures import Measures
from jidomem.serve.tallies import OTHERS, Client, Refusal

#: The doors there are.
HTTP, MCP_HTTP, MCP_STDIO = "HTTP", "MCP over HTTP", "MCP over standard input"
_SECONDS, _LAST = 5.0, 2.0
T = TypeVar("T")


class Ledger:
    """The counts of one server, at one *door*, on their way into the log of the root."""

    def __init__(self, log: DoorLog, door: str, measures: Measures) -> None:
        """Put what *measures* counts into *log*, from now on."""
        self.log, self._door, self._measures = log, door, measures
        self._lock, self._ends = Lock(), Event()
        self._refused: dict[Refusal, int] = {}
        self._others: dict[str, int] = {}
        self._asked: dict[Client, int] = {}
        self._thread = Thread(target=self._go_on, name="jidomem-ledger", daemon=True)
        self._thread.start()

    def keep(self) -> bool:
        """Put what was counted since into the log, and return whether that could be written."""
        with self._lock:
            with self._measures.lock:
                refused = dict(self._measures.told_apart.counts)
                others = dict(self._measures.told_apart.others)
                seen = {client: (visits.requests, stamp(visits.first), stamp(visits.last))
                        for client, visits in self._measures.clients.seen.items()}  # fmt: skip
            rows = [RefusedAt(*each, self._door, more) for each, more in _more(refused, self._refused)]
            rows += [RefusedAt("", "", OTHERS, code, self._door, more) for code, more in _more(others, self._others)]
            asked = {client: requests for client, (requests, _, _) in seen.items()}
            clients = [AskedAt(*each, self._door, *seen[each][1:], more) for each, more in _more(asked, self._asked)]
            if rows or clients:
                try:
                    self.log.add(rows, clients)
                except JidomemError:  # of a full disk, or one who writes for long: they are added the next time
                    return False
            self._refused, self._others, self._asked = refused, others, asked
            return True

    def close(self) -> None:
        """Put the last of it into the log; where a signal came in the middle of counting, that is lost."""
        self._ends.set()
        self._thread.join(_LAST)

    def _go_on(self) -> None:
        while not self._ends.wait(_SECONDS):
            self.keep()
        self.keep()


def _more(now: dict[T, int], before: dict[T, int]) -> list[tuple[T, int]]:
    """Return by how much each has grown; one that was forgotten meanwhile began anew."""
    grown = ((each, count, before.get(each, 0)) for each, count in now.items())
    return [(each, count - was if count > was else count) for each, count, was in grown if count != was]
