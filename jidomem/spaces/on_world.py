"""What an agent does with its world: keys and values of what it knows now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from jidomem.spaces.agent import A, HasState, changed, held
from jidomem.spaces.container import SpaceChange


def world_get(agent: HasState, key: Any, default: Any = None, *, now: int | None = None) -> Any:
    """Return what the agent's world holds under *key*, or *default*."""
    return held(agent).world_get(key, default, now=now)


def world(agent: HasState, *, now: int | None = None) -> Mapping[Any, Any]:
    """Return all the agent's world holds; nothing if it has no memory."""
    return held(agent).world(now=now)


def world_put(agent: A, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *value* under *key* of the world, for *ttl_ms* milliseconds if that is given."""
    return changed(agent, lambda memory: memory.world_put(key, value, ttl_ms=ttl_ms, **change), now=change.get("now"))


def world_delete(agent: A, key: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without *key* in the world."""
    return changed(agent, lambda memory: memory.world_delete(key, **change), now=change.get("now"))


def world_update(agent: A, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with `fun(world)`, a mapping, as the world."""
    return changed(agent, lambda memory: memory.world_update(fun, **change), now=change.get("now"))
