"""The vectors of the texts of an open root, made by one embedder in the background: no write or recall waits for them.

They are in files below `cache/`, one a stream, and follow the text files.
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
from jidomem.base.containers import BoundedDict
from jidomem.base.words import digest
from jidomem.errors import ModelUnavailable
from jidomem.index.cache_file import CacheFolder, CacheInvalid
from jidomem.index.search_index import VECTOR_FOLDER, BatchSizer, Texts, VectorFile, name_of
from jidomem.index.search_tables import Piece, SearchIndexReader
from jidomem.journal.journal import Stream

if TYPE_CHECKING:
    from jidomem.index.vector_search import VectorSet
    from jidomem.records.interfaces import Embedder, Vector

T = TypeVar("T")

#: Pieces of text read at a time in search of new ones, and vectors read at a time.
PIECES_READ, VECTORS_READ = 1_000, 5_000
#: The vectors compared in one step, and how many near ones of each are stored, with a cosine of at least LEAST_COSINE.
COMPARED, NEAR, LEAST_COSINE = 16, 8, 0.4
#: The most vectors that are read from the file for a comparison with these alone.
FEW = 64
#: The most vectors of new texts that are in memory until they are stored.
RECENT = 256
#: Seconds for which vectors are compared in the background before new texts are looked for.
COMPARES_FOR = 1.0
#: A text that every working embedder accepts.
_PROBE = "a"


class PieceBatch(NamedTuple):
    """The next pieces of text: up to as many without a vector as are embedded in one batch.

    `last` is the id of the last piece, None if none fits; `more` is whether there are pieces at all.
    """

    last: int | None
    digests: list[bytes]
    texts: dict[bytes, str]
    identity: str
    more: bool


class NearVectors(NamedTuple):
    """The near pairs of the vectors after one number up to another, in the vector file with an identity."""

    identity: str
    after: int
    last: int
    pairs: list[tuple[int, int, float]]


class Vectors:
    """The vector files of one root for one embedder: one a stream, shared by all processes, rebuilt if damaged.

    Equal texts share one vector. Thread-safe.
    """

    FILE_CLASS: ClassVar[type[VectorFile]] = VectorFile

    def __init__(self, root: Path, texts: Texts, embedder: Embedder) -> None:
        """Use the files below *root* for the vectors of *texts* by *embedder*."""
        self.embedder = embedder
        self._texts = texts
        self._files = CacheFolder(root, VECTOR_FOLDER, "vectors", self.FILE_CLASS)
        self._model = blake2b(embedder.name.encode(), digest_size=6).hexdigest()
        self._vector_sets: dict[str, tuple[VectorFile, int, VectorSet]] = {}
        self._batches = BatchSizer()
        #: The vectors of the last new texts: they are stored once the text file has these.
        self._recent, self._lock = BoundedDict[bytes, bytes](RECENT), Lock()
        self._is_closed = False

    def embed_next(self, stream: Stream) -> bool:
        """Embed the next batch of pieces without a vector; return whether there are more.

        Returns False at once while another process embeds. Raises ModelUnavailable, without a vector written; the next
        batch is then smaller. A text that fails by itself, while another one succeeds, is skipped.
        """
        with self._embedding_lock(self._name(stream)) as has_lock:
            return has_lock and self._embed_next(stream)

    def compare_next(self, stream: Stream) -> bool:
        """Store the near pairs of the next vectors; return whether there are more.

        Returns False at once while another process embeds.
        """

        def compare(file: VectorFile, vectors: VectorSet) -> NearVectors:
            return NearVectors(file.identity, file.compared, *vectors.near(file.compared, COMPARED, NEAR, LEAST_COSINE))

        if self._is_closed or self._use(stream, lambda file: file.is_compared):
            return False
        with self._embedding_lock(self._name(stream)) as has_lock:
            if not has_lock:
                return False
            near = self._with_vectors(stream, compare)
            self._use(stream, lambda file: self._write_near(file, near))
            return True

    def _write_near(self, file: VectorFile, near: NearVectors) -> None:
        """Write near pairs, unless the file was made anew since they were found: its numbers are of other vectors."""
        with file.writing():
            if (file.identity, file.compared) == (near.identity, near.after):
                file.put_near(near.last, near.pairs)
        if file.is_compared:
            file.write_out()

    def near_state(self, stream: Stream) -> tuple[str, int, int]:
        """Return a value that differs once near pairs of *stream* were added or deleted."""
        return self._use(stream, lambda file: (file.identity, file.compared, int(file.metadata("swept") or 0)))

    def near_pairs(
        self, stream: Stream, limit: int, offset: int = 0, of: Sequence[bytes] | None = None
    ) -> list[tuple[bytes, bytes, float]]:
        """Return *limit* pairs of near pieces after the first *offset*, the nearest first: digests and cosine.

        With *of*, one of a pair is among these digests.
        """
        if of is None:
            return self._use(stream, lambda file: file.near(limit, offset))
        return self._use(stream, lambda file: file.near(limit, offset, [*file.numbers(of).values()]))

    def has_texts(self, stream: Stream) -> bool:
        """Return whether there is a text file of *stream*."""
        return self._texts.exists(stream)

    def can_count(self, stream: Stream) -> bool:
        """Return whether there is a text file of *stream*, and no thread builds it."""
        return self._texts.exists(stream) and not self._texts.is_being_built(stream)

    def waiting(self, stream: Stream, *, catches_up: bool = True) -> int:
        """Return the number of pieces not yet examined for embedding: of all texts, or of those in the index."""
        at = self._position(stream)
        return self._texts.read(
            stream, lambda texts: texts.passages.count_after(_from(at, texts)), catches_up=catches_up
        )

    def count(self, stream: Stream) -> int:
        """Return the number of vectors of *stream*; 0 without a file, which is not made."""
        return self._use(stream, lambda file: file.count()) if self._exists(stream) else 0

    def _exists(self, stream: Stream) -> bool:
        name = self._name(stream)
        return self._files.is_open(name) or self._files.path(name).exists()

    def nearest(self, stream: Stream, to: Vector, limit: int) -> list[tuple[bytes, float]]:
        """Return the digests of the *limit* pieces most similar to a vector, with their cosines."""

        def use(file: VectorFile, vectors: VectorSet) -> list[tuple[bytes, float]]:
            nearest = vectors.nearest(to, limit)
            digests = file.digests([number for number, _ in nearest])
            return [(digests[number], cosine) for number, cosine in nearest if number in digests]

        return self._with_vectors(stream, use)

    def cosines(self, stream: Stream, to: Vector, digests: Sequence[bytes]) -> Mapping[bytes, float]:
        """Return the cosine of each of *digests* that has a vector, maybe a new one; a few are read from the file."""
        if len(digests) <= FEW:
            new = {known: value for known in digests if (value := self._recent.get(known)) is not None}
            others = [known for known in digests if known not in new]
            stored = self._use(stream, lambda file: file.values(others)) if others else {}
            return _cosines(to, {**stored, **new})

        def use(file: VectorFile, vectors: VectorSet) -> Mapping[bytes, float]:
            numbers = {number: known for known, number in file.numbers(digests).items()}
            return {numbers[number]: cosine for number, cosine in vectors.cosines(to, [*numbers]).items()}

        return self._with_vectors(stream, use)

    def cosines_among(self, stream: Stream, digests: Sequence[bytes]) -> list[tuple[bytes, bytes, float]]:
        """Return each pair of those of *digests* that have a vector in the file, with its cosine."""
        stored = self._use(stream, lambda file: file.values(digests))
        pairs: list[tuple[bytes, bytes, float]] = []
        while stored:
            digest, value = stored.popitem()
            cosines = _cosines(memoryview(value).cast("b").tolist(), stored)
            pairs += [(other, digest, cosine) for other, cosine in cosines.items()]
        return pairs

    def vector(self, text: str) -> Vector:
        """Return the vector of the query *text*; raises ModelUnavailable, also for a result that is no valid vector."""
        # an embedder may have a form of its own for queries
        vectors = self._generate([text], getattr(self.embedder, "generate_queries", None))
        self._encode(vectors)
        return vectors[0]

    def vector_of(self, piece: str) -> Vector:
        """Return the vector of a *piece* of a text; raises ModelUnavailable, also for a result that is no vector."""
        vectors = self._generate([piece])
        (value,) = self._encode(vectors)
        with self._lock:
            self._recent[digest(piece)] = value
        return vectors[0]

    def status(self, stream: Stream) -> dict[str, Any]:
        """Return the status of the vectors of a stream: model, count, bytes, and number of pending texts.

        `passed_by` counts texts that the embedder refused, each by itself, while it accepted others. `pending` is None
        if the text file must be built again: a status builds nothing.
        """
        name, texts = self._name(stream), self._texts.status(stream)
        pending = None if texts is None or texts["amiss"] else self.waiting(stream)
        status: dict[str, Any] = {
            "model": self.embedder.name, "vectors": 0, "bytes": 0, "pending": pending, "passed_by": 0,
        }  # fmt: skip
        if not self._exists(stream):
            return status
        status["vectors"] = self._use(stream, lambda file: file.count())
        status["passed_by"] = self._use(stream, lambda file: file.metadata("passed_by") or 0)
        with suppress(OSError):
            status["bytes"] = self._files.size(name)
        return status

    def close(self) -> None:
        """Close all files; a batch in progress is dropped."""
        self._is_closed = True
        self._files.close()
        self._vector_sets.clear()

    def _embed_next(self, stream: Stream) -> bool:
        step = self._step(stream, self._batches.size(self._name(stream)))
        if step.last is None:
            return self._sweep(stream)
        values = self._values(self._name(stream), step.texts)
        if self._is_closed:
            return False  # the files are closed and must not be opened again
        if self._texts.read(stream, identity_of) == step.identity:
            self._write_batch(stream, step, values)
        return True  # else the text file was built again meanwhile, and some of these texts may be redacted

    def _step(self, stream: Stream, size: int) -> PieceBatch:
        """Return the next pieces, with the texts of up to *size* that have no vector."""
        at = self._position(stream)
        return self._texts.read(stream, lambda texts: self._next(stream, texts, _from(at, texts), size))

    def _values(self, name: str, batch: Mapping[bytes, str]) -> list[tuple[bytes, bytes]]:
        """Return the encoded vectors of *batch*; none if it is a single text that the embedder refuses."""
        try:
            recent = {known: value for known in batch if (value := self._recent.get(known)) is not None}
            new = {known: text for known, text in batch.items() if known not in recent}
            vectors = [*recent.items(), *zip(new, self._encode(self._generate([*new.values()])), strict=True)]
        except Exception:
            if not self._batches.failed(name, batch):
                raise
            self._generate([_PROBE])  # raises if the embedder fails altogether
            vectors = []
        self._batches.succeeded(name)
        return vectors

    def _next(self, stream: Stream, texts: SearchIndexReader, after: int, size: int) -> PieceBatch:
        pieces = texts.passages.pieces(after, PIECES_READ)
        present = self._use(stream, lambda file: file.present([piece.digest for piece in pieces]))
        new: dict[bytes, Piece] = {}
        examined = list[Piece]()
        for piece in pieces:
            if piece.digest not in present and piece.digest not in new:
                if len(new) == size:
                    break
                new[piece.digest] = piece
            examined.append(piece)
        texts_by_digest = dict(zip(new, texts.passages.texts([*new.values()]), strict=True))
        last = examined[-1].id if examined else None
        return PieceBatch(last, [piece.digest for piece in examined], texts_by_digest, identity_of(texts), bool(pieces))

    def _write_batch(self, stream: Stream, step: PieceBatch, values: Sequence[tuple[bytes, bytes]]) -> None:
        passed_by = len(step.texts) - len(values)

        def write(file: VectorFile) -> None:
            with file.writing():
                file.write(step.digests, dict(values))
                file.set_metadata(reached=[step.identity, step.last])
                if passed_by:
                    file.set_metadata(passed_by=(file.metadata("passed_by") or 0) + passed_by)

        self._use(stream, write)

    def _sweep(self, stream: Stream) -> bool:
        """Delete the vectors of texts that were deleted since the last sweep; return False."""
        state = self._texts.read(stream, lambda texts: [identity_of(texts), int(texts.metadata("gone") or 0)])
        if self._use(stream, lambda file: file.metadata("swept_at")) == state:
            return False
        number = 0
        while step := self._use(stream, lambda file: file.after(number, VECTORS_READ)):  # noqa: B023 (called at once)
            numbers = self._texts.read(stream, lambda texts: texts.passages.numbers_of([row[1] for row in step]))
            unused = [row[0] for row in step if not numbers[row[1]]]
            if unused:
                self._use(stream, lambda file: self._remove(file, unused))  # noqa: B023
            number = step[-1][0]
        self._use(stream, lambda file: self._record_sweep(file, state))
        return False

    def _remove(self, file: VectorFile, numbers: Sequence[int]) -> None:
        with file.writing():
            file.remove(numbers)

    def _record_sweep(self, file: VectorFile, state: list[Any]) -> None:
        with file.writing():
            file.set_metadata(swept_at=state)
        file.write_out()

    def _generate(
        self, texts: Sequence[str], generate: Callable[[Sequence[str]], Sequence[Vector]] | None = None
    ) -> Sequence[Vector]:
        """Return the vectors of *texts*; raises ModelUnavailable, also for a wrong number of vectors or dimension."""
        vectors = (generate or self.embedder.generate)(texts) if texts else []
        dimensions = self.embedder.dimensions()
        if len(vectors) != len(texts) or any(len(vector) != dimensions for vector in vectors):
            detail = f"{self.embedder.name} did not return {len(texts)} vectors of {dimensions} numbers"
            raise ModelUnavailable(detail, hint="use another embedder")
        return vectors

    def _encode(self, vectors: Sequence[Vector]) -> list[bytes]:
        """Return *vectors* encoded for storage; raises ModelUnavailable for an invalid one."""
        from jidomem.index.vector_search import encode  # needs numpy, which an extra installs

        try:
            return [encode(vector) for vector in vectors]
        except (TypeError, ValueError) as error:
            detail = f"{self.embedder.name} returned an invalid vector: {error}"
            raise ModelUnavailable(detail, hint="use another embedder") from error

    def _position(self, stream: Stream) -> tuple[str, int]:
        return self._use(stream, lambda file: file.reached) if self._exists(stream) else ("", 0)

    def _use(self, stream: Stream, use: Callable[[VectorFile], T]) -> T:
        return self._files.use(self._name(stream), use)

    def _with_vectors(self, stream: Stream, use: Callable[[VectorFile, VectorSet], T]) -> T:
        """Return `use(file, vectors)`, where *vectors* has all vectors of the file in memory."""
        from jidomem.index.vector_search import VectorSet

        name = self._name(stream)

        def load(file: VectorFile) -> T:
            with file.reading():
                sweep = int(file.metadata("swept") or 0)
                loaded_file, loaded_sweep, vectors = self._vector_sets.get(name, (None, 0, VectorSet(0)))
                if loaded_file is not file or loaded_sweep != sweep:
                    vectors = VectorSet(self.embedder.dimensions())
                    self._vector_sets[name] = file, sweep, vectors
                while step := file.after(vectors.last, VECTORS_READ):
                    numbers, _, values = zip(*step, strict=True)
                    if any(len(value) != vectors.dimensions for value in values):
                        raise CacheInvalid("a vector had another dimension")
                    vectors.add(numbers, values)
                return use(file, vectors)

        return self._files.use(name, load)

    def _name(self, stream: Stream) -> str:
        return f"{name_of(stream)}.{self._model}"

    @contextmanager
    def _embedding_lock(self, name: str) -> Iterator[bool]:
        """Acquire the lock of the embedding process; yield False if another process has it."""
        if not self._files.has_root():
            yield True
            return
        try:
            disk.make_folders(self._files.folder)
            descriptor = disk.open_file(self._files.folder / f"{name}.lock")
        except OSError:  # a disk that cannot be written has no vectors of another process
            yield True
            return
        try:
            yield disk.acquire_lock(descriptor, wait=False)
        finally:
            os.close(descriptor)


def _cosines(to: Vector, values: Mapping[bytes, bytes]) -> dict[bytes, float]:
    from jidomem.index.vector_search import cosines

    if any(len(value) != len(to) for value in values.values()):
        raise CacheInvalid("a vector had another dimension")
    return dict(zip(values, cosines(to, [*values.values()]), strict=True))


def identity_of(texts: SearchIndexReader) -> str:
    """Return the random identity of a text file, which differs after each build."""
    return str(texts.metadata("identity"))


def _from(reached: tuple[str, int], texts: SearchIndexReader) -> int:
    """Return the id of the last piece that was examined, 0 if that was in another file."""
    identity, last = reached
    return last if identity == identity_of(texts) else 0


#: The streams of a project whose texts have vectors.
STREAMS = ("memory", "history")
#: Seconds between checks for new texts, and the longest delay after repeated failures of the embedder.
CHECK_INTERVAL, MAX_DELAY = 0.25, 60.0
#: The share of texts without a vector up to which the vectors of the former model do not answer.
FEW_PENDING = 0.1
#: Seconds that `close` waits for the batch in progress, whose vectors are dropped if it takes longer.
CLOSE_TIMEOUT = 3.0
#: Called repeatedly with the number of pending texts.
Progress = Callable[[int], object]


class Embedding:
    """Embeds the texts of projects: of those given to `begin` in the background, until `close`.

    The last error of the embedder is in `error`; the next attempt follows after a delay that doubles each time.
    """

    def __init__(self, vectors: Vectors, former: Vectors | None = None) -> None:
        """Embed for *vectors*; those of a *former* model, if there are any, answer until there are enough of them."""
        self.vectors, self._former = vectors, former
        self._has_changed: set[str] = set()  # projects for which the vectors of the former model are not needed
        self.error: str | None = None
        self._projects: dict[str, None] = {}
        self._worker: PeriodicTask | None = None
        self._lock = Lock()
        self._closed = False
        self._failures, self._retry_at = 0, 0.0

    def begin(self, project: str) -> None:
        """Embed *project* in the background from now on."""
        with self._lock:
            self._projects[project] = None
            if self._worker is None and not self._closed:
                self._worker = PeriodicTask(CHECK_INTERVAL, self._embed_pending, "jidomem-vectors")

    def embed(self, project: str, seconds: float | None = None, progress: Progress = id) -> int:
        """Embed texts of *project*, for at most *seconds*; return the number of texts still pending.

        Raises ModelUnavailable, which is also recorded in `error`.
        """
        end = self._embed(project, seconds, progress)
        self._compare(project, end)
        return self.waiting(project)

    def try_for(self, project: str, seconds: float | None = None, progress: Progress = id) -> None:
        """Embed texts of *project*, for at most *seconds*; a failure of the embedder is only recorded in `error`."""
        with suppress(Exception):
            end = self._embed(project, seconds, progress)
            self._compare(project, end)

    def waiting(self, project: str) -> int:
        """Return the number of texts of *project* that are pending."""
        return sum(self.vectors.waiting(stream) for stream in _streams(project))

    def query_vector(self, query: str, project: str) -> tuple[Vectors, Vector] | None:
        """Return the vectors of the texts of *project*, and that of *query*: both of the former model, if it answers.

        None if the embedder fails or failed a moment ago: `error` has the reason.
        """
        if (former := self._answering_former(project)) is not None:
            with suppress(Exception):  # if it fails, the new vectors answer
                return former, former.vector(query)
        vector = self._vector(lambda: self.vectors.vector(query))
        return None if vector is None else (self.vectors, vector)

    def _answering_former(self, project: str) -> Vectors | None:
        """Return the vectors of the former model while they are more and the new ones lack many; else None.

        They also answer while it is unknown how many texts lack a vector: without a text file, and during its build.
        """
        if self._former is None or project in self._has_changed:
            return None
        count, former = (sum(map(vectors.count, _streams(project))) for vectors in (self.vectors, self._former))
        if former > count and not all(map(self.vectors.can_count, filter(self._former.count, _streams(project)))):
            return self._former
        pending = self._pending(project) if former > count else 0
        if pending <= FEW_PENDING * (count + pending):
            self._has_changed.add(project)
            return None
        return self._former

    def _pending(self, project: str) -> int:
        """Return the number of pending texts; a stream is not counted if its text file is missing or being built."""
        made = [stream for stream in _streams(project) if self.vectors.can_count(stream)]
        return sum(self.vectors.waiting(stream, catches_up=False) for stream in made)

    def vector_of(self, piece: str) -> Vector | None:
        """Return the vector of a *piece* of a text; None as `query_vector`."""
        return self._vector(lambda: self.vectors.vector_of(piece))

    def _vector(self, make: Callable[[], Vector]) -> Vector | None:
        if monotonic_time() < self._retry_at:
            return None
        try:
            vector = make()
        except Exception as error:  # of any kind: recall then uses words alone
            self._failed(error)
            return None
        self._succeeded()
        return vector

    def status(self, project: str) -> dict[str, Any]:
        """Return the model, the number of vectors, bytes and pending texts, and the last error.

        `pending` is None if it is unknown until the next recall. `elsewhere` is True if another server is embedding.
        """
        each = [self.vectors.status(stream) for stream in _streams(project)]
        sums: dict[str, Any] = {
            name: sum(status[name] for status in each) for name in ("vectors", "bytes", "passed_by")
        }
        waiting = [status["pending"] for status in each]
        pending = None if None in waiting else sum(waiting)
        status_of_all = {"model": self.vectors.embedder.name, **sums, "pending": pending, "error": self.error}
        return {**status_of_all, "elsewhere": True} if any("elsewhere" in status for status in each) else status_of_all

    def lag(self, project: str) -> dict[str, Any]:
        """Return the model, the number of pending texts, and the error of the embedder if it failed last.

        `former` is the former model, if its vectors answer.
        """
        lag = {"model": self.vectors.embedder.name, "pending": self._pending(project), "error": self.error}
        former = self._answering_former(project)
        return lag if former is None else {**lag, "former": former.embedder.name}

    def close(self) -> None:
        """Stop embedding; waits up to CLOSE_TIMEOUT seconds for the batch in progress."""
        with self._lock:
            self._closed, worker = True, self._worker
        if worker is not None:
            worker.stop(CLOSE_TIMEOUT)
        self.vectors.close()
        if self._former is not None:
            self._former.close()

    def _embed_pending(self) -> None:
        """Embed all pending texts, unless the embedder failed a moment ago."""
        if monotonic_time() < self._retry_at:
            return
        for project in [*self._projects]:
            with suppress(Exception):
                self._embed(project, None, id)
        end = monotonic_time() + COMPARES_FOR  # then new texts are looked for again
        for project in [*self._projects]:
            with suppress(Exception):
                self._compare(project, end)

    def _embed(self, project: str, seconds: float | None, progress: Progress) -> float | None:
        """Embed texts of *project*; return the moment at which *seconds* are over."""
        end = None if seconds is None else monotonic_time() + seconds
        for stream in _streams(project):
            while not self._closed and (end is None or monotonic_time() < end) and self._embed_next(stream):
                progress(self.waiting(project))
        return end

    def _compare(self, project: str, end: float | None) -> None:
        """Store near pairs of the memories of *project*, until the moment *end*."""
        memories = Stream(project)
        while not self._closed and (end is None or monotonic_time() < end):
            if not (self.vectors.has_texts(memories) and self.vectors.compare_next(memories)):
                return

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
        self._retry_at = monotonic_time() + min(2.0 ** (self._failures - 1), MAX_DELAY)
        self.error = str(error) or type(error).__name__

    def _succeeded(self) -> None:
        self._failures, self._retry_at, self.error = 0, 0.0, None


def _streams(project: str) -> list[Stream]:
    return [Stream(project, name) for name in STREAMS]
