"""The retrieval of the tiers for a question, with a score for each result, and the heat of segments. Pure.

`retrieve` changes nothing. `touch_segments` warms the segments of a retrieval, and `maintain` cools and evicts
segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from jidomem.base.clock import format_timestamp
from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.config import MemoryOSConfig, ValidatedModel, Vector
from jidomem.extras.memoryos.segments import TierPolicy, keywords_of
from jidomem.extras.memoryos.values import (
    UNNAMED,
    USER,
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectKey,
    ObjectPersona,
    SystemEntry,
    SystemMemory,
    Tiers,
    TraitEntry,
    key_of,
    stepped,
)
from jidomem.records.directive import MemoryUpsert, Step, UpsertItem
from jidomem.records.interfaces import Known

E = TypeVar("E", KnowledgeEntry, TraitEntry)
T = TypeVar("T", DialoguePage, DialogueSegment, KnowledgeEntry, TraitEntry, SystemEntry)


@dataclass(frozen=True, slots=True)
class RetrievalQuery(ValidatedModel):
    """The question, its vector and keywords from a model, and the asking object if known.

    `asks` is False if another asks about that object.
    """

    text: str
    embedding: Vector | None = None
    keywords: frozenset[str] = frozenset()
    object_type: str | None = None
    object_identifier: str | None = None
    asks: bool = True

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        if (self.object_type is None) != (self.object_identifier is None):
            raise InvalidRequest(
                "the asking object is incomplete", hint='give both: object_type="user", object_identifier="ana"'
            )

    @property
    def object(self) -> ObjectKey | None:
        """Return the asking object, None if it is not known."""
        return key_of(self.object_type, self.object_identifier)


@dataclass(frozen=True, slots=True)
class RetrievedItem(Generic[T]):
    """A retrieved value and its score."""

    what: T
    score: float


class PersonaMatch(NamedTuple):
    """The relevant memory of one object, or of the agent if *key* is None, with its profile."""

    key: ObjectKey | None
    profile: Mapping[str, Any]
    knowledge: tuple[RetrievedItem[KnowledgeEntry], ...] = ()
    traits: tuple[RetrievedItem[TraitEntry], ...] = ()

    def known(self, agent_id: str, asking: ObjectKey | None = None) -> Known:
        """Return the match in the form of a prompt for a language model."""
        subject = f"agent {agent_id}" if self.key is None else str(self.key)
        texts = tuple(match.what.text for match in self.knowledge), tuple(match.what.text for match in self.traits)
        times = tuple(format_timestamp(match.what.created_at) for match in self.knowledge)
        return Known(subject, self.profile, *texts, asking is not None and self.key == asking, times)


@dataclass(frozen=True, slots=True)
class RetrievalResults:
    """The results of each tier, best first; short-term memory in the order of the dialogue.

    `stm` is short-term memory, filled up with earlier pages of the asking object, `leaving` the pages that
    have left it and are not yet in a segment. `segments`
    are those most similar to the question, `pages` the best of their pages. `error` is the failure of the model if the
    question lacks its keywords or vector, else None.
    """

    question: RetrievalQuery
    agent_id: str
    stm: tuple[RetrievedItem[DialoguePage], ...]
    leaving: tuple[RetrievedItem[DialoguePage], ...]
    segments: tuple[RetrievedItem[DialogueSegment], ...]
    pages: tuple[RetrievedItem[DialoguePage], ...]
    personas: tuple[PersonaMatch, ...]
    agent: PersonaMatch
    system: tuple[RetrievedItem[SystemEntry], ...]
    error: str | None = None

    @property
    def visited(self) -> frozenset[str]:
        """Return the ids of the segments, which `touch_segments` warms."""
        return frozenset(match.what.id for match in self.segments)

    def known(self) -> tuple[Known, ...]:
        """Return the long-term memory for a prompt of a language model: the asking object first, the agent last."""
        personas, asking = self.personas, self.question.object if self.question.asks else None
        if asking is not None and all(persona.key != asking for persona in personas):
            personas = (PersonaMatch(asking, {}), *personas)
        return tuple(persona.known(self.agent_id, asking) for persona in (*personas, self.agent))

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain JSON values, without vectors; a segment has a count instead of its pages."""
        return {each.name: _json_form(getattr(self, each.name)) for each in fields(self)}


