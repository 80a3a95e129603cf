"""The vectors that what is held lacks: of which text each is, and how it comes to what is held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Vector
from jidomem.memoryos.joining import segment_text
from jidomem.memoryos.tiers import SystemMemory, Tiers, stepped
from jidomem.memoryos.values import (
    AgentPersona,
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectPersona,
    SystemEntry,
    TraitEntry,
)
from jidomem.spaces.step import Step

V = TypeVar("V", DialoguePage, DialogueSegment, KnowledgeEntry, TraitEntry, SystemEntry)
W = TypeVar("W", DialoguePage, DialogueSegment, KnowledgeEntry, TraitEntry, SystemEntry, ObjectPersona, AgentPersona)
#: What has a vector.
Embedded = DialoguePage | DialogueSegment | KnowledgeEntry | TraitEntry | SystemEntry
#: The vectors of texts.
Vectors = Mapping[str, Vector]


def text_of(held: Embedded) -> str:
    """Return the text that the vector of a value is of, empty where it has none to have."""
    if isinstance(held, DialogueSegment):
        return segment_text(held.topic_summary, held.keywords)
    return held.content if isinstance(held, SystemEntry) else held.text


def lacking(tiers: Tiers, system: SystemMemory) -> list[str]:
    """Return the texts of what has no vector, each once; pages that nobody described yet are not among them."""
    held: list[Embedded] = [*system.entries, *tiers.mtm, *tiers.agent.traits]
    for persona in tiers.personas:
        held += [*persona.knowledge, *persona.traits]
    held += [page for page in tiers.pages() if page.segment_id or page.meta_chain is not None]
    return [*dict.fromkeys(text_of(each) for each in held if each.embedding is None and text_of(each).strip())]


def filled(tiers: Tiers, vectors: Vectors, config: MemoryOSConfig) -> Step[Tiers]:
    """Return the step to tiers in which what has no vector has that of its text, where there is one."""
    return _each(tiers, config, lambda held: vectors.get(text_of(held)) if held.embedding is None else held.embedding)


def bare(tiers: Tiers, config: MemoryOSConfig) -> Step[Tiers]:
    """Return the step to tiers without a vector."""
    return _each(tiers, config, lambda held: None)


def filled_system(system: SystemMemory, vectors: Vectors) -> Step[SystemMemory]:
    """Return the step to system memory in which what has no vector has that of its text, where there is one."""
    return _each_entry(system, lambda held: vectors.get(text_of(held)) if held.embedding is None else held.embedding)


def bare_system(system: SystemMemory) -> Step[SystemMemory]:
    """Return the step to system memory without a vector."""
    return _each_entry(system, lambda held: None)


def _each(tiers: Tiers, config: MemoryOSConfig, vector: Callable[[Embedded], Vector | None]) -> Step[Tiers]:
    return stepped(
        tiers,
        config,
        stm=_with(tiers.stm, vector),
        leaving=_with(tiers.leaving, vector),
        mtm=_with((_kept(each, pages=_with(each.pages, vector)) for each in tiers.mtm), vector),
        personas=tuple(
            _kept(each, knowledge=_with(each.knowledge, vector), traits=_with(each.traits, vector))
            for each in tiers.personas
        ),
        agent=_kept(tiers.agent, traits=_with(tiers.agent.traits, vector)),
    )


def _each_entry(system: SystemMemory, vector: Callable[[Embedded], Vector | None]) -> Step[SystemMemory]:
    entries = _with(system.entries, vector)
    return Step(system) if entries == system.entries else Step(SystemMemory(system.rev + 1, entries))


def _with(held: Iterable[V], vector: Callable[[Embedded], Vector | None]) -> tuple[V, ...]:
    return tuple(_kept(each, embedding=vector(each)) for each in held)


def _kept(held: W, **changes: Any) -> W:
    """Return a value with *changes*: itself, and no copy, where they change nothing."""
    is_other = any(getattr(held, name) != value for name, value in changes.items())
    return replace(held, **changes) if is_other else held
