"""The long-term memory of LangGraph, a `BaseStore`, with its items stored as entries of an agent.

    from jidomem.adapters.langgraph import JidomemStore
    graph = builder.compile(store=JidomemStore(memory))

An item expires some minutes after its last write, or read if reads count. Filters mean what they mean in LangGraph's
SqliteStore: a filter compares what SQLite makes of a part of the value: null, a number (booleans are 1 and 0) or a
text, which lists and objects are by their JSON. Numbers sort before texts, and null equals nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from math import isfinite
from typing import Any
from urllib.parse import quote

import orjson

from jidomem.base.background import PeriodicTask
from jidomem.errors import (
    Failed,
    IntentRefused,
    InvalidRequest,
    JidomemError,
    MemoryClosed,
    PolicyDenied,
    hint_in_python,
)
from jidomem.providers.stores import TABLES
from jidomem.rdf.terms import Term
from jidomem.read.conversations import CachedEntries, CachedEntry
from jidomem.records.entry import Entry, WriteRequest
from jidomem.records.interfaces import NAMESPACE
from jidomem.records.recall import LARGEST_LIMIT, RecallRequest
from jidomem.runtime.agent_memory import agent_of
from jidomem.runtime.root import Jidomem
from jidomem.write import secrets
from jidomem.write.conversation import EntryChanges

_KNOWN = ("refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes")
_READ = """INSERT INTO key_values VALUES (?, ?, ?)
           ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value"""
#: The default of minutes between two sweeps.
_EACH = 5.0


class Expiry:
    """The expiry of the items of one store. The times of reads are working state of the root, in no journal."""

    def __init__(self, memory: Jidomem, name: str, config: Mapping[str, Any]) -> None:
        """Use LangGraph's TTL *config* for the store *name*; raises InvalidRequest for unknown or invalid options."""
        if unknown := {*config} - {*_KNOWN}:
            raise InvalidRequest(f"ttl takes no {', '.join(sorted(unknown))}", hint=f"use {', '.join(_KNOWN)}")
        for option in ("default_ttl", "sweep_interval_minutes"):
            check_minutes(option, config.get(option))
        self._now = memory.sources.now
        self._config = config
        self._name = name
        self._state = memory.place.state("working", TABLES) if config.get("refresh_on_read") else None
        self._task: PeriodicTask | None = None

    def omits(self, item: CachedEntry) -> bool:
        """Return whether an item is left out of results."""
        return bool(self._config.get("omit_expired")) and self.is_over(item)

    def is_over(self, item: CachedEntry) -> bool:
        """Return whether an item has expired."""
        minutes = _minutes(item)
        if minutes is None:
            return False
        now = self._now()
        with suppress(OverflowError):  # a time to live that exceeds the calendar
            over = now - timedelta(minutes=minutes)
            return datetime.fromisoformat(item.recorded) < over and self._last_read(item) < over
        return False

    def read(self, items: Iterable[CachedEntry], refresh: bool) -> None:
        """Record reads of items whose time they extend. Expired items are not among them if they are omitted."""
        read = [item for item in items if _minutes(item) is not None] if refresh and self._state is not None else []
        if read and self._state is not None:
            with self._state.changing() as store:
                store.executemany(
                    _READ, [(self._name, item.node, json.dumps(self._now().isoformat())) for item in read]
                )

    def start(self, sweep: Callable[[], int], interval: float | None) -> Future[None]:
        """Call *sweep* every *interval* minutes, and return a future: its cancellation, or `stop`, ends that."""
        future: Future[None] = Future()
        if not self._config:
            future.set_result(None)
            return future
        future.add_done_callback(lambda done: self.stop(0) if done.cancelled() else None)
        if self._task is not None and self._task.is_running:
            return future

        def run() -> None:
            try:
                sweep()
            except MemoryClosed:
                self.stop(0)
            except JidomemError:
                pass  # the next sweep tries again

        minutes = float(interval or self._config.get("sweep_interval_minutes") or _EACH)
        self._task = PeriodicTask(60 * minutes, run, "jidomem-item-sweeper")
        return future

    def stop(self, timeout: float | None) -> bool:
        """Stop sweeping, and return whether the running sweep has ended within *timeout*."""
        if self._task is None:
            return True
        self._task.stop(timeout)
        return not self._task.is_running

    def _last_read(self, item: CachedEntry) -> datetime:
        sql = "SELECT value FROM key_values WHERE namespace = ? AND key = ?"
        row = None
        if self._state is not None:
            with self._state.reading() as store:
                row = None if store is None else store.execute(sql, (self._name, item.node)).fetchone()
        return datetime.fromisoformat(item.recorded if row is None else json.loads(row[0]))


