"""An agent and the memory in its state: any object with a mapping `state` will do; a change gives a new agent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, Unpack, cast

from jidomem.errors import InvalidRequest
from jidomem.frozen import FrozenDict
from jidomem.spaces.container import Change, refuse_stale
from jidomem.spaces.memory import Memory
from jidomem.spaces.names import MEMORY_KEY


class HasState(Protocol):
    """What an agent is here: an object whose `state` is a mapping."""

    @property
    def state(self) -> Mapping[str, Any]:
        """Return what the agent carries from one step to the next."""


A = TypeVar("A", bound=HasState)
_NOTHING = Memory(id="mem_nothing", created_at=0)


@dataclass(frozen=True, slots=True)
class Agent:
    """The least an agent can be, for users who have none of their own."""

    id: str = "agent"
    state: Mapping[str, Any] = field(default_factory=dict)


def get(agent: HasState, default: Any = None) -> Any:
    """Return the memory of *agent*, or *default* if it has none; raise `InvalidRequest` for what is no memory."""
    memory = _state(agent).get(MEMORY_KEY)
    if memory is None:
        return default
    if not isinstance(memory, Memory):
        raise InvalidRequest(
            f"state[{MEMORY_KEY!r}] holds a {type(memory).__name__}, not a Memory",
            hint="put one there: put(agent, Memory.from_dict(kept)) for one kept as JSON",
        )
    return memory


def put(agent: A, memory: Memory, *, expected_rev: int | None = None) -> A:
    """Return the agent with *memory* as its memory; raise `InvalidRequest` for what is none, `RevisionConflict`."""
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
    """Return the agent with a memory: the one it has, whatever the options, else a new one with its built-in spaces."""
    if has_memory(agent):
        return agent
    return put(agent, Memory.new(id=id, metadata=metadata, now=now, new_id=new_id))


def has_memory(agent: HasState) -> bool:
    """Return whether *agent* has a memory."""
    return get(agent) is not None


def held(agent: HasState) -> Memory:
    """Return the memory of *agent* for reading, an empty one if it has none."""
    return cast(Memory, get(agent, _NOTHING))


def changed(agent: A, move: Callable[[Memory], Memory], **change: Unpack[Change]) -> A:
    """Return the agent with `move(memory)` as its memory, made first if it has none; itself if nothing moved."""
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
            f"an agent has a mapping named state, and this {type(agent).__name__} has not",
            hint="use jidomem.spaces.Agent(state={...}), or give yours one",
        )
    return state


def _with_memory(state: Mapping[str, Any], memory: Memory) -> Mapping[str, Any]:
    """Return a copy of *state*, of its own kind, in which nothing but the memory is another."""
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
    """Return a copy of *agent*, of its own class, with that state."""
    if callable(model_copy := getattr(agent, "model_copy", None)):  # pydantic
        return cast(A, model_copy(update={"state": state}))
    if isinstance(agent, tuple) and callable(replaced := getattr(agent, "_replace", None)):  # a named tuple
        return cast(A, replaced(state=state))
    copied = copy.copy(agent)
    try:
        object.__setattr__(copied, "state", state)  # a frozen dataclass too is a new one here
    except AttributeError:
        raise InvalidRequest(
            f"the state of a {type(agent).__name__} cannot be set on a copy of it",
            hint="make state a plain attribute or field of it",
        ) from None
    return copied
