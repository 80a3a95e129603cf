"""The memories that rest on others, as their evidence, and the withdrawals of those. Pure over rows."""

from __future__ import annotations

from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import MemoryUpdateIntent
from jidomem.write.snapshot import WriteSnapshot

_DERIVED = jido("derivedFrom")
#: The most memories that a warning names.
_MOST_NAMED = 3


def resting_on_withdrawn(intent: MemoryUpdateIntent, view: WriteSnapshot) -> list[str]:
    """Return a warning with the active memories that rest on what *intent* withdraws, if there are any."""
    named = {iri(each) for field in ("supersedes", "invalidates") for each in getattr(intent, field)}
    bases = [base for old in intent.invalidates for base in _versions_before(iri(old), view)]
    found = {item for base in bases for item in view.subjects(_DERIVED, base) if view.is_active(item)} - named
    if not found:
        return []
    shown = "; ".join(f"{plain_value(item)} {_summary(item, view)}" for item in sorted(found)[:_MOST_NAMED])
    number = "an active memory rests" if len(found) == 1 else f"{len(found)} active memories rest"
    return [f"{number} on what is withdrawn: {shown}; look at each: jidomem review"]


def _versions_before(item: Term, view: WriteSnapshot) -> set[Term]:
    """Return *item* and the memories that it replaced or revives, directly or not."""
    found, pending = {item}, [item]
    while pending:
        node = pending.pop()
        earlier = {*view.subjects(jido("supersededBy"), node), *view.objects(node, jido("revives"))} - found
        found |= earlier
        pending += earlier
    return found


def withdrawals_below(item: Term, view: WriteSnapshot) -> set[Term]:
    """Return what withdrew a memory that *item* is derived from, and that is not active again."""
    found, pending = set[Term](), {*view.objects(item, _DERIVED)}
    seen = set[Term]()
    while pending:
        seen |= pending
        again = {node: [*view.subjects(jido("revives"), node)] for node in pending}
        for node in pending:
            if not any(_is_asserted(new, view) for new in again[node]):
                found |= {*view.objects(node, jido("invalidatedBy"))}
        later = {new for node in pending for new in (*view.objects(node, jido("supersededBy")), *again[node])}
        pending = later - seen
    return found


def _is_asserted(item: Term, view: WriteSnapshot) -> bool:
    return view.is_item(item) and not view.is_proposed(item)


def _summary(item: Term, view: WriteSnapshot) -> str:
    term = view.first(item, jido("summary"))
    return plain_value(term) if term else ""
