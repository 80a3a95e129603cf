"""Ranked recall of an open root: its search index, its embedding vectors and the recall of memories.

The search index, the vectors and the ranking are loaded when a recall first needs them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jidomem.base.clock import format_timestamp
from jidomem.base.regex import lazy
from jidomem.base.words import slug
from jidomem.errors import JidomemError, nearest_names
from jidomem.index.follower import gc_paused
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri, plain_value
from jidomem.rdf.vocab import BASE, TYPE, jido, local_name
from jidomem.records.active import ACTIVE, STATES
from jidomem.records.named_query import moment_of
from jidomem.runtime import settings

if TYPE_CHECKING:
    from jidomem.extras.memoryos.job_handlers import Pages
    from jidomem.index.search_index import InMemorySearchIndex, Texts
    from jidomem.index.vectors import Embedding
    from jidomem.models.reranker import Reranker
    from jidomem.recall.candidates import VectorQuery
    from jidomem.recall.memories import RootRecall
    from jidomem.records.interfaces import Embedder
    from jidomem.records.recall import DifferingMemory, MemoryRecall, NearPair, RecallFilters, RecallRequest
    from jidomem.runtime.agent_api import AgentApi
    from jidomem.runtime.root import Jidomem

#: Words that name the last work session.
_LAST_SESSION = lazy(r"\b(?:last|latest|previous|letzten?|vorigen?) (?:work )?(?:session|sitzung)\b", re.IGNORECASE)
#: The kind of the dialogue pages of MemoryOS, which are in the working state and not in the journal.
PAGE_KIND = "page"
_SUMMARY = jido("summary")


class RecallApi:
    """Recall over the projects of an open root."""

    def __init__(self, memory: Jidomem, agents: AgentApi, embedder: Embedder | None) -> None:
        """Search *memory*; *agents* has the pages of MemoryOS, *embedder* replaces that of the settings."""
        self._memory, self._agents, self._embedder = memory, agents, embedder
        self._pages: dict[tuple[str, str], Pages] = {}
        self._near_pairs: dict[str, tuple[object, list[NearPair]]] = {}
        #: Seconds for which each recall embeds texts before it answers; None: in the background.
        self.embeds_for: float | None = None

    def recall(self, query: RecallRequest | str, project: str, **options: Any) -> MemoryRecall:
        """Return the ranked memories of *project* with anchors and conflicts, and record that they were shown."""
        from jidomem.recall.briefing import anchored, contrasted, fit_recall_to_budget
        from jidomem.recall.governing import fresh
        from jidomem.records.recall import matching_named_queries, parse_request

        request, filters = parse_request(query, options, self._memory.settings.agent)
        search = self._search(request, filters, project)
        with gc_paused():  # a ranking makes thousands of objects, and leaves few
            hits = self._hits(search, request, filters, project)
            if is_whole := "index" not in hits.metadata:
                hits = replace(hits, inactive=search.inactive(project, request, filters, hits))
            search.caches.clear()  # before the garbage collector examines them
        memories = [hit.id for hit in hits.entries if hit.metadata["kind"] != PAGE_KIND]
        freshness = fresh(self._memory.index, self._memory.tree, project, iter(memories))
        shown = {hit.id for hit in hits.entries} if is_whole else set[str]()
        if filters.agent is not None and not hits.entries and "page" not in filters.kinds:
            hits = replace(hits, metadata={**hits.metadata, **self._unknown(filters.agent, project)})
        if not hits.entries and not filters.kinds:
            hits = replace(hits, metadata={**hits.metadata, **self._other_kinds(request, filters, project)})
        if _LAST_SESSION.search(request.query):
            hits = replace(hits, metadata={**hits.metadata, **self._last_session(filters, project)})
        if questions := matching_named_queries(request.query):
            hits = replace(hits, metadata={**hits.metadata, "questions": questions})
        rivals = self._memory.reader.conflicts_with(project, shown, as_of=filters.as_of, valid_at=filters.valid_at)
        if filters.as_of is None:
            hits = contrasted(hits, self.contrasts(project, shown, filters.valid_at))
        result = fit_recall_to_budget(anchored(hits, freshness, rivals), filters.budget_tokens)
        if self._memory.read_log is not None:
            items = [hit.id for hit in result.entries if hit.metadata["kind"] != PAGE_KIND]
            self._memory.read_log.record_shown(project, items, by=request.agent_id, in_="recall")
        return result

    def _other_kinds(self, request: RecallRequest, filters: RecallFilters, project: str) -> dict[str, Any]:
        """Return `other_kinds`, the numbers of matching entries and turns among the best; nothing if none matches."""
        if not self._memory.journal.exists(Stream(project, "history")):
            return {}
        wide = replace(filters, kinds=("entry", "turn"), explain=False)
        found = self._search(request, wide, project).recall(project, request, wide).reaching(filters.min_score)
        kinds = Counter(hit.metadata["kind"] for hit in found.entries)
        return {"other_kinds": dict(kinds)} if kinds else {}

    def _last_session(self, filters: RecallFilters, project: str) -> dict[str, Any]:
        """Return `last_session`, the last one that ended, with its agent, start and end; nothing if there is none."""
        from jidomem.recall.sections import last_session

        agent = filters.agent and (filters.agent if ":" in filters.agent else f"{BASE}agents/{filters.agent}")
        moment = {"as_of": filters.as_of, "valid_at": filters.valid_at}
        if (last := last_session(self._memory.reader, project, agent, **moment)) is None:
            return {}
        names = {name: local_name(last[name] or "") for name in ("session", "agent")}
        return {"last_session": {**names, "start": last["start"], "end": last["end"]}}

    def _unknown(self, agent: str, project: str) -> dict[str, Any]:
        """Return `unknown_agent`, its name and the nearest names, if *agent* wrote nothing; else nothing."""
        graphs = [Stream(project, stream).graph for stream in ("memory", "history")]
        rows = (row for graph in graphs for row in self._memory.index.triples(graph, None, TYPE, jido("Agent")))
        known = {local_name(plain_value(node)) for node, _, _ in rows}
        name = local_name(agent) if agent.startswith(BASE) else agent
        if {name, slug(name)} & known:
            return {}
        return {"unknown_agent": {"name": name, "nearest": nearest_names(name, known, 3)}}

    def await_index(self, project: str, seconds: float, progress: Callable[[int, int], object]) -> None:
        """Wait up to *seconds* until the search index has all memories of *project*, if many are to be added."""
        self._memory.catch_up(project)
        if self.texts.starts_build(Stream(project)):
            self.texts.wait(Stream(project), seconds, progress)

    def find(self, request: RecallRequest, filters: RecallFilters, project: str) -> MemoryRecall:
        """Return the ranked memories of *project*, without recording that they were shown."""
        return self._hits(self._search(request, filters, project), request, filters, project)

    def _hits(self, search: RootRecall, request: RecallRequest, filters: RecallFilters, project: str) -> MemoryRecall:
        if self.reranker is None:
            hits = search.recall(project, request, filters)
        else:
            from jidomem.models.reranker import RERANKED, rerank

            wide = search.recall(project, replace(request, limit=max(request.limit, RERANKED)), filters)
            hits = replace(
                rerank(wide, self.reranker, request.limit, self._memory.settings.reranker.seconds), request=request
            )
        metadata = self.lag(project)
        if part := search.texts.searched:
            # later commits may have ended a memory added so far
            entries = [hit for hit in hits.entries if filters.include_inactive or hit.metadata["status"] not in STATES
                       or hit.metadata["status"] == ACTIVE]  # fmt: skip
            hits = replace(hits, entries=entries)
            metadata["index"] = dict(zip(("added", "commits"), part, strict=True))
        relative = self.reranker is None and not filters.include_inactive
        hits = hits.reaching(filters.min_score, relative=relative)
        return replace(hits, metadata={**hits.metadata, **metadata})

    def _search(self, request: RecallRequest, filters: RecallFilters, project: str) -> RootRecall:
        from jidomem.index.search_index import TextsSoFar
        from jidomem.recall.memories import SPOKEN, RootRecall

        self._memory.catch_up(project)  # first, as an unknown project must start no embedding
        self.texts.starts_build(Stream(project))
        in_talk = not SPOKEN.keys().isdisjoint({*filters.kinds} - {PAGE_KIND})
        vector = self.vector_query(request.query, project, moment_of(filters.as_of, "as_of"), in_talk=in_talk)
        agent = filters.agent or request.agent_id
        pages = self._page_search(agent, project, vector) if PAGE_KIND in filters.kinds else None
        return RootRecall(TextsSoFar(self.texts), self._memory.index, self._memory.schema, self.now(), vector, pages)

    def vector_query(self, query: str, project: str, moment: str | None, *, in_talk: bool) -> VectorQuery | None:
        """Return the vector of *query* with the vectors of *project*; None without an embedder or if it fails.

        For a search *in_talk*, of conversations, the names of the speakers by *moment* are removed from it; else the
        words of abbreviations are added. The call starts the embedding of the project.
        """
        from jidomem.recall.candidates import VectorQuery
        from jidomem.recall.question import spelled_out, strip_names

        embedding = self.embedding
        if embedding is None:
            return None
        if in_talk:
            history = Stream(project, "history")
            query = strip_names(query, self.texts.read(history, lambda file: file.passages.speakers(moment)))
        else:
            query = spelled_out(query)
        vector = embedding.query_vector(query, project)
        self._embed(embedding, project)
        return None if vector is None else VectorQuery(*vector)

    def near_pairs(self, project: str, *, embeds: bool = True) -> list[NearPair]:
        """Return the near pairs of *project* that were found so far, the nearest first; none without an embedder.

        None either while many memories are yet to be added to the search index. The call starts the embedding of the
        project unless *embeds* is False.
        """
        from jidomem.recall.neighbours import near_pairs

        if (embedding := self.embedding) is None or not (embeds or embedding.vectors.has_texts(Stream(project))):
            return []
        self._memory.catch_up(project)
        if embeds:
            self._embed(embedding, project)
        stream, now = Stream(project), self.now()
        try:
            state = self._memory.index.mark(stream.graph), embedding.vectors.near_state(stream)
            if self._near_pairs.get(project, (None, []))[0] != state:
                pairs = self.texts.read_soon(
                    stream, lambda file: near_pairs(file, stream, embedding.vectors, self._memory.index, now)
                )
                self._near_pairs[project] = state, pairs
            return self._near_pairs[project][1]
        except JidomemError:  # the queue is read without them
            return []

    def differing_pairs(self, project: str) -> int:
        """Return the number of near pairs of *project* found so far that differ in a value, of those listed."""
        from jidomem.records.differences import contrast

        pairs, graph = self.near_pairs(project, embeds=False), Stream(project).graph
        rows = {
            item: next((plain_value(text) for _, _, text in self._memory.index.triples(graph, iri(item), _SUMMARY)), "")
            for item in {item for pair in pairs for item in (pair.item, pair.other)}
        }
        return sum(bool(contrast(rows[pair.item], rows[pair.other])) for pair in pairs)

    def contrasts(
        self, project: str, items: Collection[str], valid_at: object = None
    ) -> Mapping[str, Sequence[DifferingMemory]]:
        """Return those of *items* that differ in a value from active memories that say nearly the same, with these.

        Only pairs found so far are known; none without an embedder, and while the search index is built.
        """
        from jidomem.recall.neighbours import contrasts

        stream = Stream(project)
        if not items or (embedding := self.embedding) is None or not embedding.vectors.has_texts(stream):
            return {}
        moment = moment_of(valid_at, "valid_at") or self.now()
        with suppress(JidomemError):
            return self.texts.read_soon(
                stream, lambda file: contrasts(file, stream, embedding.vectors, self._memory.index, moment, items)
            )
        return {}

    def _embed(self, embedding: Embedding, project: str) -> None:
        """Embed the texts of *project* in the background from now on, or for the time that a call may take."""
        if self.embeds_for is None:
            embedding.begin(project)
        elif embedding.error is None and not self.texts.is_being_built(Stream(project)):
            embedding.try_for(project, self.embeds_for)  # after an error, a call does not wait for the embedder again

    def _page_search(
        self, agent: str, project: str, vector: VectorQuery | None
    ) -> tuple[InMemorySearchIndex, VectorQuery | None]:
        """Return the search index of an agent's pages, with the vector query if their vectors are of its embedder."""
        from jidomem.extras.memoryos.job_handlers import Pages

        if (project, agent) not in self._pages:  # if two threads build it at once, one result is dropped
            pages = Pages(self._agents.state, project, agent, self._memory.sources.new_id, self.texts.stemmer)
            self._pages.setdefault((project, agent), pages)
        texts, embedder = self._pages[project, agent].catch_up()
        if vector is None or self.embedding is None or vector.vectors is not self.embedding.vectors:
            return texts, None
        is_same = embedder == self.embedding.vectors.embedder.name
        return texts, vector._replace(vectors=texts) if is_same else None

    def lag(self, project: str) -> dict[str, Any]:
        """Return the state of the vectors as answers show it under `vectors`; empty without an embedder."""
        return {} if self.embedding is None else {"vectors": self.embedding.lag(project)}

    def now(self) -> str:
        """Return the present moment as a timestamp."""
        return format_timestamp(self._memory.sources.now())

    @cached_property
    def texts(self) -> Texts:
        """Return the search index, whose files are below `cache/`."""
        from jidomem.index.search_index import Texts

        return Texts(
            self._memory.settings.root,
            self._memory.journal,
            self._memory.index,
            self._memory.catch_up,
            self._memory.playbook,
        )

    @property
    def embedding(self) -> Embedding | None:
        """Return the embedding task, whose files are below `cache/`; None without an embedder."""
        if "_embedding" not in self.__dict__:  # if two threads build it at once, one result is dropped
            self.__dict__.setdefault("_embedding", self._new_embedding())
        embedding: Embedding | None = self.__dict__["_embedding"]
        return embedding

    @cached_property
    def reranker(self) -> Reranker | None:
        """Return the reranker; None if the user has chosen none."""
        return settings.reranker(self._memory.settings)

    def _new_embedding(self) -> Embedding | None:
        embedder = self._embedder or settings.embedder(self._memory.settings)
        if embedder is None:
            return None
        from jidomem.index.vectors import Embedding

        former, root = settings.former_embedder(embedder), self._memory.settings.root
        vectors = [self._memory.place.vectors(root, self.texts, one) for one in (embedder, former) if one is not None]
        return Embedding(*vectors)

    def close(self) -> None:
        """Close the pages, the vectors and the search index; waits for a batch of vectors, but not for long."""
        for pages in self._pages.values():
            pages.close()
        for name in ("_embedding", "texts"):
            if self.__dict__.get(name) is not None:
                self.__dict__[name].close()
