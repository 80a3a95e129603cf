"""The thread of an agent, its plugins and its projectors.

A thread is the append-only list of events of an agent; memory never changes it. A plugin adds spaces to an agent and
handles signals. A projector derives knowledge in memory from the thread. `RagPlugin` lets an agent recall from a store
beside its memory, and write to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from jidomem.base.json_values import freeze
from jidomem.errors import InvalidRequest
from jidomem.records.directive import (
    RESULT_SIGNAL,
    TOP_K,
    Directive,
    MemoryDelete,
    MemoryQuery,
    MemoryUpsert,
    Signal,
    Step,
    UpsertItem,
    new_request_id,
)
from jidomem.working.agent import (
    HasState,
    ensure,
    ensure_space,
    get,
    get_in_space,
    put,
    update_space_data,
    world_get,
    world_put,
)
from jidomem.working.container import MEMORY_KEY, POINTERS, SUMMARY, moment, new_or_given_id
from jidomem.working.memory import Memory


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """One event: its index from 0, its time in milliseconds, its kind, its content and its references."""

    id: str
    seq: int
    at: int
    kind: str
    payload: Any = None
    refs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "payload", freeze(self.payload))
        object.__setattr__(self, "refs", freeze(self.refs))


@dataclass(frozen=True, slots=True)
class Thread:
    """The entries of a thread, oldest first.

    >>> thread = Thread().append("message", {"text": "hello"}, at=0).append("tool_call", at=1)
    >>> [entry.seq for entry in thread.slice(1, 5)]
    [1]
    """

    entries: tuple[ThreadEntry, ...] = ()

    def __post_init__(self) -> None:
        entries = tuple(self.entries)
        if any(entry.seq != place for place, entry in enumerate(entries)):
            raise InvalidRequest(
                "the entries of a thread are numbered from 0 without a gap", hint="start with Thread() and append"
            )
        object.__setattr__(self, "entries", entries)

    def append(
        self,
        kind: str,
        payload: Any = None,
        refs: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002
        at: int | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> Thread:
        """Return the thread with one more entry; raise `InvalidRequest` for an empty kind."""
        if not isinstance(kind, str) or not kind:
            raise InvalidRequest(
                f"the kind of an entry is a word such as 'message', not {kind!r}",
                hint='append("message", {"text": "hello"})',
            )
        entry_id = new_or_given_id("entry_", id, new_id)
        entry = ThreadEntry(entry_id, len(self.entries), moment(at), kind, payload, refs or {})
        return replace(self, entries=(*self.entries, entry))

    def slice(self, from_seq: int, to_seq: int) -> tuple[ThreadEntry, ...]:
        """Return the entries from *from_seq* to *to_seq*, inclusive, as far as they exist."""
        return self.entries[max(0, from_seq) : max(0, to_seq + 1)]

    def entry_count(self) -> int:
        """Return the number of entries."""
        return len(self.entries)

    def filter_by_kind(self, kind: str) -> tuple[ThreadEntry, ...]:
        """Return the entries of one kind, oldest first."""
        return tuple(entry for entry in self.entries if entry.kind == kind)


A = TypeVar("A", bound=HasState)
#: A handler of a signal returns the agent after it, with its next directives, if any.
Handler = Callable[[Any, Signal], Any]


class Plugin(Protocol):
    """A plugin of an agent: it has a unique name, and stores in spaces named after it."""

    @property
    def name(self) -> str:
        """Return the name, unique among the plugins of an agent."""

    def mount(self, agent: A) -> tuple[A, Any]:
        """Return the agent prepared for the plugin, and the state of the plugin."""

    def routes(self) -> Mapping[str, Handler]:
        """Return the handlers of signals, by their type."""


@dataclass(frozen=True, slots=True)
class MemoryPlugin:
    """The plugin that gives an agent its memory and checkpoints it; one that *owns* `__memory__` replaces it."""

    name: str = "memory"
    owns: str = MEMORY_KEY

    def mount(self, agent: A) -> tuple[A, None]:
        """Return the agent with a memory."""
        return ensure(agent), None

    def routes(self) -> Mapping[str, Handler]:
        """Return no handlers."""
        return {}

    def checkpoint(self, agent: HasState) -> dict[str, Any] | None:
        """Return the memory of *agent* as JSON values, for `restore`; None if it has none."""
        memory = get(agent)
        return None if memory is None else memory.to_dict()

    def restore(self, agent: A, values: Mapping[str, Any] | None) -> A:
        """Return *agent* with the memory that `checkpoint` returned."""
        return agent if values is None else put(agent, Memory.from_dict(values))


@dataclass(frozen=True, slots=True)
class Mounted:
    """The plugins of an agent in order of mounting, and the state of each by name."""

    plugins: tuple[Plugin, ...] = ()
    states: Mapping[str, Any] = field(default_factory=dict)

    def route(self, agent: A, signal: Signal) -> tuple[A, tuple[Directive, ...]]:
        """Return *agent* after all handlers for the type of *signal*, and the directives they return."""
        directives: list[Directive] = []
        for plugin in self.plugins:
            if (handler := plugin.routes().get(signal.type)) is not None:
                made = handler(agent, signal)
                agent, more = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
                directives += more
        return agent, tuple(directives)


def mount(agent: A, plugins: Sequence[Plugin] = (), *, memory: Plugin | None = MemoryPlugin()) -> tuple[A, Mounted]:
    """Return *agent* with all *plugins* mounted, the memory first; with `memory=None` no memory is added.

    A plugin that owns `__memory__` replaces *memory*. Raises InvalidRequest for two plugins with one name, and for two
    owners of one key.
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
    return [key for plugin in plugins if (key := getattr(plugin, "owns", None)) is not None]


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidRequest(f"{count} plugins {what} {name!r}", hint="mount one of them, or rename the other")


