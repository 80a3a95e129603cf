"""What a project's overlay may bring to ontology and shapes, and the mark that tells one overlay from another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from jidomem.judge import SH
from jidomem.patterns import Unsearchable, compiled
from jidomem.terms import Term, Triple, iri, parts
from jidomem.vocab import BASE, JIDO, SHAPE, local_name

ADDS_ONLY = SHAPE + "OverlayAddsOnly"
NO_IMPORT = SHAPE + "OverlayImportsNothing"
NO_CODE = SHAPE + "ShapeRunsNoCode"
BOUNDED = SHAPE + "PatternEndsSoon"

_IMPORTS = iri("http://www.w3.org/2002/07/owl#imports")
_CODE = ("sparql", "select", "ask", "validator", "nodeValidator", "propertyValidator", "rule", "target", "js",
         "ConstraintComponent")  # fmt: skip
_CODE_IN_SHAPES = {iri(SH + name) for name in _CODE}


class Objection(NamedTuple):
    """Why a triple may not stand in an overlay: the rule's IRI, what is wrong, and what to do."""

    rule: str
    text: str
    hint: str


def objection(triple: Triple) -> Objection | None:
    """Return what is wrong with one triple of an overlay; None where it may stand."""
    subject, predicate, value = triple
    if subject.startswith((f"<{JIDO}", f"<{SHAPE}", f"<{BASE}ontology")):
        hint = "declare a term in your own namespace, and relate it by rdfs:subClassOf or sh:targetClass"
        return Objection(ADDS_ONLY, "belongs to the shipped ontology and cannot be described again", hint)
    if predicate == _IMPORTS:
        hint = "copy the terms you need into ontology/ and drop the import"
        return Objection(NO_IMPORT, f"imports {value}, and no import is followed", hint)
    for code in _CODE_IN_SHAPES & {predicate, value}:
        hint = "say it in SHACL Core (sh:path, sh:minCount, sh:in, sh:disjoint ...)"
        return Objection(NO_CODE, f"runs code by sh:{local_name(code)}, which an overlay may not bring", hint)
    if predicate == iri(SH + "pattern"):
        return _of_pattern(value, "pattern", value)
    return _of_pattern(value, "flags", '""', value) if predicate == iri(SH + "flags") else None


def _of_pattern(said: Term, what: str, pattern: Term, flags: Term = '""') -> Objection | None:
    """Return what is wrong with a pattern, or with its flags, where RE2 does not run it."""
    if not said.startswith('"'):
        return Objection(BOUNDED, f"has the {what} {said}, which is no text", f'write the {what} in quotes: "..."')
    try:
        compiled(parts(pattern).text, parts(flags).text)
    except Unsearchable as error:
        return Objection(BOUNDED, f"has the {what} {said}, which RE2 does not run: {error}", error.hint)
    return None


def named_owner(node: Term, triples: Iterable[Triple]) -> Term:
    """Return the node with a name that a blank *node* belongs to by *triples*; *node* itself where there is none.

    >>> named_owner("_:b", [("<urn:shape>", "<urn:property>", "_:a"), ("_:a", "<urn:or>", "_:b")])
    '<urn:shape>'
    """
    above: dict[Term, Term] = {}
    for subject, _, value in triples if node.startswith("_:") else ():
        above.setdefault(value, subject)
    owner, seen = node, {node}
    while owner.startswith("_:") and owner in above and above[owner] not in seen:
        owner = above[owner]
        seen.add(owner)
    return owner if not owner.startswith("_:") else node


def digest(sections: Mapping[str, Iterable[Triple]]) -> str:
    """Return twelve signs that stand for what *sections* say: not for its order, its layout or its blank labels."""
    said = sorted(f"{name} {' '.join(row)}" for name, triples in sections.items() for row in named(triples))
    return sha256("\n".join(said).encode()).hexdigest()[:12]


def named(triples: Iterable[Triple]) -> list[Triple]:
    """Return *triples*, each once, with a blank node called by what is said of it, as deep as that goes.

    >>> named([("<urn:s>", "<urn:p>", "_:a"), ("_:a", "<urn:q>", '"x"')])[0][2][:12]
    '_:da79b5489b'
    """
    rows = list(dict.fromkeys(triples))
    said: dict[Term, list[tuple[Term, Term]]] = {}
    pointing: dict[Term, list[Term]] = {}
    waiting: Counter[Term] = Counter()
    for subject, predicate, value in rows:
        for node in (subject, value):
            if node.startswith("_:"):
                said.setdefault(node, [])
        if subject in said:
            said[subject].append((predicate, value))
            if value in said:
                waiting[subject] += 1
                pointing.setdefault(value, []).append(subject)
    names: dict[Term, Term] = {}
    todo = [node for node in said if not waiting[node]]
    while todo:
        node = todo.pop()
        text = "\n".join(sorted(f"{predicate} {names.get(value, value)}" for predicate, value in said[node]))
        names[node] = f"_:{sha256(text.encode()).hexdigest()}"
        for above in pointing.get(node, ()):
            waiting[above] -= 1
            if not waiting[above]:
                todo.append(above)
    circle = dict.fromkeys(said.keys() - names.keys(), "_:circle")
    names |= circle
    return [(names.get(s, s), p, names.get(o, o)) for s, p, o in rows]
