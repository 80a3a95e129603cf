"""Entries over HTTP, by the store contract: they are kept, those of an agent are recalled, and they are taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, request

from jidomem.entry import Entry, WriteRequest
from jidomem.errors import STOPPING, InvalidRequest, JidomemError
from jidomem.intent import parse_json
from jidomem.recall import RecallRequest
from jidomem.serve import wire
from jidomem.serve.positions import reach
from jidomem.serve.site import Site

#: What a recall takes beside the request, and what each of it is.
NARROWED_BY = {
    "include_sessions": "With the scope agent also what is of any session.",
    "since": "Only what was kept from then on.",
    "until": "Only what was kept before.",
    "budget_tokens": "How long all texts may be; a token is counted for every three bytes.",
    "explain": "Also the parts of each score.",
}
_FLAGS, _MOMENTS = ("include_sessions", "explain"), ("as_of", "since", "until")
_WRITING = ("entry", "metadata")
_IDS = 'send {"ids": ["mem_..."]}: the id of each entry that is taken back'
_AN_ENTRY = 'send {"entry": {"agent_id": "planner", "content": "..."}}, or an array of these'


def write(site: Site, project: str) -> Response:
    """Return the entry as it was kept, or what came of each of several."""
    wire.arguments()
    wire.content_type(wire.JSON)
    values = parse_json(wire.body())
    if isinstance(values, list):
        return _each(site, project, values)
    kept = site.memory.entry_store(project, writer=site.writer).write(_asked(site, values))
    return wire.answer(kept.to_dict(), 201)


def recall(site: Site, project: str) -> Response:
    """Return the entries of an agent within the scope, those that answer the query first."""
    given = wire.arguments(*_FLAGS, *_MOMENTS, "budget_tokens", "min_position")
    opts: dict[str, Any] = {name: wire.flag(given, name) for name in _FLAGS}
    opts |= {name: given[name] for name in _MOMENTS if name in given}
    opts |= {"budget_tokens": wire.whole(given, "budget_tokens")} if "budget_tokens" in given else {}
    wire.content_type(wire.JSON)
    values = parse_json(wire.body())
    if not isinstance(values, dict):
        raise InvalidRequest("the body is no JSON object", hint='send {"agent_id": "planner", "query": "..."}')
    asked = RecallRequest.from_input(_owned(site, values))
    reach(site, project, given)
    site.memory.catch_up(project)
    return wire.answer(site.memory.entry_store(project).recall(asked, opts).to_dict())


def remove(site: Site, project: str) -> Response:
    """Return under how many of some ids something was kept, which is taken back, all of it or nothing."""
    wire.arguments()
    wire.content_type(wire.JSON)
    values = parse_json(wire.body())
    ids = values.get("ids") if isinstance(values, dict) else None
    if not isinstance(ids, list) or not ids or not all(isinstance(each, str) and each for each in ids):
        raise InvalidRequest("there are no ids of entries", hint=_IDS)
    for name in values:
        if name != "ids":
            raise wire.unknown(f"{request.path} takes no member {name!r}", name, ("ids",))
    site.memory.catch_up(project)
    return wire.answer({"removed": site.memory.entry_store(project, writer=site.writer).remove(ids)})


def _each(site: Site, project: str, values: list[Any]) -> Response:
    """Return what came of each entry of an array, in order; raises the error that stopped them all."""
    asked = [_read(site, each) for each in values]
    store = site.memory.entry_store(project, writer=site.writer)
    written = iter(store.write_many(each for each in asked if isinstance(each, WriteRequest)))
    outcomes = [next(written) if isinstance(each, WriteRequest) else each for each in asked]
    refused = {place: each for place, each in enumerate(outcomes) if isinstance(each, JidomemError)}
    if outcomes and all(place in refused and refused[place].code in STOPPING for place in range(len(outcomes))):
        raise refused[0]
    for place, refusal in refused.items():
        if refusal.code not in STOPPING:  # one error, of all that it stopped, has no place
            refusal.position = place
            site.operation.measures.refused(refusal.code, _by(site, values[place]), project)
    return wire.answer(
        [wire.outcome(outcome, project) for outcome in outcomes], 200 if refused or not outcomes else 201
    )


def _by(site: Site, values: Any) -> str | None:
    """Return who wrote what was refused: who asks, else the agent of the entry."""
    if site.caller is not None:
        return site.caller.agent
    entry = values.get("entry") if isinstance(values, dict) else None
    agent = entry.get("agent_id") if isinstance(entry, dict) else None
    return agent if isinstance(agent, str) else None


def _read(site: Site, values: Any) -> WriteRequest | JidomemError:
    try:
        return _asked(site, values)
    except JidomemError as error:
        return error


def _asked(site: Site, values: Any) -> WriteRequest:
    """Return the request to write that *values* are; raises InvalidRequest, PolicyDenied for another agent's entry."""
    if not isinstance(values, dict) or not isinstance(values.get("entry"), dict):
        raise InvalidRequest("there is no entry", hint=_AN_ENTRY)
    for name in values:
        if name not in _WRITING:
            raise wire.unknown(f"{request.path} takes no member {name!r}", name, _WRITING)
    return WriteRequest(Entry.new(_owned(site, values["entry"])), values.get("metadata", {}))


def _owned(site: Site, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *values* with the agent who asks where they name none; raises PolicyDenied for another agent's."""
    if site.caller is None:
        return values
    agent = values.get("agent_id")
    if isinstance(agent, str):
        site.check_own(agent)
    return {**values, "agent_id": site.caller.agent} if agent is None else values
