"""What waits for a curator: what disagrees, side by side, proposals and what is due, settled one by one or together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jidomem.errors import InvalidRequest, JidomemError
from jidomem.govern.review import Queue, Waiting, queued
from jidomem.intent import Receipt
from jidomem.serve.curator import told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.compared import compared
from jidomem.serve.curator.screen import Screen

#: So many are listed on one page.
COUNT = 50
#: What is done with two that disagree: name -> the key that does it, and what it does.
OF_TWO: Mapping[str, tuple[str, str]] = {
    "left": ("l", "Keep the left"),
    "right": ("r", "Keep the right"),
    "both": ("b", "Keep both"),
    "merge": ("m", "Merge into a new one"),
}
#: What is done with one that is proposed, or due.
OF_ONE: Mapping[str, tuple[str, str]] = {"accept": ("a", "Accept"), "reject": ("x", "Reject")}
#: What a curator compares by; what the machinery says of a memory is left out.
_COMPARED = (
    "summary", "topic", "about", "rationale", "detailedExplanation", "hasConfidence", "assertedBy", "hasTimestamp",
    "expiresOn", "validFrom", "validUntil", "derivedFrom",
)  # fmt: skip


def show(asked: Asked) -> Mapping[str, Any]:
    """Return what waits, the most pressing first, and the one that is looked at with all that it says."""
    asked.memory.catch_up(asked.project)
    if asked.as_of is not None:  # what waits is settled now
        return {"total": None, "waiting": [], "next": None, "looked_at": None, "done": None, "ended": []}
    cursor = asked.given.get("cursor") or None
    found = queued(asked.memory.reader, asked.project, asked.memory.sources.now(), limit=COUNT, cursor=cursor)
    chosen = _chosen(asked, found)
    return {
        "total": found.total,
        "waiting": [
            {**one.to_dict(), "link": _link(asked, one), "is_looked_at": one is chosen} for one in found.waiting
        ],
        "next": asked.link("review", cursor=found.cursor) if found.cursor else None,
        "looked_at": None if chosen is None else _looked_at(asked, chosen),
        "done": asked.given.get("done"),
        "ended": [told.row(asked, item) for item in asked.given.get("ended", "").split()[:2]],
    }


def _chosen(asked: Asked, found: Queue) -> Waiting | None:
    """Return the one that is asked for, the first where it waits no more or none is."""
    named = (asked.given.get("item"), asked.given.get("other") or None)
    return next((one for one in found.waiting if (one.item, one.other) == named), next(iter(found.waiting), None))


def _listed(asked: Asked, one: Waiting, chosen: Waiting | None) -> dict[str, Any]:
    return {**one.to_dict(), "link": _link(asked, one), "is_looked_at": one is chosen}


def _link(asked: Asked, one: Waiting) -> str:
    return asked.link("review", item=one.item, other=one.other, cursor=asked.given.get("cursor"))


def _looked_at(asked: Asked, one: Waiting) -> dict[str, Any]:
    sides = [asked.memory.reader.get_memory(asked.project, item) for item in (one.item, one.other) if item]
    said = [{name: each["properties"][name] for name in _COMPARED if name in each["properties"]} for each in sides]
    ways = OF_TWO if one.other else OF_ONE
    return {
        **one.to_dict(),
        "sides": [told.of(asked, each) for each in sides],
        "rows": [*compared(said[0], said[-1])],
        "ways": {name: {"key": key, "text": text} for name, (key, text) in ways.items()},
    }


def act(asked: Asked, form: Mapping[str, str]) -> str:
    """Settle one that waits, or all that were chosen, as *form* says, and return the page of what waits then."""
    way, reason = form["act"], form.get("reason", "").strip() or None
    if "chosen" in form:
        return asked.link("review", done=_together(asked, way, form["chosen"].split("\n"), reason))
    item, other = form.get("item", ""), form.get("other") or None
    if not item:
        raise InvalidRequest("nothing is ticked", hint="tick what is to be settled together")
    _settled(asked, way, item, other, reason, form)
    return asked.link("review", done=way, ended=" ".join(_ended(way, item, other)))


def _together(asked: Asked, way: str, chosen: list[str], reason: str | None) -> str:
    """Return what was done with those *chosen*; raises InvalidRequest, with the first refusal, where some were not."""
    if way not in OF_ONE:
        raise InvalidRequest(f"several are accepted or rejected together, not {way!r}", hint="settle each by itself")
    refusals = []
    for line in chosen:
        item, _, other = line.partition(" ")
        try:
            asked.site.writer.settle(asked.project, item, way, other=other or None, reason=reason)
        except JidomemError as error:
            refusals.append(error)
    if refusals:
        raise InvalidRequest(
            f"{len(refusals)} of {len(chosen)} could not be settled, the others are: {refusals[0].detail}",
            hint=refusals[0].hint or "settle them one by one",
        )
    return f"{way}, {len(chosen)} together"


def _settled(
    asked: Asked, way: str, item: str, other: str | None, reason: str | None, form: Mapping[str, str]
) -> Receipt:
    writer, project = asked.site.writer, asked.project
    if way in OF_ONE:
        return writer.settle(project, item, way, other=other, reason=reason)
    if other is None:
        raise InvalidRequest(f"{way} is done with two, and there is one", hint="accept or reject it")
    if way in ("left", "right"):
        return writer.settle(project, item, "accept" if way == "left" else "reject", other=other, reason=reason)
    if way == "merge":
        text = form.get("text", "").strip()
        if not text:
            raise InvalidRequest(
                "there is no text that both become", hint="write what holds, in the words of neither or both"
            )
        merged = {"supersedes": [item, other]}
        return writer.correct(project, item, supersede=text, changes=merged, reason=reason or "merged in review")
    places = form.get("about", "").split()
    if not places:
        raise InvalidRequest(
            "both are kept where each says where it applies", hint="name the files the left one is about"
        )
    beside = {"about": places, "coexists_with": [other]}
    return writer.correct(project, item, changes=beside, reason=reason or "kept beside in review")


def _ended(way: str, item: str, other: str | None) -> list[str]:
    """Return what is in force no more once two that disagreed are settled so, and can be brought back."""
    ended = {"left": (other,), "right": (item,), "merge": (item, other)}.get(way, ())
    return [each for each in ended if each]


REVIEW = Screen(
    "review",
    "review.html",
    show,
    takes=("item", "other", "cursor", "done", "ended"),
    act=act,
    acts=(*OF_TWO, *OF_ONE),
    fields=("item", "other", "reason", "text", "about", "chosen"),
    several=("chosen",),
    menu="Review",
)
