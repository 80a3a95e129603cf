"""What is known while one block is judged: the index's triples, plus what the block's own members add."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from jidomem import vocab
from jidomem.terms import Term, Triple

Probe = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
ITEM_MARK = vocab.jido("hasAssertionStatus")
_ASSERTED = vocab.jido("Asserted")
_ENDS = (vocab.jido("supersededBy"), vocab.jido("invalidatedBy"))


class View:
    """Rows for the judging stages; every look-up is by subject or by predicate and object, never a scan.

    What the index says of a subject is asked once: nothing changes it while the block is judged.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._said: dict[Term, dict[Term, list[Term]]] = {}
        self._by_object: dict[tuple[Term, Term], list[Term]] = defaultdict(list)
        self._pointed: set[Term] = set()

    def add(self, triples: Iterable[Triple]) -> None:
        """Let later members of the block see *triples*."""
        for subject, predicate, value in triples:
            said = self._said.get(subject) or self.said(subject)
            said.setdefault(predicate, []).append(value)
            self._by_object[predicate, value].append(subject)
            self._pointed.add(value)

    def said(self, subject: Term) -> dict[Term, list[Term]]:
        """Return the properties of *subject* with their values; not to be changed."""
        said = self._said.get(subject)
        if said is None:
            said = self._said[subject] = {}
            for _, predicate, value in self._probe(subject, None, None):
                said.setdefault(predicate, []).append(value)
        return said

    def about(self, subject: Term) -> list[Triple]:
        """Return every triple with this subject."""
        return [(subject, predicate, value) for predicate, values in self.said(subject).items() for value in values]

    def objects(self, subject: Term, predicate: Term) -> list[Term]:
        """Return the values of one property."""
        return [*self.said(subject).get(predicate, ())]

    def subjects(self, predicate: Term, value: Term) -> list[Term]:
        """Return what has *value* as this property, in a stable order."""
        found = {triple[0] for triple in self._probe(None, predicate, value)}
        return sorted(found.union(self._by_object.get((predicate, value), ())))

    def first(self, subject: Term, predicate: Term) -> Term | None:
        """Return one value of a property, None when it has none."""
        return next(iter(self.said(subject).get(predicate, ())), None)

    def mentions(self, subject: Term) -> bool:
        """Return whether *subject* is described or pointed at."""
        return bool(
            self.said(subject) or subject in self._pointed or next(iter(self._probe(None, None, subject)), None)
        )

    def types(self, subject: Term) -> frozenset[Term]:
        """Return the classes *subject* is typed with."""
        return frozenset((self._said.get(subject) or self.said(subject)).get(vocab.TYPE, ()))

    def is_item(self, subject: Term) -> bool:
        """Return whether *subject* is a memory of this project."""
        return ITEM_MARK in self.said(subject)

    def in_force(self, item: Term) -> bool:
        """Return whether *item* is asserted, and neither superseded nor invalidated."""
        said = self.said(item)
        return _ASSERTED in said.get(ITEM_MARK, ()) and not any(end in said for end in _ENDS)
