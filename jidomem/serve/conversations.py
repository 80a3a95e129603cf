"""Conversations over HTTP: turns are recorded, and read back in their order."""

from __future__ import annotations

from flask import Response

from jidomem.serve import wire
from jidomem.serve.positions import reach
from jidomem.serve.site import Site
from jidomem.turn import uses

RECORDING = {"prompt": str, "answer": str, "asked_by": str, "answered_by": str, "tools": list, "timestamp": str}


def show(site: Site, project: str, session: str) -> Response:
    """Return the turns of a conversation in their order, the `last` so many where that is given."""
    asked = wire.arguments("last", "as_of", "min_position")
    reach(site, project, asked)
    last = wire.whole(asked, "last")
    site.memory.catch_up(project)
    turns = site.memory.conversation(session, project).turns(last, as_of=asked.get("as_of"))
    return wire.answer({"rows": [turn.to_dict() for turn in turns], "cursor": None})


def record(site: Site, project: str, session: str) -> Response:
    """Return the turn that was recorded, as the next one."""
    wire.arguments()
    values = wire.json_object(RECORDING)
    said = site.memory.conversation(session, project, writer=site.writer)
    return wire.answer(said.record(**{**values, "tools": uses(values.get("tools", ()))}).to_dict(), 201)
