"""What is wrong with the terms and shapes that a project adds.  Pure over triples and the schema they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from jidomem.govern.judged import aimless
from jidomem.govern.report import (
    COMPILED,
    DECLARED,
    EXPLAINED,
    KEPT,
    READ,
    REPAIRS,
    SHACL,
    TARGETED,
    TREE,
    USABLE,
    Found,
)
from jidomem.govern.unmet import unmet
from jidomem.judge import SH
from jidomem.schema import ITEM, OWL, Schema, objections, shacl_terms
from jidomem.terms import Term, Triple, bare, iri, is_iri
from jidomem.vocab import LABEL, RDF, RDFS, TYPE, XSD, local_name, type_of
from jidomem.write.names import is_absolute, is_reserved, written

_SUBCLASS, _DOMAIN, _RANGE = (iri(RDFS + name) for name in ("subClassOf", "domain", "range"))
_DEFINITIONS = {iri("http://www.w3.org/2004/02/skos/core#definition"), iri(RDFS + "comment")}
_OF_A_CLASS = {_SUBCLASS, _DOMAIN, iri(SH + "class")}
_TARGETS = {iri(SH + name) for name in ("targetClass", "targetSubjectsOf", "targetObjectsOf")}
_STANDARD = tuple(f"<{space}" for space in (RDF, RDFS, OWL, XSD))
#: Predicates of SHACL that say nothing of what is judged.
_BESIDE = {"path", "property", "name", "description", "order", "group", "severity", "deactivated", "node"}


def terms(own: Sequence[Triple], schema: Schema) -> list[Found]:
    """Return what is wrong with the terms that *own* declares, one by one."""
    said: dict[Term, set[Term]] = {}
    for subject, predicate, _ in own:
        said.setdefault(subject, set()).add(predicate)
    found = [_misplaced(row) for row in own if is_shacl(row) and row[1] != TYPE]
    for term in sorted(said.keys() & schema.declared):
        missing = [] if LABEL in said[term] else ["a label (rdfs:label)"]
        missing += [] if said[term] & _DEFINITIONS else ["a definition (skos:definition)"]
        if missing:
            text = f"{bare(term)} has no {' and no '.join(each[2:] for each in missing)}: say what it means"
            found.append(Found(term, EXPLAINED, "warning", text, TYPE))
        if not is_absolute(bare(term)):
            text = (
                f"no memory may use {bare(term)}, which it would write {written(bare(term))}: take an IRI of your own"
            )
            found.append(Found(term, USABLE, "violation", text, TYPE))
        elif is_reserved(bare(term)):
            text = f"{bare(term)} lies in a namespace of jidomem, and no memory may use it: take one of your own"
            found.append(Found(term, USABLE, "violation", text, TYPE))
        if term in schema.classes:
            found += _class(term, schema)
        if term in schema.properties:
            found += _property(term, schema)
    return found


def is_shacl(triple: Triple) -> bool:
    """Return whether a triple speaks of shapes."""
    return triple[1].startswith(f"<{SH}") or (triple[1] == TYPE and triple[2].startswith(f"<{SH}"))


def _class(cls: Term, schema: Schema) -> Iterator[Found]:
    above = [value for subject, predicate, value in schema.triples if (subject, predicate) == (cls, _SUBCLASS)]
    for parent in above:
        if is_iri(parent) and cls in schema.ancestors(parent):
            text = f"{bare(cls)} lies below itself by way of {bare(parent)}: take one rdfs:subClassOf out"
            yield Found(cls, TREE, "violation", text, _SUBCLASS, parent)
    if schema.is_a(cls, ITEM):
        types = {kind: len(schema.ancestors(each)) for each in schema.ancestors(cls)
                 if (kind := type_of(each)) and each in schema.classes}  # fmt: skip
        kind = f"type {max(types, key=lambda each: types[each])!r}" if types else "any type"
        text = f'an intent of {kind} keeps one: "extra_triples": [["rdf:type", "{bare(cls)}"]]'
        yield Found(cls, KEPT, "info", text, TYPE)


def _property(term: Term, schema: Schema) -> Iterator[Found]:
    declared = schema.properties[term]
    for value in sorted(declared.range):
        takes_values = value.startswith(f"<{XSD}")
        if declared.is_object is not None and is_iri(value) and declared.is_object == takes_values:
            kind = "owl:DatatypeProperty" if takes_values else "owl:ObjectProperty"
            text = f"{bare(term)} can have no value in {bare(value)}: make it an {kind}, or give it another range"
            yield Found(term, USABLE, "violation", text, _RANGE, value)


def undeclared(own: Sequence[Triple], schema: Schema) -> list[Found]:
    """Return each use, in an overlay itself, of a term that nobody declares; a foreign one as a class is a warning."""
    spaces = tuple(f"<{space}" for space in schema.namespaces)
    described = {row[0] for row in schema.triples} | {row[0] for row in schema.rules} | schema.alignment.keys()
    found = []
    for subject, predicate, value in dict.fromkeys(own):
        if predicate.startswith(spaces) and predicate not in schema.properties:
            found.append(_unknown((subject, predicate, value), predicate, "property", schema))
        if predicate in _TARGETS or not is_iri(value) or value.startswith(_STANDARD):
            continue
        as_class = predicate in _OF_A_CLASS or predicate == _RANGE
        if value.startswith(spaces) and (value not in described or (as_class and value not in schema.classes)):
            found.append(_unknown((subject, predicate, value), value, "class" if as_class else "term", schema))
        elif as_class and value not in schema.classes:
            text = f"{bare(value)} is a class of a foreign vocabulary: nothing here says what is one"
            found.append(Found(subject, DECLARED, "warning", text, predicate, value))
    return found


def _unknown(triple: Triple, term: Term, word: str, schema: Schema) -> Found:
    near = schema.nearest(term)
    meant = f"; did you mean {bare(near)}?" if near and near != term else ""
    return Found(triple[0], DECLARED, "violation", f"{bare(term)} is not a declared {word}{meant}", *triple[1:])


def shapes(own: Sequence[Triple], schema: Schema) -> list[Found]:
    """Return what is wrong with the shapes: by the SHACL of SHACL, in what they aim at, and in what they say."""
    if not own:
        return []
    nodes = {term for row in own for term in (row[0], row[2])}
    try:
        broken = objections(schema.rules, nodes)
    except ValueError as error:  # of rdflib, where a list has no end
        return [Found(own[0][0], SHACL, "violation", f"the shapes cannot be used: {error}: end the list with rdf:nil")]
    found = [
        Found(each.focus, SHACL, "violation", f"this is no shape: {each.path or ''}: {each.message}", _iri(each.path))
        for each in broken
    ]
    found += [each for each in aimless(schema.rules, schema) if each.item in nodes]
    return [*found, *unmet(own), *_unheard(own), *_spoken(own, schema.left_to_pyshacl if not broken else frozenset())]


def _unheard(own: Sequence[Triple]) -> Iterator[Found]:
    """Yield each use of a term that SHACL has not: it would say nothing, and no judge would say so."""
    known = shacl_terms()
    for triple in own:
        for term in (triple[1], triple[2]):
            if term.startswith(f"<{SH}") and (name := local_name(term)) not in known:
                near = get_close_matches(name, known, n=1)
                meant = f": did you mean sh:{near[0]}?" if near else ": see https://www.w3.org/TR/shacl/"
                yield Found(triple[0], SHACL, "violation", f"sh:{name} is no term of SHACL{meant}", *triple[1:])


def _spoken(own: Sequence[Triple], left: frozenset[Term]) -> Iterator[Found]:
    """Yield what each shape leaves unsaid, and those *left* to pyshacl."""
    said: dict[Term, set[str]] = {}
    pointed = {value for _, _, value in own}
    parts = {value for _, predicate, value in own if predicate == iri(SH + "property")}
    for subject, predicate, _ in own:
        if predicate.startswith(f"<{SH}"):
            said.setdefault(subject, set()).add(local_name(predicate))
    for node, words in said.items():
        aims = {word for word in words if word.startswith("target")}
        if words - _BESIDE - aims and "message" not in words and (aims or node in parts):
            text = 'say what to do in sh:message, as in "A recipe says for how many: give it my:serves."'
            yield Found(node, REPAIRS, "warning", text, iri(SH + "path") if "path" in words else TYPE)
        if is_iri(node) and node not in pointed and not aims:
            text = "nothing refers to this shape and it has no target: give it sh:targetClass, or take it out"
            yield Found(node, TARGETED, "violation", text, TYPE)
        if node in left:
            text = "judged by pyshacl, in milliseconds: it uses more than the compiled judge covers"
            yield Found(node, COMPILED, "info", text, TYPE)


def _iri(path: Term | str | None) -> Term | None:
    return path if path is not None and is_iri(path) else None


def _misplaced(triple: Triple) -> Found:
    text = f"sh:{local_name(triple[1])} in ontology/ is no rule: move the shape to a file in shapes/"
    return Found(triple[0], READ, "warning", text, triple[1], triple[2])
