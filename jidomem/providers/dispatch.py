"""The dispatch of directives: providers by name, each with its state, and the execution of one directive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from threading import Lock
from typing import Any, TypeVar

from jidomem.base import clock
from jidomem.errors import Failed, InvalidRequest, JidomemError, NotFound, did_you_mean
from jidomem.providers.stores import InlineProvider
from jidomem.records.directive import (
    DEFAULT_PROVIDER,
    RESULT_SIGNAL,
    Answer,
    Directive,
    Done,
    MemoryDelete,
    MemoryQuery,
    MemoryUpsert,
    Missing,
    Provider,
    Scored,
    Searchable,
    Signal,
    State,
    StoredValue,
    UpsertItem,
    refuse_unknown,
)

_CALLS = ("init", "get", "put", "delete")


@dataclass(slots=True)
class RegisteredProvider:
    """A provider and its present state."""

    name: str
    provider: Provider
    state: State
    lock: Lock = field(default_factory=Lock)


class Providers:
    """The providers that directives may name: `inline` from the start, others after registration."""

    def __init__(self) -> None:
        self._registered: dict[str, RegisteredProvider] = {}
        self.register(DEFAULT_PROVIDER, InlineProvider())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the providers, in the order of registration."""
        return tuple(self._registered)

    def register(self, name: str, provider: Provider, opts: Mapping[str, Any] | None = None) -> None:
        """Register *provider* under *name*, opened with *opts*, in place of any provider of that name and its state.

        Raises InvalidRequest for an object that lacks a call of the contract, and the errors of the provider's `init`;
        then the present provider stays.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidRequest(f"{name!r} is not a name", hint='register("notes", provider)')
        lacking = [call for call in _CALLS if not callable(getattr(provider, call, None))]
        if lacking or isinstance(provider, type):
            what = f"lacks {', '.join(lacking)}" if lacking else "is a class"
            raise InvalidRequest(f"the provider {name!r} {what}", hint="give an object with init, get, put and delete")
        self._registered[name] = RegisteredProvider(name, provider, provider.init(dict(opts or {})))

    @contextmanager
    def locked(self, name: str) -> Iterator[RegisteredProvider]:
        """Yield the provider *name* for exclusive use; raises NotFound with the nearest name."""
        registered = self._registered.get(name)
        if registered is None:
            known = f"there is {', '.join(self.names)}; register it first"
            raise NotFound(f"no provider {name!r}", hint=did_you_mean(name, self.names, known))
        with registered.lock:
            yield registered


T = TypeVar("T")
_Outcome = tuple[Any, Exception | None]


def execute_directive(
    directive: Directive, providers: Providers, *, monotonic: Callable[[], float] = clock.monotonic_time
) -> Signal:
    """Return the signal that answers *directive*: its result, or the status error with the reason; raises nothing.

    A query returns `{key, score, value}`, the best first. An upsert and a delete return the `count` of items and, for
    each, the provider's details; the first failure ends it, and the items before it stay and are counted.
    """
    began = monotonic()
    result, error = _performed(directive, providers)
    latency = round((monotonic() - began) * 1000, 3)
    name = getattr(directive, "provider", None)
    data = {
        "request_id": getattr(directive, "request_id", None),
        "status": "ok" if error is None else "error",
        "result": result,
        "meta": {"provider": name, "latency_ms": latency, "directive": type(directive).__name__},
    }
    if error is not None:
        data["reason"] = _reason(error, name)
    return Signal(getattr(directive, "reply_signal_type", RESULT_SIGNAL), data)


def _performed(directive: Directive, providers: Providers) -> _Outcome:
    try:
        if not isinstance(directive, Directive):
            raise InvalidRequest(
                f"{type(directive).__name__} is not a directive",
                hint="give a MemoryQuery, MemoryUpsert or MemoryDelete",
            )
        with providers.locked(directive.provider) as registered:
            if isinstance(directive, MemoryQuery):
                return _queried(directive, registered), None
            return (
                _upserted(directive, registered)
                if isinstance(directive, MemoryUpsert)
                else _deleted(directive, registered)
            )
    except Exception as error:  # no error of a provider stops the agent
        return None, error


def _queried(directive: MemoryQuery, registered: RegisteredProvider) -> list[dict[str, Any]]:
    """Return the rows of a query; a query with a `key` returns the value of that key."""
    query = directive.query
    if "key" in query:
        refuse_unknown(query, ("key", "top_k"), "a query for a key")
        outcome = _checked(
            registered,
            "get",
            registered.provider.get(registered.state, query["key"], directive.opts),
            StoredValue,
            Missing,
        )
        rows: Sequence[Scored] = [Scored(query["key"], 1.0, outcome.value)] if isinstance(outcome, StoredValue) else []
    elif isinstance(registered.provider, Searchable):
        rows = _checked(
            registered, "query", registered.provider.query(registered.state, query, directive.opts), Answer
        ).rows
    else:
        raise InvalidRequest(
            f"the provider {registered.name!r} answers no queries",
            hint='query one value with {"key": "..."}, or name a provider that searches',
            code="unsupported",
        )
    best = sorted(rows, key=attrgetter("score"), reverse=True)[: query.get("top_k")]
    return [{"key": row.key, "score": row.score, "value": row.value} for row in best]


def _upserted(directive: MemoryUpsert, registered: RegisteredProvider) -> _Outcome:
    done: list[dict[str, Any]] = []
    for item in map(UpsertItem.of, directive.items):
        opts = directive.opts if item.embedding is None else {**directive.opts, "embedding": item.embedding}
        try:
            outcome = _checked(
                registered, "put", registered.provider.put(registered.state, item.key, item.value, opts), Done
            )
            done.append({"key": item.key, **outcome.details})
        except Exception as error:
            return _counted(done), error
    return _counted(done), None


def _deleted(directive: MemoryDelete, registered: RegisteredProvider) -> _Outcome:
    done: list[dict[str, Any]] = []
    missing: list[str] = []
    for key in directive.keys:
        try:
            outcome = _checked(
                registered, "delete", registered.provider.delete(registered.state, key, directive.opts), Done, Missing
            )
            if isinstance(outcome, Done):
                done.append({"key": key, **outcome.details})
            else:
                missing.append(key)
        except Exception as error:
            return {**_counted(done), "missing": missing}, error
    return {**_counted(done), "missing": missing}, None


def _counted(done: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"count": len(done), "items": list(done)}


def _checked(registered: RegisteredProvider, call: str, outcome: T, *forms: type) -> T:
    """Return the outcome of a call and store its state; raises Failed for an outcome outside the contract."""
    if not isinstance(outcome, forms):
        names = " or ".join(form.__name__ for form in forms)
        detail = f"the provider {registered.name!r} answered {call} with {type(outcome).__name__}, not {names}"
        raise Failed(detail, hint="test it with jidomem.providers.conformance", code="provider_failed")
    registered.state = outcome.state  # type: ignore[attr-defined]  # every form has one
    return outcome


def _reason(error: Exception, provider: object) -> dict[str, Any]:
    if not isinstance(error, JidomemError):
        detail = f"the provider {provider!r} failed: {type(error).__name__}: {error}"
        error = Failed(detail, hint="the values before the call are unchanged", code="provider_failed")
    return error.to_dict()
