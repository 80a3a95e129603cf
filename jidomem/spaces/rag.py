"""A plugin by which an agent recalls from, and remembers in, a store beside its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jidomem.directive import (
    RESULT_SIGNAL,
    TOP_K,
    MemoryDelete,
    MemoryQuery,
    MemoryUpsert,
    Signal,
    UpsertItem,
    new_request_id,
)
from jidomem.spaces.agent import HasState, ensure, get, put
from jidomem.spaces.names import POINTERS, SUMMARY
from jidomem.spaces.on_spaces import ensure_space, get_in_space, update_space_data
from jidomem.spaces.on_world import world_get, world_put
from jidomem.spaces.plugin import Handler
from jidomem.spaces.projector import Projector, SummaryProjector, project
from jidomem.spaces.thread import Thread

A = TypeVar("A", bound=HasState)
#: How many answers, the last ones, are kept in the cache.
KEPT = 16


@dataclass(frozen=True, slots=True)
class RagPlugin:
    """Recall, Remember, Forget and Summarize over one provider; answers come into the space `<name>:cache`.

    Each ability gives directives for the agent's loop to perform. *index* is what the provider calls the store.
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
        """Return the agent with a cache and a pointer to the store, and where that is; what is there stays."""
        where = {"provider": self.provider, "index": self.index}
        agent = ensure_space(ensure(agent), self.cache, {})
        pointers = world_get(agent, POINTERS, {})
        own = "semantic" if pointers.get("semantic", where) == where else f"{self.name}:semantic"
        if pointers.get(own) != where:
            agent = world_put(agent, POINTERS, {**pointers, own: where})
        return agent, where

    def routes(self) -> Mapping[str, Handler]:
        """Return what answers to results of memory."""
        return {RESULT_SIGNAL: self.received}

    def recall(self, text: str, *, top_k: int = TOP_K) -> MemoryQuery:
        """Return the directive that asks for what is like *text*."""
        return MemoryQuery(query={"text": text, "top_k": top_k}, **self._addressed())

    def remember(self, key: str, value: Any, *, embedding: Iterable[float] | None = None) -> MemoryUpsert:
        """Return the directive that keeps *value*, a text or a mapping with a `text`, under *key*."""
        return MemoryUpsert(items=[UpsertItem(key, value, embedding)], **self._addressed())

    def forget(self, *keys: str) -> MemoryDelete:
        """Return the directive that forgets what is under *keys*."""
        return MemoryDelete(keys=keys, **self._addressed())

    def summarize(self, agent: A, thread: Thread, *, now: int | None = None) -> tuple[A, list[MemoryUpsert]]:
        """Return the agent with the summary of *thread* in its world, and the directives that keep a new one, too."""
        agent = ensure(agent, now=now)
        before = world_get(agent, SUMMARY)
        step = project(self.summary, get(agent), thread, {} if now is None else {"now": now})
        told = step.memory.world_get(SUMMARY)
        keep = [] if told == before else [self.remember(f"{self.name}:summary", told["content"])]
        return put(agent, step.memory), [*step.directives, *keep]  # type: ignore[list-item]

    def received(self, agent: A, signal: Signal) -> A:
        """Return the agent with what its own request came to; a value that changed is in no earlier answer any more."""
        data = signal.data
        request = str(data["request_id"])
        if request.rpartition(":")[0] != f"req_{self.name}":
            return agent
        result = data["result"]
        if isinstance(result, Mapping) and result["items"]:  # of an upsert or a delete
            changed = {item["key"] for item in result["items"]}
            agent = update_space_data(agent, self.cache, lambda cache: _without(cache, changed))
        if data["status"] == "ok" and isinstance(result, Mapping):
            return agent
        kept = {name: data[name] for name in ("status", "result", "reason") if name in data}
        return update_space_data(agent, self.cache, lambda cache: dict([*cache.items(), (request, kept)][-KEPT:]))

    def recalled(self, agent: HasState, request_id: str) -> Mapping[str, Any] | None:
        """Return what a request came to: status with result, or reason; None while it is not answered."""
        answer: Mapping[str, Any] | None = get_in_space(agent, self.cache, request_id)
        return answer

    def _addressed(self) -> dict[str, Any]:
        """Return to whom a directive goes, and as whose: the name in the id tells whose signal it is."""
        made = new_request_id().removeprefix("req_")
        return {"provider": self.provider, "request_id": f"req_{self.name}:{made}"}


def _without(cache: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the answers less the rows of *keys*."""
    gone = set(keys)

    def left(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(rows := answer["result"], list):
            return answer
        return {**answer, "result": [row for row in rows if row["key"] not in gone]}

    return {request: left(answer) for request, answer in cache.items()}
