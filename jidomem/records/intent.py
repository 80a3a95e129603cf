"""The intent of an agent to remember, its receipt, and the plain value of a memory. Values only.

`Version` is the set of head commits of a stream. An `Anchor` is the path of a file that a memory is about and the id
that git gives its content. `MemoryItem` is a memory as a plain value: type, content, time, confidence and source. A
conflict key is a digest of the fields on which two memories must agree; `missing_keys` returns those that commits of
earlier versions lack.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import partial
from hashlib import blake2b
from inspect import unwrap
from operator import attrgetter
from typing import Any, NamedTuple

from jidomem.base import clock
from jidomem.base.json_values import json_type, parse_json
from jidomem.base.regex import lazy
from jidomem.base.words import misspelling_of, normal_text, topic_key
from jidomem.errors import ConflictItem, IntentRefused, InvalidRequest, Violation, hint_fields, nearest_names
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, literal, parse_literal
from jidomem.rdf.vocab import TYPE, jido, local_name, type_of
from jidomem.records.active import REASON, SimilarMemory, similar_choices

SHORT = 12
_VERSION_FORM = lazy(r"([0-9]{1,18})-([0-9a-f]{4,64}(?:\+[0-9a-f]{4,64})*)")


class CommitRef(NamedTuple):
    """A head commit: its time (UTC text), its id (64 hex digits) and its position (from 1)."""

    recorded_at: str
    id: str
    position: int


_ID, _POSITION = attrgetter("id"), attrgetter("position")


class Version(NamedTuple):
    """A set of head commits, oldest first; empty for a stream without commits. Versions are equal or differ."""

    heads: tuple[CommitRef, ...] = ()

    @classmethod
    def of(cls, heads: Iterable[CommitRef]) -> Version:
        """Return the version with these heads, sorted."""
        return cls(tuple(sorted(heads)))

    @property
    def position(self) -> int:
        """Return the largest position, 0 for an empty stream: a number to show, never to compare."""
        return max(map(_POSITION, self.heads), default=0)

    @property
    def recorded_at(self) -> str:
        """Return the time of the newest head, or an empty string."""
        return self.heads[-1].recorded_at if self.heads else ""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the commit ids of the heads."""
        return tuple(map(_ID, self.heads))

    def __str__(self) -> str:
        """Return `<position>-<id prefix>`, with `+<id prefix>` for each further head."""
        if not self.heads:
            return "0"
        return f"{self.position}-" + "+".join(head.id[:SHORT] for head in self.heads)


def parse_version(text: str) -> tuple[int, list[str]] | None:
    """Return the position and the id prefixes in the text of a version; None for another text.

    >>> parse_version("12-0a1b2c3d4e5f+9f8e")
    (12, ['0a1b2c3d4e5f', '9f8e'])
    """
    match = _VERSION_FORM.fullmatch(text)
    return None if match is None else (int(match[1]), match[2].split("+"))


#: Name of a field in other memory systems -> its name here; an intent that uses one is refused with the right name, if
#: its kind has that field.
FIELD_ALIASES: Mapping[str, str] = {
    name: field
    for field, names in (
        ("about", "file files path paths"),
        ("applies_to_project", "project"),
        ("asserted_by", "agent agent_id author"),
        ("asserted_in", "session session_id"),
        ("assigned_to", "assignee owner"),
        ("convention_name", "name"),
        ("convention_scope", "scope"),
        ("detailed_explanation", "body context description details explanation"),
        ("enforcement_level", "binding enforcement level strict"),
        ("expires_on", "deadline due due_date expires expiry"),
        ("iri", "id"),
        ("rationale", "because justification reasoning why"),
        ("severity", "importance priority urgency"),
        ("status", "state"),
        ("summary", "content message note statement text title"),
        ("supersedes", "replaces"),
        ("topic", "category keywords label labels subject tag tags"),
        ("type", "kind"),
    )
    for name in names.split()
}

