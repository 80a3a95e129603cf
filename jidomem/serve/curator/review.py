"""What waits for a curator: what disagrees, side by side, proposals and what is due, settled one by one or together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from jidomem.active import ACTIVE
from jidomem.errors import Conflict, InvalidRequest, JidomemError
from jidomem.govern.review import Queue, Waiting, queued
from jidomem.intent import Receipt
from jidomem.serve.curator import allowed, beside, refusals, told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.compared import compared
from jidomem.serve.curator.screen import Screen
from jidomem.vocab import JIDO, SCOPE
from jidomem.write.settlement import Settlement

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
#: What the writer calls what is done with both.
_OF_BOTH = {"both": "keep-both", "merge": "supersede"}
#: What a curator compares by; what the machinery says of a memory is left out.
_COMPARED = (
    "summary", "topic", "about", "rationale", "detailedExplanation", "hasConfidence", "assertedBy", "hasTimestamp",
    "expiresOn", "validFrom", "validUntil", "conventionName", "hasConventionScope",
    "hasEnforcementLevel", "derivedFrom",
)  # fmt: skip


def show(asked: Asked) -> Mapping[str, Any]:
    """Return what waits, the most pressing first, and the one that is looked at with all that it says."""
    asked.memory.catch_up(asked.project)
    if asked.as_of is not None:  # what waits is settled now
        return {
            "total": None,
            "waiting": [],
            "next": None,
            "looked_at": None,
            "done": None,
            "made": None,
            "ended": [],
            "why_not": None,
        }
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
        "made": told.row(asked, asked.given["made"]) if asked.given.get("made") else None,
        "ended": [told.row(asked, item) for item in asked.given.get("ended", "").split()[:2]],
        "why_not": allowed.why_not_write(asked),
    }


def _chosen(asked: Asked, found: Queue) -> Waiting | None:
    """Return the one that is asked for, the first where it waits no more or none is."""
    named = (asked.given.get("item"), asked.given.get("other") or None)
    return next((one for one in found.waiting if (one.item, one.other) == named), next(iter(found.waiting), None))


def _link(asked: Asked, one: Waiting) -> str:
    return asked.link("review", item=one.item, other=one.other, cursor=asked.given.get("cursor"))


def _looked_at(asked: Asked, one: Waiting) -> dict[str, Any]:
    reader, writer = asked.memory.reader, asked.memory.writer
    replaced = _replaced(asked, one) if one.other is None else None
    sides = [reader.get_memory(asked.project, item) for item in (one.item, one.other or replaced) if item]
    said = [{name: each["properties"][name] for name in _COMPARED if name in each["properties"]} for each in sides]
    fields = [writer.restated(asked.project, each["iri"]) for each in sides]
    why_not = allowed.why_not_correct(asked, *filter(None, (one.item, one.other)), asserted=True)
    offered: Mapping[str, tuple[str, str]] = {} if why_not else OF_TWO if one.other else OF_ONE
    return {
        **one.to_dict(),
        "sides": [told.of(asked, each) for each in sides],
        "rows": [*compared(said[0], said[-1])],
        "ways": {
            name: {"key": key, "text": text}
            for name, (key, text) in offered.items()
            if _action(name, sides[0]["status"]) in one.actions
        },
        "why_not": why_not,
        "beside": [beside.where(each) for each in fields],
        "scopes": [f"{JIDO}{name}" for name in SCOPE],
        "merged": beside.merged(fields[0], fields[1], asked.given.get("start")) if one.other else None,
        "starts": {side: f"{_link(asked, one)}&start={side}" for side in ("left", "right") if one.other},
    }


def _replaced(asked: Asked, one: Waiting) -> str | None:
    """Return the memory whose text a proposal changes: the only active one that it takes the place of."""
    memories = (asked.memory.reader.get_memory(asked.project, item) for item in one.replaces)
    active = [each["iri"] for each in memories if each["status"] == ACTIVE]
    return active[0] if len(active) == 1 else None


def _action(way: str, status: str) -> str:
    """Return what the writer calls a way to settle; to keep a proposal is to assert it in the place of the other."""
    if way in OF_ONE:
        return way
    return {"left": "supersede" if status == "proposed" else "accept", "right": "reject"}.get(
        way, _OF_BOTH.get(way, "")
    )


def act(asked: Asked, form: Mapping[str, str]) -> str:
    """Settle one that waits, or all that were chosen, as *form* says, and return the page of what waits then."""
    way, reason = form["act"], form.get("reason", "").strip() or None
    if "chosen" in form:
        return asked.link("review", done=_together(asked, way, form["chosen"].split("\n"), reason))
    item, other = form.get("item", ""), form.get("other") or None
    if not item:
        raise InvalidRequest("nothing is ticked", hint="tick what is to be settled together")
    try:
        made = _settled(asked, way, item, other, reason, form)
    except JidomemError as error:
        raise refusals.explained(asked, error, item, other) from error
    return asked.link("review", done=way, made=made, ended=" ".join(_ended(way, item, other)))


def _together(asked: Asked, way: str, chosen: list[str], reason: str | None) -> str:
    """Return the message of one commit that settles those *chosen*; raises Refused, with a row for each refusal."""
    if way not in OF_ONE:
        raise InvalidRequest(f"several are accepted or rejected together, not {way!r}", hint="settle each by itself")
    digest = asked.site.caller.digest if asked.site.caller else None
    lines, by = [*dict.fromkeys(chosen)], (digest, asked.project, way, reason)
    # A form that is sent again waits for the first one, and then finds each line done.
    return asked.site.operation.repeats.once((*by, *lines), partial(_settled_together, asked, way, lines, reason, by))


def _settled_together(asked: Asked, way: str, lines: list[str], reason: str | None, by: tuple[str | None, ...]) -> str:
    settlements, rows = [], []
    for line in lines:
        item, _, other = line.partition(" ")
        status = asked.memory.reader.get_memory(asked.project, item)["status"]
        rival = None if status == "proposed" else other or None  # a proposal names all that it disagrees with itself
        settlements.append(Settlement(item, _action(way, status), other=rival, reason=reason))
    outcomes = asked.site.writer.settle_many(asked.project, settlements)
    for line, settlement, outcome in zip(lines, settlements, outcomes, strict=True):
        try:
            asked.site.operation.repeats.once((*by, line), partial(_iri, outcome))
        except JidomemError as error:
            if error.http_status in (401, 403) or error.http_status >= 500:
                raise  # the others met the same
            rows.append(refusals.row(asked, settlement.item, error))
    if rows:
        done = len(lines) - len(rows)
        raise refusals.Refused(
            f"{len(rows)} of {len(lines)} could not be settled; done: {way}, {done} together",
            hint="settle these one by one",
            rows=rows,
        )
    return f"{way}, {len(lines)} together"


def _iri(outcome: Receipt | JidomemError) -> str:
    if isinstance(outcome, JidomemError):
        raise outcome
    return outcome.iri


def _settled(asked: Asked, way: str, item: str, other: str | None, reason: str | None, form: Mapping[str, str]) -> str:
    """Settle one that waits, and return the IRI of what settled it."""
    writer, project = asked.site.writer, asked.project
    status = asked.memory.reader.get_memory(project, item)["status"]
    changes: Mapping[str, Any] | None = None
    if way not in OF_ONE and other is None:
        raise InvalidRequest(f"{way} is done with two, and there is one", hint="accept or reject it")
    if way == "merge" and other is not None:
        changes = beside.together(writer.restated(project, item), writer.restated(project, other), form)
    elif way == "both" and other is not None:
        is_left, changes = beside.apart(writer.restated(project, item), writer.restated(project, other), form)
        if not is_left and status == "proposed":
            raise InvalidRequest(
                "the left one is proposed, and asserted by this", hint="say where the left one applies"
            )
        item, other = (item, other) if is_left else (other, item)
    rival = None if status == "proposed" else other  # a proposal names all that it disagrees with itself
    try:
        receipt = writer.settle(project, item, _action(way, status), other=rival, reason=reason, changes=changes)
    except Conflict as error:
        if way == "both":
            error.hint = (
                "say of one of them where it applies, and the other one does not: other files, or another scope"
            )
        raise
    return receipt.iri


def _ended(way: str, item: str, other: str | None) -> list[str]:
    """Return what is in force no more once two that disagreed are settled so, and can be brought back."""
    ended = {"left": (other,), "right": (item,), "merge": (item, other)}.get(way, ())
    return [each for each in ended if each]


REVIEW = Screen(
    "review",
    "review.html",
    show,
    takes=("item", "other", "start", "cursor", "done"),
    act=act,
    acts=(*OF_TWO, *OF_ONE),
    fields=("item", "other", "reason", "chosen", *beside.FIELDS),
    several=("chosen",),
    menu="Review",
)
