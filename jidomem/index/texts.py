"""The texts of each project's memories, kept below `cache/` for full text search and level with the index."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from jidomem import here
from jidomem.errors import Busy, Failed
from jidomem.index.document import Mark
from jidomem.index.documents import Document, document, items, touched
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.stems import Stemmer
from jidomem.index.steps import steps
from jidomem.index.text_file import TextFile
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.redaction import is_order
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


class Texts:
    """The text files of one root: one a project, shared by all processes, thrown away where anything is amiss.

    Any thread may ask; of one project one at a time is answered.
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
        self._open: dict[str, TextFile] = {}
        self._places: dict[str, tuple[int, int] | None] = {}
        self._unwritable: set[str] = set()
        self._turns: dict[str, RLock] = {}

    @property
    def stemmer(self) -> Stemmer:
        """Return what finds the stems of words, the same for what is kept and what is asked."""
        return self._stemmer

    def read(self, project: str, use: Callable[[TextFile], T]) -> T:
        """Return what *use* makes of the text file of *project*, level with the journal; nobody changes it meanwhile.

        One that is damaged, of another form or of another branch is made anew; where nothing can be written it is kept
        in memory. Raises Busy where another process does not come to an end, and what the catch-up raises.
        """
        because = "there was none"
        with self._turn(project):
            if project not in self._open:
                self._catch_up(project)  # nothing is made for a project there is not
            for _ in range(TRIES):
                try:
                    file = self._opened(project)
                    self._catch_up(project)  # not before: what is put into a file that was thrown away is gone
                    self._level(file, Stream(project), because)
                    with file.reading():
                        return use(file)
                except _Amiss as amiss:
                    because = str(amiss)
                except sqlite3.DatabaseError as error:
                    because = self._amiss(project, error)
                try:
                    self.forget(project)
                except OSError:
                    self._unwritable.add(project)
        raise Failed(f"the texts of {project} cannot be kept: {because}", hint="look at the disk: df, and its health")

    def forget(self, project: str) -> None:
        """Throw away the text file of one project, whoever uses it; what is asked next makes it anew."""
        with self._turn(project):
            self._let_go(project)
            path = self._path(project)
            with suppress(FileNotFoundError), self._alone():
                for end in ("-wal", "-shm", ""):  # what is left of a file must not be taken for part of the next one
                    path.with_name(path.name + end).unlink(missing_ok=True)

    def forget_all(self) -> None:
        """Throw every text file away; raises Failed where one stays."""
        for path in sorted(self._folder.glob("*.sqlite")):
            try:
                self.forget(path.stem)
            except OSError as error:
                hint = f"remove it: rm -r {path.parent}"
                raise Failed(f"{path} cannot be removed: {error.strerror}", hint=hint) from error

    def told(self, project: str) -> dict[str, Any] | None:
        """Return what is known of a text file that is there: memories, bytes, version, and why it was last made.

        `amiss` says why it is to be made anew, None where it is not.
        """
        path = self._path(project)
        if not path.exists():
            return None
        told: dict[str, Any] = {"memories": 0, "version": None, "made_because": None, "amiss": None}
        with self._turn(project), suppress(OSError):
            told["bytes"] = sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
            try:
                file = self._opened(project)
                mark = file.mark
                told |= {"memories": file.said("memories") or 0, "made_because": file.said("because")}
                told["version"] = str(mark.version) if mark else None
            except (_Amiss, sqlite3.Error) as error:
                told["amiss"] = str(error)
                self._let_go(project)
        return told

    def close(self) -> None:
        """Let go of all files."""
        for project in [*self._open]:
            with self._turn(project):
                self._let_go(project)

    def _opened(self, project: str) -> TextFile:
        """Return the file of a project, opened anew where another process has thrown away the one that was open."""
        path = self._path(project)
        if project in self._open and self._places[project] not in (None, _place(path)):
            self._let_go(project)
        if project not in self._open and project in self._unwritable:
            self._open[project], self._places[project] = TextFile(":memory:", self._stemmer, WAIT), None
        elif project not in self._open:
            try:
                self._open[project], self._places[project] = self._at(path)
            except OSError as error:
                self._unwritable.add(project)
                raise _Amiss("nothing can be written") from error
        if not self._open[project].fits():
            raise _Amiss("it was of another form, or made elsewhere")
        return self._open[project]

    def _at(self, path: Path) -> tuple[TextFile, tuple[int, int]]:
        """Return the file at *path*, opened or made, and which it is; raises OSError where none can be written."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._alone():  # nobody throws it away between this file and those beside it
            if _is_emptied(path):
                raise _Amiss("it was emptied")
            file = TextFile(str(path), self._stemmer, WAIT, here.number(here.settle(self._folder)))
            return file, _place(path)

    def _amiss(self, project: str, error: sqlite3.DatabaseError) -> str:
        """Return why a file is made anew after *error*, in memory where nothing can be written; raises Busy, Failed."""
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in _BUSY:
            raise Busy(f"another process takes in the texts of {project}", hint="ask again in a moment") from error
        if "no such module" in str(error):
            hint = "use a Python whose SQLite has FTS5"
            raise Failed("this SQLite has no full text search", hint=hint, code="missing_extra") from error
        if code in _UNWRITABLE:
            self._unwritable.add(project)
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
        left = items(self._index, stream.graph)
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
        found = 0
        for step in steps(self._journal.read(stream, after=then.version)):
            found += len(step)
            if any(is_order(commit.data) for commit in step):
                raise _Amiss("something was taken out of the journal")
            nodes = {subject for commit in step for subject, _, _ in commit.triples if subject != iri(commit.iri)}
            again = touched(self._index, stream.graph, nodes)
            known = list(self._documents(stream, again))
            file.remove({bare(node) for node in again} - {document.item for document in known})
            file.put(known)
        later = sum(1 for _ in self._journal.read(stream, after=now.version))
        if found - later != now.commits - then.commits:
            raise _Amiss("what was damaged is there again")
        return now.commits > then.commits

    def _documents(self, stream: Stream, nodes: Iterable[Term]) -> Iterator[Document]:
        return filter(None, (document(self._index, stream.graph, node) for node in nodes))

    def _turn(self, project: str) -> RLock:
        """Return what one thread holds that asks for, opens or throws away the file of a project."""
        return self._turns.setdefault(project, RLock())

    def _let_go(self, project: str) -> None:
        file = self._open.pop(project, None)
        self._places.pop(project, None)
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()

    def _path(self, project: str) -> Path:
        return self._folder / f"{project}.sqlite"

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
