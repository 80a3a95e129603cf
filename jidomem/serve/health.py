"""Whether the server lives, and whether it can do its work."""

from __future__ import annotations

from flask import Response

from jidomem.serve import wire
from jidomem.serve.site import Site


def alive(site: Site) -> Response:
    """Return that the server answers."""
    wire.arguments()
    return wire.answer({"status": "ok"})


def ready(site: Site) -> Response:
    """Return the version each project can be read at, once the index is level with the journal."""
    wire.arguments()
    memory = site.memory
    versions = {name: str(memory.catch_up(name)) for name in site.projects()}
    damaged = {name: [error.to_dict() for error in found] for name in versions if (found := memory.damage(name))}
    return wire.answer({"status": "damaged" if damaged else "ok", "versions": versions, "damage": damaged})
