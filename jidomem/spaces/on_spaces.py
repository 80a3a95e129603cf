"""What an agent does with the spaces of its memory; each change gives a new agent, and its first one a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack, cast

from jidomem.spaces.agent import A, HasState, changed, get, held
from jidomem.spaces.container import Change, SpaceChange
from jidomem.spaces.limits import Limits
from jidomem.spaces.value import Space, Spaces


def spaces(agent: HasState) -> Spaces:
    """Return all spaces of the agent's memory by name; none if it has no memory."""
    memory = get(agent)
    return Spaces() if memory is None else cast(Spaces, memory.spaces)


def space(agent: HasState, name: str) -> Space | None:
    """Return the space of that name, or None."""
    return spaces(agent).get(name)


def has_space(agent: HasState, name: str) -> bool:
    """Return whether the agent's memory has a space of that name."""
    return name in spaces(agent)


def get_in_space(agent: HasState, name: str, key: Any, default: Any = None, *, now: int | None = None) -> Any:
    """Return what a map space holds under *key*; *default* if nothing, if its time is up or without the space."""
    return held(agent).get_in_space(name, key, default, now=now)


def space_put(agent: A, name: str, space: Space, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *space*, as it is, under *name*."""
    return changed(agent, lambda memory: memory.space_put(name, space, **change), now=change.get("now"))


def space_update(agent: A, name: str, fun: Callable[[Space], Space], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with `fun(space)` under *name*, one revision after the space that was there."""
    return changed(agent, lambda memory: memory.space_update(name, fun, **change), now=change.get("now"))


def space_delete(agent: A, name: str, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without that custom space; tasks and world cannot go."""
    return changed(agent, lambda memory: memory.space_delete(name, **change), now=change.get("now"))


def ensure_space(agent: A, name: str, default_data: Any, **change: Unpack[Change]) -> A:
    """Return the agent with a space of that name: the one it has, else a new one of *default_data*."""
    return changed(agent, lambda memory: memory.ensure_space(name, default_data, **change), now=change.get("now"))


def put_in_space(
    agent: A, name: str, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]
) -> A:
    """Return the agent with *value* under *key* of a map space, for *ttl_ms* milliseconds if that is given."""
    return changed(
        agent, lambda memory: memory.put_in_space(name, key, value, ttl_ms=ttl_ms, **change), now=change.get("now")
    )


def delete_from_space(agent: A, name: str, key: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without *key* in a map space; itself if it is not there."""
    return changed(agent, lambda memory: memory.delete_from_space(name, key, **change), now=change.get("now"))


def update_space_data(
    agent: A, name: str, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]
) -> A:
    """Return the agent with `fun(data)`, a mapping, as all that a map space holds."""
    return changed(agent, lambda memory: memory.update_space_data(name, fun, **change), now=change.get("now"))


def append_to_space(agent: A, name: str, item: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *item* at the end of a list space."""
    return changed(agent, lambda memory: memory.append_to_space(name, item, **change), now=change.get("now"))


def prepend_to_space(agent: A, name: str, item: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *item* at the front of a list space."""
    return changed(agent, lambda memory: memory.prepend_to_space(name, item, **change), now=change.get("now"))


def insert_in_space(agent: A, name: str, index: int, item: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *item* at *index* of a list space: 0 is the front, beyond the end is the end."""
    return changed(agent, lambda memory: memory.insert_in_space(name, index, item, **change), now=change.get("now"))


def remove_from_space(agent: A, name: str, item_id: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without the item of that id in a list space; raise `NotFound` if there is none."""
    return changed(agent, lambda memory: memory.remove_from_space(name, item_id, **change), now=change.get("now"))


def update_in_space(agent: A, name: str, item_id: Any, fun: Callable[[Any], Any], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with `fun(item)` in the place of that item; raise `NotFound` if there is none."""
    return changed(agent, lambda memory: memory.update_in_space(name, item_id, fun, **change), now=change.get("now"))


def limited(agent: A, limits: Limits | None, **change: Unpack[Change]) -> A:
    """Return the agent with its memory held to *limits* from now on; with None to none."""
    return changed(agent, lambda memory: memory.limited(limits, **change), now=change.get("now"))


def expire(agent: A, **change: Unpack[Change]) -> A:
    """Return the agent without the keys in its memory whose time is up."""
    return changed(agent, lambda memory: memory.expire(**change), now=change.get("now"))


def apply_action_result(agent: A, result: Mapping[str, Any], **change: Unpack[Change]) -> A:
    """Return the agent with what an action gave back merged in: `{"world": {...}, "tasks": [...]}`."""
    return changed(agent, lambda memory: memory.apply_action_result(result, **change), now=change.get("now"))


put_space = space_put
update_space = space_update
delete_space = space_delete
