"""A memory as the intent that would say it again.  Pure over rows: the way back from triples to an intent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jidomem import vocab
from jidomem.errors import NotFound
from jidomem.terms import Term, Triple, bare, iri, is_iri, parts
from jidomem.vocab import TYPE, jido
from jidomem.write.kinds import DECISIONS
from jidomem.write.names import is_absolute
from jidomem.write.triples import IRIS, MOMENTS, NAMES, TEXTS
from jidomem.write.view import View

#: What a field says once and a memory may say again in an extra triple.
_MAY_REPEAT: Mapping[str, str] = {"assignedTo": "assigned_to", "trackedBy": "tracked_by"}
_STATUS = ("hasTaskStatus", "hasErrorStatus", "decisionStatus")
_ITEMS: Mapping[str, str] = {
    "supersedes": "supersedes",
    "invalidates": "invalidates",
    "coexistsWith": "coexists_with",
    "revives": "revives",
}
#: Written by the writer, or by what came later; an intent does not say them.
_NOT_SAID = {
    jido(name)
    for name in (
        "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
        "idempotencyKey", "supersededBy", "invalidatedBy", "hasConfidence", "confidenceValue", "aboutBlob",
        "confirmedBy", "quarantined", "proposedBecause",
    )
}  # fmt: skip


def restated_in(view: View, item: str) -> dict[str, Any]:
    """Return the intent that would say the memory *item* again; raises NotFound when there is no such memory."""
    if not is_absolute(item) or not view.is_item(iri(item)):
        raise NotFound(f"{item} is no memory of this project", hint="list them with: jidomem ask timeline")
    rows = view.about(iri(item))
    pointed = {value for _, predicate, value in rows if predicate in (jido("derivedFrom"), jido("hasAlternative"))}
    labels = {node: bare(text) for node in pointed if (text := _text_of(node, view))}
    return restate(iri(item), rows, labels)


def restate(item: Term, rows: Iterable[Triple], label_of: Mapping[Term, str]) -> dict[str, Any]:
    """Return the intent that says what *rows*, the triples about *item*, say of it.

    *label_of* gives the text of the evidence and alternatives *item* points at, so that they come back as texts.
    What no field says becomes an extra triple.
    """
    values: dict[str, Any] = {"iri": bare(item)}
    rows = sorted(rows, key=_in_order)
    for _, predicate, value in rows:
        if predicate == TYPE and (kind := vocab.type_of(value)):
            values["type"] = kind
            continue
        if predicate in _NOT_SAID:
            continue
        _say(values, predicate, value, label_of)
    _confidence(values, rows)
    if values.get("type") in DECISIONS and isinstance(values.get("status"), str):
        values["status"] = values["status"].lower()
    return values


def _text_of(node: Term, view: View) -> str | None:
    """Return the text a piece of evidence or an alternative was given as; None for what has an IRI of its own."""
    if "/alternatives/" in node:
        return view.first(node, jido("summary"))
    return view.first(node, vocab.LABEL) if node.startswith(f"<{vocab.BASE}evidence/") else None


def _in_order(row: Triple) -> tuple[Term, int, Term]:
    """Return what rows are sorted by: alternatives by their number, all else by its value."""
    _, predicate, value = row
    return predicate, len(value) if predicate == jido("hasAlternative") else 0, value


def _say(values: dict[str, Any], predicate: Term, value: Term, label_of: Mapping[Term, str]) -> None:
    """Put one triple into the field that says it."""
    name = vocab.local_name(predicate) if predicate.startswith(f"<{vocab.JIDO}") else ""
    plain = bare(value)
    if _MAY_REPEAT.get(name) in values:
        values.setdefault("extra_triples", []).append([bare(predicate), object_of(value)])
    elif name in _FIELD_OF_TEXT:
        values.setdefault(_FIELD_OF_TEXT[name], plain)
    elif name in _FIELD_OF_IRI:
        values.setdefault(_FIELD_OF_IRI[name], plain)
    elif name in _FIELD_OF_NAME or name in _STATUS:
        values.setdefault(_FIELD_OF_NAME.get(name, "status"), vocab.local_name(plain))
    elif name in _ITEMS:
        values.setdefault(_ITEMS[name], []).append(plain)
    elif name == "about":
        values.setdefault("about", []).append(plain)
    elif name == "trackedBy":
        values.setdefault("tracked_by", plain)
    elif name == "derivedFrom":
        values.setdefault("evidence", []).append(label_of.get(value, plain))
    elif name == "hasAlternative" and plain.startswith(f"{values['iri']}/alternatives/"):
        values.setdefault("alternatives", []).append(label_of.get(value, plain))
    else:
        values.setdefault("extra_triples", []).append([bare(predicate), object_of(value)])


def object_of(term: Term) -> dict[str, str]:
    """Return a term in the object form of extra triples."""
    if is_iri(term):
        return {"@id": bare(term)}
    text, datatype, language = parts(term)
    return {"@value": text, "@language": language} if language else {"@value": text, "@type": datatype}


def _confidence(values: dict[str, Any], rows: Iterable[Triple]) -> None:
    """Set the exact confidence where one was given, else the level."""
    found = {predicate: value for _, predicate, value in rows}
    if (exact := found.get(jido("confidenceValue"))) is not None:
        values["confidence"] = float(parts(exact).text)
    elif (level := found.get(jido("hasConfidence"))) is not None:
        values["confidence"] = vocab.local_name(level).lower()


_FIELD_OF_TEXT = {name: field for field, name in [*TEXTS.items(), *MOMENTS.items()]}
_FIELD_OF_IRI = {name: field for field, name in IRIS.items()}
_FIELD_OF_NAME = {name: field for field, name in NAMES.items()}
#: What an intent says once at most.
SAID_ONCE = frozenset(
    map(jido, (*_FIELD_OF_TEXT, *_FIELD_OF_IRI, *_FIELD_OF_NAME, *_STATUS, "hasConfidence", "confidenceValue"))
) - frozenset(map(jido, _MAY_REPEAT))
