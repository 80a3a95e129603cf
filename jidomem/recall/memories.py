"""The recall of memories, entries and conversation turns: active ones that match by words or by vectors.

The explanation of a hit has one line in plain words for each signal of its ranking, and one for its score.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from jidomem.base.clock import parse_moment
from jidomem.base.words import TELL_LITTLE, answer_sentences, misspelling_of, quoted_name, slug
from jidomem.errors import InvalidRequest, NotFound, Violation
from jidomem.index.results import Solutions
from jidomem.index.search_documents import ENTRY, TURN, namespace
from jidomem.index.search_index import Readable, Texts, TextsSoFar
from jidomem.index.search_tables import OwnerFilter, SearchFilter
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Term, date_time, iri, plain_value
from jidomem.rdf.vocab import BASE, CLASS_OF_TYPE, GUIDE_TYPES, JIDO, MARKER, REDACTED, jido, local_name
from jidomem.read import memory_detail
from jidomem.read.named_queries import resolve_name
from jidomem.recall.bm25 import search, search_weights, significant_stems, stems_among, total_weight
from jidomem.recall.candidates import CLOSELY, PAGE, QueryCache, RecallQuery, VectorQuery, matching_excerpt
from jidomem.recall.question import ROLES, WITHOUT_SUBJECT, DateRange, identifiers, spoken_of
from jidomem.recall.ranking import (
    AFTER,
    BEFORE,
    LONGEST_TEXT,
    USUAL,
    WORDS,
    RankingSource,
    SourceRanking,
    calibration,
    day_of,
    days_of,
    names_time,
    rank_sources,
)
from jidomem.records.active import ACTIVE, ENDED, OUTCOME, REJECTED, STATES, Inactive
from jidomem.records.entry import Entry
from jidomem.records.interfaces import NAMESPACE, CorpusStats
from jidomem.records.named_query import moment_of
from jidomem.records.recall import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    NOT_COMPARED,
    OTHER_SESSIONS,
    Candidate,
    Hit,
    MemoryRecall,
    Question,
    Ranked,
    RecallFilters,
    RecallRequest,
    ScoredPassage,
    newest_first,
)
from jidomem.schema.ontology import ITEM, Schema

#: The class of entries, as a filter of the search.
ENTRIES = frozenset([plain_value(ENTRY)])
_ALL_ENTRIES = SearchFilter(inactive=True, kinds=ENTRIES)
#: field -> its property.
_FIELDS = {"id": "entryId", "agent_id": "agentId", "content": "entryText", "session_id": "sessionId",
           "metadata": "entryMetadata"}  # fmt: skip
_FIELD_OF = {jido(name): field for field, name in _FIELDS.items()}
_KNOWN = "FILTER(?at <= %s)"
_BY_THEN = "FILTER EXISTS { ?newer jido:recordedAt ?then FILTER(?then <= %s) }"
_ENTRIES_QUERY = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?id ?agent ?text ?session ?metadata WHERE {
  ?entry jido:entryId ?id ; jido:agentId ?agent ; jido:entryText ?text ; jido:recordedAt ?at . %s
  OPTIONAL { ?entry jido:sessionId ?session }
  OPTIONAL { ?entry jido:entryMetadata ?metadata }
  FILTER NOT EXISTS { ?newer jido:replaces ?entry %s }
} ORDER BY ?at ?entry
"""


class Recalled(NamedTuple):
    """The recalled entries, in order; `scores`, `parts` and, if requested, `reasons` are those of the matching entries,
    by IRI.
    """

    entries: Mapping[str, Entry]
    scores: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    reasons: Mapping[str, Sequence[str]]
    ranking: str


