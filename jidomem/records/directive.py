"""The directives: effects on memory as data, the signals that answer them, and the contract of a
provider.

Making a directive has no effect; `jidomem.providers.execute_directive` performs it and returns a
`Signal`. A provider is called with its last state and returns the next one; `jidomem.providers`
alone holds that state. A call that fails raises, and the state stays as it was: a `JidomemError`
says why and what to do, any other exception is reported as `provider_failed`. A `Step` is the
result of a move of working memory: the memory after it and the directives it asks for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from jidomem.base import clock
from jidomem.errors import InvalidRequest, did_you_mean

#: The names of the directives, and the type of the signal that answers them unless a query asks for another.
MEMORY_QUERY, MEMORY_UPSERT, MEMORY_DELETE = "MemoryQuery", "MemoryUpsert", "MemoryDelete"
RESULT_SIGNAL = "jido.memory.result"
#: The provider that performs a directive which names none.
DEFAULT_PROVIDER = "inline"
#: How many results a search gives unless it says.
TOP_K = 5


def new_request_id() -> str:
    """Return a fresh id that ties a signal to the directive it answers."""
    return f"req_{clock.new_id()}"


@dataclass(frozen=True, slots=True)
class UpsertItem:
    """One value to keep under *key*, in the place of what is there; *embedding* is its vector, where it has one."""

    key: str
    value: Any
    embedding: Iterable[float] | None = None

    def __post_init__(self) -> None:
        """Raise InvalidRequest for a key that is no text and an embedding that is no list of finite numbers."""
        _must_be_text("key", self.key)
        if self.embedding is not None:
            object.__setattr__(self, "embedding", vector_of(self.embedding, "embedding"))

    @classmethod
    def of(cls, given: UpsertItem | Mapping[str, Any]) -> UpsertItem:
        """Return the item a mapping spells out; raises InvalidRequest for one without key or value, or with more."""
        if isinstance(given, UpsertItem):
            return given
        if not isinstance(given, Mapping) or not {"key", "value"} <= given.keys() <= {"key", "value", "embedding"}:
            shown = sorted(map(str, given)) if isinstance(given, Mapping) else type(given).__name__
            raise InvalidRequest(
                f"an item has a key, a value and perhaps an embedding, not {shown}",
                hint='write {"key": "user:name", "value": "Ana"}',
            )
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """Ask *provider* for what it holds: `{"key": ...}` one value, `{"text": ..., "top_k": 5}` what is like a text.

    What else a query may hold is the provider's; the answer is a signal of `reply_signal_type`.
    """

    request_id: str = field(default_factory=new_request_id)
    query: Mapping[str, Any]
    provider: str = DEFAULT_PROVIDER
    opts: Mapping[str, Any] = field(default_factory=dict)
    reply_signal_type: str = RESULT_SIGNAL

    def __post_init__(self) -> None:
        """Raise InvalidRequest for a query that is no mapping or is empty, and for a top_k that is no count."""
        _tidy(self)
        _must_be_text("reply_signal_type", self.reply_signal_type)
        object.__setattr__(self, "query", _mapping("query", self.query))
        top_k = self.query.get("top_k", TOP_K)
        if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
            raise InvalidRequest(f"top_k={top_k!r} is no positive whole number", hint=f'give "top_k": {TOP_K}')
        if not self.query.keys() - {"top_k"}:
            raise InvalidRequest("the query asks for nothing", hint='give {"text": "..."} or {"key": "..."}')

    @property
    def type(self) -> str:
        """Return the name of the directive."""
        return MEMORY_QUERY


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpsert:
    """Keep *items* with *provider*, each a mapping of key, value and perhaps embedding, or an UpsertItem."""

    request_id: str = field(default_factory=new_request_id)
    items: Sequence[UpsertItem | Mapping[str, Any]]
    provider: str = DEFAULT_PROVIDER
    opts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InvalidRequest for no items, and for one that is none."""
        _tidy(self)
        object.__setattr__(self, "items", tuple(map(UpsertItem.of, _several("items", self.items))))

    @property
    def type(self) -> str:
        """Return the name of the directive."""
        return MEMORY_UPSERT


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDelete:
    """Let *provider* forget what it holds under *keys*; a key it does not hold is told, and is no failure."""

    request_id: str = field(default_factory=new_request_id)
    keys: Sequence[str]
    provider: str = DEFAULT_PROVIDER
    opts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InvalidRequest for no keys, and for one that is no text."""
        _tidy(self)
        object.__setattr__(self, "keys", tuple(_several("keys", self.keys)))
        for key in self.keys:
            _must_be_text("key", key)

    @property
    def type(self) -> str:
        """Return the name of the directive."""
        return MEMORY_DELETE


Directive: TypeAlias = MemoryQuery | MemoryUpsert | MemoryDelete


@dataclass(frozen=True, slots=True)
class Signal:
    """An event; for a directive, `data` has its request_id, status (ok or error), result and meta.

    With the status error there is a `reason`: code, detail and hint, and whatever mends it, such as `fixed_intent`.
    """

    type: str
    data: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Return whether all that was asked was done."""
        return self.data.get("status") == "ok"


