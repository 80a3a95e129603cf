"""Stage 3 detects the active memories that contradict an intent. Similarity is no conflict.

It does no I/O and reads only the snapshot that is passed in. Each memory has conflict keys, digests of the fields on
which two memories must agree, so that a look-up finds the others. docs/conflicts.md has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from jidomem.base.clock import parse_moment
from jidomem.base.containers import reachable
from jidomem.base.words import TELL_LITTLE, normal_text
from jidomem.errors import ConflictItem
from jidomem.rdf.terms import Term, iri, literal, moment_in, parse_literal, plain_value
from jidomem.rdf.vocab import DECISIONS, TYPE, family, jido, local_name, type_of, type_uri
from jidomem.records.active import OVER, REASON, Convention, have_common_moment, is_accepted
from jidomem.records.file_anchor import anchors_of
from jidomem.records.intent import (
    CLASH,
    CONFLICT_KEY,
    IDENTICAL,
    MemoryUpdateIntent,
    contradiction,
    convention_clash,
    digest,
    duplicate,
    overlapping_decision,
)
from jidomem.write.snapshot import WriteSnapshot, gaps, holds_before, resting_on_ended, topic_in_other_number
from jidomem.write.triples import names_a_thing, value_of

_ABOUT = jido("about")
_VALID_FROM, _VALID_UNTIL = jido("validFrom"), jido("validUntil")
_DATED = jido("hasTimestamp")
#: Fields of author, time and relations, not of content.
NOT_CONTENT = {
    "iri", "asserted_by", "asserted_in", "timestamp", "idempotency_key", "supersedes", "invalidates", "coexists_with",
    "revives", "reason",
}  # fmt: skip
_COMPARED_SEPARATELY = NOT_CONTENT | {"about", "extra_triples"}  # these are compared separately
#: The most facts that were not compared, and the most decisions about the same place, that warnings name.
_MOST_WARNED = 3
#: The families of memories on one topic whose values are compared with those of a fact.
_COMPARED_BY_VALUES = ("fact", "discovery", "decision", "convention")
#: The most decisions about one place that are compared, newest first.
_MOST_READ = 50
_DECISION_CLASSES = frozenset(iri(type_uri(kind)) for kind in DECISIONS)
#: The words of the warning of an active decision about the same place.
NEARBY = " is an active decision about "
WHY: Mapping[str, str] = {
    "duplicate": "{iri} already says {summary!r}; another field differs",
    "overlapping_decision": "{iri} is active on {topic!r}: {summary}",
    "convention_clash": "{iri} is active under that name or topic at the same scope: {summary}",
    "contradiction": "{iri} says something else on the same matter: {summary}",
    "same_key": "{iri} has that key, and says something else: {summary}",
}


class UniqueKey(NamedTuple):
    """A `jido:key` that one memory may have at a moment: another one with it that is not in *known* conflicts."""

    key: str
    known: frozenset[str] = frozenset()


def keys(intent: MemoryUpdateIntent) -> dict[str, str]:
    """Return the conflict keys of the normal *intent*: `kind:digest` -> the kind of conflict.

    The key of identical memories comes first, that of duplicates second; an ended task or error has no such one.
    """
    if intent.type == "deleted_marker":
        return {}
    assert intent.type
    topic = normal_text(intent.topic or "")
    about = sorted(set(map(normal_text, intent.about)))
    content: dict[str, Any] = {}
    for name, value in intent.fields():
        if value is not None and value != [] and name not in _COMPARED_SEPARATELY:
            if isinstance(value, str):
                content[name] = value if names_a_thing(value) else normal_text(value)
            else:
                content[name] = _comparable(value)
    # the memory's own IRI is left out, so that two new ones compare equal
    extra = (["this" if s == intent.iri else s, p, o] for s, p, o in intent.extra_triples)
    content |= {"about": about, "extra_triples": sorted(extra, key=str)}
    conflict_keys = [f"{IDENTICAL}{digest(content)}"]
    is_over = family(intent.type) in ("task", "error") and local_name(intent.status or "") in OVER
    if not is_over:  # else it may occur again
        conflict_keys.append(duplicate(intent.type, intent.summary or "", topic, about))
    kind, scope = family(intent.type), intent.convention_scope
    if kind == "decision" and topic:
        conflict_keys.append(overlapping_decision(topic))
    elif kind == "decision" and about:  # for earlier versions, which warn by this key
        conflict_keys.append(f"similar_decision:{digest(kind, about)}")
    elif kind == "fact" and topic:
        conflict_keys.append(contradiction(topic, about))
    if kind == "convention" and (name := normal_text(intent.convention_name or "")):
        conflict_keys.append(f"convention_clash:{digest(('name', name), scope)}")
    if kind == "convention" and topic:
        conflict_keys.append(convention_clash(topic, scope))
    return {key: key.partition(":")[0] for key in conflict_keys}


def value_keys(intent: MemoryUpdateIntent, is_functional: Callable[[Term], bool]) -> dict[str, str]:
    """Return slot key -> value key for each extra triple with a functional property of another thing."""
    return {
        f"value:{digest(subject, predicate)}": f"value-is:{digest(subject, predicate, value)}"
        for subject, predicate, value in intent.extra_triples
        if subject != intent.iri and is_functional(iri(predicate))
    }


def identical(intent: MemoryUpdateIntent, keys: Mapping[str, str], view: WriteSnapshot) -> str | None:
    """Return the active memory with exactly this content, None when there is none or the intent replaces something.

    *keys* are the `keys` of the intent. Identical memories are duplicates too, and the duplicates are looked up
    anyway.
    """
    if intent.supersedes or intent.invalidates or not keys:
        return None
    first_keys = list(keys)[:2]
    same = literal(first_keys[0])
    for item in view.subjects(CONFLICT_KEY, literal(first_keys[-1])):
        if same in view.objects(item, CONFLICT_KEY) and view.is_current(item):
            return plain_value(item)
    return None


def proposed_already(intent: MemoryUpdateIntent, keys: Mapping[str, str], view: WriteSnapshot) -> str | None:
    """Return the pending proposal of the same agent with exactly this content and these relations; else None."""
    key_of = {kind: key for key, kind in keys.items()}
    wanted = {
        jido("supersedes"): set(map(iri, intent.supersedes)),
        jido("invalidates"): set(map(iri, intent.invalidates)),
        jido("revives"): set(map(iri, intent.revives)),
        jido("coexistsWith"): set(map(iri, intent.coexists_with)),
    }
    if "identical" in key_of:
        candidates = view.subjects(CONFLICT_KEY, literal(key_of["identical"]))
    elif intent.type == "deleted_marker" and intent.invalidates:
        candidates = view.subjects(jido("invalidates"), iri(intent.invalidates[0]))
        texts = (("summary", intent.summary), ("rationale", intent.rationale))
        wanted |= {jido(name): {literal(text)} for name, text in texts if text}
    else:
        return None
    for item in candidates:
        is_own = iri(intent.asserted_by or "") in view.recorded_by(item) and view.is_pending(item)
        if is_own and all(set(view.objects(item, name)) == values for name, values in wanted.items()):
            return plain_value(item)
    return None


def detect(
    intent: MemoryUpdateIntent,
    keys: Mapping[str, str],
    view: WriteSnapshot,
    now: datetime,
    is_functional: Callable[[Term], bool],
    under: UniqueKey | None = None,
) -> tuple[list[ConflictItem], list[str]]:
    """Return the unsettled conflicts of the normal *intent*, recorded *now*, and warnings about similar memories.

    In conflict are active memories with one of its *keys*, with another value of a property of which *is_functional*
    is true, or with the key *under* which it is promoted; and a memory that it supersedes, if that has ended already
    (`stale_supersession`). A decision that is rejected, deprecated or proposed is not active, and conflicts with
    nothing.
    """
    conflicts: dict[str, ConflictItem] = {}
    ends: dict[str, str | None] = {}
    warnings: list[str] = []
    exclusive: set[str] = set()  # cannot be active beside the intent, whatever the scopes
    for stale, end in _stale(intent, view):
        conflicts[stale.iri], ends[stale.iri] = stale, ends.get(stale.iri) or end
    settled = {*intent.supersedes, *intent.invalidates}
    is_decision = family(intent.type or "") == "decision"
    can_be_active = not is_decision or is_accepted(intent.status)
    for key, kind in keys.items() if can_be_active else ():
        if kind in ("identical", "similar_decision"):
            continue
        for item in _holders(key, view):
            other = plain_value(item)
            if other in settled or other in conflicts or not _overlap(intent, now, item, view):
                continue
            if _clashes(kind, intent, item, view) and not _coexists(intent, other, view):
                conflicts[other] = _conflict(kind, intent, other, view)
    slots = value_keys(intent, is_functional) if can_be_active and intent.extra_triples else {}
    for slot, value in slots.items():
        for item in _holders(slot, view):
            other = plain_value(item)
            differs = literal(value) not in view.objects(item, CONFLICT_KEY)
            if other not in settled and differs and _overlap(intent, now, item, view):
                conflicts.setdefault(other, _conflict("contradiction", intent, other, view))
                exclusive.add(other)
    for other in _unknown(under, view) if under else ():
        if other not in settled and _overlap(intent, now, iri(other), view):
            conflicts.setdefault(other, _conflict("same_key", intent, other, view))
            exclusive.add(other)
    uncompared = (
        f"{plain_value(item)} is an active {kind} on the same topic that was not compared:"
        f" {view.summary(item)};{differing}"
        " facts are compared with the same topic and the same about"
        for item, kind, differing in _uncompared(intent, view)
        if plain_value(item) not in settled and plain_value(item) not in conflicts
    )
    warnings += islice(uncompared, _MOST_WARNED)
    if intent.topic and intent.type != "deleted_marker":
        warnings += topic_in_other_number(intent, view)
    if intent.invalidates or intent.supersedes:
        warnings += [*resting_on_ended(intent, view), *gaps(intent, view)]
    if is_decision and can_be_active:
        warnings += _decisions_nearby(intent, {*settled, *conflicts}, view, now)
    if not conflicts:
        return [], warnings
    settlement = _settlement(intent, conflicts.values(), ends)
    still_active = [other for other in intent.coexists_with if view.is_current(iri(other))]
    may_coexist = () if exclusive or ends else tuple(dict.fromkeys([*still_active, *conflicts]))
    return [replace(item, resolve_with=settlement, coexists_with=may_coexist) for item in conflicts.values()], warnings


def _uncompared(intent: MemoryUpdateIntent, view: WriteSnapshot) -> Iterable[tuple[Term, str, str]]:
    """Yield the active memories on the topic of a fact that may contradict it: each with its kind, and how it differs.

    These are facts with other content, if one of the two has an empty about, or both name a common thing; and memories
    of other kinds that differ in a value. Of a discovery these are all memories that differ in a value.
    """
    from jidomem.records.differences import contrast  # of a topic that others have

    if intent.type not in ("fact", "discovery") or not intent.topic:
        return
    about, summary = set(map(normal_text, intent.about)), normal_text(intent.summary or "")
    for item in sorted(view.subjects(jido("topic"), literal(intent.topic))):
        kinds = {family(kind) for each in view.objects(item, TYPE) if (kind := type_of(each))}
        kind = next((kind for kind in _COMPARED_BY_VALUES if kind in kinds), "")
        text = view.summary(item)
        if plain_value(item) in intent.coexists_with or not kind or normal_text(text) == summary:
            continue
        if kind == intent.type == "fact":
            other_about = _places(item, view)
            if about != other_about and (not about or not other_about or about & other_about) and view.is_active(item):
                yield item, kind, ""
        elif view.is_active(item) and (values := contrast(intent.summary or "", text)):
            yield item, kind, f" it differs in {'; '.join(values)};"


def _places(item: Term, view: WriteSnapshot) -> set[str]:
    """Return what *item* is about, normalised for comparison."""
    return {normal_text(plain_value(value)) for value in view.objects(item, _ABOUT)}


def _decisions_nearby(
    intent: MemoryUpdateIntent, compared: Collection[str], view: WriteSnapshot, now: datetime
) -> list[str]:
    """Return warnings of active decisions about the same files or things that may be on the matter of *intent*.

    Decisions on other topics do not conflict, and an imported decision has a topic of its own. *compared* memories and
    those in coexists_with are left out, and so are the places of the memories that *intent* replaces.
    """
    known = {place for old in (*intent.supersedes, *intent.invalidates) for place in view.objects(iri(old), _ABOUT)}
    nearby, words = dict[str, str](), _words(intent.summary or "")
    for place in intent.about:
        if (term := value_of(place)) in known:
            continue
        for item in reversed(view.instances(_ABOUT, term, _DECISION_CLASSES)[-_MOST_READ:]):
            other = plain_value(item)
            if other in nearby or other in compared or other in intent.coexists_with:
                continue
            # the words first: few share them, and the rest reads more of a memory
            is_rival = _may_be_on_one_matter(words, intent.topic, item, view) and view.is_active(item)
            if is_rival and _overlap(intent, now, item, view):
                nearby[other] = place
    warnings = [
        f"{other}{NEARBY}{place} too: {view.summary(iri(other))}; if yours takes its place:"
        f' jidomem review supersede {intent.iri} --against {other} --reason "{REASON}"'
        "; if both hold, there is nothing to do"
        for other, place in [*nearby.items()][:_MOST_WARNED]
    ]
    if more := len(nearby) - len(warnings):
        warnings.append(f"{more} more active decisions about the same files or things: jidomem governing FILE")
    return warnings


def _may_be_on_one_matter(words: Set[str], topic: str | None, item: Term, view: WriteSnapshot) -> bool:
    """Return whether an intent of these *words* shares half of those of the decision *item*, or of its own if briefer.

    If both have a topic of their own, they share three quarters of the words that tell something.
    """
    others = _words(view.summary(item))
    shared = words & others
    share_half = 2 * len(shared) >= min(len(words), len(others))
    share_most = 4 * len(shared - TELL_LITTLE) >= 3 * min(len(words - TELL_LITTLE), len(others - TELL_LITTLE))
    if topic and share_half != share_most and view.first(item, jido("topic")) is not None:
        return share_most
    return share_half


def _words(text: str) -> set[str]:
    return {word.strip(".,;:!?") for word in normal_text(text).split()}


def are_nearby(item: Term, other: Term, view: WriteSnapshot) -> bool:
    """Return whether two active memories are decisions about the same file or thing, as a warning tells the writer."""
    is_decision = all(not set(_DECISION_CLASSES).isdisjoint(view.types(each)) for each in (item, other))
    return is_decision and not _places(item, view).isdisjoint(_places(other, view))


def rivals(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the active memories that would conflict with the proposal *item*, were it asserted now, by its keys.

    A memory that *item* was to end, and that ended in the meantime, is represented by what took its place.
    """
    named = [plain_value(old) for field in ("supersedes", "invalidates") for old in view.objects(item, jido(field))]
    matches = places_taken(item, view)
    if all(is_accepted(plain_value(status)) for status in view.objects(item, jido("decisionStatus"))):
        matches += (rival for rival in _by_keys(item, view) if plain_value(rival) not in named)
    return [*dict.fromkeys(rival for rival in matches if rival != item)]


