"""The search index: texts of memories, entries and turns for full-text search, one SQLite file a stream in `cache/`.

It is kept up to date with the index. The vectors of a model are in a separate file, each under the digest of its text.
Texts that are in no journal are searched in memory. After a failure the embedder gets fewer texts at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, RLock, Thread, current_thread
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from jidomem.base.clock import monotonic_time, nonce
from jidomem.base.stems import Stemmer
from jidomem.base.words import chunk_text, digest
from jidomem.errors import Busy, Failed, JidomemError
from jidomem.index.cache_file import CacheDatabase, CacheFolder, CacheInvalid, chunks
from jidomem.index.follower import steps
from jidomem.index.projection import BEGINS, IndexedProject
from jidomem.index.search_documents import READERS, other_records
from jidomem.index.search_tables import SearchIndexReader
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.journal.commit import Commit, is_redaction_record
from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.rdf.vocab import LABEL, graphs_of, jido

if TYPE_CHECKING:
    from jidomem.index.search_documents import Document
    from jidomem.index.vector_search import VectorSet
    from jidomem.journal.journal import FileJournal, Stream
    from jidomem.records.intent import Version
    from jidomem.records.interfaces import Vector
    from jidomem.records.named_query import ListSource

MAX_BATCH = 64
#: Attempts to embed a single text before it is skipped.
TRIES = 3


class BatchSizer:
    """Batch sizes by stream name; finds the text that the embedder refuses.

    >>> batches = BatchSizer()
    >>> [batches.failed("p", range(size)) for size in (64, 32, 16, 8, 4, 2, 1, 1, 1)][-2:]
    [False, True]
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._attempts: dict[str, int] = {}

    def size(self, name: str) -> int:
        """Return the number of texts of the next batch."""
        return self._sizes.get(name, MAX_BATCH)

    def succeeded(self, name: str) -> None:
        """Record a successful batch: the next may be twice as large."""
        self._sizes[name] = min(MAX_BATCH, 2 * self.size(name))
        self._attempts.pop(name, None)

    def failed(self, name: str, batch: Collection[object]) -> bool:
        """Record a failed batch; return True if it is a single text that failed TRIES times and is to be skipped."""
        if len(batch) > 1:
            self._sizes[name] = max(1, len(batch) // 2)
            return False
        self._sizes[name] = 1
        self._attempts[name] = self._attempts.get(name, 0) + 1
        return self._attempts[name] >= TRIES


T = TypeVar("T")


class Readable(Protocol):
    """Searchable texts by stream."""

    def read(self, stream: Stream, use: Callable[[SearchIndexReader], T]) -> T:
        """Return `use(reader)` for the texts of *stream*, which no thread changes meanwhile."""


class VectorIndex(Protocol):
    """Vectors of pieces of texts by stream, each under the digest of its piece."""

    def nearest(self, stream: Stream, to: Vector, limit: int) -> list[tuple[bytes, float]]:
        """Return the digests of the *limit* pieces most similar to a vector, with their cosines."""

    def cosines(self, stream: Stream, to: Vector, digests: Sequence[bytes]) -> Mapping[bytes, float]:
        """Return the cosine of each of *digests* that has a vector."""


class InMemorySearchIndex:
    """Documents in memory, each with or without a vector, that stand for any stream. Thread-safe."""

    def __init__(self, stemmer: Stemmer) -> None:
        """Make an empty index; *stemmer* is that of the queries."""
        self._file = SearchIndexReader(":memory:", stemmer, 0.0)
        self._file.fits()
        self._vectors: dict[str, tuple[list[bytes], Vector]] = {}
        self._vector_set: tuple[list[bytes], dict[bytes, int], VectorSet] | None = None
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
            self._vector_set = None

    def read(self, stream: Stream, use: Callable[[SearchIndexReader], T]) -> T:
        """Return `use(reader)`, for any *stream*."""
        with self._lock, self._file.reading():
            return use(self._file)

    def nearest(self, stream: Stream, to: Vector, limit: int) -> list[tuple[bytes, float]]:
        """Return the digests of the *limit* pieces most similar to a vector, with their cosines."""
        with self._lock:
            by_number, _, vectors = self._vectors_of(len(to))
            return [(by_number[number], cosine) for number, cosine in vectors.nearest(to, limit)]

    def cosines(self, stream: Stream, to: Vector, digests: Sequence[bytes]) -> Mapping[bytes, float]:
        """Return the cosine of each of *digests* that has a vector."""
        with self._lock:
            by_number, numbers, vectors = self._vectors_of(len(to))
            wanted = [numbers[digest_] for digest_ in digests if digest_ in numbers]
            return {by_number[number]: cosine for number, cosine in vectors.cosines(to, wanted).items()}

    def close(self) -> None:
        """Close the database."""
        self._file.close()

    def _vectors_of(self, dimensions: int) -> tuple[list[bytes], dict[bytes, int], VectorSet]:
        """Return the digests by number, the numbers by digest, and the vectors of *dimensions* under these numbers."""
        if self._vector_set is None or self._vector_set[2].dimensions != dimensions:
            from jidomem.index.vector_search import VectorSet, encode

            by_digest = {digest_: vector for pieces, vector in self._vectors.values() for digest_ in pieces}
            digests = [digest_ for digest_, vector in by_digest.items() if len(vector) == dimensions]
            vectors = VectorSet(dimensions)
            if digests:
                vectors.add(range(len(digests)), [encode(by_digest[digest_]) for digest_ in digests])
            self._vector_set = digests, {digest_: number for number, digest_ in enumerate(digests)}, vectors
        return self._vector_set


#: The folder of the vector files, relative to the root.
VECTOR_FOLDER = Path("cache", "vectors")


class VectorFile(CacheDatabase):
    """The vectors at *path*, each under the digest of its text.

    A vector is stored as one byte a component, scaled so that the largest component is 127. Pairs of near vectors are
    stored with their cosines.
    """

    FORM = 3
    TABLES = """
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE vector (number INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE, value BLOB);
"""
    NEAR_TABLES = """
CREATE TABLE near (low INTEGER, high INTEGER, cosine REAL, PRIMARY KEY (low, high)) WITHOUT ROWID;
CREATE INDEX near_high ON near (high);
CREATE INDEX near_cosine ON near (cosine);
"""
    TABLES += NEAR_TABLES
    UPGRADES: ClassVar[Mapping[int, str]] = {2: NEAR_TABLES}

    def __init__(self, path: str, wait: float, marker: int = 0) -> None:
        super().__init__(path, wait, marker)
        self._store.execute("PRAGMA secure_delete=ON")

    @property
    def reached(self) -> tuple[str, int]:
        """Return the identity of the text file that was read, and the id of the last piece read."""
        identity, last = self.metadata("reached") or ("", 0)
        return str(identity), int(last)

    def numbers(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Return the numbers of those of *digests* that have a vector; a new vector gets the highest number so far."""
        return self._of_digests("number", digests)

    def present(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return those of *digests* that have a vector."""
        return {*self.numbers(digests)}

    def write(self, digests: Sequence[bytes], made: Mapping[bytes, bytes]) -> None:
        """Write the vectors *made*, in the order of *digests*, in the caller's write transaction."""
        self.put((digest, made[digest]) for digest in digests if digest in made)

    def put(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Write vectors, each under the digest of its text, in the caller's write transaction."""
        self._store.executemany("INSERT OR IGNORE INTO vector (digest, value) VALUES (?, ?)", vectors)

    def after(self, number: int, limit: int) -> list[tuple[int, bytes, bytes]]:
        """Return the next *limit* vectors after a number: number, digest and value."""
        sql = "SELECT number, digest, value FROM vector WHERE number > ? ORDER BY number LIMIT ?"
        return self._store.execute(sql, (number, limit)).fetchall()

    def digests(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the digests of those of *numbers* that have a vector."""
        sql = "SELECT number, digest FROM vector WHERE number IN (SELECT value FROM json_each(?))"
        return dict(self._store.execute(sql, (json.dumps(numbers),)))

    def values(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the encoded vectors of those of *digests* that have one."""
        return self._of_digests("value", digests)

    def _of_digests(self, column: str, digests: Sequence[bytes]) -> dict[bytes, Any]:
        found: dict[bytes, Any] = {}
        for step in chunks(digests):
            sql = f"SELECT digest, {column} FROM vector WHERE digest IN ({', '.join('?' * len(step))})"
            found.update(self._store.execute(sql, step))
        return found

    def remove(self, numbers: Iterable[int]) -> None:
        """Delete vectors, in the caller's write transaction."""
        values = [(number,) for number in numbers]
        for table, column in (("vector", "number"), ("near", "low"), ("near", "high")):
            self._store.executemany(f"DELETE FROM {table} WHERE {column} = ?", values)
        self.set_metadata(swept=(self.metadata("swept") or 0) + 1)

    def initialise(self) -> None:
        """Give a new file a random identity."""
        self.set_metadata(identity=nonce().hex())

    @property
    def identity(self) -> str:
        """Return the identity of the file: one that is made anew has another, and other numbers."""
        return str(self.metadata("identity"))

    @property
    def compared(self) -> int:
        """Return the number of the last vector whose near vectors were stored."""
        return int(self.metadata("compared") or 0)

    @property
    def is_compared(self) -> bool:
        """Return whether the near vectors of all vectors were stored."""
        return int(self._store.execute("SELECT IFNULL(MAX(number), 0) FROM vector").fetchone()[0]) <= self.compared

    def put_near(self, compared: int, pairs: Iterable[tuple[int, int, float]]) -> None:
        """Store the near pairs of the vectors up to *compared*, each with its cosine, in the caller's transaction."""
        rows = ((min(one, other), max(one, other), cosine) for one, other, cosine in pairs)
        self._store.executemany("INSERT OR REPLACE INTO near VALUES (?, ?, ?)", rows)
        self.set_metadata(compared=compared)

    def near(self, limit: int, offset: int = 0, of: Sequence[int] | None = None) -> list[tuple[bytes, bytes, float]]:
        """Return *limit* near pairs, *of* some numbers, after the first *offset*, nearest first: digests and cosine."""
        some = "IN (SELECT value FROM json_each(?3))"
        within = "" if of is None else f"WHERE low {some} OR high {some}"
        sql = f"""SELECT a.digest, b.digest, cosine FROM near JOIN vector a ON a.number = low JOIN vector b
            ON b.number = high {within} ORDER BY cosine DESC, low, high LIMIT ?1 OFFSET ?2"""
        return self._store.execute(sql, (limit, offset, *([] if of is None else [json.dumps(of)]))).fetchall()

    def write_out(self) -> None:
        """Truncate the write-ahead log, so that deleted vectors are not left in it, unless a process is reading."""
        self._store.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def count(self) -> int:
        """Return the number of vectors."""
        return int(self._store.execute("SELECT COUNT(*) FROM vector").fetchone()[0])


def delete_vectors(root: Path, project: str = "") -> None:
    """Delete the vectors below *root*, or those of one *project*; raises Failed if some cannot be deleted."""
    CacheFolder(root, VECTOR_FOLDER, "vectors", VectorFile).discard_all(project)


#: The folder of the text files, relative to the root.
TEXT_FOLDER = Path("cache", "text")
#: `read_soon` does not wait for more memories than this.
MAX_AWAITED = 5_000
CLOSE_TIMEOUT = 3.0  # seconds that `close` waits for the step in progress of a background build
_SUMMARY, _REDACTS = jido("summary"), jido("redacts")
_UNKNOWN_HEADS = "commits were quarantined, or another branch was checked out"


class _BuildNeeded(Exception):
    """A file must be built first, and the caller does not wait for that."""


class TextsSoFar:
    """The texts of a root; while a thread adds many memories, those that were added so far.

    `searched` has the least number of commits whose memories a read had, and the number of all; None if no read lacked
    some.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.searched: tuple[int, int] | None = None

    @property
    def stemmer(self) -> Stemmer:
        """Return the stemmer of texts and queries."""
        return self._texts.stemmer

    def read(self, stream: Stream, use: Callable[[SearchIndexReader], T]) -> T:
        """Return `use(reader)` for the texts of *stream* added so far."""
        if not self._texts.is_being_built(stream):
            return self._texts.read(stream, use)

        def use_part(file: SearchIndexReader) -> T:
            if stream.name == "memory" and (part := self._texts.part(stream, file)) is not None:
                self.searched = min(self.searched or part, part)
            return use(file)

        return self._texts.read_part(stream, use_part)


class Texts:
    """The text files of one root: one a stream, shared by all processes, deleted if anything is wrong with it.

    Thread-safe; reads of one stream run one after another.
    """

    def __init__(
        self,
        root: Path,
        journal: FileJournal,
        index: OxigraphIndex,
        catch_up: Callable[[str], Version],
        lists: ListSource,
    ) -> None:
        """Open the files below *root*; *catch_up* brings *index* up to date with a project, or raises if unknown.

        The file of memories also has *lists*.
        """
        self._root = root
        self._lists = lists
        self._projects: dict[str, IndexedProject] = {}
        self._journal = journal
        self._index = index
        self._catch_up = catch_up
        self._stemmer = Stemmer()
        self.files = CacheFolder(root, TEXT_FOLDER, "texts", self._open_reader)
        self._parts = CacheFolder(root, TEXT_FOLDER, "texts", self._open_reader)  # files that a thread builds
        self._whole: set[str] = set()  # names of files that were built once
        self._builders: dict[str, Thread] = {}  # threads that build a file in the background
        self._build_progress: dict[str, tuple[int, int]] = {}  # commits written to a file being built, and their total
        self._starting, self._closed = Lock(), False

    @property
    def stemmer(self) -> Stemmer:
        """Return the stemmer of texts and queries."""
        return self._stemmer

    def read_soon(self, stream: Stream, use: Callable[[SearchIndexReader], T], *, catches_up: bool = True) -> T:
        """Return the result of `read`; raise Busy `index_behind` if a thread must first add many memories."""
        name = name_of(stream)
        if not self._is_being_built(name):
            try:
                return self.read(stream, use, waits=False, catches_up=catches_up)
            except _BuildNeeded:
                self._start_build(stream)
        written, total = self._build_progress.get(name, (0, 0))
        raise Busy(
            f"the index for lists and searches of {stream.project} is being built"
            + (f": {written:,} of {total:,} commits" if total else ""),
            hint="retry in a moment; single memories are available meanwhile",
            code="index_behind",
        )

    def read(
        self, stream: Stream, use: Callable[[SearchIndexReader], T], *, waits: bool = True, catches_up: bool = True
    ) -> T:
        """Return `use(reader)` for the text file of *stream*, up to date with the journal and not changed meanwhile.

        A file that is damaged, or of another format or branch, is built again; it is in memory if the disk cannot be
        written. Without *catches_up* it is brought up to date with the present index only. Raises Busy if another
        process writes for too long, and the errors of the catch-up.
        """
        name = name_of(stream)
        with self.files.lock(name):
            if catches_up and not self.files.is_open(name):
                self._catch_up(stream.project)  # raises for an unknown project, before a file is made

            def use_current(file: SearchIndexReader) -> T:
                if catches_up:
                    self._catch_up(stream.project)  # on each attempt: a file that was discarded is filled from here
                self._bring_up_to_date(file, stream, waits=waits)
                with file.reading():
                    return use(file)

            return self.files.use(name, use_current)

    def is_being_built(self, stream: Stream) -> bool:
        """Return whether a thread adds many memories to the file of *stream*."""
        return self._is_being_built(name_of(stream))

    def starts_build(self, stream: Stream) -> bool:
        """Return whether many memories are yet to be added to the file of *stream*: a thread adds them from now on."""
        name = name_of(stream)
        if name in self._whole:
            return False
        if not self._is_being_built(name):
            try:
                self.read(stream, lambda file: None, waits=False)
                self._whole.add(name)
            except _BuildNeeded:
                self._start_build(stream)
        return name not in self._whole

    def wait(self, stream: Stream, seconds: float, progress: Callable[[int, int], object]) -> None:
        """Wait for the thread that builds the file of *stream*, but not longer than *seconds*.

        *progress* is called each second with the number of commits that were added, and of all.
        """
        name, end = name_of(stream), monotonic_time() + seconds
        while (builder := self._builders.get(name)) is not None and builder.is_alive() and monotonic_time() < end:
            builder.join(min(1.0, seconds))
            if (added := self._build_progress.get(name_of(stream), (0, 0)))[1]:
                progress(*added)

    def part(self, stream: Stream, file: SearchIndexReader) -> tuple[int, int] | None:
        """Return the number of commits whose memories the *file* of *stream* has, and of all; None if it has all."""
        added, total = (file.mark or Watermark()).commits, self._index.mark(stream.graph).commits
        if file.metadata("is_whole"):
            return (added, total) if added < total else None
        return min(added, total - 1), total

    def read_part(self, stream: Stream, use: Callable[[SearchIndexReader], T]) -> T:
        """Return `use(reader)` for the memories that a thread has added to the file of *stream* so far."""

        def use_part(file: SearchIndexReader) -> T:
            with file.reading():
                return use(file)

        return self._parts.use(name_of(stream), use_part)

    def read_lagging(
        self, stream: Stream, use: Callable[[SearchIndexReader], T], known: Collection[int], most: int
    ) -> T | None:
        """Return `use(reader)` for the text file of *stream*, at once.

        The file may lack the last commits if *known* has the numbers of all of them; else it is brought up to date.
        Returns None if there is no file, if it must be built again, or if more than *most* commits must be added.
        """
        name = name_of(stream)
        if self._is_being_built(name):
            return None

        def use_present(file: SearchIndexReader) -> tuple[bool, T | None]:
            with file.reading():
                mark, present = file.mark, self._index.mark(stream.graph)
                lacking = range(mark.commits + 1 if mark else 1, present.commits + 1)
                if mark is None or not file.metadata("is_whole") or file.filled or len(lacking) > most:
                    return False, None
                if mark.cleared != present.cleared or not self._journal.holds(stream, mark.version):
                    return False, None
                if any(number not in known for number in lacking):
                    return True, None
                return True, use(file)

        with self.files.lock(name):
            if not self.exists(stream):
                return None
            can_use, result = self.files.use(name, use_present)
            if result is not None or not can_use:
                return result
            with suppress(_BuildNeeded):
                return self.read(stream, use, waits=False)
            return None

    def exists(self, stream: Stream) -> bool:
        """Return whether a text file exists, on disk or in memory, sound or not."""
        name = name_of(stream)
        return self.files.is_open(name) or self.files.path(name).exists()

    def status(self, stream: Stream) -> dict[str, Any] | None:
        """Return the status of a text file, None if there is none: memories, bytes, version, reason of the last build.

        `amiss` says why the file must be built again, or that it is being built; None if neither.
        """
        name = name_of(stream)
        if not self.files.path(name).exists():
            return None
        status: dict[str, Any] = {"memories": 0, "version": None, "made_because": None, "amiss": None}
        with suppress(OSError):
            status["bytes"] = self.files.size(name)
        if not self.files.lock(name).acquire(blocking=not self._is_being_built(name)):
            return status | {"memories": self._build_progress.get(name, (0, 0))[0], "amiss": "it is being built"}
        try:
            file = self.files.open_file(name)
            mark = file.mark
            status |= {"memories": file.metadata("memories") or 0, "made_because": file.metadata("because")}
            status["version"] = str(mark.version) if mark else None
        except (CacheInvalid, sqlite3.Error, UnicodeDecodeError) as error:
            status["amiss"] = str(error)
            self.files.close_file(name)
        except OSError:
            pass
        finally:
            self.files.lock(name).release()
        return status

    def close(self) -> None:
        """Close all files; a background build stops, at most CLOSE_TIMEOUT seconds later, and can be continued."""
        with self._starting:
            self._closed, builders = True, [*self._builders.values()]
        end = monotonic_time() + CLOSE_TIMEOUT
        for builder in builders:
            builder.join(max(0.0, end - monotonic_time()))
        self.files.close()
        self._parts.close()

    def _open_reader(self, path: str, wait: float, marker: int) -> SearchIndexReader:
        return SearchIndexReader(path, self._stemmer, wait, marker)

    def _start_build(self, stream: Stream) -> None:
        """Start a thread that builds the file of *stream*, unless one is running."""
        name = name_of(stream)
        with self._starting:
            if name not in self._builders or not self._builders[name].is_alive():
                builder = Thread(
                    target=self._build_in_background, args=(stream,), name=f"jidomem-texts-{name}", daemon=True
                )
                self._builders[name] = builder
                builder.start()

    def _is_being_built(self, name: str) -> bool:
        builder = self._builders.get(name)
        return (builder is not None and builder.is_alive()) or self._build_progress.get(name, (0, 0))[1] > MAX_AWAITED

    def _build_in_background(self, stream: Stream) -> None:
        with suppress(JidomemError, OSError, RuntimeError, sqlite3.Error):  # the next read starts a build again
            self.read(stream, lambda file: None)

    def _bring_up_to_date(self, file: SearchIndexReader, stream: Stream, *, waits: bool) -> None:
        """Bring the file up to date with the index.

        Raises CacheInvalid if it must be built again, and _BuildNeeded if that takes long and the caller does not wait.
        """
        target = self._index.mark(stream.graph)
        if not waits and not file.metadata("is_whole"):
            most = (file.metadata("memories") or 0) + MAX_AWAITED
            if sum(1 for _ in self._index.triples(stream.graph, None, _SUMMARY, most=most + 1)) > most:
                raise _BuildNeeded
        if file.mark is None:
            with file.writing():
                if file.mark is None:
                    file.set_metadata(mark=Watermark(cleared=target.cleared).term, began=target.term)
        if stream.name == "memory":
            self._fill_lists(file, stream, waits=waits)
        while not file.metadata("is_whole"):
            self._fill(file, stream)
        while file.mark != target and not self._apply(file, stream, target):
            pass
        if stream.name == "memory" and (marks := self._marks(stream)) != file.commits.marks:
            lacking = file.commits.lacking(marks)
            if not waits and lacking > MAX_AWAITED:
                raise _BuildNeeded
            if lacking:
                with file.writing():
                    file.commits.update(self._index, marks)
            file.commits.marks = marks

    def _marks(self, stream: Stream) -> dict[str, Watermark]:
        return {graph: self._index.mark(graph) for graph in graphs_of(stream.project)}

    def _fill_lists(self, file: SearchIndexReader, stream: Stream, *, waits: bool) -> None:
        """Fill the lists, for the classes of the present ontology, and the tallies."""
        source = self._project(stream)
        ontology = source.refresh()
        digest = self._lists.orders_digest()
        if not file.has_lists(ontology, digest):
            with file.writing():
                file.include(self._lists.orders(), ontology, digest)
        try:
            while filled := file.filled:
                if not waits and filled[1] - filled[0] > MAX_AWAITED:
                    raise _BuildNeeded
                commits = self._index.mark(stream.graph).commits
                self._build_progress[name_of(stream)] = commits * filled[0] // max(filled[1], 1), commits
                self._stop_if_closed(stream)
                source.refresh()
                with file.writing():
                    file.fill(source)
        finally:
            self._build_progress.pop(name_of(stream), None)

    def _stop_if_closed(self, stream: Stream) -> None:
        """Raise Failed in the thread that builds the file of *stream* after `close`."""
        if self._closed and current_thread() is self._builders.get(name_of(stream)):
            raise Failed("the memory was closed", hint="open it again")

    def _fill(self, file: SearchIndexReader, stream: Stream) -> None:
        """Add the memories as of the watermark at which the file was begun; continues the work of a killed process."""
        mark, target = file.mark or Watermark(), Watermark.of(file.metadata("began"))
        if not all(self._journal.holds(stream, version) for version in (mark.version, target.version)):
            raise CacheInvalid(_UNKNOWN_HEADS)
        self._build_progress[name_of(stream)] = mark.commits, target.commits
        try:
            for step in steps(self._journal.read(stream, after=mark.version)):
                later = self._ids_after(stream, target)
                self._build_progress[name_of(stream)] = mark.commits, target.commits
                self._stop_if_closed(stream)
                with file.writing():
                    if file.mark != mark:  # another process has continued
                        return
                    fresh = [commit for commit in step if commit.id not in later]
                    self._write_documents(file, stream, fresh, fills=True)
                    mark = mark.after(fresh)
                    file.set_metadata(mark=mark.term)
            with file.writing():
                if file.mark == mark:
                    file.optimize()
                    file.set_metadata(mark=target.term, is_whole=True)
        finally:
            self._build_progress.pop(name_of(stream), None)

    def _apply(self, file: SearchIndexReader, stream: Stream, target: Watermark) -> bool:
        """Add the commits up to *target*; False if another process added some. Raises CacheInvalid if none follow."""
        start = file.mark or Watermark()
        if not self._journal.holds(stream, start.version):
            raise CacheInvalid(_UNKNOWN_HEADS)
        if start.cleared != target.cleared:
            raise CacheInvalid("the graph was cleared")
        mark, count, later = start, 0, self._ids_after(stream, target)
        for step in steps(self._journal.read(stream, after=start.version)):
            later = self._ids_after(stream, target)  # again for each step: other processes keep writing
            fresh = [commit for commit in step if commit.id not in later]
            if records := [commit for commit in fresh if is_redaction_record(commit.data)]:
                if all(name != _REDACTS for commit in records for _, name, _ in commit.triples):
                    raise CacheInvalid("damage of the journal was quarantined")
                delete_vectors(self._root, stream.project)
                raise CacheInvalid("a text was redacted in the journal")
            with file.writing():
                if file.mark != mark:
                    return False
                self._write_documents(file, stream, fresh)
                if stream.name == "memory":
                    file.commits.update(self._index, self._marks(stream))
                mark, count = mark.after(fresh), count + len(fresh)
                file.set_metadata(mark=mark.term)
        if count != target.commits - start.commits:
            ahead = later - self._ids_after(stream, start)  # the file has them from a process whose index is ahead
            if count - len(ahead) != target.commits - start.commits:
                raise CacheInvalid("commit files were restored or removed")
        return True

    def _ids_after(self, stream: Stream, mark: Watermark) -> set[str]:
        return {commit.id for commit in self._journal.read(stream, after=mark.version)}

    def _write_documents(
        self, file: SearchIndexReader, stream: Stream, commits: Sequence[Commit], *, fills: bool = False
    ) -> None:
        """Write again every document that *commits* describe or change.

        While the file *fills*, a new memory is read from the commits alone: the index may have statements about it from
        later commits, which are still to come.
        """
        changes: dict[Term, set[Term]] = {}
        for commit in commits:
            for subject, name, _ in commit.triples:
                changes.setdefault(subject, set()).add(name)
            changes.pop(iri(commit.iri), None)
        source, reader = self._project(stream), READERS[stream.name]
        source.refresh()
        described = [node for node, names in changes.items() if _SUMMARY in names] if stream.name == "memory" else []
        records = other_records(source, stream.graph, described)
        changes.update((record, {*BEGINS}) for record in records)
        new = file.projection.missing(sorted(changes)) if fills and stream.name == "memory" else []
        new = [name for name in new if not records or name not in {*records, *records.values()}]
        if new:
            source.describe(new, commits)
        others = {node: changes[node] for node in changes.keys() - {*new}}
        for node in file.projection.labelled([node for node, names in others.items() if LABEL in names]):
            if len([*source.triples(stream.graph, node, LABEL)]) == 1:  # only repeated, as of a common source
                others[node].discard(LABEL)
        nodes = sorted({*new, *reader.touched(source, stream.graph, others)})
        documents = [
            document for node in nodes if (document := reader.document(source, stream.graph, node)) is not None
        ]
        file.remove({plain_value(node) for node in nodes} - {document.item for document in documents})
        file.put(documents)
        if stream.name == "memory":
            file.update_nodes(changes, source, ending=[node for node, names in others.items() if names & BEGINS])

    def _project(self, stream: Stream) -> IndexedProject:
        return self._projects.setdefault(stream.project, IndexedProject(self._index, stream.project))


def name_of(stream: Stream) -> str:
    """Return the name of the files of *stream*, without ending."""
    return stream.project + ("" if stream.name == "memory" else f".{stream.name}")
