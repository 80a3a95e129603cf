"""The tiers of one agent as one value, in which each page is in one place, and what all agents know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

from jidomem.directive import Directive
from jidomem.errors import InvalidRequest
from jidomem.memoryos import form
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Value
from jidomem.memoryos.values import AgentPersona, DialoguePage, DialogueSegment, ObjectKey, ObjectPersona, SystemEntry
from jidomem.spaces.step import Step


@dataclass(frozen=True, slots=True)
class Tiers(Value):
    """What one agent holds: short-term, mid-term and long-term memory; `rev` counts the moves that changed it.

    `stm` is the queue of its newest pages, `leaving` those that were pushed out of it and are not yet in a segment,
    both in the order they came; `mtm` are the segments, oldest first; `personas` are of others, `agent` is its own.
    """

    agent_id: str
    rev: int = 0
    stm: tuple[DialoguePage, ...] = ()
    leaving: tuple[DialoguePage, ...] = ()
    mtm: tuple[DialogueSegment, ...] = ()
    personas: tuple[ObjectPersona, ...] = ()
    agent: AgentPersona = cast(AgentPersona, None)

    def __post_init__(self) -> None:
        self._hold(agent_id=form.text, rev=form.count, stm=_PAGES, leaving=_PAGES, mtm=_SEGMENTS, personas=_PERSONAS)
        if not isinstance(self.agent, AgentPersona):
            own = AgentPersona(self.agent_id) if self.agent is None else AgentPersona.from_dict(self.agent)
            object.__setattr__(self, "agent", own)
        everything: list[Any] = [*self.stm, *self.leaving, *self.mtm, *self.personas, self.agent]
        for held in everything:
            if held.agent_id != self.agent_id:
                raise InvalidRequest(
                    f"what {held.agent_id} holds is not what {self.agent_id} holds: {held!r:.100}",
                    hint=f"give it to Tiers({held.agent_id!r})",
                )
        if linked := next((page for page in (*self.stm, *self.leaving) if page.segment_id is not None), None):
            raise InvalidRequest(
                f"page {linked.id} is in segment {linked.segment_id}, and not in short-term memory",
                hint="leave segment_id out until it is transferred",
            )
        object.__setattr__(self, "mtm", tuple(sorted(self.mtm, key=lambda each: (each.created_at, each.id))))
        _once("page", [page.id for page in self.pages()])
        _once("segment", [segment.id for segment in self.mtm])
        _once("persona", [persona.key for persona in self.personas])
        _once("fact", [fact.id for persona in self.personas for fact in persona.knowledge])
        for traits in (self.agent.traits, *(persona.traits for persona in self.personas)):
            _once("trait", [trait.id for trait in traits])

    def pages(self) -> Iterator[DialoguePage]:
        """Yield all pages: of short-term memory, those that leave it, and those of the segments."""
        return chain(self.stm, self.leaving, *(segment.pages for segment in self.mtm))

    def page(self, page_id: str) -> DialoguePage | None:
        """Return the page of that id, None where it is not or no more."""
        return next((page for page in self.pages() if page.id == page_id), None)

    def segment(self, segment_id: str) -> DialogueSegment | None:
        """Return the segment of that id, None where it is not or no more."""
        return next((segment for segment in self.mtm if segment.id == segment_id), None)

    def persona(self, key: ObjectKey) -> ObjectPersona | None:
        """Return the persona of whom *key* names, None where there is none."""
        return next((persona for persona in self.personas if persona.key == key), None)


@dataclass(frozen=True, slots=True)
class SystemMemory(Value):
    """What all agents of a project may know, in the order it came; `rev` counts the moves that changed it."""

    rev: int = 0
    entries: tuple[SystemEntry, ...] = ()

    def __post_init__(self) -> None:
        self._hold(rev=form.count, entries=form.each_of(SystemEntry))
        _once("entry", [entry.id for entry in self.entries])


def stepped(before: Tiers, config: MemoryOSConfig, *directives: Directive, **changes: Any) -> Step[Tiers]:
    """Return the step to *before* with *changes*, fitted to the capacities: *before* itself where nothing changes.

    Pages that short-term memory has no room for leave it, the oldest first; entries that a persona has no room for are
    gone, the oldest first. So a change of the settings takes effect with the next move, whichever it is.
    """
    stm, leaving = changes.get("stm", before.stm), changes.get("leaving", before.leaving)
    surplus = max(0, len(stm) - config.stm_capacity)
    changes |= {
        "stm": stm[surplus:],
        "leaving": (*leaving, *stm[:surplus]),
        "personas": tuple(_fitted(each, config) for each in changes.get("personas", before.personas)),
        "agent": _own(changes.get("agent", before.agent), config),
    }
    if all(getattr(before, name) == value for name, value in changes.items()):
        return Step(before, directives)
    return Step(replace(before, **changes, rev=before.rev + 1), directives)


def fit(tiers: Tiers, config: MemoryOSConfig) -> Step[Tiers]:
    """Return the step to what the capacities of *config* leave room for."""
    return stepped(tiers, config)


def _fitted(persona: ObjectPersona, config: MemoryOSConfig) -> ObjectPersona:
    knowledge = persona.knowledge[-config.object_kb_capacity :]
    traits = persona.traits[-config.object_traits_capacity :]
    if len(knowledge) == len(persona.knowledge) and len(traits) == len(persona.traits):
        return persona
    return replace(persona, knowledge=knowledge, traits=traits)


def _own(agent: AgentPersona, config: MemoryOSConfig) -> AgentPersona:
    traits = agent.traits[-config.agent_traits_capacity :]
    return agent if len(traits) == len(agent.traits) else replace(agent, traits=traits)


def _once(what: str, ids: list[Any]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(each for place, each in enumerate(ids) if each in ids[:place])
        raise InvalidRequest(f"{what} {twice} is held twice", hint="each is in one place: leave one of them out")


_PAGES, _SEGMENTS, _PERSONAS = (
    form.each_of(DialoguePage), form.each_of(DialogueSegment), form.each_of(ObjectPersona),
)  # fmt: skip
