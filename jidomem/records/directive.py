"""The directives: effects on memory as data, the signals that answer them, and the contract of a provider.

Making a directive has no effect; `jidomem.providers.execute_directive` performs it and returns a `Signal`. A provider
is called with its last state and returns the next one; only `jidomem.providers` holds that state. A call that fails
raises, and the state does not change: a `JidomemError` has the reason and a hint, any other exception is reported as
`provider_failed`. A `Step` is the result of a move of working memory: the memory after it and the directives to
perform.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from jidomem.base import clock
from jidomem.errors import InvalidRequest, did_you_mean

#: The names of the directives, and the default type of the signal that answers them.
MEMORY_QUERY, MEMORY_UPSERT, MEMORY_DELETE = "MemoryQuery", "MemoryUpsert", "MemoryDelete"
RESULT_SIGNAL = "jido.memory.result"
#: The provider of a directive that names none.
DEFAULT_PROVIDER = "inline"
#: The default number of results of a search.
TOP_K = 5


def new_request_id() -> str:
    """Return a new id that relates a signal to its directive."""
    return f"req_{clock.new_id()}"


@dataclass(frozen=True, slots=True)
class UpsertItem:
    """A value to store under *key*, which replaces the present value; *embedding* is its vector, if any."""

    key: str
    value: Any
    embedding: Iterable[float] | None = None

    def __post_init__(self) -> None:
        """Raise InvalidRequest for a key that is not a text, or an embedding that is not a list of finite numbers."""
        _must_be_text("key", self.key)
        if self.embedding is not None:
            object.__setattr__(self, "embedding", vector_of(self.embedding, "embedding"))

    @classmethod
    def of(cls, given: UpsertItem | Mapping[str, Any]) -> UpsertItem:
        """Return the item of a mapping; raises InvalidRequest for one without key or value, or with other keys."""
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
    """A query of *provider*: `{"key": ...}` for one value, `{"text": ..., "top_k": 5}` for similar texts.

    Providers may accept further keys; the answer is a signal of `reply_signal_type`.
    """

    request_id: str = field(default_factory=new_request_id)
    query: Mapping[str, Any]
    provider: str = DEFAULT_PROVIDER
    opts: Mapping[str, Any] = field(default_factory=dict)
    reply_signal_type: str = RESULT_SIGNAL

    def __post_init__(self) -> None:
        """Raise InvalidRequest for a query that is not a mapping or is empty, and for an invalid top_k."""
        _validate_common(self)
        _must_be_text("reply_signal_type", self.reply_signal_type)
        object.__setattr__(self, "query", _mapping("query", self.query))
        top_k = self.query.get("top_k", TOP_K)
        if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
            raise InvalidRequest(f"top_k={top_k!r:.200} is not a positive whole number", hint=f'give "top_k": {TOP_K}')
        if not self.query.keys() - {"top_k"}:
            raise InvalidRequest("the query asks for nothing", hint='give {"text": "..."} or {"key": "..."}')

    @property
    def type(self) -> str:
        """Return the name of the directive."""
        return MEMORY_QUERY


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpsert:
    """Store *items* with *provider*; an item is a mapping of key, value and optional embedding, or an UpsertItem."""

    request_id: str = field(default_factory=new_request_id)
    items: Sequence[UpsertItem | Mapping[str, Any]]
    provider: str = DEFAULT_PROVIDER
    opts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InvalidRequest for an empty list, and for an invalid item."""
        _validate_common(self)
        object.__setattr__(self, "items", tuple(map(UpsertItem.of, _nonempty_list("items", self.items))))

    @property
    def type(self) -> str:
        """Return the name of the directive."""
        return MEMORY_UPSERT


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDelete:
    """Delete the values under *keys* from *provider*; unknown keys are reported, and are no failure."""

    request_id: str = field(default_factory=new_request_id)
    keys: Sequence[str]
    provider: str = DEFAULT_PROVIDER
    opts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InvalidRequest for an empty list, and for a key that is not a text."""
        _validate_common(self)
        object.__setattr__(self, "keys", tuple(_nonempty_list("keys", self.keys)))
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

    With the status error there is a `reason`: code, detail and hint, and a repair where there is one, such as
    `fixed_intent`.
    """

    type: str
    data: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Return whether the directive was performed."""
        return self.data.get("status") == "ok"


def recall(text: str, *, top_k: int = TOP_K, **fields: Any) -> MemoryQuery:
    """Return the directive that searches for texts similar to *text*; *fields* are those of a MemoryQuery.

    >>> recall("which index?", provider="vector", request_id="req_1").query
    {'text': 'which index?', 'top_k': 5}
    """
    return MemoryQuery(query={"text": text, "top_k": top_k}, **fields)


def lookup(key: str, **fields: Any) -> MemoryQuery:
    """Return the directive that reads the value under *key*; *fields* are those of a MemoryQuery."""
    _must_be_text("key", key)
    return MemoryQuery(query={"key": key}, **fields)


def remember(key: str, value: Any, *, embedding: Iterable[float] | None = None, **fields: Any) -> MemoryUpsert:
    """Return the directive that stores *value* under *key*; *fields* are those of a MemoryUpsert."""
    return MemoryUpsert(items=[UpsertItem(key, value, embedding)], **fields)


def forget(*keys: str, **fields: Any) -> MemoryDelete:
    """Return the directive that deletes the values under *keys*; *fields* are those of a MemoryDelete."""
    return MemoryDelete(keys=keys, **fields)


def vector_of(values: Iterable[float], name: str) -> tuple[float, ...]:
    """Return the numbers of a vector; raises InvalidRequest unless they are finite, and at least one."""
    numbers = tuple(values) if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping)) else ()
    try:
        vector = () if bool in map(type, numbers) else tuple(map(float, numbers))
    except (TypeError, ValueError, OverflowError):
        vector = ()
    if not vector or not all(map(math.isfinite, vector)):
        raise InvalidRequest(f"{name} is not a list of finite numbers", hint=f"give {name}=[0.1, 0.2]")
    return vector


def _validate_common(directive: Directive) -> None:
    """Validate the fields common to all directives, and copy `opts`."""
    _must_be_text("request_id", directive.request_id)
    _must_be_text("provider", directive.provider)
    object.__setattr__(directive, "opts", _mapping("opts", directive.opts))


def _mapping(name: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidRequest(f"{name}={given!r:.200} is not a mapping of names", hint=f'give {name}={{"text": "..."}}')
    return dict(given)


def _nonempty_list(name: str, given: object) -> Iterable[Any]:
    """Return the entries of a list; raises InvalidRequest for an empty one, a text and a mapping."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise InvalidRequest(f"{name}={given!r:.200} is not a list", hint=f"give {name}=[...]")
    items = list(given)
    if not items:
        raise InvalidRequest(f"{name} is empty", hint=f"give at least one of {name}")
    return items