class Entries:
    """The reader of the entries of one project."""

    def __init__(self, project: str, texts: Texts, index: OxigraphIndex) -> None:
        self._stream = Stream(project, "history")
        self._texts = texts
        self._index = index

    def recall(
        self, request: RecallRequest, within: SearchFilter, now: str, alike: VectorQuery | None, *, explains: bool
    ) -> Recalled:
        """Return up to `limit` entries *within* the filter: the matching ones, best first, then the newest.

        *now* is the moment of the query, *alike* the vector query, if there is one; with *explains* the matching ones
        have reasons.
        """
        answer = self.ranked(request, within, now, alike)
        best = {one.found.candidate.passage.item: one for one in answer.ranked[: request.limit]}
        newest = self._texts.read(self._stream, lambda file: file.newest(within, request.limit))
        names = dict.fromkeys([*best, *newest])
        entries = {name: entry for name in names if (entry := self.entry(iri(name))) is not None}
        chosen = dict(islice(entries.items(), request.limit))
        known = {name: best[name] for name in chosen if name in best}
        scores = {name: one.score for name, one in known.items()}
        reasons = {name: explain(*one) for name, one in known.items() if explains}
        return Recalled(chosen, scores, {name: one.found.parts for name, one in known.items()}, reasons, answer.ranking)

    def ranked(self, request: RecallRequest, within: SearchFilter, now: str, near: VectorQuery | None) -> SourceRanking:
        """Return the ranking of the matching entries *within* the filter; the arguments are those of `recall`."""
        stems = stems_among(self._texts, self._stream, self._texts.stemmer, request.query, within.moment)
        query = RecallQuery(request.query, stems, (), now, limit=request.limit)
        return rank_sources([RankingSource(self._texts, self._stream, within, near)], query)

    def all_entries(self, moment: str | None) -> list[Entry]:
        """Return the entries of all agents, oldest first; with a *moment*, as of that moment."""
        clauses = ("", "") if moment is None else (_KNOWN % date_time(moment), _BY_THEN % date_time(moment))
        answer = self._index.query(_ENTRIES_QUERY % clauses, graphs=[self._stream.graph])
        assert isinstance(answer, Solutions)
        entries: dict[str, Entry] = {}
        for row in answer.rows:
            entry = _entry(
                {field: plain_value(term) for field, term in zip(_FIELDS, row, strict=True) if term is not None}
            )
            entries.pop(entry.id, None)  # if branches wrote two entries with one id, the newer one counts
            entries[entry.id] = entry
        return [*entries.values()]

    def entry(self, node: Term) -> Entry | None:
        """Return one entry, or None if *node* is no entry or was redacted."""
        rows = self._index.triples(self._stream.graph, node)
        fields = {_FIELD_OF[predicate]: plain_value(value) for _, predicate, value in rows if predicate in _FIELD_OF}
        return _entry(fields) if {"id", "agent_id", "content"} <= fields.keys() else None


def _entry(fields: Mapping[str, str]) -> Entry:
    """Return the entry with these fields, of which metadata is JSON."""
    return Entry(**{**fields, "metadata": json.loads(fields.get("metadata", "{}"))})


def other_sessions(texts: Readable, stream: Stream, within: SearchFilter) -> dict[str, dict[str, int]]:
    """Return the number of entries in each session that the filter leaves out, as metadata; empty without one.

    *within* has the entries of one owner in some sessions.
    """
    if within.own is None or within.own.sessions is None:
        return {}
    every = within._replace(kinds=within.own.kinds, own=within.own._replace(sessions=None), valid_at=None)
    counts = texts.read(stream, lambda file: file.names("session", every))
    left = {name: count for name, count in counts.items() if name not in within.own.sessions}
    return {OTHER_SESSIONS: left} if left else {}


def own(
    request: RecallRequest, *others: str | None, every: bool = False, agents: frozenset[str] = frozenset()
) -> OwnerFilter:
    """Return the filter of entries for the scope of the request; with *every*, entries of all sessions.

    *others* are further sessions beside that of the request, *agents* its agent in other spellings.
    """
    named = frozenset(filter(None, (request.session_id, *others)))
    sessions = named if request.scope == "session" else named | {""}
    place = namespace(request.metadata[NAMESPACE]) if NAMESPACE in request.metadata else None
    agents |= {request.agent_id}
    return OwnerFilter(ENTRIES, agents, None if every and request.scope == "agent" else sessions, place)


#: The classes of withdrawal markers; they are left out with the memory.
_TOMBSTONES = frozenset((JIDO + MARKER,))
#: The kinds other than memories, which are searched only if requested by name.
SPOKEN = {"entry": plain_value(ENTRY), "turn": plain_value(TURN), "page": PAGE}
#: Property -> the name of its value in a hit.
_FIELD_NAMES = {
    "topic": "topic", "rationale": "rationale", "detailedExplanation": "detailed_explanation",
    "hasConfidence": "confidence", "hasSourceType": "source", "hasTaskStatus": "state", "hasErrorStatus": "state",
    "decisionStatus": "state", "severityLevel": "severity", "hasEnforcementLevel": "enforcement_level",
    "expiresOn": "due", "validUntil": "until",
}  # fmt: skip


