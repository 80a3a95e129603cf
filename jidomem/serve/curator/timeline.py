"""The timeline: what was learnt, by day, narrowed by kind, agent, session and state, or found by words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.index.overview import FACETS, STATES, Overview, Told, overview
from jidomem.journal.files import Stream
from jidomem.moments import parse_moment, stamp
from jidomem.recall import RecallRequest
from jidomem.serve.curator import told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.vocab import BASE

#: Memories on one page, and values of a facet that are listed.
COUNT, LISTED = 50, 12
_PREFIX = {"agent": f"{BASE}agents/", "session": f"{BASE}sessions/"}
_AFTER = "after"


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the memories of one page by day, and how many there are of each value of each facet."""
    chosen = {name: asked.given[name] for name in FACETS if asked.given.get(name)}
    if chosen.get("state", STATES[0]) not in STATES:
        raise InvalidRequest(f"state={chosen['state']!r} is none", hint=f"give one of: {', '.join(STATES)}")
    asked.memory.catch_up(asked.project)
    within = {name: _whole(name, value) for name, value in chosen.items()}
    stream, after = Stream(asked.project), _after(asked.given.get(_AFTER))
    found = asked.memory.texts.read_soon(
        stream, lambda file: overview(file, within, moment=asked.as_of, after=after, count=COUNT)
    )
    words = asked.given.get("q", "").strip()
    listed = _by_words(asked, words, chosen) if words else [told.row(asked, one.item) for one in found.told]
    return {
        "q": words,
        "chosen": chosen,
        "days": [{"day": None, "count": len(listed), "memories": listed}] if words else _by_day(listed, found.days),
        "facets": {name: _facet(asked, name, found, chosen) for name in FACETS},
        "next": _further(asked, found.told[-1]) if found.more and not words else None,
    }


def _by_words(asked: Asked, words: str, chosen: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what recall finds, the best first."""
    request = RecallRequest(agent_id=asked.memory.settings.agent, query=words, limit=COUNT)
    narrowed: dict[str, Any] = {name: chosen[name] for name in ("agent", "session") if name in chosen}
    if "kind" in chosen:
        narrowed["kinds"] = [chosen["kind"]]
    found = asked.memory.recall(
        request, asked.project, as_of=asked.as_of, include_inactive=chosen.get("state") != "active", **narrowed
    )
    rows = [told.row(asked, hit.id) for hit in found.entries]
    state = chosen.get("state")
    return [row for row in rows if state is None or told.state(row["status"]) == state]


def _by_day(listed: Iterable[dict[str, Any]], days: Mapping[str, int]) -> list[dict[str, Any]]:
    by_day = groupby(listed, lambda row: row["recorded_at"][:10])
    return [{"day": day, "count": days.get(day, 0), "memories": [*rows]} for day, rows in by_day]


def _facet(asked: Asked, name: str, found: Overview, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of one facet, the most frequent first, each with the page it leads to."""
    counted, now = found.facets[name], chosen.get(name)
    values: list[dict[str, Any]] = [
        {"value": _short(name, value), "count": count} for value, count in counted.items() if value
    ]
    listed = [each for number, each in enumerate(values) if number < LISTED or each["value"] == now]
    if now is not None and all(each["value"] != now for each in listed):
        listed.append({"value": now, "count": 0})
    for each in listed:
        each["chosen"] = each["value"] == now
        each["link"] = _narrowed(asked, {name: None if each["chosen"] else each["value"]})
    return {"values": listed, "more": max(0, len(values) - len(listed))}


def _narrowed(asked: Asked, changed: Mapping[str, str | None]) -> str:
    kept: dict[str, str | None] = {name: asked.given.get(name) for name in (*FACETS, "q")}
    return asked.link("timeline", **{**kept, **changed})


def _further(asked: Asked, last: Told) -> str:
    return _narrowed(asked, {_AFTER: f"{last.recorded} {last.item}"})


def _after(text: str | None) -> Told | None:
    """Return what a page goes on after; raises InvalidRequest for what is none."""
    if not text:
        return None
    recorded, _, item = text.partition(" ")
    at = parse_moment(recorded)
    if at is None or not item:
        raise InvalidRequest(f"after={text[:200]!r} is no place", hint="follow the link to the next page")
    return Told(item, stamp(at))


def _whole(name: str, value: str) -> str:
    return value if ":" in value or name not in _PREFIX else _PREFIX[name] + value


def _short(name: str, value: str) -> str:
    return value.removeprefix(_PREFIX.get(name, ""))


TIMELINE = Screen("timeline", "timeline.html", show, takes=(*FACETS, "q", _AFTER), menu="Timeline")