def check_minutes(name: str, minutes: object) -> None:
    """Raise InvalidRequest unless *minutes* is a positive number, or None."""
    if minutes is not None and (isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0):
        raise InvalidRequest(f"{name}={minutes!r} is not a number of minutes above 0", hint=f"{name}=60")


def _minutes(item: CachedEntry) -> float | None:
    """Return the time to live of an item in minutes, None without a limit."""
    ttl = item.metadata.get("ttl") if '"ttl":' in item.metadata_json else None
    return ttl if isinstance(ttl, float) else None


_KEY = re.compile(r"[a-zA-Z0-9_.-]+")
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_NUMBERS, _TEXTS, _BYTES = 1, 2, 3
_LARGEST = 2**63

#: A value with the rank of its type; None for no value.
_Comparable = tuple[int, Any] | None
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda a, b: bool(a == b),
    "$ne": lambda a, b: bool(a != b),
    "$gt": lambda a, b: bool(a > b),
    "$gte": lambda a, b: bool(a >= b),
    "$lt": lambda a, b: bool(a < b),
    "$lte": lambda a, b: bool(a <= b),
}
_IN_ORDER = ("$gt", "$gte", "$lt", "$lte")

Passes = Callable[[Any], bool]


def build_filter(filters: Mapping[str, Any] | None) -> Passes:
    """Return the predicate whether a value passes all *filters*; raises ValueError for an unknown key or operator.

    >>> matches = build_filter({"type": "report", "score": {"$gte": 3}})
    >>> [matches({"type": "report", "score": score}) for score in (2, 3.5, None)]
    [False, True, False]
    """
    conditions = [condition for key, operand in (filters or {}).items() for condition in _conditions(key, operand)]
    return lambda value: all(condition(value) for condition in conditions)


def _conditions(key: str, condition: Any) -> Iterable[Passes]:
    steps = _steps(key)
    if isinstance(condition, Mapping):
        if nested := [name for name in condition if not str(name).startswith("$")]:
            raise ValueError(
                f"Unsupported operator: {nested[0]}; for a part of a value give its path, {key}.{nested[0]}"
            )
        return [_condition(steps, operator, operand) for operator, operand in condition.items()]
    if isinstance(condition, (str, int, float)) or condition is None:
        return [_condition(steps, "$eq", condition)]
    text = _TEXTS, orjson.dumps(condition).decode()
    return [lambda value: _extracted(value, steps) == text]


def _steps(key: str) -> list[str]:
    steps = key.split(".")
    if not _KEY.fullmatch(key) or "" in steps:
        raise ValueError(
            f"Invalid filter key: {key!r}. Filter keys must contain only alphanumeric characters, underscores, dots"
            " between names, and hyphens."
        )
    return steps


def _condition(steps: list[str], operator: str, operand: Any) -> Passes:
    holds = _OPERATORS.get(operator)
    if holds is None:
        raise ValueError(f"Unsupported operator: {operator}")
    if operand is None and operator in ("$eq", "$ne"):
        return lambda value: (_extracted(value, steps) is None) == (operator == "$eq")
    other = _operand(operand)
    as_number = operator in _IN_ORDER and isinstance(operand, (int, float))

    def condition(value: Any) -> bool:
        extracted = _extracted(value, steps)
        if extracted is None or other is None:
            return False
        return holds(_as_number(extracted) if as_number else extracted, other)

    return condition


def _extracted(value: Any, steps: list[str]) -> _Comparable:
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    if isinstance(value, str):
        return _TEXTS, value
    if isinstance(value, (int, float)):
        return _NUMBERS, float(value) if not -_LARGEST <= value < _LARGEST else value + 0
    return None if value is None else (_TEXTS, orjson.dumps(value).decode())


