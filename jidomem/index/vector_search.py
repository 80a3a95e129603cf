"""Nearest-neighbour search in memory: candidates by the signs of their components, then their exact cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from jidomem.errors import Failed

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError as error:
    raise Failed(
        f"vectors are compared with numpy, which is not installed ({error})",
        hint="pip install 'jidomem[recall]'",
        code="missing_extra",
    ) from error

#: Candidates whose cosines are computed; up to this number of vectors, all are.
CANDIDATES = 1_000
#: Vectors compared at a time, in the same memory: allocating memory for each query costs several times as much as
#: the comparison.
STEP = 8_192
#: The value that the largest component of a vector is scaled to.
LARGEST = 127
Numbers = NDArray[np.float32]
Kind = TypeVar("Kind", bound=np.generic)


def encode(vector: Sequence[float]) -> bytes:
    """Encode a vector: one byte a component, scaled to its largest; raises ValueError for an invalid one.

    >>> [*np.frombuffer(encode([0.5, -1.0]), np.int8)]
    [np.int8(64), np.int8(-127)]
    """
    numbers = np.asarray(vector, np.float32)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError("it is not a list of finite numbers")
    largest = float(np.abs(numbers).max(initial=0.0))
    return bytes(np.round(numbers * (LARGEST / largest if largest else 0.0)).astype(np.int8).tobytes())


def cosines(to: Sequence[float], values: Sequence[bytes]) -> list[float]:
    """Return the cosine of a vector and of each encoded one, of the same dimension, as a VectorSet does."""
    if not values:
        return []
    vector = np.asarray(to, np.float32)
    vector = vector / max(float(np.linalg.norm(vector)), 1e-9)
    rows = np.frombuffer(b"".join(values), np.int8).reshape(len(values), -1).astype(np.float32)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-9)
    return [float(cosine) for cosine in np.round(rows @ vector / lengths, 5)]


class VectorSet:
    """Vectors of one dimension, each under a number; a vector that is added has a higher number than all before."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.count = 0
        self._words = -(-dimensions // 64)
        self._values = np.zeros((0, dimensions), np.int8)
        self._numbers = np.zeros(0, np.int64)
        self._lengths = np.zeros(0, np.float32)
        self._signs = np.zeros((self._words, 0), np.uint64)
        self._distances = np.zeros(0, np.uint16)
        self._xor, self._bits = np.zeros(STEP, np.uint64), np.zeros(STEP, np.uint8)
        self._rows = np.zeros((CANDIDATES, dimensions), np.int8)
        self._floats = np.zeros((CANDIDATES, dimensions), np.float32)

    @property
    def last(self) -> int:
        """Return the highest number, or 0."""
        return int(self._numbers[self.count - 1]) if self.count else 0

    def add(self, numbers: Sequence[int], values: Sequence[bytes]) -> None:
        """Add encoded vectors; raises ValueError for one of another dimension."""
        if any(len(value) != self.dimensions for value in values):
            raise ValueError("a vector has another dimension")
        end = self.count + len(numbers)
        if end > len(self._numbers):
            self._reserve(max(end, len(self._numbers) * 5 // 4))
        new = np.frombuffer(b"".join(values), np.int8).reshape(-1, self.dimensions)
        self._values[self.count : end] = new
        self._numbers[self.count : end] = numbers
        self._lengths[self.count : end] = np.maximum(np.linalg.norm(new.astype(np.float32), axis=1), 1e-9)
        self._signs[:, self.count : end] = self._signs_of(new).T
        self.count = end

    def nearest(self, to: Sequence[float], limit: int) -> list[tuple[int, float]]:
        """Return the numbers of the *limit* most similar vectors with their cosines, the most similar first."""
        if not self.count:
            return []
        vector = self._unit(to)
        is_large = self.count > CANDIDATES
        rows = _smallest(self._sign_differences(vector), CANDIDATES) if is_large else np.arange(self.count)
        cosines = self._cosines(vector, rows)
        best = np.lexsort((rows, -cosines))[:limit]
        return [*zip(self._numbers[rows[best]].tolist(), cosines[best].tolist(), strict=True)]

    def near(self, after: int, count: int, limit: int, least: float) -> tuple[int, list[tuple[int, int, float]]]:
        """Return the *limit* nearest vectors of each of the next *count* vectors after a number.

        The result is the last of these numbers, and pairs of numbers with their cosines, of at least *least*.
        """
        start = int(np.searchsorted(self._numbers[: self.count], after, side="right"))
        pairs, last = list[tuple[int, int, float]](), after
        for row in range(start, min(start + count, self.count)):
            last = int(self._numbers[row])
            nearest = self.nearest(self._values[row].astype(np.float32).tolist(), limit + 1)
            pairs += [(last, number, cosine) for number, cosine in nearest if number != last and cosine >= least]
        return last, pairs

    def cosines(self, to: Sequence[float], numbers: Sequence[int]) -> dict[int, float]:
        """Return the cosines of those of *numbers* that are there."""
        numbers_array = np.asarray(numbers, np.int64)
        rows = np.searchsorted(self._numbers[: self.count], numbers_array)
        is_present = rows < self.count
        is_present[is_present] = self._numbers[rows[is_present]] == numbers_array[is_present]
        cosines = self._cosines(self._unit(to), rows[is_present])
        return dict(zip(numbers_array[is_present].tolist(), cosines.tolist(), strict=True))

    def _cosines(self, vector: Numbers, rows: NDArray[np.intp]) -> Numbers:
        """Return the cosines, rounded so that they do not depend on the other rows of the batch."""
        dots = np.zeros(len(rows), np.float32)
        for start in range(0, len(rows), CANDIDATES):
            batch = rows[start : start + CANDIDATES]
            values, floats = self._rows[: len(batch)], self._floats[: len(batch)]
            np.take(self._values, batch, axis=0, out=values, mode="clip")  # any other mode makes a copy first
            floats[:] = values
            np.matmul(floats, vector, out=dots[start : start + CANDIDATES])
        return np.asarray(np.round(dots / self._lengths[rows], 5), np.float32)

    def _sign_differences(self, vector: Numbers) -> NDArray[np.uint16]:
        """Return for each vector the number of components whose sign differs."""
        signs = self._signs_of(vector[None])[0]
        for start in range(0, self.count, STEP):
            distances = self._distances[start : min(start + STEP, self.count)]
            distances[:] = 0
            for column, word in zip(self._signs, signs, strict=True):
                xor, bits = self._xor[: len(distances)], self._bits[: len(distances)]
                np.bitwise_xor(column[start : start + len(distances)], word, out=xor)
                np.bitwise_count(xor, out=bits)
                distances += bits
        return self._distances[: self.count]

    def _unit(self, vector: Sequence[float]) -> Numbers:
        numbers = np.asarray(vector, np.float32)
        if numbers.shape != (self.dimensions,) or not np.isfinite(numbers).all():
            raise ValueError(f"it is not a list of {self.dimensions} finite numbers")
        return np.asarray(numbers / max(float(np.linalg.norm(numbers)), 1e-9), np.float32)

    def _signs_of(self, vectors: NDArray[np.generic]) -> NDArray[np.uint64]:
        """Return for each vector, as bits, which components are above 0."""
        bits = np.zeros((len(vectors), self._words * 64), np.bool_)
        bits[:, : self.dimensions] = vectors > np.int8(0)
        return np.packbits(bits, axis=1).view(np.uint64)

    def _reserve(self, capacity: int) -> None:
        self._values = _enlarged(self._values, capacity, self.dimensions)
        self._numbers, self._lengths = _enlarged(self._numbers, capacity), _enlarged(self._lengths, capacity)
        self._signs, self._distances = _enlarged(self._signs, self._words, capacity), np.zeros(capacity, np.uint16)


def _smallest(distances: NDArray[np.uint16], count: int) -> NDArray[np.intp]:
    """Return the indices of the *count* smallest distances; of equal ones, the first."""
    parts = (
        np.bincount(distances[at : at + STEP], minlength=int(distances.max()) + 1)
        for at in range(0, len(distances), STEP)
    )
    limit = int(np.searchsorted(np.cumsum(sum(parts)), count))
    rows = np.flatnonzero(distances < limit)
    return np.concatenate([rows, np.flatnonzero(distances == limit)[: count - len(rows)]])


def _enlarged(old: NDArray[Kind], *shape: int) -> NDArray[Kind]:
    """Return *old* in a larger array of *shape*."""
    new = np.zeros(shape, old.dtype)
    new[tuple(map(slice, old.shape))] = old
    return new
