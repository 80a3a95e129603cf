"""Triples that can be followed, and the paths of SHACL through them, as pyshacl follows and writes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, reduce

from jidomem.terms import Term, Triple, bare, iri, is_iri
from jidomem.vocab import JIDO, RDF, RDFS, TYPE, local_name

FIRST, REST, NIL = iri(RDF + "first"), iri(RDF + "rest"), iri(RDF + "nil")
_SUBCLASS = iri(RDFS + "subClassOf")
#: The deepest nesting that is followed; pyshacl gives up at 10.
_DEEPEST = 9


_NOTHING: Mapping[Term, list[Term]] = {}


class Left(Exception):
    """A shapes graph says what is not compiled."""


class Data:
    """Triples that can be followed both ways."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples = list(dict.fromkeys(triples))
        #: The properties and values of every subject.
        self.about: dict[Term, dict[Term, list[Term]]] = {}
        for subject, predicate, value in self.triples:
            self.about.setdefault(subject, {}).setdefault(predicate, []).append(value)
        self._has_tree = any(_SUBCLASS in said for said in self.about.values())

    @cached_property
    def _back(self) -> dict[tuple[Term, Term], dict[Term, None]]:
        back: dict[tuple[Term, Term], dict[Term, None]] = {}
        for subject, predicate, value in self.triples:
            back.setdefault((predicate, value), {})[subject] = None
        return back

    def nodes(self) -> set[Term]:
        """Return everything that is said something of, or pointed at."""
        return {term for subject, _, value in self.triples for term in (subject, value)}

    def objects(self, subject: Term, predicate: Term) -> Collection[Term]:
        """Return the values of *predicate* at *subject*."""
        return self.about.get(subject, _NOTHING).get(predicate, ())

    def subjects(self, predicate: Term, value: Term) -> Collection[Term]:
        """Return what has *value* as a value of *predicate*."""
        return self._back.get((predicate, value), ())

    def above(self, cls: Term) -> Collection[Term]:
        """Return *cls* and what lies above it in the class tree of these triples."""
        return (
            _reached(self, cls, lambda data, node: data.objects(node, _SUBCLASS)) | {cls} if self._has_tree else [cls]
        )

    def is_a(self, node: Term, cls: Term) -> bool:
        """Return whether *node* has the type *cls*, or one below it."""
        types = self.objects(node, TYPE)
        return cls in types or (self._has_tree and any(cls in self.above(kind) for kind in types))


Path = Callable[[Data, Term], Collection[Term]]


#: What pyshacl writes before, between and after the steps of a path.
_STEPS = {"sequence": ("", " / ", ""), "alternativePath": ("", " | ", ""), "inversePath": ("^", "", "")}
_STEPS |= {"zeroOrMorePath": ("", "", "*"), "oneOrMorePath": ("", "", "+"), "zeroOrOnePath": ("", "", "?")}


def members(rules: Data, head: Term, least: int = 1) -> list[Term]:
    """Return the members of an RDF list."""
    found: list[Term] = []
    while head != NIL:
        first, rest = rules.objects(head, FIRST), [*rules.objects(head, REST)]
        if len(first) != 1 or len(rest) != 1 or head in found:
            raise Left(head)
        found, head = [*found, *first], rest[0]
    if len(found) < least:
        raise Left(head)
    return found


def _step(rules: Data, path: Term, depth: int) -> tuple[str, list[Term]]:
    """Return the kind of a path that is no single property, and what it is made of."""
    said = rules.about.get(path, _NOTHING)
    kinds = [predicate for predicate in said if predicate == FIRST or local_name(predicate) in _STEPS]
    if not path.startswith("_:") or depth > _DEEPEST or len(kinds) != 1 or len(said[kinds[0]]) != 1:
        raise Left(path)
    if kinds == [FIRST]:
        return "sequence", members(rules, path, 2)
    kind = local_name(kinds[0])
    return kind, members(rules, said[kinds[0]][0], 2) if kind == "alternativePath" else said[kinds[0]]


def follow(rules: Data, path: Term, inverse: bool = False, depth: int = 0) -> Path:
    """Return the values at the end of *path*; as in pyshacl, an inverse sequence keeps its order."""
    if is_iri(path):
        return (
            (lambda data, node: data.subjects(path, node)) if inverse else lambda data, node: data.objects(node, path)
        )
    kind, inner = _step(rules, path, depth)
    steps = [follow(rules, each, inverse != (kind == "inversePath"), depth + len(inner)) for each in inner]
    if kind == "sequence":
        return lambda data, node: reduce(lambda here, step: {v for at in here for v in step(data, at)}, steps, {node})
    if kind == "alternativePath":
        return lambda data, node: {value for step in steps for value in step(data, node)}
    (step,) = steps
    repeated: dict[str, Path] = {
        "inversePath": step,
        "oneOrMorePath": lambda data, node: _reached(data, node, step),
        "zeroOrMorePath": lambda data, node: _reached(data, node, step) | {node},
        "zeroOrOnePath": lambda data, node: {node, *step(data, node)},
    }
    return repeated[kind]


def shown(rules: Data, path: Term, depth: int = 0) -> str:
    """Return *path* as pyshacl writes it for a reader; a single property as the term it is."""
    if is_iri(path):
        return "jido:" + bare(path).replace(JIDO, "") if depth and bare(path).startswith(JIDO) else path
    kind, inner = _step(rules, path, depth)
    before, between, after = _STEPS[kind]
    joined = before + between.join(shown(rules, each, depth + 1) for each in inner) + after
    return f"({joined})" if between and depth else joined


def _reached(data: Data, start: Term, step: Path) -> set[Term]:
    """Return what one or more steps from *start* lead to."""
    seen, todo = set[Term](), set(step(data, start))
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.update(step(data, node))
    return seen
