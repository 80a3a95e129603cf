"""What a store of entries is, and the three verbs over whatever stands for one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from jidomem.entry import Entry, WriteRequest, WriteResult
from jidomem.errors import Failed, InvalidRequest, JidomemError, TooLarge
from jidomem.recall import RecallRequest, RecallResult

Options = Mapping[str, Any]
NO_OPTIONS: Options = MappingProxyType({})
#: How like the name of an option another one is that is a slip of the pen.
_LIKE = 0.8
_VERBS = ("recall", "write", "list_entries")
_ACCEPTED = "a store, a class of stores, or a pair (store, options)"

Answer = TypeVar("Answer")


class Store(Protocol):
    """What keeps entries. Whoever implements these three operations is a store; what it cannot do, it raises.

    Options that a store does not know, and the metadata of requests, are for others: it leaves them alone, but for a
    misspelt one of its own (`check_spelling`).
    """

    def recall(self, request: RecallRequest, opts: Options, /) -> RecallResult:
        """Return up to `request.limit` entries that the request covers, in an order of the store's own."""

    def write(self, request: WriteRequest, opts: Options, /) -> WriteResult:
        """Keep the entry, in the place of one with the same id."""

    def list_entries(self, opts: Options, /) -> Iterable[Entry]:
        """Return all entries, of every agent."""


class StoreError(Failed):
    """A store could not do what it was asked; `reason` is what it raised, or what it was given instead of an answer."""

    code = "store_unavailable"

    def __init__(self, detail: str, *, reason: object = None, hint: str = "", code: str | None = None) -> None:
        super().__init__(detail, hint=hint, code=code)
        self.reason = reason


def resolve(store: object) -> tuple[Store, Options]:
    """Return the store and the options that *store* stands for; a class stands for what it makes of no arguments.

    A class with a method `for_options` says itself which store its options mean. Raises TypeError for anything else.
    """
    given, opts = store if isinstance(store, tuple) and len(store) == 2 else (store, NO_OPTIONS)
    if not isinstance(opts, Mapping):
        raise TypeError(f"the options of a store are a mapping, not {opts!r}; give {_ACCEPTED}")
    missing = [verb for verb in _VERBS if not callable(getattr(given, verb, None))]
    if missing:
        raise TypeError(f"{given!r} is no store, it has no {', '.join(missing)}; give {_ACCEPTED}")
    if isinstance(given, type):
        made = given.for_options(opts) if hasattr(given, "for_options") else given()
        return made, opts
    return given, opts  # type: ignore[return-value]  # it has the three verbs


def check_spelling(opts: Options, known: Collection[str]) -> None:
    """Raise InvalidRequest for an option that is nearly spelt as one of *known*; any other is for somebody else."""
    for name in opts:
        near = get_close_matches(str(name), known, n=1, cutoff=_LIKE)
        if near and name not in known:
            raise InvalidRequest(f"there is no option {name!r}; did you mean {near[0]!r}?", hint=f"give {near[0]!r}")


def recall(store: object, request: object = None, /, **fields: Any) -> RecallResult:
    """Return what *store* finds for *request*: a RecallRequest, a mapping or keywords.

    Raises InvalidRecall for what is no request, StoreError where the store fails.
    """
    asked = RecallRequest.from_input(request, **fields)
    target, opts = resolve(store)
    return _answer(target, "recall", RecallResult, lambda: target.recall(asked, opts))


def write(store: object, request: WriteRequest | Entry | Mapping[str, Any]) -> WriteResult:
    """Return what *store* did with *request*: a WriteRequest, or the entry that is to be written.

    Raises InvalidEntry for what is no entry, StoreError where the store fails.
    """
    asked = request if isinstance(request, WriteRequest) else WriteRequest(Entry.from_input(request))
    target, opts = resolve(store)
    return _answer(target, "write", WriteResult, lambda: target.write(asked, opts))


def list_entries(store: object) -> list[Entry]:
    """Return all entries of *store*, of every agent. Raises StoreError where the store fails."""
    target, opts = resolve(store)
    return _answer(target, "list_entries", list, lambda: list(target.list_entries(opts)))


def _answer(store: Store, verb: str, kind: type[Answer], ask: Callable[[], object]) -> Answer:
    """Return what *ask* gives; raises StoreError for any failure but a request that the store refuses as such."""
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
