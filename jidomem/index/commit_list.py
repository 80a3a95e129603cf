"""The commits of all streams of a project, newest first, in the SQLite file of the search text.

With a commit all its ancestors are listed, so those that are lacking are reached from the heads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from jidomem.index.projection import RECORDED, ticks, timed
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.journal.commit import COMMIT
from jidomem.rdf.terms import Term, date_time, iri, plain_value
from jidomem.rdf.vocab import graphs_of, jido
from jidomem.records.intent import CommitRef

TABLES = "CREATE TABLE committed (key TEXT PRIMARY KEY) WITHOUT ROWID;\n"
_PARENT = jido("parent")


class CommitList:
    """The commits in the open database *store*."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self.marks: list[Watermark] | None = None  # the watermarks of the graphs whose commits are listed

    def lacking(self, index: OxigraphIndex, project: str) -> int:
        """Return how many commits of *project* in the index may be lacking."""
        marks = _marks(index, project)
        if marks == self.marks:
            return 0
        if all(self._has(_key_of(head)) for mark in marks for head in mark.version.heads):
            self.marks = marks
            return 0
        listed = self._store.execute("SELECT COUNT(*) FROM committed").fetchone()[0]
        return max(1, sum(mark.commits for mark in marks) - int(listed))

    def update(self, index: OxigraphIndex, project: str) -> list[Watermark]:
        """List the commits of *project* that are lacking, in the caller's write transaction; return what was read.

        Once that is committed, the caller may set it as `marks`: a head that is not in the index cannot be listed.
        """
        marks = _marks(index, project)
        former: Sequence[Watermark | None] = self.marks or [None] * len(marks)
        for graph, mark, before in zip(graphs_of(project), marks, former, strict=True):
            for head in mark.version.heads if mark != before else ():
                if not self._has(_key_of(head)):
                    self._add(index, graph, head)
        return marks

    def page(self, start: str, moment: int, count: int) -> list[str] | None:
        """Return up to *count* keys, from *start* on, of commits made by *moment*; None if the list lacks commits."""
        if self.marks is None:
            return None
        start = max(start, timed(moment, "", newest_first=True))
        text = "SELECT key FROM committed WHERE key >= ? ORDER BY key LIMIT ?"
        return [key for (key,) in self._store.execute(text, (start, count))]

    def _has(self, key: str) -> bool:
        return any(self._store.execute("SELECT 1 FROM committed WHERE key = ?", (key,)))

    def _add(self, index: OxigraphIndex, graph: str, head: CommitRef) -> None:
        """List a head and its ancestors up to those that are listed; a commit that is not in the index is none."""
        waiting: list[Term] = [iri(f"{COMMIT}{head.id}")]
        while waiting:
            commit = waiting.pop()
            moments = [ticks(at) for _, _, at in index.triples(graph, commit, RECORDED)]
            keys = [timed(at, plain_value(commit), newest_first=True) for at in moments if at is not None]
            if keys and not all(map(self._has, keys)):
                self._store.executemany("INSERT OR IGNORE INTO committed VALUES (?)", ((key,) for key in keys))
                waiting += [parent for _, _, parent in index.triples(graph, commit, _PARENT)]


def _marks(index: OxigraphIndex, project: str) -> list[Watermark]:
    return [index.mark(graph) for graph in graphs_of(project)]


def _key_of(head: CommitRef) -> str:
    return timed(ticks(date_time(head.recorded_at)) or 0, f"{COMMIT}{head.id}", newest_first=True)
