"""Embedders: vectors from an endpoint in OpenAI's format, and of hashed stems without a model."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

from jidomem.base.stems import Stemmer
from jidomem.errors import InvalidRequest, JidomemError, ModelUnavailable
from jidomem.models.endpoint import ModelEndpoint
from jidomem.models.keywords import significant_words
from jidomem.records.interfaces import DialogueTurn, Vector, texts_of


def page_texts(pages: Sequence[DialogueTurn]) -> list[str]:
    """Return the queries and responses of *pages* in order, without blank ones."""
    return [text for text in chain.from_iterable((page.query, page.response) for page in pages) if text.strip()]


def at_least_one(pages: Sequence[DialogueTurn]) -> Sequence[DialogueTurn]:
    """Return *pages*; raise InvalidRequest if there is none."""
    if not pages:
        raise InvalidRequest("there is no page to read", hint="give at least one page")
    return pages


def so_far(pages: Sequence[DialogueTurn]) -> tuple[str | None, Sequence[DialogueTurn]]:
    """Return the last chain before the last of *pages*, None if there is none, and the pages after it."""
    for place in range(len(at_least_one(pages)) - 2, -1, -1):
        if meta_chain := pages[place].meta_chain:
            return meta_chain, pages[place + 1 :]
    return None, pages


#: An example of a model, and its number of dimensions.
MODEL, DIMENSIONS = "text-embedding-3-large", 3072
#: The most bytes of a text that are sent; the rest does not affect its vector.
LONGEST = 16_000
#: Seconds for a request with a single text, such as a query for which the user waits.
AT_ONCE = 5.0
_TEXTS, _BYTES = 128, 256 * 1024
_LARGEST = 3e38  # the largest 32-bit float
_PATH = "/embeddings"


@dataclass(frozen=True, slots=True)
class EndpointEmbedder:
    """Gets vectors of *size* numbers from *model* at *endpoint*; other sizes are refused.

    A blank text is not sent: it has the zero vector, which is similar to no other.
    """

    endpoint: ModelEndpoint
    model: str = MODEL
    size: int = DIMENSIONS

    @property
    def is_remote(self) -> bool:
        """Return True: a call sends a request to another machine."""
        return True

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise InvalidRequest(f"model={self.model!r} is not a name", hint=f'give the one it knows: "{MODEL}"')
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise InvalidRequest(f"size={self.size!r} is not a number of dimensions", hint=f"{MODEL} has {DIMENSIONS}")

    @property
    def name(self) -> str:
        """Return the model, its address and its dimension."""
        return f"{self.model} at {self.endpoint.address} ({self.size})"

    def dimensions(self) -> int:
        """Return the number of dimensions."""
        return self.size

    def generate(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each of *texts*, in order; raises ModelUnavailable if any is missing."""
        given = [_truncated(text) for text in texts_of(texts)]
        within = AT_ONCE if len(given) == 1 else None
        vectors: dict[str, Vector] = {"": [0.0] * self.size}
        for batch in _batches([text for text in dict.fromkeys(given) if text]):
            answer = self.endpoint.post(_PATH, {"model": self.model, "input": batch}, within)
            vectors.update(zip(batch, self._vectors(answer, len(batch)), strict=True))
        return [vectors[text] for text in given]

    def _vectors(self, answer: Mapping[str, Any], count: int) -> list[Vector]:
        data = answer.get("data")
        if not isinstance(data, list) or len(data) != count or not all(isinstance(each, dict) for each in data):
            given = f"{len(data)} of them" if isinstance(data, list) else "none"
            raise self._unusable(f"should return {count} vectors, and returned {given}")
        placed = {each["index"]: each.get("embedding") for each in data if type(each.get("index")) is int}
        if sorted(placed) != [*range(count)]:
            raise self._unusable("did not assign the vectors to the texts")
        return [self._vector(placed[place]) for place in range(count)]

    def _vector(self, values: Any) -> Vector:
        if not isinstance(values, list) or not set(map(type, values)) <= {float, int}:
            raise self._unusable("returned a vector that is not a list of numbers")
        if len(values) != self.size:
            hint = (
                "one store has vectors of one dimension: set dimensions to those of the model, and all are made again"
            )
            raise self._unusable(f"returned a vector of {len(values)} numbers, not {self.size}", hint)
        if not 0 < max(map(abs, values)) <= _LARGEST:
            raise self._unusable("returned a vector of zero or infinite length")
        # more digits carry no information, and take twice the space
        return array("f", values).tolist()

    def _unusable(self, what: str, hint: str = "check that the model embeds texts") -> ModelUnavailable:
        return ModelUnavailable(f"{self.model} at {self.endpoint.address} {what}", hint=hint)


class EmbedderUnavailable(NamedTuple):
    """An embedder that cannot be used now; every request raises *why*."""

    name: str
    size: int
    why: JidomemError

    def dimensions(self) -> int:
        """Return the number of dimensions."""
        return self.size

    def generate(self, texts: Sequence[str]) -> list[Vector]:
        """Raise ModelUnavailable."""
        raise ModelUnavailable(self.why.detail, hint=self.why.hint)


def _truncated(text: str) -> str:
    """Return the part of *text* that is sent, empty for a blank text."""
    cut = text.encode()[:LONGEST].decode("utf-8", "ignore") if len(text) * 4 > LONGEST else text
    return cut if cut.strip() else ""


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch, size = list[str](), 0
    for text in texts:
        length = len(text.encode())
        if batch and (len(batch) == _TEXTS or size + length > _BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


class HashedStems:
    """An embedder without a model: the similarity of texts is that of their stems, not of their meaning.

    Each stem adds its weight to one dimension of the vector, or subtracts it, by its hash. A text without significant
    words has the zero vector, which is similar to no other.
    """

    def __init__(self, dimensions: int = 512) -> None:
        if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
            raise InvalidRequest(
                f"dimensions={dimensions!r} is not a whole number from 1", hint="give dimensions=512, or leave it out"
            )
        self._dimensions = dimensions
        self._stemmer = Stemmer()

    @property
    def name(self) -> str:
        """Return the name that identifies its vectors."""
        return f"hashed-stems-1-{self._dimensions}"

    def dimensions(self) -> int:
        """Return the number of dimensions."""
        return self._dimensions

    def generate(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of length 1 for each of *texts*, in order."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        numbers = [0.0] * self._dimensions
        for word in significant_words(self._stemmer, text):
            place = int.from_bytes(blake2b(word.stem.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            numbers[place % self._dimensions] += word.weight if place >> 63 else -word.weight
        length = math.sqrt(math.fsum(number * number for number in numbers))
        return tuple(array("f", [number / length for number in numbers]) if length else numbers)
