"""Whether the server lives, and whether it can do its work."""

from __future__ import annotations

from typing import Any

from flask import Response

from jidomem.errors import JidomemError
from jidomem.serve import wire
from jidomem.serve.site import Site
from jidomem.serve.standing import standing

#: Seconds that an index which is behind gets to be level before it is told to be.
PATIENCE = 1.0


def alive(site: Site) -> Response:
    """Return that the server answers."""
    wire.arguments()
    return wire.answer({"status": "ok"})


def ready(site: Site) -> Response:
    """Return the version each project can be read at; 503 while one is behind or damaged, or rules do not do.

    Who has no token where one is needed is told whether that is so, and nothing else.
    """
    wire.arguments()
    if site.caller is None and _is_needed(site):
        return _said({"status": "ok" if site.operation.readiness.look(lambda: _is_ready(site)) else "not ready"})
    return _said(_told(site))


def _said(told: dict[str, Any]) -> Response:
    return wire.answer(told) if told["status"] == "ok" else wire.answer(told, 503, Retry_After="1")


def _told(site: Site) -> dict[str, Any]:
    """Return how the projects of who asks stand, and what is in the way."""
    memory = site.memory
    site.operation.leveller.wait(memory, PATIENCE)
    found = [standing(memory, name) for name in site.projects()]
    behind = {each.project: each.to_dict() for each in found if each.behind}
    damaged = {name: [error.to_dict() for error in each] for name in site.projects() if (each := memory.damage(name))}
    problem = memory.in_force.problem
    return {
        "status": "behind" if behind else "damaged" if damaged else "rules" if problem else "ok",
        "versions": {each.project: str(each.index) for each in found},
        "behind": behind,
        "damage": damaged,
        **({"rules": problem.to_dict()} if problem else {}),
    }


def _is_needed(site: Site) -> bool:
    """Return whether a token is needed, as it is where that cannot be found out."""
    try:
        return site.keyring is not None and site.keyring.asks()
    except JidomemError:
        return True


def _is_ready(site: Site) -> bool:
    try:
        return bool(_told(site)["status"] == "ok")
    except JidomemError:
        return False
