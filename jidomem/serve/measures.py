"""What is counted while a server runs: requests, refusals, and how long requests, questions and commits take."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from threading import Lock
from time import monotonic

from jidomem.clock import now
from jidomem.moments import stamp
from jidomem.serve.tallies import Clients, Refusals

#: The upper bounds of the buckets of a histogram, in seconds.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Histogram:
    """How many took how long: `counts` by bucket, the last of which has no bound, and the sum of all `seconds`."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one that took so long."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Measures:
    """The counts of one server; any thread may add to them, and whoever reads holds `lock`."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.began = monotonic()
        self.since = now()
        self.under_way = 0
        self.requests: Counter[tuple[str, str, int]] = Counter()  # by route, method and status
        self.refusals: Counter[str] = Counter()  # by code
        self.told_apart = Refusals()
        self.clients = Clients()
        self.routes: dict[str, Histogram] = {}
        self.questions: dict[str, Histogram] = {}
        self.commits = Histogram()
        self.calls: Counter[tuple[str, str, str]] = Counter()  # by method of MCP, tool (if any) and outcome
        self.tools: dict[str, Histogram] = {}

    def begun(self) -> None:
        """Count a request that came in."""
        with self.lock:
            self.under_way += 1

    def ended(self, route: str, method: str, status: int, seconds: float, question: str | None = None) -> None:
        """Count a request that was answered; *question* is the named one it asked."""
        with self.lock:
            self.under_way -= 1
            self.requests[route, method, status] += 1
            _of(self.routes, route).add(seconds)
            if question is not None:
                _of(self.questions, question).add(seconds)

    def called(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """Count a request of MCP that was answered or refused: the call of a *tool*, or none."""
        with self.lock:
            self.calls[method, tool, outcome] += 1
            if tool:
                _of(self.tools, tool).add(seconds)

    def refused(self, code: str, agent: str | None = None, project: str | None = None) -> None:
        """Count a refusal: of a request, or of one intent among several, of *agent* where that is known."""
        day = stamp(now())[:10]
        with self.lock:
            self.refusals[code] += 1
            self.told_apart.add(day, project, agent, code)

    def asked(self, project: str, agent: str | None, user_agent: str, address: str) -> None:
        """Count who asked *project*."""
        with self.lock:
            self.clients.add(now(), project, agent, user_agent, address)

    def committed(self, seconds: float) -> None:
        """Count a commit that took so long to be durable."""
        with self.lock:
            self.commits.add(seconds)


def _of(known: dict[str, Histogram], name: str) -> Histogram:
    found = known.get(name)
    if found is None:
        found = known[name] = Histogram()
    return found
