"""The follower keeps an index up to date with the journal.

It applies the commits that the index lacks, and builds the index again where history was removed. An index of a past
moment is made by the same steps and stops there. Large loads run in the background and without garbage collection.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from threading import Lock, RLock
from typing import Any

from jidomem.base.background import BackgroundTask
from jidomem.errors import NotFound, TooLarge
from jidomem.index.snapshots import STORE_ERRORS, Clones, PrivateClone, Snapshot
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.journal.commit import Commit, is_redaction_record
from jidomem.journal.journal import NAMES, FileJournal, Stream
from jidomem.rdf.terms import Triple, iri
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Version

#: Bytes of commits applied in one step.
STEP = 500_000
_CLEARS = jido("clears")


def clears(stream: Stream, commit: Commit) -> bool:
    """Return whether its stream is empty after *commit*; memories are never cleared, whatever a commit says."""
    return stream.name != "memory" and (iri(commit.iri), _CLEARS, iri(stream.graph)) in commit.triples


def after_clearing(stream: Stream, commits: Sequence[Commit]) -> list[Commit]:
    """Return *commits* without those that cleared the stream, and what these knew of."""
    by_id = {commit.id: commit for commit in commits}
    gone, further = set[str](), [commit.id for commit in commits if clears(stream, commit)]
    while further:
        name = further.pop()
        if name not in gone and name in by_id:
            gone.add(name)
            further += by_id[name].parents
    return [commit for commit in commits if commit.id not in gone]


def cleared_by(journal: FileJournal, stream: Stream, clearing: Commit, before: Version) -> Version:
    """Return the commits that cleared a stream: *clearing*, and those of *before* that it did not know of."""
    beside = set()
    for commit in journal.read(stream, after=Version.of([clearing.head])):
        if commit.recorded_at > before.recorded_at:
            break
        beside.add(commit.id)
    return Version.of([clearing.head, *(head for head in before.heads if head.id in beside)])


def batches_until_clear(stream: Stream, commits: Iterable[Commit], clearing: list[Commit]) -> Iterator[list[Commit]]:
    """Yield steps up to a commit that clears the stream, which is put into *clearing* instead."""

    def before() -> Iterator[Commit]:
        for commit in commits:
            if clears(stream, commit):
                clearing.append(commit)
                return
            yield commit

    return steps(before())


def steps(commits: Iterable[Commit]) -> Iterator[list[Commit]]:
    """Yield commits, in their order, as many at a time as are applied in one step."""
    step, size = list[Commit](), 0
    for commit in commits:
        step.append(commit)
        size += len(commit.data)
        if size >= STEP:
            yield step
            step, size = [], 0
    if step:
        yield step


class BulkLoader:
    """What an index took from a journal: `commits` and `bytes` of them, and by stream what is `damaged`, left out."""

    def __init__(self, journal: FileJournal) -> None:
        """Read from *journal*."""
        self._journal = journal
        self.commits = self.bytes = 0
        self.damaged: dict[Stream, frozenset[str]] = {}
        self._was_ordered = False  # whether a redaction was among what was taken in of a stream

    def fits(self, index: OxigraphIndex, streams: Mapping[str, Stream]) -> bool:
        """Return whether the journal has every commit that *index* holds."""
        marks = index.marks.items()
        return all(graph in streams and self._journal.holds(streams[graph], mark.version) for graph, mark in marks)

    def fill(
        self,
        index: OxigraphIndex,
        ontology: Iterable[Triple],
        streams: Iterable[Stream],
        progress: Callable[[int], None] | None = None,
    ) -> bool:
        """Bring *index* level with *ontology* and *streams*; the counts begin anew.

        Return whether it may be used: not where it may hold what was taken out of the journal, by a redaction that is
        later than what it began with, or than the beginning. *progress* is told how many bytes each commit has.
        """
        self.commits, self.bytes, self.damaged = 0, 0, {}
        index.put_ontology(ontology)
        for stream in streams:
            missed, began = set[str](), index.mark(stream.graph).version
            head, self._was_ordered = self._journal.head(stream), False
            while (clearing := self._take(index, stream, missed, progress)) is not None:
                before = index.mark(stream.graph).cleared
                index.empty(stream.graph, cleared_by(self._journal, stream, clearing, before))
            self.note(stream, missed)
            if self._was_ordered and (began.heads or self._orders_since(stream, head)):
                return False
        return True

    def counted(self, commits: Iterable[Commit], progress: Callable[[int], None] | None = None) -> list[Commit]:
        """Return *commits*, which are taken in now."""
        found = list(commits)
        for commit in found:
            self.commits += 1
            self.bytes += len(commit.data)
            self._was_ordered |= is_redaction_record(commit.data)
            if progress is not None:
                progress(len(commit.data))
        return found

    def note(self, stream: Stream, missed: Collection[str]) -> bool:
        """Remember what was left out because it is damaged: when it is restored, its place has been passed.

        Return whether some of it is restored already.
        """
        damage = self._damage(stream)
        left_out = self.damaged.get(stream, frozenset()).union(damage, missed)
        if left_out:
            self.damaged[stream] = left_out
        return bool(left_out - damage)

    def is_restored(self, stream: Stream) -> bool:
        """Return whether something that was left out of *stream* is sound by now."""
        return stream in self.damaged and bool(self.damaged[stream] - self._damage(stream))

    def _take(
        self, index: OxigraphIndex, stream: Stream, missed: set[str], progress: Callable[[int], None] | None
    ) -> Commit | None:
        """Let *index* take what it has not of *stream*, up to a commit that clears it, which is returned."""
        clearing, after = list[Commit](), index.mark(stream.graph).version
        steps = batches_until_clear(stream, self._journal.read(stream, after=after, missed=missed), clearing)
        index.load(stream.graph, self.counted(next(steps, []), progress))
        index.bulk_load(stream.graph, (commit for step in steps for commit in self.counted(step, progress)))
        return clearing[0] if clearing else None

    def _orders_since(self, stream: Stream, version: Version) -> bool:
        """Return whether something was redacted after *version*, as far as that can be told."""
        with suppress(NotFound):
            return any(is_redaction_record(commit.data) for commit in self._journal.read(stream, after=version))
        return True

    def _damage(self, stream: Stream) -> frozenset[str]:
        return frozenset(found.path for found in self._journal.damage(stream))


#: Bytes of journal that are replayed for one question.
MAX_REPLAYED_BYTES = 32_000_000


def past(journal: FileJournal, ontology: Iterable[Triple], project: str, moment: str) -> OxigraphIndex:
    """Return an index of what *project* had recorded by *moment*, as commits write it, beside the present *ontology*.

    Raises TooLarge `result_too_large` when that is more than MAX_REPLAYED_BYTES of journal.
    """
    index, left = OxigraphIndex(), MAX_REPLAYED_BYTES
    index.put_ontology(ontology)
    for stream in (Stream(project, name) for name in NAMES):
        by_then = (commit for commit in journal.read(stream) if commit.recorded_at <= moment)
        commits = list(_within(left, by_then))
        left -= sum(len(commit.data) for commit in commits)
        index.bulk_load(stream.graph, after_clearing(stream, commits))
    return index


def _within(limit: int, commits: Iterable[Commit]) -> Iterator[Commit]:
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
    """One thread at a time that takes in what waits for *index*; who writes goes on, and what it writes waits next."""

    def __init__(self, index: OxigraphIndex) -> None:
        self._index = index
        self._task = BackgroundTask("jidomem index")

    def go_on(self, at_once: bool) -> None:
        """Have what waits taken in: by a thread, unless one is at it, or before this returns where it is *at_once*."""
        if at_once:
            self._index.apply_pending()
        else:
            self._task.start(self._load_queued)

    def wait(self) -> None:
        """Return when nothing is being taken in."""
        self._task.wait()

    def _load_queued(self) -> None:
        with suppress(OSError, RuntimeError, ValueError):  # the next look at the journal finds that it is not in
            self._index.load_queued()


#: Bytes of journal that a process reads whenever it starts; of more, an index is kept on disk.
LARGE = 2_000_000
#: Commits, or bytes of journal, that a process read beyond the snapshot it began with, after which it keeps another.
MANY = 2_000
#: The same for what it wrote itself, in bytes: who writes without pause would else be busy with snapshots.
MUCH = 2 * LARGE
#: Triples taken in after which an index in memory moves to disk: some 50 MB.
OUTGROWN = 100_000
#: Bytes of commits that may be pending until the next read; a thread loads them when there are more.
PENDING_BYTES = 1_000_000


class IndexFollower:
    """One journal and the index fed from it; the index is opened when it is first needed."""

    def __init__(
        self,
        journal: FileJournal,
        index: OxigraphIndex,
        clones: Clones | None = None,
        ontology: Iterable[Triple] = (),
    ) -> None:
        """Feed *index* with *ontology* and *journal*; it may be kept on disk where there are *clones*."""
        self.journal = journal
        self.index = index
        self.index.mend = self._mend
        self._clones = clones
        self._ontology = tuple(ontology)
        self._live: PrivateClone | None = None
        self._is_open = False
        self._filling = BulkLoader(journal)  # its counts are of what was taken in since a snapshot was opened, or kept
        self._publisher = BackgroundTask("jidomem snapshot")
        self._apply_thread = ApplyThread(index)
        #: Called with the stream of every durable commit of this process.
        self.on_commit: Callable[[Stream], None] | None = None
        self._is_kept = False  # whether a snapshot was kept that this process does not work on yet
        self._lock = RLock()

    @property
    def on_disk(self) -> bool:
        """Return whether the index works on disk; False before it is opened."""
        return self._live is not None

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots there are, newest first, after that which is just being kept."""
        self._settle()
        return [] if self._clones is None else self._clones.snapshots()

    @property
    def others(self) -> int:
        """Return how many other processes work on an index on disk of this root now."""
        return 0 if self._clones is None else self._clones.in_use() - self.on_disk

    def size(self, limit: float = inf) -> int:
        """Return the bytes of the journal, which are not counted further once they are over *limit*."""
        size = 0
        for stream in self.journal.streams():
            with suppress(OSError), os.scandir(self.journal.path(stream)) as entries:
                for entry in entries:
                    size += entry.stat().st_size if entry.name.endswith(".ttl") else 0
                    if size > limit:
                        return size
        return size

    def catch_up(self, stream: Stream) -> Version:
        """Return the version the index has reached: the journal's head, or past it where commits keep coming."""
        with self._lock:
            if not self._is_open:
                self._start([stream])
            self.index.apply_pending()
            while self._level(stream):
                pass
            self._outgrow()
            self._keep(MANY, LARGE)
            return self.index.mark(stream.graph).version

    def apply(self, stream: Stream, commit: Commit) -> None:
        """Take in a commit just appended, soon; one that does not follow from what is held is left to `catch_up`."""
        if self.on_commit is not None:
            self.on_commit(stream)
        with self._lock:
            held = self.index.mark(stream.graph).version
            if self._is_open and commit.parents == tuple(sorted(held.ids)) and not is_redaction_record(commit.data):
                if clears(stream, commit):
                    self._clear(stream, commit)
                    return
                self._filling.counted([commit])
                if (size := self.index.queue(stream.graph, commit)) > PENDING_BYTES:
                    self._apply_thread.go_on(size > BLOCKING_FACTOR * PENDING_BYTES)
                self._outgrow()
                self._keep(8 * MANY, MUCH)

    def rebuild(self, progress: Callable[[int], None] | None = None) -> Mapping[Stream, Watermark]:
        """Return what each stream holds, after what was derived from the journal is thrown away and built anew.

        *progress* is told of every commit how many bytes it has. A snapshot is kept where the journal is large.
        """
        with self._lock:
            if self._clones is not None:
                self._clones.discard_snapshots()
            streams = self.journal.streams()
            self._start(streams, rebuilds=True, progress=progress)
            self._outgrow()
            self._keep(0, 0)
            self._settle()
            return {stream: self.index.mark(stream.graph) for stream in streams}

    def put_ontology(self, ontology: Iterable[Triple]) -> None:
        """Let the index, now and whenever it is built anew, hold *ontology*."""
        with self._lock:
            self._ontology = tuple(ontology)
            if self._is_open:
                self.index.put_ontology(self._ontology)

    def close(self) -> None:
        """Let go of the index; what is asked later opens it again."""
        with self._lock:
            self._settle()
            self._swap(OxigraphIndex(), None)
            self._is_open = False

    def _level(self, stream: Stream) -> bool:
        """Bring the index level with one stream; return True where there may be more to take in."""
        head, held = self.journal.head(stream), self.index.mark(stream.graph).version
        if self._filling.is_restored(stream):
            self._start([stream])  # what was left out is there again, before what was taken in
        elif head != held and not self.journal.holds(stream, held):
            self._start([stream])  # another branch was checked out
        elif head != held:
            clearing, missed = list[Commit](), set[str]()
            try:
                for step in batches_until_clear(stream, self.journal.read(stream, after=held, missed=missed), clearing):
                    if any(is_redaction_record(commit.data) for commit in step):
                        self._start([stream])  # what is held may hold what was taken out of the journal
                        return True
                    self.index.load(stream.graph, self._filling.counted(step))
                cleared = any(self._clear(stream, commit) for commit in clearing)
            except STORE_ERRORS:
                if self._live is None:
                    raise
                self._mend(self._live.store, [stream])
                return False
            return self._filling.note(stream, missed) or cleared
        return False

    def _clear(self, stream: Stream, clearing: Commit) -> bool:
        """Hold nothing of what came before *clearing*; return False where all that comes after it is held as well.

        What *clearing* did not know of is read from the journal again.
        """
        knew_all = clearing.parents == tuple(sorted(self.index.mark(stream.graph).version.ids))
        if knew_all:
            self.index.empty(stream.graph, Version.of([clearing.head]))
        else:
            self._start([stream])
        return knew_all

    def _start(
        self, streams: Iterable[Stream], *, rebuilds: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        """Open the index, or open it again: from the newest snapshot that fits the journal, unless it *rebuilds*.

        What was held is read until what is to be held is level, with *streams* and with all that was held.
        """
        self._settle()
        held = [stream for stream in self.journal.streams() if self.index.mark(stream.graph).commits]
        wanted = sorted({*streams, *held})
        for stream in wanted:
            self.journal.head(stream)  # of what is shared, the copy is fetched before it is asked how large it is
        if self._clones is not None and self.size(LARGE) > LARGE:
            with suppress(*STORE_ERRORS):
                live, index = self._clone(self._clones, rebuilds)
                while live is not None:
                    is_new = not index.marks
                    if self._filling.fill(index, self._ontology, wanted, progress):
                        if is_new:
                            index.compact()
                        self._swap(index, live)
                        return
                    live.close()
                    self._clones.discard_snapshots()
                    live, index = self._clone(self._clones, True)
        index = OxigraphIndex()
        while not self._filling.fill(index, self._ontology, wanted, progress):
            index = OxigraphIndex()
        self._swap(index, None)

    def _clone(self, clones: Clones, rebuilds: bool) -> tuple[PrivateClone | None, OxigraphIndex]:
        """Return a clone of the newest snapshot of which the journal has every commit, else an empty one."""
        streams = {stream.graph: stream for stream in self.journal.streams()}
        for live in () if rebuilds else clones.each():
            index = OxigraphIndex(live.store)
            if self._filling.fits(index, streams):
                return live, index
            live.close()
        new = clones.new()
        return new, OxigraphIndex(new.store if new else None)

    def _swap(self, index: OxigraphIndex, live: PrivateClone | None) -> None:
        """Let readers have *index*, which works on *live*."""
        self._is_kept = False
        self.index.become(index)
        old, self._live = self._live, live
        self._is_open = True
        if old is not None:
            old.store = None
            old.close()

    def _mend(self, store: Any, streams: Iterable[Stream] = ()) -> None:
        """Build the index anew where *store*, still in use, turned out to be damaged, and level with *streams*."""
        with self._lock:
            if self._live is not None and self._live.store is store and self._clones is not None:
                self._clones.discard_snapshots()  # they have files in common
                self._start(streams, rebuilds=True)

    def _outgrow(self) -> None:
        """Go on on disk when the index in memory has become large."""
        if self._live is None and self._clones is not None and self.index.triples_loaded > OUTGROWN:
            clones, self._clones = self._clones, None  # where it cannot go to disk it stays, and is not asked again
            with suppress(*STORE_ERRORS):
                live = clones.new()
                if live is not None:
                    self.index.move_to(live.store, str(live.path / "passage"))
                    self._live, self._clones = live, clones

    def _keep(self, commits: int, size: int) -> None:
        """Keep a snapshot when more than that was taken in since the last one, and nothing is missing."""
        self._renew()
        taken, clones, live = self._filling, self._clones, self._live
        is_due = taken.commits > commits or taken.bytes > size
        if clones and live and is_due and not taken.damaged and not self._publisher.is_running:
            taken.commits = taken.bytes = 0
            self._publisher.start(partial(self._publish, clones, live))

    def _renew(self) -> None:
        """Go on on a clone of the snapshot just kept: a store has in memory what it once read until it is closed."""
        if not self._is_kept or self._clones is None or self._filling.damaged:
            return
        self._is_kept = False
        self.index.apply_pending()
        streams = {stream.graph: stream for stream in self.journal.streams()}
        with suppress(*STORE_ERRORS):  # then it goes on as it is
            for live in self._clones.each():
                index = OxigraphIndex(live.store)
                if index.marks.keys() != self.index.marks.keys() or not self._filling.fits(index, streams):
                    live.close()
                    return
                if self._filling.fill(index, self._ontology, [streams[graph] for graph in index.marks]):
                    self._swap(index, live)
                else:
                    live.close()
                return

    def _publish(self, clones: Clones, live: PrivateClone) -> None:
        with suppress(*STORE_ERRORS):  # a disk that is full: the next one tries again, and until then reads more
            clones.publish(self.index, live)
            self._is_kept = True
            for stream in self.journal.streams():
                self.journal.share(stream)

    def _settle(self) -> None:
        """Wait for the snapshot that is being kept, and for what is being taken in."""
        self._apply_thread.wait()
        self._publisher.wait()


_GC_LOCK = Lock()


@contextmanager
def gc_paused(wanted: bool = True) -> Iterator[None]:
    """Look for no garbage meanwhile, in any thread, where that is *wanted* and nobody holds it off already.

    Whoever comes while another holds it off goes on as it is: so there is always an end, after which it is made up for.
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
