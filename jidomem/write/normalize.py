"""Stage 1: bring an intent into its one written form.  Pure: the clock, the ids and the ontology are arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jidomem import vocab
from jidomem.errors import IntentRefused
from jidomem.intent import LIST_FIELDS, MemoryUpdateIntent
from jidomem.policy import LITERAL_LIMIT
from jidomem.schema import Schema
from jidomem.write import extra, names
from jidomem.write.kinds import TYPE_SYNONYMS, choices_of, defaults_of
from jidomem.write.tidy import MOMENTS, Tidy, shortly

ITEM_LISTS = ("supersedes", "invalidates", "coexists_with", "revives")
_FOLDERS = {
    "applies_to_project": "projects",
    "asserted_by": "agents",
    "assigned_to": "agents",
    "asserted_in": "sessions",
}


@dataclass(frozen=True, slots=True)
class Normal:
    """An intent in its one written form, and what was filled in on the way (field -> value)."""

    intent: MemoryUpdateIntent
    filled: Mapping[str, Any]


def normalize(
    intent: MemoryUpdateIntent,
    *,
    now: datetime,
    new_id: Callable[[], str],
    schema: Schema,
    literal: int = LITERAL_LIMIT,
) -> Normal:
    """Return *intent* in its one written form: trimmed, references as IRIs, moments in UTC, defaults by type.

    Normalising a normal intent changes nothing. Raises IntentRefused listing every value that has no written form,
    and TooLarge for a text of more than *literal* bytes.
    """
    tidy = Tidy(schema, literal)
    values: dict[str, Any] = {
        name: None if value is None or value == [] else tidy.field(name, value) for name, value in intent.fields()
    }
    for name in LIST_FIELDS:
        values[name] = values[name] or []
    given = dict(values)
    values["type"] = _kind(tidy, values["type"])
    values["iri"] = tidy.iri("iri", values["iri"]) if values["iri"] else f"{vocab.BASE}memory/{new_id()}"
    values["extra_triples"] = extra.lift(extra.written(tidy, values["extra_triples"], values["iri"]), values)
    _timestamp(values, now)
    values["confidence"] = _confidence(tidy, values["confidence"])
    _choices(tidy, values)
    _references(tidy, values)
    _moments(tidy, values)
    extras = {predicate for subject, predicate, _ in values["extra_triples"] if subject == values["iri"]}
    for field, (prop, default) in defaults_of(values["type"], values).items():
        if values[field] is None and vocab.JIDO + prop not in extras:
            values[field] = default
    if tidy.violations:
        raise IntentRefused(tidy.violations)
    filled = {name: value for name, value in values.items() if given[name] is None and value is not None}
    return Normal(MemoryUpdateIntent(**values), filled)


def _kind(tidy: Tidy, given: str | None) -> str | None:
    """Return the type *given* names, None when it names none."""
    if given is None:
        return None
    if given in vocab.CLASS_OF_TYPE:
        return given
    key = names.type_key(given)
    key = vocab.TYPE_ALIASES.get(key, key)
    if key in vocab.CLASS_OF_TYPE:
        return key
    allowed = (*(name for name in vocab.CLASS_OF_TYPE if name != "deleted_marker"), *vocab.TYPE_ALIASES)
    near = TYPE_SYNONYMS.get(key) or names.nearest(key, allowed)
    message = f"{given!r} is not a type of memory" + (f"; did you mean {near!r}?" if near else "")
    repair = names.put("type", near) if near else None
    tidy.refuse("unknown_type", "type", given, message, allowed=allowed, nearest=near, repair=repair)
    return None


def _confidence(tidy: Tidy, given: Any) -> str | float | None:
    """Return a level, or the exact float from 0 to 1 that was given."""
    if given is None:
        return None
    if given in vocab.CONFIDENCE:
        return str(given)
    number = given
    if isinstance(given, str):
        level = names.squash(given)
        if level in vocab.CONFIDENCE:
            return level
        try:
            number = float(given)
        except ValueError:
            number = math.nan
    if not isinstance(number, bool) and 0 <= number <= 1:
        return float(number)
    allowed = tuple(vocab.CONFIDENCE)
    near = names.nearest(given, allowed) if isinstance(given, str) else None
    message = f"confidence is low, medium, high or a number from 0 to 1, not {shortly(given)}"
    repair = names.put("confidence", near) if near else None
    tidy.refuse("invalid_confidence", "confidence", given, message, allowed=allowed, nearest=near, repair=repair)
    return None


def _timestamp(values: dict[str, Any], now: datetime) -> None:
    """Give the memory the moment *now* where it has none, unless it says that nobody knows; a moment settles that."""
    undated = [triple for triple in values["extra_triples"] if triple[:2] == [values["iri"], vocab.UNDATED]]
    if values["timestamp"]:
        values["extra_triples"] = [triple for triple in values["extra_triples"] if triple not in undated]
    elif not undated:
        values["timestamp"] = now.isoformat()


def _choices(tidy: Tidy, values: dict[str, Any]) -> None:
    """Settle the fields that take one of a few names; `project` will do for ProjectScope, `user` for UserSource."""
    for field, allowed in choices_of(values["type"]).items():
        if values[field] is not None and values[field] not in allowed:
            short = {names.squash(re.sub("(Scope|Source)$", "", name)): name for name in allowed}
            values[field] = tidy.choice(field, values[field], allowed, short)


def _references(tidy: Tidy, values: dict[str, Any]) -> None:
    """Turn names into IRIs: the project, agents and sessions; evidence and about where they are one."""
    for field, folder in _FOLDERS.items():
        if values[field] is not None:
            values[field] = tidy.reference(field, values[field], folder)
    for field in filter(values.__getitem__, ITEM_LISTS):
        values[field] = names.unique(
            [tidy.iri(field, name) if names.is_reference(name) else name for name in values[field]]
        )
    for field, plain in (("evidence", str), ("about", names.plain_path)):
        values[field] = names.unique(
            [tidy.iri(field, one) if names.is_reference(one, prose=True) else plain(one) for one in values[field]]
        )
    if values["tracked_by"] is not None and not values["tracked_by"].startswith(("http://", "https://")):
        tidy.refuse("invalid_iri", "tracked_by", values["tracked_by"], "tracked_by is a URL: start it with https://")


def _moments(tidy: Tidy, values: dict[str, Any]) -> None:
    """Settle the moments in UTC."""
    for field in MOMENTS:
        given = values[field]
        if given is None:
            continue
        values[field] = names.moment(given)
        if values[field] is None:
            other = names.other_date(given)
            message = f"{field} is an ISO 8601 date or moment such as 2026-11-21T08:00:00Z, not {given!r}"
            repair = names.put(field, other) if other else None
            tidy.refuse("shape_violation", field, given, message, nearest=other, repair=repair)
