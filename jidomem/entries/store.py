"""The store of entries: its contract, the functions recall, write and list_entries, and a store in memory.

`MemoryPolicy` is the memory section of the definition of an agent: whether it has a memory, the number of entries,
their scope, and the part of a turn that is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from threading import Lock
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from jidomem.base.json_values import thaw
from jidomem.errors import Failed, InvalidRequest, JidomemError, TooLarge, nearest_names
from jidomem.records.entry import Entry, WriteRequest, WriteResult, fault_of_text, fields_from, frozen_metadata
from jidomem.records.recall import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    SCOPES,
    RecallRequest,
    RecallResult,
)
from jidomem.records.search import NAMESPACE

Options = Mapping[str, Any]
NO_OPTIONS: Options = MappingProxyType({})
#: The least similarity of a misspelt option to its name.
_LIKE = 0.8
_VERBS = ("recall", "write", "list_entries")
_ACCEPTED = "a store, a class of stores, or a pair (store, options)"

Answer = TypeVar("Answer")


class Store(Protocol):
    """A store of entries: an object with these three operations, which raise on failure.

    A store ignores unknown options and the metadata of requests, except for misspellings of its own options
    (`check_spelling`).
    """

    def recall(self, request: RecallRequest, opts: Options, /) -> RecallResult:
        """Return up to `request.limit` entries that the request covers, in an order of the store's own."""

    def write(self, request: WriteRequest, opts: Options, /) -> WriteResult:
        """Store the entry, replacing one with the same id."""

    def list_entries(self, opts: Options, /) -> Iterable[Entry]:
        """Return all entries, of every agent."""


class StoreError(Failed):
    """A failure of a store; `reason` is the exception it raised, or the invalid answer it returned."""

    code = "store_unavailable"

    def __init__(self, detail: str, *, reason: object = None, hint: str = "", code: str | None = None) -> None:
        super().__init__(detail, hint=hint, code=code)
        self.reason = reason


def resolve(store: object) -> tuple[Store, Options]:
    """Return the store and the options that *store* stands for; a class stands for its instance made without arguments.

    A class with a method `for_options` returns the store for its options. Raises TypeError for any other value.
    """
    given, opts = store if isinstance(store, tuple) and len(store) == 2 else (store, NO_OPTIONS)
    if not isinstance(opts, Mapping):
        raise TypeError(f"the options of a store are a mapping, not {opts!r}; give {_ACCEPTED}")
    missing = [verb for verb in _VERBS if not callable(getattr(given, verb, None))]
    if missing:
        raise TypeError(f"{given!r} is not a store, it has no {', '.join(missing)}; give {_ACCEPTED}")
    if isinstance(given, type):
        made = given.for_options(opts) if hasattr(given, "for_options") else given()
        return made, opts
    return given, opts  # type: ignore[return-value]  # it has the three verbs


def check_spelling(opts: Options, known: Collection[str]) -> None:
    """Raise InvalidRequest for an option that misspells one of *known*; other unknown options are ignored."""
    for name in opts:
        near = nearest_names(name, known, likeness=_LIKE)
        if near and name not in known:
            raise InvalidRequest(f"there is no option {name!r}; did you mean {near[0]!r}?", hint=f"give {near[0]!r}")


def recall(store: object, request: object = None, /, **fields: Any) -> RecallResult:
    """Return the entries of *store* for *request*: a RecallRequest, a mapping or keywords.

    Raises InvalidRecall for an invalid request, StoreError if the store fails.
    """
    checked = RecallRequest.from_input(request, **fields)
    target, opts = resolve(store)
    return _answer(target, "recall", RecallResult, lambda: target.recall(checked, opts))


def write(store: object, request: WriteRequest | Entry | Mapping[str, Any]) -> WriteResult:
    """Write *request* to *store* and return the result: a WriteRequest, or the entry to write.

    Raises InvalidEntry for an invalid entry, StoreError if the store fails.
    """
    checked = request if isinstance(request, WriteRequest) else WriteRequest(Entry.from_input(request))
    target, opts = resolve(store)
    return _answer(target, "write", WriteResult, lambda: target.write(checked, opts))


