"""The personas of long-term memory: profiles, facts and traits, in queues that drop the oldest. Pure.

A `Lesson` is a segment's learnings, as a language model returned them, for the personas. `diffuse` shares the important
facts of one agent that are not private with all agents, each once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast

from jidomem.base.json_values import type_name
from jidomem.base.words import STILL, normal_text, singular
from jidomem.errors import InvalidRequest, RevisionConflict
from jidomem.extras.memoryos import config
from jidomem.extras.memoryos.config import KINDS, MemoryOSConfig, ValidatedModel, Vector
from jidomem.extras.memoryos.retrieval import archived, warmed
from jidomem.extras.memoryos.segments import TierPolicy, cosine
from jidomem.extras.memoryos.values import (
    UNNAMED,
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectKey,
    ObjectPersona,
    SystemEntry,
    SystemMemory,
    Tiers,
    TraitEntry,
    stepped,
)
from jidomem.records.directive import Step
from jidomem.records.interfaces import AGENT, Fact, Learned, Trait

E = TypeVar("E", KnowledgeEntry, TraitEntry)
Entry = KnowledgeEntry | TraitEntry


@dataclass(frozen=True, slots=True)
class ObjectLearnings(ValidatedModel):
    """The learnings about one object by type and identifier; about the agent if both are None.

    An agent's own persona has a profile and traits. Facts about the agent belong to an object, such as ("agent", its
    id).
    """

    type: str | None = None
    identifier: str | None = None
    profile: Mapping[str, Any] = field(default_factory=dict)
    knowledge: tuple[KnowledgeEntry, ...] = ()
    traits: tuple[TraitEntry, ...] = ()

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        if (self.type is None) != (self.identifier is None):
            raise InvalidRequest("the object of these learnings is missing", hint='give type="user", identifier="ana"')
        if self.type is None and self.knowledge:
            raise InvalidRequest(
                "facts need an object, and none is given",
                hint='name it: type="agent", identifier=agent_id for the agent itself',
            )


@dataclass(frozen=True, slots=True)
class Lesson(ValidatedModel):
    """The learnings of a model from a segment; entries without pages are based on all of its pages."""

    segment_id: str
    pages: tuple[str, ...]
    at: datetime
    learnt: tuple[ObjectLearnings, ...] = ()


def unlearned_pages(segment: DialogueSegment) -> DialogueSegment:
    """Return the segment with its untaught pages of one object, the input of a model.

    So a user's statement about himself is not attributed to another user who talked about the same topic.
    """
    fresh = [page for page in segment.pages if not page.analysed]
    return replace(segment, pages=tuple(page for page in fresh if page.object == fresh[0].object))


def learn(tiers: Tiers, learnt: ObjectLearnings, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that adds a profile, facts and traits to a persona, which is created if there is none.

    The keys of a profile are merged. A known fact or trait becomes the newest and is based on more pages; a trait whose
    name is in `single_traits` replaces any other of that name. A statement ends the earlier ones that it contradicts,
    such as "is no longer vegetarian" the fact "is vegetarian". Raises InvalidRequest for a profile that is invalid for
    its type.
    """
    return stepped(tiers, policy.config, **_learned_changes(tiers, [learnt], policy.config))


def apply_lesson(tiers: Tiers, lesson: Lesson, policy: TierPolicy) -> Step[Tiers]:
    """Return the step in which the personas learn a lesson; its pages no longer count for the heat.

    With `on_transfer` "delete" the segment is archived and removed once all its pages are taught. Nothing changes if
    the pages are taught already or the segment is gone. Raises RevisionConflict if only some of them are.
    """
    segment = tiers.segment(lesson.segment_id)
    if segment is None:
        return stepped(tiers, policy.config)
    fresh = {page.id for page in segment.pages if not page.analysed} & {*lesson.pages}
    if not fresh:
        return stepped(tiers, policy.config)
    if fresh != {*lesson.pages}:
        raise RevisionConflict(
            f"some pages of segment {segment.id} have been taught meanwhile",
            hint="call the model again with the other pages",
        )
    pages = tuple(replace(page, analysed=True) if page.id in fresh else page for page in segment.pages)
    after = warmed(replace(segment, pages=pages, visits_taught=segment.visit_count), lesson.at, policy)
    deleted = [after] if policy.config.on_transfer == "delete" and after.analysed else []
    mtm = tuple(after if each.id == after.id else each for each in tiers.mtm)
    learnt = [_with_evidence(each, lesson.pages) for each in lesson.learnt]
    return stepped(
        tiers,
        policy.config,
        *archived(deleted, policy.config),
        mtm=tuple(each for each in mtm if each not in deleted),
        **_learned_changes(tiers, learnt, policy.config),
    )


