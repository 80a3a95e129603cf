"""Values found by the likeness of their vectors: what is asked for is compared by cosine, the most alike first."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from heapq import nsmallest
from math import hypot
from operator import mul
from threading import Lock
from typing import Any, Protocol

from jidomem.directive import TOP_K, vector_of
from jidomem.errors import InvalidRequest
from jidomem.provider import Answer, Done, Found, Missing, Opts, Scored, only

Embed = Callable[[str], Sequence[float]]


class VectorBackend(Protocol):
    """Keeps vectors of length 1 and finds those nearest to another; a provider calls it from one thread at a time."""

    def add(self, key: str, vector: Sequence[float]) -> None:
        """Keep *vector* under *key*, in the place of what was there."""
        ...

    def remove(self, key: str) -> None:
        """Let go of the vector under *key*, which is there."""
        ...

    def nearest(self, vector: Sequence[float], top_k: int) -> Sequence[tuple[str, float]]:
        """Return up to *top_k* keys with the cosine of each, the most alike first."""
        ...


class Scan:
    """Compares what is asked for with every vector; of two that are alike, the one that was kept first comes first."""

    def __init__(self) -> None:
        self._vectors: dict[str, array[float]] = {}

    def add(self, key: str, vector: Sequence[float]) -> None:
        """Keep *vector* under *key*, in 4 bytes a number."""
        self._vectors[key] = array("f", vector)

    def remove(self, key: str) -> None:
        """Let go of the vector under *key*."""
        del self._vectors[key]

    def nearest(self, vector: Sequence[float], top_k: int) -> list[tuple[str, float]]:
        """Return up to *top_k* keys with the cosine of each, the most alike first."""
        alike = ((key, sum(map(mul, vector, kept))) for key, kept in self._vectors.items())
        found = nsmallest(top_k, ((-cosine, at, key) for at, (key, cosine) in enumerate(alike)))
        return [(key, max(-1.0, min(1.0, -negative))) for negative, _, key in found]


@dataclass(slots=True)
class _Kept:
    """What one provider holds; the dimension is that of the first vector unless it was given."""

    backend: VectorBackend
    embed: Embed | None
    dimension: int | None
    values: dict[str, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


class VectorProvider:
    """Keeps values with their vectors in memory, and answers a `text` or a `vector` with the most alike.

    Options: `dimension`, how many numbers a vector has; `embed`, what makes a vector of a text where none is given;
    `backend`, what makes the `VectorBackend` that finds the nearest (a scan of all unless given).
    """

    def init(self, opts: Opts) -> _Kept:
        """Return an empty store of vectors; raises InvalidRequest for an option of another form."""
        only(opts, ("backend", "dimension", "embed"), "the vector provider")
        embed, dimension = opts.get("embed"), opts.get("dimension")
        if embed is not None and not callable(embed):
            raise InvalidRequest(f"embed={embed!r} cannot be called", hint="give a function from a text to its vector")
        if dimension is not None and (type(dimension) is not int or dimension < 1):
            raise InvalidRequest(f"dimension={dimension!r} is no count", hint="give dimension=384, or leave it out")
        return _Kept(opts.get("backend", Scan)(), embed, dimension)

    def get(self, state: _Kept, key: str, opts: Opts) -> Found | Missing:
        """Return a copy of the value under *key*, or that there is none."""
        only(opts, (), "vector get")
        with state.lock:
            return Found(state, deepcopy(state.values[key])) if key in state.values else Missing(state)

    def put(self, state: _Kept, key: str, value: Any, opts: Opts) -> Done:
        """Keep *value* by its `embedding`, else by that of its text; raises InvalidRequest where it has neither."""
        only(opts, ("embedding",), "vector put")
        given = opts.get("embedding")
        vector = _embedded(state, _text_of(key, value, state)) if given is None else vector_of(given, "embedding")
        kept = deepcopy(value)
        with state.lock:
            unit = _unit(vector, state)
            state.backend.add(key, unit)
            state.values[key] = kept
            state.dimension = len(unit)
        return Done(state)

    def delete(self, state: _Kept, key: str, opts: Opts) -> Done | Missing:
        """Let go of the value under *key*, or say that there is none."""
        only(opts, (), "vector delete")
        with state.lock:
            if key not in state.values:
                return Missing(state)
            state.backend.remove(key)
            del state.values[key]
        return Done(state)

    def query(self, state: _Kept, query: Mapping[str, Any], opts: Opts) -> Answer:
        """Return up to `top_k` values whose vectors are most like the `vector`, or that of the `text`, of *query*."""
        only(opts, (), "vector query")
        only(query, ("text", "vector", "top_k"), "a query for vectors")
        if ("text" in query) == ("vector" in query):
            raise InvalidRequest("a query is for a text or for a vector", hint='give {"text": "..."}')
        vector = vector_of(query["vector"], "vector") if "vector" in query else _embedded(state, query["text"])
        with state.lock:
            unit = _unit(vector, state)
            found = state.backend.nearest(unit, query.get("top_k", TOP_K)) if state.values else ()
            rows = [Scored(key, score, deepcopy(state.values[key])) for key, score in found]
        return Answer(state, rows)


def _text_of(key: str, value: Any, state: _Kept) -> str:
    """Return the text that stands for a value: itself, or its `text`; raises InvalidRequest where there is none."""
    text = value.get("text") if isinstance(value, Mapping) else value
    if state.embed is None or not isinstance(text, str):
        why = "there is nothing that embeds a text" if state.embed is None else "its value has no text"
        hint = 'give the item an "embedding"; or a value with a "text", and the provider embed=...'
        raise InvalidRequest(f"{key!r} has no embedding, and {why}", hint=hint)
    return text


def _embedded(state: _Kept, text: object) -> tuple[float, ...]:
    """Return the vector of *text*."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequest(f"text={text!r} is no text", hint="give a text that is not empty")
    if state.embed is None:
        hint = 'ask with {"vector": [...]}, or register the provider with embed=...'
        raise InvalidRequest("there is nothing that embeds a text", hint=hint)
    return vector_of(state.embed(text), "what embed gave")


def _unit(vector: Sequence[float], state: _Kept) -> tuple[float, ...]:
    """Return *vector* at length 1; raises InvalidRequest for another dimension than is kept, and for no direction."""
    if state.dimension not in (None, len(vector)):
        raise InvalidRequest(
            f"a vector of {len(vector)} numbers among vectors of {state.dimension}",
            hint="embed everything with the same model; another model needs a provider of its own",
        )
    largest = max(map(abs, vector))
    if largest == 0:
        raise InvalidRequest("a vector of zeros has no direction", hint="leave out what has no text")
    scaled = [number / largest for number in vector]  # so that neither squares nor their root leave the range of floats
    length = hypot(*scaled)
    return tuple([number / length for number in scaled])
