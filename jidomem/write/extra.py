"""The extra triples of an intent in their one written form.  Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from jidomem import vocab
from jidomem.errors import TooLarge
from jidomem.moments import parse_moment
from jidomem.policy import TRIPLES_LIMIT
from jidomem.terms import bare, iri
from jidomem.write.kinds import choices_of, family
from jidomem.write.names import is_reference, is_reserved, is_short_id, moment
from jidomem.write.tidy import MOMENTS, Tidy

_NAME = "extra_triples"
#: How the literals of a datatype are written; what is not listed is not looked at.
_LEXICAL = {
    vocab.XSD + name: re.compile(pattern)
    for name, pattern in {
        "boolean": "true|false|1|0",
        "integer": "[+-]?[0-9]+",
        "decimal": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)",
        "dateTime": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?",
        "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})?",
    }.items()
}
#: Properties whose text is a pattern, in which each blank counts, and all whose text is stored as given.
_PATTERNS = frozenset((f"{vocab.JIDO}forbidsPattern", f"{vocab.JIDO}requiresPattern"))
_VERBATIM = _PATTERNS | {f"{vocab.JIDO}checkCommand"}
_OBJECT_KEYS = ({"@id"}, {"@value"}, {"@value", "@type"}, {"@value", "@language"})


def written(tidy: Tidy, given: list[Any], own: str) -> list[Any]:
    """Return the triples *given* about *own* as [subject IRI, predicate IRI, {"@id"} or {"@value", "@type"}].

    What has no such form is refused on *tidy*; raises TooLarge for more than 500 triples.
    """
    if len(given) > TRIPLES_LIMIT:
        raise TooLarge(
            f"{len(given)} extra triples; an intent holds at most {TRIPLES_LIMIT}", hint="submit several intents"
        )
    found = [triple for triple in (_triple(tidy, entry, own) for entry in given) if triple]
    return [triple for n, triple in enumerate(found) if triple not in found[:n]]


def _triple(tidy: Tidy, entry: Any, own: str) -> list[Any] | None:
    if not isinstance(entry, (list, tuple)) or len(entry) not in (2, 3):
        message = "an extra triple is [predicate, object] about this memory, or [subject, predicate, object]"
        tidy.refuse("invalid_argument", _NAME, entry, message)
        return None
    subject, predicate, value = entry if len(entry) == 3 else (own, *entry)
    for part in (subject, predicate):
        if isinstance(part, str) and part.strip().startswith("_:"):
            tidy.refuse("invalid_iri", _NAME, part, f"the blank node {part} has no name: give it an IRI")
            return None
        if not isinstance(part, str) or not (is_reference(part) or part == "this"):
            message = "subject and predicate are IRIs, prefixed names such as jido:topic, or 'this'"
            tidy.refuse("invalid_iri", _NAME, part, f"{message}, not {part!r:.80}")
            return None
    term = _object(tidy, tidy.iri(_NAME, predicate.strip()), value)
    if term is None:
        return None
    return [own if subject == "this" else tidy.iri(_NAME, subject.strip()), tidy.iri(_NAME, predicate.strip()), term]


def _object(tidy: Tidy, predicate: str, value: Any) -> dict[str, str] | None:
    """Return an object's written form; text that is an IRI is one, other text takes the datatype of the property."""
    if isinstance(value, Mapping):
        return _spelt_out(tidy, predicate, value)
    if isinstance(value, bool):
        return {"@value": "true" if value else "false", "@type": vocab.XSD + "boolean"}
    if isinstance(value, int) and abs(value) < 2**63:
        return {"@value": str(value), "@type": vocab.XSD + "integer"}
    if isinstance(value, float) and math.isfinite(value):
        return {"@value": repr(value), "@type": vocab.XSD + "double"}
    if predicate in _VERBATIM and isinstance(value, str):
        return _spelt_out(tidy, predicate, {"@value": value})
    if not isinstance(value, str) or not value.strip():
        tidy.refuse("invalid_argument", _NAME, value, "an object is text, a finite number, a boolean or an IRI")
        return None
    if value.strip().startswith("_:"):
        tidy.refuse("invalid_iri", _NAME, value, f"the blank node {value} has no name: give it an IRI")
        return None
    text = tidy.text(_NAME, value)
    datatype = datatype_of(tidy, predicate)
    if datatype is None and is_reference(text, prose=True):
        return {"@id": tidy.iri(_NAME, text)}
    if datatype == vocab.XSD + "dateTime":
        text = moment(text) or text
    return _typed(tidy, text, datatype or vocab.XSD + "string")


def datatype_of(tidy: Tidy, predicate: str) -> str | None:
    """Return the datatype *predicate* takes, None when it takes IRIs, anything, or is not ours."""
    declared = tidy.schema.properties.get(iri(predicate))
    found = [bare(term) for term in declared.range] if declared else []
    return found[0] if len(found) == 1 and found[0].startswith(vocab.XSD) else None