#: Names that others use as fields -> the property without a field, to be given as an extra triple.
EXTRA_PROPERTIES: Mapping[str, str] = {
    "blocked_by": "blockedBy", "blocks_on": "blockedBy", "check_command": "checkCommand", "depends_on": "dependsOn",
    "error_code": "errorCode", "forbids": "forbidsPattern", "forbids_pattern": "forbidsPattern",
    "has_root_cause": "hasRootCause", "impact_level": "impactLevel", "part_of_milestone": "partOfMilestone",
    "part_of_plan": "partOfPlan", "produced_lesson": "producedLesson", "related_error": "relatedError",
    "requires": "requiresPattern", "requires_pattern": "requiresPattern", "root_cause": "hasRootCause",
}  # fmt: skip
#: The properties above whose value is a memory.
_POINTING = frozenset(
    ("blockedBy", "dependsOn", "hasRootCause", "partOfMilestone", "partOfPlan", "producedLesson", "relatedError")
)


@hint_fields
@dataclass(frozen=True, slots=True, kw_only=False)
class MemoryUpdateIntent:
    """One proposed change of long-term memory; nothing is checked until it is submitted.

    `type` is one of the types of `jidomem.rdf.vocab.CLASS_OF_TYPE` (or the alias `lesson`). `confidence` is low,
    medium, high or a float from 0 to 1. Agents, sessions and the project are IRIs, `jido:` names or plain names.
    `evidence` takes texts, IRIs and memories. `supersedes`, `invalidates`, `coexists_with` and `revives` take
    memories, each by its IRI or its short id. `extra_triples` takes `[predicate, object]` about the new memory, or
    `[subject, predicate, object]`; an object is text, a number, a boolean, an IRI, or `{"@id": ...}` / `{"@value":
    ..., "@type": ..., "@language": ...}`. `about` names the files, modules or IRIs that the memory concerns; `topic`
    is the subject of a decision or fact in one phrase, by which it is compared with others. Moments are ISO 8601.
    """

    type: str | None = None
    iri: str | None = None
    summary: str | None = None
    detailed_explanation: str | None = None
    rationale: str | None = None
    applies_to_project: str | None = None
    asserted_by: str | None = None
    asserted_in: str | None = None
    confidence: str | float | None = None
    evidence: list[str] = field(default_factory=list)
    supersedes: list[str] = field(default_factory=list)
    invalidates: list[str] = field(default_factory=list)
    extra_triples: list[list[Any]] = field(default_factory=list)
    topic: str | None = None
    about: list[str] = field(default_factory=list)
    status: str | None = None
    severity: str | None = None
    assigned_to: str | None = None
    convention_name: str | None = None
    convention_scope: str | None = None
    enforcement_level: str | None = None
    alternatives: list[str] = field(default_factory=list)
    coexists_with: list[str] = field(default_factory=list)
    revives: list[str] = field(default_factory=list)
    tracked_by: str | None = None
    expires_on: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    timestamp: str | None = None
    source_type: str | None = None
    reason: str | None = None
    idempotency_key: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MemoryUpdateIntent:
        """Return the intent with the fields in *values*.

        Raises IntentRefused `unknown_field`, with each unknown key and the nearest known one; InvalidRequest when
        *values* is not a mapping.
        """
        if not isinstance(values, Mapping):
            hint = 'write {"type": "fact", "summary": "...", ...}'
            raise InvalidRequest(f"an intent is a JSON object, not {json_type(values)}", hint=hint)
        values = with_own_properties(with_accepted_names(values))
        if unknown := unknown_fields(values):
            raise IntentRefused(unknown)
        return cls(**values)

    @classmethod
    def from_fields(cls, values: Mapping[str, Any]) -> MemoryUpdateIntent:
        """Return the intent of *values*, whose keys are fields, without the hints of the constructor."""
        intent = object.__new__(cls)
        _INIT(intent, **values)
        return intent

    @classmethod
    def from_json(cls, text: str | bytes) -> MemoryUpdateIntent:
        """Return the intent in a JSON object; raises InvalidRequest `malformed_json` with line and column."""
        return cls.from_dict(parse_json(text))

    def fields(self) -> Iterable[tuple[str, Any]]:
        """Return every field with its value, in the order of the format."""
        return zip(INTENT_FIELDS, _VALUES(self), strict=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, as plain JSON values, in the order of the format."""
        fields = ((name, value) for name, value in self.fields() if value is not None and value != [])
        return {name: value if isinstance(value, str) else deepcopy(value) for name, value in fields}

    def to_json(self) -> str:
        """Return the intent as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


INTENT_FIELDS: Mapping[str, Any] = {f.name: f for f in fields(MemoryUpdateIntent)}
_VALUES = attrgetter(*INTENT_FIELDS)
_INIT: Callable[..., None] = unwrap(MemoryUpdateIntent.__init__)
LIST_FIELDS = frozenset(
    ("evidence", "supersedes", "invalidates", "extra_triples", "about", "alternatives", "coexists_with", "revives")
)
#: The kinds that have a field, for fields that not all kinds have.
ONLY_FOR: Mapping[str, Collection[str]] = {
    "status": {"task", *vocab.ERRORS, *vocab.DECISIONS},
    "severity": vocab.ERRORS,
    "assigned_to": {"task"},
    "convention_name": vocab.CONVENTIONS,
    "convention_scope": vocab.CONVENTIONS,
    "enforcement_level": vocab.CONVENTIONS,
    "alternatives": vocab.DECISIONS,
}
#: Names that others use for what ended an error or a task, which no field has.
_OUTCOMES = ("resolution", "solution", "fix", "outcome")
_ENDED_BY = "leave {!r} out, and give it as the reason when its status is revised, or in a lesson with it as evidence"
#: The likeness from which on an unknown field is a known one.
_LIKE = 0.8
#: The properties that only the writer uses.
WRITER_ONLY = frozenset((
    "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
    "aboutBlob", "confirmedBy", "quarantined", "proposedBecause", "settledBy", "judgement",
))  # fmt: skip


class FieldProperty(NamedTuple):
    """A property of a memory, and the field of an intent that it is written from.

    `form` is the form of its value. An extra triple with this property is `lifted` into the field, `refused`, as the
    field must be used, or `kept` beside the field.
    """

    name: str
    field: str
    form: str
    as_extra: str


#: By property; first those of the content, in the order in which changes of a memory are listed.
FIELD_PROPERTIES: Mapping[str, FieldProperty] = {
    name: FieldProperty(name, field, form, as_extra)
    for name, field, form, as_extra in (
        ("summary", "summary", "text", "refused"),
        ("decisionStatus", "status", "status", "lifted"),
        ("hasTaskStatus", "status", "status", "lifted"),
        ("hasErrorStatus", "status", "status", "lifted"),
        ("rationale", "rationale", "text", "lifted"),
        ("detailedExplanation", "detailed_explanation", "text", "lifted"),
        ("topic", "topic", "text", "lifted"),
        ("about", "about", "entry", "lifted"),
        ("derivedFrom", "evidence", "evidence", "kept"),
        ("hasAlternative", "alternatives", "alternative", "kept"),
        ("confidenceValue", "confidence", "confidence", "refused"),
        ("hasConfidence", "confidence", "confidence", "refused"),
        ("severityLevel", "severity", "text", "lifted"),
        ("assignedTo", "assigned_to", "iri", "lifted"),
        ("trackedBy", "tracked_by", "url", "lifted"),
        ("conventionName", "convention_name", "text", "lifted"),
        ("hasConventionScope", "convention_scope", "name", "lifted"),
        ("hasEnforcementLevel", "enforcement_level", "name", "lifted"),
        ("hasSourceType", "source_type", "name", "lifted"),
        ("validFrom", "valid_from", "moment", "lifted"),
        ("validUntil", "valid_until", "moment", "lifted"),
        ("expiresOn", "expires_on", "moment", "lifted"),
        # author, time, reason and relations
        ("hasTimestamp", "timestamp", "moment", "refused"),
        ("appliesToProject", "applies_to_project", "iri", "refused"),
        ("assertedBy", "asserted_by", "iri", "refused"),
        ("assertedIn", "asserted_in", "iri", "refused"),
        ("revisionReason", "reason", "text", "kept"),
        ("supersedes", "supersedes", "memory", "refused"),
        ("invalidates", "invalidates", "memory", "refused"),
        ("coexistsWith", "coexists_with", "memory", "refused"),
        ("revives", "revives", "memory", "refused"),
        ("idempotencyKey", "idempotency_key", "key", "refused"),
    )
}


def properties_of(*forms: str) -> dict[str, str]:
    """Return the property of each field whose values have one of *forms*.

    >>> properties_of("url")
    {'tracked_by': 'trackedBy'}
    """
    return {each.field: each.name for each in FIELD_PROPERTIES.values() if each.form in forms}


#: The forms of intents as JSON.
_OWN_PROPERTY = lazy(r"(?:[A-Za-z][\w-]*:[A-Za-z_][\w-]*|(?:https?://|urn:)[^\s<>\"]+)")


def accepted_names(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *values* with every other name of a field, and every property, in the place where an intent has it."""
    return with_own_properties(with_accepted_names(values))


def with_own_properties(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *values* with each key that is a prefixed name or IRI, of a property, as extra triples."""
    own = [key for key in values if ":" in str(key) and _OWN_PROPERTY.fullmatch(str(key))]
    if not own or not isinstance(extra := values.get("extra_triples") or [], list):
        return values
    entries = [(key, values[key] if isinstance(values[key], list) else [values[key]]) for key in own]
    triples = [[key, entry] for key, each in entries for entry in each if entry not in (None, "")]
    return {**{name: values[name] for name in values if name not in own}, "extra_triples": [*extra, *triples]}


def with_accepted_names(values: Mapping[str, Any], kind: object = None) -> Mapping[str, Any]:
    """Return *values* of *kind*, or their own type, with the `due` of a task under the field it is stored in.

    Of another shipped kind that field is the date of a review, so `due` stays an unknown field.
    """
    if "due" not in values or "expires_on" in values:
        return values
    kind = kind or values.get("type")
    if isinstance(kind, str) and kind != "task" and kind in (*vocab.CLASS_OF_TYPE, *vocab.TYPE_ALIASES):
        return values
    return {("expires_on" if name == "due" else name): value for name, value in values.items()}


def unknown_fields(values: Mapping[str, Any], kind: object = None) -> list[Violation]:
    """Return a violation for each key of *values* that is no field, with the nearest of *kind*, else of its type."""
    unknown = [key for key in values if key not in INTENT_FIELDS][: Violation.MOST + 1]  # each costs a comparison
    return [_unknown_field(key, values, kind) for key in unknown]


def _unknown_field(key: Any, values: Mapping[str, Any], kind: object) -> Violation:
    """Return the violation for an unknown *key*; it can be renamed if the intended field is certain and free.

    A field that the kind of the memory does not have, or that is given already, is not suggested.
    """
    text, name = str(key), _snake(str(key))
    if (of_triple := EXTRA_PROPERTIES.get(name)) is not None:
        return _extra_property(text, of_triple, values)
    kind = _snake(str(kind or values.get("type") or values.get("kind") or "memory"))
    kinds = [kind] if vocab.TYPE_ALIASES.get(kind, kind) in (*vocab.CLASS_OF_TYPE, "memory") else vocab.CLASS_OF_TYPE
    has = [each for each in INTENT_FIELDS if {*kinds} & {*ONLY_FOR.get(each, kinds)}]
    nearest, is_certain = intended_field(name, has)
    message, hint = f"{text!r} is not a field of an intent", ""
    given = {each for each, value in values.items() if value not in (None, [])}
    if nearest == "summary" and "summary" in given:
        nearest, is_certain = "detailed_explanation", False
    if nearest in given:
        nearest, hint = None, f"leave {text!r} out: `{nearest}` is given"
    elif nearest is None or nearest not in has:
        message += f"; a {kind} has no {nearest}" if nearest else ""
        ended = _ENDED_BY if name in _OUTCOMES else f"leave {{!r}} out, say it in `summary`, `topic` or `about`, {_OWN}"
        nearest, hint = None, ended.format(text)
    elif isinstance(values[key], list) and nearest not in LIST_FIELDS:  # such as tags
        message += f", and {nearest!r} is one text"
        nearest, hint = None, f"leave it out, give `{nearest}`, {_OWN}"
    else:
        message += f"; did you mean {nearest!r}?{_listed(nearest, kind)}"
        hint = "" if is_certain else f"write `{nearest}` for {text!r}"
    return Violation(
        "unknown_field",
        message,
        field=text,
        value=values[key],
        allowed=tuple(has),
        nearest=nearest,
        repair=partial(renamed, old=key, new=nearest) if nearest and is_certain and nearest not in values else None,
        hint=hint,
    )


_OWN = "or give an own property, whose key is an IRI: https://example.org/tag"


def intended_field(key: str, fields: Collection[str]) -> tuple[str | None, bool]:
    """Return which of *fields* the unknown *key* stands for, and whether that is certain."""
    name = _snake(key)
    if meant := name if name in INTENT_FIELDS else FIELD_ALIASES.get(name) or misspelling_of(name, fields):
        return meant, True
    return next(iter(nearest_names(name, fields, likeness=_LIKE)), None), False


def _listed(name: str, kind: str) -> str:
    """Return the values of a field of a few values, in words; "" for any other."""
    status = {"task": vocab.TASK_STATUS, "error": vocab.ERROR_STATUS, "decision": vocab.DECISION_STATUS}
    few = {"severity": vocab.SEVERITY, "enforcement_level": vocab.ENFORCEMENT, "convention_scope": vocab.SCOPE}
    values = status.get(vocab.family(kind), ()) if name == "status" else few.get(name, ())
    return f" It is one of {', '.join(values)}" if values else ""


def _snake(key: str) -> str:
    """Return *key*, which may have the form of a property, in the form of a field."""
    humps = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip().removeprefix("jido:"))
    return humps.lower().replace("-", "_").replace(" ", "_")


def _extra_property(key: str, name: str, values: Mapping[str, Any]) -> Violation:
    """Return the violation for a *key* that must be given as the property *name* in an extra triple."""
    value, example = values[key], {"@id": "ID"} if name in _POINTING else "TEXT"
    entries = [value] if isinstance(value, str) else value
    is_texts = isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)
    triple = json.dumps([f"jido:{name}", example])
    return Violation(
        "unknown_field",
        f"{key!r} is not a field of an intent; jido:{name} is the property to use, in extra_triples",
        field=key,
        value=value,
        repair=partial(_as_triples, key=key, name=name) if is_texts else None,
        hint=f"leave it out, and give {triple} in `extra_triples`",
    )


