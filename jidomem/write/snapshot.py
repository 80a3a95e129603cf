"""The write snapshot is the rows for judging intents: those of the index, and those accepted since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.containers import reachable
from jidomem.base.words import fold_separators
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, literal, moment_in, plain_value
from jidomem.records.active import is_accepted
from jidomem.records.differences import are_on_other_things
from jidomem.records.intent import MemoryUpdateIntent
from jidomem.write.canonical import is_absolute

Probe = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
#: A function that returns the subjects of some classes that have a value as a property.
InstanceProbe = Callable[[Term, Term, frozenset[Term]], Iterable[Term]]
ITEM_MARK = vocab.jido("hasAssertionStatus")
_ASSERTED, _PROPOSED = vocab.jido("Asserted"), vocab.jido("Proposed")
_ASSERTED_BY, _SETTLED_BY = vocab.jido("assertedBy"), vocab.jido("settledBy")
_DECIDED, _UNTIL = vocab.jido("decisionStatus"), vocab.jido("validUntil")
_FROM, _DATED = vocab.jido("validFrom"), vocab.jido("hasTimestamp")
_RECORDED_AT = vocab.jido("recordedAt")
_DERIVED, _REVIVES = vocab.jido("derivedFrom"), vocab.jido("revives")
_DECISIONS = frozenset(iri(vocab.type_uri(kind)) for kind in vocab.DECISIONS)
_RULES = _DECISIONS | {vocab.jido("Convention")}
#: The properties that place a memory, name its topic, or check files -> the field that states each. A redaction leaves
#: a placeholder in the field: without it a rule would apply to every file, or seem to have had no check.
REPLACED = {
    **dict.fromkeys(map(vocab.jido, ("about", "appliesToModule", "appliesToDomain")), "about"),
    vocab.jido("forbidsPattern"): "forbids",
    vocab.jido("requiresPattern"): "requires",
    vocab.jido("checkCommand"): "check_command",
    vocab.jido("topic"): "topic",
}
#: The most memories that a warning names.
_MOST_NAMED = 3
#: The properties of a memory that name what ended it.
ENDS = (vocab.jido("supersededBy"), vocab.jido("invalidatedBy"))


class WriteSnapshot:
    """Rows for the judging stages; every look-up is by subject or by predicate and object, never a scan.

    The index is queried once for each subject or property, and accepted triples are added here; the index may apply
    them while the snapshot is in use. `size` is about the number of cached triples; `derived` caches values that the
    stages compute from the rows.
    """

    def __init__(self, probe: Probe, instances: InstanceProbe | None = None) -> None:
        """Read rows by *probe*; *instances*, if given, finds subjects by class in one query."""
        self.size = 0
        self._probe, self._instances = probe, instances
        self._complete: dict[Term, dict[Term, list[Term]]] = {}  # all properties of these subjects
        self._partial: dict[Term, dict[Term, list[Term]]] = {}  # some properties of other subjects
        self._added: list[Triple] = []
        self._by_object: dict[Term, dict[Term, list[Term]]] = {}  # the added triples of properties looked up by object
        self._types: dict[Term, frozenset[Term]] = {}
        self._stored_subjects: dict[tuple[Term, Term], frozenset[Term]] = {}
        self._stored_instances: dict[tuple[Term, Term, frozenset[Term]], frozenset[Term]] = {}
        self.derived: dict[str, Any] = {}

    def add(self, triples: Iterable[Triple]) -> None:
        """Add *triples*, for the submissions judged later."""
        whole, by_object, types, before = self._complete, self._by_object, self._types, len(self._added)
        self._added += triples
        for subject, predicate, value in self._added[before:] if before else self._added:
            known = whole.get(subject)
            if known is None:
                self._values_of(subject, predicate).append(value)
            elif predicate in known:
                known[predicate].append(value)
            else:
                known[predicate] = [value]
            if predicate in by_object:
                by_object[predicate].setdefault(value, []).append(subject)
            if predicate == vocab.TYPE:
                types.pop(subject, None)
        self.size += len(self._added) - before

    def add_new(self, subject: Term, triples: Iterable[Triple]) -> None:
        """Add *triples* of a *subject* that has no triples yet."""
        self._complete[subject] = {}
        self.add(triples)

    def properties(self, subject: Term) -> dict[Term, list[Term]]:
        """Return the properties of *subject* with their values; callers must not change the mapping."""
        properties = self._complete.get(subject)
        if properties is None:
            properties = {}
            for _, predicate, value in self._probe(subject, None, None):
                properties.setdefault(predicate, []).append(value)
                self.size += 1
            # replaces the values of the index, which may have applied the added ones
            properties |= {known: values for known, values in self._partial.pop(subject, {}).items() if values}
            self._complete[subject] = properties
        return properties

    def about(self, subject: Term) -> list[Triple]:
        """Return every triple with this subject."""
        return [
            (subject, predicate, value) for predicate, values in self.properties(subject).items() for value in values
        ]

    def objects(self, subject: Term, predicate: Term) -> list[Term]:
        """Return the values of one property."""
        return [*self._values_of(subject, predicate)]

    def subjects(self, predicate: Term, value: Term) -> list[Term]:
        """Return the subjects that have *value* as this property, in a stable order."""
        stored = self._stored_subjects.get((predicate, value))
        if stored is None:
            stored = frozenset([triple[0] for triple in self._probe(None, predicate, value)])
            self._stored_subjects[predicate, value] = stored
            self.size += 1
        added = self._added_to(predicate).get(value)
        return sorted(stored.union(added) if added else stored)

    def instances(self, predicate: Term, value: Term, classes: frozenset[Term]) -> list[Term]:
        """Return the subjects of one of *classes* that have *value* as this property, in a stable order.

        The class of a subject is known from the commit that first names it.
        """
        if self._instances is None:
            return [
                subject for subject in self.subjects(predicate, value) if not classes.isdisjoint(self.types(subject))
            ]
        key = predicate, value, classes
        stored = self._stored_instances.get(key)
        if stored is None:
            stored = self._stored_instances[key] = frozenset(self._instances(*key))
            self.size += 1 + len(stored)
        added = [each for each in self._added_to(predicate).get(value, ()) if not classes.isdisjoint(self.types(each))]
        return sorted(stored.union(added) if added else stored)

    def _added_to(self, predicate: Term) -> dict[Term, list[Term]]:
        """Return the added triples of one property as value -> subjects."""
        added = self._by_object.get(predicate)
        if added is None:
            added = self._by_object[predicate] = {}
            for subject, name, value in self._added:
                if name == predicate:
                    added.setdefault(value, []).append(subject)
        return added

    def first(self, subject: Term, predicate: Term) -> Term | None:
        """Return one value of a property, None when it has none."""
        return next(iter(self._values_of(subject, predicate)), None)

    def summary(self, item: Term) -> str:
        """Return the summary of *item*, empty if it has none."""
        term = self.first(item, vocab.jido("summary"))
        return plain_value(term) if term else ""

    def describes(self, subject: Term) -> bool:
        """Return whether *subject* has a property; the class is looked up first, as it is cheap."""
        return bool(self._values_of(subject, vocab.TYPE) or self.properties(subject))

    def types(self, subject: Term) -> frozenset[Term]:
        """Return the classes of *subject*."""
        types = self._types.get(subject)
        if types is None:
            types = self._types[subject] = frozenset(self._values_of(subject, vocab.TYPE))
        return types

    def about_all(self, subjects: Collection[Term], pointed: Iterable[Term]) -> list[Triple]:
        """Return all triples of *subjects*, and the types of the other nodes *pointed* at."""
        triples = list[Triple]()
        for subject in subjects:
            for predicate, values in self.properties(subject).items():
                for value in values:
                    triples.append((subject, predicate, value))
        for node in pointed:
            if node not in subjects:
                types = self._types.get(node)
                for cls in self.types(node) if types is None else types:
                    triples.append((node, vocab.TYPE, cls))
        return triples

    def along(self, rows: Iterable[Triple], steps: Collection[Term], known: set[Term], most: int) -> list[Triple]:
        """Return types and values of *steps* of the nodes beyond those *known* that *rows* lead to in *most* steps."""
        along, seen = list[Triple](), known
        for _ in range(most):
            nodes = {value for _, predicate, value in rows if predicate in steps and value[0] == "<"} - seen
            rows = [row for node in nodes for row in self.about(node) if row[1] in steps or row[1] == vocab.TYPE]
            along += rows
            seen |= nodes
        return along

    def is_item(self, subject: Term) -> bool:
        """Return whether *subject* is a memory of this project."""
        return bool(self._values_of(subject, ITEM_MARK))

    def is_current(self, item: Term) -> bool:
        """Return whether the memory *item* is asserted, and neither superseded nor invalidated."""
        return _ASSERTED in self._values_of(item, ITEM_MARK) and not self.has_ended(item)

    def is_active(self, item: Term) -> bool:
        """Return whether *item* is asserted, has not ended and, if a decision, is accepted; validity is not judged."""
        statuses = self._values_of(item, _DECIDED)
        return self.is_current(item) and all(is_accepted(plain_value(status)) for status in statuses)

    def is_proposed(self, item: Term) -> bool:
        """Return whether *item* is recorded as a proposal, pending or settled."""
        return _PROPOSED in self._values_of(item, ITEM_MARK)

    def is_pending(self, item: Term) -> bool:
        """Return whether *item* is a proposal that is still to be settled."""
        return self.is_proposed(item) and not self.has_ended(item)

    def recorded_by(self, item: Term) -> list[Term]:
        """Return the agents that recorded *item*: those that settled it without a change, else its authors."""
        return self.objects(item, _SETTLED_BY) or self.objects(item, _ASSERTED_BY)

    def recorded_at(self, item: Term) -> datetime | None:
        """Return when *item* was recorded; None for one of the block under construction."""
        return moment_in(self.first(item, _RECORDED_AT))

    def has_ended(self, item: Term) -> bool:
        """Return whether *item* is superseded or invalidated."""
        return any(self._values_of(item, end) for end in ENDS)

    def has_lost(self, item: Term, name: str, removed: Collection[Triple] = ()) -> bool:
        """Return whether *item* is active, and lacks the required property *name*."""
        return self.is_current(item) and self.lacks(item, name, removed)

    def lacks(self, item: Term, name: str, removed: Collection[Triple] = ()) -> bool:
        """Return whether *item* has no value of the required property *name* but those *removed*.

        Only a decision is required to have a rationale.
        """
        if name == "rationale" and self.types(item).isdisjoint(_DECISIONS):
            return False
        values = self.objects(item, vocab.jido(name))
        return all((item, vocab.jido(name), value) in removed for value in values)

    def lost_fields(self, item: Term, removed: Collection[Triple] = ()) -> list[str]:
        """Return the fields of the active convention or decision *item* with a placeholder, or a value in *removed*."""
        if not self.is_current(item) or self.types(item).isdisjoint(_RULES):
            return []
        values = ((item, name, value) for name in REPLACED for value in self.objects(item, name))
        lost = (row for row in values if row in removed or plain_value(row[2]).startswith(vocab.REDACTED))
        return [*dict.fromkeys(REPLACED[name] for _, name, _ in lost)]

    def expired(self, item: Term, now: datetime) -> str | None:
        """Return until when *item* was valid, as text; None if it is valid *now* by its `valid_until`."""
        ends = [end for date in self._values_of(item, _UNTIL) if (end := moment_in(date))]
        return _brief_moment(min(ends)) if ends and min(ends) <= now else None

    def valid_since(self, item: Term) -> datetime | None:
        """Return since when *item* is valid: its `valid_from`, else its timestamp, else when it was recorded."""
        return moment_in(self.first(item, _FROM) or self.first(item, _DATED) or self.first(item, _RECORDED_AT))

    def _values_of(self, subject: Term, predicate: Term) -> list[Term]:
        """Return the values of one property, in a list that callers must not change."""
        known = self._complete.get(subject)
        if known is not None:
            return known.get(predicate) or []
        partly = self._partial.setdefault(subject, {})
        values = partly.get(predicate)
        if values is None:
            values = partly[predicate] = [value for _, _, value in self._probe(subject, predicate, None)]
            self.size += 1
        return values


#: The most memories on a topic that are read.
_MOST_READ = 50


def resting_on_ended(intent: MemoryUpdateIntent, view: WriteSnapshot) -> list[str]:
    """Return warnings with the active memories that rest on what *intent* withdraws, or replaces by another matter."""
    rested_on = (old for old in intent.supersedes if _resting_on([old], intent, view))  # few are, and texts take longer
    replaced = [old for old in rested_on if _is_of_another_matter(intent, iri(old), view)]
    warnings = []
    for ended, how in ((intent.invalidates, "withdrawn"), (replaced, "superseded by another matter")):
        if found := _resting_on(ended, intent, view):
            shown = "; ".join(f"{plain_value(item)} {view.summary(item)}" for item in found[:_MOST_NAMED])
            number = "an active memory rests" if len(found) == 1 else f"{len(found)} active memories rest"
            look = "jidomem review" if how == "withdrawn" else f"jidomem show {plain_value(found[0])}"
            warnings.append(f"{number} on what is {how}: {shown}; look at each: {look}")
    return warnings


def links_to_ended(intent: MemoryUpdateIntent, view: WriteSnapshot) -> Iterator[str]:
    """Yield a warning for each memory that an extra triple names and that has ended."""
    for name in dict.fromkeys(value.get("@id", "") for _, _, value in intent.extra_triples):
        item = iri(name)
        if not (is_absolute(name) and view.is_item(item) and view.has_ended(item)):
            continue
        versions = reachable([item], lambda node: view.objects(node, ENDS[0]))
        latest = [plain_value(each) for each in sorted(versions) if not view.has_ended(each)]
        present = f"superseded: the present version is {' and '.join(latest)}" if latest else "withdrawn"
        yield f"this memory links to {name}, which was {present}"


def holds_before(intent: MemoryUpdateIntent, old: Term, view: WriteSnapshot) -> str:
    """Return the `valid_from` of *intent* if *old* was valid before it; else an empty text."""
    if (start := parse_moment(intent.valid_from)) is None:
        return ""
    since = view.valid_since(old)
    return _brief_moment(start) if since is not None and since < start else ""


def _brief_moment(moment: datetime) -> str:
    """Return *moment* as text, at midnight only its day."""
    return format_timestamp(moment).removesuffix("T00:00:00.000000Z")


def gaps(intent: MemoryUpdateIntent, view: WriteSnapshot) -> Iterator[str]:
    """Yield a warning for each memory that *intent* supersedes from now on, though it is itself valid only later."""
    for old in intent.supersedes:
        if until := holds_before(intent, iri(old), view):
            yield (
                f"{old} ends now as a whole, and this memory is valid from {until} on: nothing holds before that;"
                f" if {view.summary(iri(old))!r} held until then, submit it again with valid_until {until}"
            )


def _resting_on(ended: Iterable[str], intent: MemoryUpdateIntent, view: WriteSnapshot) -> list[Term]:
    """Return the active memories that rest on a version of one of *ended*, those that *intent* ends left out."""
    named = {iri(each) for field in ("supersedes", "invalidates") for each in getattr(intent, field)}
    bases = [base for old in ended for base in versions_before(iri(old), view)]
    return sorted({item for base in bases for item in view.subjects(_DERIVED, base) if view.is_active(item)} - named)


def topic_in_other_number(intent: MemoryUpdateIntent, view: WriteSnapshot) -> Iterable[str]:
    """Yield a warning if no memory is active on the topic of *intent*, but one is on its singular or plural.

    Topics are identities that agents choose, so two numbers of one word stay two topics.
    """
    topic = vocab.jido("topic")
    for other in _other_numbers(intent.topic or ""):
        items = (item for item in view.subjects(topic, literal(other))[-_MOST_READ:][::-1] if view.is_active(item))
        if (item := next(items, None)) is None:
            continue
        own = (each for each in view.subjects(topic, literal(intent.topic or "")) if plain_value(each) != intent.iri)
        if not any(map(view.is_active, own)):
            yield (
                f"{plain_value(item)} is active on {other!r}: {view.summary(item)}; no memory is on"
                f" {intent.topic!r}, and conflicts are found within one topic: if it is one, give `topic` {other!r}"
            )
            return


def _other_numbers(topic: str) -> list[str]:
    """Return *topic* with its last word as a plural, or as a singular if it is one.

    >>> _other_numbers("retry policies"), _other_numbers("backup"), _other_numbers("status")
    (['retry policy'], ['backups'], ['statuses'])
    """
    if len(topic) < 4 or not (topic[-3:].isalpha() and topic[-3:].islower()):
        return []
    if topic.endswith("ies"):
        return [f"{topic[:-3]}y"]
    if topic.endswith(("ss", "us", "is", "x", "ch", "sh")):
        return [f"{topic}es"]
    if topic.endswith("s"):
        return [topic[:-1], *([topic[:-2]] if topic.endswith(("ses", "xes", "ches", "shes")) else [])]
    return [f"{topic[:-1]}ies" if topic.endswith("y") and topic[-2] not in "aeou" else f"{topic}s"]


def _is_of_another_matter(intent: MemoryUpdateIntent, old: Term, view: WriteSnapshot) -> bool:
    """Return whether *intent* has another topic than *old*, if both have one, else hardly a word of its summary."""
    topics = [plain_value(each) for each in view.objects(old, vocab.jido("topic"))]
    if intent.topic and topics:
        return fold_separators(intent.topic) not in map(fold_separators, topics)
    return are_on_other_things(intent.summary or "", view.summary(old))


def versions_before(item: Term, view: WriteSnapshot) -> set[Term]:
    """Return *item* and the memories that it replaced or revives, directly or not."""
    return reachable([item], lambda node: view.subjects(ENDS[0], node) + view.objects(node, _REVIVES))


def withdrawals_below(item: Term, view: WriteSnapshot) -> set[Term]:
    """Return what withdrew a memory that *item* is derived from, and that is not active again."""
    superseded, withdrawn = ENDS
    bases = reachable(
        view.objects(item, _DERIVED), lambda node: view.objects(node, superseded) + view.subjects(_REVIVES, node)
    )
    ended = (
        node
        for node in bases
        if all(view.is_proposed(new) for new in view.subjects(_REVIVES, node) if view.is_item(new))
    )
    return {end for node in ended for end in view.objects(node, withdrawn)}
