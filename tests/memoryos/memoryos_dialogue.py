"""Shared parts of the tests of the tiers: pages, segments, moves and a clock."""

from datetime import timedelta

from conftest import START

from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.segments import (
    Description,
    PageArrival,
    TierPolicy,
    choose_segment,
    describe,
    insert,
    transfer,
)
from jidomem.extras.memoryos.values import DialoguePage, DialogueSegment, Tiers

ADA = Tiers("ada")


def policy(**settings):
    return TierPolicy(MemoryOSConfig(**settings))


def at(seconds=0):
    return START + timedelta(seconds=seconds)


def page(number, said="hello", **given):
    """Return the page *number* of ada: p1 is one second later than p0."""
    return DialoguePage(
        f"p{number}", **{"agent_id": "ada", "query": said, "response": "!", "timestamp": at(number), **given}
    )


def segment(number, pages=(), **given):
    """Return the segment *number* of ada, with pages of those numbers."""
    segment_pages = tuple(page(each, segment_id=f"s{number}") if isinstance(each, int) else each for each in pages)
    fields = {"agent_id": "ada", "topic_summary": f"topic {number}", "created_at": at(), "last_accessed": at()}
    return DialogueSegment(f"s{number}", **{**fields, "pages": segment_pages, **given})


def joined(tiers, page_id, new_id, moment, policy):
    """Return the tiers after the transfer of a page, with a summary that names the pages of its segment."""
    placement = choose_segment(tiers, page_id, policy)
    pages = tuple(each.id for each in placement.pages)
    vector = next((each.embedding for each in placement.pages if each.embedding), None)
    arrival = PageArrival(page_id, placement.segment_id or new_id, f"of {' '.join(pages)}", pages, moment, vector)
    return transfer(tiers, arrival, policy).memory


def said(numbers, policy, tiers=ADA, **given):
    """Return the tiers after the insertion of pages of those numbers."""
    for number in numbers:
        tiers = insert(tiers, page(number, **given), policy).memory
    return tiers


def described(tiers, page_id, policy, *, embedding=None, keywords=()):
    return describe(tiers, Description(page_id, embedding, frozenset(keywords)), policy).memory


def ids(values):
    return [each.id for each in values]