def _as_triples(values: Mapping[str, Any], *, key: str, name: str) -> dict[str, Any]:
    entries = [values[key]] if isinstance(values[key], str) else values[key]
    statements = [[f"jido:{name}", {"@id": entry} if name in _POINTING else entry] for entry in entries]
    rest = {field: value for field, value in values.items() if field != key}
    given = rest.get("extra_triples") or []
    return {**rest, "extra_triples": [*given, *statements]} if isinstance(given, list) else rest


def renamed(values: Mapping[str, Any], *, old: str, new: str) -> dict[str, Any]:
    """Return *values* with the value of the key *old* under *new*, in the form of that field."""
    value = values[old]
    if new == "enforcement_level" and isinstance(value, bool):
        value = "Strict" if value else "Advisory"
    return {(new if key == old else key): value if key == old else given for key, given in values.items()}


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a write, returned only after the commit is durable.

    `status` is asserted, proposed or deduplicated; `filled` has the fields that the writer filled in; `commit` is None
    for a dry run, which commits nothing. `similar` has the active memories that a single intent repeats or is near to,
    the nearest first: if it takes the place of one, supersede that with `settle(project, iri, "supersede",
    other=id)`; if it repeats one, confirm that with `confirm(project, id, supersedes=[id, iri])`, which also ends the
    repetition; else both stay active. It is None if they were not looked up.
    """

    iri: str
    commit: str | None
    version: Version
    status: str
    filled: Mapping[str, Any] = field(default_factory=dict)
    conflicts: tuple[ConflictItem, ...] = ()
    warnings: tuple[str, ...] = ()
    similar: tuple[SimilarMemory, ...] | None = None

    def __str__(self) -> str:
        """Return the IRI of the memory."""
        return self.iri

    def choices(self, similar: SimilarMemory) -> dict[str, str]:
        """Return the choices between the memory and a *similar* one, each with the call of an open root."""
        new, old, keep = f"memory.project, {self.iri!r}", f"memory.project, {similar.id!r}", "nothing to do"
        replaced = similar.replaced_by or similar.id
        supersede = f"memory.writer.settle({new}, 'supersede', other={similar.id!r}, reason={REASON!r})"
        if similar.is_inactive:
            changes = {"supersedes": [self.iri, replaced]}
            supersede = f"memory.writer.revise({new}, changes={changes}, reason={REASON!r})"
        invalidate = f"memory.writer.invalidate({new}, reason={REASON!r})"
        both = f"supersedes={[similar.id, self.iri]}, reason='it says the same'"
        confirm = f"memory.writer.confirm({old}, {both})"
        if self.commit is None:
            supersede, confirm = f"supersedes={[replaced]}", f"memory.writer.confirm({old})"
            invalidate = "do not write it"
        elif self.status == "proposed":
            confirm = f"memory.writer.invalidate({new}, reason='it says the same')"
            keep = f"memory.writer.confirm({new})"
        return similar_choices(similar, supersede=supersede, confirm=confirm, keep=keep, invalidate=invalidate)

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as plain JSON values, with `choices` of each similar memory."""
        similar = [{**each.to_dict(), "choices": self.choices(each)} for each in self.similar or ()]
        return {
            "iri": self.iri,
            "commit": self.commit,
            "version": str(self.version),
            "status": self.status,
            "filled": dict(self.filled),
            "conflicts": [conflict.to_dict() for conflict in self.conflicts],
            "warnings": list(self.warnings),
            **({} if self.similar is None else {"similar": similar}),
        }


