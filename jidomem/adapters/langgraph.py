"""LangGraph's long-term memory, a `BaseStore`, with its items kept as entries of an agent.

from jidomem.adapters.langgraph import JidomemStore
graph = builder.compile(store=JidomemStore(memory))
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from math import isfinite
from typing import Any
from urllib.parse import quote

import orjson

from jidomem.adapters import item_filter
from jidomem.adapters.expiry import Expiry
from jidomem.adapters.whose import agent_of
from jidomem.entry import Entry, WriteRequest
from jidomem.errors import Failed, InvalidRequest, JidomemError
from jidomem.read.keyed import Held, Keyed
from jidomem.recall import MOST, NAMESPACE, RecallRequest
from jidomem.runtime.root import Jidomem
from jidomem.write.history import EntryChanges

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        PutOp,
        SearchItem,
        SearchOp,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise Failed(
        f"LangGraph's store is not installed ({error})", hint="pip install 'jidomem[langgraph]'", code="missing_extra"
    ) from error

#: What the metadata of each of its entries say as `source`.
SOURCE = "langgraph"
#: Stands between a namespace and a key: no label of a namespace has a dot.
_KEY = ".."
_LINKED = "pass fields=[...]; vectors are made by the embedder of the root: jidomem.open(..., embedder=...)"

Scores = Mapping[str, float]


class JidomemStore(BaseStore):
    """The items of one agent: each version of one is kept, a deletion is recorded, and recall finds what they say.

    What a batch puts and deletes is kept whole or not at all, in one commit. Any number of threads and processes may
    use one root. A `query` is answered by words, and by likeness where the root has an embedder.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Jidomem,
        *,
        agent: str | None = None,
        project: str | None = None,
        fields: Sequence[str] | None = None,
        ttl: Mapping[str, Any] | None = None,
        index: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep in *memory*, an open root, the items of *agent* in *project*, the configured ones unless given.

        *fields* are the paths of what recall finds of a value, all its texts unless given. *ttl* is as LangGraph has
        it. Raises InvalidRequest for what is no open root, and for an *index* that names more than fields.
        """
        super().__init__()
        self.agent = agent_of(memory, agent, "JidomemStore")
        if unknown := {*(index or {})} - {"fields"}:
            raise InvalidRequest(f"index takes no {', '.join(sorted(unknown))} here", hint=_LINKED)
        self.ttl_config = dict(ttl) if ttl else None
        self._fields = fields if fields is not None else (index or {}).get("fields")
        if isinstance(self._fields, str):
            raise InvalidRequest("fields is a list of paths, not one", hint=f"fields=[{self._fields!r}]")
        self._store = memory.entry_store(project)
        self._beginning = f"{SOURCE}:{quote(self.agent, safe='')}:"
        start = len(self._beginning)
        self._kept = self._store.keyed(self._beginning, lambda name: name[start:].partition(_KEY)[0])
        self._expiry = Expiry(memory, f"{SOURCE} {self._store.project} {self.agent}", self.ttl_config or {})

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Return the answer to each operation: what is asked is answered before anything is put or deleted.

        Of several puts of one key the last one counts. Raises ValueError for an operation that cannot be followed, and
        what the writer refuses: then nothing was kept.
        """
        asked = [_checked(op) for op in ops]
        puts = [op for op in asked if isinstance(op, PutOp)]
        changes = self._changes(puts)
        answers = [None] * len(asked)
        if len(puts) < len(asked):
            queries = {op.query for op in asked if isinstance(op, SearchOp) and op.query}
            scores = {query: self._scores(query) for query in queries}
            answers = self._kept.read(lambda held: [self._answer(held, op, scores) for op in asked])
        self._keep(changes)
        return answers

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Return what `batch` does, from a thread: those that put at the same time share commits."""
        return await asyncio.to_thread(self.batch, [*ops])

    def sweep_ttl(self) -> int:
        """Return how many items have lived as long as they may; they are deleted, and stay in the history."""
        return len(self._store.change(lambda: EntryChanges(removed=self._kept.read(self._expired))))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Any:
        """Return a future: until it is cancelled, a thread calls `sweep_ttl` again and again."""
        return self._expiry.start(self.sweep_ttl, sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Return whether that thread has come to its end, which is waited for."""
        return self._expiry.stop(timeout)

    def _answer(self, held: Held, op: Any, scores: Mapping[str, Scores]) -> Any:
        if isinstance(op, GetOp):
            one = held.by_id.get(self._id(op.namespace, op.key))
            found = [] if one is None or self._expiry.omits(one) else [one]
            self._expiry.read(found, op.refresh_ttl)
            return Item(**_fields(found[0])) if found else None
        if isinstance(op, SearchOp):
            pairs = [*_page(self._found(held, op, scores.get(op.query, {})), op.limit, op.offset)]
            self._expiry.read([one for one, _ in pairs], op.refresh_ttl)
            return [SearchItem(**_fields(one), score=score) for one, score in pairs]
        return self._namespaces(held, op) if isinstance(op, ListNamespacesOp) else None

    def _found(self, held: Held, op: SearchOp, scores: Scores) -> Iterator[tuple[Keyed, float | None]]:
        """Yield what is in the namespace and passes: what answers the query, the best first, then what is newest."""
        passes = item_filter.passes(op.filter)
        start, whole = len(self._beginning), ".".join(op.namespace_prefix)
        names = [name for name in held.groups if not whole or f"{name}.".startswith(f"{whole}.")]
        inside = {*names}
        best = (held.by_id[name] for name in scores if name in held.by_id)
        others = (one for one in held.newest(names) if one.id not in scores)
        for one in chain((one for one in best if one.id[start:].partition(_KEY)[0] in inside), others):
            if not self._expiry.omits(one) and (not op.filter or passes(_value(one))):
                yield one, scores.get(one.id)

    def _scores(self, query: str) -> Scores:
        """Return how well items answer *query*, by their ids, the best first."""
        if not query.strip():
            return {}
        found = self._store.recall(RecallRequest(agent_id=self.agent, query=query, limit=MOST))
        scores: dict[str, float] = found.metadata["scores"]
        return {one.id: scores[one.id] for one in found.entries if one.id in scores}

    def _namespaces(self, held: Held, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        omits = self._expiry.omits
        names = [name for name, group in held.groups.items() if not all(map(omits, group.values()))]
        found = [labels for labels in (tuple(name.split(".")) for name in names) if _matches(labels, op)]
        cut = {labels[: op.max_depth] for labels in found}
        return [*_page(iter(sorted(cut, key=".".join)), op.limit, op.offset)]

    def _changes(self, puts: Sequence[PutOp]) -> EntryChanges:
        """Return what *puts* come to, the last one of each key."""
        last = {self._id(op.namespace, op.key): op for op in puts}
        ordered = dict.fromkeys(self._id(op.namespace, op.key) for op in reversed(puts))
        kept = [self._entry(name, last[name]) for name in reversed(ordered) if last[name].value is not None]
        return EntryChanges(kept, [name for name, op in last.items() if op.value is None])

    def _keep(self, changes: EntryChanges) -> None:
        if len(changes.kept) == 1 and not changes.removed:  # it shares a commit with those of other threads
            (result,) = self._store.write_many([WriteRequest(changes.kept[0])])
            if isinstance(result, JidomemError):
                raise result
        elif changes.kept or changes.removed:
            self._store.change(lambda: changes)

    def _id(self, namespace: Sequence[str], key: str) -> str:
        return f"{self._beginning}{'.'.join(namespace)}{_KEY}{key}"

    def _entry(self, name: str, op: PutOp) -> Entry:
        value = orjson.loads(orjson.dumps(dict(op.value)))
        said = {"source": SOURCE, NAMESPACE: ".".join(op.namespace), "key": op.key, "value": value}
        said |= {} if op.ttl is None else {"ttl": float(op.ttl)}
        return Entry(id=name, agent_id=self.agent, content=self._content(op, value), metadata=said)

    def _content(self, op: PutOp, value: Any) -> str:
        """Return what recall finds of a value: its texts, or where it is if it has none, or none to be found by."""
        fields = self._fields if op.index is None else op.index
        if fields is False:
            texts: Iterable[str] = ()
        elif fields is None or fields == ["$"]:
            texts = _texts(value)
        else:
            texts = (text for path in fields for text in get_text_at_path(value, path))
        content = "\n".join(texts)
        return content if content.strip() else f"{'.'.join(op.namespace)} {op.key}"

    def _expired(self, held: Held) -> list[str]:
        return [one.id for one in held.by_id.values() if self._expiry.is_over(one)]


def _checked(op: Any) -> Any:
    """Return *op*; raises ValueError for what is no operation, or not one that can be followed."""
    if not isinstance(op, (GetOp, SearchOp, PutOp, ListNamespacesOp)):
        raise ValueError(f"Unknown operation type: {type(op)}")
    validate_op_namespace(op)
    if isinstance(op, PutOp):
        if not op.namespace:
            raise InvalidNamespaceError("Namespace cannot be empty.")
        if op.value is not None:
            _check_value(op.value)
    if isinstance(op, ListNamespacesOp):
        if op.max_depth is not None and op.max_depth < 1:
            raise ValueError(f"max_depth={op.max_depth} leaves nothing of a namespace; give 1 or more")
        for condition in op.match_conditions or ():
            if condition.match_type not in ("prefix", "suffix"):
                raise ValueError(f"Unsupported match type: {condition.match_type}")
    return op


def _check_value(value: Any) -> None:
    """Raise ValueError for what is no mapping, or holds a number that JSON would have as nothing."""
    if not isinstance(value, Mapping):
        raise ValueError(f"a value is a mapping, not {type(value).__name__}: put {{'value': ...}}")
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, float) and not isfinite(part):
            raise ValueError(f"a value holds {part}, and JSON has no form for that")
        waiting += part.values() if isinstance(part, Mapping) else part if isinstance(part, (list, tuple)) else ()


def _matches(labels: tuple[str, ...], op: ListNamespacesOp) -> bool:
    """Return whether a namespace fits all conditions; a star stands for one label, whichever."""
    for match_type, path in op.match_conditions or ():
        part = labels[: len(path)] if match_type == "prefix" else labels[len(labels) - len(path) :]
        if len(path) > len(labels) or any(want not in ("*", label) for want, label in zip(path, part, strict=True)):
            return False
    return True


def _page(found: Iterator[Any], limit: int, offset: int) -> Iterator[Any]:
    """Yield what is on one page; a negative limit is none, as in SQL."""
    first = max(offset, 0)
    for number, one in enumerate(found):
        if 0 <= limit <= number - first:
            return
        if number >= first:
            yield one


def _fields(one: Keyed) -> dict[str, Any]:
    said = orjson.loads(one.said)
    return {
        "value": said["value"],
        "key": said["key"],
        "namespace": tuple(said[NAMESPACE].split(".")),
        "created_at": datetime.fromisoformat(one.since),
        "updated_at": datetime.fromisoformat(one.recorded),
    }


def _value(one: Keyed) -> Any:
    return orjson.loads(one.said)["value"]


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, those of lists and objects in it, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
