"""The follower keeps an index up to date with the journal.

It applies the commits that the index lacks, and builds the index again where history was removed. An index of a past
moment is made by the same steps and stops there. Large loads run in the background and without garbage collection.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain
from math import inf
from threading import Lock, RLock
from typing import Any

from jidomem.base.background import BackgroundTask
from jidomem.base.containers import reachable
from jidomem.errors import NotFound, TooLarge
from jidomem.index.results import Solutions
from jidomem.index.snapshots import STORE_ERRORS, Clones, PrivateClone, Snapshot
from jidomem.index.store import BULK_LOAD_BYTES, OxigraphIndex, Watermark, in_batches
from jidomem.journal.commit import COMMIT, Commit, identity_in, is_redaction_record
from jidomem.journal.journal import NAMES, FileJournal, Stream
from jidomem.rdf.terms import Term, Triple, iri, plain_value
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, TYPE, jido
from jidomem.records.active import is_record_of, separate_records
from jidomem.records.intent import Version

#: Bytes of commits applied in one step.
STEP = 500_000
_CLEARS, _CLEARS_ROW = jido("clears"), b"\n    jido:clears <"


def clears(stream: Stream, commit: Commit) -> bool:
    """Return whether *commit* clears *stream*; the memory stream is never cleared, even by such a triple."""
    if stream.name == "memory" or _CLEARS_ROW not in commit.data:
        return False
    return (iri(commit.iri), _CLEARS, iri(stream.graph)) in commit.triples


def after_clearing(stream: Stream, commits: Sequence[Commit]) -> list[Commit]:
    """Return *commits* without the commits that clear the stream, and without the ancestors of these."""
    by_id = {commit.id: commit for commit in commits}
    clearing = [commit.id for commit in commits if clears(stream, commit)]
    cleared = reachable(clearing, lambda identity: by_id[identity].parents if identity in by_id else ())
    return [commit for commit in commits if commit.id not in cleared]


def cleared_by(journal: FileJournal, stream: Stream, clearing: Commit, before: Version) -> Version:
    """Return the clearing commits of a stream: *clearing*, and those heads of *before* that are not its ancestors."""
    concurrent = set()
    for commit in journal.read(stream, after=Version.of([clearing.head])):
        if commit.recorded_at > before.recorded_at:
            break
        concurrent.add(commit.id)
    return Version.of([clearing.head, *(head for head in before.heads if head.id in concurrent)])


def batches_until_clear(stream: Stream, commits: Iterable[Commit], clearing: list[Commit]) -> Iterator[list[Commit]]:
    """Yield batches of STEP bytes up to the first commit that clears the stream, which is appended to *clearing*."""

    def until_clear() -> Iterator[Commit]:
        for commit in commits:
            if clears(stream, commit):
                clearing.append(commit)
                return
            yield commit

    return steps(until_clear())


#: The memories that several commits describe, with the commits of each and of the records separated from it.
SEVERAL = f"""SELECT ?item ?commit ?record {{
  {{ SELECT DISTINCT ?item {{
    ?item {jido("recordedIn")} ?one , ?other ; {jido("hasAssertionStatus")} ?status FILTER(?one != ?other)
  }} }}
  {{ ?item {jido("recordedIn")} ?commit }}
  UNION {{ ?record {jido("conflictsWith")} ?item ; {jido("recordedIn")} ?commit }}
}}"""
_FUNCTIONAL = iri("http://www.w3.org/2002/07/owl#FunctionalProperty")


def single_properties(ontology: Iterable[Triple]) -> set[Term]:
    """Return the properties of *ontology* with one value."""
    return {name for name, predicate, kind in ontology if (predicate, kind) == (TYPE, _FUNCTIONAL)}


def _single(index: OxigraphIndex) -> set[Term]:
    return single_properties(index.triples(ONTOLOGY_GRAPH, None, TYPE, _FUNCTIONAL))


def separate_memories(index: OxigraphIndex, journal: FileJournal, stream: Stream) -> None:
    """Separate the records of each memory of *stream* that branches wrote differently (`separate_records`)."""
    if stream.name != "memory":
        return
    answer = index.query(SEVERAL, graphs=[stream.graph])
    assert isinstance(answer, Solutions)
    removed, added = separated(answer.rows, journal, stream, _single(index))
    removed = [row for row in removed if any(index.triples(stream.graph, *row))]
    added = [row for row in added if not any(index.triples(stream.graph, *row))]
    if removed or added:
        index.change(stream.graph, removed, added)


def merged_records(
    index: OxigraphIndex, journal: FileJournal, stream: Stream, moment: str | None = None
) -> tuple[list[Triple], list[Triple]]:
    """Return the statements of commits that *index* replaced to separate records, and their replacements.

    They are those about the memories of *stream* that branches wrote differently, recorded by *moment* (default: now).
    """
    rows = [
        (item, commit, record)
        for record, _, item in index.triples(stream.graph, None, jido("conflictsWith"))
        if is_record_of(record, item)
        for node in (item, record)
        for _, _, commit in index.triples(stream.graph, node, jido("recordedIn"))
    ]
    return separated(rows, journal, stream, _single(index), moment)


def separated(
    rows: Iterable[Sequence[Term | None]],
    journal: FileJournal,
    stream: Stream,
    single: Collection[Term],
    moment: str | None = None,
) -> tuple[list[Triple], list[Triple]]:
    """Return the statements to remove and to add for the *rows* of SEVERAL, of commits by *moment* if given.

    Statements that a memory lost to a record, and keeps now that an earlier record counts, are added again.
    """
    known = [(item or "", commit or "", record) for item, commit, record in rows]
    known = [row for row in known if row[2] is None or is_record_of(row[2], row[0])]
    wanted, items = {plain_value(commit).removeprefix(COMMIT) for _, commit, _ in known}, {row[0] for row in known}
    if not wanted:
        return [], []
    commits = journal.matching(stream, lambda document: identity_in(document) in wanted)
    by_then = [
        (commit.id, [row for row in commit.triples if row[0] in items])
        for commit in commits
        if moment is None or commit.recorded_at <= moment
    ]
    removed, added = separate_records(by_then, items, single)
    had_records, gone = {item for item, _, record in known if record is not None}, frozenset(removed)
    kept = (row for _, triples in by_then for row in triples if row[0] in had_records and row not in gone)
    return removed, [*added, *kept]


def steps(commits: Iterable[Commit]) -> Iterator[list[Commit]]:
    """Yield *commits* in their order, in batches of STEP bytes: each is applied in one step."""
    return in_batches(commits, STEP)


def redacted_since(journal: FileJournal, stream: Stream, version: Version) -> bool:
    """Return whether a redaction record follows *version*; also True if *version* is no longer in the journal."""
    with suppress(NotFound):
        return any(is_redaction_record(commit.data) for commit in journal.read(stream, after=version))
    return True


class BulkLoader:
    """Loads the commits that an index lacks, and counts them.

    `commits` and `bytes` count what was loaded. `damaged` has, by stream, the paths of the damaged files left out.
    """

    def __init__(self, journal: FileJournal) -> None:
        """Load from *journal*."""
        self._journal = journal
        self.commits = self.bytes = 0
        self.damaged: dict[Stream, frozenset[str]] = {}
        self._was_merged = False  # whether a commit with several parents was counted since `separate_memories`
        self._was_redacted = False  # whether a redaction record was among the commits loaded from the present stream

    def fits(self, index: OxigraphIndex, streams: Mapping[str, Stream]) -> bool:
        """Return whether the journal has every commit that *index* has applied."""
        marks = index.marks.items()
        return all(graph in streams and self._journal.holds(streams[graph], mark.version) for graph, mark in marks)

    def is_before_redaction(self, index: OxigraphIndex, streams: Mapping[str, Stream]) -> bool:
        """Return whether a redaction record follows what *index*, which fits the journal, has applied."""
        marks = index.marks.items()
        return any(self._journal.is_redacted_since(streams[graph], mark.version) for graph, mark in marks)

    def fill(
        self,
        index: OxigraphIndex,
        ontology: Iterable[Triple],
        streams: Iterable[Stream],
        progress: Callable[[int], None] | None = None,
    ) -> bool:
        """Bring *index* up to date with *ontology* and *streams*; the counts restart at 0.

        Returns False if the index may contain a redacted text and must not be used: a redaction record was loaded into
        an index that was not empty, or was appended while the journal was read. *progress* is called with the bytes of
        each commit.
        """
        self.commits, self.bytes, self.damaged = 0, 0, {}
        index.put_ontology(ontology)
        for stream in streams:
            missed, start = set[str](), index.mark(stream.graph).version
            head, self._was_redacted = self._journal.head(stream), False
            while (clearing := self._load_missing(index, stream, missed, progress)) is not None:
                before = index.mark(stream.graph).cleared
                index.empty(stream.graph, cleared_by(self._journal, stream, clearing, before))
            self.separate_memories(index, stream, start)
            self.record_damage(stream, missed)
            if self._was_redacted and (start.heads or redacted_since(self._journal, stream, head)):
                return False
        return True

    def count(self, commits: Iterable[Commit], progress: Callable[[int], None] | None = None) -> list[Commit]:
        """Count *commits*, which are about to be loaded, and return them as a list."""
        batch = list(commits)
        for commit in batch:
            self.commits += 1
            self.bytes += len(commit.data)
            self._was_merged |= len(commit.parents) > 1
            self._was_redacted |= is_redaction_record(commit.data)
            if progress is not None:
                progress(len(commit.data))
        return batch

    def separate_memories(self, index: OxigraphIndex, stream: Stream, start: Version) -> None:
        """Separate the memories of *stream* that branches wrote differently, if any were merged after *start*."""
        if self._was_merged or len(start.heads) > 1 or len(index.mark(stream.graph).version.heads) > 1:
            separate_memories(index, self._journal, stream)
        self._was_merged = False

    def record_damage(self, stream: Stream, missed: Collection[str]) -> bool:
        """Record the damaged files of *stream*, including *missed*: once restored, they lie before the watermark.

        Returns whether some of them are restored already.
        """
        damage = self._damage(stream)
        left_out = self.damaged.get(stream, frozenset()).union(damage, missed)
        if left_out:
            self.damaged[stream] = left_out
        return bool(left_out - damage)

    def is_restored(self, stream: Stream) -> bool:
        """Return whether a file of *stream* that was left out as damaged has been restored."""
        return stream in self.damaged and bool(self.damaged[stream] - self._damage(stream))

    def _load_missing(
        self, index: OxigraphIndex, stream: Stream, missed: set[str], progress: Callable[[int], None] | None
    ) -> Commit | None:
        """Load the commits of *stream* that *index* lacks, up to one that clears the stream; return that commit."""
        clearing, after = list[Commit](), index.mark(stream.graph).version
        steps = batches_until_clear(stream, self._journal.read(stream, after=after, missed=missed), clearing)
        first, second = next(steps, []), next(steps, [])
        if second:
            all_steps = chain([first, second], steps)
            index.bulk_load(stream.graph, (commit for step in all_steps for commit in self.count(step, progress)))
        else:
            index.load(stream.graph, self.count(first, progress))
        return clearing[0] if clearing else None

    def _damage(self, stream: Stream) -> frozenset[str]:
        return frozenset(damage.path for damage in self._journal.damage(stream))


#: The most bytes of journal that are replayed for one query.
MAX_REPLAYED_BYTES = 32_000_000


def past(journal: FileJournal, ontology: Iterable[Triple], project: str, moment: str) -> OxigraphIndex:
    """Return an index of the commits of *project* recorded by *moment*, and the present *ontology*.

    Raises TooLarge `result_too_large` when these commits have more than MAX_REPLAYED_BYTES.
    """
    index, left = OxigraphIndex(), MAX_REPLAYED_BYTES
    index.put_ontology(ontology)
    for stream in (Stream(project, name) for name in NAMES):
        recorded = (commit for commit in journal.read(stream) if commit.recorded_at <= moment)
        commits = list(_limited(left, recorded))
        left -= sum(len(commit.data) for commit in commits)
        index.bulk_load(stream.graph, after_clearing(stream, commits))
        if len(index.mark(stream.graph).version.heads) > 1 or any(len(commit.parents) > 1 for commit in commits):
            separate_memories(index, journal, stream)
    return index


def _limited(limit: int, commits: Iterable[Commit]) -> Iterator[Commit]:
    for commit in commits:
        limit -= len(commit.data)
        if limit < 0:
            raise TooLarge(
                f"by then the journal had more than {MAX_REPLAYED_BYTES:,} bytes,"
                " and no more is replayed for raw SPARQL",
                hint="ask a named question with as_of, of any size: jidomem ask",
                code="result_too_large",
            )
        yield commit


#: A writer waits while more than this many times PENDING_BYTES are pending.
BLOCKING_FACTOR = 4


class ApplyThread:
    """A background thread that applies the pending commits of *index*; a writer need not wait for it."""

    def __init__(self, index: OxigraphIndex) -> None:
        self._index = index
        self._task = BackgroundTask("jidomem index")

    def apply_pending(self, waits: bool) -> None:
        """Apply pending commits: before this returns if it *waits*, else in the thread, started if idle."""
        if waits:
            self._index.apply_pending()
        else:
            self._task.start(self._load_queued)

    def wait(self) -> None:
        """Wait until the thread is idle."""
        self._task.wait()

    def _load_queued(self) -> None:
        with suppress(OSError, RuntimeError, ValueError):  # the next `catch_up` finds and applies what is missing
            self._index.load_queued()


#: Bytes of journal from which on the index is on disk; a process reads a smaller journal each time it starts.
ON_DISK_BYTES = 2_000_000
#: Commits that a process reads beyond its snapshot before it publishes another (in bytes of journal: ON_DISK_BYTES).
SNAPSHOT_COMMITS = 2_000
#: Bytes that a process writes itself before it publishes a snapshot: a busy writer must not be slowed by snapshots.
WRITER_SNAPSHOT_BYTES = 2 * ON_DISK_BYTES
#: Triples after which an index in memory moves to disk: some 50 MB.
MAX_TRIPLES_IN_MEMORY = 100_000
#: Bytes of commits that may be pending until the next read; beyond that the apply thread loads them.
PENDING_BYTES = 1_000_000


class IndexFollower:
    """Keeps the index of one journal up to date; the index is opened on first use."""

    def __init__(
        self, journal: FileJournal, index: OxigraphIndex, clones: Clones | None = None, ontology: Iterable[Triple] = ()
    ) -> None:
        """Feed *index* from *ontology* and *journal*; with *clones* it may be on disk."""
        self.journal = journal
        self.index = index
        self.index.rebuild_damaged = self._rebuild_damaged
        self._clones = clones
        self._ontology = tuple(ontology)
        self._live: PrivateClone | None = None
        self._is_open = False
        self._loader = BulkLoader(journal)  # counts what was loaded since the last snapshot was opened or published
        self._publisher = BackgroundTask("jidomem snapshot")
        self._apply_thread = ApplyThread(index)
        #: Called with the stream of every durable commit of this process.
        self.on_commit: Callable[[Stream], None] | None = None
        #: Called when the journal was rewritten: processes that this one has may have the former texts in an index.
        self.on_rewritten: Callable[[], None] | None = None
        #: Waits for the turn of a commit among the queries of a server.
        self.turn: Callable[[], AbstractContextManager[None]] = nullcontext
        self._orphans: dict[Stream, frozenset[str]] = {}  # the commits without parents that the index was loaded with
        self._lock = RLock()

    @property
    def on_disk(self) -> bool:
        """Return whether the index works on disk; False before it is opened."""
        return self._live is not None

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first, once a running publication has ended."""
        self._wait_for_threads()
        return [] if self._clones is None else self._clones.snapshots()

    @property
    def other_processes(self) -> int:
        """Return the number of other processes that use an on-disk index of this root."""
        return 0 if self._clones is None else self._clones.in_use() - self.on_disk

    def size(self, limit: float = inf, streams: Iterable[Stream] | None = None) -> int:
        """Return the bytes of the files of commits of *streams* (default: all), or until these exceed *limit*."""
        size = 0
        for stream in self.journal.streams() if streams is None else streams:
            with suppress(OSError), os.scandir(self.journal.path(stream)) as entries:
                for entry in entries:
                    size += entry.stat().st_size if entry.name.endswith(".ttl") else 0
                    if size > limit:
                        return size
        return size

    def catch_up(self, stream: Stream) -> Version:
        """Bring the index up to date with *stream* and return its version: the journal head or later."""
        with self._lock:
            if not self._is_open:
                self._reopen([stream])
                self._discard_others()  # they may be older than a redaction that this index was made after
            self.index.apply_pending()
            while self._load_new_commits(stream):
                pass
            self._move_to_disk_if_large()
            self._publish_if_due(SNAPSHOT_COMMITS, ON_DISK_BYTES)
            return self.index.mark(stream.graph).version

    def apply(self, stream: Stream, commit: Commit) -> None:
        """Queue a commit that was just appended; one that does not follow the index's version: `catch_up` loads it."""
        if self.on_commit is not None:
            self.on_commit(stream)
        with self._lock:
            version = self.index.mark(stream.graph).version
            if self._is_open and commit.parents == tuple(sorted(version.ids)) and not is_redaction_record(commit.data):
                if clears(stream, commit):
                    self._clear(stream, commit)
                    return
                self._loader.count([commit])
                if (size := self.index.queue(stream.graph, commit)) > PENDING_BYTES:
                    self._apply_thread.apply_pending(size > BLOCKING_FACTOR * PENDING_BYTES)
                self._move_to_disk_if_large()
                self._publish_if_due(8 * SNAPSHOT_COMMITS, WRITER_SNAPSHOT_BYTES)

    def is_nearly_applied(self) -> bool:
        """Return whether few commits are pending, so that a read is short."""
        return self.index.pending_bytes < BULK_LOAD_BYTES

    def rebuild(self, progress: Callable[[int], None] | None = None) -> Mapping[Stream, Watermark]:
        """Discard index and snapshots, build the index again from the journal and return the watermark of each stream.

        *progress* is called with the bytes of each commit. A snapshot is published if the journal is large. Raises
        Failed, once the index is built, if a snapshot cannot be deleted.
        """
        with self._lock:
            undeleted = self._clones.discard_snapshots() if self._clones is not None else None
            streams = self.journal.streams()
            self._reopen(streams, rebuilds=True, progress=progress)
            self._move_to_disk_if_large()
            self._publish_if_due(0, 0)
            self._wait_for_threads()
            self._discard_others()
            if undeleted is not None:
                raise undeleted
            return {stream: self.index.mark(stream.graph) for stream in streams}

    def put_ontology(self, ontology: Iterable[Triple]) -> None:
        """Replace the ontology graph, in this index and in those built later."""
        with self._lock:
            self._ontology = tuple(ontology)
            if self._is_open:
                self.index.put_ontology(self._ontology)

    def close(self) -> None:
        """Close the index; a later read opens it again."""
        with self._lock:
            self._wait_for_threads()
            self._swap(OxigraphIndex(), None)
            self._is_open = False

    def _load_new_commits(self, stream: Stream) -> bool:
        """Bring the index up to date with one stream; return True if more may have to be loaded."""
        head, version = self.journal.head(stream), self.index.mark(stream.graph).version
        if self.journal.orphans(stream) != self._orphans.get(stream, frozenset()):
            self._reopen([stream], rebuilds=True)  # commits before a head came or went, as git checked out a branch
        elif self._loader.is_restored(stream):
            self._reopen([stream])  # the restored commits precede commits that are applied already
        elif head != version and not self.journal.holds(stream, version):
            self._reopen([stream])  # another branch was checked out
        elif head != version:
            clearing, missed = list[Commit](), set[str]()
            try:
                for step in batches_until_clear(
                    stream, self.journal.read(stream, after=version, missed=missed), clearing
                ):
                    if any(is_redaction_record(commit.data) for commit in step):
                        self._reopen([stream])  # the index may contain the redacted text
                        self._discard_others()
                        return True
                    self.index.load(stream.graph, self._loader.count(step))
                self._loader.separate_memories(self.index, stream, version)
                cleared = any(self._clear(stream, commit) for commit in clearing)
            except NotFound:  # another branch was checked out since the test above
                self._reopen([stream])
                return True
            except STORE_ERRORS:
                if self._live is None:
                    raise
                self._rebuild_damaged(self._live.store, [stream])
                return False
            return self._loader.record_damage(stream, missed) or cleared
        return False

    def _discard_others(self) -> None:
        """End the processes of this one whose index may contain a redacted text, and delete the index of ended ones."""
        if self.on_rewritten is not None:
            self.on_rewritten()
        if self._clones is not None:
            self._clones.discard_ended()

    def _clear(self, stream: Stream, clearing: Commit) -> bool:
        """Apply *clearing*, which clears *stream*; return False if the whole stream had to be loaded again.

        That is so if the index has commits that are not ancestors of *clearing*: these are not cleared.
        """
        knew_all = clearing.parents == tuple(sorted(self.index.mark(stream.graph).version.ids))
        if knew_all:
            self.index.empty(stream.graph, Version.of([clearing.head]))
        else:
            self._reopen([stream])
        return knew_all

    def _reopen(
        self, streams: Iterable[Stream], *, rebuilds: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        """Open the index again: from the newest snapshot that the journal contains, or from nothing if it *rebuilds*.

        Readers use the former index until the new one is up to date with *streams* and all streams that it had.
        """
        self._wait_for_threads()
        present = [stream for stream in self.journal.streams() if self.index.mark(stream.graph).commits]
        wanted = sorted({*streams, *present})
        for stream in wanted:
            self.journal.head(stream)  # of a shared root this fetches the local copy, whose size is measured next
        self._orphans = {stream: self.journal.orphans(stream) for stream in wanted}
        rebuilds |= any(self._orphans.values())  # a snapshot may have commits before them that are gone
        if self._clones is not None and self.size(ON_DISK_BYTES) > ON_DISK_BYTES:
            with suppress(*STORE_ERRORS):
                live, index = self._clone(self._clones, rebuilds)
                while live is not None:
                    is_new = not index.marks
                    if self._loader.fill(index, self._ontology, wanted, progress):
                        if is_new:
                            index.compact()
                        self._swap(index, live)
                        return
                    live.close()
                    self._clones.discard_snapshots()
                    live, index = self._clone(self._clones, True)
        index = OxigraphIndex()
        while not self._loader.fill(index, self._ontology, wanted, progress):
            index = OxigraphIndex()
        self._swap(index, None)

    def _clone(self, clones: Clones, rebuilds: bool) -> tuple[PrivateClone | None, OxigraphIndex]:
        """Return a clone of the newest snapshot whose commits the journal all has, else a new empty one."""
        streams = {stream.graph: stream for stream in self.journal.streams()}
        for live in () if rebuilds else clones.clone_snapshots():
            index = OxigraphIndex(live.store)
            if not self._loader.fits(index, streams):
                live.close()
            elif not self._loader.is_before_redaction(index, streams):
                return live, index
            else:
                live.close()
                clones.discard_snapshots()
                break
        new = clones.new_empty()
        return new, OxigraphIndex(new.store if new else None)

    def _swap(self, index: OxigraphIndex, live: PrivateClone | None) -> None:
        """Make readers use *index*, whose store is that of *live*."""
        self.index.replace_by(index)
        old, self._live = self._live, live
        self._is_open = True
        if old is not None:
            old.store = None
            old.close()

    def _rebuild_damaged(self, store: Any, streams: Iterable[Stream] = ()) -> None:
        """Rebuild the index if *store*, which turned out damaged, is still in use, up to date with *streams*."""
        with self._lock:
            if self._live is not None and self._live.store is store and self._clones is not None:
                self._clones.discard_snapshots()  # they share files with the damaged store
                self._reopen(streams, rebuilds=True)

    def _move_to_disk_if_large(self) -> None:
        if self._live is None and self._clones is not None and self.index.triples_loaded > MAX_TRIPLES_IN_MEMORY:
            clones, self._clones = self._clones, None  # if moving fails, the index stays in memory for good
            with suppress(*STORE_ERRORS):
                live = clones.new_empty()
                if live is not None:
                    self.index.move_to(live.store, str(live.path / "passage"))
                    self._live, self._clones = live, clones

    def _publish_if_due(self, commits: int, size: int) -> None:
        """Publish a snapshot if more *commits* or bytes (*size*) were loaded since the last and no file is damaged."""
        loader, clones, live = self._loader, self._clones, self._live
        is_due = loader.commits > commits or loader.bytes > size
        if clones and live and is_due and not loader.damaged and not self._publisher.is_running:
            loader.commits = loader.bytes = 0
            self._publisher.start(partial(self._publish, clones, live))

    def _publish(self, clones: Clones, live: PrivateClone) -> None:
        with suppress(*STORE_ERRORS):  # such as a full disk: the next publication tries again
            try:
                clones.publish(self.index, live)
                self._continue_on_snapshot(clones, live)
            finally:
                self.index.end_backup()
            for stream in self.journal.streams():
                self.journal.store_snapshot(stream)

    def _continue_on_snapshot(self, clones: Clones, old: PrivateClone) -> None:
        """Continue on a clone of the newest snapshot: until it is closed, a store caches all it has read.

        The lock is not needed, as others wait for this thread before they open the index again.
        """
        for live in clones.clone_snapshots():
            if self.index.continue_on(OxigraphIndex(live.store)):
                self._live = live
                old.retire()
            else:
                live.close()
            return

    def _wait_for_threads(self) -> None:
        self._apply_thread.wait()
        self._publisher.wait()


_GC_LOCK = Lock()


@contextmanager
def gc_paused(wanted: bool = True) -> Iterator[None]:
    """Pause the garbage collector, for all threads, if *wanted* and no other thread has paused it.

    A second thread does not prolong the pause, so each pause ends.
    """
    if not (wanted and gc.isenabled() and _GC_LOCK.acquire(blocking=False)):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _GC_LOCK.release()
