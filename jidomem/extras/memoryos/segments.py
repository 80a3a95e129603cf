"""The pages of short-term memory and the segments of mid-term memory. Pure.

A page is inserted and described by a model; when it leaves short-term memory it joins the most similar segment or opens
a new one. Segments are described again, and split if they have too many pages. The scores of similarity and heat are
those published for MemoryOS; a `TierPolicy` may replace them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from operator import mul
from typing import NamedTuple, Protocol

from jidomem.base.words import TELL_LITTLE, words
from jidomem.errors import InvalidRequest, NotFound, RevisionConflict
from jidomem.extras.memoryos.config import MemoryOSConfig, ValidatedModel, Vector, shown
from jidomem.extras.memoryos.values import DialoguePage, DialogueSegment, Tiers, Words, stepped
from jidomem.records.directive import Step

# Beyond this ratio of lengths the rounding error of a distance shows in the product; and the least length whose square
# does not underflow.
_RATIO, _LEAST = 16.0, 1e-150


class HasDescription(Protocol):
    """A value that can be compared with a segment: a page, another segment, a question."""

    @property
    def embedding(self) -> Vector | None:
        """Return the vector, None if there is none yet."""

    @property
    def keywords(self) -> frozenset[str]:
        """Return the keywords."""


def cosine(one: Sequence[float] | None, other: Sequence[float] | None, *, strict: bool = True) -> float:
    """Return the cosine of the angle between two vectors, from -1 to 1; 0.0 if one is missing or all zeros.

    Vectors of different length cannot be compared: raises InvalidRequest, or returns 0.0 if not *strict*.

    >>> cosine((3.0, 4.0), (4.0, 3.0))
    0.96
    """
    if one is None or other is None:
        return 0.0
    if len(one) != len(other):
        if not strict:
            return 0.0
        raise InvalidRequest(
            f"a vector of {len(one)} numbers is compared with one of {len(other)}",
            hint="embed both by one model: rebuild the vectors, or set strict_vectors=False",
        )
    if one == other:
        return 1.0 if any(one) else 0.0
    length, reference = _length(one), _length(other)
    if not (_LEAST < length < 1 / _LEAST and _LEAST < reference < 1 / _LEAST):
        return cosine(_scaled(one), _scaled(other)) if any(one) and any(other) else 0.0
    if 1 / _RATIO < length / reference < _RATIO:  # by the law of cosines: a distance takes a fifth of the time
        product = (length * length + reference * reference - math.dist(one, other) ** 2) / 2
    else:
        product = sum(map(mul, one, other))
    return max(-1.0, min(1.0, product / (length * reference)))


def _length(vector: Sequence[float]) -> float:
    return vector.length if isinstance(vector, Vector) else math.hypot(*vector)


def _scaled(vector: Sequence[float]) -> tuple[float, ...]:
    largest = max(map(abs, vector))
    return tuple(number / largest for number in vector)


def jaccard(one: Iterable[str], other: Iterable[str]) -> float:
    """Return the size of the intersection of two sets as a share of their union; 0.0 if both are empty.

    >>> jaccard({"index", "store"}, {"store", "disk", "store"})
    0.3333333333333333
    """
    first, second = frozenset(one), frozenset(other)
    return len(first & second) / len(first | second) if first or second else 0.0


def fscore(segment: HasDescription, other: HasDescription, config: MemoryOSConfig) -> float:
    """Return the similarity of a segment and a page or a question, from -1 to 2: cosine plus Jaccard index."""
    alike = cosine(segment.embedding, other.embedding, strict=config.strict_vectors)
    return alike + jaccard(segment.keywords, other.keywords)


def recency(last_accessed: datetime, now: datetime, time_constant: float) -> float:
    """Return the recency of a moment, from 0 to 1: `exp(-seconds / time_constant)`; 1.0 for a moment in the future."""
    return math.exp(-max(0.0, (now - last_accessed).total_seconds()) / time_constant)


def heat(segment: DialogueSegment, now: datetime, config: MemoryOSConfig) -> float:
    """Return the heat of a segment: the weighted sum of its visits, its untaught pages and its recency.

    Pages that the personas have learned from, and the visits before that, no longer count.
    """
    return (
        config.heat_alpha * segment.visits
        + config.heat_beta * segment.interactions
        + config.heat_gamma * recency(segment.last_accessed, now, config.time_constant)
    )


def relevance(text: str, embedding: Vector | None, question: HasDescription, config: MemoryOSConfig) -> float:
    """Return the relevance of a text to a question, from -1 to 2: the cosine plus the share of its keywords."""
    keywords = _words_of(" ".join(question.keywords))
    share = len(keywords & _words_of(text)) / len(keywords) if keywords else 0.0
    return cosine(embedding, question.embedding, strict=config.strict_vectors) + share


@lru_cache(8_192)  # the texts of long-term and system memory are the same for every question
def _words_of(text: str) -> frozenset[str]:
    return frozenset(words(text)) - TELL_LITTLE


@dataclass(frozen=True, slots=True)
class TierPolicy:
    """The policy of an agent's moves: its settings and scores, each replaceable."""

    config: MemoryOSConfig = field(default_factory=MemoryOSConfig)
    fscore: Callable[[HasDescription, HasDescription, MemoryOSConfig], float] = fscore
    heat: Callable[[DialogueSegment, datetime, MemoryOSConfig], float] = heat
    relevance: Callable[[str, Vector | None, HasDescription, MemoryOSConfig], float] = relevance

    def __post_init__(self) -> None:
        if not isinstance(self.config, MemoryOSConfig):
            hint = "give TierPolicy(MemoryOSConfig(stm_capacity=7))"
            raise InvalidRequest(f"config of a TierPolicy is a MemoryOSConfig, not {shown(self.config)}", hint=hint)
        for name in ("fscore", "heat", "relevance"):
            if not callable(score := getattr(self, name)):
                hint = f"give a function, or leave {name} out"
                raise InvalidRequest(f"{name} of a TierPolicy is a function, not {shown(score)}", hint=hint)