def _with_evidence(learnt: ObjectLearnings, pages: tuple[str, ...]) -> ObjectLearnings:
    def with_evidence(entries: Iterable[E]) -> tuple[E, ...]:
        return tuple(each if each.evidence else replace(each, evidence=pages) for each in entries)

    return replace(learnt, knowledge=with_evidence(learnt.knowledge), traits=with_evidence(learnt.traits))


def _learned_changes(tiers: Tiers, learnt: Iterable[ObjectLearnings], config: MemoryOSConfig) -> dict[str, Any]:
    personas, agent = {each.key: each for each in tiers.personas}, tiers.agent
    pages = {page.id: page.timestamp for page in tiers.pages()}
    single = frozenset(map(normalised, config.single_traits))

    def inferred(trait: TraitEntry) -> str:
        return normalised(trait.name if normalised(trait.name) in single else trait.text)

    learnt = [*learnt]
    times = [fact.created_at for each in learnt for fact in each.knowledge]
    now = max((*times, *(trait.created_at for each in learnt for trait in each.traits)), default=None)

    def stated_at(entry: Entry) -> tuple[bool, datetime]:
        """Return when an entry was stated last, after whether this is not in the future, by a clock that was wrong."""
        ""
        at = max((pages[page_id] for page_id in entry.evidence if page_id in pages), default=entry.created_at)
        return now is None or at <= now, at

    for each in learnt:
        if each.type is None:
            profile = {**agent.profile, **each.profile}
            agent = replace(agent, profile=profile, traits=_queue(agent.traits, each.traits, inferred, config))
            continue
        key = ObjectKey(each.type, cast(str, each.identifier))
        persona = personas.get(key) or ObjectPersona(tiers.agent_id, *key)
        _refuse_profile(key, each.profile, config)
        facts = _queue(persona.knowledge, each.knowledge, lambda fact: _LATELY.sub("", normalised(fact.text)), config)
        traits = _queue(persona.traits, each.traits, inferred, config)
        remaining = _remaining(facts, stated_at)
        ended = [fact for fact in facts if fact.id not in remaining]
        traits = tuple(trait for trait in traits if not any(_shows(fact, trait) for fact in ended))
        lasting = _remaining(traits, stated_at)
        personas[key] = replace(
            persona,
            profile={**persona.profile, **each.profile},
            knowledge=tuple(_with_ended(fact, remaining[fact.id], config) for fact in facts if fact.id in remaining),
            traits=tuple(trait for trait in traits if trait.id in lasting),
        )
    return {"personas": tuple(personas.values()), "agent": agent}


def _queue(
    entries: tuple[E, ...], new_entries: Iterable[E], key_of: Callable[[E], str], config: MemoryOSConfig
) -> tuple[E, ...]:
    queue = {key_of(each): each for each in entries}
    for each in new_entries:
        known = queue.pop(key_of(each), None)
        after = each if known is None else _merged_entry(known, each)
        queue[key_of(each)] = replace(after, evidence=after.evidence[-config.evidence_capacity :])
    return tuple(queue.values())


