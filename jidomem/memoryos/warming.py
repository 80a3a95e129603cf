"""How segments warm up and cool down: what retrieving and maintenance do to them, and which of them leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from jidomem.directive import MemoryUpsert, UpsertItem
from jidomem.memoryos import form
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Value
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import Tiers, stepped
from jidomem.memoryos.values import DialogueSegment
from jidomem.spaces.step import Step

#: By what the segments that leave are chosen, the least first; of equal ones the one used longest ago.
_LEAVING: Mapping[str, Callable[[DialogueSegment], tuple[Any, ...]]] = {
    "coldest": lambda segment: (segment.heat_score, segment.last_accessed, segment.id),
    "least_visited": lambda segment: (segment.visit_count, segment.last_accessed, segment.id),
}


@dataclass(frozen=True, slots=True)
class Visit(Value):
    """That segments were retrieved at a moment."""

    segments: frozenset[str]
    at: datetime

    def __post_init__(self) -> None:
        self._hold(segments=form.text_set, at=form.moment)


@dataclass(frozen=True, slots=True)
class Round(Value):
    """A round of maintenance, at a moment."""

    at: datetime

    def __post_init__(self) -> None:
        self._hold(at=form.moment)


def visit(tiers: Tiers, visited: Visit, policy: Policy) -> Step[Tiers]:
    """Return the step to segments that were retrieved once more, and are warmer; those that are gone since are not."""
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


def warmed(segment: DialogueSegment, at: datetime, policy: Policy) -> DialogueSegment:
    """Return the segment with the heat it has at a moment."""
    score = policy.heat(segment, at, policy.config)
    return segment if score == segment.heat_score else replace(segment, heat_score=score)


def maintain(tiers: Tiers, news: Round, policy: Policy) -> Step[Tiers]:
    """Return the step to segments with the heat they have now, as many as there is room for; the rest is archived.

    Those leave that `evict` says. With `transfer_before_evicting` none leaves that the personas are to be taught from
    first: there may be more of them until that is done. The directives ask for what is archived to be kept.
    """
    config = policy.config
    segments = tuple(warmed(each, news.at, policy) for each in tiers.mtm)
    spared = {each.id for each in _hot(segments, config)} if config.transfer_before_evicting else set()
    ranked = sorted((each for each in segments if each.id not in spared), key=_LEAVING[config.evict])
    gone = ranked[: max(0, len(segments) - config.mtm_capacity)]
    evicted = {each.id for each in gone}
    left = tuple(each for each in segments if each.id not in evicted)
    return stepped(tiers, config, *archived(gone, config), mtm=left)


def hot(tiers: Tiers, policy: Policy) -> tuple[DialogueSegment, ...]:
    """Return the segments that the personas are to be taught from, by the heat last worked out, the hottest first."""
    return _hot(tiers.mtm, policy.config)


def _hot(segments: Iterable[DialogueSegment], config: MemoryOSConfig) -> tuple[DialogueSegment, ...]:
    ready = [each for each in segments if each.interactions and config.reaches(each.heat_score, config.heat_threshold)]
    return tuple(sorted(ready, key=lambda each: (-each.heat_score, each.id)))


def archived(segments: Iterable[DialogueSegment], config: MemoryOSConfig) -> tuple[MemoryUpsert, ...]:
    """Return the directives that keep *segments* where the settings say; none where they name no provider."""
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
