"""The vectors of what one root holds, made by one embedder, kept below `cache/` and level with the texts.

The vectors of an open root, made in the background while it is open: no write and no recall waits for one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from jidomem.base import disk
from jidomem.base.background import PeriodicTask
from jidomem.base.clock import monotonic_time
from jidomem.errors import ModelUnavailable
from jidomem.index.cache_file import CacheFolder, CacheInvalid
from jidomem.index.search_index import VECTOR_FOLDER, BatchSizer, Texts, VectorFile, name_of
from jidomem.index.search_tables import Piece, SearchIndexReader
from jidomem.journal.journal import Stream
from jidomem.records.interfaces import Embedder, Vector

if TYPE_CHECKING:
    from jidomem.index.vector_search import Likeness

T = TypeVar("T")

#: So many pieces of text are looked through for new ones, and so many vectors read at a time.
LOOKED, READ = 1_000, 5_000
#: What an embedder that is there makes a vector of, whatever else it refuses.
_PROBE = "a"


class PieceBatch(NamedTuple):
    """The next pieces of text, as far as those without a vector are as many as are made at a time.

    `last` is the id of the last of them, None where there is none; `more` says whether there are pieces at all.
    """

    last: int | None
    digests: list[bytes]
    texts: dict[bytes, str]
    identity: str
    more: bool


class Vectors:
    """The vector files of one root for one embedder: one a stream, shared by all processes, made anew when amiss.

    A text that is there twice has one vector. Any thread may ask.
    """

    KEPT_IN: ClassVar[type[VectorFile]] = VectorFile

    def __init__(self, root: Path, texts: Texts, embedder: Embedder) -> None:
        """Keep below *root* the vectors that *embedder* makes of what is in *texts*."""
        self.embedder = embedder
        self._texts = texts
        self._files = CacheFolder(root / VECTOR_FOLDER, "vectors", self.KEPT_IN)
        self._model = blake2b(embedder.name.encode(), digest_size=6).hexdigest()
        self._likeness: dict[str, tuple[VectorFile, int, Likeness]] = {}
        self._batches = BatchSizer()
        self._is_closed = False

    def embed_next(self, stream: Stream) -> bool:
        """Make vectors of the next pieces of text there are none of; return whether there are more.

        While another process does it nothing is done. Raises ModelUnavailable, and then no vector is kept: fewer are
        tried the next time. A text that fails by itself, while another is taken, is passed by.
        """
        with self._alone(self._name(stream)) as is_mine:
            return is_mine and self._embed_next(stream)

    def has_texts(self, stream: Stream) -> bool:
        """Return whether the texts of a stream were ever taken in."""
        return self._texts.are_there(stream)

    def waiting(self, stream: Stream) -> int:
        """Return how many pieces of text no vector was looked for yet."""
        at = self._reached(stream)
        return self._texts.read(stream, lambda texts: texts.passages.waiting(_from(at, texts)))

    def nearest(self, stream: Stream, to: Vector, limit: int) -> list[tuple[bytes, float]]:
        """Return the digests of the *limit* pieces of text most alike to a vector, with their cosines."""

        def use(file: VectorFile, likeness: Likeness) -> list[tuple[bytes, float]]:
            found = likeness.nearest(to, limit)
            digests = file.digests([number for number, _ in found])
            return [(digests[number], cosine) for number, cosine in found if number in digests]

        return self._with_likeness(stream, use)

    def cosines(self, stream: Stream, to: Vector, digests: Sequence[bytes]) -> Mapping[bytes, float]:
        """Return how alike to a vector each of *digests* is, as far as there is a vector of it."""

        def use(file: VectorFile, likeness: Likeness) -> Mapping[bytes, float]:
            numbers = {number: known for known, number in file.numbers(digests).items()}
            return {numbers[number]: cosine for number, cosine in likeness.cosines(to, [*numbers]).items()}

        return self._with_likeness(stream, use)

    def vector(self, text: str) -> Vector:
        """Return the vector of *text*; raises ModelUnavailable, also for what could be compared with none."""
        made = self._made([text])
        self._written(made)
        return made[0]

    def status(self, stream: Stream) -> dict[str, Any]:
        """Return what is known of the vectors of a stream: model, how many, bytes, and how many texts wait for one.

        Those `passed_by` are texts that the embedder failed with, each by itself, and not with others.

        None wait that are known of where the texts are to be made anew: nothing is made to tell of it.
        """
        name, texts = self._name(stream), self._texts.status(stream)
        pending = None if texts is None or texts["amiss"] else self.waiting(stream)
        status: dict[str, Any] = {"model": self.embedder.name, "vectors": 0, "bytes": 0, "pending": pending}
        status["vectors"] = self._use(stream, lambda file: file.count())
        status["passed_by"] = self._use(stream, lambda file: file.metadata("passed_by") or 0)
        with suppress(OSError):
            status["bytes"] = self._files.size(name)
        return status

    def close(self) -> None:
        """Let go of all files; vectors that are being made are kept no more."""
        self._is_closed = True
        self._files.close()
        self._likeness.clear()

    def _embed_next(self, stream: Stream) -> bool:
        step = self._step(stream, self._batches.size(self._name(stream)))
        if step.last is None:
            return self._sweep(stream)
        values = self._values(self._name(stream), step.texts)
        if self._is_closed:
            return False  # it was not waited for, and nothing is opened anew for it
        if self._texts.read(stream, identity_of) == step.identity:
            self._keep(stream, step, values)
        return True  # else the texts were made anew meanwhile: perhaps one of these is to be nowhere any more

    def _step(self, stream: Stream, size: int) -> PieceBatch:
        """Return the next pieces, with the texts of *size* that have no vector."""
        at = self._reached(stream)
        return self._texts.read(stream, lambda texts: self._next(stream, texts, _from(at, texts), size))

    def _values(self, name: str, batch: Mapping[bytes, str]) -> list[tuple[bytes, bytes]]:
        """Return the vectors of *batch* as they are kept; none for one text that no embedder seems to take."""
        try:
            found = [*zip(batch, self._written(self._made([*batch.values()])), strict=True)]
        except Exception:
            if not self._batches.failed(name, batch):
                raise
            self._made([_PROBE])  # it may be that nothing at all is taken
            found = []
        self._batches.done(name)
        return found

    def _next(self, stream: Stream, texts: SearchIndexReader, after: int, size: int) -> PieceBatch:
        pieces = texts.passages.pieces(after, LOOKED)
        there = self._use(stream, lambda file: file.known([piece.digest for piece in pieces]))
        new: dict[bytes, Piece] = {}
        seen = list[Piece]()
        for piece in pieces:
            if piece.digest not in there and piece.digest not in new:
                if len(new) == size:
                    break
                new[piece.digest] = piece
            seen.append(piece)
        made = dict(zip(new, texts.passages.texts([*new.values()]), strict=True))
        last = seen[-1].id if seen else None
        return PieceBatch(last, [piece.digest for piece in seen], made, identity_of(texts), bool(pieces))

    def _keep(self, stream: Stream, step: PieceBatch, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep the vectors of a step, and that it was taken."""
        passed_by = len(step.texts) - len(values)

        def keep(file: VectorFile) -> None:
            with file.writing():
                file.keep(step.digests, dict(values))
                file.set_metadata(reached=[step.identity, step.last])
                if passed_by:
                    file.set_metadata(passed_by=(file.metadata("passed_by") or 0) + passed_by)

        self._use(stream, keep)

    def _sweep(self, stream: Stream) -> bool:
        """Remove the vectors of texts that are gone, where some are; return False."""
        state = self._texts.read(stream, lambda texts: [identity_of(texts), int(texts.metadata("gone") or 0)])
        if self._use(stream, lambda file: file.metadata("swept_at")) == state:
            return False
        number = 0
        while step := self._use(stream, lambda file: file.after(number, READ)):  # noqa: B023 (called at once)
            saying = self._texts.read(stream, lambda texts: texts.passages.saying([row[1] for row in step]))
            gone = [found for found, known, _ in step if not saying[known]]
            if gone:
                self._use(stream, lambda file: self._remove(file, gone))  # noqa: B023
            number = step[-1][0]
        self._use(stream, lambda file: self._swept(file, state))
        return False

    def _remove(self, file: VectorFile, numbers: Sequence[int]) -> None:
        with file.writing():
            file.remove(numbers)

    def _swept(self, file: VectorFile, state: list[Any]) -> None:
        with file.writing():
            file.set_metadata(swept_at=state)
        file.write_out()

    def _made(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the vectors of *texts*; raises ModelUnavailable, also where the embedder gave something else."""
        found = self.embedder.generate(texts) if texts else []
        dimensions = self.embedder.dimensions()
        if len(found) != len(texts) or any(len(vector) != dimensions for vector in found):
            detail = f"{self.embedder.name} was to give {len(texts)} vectors of {dimensions} numbers, and did not"
            raise ModelUnavailable(detail, hint="use another embedder")
        return found

    def _written(self, vectors: Sequence[Vector]) -> list[bytes]:
        """Return *vectors* as they are kept; raises ModelUnavailable for what is none."""
        from jidomem.index.vector_search import written  # an extra brings what it needs

        try:
            return [written(vector) for vector in vectors]
        except (TypeError, ValueError) as error:
            detail = f"{self.embedder.name} gave what is no vector: {error}"
            raise ModelUnavailable(detail, hint="use another embedder") from error

    def _reached(self, stream: Stream) -> tuple[str, int]:
        return self._use(stream, lambda file: file.reached)

    def _use(self, stream: Stream, use: Callable[[VectorFile], T]) -> T:
        return self._files.use(self._name(stream), lambda file, because: use(file))

    def _with_likeness(self, stream: Stream, use: Callable[[VectorFile, Likeness], T]) -> T:
        """Return what *use* makes of the file and of its vectors in memory, which are brought level with it."""
        from jidomem.index.vector_search import Likeness

        name = self._name(stream)

        def level(file: VectorFile, because: str) -> T:
            with file.reading():
                swept = int(file.metadata("swept") or 0)
                of, then, likeness = self._likeness.get(name, (None, 0, Likeness(0)))
                if of is not file or then != swept:
                    likeness = Likeness(self.embedder.dimensions())
                    self._likeness[name] = file, swept, likeness
                while step := file.after(likeness.last, READ):
                    numbers, _, values = zip(*step, strict=True)
                    if any(len(value) != likeness.dimensions for value in values):
                        raise CacheInvalid("a vector had another dimension")
                    likeness.add(numbers, values)
                return use(file, likeness)

        return self._files.use(name, level)

    def _name(self, stream: Stream) -> str:
        return f"{name_of(stream)}.{self._model}"

    @contextmanager
    def _alone(self, name: str) -> Iterator[bool]:
        """Hold the lock of who makes vectors; yield whether it is held, which it is not while another holds it."""
        try:
            disk.make_folders(self._files.folder)
            descriptor = disk.open_file(self._files.folder / f"{name}.lock")
        except OSError:  # nothing can be written, so nobody else's vectors are here either
            yield True
            return
        try:
            yield disk.acquire_lock(descriptor, wait=False)
        finally:
            os.close(descriptor)


def identity_of(texts: SearchIndexReader) -> str:
    """Return what tells a text file from one that was made anew."""
    return str(texts.metadata("identity"))


def _from(reached: tuple[str, int], texts: SearchIndexReader) -> int:
    """Return the id of the last piece of *texts* that was seen, 0 where those of another file were."""
    identity, last = reached
    return last if identity == identity_of(texts) else 0


#: The streams of a project whose texts have vectors.
STREAMS = ("memory", "history")
#: Seconds between two looks at what is new, and the longest wait after an embedder failed again and again.
LOOK, LONGEST_WAIT = 0.25, 60.0
#: Seconds that the end waits for the batch that is being made; one that comes later is thrown away.
AT_END = 3.0
#: Told again and again how many texts still wait.
Progress = Callable[[int], object]


class Embedding:
    """Makes the vectors of the projects that were asked about: `begin` does it in the background until `close`.

    An error of the embedder is kept as `error`, and it is tried again after a while, each time a longer one.
    """

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.error: str | None = None
        self._projects: dict[str, None] = {}
        self._worker: PeriodicTask | None = None
        self._lock = Lock()
        self._closed = False
        self._failures, self._again = 0, 0.0

    def begin(self, project: str) -> None:
        """Follow *project* in the background, from now on."""
        with self._lock:
            self._projects[project] = None
            if self._worker is None and not self._closed:
                self._worker = PeriodicTask(LOOK, self._look, "jidomem-vectors")

    def embed(self, project: str, seconds: float | None = None, progress: Progress = id) -> int:
        """Make the vectors of *project*, for as long as *seconds*; return how many texts still wait for one.

        Raises ModelUnavailable, which is kept as `error` as well.
        """
        self._make(project, seconds, progress)
        return self.waiting(project)

    def try_for(self, project: str, seconds: float | None = None, progress: Progress = id) -> None:
        """Make the vectors of *project* for as long as *seconds*; what the embedder fails with is kept as `error`."""
        with suppress(Exception):
            self._make(project, seconds, progress)

    def waiting(self, project: str) -> int:
        """Return how many texts of *project* wait for a vector."""
        return sum(self.vectors.waiting(stream) for stream in _streams(project))

    def query_vector(self, query: str) -> Vector | None:
        """Return the vector of *query*; None where the embedder fails, or did a moment ago: `error` says why."""
        if monotonic_time() < self._again:
            return None
        try:
            found = self.vectors.vector(query)
        except Exception as error:  # whatever an embedder does, words find something
            self._failed(error)
            return None
        self._succeeded()
        return found

    def status(self, project: str) -> dict[str, Any]:
        """Return the model, how many vectors, bytes, and texts that wait for one there are, and the last error.

        How many wait is None where that is known only once recall is asked. `elsewhere` says that another server makes
        them now.
        """
        each = [self.vectors.status(stream) for stream in _streams(project)]
        sums: dict[str, Any] = {
            name: sum(status[name] for status in each) for name in ("vectors", "bytes", "passed_by")
        }
        waiting = [status["pending"] for status in each]
        pending = None if None in waiting else sum(waiting)
        found = {"model": self.vectors.embedder.name, **sums, "pending": pending, "error": self.error}
        return {**found, "elsewhere": True} if any("elsewhere" in status for status in each) else found

    def lag(self, project: str) -> dict[str, Any]:
        """Return the model, how many texts wait for a vector, and the error of the embedder, if it failed last.

        No texts are made to be counted: those of what was never looked through are not.
        """
        made = [stream for stream in _streams(project) if self.vectors.has_texts(stream)]
        pending = sum(map(self.vectors.waiting, made))
        return {"model": self.vectors.embedder.name, "pending": pending, "error": self.error}

    def close(self) -> None:
        """Make no more vectors; the batch that is being made is waited for, but not for long."""
        with self._lock:
            self._closed, worker = True, self._worker
        if worker is not None:
            worker.stop(AT_END)
        self.vectors.close()

    def _look(self) -> None:
        """Make all vectors that are missing, unless the embedder failed a moment ago."""
        if monotonic_time() < self._again:
            return
        for project in [*self._projects]:
            self.try_for(project)

    def _make(self, project: str, seconds: float | None, progress: Progress) -> None:
        end = None if seconds is None else monotonic_time() + seconds
        for stream in _streams(project):
            while not self._closed and (end is None or monotonic_time() < end) and self._embed_next(stream):
                progress(self.waiting(project))

    def _embed_next(self, stream: Stream) -> bool:
        try:
            more = self.vectors.embed_next(stream)
        except Exception as error:
            self._failed(error)
            raise
        self._succeeded()
        return more

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._again = monotonic_time() + min(2.0 ** (self._failures - 1), LONGEST_WAIT)
        self.error = str(error) or type(error).__name__

    def _succeeded(self) -> None:
        self._failures, self._again, self.error = 0, 0.0, None


def _streams(project: str) -> list[Stream]:
    return [Stream(project, name) for name in STREAMS]
