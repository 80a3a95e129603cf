"""The vectors of a root that several servers share: each takes in what another made, and makes what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, Protocol, TypeVar

from jidomem.embedder import Embedder
from jidomem.index.kept_file import several
from jidomem.index.text_file import TextFile
from jidomem.index.texts import Texts
from jidomem.index.vector_file import VectorFile
from jidomem.index.vectors import Step, Vectors, identity_of
from jidomem.journal.files import Stream

T = TypeVar("T")

#: The digest of a text, and its vector as it is kept.
Row = tuple[bytes, bytes]


class Common(Protocol):
    """Segments of vectors that servers have in common, each by its name, and whose turn it is to make more of them.

    They are of a stream and of a model, which is named by a digest; one segment never changes.
    """

    def listed(self, stream: Stream, model: str) -> list[str]:
        """Return the segments there are now."""

    def rows(self, stream: Stream, model: str, name: str) -> list[Row] | None:
        """Return what a segment has, None where it is gone or not whole."""

    def turn(self, stream: Stream, model: str, who: str) -> bool:
        """Return whether it is the turn of *who* to make more, and nothing changed since `listed` was asked."""

    def put(self, stream: Stream, model: str, who: str, rows: Sequence[Row], *, goes_on: bool) -> list[str] | None:
        """Return the segments once one has *rows*, None where it was no longer the turn of *who*.

        The turn is kept where it *goes_on*, and else is anybody's.
        """

    def end(self, stream: Stream, model: str, who: str) -> None:
        """Give the turn back, where it was taken here."""


class OfferedFile(VectorFile):
    """A vector file that has also what others made of texts that were not looked at here yet."""

    FORM = 2
    TABLES = VectorFile.TABLES + "CREATE TABLE offered (digest BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;\n"

    def begun(self) -> None:
        """Note who makes vectors here, whatever process does."""
        self.note(who=token_hex(16))

    def known(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return which of *digests* need no vector made."""
        return {*self.numbers(digests), *self._offered(digests)}

    def keep(self, digests: Sequence[bytes], made: Mapping[bytes, bytes]) -> None:
        """Keep what was *made* and what is offered, in the order of *digests*, while the turn to write is held."""
        offered = self._offered(digests)
        super().keep(digests, {**offered, **made})
        self._store.executemany("DELETE FROM offered WHERE digest = ?", ((digest,) for digest in offered))

    def offer(self, segment: str, rows: Sequence[Row], listed: Sequence[str]) -> None:
        """Take in one of the segments *listed*, while the turn to write is held."""
        there = self.numbers([digest for digest, _ in rows])
        fresh = [row for row in rows if row[0] not in there]
        self._store.executemany("INSERT OR IGNORE INTO offered VALUES (?, ?)", fresh)
        self.note(seen=[*(name for name in self.seen if name in listed), segment])

    @property
    def seen(self) -> list[str]:
        """Return the segments that were taken in."""
        return [str(name) for name in self.said("seen") or []]

    def _offered(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for step in several(digests):
            ask = f"SELECT digest, value FROM offered WHERE digest IN ({', '.join('?' * len(step))})"
            found.update(self._store.execute(ask, step))
        return found


class CommonVectors(Vectors):
    """The vectors of one root on this machine, of which none is made that another server of the root made.

    What has one is as if it had been made here; where it is another server's turn, the rest waits for it.
    """

    KEPT_IN: ClassVar[type[VectorFile]] = OfferedFile

    def __init__(self, root: Path, texts: Texts, embedder: Embedder, common: Common) -> None:
        """Keep below *root* what *embedder* makes of what is in *texts*, here or elsewhere: *common* has it."""
        super().__init__(root, texts, embedder)
        self._common = common
        self._elsewhere: set[Stream] = set()  # where it was another's turn when it was asked last

    def told(self, stream: Stream) -> dict[str, Any]:
        """Return what there is of a stream, and `elsewhere` where another server makes what is missing."""
        found = super().told(stream)
        return {**found, "elsewhere": True} if found["pending"] and stream in self._elsewhere else found

    def _take_in(self, stream: Stream) -> bool:
        step = self._step(stream, 0)
        if step.last is not None:
            super()._keep(stream, step, [])
            return True
        who = self._who(stream)
        if not step.more:
            self._common.end(stream, self._model, who)
            return self._sweep(stream)
        if self._brings(stream, step.identity):
            return True
        if not self._common.turn(stream, self._model, who):
            self._elsewhere.add(stream)
            return False
        self._elsewhere.discard(stream)
        try:
            return super()._take_in(stream)
        except BaseException:
            self._common.end(stream, self._model, who)
            raise

    def _keep(self, stream: Stream, step: Step, values: Sequence[Row]) -> None:
        listed = None
        if values:
            goes_on = len(step.texts) == self._batches.size(self._name(stream))
            listed = self._common.put(stream, self._model, self._who(stream), values, goes_on=goes_on)
        super()._keep(stream, step, values)
        if listed is not None:
            self._offers(stream, lambda file: file.note(seen=listed))

    def _brings(self, stream: Stream, identity: str) -> bool:
        """Return whether segments came; none is taken in once the texts were made anew."""
        dimensions, came = self.embedder.dimensions(), False
        listed, seen = self._common.listed(stream, self._model), self._offers(stream, lambda file: file.seen)
        for name in listed:
            rows = None if name in seen else self._common.rows(stream, self._model, name)
            if rows is not None:
                fit = [row for row in rows if len(row[1]) == dimensions]
                self._texts.read(stream, partial(self._offer, stream, identity, (name, fit, listed)))
                came = True
        return came

    def _offer(self, stream: Stream, identity: str, given: tuple[str, list[Row], list[str]], texts: TextFile) -> None:
        def offer(file: OfferedFile) -> None:
            with file.writing():
                file.offer(*given)

        if identity_of(texts) == identity:
            self._offers(stream, offer)

    def _who(self, stream: Stream) -> str:
        return self._offers(stream, lambda file: str(file.said("who")))

    def _offers(self, stream: Stream, use: Callable[[OfferedFile], T]) -> T:
        def ask(file: VectorFile) -> T:
            assert isinstance(file, OfferedFile)
            return use(file)

        return self._use(stream, ask)