class _Place(NamedTuple):
    """A result with its score, the parts of the score, their explanation if requested, and its candidate in ranked
    recall.
    """

    name: str
    score: float
    parts: Mapping[str, Any]
    reasons: tuple[str, ...] | None = None
    candidate: Candidate | None = None


class _Ranking(NamedTuple):
    """The best matches in order, the weights of the stems of the question, and the metadata of the answer."""

    best: Sequence[_Place]
    weights: Mapping[str, float]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RootRecall:
    """The recall over the texts of one root, at the moment `now`.

    `alike` has the vectors of the query, if known. `pages` are those of the user of the query, with their vectors, if
    pages are requested. `caches` are shared by the rankings of one recall.
    """

    texts: TextsSoFar
    index: OxigraphIndex
    schema: Schema
    now: str
    alike: VectorQuery | None = None
    pages: tuple[Readable, VectorQuery | None] | None = None
    caches: dict[Hashable, QueryCache] = field(default_factory=dict)

    def recall(self, project: str, request: RecallRequest, filters: RecallFilters) -> MemoryRecall:
        """Return up to `limit` memories that answer the query; raises InvalidRequest for an invalid filter, and
        NotFound for an unknown session.

        Entries and turns are searched if `kinds` names them. If only memories are searched and there are no vectors,
        all that contain a word of the query are candidates; else the best by words and by similarity are.
        """
        within = self._within(project, request, filters)
        ranking = self._ranking(project, request, filters, within)
        hits = [(one.candidate.passage.words if one.candidate else one.parts["words"], hit) for one in ranking.best
                if (hit := self._hit(project, one, ranking.weights, filters)) is not None]  # fmt: skip
        metadata = {**ranking.metadata}
        if "entry" in filters.kinds and filters.session is None and request.scope == "agent":
            metadata |= other_sessions(self.texts, Stream(project, "history"), within)
        is_of_time = names_time(request.query, self.now)  # then the newest is not wanted
        return MemoryRecall(request, [hit for _, hit in hits] if is_of_time else newest_first(hits), metadata)

    def inactive(self, project: str, request: RecallRequest, filters: RecallFilters, hits: MemoryRecall) -> Inactive:
        """Return the inactive memories that would rank among the entries of *hits*, or among the first
        DEFAULT_LIMIT, with at least its `min_score`.

        Ranks are those of one ranking of active and inactive memories. A superseded memory does not count if its
        successor is an entry or is counted.
        """
        if filters.include_inactive:
            return Inactive()
        entries = [hit.id for hit in hits.entries]
        if _is_of_talk(filters.kinds):  # only memories have such a status
            return Inactive(better=0 if entries else None)
        ranking = self._ranking_with_inactive(project, request, filters, {*entries})
        names = [one.name for one in ranking.best]
        reaching = {one.name for one in ranking.best if one.score >= hits.metadata["min_score"]}
        places = {name: place for place, name in enumerate(names)}
        ranks = [places.get(name, len(names)) for name in entries]
        most = max((*(rank + 1 for rank in ranks), request.limit, DEFAULT_LIMIT))
        others = [one.name for one in ranking.best[:most] if one.name in reaching and one.name not in entries
                  and not (one.candidate and one.candidate.is_active)]  # fmt: skip
        statuses = {name: self._status(project, name, filters) for name in others}
        hidden = {name: status for name, status in statuses.items() if status in STATES and status != ACTIVE}
        known, as_of = {*entries, *hidden}, filters.as_of
        counted = [name for name in hidden if not memory_detail.has_successor(self.index, project, name, known, as_of)]
        better = sum(places[name] < min(ranks) for name in counted) if entries else None
        likely = {one.name for one in ranking.best if one.score >= LEAST_NAMED}
        ends = [name for name in counted if name in likely and hidden[name] in (*ENDED, REJECTED)]
        ended = (memory_detail.ended_decision(self.index, project, name, as_of) for name in ends)
        decision = next(filter(None, ended), None)
        return Inactive(dict(Counter(hidden[name] for name in counted)), better, decision)

    def _ranking_with_inactive(
        self, project: str, request: RecallRequest, filters: RecallFilters, entries: Set[str]
    ) -> _Ranking:
        """Return the best of all memories, active or not, down to the last of *entries*; none if all are active."""
        wide = replace(filters, include_inactive=True, explain=False)
        active, within = (self._within(project, request, each) for each in (filters, wide))
        limit = max(request.limit, DEFAULT_LIMIT)
        while self.alike is not None and 4 * limit < CLOSELY:  # up to there a ranking is the same, and only longer
            limit *= 4
        while True:
            ranking = self._ranking(project, replace(request, limit=limit), wide, within, active)
            names = {one.name for one in ranking.best}
            if entries <= names or not ranking.metadata["more"] or limit == LARGEST_LIMIT:
                return ranking
            limit = min(4 * limit, LARGEST_LIMIT)

    def _status(self, project: str, name: str, filters: RecallFilters) -> str | None:
        if ":" not in name:  # a page of MemoryOS has an id, not an IRI
            return None
        with suppress(NotFound):
            return str(self._load(project, name, filters)["status"])
        return None

    def _load(self, project: str, name: str, filters: RecallFilters) -> dict[str, Any]:
        """Return a memory as known at `as_of`, valid at `valid_at`; raises NotFound if there is none."""
        moments = filters.as_of, filters.valid_at
        return memory_detail.load_memory(self.index, project, name, *moments, now=lambda: self.now)

    def _ranking(
        self,
        project: str,
        request: RecallRequest,
        filters: RecallFilters,
        within: SearchFilter,
        active: SearchFilter | None = None,
    ) -> _Ranking:
        """Return up to `limit` names that answer the query, the best first; none if all pass the filter *active*."""
        sources = self._sources(project, within, filters)
        texts, stream = (sources[0].texts, sources[0].stream) if sources else (self.texts, Stream(project))
        stems = stems_among(texts, stream, self.texts.stemmer, request.query, within.moment)
        now = within.moment or self.now
        query = RecallQuery(
            request.query, stems, filters.about, now, limit=request.limit, active=active, caches=self.caches
        )
        rankings = list[_Ranking]()
        if self.alike is None and not (names_time(request.query, now) or identifiers(request.query)):
            spoken = [one for one in sources if one.stream != Stream(project) or one.texts is not self.texts]
            if len(spoken) < len(sources):
                rankings.append(self._by_words(project, request, filters, within, stems))
            sources = spoken
        if sources:
            rankings.append(self._by_features(project, request, sources, query, filters.explain))
        return rankings[0] if len(rankings) == 1 else _merged(rankings, request.limit)

    def _by_features(
        self, project: str, request: RecallRequest, sources: Sequence[RankingSource], query: RecallQuery, explains: bool
    ) -> _Ranking:
        answer = rank_sources(sources, query)
        best = [
            _Place(one.found.candidate.passage.item, one.score, one.found.parts, explain(*one) if explains else None,
                   one.found.candidate)
            for one in answer.ranked[: request.limit]
        ]  # fmt: skip
        question, more = answer.question, len(answer.ranked) > request.limit
        metadata = _metadata(project, question.stems.values(), query.stems, question.counts, more)
        passages = [one.found.candidate.passage for one in answer.ranked[: request.limit]]
        pending = [each.item for each in passages if each.cosine is None and each.words and question.has_vectors]
        metadata |= {NOT_COMPARED: pending} if pending else {}
        return _Ranking(best, _weights(query.stems, question.counts), {**metadata, "ranking": answer.ranking})

    def _sources(self, project: str, within: SearchFilter, filters: RecallFilters) -> list[RankingSource]:
        """Return the sources to search: memories, unless only other kinds are requested, and those of other kinds."""
        others = {kind for kind in filters.kinds if kind in SPOKEN}
        streams = [] if _is_of_talk(filters.kinds) else [Stream(project)]
        streams += [Stream(project, "history")] if others - {"page"} else []
        sources = [RankingSource(self.texts, stream, within, self.alike) for stream in streams]
        if "page" in others and self.pages is not None:
            if within.moment is not None:
                hint = "leave as_of out, or page; until=... gives older pages"
                raise InvalidRequest("pages have no past states", hint=hint)
            texts, alike = self.pages
            sources.append(RankingSource(texts, Stream(project), within._replace(agents=None), alike))
        return sources

    def _by_words(
        self, project: str, request: RecallRequest, filters: RecallFilters, within: SearchFilter, stems: dict[str, str]
    ) -> _Ranking:
        matches, looked_for, counts = self.texts.read(
            Stream(project), lambda file: search(file, stems, within, filters.about, request.limit + 1)
        )
        terms, best = {stem: stems[stem] for stem in significant_stems(stems)}, list[_Place]()
        line = calibration(WORDS, has_vectors=False, memories=counts.memories)
        total = total_weight(terms, counts)
        if TELL_LITTLE.issuperset(terms.values()):  # no subject: the least score, in the order of the matches
            line, total = calibration(WORDS, has_vectors=False), inf
        for one in matches[: request.limit]:
            score = line.probability(one.score / total)
            reasons = None
            if filters.explain:
                reasons = (*words_lines(terms, one.words, counts), *feature_lines(one.parts), score_line(score))
            best.append(_Place(one.match.item, score, {**one.parts, "words": dict(one.words)}, reasons))
        metadata = _metadata(project, looked_for, stems, counts, len(matches) > request.limit)
        return _Ranking(best, _weights(stems, counts), metadata)

    def _within(self, project: str, request: RecallRequest, filters: RecallFilters) -> SearchFilter:
        if request.scope == "session" and request.session_id is None:
            raise InvalidRequest("the scope session needs a session", hint="give session_id, or leave scope out")
        moment, valid_at = moment_of(filters.as_of, "as_of"), moment_of(filters.valid_at, "valid_at")
        since, until = moment_of(filters.since, "since"), moment_of(filters.until, "until")
        if since is not None and until is not None and since >= until:
            raise InvalidRequest(
                f"since={filters.since} is not before until={filters.until}: nothing is recorded between them",
                hint="give the earlier moment as since",
            )
        if valid_at is None and not filters.include_inactive:
            valid_at = min(moment or self.now, self.now)
        agent, spellings = filters.agent or request.agent_id, frozenset[str]()
        if "entry" in filters.kinds:
            names = self.texts.read(Stream(project, "history"), lambda file: file.names("agent", _ALL_ENTRIES))
            spellings = frozenset(one for one in names if slug(one) == slug(agent.removeprefix(f"{BASE}agents/")))
        return SearchFilter(
            moment=moment,
            inactive=filters.include_inactive,
            kinds=self._kinds(filters),
            but=frozenset() if filters.kinds or filters.include_inactive else _TOMBSTONES,
            since=since,
            until=until,
            valid_at=valid_at,
            agents=(by := _agents(filters.agent)) and by | spellings,
            sessions=_both(
                None if filters.session is None else self._session(project, filters.session),
                _either("sessions", request.session_id) if request.scope == "session" else None,
            ),
            own=own(replace(request, agent_id=agent), filters.session, agents=spellings),
        )

    def _session(self, project: str, name: str) -> frozenset[str]:
        """Return the name of a session as entries have it, and its IRI; raises NotFound for an unknown one."""
        return frozenset(
            [name, resolve_name(self.index, project, "sessions", name), *(_either("sessions", name) or ())]
        )

    def _kinds(self, filters: RecallFilters) -> frozenset[str] | None:
        """Return the requested classes with their subclasses, or None if none is requested."""
        if not filters.kinds:
            return None
        kinds = {SPOKEN[kind] for kind in filters.kinds if kind in SPOKEN}
        for kind in (kind for kind in filters.kinds if kind not in SPOKEN):
            if (cls := self.schema.kind_named(kind)) is None:
                names = [*CLASS_OF_TYPE, *map(local_name, self.schema.subclasses(ITEM)), *SPOKEN]
                near = misspelling_of(kind.lower(), names)
                usual = ", ".join([GUIDE_TYPES[0], *GUIDE_TYPES[6:], *SPOKEN])
                hint = f"did you mean {near!r}?" if near else f"there are {usual} and others: jidomem ontology show"
                message = f"{kind!r:.200} is not a kind of memory"
                fault = Violation("invalid_argument", message, field="kinds", value=kind, nearest=near, hint=hint)
                raise InvalidRequest(message, hint=hint, violations=(fault,))
            kinds.update(map(plain_value, self.schema.subclasses(cls)))
        return frozenset(kinds)

    def _hit(self, project: str, one: _Place, weights: Mapping[str, float], filters: RecallFilters) -> Hit | None:
        """Return the hit of a result, or None for a memory that this process has not yet read from the journal."""
        if one.candidate is None or one.candidate.kind == "memory":
            return self._memory(project, one, weights, filters)
        passage, recorded = one.candidate.passage, parse_moment(one.candidate.recorded)
        metadata = {"kind": one.candidate.kind, "status": "asserted", "recorded_at": recorded,
                    "time": parse_moment(passage.said_at), "said_at": parse_moment(passage.said_at),
                    "speakers": list(passage.speakers), "about": []}  # fmt: skip
        agent, session = (
            local_name(name) if name.startswith(BASE) else name for name in (one.candidate.agent, one.candidate.session)
        )
        return Hit(id=one.name, agent_id=agent or "unknown", session_id=session or None, score=one.score,
                   content=passage.text or one.name, metadata=metadata,
                   parts=dict(one.parts) if filters.explain else None, reasons=one.reasons)  # fmt: skip

    def _memory(self, project: str, one: _Place, weights: Mapping[str, float], filters: RecallFilters) -> Hit | None:
        """Return the hit of a memory; *weights* of the question choose the sentences of the excerpt."""
        try:
            memory = self._load(project, one.name, filters)
        except NotFound:
            return None
        properties = {name: values[0] for name, values in memory["properties"].items() if values}
        metadata: dict[str, Any] = {
            "kind": memory["type"] or memory["class"],
            "status": memory["status"],
            "recorded_at": memory["recorded_at"],
            "time": properties.get("hasTimestamp"),
            "about": memory["properties"].get("about", []),
        }
        for property_, called in _FIELD_NAMES.items():
            if property_ in properties:
                is_term = str(properties[property_]).startswith(JIDO)
                metadata[called] = local_name(properties[property_]) if is_term else properties[property_]
        metadata |= {end: memory[end] for end in ("superseded_by", "invalidated_by") if memory[end]}
        if outcome := memory_detail.outcome(self.index, project, one.name, filters.as_of):
            metadata[OUTCOME] = outcome
        agent, session = (
            local_name(properties[by]) if by in properties else None for by in ("assertedBy", "assertedIn")
        )
        content = str(properties.get("summary") or REDACTED)
        return Hit(id=one.name, agent_id=agent or "unknown", session_id=session, content=content,
                   excerpt=self._excerpt(memory["properties"], weights), score=one.score, metadata=metadata,
                   parts=dict(one.parts) if filters.explain else None, reasons=one.reasons)  # fmt: skip

    def _excerpt(self, properties: Mapping[str, Sequence[object]], weights: Mapping[str, float]) -> str:
        sentences = answer_sentences(properties)
        stems = [{stem for _, stem in each} for each in self.texts.stemmer.stems_of_each(sentences)]
        return matching_excerpt(sentences, stems, weights)