def _merged_entry(known: E, newer: E) -> E:
    """Return a repeated entry: a fact in its first wording, a trait in the new one; private if either is.

    A trait with a new value does not keep the evidence of the old one.
    """
    if isinstance(known, TraitEntry) and normalised(known.text) != normalised(newer.text):
        return newer
    private, evidence = known.private or newer.private, tuple(dict.fromkeys((*known.evidence, *newer.evidence)))
    user = known.user if private or known.user == newer.user else None  # what several saw is of nobody
    if isinstance(known, KnowledgeEntry):
        confidence = max(known.confidence, newer.confidence)
        return replace(known, confidence=confidence, private=private, evidence=evidence, user=user)
    return replace(newer, private=private, evidence=evidence, user=user)


#: The words after a statement, or in front of it, that say since when or how long it holds.
_LATELY = re.compile(r" (?:now|currently|nowadays|these days|at the moment)$")
_ENDED = re.compile(
    r"(?:(?P<be>is|are) (?:no longer|not)|no longer|(?:does|do) not|never|(?:has )?(?:stopped|quit|gave up|given up)"
    r"|used to|dis(?=likes?\b)) ?(?P<core>.+)"
)
_LEFT_JOB = re.compile(r"(?:quit|left|lost) (?:their|the) job\b(?: (?P<core>.+))?")
_ARTICLES = re.compile(r"\b(?:an?|the|their)\b ?")
_NUMBER = (
    r"(?:\d+(?:[.,]\d+)?|half|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty)"
)
_DOSE = rf"{_NUMBER} ?(?:mg|mcg|µg|g|ml)\b"
_SYNONYMS = (
    (re.compile(r" after all$"), ""),
    (
        re.compile(rf"^(takes|uses) ({_DOSE}) (?:of )?(?!(?:in|at|for|on|every|per|a|daily|once|twice|now)\b)([\w-]+)"),
        r"\1 \3 \2",
    ),
    (re.compile(r"^(?:hates?|detests?|despises?)\b"), "dislikes"),
    (re.compile(r"^((?:no longer |stopped |does not )?)(?:loves?|loving|enjoys?|enjoying|adores?)\b"), r"\1like"),
    (re.compile(r"\b(works?|working) (?:for|with)\b"), r"\1 at"),
    (re.compile(r"^(?:started|began|resumed|took up) (?=\w+ing\b)"), ""),
    (re.compile(r"^(?:got|became) (?=(?:married|divorced|engaged|widowed)\b)"), "is "),
    (re.compile(r"^(.{1,60}? (?:is|are)) now\b"), r"\1"),
)
_VERB_ENDING, _DOUBLED = re.compile(r"(?:ing|es|e|s)$"), re.compile(r"([bdgmnprt])\1$")
#: Statements that the dose of a thing has changed.
_DOSED = re.compile(
    rf"takes (?P<now>[\w-]+ {_DOSE}.*)|(?:(?:doctor )?(?:has )?(?P<verb>raised|increased|lowered|reduced|changed) )?"
    r"(?:the |their )?(?:dose of )?(?P<thing>[\w-]+)(?: dose)?(?(verb)| (?:has been |was )?"
    rf"(?:raised|increased|lowered|reduced|changed))(?: from .{{1,60}}?)? to (?P<dose>{_DOSE}.*)"
)
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
#: The beginning of a statement with an amount that has one value at a time, such as a dose: the amount is followed by
#: what is counted.
_AMOUNT = re.compile(
    r"((?:takes|uses|has|smokes|drinks|eats|weighs|sleeps|needs|earns|pays|works)(?: (?!an?\b|the\b|on\b|at\b"
    r"|in\b)[\w-]+){0,2}?)"
    rf" {_NUMBER}(?= ?(?!(?:{_MONTHS})[a-z]*\b)[a-zµ%])"
)
_COUNT = re.compile(rf"{_NUMBER}$|once$|twice$|daily$|weekly$|instead$")
#: A word with which a statement goes on that holds only if the statement before the word does.
_LINKS = frozenset(
    ("in", "at", "for", "with", "since", "on", "as", "and", "to", "from", "because", "when", "every", "after", "before")
)
#: The beginnings of statements of which one at a time is true.
_SINGLE = re.compile(
    r"(?:lives in (?!an?\b|the\b|my\b|their\b|our\b|one\b)|is called |favou?rite [\w ]+? (?:is|are) )"
    r"|(is )(?=\d+ years? old)|(is )(?=(?:single|married|divorced|engaged(?! in\b)|widowed)"
    r"(?: (?:to|with|in|on|last|this|since)\b|$))"
    r"|(is )(?=(?:left-handed|right-handed|ambidextrous)\b)|(.{0,60}?\b(?:is|are|costs?)(?: at| on)? )(?=[\d€$£+])"
)
_WORKS = re.compile(r"works (?:at|as) ")
#: Statements that something has changed: the thing, the change and the new value.
_NEW = re.compile(r"new (?P<thing>[\w .'-]{1,60}? (?:is|are) )(?P<value>.+)")
_CHANGED = re.compile(
    r"(?P<thing>[\w .'-]{1,60}?) (?:(?:has |have |was |were )?(?:been )?changed|(?:was|were|has been"
    r"|have been) (?P<moved>moved|postponed|rescheduled|shifted|brought forward"
    r"|put off))(?: from .{1,60}?)? to (?P<value>.+)"
)
_CLOCK = re.compile(r"\d{1,2}(?:[:.]\d\d| ?[ap]\.?m\b| o'clock)")
_NAME = r"[^\W\d_a-zß-ÿ][\w.'-]*"
_MOVED = re.compile(
    rf"moved (?:back )?(?:from .{{1,60}}? )?to (?P<place>{_NAME}(?: {_NAME}){{0,2}})(?: (?:again|now|today|yesterday"
    r"|recently"
    r"|(?:last|this) \w+|(?:from|with|because) .*))?[.!]?"
)
_REPLACES = re.compile(r"(?P<verb>\w+) .+ instead of (?P<old>.+)|(?:switched|changed) from (?P<before>.+) to .+")


