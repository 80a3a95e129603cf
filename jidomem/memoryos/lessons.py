"""What a language model learnt from a segment as the lesson that the personas are taught."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar, cast

from jidomem.memoryos.form import Vector
from jidomem.memoryos.teaching import Learnt, Lesson
from jidomem.memoryos.values import DialoguePage, DialogueSegment, KnowledgeEntry, ObjectKey, TraitEntry
from jidomem.model import AGENT, Fact, Learned, Trait

F = TypeVar("F", Fact, Trait)
#: Whom an agent talked with where no page says.
UNNAMED = ObjectKey("user", "unnamed")


def texts_of(learned: Learned) -> tuple[str, ...]:
    """Return the texts of what was learnt, which have vectors once an embedder was asked.

    >>> texts_of(Learned((Fact("works as a nurse"),), (Trait("tone", "terse"),)))
    ('works as a nurse', 'tone: terse')
    """
    return (*(fact.text for fact in learned.facts), *map(_text, learned.traits))


def lesson(
    segment: DialogueSegment,
    learned: Learned,
    *,
    at: datetime,
    new_id: Callable[[], str],
    vectors: Mapping[str, Sequence[float]] | None = None,
) -> Lesson:
    """Return the lesson of what a model found in *segment*, `untaught` of one; *vectors* are those of `texts_of`.

    What it found of who asks is learnt of whom the page names. Of the agent, traits are its own persona's, and facts
    those of the object ("agent", its id). What names a page rests on it, all else on every page.
    """
    known = vectors or {}
    found: dict[ObjectKey | None, tuple[list[KnowledgeEntry], list[TraitEntry]]] = {}
    for fact in learned.facts:
        key = ObjectKey("agent", segment.agent_id) if fact.subject == AGENT else _object(segment, fact)
        entry = KnowledgeEntry(
            new_id(), fact.text, at, fact.confidence, fact.private, _evidence(segment, fact), _of(known, fact.text)
        )
        found.setdefault(key, ([], []))[0].append(entry)
    for trait in learned.traits:
        own = None if trait.subject == AGENT else _object(segment, trait)
        inferred = TraitEntry(
            new_id(), trait.name, trait.value, at, trait.confidence, trait.private, _evidence(segment, trait),
            _of(known, _text(trait)),
        )  # fmt: skip
        found.setdefault(own, ([], []))[1].append(inferred)
    learnt = [
        Learnt(key and key.type, key and key.identifier, {}, tuple(facts), tuple(traits))
        for key, (facts, traits) in found.items()
    ]
    return Lesson(segment.id, tuple(page.id for page in segment.pages), at, tuple(learnt))


def _object(segment: DialogueSegment, found: F) -> ObjectKey:
    """Return whom the page names that shows what was found, else whom the first page names that names anybody."""
    named = (page.object for page in (*_shown(segment, found), *segment.pages))
    return next((each for each in named if each is not None), UNNAMED)


def _evidence(segment: DialogueSegment, found: F) -> tuple[str, ...]:
    return tuple(page.id for page in _shown(segment, found))


def _shown(segment: DialogueSegment, found: F) -> tuple[DialoguePage, ...]:
    """Return the page that shows what was found, none where the model did not say, or named one it was not given."""
    return segment.pages[found.page : found.page + 1] if found.page is not None and found.page >= 0 else ()


def _of(vectors: Mapping[str, Sequence[float]], text: str) -> Vector | None:
    return cast("Vector | None", vectors.get(text))  # the entry holds it to its form


def _text(trait: Trait) -> str:
    return f"{trait.name}: {trait.value}"