def _is_of_talk(kinds: Collection[str]) -> bool:
    """Return whether all *kinds*, one at least, are others than memories."""
    return bool(kinds) and SPOKEN.keys() >= {*kinds}


def _merged(rankings: Sequence[_Ranking], limit: int) -> _Ranking:
    """Return one ranking of memories by words and of other texts by features, by their scores."""
    every = [*merge(*(one.best for one in rankings), key=lambda place: -place.score)]
    details = [one.metadata for one in rankings]
    unknown = [word for word in details[0]["unknown_words"] if all(word in each["unknown_words"] for each in details)]
    metadata = {
        **details[0], **details[-1], "unknown_words": unknown,
        "words": [*dict.fromkeys(word for each in details for word in each["words"])],
        "memories": sum(each["memories"] for each in details),
        "more": len(every) > limit or any(each["more"] for each in details),
    }  # fmt: skip
    weights = {stem: weight for one in rankings for stem, weight in one.weights.items()}
    return _Ranking(every[:limit], weights, metadata)


def _weights(stems: Mapping[str, str], counts: CorpusStats) -> dict[str, float]:
    """Return the weight of each of *stems* that helps to choose sentences, without the words in TELL_LITTLE."""
    weights = search_weights(stems, counts)
    return {stem: weight for stem, weight in weights.items() if stems[stem] not in TELL_LITTLE}


