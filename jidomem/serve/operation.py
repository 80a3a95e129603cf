"""What a running server knows of itself: what it counts, where it logs, and whether it is stopping."""

from __future__ import annotations

from collections.abc import Mapping
from threading import BoundedSemaphore, Event
from typing import Any

from jidomem.runtime.door_log import DoorLog
from jidomem.serve.deeds import Deeds
from jidomem.serve.ledger import Ledger
from jidomem.serve.log import Log
from jidomem.serve.measures import Measures
from jidomem.serve.repeats import Repeats
from jidomem.serve.standing import Leveller, Readiness

#: One of so many connections may wait for what is not written yet.
SHARE = 4


class Operation:
    """One server at work: what it counts, logs if it keeps a `log`, and has done; `stopping` is set once it is."""

    def __init__(self, log: Log | None = None, *, connections: int = 64) -> None:
        self.measures = Measures()
        self.log = log
        self.leveller, self.readiness = Leveller(), Readiness()
        self.repeats = Repeats()
        self.deeds = Deeds()
        self.ledger: Ledger | None = None
        self.stopping = Event()
        self.feeds = BoundedSemaphore(max(1, connections // SHARE))

    def keep_counts(self, log: DoorLog, door: str) -> None:
        """Put what is counted of refusals and clients at *door* into *log*, until this is closed."""
        self.ledger = Ledger(log, door, self.measures)

    def stop(self) -> None:
        """Let what goes on without end come to its end."""
        self.stopping.set()
        self.tell("info", "stopping", {"under_way": self.measures.under_way})

    def close(self) -> None:
        """Say that the server has stopped, and write what waits."""
        self.tell("info", "stopped", {})
        if self.ledger is not None:
            self.ledger.close()
        if self.log is not None:
            self.log.close()

    def tell(self, level: str, event: str, said: Mapping[str, Any]) -> None:
        """Write one line to the log, if there is one."""
        if self.log is not None:
            self.log.tell(level, event, said)
