"""The agents: who wrote how much, and on which days, and who was refused what since the server began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from jidomem.index.overview import written
from jidomem.journal.files import Stream
from jidomem.moments import stamp
from jidomem.serve.curator import seen, told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.serve.tallies import OTHERS

#: Agents and refusals that are listed, and days on which something was written.
LISTED, REFUSED, DAYS = 100, 200, 14


def show(asked: Asked) -> Mapping[str, Any]:
    """Return what each agent wrote in all and by day, as of the moment asked for, and the refusals of this server."""
    asked.memory.catch_up(asked.project)
    found = asked.memory.texts.read(Stream(asked.project), lambda file: written(file, moment=asked.as_of, days=DAYS))
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
    measures = asked.site.operation.measures
    with measures.lock:
        apart, others = dict(measures.told_apart.counts), dict(measures.told_apart.others)
    counts: Counter[tuple[str, str, str]] = Counter()
    for each, count in apart.items():
        if seen.is_here(asked, each.project) and seen.sees(asked, each.agent):
            counts[each.day, told.agent(each.agent), each.code] += count
    if seen.sees_all(asked) and seen.is_here(asked, ""):
        counts.update({("", OTHERS, code): count for code, count in others.items()})
    rows = sorted(counts.items(), key=lambda one: (one[0][0], one[1], one[0][1:]), reverse=True)
    refusals = [{"day": day, "agent": agent, "code": code, "count": count} for (day, agent, code), count in rows]
    return {"since": stamp(measures.since), "refusals": refusals[:REFUSED], "more_refusals": len(refusals[REFUSED:])}


AGENTS = Screen("agents", "agents.html", show, menu="Agents")