def _spelt_out(tidy: Tidy, predicate: str, value: Mapping[str, Any]) -> dict[str, str] | None:
    """Return an object given as `{"@id": ...}` or `{"@value": ...}`; a literal of text keeps its blanks."""
    if set(value) not in _OBJECT_KEYS or not all(isinstance(part, str) for part in value.values()):
        message = 'an object is {"@id": IRI}, {"@value": text}, or {"@value": text} with "@type" or "@language"'
        tidy.refuse("invalid_argument", _NAME, value, message)
        return None
    if "@id" in value:
        name = value["@id"].strip()
        return {"@id": name if is_short_id(name) else tidy.iri(_NAME, name)}
    if not value["@value"].strip() and not (value["@value"] and predicate in _PATTERNS):
        tidy.refuse("invalid_argument", _NAME, value, "an object that is text is not blank")
        return None
    datatype = tidy.iri(_NAME, value.get("@type", vocab.XSD + "string"))
    is_text = datatype == vocab.XSD + "string" and predicate not in FIELD_OF  # fields are trimmed
    text = tidy.verbatim(_NAME, value["@value"]) if is_text else tidy.text(_NAME, value["@value"])
    if "@language" in value:
        if not re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", value["@language"]):
            tidy.refuse("invalid_argument", _NAME, value["@language"], "@language is a tag such as en-gb")
            return None
        return {"@value": text, "@language": value["@language"].lower()}
    return _typed(tidy, text, datatype)


def _typed(tidy: Tidy, text: str, datatype: str) -> dict[str, str] | None:
    """Return a literal, or refuse one that is not written as its datatype has it."""
    if not is_written(text, datatype):
        tidy.refuse("shape_violation", _NAME, text, f"{text[:80]!r} is not written as a {datatype} is")
        return None
    return {"@value": text, "@type": datatype}


def is_written(text: str, datatype: str) -> bool:
    """Return whether *text* is what the literals of *datatype* look like, as far as that is known."""
    pattern = _LEXICAL.get(datatype)
    moment_only = datatype == vocab.XSD + "dateTime"
    fits = pattern is None or (pattern.fullmatch(text) and (not moment_only or parse_moment(text)))
    return not is_reserved(datatype) and bool(fits)


def lift(triples: list[Any], values: dict[str, Any]) -> list[Any]:
    """Return *triples* less those that say what a field of the intent says, put into *values* where that is free.

    What is said of the new memory is then judged the same, whichever way it was said.
    """
    choices = choices_of(values["type"])
    rest = []
    for subject, predicate, value in triples:
        field = FIELD_OF.get(predicate) if subject == values["iri"] else None
        said = _said(field, value, choices.get(field)) if field else None
        if field is None or said is None or (field == "status" and not _is_status_of(predicate, values["type"])):
            rest.append([subject, predicate, value])
        elif isinstance(values[field], list):
            values[field] = [*dict.fromkeys([*values[field], said])]
        elif values[field] in (None, said):
            values[field] = said
        else:
            rest.append([subject, predicate, value])
    return rest


def _said(field: str, value: Mapping[str, str], allowed: tuple[str, ...] | None) -> str | None:
    """Return what *field* would hold for an object in its written form, None where it cannot hold it."""
    text = value.get("@id")
    if text is None and value.get("@type") == vocab.XSD + _DATATYPE_OF.get(field, "string"):
        text = value["@value"]
        if field in MOMENTS and moment(text) != text:
            return None
    if allowed is None or text is None:
        return text
    name = text.removeprefix(vocab.JIDO)
    return name if name in allowed else None


def _is_status_of(predicate: str, kind: str | None) -> bool:
    """Return whether *predicate* is where the status of a *kind* is written."""
    family_ = family(kind or "")
    return predicate == vocab.JIDO + {"task": "hasTaskStatus", "error": "hasErrorStatus"}.get(family_, "decisionStatus")


_DATATYPE_OF: Mapping[str, str] = {"tracked_by": "anyURI", **dict.fromkeys(MOMENTS, "dateTime")}
#: Properties that say what a field of the intent says -> the field.
FIELD_OF: Mapping[str, str] = {
    vocab.JIDO + name: field
    for name, field in {
        "hasTaskStatus": "status",
        "hasErrorStatus": "status",
        "decisionStatus": "status",
        "severityLevel": "severity",
        "conventionName": "convention_name",
        "hasConventionScope": "convention_scope",
        "hasEnforcementLevel": "enforcement_level",
        "hasSourceType": "source_type",
        "assignedTo": "assigned_to",
        "rationale": "rationale",
        "detailedExplanation": "detailed_explanation",
        "topic": "topic",
        "about": "about",
        "trackedBy": "tracked_by",
        "expiresOn": "expires_on",
        "validFrom": "valid_from",
        "validUntil": "valid_until",
    }.items()
}
