"""The forgetting of a page: it is removed with the texts that were derived from it alone or
together with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from jidomem.extras.memoryos import config
from jidomem.extras.memoryos.config import ValidatedModel
from jidomem.extras.memoryos.retrieval import warmed
from jidomem.extras.memoryos.segments import TierPolicy, keywords_of
from jidomem.extras.memoryos.values import (
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    SystemMemory,
    Tiers,
    TraitEntry,
    stepped,
)
from jidomem.records.directive import Step

E = TypeVar("E", KnowledgeEntry, TraitEntry)


@dataclass(frozen=True, slots=True)
class Forgetting(ValidatedModel):
    """A page that is to be forgotten, when, and the pages elsewhere, as in an archive, whose chain goes on from it."""

    page_id: str
    at: datetime
    chained: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._hold(page_id=config.text, at=config.moment, chained=config.text_set)


def forget_page(tiers: Tiers, forgetting: Forgetting, policy: TierPolicy) -> Step[Tiers]:
    """Return the step to tiers without a page, and without what it went into; as before where there is no trace of it.

    Facts and traits that rest on it go, and the other pages that they rest on count as untaught: what these say is
    learnt again. Chains that go on from it are none any more, nor is the summary of its segment, which is to be told
    anew; a segment of that page alone is gone. Profiles stay, as nobody knows of which page they are.
    """
    lost = [entry for entry in _entries(tiers) if forgetting.page_id in entry.evidence]
    untaught = {page_id for entry in lost for page_id in entry.evidence} - {forgetting.page_id}
    chains = forgetting.chained | chained(tiers.pages(), forgetting.page_id)

    def left(pages: Iterable[DialoguePage]) -> tuple[DialoguePage, ...]:
        return tuple(
            _freed(page, chains, untaught, forgetting.page_id) for page in pages if page.id != forgetting.page_id
        )

    segments = []
    for segment in tiers.mtm:
        pages = left(segment.pages)
        if pages == segment.pages:
            segments.append(segment)
        elif pages:
            shorter = replace(segment, pages=pages)
            described = shorter if shorter.page_count == segment.page_count else without_summary(shorter, policy)
            segments.append(warmed(described, forgetting.at, policy))
    personas = tuple(
        replace(
            each,
            knowledge=_resting(each.knowledge, forgetting.page_id),
            traits=_resting(each.traits, forgetting.page_id),
        )
        for each in tiers.personas
    )
    return stepped(
        tiers,
        policy.config,
        stm=left(tiers.stm),
        leaving=left(tiers.leaving),
        mtm=tuple(segments),
        personas=personas,
        agent=replace(tiers.agent, traits=_resting(tiers.agent.traits, forgetting.page_id)),
    )


def unsay(system: SystemMemory, page_id: str) -> Step[SystemMemory]:
    """Return the step to system memory without the entries that rest on a page."""
    left = tuple(entry for entry in system.entries if page_id not in entry.evidence)
    return Step(system) if left == system.entries else Step(SystemMemory(system.rev + 1, left))


def archived_without(segment: DialogueSegment, forgetting: Forgetting, policy: TierPolicy) -> DialogueSegment | None:
    """Return an archived segment without a page, its summary and the chains that go on from it, None if it is empty.

    One that has none of them is the very same.
    """
    pages = tuple(
        _freed(page, forgetting.chained, frozenset(), forgetting.page_id)
        for page in segment.pages
        if page.id != forgetting.page_id
    )
    if pages == segment.pages:
        return segment
    left = replace(segment, pages=pages)
    if not pages:
        return None
    return left if left.page_count == segment.page_count else without_summary(left, policy)


def without_summary(segment: DialogueSegment, policy: TierPolicy) -> DialogueSegment:
    """Return a segment with the keywords of its pages, and no summary and no vector until it is told anew."""
    keywords = keywords_of(segment.pages, policy.config)
    return replace(segment, topic_summary="", embedding=None, keywords=keywords)


def _entries(tiers: Tiers) -> list[KnowledgeEntry | TraitEntry]:
    entries: list[KnowledgeEntry | TraitEntry] = [*tiers.agent.traits]
    for persona in tiers.personas:
        entries += [*persona.knowledge, *persona.traits]
    return entries


def _resting(entries: tuple[E, ...], page_id: str) -> tuple[E, ...]:
    return tuple(entry for entry in entries if page_id not in entry.evidence)


def chained(pages: Iterable[DialoguePage], page_id: str) -> frozenset[str]:
    """Return those of *pages* whose chain goes on from that of a page, or from one that does."""
    after: dict[str, list[str]] = {}
    for page in pages:
        if page.continues is not None:
            after.setdefault(page.continues, []).append(page.id)
    later, looked = set[str](), [page_id]
    while looked:
        fresh = [each for each in after.get(looked.pop(), ()) if each not in later]
        later.update(fresh)
        looked += fresh
    return frozenset(later - {page_id})


def _freed(page: DialoguePage, chains: Set[str], untaught: Set[str], page_id: str) -> DialoguePage:
    """Return a page without the chain that came of the one that is gone, and counting as untaught where it is one."""
    if page.id in chains:
        page = replace(page, meta_chain=None, continues=None if page.continues == page_id else page.continues)
    return replace(page, analysed=False) if page.analysed and page.id in untaught else page
