"""What the tiers of an agent hold as rows: what was found, pages, and what it knows of others and itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jidomem.memoryos.retrieval import Found, FoundPersona, Retrieved
    from jidomem.memoryos.tiers import Tiers


def found_rows(found: Retrieved) -> Iterator[dict[str, Any]]:
    """Yield what was found, tier by tier: its `tier`, `score`, `id` and `text`."""
    yield from _scored("stm", found.stm, "text")
    yield from _scored("leaving", found.leaving, "text")
    yield from _scored("segment", found.segments, "topic_summary")
    yield from _scored("page", found.pages, "text")
    for persona in (*found.personas, found.agent):
        yield from _scored(f"fact {_of(persona)}".rstrip(), persona.knowledge, "text")
        yield from _scored(f"trait {_of(persona)}".rstrip(), persona.traits, "text")
    yield from _scored("system", found.system, "content")


def _of(persona: FoundPersona) -> str:
    return f"{persona.key.type}:{persona.key.identifier}" if persona.key is not None else "itself"


def _scored(tier: str, found: Iterable[Found[Any]], text: str) -> Iterator[dict[str, Any]]:
    for each in found:
        yield {"tier": tier, "score": round(each.score, 3), "id": each.what.id, "text": getattr(each.what, text)}


def page_rows(tiers: Tiers) -> Iterator[dict[str, Any]]:
    """Yield the pages of all tiers in the order they were said, and `in` which place each is."""
    leaving = {page.id for page in tiers.leaving}
    for page in sorted(tiers.pages(), key=lambda page: page.when):
        about = f"{page.object.type}:{page.object.identifier}" if page.object is not None else None
        place = page.segment_id or ("leaving" if page.id in leaving else "stm")
        yield {"id": page.id, "in": place, "timestamp": page.timestamp, "about": about,
               "query": page.query, "response": page.response}  # fmt: skip


def known_rows(tiers: Tiers) -> Iterator[dict[str, Any]]:
    """Yield profiles, facts and traits of others, then those of the agent, a row each."""
    for of, profile, facts, traits in (
        *((f"{each.type}:{each.identifier}", each.profile, each.knowledge, each.traits) for each in tiers.personas),
        ("itself", tiers.agent.profile, (), tiers.agent.traits),
    ):
        for name, value in profile.items():
            yield {
                "of": of,
                "is": "profile",
                "text": f"{name}: {value if isinstance(value, str) else json.dumps(value)}",
            }
        for kind, entries in (("fact", facts), ("trait", traits)):
            for entry in entries:
                yield {"of": of, "is": kind, "id": entry.id, "text": entry.text, "confidence": entry.confidence,
                       "private": entry.private}  # fmt: skip
