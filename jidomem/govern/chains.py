"""What replaced what: circles of supersession that nobody settled, and chains with two ends in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jidomem.govern.report import CIRCLE, SUCCESSORS, Found
from jidomem.govern.sources import Source
from jidomem.reach import reached
from jidomem.terms import Term, bare
from jidomem.vocab import jido

_BY, _OF, _ENDED = jido("supersededBy"), jido("supersedes"), jido("invalidatedBy")
_REVIVES, _STATUS, _PROPOSED = jido("revives"), jido("hasAssertionStatus"), jido("Proposed")
_INVALIDATES = jido("invalidates")


def chains(source: Source) -> list[Found]:
    """Return the circles of supersession, and the items with two successors that are both, in the end, in force."""
    after, ended, revived, proposed = _links(source)
    rounds = list(_circles(after))
    found = []
    for circle in rounds:
        others = [(item, by) for item, by in revived if item in circle and by not in circle and by not in proposed]
        if not any(_later(source, by, circle) for _, by in others):
            found.append(_circle(sorted(circle), after))
    for item, successors in after.items():
        ends = _ends(item, after) - ended - proposed if len(successors) > 1 else set()
        if len(ends) > 1:
            some = sorted(map(bare, ends))
            names, both = " and ".join(some), " --against ".join(some[:2])
            text = f"superseded by more than one memory, and {names} are in force: jidomem review supersede {both}"
            found.append(Found(item, SUCCESSORS, "violation", text, _BY, None, tuple(ends)))
    return found


def _links(
    source: Source,
) -> tuple[dict[Term, set[Term]], set[Term], list[tuple[Term, Term]], set[Term]]:
    """Return what superseded each item, what was invalidated, what was revived by what, and what is only proposed."""
    proposed = {subject for subject, _, value in source.of(_STATUS) if value == _PROPOSED}
    pairs = [(old, new) for old, _, new in source.of(_BY)] + [(old, new) for new, _, old in source.of(_OF)]
    after: dict[Term, set[Term]] = {}
    for old, new in pairs:
        if new not in proposed:
            after.setdefault(old, set()).add(new)
    ends = [(old, new) for old, _, new in source.of(_ENDED)] + [(old, new) for new, _, old in source.of(_INVALIDATES)]
    ended = {old for old, new in ends if new not in proposed}
    revived = [(value, subject) for subject, _, value in source.of(_REVIVES)]
    return after, ended, revived, proposed


def _ends(item: Term, after: Mapping[Term, set[Term]]) -> set[Term]:
    """Return the items at which what came after *item* ends."""
    seen = reached([item], lambda nodes: {node: after.get(node, ()) for node in nodes})
    return {node for node in seen if node not in after}


def _circle(circle: list[Term], after: Mapping[Term, set[Term]]) -> Found:
    first = circle[0]
    following = min(after[first] & {*circle})
    text = f"supersession runs in a circle through {', '.join(map(bare, circle))}: record anew what holds, reviving one"
    return Found(first, CIRCLE, "violation", text, _BY, following, tuple(circle[1:]))


def _circles(after: Mapping[Term, set[Term]]) -> Iterator[set[Term]]:
    """Yield the strongly connected sets of more than one item, and the items that come after themselves."""
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
    """Yield the set that *node* closes, taken out of what is open, where it is a circle."""
    members: set[Term] = set()
    while node not in members:
        members.add(open_.popitem()[0])
    if len(members) > 1 or node in after.get(node, ()):
        yield members


def _later(source: Source, item: Term, circle: set[Term]) -> bool:
    """Return whether *item* was recorded after all of *circle*, as far as that is known."""
    own = source.recorded_at(item)
    moments = [moment for moment in map(source.recorded_at, circle) if moment is not None]
    return own is None or not moments or own > max(moments)
