"""Recall: what is in force and says something of what is asked, by its words or by likeness, the best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import Any

from jidomem.active import ACTIVE, STATES, Inactive
from jidomem.candidate import Ranked
from jidomem.errors import InvalidRequest, NotFound
from jidomem.excerpt import excerpt
from jidomem.index import OxigraphIndex
from jidomem.index.held_texts import Readable
from jidomem.index.kept_words import ENTRY
from jidomem.index.text_file import Within
from jidomem.index.texts import Texts
from jidomem.index.turn_words import TURN
from jidomem.journal.files import Stream
from jidomem.lexical import Counts
from jidomem.moments import parse_moment
from jidomem.query import moment_of
from jidomem.read import item
from jidomem.read.answering import Source, answered
from jidomem.read.entries import own
from jidomem.read.gathering import PAGE, Alike, Asked
from jidomem.read.search import asked_for, search
from jidomem.recall import Found, Hit, Narrowing, RecallRequest
from jidomem.schema import ITEM, Schema
from jidomem.terms import bare
from jidomem.vocab import BASE, CLASS_OF_TYPE, JIDO, REDACTED, TYPE_ALIASES, local_name

#: What says of a memory that it holds no more, and is left out with it.
_TOMBSTONES = frozenset((f"{JIDO}DeletedMarker",))
#: What is no memory that was judged, and is looked through where it is asked for by name.
SPOKEN = {"entry": bare(ENTRY), "turn": bare(TURN), "page": PAGE}
#: property -> what a hit calls its value.
_TOLD = {
    "topic": "topic",
    "rationale": "rationale",
    "detailedExplanation": "detailed_explanation",
    "hasConfidence": "confidence",
    "hasSourceType": "source",
    "hasTaskStatus": "state",
    "hasErrorStatus": "state",
    "decisionStatus": "state",
    "severityLevel": "severity",
    "hasEnforcementLevel": "enforcement_level",
}


class Recalling:
    """What answers recall over the texts of one root."""

    def __init__(
        self,
        texts: Texts,
        index: OxigraphIndex,
        schema: Schema,
        now: str,
        alike: Alike | None = None,
        pages: tuple[Readable, Alike | None] | None = None,
    ) -> None:
        """Search *texts*, asked at the moment *now*, by likeness too where the vectors of what is asked are known.

        *pages* are those of who asks, with what makes likeness to them known, where pages are asked for.
        """
        self._alike = alike
        self._pages = pages
        self._now = now
        self._texts = texts
        self._index = index
        self._schema = schema

    def recall(self, project: str, request: RecallRequest, narrowing: Narrowing) -> Found:
        """Return up to `limit` memories that answer the query; raises InvalidRequest for what is no filter.

        Entries and turns are looked through where `kinds` names them. Where nothing but memories is, and nothing is
        known of likeness, all that holds one of the words is; else the best by words and by likeness are.
        """
        within = self._within(project, request, narrowing)
        stems = asked_for(self._texts.stemmer, request.query)
        if self._alike is None and not any(kind in SPOKEN for kind in narrowing.kinds):
            return self._by_words(project, request, narrowing, within, stems)
        sources = self._sources(project, within, narrowing)
        now = within.moment or self._now
        answer = answered(sources, Asked(request.query, stems, narrowing.about, now, limit=request.limit))
        best = answer.found[: request.limit]
        hits = [hit for one in best if (hit := self._told(project, one, narrowing)) is not None]
        more, question = len(answer.found) > request.limit, answer.question
        said = _metadata(project, question.stems.values(), stems, question.counts, more)
        return Found(request, hits, {**said, "ranking": answer.ranking})

    def inactive(self, project: str, request: RecallRequest, narrowing: Narrowing, found: Found) -> Inactive:
        """Return how many memories that are not active would rank among the entries *found*.

        One that was superseded does not count where its successor is an entry or counts itself.
        """
        if narrowing.include_inactive:
            return Inactive()
        every = self.recall(project, request, replace(narrowing, include_inactive=True, explain=False)).entries
        entries = {hit.id for hit in found.entries}
        hidden = {hit.id: hit for hit in every if hit.id not in entries and _is_inactive(hit)}
        known, as_of = {*entries, *hidden}, narrowing.as_of
        told = [name for name in hidden if not item.has_successor(self._index, project, name, known, as_of)]
        places = {hit.id: place for place, hit in enumerate(every)}
        last = max((places.get(name, len(every)) for name in entries), default=-1)
        statuses = Counter(hidden[name].metadata["status"] for name in told)
        rank = "" if not entries else "better" if all(places[name] < last for name in told) else "further"
        return Inactive(dict(statuses), rank)

    def _sources(self, project: str, within: Within, narrowing: Narrowing) -> list[Source]:
        """Return what is looked through: memories unless other kinds alone are asked for, and what these are in."""
        others = {kind for kind in narrowing.kinds if kind in SPOKEN}
        streams = [] if others and others >= {*narrowing.kinds} else [Stream(project)]
        streams += [Stream(project, "history")] if others - {"page"} else []
        sources = [Source(self._texts, stream, within, self._alike) for stream in streams]
        if "page" in others and self._pages is not None:
            if within.moment is not None:
                hint = "leave as_of out, or page; until=... gives older pages"
                raise InvalidRequest("pages are not kept as of a moment", hint=hint)
            texts, alike = self._pages
            sources.append(Source(texts, Stream(project), replace(within, agents=None), alike))
        return sources

    def _by_words(
        self, project: str, request: RecallRequest, narrowing: Narrowing, within: Within, stems: Mapping[str, str]
    ) -> Found:
        found, looked_for, counts = self._texts.read(
            Stream(project), lambda file: search(file, stems, within, narrowing.about, request.limit + 1)
        )
        told = ((one, {**one.parts, "words": dict(one.words)} if narrowing.explain else None) for one in found)
        every = (self._hit(project, one.match.item, one.score, parts, narrowing) for one, parts in told)
        hits = [hit for hit in islice(every, request.limit) if hit is not None]
        return Found(request, hits, _metadata(project, looked_for, stems, counts, len(found) > request.limit))

    def _within(self, project: str, request: RecallRequest, narrowing: Narrowing) -> Within:
        """Return what is looked through."""
        if request.scope == "session" and request.session_id is None:
            raise InvalidRequest("the scope session needs a session", hint="give session_id, or leave scope out")
        moment, valid_at = moment_of(narrowing.as_of, "as_of"), moment_of(narrowing.valid_at, "valid_at")
        if valid_at is None and not narrowing.include_inactive:
            valid_at = min(moment or self._now, self._now)
        return Within(
            moment=moment,
            inactive=narrowing.include_inactive,
            kinds=self._kinds(narrowing),
            but=frozenset() if narrowing.kinds or narrowing.include_inactive else _TOMBSTONES,
            since=moment_of(narrowing.since, "since"),
            until=moment_of(narrowing.until, "until"),
            valid_at=valid_at,
            agents=_either("agents", narrowing.agent),
            sessions=_both(
                _either("sessions", narrowing.session),
                _either("sessions", request.session_id) if request.scope == "session" else None,
            ),
            own=own(replace(request, agent_id=narrowing.agent or request.agent_id), narrowing.session),
        )

    def _kinds(self, narrowing: Narrowing) -> frozenset[str] | None:
        """Return the classes asked for with all below them, None where none is."""
        if not narrowing.kinds:
            return None
        known = {local_name(cls): cls for cls in sorted(self._schema.subclasses(ITEM))}
        found: set[str] = set()
        for kind in narrowing.kinds:
            if kind in SPOKEN:
                found.add(SPOKEN[kind])
                continue
            name = CLASS_OF_TYPE.get(TYPE_ALIASES.get(kind, kind), local_name(kind))
            if name not in known:
                near = get_close_matches(kind, [*CLASS_OF_TYPE, *known, *SPOKEN], n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(CLASS_OF_TYPE)}"
                raise InvalidRequest(f"{kind!r} is no kind of memory", hint=hint)
            found.update(map(bare, self._schema.subclasses(known[name])))
        return frozenset(found)

    def _told(self, project: str, found: Ranked, narrowing: Narrowing) -> Hit | None:
        """Return what is told of a candidate; None for a memory that this process has not yet heard of."""
        one, parts = found.candidate, dict(found.parts) if narrowing.explain else None
        if one.kind == "memory":
            return self._hit(project, one.passage.item, found.score, parts, narrowing)
        said = one.passage
        metadata = {"kind": one.kind, "status": "asserted", "recorded_at": parse_moment(one.recorded),
                    "time": parse_moment(said.said_at), "said_at": parse_moment(said.said_at),
                    "speakers": list(said.speakers), "about": []}  # fmt: skip
        agent = local_name(one.agent) if one.agent.startswith(BASE) else one.agent
        session = local_name(one.session) if one.session.startswith(BASE) else one.session
        return Hit(id=said.item, agent_id=agent or "unknown", session_id=session or None, score=found.score,
                   content=said.text or said.item, metadata=metadata, parts=parts)  # fmt: skip

    def _hit(
        self, project: str, name: str, score: float, parts: Mapping[str, Any] | None, narrowing: Narrowing
    ) -> Hit | None:
        """Return what is told of a memory that was found; None where this process has not yet heard of it."""
        try:
            told = item.get(self._index, project, name, narrowing.as_of, now=lambda: self._now)
        except NotFound:
            return None
        said = {name: values[0] for name, values in told["properties"].items() if values}
        metadata: dict[str, Any] = {
            "kind": told["type"] or told["class"],
            "status": told["status"],
            "recorded_at": told["recorded_at"],
            "time": said.get("hasTimestamp"),
            "about": told["properties"].get("about", []),
        }
        for property_, called in _TOLD.items():
            if property_ in said:
                is_term = str(said[property_]).startswith(JIDO)
                metadata[called] = local_name(said[property_]) if is_term else said[property_]
        metadata |= {end: told[end] for end in ("superseded_by", "invalidated_by") if told[end]}
        agent, session = (local_name(said[by]) if by in said else None for by in ("assertedBy", "assertedIn"))
        content = str(said.get("summary") or REDACTED)
        return Hit(id=name, agent_id=agent or "unknown", session_id=session, content=content,
                   excerpt=excerpt(told["properties"]), score=score, metadata=metadata, parts=parts)  # fmt: skip


def _is_inactive(hit: Hit) -> bool:
    return hit.metadata["status"] in STATES and hit.metadata["status"] != ACTIVE


def _metadata(project: str, words: Iterable[str], stems: Iterable[str], counts: Counts, more: bool) -> dict[str, Any]:
    """Return what an answer says of the asking."""
    unknown = [stem for stem in stems if not counts.holding.get(stem)]
    return {"project": project, "words": [*words], "unknown_words": unknown, "memories": counts.memories, "more": more}


def _either(folder: str, name: str | None) -> frozenset[str] | None:
    """Return the name of an agent or session as entries say it, and the IRI it stands for; None for None."""
    if name is None:
        return None
    return frozenset([name, name if name.startswith((BASE, "urn:", "http")) else f"{BASE}{folder}/{name}"])


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """Return what is in both, None standing for everything."""
    return (one & other) if one is not None and other is not None else one if other is None else other