@lru_cache(1_024)
def _statement(text: str) -> tuple[bool, tuple[str, ...], str, str, str, str]:
    """Return whether a statement is an ended one, its words for comparison, its slot, its text, and what it changes.

    The last is the beginning of the slot of a dose that it changes.
    """
    if moved := _MOVED.fullmatch(text):
        text = f"lives in {moved['place']}"
    plain = normalised(text)
    for pattern, common in _SYNONYMS:
        plain = pattern.sub(common, plain)
    is_new, plain, changed = _LATELY.search(plain) is not None, STILL.sub("", plain), ""
    dose = ""
    if (dosed := _DOSED.fullmatch(plain)) and (is_new or dosed["thing"]):
        new_dose = dosed["now"] or f"{dosed['thing']} {dosed['dose']}"
        dose = " ".join(map(singular, re.sub(_NUMBER, "#", f"takes {new_dose}", count=1).split()))
    if change := _NEW.fullmatch(plain) or _CHANGED.fullmatch(plain):
        when = "" if not change.groupdict().get("moved") else "at " if _CLOCK.match(change["value"]) else "on "
        changed = change["thing"] if change.re is _NEW else f"{change['thing']} is {when}"
        plain = changed + change["value"]
    elif is_new and (works := _WORKS.match(plain)):
        changed = works[0]
    amount, single = _AMOUNT.match(plain), _SINGLE.match(plain)
    slot = f"{single[0]}{single.lastindex or ''}" if single else ""
    if amount and not slot:
        slot = " ".join(map(singular, f"{amount[1]} #{plain[amount.end() :]}".split()))
    if (left := _LEFT_JOB.fullmatch(plain)) is not None:
        is_ended, core = True, f"work {left['core'] or ''}"
    elif (ended := _ENDED.fullmatch(plain)) is not None:
        is_ended, core = True, f"is {ended['core']}" if ended["be"] else ended["core"]
    else:
        is_ended, core = False, plain
    core = re.sub(r"^(?:is|are) (?=(?!working on\b)\w{2,}ing\b)", "", core)
    verb, *rest = _ARTICLES.sub("", re.sub(r"^(?:being|be|is|are)\b", "am", core)).split() or [""]
    stem = "has" if verb in ("has", "have", "having") else _DOUBLED.sub(r"\1", _VERB_ENDING.sub("", verb))
    return is_ended, (stem, *rest), slot, plain, changed, dose