#: The property of a conflict key: two memories with the same key conflict.
CONFLICT_KEY = jido("conflictKey")
#: The beginning of the conflict key that identical memories share.
IDENTICAL = "identical:"
CLASH = "convention_clash"
#: The kinds of the key that a memory was judged, and of the key of the judgement.
JUDGED, JUDGED_AS = "judged", "judged-as"
_TOPIC, _SUMMARY, _ABOUT = jido("topic"), jido("summary"), jido("about")
_SCOPE = jido("hasConventionScope")
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest(*values: Any) -> str:
    """Return 32 hex digits of BLAKE2b over *values* as JSON."""
    return blake2b(_ENCODER.encode(values).encode(), digest_size=16).hexdigest()


def judgement_keys(item: str, *, stays: bool) -> list[str]:
    """Return the keys of the judgement that the memory *item* stays active, or that it ends.

    Two active memories with the first key and no common second one judge differently.
    """
    return [f"{JUDGED}:{digest(item)}", f"{JUDGED_AS}:{digest(item, stays)}"]


def is_named_as_staying(items: Iterable[str], keys: Collection[str]) -> bool:
    """Return whether the conflict *keys* of a memory judge that one of *items* stays active."""
    return any(judgement_keys(each, stays=True)[1] in keys for each in items)