def recall(text: str, *, top_k: int = TOP_K, **fields: Any) -> MemoryQuery:
    """Return the directive that asks for what is like *text*; *fields* are those of a MemoryQuery.

    >>> recall("which index?", provider="vector", request_id="req_1").query
    {'text': 'which index?', 'top_k': 5}
    """
    return MemoryQuery(query={"text": text, "top_k": top_k}, **fields)


def lookup(key: str, **fields: Any) -> MemoryQuery:
    """Return the directive that asks for the value under *key*; *fields* are those of a MemoryQuery."""
    _must_be_text("key", key)
    return MemoryQuery(query={"key": key}, **fields)


def remember(key: str, value: Any, *, embedding: Iterable[float] | None = None, **fields: Any) -> MemoryUpsert:
    """Return the directive that keeps *value* under *key*; *fields* are those of a MemoryUpsert."""
    return MemoryUpsert(items=[UpsertItem(key, value, embedding)], **fields)


def forget(*keys: str, **fields: Any) -> MemoryDelete:
    """Return the directive that forgets what is held under *keys*; *fields* are those of a MemoryDelete."""
    return MemoryDelete(keys=keys, **fields)


def vector_of(given: Iterable[float], name: str) -> tuple[float, ...]:
    """Return the numbers of a vector; raises InvalidRequest unless they are finite, and at least one."""
    numbers = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)) else ()
    try:
        vector = () if bool in map(type, numbers) else tuple(map(float, numbers))
    except (TypeError, ValueError, OverflowError):
        vector = ()
    if not vector or not all(map(math.isfinite, vector)):
        raise InvalidRequest(f"{name} is no list of finite numbers", hint=f"give {name}=[0.1, 0.2]")
    return vector


def _tidy(directive: Directive) -> None:
    """Hold what all directives have to their form; `opts` is a copy, so that nobody changes it afterwards."""
    _must_be_text("request_id", directive.request_id)
    _must_be_text("provider", directive.provider)
    object.__setattr__(directive, "opts", _mapping("opts", directive.opts))


def _mapping(name: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidRequest(f"{name}={given!r} is no mapping of names", hint=f'give {name}={{"text": "..."}}')
    return dict(given)


def _several(name: str, given: object) -> Iterable[Any]:
    """Return the entries of a list; raises InvalidRequest for an empty one, a text and a mapping."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise InvalidRequest(f"{name}={given!r} is no list", hint=f"give {name}=[...]")
    items = list(given)
    if not items:
        raise InvalidRequest(f"{name} is empty", hint=f"give at least one of {name}")
    return items


def _must_be_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{name}={value!r} is no text", hint=f"give {name} as text that is not empty")


State = Any
Opts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredValue:
    """The *value* under a key, which may be None."""

    state: State
    value: Any


@dataclass(frozen=True, slots=True)
class Missing:
    """Nothing is held under that key."""

    state: State


@dataclass(frozen=True, slots=True)
class Done:
    """A value was stored or deleted; `details` are what the provider adds, such as the IRI of a memory."""

    state: State
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scored:
    """One result of a query; of two, the better has the higher *score*."""

    key: str
    score: float
    value: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a query, the best first."""

    state: State
    rows: Sequence[Scored]


@runtime_checkable
class Provider(Protocol):
    """Keeps values under keys. *opts* of a call are those of the directive; unknown ones are refused by name."""

    def init(self, opts: Opts) -> State:
        """Return the first state; raises where there can be none."""
        ...

    def get(self, state: State, key: str, opts: Opts) -> StoredValue | Missing:
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
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InvalidRequest(f"{what} has no {name!r}", hint=did_you_mean(name, known, takes))


M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Step(Generic[M]):
    """The memory after a move, and the directives it asks for; `move(memory, news, policy) -> Step`."""

    memory: M
    directives: tuple[Directive, ...] = ()
