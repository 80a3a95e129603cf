"""The contract of a provider: who performs directives, and what each call gives back.

A provider is asked with the state it gave last and gives the next one; only `jidomem.providers` holds that state.
A call that fails raises, and the state it was asked with stays the present one. A `JidomemError` says why and what to
do about it; any other exception is told as `provider_failed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

from jidomem.errors import InvalidRequest

State = Any
Opts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """The *value* under a key, which may be None."""

    state: State
    value: Any


@dataclass(frozen=True, slots=True)
class Missing:
    """Nothing is held under that key."""

    state: State


@dataclass(frozen=True, slots=True)
class Done:
    """A value was kept, or let go of; *told* is what the provider has to say of it, such as the IRI it got."""

    state: State
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scored:
    """One result of a query; of two, the better has the higher *score*."""

    key: str
    score: float
    value: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query found, the best first."""

    state: State
    rows: Sequence[Scored]


@runtime_checkable
class Provider(Protocol):
    """Keeps values under keys. *opts* of a call are those of the directive; unknown ones are refused by name."""

    def init(self, opts: Opts) -> State:
        """Return the first state; raises where there can be none."""
        ...

    def get(self, state: State, key: str, opts: Opts) -> Found | Missing:
        """Return the value under *key*, or that there is none."""
        ...

    def put(self, state: State, key: str, value: Any, opts: Opts) -> Done:
        """Keep *value* under *key*, in the place of what was there; *opts* has the `embedding` that came with it."""
        ...

    def delete(self, state: State, key: str, opts: Opts) -> Done | Missing:
        """Let go of the value under *key*, or say that there is none."""
        ...


@runtime_checkable
class Searchable(Provider, Protocol):
    """A provider that answers queries, too; one that is none reports them as `unsupported`."""

    def query(self, state: State, query: Mapping[str, Any], opts: Opts) -> Answer:
        """Return what answers *query*, the best first."""
        ...


def only(given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """Raise InvalidRequest for a name in *given* that is none of *known*, with the nearest that is."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InvalidRequest(f"{what} has no {name!r}", hint=f"did you mean {near[0]!r}?" if near else takes)
