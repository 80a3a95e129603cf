"""Keep an index level with the journal: apply what it has not seen, start again where history was taken away."""

from __future__ import annotations

from threading import Lock

from jidomem.index.oxigraph import OxigraphIndex
from jidomem.journal.commit import Commit, advance
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
        """Return the version the index has reached: the journal's head, or past it where commits keep coming."""
        with self._lock:
            if stream not in self._applied:
                self._apply_after(stream, Version())  # before head: what is read is then parsed once
            head = self.journal.head(stream)
            if head != self._applied[stream]:
                if not self.journal.holds(stream, self._applied[stream]):  # another branch was checked out
                    self._start_again(stream)
                else:
                    self._apply_after(stream, self._applied[stream])
            return self._applied[stream]

    def apply(self, stream: Stream, commit: Commit) -> None:
        """Take in a commit just appended."""
        with self._lock:
            self.index.apply(stream.graph, commit.id, commit.triples)
            self._applied[stream] = advance(self._applied.get(stream, Version()), [commit])

    def _start_again(self, stream: Stream) -> None:
        commits = list(self.journal.read(stream))
        self.index.reset(stream.graph, {commit.id: commit.triples for commit in commits})
        self._applied[stream] = advance(Version(), commits)

    def _apply_after(self, stream: Stream, version: Version) -> None:
        commits = []
        for commit in self.journal.read(stream, after=version):
            self.index.apply(stream.graph, commit.id, commit.triples)
            commits.append(commit)
        self._applied[stream] = advance(version, commits)
