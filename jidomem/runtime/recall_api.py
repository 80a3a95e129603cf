"""Recall at an open root: the texts it searches, the vectors that are made beside them, and the asking."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jidomem.base.clock import Sources, format_timestamp
from jidomem.index.follower import IndexFollower
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import FileJournal, Stream
from jidomem.records.intent import Version
from jidomem.records.interfaces import Embedder, StateStore
from jidomem.records.named_query import moment_of
from jidomem.repository.worktree import Worktree
from jidomem.runtime import settings
from jidomem.runtime.location import InFolder, SharedLocation
from jidomem.runtime.logs import ReadLog
from jidomem.runtime.settings import Settings
from jidomem.schema.ontology import Schema

if TYPE_CHECKING:
    from jidomem.extras.memoryos.job_handlers import Pages
    from jidomem.index.search_index import InMemorySearchIndex, Texts
    from jidomem.index.vectors import Embedding
    from jidomem.read.reader import MemoryReader
    from jidomem.recall.candidates import VectorQuery
    from jidomem.recall.memories import Recalling
    from jidomem.records.recall import MemoryRecall, Narrowing, RecallRequest

#: The kind of what an agent talked about, which no journal keeps.
PAGES = "page"


class Recalls:
    """The part of an open root that finds memories; a writer has no need of it, and loads none of it."""

    settings: Settings
    place: InFolder | SharedLocation
    sources: Sources
    journal: FileJournal
    index: OxigraphIndex
    tail: IndexFollower
    schema: Schema
    tree: Worktree | None
    read_log: ReadLog | None
    embedder: Embedder | None
    #: How many seconds each recall makes vectors for before it answers; None where it is done in the background.
    embeds_for: float | None = None

    if TYPE_CHECKING:  # what the root has besides
        reader: MemoryReader

        @property
        def project(self) -> str:
            """Return the project asked for when none is named."""

        @property
        def _state(self) -> StateStore:
            """Return what is kept of agents."""

        def catch_up(self, project: str) -> Version:
            """Bring the index level with *project*."""

    def recall(self, asked: RecallRequest | str, project: str | None = None, **more: Any) -> MemoryRecall:
        """Return the memories in force that hold words of *asked* or are alike to it: `entries`, each with its score.

        The best come first. By likeness are found those that have a vector; `metadata["vectors"]` says how many wait
        for one, where there is an embedder.

        *more* is what `Narrowing` takes: kinds, about, since, until, as_of, valid_at, agent, session,
        include_inactive, budget_tokens, explain; with a plain text also agent_id, session_id, scope and limit.
        Raises InvalidRequest for what cannot be honoured.
        """
        from jidomem.recall.briefing import anchored, fit_recall_to_budget
        from jidomem.recall.governing import fresh
        from jidomem.records.recall import parsed

        name = project or self.project
        request, narrowing = parsed(asked, more, self.settings.agent)
        asking = self._asking(request, narrowing, name)
        found = self._found(asking, request, narrowing, name)
        found = replace(found, inactive=asking.inactive(name, request, narrowing, found))
        known = fresh(self.index, self.tree, name, (hit.id for hit in found.entries if hit.metadata["kind"] != PAGES))
        rivals = self.reader.conflicts_with(
            name, {hit.id for hit in found.entries}, as_of=narrowing.as_of, valid_at=narrowing.valid_at
        )
        told = fit_recall_to_budget(anchored(found, known, rivals), narrowing.budget_tokens)
        if self.read_log is not None:
            items = [hit.id for hit in told.entries if hit.metadata["kind"] != PAGES]
            self.read_log.shown(name, items, by=request.agent_id, in_="recall")
        return told

    def _recalled(self, request: RecallRequest, narrowing: Narrowing, name: str) -> MemoryRecall:
        """Return what the project *name* holds that answers, without a note that it was shown."""
        return self._found(self._asking(request, narrowing, name), request, narrowing, name)

    def _found(self, asking: Recalling, request: RecallRequest, narrowing: Narrowing, name: str) -> MemoryRecall:
        found = asking.recall(name, request, narrowing)
        return replace(found, metadata={**found.metadata, **self.lag(name)})

    def _asking(self, request: RecallRequest, narrowing: Narrowing, name: str) -> Recalling:
        """Return what answers *request* from the project *name*."""
        from jidomem.recall.memories import SPOKEN, Recalling

        self.catch_up(name)  # of a project there is not, nothing is embedded
        spoken = not SPOKEN.keys().isdisjoint({*narrowing.kinds} - {PAGES})
        alike = self.alike_to(request.query, name, moment_of(narrowing.as_of, "as_of"), spoken=spoken)
        pages = self._pages_of(narrowing.agent or request.agent_id, name, alike) if PAGES in narrowing.kinds else None
        return Recalling(self.texts, self.index, self.schema, self.now(), alike, pages)

    def alike_to(self, query: str, project: str, moment: str | None, *, spoken: bool) -> VectorQuery | None:
        """Return what makes known how alike *query* is to what *project* holds; None where nothing does, or fails to.

        Where it is asked of what was *spoken*, it is compared without the names of who spoke there by the *moment*.
        From now on the vectors of the project are made.
        """
        from jidomem.recall.candidates import VectorQuery
        from jidomem.recall.question import strip_names

        embedding = self.embedding
        if embedding is None:
            return None
        if spoken:
            history = Stream(project, "history")
            query = strip_names(query, self.texts.read(history, lambda file: file.passages.speakers(moment)))
        vector = embedding.asked(query)
        if self.embeds_for is None:
            embedding.begin(project)
        elif embedding.error is None:  # what is waited for is made by one that answered a moment ago
            embedding.try_for(project, self.embeds_for)
        return None if vector is None else VectorQuery(embedding.vectors, vector)

    def _pages_of(
        self, agent: str, project: str, alike: VectorQuery | None
    ) -> tuple[InMemorySearchIndex, VectorQuery | None]:
        """Return the pages of an agent, with what makes known how alike they are: vectors of the same embedder."""
        from jidomem.extras.memoryos.job_handlers import Pages

        if (project, agent) not in self._pages:  # of two threads that come here at once one makes it for nothing
            made = Pages(self._state, project, agent, self.sources.new_id, self.texts.stemmer)
            self._pages.setdefault((project, agent), made)
        texts, embedder = self._pages[project, agent].level()
        is_same = self.embedding is not None and embedder == self.embedding.vectors.embedder.name
        return texts, replace(alike, vectors=texts) if alike is not None and is_same else None

    @cached_property
    def _pages(self) -> dict[tuple[str, str], Pages]:
        return {}

    def lag(self, project: str) -> dict[str, Any]:
        """Return what an answer says of vectors, under `vectors`: nothing where there is no embedder."""
        return {} if self.embedding is None else {"vectors": self.embedding.lag(project)}

    def now(self) -> str:
        """Return the moment it is, as texts have theirs."""
        return format_timestamp(self.sources.now())

    @cached_property
    def texts(self) -> Texts:
        """Return the texts that recall searches, kept below `cache/`."""
        from jidomem.index.search_index import Texts

        return Texts(self.settings.root, self.journal, self.index, self.catch_up)

    @property
    def embedding(self) -> Embedding | None:
        """Return what makes vectors of the texts, kept below `cache/`; None where there is no embedder."""
        if "_embedding" not in self.__dict__:  # of two threads that come here at once one makes it for nothing
            self.__dict__.setdefault("_embedding", self._new_embedding())
        found: Embedding | None = self.__dict__["_embedding"]
        return found

    def _new_embedding(self) -> Embedding | None:
        embedder = self.embedder or settings.embedder(self.settings)
        if embedder is None:
            return None
        from jidomem.index.vectors import Embedding

        return Embedding(self.place.vectors(self.settings.root, self.texts, embedder))

    def _close_recall(self) -> None:
        """Let go of what was opened of it; the vectors that are being made are waited for, but not for long."""
        for pages in self.__dict__.get("_pages", {}).values():
            pages.close()
        for name in ("_embedding", "texts"):
            if self.__dict__.get(name) is not None:
                self.__dict__[name].close()