def _metadata(
    project: str, words: Iterable[str], stems: Mapping[str, str], counts: CorpusStats, more: bool
) -> dict[str, Any]:
    unknown = [word for stem, word in stems.items() if not counts.holding.get(stem) and word not in WITHOUT_SUBJECT]
    return {"project": project, "words": [*words], "unknown_words": unknown, "memories": counts.memories, "more": more}


def _either(folder: str, name: str | None) -> frozenset[str] | None:
    """Return the name of an agent or session as entries have it, and its IRI; None for None."""
    if name is None:
        return None
    return frozenset([name, name if name.startswith((BASE, "urn:", "http")) else f"{BASE}{folder}/{name}"])


def _agents(name: str | None) -> frozenset[str] | None:
    """Return the names and the IRI that an agent has as author, asker or answerer; None for None."""
    if name is None or ":" in name:
        return _either("agents", name)
    return frozenset([name, slug(name), f"{BASE}agents/{name}", f"{BASE}agents/{slug(name)}"])


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """Return the intersection; None stands for everything."""
    return (one & other) if one is not None and other is not None else one if other is None else other


#: The most words that a line names; the share of the texts up to which a word is rare, and the fewest texts for that.
MOST_NAMED, RARE, ENOUGH = 8, 0.05, 20
#: The least score of an ended decision that is named.
LEAST_NAMED = 0.1
#: Shares of hits that are stated as such; a smaller share is 1 in a number.
_SHARES = ((1, 5), (1, 4), (1, 3), (2, 5), (1, 2), (3, 5), (2, 3), (3, 4), (4, 5), (9, 10))
#: Feature -> its line, for the features that a candidate has or has not.
_SENTENCES: Mapping[str, str] = {
    "reply": "reply: the turn before asks a question with words of yours",
    "gives_time": "answer: it contains a time, as a question about a time needs",
    "gives_number": "answer: it contains a number, as a question about a number needs",
    "itself": "first person: it begins with a statement about the speaker",
    "asks": "question: lowered, as it asks",
    "instruction": "instruction: a standing one, and you ask for help",
    "told": "speaker: a person, not the assistant",
    "answered": "speaker: the assistant, about whose answers you ask",
    "other_kind": "kind: lowered, as you ask for a decision and it is none",
    "choice": "kind: a decision or convention, and you ask what to use or do",
    "exact": "code: it has the one that you name",
    "lacks": "code: lowered, as it lacks the one that you name",
    "recent": "recent: newer texts of this kind rank higher",
    "about": "file: it is about a file that you named",
    "repeated": "conversation: lowered, as a better text of the same conversation is above it",
    "superseded": "superseded: it ranks behind the memory that replaced it",
}