Context = Mapping[str, Any]
#: The number of last entries that a summary reads, and the most characters of each message in it.
LAST, CLIPPED = 50, 200


class Projector(Protocol):
    """A projector: derives a new memory from a thread, optionally with directives."""

    def project(self, memory: Memory, thread: Thread, ctx: Context) -> Memory | tuple[Memory, Sequence[Directive]]:
        """Return the memory after *thread*; *ctx* has the moment `now`, and further values of the agent."""


def project(projector: Projector, memory: Memory, thread: Thread, ctx: Context | None = None) -> Step[Memory]:
    """Return the step of *projector* over *thread* now; raises InvalidRequest if the projector returns no memory."""
    made = projector.project(memory, thread, {"now": moment(None, memory.sources), **(ctx or {})})
    after, directives = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
    if not isinstance(after, Memory) or not all(isinstance(each, Directive) for each in directives):
        raise InvalidRequest(
            f"{type(projector).__name__} projected {made!r:.200}, not a memory",
            hint="return the memory, or the memory and a list of directives",
        )
    return Step(after, tuple(directives))


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a projector: after *every_ms* or *after_entries* new entries, whichever is first.

    It records the last run, so that a run returns the next schedule. With neither interval it runs on demand only.
    """

    projector: Projector
    every_ms: int | None = None
    after_entries: int | None = None
    ran_at: int | None = None
    seen: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidRequest for an invalid number."""
        for name in ("every_ms", "after_entries"):
            count = getattr(self, name)
            if count is not None and (type(count) is not int or count < 1):
                raise InvalidRequest(f"{name}={count!r} is not a positive whole number", hint=f"leave {name} out")

    def is_due(self, thread: Thread, now: int) -> bool:
        """Return whether a run is due; without an earlier run *every_ms* is due at once."""
        passed = self.every_ms is not None and (self.ran_at is None or now - self.ran_at >= self.every_ms)
        grown = self.after_entries is not None and thread.entry_count() - self.seen >= self.after_entries
        return passed or grown

    def tick(
        self, memory: Memory, thread: Thread, ctx: Context | None = None, *, now: int | None = None
    ) -> tuple[Schedule, Step[Memory]]:
        """Return the result of `run` if it is due, else the schedule and the memory unchanged."""
        at = moment(now, memory.sources)
        return self.run(memory, thread, ctx, now=at) if self.is_due(thread, at) else (self, Step(memory))

    def run(
        self, memory: Memory, thread: Thread, ctx: Context | None = None, *, now: int | None = None
    ) -> tuple[Schedule, Step[Memory]]:
        """Return the schedule after a run, and the step of the projector."""
        at = moment(now, memory.sources)
        step = project(self.projector, memory, thread, {**(ctx or {}), "now": at})
        return replace(self, ran_at=at, seen=thread.entry_count()), step


def shortened(messages: Sequence[ThreadEntry]) -> str:
    """Return the messages, one a line with its role, each cut to 200 characters.

    >>> shortened(Thread().append("message", {"role": "user", "text": "we ship on Friday"}, at=0).entries)
    'user: we ship on Friday'
    """
    return "\n".join(filter(None, map(_line, messages)))


def _line(message: ThreadEntry) -> str:
    payload = message.payload if isinstance(message.payload, Mapping) else {"text": message.payload}
    text = " ".join(str(payload.get("text") or payload.get("content") or "").split())
    role = payload.get("role")
    line = f"{role}: {text}" if text and role else text
    return line if len(line) <= CLIPPED else f"{line[: CLIPPED - 1]}…"


