"""Plugins: what brings an agent spaces of its own and answers to signals; the memory itself is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from jidomem.directive import Directive, Signal
from jidomem.errors import InvalidRequest
from jidomem.spaces.agent import HasState, ensure, get, put
from jidomem.spaces.memory import Memory
from jidomem.spaces.names import MEMORY_KEY

A = TypeVar("A", bound=HasState)
#: What answers a signal: it gives the agent after it, with the directives it asks for next, if any.
Handler = Callable[[Any, Signal], Any]


class Plugin(Protocol):
    """What is mounted on an agent: its name tells it from others; what it keeps, it keeps in spaces named after it."""

    @property
    def name(self) -> str:
        """Return the name, which no other plugin of the agent has."""
        ...

    def mount(self, agent: A) -> tuple[A, Any]:
        """Return the agent with what the plugin needs in its memory, and the state of the plugin."""
        ...

    def routes(self) -> Mapping[str, Handler]:
        """Return what answers signals, by their type."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryPlugin:
    """Gives an agent its memory, and keeps it in a checkpoint; another plugin that *owns* `__memory__` replaces it."""

    name: str = "memory"
    owns: str = MEMORY_KEY

    def mount(self, agent: A) -> tuple[A, None]:
        """Return the agent with a memory."""
        return ensure(agent), None

    def routes(self) -> Mapping[str, Handler]:
        """Return nothing: no signal is for the memory itself."""
        return {}

    def checkpoint(self, agent: HasState) -> dict[str, Any] | None:
        """Return the memory of *agent* as JSON values, for `restore`; None if it has none."""
        memory = get(agent)
        return None if memory is None else memory.to_dict()

    def restore(self, agent: A, kept: Mapping[str, Any] | None) -> A:
        """Return *agent* with the memory that `checkpoint` gave."""
        return agent if kept is None else put(agent, Memory.from_dict(kept))


@dataclass(frozen=True, slots=True)
class Mounted:
    """The plugins of an agent in the order they were mounted, and the state of each by its name."""

    plugins: tuple[Plugin, ...] = ()
    states: Mapping[str, Any] = field(default_factory=dict)

    def route(self, agent: A, signal: Signal) -> tuple[A, tuple[Directive, ...]]:
        """Return *agent* after all that answers to the type of *signal*, and the directives they ask for next."""
        asked: list[Directive] = []
        for plugin in self.plugins:
            if (handler := plugin.routes().get(signal.type)) is not None:
                made = handler(agent, signal)
                agent, more = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
                asked += more
        return agent, tuple(asked)


def mount(agent: A, plugins: Sequence[Plugin] = (), *, memory: Plugin | None = MemoryPlugin()) -> tuple[A, Mounted]:
    """Return *agent* with all *plugins* mounted, the memory first; with `memory=None` it gets none by itself.

    A plugin that owns `__memory__` takes the place of *memory*. Raises InvalidRequest for two plugins of one name, and
    for two owners of one key.
    """
    is_replaced = MEMORY_KEY in _owned(plugins)
    all_of_them = tuple(plugins) if memory is None or is_replaced else (memory, *plugins)
    _refuse_twice("are named", [plugin.name for plugin in all_of_them])
    _refuse_twice("own", _owned(all_of_them))
    states = {}
    for plugin in all_of_them:
        agent, states[plugin.name] = plugin.mount(agent)
    return agent, Mounted(all_of_them, states)


def _owned(plugins: Sequence[Plugin]) -> list[str]:
    """Return the keys of an agent's state that plugins say are theirs."""
    return [key for plugin in plugins if (key := getattr(plugin, "owns", None)) is not None]


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidRequest(f"{count} plugins {what} {name!r}", hint="mount one of them, or name the other anew")