def list_entries(store: object) -> list[Entry]:
    """Return all entries of *store*, of every agent. Raises StoreError if the store fails."""
    target, opts = resolve(store)
    return _answer(target, "list_entries", list, lambda: list(target.list_entries(opts)))


def _answer(store: Store, verb: str, kind: type[Answer], ask: Callable[[], object]) -> Answer:
    """Return the answer of *ask*; raises StoreError for any failure except a refused request."""
    name = type(store).__name__
    try:
        answer = ask()
    except (StoreError, InvalidRequest, TooLarge):
        raise
    except JidomemError as error:
        detail = f"{name} could not {verb}: {error.detail}"
        raise StoreError(detail, reason=error, hint=error.hint, code=error.code) from error
    except Exception as error:
        raise StoreError(f"{name} could not {verb}: {type(error).__name__}: {error}", reason=error) from error
    if not isinstance(answer, kind):
        detail = f"{name} answered {verb} with a {type(answer).__name__}, not a {kind.__name__}"
        raise StoreError(detail, reason=answer, hint=f"let {verb} return a {kind.__name__}")
    return answer


_OPTIONS = ("pid", "include_sessions")


class MissingHandle(StoreError, ValueError):
    """A use of the class InMemoryStore without the option that names the store."""

    code = "invalid_argument"


