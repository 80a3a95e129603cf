"""Texts with their vectors in memory alone, by which is recalled what no journal keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Protocol, TypeVar

from jidomem.embedder import Vector
from jidomem.index.documents import Document
from jidomem.index.text_file import TextFile
from jidomem.journal.files import Stream
from jidomem.pieces import digest, pieces
from jidomem.stems import Stemmer

if TYPE_CHECKING:
    from jidomem.index.likeness import Likeness

T = TypeVar("T")


class Readable(Protocol):
    """Texts that may be looked through, stream by stream."""

    def read(self, stream: Stream, use: Callable[[TextFile], T]) -> T:
        """Return what *use* makes of the texts of *stream*, while nobody changes them."""


class Comparable(Protocol):
    """Vectors of pieces of texts, stream by stream, each under the digest of its piece."""

    def nearest(self, stream: Stream, to: Vector, limit: int) -> list[tuple[bytes, float]]:
        """Return the *limit* most alike to a vector, with their cosines."""

    def cosines(self, stream: Stream, to: Vector, digests: Sequence[bytes]) -> Mapping[bytes, float]:
        """Return how alike each of *digests* is, as far as there is a vector of it."""


class HeldTexts:
    """Documents, each with a vector or none: they stand for any stream. Any thread may ask."""

    def __init__(self, stemmer: Stemmer) -> None:
        """Begin with none; *stemmer* is that of what is asked."""
        self._file = TextFile(":memory:", stemmer, 0.0)
        self._file.fits()
        self._vectors: dict[str, tuple[list[bytes], Vector]] = {}
        self._likeness: tuple[list[bytes], dict[bytes, int], Likeness] | None = None
        self._lock = RLock()

    def put(self, documents: Mapping[str, tuple[Document, Vector | None]], gone: Iterable[str] = ()) -> None:
        """Take in documents by their items, each with the vector of its text, and let go of those that are *gone*."""
        with self._lock, self._file.writing():
            for item in gone:
                self._vectors.pop(item, None)
            self._file.remove(gone)
            self._file.put(document for document, _ in documents.values())
            for item, (document, vector) in documents.items():
                self._vectors.pop(item, None)
                if vector is not None:
                    self._vectors[item] = [*map(digest, pieces(document.text))], vector
            self._likeness = None

    def read(self, stream: Stream, use: Callable[[TextFile], T]) -> T:
        """Return what *use* makes of the texts, whatever the stream."""
        with self._lock, self._file.reading():
            return use(self._file)

    def nearest(self, stream: Stream, to: Vector, limit: int) -> list[tuple[bytes, float]]:
        """Return the digests of the *limit* pieces whose texts are most alike to a vector, with their cosines."""
        with self._lock:
            known, _, likeness = self._compared(len(to))
            return [(known[number], cosine) for number, cosine in likeness.nearest(to, limit)]

    def cosines(self, stream: Stream, to: Vector, digests: Sequence[bytes]) -> Mapping[bytes, float]:
        """Return how alike to a vector each of *digests* is, as far as there is a vector of its text."""
        with self._lock:
            known, numbers, likeness = self._compared(len(to))
            asked = [numbers[each] for each in digests if each in numbers]
            return {known[number]: cosine for number, cosine in likeness.cosines(to, asked).items()}

    def close(self) -> None:
        """Let go of all."""
        self._file.close()

    def _compared(self, dimensions: int) -> tuple[list[bytes], dict[bytes, int], Likeness]:
        """Return the digests by number, the numbers by digest, and the vectors of so many numbers under these."""
        if self._likeness is None or self._likeness[2].dimensions != dimensions:
            from jidomem.index.likeness import Likeness, written

            vectors = {each: vector for pieces, vector in self._vectors.values() for each in pieces}
            known = [each for each, vector in vectors.items() if len(vector) == dimensions]
            likeness = Likeness(dimensions)
            if known:
                likeness.add(range(len(known)), [written(vectors[each]) for each in known])
            self._likeness = known, {each: number for number, each in enumerate(known)}, likeness
        return self._likeness
