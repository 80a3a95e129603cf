"""Work sessions over HTTP: opened, and moved to a status or a phase."""

from __future__ import annotations

from urllib.parse import quote

from flask import Response

from jidomem.errors import InvalidRequest
from jidomem.serve import wire
from jidomem.serve.site import Site

OPENING = {"name": str, "agent": str, "continues": str}
MOVING = {"status": str, "phase": str, "agent": str}


def start(site: Site, project: str) -> Response:
    """Return the receipt of a new work session."""
    wire.arguments()
    values = wire.json_object(OPENING)
    if "name" not in values:
        raise InvalidRequest("a session has a name", hint='send {"name": "s-42"}')
    name = values.pop("name")
    receipt = site.writer.start_session(project, name, **values)
    return wire.answer(receipt.to_dict(), 201, Location=f"/projects/{project}/sessions/{quote(name, safe='')}")


def move(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return the receipt of an event that gives a session a status, a phase, or both."""
    wire.arguments()
    receipt = site.writer.move_session(project, id, **wire.json_object(MOVING))
    return wire.answer(receipt.to_dict())