def places_taken(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return what took the place of each ended memory that the proposal *item* names; `accept` does not end that."""
    replaced = (place_taken(old, view) for old in view.objects(item, jido("supersedes")) if view.has_ended(old))
    withdrawn = (left_to_withdraw(item, old, view) for old in view.objects(item, jido("invalidates")))
    return [*dict.fromkeys(end for end in (*replaced, *withdrawn) if end is not None)]


def left_to_withdraw(item: Term, old: Term, view: WriteSnapshot) -> Term | None:
    """Return the active memory in the place of the ended *old* to which the withdrawal *item* of *old* applies as well.

    A withdrawal because of a removed source applies only to memories from that source.
    """
    end = end_of_chain(old, view) if view.has_ended(old) else None
    if end is None or not view.objects(item, jido("sourceState")):
        return end
    before, after = (
        {anchor.path for anchor in anchors_of(view.objects(each, jido("sourceBlob")))} for each in (old, end)
    )
    return end if before == after or not before else None


def place_taken(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the current memory in the place of the ended *item*: its successor, else what withdrew it; None if none.

    Nothing takes the place of a rejected proposal.
    """
    if (end := end_of_chain(item, view)) is not None or view.is_proposed(item):
        return end
    *_, last = [item, *successors(item, view)]
    ends = (end_of_chain(end, view) for end in view.objects(last, jido("invalidatedBy")))
    return next((end for end in ends if end is not None), None)


def proposed_rivals(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the pending proposals that would conflict with the proposal *item*, were both accepted.

    They share a conflict key, or end the same memory, which has one successor or is withdrawn. Versions of *item*,
    proposals identical to it, and two withdrawals are no rivals.
    """
    if not view.is_pending(item):
        return []
    rivals = [*_by_keys(item, view, partial(_is_candidate, view=view))] if _is_candidate(item, view) else []
    replaced = replaces(item, view)
    for old in replaced:
        rivals += [*_replacing(old, view), *filter(view.is_pending, view.subjects(jido("invalidates"), old))]
    for old in view.objects(item, jido("invalidates")):
        rivals += _replacing(old, view)
    versions = {item, *replaced, *_replacing(item, view)}
    same = {key for key in view.objects(item, CONFLICT_KEY) if plain_value(key).startswith(IDENTICAL)}
    others = (rival for rival in dict.fromkeys(rivals) if rival not in versions)
    return [rival for rival in others if same.isdisjoint(view.objects(rival, CONFLICT_KEY))]


def replaces(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the memories that *item* supersedes, and those that a pending proposal among them supersedes."""
    replaced: dict[Term, None] = {}
    pending = [item]
    while pending:
        for other in view.objects(pending.pop(), jido("supersedes")):
            if other not in replaced and view.is_pending(other):
                pending.append(other)
            replaced[other] = None
    return [*replaced]


def _replacing(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the pending proposals that supersede *item*, and those that supersede one of these."""
    found = [item]
    for old in found:
        new = view.subjects(jido("supersedes"), old)
        found += [each for each in new if each not in found and view.is_pending(each)]
    return found[1:]


def _is_candidate(item: Term, view: WriteSnapshot) -> bool:
    """Return whether *item* is a proposal that becomes active once it is accepted."""
    return view.is_pending(item) and all(
        is_accepted(plain_value(status)) for status in view.objects(item, jido("decisionStatus"))
    )


def is_replaced_by_proposal(item: Term, view: WriteSnapshot) -> bool:
    """Return whether a pending proposal supersedes or withdraws *item*."""
    others = {other for link in ("supersedes", "invalidates") for other in view.subjects(jido(link), item)}
    return any(view.is_pending(other) for other in others - {item})


def _by_keys(item: Term, view: WriteSnapshot, is_rival: Callable[[Term], bool] | None = None) -> Iterable[Term]:
    """Yield the active memories that share a key with *item*, are valid when it is, and are not in its coexists_with.

    *is_rival* selects other memories than the active ones.
    """
    own_keys = view.objects(item, CONFLICT_KEY)
    kinds = [(plain_value(key).partition(":")[0], key) for key in sorted(own_keys)]
    compared = [(kind, view.subjects(CONFLICT_KEY, key)) for kind, key in kinds if kind in (*WHY, "value")]
    shared = [(kind, [each for each in some if each != item]) for kind, some in compared]
    if not any(some for _, some in shared):  # as for most: nothing else is read of them
        return
    dates, recorded = _dates(item, view), view.recorded_at(item)
    values = {key for key in own_keys if plain_value(key).startswith("value-is:")}
    coexists = view.objects(item, jido("coexistsWith"))
    for kind, some in shared:
        for rival in filter(is_rival or view.is_active, some):
            if kind == "value":
                differs = values.isdisjoint(view.objects(rival, CONFLICT_KEY))
            else:
                clashes = kind != CLASH or _convention(item, view).clashes(_convention(rival, view))
                differs = clashes and rival not in coexists
            if differs and _overlap(dates, recorded, rival, view):
                yield rival


def _clashes(kind: str, intent: MemoryUpdateIntent, other: Term, view: WriteSnapshot) -> bool:
    """Return whether the shared key of *kind* is a conflict: conventions may agree, or apply to distinct things."""
    if kind != CLASH:
        return True
    convention = Convention.of(intent.summary, intent.enforcement_level, intent.about)
    return convention.clashes(_convention(other, view))


def _convention(item: Term, view: WriteSnapshot) -> Convention:
    summary, level = view.first(item, jido("summary")), view.first(item, jido("hasEnforcementLevel"))
    about = map(plain_value, view.objects(item, _ABOUT))
    return Convention.of(plain_value(summary) if summary else None, plain_value(level) if level else None, about)


def are_apart(item: Term, other: Term, view: WriteSnapshot) -> bool:
    """Return whether *item*, restated beside *other*, names its scope, and *other* has another scope."""
    scope = view.first(item, jido("hasConventionScope"))
    about = _places(item, view)
    return _is_elsewhere(scope, about, other, view)


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return sorted((_comparable(entry) for entry in value), key=str)
    if not isinstance(value, str) or names_a_thing(value):  # in an IRI each letter counts
        return value
    return normal_text(value)


def _overlap(intent: MemoryUpdateIntent, recorded: datetime | None, item: Term, view: WriteSnapshot) -> bool:
    """Return whether there is a moment at which *intent* and *item* are both valid.

    Each is without `valid_from` from its timestamp on, and undated from when it is *recorded*, as in conflicts.rq.
    """
    start, end = parse_moment(intent.valid_from or intent.timestamp) or recorded, parse_moment(intent.valid_until)
    since = view.valid_since(item)
    until = moment_in(view.first(item, _VALID_UNTIL))
    return have_common_moment((start, since), (end, until))


def _dates(item: Term, view: WriteSnapshot) -> MemoryUpdateIntent:
    """Return an intent with the dates of validity of *item* only."""
    found = (view.first(item, each) for each in (_VALID_FROM, _DATED, _VALID_UNTIL))
    since, dated, until = (None if date is None else parse_literal(date).text for date in found)
    return MemoryUpdateIntent(valid_from=since, timestamp=dated, valid_until=until)


def _holders(key: str, view: WriteSnapshot) -> list[Term]:
    return [item for item in view.subjects(CONFLICT_KEY, literal(key)) if view.is_active(item)]


def _unknown(under: UniqueKey, view: WriteSnapshot) -> Iterable[str]:
    """Yield the active memories with the key that are not known; a redacted memory does not count."""
    for item in view.subjects(jido("key"), literal(under.key)):
        if plain_value(item) not in under.known and view.is_current(item) and view.summary(item):
            yield plain_value(item)


def _stale(intent: MemoryUpdateIntent, view: WriteSnapshot) -> Iterable[tuple[ConflictItem, str | None]]:
    """Yield a conflict for each named memory that has ended already, with its successor."""
    for field in ("supersedes", "invalidates"):
        for other in getattr(intent, field):
            for inverse, word in (("supersededBy", "superseded"), ("invalidatedBy", "invalidated")):
                for end in view.objects(iri(other), jido(inverse)):
                    latest = None if (field, word) == ("invalidates", "invalidated") else end_of_chain(end, view)
                    why = f"{other} is already {word} by {plain_value(end)}"
                    is_withdrawn = latest is None or (word, latest) == ("invalidated", end)
                    conflict = ConflictItem(
                        other, "stale_supersession", view.summary(iri(other)), why, {}, is_withdrawn=is_withdrawn
                    )
                    yield conflict, plain_value(latest) if latest else None


def _settlement(
    intent: MemoryUpdateIntent, conflicts: Iterable[ConflictItem], ends: Mapping[str, str | None]
) -> dict[str, list[str]]:
    """Return the fields that settle all *conflicts* at once; *ends* has the successor of each ended memory.

    A field without remaining entries is an empty list; a withdrawal of a withdrawn memory cannot be settled.
    """
    rivals = [conflict.iri for conflict in conflicts if conflict.iri not in ends]
    fields = {}
    for field, further in (("supersedes", rivals), ("invalidates", [])):
        named = [ends.get(entry, entry) for entry in getattr(intent, field)]
        fields[field] = [*dict.fromkeys(entry for entry in [*named, *further] if entry)]
    if intent.type == "deleted_marker" and not fields["invalidates"]:
        return {}
    return {field: entries for field, entries in fields.items() if entries != getattr(intent, field)}


def end_of_chain(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the active memory at the end of the chain of successors, or one that revives a member; else None."""
    visited: set[Term] = set()
    todo = [item]
    while todo:
        chain = [todo.pop()]
        while (after := view.first(chain[-1], jido("supersededBy"))) is not None and after not in {*chain, *visited}:
            chain.append(after)
        if view.is_current(chain[-1]):
            return chain[-1]
        visited.update(chain)
        revived = (new for old in chain for new in view.subjects(jido("revives"), old) if new not in visited)
        todo += revived
    return None


def of_one_origin(item: Term, other: Term, view: WriteSnapshot) -> bool:
    """Return whether both memories replaced the same memory in the end, or one withdrew it: one of them must end."""
    return not _origins(item, view).isdisjoint(_origins(other, view))


def _origins(item: Term, view: WriteSnapshot) -> set[Term]:
    """Return all memories that *item* replaced, directly or not, and all that it withdrew, with their versions."""
    withdrawn = view.subjects(jido("invalidatedBy"), item)
    return reachable([item, *withdrawn], lambda node: view.subjects(jido("supersededBy"), node)) - {item}


def coexisting(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the active memories in coexists_with of *item*, or their active successors."""
    ends = (end_of_chain(other, view) for other in view.objects(item, jido("coexistsWith")))
    return [end for end in ends if end is not None]


def coexisting_with(item: Term, view: WriteSnapshot) -> list[str]:
    """Return the active memories that coexist with *item*; either of the two may have declared it."""
    named_by = [other for other in view.subjects(jido("coexistsWith"), item) if view.is_current(other)]
    return sorted({plain_value(other) for other in (*coexisting(item, view), *named_by)})


def _coexists(intent: MemoryUpdateIntent, other: str, view: WriteSnapshot) -> bool:
    """Return whether *intent* names *other* in coexists_with and has a distinct scope."""
    if other not in intent.coexists_with:
        return False
    scope = jido(intent.convention_scope) if intent.convention_scope is not None else None
    own_about = set(map(normal_text, intent.about))
    # the other memory may have given its scope beside the memory that this intent replaces
    settled = any(plain_value(end) in intent.supersedes for end in coexisting(iri(other), view))
    was_beside = any(iri(other) in view.objects(iri(old), jido("coexistsWith")) for old in intent.supersedes)
    return _is_elsewhere(scope, own_about, iri(other), view, settled=settled, may_cover=settled or was_beside)


def _is_elsewhere(
    scope: Term | None,
    about: set[str],
    other: Term,
    view: WriteSnapshot,
    *,
    settled: bool = False,
    may_cover: bool = False,
) -> bool:
    """Return whether *scope* or *about* distinguishes a memory from *other*.

    If *settled*, *about* may be empty. It contains all places of *other* only if *may_cover*, since both would be about
    each of these places; a part of them is an exception.
    """
    if scope is not None and scope != view.first(other, jido("hasConventionScope")):
        return True
    other_about = _places(other, view)
    covers = bool(other_about) and other_about <= about and not may_cover
    return bool((about or settled) and about != other_about and not covers)


def with_differing_fields(other: ConflictItem, intent: MemoryUpdateIntent, item: Mapping[str, Any]) -> ConflictItem:
    """Return the duplicate *other* with the names of the fields in which *intent* differs from the fields *item*, and
    the fields by which *intent* confirms it, if only evidence and confidence differ.
    """
    if other.kind != "duplicate":
        return other
    differing = [
        name
        for name, value in intent.fields()
        if name not in NOT_CONTENT and name not in ("summary", "topic", "about", "extra_triples")
        if _as_compared(value) != _as_compared(item.get(name))
    ]
    named = " and ".join(filter(None, (", ".join(differing[:-1]), *differing[-1:])))
    unnamed = other.why.rsplit("another field differs", 1)  # the summary before it may contain these words, too
    if not differing:
        return other
    confirming = dict[str, Any]()
    if not ({*differing} - {"evidence", "confidence"} or intent.extra_triples or item.get("extra_triples")):
        evidence = [*dict.fromkeys([*item.get("evidence", ()), *intent.evidence])]
        confirming = {"supersedes": [*intent.supersedes, other.iri], "evidence": evidence}
        confirming |= {"confidence": item["confidence"]} if "confidence" in differing else {}
    why = f"{named} {'differs' if len(differing) == 1 else 'differ'}".join(unnamed)
    return replace(other, why=why, confirm_with=confirming)


def _as_compared(value: Any) -> Any:
    return frozenset(map(normal_text, value)) if isinstance(value, (list, tuple)) else value or frozenset()


def _conflict(kind: str, intent: MemoryUpdateIntent, other: str, view: WriteSnapshot) -> ConflictItem:
    summary = view.summary(iri(other))
    why = WHY[kind].format(iri=other, summary=summary, topic=intent.topic)
    if other in intent.coexists_with:
        why += "; coexists_with needs a distinct scope: name in about (or convention_scope) where the new one applies"
        other_about = _places(iri(other), view)
        if other_about and other_about < set(map(normal_text, intent.about)):
            why += ", without all the places of the other"
    return ConflictItem(other, kind, summary, why, {}, until=holds_before(intent, iri(other), view))


def revivals(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return *item* and the memories that revive it, directly or not."""
    found = [item]
    for one in found:
        found += [each for each in view.subjects(jido("revives"), one) if each not in found]
    return found


def pending_again(proposal: Term, view: WriteSnapshot) -> Term | None:
    """Return the pending proposal that an undo made of the settled *proposal*; None if there is none."""
    again = (each for each in revivals(proposal, view)[1:] if view.is_pending(each))
    return next(again, None)


def ended(end: Term, view: WriteSnapshot) -> list[Term]:
    """Return the memories that *end* superseded or withdrew."""
    return sorted(old for link in ("supersedes", "invalidates") for old in view.objects(end, jido(link)))


def withdrew_only(old: Term, end: Term, view: WriteSnapshot) -> bool:
    """Return whether *end* is a marker that withdraws *old* only; the marker of a rollback withdraws several."""
    withdrawn = [each for each in view.objects(end, jido("invalidates")) if each == old or not view.is_proposed(each)]
    return jido("DeletedMarker") in view.types(end) and withdrawn == [old]


def undone_by(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the active memory that undid *item*: it ended it, and revives the last of what *item* had ended."""
    was = ended(item, view)
    for end in filter(view.is_current, view.objects(item, jido("supersededBy"))):
        back = {old: view.subjects(jido("revives"), old) for old in was}
        at = view.recorded_at(end) or datetime.max.replace(tzinfo=UTC)
        is_whole = all(any((view.recorded_at(by) or at) <= at for by in found) for found in back.values())
        if is_whole and any(end in found for found in back.values()):
            return end
    return None


def proposals_in(end: Term, view: WriteSnapshot) -> list[Term]:
    """Return the proposals that the asserted memory *end* superseded."""
    if view.is_proposed(end):
        return []
    return sorted(old for old in view.objects(end, jido("supersedes")) if view.is_proposed(old))


def first_proposed(item: Term, view: WriteSnapshot) -> Term:
    """Return the proposal that *item* makes pending again after an undo, else *item*: its reason is the proposer's."""
    seen = {item}
    while revived := [old for old in view.objects(item, jido("revives")) if view.is_proposed(old) and old not in seen]:
        item = revived[0]
        seen.add(item)
    return item


def successors(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the memories that superseded *item*, one after another."""
    chain: list[Term] = []
    while (after := view.first(item, jido("supersededBy"))) is not None and after not in chain:
        chain.append(after)
        item = after
    return chain
