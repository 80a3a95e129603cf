"""Keep an index level with the journal: apply what it has not seen, start again where history was taken away."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import inf
from threading import RLock, Thread
from typing import Any

from jidomem.index.clones import STORE_ERRORS, Clones, Live, Snapshot
from jidomem.index.document import Mark
from jidomem.index.filling import Filling
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.steps import clears, until_cleared
from jidomem.index.taking import MOST, Taking
from jidomem.journal.commit import Commit
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.redaction import is_order
from jidomem.terms import Triple
from jidomem.version import Version

#: Bytes of journal that a process reads whenever it starts; of more, an index is kept on disk.
LARGE = 2_000_000
#: Commits, or bytes of journal, that a process read beyond the snapshot it began with, after which it keeps another.
MANY = 2_000
#: The same for what it wrote itself, in bytes: who writes without pause would else be busy with snapshots.
MUCH = 2 * LARGE
#: Triples taken in after which an index in memory moves to disk: some 50 MB.
OUTGROWN = 100_000
#: Bytes of commits that may wait until somebody reads; of more, a thread takes them in beside who writes.
WAITING = 1_000_000


class Tail:
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
        self._live: Live | None = None
        self._is_open = False
        self._filling = Filling(journal)  # its counts are of what was taken in since a snapshot was opened, or kept
        self._publisher: Thread | None = None
        self._taking = Taking(index)
        self.told: Callable[[Stream], None] | None = None  # of every commit of this process, once it is durable
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
            self.index.settle()
            while self._level(stream):
                pass
            self._outgrow()
            self._keep(MANY, LARGE)
            return self.index.mark(stream.graph).version

    def apply(self, stream: Stream, commit: Commit) -> None:
        """Take in a commit just appended, soon; one that does not follow from what is held is left to `catch_up`."""
        if self.told is not None:
            self.told(stream)
        with self._lock:
            held = self.index.mark(stream.graph).version
            if self._is_open and commit.parents == tuple(sorted(held.ids)) and not is_order(commit.data):
                if clears(stream, commit):
                    self._clear(stream, commit)
                    return
                self._filling.counted([commit])
                if (size := self.index.take_later(stream.graph, commit)) > WAITING:
                    self._taking.go_on(size > MOST * WAITING)
                self._outgrow()
                self._keep(8 * MANY, MUCH)

    def rebuild(self, progress: Callable[[int], None] | None = None) -> Mapping[Stream, Mark]:
        """Return what each stream holds, after what was derived from the journal is thrown away and built anew.

        *progress* is told of every commit how many bytes it has. A snapshot is kept where the journal is large.
        """
        with self._lock:
            if self._clones is not None:
                self._clones.discard_snapshots()
            streams = self.journal.streams()
            self._start(streams, anew=True, progress=progress)
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
                for step in until_cleared(stream, self.journal.read(stream, after=held, missed=missed), clearing):
                    if any(is_order(commit.data) for commit in step):
                        self._start([stream])  # what is held may hold what was taken out of the journal
                        return True
                    self.index.take(stream.graph, self._filling.counted(step))
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
        self, streams: Iterable[Stream], *, anew: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        """Open the index, or open it again: from the newest snapshot that fits the journal, unless *anew*.

        What was held is read until what is to be held is level, with *streams* and with all that was held.
        """
        self._settle()
        held = [stream for stream in self.journal.streams() if self.index.mark(stream.graph).commits]
        wanted = sorted({*streams, *held})
        for stream in wanted:
            self.journal.head(stream)  # of what is shared, the copy is fetched before it is asked how large it is
        if self._clones is not None and self.size(LARGE) > LARGE:
            with suppress(*STORE_ERRORS):
                live, index = self._clone(self._clones, anew)
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

    def _clone(self, clones: Clones, anew: bool) -> tuple[Live | None, OxigraphIndex]:
        """Return a clone of the newest snapshot of which the journal has every commit, else an empty one."""
        streams = {stream.graph: stream for stream in self.journal.streams()}
        for live in () if anew else clones.each():
            index = OxigraphIndex(live.store)
            if self._filling.fits(index, streams):
                return live, index
            live.close()
        new = clones.new()
        return new, OxigraphIndex(new.store if new else None)

    def _swap(self, index: OxigraphIndex, live: Live | None) -> None:
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
                self._start(streams, anew=True)

    def _outgrow(self) -> None:
        """Go on on disk when the index in memory has become large."""
        if self._live is None and self._clones is not None and self.index.triples_taken > OUTGROWN:
            clones, self._clones = self._clones, None  # where it cannot go to disk it stays, and is not asked again
            with suppress(*STORE_ERRORS):
                live = clones.new()
                if live is not None:
                    self.index.move_to(live.store, str(live.path / "passage"))
                    self._live, self._clones = live, clones

    def _keep(self, commits: int, size: int) -> None:
        """Keep a snapshot when more than that was taken in since the last one, and nothing is missing."""
        self._renew()
        taken = self._filling
        is_due = self._live is not None and (taken.commits > commits or taken.bytes > size)
        if is_due and not taken.damaged and (self._publisher is None or not self._publisher.is_alive()):
            taken.commits = taken.bytes = 0
            self._publisher = Thread(target=self._publish, args=(self._clones, self._live), name="jidomem snapshot")
            self._publisher.start()

    def _renew(self) -> None:
        """Go on on a clone of the snapshot just kept: a store has in memory what it once read until it is closed."""
        if not self._is_kept or self._clones is None or self._filling.damaged:
            return
        self._is_kept = False
        self.index.settle()
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

    def _publish(self, clones: Clones, live: Live) -> None:
        with suppress(*STORE_ERRORS):  # a disk that is full: the next one tries again, and until then reads more
            clones.publish(self.index, live)
            self._is_kept = True
            for stream in self.journal.streams():
                self.journal.share(stream)

    def _settle(self) -> None:
        """Wait for the snapshot that is being kept, and for what is being taken in."""
        self._taking.wait()
        if self._publisher is not None:
            self._publisher.join()