def _must_be_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{name}={value!r:.200} is not a text", hint=f"give {name} as text that is not empty")


State = Any
Opts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredValue:
    """The *value* under a key, which may be None."""

    state: State
    value: Any


@dataclass(frozen=True, slots=True)
class Missing:
    """No value is stored under that key."""

    state: State


@dataclass(frozen=True, slots=True)
class Done:
    """A value was stored or deleted; `details` are those of the provider, such as the IRI of a memory."""

    state: State
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scored:
    """One result of a query; a better result has a higher *score*."""

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
    """Stores values under keys. *opts* of a call are those of the directive; unknown ones are refused by name."""

    def init(self, opts: Opts) -> State:
        """Return the first state, or raise an error."""

    def get(self, state: State, key: str, opts: Opts) -> StoredValue | Missing:
        """Return the value under *key*, or Missing."""

    def put(self, state: State, key: str, value: Any, opts: Opts) -> Done:
        """Store *value* under *key*, replacing the present value; *opts* has its `embedding`, if any."""

    def delete(self, state: State, key: str, opts: Opts) -> Done | Missing:
        """Delete the value under *key*, or return Missing."""


@runtime_checkable
class Searchable(Provider, Protocol):
    """A provider that answers queries, too; other providers report them as `unsupported`."""

    def query(self, state: State, query: Mapping[str, Any], opts: Opts) -> Answer:
        """Return the results of *query*, the best first."""


def refuse_unknown(given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """Raise InvalidRequest for a name in *given* that is not in *known*, with the nearest known one."""
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InvalidRequest(f"{what} has no {name!r:.200}", hint=did_you_mean(name, known, takes))


M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Step(Generic[M]):
    """The memory after a move, and the directives to perform; `move(memory, news, policy) -> Step`."""

    memory: M
    directives: tuple[Directive, ...] = ()
