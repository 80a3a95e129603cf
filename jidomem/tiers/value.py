"""A value of short-term memory as what long-term memory keeps of it, and the way back.  Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.intent import parse_json
from jidomem.item import MemoryItem
from jidomem.moments import parse_moment, stamp
from jidomem.plain import plain
from jidomem.spaces.names import TO_ONTOLOGY
from jidomem.vocab import JIDO, XSD

#: A value with a type and a content: a mapping, or what `create_memory` gives.
Item = Mapping[str, Any] | MemoryItem
#: What a value may say beside its content, by the names of an intent; and which of them are lists.
FIELDS = (
    "rationale", "detailed_explanation", "topic", "about", "evidence", "status", "severity", "assigned_to",
    "confidence", "convention_name", "convention_scope", "enforcement_level", "alternatives", "tracked_by",
    "expires_on", "valid_from", "valid_until", "source_type",
)  # fmt: skip
_LISTS = ("about", "evidence", "alternatives")
#: The types of a task, which may have its content as `text` and the status it has in working memory.
_TASKS = ("task", "task_completed")
#: What a value may say besides -> the property that keeps it.
_PROPERTIES: Mapping[str, str] = {
    "id": "localId", "key": "key", "context": "context", "affected_module": "affectedModule",
    "affectedModule": "affectedModule",
}  # fmt: skip
_SOURCES: Mapping[str, str] = {
    "user": "UserSource", "agent": "AgentSource", "tool": "ToolSource", "document": "ExternalDocumentSource",
}  # fmt: skip
KEY, VALUE, CATEGORY, VERIFIED = (JIDO + name for name in ("key", "value", "category", "verified"))


def said(item: Item) -> dict[str, Any]:
    """Return what *item* says by name, its metadata among it; raises InvalidRequest for what is no item."""
    if isinstance(item, MemoryItem):
        plain = {
            "type": item.type, "content": item.content, "timestamp": item.timestamp, "confidence": item.confidence,
            "source": item.source, "verified_by_user": item.verified, "high_confidence": item.confidence >= 0.8,
        }  # fmt: skip
        return {**item.metadata, **plain}
    if not isinstance(item, Mapping):
        raise InvalidRequest(
            f"an item is a mapping, not {type(item).__name__}", hint='give {"type": "fact", "content": "..."}'
        )
    metadata = item.get("metadata")
    own = {
        name: value for name, value in item.items() if name != "key"
    }  # the key of a value is the one it is put under
    return {**(metadata if isinstance(metadata, Mapping) else {}), **own}


def item_of(value: Any, *, session_id: str, now: datetime) -> dict[str, Any]:
    """Return the item that *value* is promoted as: of its type if it is a mapping that says one, else a fact.

    Its content is the text a mapping has under `content`, else the value. It is of this session and moment.
    """
    own = _with_content(value)
    moment = own["timestamp"] if isinstance(value, MemoryItem) else now
    source = {"source_type": _SOURCES[own["source"]]} if own.get("source") in [*_SOURCES] else {}
    return {"type": "fact", **source, **own, "timestamp": moment, "source": f"session:{session_id}"}


def text_of(content: Any) -> str:
    """Return *content* as text: as it is, or as JSON; raises InvalidRequest for what JSON does not give back."""
    return content.strip() if isinstance(content, str) else written(content, readable=True)


def told(item: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the summary and the explanation of *item*; of a content of several lines the first is the summary.

    Raises InvalidRequest for what JSON does not give back, and for an explanation that is no text.
    """
    text, more = text_of(item.get("content")), item.get("detailed_explanation") or ""
    if not isinstance(more, str):
        raise InvalidRequest(f"detailed_explanation={more!r:.100} is no text", hint="give it as text, or leave it out")
    if "\n" in text:
        return text.splitlines()[0].strip(), f"{text}\n\n{more}".strip()
    return text, more.strip() or None


def fields_of(item: Mapping[str, Any], kind: str, category: str) -> dict[str, Any]:
    """Return the fields of the intent of that *kind* by which *item* is kept, as far as it says them.

    Raises InvalidRequest for what cannot be said.
    """
    summary, explanation = told(item)
    given = {name: item[name] for name in FIELDS if item.get(name) is not None}
    given |= {name: [given[name]] for name in _LISTS if isinstance(given.get(name), str)}
    if explanation is not None:
        given["detailed_explanation"] = explanation
    if item.get("high_confidence") is True:
        given.setdefault("confidence", "high")
    if item.get("type") == "task_completed":
        given.setdefault("status", "Completed")
    if kind == "task" and isinstance(given.get("status"), str):
        given["status"] = TO_ONTOLOGY.get(given["status"], given["status"])
    moment = parse_moment(item.get("timestamp"))
    if moment is not None:
        given["timestamp"] = stamp(moment)
    return {**given, "type": kind, "summary": summary, "extra_triples": _extras(item, category)}


