"""What the four tiers hold: pages of a dialogue, segments of them, personas, and what the whole system knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from jidomem.errors import InvalidRequest
from jidomem.memoryos import form
from jidomem.memoryos.form import Value, Vector


class ObjectKey(NamedTuple):
    """Who or what a persona is of: a type such as user, service or file, and what tells it from others of that type."""

    type: str
    identifier: str


def key_of(type_: str | None, identifier: str | None) -> ObjectKey | None:
    """Return whom a type and an identifier name, None where they are not both given."""
    return None if type_ is None or identifier is None else ObjectKey(type_, identifier)


@dataclass(frozen=True, slots=True)
class DialoguePage(Value):
    """One exchange: what an agent was asked, what it answered, and when.

    `meta_chain` sums up the talk that it goes on with, `continues` is the page before it in that talk; `segment_id` is
    None until it is in a segment. `object_type` and `object_identifier` name whom the agent talked with. A page is
    `analysed` once the personas were taught from it.
    """

    id: str
    agent_id: str
    query: str
    response: str
    timestamp: datetime
    meta_chain: str | None = None
    continues: str | None = None
    segment_id: str | None = None
    embedding: Vector | None = None
    keywords: frozenset[str] = frozenset()
    object_type: str | None = None
    object_identifier: str | None = None
    analysed: bool = False

    def __post_init__(self) -> None:
        self._hold(id=form.text, agent_id=form.text, query=form.words, response=form.words, timestamp=form.moment,
                   meta_chain=_WORDS, continues=_TEXT, segment_id=_TEXT, embedding=_VECTOR, keywords=form.text_set,
                   object_type=_TEXT, object_identifier=_TEXT, analysed=form.truth)  # fmt: skip
        if (self.object_type is None) != (self.object_identifier is None):
            raise InvalidRequest(
                f"page {self.id} names half of whom the agent talked with",
                hint='give both: object_type="user", object_identifier="ana"',
            )

    @property
    def text(self) -> str:
        r"""Return what was said, as it is embedded and summed up.

        >>> DialoguePage("p1", "a", "Which index?", "Oxigraph.", "2026-11-21").text
        'Which index?\nOxigraph.'
        """
        return "\n".join(filter(None, (self.query, self.response)))

    @property
    def when(self) -> tuple[datetime, str]:
        """Return what pages are in order by: when they were said, then their id."""
        return self.timestamp, self.id

    @property
    def object(self) -> ObjectKey | None:
        """Return whom the agent talked with, None where nobody said."""
        return key_of(self.object_type, self.object_identifier)


@dataclass(frozen=True, slots=True)
class DialogueSegment(Value):
    """Pages about one topic, oldest first, with its summary, the vector of that, and how hot it is.

    `visit_count` counts how often it was retrieved, `visits_taught` how many of these were before the personas were
    last taught from it; `last_accessed` is when it was last retrieved or got a page; `heat_score` is the heat it had
    when that was last worked out.
    """

    id: str
    agent_id: str
    topic_summary: str
    created_at: datetime
    last_accessed: datetime
    embedding: Vector | None = None
    keywords: frozenset[str] = frozenset()
    heat_score: float = 0.0
    visit_count: int = 0
    visits_taught: int = 0
    pages: tuple[DialoguePage, ...] = ()

    def __post_init__(self) -> None:
        self._hold(id=form.text, agent_id=form.text, topic_summary=form.words, created_at=form.moment,
                   last_accessed=form.moment, embedding=_VECTOR, keywords=form.text_set, heat_score=form.number,
                   visit_count=form.count, visits_taught=form.count, pages=form.each_of(DialoguePage))  # fmt: skip
        object.__setattr__(self, "pages", tuple(sorted(self.pages, key=lambda page: page.when)))
        if self.visits_taught > self.visit_count:
            raise InvalidRequest(
                f"segment {self.id} was retrieved {self.visit_count} times, and {self.visits_taught} of these are past",
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
        """Return how many pages it has."""
        return len(self.pages)

    @property
    def visits(self) -> int:
        """Return how often it was retrieved since the personas were last taught from it."""
        return self.visit_count - self.visits_taught

    @property
    def interactions(self) -> int:
        """Return how many of its pages were not yet taught to the personas."""
        return sum(not page.analysed for page in self.pages)

    @property
    def analysed(self) -> bool:
        """Return whether the personas were taught from all that it holds."""
        return bool(self.pages) and self.interactions == 0


@dataclass(frozen=True, slots=True)
class KnowledgeEntry(Value):
    """A fact that a persona holds, and the pages it was learnt from; a `private` one never leaves the agent.

    `importance` is how much it matters to all agents, from 0 to 1; None while nobody has judged it.
    """

    id: str
    text: str
    created_at: datetime
    confidence: float = 1.0
    private: bool = False
    evidence: tuple[str, ...] = ()
    embedding: Vector | None = None
    importance: float | None = None

    def __post_init__(self) -> None:
        self._hold(id=form.text, text=form.text, created_at=form.moment, confidence=form.share, private=form.truth,
                   evidence=form.texts, embedding=_VECTOR, importance=_SHARE)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraitEntry(Value):
    """A trait that was inferred: a name such as tone, what it is, and the pages it was inferred from."""

    id: str
    name: str
    value: str
    created_at: datetime
    confidence: float = 1.0
    private: bool = False
    evidence: tuple[str, ...] = ()
    embedding: Vector | None = None

    def __post_init__(self) -> None:
        self._hold(id=form.text, name=form.text, value=form.text, created_at=form.moment, confidence=form.share,
                   private=form.truth, evidence=form.texts, embedding=_VECTOR)  # fmt: skip

    @property
    def text(self) -> str:
        """Return the trait as one text.

        >>> TraitEntry("t1", "tone", "terse", "2026-11-21").text
        'tone: terse'
        """
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True)
class ObjectPersona(Value):
    """What an agent knows of one user, service, file or other thing: its profile, facts and traits, oldest first."""

    agent_id: str
    type: str
    identifier: str
    profile: Mapping[str, Any] = field(default_factory=dict)
    knowledge: tuple[KnowledgeEntry, ...] = ()
    traits: tuple[TraitEntry, ...] = ()

    def __post_init__(self) -> None:
        self._hold(agent_id=form.text, type=form.text, identifier=form.text, profile=form.mapping,
                   knowledge=form.each_of(KnowledgeEntry), traits=form.each_of(TraitEntry))  # fmt: skip

    @property
    def key(self) -> ObjectKey:
        """Return what tells it from the other personas of its agent."""
        return ObjectKey(self.type, self.identifier)


@dataclass(frozen=True, slots=True)
class AgentPersona(Value):
    """What an agent is: its profile, and the traits it has come to, oldest first."""

    agent_id: str
    profile: Mapping[str, Any] = field(default_factory=dict)
    traits: tuple[TraitEntry, ...] = ()

    def __post_init__(self) -> None:
        self._hold(agent_id=form.text, profile=form.mapping, traits=form.each_of(TraitEntry))


@dataclass(frozen=True, slots=True)
class SystemEntry(Value):
    """What all agents may know: a fact, the agent it came from, how much it matters, and the pages it rests on."""

    id: str
    content: str
    source_agent_id: str
    importance_score: float
    creation_timestamp: datetime
    embedding: Vector | None = None
    evidence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._hold(id=form.text, content=form.text, source_agent_id=form.text, importance_score=form.share,
                   creation_timestamp=form.moment, embedding=_VECTOR, evidence=form.texts)  # fmt: skip


_TEXT, _WORDS, _VECTOR, _SHARE = map(form.unless_none, (form.text, form.words, form.vector, form.share))
