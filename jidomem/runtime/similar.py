"""The similar search finds the memories that a new one repeats or is near to, beside the write and never before it.

A search file that lacks only the last writes of this process is read as it is, and these writes are compared from
memory: to bring the file up to date takes longer than the write. It follows after every LAG writes. No file is built
for a write: without one, only a project of which this process wrote every commit is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from itertools import chain
from math import hypot
from threading import Condition
from typing import TYPE_CHECKING, NamedTuple

from jidomem.base.words import chunk_text
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import CONVENTIONS, TYPE_ALIASES, family, local_name, type_uri
from jidomem.records.differences import differences
from jidomem.records.intent import NEAR, REPEATS, MemoryUpdateIntent, Receipt, SimilarMemory

if TYPE_CHECKING:
    from jidomem.index.search_tables import SearchIndexReader
    from jidomem.index.store import OxigraphIndex
    from jidomem.recall.neighbours import Neighbour, Statement
    from jidomem.records.interfaces import Vector
    from jidomem.runtime.recall_api import RecallApi
    from jidomem.schema.ontology import EffectiveRules
    from jidomem.write.context import Similar
    from jidomem.write.submission import Proposal

#: The last writes that the search file may lack, and the most commits that are added to it; without a file, the most
#: writes that are compared.
LAG, MOST_ADDED = 16, 100
#: The likeness from which a statement that differs in no value is a repetition.
SAME = 0.8
#: Seconds for which a receipt waits (default), and for which `close` waits for running searches.
WITHIN, CLOSE_TIMEOUT = 3.0, 3.0
#: The fields with memories, by IRI or short id: these are no neighbours.
_LINKS = ("supersedes", "invalidates", "coexists_with", "revives", "evidence", "about")


class _RecentWrite(NamedTuple):
    """A write of this process: its statement, None for a proposal, and the names of the memories that it ended."""

    statement: Statement | None
    ended: frozenset[str]


class ReceiptSearch:
    """The search for the memories that are similar to those written to an open root."""

    def __init__(
        self, recall: RecallApi, index: OxigraphIndex, rules: EffectiveRules, catch_up: Callable[[str], object]
    ) -> None:
        """Search the files of *recall*; *catch_up* brings *index* up to date with a project."""
        self.running, self.within = 0, WITHIN
        self._recall, self._index, self._rules, self._catch_up = recall, index, rules, catch_up
        self._idle = Condition()
        self._is_closed = False
        #: The last writes of this process, by project and by the number of their commit.
        self._recent: dict[str, dict[int, list[_RecentWrite]]] = {}

    def answer(self, put: Callable[[Similar], object], project: str, intent: Proposal, receipt: Receipt | None) -> None:
        """Call *put* with the memories similar to *intent*, then bring the search file up to date if it lags."""
        with self._idle:
            self.running += 1
        similar: Similar = None
        try:
            with suppress(Exception):  # of any kind: the memory is durable, and nothing here may fail its receipt
                if not self._is_closed:
                    similar = self._find(project, intent, receipt)
            put(similar)
            with suppress(Exception):
                self._bring_up_to_date(project)
        finally:
            with self._idle:
                self.running -= 1
                self._idle.notify_all()

    def close(self) -> None:
        """Begin no search; wait for those that are running, but not for long."""
        self._is_closed = True
        with self._idle:
            self._idle.wait_for(lambda: not self.running, CLOSE_TIMEOUT)
        if "_no_file" in self.__dict__:
            self._no_file.close()

    def _find(self, project: str, given: Proposal, receipt: Receipt | None) -> Similar:
        """Return the memories similar to an intent: as recorded by *receipt*, or before it is judged."""
        intent = given if isinstance(given, MemoryUpdateIntent) else MemoryUpdateIntent.from_dict(given)
        kind, policy = _kind(intent), self._rules.policy.on_similar.get(family(_kind(intent)), "ask")
        if not (intent.summary or "").strip() or kind == "deleted_marker":
            return None
        if policy == "off" or (receipt is None and policy != "propose"):
            return None
        if receipt is None:  # else the write has brought the index up to date
            self._catch_up(project)
        stream = Stream(project)
        mark = self._index.mark(stream.graph)
        is_written = receipt is not None and receipt.commit is not None
        vector = self._vector(stream, _text_of(intent, kind), stores=is_written)
        if receipt is None:
            return self._search(stream, intent, (), mark.version.recorded_at, vector)
        if is_written:
            self._remember(project, mark.commits, intent, receipt, vector)
        known = receipt.iri, *(conflict.iri for conflict in receipt.conflicts)
        return self._search(stream, intent, known, receipt.version.recorded_at, vector)

    def _vector(self, stream: Stream, text: str, *, stores: bool) -> Vector | None:
        """Return the vector of the first piece of a text; None without an embedder on this machine."""
        embedding = self._recall.embedding
        if embedding is None or getattr(embedding.vectors.embedder, "is_remote", False):
            return None
        return embedding.vector_of(chunk_text(text)[0])

    def _search(
        self, stream: Stream, intent: MemoryUpdateIntent, known: Iterable[str], moment: str, vector: Vector | None
    ) -> Similar:
        """Return the memories of *stream* active at *moment* that are similar to *intent*, without those *known*."""
        from jidomem.recall import neighbours
        from jidomem.recall.candidates import VectorQuery

        texts, kind, summary = self._recall.texts, _kind(intent), intent.summary or ""
        alike = (
            None
            if vector is None or self._recall.embedding is None
            else VectorQuery(self._recall.embedding.vectors, vector)
        )
        linked = {*chain.from_iterable(getattr(intent, name) or () for name in _LINKS), *known}

        def use(file: SearchIndexReader, commits: int) -> list[Neighbour]:
            self._forget(stream.project, commits)
            writes = self._writes(stream.project)
            ended = linked.union(*(write.ended for write in writes))
            statements = [write.statement for write in writes if write.statement is not None]
            near = neighbours.neighbours(
                file,
                stream,
                texts.stemmer,
                summary,
                neighbours.comparable(kind, moment),
                alike=alike,
                recent=[
                    each for each in statements if neighbours.is_comparable([type_uri(kind)], [type_uri(each.kind)])
                ],
                limit=neighbours.MOST + len(ended),
            )
            return [each for each in near if ended.isdisjoint(_names(each.item))][: neighbours.MOST]

        written = {*self._recent.get(stream.project, ())}
        if texts.exists(stream):
            near = texts.read_lagging(stream, use, written, MOST_ADDED)
        elif written.issuperset(range(1, self._index.mark(stream.graph).commits + 1)):
            near = use(self._no_file, 0)
        else:  # made now, unless it has many memories: read then raises an error
            commits = self._index.mark(stream.graph).commits
            near = texts.read(stream, lambda file: use(file, commits), waits=False)
        if near is None:
            return None
        return tuple(_similar(summary, each) for each in near)

    def _remember(
        self, project: str, number: int, intent: MemoryUpdateIntent, receipt: Receipt, vector: Vector | None
    ) -> None:
        """Remember the write with the commit *number* until the search file has it."""
        from jidomem.recall.neighbours import Statement

        author = str(intent.asserted_by or receipt.filled.get("asserted_by", ""))
        length = hypot(*vector or ()) or 1.0
        unit = None if vector is None else [value / length for value in vector]
        is_active = receipt.status == "asserted" and not (intent.valid_from or intent.valid_until)
        statement = Statement(receipt.iri, _kind(intent), (intent.summary or "").strip(), author, unit)
        ended = frozenset([*intent.supersedes, *intent.invalidates] if receipt.status == "asserted" else ())
        with self._idle:
            writes = self._recent.setdefault(project, {}).setdefault(number, [])
            writes.append(_RecentWrite(statement if is_active else None, ended))

    def _writes(self, project: str) -> list[_RecentWrite]:
        with self._idle:
            return [*chain.from_iterable(self._recent.get(project, {}).values())]

    @cached_property
    def _no_file(self) -> SearchIndexReader:
        """Return an empty search file in memory, for a project whose memories are all of this process."""
        from jidomem.index.search_tables import SearchIndexReader

        file = SearchIndexReader(":memory:", self._recall.texts.stemmer, 0.0)
        file.fits()
        return file

    def _forget(self, project: str, commits: int) -> None:
        """Forget the writes that the search file has: those of its first *commits*."""
        with self._idle:
            recent = self._recent.get(project, {})
            for number in [number for number in recent if number <= commits]:
                del recent[number]

    def _bring_up_to_date(self, project: str) -> None:
        """Bring the search file up to date if it lacks many writes; without a file, forget the writes if many."""
        stream, count = Stream(project), len(self._recent.get(project, ()))
        if count >= LAG and not self._is_closed and self._recall.texts.exists(stream):
            self._recall.texts.read(stream, lambda file: None)
        elif count > MOST_ADDED:
            with self._idle:
                self._recent[project].clear()


def _similar(summary: str, neighbour: Neighbour) -> SimilarMemory:
    """Return a neighbour of the statement *summary* with its relation to it: a repetition differs in no value."""
    differing = tuple(map(str, differences(summary, neighbour.summary)))
    relation = REPEATS if neighbour.likeness >= SAME and not differing else NEAR
    likeness, author = round(neighbour.likeness, 2), local_name(neighbour.agent)
    return SimilarMemory(neighbour.item, neighbour.summary, likeness, relation, author, differing)


def _kind(intent: MemoryUpdateIntent) -> str:
    return TYPE_ALIASES.get(intent.type or "", intent.type or "")


def _names(item: str) -> tuple[str, ...]:
    """Return the names by which an intent may name a memory: its IRI, its id and its short id."""
    return item, local_name(item), local_name(item)[-8:]


def _text_of(intent: MemoryUpdateIntent, kind: str) -> str:
    """Return the text of a memory that is embedded, as the search file has it for all but evidence and alternatives."""
    name = (intent.convention_name or intent.summary) if kind in CONVENTIONS else None
    texts = (intent.summary, name, intent.topic, intent.rationale, intent.detailed_explanation, intent.reason)
    return "\n".join(text.strip() for text in texts if text and text.strip())
