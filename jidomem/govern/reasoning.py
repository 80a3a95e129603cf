"""OWL 2 RL: owlrl closes and judges the ontology and, of a memory, one representative of each signature.

A signature is what reasoning can tell two nodes apart by: their classes, and those of their triples from which
something follows that their classes do not say already. What holds of one node holds of all that share its signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from jidomem.govern.report import CONSISTENT, Found
from jidomem.govern.sources import Source
from jidomem.judge import ONE_AT_A_TIME, as_graph
from jidomem.schema import OWL, Schema
from jidomem.terms import Term, Triple, bare, iri
from jidomem.vocab import JIDO, RDF, RDFS, TYPE, local_name

_SAID_FOR_READERS = {
    iri(RDFS + "label"), iri(RDFS + "comment"), iri(OWL + "versionInfo"), iri(OWL + "versionIRI"), iri(OWL + "imports"),
}  # fmt: skip
_SKOS = "<http://www.w3.org/2004/02/skos/core#"
_DOMAIN, _RANGE = iri(RDFS + "domain"), iri(RDFS + "range")
_KINDS = {iri(OWL + "ObjectProperty"), iri(OWL + "DatatypeProperty"), iri(OWL + "FunctionalProperty"),
          iri(RDF + "Property"), iri(OWL + "AnnotationProperty")}  # fmt: skip
_STAND_IN = "urn:jido:stand-in:"
#: What a gate says better, with the literal's place: owlrl names the text alone.
_ILL_TYPED = "Lexical value of the literal"
_DISJOINT = "Disjoint classes"
_IRI = re.compile(r"(?:https?://|urn:)[^\s,()']+")
_NONE: frozenset[Term] = frozenset()


def inconsistencies(
    source: Source, schema: Schema, *, explained: Iterable[Term] = (), reference: bool = False
) -> list[Found]:
    """Return what owlrl finds contradictory in ontology and memory; as the *reference* it is given all of it.

    What it says of disjoint classes is left out at *explained* nodes, where a gate has said why.
    """
    rows, alike = (source.triples, dict[str, list[Term]]()) if reference else representatives(source, schema)
    axioms = [triple for triple in schema.triples if not _is_for_readers(triple)]
    known = set(explained)
    found: dict[Found, None] = {}
    for text in _errors([*axioms, *stand_ins(schema), *rows]):
        for each in _told(text, alike, source, schema):
            if not (text.startswith(_DISJOINT) and each.item in known):
                found[each] = None
    return list(found)


def _errors(rows: Iterable[Triple]) -> list[str]:
    """Return the messages of owlrl about these triples."""
    from owlrl import OWLRL_Semantics

    with ONE_AT_A_TIME:
        graph = as_graph(rows)
        closure = OWLRL_Semantics(graph, False, False, rdfs=False)
        closure.closure()
    return sorted(set(closure.error_messages))


def _told(text: str, alike: Mapping[str, list[Term]], source: Source, schema: Schema) -> list[Found]:
    """Return one message as findings: one for each node that is like the one it names."""
    if text.startswith(_ILL_TYPED):
        return []
    named = _IRI.findall(text)
    for name in named:
        if name.startswith(_STAND_IN):
            term = next(t for t in (*schema.classes, *schema.properties) if _stand_in(t) == name.rpartition(":")[0])
            said = f"nothing can be a {bare(term)}, or have it: {text.replace(name, 'it')}"
            return [Found(term, CONSISTENT, "violation", said)]
    nodes = [name for name in reversed(named) if iri(name) in source.about]
    if not nodes:
        subject = iri(named[-1]) if named else iri(OWL + "Ontology")
        return [Found(subject, CONSISTENT, "violation", text)]
    told = [nodes[0]] if len(nodes) > 1 else alike.get(nodes[0], [iri(nodes[0])])
    return [
        Found(item if item[0] == "<" else iri(item), CONSISTENT, "violation", text.replace(nodes[0], bare(item)))
        for item in told
    ]


def representatives(source: Source, schema: Schema) -> tuple[list[Triple], dict[str, list[Term]]]:
    """Return the triples that stand for all others, and the nodes that each representative stands for."""
    telling = _Telling(source, schema)
    rows: dict[Triple, None] = {}
    own: dict[Term, set[tuple[object, ...]]] = {}
    for triple in source.triples:
        subject, predicate, value = triple
        if predicate == TYPE:
            continue
        signature = telling.signature(triple)
        if signature is None:
            continue
        if signature not in telling.met:
            telling.met.add(signature)
            rows[triple] = None
        if telling.tells(signature):
            own.setdefault(subject, set()).add((True, *signature))
            if value[0] != '"':
                own.setdefault(value, set()).add((False, *signature))
    alike: dict[tuple[object, ...], list[Term]] = {}
    for node in source.about:
        key = (telling.classes(node), frozenset(own.get(node, ())))
        alike.setdefault(key, []).append(node)
    chosen = {nodes[0]: nodes for nodes in alike.values()}
    for triple in source.triples if own else ():
        if triple[0] in chosen or triple[2] in chosen:
            signature = None if triple[1] == TYPE else telling.signature(triple)
            if signature is not None and telling.tells(signature):
                rows[triple] = None
    mentioned = {term for triple in rows for term in (triple[0], triple[2]) if term[0] != '"'} | chosen.keys()
    types = [(node, TYPE, cls) for node in mentioned for cls in telling.classes(node)]
    return [*rows, *types], {bare(node) if node[0] == "<" else node: nodes for node, nodes in chosen.items()}


class _Telling:
    """What a triple tells beyond the stated classes of its ends, by the axioms about its property."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self._types, self._schema = source.types, schema
        self.met: set[tuple[object, ...]] = set()
        self._tells: dict[tuple[object, ...], bool] = {}
        axioms: dict[Term, set[object]] = {term: set() for term in schema.properties}
        for subject, predicate, value in schema.triples:
            if _is_for_readers((subject, predicate, value)):
                continue
            if subject in axioms:
                axioms[subject].add((predicate, value))
            if value in axioms:
                axioms[value].add((predicate, subject, True))
        #: Properties about which the axioms say the same are one to reasoning.
        one: dict[frozenset[object], Term] = {}
        self._group = {term: one.setdefault(frozenset(said), term) for term, said in sorted(axioms.items())}
        self._axioms = axioms

    def classes(self, node: Term) -> frozenset[Term]:
        """Return the stated classes of a node of the memory."""
        return self._types.get(node, _NONE)

    def signature(self, triple: Triple) -> tuple[object, ...] | None:
        """Return what reasoning sees of a triple; None where no axiom is about its property."""
        subject, predicate, value = triple
        group = self._group.get(predicate)
        if group is None:
            return None
        kind: object
        if value[0] == '"':
            kind = value[value.rindex('"') + 1 :]
        else:
            kind = value if value in self._schema.individuals else self.classes(value)
        return self.classes(subject), group, kind

    def tells(self, signature: tuple[object, ...]) -> bool:
        """Return whether something follows from a triple that the classes of its ends do not say already."""
        if signature not in self._tells:
            self._tells[signature] = self._follows(*signature)
        return self._tells[signature]

    def _follows(self, subject: object, group: object, kind: object) -> bool:
        said = self._axioms[str(group)]
        for axiom in said:
            predicate, value, *back = axiom if isinstance(axiom, tuple) else (None, None)
            if back or predicate not in (TYPE, _DOMAIN, _RANGE) or (predicate == TYPE and value not in _KINDS):
                return True
            if predicate == _DOMAIN and not self._is_below(subject, value):
                return True
            if predicate == _RANGE and not isinstance(kind, str) and not self._is_below(kind, value):
                return True
            if predicate == _RANGE and isinstance(kind, str) and kind in self._schema.individuals:
                if not self._is_below(self._schema.individuals[kind], value):
                    return True
        return False

    def _is_below(self, classes: object, cls: object) -> bool:
        assert isinstance(classes, frozenset)
        return any(self._schema.is_a(each, str(cls)) for each in classes)


def stand_ins(schema: Schema) -> list[Triple]:
    """Return one imagined individual for each class and property that is not shipped: could there be any?"""
    rows: list[Triple] = []
    for cls in sorted(cls for cls in schema.classes if not cls.startswith(f"<{JIDO}")):
        rows.append((iri(f"{_stand_in(cls)}:1"), TYPE, cls))
    for term, declared in sorted(schema.properties.items()):
        if not term.startswith(f"<{JIDO}") and declared.is_object is not None:
            value = iri(f"{_stand_in(term)}:2") if declared.is_object else '"text"'
            rows.append((iri(f"{_stand_in(term)}:1"), term, value))
    return rows


def _stand_in(term: Term) -> str:
    return f"{_STAND_IN}{local_name(term)}-{hash_of(term)}"


def hash_of(term: Term) -> str:
    """Return a few digits that tell apart two terms of one local name."""
    from hashlib import blake2b

    return blake2b(term.encode(), digest_size=4).hexdigest()


def _is_for_readers(triple: Triple) -> bool:
    return triple[1] in _SAID_FOR_READERS or triple[1].startswith(_SKOS)


#: Who answers whether ontology and memory contradict each other.
Reason = Callable[..., list[Found]]
