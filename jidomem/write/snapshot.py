"""The write snapshot is the rows for judging intents: those of the index, and those accepted since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, plain_value
from jidomem.records.active import is_accepted

Probe = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
ITEM_MARK = vocab.jido("hasAssertionStatus")
_ASSERTED = vocab.jido("Asserted")
_DECIDED = vocab.jido("decisionStatus")
_ENDS = (vocab.jido("supersededBy"), vocab.jido("invalidatedBy"))


class WriteSnapshot:
    """Rows for the judging stages; every look-up is by subject or by predicate and object, never a scan.

    The index is queried once for each subject or property, and accepted triples are added here; the index may apply
    them while the snapshot is in use. `size` is about the number of cached triples; `derived` caches values that the
    stages compute from the rows.
    """

    def __init__(self, probe: Probe) -> None:
        self.size = 0
        self._probe = probe
        self._whole: dict[Term, dict[Term, list[Term]]] = {}  # all properties of these subjects
        self._partly: dict[Term, dict[Term, list[Term]]] = {}  # some properties of other subjects
        self._added: list[Triple] = []
        self._by_object: dict[Term, dict[Term, list[Term]]] = {}  # the added triples of properties looked up by object
        self._pointed: set[Term] = set()  # the objects of the first _pointed_by added triples
        self._pointed_by = 0
        self._types: dict[Term, frozenset[Term]] = {}
        self._new: set[Term] = set()
        self._found: dict[tuple[Term, Term], frozenset[Term]] = {}
        self.derived: dict[str, Any] = {}

    def add(self, triples: Iterable[Triple]) -> None:
        """Add *triples*, for the submissions judged later."""
        whole, by_object, types, before = self._whole, self._by_object, self._types, len(self._added)
        self._added += triples
        for subject, predicate, value in self._added[before:] if before else self._added:
            known = whole.get(subject)
            if known is None:
                self._of(subject, predicate).append(value)
            elif predicate in known:
                known[predicate].append(value)
            else:
                known[predicate] = [value]
            if predicate in by_object:
                by_object[predicate].setdefault(value, []).append(subject)
            if predicate == vocab.TYPE:
                types.pop(subject, None)
        self.size += len(self._added) - before

    def add_new(self, subject: Term, triples: Iterable[Triple]) -> None:
        """Add *triples* of a *subject* that no triple names yet."""
        self._whole[subject] = {}
        self._new.add(subject)
        self.add(triples)

    def properties(self, subject: Term) -> dict[Term, list[Term]]:
        """Return the properties of *subject* with their values; callers must not change the mapping."""
        properties = self._whole.get(subject)
        if properties is None:
            properties = {}
            for _, predicate, value in self._probe(subject, None, None):
                properties.setdefault(predicate, []).append(value)
                self.size += 1
            # replaces the values of the index, which may have applied the added ones
            properties |= {known: values for known, values in self._partly.pop(subject, {}).items() if values}
            self._whole[subject] = properties
        return properties

    def about(self, subject: Term) -> list[Triple]:
        """Return every triple with this subject."""
        return [
            (subject, predicate, value) for predicate, values in self.properties(subject).items() for value in values
        ]

    def objects(self, subject: Term, predicate: Term) -> list[Term]:
        """Return the values of one property."""
        return [*self._of(subject, predicate)]

    def subjects(self, predicate: Term, value: Term) -> list[Term]:
        """Return the subjects that have *value* as this property, in a stable order."""
        found = self._found.get((predicate, value))
        if found is None:
            found = frozenset([triple[0] for triple in self._probe(None, predicate, value)])
            self._found[predicate, value] = found
            self.size += 1
        added = self._added_to(predicate).get(value)
        return sorted(found.union(added) if added else found)

    def _added_to(self, predicate: Term) -> dict[Term, list[Term]]:
        """Return the added triples of one property as value -> subjects."""
        added = self._by_object.get(predicate)
        if added is None:
            added = self._by_object[predicate] = {}
            for subject, verb, value in self._added:
                if verb == predicate:
                    added.setdefault(value, []).append(subject)
        return added

    def first(self, subject: Term, predicate: Term) -> Term | None:
        """Return one value of a property, None when it has none."""
        return next(iter(self._of(subject, predicate)), None)

    def mentions(self, subject: Term) -> bool:
        """Return whether *subject* has a property or is the value of one."""
        for _, _, value in self._added[self._pointed_by :]:
            self._pointed.add(value)
        self._pointed_by = len(self._added)
        if self.properties(subject) or subject in self._pointed:
            return True
        return subject not in self._new and next(iter(self._probe(None, None, subject)), None) is not None

    def describes(self, subject: Term) -> bool:
        """Return whether *subject* has a property; the class is looked up first, as it is cheap."""
        return bool(self._of(subject, vocab.TYPE) or self.properties(subject))

    def types(self, subject: Term) -> frozenset[Term]:
        """Return the classes of *subject*."""
        types = self._types.get(subject)
        if types is None:
            types = self._types[subject] = frozenset(self._of(subject, vocab.TYPE))
        return types

    def about_all(self, subjects: Collection[Term], pointed: Iterable[Term]) -> list[Triple]:
        """Return all triples of *subjects*, and the types of the other nodes *pointed* at."""
        triples = list[Triple]()
        for subject in subjects:
            for predicate, values in self.properties(subject).items():
                for value in values:
                    triples.append((subject, predicate, value))
        for node in pointed:
            if node not in subjects:
                types = self._types.get(node)
                for cls in self.types(node) if types is None else types:
                    triples.append((node, vocab.TYPE, cls))
        return triples

    def is_item(self, subject: Term) -> bool:
        """Return whether *subject* is a memory of this project."""
        return bool(self._of(subject, ITEM_MARK))

    def in_force(self, item: Term) -> bool:
        """Return whether the memory *item* is asserted, and neither superseded nor invalidated."""
        return _ASSERTED in self._of(item, ITEM_MARK) and not self.has_ended(item)

    def is_active(self, item: Term) -> bool:
        """Return whether *item* is asserted, has not ended and, if a decision, is accepted; validity is not judged."""
        return self.in_force(item) and all(is_accepted(plain_value(status)) for status in self._of(item, _DECIDED))

    def has_ended(self, item: Term) -> bool:
        """Return whether *item* is superseded or invalidated."""
        return any(self._of(item, end) for end in _ENDS)

    def _of(self, subject: Term, predicate: Term) -> list[Term]:
        """Return the values of one property, in a list that callers must not change."""
        known = self._whole.get(subject)
        if known is not None:
            return known.get(predicate) or []
        partly = self._partly.setdefault(subject, {})
        values = partly.get(predicate)
        if values is None:
            values = partly[predicate] = [value for _, _, value in self._probe(subject, predicate, None)]
            self.size += 1
        return values
