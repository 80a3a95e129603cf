"""The working memory of an agent: functions on any object with a mapping `state`; a change returns a new agent.

They cover the named spaces of the memory, the tasks of the agent, most urgent first, and its world: the keys and values
it knows at present.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, Unpack, cast

from jidomem.base.json_values import FrozenDict
from jidomem.errors import InvalidRequest
from jidomem.working.container import MEMORY_KEY, ChangeOptions, Limits, Space, SpaceChange, Spaces, refuse_stale
from jidomem.working.memory import Memory, NewTask


class HasState(Protocol):
    """An agent: an object whose `state` is a mapping."""

    @property
    def state(self) -> Mapping[str, Any]:
        """Return the state of the agent, carried from step to step."""


A = TypeVar("A", bound=HasState)
_NOTHING = Memory(id="mem_nothing", created_at=0)


@dataclass(frozen=True, slots=True)
class Agent:
    """A minimal agent, for callers without an agent class of their own."""

    id: str = "agent"
    state: Mapping[str, Any] = field(default_factory=dict)


def get(agent: HasState, default: Any = None) -> Any:
    """Return the memory of *agent*, or *default* if it has none; raise `InvalidRequest` if it is not a Memory."""
    memory = _state(agent).get(MEMORY_KEY)
    if memory is None:
        return default
    if not isinstance(memory, Memory):
        raise InvalidRequest(
            f"state[{MEMORY_KEY!r}] is a {type(memory).__name__}, not a Memory",
            hint="put one there: put(agent, Memory.from_dict(stored)) for one stored as JSON",
        )
    return memory


def put(agent: A, memory: Memory, *, expected_rev: int | None = None) -> A:
    """Return the agent with *memory*; raise `InvalidRequest` if it is not a Memory, and `RevisionConflict`."""
    if not isinstance(memory, Memory):
        raise InvalidRequest(
            f"the memory of an agent is a Memory, not {memory!r:.200}",
            hint="give one: Memory(), or get(agent) of another agent",
        )
    _refuse_stale(agent, expected_rev)
    return _with_state(agent, _with_memory(_state(agent), memory))


def update(agent: A, fun: Callable[[Memory | None], Memory], *, expected_rev: int | None = None) -> A:
    """Return the agent with `fun(memory)` as its memory; *fun* gets None if it has none."""
    _refuse_stale(agent, expected_rev)
    return put(agent, fun(get(agent)))


def ensure(
    agent: A,
    *,
    id: str | None = None,  # noqa: A002
    metadata: Mapping[str, Any] | None = None,
    now: int | None = None,
    new_id: Callable[[], str] | None = None,
) -> A:
    """Return the agent with a memory: its own, regardless of the options, else a new one with the built-in spaces."""
    if has_memory(agent):
        return agent
    return put(agent, Memory.new(id=id, metadata=metadata, now=now, new_id=new_id))


def has_memory(agent: HasState) -> bool:
    """Return whether *agent* has a memory."""
    return get(agent) is not None


def memory_of(agent: HasState) -> Memory:
    """Return the memory of *agent* for reading, an empty one if it has none."""
    return cast(Memory, get(agent, _NOTHING))


def changed(agent: A, move: Callable[[Memory], Memory], **change: Unpack[ChangeOptions]) -> A:
    """Return the agent with `move(memory)`, on a new memory if it has none; the same agent if nothing changed."""
    before = get(agent)
    after = move(before if before is not None else Memory.new(now=change.get("now")))
    return agent if after is before else put(agent, after)


def _refuse_stale(agent: HasState, expected_rev: int | None) -> None:
    if expected_rev is not None:
        memory = get(agent)
        refuse_stale("the memory", expected_rev, None if memory is None else memory.rev)


def _state(agent: HasState) -> Mapping[str, Any]:
    state = getattr(agent, "state", None)
    if not isinstance(state, Mapping):
        raise InvalidRequest(
            f"an agent has a mapping named state, and this {type(agent).__name__} has none",
            hint="use jidomem.working.Agent(state={...}), or add one to your class",
        )
    return state


def _with_memory(state: Mapping[str, Any], memory: Memory) -> Mapping[str, Any]:
    if type(state) is dict:
        return {**state, MEMORY_KEY: memory}
    try:
        if not isinstance(state, MutableMapping) or isinstance(state, FrozenDict):
            return cast(Any, type(state))({**state, MEMORY_KEY: memory})  # type: ignore[no-any-return]
        copied = copy.copy(state)
        copied[MEMORY_KEY] = memory
        return copied
    except TypeError as error:
        raise InvalidRequest(
            f"a {type(state).__name__} as state cannot be copied with a memory in it: {error}", hint="use a dict"
        ) from error


def _with_state(agent: A, state: Mapping[str, Any]) -> A:
    if callable(model_copy := getattr(agent, "model_copy", None)):  # pydantic
        return cast(A, model_copy(update={"state": state}))
    if isinstance(agent, tuple) and callable(replaced := getattr(agent, "_replace", None)):  # a named tuple
        return cast(A, replaced(state=state))
    copied = copy.copy(agent)
    try:
        object.__setattr__(copied, "state", state)  # also for a frozen dataclass, since this is a new copy
    except AttributeError:
        raise InvalidRequest(
            f"the state of a {type(agent).__name__} cannot be set on a copy of it",
            hint="make state a plain attribute or field of it",
        ) from None
    return copied


def spaces(agent: HasState) -> Spaces:
    """Return all spaces of the memory by name; empty without a memory."""
    memory = get(agent)
    return Spaces() if memory is None else cast(Spaces, memory.spaces)


def space(agent: HasState, name: str) -> Space | None:
    """Return the space of that name, or None."""
    return spaces(agent).get(name)


def has_space(agent: HasState, name: str) -> bool:
    """Return whether the agent's memory has a space of that name."""
    return name in spaces(agent)


