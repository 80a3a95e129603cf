"""How segments are told anew, for a better summary or another embedder, and cut where they have too many pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from jidomem.errors import InvalidRequest, NotFound, RevisionConflict
from jidomem.memoryos import form
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Value, Vector
from jidomem.memoryos.joining import keywords_of
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import Tiers, stepped
from jidomem.memoryos.values import DialoguePage, DialogueSegment
from jidomem.spaces.step import Step


@dataclass(frozen=True, slots=True)
class Retelling(Value):
    """What a segment is told as anew: `pages` are the ids of those that were summed up, all that it has."""

    segment_id: str
    topic_summary: str
    pages: tuple[str, ...]
    embedding: Vector | None = None

    def __post_init__(self) -> None:
        self._hold(
            segment_id=form.text, topic_summary=form.words, pages=form.texts, embedding=form.unless_none(form.vector)
        )


@dataclass(frozen=True, slots=True)
class Splitting(Value):
    """A segment that is to be cut into parts at a moment, and ids for the parts after the first."""

    segment_id: str
    new_ids: tuple[str, ...]
    at: datetime

    def __post_init__(self) -> None:
        self._hold(segment_id=form.text, new_ids=form.texts, at=form.moment)


def retell(tiers: Tiers, told: Retelling, policy: Policy) -> Step[Tiers]:
    """Return the step to a segment with another summary and vector, and the keywords of the pages it has.

    Raises NotFound where the agent has no such segment, RevisionConflict where it has other pages by now.
    """
    segment = tiers.segment(told.segment_id)
    if segment is None:
        raise NotFound(f"{tiers.agent_id} holds no segment {told.segment_id}", hint="it may be evicted: retrieve again")
    if told.pages != tuple(page.id for page in segment.pages):
        raise RevisionConflict(f"segment {segment.id} has other pages by now", hint="sum up the pages it has")
    after = replace(
        segment,
        topic_summary=told.topic_summary,
        embedding=told.embedding,
        keywords=keywords_of(segment.pages, policy.config),
    )
    return stepped(tiers, policy.config, mtm=tuple(after if each.id == after.id else each for each in tiers.mtm))


def oversized(tiers: Tiers, config: MemoryOSConfig) -> Mapping[str, int]:
    """Return the segments with more pages than one may have by now, and how many ids it takes to split each."""
    if (most := config.segment_capacity) is None:
        return {}
    return {each.id: (each.page_count - 1) // most for each in tiers.mtm if each.page_count > most}


def split(tiers: Tiers, splitting: Splitting, policy: Policy) -> Step[Tiers]:
    """Return the step to a segment in parts of as many pages as one may have, in order; as before where it has room.

    Each part has the summary, the vector and the visits of the whole until it is told anew. Raises InvalidRequest
    unless there is one id for each part after the first, which keeps its own.
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
    whole: DialogueSegment, part_id: str, pages: tuple[DialoguePage, ...], at: datetime, policy: Policy
) -> DialogueSegment:
    own = tuple(replace(page, segment_id=part_id) for page in pages)
    part = replace(whole, id=part_id, pages=own, keywords=keywords_of(own, policy.config))
    return replace(part, heat_score=policy.heat(part, at, policy.config))
