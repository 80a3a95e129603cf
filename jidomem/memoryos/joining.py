"""How a page that leaves short-term memory joins the segment of mid-term memory it is most like, or opens one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from jidomem.errors import RevisionConflict
from jidomem.memoryos import form
from jidomem.memoryos.arriving import known_page
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Value, Vector
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import Tiers, stepped
from jidomem.memoryos.values import DialoguePage, DialogueSegment
from jidomem.spaces.step import Step


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a page would go: the segment that it is most like, None for a new one, and how like it is to each.

    `pages` are those the segment would have then, of which a model makes its summary, and `keywords` its keywords.
    """

    page_id: str
    segment_id: str | None
    score: float | None
    scores: Mapping[str, float]
    pages: tuple[DialoguePage, ...]
    keywords: frozenset[str]


@dataclass(frozen=True, slots=True)
class Arrival(Value):
    """A page that enters a segment at a moment: the segment, which is new if no other has that id, and what it becomes.

    `pages` are the ids of those that `topic_summary` sums up, and `embedding` is the vector of `segment_text`.
    """

    page_id: str
    segment_id: str
    topic_summary: str
    pages: tuple[str, ...]
    at: datetime
    embedding: Vector | None = None

    def __post_init__(self) -> None:
        self._hold(page_id=form.text, segment_id=form.text, topic_summary=form.words, pages=form.texts,
                   at=form.moment, embedding=form.unless_none(form.vector))  # fmt: skip


def placed(tiers: Tiers, page_id: str, policy: Policy) -> Placement:
    """Return where a page would go now: into the segment it is most like, if that is like enough and has room.

    Of segments that it is as like to, the one that was used last is taken, then the one of the lowest id. Raises
    NotFound where the agent has no such page.
    """
    page = known_page(tiers, page_id)
    scores = {segment.id: policy.fscore(segment, page, policy.config) for segment in tiers.mtm}
    open_ones = [segment for segment in tiers.mtm if has_room(segment, policy.config)]
    open_ones.sort(key=lambda each: each.id)
    best = max(open_ones, key=lambda each: (scores[each.id], each.last_accessed), default=None)
    if best is not None and policy.config.reaches(scores[best.id], policy.config.mtm_fscore_threshold):
        pages = tuple(sorted((*best.pages, page), key=lambda each: each.when))
        found = keywords_of(pages, policy.config)
        return Placement(page_id, best.id, scores[best.id], scores, pages, found)
    found = keywords_of((page,), policy.config)
    return Placement(page_id, None, None if best is None else scores[best.id], scores, (page,), found)


def has_room(segment: DialogueSegment, config: MemoryOSConfig) -> bool:
    """Return whether a segment takes another page."""
    return config.segment_capacity is None or segment.page_count < config.segment_capacity


def segment_text(topic_summary: str, keywords: Iterable[str]) -> str:
    """Return the text of a segment that its vector is of: made anew when one of the two changes.

    >>> segment_text("Ana chooses an index", {"store", "index"})
    'Ana chooses an index (index, store)'
    """
    listed = ", ".join(sorted(keywords))
    return f"{topic_summary} ({listed})" if listed else topic_summary


def transfer(tiers: Tiers, arrival: Arrival, policy: Policy) -> Step[Tiers]:
    """Return the step to the page in its segment, out of short-term memory; as before where it is in one already.

    Raises NotFound where the agent has no such page, and RevisionConflict where the page would go elsewhere by now, or
    the segment has other pages than those that were summed up.
    """
    page = known_page(tiers, arrival.page_id)
    if page.segment_id is not None:
        return stepped(tiers, policy.config)
    placement = placed(tiers, page.id, policy)
    known = tiers.segment(arrival.segment_id)
    going = None if known is None else known.id
    if placement.segment_id != going or arrival.pages != tuple(each.id for each in placement.pages):
        raise RevisionConflict(
            f"page {page.id} goes to {placement.segment_id or 'a new segment'} by now, with other pages",
            hint="ask placed(...) again, and the model for a summary of its pages",
        )
    held = known or DialogueSegment(
        arrival.segment_id, tiers.agent_id, arrival.topic_summary, created_at=arrival.at, last_accessed=arrival.at
    )
    merged = replace(
        held,
        topic_summary=arrival.topic_summary,
        embedding=arrival.embedding,
        keywords=placement.keywords,
        last_accessed=max(held.last_accessed, arrival.at),
        pages=tuple(each if each.id != page.id else replace(page, segment_id=held.id) for each in placement.pages),
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
    """Return the keywords that most of the pages have, as many as a segment may have."""
    counted = Counter(word for page in pages for word in page.keywords)
    ranked = sorted(counted, key=lambda word: (-counted[word], word))
    return frozenset(ranked[: config.segment_keywords])


def _without(pages: tuple[DialoguePage, ...], gone: DialoguePage) -> tuple[DialoguePage, ...]:
    return tuple(page for page in pages if page.id != gone.id)