def retrieve(
    tiers: Tiers,
    system: SystemMemory,
    question: RetrievalQuery,
    policy: TierPolicy,
    *,
    is_private: Callable[[str], bool] = lambda text: False,
    **settings: Any,
) -> RetrievalResults:
    """Return the matches of *question* in the tiers of an agent and in system memory.

    What is of a user, of an object of the type that asks, or private is that of the asking object only: with no object
    that asks, that which names none. Shared facts of earlier versions, which name no object, are left out.
    With `share_users` open pages, without chains, and open shared facts of other users are included; without an asking
    object their personas, too. A page is private if a private fact or trait is based on it, or by *is_private*, called
    with its text. *settings* apply to this question alone, such as `retrieved_pages=7`.
    """
    config, asking = policy.config.changed(settings), question.object
    confidential = confidential_pages(tiers)

    def admits(user: str | None) -> bool:
        """Return whether what is of a user may be shown."""
        return user is None or config.share_users or (asking is not None and asking.user == user)

    def visible(pages: Iterable[DialoguePage]) -> tuple[DialoguePage, ...]:
        """Return the pages that the asking object may see, those of others without the chain of the talk before."""
        return tuple(
            page if asking == page.object else replace(page, meta_chain=None)
            for page in pages
            if asking == page.object
            or (
                admits(page.user)
                and (config.share_users or asking is None or page.object_type != asking.type)
                and not (page.id in confidential or is_private(page.text))
            )
        )

    def shown(entries: tuple[E, ...], is_own: bool) -> tuple[E, ...]:
        """Return the facts or traits that the asking object may see; those of its own talk are also its own."""
        user = None if asking is None else asking.user
        return tuple(
            each
            for each in entries
            if (is_own if each.user is None else each.user == user) or (admits(each.user) and not each.private)
        )

    def shown_of(persona: ObjectPersona) -> ObjectPersona:
        own = persona.key == (asking or UNNAMED)
        return replace(persona, knowledge=shown(persona.knowledge, own), traits=shown(persona.traits, own))

    def like(what: DialoguePage | DialogueSegment) -> float:
        return policy.fscore(what, question, config)

    def telling(entry: KnowledgeEntry | TraitEntry | SystemEntry) -> float:
        text = entry.content if isinstance(entry, SystemEntry) else entry.text
        return policy.relevance(text, entry.embedding, question, config)

    ranked = _ranked(tiers.mtm, like, config.segment_threshold, config)
    parts = ((each, _visible_part(each.what, visible(each.what.pages), config)) for each in ranked)
    segments = tuple(islice((replace(each, what=part) for each, part in parts if part), config.retrieved_segments))
    hidden = () if asking is None else (USER, asking.type)
    personas = [shown_of(each) for each in tiers.personas
                if each.key == asking or (each.type not in hidden and admits(each.key.user))]  # fmt: skip
    recent = visible(tiers.stm)
    earlier = _before(recent, tiers.mtm, asking, config.stm_capacity)
    known = {page.id for page in earlier}
    segment_pages = (page for match in segments for page in match.what.pages if page.id not in known)
    return RetrievalResults(
        question,
        tiers.agent_id,
        stm=tuple(RetrievedItem(page, like(page)) for page in (*earlier, *recent)),
        leaving=tuple(RetrievedItem(page, like(page)) for page in visible(tiers.leaving)),
        segments=segments,
        pages=_best(segment_pages, like, config.retrieved_pages, config.page_threshold, config),
        personas=_personas(personas, asking, telling, config),
        agent=PersonaMatch(
            None,
            tiers.agent.profile,
            (),
            _best(shown(tiers.agent.traits, asking is None), telling, config.retrieved_traits, None, config),
        ),
        system=_best(
            (each for each in system.entries if config.share_users or (each.about is not None and admits(each.user))),
            telling,
            config.retrieved_system,
            config.knowledge_threshold,
            config,
        ),
    )


def _before(
    recent: tuple[DialoguePage, ...], segments: Iterable[DialogueSegment], asking: ObjectKey | None, most: int
) -> tuple[DialoguePage, ...]:
    """Return the newest pages of *segments* with the asking object, oldest first, to fill *recent* up to *most*."""
    if asking is None or len(recent) >= most:
        return ()
    own = (page for segment in segments for page in segment.pages if page.object == asking)
    return tuple(sorted(own, key=lambda page: page.when)[len(recent) - most :])


def confidential_pages(tiers: Tiers) -> frozenset[str]:
    """Return the ids of the pages on which a private fact or trait is based."""
    return frozenset(page_id for each in tiers.entries() if each.private for page_id in each.evidence)


def _visible_part(
    segment: DialogueSegment, pages: tuple[DialoguePage, ...], config: MemoryOSConfig
) -> DialogueSegment | None:
    """Return a segment with its visible *pages*, without summary and vector if one is missing; None without pages."""
    if len(pages) == segment.page_count:
        return replace(segment, pages=pages)
    keywords = keywords_of(pages, config)
    return replace(segment, pages=pages, topic_summary="", embedding=None, keywords=keywords) if pages else None


def _ranked(
    items: Iterable[T], score: Callable[[T], float], threshold: float | None, config: MemoryOSConfig
) -> list[RetrievedItem[T]]:
    matches = [RetrievedItem(each, score(each)) for each in items]
    ranked = sorted(matches, key=lambda each: (-each.score, each.what.id))
    return [each for each in ranked if config.reaches(each.score, threshold)]


def _best(
    items: Iterable[T], score: Callable[[T], float], most: int, threshold: float | None, config: MemoryOSConfig
) -> tuple[RetrievedItem[T], ...]:
    return tuple(_ranked(items, score, threshold, config)[:most])