def contradicts(one: str, other: str) -> bool:
    """Return whether two statements on one object cannot be true at a time, as far as their English wording shows.

    A statement that something was replaced contradicts only an earlier *one*.

    >>> contradicts("is vegetarian", "is no longer vegetarian"), contradicts("lives in Malmo", "lives in Lund now")
    (True, True)
    >>> contradicts("likes green tea", "does not like green"), contradicts("works at Acme", "works at Kestrel")
    (False, False)
    """
    first_ended, first, first_slot, plain, changed, _ = _statement(one)
    second_ended, second, second_slot, other_plain, other_changed, dose = _statement(other)
    if first_ended != second_ended:
        ended, holds = (first, second) if first_ended else (second, first)
        match ended, holds:
            case (verb, "at" | "in" | "for" as place, *_), (same, "as", *more) if verb == same and place in more:
                holds = (verb, *more[more.index(place) :])  # "works as a nurse at Acme" is also work at Acme
        following = holds[len(ended) :]
        return ended == holds[: len(ended)] and any(ended) and (not following or _goes_on(following[0]))
    if first_ended or plain == other_plain:
        return False
    if replaces := _REPLACES.fullmatch(other_plain):
        verbs, old = (
            ([replaces["verb"]], replaces["old"]) if replaces["verb"] else (["takes", "uses"], replaces["before"])
        )
        return any(contradicts(one, f"no longer {verb} {old}") for verb in verbs)
    return (
        (bool(first_slot) and first_slot == second_slot)
        or (bool(changed) and other_plain.startswith(changed))
        or (bool(other_changed) and plain.startswith(other_changed))
        or (bool(dose) and first_slot.startswith(dose))
    )


def _goes_on(word: str) -> bool:
    """Return whether what follows from *word* on holds only if the statement before it does."""
    return word in _LINKS or _COUNT.match(word) is not None


def _remaining(entries: Iterable[Entry], stated_at: Callable[[Entry], tuple[bool, datetime]]) -> dict[str, list[str]]:
    """Return the ids of the entries that no later one contradicts, each with the ids of those that it ended."""
    remaining, ended = dict[str, Entry](), dict[str, list[str]]()
    for entry in sorted(entries, key=stated_at):
        earlier = [each.id for each in remaining.values() if contradicts(_plain_text(each), _plain_text(entry))]
        before = entry.ends if isinstance(entry, KnowledgeEntry) else ()
        ended[entry.id] = [*before, *(name for each in earlier for name in (*ended.pop(each), each))]
        for each in earlier:
            del remaining[each]
        remaining[entry.id] = entry
    return ended


def _with_ended(fact: KnowledgeEntry, ended: Iterable[str], config: MemoryOSConfig) -> KnowledgeEntry:
    names = tuple(dict.fromkeys(ended))[-config.evidence_capacity :]
    return fact if names == fact.ends else replace(fact, ends=names)


def _plain_text(entry: Entry) -> str:
    return entry.text if isinstance(entry, KnowledgeEntry) else f"{entry.name} {entry.value}"


def _shows(fact: KnowledgeEntry, trait: TraitEntry) -> bool:
    """Return whether a trait was inferred from the same pages and words as a fact."""
    return {*trait.evidence} <= {*fact.evidence} and normalised(trait.value) in normalised(fact.text)


def normalised(text: str) -> str:
    """Return *text* for comparison: without differences of case, white space, and punctuation at the end.

    >>> normalised("Ana  uses Oxigraph.") == normalised("ana uses oxigraph")
    True
    """
    return normal_text(text).rstrip(" .!;,")


