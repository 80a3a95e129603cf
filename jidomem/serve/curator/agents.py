"""The agents: who wrote how much, and on which days, and who was refused what since the server began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from jidomem.index.overview import written
from jidomem.journal.files import Stream
from jidomem.serve.curator import counted, seen, told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.serve.tallies import OTHERS

#: Agents and refusals that are listed, and days on which something was written.
LISTED, REFUSED, DAYS = 100, 200, 14


def show(asked: Asked) -> Mapping[str, Any]:
    """Return what each agent wrote in all and by day, as of the moment asked for, and the refusals of this server."""
    asked.memory.catch_up(asked.project)
    found = asked.memory.texts.read_soon(
        Stream(asked.project), lambda file: written(file, moment=asked.as_of, days=DAYS)
    )
    days = found.days[::-1]
    listed = [*found.agents.items()][:LISTED]
    return {
        "days": [*days],
        "agents": [_agent(asked, agent, count, found.by_day.get(agent, {}), days) for agent, count in listed],
        "more": len(found.agents) - len(listed),
        **_refusals(asked),
        "sees_all": seen.sees_all(asked),
    }


def _agent(asked: Asked, agent: str, count: int, by_day: Mapping[str, int], days: tuple[str, ...]) -> dict[str, Any]:
    name = told.agent(agent)
    link = asked.link("timeline", agent=name) if name else None
    return {"agent": name, "count": count, "link": link, "by_day": [by_day.get(day, 0) for day in days]}


def _refusals(asked: Asked) -> dict[str, Any]:
    """Return the refusals that are there for who asks, the newest day first and of it those that are most."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for each in counted.of(asked)[0]:
        if seen.is_here(asked, each.project) and seen.sees(asked, each.agent if each.agent != OTHERS else ""):
            counts[each.day, told.agent(each.agent), each.code, each.door] += each.times
    rows = sorted(counts.items(), key=lambda one: (one[0][0], one[1], one[0][1:]), reverse=True)
    refusals = [dict(zip(("day", "agent", "code", "door"), key, strict=True), count=count) for key, count in rows]
    return {**counted.told(asked), "refusals": refusals[:REFUSED], "more_refusals": len(refusals[REFUSED:])}


AGENTS = Screen("agents", "agents.html", show, menu="Agents")
