"""The working memories of agents over HTTP: read, changed as data, forgotten; each agent reaches its own."""

from __future__ import annotations

from flask import Response

from jidomem.errors import InvalidRequest, NotFound
from jidomem.runtime.agent import AgentMemory
from jidomem.serve import wire
from jidomem.serve.site import Site

CHANGING = {"changes": list, "expected_rev": int}


def listed(site: Site, project: str) -> Response:
    """Return the agents that hold something, of those that who asks may read."""
    wire.arguments()
    site.memory.catch_up(project)
    rows = [row for row in site.memory.agents(project) if site.is_theirs(row["agent"])]
    return wire.answer({"rows": rows, "cursor": None})


def show(site: Site, project: str, agent: str) -> Response:
    """Return what an agent holds; raises NotFound where it never held anything."""
    wire.arguments()
    kept = _of(site, project, agent)
    memory = kept.get()
    if memory is None:
        raise NotFound(
            f"{kept.agent!r} holds nothing in {project}", hint="the first change makes its memory: PATCH this address"
        )
    return wire.answer(memory.to_dict())


def change(site: Site, project: str, agent: str) -> Response:
    """Return what an agent holds after changes, all of them or none."""
    wire.arguments()
    values = wire.json_object(CHANGING)
    if "changes" not in values:
        raise InvalidRequest("there are no changes", hint='send {"changes": [{"do": "tasks_add", "text": "..."}]}')
    kept = _of(site, project, agent)
    return wire.answer(kept.apply(values["changes"], expected_rev=values.get("expected_rev")).to_dict())


def forget(site: Site, project: str, agent: str) -> Response:
    """Let an agent hold nothing any more; say whether it held anything."""
    wire.arguments()
    return wire.answer({"forgotten": _of(site, project, agent).forget()})


def _of(site: Site, project: str, agent: str) -> AgentMemory:
    """Return the working memory of *agent*; raises PolicyDenied for another agent's, NotFound for no project."""
    site.check_own(agent)
    site.memory.catch_up(project)
    return site.memory.agent(agent, project=project)
