"""Supersession chains with a cycle, or with two active ends: successors, or a successor and a withdrawal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product

from jidomem.check.report import CIRCLE, SUCCESSORS, UnplacedFinding
from jidomem.check.sources import TripleSource
from jidomem.rdf.terms import Term, plain_value
from jidomem.rdf.vocab import jido

_BY, _OF, _ENDED = jido("supersededBy"), jido("supersedes"), jido("invalidatedBy")
_REVIVES, _STATUS, _PROPOSED = jido("revives"), jido("hasAssertionStatus"), jido("Proposed")
_INVALIDATES = jido("invalidates")


def chains(source: TripleSource) -> list[UnplacedFinding]:
    """Return the cycles of supersession, and the items with two ends of which both are active.

    An end is the last memory of a chain of supersessions, or a memory that invalidated the item. Identical ends, as two
    branches leave them that changed an item alike, are a warning.
    """
    after, withdrawn, revived, proposed = _links(source)
    rounds = list(_circles(after))
    findings = []
    for circle in rounds:
        others = [(item, by) for item, by in revived if item in circle and by not in circle and by not in proposed]
        if not any(_later(source, by, circle) for _, by in others):
            findings.append(_circle(sorted(circle), after))
    inactive = withdrawn.keys() | proposed
    for item in {**after, **withdrawn}:
        replacing, invalidating = after.get(item, set()), withdrawn.get(item, set())
        if len(replacing | invalidating) < 2:
            continue
        ends = {end for successor in replacing | invalidating for end in _ends(successor, after)} - inactive
        withdrawals = ends & (invalidating - replacing)
        ends -= withdrawals
        if len(ends) > 1:
            some = sorted(map(plain_value, ends))
            names, both = " and ".join(some), " --against ".join(some[:2])
            if source.are_identical(ends):
                settle = f'jidomem review accept {both} --reason "it says the same"'
                text = f"superseded twice by the same, in {names}: one is enough: {settle}"
                findings.append(UnplacedFinding(item, SUCCESSORS, "warning", text, _BY, None, tuple(ends)))
            else:
                text = f"superseded by more than one memory, and {names} are active: jidomem review supersede {both}"
                findings.append(UnplacedFinding(item, SUCCESSORS, "violation", text, _BY, None, tuple(ends)))
        for pair in product(sorted(ends), sorted(withdrawals)):
            end, withdrawal = map(plain_value, pair)
            text = (
                f"superseded by {end} and withdrawn by {withdrawal}, and both are active: jidomem review accept"
                f" {end} --against {withdrawal}, or jidomem review accept {withdrawal} --against {end}"
            )
            findings.append(UnplacedFinding(item, SUCCESSORS, "violation", text, _BY, None, pair))
    return findings


def _links(
    source: TripleSource,
) -> tuple[dict[Term, set[Term]], dict[Term, set[Term]], list[tuple[Term, Term]], set[Term]]:
    """Return the successors of each item, what invalidated it, pairs of revived and reviving item, and proposals."""
    proposed = {subject for subject, _, value in source.of(_STATUS) if value == _PROPOSED}
    after, withdrawn = (
        _by_item(pairs, proposed)
        for pairs in (
            [(old, new) for old, _, new in source.of(_BY)] + [(old, new) for new, _, old in source.of(_OF)],
            [(old, new) for old, _, new in source.of(_ENDED)] + [(old, new) for new, _, old in source.of(_INVALIDATES)],
        )
    )
    revived = [(value, subject) for subject, _, value in source.of(_REVIVES)]
    return after, withdrawn, revived, proposed


def _by_item(pairs: Iterable[tuple[Term, Term]], proposed: Collection[Term]) -> dict[Term, set[Term]]:
    """Return what ended each item, proposals left out, by *pairs* of an item and its end."""
    ends: dict[Term, set[Term]] = {}
    for old, new in pairs:
        if new not in proposed:
            ends.setdefault(old, set()).add(new)
    return ends


def _ends(item: Term, after: Mapping[Term, set[Term]]) -> set[Term]:
    """Return the last items of all supersession chains from *item*."""
    seen = further = {item}
    while further:
        further = {each for node in further for each in after.get(node, ())} - seen
        seen = seen | further
    return {node for node in seen if node not in after}


def _circle(circle: list[Term], after: Mapping[Term, set[Term]]) -> UnplacedFinding:
    first = circle[0]
    following = min(after[first] & {*circle})
    members = ", ".join(map(plain_value, circle))
    text = f"supersession runs in a circle through {members}: record anew what holds, reviving one"
    return UnplacedFinding(first, CIRCLE, "violation", text, _BY, following, tuple(circle[1:]))


def _circles(after: Mapping[Term, set[Term]]) -> Iterator[set[Term]]:
    """Yield the strongly connected sets of more than one item, and the items that supersede themselves."""
    order: dict[Term, int] = {}
    low: dict[Term, int] = {}
    open_: dict[Term, None] = {}
    for start in sorted(after):
        if start in order:
            continue
        walk = [(start, iter(sorted(after[start])))]
        order[start] = low[start] = len(order)
        open_[start] = None
        while walk:
            node, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[node])
                if low[node] == order[node]:
                    yield from _closed(node, open_, after)
            elif following not in order:
                order[following] = low[following] = len(order)
                open_[following] = None
                walk.append((following, iter(sorted(after.get(following, ())))))
            elif following in open_:
                low[node] = min(low[node], order[following])


def _closed(node: Term, open_: dict[Term, None], after: Mapping[Term, set[Term]]) -> Iterator[set[Term]]:
    """Remove the set that *node* completes from *open_*, and yield it if it is a cycle."""
    members: set[Term] = set()
    while node not in members:
        members.add(open_.popitem()[0])
    if len(members) > 1 or node in after.get(node, ()):
        yield members


def _later(source: TripleSource, item: Term, circle: set[Term]) -> bool:
    """Return whether *item* was recorded after all of *circle*, or the times are unknown."""
    own = source.recorded_at(item)
    moments = [moment for moment in map(source.recorded_at, circle) if moment is not None]
    return own is None or not moments or own > max(moments)
