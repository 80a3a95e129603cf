"""The search index: the texts of memories, entries and turns for full text search, in one SQLite file below `cache/`.

It is kept up to date with the index. The vectors of one model are in a file of their own, each under the digest of
its text; texts that no journal has are searched in memory. An embedder is given fewer texts at a time after it failed,
so that a text that it always refuses is identified.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock, Thread, current_thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jidomem import __version__
from jidomem.base.stems import Stemmer
from jidomem.base.words import chunk_text, digest
from jidomem.errors import Busy, Failed, JidomemError
from jidomem.index import search_documents
from jidomem.index.cache_file import CacheDatabase, CacheFolder, CacheInvalid, several
from jidomem.index.follower import steps
from jidomem.index.projection import BEGINS, IndexedProject
from jidomem.index.search_documents import Document, TripleReader
from jidomem.index.search_tables import SearchIndexReader
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.journal.commit import Commit, is_redaction_record
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.rdf.vocab import LABEL, jido
from jidomem.records.intent import Version
from jidomem.records.interfaces import Vector
from jidomem.records.named_query import ListOrder

if TYPE_CHECKING:
    from jidomem.index.vector_search import Likeness

MAX_BATCH = 64
#: So often one text by itself is tried.
TRIES = 3


class BatchSizer:
    """The sizes of the batches of each stream, by name, and which text fails by itself.

    >>> batches = BatchSizer()
    >>> [batches.failed("p", range(size)) for size in (64, 32, 16, 8, 4, 2, 1, 1, 1)][-2:]
    [False, True]
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._alone: dict[str, int] = {}

    def size(self, name: str) -> int:
        """Return how many texts are given next."""
        return self._sizes.get(name, MAX_BATCH)

    def done(self, name: str) -> None:
        """Take note of a batch that was taken: the next one may be twice as large."""
        self._sizes[name] = min(MAX_BATCH, 2 * self.size(name))
        self._alone.pop(name, None)

    def failed(self, name: str, batch: Collection[object]) -> bool:
        """Return whether *batch*, which failed, is one text that failed by itself often enough to be passed by."""
        if len(batch) > 1:
            self._sizes[name] = max(1, len(batch) // 2)
            return False
        self._sizes[name] = 1
        self._alone[name] = self._alone.get(name, 0) + 1
        return self._alone[name] >= TRIES


T = TypeVar("T")


class Readable(Protocol):
    """Texts that may be looked through, stream by stream."""

    def read(self, stream: Stream, use: Callable[[SearchIndexReader], T]) -> T:
        """Return what *use* makes of the texts of *stream*, while nobody changes them."""


class VectorIndex(Protocol):
    """Vectors of pieces of texts, stream by stream, each under the digest of its piece."""

    def nearest(self, stream: Stream, to: Vector, limit: int) -> list[tuple[bytes, float]]:
        """Return the *limit* most alike to a vector, with their cosines."""

    def cosines(self, stream: Stream, to: Vector, digests: Sequence[bytes]) -> Mapping[bytes, float]:
        """Return how alike each of *digests* is, as far as there is a vector of it."""


class InMemorySearchIndex:
    """Documents, each with a vector or none: they stand for any stream. Any thread may ask."""

    def __init__(self, stemmer: Stemmer) -> None:
        """Begin with none; *stemmer* is that of what is asked."""
        self._file = SearchIndexReader(":memory:", stemmer, 0.0)
        self._file.fits()
        self._vectors: dict[str, tuple[list[bytes], Vector]] = {}
        self._likeness: tuple[list[bytes], dict[bytes, int], Likeness] | None = None
        self._lock = RLock()

    def put(self, documents: Mapping[str, tuple[Document, Vector | None]], removed: Iterable[str] = ()) -> None:
        """Add documents by their items, each with the vector of its text, and delete those of *removed*."""
        with self._lock, self._file.writing():
            for item in removed:
                self._vectors.pop(item, None)
            self._file.remove(removed)
            self._file.put(document for document, _ in documents.values())
            for item, (document, vector) in documents.items():
                self._vectors.pop(item, None)
                if vector is not None:
                    self._vectors[item] = [*map(digest, chunk_text(document.text))], vector
            self._likeness = None

    def read(self, stream: Stream, use: Callable[[SearchIndexReader], T]) -> T:
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
            from jidomem.index.vector_search import Likeness, written

            vectors = {each: vector for pieces, vector in self._vectors.values() for each in pieces}
            known = [each for each, vector in vectors.items() if len(vector) == dimensions]
            likeness = Likeness(dimensions)
            if known:
                likeness.add(range(len(known)), [written(vectors[each]) for each in known])
            self._likeness = known, {each: number for number, each in enumerate(known)}, likeness
        return self._likeness


#: Where the vectors are, below the root.
VECTOR_FOLDER = Path("cache", "vectors")


class VectorFile(CacheDatabase):
    """The file at *path*.

    A vector is written as a number of 8 bits for each of its own, the largest of them as 127.
    """

    FORM = 2
    TABLES = """
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE vector (number INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE, value BLOB);
"""

    def __init__(self, path: str, wait: float, marker: int = 0) -> None:
        super().__init__(path, wait, marker)
        self._store.execute("PRAGMA secure_delete=ON")

    @property
    def reached(self) -> tuple[str, int]:
        """Return the identity of the text file that was followed, and the id of the last piece of it that was seen."""
        identity, last = self.metadata("reached") or ("", 0)
        return str(identity), int(last)

    def numbers(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Return the number of the vector of each of *digests* of which there is one.

        It is higher than that of any that was there before.
        """
        found: dict[bytes, int] = {}
        for step in several(digests):
            ask = f"SELECT digest, number FROM vector WHERE digest IN ({', '.join('?' * len(step))})"
            found.update(self._store.execute(ask, step))
        return found

    def known(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return which of *digests* need no vector made."""
        return {*self.numbers(digests)}

    def keep(self, digests: Sequence[bytes], made: Mapping[bytes, bytes]) -> None:
        """Keep the vectors that were *made*, in the order of *digests*, while the turn to write is held."""
        self.put((digest, made[digest]) for digest in digests if digest in made)

    def put(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep vectors, each under the digest of its text, while the turn to write is held."""
        self._store.executemany("INSERT OR IGNORE INTO vector (digest, value) VALUES (?, ?)", vectors)

    def after(self, number: int, limit: int) -> list[tuple[int, bytes, bytes]]:
        """Return the next *limit* vectors after the one of that number: number, digest and value."""
        ask = "SELECT number, digest, value FROM vector WHERE number > ? ORDER BY number LIMIT ?"
        return self._store.execute(ask, (number, limit)).fetchall()

    def digests(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the digest of each of *numbers* that is not gone."""
        ask = "SELECT number, digest FROM vector WHERE number IN (SELECT value FROM json_each(?))"
        return dict(self._store.execute(ask, (json.dumps(numbers),)))

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget vectors, while the turn to write is held."""
        self._store.executemany("DELETE FROM vector WHERE number = ?", ((number,) for number in numbers))
        self.set_metadata(swept=(self.metadata("swept") or 0) + 1)

    def write_out(self) -> None:
        """Leave nothing of what was removed in what is beside the file, as far as nobody reads it now."""
        self._store.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def count(self) -> int:
        """Return how many vectors there are."""
        return int(self._store.execute("SELECT COUNT(*) FROM vector").fetchone()[0])


def forget(root: Path, project: str = "") -> None:
    """Throw away the vectors below *root*, those of one *project* where it is named; raises Failed where some stay."""
    CacheFolder(root / VECTOR_FOLDER, "vectors", VectorFile).forget_all(f"{project}." if project else "")


#: Where the texts are, below the root.
TEXT_FOLDER = Path("cache", "text")
#: More than so many are not waited for by who reads soon.
FEW = 5_000
_SUMMARY = jido("summary")


class _NotYet(Exception):
    """A file is to be made, and who asks does not wait for that."""


@dataclass(frozen=True)
class _DocumentReader:
    """The functions that read the searchable documents of a graph from the index."""

    #: The nodes to be read again after changes: node -> properties that got values.
    touched: Callable[[TripleReader, str, Mapping[Term, Collection[Term]]], list[Term]]
    document: Callable[[TripleReader, str, Term], Document | None]


#: The streams with searchable documents, each in a file of its own.
_KINDS: Mapping[str, _DocumentReader] = {
    "memory": _DocumentReader(search_documents.touched_memories, search_documents.memory_document),
    "history": _DocumentReader(search_documents.touched_old_turns, search_documents.old_turn_document),
}


class Texts:
    """The text files of one root: one a stream, shared by all processes, thrown away where anything is amiss.

    Any thread may ask; of one stream one at a time is answered.
    """

    def __init__(
        self,
        root: Path,
        journal: FileJournal,
        index: OxigraphIndex,
        catch_up: Callable[[str], Version],
        orders: Callable[[], Iterable[ListOrder]] = tuple,
    ) -> None:
        """Keep them below *root*; *catch_up* brings *index* up to a project's journal, or raises for none there is.

        The lists of *orders* are held beside the text of memories.
        """
        self._root = root
        self._orders = orders
        self._projects: dict[str, IndexedProject] = {}
        self._journal = journal
        self._index = index
        self._catch_up = catch_up
        self._stemmer = Stemmer()
        self.files = CacheFolder(root / TEXT_FOLDER, "texts", self._made)
        self._makers: dict[str, Thread] = {}  # those that make a file nobody waits for
        self._taken: dict[str, tuple[int, int]] = {}  # how many are in a file that is being made, and of how many
        self._starting, self._closed = Lock(), False

    @property
    def stemmer(self) -> Stemmer:
        """Return what finds the stems of words, the same for what is kept and what is asked."""
        return self._stemmer

    def read_soon(self, stream: Stream, use: Callable[[SearchIndexReader], T]) -> T:
        """Return what `read` does; raise Busy `index_behind` where many are to be taken in first, which is begun."""
        name = name_of(stream)
        if not self._is_made(name):
            try:
                return self.read(stream, use, waits=False)
            except _NotYet:
                self._go_on(stream)
        taken, many = self._taken.get(name, (0, 0))
        raise Busy(
            f"the index for lists and searches of {stream.project} is being built"
            + (f": {taken:,} of {many:,} memories" if many else ""),
            hint="retry in a moment; single memories are available meanwhile",
            code="index_behind",
        )

    def read(
        self,
        stream: Stream,
        use: Callable[[SearchIndexReader], T],
        *,
        waits: bool = True,
        catches_up: bool = True,
    ) -> T:
        """Return what *use* makes of the text file of *stream*, level with the journal; nobody changes it meanwhile.

        One that is damaged, of another form or of another branch is made anew; where nothing can be written it is kept
        in memory. Without *catches_up* it is level with the index as that is. Raises Busy where another process does
        not come to an end, and what the catch-up raises.
        """
        name = name_of(stream)
        with self.files.turn(name):
            if catches_up and not self.files.is_open(name):
                self._catch_up(stream.project)  # nothing is made for a project there is not

            def level(file: SearchIndexReader, because: str) -> T:
                if catches_up:
                    self._catch_up(stream.project)  # not before: what is put into a file that was thrown away is gone
                self._level(file, stream, because, waits=waits)
                with file.reading():
                    return use(file)

            return self.files.use(name, level)

    def are_there(self, stream: Stream) -> bool:
        """Return whether a text file is there, or was made in memory, in whatever state."""
        name = name_of(stream)
        return self.files.is_open(name) or self.files.path(name).exists()

    def status(self, stream: Stream) -> dict[str, Any] | None:
        """Return what is known of a text file that is there: memories, bytes, version, and why it was last made.

        `amiss` says why it is to be made anew, or that it is being made; None where it is not.
        """
        name = name_of(stream)
        if not self.files.path(name).exists():
            return None
        status: dict[str, Any] = {"memories": 0, "version": None, "made_because": None, "amiss": None}
        with suppress(OSError):
            status["bytes"] = self.files.size(name)
        if not self.files.turn(name).acquire(blocking=not self._is_made(name)):
            return status | {"memories": self._taken.get(name, (0, 0))[0], "amiss": "it is being built"}
        try:
            file = self.files.opened(name)
            mark = file.mark
            status |= {"memories": file.metadata("memories") or 0, "made_because": file.metadata("because")}
            status["version"] = str(mark.version) if mark else None
        except (CacheInvalid, sqlite3.Error, UnicodeDecodeError) as error:
            status["amiss"] = str(error)
            self.files.let_go(name)
        except OSError:
            pass
        finally:
            self.files.turn(name).release()
        return status

    def close(self) -> None:
        """Let go of all files; one that is being made is left as it is then."""
        self._closed = True
        self.files.close()

    def _made(self, path: str, wait: float, marker: int) -> SearchIndexReader:
        return SearchIndexReader(path, self._stemmer, wait, marker)

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

    def _level(self, file: SearchIndexReader, stream: Stream, because: str, *, waits: bool) -> None:
        """Bring the file level with the index.

        Raises CacheInvalid where it is to be made anew, and _NotYet where that takes long and nobody *waits*.
        """
        now = self._index.mark(stream.graph)
        if file.mark is None:
            if not waits and sum(1 for _ in self._index.triples(stream.graph, None, _SUMMARY, most=FEW + 1)) > FEW:
                raise _NotYet
            with file.writing():
                if file.mark is None:
                    file.set_metadata(mark=Watermark(cleared=now.cleared).term, began=now.term, because=because)
        if stream.name == "memory":
            self._hold_lists(file, self._project(stream))
        while not file.metadata("is_whole"):
            self._fill(file, stream)
        while file.mark != now and not self._apply(file, stream, now):
            pass

    def _hold_lists(self, file: SearchIndexReader, source: IndexedProject) -> None:
        """Hold the lists of the queries of this version, of the classes there are."""
        ontology = source.look()
        if (file.metadata("ontology"), file.metadata("lists")) != (ontology, __version__):
            with file.writing():
                is_other = file.metadata("ontology") not in (None, ontology)
                file.projection.include(self._orders(), source, rebuilds=is_other)
                file.set_metadata(ontology=ontology, lists=__version__)

    def _fill(self, file: SearchIndexReader, stream: Stream) -> None:
        """Take in all there was when the file was begun; a process that was killed leaves it to be gone on with."""
        then, began = file.mark or Watermark(), Watermark.of(file.metadata("began"))
        if not all(self._journal.holds(stream, mark.version) for mark in (then, began)):
            raise CacheInvalid("another branch was checked out")
        try:
            for step in steps(self._journal.read(stream, after=then.version)):
                later = self._after(stream, began)
                self._taken[name_of(stream)] = then.commits, began.commits
                if self._closed and current_thread() is self._makers.get(name_of(stream)):
                    raise Failed("the memory was closed", hint="open it again")
                with file.writing():
                    if file.mark != then:  # another process went on
                        return
                    fresh = [commit for commit in step if commit.id not in later]
                    self._take(file, stream, fresh, fills=True)
                    then = then.after(fresh)
                    file.set_metadata(mark=then.term)
            with file.writing():
                if file.mark == then:
                    file.tidy()
                    file.set_metadata(mark=began.term, is_whole=True)
        finally:
            self._taken.pop(name_of(stream), None)

    def _apply(self, file: SearchIndexReader, stream: Stream, now: Watermark) -> bool:
        """Take in what the file has not up to *now*; return False where another process took some of it in.

        Raises CacheInvalid where *now* is no later state of what the file holds.
        """
        then = file.mark or Watermark()
        if not self._journal.holds(stream, then.version):
            raise CacheInvalid("another branch was checked out")
        if then.cleared != now.cleared:
            raise CacheInvalid("the graph was cleared")
        reached, read, taken, later = then, set[str](), 0, self._after(stream, now)
        for step in steps(self._journal.read(stream, after=then.version)):
            later = self._after(stream, now)  # not before: others go on writing
            read |= {commit.id for commit in step}
            fresh = [commit for commit in step if commit.id not in later]
            if any(is_redaction_record(commit.data) for commit in fresh):
                forget(self._root, stream.project)
                raise CacheInvalid("something was taken out of the journal")
            with file.writing():
                if file.mark != reached:
                    return False
                self._take(file, stream, fresh)
                reached, taken = reached.after(fresh), taken + len(fresh)
                file.set_metadata(mark=reached.term)
        if taken - len(later - read) != now.commits - then.commits:
            raise CacheInvalid("what was damaged is there again")
        return True

    def _after(self, stream: Stream, mark: Watermark) -> set[str]:
        """Return the ids of the commits that came after *mark*."""
        return {commit.id for commit in self._journal.read(stream, after=mark.version)}

    def _take(self, file: SearchIndexReader, stream: Stream, commits: Sequence[Commit], *, fills: bool = False) -> None:
        """Look again at every memory that *commits* say something of, or change.

        While the file *fills*, a memory that is new is read from the commits: what the index knows of it besides is
        in later commits, which are still to come.
        """
        changes: dict[Term, set[Term]] = {}
        for commit in commits:
            for subject, name, _ in commit.triples:
                changes.setdefault(subject, set()).add(name)
            changes.pop(iri(commit.iri), None)
        source, kind = self._project(stream), _KINDS[stream.name]
        source.look()
        new = file.projection.lacking(sorted(changes)) if fills and stream.name == "memory" else []
        source.describe(new, commits)
        others = {node: changes[node] for node in changes.keys() - {*new}}
        for node in file.projection.labelled([node for node, names in others.items() if LABEL in names]):
            if len([*source.triples(stream.graph, node, LABEL)]) == 1:  # only repeated, as of a common source
                others[node].discard(LABEL)
        again = sorted({*new, *kind.touched(source, stream.graph, others)})
        known = [found for node in again if (found := kind.document(source, stream.graph, node)) is not None]
        file.remove({plain_value(node) for node in again} - {document.item for document in known})
        file.put(known)
        if stream.name == "memory":
            file.projection.update(changes, source, ending=[node for node, names in others.items() if names & BEGINS])

    def _project(self, stream: Stream) -> IndexedProject:
        return self._projects.setdefault(stream.project, IndexedProject(self._index, stream.project))


def name_of(stream: Stream) -> str:
    """Return what the files of a stream are called."""
    return stream.project + ("" if stream.name == "memory" else f".{stream.name}")
