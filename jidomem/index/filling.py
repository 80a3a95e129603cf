"""Fill an index that nobody reads yet from a journal, and keep count of what it takes and what it has to leave out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from jidomem.errors import NotFound
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.steps import cleared_by, until_cleared
from jidomem.journal.commit import Commit
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.redaction import is_order
from jidomem.terms import Triple
from jidomem.version import Version


class Filling:
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
            self._was_ordered |= is_order(commit.data)
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
        steps = until_cleared(stream, self._journal.read(stream, after=after, missed=missed), clearing)
        index.take(stream.graph, self.counted(next(steps, []), progress))
        index.take_many(stream.graph, (commit for step in steps for commit in self.counted(step, progress)))
        return clearing[0] if clearing else None

    def _orders_since(self, stream: Stream, version: Version) -> bool:
        """Return whether something was redacted after *version*, as far as that can be told."""
        with suppress(NotFound):
            return any(is_order(commit.data) for commit in self._journal.read(stream, after=version))
        return True

    def _damage(self, stream: Stream) -> frozenset[str]:
        return frozenset(found.path for found in self._journal.damage(stream))