def explain(one: Ranked, score: float, question: Question) -> tuple[str, ...]:
    """Return the lines for a ranked candidate with this *score*."""
    names = {part.casefold() for name in question.speakers if name.casefold() not in ROLES for part in name.split()}
    text, known = question.text.casefold(), {**question.stems, **question.unknown}
    known = dict(sorted(known.items(), key=lambda item: text.find(item[1])))
    terms = {stem: word for stem, word in known.items() if word not in names} or known
    lines = [
        *words_lines(terms, one.candidate.passage.words, question.counts),
        _meaning(one.candidate.passage, question),
        *_neighbours(one, terms),
        *_speaker(one, question),
        *_time(one, question),
        *feature_lines(one.parts),
        score_line(score),
    ]
    return tuple(lines)


def words_lines(terms: Mapping[str, str], matched: Collection[str], counts: CorpusStats) -> Iterator[str]:
    """Yield the line of the words: *terms* maps the stems of the question to its words, *matched* are stems."""
    if not terms:
        return
    most = RARE * counts.memories if counts.memories >= ENOUGH else 0
    present = [word + " (rare)" * (counts.holding.get(stem, 0) <= most) for stem, word in terms.items()
               if stem in matched]  # fmt: skip
    absent = [word for stem, word in terms.items() if stem not in matched and counts.holding.get(stem)]
    unknown = [word for stem, word in terms.items() if stem not in matched and not counts.holding.get(stem)]
    head = f"words: {len(present) or 'none'} of {len(terms)} word{'s' * (len(terms) != 1)} of the question"
    lists = [(f"{head}: " if present else head, present), ("not in this text: ", absent), ("in no text: ", unknown)]
    yield "; ".join(f"{title}{_listed(words)}" for title, words in lists if words or title == head)


