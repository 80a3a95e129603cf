"""A memory as a list tells it: what it says in short, who said it and when, and what is amiss with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from jidomem.active import ENDED
from jidomem.excerpt import excerpt
from jidomem.moments import parse_moment, stamp
from jidomem.read.item import short_id
from jidomem.serve.curator.asked import Asked
from jidomem.vocab import BASE, REDACTED

#: What is due within this time is said to be soon.
SOON = timedelta(days=14)
#: property -> what is said of its date once it is over, and before.
_DATES = {
    "expiresOn": ("to be reviewed since", "to be reviewed by"),
    "validUntil": ("held until", "holds until"),
}
#: How many characters of the text that answers a list shows.
_EXCERPT = 300
_AGENTS, _SESSIONS = f"{BASE}agents/", f"{BASE}sessions/"


def row(asked: Asked, item: str) -> dict[str, Any]:
    """Return one memory in short, as it was known at the moment asked for."""
    found = asked.memory.reader.get_memory(asked.project, item, **asked.moment)
    return of(asked, found)


def of(asked: Asked, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return in short a memory that was read."""
    said = found["properties"]
    return {
        "iri": found["iri"],
        "id": short_id(found["iri"]),
        "link": asked.link("memories", found["iri"]),
        "class": found["class"],
        "status": found["status"],
        "summary": first(said, "summary") or REDACTED,
        "excerpt": excerpt(said, _EXCERPT),
        "topic": first(said, "topic"),
        "confidence": str(first(said, "hasConfidence") or "").rpartition("#")[2],
        "agent": agent(first(said, "assertedBy") or ""),
        "session": str(first(said, "assertedIn") or "").removeprefix(_SESSIONS),
        "time": _stamped(first(said, "hasTimestamp")),
        "recorded_at": _stamped(found["recorded_at"]),
        "badges": badges(asked, found),
    }


def badges(asked: Asked, found: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what is to be looked at: that it disagrees with others in force, and that its time is over, or soon."""
    if found["status"] in ENDED:
        return []
    now = parse_moment(asked.as_of) if asked.as_of else asked.memory.sources.now()
    assert now is not None
    marks = []
    rivals = asked.memory.reader.ask("disagreements", project=asked.project, item=found["iri"], as_of=asked.as_of)
    if rivals:
        marks.append({"kind": "conflict", "text": f"conflicts with {len({one['other'] for one in rivals})}"})
    for name, (over, soon) in _DATES.items():
        due = parse_moment(first(found["properties"], name))
        if due is not None and due <= now:
            marks.append({"kind": "expired", "text": f"{over} {due:%Y-%m-%d}"})
        elif due is not None and due - now < SOON:
            marks.append({"kind": "expires", "text": f"{soon} {due:%Y-%m-%d}"})
    return marks


def agent(name: str) -> str:
    """Return what people call an agent: its name, or its IRI where it is none of ours."""
    return name.removeprefix(_AGENTS)


def first(said: Mapping[str, Any], name: str) -> Any:
    """Return the first value of a property, None where it has none."""
    return next(iter(said.get(name, ())), None)


def _stamped(moment: object) -> str:
    return stamp(moment) if isinstance(moment, datetime) else str(moment or "")
