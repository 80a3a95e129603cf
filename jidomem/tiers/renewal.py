"""What is to change in a memory that is known already, so that it says what was promoted.  Pure over intents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jidomem.tiers.value import CATEGORY, KEY, VALUE, VERIFIED, pair

#: What a memory has one of, so that the new one takes the place of the old one.
_SINGLE = (CATEGORY, VERIFIED)


def keys_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the keys that the memory these *fields* say was promoted under."""
    return [each[1]["@value"] for each in fields.get("extra_triples", ()) if each[0] == KEY]


def changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to set in *old*, a memory of the same content, so that it says what *new* does, and still
    what that does not speak of; none where it says all of it.
    """
    said = {name: value for name, value in new.items() if name not in ("extra_triples", "timestamp")}
    if "evidence" in said:
        said["evidence"] = [*dict.fromkeys([*old.get("evidence", ()), *said["evidence"]])]
    found = {name: value for name, value in said.items() if value != old.get(name)}
    mine, theirs = new["extra_triples"], old.get("extra_triples", [])
    merged = [*mine, *(each for each in theirs if each not in mine and not _is_replaced(each, mine))]
    return found if _sorted(merged) == _sorted(theirs) else {**found, "extra_triples": merged}


def without(key: str, old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to set in *old* so that it is no longer known by *key*, but by the others it has."""
    return {"extra_triples": [each for each in old["extra_triples"] if _key_in(each) != key]}


def _is_replaced(theirs: Sequence[Any], mine: Sequence[Sequence[Any]]) -> bool:
    if theirs[0] in _SINGLE:
        return any(each[0] == theirs[0] for each in mine)
    return theirs[0] == VALUE and _key_in(theirs) in [_key_in(each) for each in mine]


def _key_in(triple: Sequence[Any]) -> str | None:
    """Return the key that an extra triple names or gives the value of."""
    text = triple[1].get("@value", "")
    if triple[0] == KEY:
        return str(text)
    found = pair(text) if triple[0] == VALUE else None
    return found[0] if found else None


def _sorted(triples: Sequence[Any]) -> list[str]:
    return sorted(map(str, triples))
