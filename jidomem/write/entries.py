"""An agent's entry as triples: kept word for word, never judged for what it says.  Pure over rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jidomem import vocab
from jidomem.entry import Entry
from jidomem.errors import InvalidRequest, TooLarge
from jidomem.moments import parse_moment, stamp
from jidomem.policy import LITERAL_LIMIT
from jidomem.terms import Term, Triple, date_time, iri, literal
from jidomem.vocab import TYPE, conv, jido
from jidomem.write.names import slug
from jidomem.write.view import View

ENTRY, ID, TEXT, AGENT = jido("Entry"), jido("entryId"), jido("entryText"), jido("agentId")
SESSION, METADATA, REPLACES = jido("sessionId"), jido("entryMetadata"), jido("replaces")


def described(node: Term, entry: Entry, project: Term) -> list[Triple]:
    """Return what *entry* says, under the name *node*.

    Raises InvalidRequest for metadata that JSON does not hold, TooLarge for a text over the limit of a literal.
    """
    rows = [
        (node, TYPE, ENTRY),
        (node, jido("partOfProject"), project),
        (node, ID, _text("id", entry.id)),
        (node, AGENT, _text("agent_id", entry.agent_id)),
        (node, TEXT, _text("content", entry.content)),
    ]
    if entry.session_id is not None:
        rows.append((node, SESSION, _text("session_id", entry.session_id)))
    if (agent := agent_of(entry)) is not None:
        rows.append((node, jido("entryOf"), agent))
    return [*rows, *_besides(node, entry)]


def agent_of(entry: Entry) -> Term | None:
    """Return the agent whose memory *entry* is in, None where its name has no letter and no digit."""
    name = slug(entry.agent_id)
    return iri(f"{vocab.BASE}agents/{name}") if name else None


def held(view: View, key: str) -> list[Term]:
    """Return what is kept under *key* and nothing has replaced: more than one only where two branches were merged."""
    return [node for node in view.subjects(ID, literal(key)) if not view.subjects(REPLACES, node)]


def as_json(value: Any, name: str) -> str:
    """Return *value* as JSON that reads back as the same; raises InvalidRequest, naming what JSON does not hold."""
    try:
        for fault in _faults(value, name):
            raise InvalidRequest(fault, hint="give texts, numbers, truths, None, and lists and mappings of those")
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise InvalidRequest(f"{name} is nested too deep", hint="keep the parts in entries of their own") from None


def _besides(node: Term, entry: Entry) -> Iterator[Triple]:
    """Yield what the metadata say, whole, and the well-known of them by properties of their own."""
    if not entry.metadata:
        return
    yield node, METADATA, _text("metadata", as_json(dict(entry.metadata), "metadata"))
    speaker, said_at = entry.metadata.get("speaker"), entry.metadata.get("timestamp")
    if isinstance(speaker, str) and speaker:
        yield node, jido("speaker"), literal(speaker)
    if isinstance(said_at, str) and (moment := parse_moment(said_at)) is not None:
        yield node, conv("timestamp"), date_time(stamp(moment))


def _faults(value: Any, path: str) -> Iterator[str]:
    """Yield what in *value* would not come back from JSON as it is, and where it is."""
    if isinstance(value, dict):
        for key, part in value.items():
            if type(key) is str:
                yield from _faults(key, f"the key {key!a} of {path}")
                yield from _faults(part, f"{path}[{key!r}]")
            else:
                yield f"{path} has a key that is a {type(key).__name__}, and JSON has none"
    elif type(value) is list:
        for number, part in enumerate(value):
            yield from _faults(part, f"{path}[{number}]")
    elif type(value) is float and (value != value or abs(value) == float("inf")):
        yield f"{path} is {value}, which is no number in JSON"
    elif type(value) is str and any("\ud800" <= sign <= "\udfff" for sign in value):
        yield f"{path} holds half of a surrogate pair, which is no sign"
    elif value is not None and type(value) not in (str, int, float, bool):
        yield f"{path} is a {type(value).__name__}, which JSON does not hold"


def _text(name: str, value: str) -> Term:
    """Return the literal of a text; raises TooLarge over the limit of one."""
    if len(value) * 4 > LITERAL_LIMIT and (size := len(value.encode("utf-8", "replace"))) > LITERAL_LIMIT:
        hint = "keep it in parts, or keep a summary and where the whole is"
        raise TooLarge(f"{name} has {size} bytes; a text holds at most {LITERAL_LIMIT}", hint=hint)
    return literal(value)
