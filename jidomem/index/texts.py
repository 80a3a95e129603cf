"""The texts of memories, entries and turns, kept below `cache/` for full text search, level with the index."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread, current_thread
from typing import Any, Protocol, TypeVar

from jidomem.errors import Busy, Failed, JidomemError
from jidomem.index import documents, history_words, vector_file
from jidomem.index.document import Mark
from jidomem.index.documents import Document
from jidomem.index.kept_files import Amiss, KeptFiles
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.steps import steps
from jidomem.index.text_file import TextFile
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.redaction import is_order
from jidomem.stems import Stemmer
from jidomem.terms import Term, bare, iri
from jidomem.version import Version
from jidomem.vocab import jido

T = TypeVar("T")

#: Where the texts are, below the root.
FOLDER = Path("cache", "text")
#: So many memories are taken in at a time where all are.
AT_ONCE = 2_000
#: More than so many are not waited for by who reads soon.
FEW = 5_000
_SUMMARY = jido("summary")


class _NotYet(Exception):
    """A file is to be made, and who asks does not wait for that."""


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
        self._root = root
        self._journal = journal
        self._index = index
        self._catch_up = catch_up
        self._stemmer = Stemmer()
        self.files = KeptFiles(root / FOLDER, "texts", self._made)
        self._makers: dict[str, Thread] = {}  # those that make a file nobody waits for
        self._taken: dict[str, tuple[int, int]] = {}  # how many are in a file that is being made, and of how many
        self._starting, self._closed = Lock(), False

    @property
    def stemmer(self) -> Stemmer:
        """Return what finds the stems of words, the same for what is kept and what is asked."""
        return self._stemmer

    def read_soon(self, stream: Stream, use: Callable[[TextFile], T]) -> T:
        """Return what `read` does; raise Busy `index_behind` where many are to be taken in first, which is begun."""
        name = name_of(stream)
        if not self._is_made(name):
            try:
                return self.read(stream, use, waits=False)
            except _NotYet:
                self._go_on(stream)
        taken, many = self._taken.get(name, (0, 0))
        raise Busy(
            f"the memories of {stream.project} are being taken in for lists and searches"
            + (f": {taken:,} of {many:,} are" if many else ""),
            hint="come back in a moment; what needs no list of all is there meanwhile",
            code="index_behind",
        )

    def read(self, stream: Stream, use: Callable[[TextFile], T], *, waits: bool = True) -> T:
        """Return what *use* makes of the text file of *stream*, level with the journal; nobody changes it meanwhile.

        One that is damaged, of another form or of another branch is made anew; where nothing can be written it is kept
        in memory. Raises Busy where another process does not come to an end, and what the catch-up raises.
        """
        name = name_of(stream)
        with self.files.turn(name):
            if not self.files.is_open(name):
                self._catch_up(stream.project)  # nothing is made for a project there is not

            def level(file: TextFile, because: str) -> T:
                self._catch_up(stream.project)  # not before: what is put into a file that was thrown away is gone
                self._level(file, stream, because, waits=waits)
                with file.reading():
                    return use(file)

            return self.files.use(name, level)

    def are_there(self, stream: Stream) -> bool:
        """Return whether a text file is there, or was made in memory, in whatever state."""
        name = name_of(stream)
        return self.files.is_open(name) or self.files.path(name).exists()

    def told(self, stream: Stream) -> dict[str, Any] | None:
        """Return what is known of a text file that is there: memories, bytes, version, and why it was last made.

        `amiss` says why it is to be made anew, or that it is being made; None where it is not.
        """
        name = name_of(stream)
        if not self.files.path(name).exists():
            return None
        told: dict[str, Any] = {"memories": 0, "version": None, "made_because": None, "amiss": None}
        with suppress(OSError):
            told["bytes"] = self.files.size(name)
        if not self.files.turn(name).acquire(blocking=not self._is_made(name)):
            return told | {"memories": self._taken.get(name, (0, 0))[0], "amiss": "they are being taken in"}
        try:
            file = self.files.opened(name)
            mark = file.mark
            told |= {"memories": file.said("memories") or 0, "made_because": file.said("because")}
            told["version"] = str(mark.version) if mark else None
        except (Amiss, sqlite3.Error, UnicodeDecodeError) as error:
            told["amiss"] = str(error)
            self.files.let_go(name)
        except OSError:
            pass
        finally:
            self.files.turn(name).release()
        return told

    def close(self) -> None:
        """Let go of all files; one that is being made is left as it is then."""
        self._closed = True
        self.files.close()

    def _made(self, path: str, wait: float, here: int) -> TextFile:
        return TextFile(path, self._stemmer, wait, here)

    def _go_on(self, stream: Stream) -> None:
        """Have a thread make the file of *stream*, unless one is at it."""
        name = name_of(stream)
        with self._starting:
            if name not in self._makers or not self._makers[name].is_alive():
                maker = Thread(target=self._made_apart, args=(stream,), name=f"jidomem-texts-{name}", daemon=True)
                self._makers[name] = maker
                maker.start()

    def _is_made(self, name: str) -> bool:
        """Return whether a file is being made that takes long."""
        maker = self._makers.get(name)
        return (maker is not None and maker.is_alive()) or self._taken.get(name, (0, 0))[1] > FEW

    def _made_apart(self, stream: Stream) -> None:
        with suppress(JidomemError, OSError, RuntimeError, sqlite3.Error):  # then who asks next begins again
            self.read(stream, lambda file: None)

    def _level(self, file: TextFile, stream: Stream, because: str, *, waits: bool) -> None:
        """Take in what is new; raises Amiss where the file is to be made anew, _NotYet where that takes long."""
        now = self._index.mark(stream.graph)
        if file.mark is None:
            if not waits and sum(1 for _ in self._index.triples(stream.graph, None, _SUMMARY, most=FEW + 1)) > FEW:
                raise _NotYet
            try:
                self._make(file, stream, now, because)
            finally:
                self._taken.pop(name_of(stream), None)
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
                self._taken[name_of(stream)] = start, len(left)
                if self._closed and current_thread() is self._makers.get(name_of(stream)):
                    raise Failed("the memory was closed", hint="open it again")
                step = left[start : start + AT_ONCE]
                file.put(self._documents(stream, (item for _, item in step)))
                if not step:
                    file.tidy()
                    file.note(mark=file.said("began"))
                    return
                file.note(reached=step[-1])

    def _takes(self, file: TextFile, stream: Stream, then: Mark, now: Mark) -> bool:
        """Look again at every memory that something was said of since *then*; return whether *now* is later.

        Raises Amiss where it is no later state of what *then* was one of.
        """
        if not self._journal.holds(stream, then.version):
            raise Amiss("another branch was checked out")
        if then.cleared != now.cleared:
            raise Amiss("the graph was cleared")
        found = set[str]()
        for step in steps(self._journal.read(stream, after=then.version)):
            found |= {commit.id for commit in step}
            if any(is_order(commit.data) for commit in step):
                vector_file.forget(self._root, stream.project)
                raise Amiss("something was taken out of the journal")
            nodes = {subject for commit in step for subject, _, _ in commit.triples if subject != iri(commit.iri)}
            again = _KINDS[stream.name].touched(self._index, stream.graph, nodes)
            known = list(self._documents(stream, again))
            file.remove({bare(node) for node in again} - {document.item for document in known})
            file.put(known)
        later = {commit.id for commit in self._journal.read(stream, after=now.version)}  # more than were found by now
        if len(found - later) != now.commits - then.commits:
            raise Amiss("what was damaged is there again")
        return now.commits > then.commits

    def _documents(self, stream: Stream, nodes: Iterable[Term]) -> Iterator[Document]:
        read = _KINDS[stream.name].document
        return filter(None, (read(self._index, stream.graph, node) for node in nodes))


def name_of(stream: Stream) -> str:
    """Return what the files of a stream are called."""
    return stream.project + ("" if stream.name == "memory" else f".{stream.name}")
