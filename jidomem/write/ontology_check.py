"""Stage 2, the ontology's part: is every term declared, does it stand where the ontology allows it.  Pure over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from jidomem.errors import IntentRefused, Violation
from jidomem.rdf import vocab
from jidomem.rdf.terms import XSD, Term, Triple, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import TYPE, jido
from jidomem.records.intent import MemoryUpdateIntent
from jidomem.records.policy import Policy
from jidomem.schema.ontology import Schema
from jidomem.write.canonical import is_ours, swap
from jidomem.write.normalize import is_written
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.validate import broken_triple, field_of

_NONE: frozenset[Term] = frozenset()
_RDFS, _OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
_AXIOMS = frozenset(iri(_RDFS + name) for name in ("subClassOf", "subPropertyOf"))
_AXIOMS |= {iri(_OWL + name) for name in ("equivalentClass", "equivalentProperty", "disjointWith", "sameAs")}
#: Names a term that is asked for: nobody has declared it yet.
_PROPOSED_TERM = jido("proposedTerm")
_ITEM = frozenset((jido("MemoryItem"),))


def declare_objects(intent: MemoryUpdateIntent, view: WriteSnapshot, schema: Schema) -> list[Triple]:
    """Return type declarations for the new entities extra triples point at, by the range of the property."""
    described = {triple[0] for triple in intent.extra_triples if iri(triple[1]) == TYPE}
    triples = []
    for _, predicate, value in intent.extra_triples:
        target = value.get("@id")
        declared = schema.properties.get(iri(predicate))
        classes = declared.range if declared else frozenset()
        if not target or target in described or is_ours(target) or len(classes) != 1 or view.types(iri(target)):
            continue
        (cls,) = classes
        closed = any(cls in of for of in schema.individuals.values())
        if cls in schema.classes and not closed and not schema.is_a(cls, jido("MemoryItem")):
            triples.append((iri(target), TYPE, cls))
    return triples


def check_terms(
    triples: list[Triple], view: WriteSnapshot, schema: Schema, policy: Policy, *, keep_values: bool = False
) -> list[str]:
    """Return warnings; raise IntentRefused unless every term is declared and stands where the ontology allows it.

    With *keep_values* an undeclared value is a warning.
    """
    types: dict[Term, frozenset[Term]] = {}
    for subject, _, value in [triple for triple in triples if triple[1] == TYPE]:
        types[subject] = types.get(subject, _NONE) | {value}
    warnings: dict[str, None] = {}
    violations = _second_values(triples, types, schema)

    kinds: dict[Term, frozenset[Term]] = {}

    def kinds_of(node: Term) -> frozenset[Term]:
        found = kinds.get(node)
        if found is None:
            said = types.get(node)
            found = kinds[node] = view.types(node) if said is None else said | view.types(node)
        return found

    individuals = schema.individuals
    for subject, predicate, value in triples:
        if predicate != TYPE:
            kind: frozenset[Term] | str  # the classes of an IRI, or what stands behind the text of a literal
            if value[0] != "<":
                kind = value[value.rindex('"') + 1 :]
            else:
                kind = kinds_of(value) | individuals[value] if value in individuals else kinds_of(value)
            if _stands(schema, predicate, kinds.get(subject) or kinds_of(subject), kind):
                continue
        problem = _term_problem((subject, predicate, value), kinds_of, schema, policy, warnings)
        if problem is None:
            problem = _value_problem((subject, predicate, value), kinds_of, types, schema)
            if problem is not None and keep_values:
                warnings[f"{problem.message}: kept as it was"] = None
                problem = None
        if problem is None and predicate != TYPE:
            problem = _place_problem((subject, predicate, value), kinds_of, schema)
        if problem is not None:
            violations.append(problem)
    if violations:
        raise IntentRefused(violations)
    return list(warnings)


def check_axioms(rows: Iterable[Triple], schema: Schema) -> None:
    """Raise IntentRefused for what relates a term of the ontology to another one as the ontology does not.

    What is asked goes along rdfs:subClassOf, in whichever graph that is said.
    """
    terms = schema.declared
    for row in rows:
        if row[1] in _AXIOMS and row[0] in terms and row not in schema.triples:
            name = plain_value(row[0]).replace(vocab.JIDO, "jido:")
            message = f"{name} is a term of the ontology: how it relates to others is said in ontology/, not in memory"
            raise IntentRefused([broken_triple(plain_value(row[2]), message)])


def check_appended(rows: Iterable[Triple], view: WriteSnapshot, schema: Schema) -> None:
    """Raise IntentRefused for a literal not written as its datatype has it, and for a second value where one is all."""
    violations = []
    for subject, predicate, value in rows:
        declared = schema.properties.get(predicate)
        if not is_iri(value) and not is_written(*parse_literal(value)[:2]):
            said = parse_literal(value)
            violations.append(broken_triple(said.text, f"{said.text[:80]!r} is not written as a {said.datatype} is"))
        elif declared is not None and declared.functional and view.objects(subject, predicate):
            message = f"{plain_value(predicate)} has one value, and {plain_value(subject)} has one already"
            violations.append(_misplaced((subject, predicate, value), message))
    if violations:
        raise IntentRefused(violations)


@lru_cache(maxsize=8)
def _functional(schema: Schema) -> frozenset[Term]:
    return frozenset(term for term, declared in schema.properties.items() if declared.functional)


def _second_values(triples: Iterable[Triple], types: Mapping[Term, frozenset[Term]], schema: Schema) -> list[Violation]:
    """Return a violation for each further value of a property that has only one.

    What a field of a memory says is counted by a shape, and not here.
    """
    first: dict[tuple[Term, Term], Term] = {}
    of_one = _functional(schema)
    is_item = {subject: schema.fits(kinds, _ITEM) for subject, kinds in types.items()}
    functional = [
        triple
        for triple in triples
        if triple[1] in of_one and (field_of(triple[1]) == "extra_triples" or not is_item.get(triple[0], False))
    ]
    return [
        _misplaced(triple, f"{plain_value(triple[1])} has one value, and {plain_value(triple[0])} was given another")
        for triple in functional
        if first.setdefault(triple[:2], triple[2]) != triple[2]
    ]


@lru_cache(maxsize=4096)
def _stands(schema: Schema, predicate: Term, have: frozenset[Term], kind: frozenset[Term] | str) -> bool:
    """Return whether a triple surely stands where the ontology allows it, and there is nothing to say about it."""
    declared = schema.properties.get(predicate)
    if declared is None or predicate in schema.deprecated:
        return False
    if declared.domain and have and not schema.fits(have, declared.domain):
        return False
    if not declared.range:
        return isinstance(kind, str) or bool(kind)
    if isinstance(kind, str):
        return (kind.removeprefix("^^") or iri(XSD + "string")) in declared.range
    return not any(cls.startswith(f"<{XSD}") for cls in declared.range) and schema.fits(kind, declared.range)


def _term_problem(
    triple: Triple,
    kinds_of: Callable[[Term], frozenset[Term]],
    schema: Schema,
    policy: Policy,
    warnings: dict[str, None],
) -> Violation | None:
    """Return what is wrong with the property, or the class, that a triple uses."""
    subject, predicate, value = triple
    term = predicate
    if predicate == TYPE:
        if not is_iri(value):
            return broken_triple(plain_value(value), "a class is an IRI")
        term = value
    known = schema.classes if predicate == TYPE else schema.properties.keys()
    word = "class" if predicate == TYPE else "property"
    if term in known:
        if term in schema.deprecated:
            warnings[f"{plain_value(term)} is deprecated"] = None
        return None
    if not plain_value(term).startswith(tuple(schema.namespaces)) and not policy.strict:
        if not plain_value(term).startswith((vocab.RDF, vocab.RDFS)):
            warnings[f"{plain_value(term)} is a {word} of a foreign vocabulary: kept, not judged"] = None
        return None
    fitting = known if predicate == TYPE else _properties_of(kinds_of(subject), schema)
    return _undeclared_term(term, word, schema.misspelt(term, fitting))


def _properties_of(have: frozenset[Term], schema: Schema) -> list[Term]:
    """Return the properties that the ontology lets be said of what *have* are the classes of."""
    return [
        term
        for term, declared in schema.properties.items()
        if declared.is_object is not None and (not declared.domain or schema.fits(have, declared.domain))
    ]


def _value_problem(
    triple: Triple,
    kinds_of: Callable[[Term], frozenset[Term]],
    types: Mapping[Term, frozenset[Term]],
    schema: Schema,
) -> Violation | None:
    """Return what is wrong with a value in a namespace of the ontology: nothing there declares or describes it."""
    _, predicate, value = triple
    if (
        predicate in (TYPE, _PROPOSED_TERM)
        or not value.startswith("<")
        or not plain_value(value).startswith(tuple(schema.namespaces))
    ):
        return None
    if value in schema.subjects or value in types or kinds_of(value):
        return None
    declared = schema.properties.get(predicate)
    range_ = declared.range if declared else _NONE
    individuals = [each for each, of in schema.individuals.items() if not range_ or schema.fits(of, range_)]
    return _undeclared_term(value, "value", schema.misspelt(value, individuals), field_of(plain_value(predicate)))


def _undeclared_term(term: Term, word: str, near: Term | None, field: str | None = None) -> Violation:
    """Return the violation for a *term* that is used as a *word* and not declared, with the one it is misspelt for."""
    field = field or "extra_triples"
    return Violation(
        "unknown_term",
        f"{plain_value(term)} is not a declared {word}" + (f"; did you mean {plain_value(near)}?" if near else ""),
        field=field,
        value=plain_value(term),
        nearest=plain_value(near) if near else None,
        repair=_respelt(field, plain_value(term), plain_value(near)) if near else None,
    )


def _respelt(field: str, old: str, new: str) -> Callable[[Mapping[str, object]], dict[str, object]]:
    """Return the repair that respells a term in *field*, written in full or as a `jido:` name."""
    full = swap(field, old, new)
    short = swap(field, old.replace(vocab.JIDO, "jido:"), new)
    return lambda values: short(full(values))


def _place_problem(triple: Triple, kinds_of: Callable[[Term], frozenset[Term]], schema: Schema) -> Violation | None:
    """Return what is wrong with the place a declared property stands in: its subject's or its object's class."""
    subject, predicate, value = triple
    declared = schema.properties.get(predicate)
    if declared is None:
        return None
    name = plain_value(predicate)
    domain, range_ = declared.domain, declared.range
    have = kinds_of(subject)
    if domain and have and not schema.fits(have, domain):
        return _misplaced(triple, f"{name} is said of {_listed(domain)}, and {plain_value(subject)} is none")
    if not range_:
        return None
    if not is_iri(value):
        given = parse_literal(value)
        if iri(given.datatype) not in range_:
            return _misplaced(triple, f"{name} takes {_listed(range_)}, not {given.text[:80]!r}")
        return None
    if any(cls.startswith(f"<{XSD}") for cls in range_):
        return _misplaced(triple, f"{name} takes {_listed(range_)}, not the IRI {plain_value(value)}")
    have = kinds_of(value) | schema.individuals.get(value, _NONE)
    if schema.fits(have, range_) or (jido("Evidence") in range_ and schema.fits(have, _ITEM)):
        return None
    if have or any(range_ & of for of in schema.individuals.values()) or value.startswith(f"<{vocab.JIDO}"):
        allowed = sorted(vocab.local_name(i) for i, of in schema.individuals.items() if range_ & of)
        return _misplaced(
            triple, f"{name} points at {_listed(range_)}, and {plain_value(value)} is none", tuple(allowed)
        )
    return None


def _misplaced(triple: Triple, message: str, allowed: tuple[str, ...] = ()) -> Violation:
    field = field_of(plain_value(triple[1]))
    return Violation("shape_violation", message, field=field, value=plain_value(triple[2]), allowed=allowed)


def _listed(classes: Iterable[Term]) -> str:
    return " or ".join(sorted(vocab.local_name(cls) for cls in classes))