def extra(predicate: str, text: str, datatype: str = "string") -> list[Any]:
    """Return what a memory says of itself in an extra triple, in the form in which it is given back."""
    return [predicate, {"@value": text, "@type": XSD + datatype}]


def kept_value(key: str, value: Any, summary: str, explanation: str | None) -> list[list[Any]]:
    """Return the extra triple by which the value of *key* is given back, none where the content says it to the letter.

    Raises InvalidRequest for a value that JSON does not give back as it was.
    """
    if value == core(summary, explanation):
        return []
    return [extra(VALUE, f"[{written(key)}, {written(value)}]")]


def given_back(key: str, values: Iterable[str], summary: str, explanation: str | None) -> Any:
    """Return the value that was promoted under *key*; the content of the memory where that says something else now.

    *values* are what the memory keeps in `jido:value`.
    """
    for name, value in filter(None, map(pair, values)):
        if name == key and _still_said(value, summary, explanation):
            return value
    return core(summary, explanation)


def pair(kept: str) -> tuple[str, Any] | None:
    """Return the key and the value in a `jido:value`, None where somebody wrote something else there."""
    try:
        found = parse_json(kept)
    except InvalidRequest:
        return None
    is_pair = isinstance(found, list) and len(found) == 2 and isinstance(found[0], str)
    return (found[0], found[1]) if is_pair else None


def content_of(summary: str, explanation: str | None) -> str:
    """Return the content of a memory: its summary and what explains it, which may begin with it."""
    if not explanation:
        return summary
    return explanation if explanation.startswith(summary) else f"{summary}\n{explanation}"


def core(summary: str, explanation: str | None) -> str:
    """Return the content that a memory was given: all its lines where the first is the summary, else the summary."""
    lines = (explanation or "").splitlines()
    return explanation or "" if len(lines) > 1 and lines[0].strip() == summary else summary


def _still_said(value: Any, summary: str, explanation: str | None) -> bool:
    return _folded(core(*told(_with_content(value)))) == _folded(core(summary, explanation))


def _folded(text: str) -> str:
    """Return *text* as it is compared: two keys may stand for one content in different case and white space."""
    return " ".join(text.casefold().split())


def _with_content(value: Any) -> dict[str, Any]:
    """Return what *value* says by name, its content in any case."""
    own = said(value) if isinstance(value, (Mapping, MemoryItem)) else {}
    content = own.get("content", own.get("text") if own.get("type") in _TASKS else None)
    return {**own, "content": content if isinstance(content, str) and content.strip() else value}


def _extras(item: Mapping[str, Any], category: str) -> list[Any]:
    found = [extra(CATEGORY, category)]
    for name, called in _PROPERTIES.items():
        given = item.get(name)
        for one in given if isinstance(given, (list, tuple)) else [] if given is None else [given]:
            if isinstance(one, bool) or not isinstance(one, (str, int)):
                raise InvalidRequest(f"{name}={one!r:.100} is no text", hint=f"give {name} as text, or leave it out")
            found.append(extra(JIDO + called, str(one).strip()))
    if item.get("verified") is True or item.get("verified_by_user") is True:
        found.append(extra(VERIFIED, "true", "boolean"))
    return found


def written(value: Any, *, readable: bool = False) -> str:
    """Return *value* as one JSON text; raises InvalidRequest for what JSON does not give back as it was."""
    fields = _fields(value) if isinstance(value, MemoryItem) else value
    try:
        return json.dumps(plain(fields, "value"), ensure_ascii=not readable, sort_keys=True)
    except RuntimeError as error:  # another thread puts keys into it
        raise InvalidRequest(f"the value changed while it was read: {error}", hint="store a copy of it") from None


def _fields(item: MemoryItem) -> dict[str, Any]:
    """Return what `create_memory` gives as the mapping of its fields."""
    fields = {name: getattr(item, name) for name in item.__slots__}
    return {**fields, "timestamp": stamp(item.timestamp), "metadata": dict(item.metadata)}
