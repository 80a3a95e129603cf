"""Whether the server lives, and whether it can do its work."""

from __future__ import annotations

from flask import Response

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
    """Return the version each project can be read at; 503 while one is behind or damaged, or rules do not do."""
    wire.arguments()
    memory = site.memory
    site.operation.leveller.wait(memory, PATIENCE)
    found = [standing(memory, name) for name in site.projects()]
    behind = {each.project: each.to_dict() for each in found if each.behind}
    damaged = {name: [error.to_dict() for error in each] for name in site.projects() if (each := memory.damage(name))}
    problem = memory.in_force.problem
    status = "behind" if behind else "damaged" if damaged else "rules" if problem else "ok"
    told = {
        "status": status,
        "versions": {each.project: str(each.index) for each in found},
        "behind": behind,
        "damage": damaged,
        **({"rules": problem.to_dict()} if problem else {}),
    }
    return wire.answer(told) if status == "ok" else wire.answer(told, 503, Retry_After="1")