def duplicate(kind: str, summary: str, topic: str, about: Collection[str]) -> str:
    """Return the key of two memories of the type *kind* with the same content."""
    return f"duplicate:{digest(kind, normal_text(summary), topic_key(topic), _compared(about))}"


def overlapping_decision(topic: str) -> str:
    """Return the key of two decisions on one *topic*."""
    return f"overlapping_decision:{digest('decision', topic_key(topic))}"


def contradiction(topic: str, about: Collection[str]) -> str:
    """Return the key of two facts on one *topic* about the same things."""
    return f"contradiction:{digest('fact', topic_key(topic), _compared(about))}"


def convention_clash(topic: str, scope: str | None) -> str:
    """Return the key of two conventions on one *topic* at the same *scope*."""
    return f"{CLASH}:{digest(('topic', topic_key(topic)), scope)}"


def missing_keys(triples: Collection[Triple]) -> list[Triple]:
    """Return the keys that a commit of *triples* lacks: those of topics that an earlier version compared otherwise."""
    return sorted(topic_keys(triples).difference(triples))


def topic_keys(triples: Iterable[Triple]) -> set[Triple]:
    """Return the keys of the topics in *triples* that an earlier version compared otherwise.

    Up to 0.1.0 a dash and a space distinguished two topics. A redacted memory gets no key, since only kinds of keys
    that it has are made again.
    """
    topics = [(subject, text) for subject, predicate, value in triples if predicate == _TOPIC
              if topic_key(text := parse_literal(value).text) != normal_text(text)]  # fmt: skip
    if not topics:
        return set()
    properties: dict[Term, dict[Term, list[Term]]] = {subject: {} for subject, _ in topics}
    for subject, predicate, value in triples:
        if subject in properties:
            properties[subject].setdefault(predicate, []).append(value)
    return {each for subject, text in topics for each in _topic_keys_of(subject, text, properties[subject])}


