"""The values of the four tiers: pages of a dialogue, segments, personas and the facts of the whole system.

`Tiers` is the memory of one agent, in which each page is in one place; `SystemMemory` is shared by all agents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, NamedTuple, cast

from jidomem.base.words import normal_text
from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos import config
from jidomem.extras.memoryos.config import MemoryOSConfig, ValidatedModel, Vector
from jidomem.records.directive import Directive, Step

#: A text that may be empty, and a number from 0 to 1.
Words = Annotated[str, config.words]
Share = Annotated[float, config.share]


#: The type of the objects that are persons.
USER = "user"


class ObjectKey(NamedTuple):
    """The key of a persona: a type such as user, service or file, and an identifier."""

    type: str
    identifier: str

    @property
    def user(self) -> str | None:
        """Return the name of a user for comparison, None for another object and for `UNNAMED`."""
        is_user = self.type.casefold() == USER and self != UNNAMED
        return _folded(self.identifier) if is_user else None

    def __str__(self) -> str:
        """Return the type and the identifier."""
        return f"{self.type} {self.identifier}"


@lru_cache
def _folded(name: str) -> str:
    return normal_text(name)


#: The object of facts whose pages name none.
UNNAMED = ObjectKey(USER, "unnamed")


def key_of(type_: str | None, identifier: str | None) -> ObjectKey | None:
    """Return the key of a type and an identifier, None if one of them is missing."""
    return None if type_ is None or identifier is None else ObjectKey(type_, identifier)


@dataclass(frozen=True, slots=True)
class DialoguePage(ValidatedModel):
    """One exchange of a dialogue: a query, the agent's response, and their time.

    `meta_chain` summarises the dialogue so far, `continues` is the previous page in it; `segment_id` is None until the
    page is in a segment. `object_type` and `object_identifier` name the other party. A page is `analysed` once the
    personas have learned from it.
    """

    id: str
    agent_id: str
    query: Words
    response: Words
    timestamp: datetime
    meta_chain: Words | None = None
    continues: str | None = None
    segment_id: str | None = None
    embedding: Vector | None = None
    keywords: frozenset[str] = frozenset()
    object_type: str | None = None
    object_identifier: str | None = None
    analysed: bool = False

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        if (self.object_type is None) != (self.object_identifier is None):
            raise InvalidRequest(
                f"page {self.id} names its other party incompletely",
                hint='give both: object_type="user", object_identifier="ana"',
            )

    @property
    def text(self) -> str:
        r"""Return the query and the response, the text that is embedded and summarised.

        >>> DialoguePage("p1", "a", "Which index?", "Oxigraph.", "2026-11-21").text
        'Which index?\nOxigraph.'
        """
        return "\n".join(filter(None, (self.query, self.response)))

    @property
    def when(self) -> tuple[datetime, str]:
        """Return the sort key of pages: their moment, then their id."""
        return self.timestamp, self.id

    @property
    def object(self) -> ObjectKey | None:
        """Return the other party of the dialogue, None if it is not known."""
        return key_of(self.object_type, self.object_identifier)

    @property
    def user(self) -> str | None:
        """Return `ObjectKey.user` of the other party."""
        return None if self.object is None else self.object.user


@dataclass(frozen=True, slots=True)
class DialogueSegment(ValidatedModel):
    """Pages about one topic, oldest first, with a summary, its vector, and the heat.

    `visit_count` is the number of retrievals, `visits_taught` that before the personas last learned from the segment;
    `last_accessed` is the time of its last retrieval or arrival of a page; `heat_score` is the last computed heat.
    """

    id: str
    agent_id: str
    topic_summary: Words
    created_at: datetime
    last_accessed: datetime
    embedding: Vector | None = None
    keywords: frozenset[str] = frozenset()
    heat_score: float = 0.0
    visit_count: int = 0
    visits_taught: int = 0
    pages: tuple[DialoguePage, ...] = ()

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        object.__setattr__(self, "pages", tuple(sorted(self.pages, key=lambda page: page.when)))
        if self.visits_taught > self.visit_count:
            raise InvalidRequest(
                f"segment {self.id} was retrieved {self.visit_count} times, and visits_taught is {self.visits_taught}",
                hint="give visits_taught up to visit_count",
            )
        for page in self.pages:
            if (page.agent_id, page.segment_id) != (self.agent_id, self.id):
                raise InvalidRequest(
                    f"page {page.id} of {page.agent_id} is in segment {page.segment_id}, and not in {self.id}",
                    hint="give its pages the agent_id and, as segment_id, the id of the segment",
                )

    @property
    def page_count(self) -> int:
        """Return the number of pages."""
        return len(self.pages)

    @property
    def visits(self) -> int:
        """Return the number of retrievals since the personas last learned from the segment."""
        return self.visit_count - self.visits_taught

    @property
    def interactions(self) -> int:
        """Return the number of pages that the personas have not yet learned from."""
        return sum(not page.analysed for page in self.pages)

    @property
    def analysed(self) -> bool:
        """Return whether the personas have learned from all of its pages."""
        return bool(self.pages) and self.interactions == 0


@dataclass(frozen=True, slots=True)
class KnowledgeEntry(ValidatedModel):
    """A fact of a persona, and the pages it was learned from; a `private` one never leaves the agent.

    `importance` is its importance to all agents, from 0 to 1; None until it is rated. `ends` are the ids of earlier
    facts that it ended or replaced. `user` is the user to whom an agent stated a fact about itself.
    """

    id: str
    text: str
    created_at: datetime
    confidence: Share = 1.0
    private: bool = False
    evidence: tuple[str, ...] = ()
    embedding: Vector | None = None
    importance: Share | None = None
    ends: tuple[str, ...] = ()
    user: str | None = None


@dataclass(frozen=True, slots=True)
class TraitEntry(ValidatedModel):
    """An inferred trait: a name such as tone, its value, and the pages it was inferred from; `user` as of a fact."""

    id: str
    name: str
    value: str
    created_at: datetime
    confidence: Share = 1.0
    private: bool = False
    evidence: tuple[str, ...] = ()
    embedding: Vector | None = None
    user: str | None = None

    @property
    def text(self) -> str:
        """Return the trait as one text.

        >>> TraitEntry("t1", "tone", "terse", "2026-11-21").text
        'tone: terse'
        """
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True)
class ObjectPersona(ValidatedModel):
    """An agent's knowledge of one object: its profile, facts and traits, oldest first."""

    agent_id: str
    type: str
    identifier: str
    profile: Mapping[str, Any] = field(default_factory=dict)
    knowledge: tuple[KnowledgeEntry, ...] = ()
    traits: tuple[TraitEntry, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """Return the object, the key of the persona within its agent."""
        return ObjectKey(self.type, self.identifier)


@dataclass(frozen=True, slots=True)
class AgentPersona(ValidatedModel):
    """The persona of an agent: its profile and its traits, oldest first."""

    agent_id: str
    profile: Mapping[str, Any] = field(default_factory=dict)
    traits: tuple[TraitEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemEntry(ValidatedModel):
    """A shared fact: its text, source agent, importance, and the pages on which it is based.

    `about` is its object, such as "service search"; `user` is the only user for whom it is.
    """

    id: str
    content: str
    source_agent_id: str
    importance_score: Share
    creation_timestamp: datetime
    embedding: Vector | None = None
    evidence: tuple[str, ...] = ()
    about: str | None = None
    user: str | None = None

    @property
    def text(self) -> str:
        """Return the fact with its object.

        >>> SystemEntry("k1", "embeds", "ada", 0.9, "2026-11-21", about="service search").text
        'service search: embeds'
        """
        return ": ".join(filter(None, (self.about, self.content)))


OwnPersona = Annotated[AgentPersona, config.optional(config.instance_of(AgentPersona))]


@dataclass(frozen=True, slots=True)
class Tiers(ValidatedModel):
    """The memory of one agent: short-term, mid-term and long-term; `rev` counts its moves.

    `stm` is the queue of its newest pages, `leaving` those that were pushed out of it and are not yet in a segment,
    both in order of arrival; `mtm` are the segments, oldest first; `personas` are of objects, `agent` is the agent's
    own.
    """

    agent_id: str
    rev: int = 0
    stm: tuple[DialoguePage, ...] = ()
    leaving: tuple[DialoguePage, ...] = ()
    mtm: tuple[DialogueSegment, ...] = ()
    personas: tuple[ObjectPersona, ...] = ()
    agent: OwnPersona = cast(AgentPersona, None)

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        if self.agent is None:
            object.__setattr__(self, "agent", AgentPersona(self.agent_id))
        everything: list[Any] = [*self.stm, *self.leaving, *self.mtm, *self.personas, self.agent]
        for item in everything:
            if item.agent_id != self.agent_id:
                raise InvalidRequest(
                    f"an item of {item.agent_id} is in the tiers of {self.agent_id}: {item!r:.100}",
                    hint=f"give it to Tiers({item.agent_id!r})",
                )
        if linked := next((page for page in (*self.stm, *self.leaving) if page.segment_id is not None), None):
            raise InvalidRequest(
                f"page {linked.id} is in segment {linked.segment_id}, and not in short-term memory",
                hint="leave segment_id out until it is transferred",
            )
        object.__setattr__(self, "mtm", tuple(sorted(self.mtm, key=lambda each: (each.created_at, each.id))))
        _refuse_duplicates("page", [page.id for page in self.pages()])
        _refuse_duplicates("segment", [segment.id for segment in self.mtm])
        _refuse_duplicates("persona", [persona.key for persona in self.personas])
        _refuse_duplicates("fact", [fact.id for fact in self.facts()])
        for traits in (self.agent.traits, *(persona.traits for persona in self.personas)):
            _refuse_duplicates("trait", [trait.id for trait in traits])

    def pages(self) -> Iterator[DialoguePage]:
        """Yield all pages: of short-term memory, those that leave it, and those of the segments."""
        return chain(self.stm, self.leaving, *(segment.pages for segment in self.mtm))

    def facts(self) -> Iterator[KnowledgeEntry]:
        """Yield the facts of all personas of objects, in the order they were learned."""
        return (fact for persona in self.personas for fact in persona.knowledge)

    def entries(self) -> Iterator[KnowledgeEntry | TraitEntry]:
        """Yield the facts and traits of all personas, those of the agent itself first."""
        yield from self.agent.traits
        for persona in self.personas:
            yield from persona.knowledge
            yield from persona.traits

    def page(self, page_id: str) -> DialoguePage | None:
        """Return the page of that id, None if there is none."""
        return next((page for page in self.pages() if page.id == page_id), None)

    def segment(self, segment_id: str) -> DialogueSegment | None:
        """Return the segment of that id, None if there is none."""
        return next((segment for segment in self.mtm if segment.id == segment_id), None)

    def known_object(self, key: ObjectKey) -> ObjectKey:
        """Return the key of an object as it is spelled here: names of users without regard to case and blanks."""
        if key.user is None or self.persona(key) is not None:
            return key
        keys = chain((each.key for each in self.personas), (page.object for page in self.pages()))
        same = [each for each in keys if each and each.type == USER and each.user == key.user]
        given = ObjectKey(USER, key.identifier.strip())
        return given if not same or given in same else same[0]

    def persona(self, key: ObjectKey) -> ObjectPersona | None:
        """Return the persona of that object, None if there is none."""
        return next((persona for persona in self.personas if persona.key == key), None)


@dataclass(frozen=True, slots=True)
class SystemMemory(ValidatedModel):
    """The memory shared by all agents of a project, oldest first; `rev` counts its moves."""

    rev: int = 0
    entries: tuple[SystemEntry, ...] = ()

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        _refuse_duplicates("entry", [entry.id for entry in self.entries])


def stepped(before: Tiers, config: MemoryOSConfig, *directives: Directive, **changes: Any) -> Step[Tiers]:
    """Return the step to *before* with *changes*, fitted to the capacities: *before* itself if nothing changes.

    Pages beyond the capacity of short-term memory leave it, and entries beyond that of a persona are dropped, the
    oldest first. So a change of the settings takes effect with the next move, whichever it is.
    """
    stm, leaving = changes.get("stm", before.stm), changes.get("leaving", before.leaving)
    surplus = max(0, len(stm) - config.stm_capacity)
    changes |= {
        "stm": stm[surplus:],
        "leaving": (*leaving, *stm[:surplus]),
        "personas": tuple(_fit_persona(each, config) for each in changes.get("personas", before.personas)),
        "agent": _fit_agent(changes.get("agent", before.agent), config),
    }
    if all(getattr(before, name) == value for name, value in changes.items()):
        return Step(before, directives)
    return Step(replace(before, **changes, rev=before.rev + 1), directives)


def fit(tiers: Tiers, config: MemoryOSConfig) -> Step[Tiers]:
    """Return the step to tiers that fit the capacities of *config*."""
    return stepped(tiers, config)


def _fit_persona(persona: ObjectPersona, config: MemoryOSConfig) -> ObjectPersona:
    knowledge = persona.knowledge[-config.object_kb_capacity :]
    traits = persona.traits[-config.object_traits_capacity :]
    if len(knowledge) == len(persona.knowledge) and len(traits) == len(persona.traits):
        return persona
    return replace(persona, knowledge=knowledge, traits=traits)


def _fit_agent(agent: AgentPersona, config: MemoryOSConfig) -> AgentPersona:
    traits = agent.traits[-config.agent_traits_capacity :]
    return agent if len(traits) == len(agent.traits) else replace(agent, traits=traits)


def _refuse_duplicates(what: str, ids: list[Any]) -> None:
    if len(set(ids)) < len(ids):
        duplicate = next(each for place, each in enumerate(ids) if each in ids[:place])
        raise InvalidRequest(f"{what} {duplicate} occurs twice", hint="each is in one place: leave one of them out")
