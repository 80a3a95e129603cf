"""How the personas of long-term memory are taught: profiles, facts and traits, in queues that let go of the oldest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar, cast

from jidomem.errors import InvalidRequest, RevisionConflict
from jidomem.frozen import kind_of
from jidomem.memoryos import form
from jidomem.memoryos.config import KINDS, MemoryOSConfig
from jidomem.memoryos.form import Value
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import Tiers, stepped
from jidomem.memoryos.values import DialogueSegment, KnowledgeEntry, ObjectKey, ObjectPersona, TraitEntry
from jidomem.memoryos.warming import archived, warmed
from jidomem.spaces.step import Step
from jidomem.words import normal_text

E = TypeVar("E", KnowledgeEntry, TraitEntry)


@dataclass(frozen=True, slots=True)
class Learnt(Value):
    """What is learnt of one object, named by its type and identifier; of the agent itself where both are None.

    An agent's own persona has a profile and traits: facts of it are those of an object, such as ("agent", its id).
    """

    type: str | None = None
    identifier: str | None = None
    profile: Mapping[str, Any] = field(default_factory=dict)
    knowledge: tuple[KnowledgeEntry, ...] = ()
    traits: tuple[TraitEntry, ...] = ()

    def __post_init__(self) -> None:
        self._hold(type=form.unless_none(form.text), identifier=form.unless_none(form.text), profile=form.mapping,
                   knowledge=form.each_of(KnowledgeEntry), traits=form.each_of(TraitEntry))  # fmt: skip
        if (self.type is None) != (self.identifier is None):
            raise InvalidRequest("it is not said of whom this is learnt", hint='give type="user", identifier="ana"')
        if self.type is None and self.knowledge:
            raise InvalidRequest(
                "facts are learnt of an object, and none is named",
                hint='name it: type="agent", identifier=agent_id for the agent itself',
            )


@dataclass(frozen=True, slots=True)
class Lesson(Value):
    """What a model found in pages of a segment, at a moment; entries that name no pages rest on all of them."""

    segment_id: str
    pages: tuple[str, ...]
    at: datetime
    learnt: tuple[Learnt, ...] = ()

    def __post_init__(self) -> None:
        self._hold(segment_id=form.text, pages=form.texts, at=form.moment, learnt=form.each_of(Learnt))


def untaught(segment: DialogueSegment) -> DialogueSegment:
    """Return the segment with pages that no persona was taught from, all with the same one: what a model is shown.

    So what one says of himself is not learnt of another that the agent talked with about the same.
    """
    fresh = [page for page in segment.pages if not page.analysed]
    return replace(segment, pages=tuple(page for page in fresh if page.object == fresh[0].object))


def learn(tiers: Tiers, learnt: Learnt, policy: Policy) -> Step[Tiers]:
    """Return the step to a persona, new if there was none, with a profile, facts and traits besides its own.

    Of a profile the keys are merged. A fact or trait that is known is the newest again and rests on more pages; a trait
    of a name that the settings call single takes the place of any other. Raises InvalidRequest for a profile that its
    type does not have.
    """
    return stepped(tiers, policy.config, **_learning(tiers, [learnt], policy.config))


def teach(tiers: Tiers, lesson: Lesson, policy: Policy) -> Step[Tiers]:
    """Return the step to personas that were taught a lesson, and its pages counting no more for the heat.

    As `on_transfer` says the segment stays, or is archived and gone once all of it was taught. As before where its
    pages were taught already, or the segment is gone. Raises RevisionConflict where some of them were, and others not.
    """
    segment = tiers.segment(lesson.segment_id)
    if segment is None:
        return stepped(tiers, policy.config)
    fresh = {page.id for page in segment.pages if not page.analysed} & {*lesson.pages}
    if not fresh:
        return stepped(tiers, policy.config)
    if fresh != {*lesson.pages}:
        raise RevisionConflict(
            f"some pages of segment {segment.id} were taught by now", hint="ask the model about those that were not"
        )
    pages = tuple(replace(page, analysed=True) if page.id in fresh else page for page in segment.pages)
    after = warmed(replace(segment, pages=pages, visits_taught=segment.visit_count), lesson.at, policy)
    gone = [after] if policy.config.on_transfer == "delete" and after.analysed else []
    mtm = tuple(after if each.id == after.id else each for each in tiers.mtm)
    learnt = [_resting(each, lesson.pages) for each in lesson.learnt]
    return stepped(
        tiers,
        policy.config,
        *archived(gone, policy.config),
        mtm=tuple(each for each in mtm if each not in gone),
        **_learning(tiers, learnt, policy.config),
    )


def _resting(learnt: Learnt, pages: tuple[str, ...]) -> Learnt:
    """Return what was learnt with the pages it rests on."""

    def with_evidence(entries: Iterable[E]) -> tuple[E, ...]:
        return tuple(each if each.evidence else replace(each, evidence=pages) for each in entries)

    return replace(learnt, knowledge=with_evidence(learnt.knowledge), traits=with_evidence(learnt.traits))


def _learning(tiers: Tiers, learnt: Iterable[Learnt], config: MemoryOSConfig) -> dict[str, Any]:
    """Return the personas after what was learnt: others by their keys, and the agent's own."""
    personas, agent = {each.key: each for each in tiers.personas}, tiers.agent
    single = frozenset(map(normalised, config.single_traits))

    def inferred(trait: TraitEntry) -> str:
        return normalised(trait.name if normalised(trait.name) in single else trait.text)

    for each in learnt:
        if each.type is None:
            profile = {**agent.profile, **each.profile}
            agent = replace(agent, profile=profile, traits=_queued(agent.traits, each.traits, inferred, config))
            continue
        key = ObjectKey(each.type, cast(str, each.identifier))
        held = personas.get(key) or ObjectPersona(tiers.agent_id, *key)
        _refuse_profile(key, each.profile, config)
        personas[key] = replace(
            held,
            profile={**held.profile, **each.profile},
            knowledge=_queued(held.knowledge, each.knowledge, _said, config),
            traits=_queued(held.traits, each.traits, inferred, config),
        )
    return {"personas": tuple(personas.values()), "agent": agent}


