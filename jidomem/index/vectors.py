"""The vectors of what one root holds, made by one embedder, kept below `cache/` and level with the texts."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from jidomem import ownership
from jidomem.embedder import Embedder, Vector
from jidomem.errors import ModelUnavailable
from jidomem.index.batches import Batches
from jidomem.index.kept_files import Amiss, KeptFiles
from jidomem.index.passages import Piece
from jidomem.index.text_file import TextFile
from jidomem.index.texts import Texts, name_of
from jidomem.index.vector_file import FOLDER, VectorFile
from jidomem.journal.files import Stream

if TYPE_CHECKING:
    from jidomem.index.likeness import Likeness

T = TypeVar("T")

#: So many pieces of text are looked through for new ones, and so many vectors read at a time.
LOOKED, READ = 1_000, 5_000
#: What an embedder that is there makes a vector of, whatever else it refuses.
_PROBE = "a"


class Step(NamedTuple):
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
        self._files = KeptFiles(root / FOLDER, "vectors", self.KEPT_IN)
        self._model = blake2b(embedder.name.encode(), digest_size=6).hexdigest()
        self._likeness: dict[str, tuple[VectorFile, int, Likeness]] = {}
        self._batches = Batches()
        self._is_closed = False

    def take_in(self, stream: Stream) -> bool:
        """Make vectors of the next pieces of text there are none of; return whether there are more.

        While another process does it nothing is done. Raises ModelUnavailable, and then no vector is kept: fewer are
        tried the next time. A text that fails by itself, while another is taken, is passed by.
        """
        with self._alone(self._name(stream)) as is_mine:
            return is_mine and self._take_in(stream)

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

    def told(self, stream: Stream) -> dict[str, Any]:
        """Return what is known of the vectors of a stream: model, how many, bytes, and how many texts wait for one.

        Those `passed_by` are texts that the embedder failed with, each by itself, and not with others.

        None wait that are known of where the texts are to be made anew: nothing is made to tell of it.
        """
        name, texts = self._name(stream), self._texts.told(stream)
        pending = None if texts is None or texts["amiss"] else self.waiting(stream)
        told: dict[str, Any] = {"model": self.embedder.name, "vectors": 0, "bytes": 0, "pending": pending}
        told["vectors"] = self._use(stream, lambda file: file.count())
        told["passed_by"] = self._use(stream, lambda file: file.said("passed_by") or 0)
        with suppress(OSError):
            told["bytes"] = self._files.size(name)
        return told

    def close(self) -> None:
        """Let go of all files; vectors that are being made are kept no more."""
        self._is_closed = True
        self._files.close()
        self._likeness.clear()

    def _take_in(self, stream: Stream) -> bool:
        step = self._step(stream, self._batches.size(self._name(stream)))
        if step.last is None:
            return self._sweep(stream)
        values = self._values(self._name(stream), step.texts)
        if self._is_closed:
            return False  # it was not waited for, and nothing is opened anew for it
        if self._texts.read(stream, identity_of) == step.identity:
            self._keep(stream, step, values)
        return True  # else the texts were made anew meanwhile: perhaps one of these is to be nowhere any more

    def _step(self, stream: Stream, size: int) -> Step:
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

    def _next(self, stream: Stream, texts: TextFile, after: int, size: int) -> Step:
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
        return Step(last, [piece.digest for piece in seen], made, identity_of(texts), bool(pieces))

    def _keep(self, stream: Stream, step: Step, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep the vectors of a step, and that it was taken."""
        passed_by = len(step.texts) - len(values)

        def keep(file: VectorFile) -> None:
            with file.writing():
                file.keep(step.digests, dict(values))
                file.note(reached=[step.identity, step.last])
                if passed_by:
                    file.note(passed_by=(file.said("passed_by") or 0) + passed_by)

        self._use(stream, keep)

    def _sweep(self, stream: Stream) -> bool:
        """Remove the vectors of texts that are gone, where some are; return False."""
        state = self._texts.read(stream, lambda texts: [identity_of(texts), int(texts.said("gone") or 0)])
        if self._use(stream, lambda file: file.said("swept_at")) == state:
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
            file.note(swept_at=state)
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
        from jidomem.index.likeness import written  # an extra brings what it needs

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
        from jidomem.index.likeness import Likeness

        name = self._name(stream)

        def level(file: VectorFile, because: str) -> T:
            with file.reading():
                swept = int(file.said("swept") or 0)
                of, then, likeness = self._likeness.get(name, (None, 0, Likeness(0)))
                if of is not file or then != swept:
                    likeness = Likeness(self.embedder.dimensions())
                    self._likeness[name] = file, swept, likeness
                while step := file.after(likeness.last, READ):
                    numbers, _, values = zip(*step, strict=True)
                    if any(len(value) != likeness.dimensions for value in values):
                        raise Amiss("a vector had another dimension")
                    likeness.add(numbers, values)
                return use(file, likeness)

        return self._files.use(name, level)

    def _name(self, stream: Stream) -> str:
        return f"{name_of(stream)}.{self._model}"

    @contextmanager
    def _alone(self, name: str) -> Iterator[bool]:
        """Hold the lock of who makes vectors; yield whether it is held, which it is not while another holds it."""
        try:
            ownership.make_folders(self._files.folder)
            descriptor = ownership.open_file(self._files.folder / f"{name}.lock")
        except OSError:  # nothing can be written, so nobody else's vectors are here either
            yield True
            return
        try:
            yield _locked(descriptor)
        finally:
            os.close(descriptor)


def identity_of(texts: TextFile) -> str:
    """Return what tells a text file from one that was made anew."""
    return str(texts.said("identity"))


def _from(reached: tuple[str, int], texts: TextFile) -> int:
    """Return the id of the last piece of *texts* that was seen, 0 where those of another file were."""
    identity, last = reached
    return last if identity == identity_of(texts) else 0


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
