"""One memory: what it says and rests on, who said it, what it replaced and what replaced it, and its correction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response

from jidomem.active import ENDED
from jidomem.errors import InvalidRequest, JidomemError
from jidomem.excerpt import ANSWERS
from jidomem.index.answers import written
from jidomem.read.turtle import turtle
from jidomem.serve import wire
from jidomem.serve.curator import allowed, refusals, told
from jidomem.serve.curator.asked import AS_OF, Asked
from jidomem.serve.curator.screen import Screen
from jidomem.serve.site import Site
from jidomem.terms import Triple
from jidomem.vocab import REDACTED

#: What is done with a memory: name -> what the form says it does.
ACTS: Mapping[str, str] = {
    "supersede": "Supersede it by another text",
    "invalidate": "Withdraw it, with nothing in its place",
    "confirm": "Confirm that it holds",
    "undo": "Bring back what was ended",
}
#: What explains a memory -> what is said over it.
_LINKED: Mapping[str, str] = {
    "evidence": "It rests on",
    "replaced": "It replaced",
    "replaced_by": "It was replaced by",
    "revived_by": "It was brought back by",
    "conflicts": "It disagrees with",
    "derived": "Concluded from it",
}
#: What the page tells in places of its own.
_TOLD = frozenset((
    *("summary", "hasConfidence", "assertedBy", "assertedIn", "derivedFrom", "supersedes", "invalidates", "revives"),
    *("recordedAt", "recordedIn", "appliesToProject", "hasAssertionStatus", "conflictKey", "requestDigest", "receipt"),
))  # fmt: skip


def show(asked: Asked, id: str) -> Mapping[str, Any]:  # noqa: A002 - the name of the part of the path
    """Return all that is known of one memory, by its IRI or a unique part of its id."""
    reader = asked.memory.reader
    item = reader.resolve(asked.project, id, as_of=asked.as_of)
    found = reader.get_memory(asked.project, item, **asked.moment)
    why = reader.why(asked.project, item, **asked.moment)
    why_not = allowed.why_not_correct(asked, item)
    return {
        **told.of(asked, found),
        "says": "summary" in found["properties"],
        "committer": why["committer"],
        "commit": why["commit"],
        "judged_by": why["judged_by"],
        "linked": [
            {"title": title, "rows": [_linked(asked, one) for one in why[name]]}
            for name, title in _LINKED.items()
            if why[name]
        ],
        "properties": _properties(found["properties"]),
        "acts": {} if asked.as_of or why_not else {name: ACTS[name] for name in _possible(found["status"])},
        "why_not": why_not,
        "done": asked.given.get("done"),
        "whole": wire.flag(asked.given, "whole"),
    }


def _properties(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page lists of a memory, the texts that answer first."""
    names = [name for name in said if name not in (*_TOLD, *ANSWERS)]
    return {name: said[name] for name in (*ANSWERS, *names) if name in said}


def _linked(asked: Asked, one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a memory is linked with: another memory, or a text or an address it rests on."""
    if "text" in one:
        return {"link": None, "text": one["text"] or one["iri"], "is_text": one["text"] is not None}
    return {
        "link": asked.link("memories", one["iri"]),
        "how": str(one.get("how") or one.get("kind") or "").replace("_", " "),
        "text": one["summary"] or (REDACTED if one.get("status") else one["iri"]),
        "status": one.get("status"),
        "reason": one.get("reason"),
    }


def _possible(status: str) -> tuple[str, ...]:
    return ("undo",) if status in ENDED else ("supersede", "invalidate", "confirm")


def act(asked: Asked, form: Mapping[str, str], id: str) -> str:  # noqa: A002 - the name of the part of the path
    """Correct the memory as *form* says, and return the page of what took its place."""
    way, reason = form["act"], form.get("reason", "").strip()
    if not reason:
        raise InvalidRequest("a correction has a reason", hint="say why, so that those who come after can follow")
    text = form.get("summary", "").strip()
    if way == "supersede" and not text:
        raise InvalidRequest("there is no text to supersede it by", hint="write what holds instead")
    item = asked.memory.reader.resolve(asked.project, id)
    ways: dict[str, Any] = {"supersede": text} if way == "supersede" else {way: True}
    try:
        receipt = asked.site.writer.correct(asked.project, item, reason=reason, **ways)
    except JidomemError as error:
        raise (error if way == "undo" else refusals.explained(asked, error, item)) from error
    return asked.link("memories", item if way == "invalidate" else receipt.iri, done=way)


def turtle_of(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return what is said of one memory as Turtle."""
    return wire.document(turtle(_triples(site, project, id)).encode(), "text/turtle")


def linked_of(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return what is said of one memory as JSON-LD."""
    return wire.document(written(_triples(site, project, id), "jsonld", {}), "application/ld+json")


def _triples(site: Site, project: str, name: str) -> list[Triple]:
    asked = Asked.of(site, project, wire.arguments(AS_OF))
    item = asked.memory.reader.resolve(project, name, as_of=asked.as_of)
    return asked.memory.reader.describe(project, item, **asked.moment)


MEMORY = Screen(
    "memories/{id}",
    "memory.html",
    show,
    takes=("done", "whole"),
    act=act,
    acts=tuple(ACTS),
    fields=("reason", "summary"),
)
