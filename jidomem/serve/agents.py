"""The routes about agents: conversations, entries, work sessions and working memory.

Each agent reaches its own working memory only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from flask import Response, request

from jidomem.errors import STOPPING, InvalidRequest, JidomemError, NotFound
from jidomem.records.entry import Entry, WriteRequest, tool_uses
from jidomem.records.recall import RecallRequest
from jidomem.runtime.agent_memory import AgentMemory
from jidomem.serve import wire
from jidomem.serve.server_state import RequestContext

RECORDING = {"prompt": str, "answer": str, "asked_by": str, "answered_by": str, "tools": list, "timestamp": str}


def show_conversation(site: RequestContext, project: str, session: str) -> Response:
    """Return the turns of a conversation in order, or only the `last` ones."""
    given = wire.arguments("last", "as_of", "min_position")
    last = wire.integer(given, "last")
    site.memory.catch_up(project)
    turns = site.memory.conversation(session, project).turns(last, as_of=given.get("as_of"))
    return wire.answer({"rows": [turn.to_dict() for turn in turns], "cursor": None})


def record(site: RequestContext, project: str, session: str) -> Response:
    """Record the next turn of a conversation, and return it; a retry with its key returns the stored one."""
    wire.arguments()
    values = wire.json_object(RECORDING)
    conversation = site.memory.conversation(session, project, writer=site.writer)
    values |= {"tools": tool_uses(values.get("tools", ())), "idempotency_key": wire.idempotency_key()}
    return wire.answer(conversation.record(**values).to_dict(), 201)


#: The arguments of recall besides the request, with their types.
NARROWED_BY = {
    "include_sessions": "With the scope agent also what is of any session.",
    "since": "Only entries since then.",
    "until": "Only entries before.",
    "budget_tokens": "How long all texts may be; a token is counted for every three bytes.",
    "explain": "Also the parts of each score and their reasons.",
}
_FLAGS, _MOMENT_PARAMETERS = ("include_sessions", "explain"), ("as_of", "since", "until")
_WRITING = ("entry", "metadata")
_IDS = 'send {"ids": ["mem_..."]}: the ids of the entries to withdraw'
_AN_ENTRY = 'send {"entry": {"agent_id": "planner", "content": "..."}}, or an array of these'


def write(site: RequestContext, project: str) -> Response:
    """Store an entry, or several; return the stored entry, or the outcome of each."""
    wire.arguments()
    values = wire.json_body()
    if isinstance(values, list):
        return _each(site, project, values)
    entry = site.memory.entry_store(project, writer=site.writer).write(_write_request(site, values))
    return wire.answer(entry.to_dict(), 201)


def recall(site: RequestContext, project: str) -> Response:
    """Return the entries of an agent within the scope, those that match the query first."""
    given = wire.arguments(*_FLAGS, *_MOMENT_PARAMETERS, "budget_tokens", "min_position")
    opts: dict[str, Any] = {name: wire.flag(given, name) for name in _FLAGS}
    opts |= {name: given[name] for name in _MOMENT_PARAMETERS if name in given}
    opts |= {"budget_tokens": wire.integer(given, "budget_tokens")} if "budget_tokens" in given else {}
    values = wire.json_body()
    if not isinstance(values, dict):
        raise InvalidRequest("the body is not a JSON object", hint='send {"agent_id": "planner", "query": "..."}')
    if misplaced := sorted(values.keys() & NARROWED_BY):
        hint = f"give it in the address: {request.path}?{misplaced[0]}=..."
        raise InvalidRequest(f"{misplaced[0]} is no member of the body, but a parameter", hint=hint)
    recall_request = RecallRequest.from_input(_owned(site, values))
    site.memory.catch_up(project)
    return wire.answer(site.memory.entry_store(project).recall(recall_request, opts).to_dict())


def remove(site: RequestContext, project: str) -> Response:
    """Withdraw the entries of some ids, all or none; return their number."""
    wire.arguments()
    values = wire.json_body()
    ids = values.get("ids") if isinstance(values, dict) else None
    if not isinstance(ids, list) or not ids or not all(isinstance(each, str) and each for each in ids):
        raise InvalidRequest("there are no ids of entries", hint=_IDS)
    for name in values:
        if name != "ids":
            raise wire.unknown(f"{request.path} takes no member {name!r:.200}", name, ("ids",))
    site.memory.catch_up(project)
    return wire.answer({"removed": site.memory.entry_store(project, writer=site.writer).remove(ids)})


def _each(site: RequestContext, project: str, values: list[Any]) -> Response:
    """Return the outcome of each entry of an array, in order; raise the error that stopped all of them."""
    requests = [_read(site, each) for each in values]
    store = site.memory.entry_store(project, writer=site.writer)
    written = iter(store.write_many(each for each in requests if isinstance(each, WriteRequest)))
    outcomes = [next(written) if isinstance(each, WriteRequest) else each for each in requests]
    refused = {place: site.visible_error(each) for place, each in enumerate(outcomes) if isinstance(each, JidomemError)}
    if outcomes and all(place in refused and refused[place].code in STOPPING for place in range(len(outcomes))):
        raise refused[0]
    for place, refusal in refused.items():
        if refusal.code not in STOPPING:  # an error that stops all entries has no position
            refusal.position = place
            site.operation.measures.refused(refusal.code, _by(site, values[place]), project)
    return wire.answer(
        [wire.outcome(refused.get(place, outcome), project) for place, outcome in enumerate(outcomes)],
        200 if refused or not outcomes else 201,
    )


def _by(site: RequestContext, values: Any) -> str | None:
    """Return the author of a refused entry: the caller, else the agent of the entry."""
    if site.caller is not None:
        return site.caller.agent
    entry = values.get("entry") if isinstance(values, dict) else None
    agent = entry.get("agent_id") if isinstance(entry, dict) else None
    return agent if isinstance(agent, str) else None


def _read(site: RequestContext, values: Any) -> WriteRequest | JidomemError:
    try:
        return _write_request(site, values)
    except JidomemError as error:
        return error


def _write_request(site: RequestContext, values: Any) -> WriteRequest:
    """Parse a request to write an entry; raises InvalidRequest, and PolicyDenied for an entry of another agent."""
    if not isinstance(values, dict) or not isinstance(values.get("entry"), dict):
        raise InvalidRequest("there is no entry", hint=_AN_ENTRY)
    for name in values:
        if name not in _WRITING:
            raise wire.unknown(f"{request.path} takes no member {name!r:.200}", name, _WRITING)
    entry = _owned(site, values["entry"])
    if isinstance(agent := entry.get("agent_id"), str):
        site.check_own(agent, "write entries of", "agent_id")
    return WriteRequest(Entry.new(entry), values.get("metadata", {}))


def _owned(site: RequestContext, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *values* with the caller as default agent."""
    if site.caller is None or values.get("agent_id") is not None:
        return values
    return {**values, "agent_id": site.caller.agent}