def _personas(
    visible: Sequence[ObjectPersona], asking: ObjectKey | None, telling: Callable[[Any], float], config: MemoryOSConfig
) -> tuple[PersonaMatch, ...]:
    """Return the asking object, then the objects of matching facts, those of the best facts first."""
    facts = (fact for persona in visible for fact in persona.knowledge)
    best = _best(facts, telling, config.retrieved_knowledge, config.knowledge_threshold, config)
    place = {match.what.id: rank for rank, match in enumerate(best)}
    ranked = []
    for persona in visible:
        matches = tuple(best[rank] for rank in sorted(place[fact.id] for fact in persona.knowledge if fact.id in place))
        if matches or persona.key == asking:
            traits = _best(persona.traits, telling, config.retrieved_traits, None, config)
            first = -1 if persona.key == asking else place[matches[0].what.id]
            ranked.append((first, PersonaMatch(persona.key, persona.profile, matches, traits)))
    return tuple(persona for _, persona in sorted(ranked, key=lambda pair: pair[0]))


def _json_form(value: Any) -> Any:
    if isinstance(value, RetrievedItem):
        return {**_json_form(value.what), "score": value.score}
    if isinstance(value, DialogueSegment):
        about = ", ".join(sorted({":".join(page.object) for page in value.pages if page.object}))
        shown = {**replace(value, pages=()).to_dict(), "page_count": value.page_count, "about": about}
        return {name: each for name, each in shown.items() if name not in ("pages", "embedding")}
    if isinstance(value, ValidatedModel):
        return {name: each for name, each in value.to_dict().items() if name != "embedding"}
    if isinstance(value, PersonaMatch):
        key = {"type": value.key.type, "identifier": value.key.identifier} if value.key is not None else {}
        profile = dict(value.profile)
        return {**key, "profile": profile, "knowledge": _json_form(value.knowledge), "traits": _json_form(value.traits)}
    return [_json_form(each) for each in value] if isinstance(value, tuple) else value


#: The order in which segments are evicted; among equals the least recently used first.
_LEAVING: Mapping[str, Callable[[DialogueSegment], tuple[Any, ...]]] = {
    "coldest": lambda segment: (segment.heat_score, segment.last_accessed, segment.id),
    "least_visited": lambda segment: (segment.visit_count, segment.last_accessed, segment.id),
}


@dataclass(frozen=True, slots=True)
class SegmentVisit(ValidatedModel):
    """The segments that were retrieved at a moment."""

    segments: frozenset[str]
    at: datetime


@dataclass(frozen=True, slots=True)
class MaintenanceRun(ValidatedModel):
    """A maintenance at a moment."""

    at: datetime


def touch_segments(tiers: Tiers, visited: SegmentVisit, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that counts a retrieval of segments and warms them; segments that are gone are ignored."""
    return stepped(
        tiers,
        policy.config,
        mtm=tuple(
            warmed(
                replace(
                    each, visit_count=each.visit_count + 1, last_accessed=max(each.last_accessed, visited.at)
                ),
                visited.at,
                policy,
            )
            if each.id in visited.segments
            else each
            for each in tiers.mtm
        ),
    )  # fmt: skip


def warmed(segment: DialogueSegment, at: datetime, policy: TierPolicy) -> DialogueSegment:
    """Return the segment with its heat at a moment."""
    score = policy.heat(segment, at, policy.config)
    return segment if score == segment.heat_score else replace(segment, heat_score=score)


def maintain(tiers: Tiers, maintenance: MaintenanceRun, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that updates the heat of all segments and evicts and archives those beyond the capacity.

    `evict` decides which ones leave. With `transfer_before_evicting`, segments that the personas are to learn from stay
    until that is done, even beyond the capacity. The directives ask a provider to store the archived segments.
    """
    config = policy.config
    segments = tuple(warmed(each, maintenance.at, policy) for each in tiers.mtm)
    spared = {each.id for each in _hot(segments, config)} if config.transfer_before_evicting else set()
    ranked = sorted((each for each in segments if each.id not in spared), key=_LEAVING[config.evict])
    surplus = ranked[: max(0, len(segments) - config.mtm_capacity)]
    evicted = {each.id for each in surplus}
    remaining = tuple(each for each in segments if each.id not in evicted)
    return stepped(tiers, config, *archived(surplus, config), mtm=remaining)


def hot(tiers: Tiers, policy: TierPolicy) -> tuple[DialogueSegment, ...]:
    """Return the segments that the personas are to learn from, by the last computed heat, the hottest first."""
    return _hot(tiers.mtm, policy.config)


def _hot(segments: Iterable[DialogueSegment], config: MemoryOSConfig) -> tuple[DialogueSegment, ...]:
    ready = [each for each in segments if each.interactions and config.reaches(each.heat_score, config.heat_threshold)]
    return tuple(sorted(ready, key=lambda each: (-each.heat_score, each.id)))


def archived(segments: Iterable[DialogueSegment], config: MemoryOSConfig) -> tuple[MemoryUpsert, ...]:
    """Return the directives that archive *segments* with the configured provider; none without one."""
    if config.archive is None:
        return ()
    return tuple(
        MemoryUpsert(
            request_id=f"req_memoryos:{each.id}",
            provider=config.archive,
            items=[UpsertItem(f"memoryos:{each.agent_id}:{each.id}", each.to_dict(), each.embedding)],
        )
        for each in segments
    )