def _topic_keys_of(item: Term, topic: str, properties: dict[Term, list[Term]]) -> Iterable[Triple]:
    present = properties.get(CONFLICT_KEY, [])
    kinds = {parse_literal(key).text.partition(":")[0] for key in present}
    about = [
        parse_literal(value).text if value.startswith('"') else value[1:-1] for value in properties.get(_ABOUT, [])
    ]
    keys: list[str] = []
    if "overlapping_decision" in kinds:
        keys.append(overlapping_decision(topic))
    if "contradiction" in kinds:
        keys.append(contradiction(topic, about))
    if CLASH in kinds:
        keys += [convention_clash(topic, local_name(scope)) for scope in properties.get(_SCOPE, [])]
    if "duplicate" in kinds:
        summaries = [parse_literal(value).text for value in properties.get(_SUMMARY, [])]
        types = [kind for kind in map(type_of, properties.get(TYPE, [])) if kind]
        keys += [duplicate(kind, summary, topic, about) for kind in types for summary in summaries]
    return [(item, CONFLICT_KEY, literal(key)) for key in keys]


def _compared(about: Iterable[str]) -> Sequence[str]:
    return sorted(set(map(normal_text, about)))


_ATTRS = ("timestamp", "confidence", "source", "verified", "metadata")


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A typed memory; `type` is a canonical name of `jidomem.rdf.vocab.CLASS_OF_TYPE`, `confidence` from 0 to 1."""

    type: str
    content: str
    timestamp: datetime
    confidence: float = 0.5
    source: str = "system"
    verified: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


def create_memory(
    type: str,  # noqa: A002
    content: str,
    attrs: Mapping[str, Any] | None = None,
    *,
    now: Callable[[], datetime] = clock.now,
) -> MemoryItem:
    """Return a memory of *type* with *content*; *attrs* replace the defaults, such as the time (UTC now).

    Raises IntentRefused `unknown_type`, `invalid_confidence` or `unknown_field`, with the nearest known name.
    """
    kind = vocab.TYPE_ALIASES.get(type, type)
    if kind not in vocab.CLASS_OF_TYPE:
        raise IntentRefused([_unknown("unknown_type", "type", type, (*vocab.CLASS_OF_TYPE, *vocab.TYPE_ALIASES))])
    values = dict(attrs or {})
    for name in values:
        if name not in _ATTRS:
            raise IntentRefused([_unknown("unknown_field", "attrs", name, _ATTRS)])
    number = values.get("confidence", 0.5)
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or not (math.isfinite(number) and 0 <= number <= 1):
        message = f"confidence is a number from 0 to 1, not {number!r}"
        raise IntentRefused([Violation("invalid_confidence", message, field="confidence", value=repr(number))])
    return MemoryItem(**{"timestamp": now(), **values, "type": kind, "content": content, "confidence": float(number)})


def _unknown(code: str, where: str, name: str, known: tuple[str, ...]) -> Violation:
    near = nearest_names(name, known)
    message = f"{name!r} is not known; there is {', '.join(known)}"
    return Violation(code, message, field=where, value=name, allowed=known, nearest=near[0] if near else None)
