"""What is known while one block is judged: the index's triples, plus what the block's own members add."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from jidomem import vocab
from jidomem.terms import Term, Triple

Probe = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
ITEM_MARK = vocab.jido("hasAssertionStatus")


class View:
    """Rows for the judging stages; every look-up is by subject or by predicate and object, never a scan."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._by_subject: dict[Term, list[Triple]] = defaultdict(list)
        self._by_object: dict[tuple[Term, Term], list[Term]] = defaultdict(list)
        self._pointed: set[Term] = set()

    def add(self, triples: Iterable[Triple]) -> None:
        """Let later members of the block see *triples*."""
        for subject, predicate, value in triples:
            self._by_subject[subject].append((subject, predicate, value))
            self._by_object[predicate, value].append(subject)
            self._pointed.add(value)

    def about(self, subject: Term) -> list[Triple]:
        """Return every triple with this subject."""
        return [*self._probe(subject, None, None), *self._by_subject.get(subject, ())]

    def objects(self, subject: Term, predicate: Term) -> list[Term]:
        """Return the values of one property."""
        pending = [triple[2] for triple in self._by_subject.get(subject, ()) if triple[1] == predicate]
        return [*(triple[2] for triple in self._probe(subject, predicate, None)), *pending]

    def subjects(self, predicate: Term, value: Term) -> list[Term]:
        """Return what has *value* as this property, in a stable order."""
        found = {triple[0] for triple in self._probe(None, predicate, value)}
        return sorted(found.union(self._by_object.get((predicate, value), ())))

    def first(self, subject: Term, predicate: Term) -> Term | None:
        """Return one value of a property, None when it has none."""
        return next(iter(self.objects(subject, predicate)), None)

    def mentions(self, subject: Term) -> bool:
        """Return whether *subject* is described or pointed at."""
        return bool(
            self.about(subject) or next(iter(self._probe(None, None, subject)), None) or subject in self._pointed
        )

    def pending(self, subject: Term) -> bool:
        """Return whether *subject* was added by this block and is not durable yet."""
        return subject in self._by_subject and not next(iter(self._probe(subject, None, None)), None)

    def types(self, subject: Term) -> frozenset[Term]:
        """Return the classes *subject* is typed with."""
        return frozenset(self.objects(subject, vocab.TYPE))

    def is_item(self, subject: Term) -> bool:
        """Return whether *subject* is a memory of this project."""
        return bool(self.objects(subject, ITEM_MARK))

    def in_force(self, item: Term) -> bool:
        """Return whether *item* is asserted, and neither superseded nor invalidated."""
        return (
            vocab.jido("Asserted") in self.objects(item, ITEM_MARK)
            and not self.objects(item, vocab.jido("supersededBy"))
            and not self.objects(item, vocab.jido("invalidatedBy"))
        )