@dataclass(frozen=True, slots=True)
class SummaryProjector:
    """The projector of `world["summary"]`: the result of *summarize* for the messages among the last 50 entries.

    The memory is unchanged without messages, or if the summary is the same. `covers_seq` is a list of the first and
    last message read, since JSON has no tuples.
    """

    summarize: Callable[[Sequence[ThreadEntry]], str] = field(default=shortened)
    last: int = LAST

    def project(self, memory: Memory, thread: Thread, ctx: Context) -> Memory:
        """Return the memory with the summary of *thread*."""
        count = thread.entry_count()
        entries = thread.slice(max(0, count - self.last), count)
        messages = [entry for entry in entries if entry.kind == "message"]
        if not messages:
            return memory
        summary = {"content": self.summarize(messages), "source": "projector",
                "covers_seq": [messages[0].seq, messages[-1].seq]}  # fmt: skip
        present = memory.world_get(SUMMARY)
        if isinstance(present, Mapping) and summary.items() <= present.items():
            return memory
        now = ctx["now"]
        return memory.world_put(SUMMARY, {**summary, "projected_at": now}, now=now)


#: The number of last answers in the cache.
MAX_CACHED_REQUESTS = 16


@dataclass(frozen=True, slots=True)
class RagPlugin:
    """Recall, Remember, Forget and Summarize over one provider; answers arrive in the space `<name>:cache`.

    Each operation returns directives for the loop of the agent. *index* is the name of the store at the provider.
    """

    provider: str
    index: str = "default"
    name: str = "rag"
    summary: Projector = field(default_factory=SummaryProjector)

    @property
    def cache(self) -> str:
        """Return the name of the space of the answers."""
        return f"{self.name}:cache"

    def mount(self, agent: A) -> tuple[A, Mapping[str, str]]:
        """Return the agent with a cache and a pointer to the store, and the target of the pointer; content stays."""
        where = {"provider": self.provider, "index": self.index}
        agent = ensure_space(ensure(agent), self.cache, {})
        pointers = world_get(agent, POINTERS, {})
        own = "semantic" if pointers.get("semantic", where) == where else f"{self.name}:semantic"
        if pointers.get(own) != where:
            agent = world_put(agent, POINTERS, {**pointers, own: where})
        return agent, where

    def routes(self) -> Mapping[str, Handler]:
        """Return the handler of the results of memory."""
        return {RESULT_SIGNAL: self.received}

    def recall(self, text: str, *, top_k: int = TOP_K) -> MemoryQuery:
        """Return the directive that queries for texts similar to *text*."""
        return MemoryQuery(query={"text": text, "top_k": top_k}, **self._addressed())

    def remember(self, key: str, value: Any, *, embedding: Iterable[float] | None = None) -> MemoryUpsert:
        """Return the directive that stores *value*, a text or a mapping with a `text`, under *key*."""
        return MemoryUpsert(items=[UpsertItem(key, value, embedding)], **self._addressed())

    def forget(self, *keys: str) -> MemoryDelete:
        """Return the directive that deletes the values of *keys*."""
        return MemoryDelete(keys=keys, **self._addressed())

    def summarize(self, agent: A, thread: Thread, *, now: int | None = None) -> tuple[A, list[MemoryUpsert]]:
        """Return the agent with the summary of *thread* in its world, and the directives that store a new summary."""
        agent = ensure(agent, now=now)
        before = world_get(agent, SUMMARY)
        step = project(self.summary, get(agent), thread, {} if now is None else {"now": now})
        summary = step.memory.world_get(SUMMARY)
        keep = [] if summary == before else [self.remember(f"{self.name}:summary", summary["content"])]
        return put(agent, step.memory), [*step.directives, *keep]  # type: ignore[list-item]

    def received(self, agent: A, signal: Signal) -> A:
        """Return the agent with the outcome of its own request; changed values are removed from earlier answers."""
        data = signal.data
        request = str(data["request_id"])
        if request.rpartition(":")[0] != f"req_{self.name}":
            return agent
        result = data["result"]
        if isinstance(result, Mapping) and result["items"]:  # the result of an upsert or delete
            changed = {item["key"] for item in result["items"]}
            agent = update_space_data(agent, self.cache, lambda cache: _without(cache, changed))
        if data["status"] == "ok" and isinstance(result, Mapping):
            return agent
        outcome = {name: data[name] for name in ("status", "result", "reason") if name in data}
        return update_space_data(
            agent, self.cache, lambda cache: dict([*cache.items(), (request, outcome)][-MAX_CACHED_REQUESTS:])
        )

    def recalled(self, agent: HasState, request_id: str) -> Mapping[str, Any] | None:
        """Return the outcome of a request, with status and result or reason; None while it is pending."""
        answer: Mapping[str, Any] | None = get_in_space(agent, self.cache, request_id)
        return answer

    def _addressed(self) -> dict[str, Any]:
        """Return the provider and a request id; the name in the id identifies the plugin in the signal."""
        made = new_request_id().removeprefix("req_")
        return {"provider": self.provider, "request_id": f"req_{self.name}:{made}"}


def _without(cache: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    deleted = set(keys)

    def left(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(rows := answer["result"], list):
            return answer
        return {**answer, "result": [row for row in rows if row["key"] not in deleted]}

    return {request: left(answer) for request, answer in cache.items()}
