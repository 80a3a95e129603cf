"""Keep an index level with the journal: apply what it has not seen, start again where history was taken away."""

from __future__ import annotations

from threading import Lock

from jidomem.index.oxigraph import OxigraphIndex
from jidomem.journal.commit import Commit
from jidomem.journal.files import FileJournal, Stream
from jidomem.version import Version


class Tail:
    """One journal and the index fed from it."""

    def __init__(self, journal: FileJournal, index: OxigraphIndex) -> None:
        self.journal = journal
        self.index = index
        self._applied: dict[Stream, Version] = {}
        self._lock = Lock()

    def catch_up(self, stream: Stream) -> Version:
        """Return the journal's head once the index holds every commit up to it."""
        with self._lock:
            head = self.journal.head(stream)
            if head != self._applied.get(stream, Version()):
                self._apply_news(stream)
                self._applied[stream] = head
            return head

    def apply(self, stream: Stream, commit: Commit) -> None:
        """Take in a commit just appended to the head this index had reached."""
        with self._lock:
            self.index.apply(stream.graph, commit.id, commit.triples)
            self._applied[stream] = Version((commit.head,))

    def _apply_news(self, stream: Stream) -> None:
        """Apply the commits the index lacks; start again where it holds one the journal no longer has."""
        applied = self._applied.get(stream, Version())
        if not self.journal.holds(stream, applied):
            self.index.reset(stream.graph)
            applied = Version()
        for commit in self.journal.read(stream, after=applied):
            self.index.apply(stream.graph, commit.id, commit.triples)