def _refuse_profile(key: ObjectKey, profile: Mapping[str, Any], config: MemoryOSConfig) -> None:
    kinds = config.profiles.get(key.type)
    for name, value in profile.items() if kinds is not None else ():
        kind = cast(Mapping[str, str], kinds).get(name)
        if kind is None:
            has = ", ".join(cast(Mapping[str, str], kinds))
            raise InvalidRequest(f"a profile of {key.type!r} has no {name!r:.100}", hint=f"it has {has}")
        if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "truth"):
            problem = f"{name} of a profile of {key.type!r} is a {kind}, not a {type_name(value)}"
            raise InvalidRequest(problem, hint=f"give {name} as a {kind}")


F = TypeVar("F", Fact, Trait)


def texts_of(learned: Learned) -> tuple[str, ...]:
    """Return the texts of the learnings, in the form that is embedded.

    >>> texts_of(Learned((Fact("works as a nurse"),), (Trait("tone", "terse"),)))
    ('works as a nurse', 'tone: terse')
    """
    return (*(fact.text for fact in learned.facts), *map(_trait_text, learned.traits))


def lesson(
    segment: DialogueSegment,
    learned: Learned,
    *,
    at: datetime,
    new_id: Callable[[], str],
    vectors: Mapping[str, Sequence[float]] | None = None,
) -> Lesson:
    """Return the lesson of a model's findings in *segment*, a result of `unlearned_pages`; *vectors* are by `texts_of`.

    A finding on the user belongs to the object of its page. Traits of the agent belong to its own persona, and facts
    about it to the object ("agent", its id); both note the user of the page. A finding that names a page is based on
    it, any other on every page.
    """
    known = vectors or {}
    by_object: dict[ObjectKey | None, tuple[list[KnowledgeEntry], list[TraitEntry]]] = {}
    for fact in learned.facts:
        key = ObjectKey("agent", segment.agent_id) if fact.subject == AGENT else _object(segment, fact)
        entry = KnowledgeEntry(
            new_id(),
            fact.text,
            at,
            fact.confidence,
            fact.private,
            _evidence(segment, fact),
            _vector_for(known, fact.text),
            user=_object(segment, fact).user if fact.subject == AGENT else None,
        )
        by_object.setdefault(key, ([], []))[0].append(entry)
    for trait in learned.traits:
        owner = None if trait.subject == AGENT else _object(segment, trait)
        inferred = TraitEntry(
            new_id(), trait.name, trait.value, at, trait.confidence, trait.private, _evidence(segment, trait),
            _vector_for(known, _trait_text(trait)), _object(segment, trait).user if owner is None else None,
        )  # fmt: skip
        by_object.setdefault(owner, ([], []))[1].append(inferred)
    learnt = [
        ObjectLearnings(key and key.type, key and key.identifier, {}, tuple(facts), tuple(traits))
        for key, (facts, traits) in by_object.items()
    ]
    return Lesson(segment.id, tuple(page.id for page in segment.pages), at, tuple(learnt))


def _object(segment: DialogueSegment, finding: F) -> ObjectKey:
    """Return the object of the page that shows a finding, else that of the first page that has an object."""
    named = (page.object for page in (*_source_pages(segment, finding), *segment.pages))
    return next((each for each in named if each is not None), UNNAMED)


def _evidence(segment: DialogueSegment, finding: F) -> tuple[str, ...]:
    return tuple(page.id for page in _source_pages(segment, finding))


def _source_pages(segment: DialogueSegment, finding: F) -> tuple[DialoguePage, ...]:
    """Return the page that shows a finding; none if the model named no page or an invalid one."""
    return segment.pages[finding.page : finding.page + 1] if finding.page is not None and finding.page >= 0 else ()


def _vector_for(vectors: Mapping[str, Sequence[float]], text: str) -> Vector | None:
    return cast("Vector | None", vectors.get(text))  # the entry validates it


def _trait_text(trait: Trait) -> str:
    return f"{trait.name}: {trait.value}"


@dataclass(frozen=True, slots=True)
class FactImportance(ValidatedModel):
    """The importance of facts to all agents, from 0 to 1, by their ids."""

    importance: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        for entry_id, importance in self.importance.items():
            config.share(f"the importance of {entry_id}", importance)


