"""References: the memories that an intent names by short ids or other names, written out as IRIs.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jidomem import vocab
from jidomem.errors import IntentRefused, InvalidRequest, NotFound, Violation
from jidomem.intent import MemoryUpdateIntent
from jidomem.terms import iri
from jidomem.write.names import is_absolute, is_reference, is_short_id
from jidomem.write.normalize import ITEM_LISTS
from jidomem.write.view import View

#: Fields that name memories beside texts and files: only a short id that a memory has is one.
_MIXED = ("evidence", "about")
Find = Callable[[str], str]


def _find_none(name: str) -> str:
    raise NotFound(f"{name!r} is not the IRI of a memory", hint="give its IRI")


@dataclass(frozen=True, slots=True)
class KnownMemories:
    """The memories of a project that an intent may name.

    `listed` returns the IRIs of all, to word a refusal. `find` returns the IRI of the memory that a short id or another
    name stands for; it raises NotFound, with the candidates, where that is none or several. The default knows none.
    """

    listed: Callable[[], list[str]] = list
    find: Find = _find_none


def resolve(intent: MemoryUpdateIntent, view: View, find: Find) -> MemoryUpdateIntent:
    """Return the normal *intent* with each memory named by its IRI.

    Raises IntentRefused for each name, in a field of memories, that stands for none or for several.
    """
    if not _has_names(intent):
        return intent
    violations: list[Violation] = []

    def whole(field: str, name: str) -> str:
        if is_reference(name):
            return name
        by_id = f"{vocab.BASE}memory/{name}"
        if is_absolute(by_id) and view.is_item(iri(by_id)):  # perhaps one of this commit, which is not indexed yet
            return by_id
        try:
            return find(name)
        except (NotFound, InvalidRequest) as error:
            violations.append(_unknown(field, name, error))
            return name

    changed: dict[str, Any] = {
        field: [*dict.fromkeys(whole(field, name) for name in getattr(intent, field))] for field in ITEM_LISTS
    }
    for field in _MIXED:
        changed[field] = [*dict.fromkeys(_by_short_id(name, find) for name in getattr(intent, field))]
    changed["extra_triples"] = [
        [subject, predicate, {"@id": whole("extra_triples", value["@id"])} if _is_name(value) else value]
        for subject, predicate, value in intent.extra_triples
    ]
    if violations:
        raise IntentRefused(violations)
    return replace(intent, **changed)


def without_names(intent: MemoryUpdateIntent) -> MemoryUpdateIntent:
    """Return the normal *intent* without the references that are no IRIs."""
    changed: dict[str, Any] = {field: [*filter(is_reference, getattr(intent, field))] for field in ITEM_LISTS}
    changed["extra_triples"] = [triple for triple in intent.extra_triples if not _is_name(triple[2])]
    return replace(intent, **changed)


def _has_names(intent: MemoryUpdateIntent) -> bool:
    return (
        any(not is_reference(name) for field in ITEM_LISTS for name in getattr(intent, field))
        or any(is_short_id(name) for field in _MIXED for name in getattr(intent, field))
        or any(_is_name(value) for _, _, value in intent.extra_triples)
    )


def _is_name(value: dict[str, str]) -> bool:
    return is_short_id(value.get("@id", ""))


def _by_short_id(name: str, find: Find) -> str:
    """Return the memory whose short id *name* is, else *name* itself: evidence may be the hash of a commit."""
    if not is_short_id(name):
        return name
    try:
        found = find(name)
    except NotFound:
        return name
    return found if found.endswith(name) else name


def _unknown(field: str, name: str, error: NotFound | InvalidRequest) -> Violation:
    """Return the violation for *name*, which stands for no memory or for several: those are its allowed values."""
    near = error.candidates if isinstance(error, NotFound) else ()
    return Violation(
        "unknown_reference",
        error.detail,
        field=field,
        value=name,
        allowed=near,
        nearest=near[0] if len(near) == 1 else None,
        hint=error.hint,
    )
