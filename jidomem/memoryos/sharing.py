"""How what one agent learnt becomes known to all: facts that matter enough, none of them private, each of them once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from jidomem.memoryos import form
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Value
from jidomem.memoryos.scores import Policy, cosine
from jidomem.memoryos.teaching import normalised
from jidomem.memoryos.tiers import SystemMemory, Tiers, stepped
from jidomem.memoryos.values import KnowledgeEntry, SystemEntry
from jidomem.spaces.step import Step


@dataclass(frozen=True, slots=True)
class Judgement(Value):
    """How much facts matter to all agents, from 0 to 1, by their ids."""

    importance: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._hold(importance=form.mapping)
        for entry_id, importance in self.importance.items():
            form.share(f"the importance of {entry_id}", importance)


@dataclass(frozen=True, slots=True)
class Diffusion(Value):
    """Facts of one agent, at a moment: those that matter enough are told to all."""

    agent_id: str
    facts: tuple[KnowledgeEntry, ...]
    at: datetime

    def __post_init__(self) -> None:
        self._hold(agent_id=form.text, facts=form.each_of(KnowledgeEntry), at=form.moment)


def unjudged(tiers: Tiers) -> tuple[KnowledgeEntry, ...]:
    """Return the facts of which nobody said how much they matter to all agents; the private ones need no judgement."""
    return tuple(
        fact for persona in tiers.personas for fact in persona.knowledge if fact.importance is None and not fact.private
    )


def judge(tiers: Tiers, judgement: Judgement, policy: Policy) -> Step[Tiers]:
    """Return the step to facts with the importance they were judged to have; those that are gone since stay so."""
    given = judgement.importance
    return stepped(
        tiers,
        policy.config,
        personas=tuple(
            replace(
                persona,
                knowledge=tuple(
                    replace(fact, importance=given[fact.id]) if fact.id in given else fact for fact in persona.knowledge
                ),
            )
            for persona in tiers.personas
        ),
    )


def critical(tiers: Tiers, policy: Policy) -> tuple[KnowledgeEntry, ...]:
    """Return the facts of the personas that matter to all agents, in the order they were learnt."""
    return tuple(fact for persona in tiers.personas for fact in persona.knowledge if _matters(fact, policy.config))


def diffuse(system: SystemMemory, told: Diffusion, policy: Policy) -> Step[SystemMemory]:
    """Return the step to system memory with the facts that matter enough and are not private, each of them once.

    What says the same as an entry, or nearly so by their vectors, is that entry, which matters as much as either. A
    fact that has become private is taken back. What there is no room for goes: that which matters least, of these the
    oldest.
    """
    config, private = policy.config, {fact.id for fact in told.facts if fact.private}
    entries = {
        entry.id: entry for entry in system.entries if entry.id not in private or entry.source_agent_id != told.agent_id
    }
    said = {normalised(entry.content): entry.id for entry in reversed(entries.values())}
    for fact in told.facts:
        if not _matters(fact, config):
            continue
        importance, words = fact.importance or 0.0, normalised(fact.text)
        same = entries.get(fact.id) or entries.get(said.get(words, "")) or _nearest(entries, fact, config)
        if same is not None and same.importance_score < importance:
            entries[same.id] = replace(same, importance_score=importance)
        elif same is None:
            said[words] = fact.id
            entries[fact.id] = SystemEntry(
                fact.id, fact.text, told.agent_id, importance, told.at, fact.embedding, fact.evidence
            )
    ranked = sorted(entries.values(), key=lambda each: (each.importance_score, each.creation_timestamp, each.id))
    gone = {each.id for each in ranked[: max(0, len(ranked) - config.system_capacity)]}
    left = tuple(entry for entry in entries.values() if entry.id not in gone)
    return Step(system) if left == system.entries else Step(SystemMemory(system.rev + 1, left))


def _matters(fact: KnowledgeEntry, config: MemoryOSConfig) -> bool:
    threshold = config.system_importance_threshold
    return not fact.private and fact.importance is not None and config.reaches(fact.importance, threshold)


def _nearest(entries: Mapping[str, SystemEntry], fact: KnowledgeEntry, config: MemoryOSConfig) -> SystemEntry | None:
    """Return the entry whose vector is nearest to that of *fact*, if it is so near that both say the same."""
    if fact.embedding is None:
        return None
    near = {
        entry.id: cosine(entry.embedding, fact.embedding, strict=config.strict_vectors) for entry in entries.values()
    }
    nearest = max(entries.values(), key=lambda entry: near[entry.id], default=None)
    return nearest if nearest is not None and near[nearest.id] >= config.system_similarity else None