class InMemoryStore:
    """A store in the memory of this process, safe for threads, separate from every other InMemoryStore.

    Recall returns the newest entries first; the query is ignored. Options: `pid` is the store if only the class is
    given; `include_sessions=True` also recalls entries of other sessions.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[str, Entry] = {}  # by id, in the order of writing

    @classmethod
    def for_options(cls, opts: Options) -> InMemoryStore:
        """Return the store in the option `pid`. Raises MissingHandle if there is none."""
        handle = opts.get("pid")
        if not isinstance(handle, InMemoryStore):
            hint = "start one: handle = InMemoryStore(); then give handle, or (InMemoryStore, {'pid': handle})"
            raise MissingHandle("in-memory memory store requires pid", reason=handle, hint=hint)
        return handle

    def recall(self, request: RecallRequest, opts: Options = NO_OPTIONS) -> RecallResult:
        """Return the entries that *request* covers, the newest first, up to its limit; raises InvalidRequest."""
        check_spelling(opts, _OPTIONS)
        every = opts.get("include_sessions", False)
        if not isinstance(every, bool):
            raise InvalidRequest(f"include_sessions={every!r} is not a boolean", hint="give include_sessions=True")
        store = self._meant(opts)
        with store._lock:
            newest = reversed(store._entries.values())
            covered = (entry for entry in newest if request.covers(entry, include_sessions=every))
            entries = list(islice(covered, request.limit))
        return RecallResult(request, entries)

    def write(self, request: WriteRequest, opts: Options = NO_OPTIONS) -> WriteResult:
        """Store the entry as the newest, replacing one with the same id."""
        check_spelling(opts, _OPTIONS)
        entry = request.entry
        store = self._meant(opts)
        with store._lock:
            store._entries.pop(entry.id, None)
            store._entries[entry.id] = entry
        return WriteResult(request, entry)

    def list_entries(self, opts: Options = NO_OPTIONS) -> list[Entry]:
        """Return all entries, the oldest first."""
        check_spelling(opts, _OPTIONS)
        store = self._meant(opts)
        with store._lock:
            return list(store._entries.values())

    def _meant(self, opts: Options) -> InMemoryStore:
        return self.for_options(opts) if "pid" in opts else self


CAPTURES = ("manual", "conversation", "off")
INJECTS = ("instructions", "context")


class InvalidPolicy(InvalidRequest, ValueError):
    """The value is not a memory policy, or not a definition of an agent."""


@dataclass(frozen=True, slots=True)
class FromContext:
    """A namespace that each run reads from its context under *key*."""

    key: str

    def __post_init__(self) -> None:
        """Raise InvalidPolicy unless the key is a text."""
        if fault := fault_of_text(self.key):
            raise _invalid(f"the key of a namespace {fault}", 'give namespace={"context": "tenant"}')


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """The memory policy of an agent: plain data, without its store.

    *scope* decides whether all sessions share the memory or each has its own, *namespace* separates it further.
    *capture* is the part of a turn that is written, *inject* the form of recalled entries in the prompt, *max_entries*
    their number. *metadata* is added to every request to the store.
    """

    enabled: bool = True
    scope: str = "agent"
    namespace: str | FromContext | None = None
    capture: str = "manual"
    inject: str = "instructions"
    max_entries: int = DEFAULT_LIMIT
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidPolicy for an invalid field."""
        if not isinstance(self.enabled, bool):
            raise _invalid(f"enabled={self.enabled!r} is not a boolean", "give enabled=True or enabled=False")
        for name, known in (("scope", SCOPES), ("capture", CAPTURES), ("inject", INJECTS)):
            if getattr(self, name) not in known:
                raise _invalid(f"{name}={getattr(self, name)!r} is unknown", f"use one of: {', '.join(known)}")
        object.__setattr__(self, "namespace", _namespace(self.namespace))
        object.__setattr__(self, "max_entries", _count(self.max_entries))
        object.__setattr__(self, "metadata", frozen_metadata(self.metadata, _invalid))
        if NAMESPACE in self.metadata:
            raise _invalid("metadata contains a namespace", f"give namespace={self.metadata[NAMESPACE]!r} beside it")

    @classmethod
    def from_input(cls, given: object, /) -> MemoryPolicy | None:
        """Return the policy that *given* stands for: True for the defaults, False and None for no memory.

        Raises InvalidPolicy for a value that is neither a policy nor a mapping, and for an unknown key.
        """
        if given is None or given is False:
            return None
        if isinstance(given, MemoryPolicy):
            return given
        return MemoryPolicy(**fields_from(MemoryPolicy, {} if given is True else given, {}, _invalid))

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain values, which `from_input` accepts."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        if isinstance(self.namespace, FromContext):
            values["namespace"] = {"context": self.namespace.key}
        return {**values, "metadata": thaw(self.metadata)}


@dataclass(frozen=True, slots=True)
class Spec:
    """The definition of an agent, as far as memory is concerned: its *id*, and its policy or the input of one.

    It contains no store: each run names its own.
    """

    id: str
    memory: MemoryPolicy | None = None

    def __post_init__(self) -> None:
        """Raise InvalidPolicy for an id that is not a text, and for an invalid policy."""
        if fault := fault_of_text(self.id):
            raise _invalid(f"the id of the agent {fault}", "give id as text")
        object.__setattr__(self, "memory", MemoryPolicy.from_input(self.memory))


def _namespace(given: object) -> str | FromContext | None:
    if given is None or isinstance(given, FromContext):
        return given
    if isinstance(given, Mapping) and set(given) == {"context"}:
        return FromContext(given["context"])
    if not isinstance(given, str):
        raise _invalid(f"namespace={given!r} is not a namespace", 'give a text, or {"context": KEY}')
    if fault := fault_of_text(given):
        raise _invalid(f"namespace {fault}", "give a text, or leave it out")
    return given


def _count(given: object) -> int:
    count = int(given) if isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) < 9 else given
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= LARGEST_LIMIT:
        raise _invalid(f"max_entries={given!r} is not from 1 to {LARGEST_LIMIT:,}", f"give max_entries={DEFAULT_LIMIT}")
    return count


def _invalid(detail: str, hint: str) -> InvalidPolicy:
    return InvalidPolicy(f"invalid memory policy: {detail}", hint=hint)