def feature_lines(parts: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of the features in *parts* that a candidate has or has not."""
    yield from (line for name, line in _SENTENCES.items() if parts.get(name))


def score_line(score: float) -> str:
    """Return the line of a score.

    >>> score_line(0.46), score_line(0.08)
    ('score 0.46: about 1 in 2 hits like this answers', 'score 0.08: about 1 in 12 hits like this answers')
    """
    count, of = min(_SHARES, key=lambda share: abs(share[0] / share[1] - score))
    if score < _SHARES[0][0] / _SHARES[0][1]:
        count, of = 1, round(1 / max(score, 0.001))
    share = f"about {count} in {of:,} hits like this answer{'s' * (count == 1)}"
    return f"score {score:.2g}: {'nearly every hit like this answers' if score > 0.95 else share}"


def _listed(words: Sequence[str]) -> str:
    rest = len(words) - MOST_NAMED
    return ", ".join(words[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _meaning(passage: ScoredPassage, question: Question) -> str:
    if passage.cosine is None:
        missing = f"this text has no vector yet; its words count as a cosine of {max(passage.expected, USUAL):.2f}"
        return f"meaning: not compared, as {missing if question.has_vectors else 'there are no vectors'}"
    near = f", no more than for any text (up to {USUAL})" if passage.cosine <= USUAL else ""
    return f"meaning: cosine {passage.cosine:.2f} to the question{near}"


def _neighbours(one: Ranked, terms: Mapping[str, str]) -> Iterator[str]:
    """Yield the line of the texts around a candidate, if they add words or similarity."""
    passage, before, after = one.candidate.passage, one.candidate.before, one.candidate.after
    stems = {stem for each in (*before[:BEFORE], *after[:AFTER]) for stem in each.words} - {*passage.words}
    words = [word for stem, word in terms.items() if stem in stems] if "coverage_around" in one.parts else []
    near = [each.cosine for each in (*before, *after) if each.cosine is not None]
    closest = max(near, default=0.0) if "likeness_around" in one.parts else 0.0
    signs = [f"words: {_listed(words)}"] if words else []
    signs += [f"meaning: cosine up to {closest:.2f}"] if closest > USUAL else []
    if signs:
        yield f"neighbours in the session: {'; '.join(signs)}"


def _speaker(one: Ranked, question: Question) -> Iterator[str]:
    names = [name for name in one.candidate.passage.speakers if name in question.speakers]
    if one.parts.get("speaker") and names:
        yield f"speaker: {quoted_name(names[0])}, named in the question"


def _time(one: Ranked, question: Question) -> Iterator[str]:
    """Yield the line of the time that the question names, next to the time of the candidate or in its text."""
    passage, now = one.candidate.passage, day_of(question.now)
    day = day_of(passage.said_at)
    years = [each.year for each in (day, now) if each is not None]
    days = [*map(days_of, question.spans)] or spoken_of(question.text, now, dict.fromkeys(years))
    days = days if "date" in one.parts else []
    if not days:
        return
    spans = spoken_of(passage.text[:LONGEST_TEXT], day) if "event" in one.parts else []
    named = next((span for span in spans for each in days if each.shared(span)), None)
    is_lowered = one.parts.get("other_time", 0.0) < 0
    if named is not None:
        off_subject = ", but not all of its subject: lowered" if is_lowered else ""
        yield f"time: its text names {_dates(named)}, as the question does{off_subject}"
    elif day is not None:
        nearest = min(days, key=lambda each: abs(each.days_from(day)))
        away = nearest.days_from(day)
        distance = f"{abs(away):,} day{'s' * (abs(away) != 1)} {'after' if away > 0 else 'before'} the time in the"
        off_subject = ", but not all of its subject" if not away else ""
        lowered = f"{off_subject}: lowered" if is_lowered else ""
        yield f"time: of {day}, {distance if away else 'in the time of the'} question ({_dates(nearest)}){lowered}"


def _dates(span: DateRange) -> str:
    return f"{span.first}" if span.first == span.last else f"{span.first} to {span.last}"
