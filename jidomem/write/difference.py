"""What is to be withdrawn and what to be said again, so that what was in force at a moment is so once more.  Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jidomem.moments import parse_moment
from jidomem.terms import XSD, Term, bare, iri, literal
from jidomem.values import to_value
from jidomem.vocab import jido
from jidomem.write.tidy import MOMENTS
from jidomem.write.view import View

#: What an intent says that is not what the memory holds: who said it, where, when, why, and in whose place.
_NOT_HELD = frozenset(
    ("iri", "timestamp", "supersedes", "invalidates", "revives", "coexists_with", "reason", "asserted_by")
) | {"asserted_in"}

Restated = Callable[[Term], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Memories to be withdrawn, and memories that ended and are to be said again; `lost` are those that cannot be."""

    withdrawn: tuple[Term, ...] = ()
    again: tuple[Term, ...] = ()
    lost: tuple[Term, ...] = ()


def difference(came: Iterable[Term], gone: Iterable[Term], view: View, restated: Restated) -> Difference:
    """Return what takes a memory back, where *came* is in force and was not then, and *gone* was and is not.

    What came and holds the same as what is gone stands for it, so that nothing is corrected twice. An alternative goes
    and comes with its decision. *restated* gives the intent that would say a memory again; one whose summary was
    redacted has nothing left to say.
    """
    came, gone = list(came), list(gone)
    ended, missing = set(gone), defaultdict[str, list[Term]](list)
    for old in gone:
        if _decision_of(old, view) not in ended:
            missing[_held(restated(old))].append(old)
    stands: set[Term] = set()
    for new in came:
        if _decision_of(new, view) is None and (same := missing[_held(restated(new))]):
            same.pop(0)
            stands.add(new)
    withdrawn = [new for new in came if not {new, _decision_of(new, view)} & stands]
    left = {old for same in missing.values() for old in same}
    again = [old for old in gone if old in left]
    lost = [old for old in again if not view.objects(old, jido("summary"))]
    return Difference(tuple(withdrawn), tuple(old for old in again if old not in lost), tuple(lost))


def _held(intent: Mapping[str, Any]) -> str:
    """Return what a memory holds, as a text that is equal for two that hold the same.

    An index may write a moment or a number in another way than it was given.
    """
    held = {name: value for name, value in intent.items() if name not in _NOT_HELD}
    held |= {name: str(parse_moment(held[name]) or held[name]) for name in MOMENTS if name in held}
    if "extra_triples" in held:
        held["extra_triples"] = sorted(map(_comparable, held["extra_triples"]), key=repr)
    return json.dumps(held, sort_keys=True)


def _comparable(extra: Sequence[Any]) -> list[Any]:
    """Return an extra triple with its literal as the value it stands for."""
    *said, value = extra
    if not isinstance(value, Mapping) or "@value" not in value or "@language" in value:
        return [*extra]
    datatype = value.get("@type", XSD + "string")
    return [*said, datatype, str(to_value(literal(value["@value"], datatype)))]


def _decision_of(item: Term, view: View) -> Term | None:
    """Return the decision that brought an alternative along; None for any other memory."""
    decision, mark, _ = bare(item).rpartition("/alternatives/")
    found = iri(decision) if mark else None
    return found if found is not None and item in view.objects(found, jido("hasAlternative")) else None