def _operand(value: Any) -> _Comparable:
    if isinstance(value, str):
        return _TEXTS, value
    if isinstance(value, (int, float)):
        number = float(value)
        return None if number != number else (_NUMBERS, number)
    return _BYTES, orjson.dumps(value)


def _as_number(comparable: tuple[int, Any]) -> tuple[int, float]:
    rank, value = comparable
    if rank == _TEXTS:
        match = _NUMBER.match(value)
        value = match[1] if match else 0
    return _NUMBERS, float(value)


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

#: The `source` in the metadata of its entries.
SOURCE = "langgraph"
#: The separator of a namespace and a key: no label of a namespace has a dot.
_RESERVED_KEY = ".."
#: The part of an entry at the beginning of a message, and that of an item.
_PART = re.compile(r"^(?:content|metadata|id)\b")
_PARTS = {"content": "value", "metadata": "value", "id": "key"}
#: Where a text has a secret: content and metadata have the same one in different places.
_PLACE = re.compile(r", at character \d+$")
_LINKED = "pass fields=[...]; vectors are made by the embedder of the root: jidomem.open(..., embedder=...)"

Scores = Mapping[Term, float]


class JidomemStore(BaseStore):
    """The items of one agent: each version is stored, a deletion is recorded, and recall searches them.

    The puts and deletions of a batch are one commit, all or nothing. Any number of threads and processes may use one
    root. A `query` matches words, and by similarity if the root has an embedder.
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
        """Store in *memory*, an open root, the items of *agent* in *project*, by default the configured ones.

        *fields* are the paths of a value that recall searches, by default all its texts. *ttl* is LangGraph's
        configuration. Raises InvalidRequest if *memory* is no open root, and for an *index* with more than fields.
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
        self._cached = self._store.keyed(self._beginning, lambda name: name[start:].partition(_RESERVED_KEY)[0])
        self._expiry = Expiry(memory, f"{SOURCE} {self._store.project} {self.agent}", self.ttl_config or {})

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Return the result of each operation; reads come before the puts and deletions.

        Of several puts of one key the last one counts. Raises ValueError for an invalid operation, and the errors of
        the writer; then nothing was stored.
        """
        try:
            return self._results([_checked(op) for op in ops])
        except JidomemError as error:  # an agent framework shows a model the text of an error, without notes
            if error.hint:
                error.args = (f"{error.detail}; hint: {hint_in_python(error.hint)}",)
                error.__notes__ = []
            raise

    def _results(self, checked: Sequence[Any]) -> list[Any]:
        puts = {at: op for at, op in enumerate(checked) if isinstance(op, PutOp)}
        changes = self._changes([*puts.values()])
        answers = [None] * len(checked)
        if len(puts) < len(checked):
            scores = [self._scores(op) if isinstance(op, SearchOp) else {} for op in checked]
            answers = self._cached.read(lambda cached: [*map(partial(self._answer, cached), checked, scores)])
        try:
            self._keep(changes)
        except JidomemError as error:
            at = 0 if len(changes.stored) == 1 and not changes.removed else error.position
            if at is None or at >= len(changes.stored) or isinstance(error, PolicyDenied):
                raise
            error.position = max(n for n, op in puts.items() if self._id(op.namespace, op.key) == changes.stored[at].id)
            raise _of_item(error, puts[error.position]) from error
        return answers

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Return the result of `batch`, from a thread: simultaneous puts share commits."""
        return await asyncio.to_thread(self.batch, [*ops])

    def sweep_ttl(self) -> int:
        """Delete the expired items, which stay in the history, and return their number."""

        def expired(cached: CachedEntries) -> list[str]:
            return [item.id for item in cached.by_id.values() if self._expiry.is_over(item)]

        return len(self._store.change(lambda: EntryChanges(removed=self._cached.read(expired))))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Any:
        """Call `sweep_ttl` periodically in a thread, and return a future whose cancellation ends that."""
        return self._expiry.start(self.sweep_ttl, sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the thread, and return whether it has ended within *timeout*."""
        return self._expiry.stop(timeout)

    def _answer(self, cached: CachedEntries, op: Any, scores: Scores) -> Any:
        if isinstance(op, GetOp):
            item = cached.by_id.get(self._id(op.namespace, op.key))
            items = [] if item is None or self._expiry.omits(item) else [item]
            self._expiry.read(items, op.refresh_ttl)
            return Item(**_fields(items[0])) if items else None
        if isinstance(op, SearchOp):
            pairs = [*_page(self._search_results(cached, op, scores), op.limit, op.offset)]
            self._expiry.read([item for item, _ in pairs], op.refresh_ttl)
            return [SearchItem(**_fields(item), score=score) for item, score in pairs]
        return self._namespaces(cached, op) if isinstance(op, ListNamespacesOp) else None

    def _search_results(
        self, cached: CachedEntries, op: SearchOp, scores: Scores
    ) -> Iterator[tuple[CachedEntry, float | None]]:
        """Yield the covered items: matches of the query, the best first, then the newest."""
        best = ((item, score) for node, score in scores.items() if (item := cached.of(node)) is not None)
        rest = ((item, None) for item in self._covered(cached, op) if item.node not in scores)
        yield from chain(best, rest)

    def _covered(self, cached: CachedEntries, op: SearchOp) -> Iterator[CachedEntry]:
        """Return the items in the namespace that pass the filter and are not omitted, the newest first."""
        passes, whole = build_filter(op.filter), ".".join(op.namespace_prefix)
        names = [name for name in cached.groups if not whole or f"{name}.".startswith(f"{whole}.")]
        for item in cached.newest(names):
            if not self._expiry.omits(item) and (not op.filter or passes(orjson.loads(item.metadata_json)["value"])):
                yield item

    def _scores(self, op: SearchOp) -> Scores:
        """Return the scores of the items that match the query, best first: only those that the search covers rank."""
        if not (op.query or "").strip():
            return {}
        nodes = self._cached.read(lambda cached: {item.node for item in self._covered(cached, op)})
        request = RecallRequest(agent_id=self.agent, query=op.query, limit=LARGEST_LIMIT)
        if len(nodes) > LARGEST_LIMIT:  # it takes less time to rank all entries of the agent; often that is enough
            every = self._store.scores(request)
            scores = {node: score for node, score in every.items() if node in nodes}
            if len(every) < LARGEST_LIMIT or 0 <= op.limit <= len(scores) - max(op.offset, 0):
                return scores
        return self._store.scores(request, nodes) if nodes else {}

    def _namespaces(self, cached: CachedEntries, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        omits = self._expiry.omits
        names = [name for name, group in cached.groups.items() if not all(map(omits, group.values()))]
        namespaces = [labels for labels in (tuple(name.split(".")) for name in names) if _matches(labels, op)]
        cut = {labels[: op.max_depth] for labels in namespaces}
        return [*_page(iter(sorted(cut, key=".".join)), op.limit, op.offset)]

    def _changes(self, puts: Sequence[PutOp]) -> EntryChanges:
        last = {self._id(op.namespace, op.key): op for op in puts}
        ordered = dict.fromkeys(self._id(op.namespace, op.key) for op in reversed(puts))
        written = [self._entry(name, last[name]) for name in reversed(ordered) if last[name].value is not None]
        return EntryChanges(written, [name for name, op in last.items() if op.value is None])

    def _keep(self, changes: EntryChanges) -> None:
        if len(changes.stored) == 1 and not changes.removed:  # it shares a commit with those of other threads
            (result,) = self._store.write_many([WriteRequest(changes.stored[0])])
            if isinstance(result, JidomemError):
                raise result
        elif changes.stored or changes.removed:
            self._store.change(lambda: changes)

    def _id(self, namespace: Sequence[str], key: str) -> str:
        return f"{self._beginning}{'.'.join(namespace)}{_RESERVED_KEY}{key}"

    def _entry(self, name: str, op: PutOp) -> Entry:
        try:
            value = orjson.loads(orjson.dumps(dict(op.value)))
        except TypeError as error:
            raise TypeError(f"{error}{_named(op)}") from error
        metadata = {"source": SOURCE, NAMESPACE: ".".join(op.namespace), "key": op.key, "value": value}
        metadata |= {} if op.ttl is None else {"ttl": float(op.ttl)}
        return Entry(id=name, agent_id=self.agent, content=self._content(op, value), metadata=metadata)

    def _content(self, op: PutOp, value: Any) -> str:
        """Return the text of a value that recall searches: its texts, or its namespace and key without any."""
        fields = self._fields if op.index is None else op.index
        if fields is False:
            texts: Iterable[str] = ()
        elif fields is None or fields == ["$"]:
            texts = _texts(value)
        else:
            texts = (text for path in fields for text in get_text_at_path(value, path))
        content = "\n".join(texts)
        return content if content.strip() else f"{'.'.join(op.namespace)} {op.key}"


def _of_item(error: JidomemError, op: PutOp) -> JidomemError:
    """Return the *error* of an entry as that of the item of *op*: content and metadata are its value, the id its key.

    The key counts with its namespace. They are not shown if they may contain a secret.
    """

    def renamed(message: str) -> str:
        return _PART.sub(lambda part: _PARTS[part[0]], _PLACE.sub("", message)) + where

    is_key = any(fault.field == "id" for fault in error.violations)
    where = "" if is_key else _named(op)
    if not isinstance(error, IntentRefused):
        error.detail = renamed(error.detail)
        return error
    faults = [*error.violations]
    if is_key:  # content and metadata repeat the key
        match = secrets.find(orjson.dumps(dict(op.value)).decode())
        others = secrets.refusals([] if match is None else [("value", match)])
        faults = [fault for fault in faults if fault.field == "id"]
        faults += [replace(fault, hint=faults[0].hint) for fault in others]
    by_message = {renamed(fault.message): fault for fault in reversed(faults)}
    refusal = IntentRefused(
        [replace(fault, field=_PARTS.get(fault.field or "", fault.field), message=message)
         for message, fault in reversed(by_message.items())]
    )  # fmt: skip
    refusal.position = error.position
    return refusal


def _checked(op: Any) -> Any:
    if not isinstance(op, (GetOp, SearchOp, PutOp, ListNamespacesOp)):
        raise ValueError(f"Unknown operation type: {type(op)}")
    validate_op_namespace(op)
    if isinstance(op, PutOp):
        if not op.namespace:
            raise InvalidNamespaceError("Namespace cannot be empty.")
        if op.value is not None:
            _check_value(op)
            check_minutes("ttl", op.ttl)
    if isinstance(op, ListNamespacesOp):
        if op.max_depth is not None and op.max_depth < 1:
            raise ValueError(f"max_depth={op.max_depth} is too small: give 1 or more")
        for condition in op.match_conditions or ():
            if condition.match_type not in ("prefix", "suffix"):
                raise ValueError(f"Unsupported match type: {condition.match_type}")
    return op


def _named(op: PutOp) -> str:
    """Return the end of a message, which names the item of *op*."""
    return f": item {op.key!r} of {op.namespace!r}"


def _check_value(op: PutOp) -> None:
    if not isinstance(op.value, Mapping):
        raise ValueError(f"a value is a mapping, not {type(op.value).__name__}, put {{'value': ...}}{_named(op)}")
    waiting: list[Any] = [op.value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, float) and not isfinite(part):
            raise ValueError(f"a value holds {part}, and JSON has no form for that{_named(op)}")
        waiting += part.values() if isinstance(part, Mapping) else part if isinstance(part, (list, tuple)) else ()


def _matches(labels: tuple[str, ...], op: ListNamespacesOp) -> bool:
    for match_type, path in op.match_conditions or ():
        part = labels[: len(path)] if match_type == "prefix" else labels[len(labels) - len(path) :]
        if len(path) > len(labels) or any(want not in ("*", label) for want, label in zip(path, part, strict=True)):
            return False
    return True


def _page(items: Iterator[Any], limit: int, offset: int) -> Iterator[Any]:
    first = max(offset, 0)
    for number, item in enumerate(items):
        if 0 <= limit <= number - first:
            return
        if number >= first:
            yield item


def _fields(item: CachedEntry) -> dict[str, Any]:
    metadata = orjson.loads(item.metadata_json)
    return {
        "value": metadata["value"],
        "key": metadata["key"],
        "namespace": tuple(metadata[NAMESPACE].split(".")),
        "created_at": datetime.fromisoformat(item.since),
        "updated_at": datetime.fromisoformat(item.recorded),
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