def _queued(held: tuple[E, ...], more: Iterable[E], same: Callable[[E], str], config: MemoryOSConfig) -> tuple[E, ...]:
    """Return the queue after *more*: what is the same as one in it takes its place, as the newest."""
    queue = {same(each): each for each in held}
    for each in more:
        known = queue.pop(same(each), None)
        after = each if known is None else _again(known, each)
        queue[same(each)] = replace(after, evidence=after.evidence[-config.evidence_capacity :])
    return tuple(queue.values())


def _again(known: E, newer: E) -> E:
    """Return what is said once more: a fact as it was first said, a trait as it is now; private if either is.

    A trait that is another by now is nothing that was said before.
    """
    if isinstance(known, TraitEntry) and normalised(known.text) != normalised(newer.text):
        return newer
    private, evidence = known.private or newer.private, tuple(dict.fromkeys((*known.evidence, *newer.evidence)))
    if isinstance(known, KnowledgeEntry):
        confidence = max(known.confidence, newer.confidence)
        return replace(known, confidence=confidence, private=private, evidence=evidence)
    return replace(newer, private=private, evidence=evidence)


def _said(entry: KnowledgeEntry) -> str:
    return normalised(entry.text)


def normalised(text: str) -> str:
    """Return *text* as it is compared: in whatever case, white space, and sign at its end.

    >>> normalised("Ana  uses Oxigraph.") == normalised("ana uses oxigraph")
    True
    """
    return normal_text(text).rstrip(" .!;,")


def _refuse_profile(key: ObjectKey, profile: Mapping[str, Any], config: MemoryOSConfig) -> None:
    """Raise InvalidRequest for what a profile of that type does not have; a type nobody told of may have anything."""
    kinds = config.profiles.get(key.type)
    for name, value in profile.items() if kinds is not None else ():
        kind = cast(Mapping[str, str], kinds).get(name)
        if kind is None:
            has = ", ".join(cast(Mapping[str, str], kinds))
            raise InvalidRequest(f"a profile of {key.type!r} has no {name!r:.100}", hint=f"it has {has}")
        if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "truth"):
            said = f"{name} of a profile of {key.type!r} is a {kind}, not a {kind_of(value)}"
            raise InvalidRequest(said, hint=f"give {name} as a {kind}")
