"""The store of entries: its contract, the functions recall, write and list_entries, and a store in memory.

`MemoryPolicy` is the memory section of the definition of an agent: whether it has a memory, the number of entries,
their scope, and the part of a turn that is captured. In a `Run` of an agent, entries are recalled before the prompt is
built, and captured after the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jidomem.base.json_values import thaw
from jidomem.errors import Failed, InvalidRequest, JidomemError, TooLarge, nearest_names
from jidomem.records.entry import (
    Entry,
    InvalidEntry,
    WriteRequest,
    WriteResult,
    fault_of_text,
    fields_from,
    frozen_metadata,
)
from jidomem.records.interfaces import NAMESPACE
from jidomem.records.recall import DEFAULT_LIMIT, LARGEST_LIMIT, LONGEST_QUERY, SCOPES, RecallRequest, RecallResult

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

    if TYPE_CHECKING:

        def __init__(self, id: str, memory: MemoryPolicy | Mapping[str, object] | bool | None = None) -> None: ...  # noqa: A002

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


HEADING = "Relevant memory:"
#: The key of the recalled entries in the context of a prompt.
RECALLED = "memory"

Message = Mapping[str, Any]


class MissingStore(InvalidRequest, ValueError):
    """A write in a run without a store."""


class MissingSession(InvalidRequest, ValueError):
    """A run without a session, for a memory with the scope `session`."""


class MissingContext(InvalidRequest, ValueError):
    """A run whose context lacks the namespace."""


class MemoryOff(InvalidRequest, ValueError):
    """A write for an agent whose definition captures nothing."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a model: messages with `role` and `content`, and structured data."""

    messages: Sequence[Message] = ()
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the agent *spec* with its store, session and context."""

    spec: Spec
    store: object = None
    session_id: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)

    def recall_request(self, query: str) -> RecallRequest | None:
        """Return the recall request of the policy, or None if the agent has no memory.

        Only the beginning of an overlong query is used. Raises MissingSession and MissingContext.
        """
        policy = self._policy()
        if policy is None:
            return None
        return RecallRequest(
            agent_id=self.spec.id,
            query=_looked_for(query),
            session_id=self._session(policy),
            scope=policy.scope,
            limit=policy.max_entries,
            metadata={**policy.metadata, **self._namespace(policy)},
        )

    def write_request(self, content: str, metadata: Mapping[str, Any] | None = None) -> WriteRequest:
        """Return the write request of the policy; with the scope `agent` all sessions share the entry.

        Raises MemoryOff if the agent captures nothing, MissingSession, MissingContext and InvalidEntry.
        """
        policy = self._policy()
        if policy is None or policy.capture == "off":
            raise MemoryOff(f"the memory of {self.spec.id!r} is off", hint='define it with {"capture": "manual"}')
        session = self._session(policy) if policy.scope == "session" else None
        namespace = self._namespace(policy)
        given = {} if metadata is None else metadata
        entry = Entry(agent_id=self.spec.id, session_id=session, content=content, metadata=given)
        both = {**namespace, **entry.metadata}
        if namespace and both[NAMESPACE] != namespace[NAMESPACE]:
            detail = f"namespace={both[NAMESPACE]!r} is not that of this run, {namespace[NAMESPACE]!r}"
            raise InvalidEntry(f"invalid memory entry: {detail}", hint="leave it out of the metadata")
        return WriteRequest(replace(entry, metadata=both), {**policy.metadata, **namespace})

    def recall(self, query: str) -> RecallResult | None:
        """Return the entries of the store for *query*; None without a memory or a store.

        Raises what `recall_request` raises, and StoreError if the store fails or mixes up namespaces.
        """
        if self.store is None or (request := self.recall_request(query)) is None:
            return None
        result = recall(self.store, request)
        if NAMESPACE in request.metadata:
            _check_namespace(result, request.metadata[NAMESPACE])
        return result

    def remember(self, content: str, metadata: Mapping[str, Any] | None = None) -> WriteResult:
        """Write an entry with *content* and return the result.

        Raises what `write_request` raises, MissingStore without a store, and StoreError if the store fails.
        """
        request = self.write_request(content, metadata)
        if self.store is None:
            detail = f"the memory of {self.spec.id!r} has no store to write to"
            raise MissingStore(detail, hint="give the run a store: Run(spec, store)")
        return write(self.store, request)

    def before(self, messages: Sequence[Message], context: Mapping[str, Any] | None = None) -> Prompt:
        """Return the prompt with the entries recalled for the newest text of the user; unchanged if there are none.

        Raises what `recall` raises.
        """
        contents = [message.get("content") for message in messages if message.get("role") == "user"]
        texts = [text for text in contents if isinstance(text, str) and _looked_for(text)]
        prompt = Prompt(tuple(messages), dict(context or {}))
        result = self.recall(texts[-1]) if texts else None
        policy = self._policy()
        return prompt if result is None or policy is None else injected(prompt, policy, result)

    def after(self, user: str, assistant: str | None, *, request_id: str, source: str = "agent") -> WriteResult | None:
        """Write the turn and return the result; None unless the turn is completed and the policy captures
        conversations.

        Raises what `remember` raises, except that without a store nothing is written.
        """
        policy = self._policy()
        if policy is None or policy.capture != "conversation" or self.store is None or assistant is None:
            return None
        for name, text in (("user", user), ("assistant", assistant)):
            if not isinstance(text, str):
                detail = f"invalid memory entry: the text of {name} is a {type(text).__name__}, not a text"
                raise InvalidEntry(detail, hint=f"give {name} as text")
        if not assistant.strip():
            return None
        fields = {"class": "episodic", "kind": "conversation", "source": source, "request_id": request_id}
        return self.remember(f"User: {user}\nAssistant: {assistant}", fields)

    def _policy(self) -> MemoryPolicy | None:
        policy = self.spec.memory
        return policy if policy is not None and policy.enabled else None

    def _session(self, policy: MemoryPolicy) -> str | None:
        if policy.scope == "session" and self.session_id is None:
            detail = f"the memory of {self.spec.id!r} has the scope session, and the run has none"
            raise MissingSession(detail, hint="give the run a session_id, or define the memory with scope agent")
        return self.session_id

    def _namespace(self, policy: MemoryPolicy) -> dict[str, str]:
        name = policy.namespace
        if isinstance(name, FromContext):
            key, name = name.key, self.context.get(name.key)
            if fault := fault_of_text(name):
                problem = "is missing" if name is None else fault
                detail = f"the namespace of {self.spec.id!r} is context[{key!r}], which {problem}"
                raise MissingContext(detail, hint=f"give the run context={{{key!r}: ...}}")
        return {} if name is None else {NAMESPACE: name}


def injected(prompt: Prompt, policy: MemoryPolicy, result: RecallResult) -> Prompt:
    """Return *prompt* with the recalled entries, by the policy as a message after the system ones or in the context."""
    if not result.entries:
        return prompt
    if policy.inject == "context":
        data = {"entries": [entry.to_dict() for entry in result.entries], "count": len(result.entries)}
        return Prompt(prompt.messages, {**prompt.context, RECALLED: data})
    first = next((i for i, message in enumerate(prompt.messages) if message.get("role") != "system"), None)
    place = len(prompt.messages) if first is None else first
    lines = "\n".join([HEADING, *map(_bullet, result.entries)])
    added = {"role": "system", "content": lines}
    return Prompt((*prompt.messages[:place], added, *prompt.messages[place:]), prompt.context)


def _looked_for(text: str) -> str:
    """Return the part of *text* that recall uses: its beginning, without incomplete characters."""
    return text.encode("utf-8", "ignore").strip()[:LONGEST_QUERY].decode("utf-8", "ignore").strip()


def _bullet(entry: Entry) -> str:
    """Return an entry as one list item, with all further lines indented."""
    return "- " + "\n  ".join(entry.content.splitlines())


def _check_namespace(result: RecallResult, namespace: str) -> None:
    """Raise StoreError unless all entries belong to *namespace*; a store may ignore namespaces."""
    for entry in result.entries:
        if entry.metadata.get(NAMESPACE) != namespace:
            detail = f"the store returned {entry.id!r}, which is not in the namespace {namespace!r}"
            raise StoreError(detail, reason=result, hint="filter in the store by request.covers(entry)")