OPENING = {"name": str, "agent": str, "continues": str}
MOVING = {"status": str, "phase": str, "agent": str}


def start(site: RequestContext, project: str) -> Response:
    """Start a work session, and return its receipt."""
    wire.arguments()
    values = wire.json_object(OPENING)
    if "name" not in values:
        raise InvalidRequest("the session needs a name", hint='send {"name": "s-42"}')
    name = values.pop("name")
    receipt = site.writer.start_session(project, name, **values)
    return wire.answer(receipt.to_dict(), 201, Location=f"/projects/{project}/sessions/{quote(name, safe='')}")


def move(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Give a session a status, a phase, or both; return the receipt of the event."""
    wire.arguments()
    receipt = site.writer.move_session(project, id, **wire.json_object(MOVING))
    return wire.answer(receipt.to_dict())


CHANGING = {"changes": list, "expected_rev": int}


def listed(site: RequestContext, project: str) -> Response:
    """Return the agents with working memory that the caller may read."""
    wire.arguments()
    site.memory.catch_up(project)
    rows = [row for row in site.memory.agents(project) if site.is_own_or_curated(row["agent"])]
    return wire.answer({"rows": rows, "cursor": None})


def show_working_memory(site: RequestContext, project: str, agent: str) -> Response:
    """Return the working memory of an agent; raise NotFound if it has none."""
    wire.arguments()
    working = _agent_memory(site, project, agent)
    memory = working.get()
    if memory is None:
        raise NotFound(f"{working.agent!r} has no working memory in {project}", hint="create it: PATCH this address")
    return wire.answer(memory.to_dict())


def change(site: RequestContext, project: str, agent: str) -> Response:
    """Apply changes to the working memory of an agent, all or none; return the result."""
    wire.arguments()
    values = wire.json_object(CHANGING)
    if "changes" not in values:
        raise InvalidRequest("there are no changes", hint='send {"changes": [{"do": "tasks_add", "text": "..."}]}')
    working = _agent_memory(site, project, agent)
    return wire.answer(working.apply(values["changes"], expected_rev=values.get("expected_rev")).to_dict())


def forget(site: RequestContext, project: str, agent: str) -> Response:
    """Delete the working memory of an agent; return whether there was one."""
    wire.arguments()
    return wire.answer({"forgotten": _agent_memory(site, project, agent).forget()})


def _agent_memory(site: RequestContext, project: str, agent: str) -> AgentMemory:
    """Return the working memory of *agent*; raises PolicyDenied for another agent, NotFound for an unknown project."""
    site.check_own(agent, "use the working memory of", "the agent of the address")
    site.memory.catch_up(project)
    return site.memory.agent(agent, project=project)