@dataclass(frozen=True, slots=True)
class Description(ValidatedModel):
    """A model's description of one page: vector, keywords, the page it continues, and its chain.

    A field that is None does not change the page.
    """

    page_id: str
    embedding: Vector | None = None
    keywords: frozenset[str] | None = None
    meta_chain: Words | None = None
    continues: str | None = None


def insert(tiers: Tiers, page: DialoguePage, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that adds *page* to short-term memory; pages beyond its capacity leave it, oldest first.

    A page that is there already is not added again. Raises InvalidRequest for another page of the same id, a page of
    another agent, and a page with a segment.
    """
    if (known := tiers.page(page.id)) is not None:
        if _page_content(known) != _page_content(page):
            raise InvalidRequest(f"page {page.id} exists already, with other content", hint="give it a fresh id")
        return stepped(tiers, policy.config)
    return stepped(tiers, policy.config, stm=(*tiers.stm, page))


def _page_content(page: DialoguePage) -> tuple[object, ...]:
    return page.agent_id, page.query, page.response, page.timestamp, page.object


def before(tiers: Tiers, page_id: str) -> DialoguePage | None:
    """Return the previous page of the dialogue with the same object, whose chain the page may continue.

    None if there is none any more. Raises NotFound if the agent has no such page.
    """
    page = known_page(tiers, page_id)
    queue = [each.id for each in (*tiers.leaving, *tiers.stm) if each.object == page.object]
    if page.id in queue[1:]:
        return known_page(tiers, queue[queue.index(page.id) - 1])
    settled = (each for segment in tiers.mtm for each in segment.pages)
    earlier = (each for each in settled if each.object == page.object and each.when < page.when)
    return max(earlier, key=lambda each: each.when, default=None)


def describe(tiers: Tiers, description: Description, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that adds a model's description to a page in any tier; raises NotFound without that page."""
    page = known_page(tiers, description.page_id)
    if description.continues == page.id:
        raise InvalidRequest(f"page {page.id} cannot continue itself", hint="name the page before it, or none")
    new_values = {name: getattr(description, name) for name in ("embedding", "keywords", "meta_chain", "continues")}
    after = replace(page, **{name: value for name, value in new_values.items() if value is not None})
    return stepped(
        tiers,
        policy.config,
        stm=_replace_page(tiers.stm, after),
        leaving=_replace_page(tiers.leaving, after),
        mtm=tuple(
            replace(segment, pages=_replace_page(segment.pages, after)) if segment.id == after.segment_id else segment
            for segment in tiers.mtm
        ),
    )


def _replace_page(pages: tuple[DialoguePage, ...], after: DialoguePage) -> tuple[DialoguePage, ...]:
    return tuple(after if page.id == after.id else page for page in pages)


def known_page(tiers: Tiers, page_id: str) -> DialoguePage:
    """Return the page of that id; raise NotFound if the agent has none."""
    page = tiers.page(page_id)
    if page is None:
        raise NotFound(f"{tiers.agent_id} has no page {page_id}", hint="insert it first; an evicted one is archived")
    return page


class PagePlacement(NamedTuple):
    """The placement of a page: the most similar segment, None for a new one, and all similarities.

    `pages` are the pages of the segment with the new one, of which a model makes the summary, and `keywords` its
    keywords.
    """

    page_id: str
    segment_id: str | None
    score: float | None
    scores: Mapping[str, float]
    pages: tuple[DialoguePage, ...]
    keywords: frozenset[str]


@dataclass(frozen=True, slots=True)
class PageArrival(ValidatedModel):
    """The arrival of a page in a segment, which is new if no other has that id, with the segment's new description.

    `pages` are the ids of the pages that `topic_summary` summarises, and `embedding` is the vector of `segment_text`.
    """

    page_id: str
    segment_id: str
    topic_summary: Words
    pages: tuple[str, ...]
    at: datetime
    embedding: Vector | None = None


def choose_segment(tiers: Tiers, page_id: str, policy: TierPolicy) -> PagePlacement:
    """Return the present placement of a page: the most similar segment that reaches the threshold and has room.

    Among equally similar segments the most recently used one is chosen, then the lowest id. Raises NotFound if the
    agent has no such page.
    """
    page = known_page(tiers, page_id)
    scores = {segment.id: policy.fscore(segment, page, policy.config) for segment in tiers.mtm}
    open_ones = [segment for segment in tiers.mtm if has_room(segment, policy.config)]
    open_ones.sort(key=lambda each: each.id)
    best = max(open_ones, key=lambda each: (scores[each.id], each.last_accessed), default=None)
    if best is not None and policy.config.reaches(scores[best.id], policy.config.mtm_fscore_threshold):
        pages = tuple(sorted((*best.pages, page), key=lambda each: each.when))
        keywords = keywords_of(pages, policy.config)
        return PagePlacement(page_id, best.id, scores[best.id], scores, pages, keywords)
    keywords = keywords_of((page,), policy.config)
    return PagePlacement(page_id, None, None if best is None else scores[best.id], scores, (page,), keywords)


def has_room(segment: DialogueSegment, config: MemoryOSConfig) -> bool:
    """Return whether a segment has room for another page."""
    return config.segment_capacity is None or segment.page_count < config.segment_capacity


def segment_text(topic_summary: str, keywords: Iterable[str]) -> str:
    """Return the text of a segment that is embedded.

    >>> segment_text("Ana chooses an index", {"store", "index"})
    'Ana chooses an index (index, store)'
    """
    listed = ", ".join(sorted(keywords))
    return f"{topic_summary} ({listed})" if listed else topic_summary


def transfer(tiers: Tiers, arrival: PageArrival, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that moves a page into its segment; nothing changes if it is in one already.

    Raises NotFound if the agent has no such page, and RevisionConflict if its placement has changed, or the segment has
    other pages than those that were summarised.
    """
    page = known_page(tiers, arrival.page_id)
    if page.segment_id is not None:
        return stepped(tiers, policy.config)
    placement = choose_segment(tiers, page.id, policy)
    known = tiers.segment(arrival.segment_id)
    target_id = None if known is None else known.id
    if placement.segment_id != target_id or arrival.pages != tuple(each.id for each in placement.pages):
        raise RevisionConflict(
            f"page {page.id} now belongs to {placement.segment_id or 'a new segment'}, with other pages",
            hint="ask choose_segment(...) again, and the model for a summary of its pages",
        )
    segment = known or DialogueSegment(
        arrival.segment_id, tiers.agent_id, arrival.topic_summary, created_at=arrival.at, last_accessed=arrival.at
    )
    merged = replace(
        segment,
        topic_summary=arrival.topic_summary,
        embedding=arrival.embedding,
        keywords=placement.keywords,
        last_accessed=max(segment.last_accessed, arrival.at),
        pages=tuple(each if each.id != page.id else replace(page, segment_id=segment.id) for each in placement.pages),
    )
    merged = replace(merged, heat_score=policy.heat(merged, arrival.at, policy.config))
    mtm = tuple(merged if each.id == merged.id else each for each in tiers.mtm)
    return stepped(
        tiers,
        policy.config,
        stm=_without(tiers.stm, page),
        leaving=_without(tiers.leaving, page),
        mtm=mtm if known is not None else (*mtm, merged),
    )


def keywords_of(pages: Iterable[DialoguePage], config: MemoryOSConfig) -> frozenset[str]:
    """Return the most frequent keywords of the pages, as many as a segment may have."""
    counted = Counter(word for page in pages for word in page.keywords)
    ranked = sorted(counted, key=lambda word: (-counted[word], word))
    return frozenset(ranked[: config.segment_keywords])


def _without(pages: tuple[DialoguePage, ...], forgotten: DialoguePage) -> tuple[DialoguePage, ...]:
    return tuple(page for page in pages if page.id != forgotten.id)


@dataclass(frozen=True, slots=True)
class NewDescription(ValidatedModel):
    """The new description of a segment: `pages` are the ids of all of its pages."""

    segment_id: str
    topic_summary: Words
    pages: tuple[str, ...]
    embedding: Vector | None = None


@dataclass(frozen=True, slots=True)
class SegmentSplit(ValidatedModel):
    """A segment to be split at a moment, and the ids of the parts after the first."""

    segment_id: str
    new_ids: tuple[str, ...]
    at: datetime


def retell(tiers: Tiers, retelling: NewDescription, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that gives a segment another summary and vector, and the keywords of its present pages.

    Raises NotFound if the agent has no such segment, RevisionConflict if its pages have changed.
    """
    segment = tiers.segment(retelling.segment_id)
    if segment is None:
        raise NotFound(
            f"{tiers.agent_id} has no segment {retelling.segment_id}", hint="it may be evicted: retrieve again"
        )
    if retelling.pages != tuple(page.id for page in segment.pages):
        raise RevisionConflict(f"segment {segment.id} has other pages now", hint="summarise its present pages")
    after = replace(
        segment,
        topic_summary=retelling.topic_summary,
        embedding=retelling.embedding,
        keywords=keywords_of(segment.pages, policy.config),
    )
    return stepped(tiers, policy.config, mtm=tuple(after if each.id == after.id else each for each in tiers.mtm))


def oversized(tiers: Tiers, config: MemoryOSConfig) -> Mapping[str, int]:
    """Return the segments with more pages than their present capacity, each with the number of ids to split it."""
    if (most := config.segment_capacity) is None:
        return {}
    return {each.id: (each.page_count - 1) // most for each in tiers.mtm if each.page_count > most}


def split(tiers: Tiers, splitting: SegmentSplit, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that splits a segment into parts within its capacity, in order; nothing changes if it has room.

    Each part has the summary, the vector and the visits of the whole until it is described again. Raises InvalidRequest
    unless there is one id for each part after the first, which keeps the id of the whole.
    """
    needed = oversized(tiers, policy.config).get(splitting.segment_id, 0)
    segment = tiers.segment(splitting.segment_id)
    if segment is None or needed == 0:
        return stepped(tiers, policy.config)
    if len(splitting.new_ids) != needed:
        raise InvalidRequest(
            f"segment {segment.id} is split into {needed + 1} parts, and {len(splitting.new_ids)} ids are given",
            hint=f"give {needed} ids",
        )
    most = policy.config.segment_capacity or segment.page_count
    parts = [
        _part(segment, part_id, segment.pages[place * most : (place + 1) * most], splitting.at, policy)
        for place, part_id in enumerate((segment.id, *splitting.new_ids))
    ]
    place = tiers.mtm.index(segment)
    return stepped(tiers, policy.config, mtm=(*tiers.mtm[:place], *parts, *tiers.mtm[place + 1 :]))


def _part(
    whole: DialogueSegment, part_id: str, pages: tuple[DialoguePage, ...], at: datetime, policy: TierPolicy
) -> DialogueSegment:
    part_pages = tuple(replace(page, segment_id=part_id) for page in pages)
    part = replace(whole, id=part_id, pages=part_pages, keywords=keywords_of(part_pages, policy.config))
    return replace(part, heat_score=policy.heat(part, at, policy.config))