@dataclass(frozen=True, slots=True)
class PersonaDiffusion(ValidatedModel):
    """The personas of one agent at a moment, whose important facts are shared with all agents."""

    agent_id: str
    personas: Annotated[tuple[ObjectPersona, ...], config.tuple_of(ObjectPersona)]
    at: datetime


def unjudged(tiers: Tiers) -> tuple[KnowledgeEntry, ...]:
    """Return the facts without a rated importance; private ones need none."""
    return tuple(fact for fact in tiers.facts() if fact.importance is None and not fact.private)


def judge(tiers: Tiers, judgement: FactImportance, policy: TierPolicy) -> Step[Tiers]:
    """Return the step that sets the rated importance of facts; facts that are gone are ignored."""
    ratings = judgement.importance
    return stepped(
        tiers,
        policy.config,
        personas=tuple(
            replace(
                persona,
                knowledge=tuple(
                    replace(fact, importance=ratings[fact.id]) if fact.id in ratings else fact
                    for fact in persona.knowledge
                ),
            )
            for persona in tiers.personas
        ),
    )


def critical(tiers: Tiers, policy: TierPolicy) -> tuple[KnowledgeEntry, ...]:
    """Return the facts of the personas that are important to all agents, in the order they were learned."""
    return tuple(fact for fact in tiers.facts() if _matters(fact, policy.config))


def diffuse(system: SystemMemory, diffusion: PersonaDiffusion, policy: TierPolicy) -> Step[SystemMemory]:
    """Return the step to system memory with the facts that are important and not private, each of them once.

    A fact with the object and the text of an entry, or nearly its vector, is that entry, with the larger importance of
    the two. A fact that has become private, or has ended, is removed. Entries beyond the capacity are dropped, the
    least important first, among equals the oldest.
    """
    config, facts = policy.config, [(each, fact) for each in diffusion.personas for fact in each.knowledge]
    removed = {fact.id for _, fact in facts if fact.private}
    removed.update(name for _, fact in facts for name in fact.ends)
    entries = {
        entry.id: entry
        for entry in system.entries
        if entry.id not in removed or entry.source_agent_id != diffusion.agent_id
    }
    for persona, fact in facts:
        if not _matters(fact, config):
            continue
        entry = SystemEntry(
            fact.id, fact.text, diffusion.agent_id, fact.importance or 0.0, diffusion.at, fact.embedding, fact.evidence,
            str(persona.key), fact.user or persona.key.user,
        )  # fmt: skip
        same = entries.get(fact.id) or _same_entry(entries.values(), entry, config)
        if same is None:
            entries[fact.id] = entry
        else:
            importance = max(same.importance_score, entry.importance_score)
            user = entry.user if entry.user == same.user or same.about is None else None
            entries[same.id] = replace(same, importance_score=importance, about=same.about or entry.about, user=user)
    ranked = sorted(entries.values(), key=lambda each: (each.importance_score, each.creation_timestamp, each.id))
    surplus = {each.id for each in ranked[: max(0, len(ranked) - config.system_capacity)]}
    remaining = tuple(entry for entry in entries.values() if entry.id not in surplus)
    return Step(system) if remaining == system.entries else Step(SystemMemory(system.rev + 1, remaining))


def _matters(fact: KnowledgeEntry, config: MemoryOSConfig) -> bool:
    threshold = config.system_importance_threshold
    return not fact.private and fact.importance is not None and config.reaches(fact.importance, threshold)


def _same_entry(entries: Iterable[SystemEntry], new: SystemEntry, config: MemoryOSConfig) -> SystemEntry | None:
    """Return the entry on the object of *new* that states the same, by its text or else by its vector."""
    others = [each for each in entries if each.about is not None and normalised(each.text) == normalised(new.text)]
    if others or new.embedding is None:
        return next(iter(others), None)
    subject = normalised(new.about or "")
    near = [
        (cosine(each.embedding, new.embedding, strict=config.strict_vectors), each)
        for each in entries
        if normalised(each.about or "") == subject
    ]
    score, nearest = max(near, key=lambda pair: pair[0], default=(0.0, None))
    return nearest if score >= config.system_similarity else None