def get_in_space(agent: HasState, name: str, key: Any, default: Any = None, *, now: int | None = None) -> Any:
    """Return the value of *key* in a map space; *default* if value or space is missing, or the key has expired."""
    return memory_of(agent).get_in_space(name, key, default, now=now)


def space_put(agent: A, name: str, space: Space, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *space*, unchanged, under *name*."""
    return changed(agent, lambda memory: memory.space_put(name, space, **change), now=change.get("now"))


def space_update(agent: A, name: str, fun: Callable[[Space], Space], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with `fun(space)` under *name*, with the next revision."""
    return changed(agent, lambda memory: memory.space_update(name, fun, **change), now=change.get("now"))


def space_delete(agent: A, name: str, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without that custom space; tasks and world cannot be deleted."""
    return changed(agent, lambda memory: memory.space_delete(name, **change), now=change.get("now"))


def ensure_space(agent: A, name: str, default_data: Any, **change: Unpack[ChangeOptions]) -> A:
    """Return the agent with a space of that name: its own, else a new one with *default_data*."""
    return changed(agent, lambda memory: memory.ensure_space(name, default_data, **change), now=change.get("now"))


def put_in_space(
    agent: A, name: str, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]
) -> A:
    """Return the agent with *value* under *key* of a map space, which expires after *ttl_ms* milliseconds if given."""
    return changed(
        agent, lambda memory: memory.put_in_space(name, key, value, ttl_ms=ttl_ms, **change), now=change.get("now")
    )


def delete_from_space(agent: A, name: str, key: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without *key* in a map space; the same agent if there is no such key."""
    return changed(agent, lambda memory: memory.delete_from_space(name, key, **change), now=change.get("now"))


def update_space_data(
    agent: A, name: str, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]
) -> A:
    """Return the agent with `fun(data)`, a mapping, as the data of a map space."""
    return changed(agent, lambda memory: memory.update_space_data(name, fun, **change), now=change.get("now"))


def append_to_space(agent: A, name: str, item: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *item* at the end of a list space."""
    return changed(agent, lambda memory: memory.append_to_space(name, item, **change), now=change.get("now"))


def prepend_to_space(agent: A, name: str, item: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *item* at the front of a list space."""
    return changed(agent, lambda memory: memory.prepend_to_space(name, item, **change), now=change.get("now"))


def insert_in_space(agent: A, name: str, index: int, item: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *item* at *index* of a list space: 0 is the front, an index beyond the end appends."""
    return changed(agent, lambda memory: memory.insert_in_space(name, index, item, **change), now=change.get("now"))


def remove_from_space(agent: A, name: str, item_id: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without the item of that id in a list space; raise `NotFound` if there is none."""
    return changed(agent, lambda memory: memory.remove_from_space(name, item_id, **change), now=change.get("now"))


def update_in_space(agent: A, name: str, item_id: Any, fun: Callable[[Any], Any], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with `fun(item)` in place of that item; raise `NotFound` if there is none."""
    return changed(agent, lambda memory: memory.update_in_space(name, item_id, fun, **change), now=change.get("now"))


def limited(agent: A, limits: Limits | None, **change: Unpack[ChangeOptions]) -> A:
    """Return the agent with these *limits* for its memory; None removes them."""
    return changed(agent, lambda memory: memory.limited(limits, **change), now=change.get("now"))


def expire(agent: A, **change: Unpack[ChangeOptions]) -> A:
    """Return the agent without the expired keys of its memory."""
    return changed(agent, lambda memory: memory.expire(**change), now=change.get("now"))


def apply_action_result(agent: A, result: Mapping[str, Any], **change: Unpack[ChangeOptions]) -> A:
    """Return the agent with the result of an action merged in: `{"world": {...}, "tasks": [...]}`."""
    return changed(agent, lambda memory: memory.apply_action_result(result, **change), now=change.get("now"))


put_space = space_put
update_space = space_update
delete_space = space_delete


def tasks(agent: HasState) -> list[Any]:
    """Return all tasks of the agent in order, the next one first, including completed ones."""
    return memory_of(agent).tasks()


def tasks_open(agent: HasState) -> list[Any]:
    """Return the open tasks, in order."""
    return memory_of(agent).tasks_open()


def tasks_next(agent: HasState) -> Any:
    """Return the first open task, or None."""
    return memory_of(agent).tasks_next()


def tasks_add(agent: A, text: str, **change: Unpack[NewTask]) -> A:
    """Return the agent with a new task after all others; options: `id`, `status`, `new_id`."""
    return changed(agent, lambda memory: memory.tasks_add(text, **change), now=change.get("now"))


def tasks_insert(agent: A, index: int, text: str, **change: Unpack[NewTask]) -> A:
    """Return the agent with a new task at *index*, 0 being the next one; options as for `tasks_add`."""
    return changed(agent, lambda memory: memory.tasks_insert(index, text, **change), now=change.get("now"))


def tasks_complete(agent: A, task_id: str, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with that task completed, at the same position."""
    return changed(agent, lambda memory: memory.tasks_complete(task_id, **change), now=change.get("now"))


def tasks_remove(agent: A, task_id: str, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without that task."""
    return changed(agent, lambda memory: memory.tasks_remove(task_id, **change), now=change.get("now"))


def tasks_reorder(agent: A, task_ids: Sequence[str], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with those tasks first, in that order; the others follow in their present order."""
    return changed(agent, lambda memory: memory.tasks_reorder(task_ids, **change), now=change.get("now"))


def world_get(agent: HasState, key: Any, default: Any = None, *, now: int | None = None) -> Any:
    """Return the value of *key* in the agent's world, or *default*."""
    return memory_of(agent).world_get(key, default, now=now)


def world(agent: HasState, *, now: int | None = None) -> Mapping[Any, Any]:
    """Return the world of the agent; empty without a memory."""
    return memory_of(agent).world(now=now)


def world_put(agent: A, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with *value* under *key* of the world, which expires after *ttl_ms* milliseconds if given."""
    return changed(agent, lambda memory: memory.world_put(key, value, ttl_ms=ttl_ms, **change), now=change.get("now"))


def world_delete(agent: A, key: Any, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without *key* in the world."""
    return changed(agent, lambda memory: memory.world_delete(key, **change), now=change.get("now"))


def world_update(agent: A, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with `fun(world)`, a mapping, as the world."""
    return changed(agent, lambda memory: memory.world_update(fun, **change), now=change.get("now"))
