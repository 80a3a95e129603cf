"""Who was refused what, and who asked, since a server began: bounded, so that nobody fills it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

#: So many refusals, each of its kind, are told apart, and so many clients.
REFUSALS, CLIENTS = 4_000, 500
#: What those are counted under that are not told apart any more.
OTHERS = "others"
#: So many signs are kept of what others call themselves.
_LONGEST = 100


class Refusal(NamedTuple):
    """What was refused: on a day, in a project where it was in one, to an agent where one is known, with a code."""

    day: str
    project: str
    agent: str
    code: str


class Client(NamedTuple):
    """Who asked a project: the agent where one is known, what it calls itself, and from where."""

    project: str
    agent: str
    user_agent: str
    address: str


@dataclass(slots=True)
class Visits:
    """When a client asked first and last, and how often."""

    first: datetime
    last: datetime
    requests: int = 0


class Refusals:
    """How often each was refused; of too many kinds the oldest become others, of any day, project and agent."""

    def __init__(self) -> None:
        self.counts: dict[Refusal, int] = {}
        self.others: Counter[str] = Counter()  # by code

    def add(self, day: str, project: str | None, agent: str | None, code: str) -> None:
        """Count one."""
        key = Refusal(day, _cut(project), _cut(agent), code)
        if key not in self.counts and len(self.counts) >= REFUSALS:
            oldest = next(iter(self.counts))
            self.others[oldest.code] += self.counts.pop(oldest)
        self.counts[key] = self.counts.get(key, 0) + 1


class Clients:
    """Who asked; of too many those are forgotten that asked least recently."""

    def __init__(self) -> None:
        self.seen: dict[Client, Visits] = {}  # who asked last is the last

    def add(self, at: datetime, project: str, agent: str | None, user_agent: str, address: str) -> None:
        """Count a request."""
        key = Client(_cut(project), _cut(agent), _cut(user_agent), kind_of(address))
        visits = self.seen.pop(key, None) or Visits(at, at)
        visits.last, visits.requests = at, visits.requests + 1
        self.seen[key] = visits
        if len(self.seen) > CLIENTS:
            del self.seen[next(iter(self.seen))]


def _cut(text: str | None) -> str:
    return (text or "")[:_LONGEST]


@lru_cache(1_000)
def kind_of(address: str) -> str:
    """Return where an address is, in words; the address itself is kept nowhere.

    >>> kind_of("127.0.0.1"), kind_of("10.1.2.3"), kind_of("8.8.8.8")
    ('this machine', 'private network', 'elsewhere')
    """
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if found.is_loopback:
        return "this machine"
    return "private network" if found.is_private else "elsewhere"
