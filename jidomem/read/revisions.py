"""The revisions of a memory: which fields each version changed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from jidomem.errors import NotFound
from jidomem.read.functions import Rows
from jidomem.terms import iri
from jidomem.vocab import BASE, JIDO, LABEL, conv, jido, local_name

#: property -> the field of an intent that sets it, in the order in which changes are listed.
_FIELDS: Mapping[str, str] = {
    "class": "type", "summary": "summary", "decisionStatus": "status", "hasTaskStatus": "status",
    "hasErrorStatus": "status", "rationale": "rationale", "detailedExplanation": "detailed_explanation",
    "topic": "topic", "about": "about", "derivedFrom": "evidence", "hasAlternative": "alternatives",
    "confidenceValue": "confidence", "hasConfidence": "confidence", "severityLevel": "severity",
    "assignedTo": "assigned_to", "trackedBy": "tracked_by", "conventionName": "convention_name",
    "hasConventionScope": "convention_scope", "hasEnforcementLevel": "enforcement_level",
    "hasSourceType": "source_type", "validFrom": "valid_from", "validUntil": "valid_until", "expiresOn": "expires_on",
}  # fmt: skip
_LISTS = ("about", "evidence", "alternatives")
#: Who recorded a version, when, why, in whose place and from which source: no part of what a memory says.
_NO_CONTENT = frozenset((
    "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
    "idempotencyKey", "aboutBlob", "confirmedBy", "quarantined", "proposedBecause", "hasTimestamp", "assertedBy",
    "assertedIn", "appliesToProject", "supersedes", "invalidates", "revives", "coexistsWith", "revisionReason",
    "localId", "sourceBlob", "sourceLine", "sourceDigest", "sourceState", "previousImport",
))  # fmt: skip
#: What says in words what a memory rests on: evidence given as text, turns of a conversation, entries of an agent.
_WORDED = tuple(f"{BASE}{folder}/" for folder in ("evidence", "turns", "entries"))
_ALTERNATIVE = "/alternatives/"
_TEXTS = f"""SELECT ?node ?text ?prompt ?answer {{ VALUES ?node {{ %s }}
  OPTIONAL {{ ?node {LABEL}|{jido("entryText")}|{jido("summary")} ?text }}
  OPTIONAL {{ ?node {conv("hasPrompt")}/{conv("promptText")} ?prompt }}
  OPTIONAL {{ ?node {conv("hasAnswer")}/{conv("answerText")} ?answer }} }}"""
_MARKER = "DeletedMarker"
#: How many nodes are asked about at once.
_SOME = 1_000

Memory = Mapping[str, Any]


class _Reader(Protocol):
    """What answers about single memories, and SPARQL."""

    def get_memory(self, project: str, iri: str, *, as_of: object = None) -> dict[str, Any]:
        """Return one memory; raises NotFound."""

    def select(self, project: str, sparql: str) -> Rows:
        """Return the rows of a SELECT."""


class Revisions:
    """The revisions of memories of one project, as they were known at one moment."""

    def __init__(self, reader: _Reader, project: str, as_of: object = None) -> None:
        self._reader, self._project, self._as_of = reader, project, as_of

    def of(self, item: str) -> dict[str, Any]:
        """Return the `event` by which a version came, its `reason`, and its `changes`: field, before and after.

        They are those against the newest memory that it replaced; the first version has none. A field that is not set
        is None. The event is asserted, revised, confirmed, revived or withdrawn, or of a proposal proposed, accepted or
        rejected; None where there is no such memory.
        """
        found = self._memory(item)
        if found is None:
            return {"event": None, "reason": None, "changes": []}
        superseded, withdrawn, revived = (
            self._memories(found, name) for name in ("supersedes", "invalidates", "revives")
        )
        versions = [each for each in (*superseded, *revived) if each["class"] != _MARKER]
        before = max(versions, key=lambda memory: memory["recorded_at"], default=None)
        changes = [] if before is None else self._changes(before, found)
        return {
            "event": _event(found, superseded, withdrawn, changes),
            "reason": reason(found, [*superseded, *withdrawn, *revived]),
            "changes": changes,
        }

    def _memories(self, memory: Memory, name: str) -> list[Memory]:
        return [each for each in map(self._memory, _values(memory, name)) if each is not None]

    def _memory(self, item: str) -> Memory | None:
        try:
            return self._reader.get_memory(self._project, item, as_of=self._as_of)
        except NotFound:
            return None

    def _changes(self, before: Memory, after: Memory) -> Rows:
        sides = (before, after)
        nodes = [node for each in sides for name in ("derivedFrom", "hasAlternative") for node in _values(each, name)]
        texts = node_texts(self._reader, self._project, nodes)
        old, new = (_content(each, texts) for each in sides)
        names = [*dict.fromkeys((*_FIELDS.values(), *sorted({*old, *new} - {*_FIELDS.values()})))]
        return [
            {"field": name, "before": old.get(name), "after": new.get(name)}
            for name in names
            if old.get(name) != new.get(name)
        ]


def _event(memory: Memory, superseded: Sequence[Memory], withdrawn: Sequence[Memory], changes: Rows) -> str:
    """Return the event by which *memory* came."""
    said = memory["properties"]
    if _is_proposed(memory):
        return "proposed"
    if said.get("revives"):
        return "revived"
    if superseded:
        if any(map(_is_proposed, superseded)):
            return "accepted"
        is_same = said.get("confirmedBy") or all(change["field"] == "verified" for change in changes)
        return "confirmed" if is_same else "revised"
    if withdrawn and memory["class"] == _MARKER:
        return "rejected" if all(map(_is_proposed, withdrawn)) else "withdrawn"
    return "asserted"


def _is_proposed(memory: Memory) -> bool:
    return jido("Proposed") in map(iri, _values(memory, "hasAssertionStatus"))


def reason(memory: Memory, replaced: Sequence[Memory] = ()) -> str | None:
    """Return why a memory replaced others: its reason, else its rationale unless that was carried over; None for none.

    The rationale of a memory that replaced nothing says why it is so, not why anything changed.
    """
    said = memory["properties"]
    if given := next(iter(said.get("revisionReason", ())), None):
        return str(given)
    own = next(iter(said.get("rationale", ())), None)
    is_own = bool(replaced) and not any(own in each["properties"].get("rationale", ()) for each in replaced)
    return str(own) if own is not None and is_own else None


def node_texts(reader: _Reader, project: str, nodes: Iterable[str]) -> dict[str, str]:
    """Return the text of each of *nodes* that is worded: a turn, an entry of an agent, evidence, an alternative."""
    worded = [iri(each) for each in dict.fromkeys(nodes) if each.startswith(_WORDED) or _ALTERNATIVE in each]
    texts: dict[str, str] = {}
    for at in range(0, len(worded), _SOME):
        for row in reader.select(project, _TEXTS % " ".join(worded[at : at + _SOME])):
            if text := "\n".join(filter(None, (row["text"], row["prompt"], row["answer"]))):
                texts[row["node"]] = text
    return texts


def _content(memory: Memory, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return what a memory says by fields: lists of those that hold several values, else one value."""
    properties = {**memory["properties"], "class": [memory["class"]]}
    content: dict[str, Any] = {}
    for name in sorted(properties.keys() - _NO_CONTENT, key=lambda name: ([*_FIELDS, name].index(name), name)):
        values = [_plain(texts.get(str(value), value)) for value in properties[name]]
        field = _FIELDS.get(name, name)
        content.setdefault(field, sorted(values, key=str) if field in _LISTS or len(values) > 1 else values[0])
    return content


def _plain(value: Any) -> Any:
    """Return a term of the ontology by its local name, any other value as it is."""
    return local_name(value) if isinstance(value, str) and value.startswith(JIDO) else value


def _values(memory: Memory, name: str) -> list[str]:
    return [str(value) for value in memory["properties"].get(name, ())]
