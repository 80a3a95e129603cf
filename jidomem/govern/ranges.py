"""Which findings a range of git brought: what its own statements say, and what was right before it.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from jidomem.govern.report import GATE, Found
from jidomem.govern.sources import Source
from jidomem.terms import Term, Triple
from jidomem.vocab import TYPE


def brought(
    found: Sequence[Found], source: Source, judge: Callable[[Source], Iterable[Found]] | None = None
) -> list[Found]:
    """Return those of *found* that the range which is asked about brought; all of them where none is.

    Where a finding is about something old that the range said more of, or less, *judge* tells what was found before.
    """
    older = source.older
    if older is None:
        return list(found)
    own = _Own(source, older)
    kept = [own.says(each) or own.may_have_brought(each) for each in found]
    touched = [judge is not None and not said and own.touches(each) for each, said in zip(found, kept, strict=True)]
    if judge is not None and any(touched):
        before = {_named(each) for each in judge(older)}
        kept = [
            said or (near and _named(each) not in before) for each, said, near in zip(found, kept, touched, strict=True)
        ]
    return [each for each, said in zip(found, kept, strict=True) if said]


class _Own:
    """What a range added, and which nodes it said more of, or less."""

    def __init__(self, source: Source, older: Source) -> None:
        now, before = {*source.triples}, {*older.triples}
        self._types = source.types
        self._known = {subject for subject, _, _ in now}
        self._added: dict[Term, list[Triple]] = {}
        for triple in now - before:
            self._added.setdefault(triple[0], []).append(triple)
        self._changed = {node for subject, _, value in now ^ before for node in (subject, value)}

    def says(self, found: Found) -> bool:
        """Return whether the range itself says what is wrong, or brought the node that it is wrong with."""
        return any(self._says(node, found) for node in (found.item, *found.beside))

    def touches(self, found: Found) -> bool:
        """Return whether the range changed what is said of a node that a finding is about."""
        return not self._changed.isdisjoint((found.item, found.value, *found.beside))

    def may_have_brought(self, found: Found) -> bool:
        """Return whether it cannot be told who brought the row of a gate: it names no property that is to blame.

        So it counts where the range says anything of its item, or where that is in another graph than the range.
        """
        if not found.rule.startswith(GATE) or found.property is not None:
            return False
        return self.touches(found) or found.item not in self._known

    def _says(self, node: Term, found: Found) -> bool:
        rows = self._added.get(node, ())
        if node not in self._types:
            return bool(rows)
        return any(
            predicate == TYPE or (predicate == found.property and found.value in (None, value, node))
            for _, predicate, value in rows
        )


def _named(found: Found) -> Found:
    """Return a finding as it can be told again: nodes without names have others in another file."""
    item, value = ("_:" if term and term.startswith("_:") else term for term in (found.item, found.value))
    return replace(found, item=item or "", value=value)
