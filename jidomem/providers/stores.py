"""The providers that store values: inline in the state, key-value in memory or in a file, and vectors.

The vector provider finds values by a vector, ranked by cosine, or by a text, ranked as recall ranks.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from heapq import nsmallest
from math import hypot
from operator import mul
from threading import Lock
from typing import Any, NamedTuple, Protocol

from jidomem.base.json_values import to_json_value
from jidomem.base.stems import Stemmer
from jidomem.base.words import digest
from jidomem.errors import InvalidRequest
from jidomem.index.search_documents import Document
from jidomem.index.search_index import InMemorySearchIndex
from jidomem.index.search_tables import SearchFilter
from jidomem.journal.journal import Stream
from jidomem.recall.bm25 import query_stems
from jidomem.recall.candidates import RecallQuery, VectorQuery
from jidomem.recall.ranking import RankingSource, rank_sources
from jidomem.records.directive import TOP_K, Answer, Done, Missing, Opts, Scored, StoredValue, refuse_unknown, vector_of
from jidomem.records.interfaces import FIELD_WEIGHTS, StateStore


class InlineProvider:
    """Stores any Python values in memory; each call returns a new mapping and leaves the given one unchanged.

    A put copies the mapping, which suits a few values. `KeyValueProvider` takes many thousands of keys.
    """

    def init(self, opts: Opts) -> Mapping[str, Any]:
        """Return a copy of the values in `data`, by default none."""
        refuse_unknown(opts, ("data",), "the inline provider")
        return deepcopy(dict(opts.get("data", {})))

    def get(self, state: Mapping[str, Any], key: str, opts: Opts) -> StoredValue | Missing:
        """Return a copy of the value under *key*, or Missing."""
        refuse_unknown(opts, (), "inline get")
        return StoredValue(state, deepcopy(state[key])) if key in state else Missing(state)

    def put(self, state: Mapping[str, Any], key: str, value: Any, opts: Opts) -> Done:
        """Store a copy of *value* under *key*."""
        refuse_unknown(opts, (), "inline put")
        return Done({**state, key: deepcopy(value)})

    def delete(self, state: Mapping[str, Any], key: str, opts: Opts) -> Done | Missing:
        """Delete the value under *key*, or return Missing."""
        refuse_unknown(opts, (), "inline delete")
        if key not in state:
            return Missing(state)
        return Done({name: value for name, value in state.items() if name != key})


TABLES = """
CREATE TABLE IF NOT EXISTS key_values (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
"""
_PUT = """INSERT INTO key_values VALUES (?, ?, ?)
           ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value"""


@dataclass(slots=True)
class _Table:
    values: dict[str, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


class KeyValueProvider:
    """Stores any Python values in memory; thread-safe, and lost with the process."""

    def init(self, opts: Opts) -> _Table:
        """Return an empty table."""
        refuse_unknown(opts, (), "the key-value provider")
        return _Table()

    def get(self, state: _Table, key: str, opts: Opts) -> StoredValue | Missing:
        """Return a copy of the value under *key*, or Missing."""
        refuse_unknown(opts, (), "key-value get")
        with state.lock:
            return StoredValue(state, deepcopy(state.values[key])) if key in state.values else Missing(state)

    def put(self, state: _Table, key: str, value: Any, opts: Opts) -> Done:
        """Store a copy of *value* under *key*."""
        refuse_unknown(opts, (), "key-value put")
        copied = deepcopy(value)
        with state.lock:
            state.values[key] = copied
        return Done(state)

    def delete(self, state: _Table, key: str, opts: Opts) -> Done | Missing:
        """Delete the value under *key*, or return Missing."""
        refuse_unknown(opts, (), "key-value delete")
        with state.lock:
            if key not in state.values:
                return Missing(state)
            del state.values[key]
        return Done(state)


class _Namespace(NamedTuple):
    file: StateStore
    name: str


class PersistentProvider:
    """Stores values with a JSON form in a file, durably.

    Options: `state`, the file; `namespace`, the namespace of the keys.
    """

    def init(self, opts: Opts) -> _Namespace:
        """Return the namespace; the file is opened at the first call. Raises InvalidRequest without either option."""
        refuse_unknown(opts, ("namespace", "state"), "the kept key-value provider")
        file, name = opts.get("state"), opts.get("namespace")
        if file is None or not isinstance(name, str):
            hint = "memory.providers() of an open memory has one, named 'kept'"
            raise InvalidRequest("a kept provider needs a state and a namespace", hint=hint)
        return _Namespace(file, _text("namespace", name))

    def get(self, state: _Namespace, key: str, opts: Opts) -> StoredValue | Missing:
        """Return the value under *key*, or Missing."""
        refuse_unknown(opts, (), "kept get")
        sql = "SELECT value FROM key_values WHERE namespace = ? AND key = ?"
        with state.file.reading() as store:
            row = store.execute(sql, (state.name, _text("key", key))).fetchone() if store else None
        return Missing(state) if row is None else StoredValue(state, json.loads(row[0]))

    def put(self, state: _Namespace, key: str, value: Any, opts: Opts) -> Done:
        """Store *value* under *key*; raises InvalidRequest, which names the place, for a value without a JSON form."""
        refuse_unknown(opts, (), "kept put")
        text = json.dumps(to_json_value(value, "value"), ensure_ascii=False, separators=(",", ":"))
        row = (state.name, _text("key", key), text)
        with state.file.changing() as store:
            store.execute(_PUT, row)
        return Done(state)

    def delete(self, state: _Namespace, key: str, opts: Opts) -> Done | Missing:
        """Delete the value under *key*, or return Missing."""
        refuse_unknown(opts, (), "kept delete")
        sql = "DELETE FROM key_values WHERE namespace = ? AND key = ?"
        with state.file.reading() as store:
            if store is None:
                return Missing(state)
        with state.file.changing() as store:
            count = store.execute(sql, (state.name, _text("key", key))).rowcount
        return Done(state) if count else Missing(state)


def _text(name: str, given: str) -> str:
    text: str = to_json_value(given, name)
    return text


#: The moment of all values: none ranks higher for being newer.
_STREAM, _MOMENT = Stream("vectors"), "1970-01-01T00:00:00.000000Z"
Embed = Callable[[str], Sequence[float]]


class VectorBackend(Protocol):
    """Stores vectors of length 1 and finds the nearest to another; a provider calls it from one thread at a time."""

    def add(self, key: str, vector: Sequence[float]) -> None:
        """Store *vector* under *key*, in place of any other."""

    def remove(self, key: str) -> None:
        """Remove the vector under *key*, which exists."""

    def nearest(self, vector: Sequence[float], top_k: int) -> Sequence[tuple[str, float]]:
        """Return up to *top_k* keys with the cosine of each, the nearest first."""


class Scan:
    """Compares a query with every vector; among equals the one stored first comes first."""

    def __init__(self) -> None:
        self._vectors: dict[str, array[float]] = {}

    def add(self, key: str, vector: Sequence[float]) -> None:
        """Store *vector* under *key*, in 4 bytes a number."""
        self._vectors[key] = array("f", vector)

    def remove(self, key: str) -> None:
        """Remove the vector under *key*."""
        del self._vectors[key]

    def nearest(self, vector: Sequence[float], top_k: int) -> list[tuple[str, float]]:
        """Return up to *top_k* keys with the cosine of each, the nearest first."""
        alike = ((key, sum(map(mul, vector, stored))) for key, stored in self._vectors.items())
        best = nsmallest(top_k, ((-cosine, at, key) for at, (key, cosine) in enumerate(alike)))
        return [(key, max(-1.0, min(1.0, -negative))) for negative, _, key in best]


@dataclass(slots=True)
class _ProviderState:
    """The state of one provider; the dimension is that of the first vector unless it is given.

    For recall each value is an item, named by its number in the order of storage.
    """

    backend: VectorBackend
    embed: Embed | None
    dimension: int | None
    values: dict[str, Any] = field(default_factory=dict)
    vectors: dict[str, array[float]] = field(default_factory=dict)
    items: dict[str, str] = field(default_factory=dict)
    keys: dict[bytes, str] = field(default_factory=dict)
    last_number: int = 0
    stemmer: Stemmer = field(default_factory=Stemmer)
    texts: InMemorySearchIndex = field(init=False)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.texts = InMemorySearchIndex(self.stemmer)

    def item(self, key: str) -> str:
        """Return the item of the value under *key*, a new one if there is none yet."""
        if key not in self.items:
            self.last_number += 1
            self.items[key] = f"{self.last_number:012}"
            self.keys[digest(self.items[key])] = key
        return self.items[key]

    def nearest(self, stream: Stream, to: Sequence[float], limit: int) -> list[tuple[bytes, float]]:
        """Return the nearest items by their digests, in the form that recall expects."""
        best = self.backend.nearest(to, limit)
        return [(digest(self.items[key]), cosine) for key, cosine in best]

    def cosines(self, stream: Stream, to: Sequence[float], digests: Sequence[bytes]) -> Mapping[bytes, float]:
        return {each: sum(map(mul, to, self.vectors[self.keys[each]])) for each in digests if each in self.keys}


class VectorProvider:
    """Stores values with their vectors in memory, and answers a `vector` with the nearest values.

    A `text` is answered as by recall: with values that have its words or are similar to it, scored by both.

    Options: `dimension`, the number of dimensions; `embed`, the function from a text to its vector, for values without
    one; `backend`, the factory of the `VectorBackend` that finds the nearest (by default a scan of all).
    """

    def init(self, opts: Opts) -> _ProviderState:
        """Return an empty store of vectors; raises InvalidRequest for an invalid option."""
        refuse_unknown(opts, ("backend", "dimension", "embed"), "the vector provider")
        embed, dimension = opts.get("embed"), opts.get("dimension")
        if embed is not None and not callable(embed):
            raise InvalidRequest(f"embed={embed!r} is not callable", hint="give a function from a text to its vector")
        if dimension is not None and (type(dimension) is not int or dimension < 1):
            raise InvalidRequest(
                f"dimension={dimension!r} is not a dimension", hint="give dimension=384, or leave it out"
            )
        return _ProviderState(opts.get("backend", Scan)(), embed, dimension)

    def get(self, state: _ProviderState, key: str, opts: Opts) -> StoredValue | Missing:
        """Return a copy of the value under *key*, or Missing."""
        refuse_unknown(opts, (), "vector get")
        with state.lock:
            return StoredValue(state, deepcopy(state.values[key])) if key in state.values else Missing(state)

    def put(self, state: _ProviderState, key: str, value: Any, opts: Opts) -> Done:
        """Store *value* by its `embedding`, else by that of its text; raises InvalidRequest if it has neither."""
        refuse_unknown(opts, ("embedding",), "vector put")
        given = opts.get("embedding")
        vector = _embedded(state, _text_of(key, value, state)) if given is None else vector_of(given, "embedding")
        copied = deepcopy(value)
        with state.lock:
            unit = _unit(vector, state)
            state.backend.add(key, unit)
            state.values[key], state.vectors[key] = copied, array("f", unit)
            state.dimension = len(unit)
            item = state.item(key)
            state.texts.put({item: (_document(item, _stored_text(value)), None)})
        return Done(state)

    def delete(self, state: _ProviderState, key: str, opts: Opts) -> Done | Missing:
        """Delete the value under *key*, or return Missing."""
        refuse_unknown(opts, (), "vector delete")
        with state.lock:
            if key not in state.values:
                return Missing(state)
            state.backend.remove(key)
            item = state.items.pop(key)
            state.texts.put({}, [item])
            del state.values[key], state.vectors[key], state.keys[digest(item)]
        return Done(state)

    def query(self, state: _ProviderState, query: Mapping[str, Any], opts: Opts) -> Answer:
        """Return up to `top_k` values: those nearest to the `vector` of *query*, or the best matches of its `text`.

        Raises InvalidRequest for both, for neither and for a vector of another length than those stored.
        """
        refuse_unknown(opts, (), "vector query")
        refuse_unknown(query, ("text", "vector", "top_k"), "a query for vectors")
        if ("text" in query) == ("vector" in query):
            raise InvalidRequest("a query has either a text or a vector", hint='give {"text": "..."}')
        vector = vector_of(query["vector"], "vector") if "vector" in query else _embedded(state, query["text"])
        top_k = query.get("top_k", TOP_K)
        with state.lock:
            unit = _unit(vector, state)
            if not state.values:
                return Answer(state, ())
            is_text = "text" in query
            scored = _recalled(state, query["text"], unit, top_k) if is_text else state.backend.nearest(unit, top_k)
            rows = [Scored(key, score, deepcopy(state.values[key])) for key, score in scored]
        return Answer(state, rows)


def _recalled(state: _ProviderState, text: str, vector: Sequence[float], top_k: int) -> list[tuple[str, float]]:
    query = RecallQuery(text, query_stems(state.stemmer, text), limit=top_k)
    answer = rank_sources(
        [RankingSource(state.texts, _STREAM, SearchFilter(), VectorQuery(state, vector))], query
    ).ranked
    return [(state.keys[digest(one.candidate.passage.item)], one.score) for one, *_ in answer[:top_k] if one.score]


def _document(item: str, text: str) -> Document:
    """Return a value as a document with the words of its *text*; its vector is under the digest of *item*."""
    return Document(
        item=item,
        types=(),
        recorded=_MOMENT,
        texts=tuple(text if name == "summary" else "" for name in FIELD_WEIGHTS),
        text=item,
        said_at=_MOMENT,
    )


def _stored_text(value: Any) -> str:
    text = value.get("text") if isinstance(value, Mapping) else value
    return text if isinstance(text, str) else ""


def _text_of(key: str, value: Any, state: _ProviderState) -> str:
    text = value.get("text") if isinstance(value, Mapping) else value
    if state.embed is None or not isinstance(text, str):
        reason = "there is no embedder" if state.embed is None else "its value has no text"
        hint = 'give the item an "embedding"; or a value with a "text", and the provider embed=...'
        raise InvalidRequest(f"{key!r} has no embedding, and {reason}", hint=hint)
    return text


def _embedded(state: _ProviderState, text: object) -> tuple[float, ...]:
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequest(f"text={text!r} is not a text", hint="give a text that is not empty")
    if state.embed is None:
        hint = 'ask with {"vector": [...]}, or register the provider with embed=...'
        raise InvalidRequest("there is no embedder", hint=hint)
    return vector_of(state.embed(text), "the result of embed")


def _unit(vector: Sequence[float], state: _ProviderState) -> tuple[float, ...]:
    """Return *vector* scaled to length 1; raises InvalidRequest for zeros, and for another dimension than stored."""
    if state.dimension not in (None, len(vector)):
        raise InvalidRequest(
            f"a vector of {len(vector)} numbers among vectors of {state.dimension}",
            hint="embed everything with the same model; another model needs a provider of its own",
        )
    largest = max(map(abs, vector))
    if largest == 0:
        raise InvalidRequest("a vector of zeros has no direction", hint="leave out what has no text")
    scaled = [number / largest for number in vector]  # so that neither squares nor their root overflow or underflow
    length = hypot(*scaled)
    return tuple([number / length for number in scaled])
