"""Providers by name, each with its present state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from threading import Lock
from typing import Any

from jidomem.directive import DEFAULT_PROVIDER
from jidomem.errors import InvalidRequest, NotFound
from jidomem.provider import Provider, State
from jidomem.providers.inline import InlineProvider

_CALLS = ("init", "get", "put", "delete")


@dataclass(slots=True)
class Registered:
    """A provider and the state its last call gave."""

    name: str
    provider: Provider
    state: State
    lock: Lock = field(default_factory=Lock)


class Providers:
    """The providers that directives may name: `inline` from the start, others as they are registered."""

    def __init__(self) -> None:
        self._registered: dict[str, Registered] = {}
        self.register(DEFAULT_PROVIDER, InlineProvider())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names directives may use, in the order they were registered."""
        return tuple(self._registered)

    def register(self, name: str, provider: Provider, opts: Mapping[str, Any] | None = None) -> None:
        """Take in *provider* under *name*, opened with *opts*; one of that name, and what it held, is let go of.

        Raises InvalidRequest for what lacks a call of the contract, and what the provider's `init` raises; then the
        one of that name stays.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidRequest(f"{name!r} is no name", hint='register("notes", provider)')
        lacking = [call for call in _CALLS if not callable(getattr(provider, call, None))]
        if lacking or isinstance(provider, type):
            what = f"lacks {', '.join(lacking)}" if lacking else "is a class"
            raise InvalidRequest(f"the provider {name!r} {what}", hint="give an object with init, get, put and delete")
        self._registered[name] = Registered(name, provider, provider.init(dict(opts or {})))

    @contextmanager
    def held(self, name: str) -> Iterator[Registered]:
        """Give the provider of that *name* to one at a time; raises NotFound with the nearest name."""
        found = self._registered.get(name)
        if found is None:
            near = get_close_matches(name, self.names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(self.names)}; register it first"
            raise NotFound(f"no provider {name!r}", hint=hint)
        with found.lock:
            yield found
