"""Triples that can be followed, and the paths of SHACL through them, as pyshacl follows and writes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, reduce

from jidomem.judge import SH
from jidomem.terms import Term, Triple, bare, iri, is_iri
from jidomem.vocab import JIDO, RDF, RDFS, TYPE, local_name

#: The deepest nesting, of paths and of shapes, that is compiled.
DEEPEST = 4
_FIRST, _REST, _NIL = iri(RDF + "first"), iri(RDF + "rest"), iri(RDF + "nil")
_SUBCLASS = iri(RDFS + "subClassOf")
_NOTHING: Mapping[Term, list[Term]] = {}


class Left(Exception):
    """A shapes graph says what is not compiled."""


class Data:
    """Triples that can be followed both ways; lists in them are well formed."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples = dict.fromkeys(triples)
        #: The properties and values of every subject.
        self.about: dict[Term, dict[Term, list[Term]]] = {}
        about = self.about
        for subject, predicate, value in self.triples:
            said = about.get(subject)
            if said is None:
                about[subject] = {predicate: [value]}
            elif predicate in said:
                said[predicate].append(value)
            else:
                said[predicate] = [value]
        self._has_tree = any(_SUBCLASS in said for said in about.values())

    @cached_property
    def _back(self) -> dict[tuple[Term, Term], list[Term]]:
        back: dict[tuple[Term, Term], list[Term]] = {}
        for subject, predicate, value in self.triples:
            back.setdefault((predicate, value), []).append(subject)
        return back

    def objects(self, subject: Term, predicate: Term) -> Collection[Term]:
        """Return the values of *predicate* at *subject*."""
        return self.about.get(subject, _NOTHING).get(predicate, ())

    def subjects(self, predicate: Term, value: Term) -> Collection[Term]:
        """Return what has *value* as a value of *predicate*."""
        return self._back.get((predicate, value), ())

    def types(self, node: Term) -> Collection[Term]:
        """Return the types of *node*, and what lies above them in the class tree of these triples."""
        types = self.objects(node, TYPE)
        return _with_all_after(types, lambda cls: self.objects(cls, _SUBCLASS)) if self._has_tree else types

    def members(self, head: Term) -> Iterator[Term]:
        """Yield the members of an RDF list; raise Left for an empty one."""
        if head == _NIL:
            raise Left(head)
        while head != _NIL:
            yield from self.objects(head, _FIRST)
            (head,) = self.objects(head, _REST)

    def shacl(self, node: Term) -> dict[str, list[Term]]:
        """Return what the properties of SHACL say of *node*, by their local names."""
        said = self.about.get(node, _NOTHING).items()
        return {local_name(predicate): values for predicate, values in said if predicate.startswith(f"<{SH}")}


#: The way from a node to its values.
Path = Callable[[Data, Term], Collection[Term]]


def follow(rules: Data, path: Term, depth: int = 0) -> tuple[str, Path]:
    """Return *path* as pyshacl writes it for a reader, and the way it takes; raise Left for what is not compiled."""
    if is_iri(path):
        text = f"jido:{bare(path).removeprefix(JIDO)}" if depth and path.startswith(f"<{JIDO}") else path
        return text, lambda data, node: data.about.get(node, _NOTHING).get(path, ())
    said = rules.shacl(path)
    match said:
        case {"inversePath": [prop]} if is_iri(prop):
            return f"^{follow(rules, prop, depth + 1)[0]}", lambda data, node: data.subjects(prop, node)
        case {"oneOrMorePath": [inner]} if depth < DEEPEST:
            text, step = follow(rules, inner, depth + 1)
            return f"{text}+", lambda data, node: _with_all_after(step(data, node), lambda at: step(data, at))
    if said.keys() - {"alternativePath"} or depth == DEEPEST:
        raise Left(path)
    members = rules.members(said["alternativePath"][0] if said else path)
    shown, steps = zip(*(follow(rules, each, depth + 1) for each in members), strict=True)
    text = (" | " if said else " / ").join(shown)
    text = f"({text})" if depth else text
    if said:
        return text, lambda data, node: {value for step in steps for value in step(data, node)}
    return text, lambda data, node: reduce(lambda here, step: {v for at in here for v in step(data, at)}, steps, {node})


def _with_all_after(found: Iterable[Term], step: Callable[[Term], Collection[Term]]) -> set[Term]:
    """Return *found* and all that one or more steps lead to from there."""
    seen, todo = set[Term](), list(found)
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += step(node)
    return seen
