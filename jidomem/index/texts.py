"""The texts of memories, entries and turns, kept below `cache/` for full text search, level with the index."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, Protocol, TypeVar

from jidomem import here
from jidomem.errors import Busy, Failed
from jidomem.index import documents, history_words
from jidomem.index.document import Mark
from jidomem.index.documents import Document
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.steps import steps
from jidomem.index.text_file import TextFile
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.redaction import is_order
from jidomem.stems import Stemmer
from jidomem.terms import Term, bare, iri
from jidomem.version import Version

T = TypeVar("T")

#: Where the texts are, below the root.
FOLDER = Path("cache", "text")
#: Seconds one process waits for another that takes in what is new, and it may be all there is.
WAIT = 60.0
#: So many memories are taken in at a time where all are.
AT_ONCE = 2_000
#: How often a file is made anew before it is given up.
TRIES = 4
_LOCK = "text.lock"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNWRITABLE = (
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM,
)  # fmt: skip


class _Amiss(Exception):
    """A file is to be made anew, for the reason given."""


class _Kind(Protocol):
    """What is looked through of a graph, read from the index: a module of these three functions."""

    def items(self, index: OxigraphIndex, graph: str) -> list[tuple[Term, Term]]:
        """Return all there is, oldest first, each after its moment."""

    def touched(self, index: OxigraphIndex, graph: str, nodes: Iterable[Term]) -> list[Term]:
        """Return what may have to be looked at again once something new was said of *nodes*."""

    def document(self, index: OxigraphIndex, graph: str, item: Term, /) -> Document | None:
        """Return one as it is looked through."""


#: The streams that hold what is looked through, each in a file of its own.
_KINDS: Mapping[str, _Kind] = {"memory": documents, "history": history_words}


class Texts:
    """The text files of one root: one a stream, shared by all processes, thrown away where anything is amiss.

    Any thread may ask; of one stream one at a time is answered.
    """

    def __init__(
        self, root: Path, journal: FileJournal, index: OxigraphIndex, catch_up: Callable[[str], Version]
    ) -> None:
        """Keep them below *root*; *catch_up* brings *index* up to a project's journal, or raises for none there is."""
        self._folder = root / FOLDER
        self._journal = journal
        self._index = index
        self._catch_up = catch_up
        self._stemmer = Stemmer()
        self._open: dict[Stream, TextFile] = {}
        self._places: dict[Stream, tuple[int, int] | None] = {}
        self._unwritable: set[Stream] = set()
        self._turns: dict[Stream, RLock] = {}

    @property
    def stemmer(self) -> Stemmer:
        """Return what finds the stems of words, the same for what is kept and what is asked."""
        return self._stemmer

    def read(self, stream: Stream, use: Callable[[TextFile], T]) -> T:
        """Return what *use* makes of the text file of *stream*, level with the journal; nobody changes it meanwhile.

        One that is damaged, of another form or of another branch is made anew; where nothing can be written it is kept
        in memory. Raises Busy where another process does not come to an end, and what the catch-up raises.
        """
        because = "there was none"
        with self._turn(stream):
            if stream not in self._open:
                self._catch_up(stream.project)  # nothing is made for a project there is not
            for _ in range(TRIES):
                try:
                    file = self._opened(stream)
                    self._catch_up(stream.project)  # not before: what is put into a file that was thrown away is gone
                    self._level(file, stream, because)
                    with file.reading():
                        return use(file)
                except _Amiss as amiss:
                    because = str(amiss)
                except sqlite3.DatabaseError as error:
                    because = self._amiss(stream, error)
                try:
                    self.forget(stream)
                except OSError:
                    self._unwritable.add(stream)
        hint = "look at the disk: df, and its health"
        raise Failed(f"the texts of {stream.project} cannot be kept: {because}", hint=hint)

    def forget(self, stream: Stream) -> None:
        """Throw away the text file of one stream, whoever uses it; what is asked next makes it anew."""
        with self._turn(stream):
            self._let_go(stream)
            path = self._path(stream)
            with suppress(FileNotFoundError), self._alone():
                for end in ("-wal", "-shm", ""):  # what is left of a file must not be taken for part of the next one
                    path.with_name(path.name + end).unlink(missing_ok=True)

    def forget_all(self) -> None:
        """Throw every text file away; raises Failed where one stays."""
        for path in sorted(self._folder.glob("*.sqlite")):
            try:
                project, _, name = path.stem.partition(".")
                self.forget(Stream(project, name or "memory"))
            except OSError as error:
                hint = f"remove it: rm -r {path.parent}"
                raise Failed(f"{path} cannot be removed: {error.strerror}", hint=hint) from error

    def told(self, stream: Stream) -> dict[str, Any] | None:
        """Return what is known of a text file that is there: memories, bytes, version, and why it was last made.

        `amiss` says why it is to be made anew, None where it is not.
        """
        path = self._path(stream)
        if not path.exists():
            return None
        told: dict[str, Any] = {"memories": 0, "version": None, "made_because": None, "amiss": None}
        with self._turn(stream), suppress(OSError):
            told["bytes"] = sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
            try:
                file = self._opened(stream)
                mark = file.mark
                told |= {"memories": file.said("memories") or 0, "made_because": file.said("because")}
                told["version"] = str(mark.version) if mark else None
            except (_Amiss, sqlite3.Error) as error:
                told["amiss"] = str(error)
                self._let_go(stream)
        return told

    def close(self) -> None:
        """Let go of all files."""
        for stream in [*self._open]:
            with self._turn(stream):
                self._let_go(stream)

    def _opened(self, stream: Stream) -> TextFile:
        """Return the file of a stream, opened anew where another process has thrown away the one that was open."""
        path = self._path(stream)
        if stream in self._open and self._places[stream] not in (None, _place(path)):
            self._let_go(stream)
        if stream not in self._open and stream in self._unwritable:
            self._open[stream], self._places[stream] = TextFile(":memory:", self._stemmer, WAIT), None
        elif stream not in self._open:
            try:
                self._open[stream], self._places[stream] = self._at(path)
            except OSError as error:
                self._unwritable.add(stream)
                raise _Amiss("nothing can be written") from error
        if not self._open[stream].fits():
            raise _Amiss("it was of another form, or made elsewhere")
        return self._open[stream]

    def _at(self, path: Path) -> tuple[TextFile, tuple[int, int]]:
        """Return the file at *path*, opened or made, and which it is; raises OSError where none can be written."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._alone():  # nobody throws it away between this file and those beside it
            if _is_emptied(path):
                raise _Amiss("it was emptied")
            file = TextFile(str(path), self._stemmer, WAIT, here.number(here.settle(self._folder)))
            return file, _place(path)

    def _amiss(self, stream: Stream, error: sqlite3.DatabaseError) -> str:
        """Return why a file is made anew after *error*, in memory where nothing can be written; raises Busy, Failed."""
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in _BUSY:
            raise Busy(
                f"another process takes in the texts of {stream.project}", hint="ask again in a moment"
            ) from error
        if "no such module" in str(error):
            hint = "use a Python whose SQLite has FTS5"
            raise Failed("this SQLite has no full text search", hint=hint, code="missing_extra") from error
        if code in _UNWRITABLE:
            self._unwritable.add(stream)
            return "nothing can be written"
        return f"it was damaged: {error}"

    def _level(self, file: TextFile, stream: Stream, because: str) -> None:
        """Take in what is new; raises _Amiss where the file is to be made anew instead."""
        now = self._index.mark(stream.graph)
        if file.mark is None:
            self._make(file, stream, now, because)
        if file.mark != now:
            with file.writing():
                then = file.mark or Mark()
                if then != now and self._takes(file, stream, then, now):
                    file.note(mark=now.term)

    def _make(self, file: TextFile, stream: Stream, now: Mark, because: str) -> None:
        """Take in all there is, in steps, between which other processes may take one, or go on after this one's end.

        What is new since the first step began is taken in afterwards.
        """
        left = _KINDS[stream.name].items(self._index, stream.graph)
        while True:
            with file.writing():
                if file.mark is not None:
                    return
                if file.said("began") is None:
                    file.note(began=now.term, reached=["", ""], because=because)
                start = bisect_right(left, tuple(file.said("reached")))
                step = left[start : start + AT_ONCE]
                file.put(self._documents(stream, (item for _, item in step)))
                if not step:
                    file.tidy()
                    file.note(mark=file.said("began"))
                    return
                file.note(reached=step[-1])

    def _takes(self, file: TextFile, stream: Stream, then: Mark, now: Mark) -> bool:
        """Look again at every memory that something was said of since *then*; return whether *now* is later.

        Raises _Amiss where it is no later state of what *then* was one of.
        """
        if not self._journal.holds(stream, then.version):
            raise _Amiss("another branch was checked out")
        if then.cleared != now.cleared:
            raise _Amiss("the graph was cleared")
        found = 0
        for step in steps(self._journal.read(stream, after=then.version)):
            found += len(step)
            if any(is_order(commit.data) for commit in step):
                raise _Amiss("something was taken out of the journal")
            nodes = {subject for commit in step for subject, _, _ in commit.triples if subject != iri(commit.iri)}
            again = _KINDS[stream.name].touched(self._index, stream.graph, nodes)
            known = list(self._documents(stream, again))
            file.remove({bare(node) for node in again} - {document.item for document in known})
            file.put(known)
        later = sum(1 for _ in self._journal.read(stream, after=now.version))
        if found - later != now.commits - then.commits:
            raise _Amiss("what was damaged is there again")
        return now.commits > then.commits

    def _documents(self, stream: Stream, nodes: Iterable[Term]) -> Iterator[Document]:
        read = _KINDS[stream.name].document
        return filter(None, (read(self._index, stream.graph, node) for node in nodes))

    def _turn(self, stream: Stream) -> RLock:
        """Return what one thread holds that asks for, opens or throws away the file of a stream."""
        return self._turns.setdefault(stream, RLock())

    def _let_go(self, stream: Stream) -> None:
        file = self._open.pop(stream, None)
        self._places.pop(stream, None)
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()

    def _path(self, stream: Stream) -> Path:
        return self._folder / (stream.project + ("" if stream.name == "memory" else f".{stream.name}") + ".sqlite")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock under which files are opened and thrown away, for a moment."""
        descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _is_emptied(path: Path) -> bool:
    """Return whether a file has nothing in it any more: who opens it would wait for those who have it open."""
    return path.is_file() and path.stat().st_size == 0


def _place(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino
