"""The timeline: what was learnt, by day, narrowed by kind, agent, session and state, or found by words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.index.overview import FACETS, STATES, Facets, Told, among, overview
from jidomem.journal.files import Stream
from jidomem.moments import parse_moment, stamp
from jidomem.recall import RecallRequest
from jidomem.serve.curator import told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.vocab import BASE

#: Memories on one page, and values of a facet that are listed.
COUNT, LISTED = 50, 12
#: So many are found by words, of which those are told that fit; more where few may be in the state that is asked for.
FOUND, FOUND_OF_STATE = COUNT, 4 * COUNT
_PREFIX = {"agent": f"{BASE}agents/", "session": f"{BASE}sessions/"}
_AFTER = "after"


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the memories of one page by day, and how many there are of each value of each facet."""
    chosen = {name: asked.given[name] for name in FACETS if asked.given.get(name)}
    if chosen.get("state", STATES[0]) not in STATES:
        raise InvalidRequest(f"state={chosen['state']!r} is none", hint=f"give one of: {', '.join(STATES)}")
    asked.memory.catch_up(asked.project)
    within = {name: _whole(name, value) for name, value in chosen.items()}
    words = asked.given.get("q", "").strip()
    if words:
        return _by_words(asked, words, chosen, within)
    stream, after = Stream(asked.project), _after(asked.given.get(_AFTER))
    found = asked.memory.texts.read_soon(
        stream,
        lambda file: overview(file, within, moment=asked.as_of, valid_at=asked.valid_at, after=after, count=COUNT),
    )
    return {
        "q": "",
        "chosen": chosen,
        "found": None,
        "days": _by_day([told.row(asked, one.item) for one in found.told], found.days),
        "facets": {name: _facet(asked, name, found.facets, chosen) for name in FACETS},
        "next": _further(asked, found.told[-1]) if found.more else None,
    }


def _by_words(asked: Asked, words: str, chosen: Mapping[str, str], within: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the best of what recall finds that fits, and how many of what it found have each value of each facet."""
    state = chosen.get("state")
    limit = FOUND if state in (None, "active") else FOUND_OF_STATE
    request = RecallRequest(agent_id=asked.memory.settings.agent, query=words, limit=limit)
    narrowed: dict[str, Any] = {name: chosen[name] for name in ("agent", "session") if name in chosen}
    if "kind" in chosen:
        narrowed["kinds"] = [chosen["kind"]]
    found = asked.memory.recall(
        request, asked.project, as_of=asked.as_of, include_inactive=state != "active", **narrowed
    )
    items = [hit.id for hit in found.entries]
    fitting, facets = asked.memory.texts.read_soon(
        Stream(asked.project), lambda file: among(file, items, within, moment=asked.as_of, valid_at=asked.valid_at)
    )
    listed = [told.row(asked, item) for item in fitting[:COUNT]]
    return {
        "q": words,
        "chosen": chosen,
        "found": {"count": len(items), "fitting": len(fitting), "more": bool(found.metadata["more"])},
        "days": [{"day": None, "count": len(fitting), "memories": listed}],
        "facets": {name: _facet(asked, name, facets, chosen) for name in FACETS},
        "next": None,
    }


def _by_day(listed: Iterable[dict[str, Any]], days: Mapping[str, int]) -> list[dict[str, Any]]:
    by_day = groupby(listed, lambda row: row["recorded_at"][:10])
    return [{"day": day, "count": days.get(day, 0), "memories": [*rows]} for day, rows in by_day]


def _facet(asked: Asked, name: str, facets: Facets, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of one facet, the most frequent first, each with the page it leads to."""
    counted, now = facets[name], chosen.get(name)
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
