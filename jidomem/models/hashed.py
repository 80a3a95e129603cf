"""Vectors of texts from the hashes of their stems: what is compared by where there is no embedding model."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from hashlib import blake2b

from jidomem.embedder import Vector
from jidomem.errors import InvalidRequest
from jidomem.models.keywords import telling
from jidomem.stems import Stemmer


class HashedStems:
    """An embedder with nothing to learn: texts are alike as far as they share stems, whatever these mean.

    Each stem adds its weight to one place of the vector, or takes it away, as its hash says. A text without a telling
    word has the zero vector, which is like no other.
    """

    def __init__(self, dimensions: int = 512) -> None:
        if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
            raise InvalidRequest(
                f"dimensions={dimensions!r} is no whole number from 1", hint="give dimensions=512, or leave it out"
            )
        self._dimensions = dimensions
        self._stemmer = Stemmer()

    @property
    def name(self) -> str:
        """Return what tells its vectors from those of any other."""
        return f"hashed-stems-1-{self._dimensions}"

    def dimensions(self) -> int:
        """Return how many numbers each of its vectors has."""
        return self._dimensions

    def generate(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector of length 1 for each of *texts*, in their order."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        numbers = [0.0] * self._dimensions
        for word in telling(self._stemmer, text):
            place = int.from_bytes(blake2b(word.stem.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            numbers[place % self._dimensions] += word.weight if place >> 63 else -word.weight
        length = math.sqrt(math.fsum(number * number for number in numbers))
        return tuple(array("f", [number / length for number in numbers]) if length else numbers)
