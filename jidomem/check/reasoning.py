"""The parts of a check that need the whole memory: OWL 2 RL reasoning, and the policy for its authors.

owlrl closes the ontology and one representative of each signature.

The signature of a node is everything by which reasoning can distinguish it: its classes, and those of its triples that
imply something its classes do not. A result for one node holds for every node with the same signature.

A write is judged by the policy when it is made. A merge joins branches that had different policies, so `unpermitted`
judges each active memory, and each change of the policy, again: by all changes recorded before it, on any branch, and
by those that another branch made later. A change of the policy made on top of a memory leaves it alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from shlex import join, quote
from typing import Any, NamedTuple

from jidomem.base.clock import parse_moment
from jidomem.base.containers import grouped, reachable
from jidomem.base.json_values import decode_toml
from jidomem.check.report import CONSISTENT, DUE, PERMITTED, POLICY_CHANGED, Problem, UnplacedFinding
from jidomem.check.sources import TripleSource
from jidomem.journal.branches import Revision
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import MARKER, RDF, RDFS, TYPE, XSD, jido, local_name, short_id
from jidomem.records.policy import DEFAULT_ROLE, UNSET, AccessPolicy, PolicyChange
from jidomem.schema.ontology import OURS, OWL, Schema
from jidomem.schema.shacl import ONE_AT_A_TIME, Severity, as_graph
from jidomem.write.permissions import curator_grant_command, kinds_of_classes
from jidomem.write.triples import WRITER_AGENT

_ANNOTATIONS = {
    iri(RDFS + "label"), iri(RDFS + "comment"), iri(OWL + "versionInfo"), iri(OWL + "versionIRI"), iri(OWL + "imports"),
}  # fmt: skip
_SKOS = "<http://www.w3.org/2004/02/skos/core#"
_DOMAIN, _RANGE = iri(RDFS + "domain"), iri(RDFS + "range")
_KINDS = {iri(OWL + "ObjectProperty"), iri(OWL + "DatatypeProperty"), iri(OWL + "FunctionalProperty"),
          iri(RDF + "Property"), iri(OWL + "AnnotationProperty")}  # fmt: skip
_SUBPROPERTY, _INVERSE = iri(RDFS + "subPropertyOf"), iri(OWL + "inverseOf")
_EQUIVALENT = iri(OWL + "equivalentProperty")
_OF_VOCABULARIES = {_DOMAIN, _RANGE, _SUBPROPERTY, iri(RDFS + "subClassOf")}
_OF_THINGS = {iri(OWL + "sameAs"), iri(OWL + "differentFrom")}
#: An axiom with a property inside a restriction or a chain counts as this.
_PART_OF = iri(OWL + "onProperty")
_STAND_IN = "urn:jido:stand-in:"
#: A gate reports this with the place of the literal; owlrl names the text alone.
_ILL_TYPED = "Lexical value of the literal"
#: The consequences of a misplaced node, and of two values of a single-valued property.
_DISJOINT, _SAME = "Disjoint classes", "'sameAs' and 'differentFrom'"
#: The group of rules of owlrl whose premises are all of the schema.
_SCHEMA_RULES = "_schema_vocabulary"
_IRI = re.compile(r"(?:https?://|urn:)[^\s,()']+")
_NONE: frozenset[Term] = frozenset()


def inconsistencies(
    source: TripleSource, schema: Schema, *, explained: Iterable[Term] = (), reference: bool = False
) -> list[UnplacedFinding]:
    """Return the contradictions that owlrl finds in ontology and memory; with *reference* it judges all triples.

    The axioms are those of the ontology: a vocabulary that only the memory has is foreign.

    Messages about disjoint classes and about identity are left out at *explained* nodes and literals, for which a gate
    has given the reason.
    """
    if reference:
        rows, alike = [triple for triple in source.triples if not _is_axiom(triple)], dict[str, list[Term]]()
    else:
        rows, alike = representatives(source, schema)
    axioms = [triple for triple in schema.triples if not _is_for_readers(triple)]
    known = set(explained)
    texts = tuple(f"common individual {parse_literal(term).text}" for term in known if term[0] == '"')
    findings: dict[UnplacedFinding, None] = {}
    with schema.bounded("reasoning with the terms of this root", len(axioms) + len(rows)):
        errors = _errors((*axioms, *stand_ins(schema)), tuple(rows))
    for text in errors:
        for each in _findings_of_message(text, alike, source, schema):
            if not (text.startswith((_DISJOINT, _SAME)) and (each.item in known or text.endswith(texts))):
                findings[each] = None
    return list(findings)


@lru_cache(maxsize=4)  # the representatives of a memory seldom change between two checks of a process
def _errors(axioms: tuple[Triple, ...], rows: tuple[Triple, ...]) -> tuple[str, ...]:
    """Return the messages of owlrl about these triples."""
    with ONE_AT_A_TIME:
        base, errors = _closed(axioms)
        closure = _reasoner()(rows, base)
        closure.closure()
    return tuple(sorted({*errors, *closure.error_messages}))


@lru_cache(maxsize=2)  # most of the work is that of the ontology, which seldom changes
def _closed(axioms: tuple[Triple, ...]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return what follows from *axioms* by themselves, as triples of rdflib, and the messages of owlrl about them."""
    closure = _reasoner()(axioms)
    closure.closure()
    return tuple(closure.graph), tuple(closure.error_messages)


@lru_cache(maxsize=1)
def _reasoner() -> Any:
    """Return the OWL 2 RL rules of owlrl, without work that has no consequences.

    No node is stated to be the same as itself: a contradiction could only follow if it is stated to differ from itself,
    which is tested here. A triple is passed only to the groups of rules that begin with its predicate, or with its
    type; owlrl passes each triple to all of them, in each cycle. A triple of a closed base, or of an earlier cycle, is
    passed only if one added since has its subject or object, as a further premise has, unless a list or restriction
    leads to that. The rules about the schema alone are applied again to a closed base only once a triple is added with
    which they may have to do.
    """
    from owlrl import OWLRL_Semantics
    from rdflib.namespace import OWL, RDF, RDFS

    same, different, all_different, a = OWL.sameAs, OWL.differentFrom, OWL.AllDifferent, RDF.type
    groups = rule_groups()
    lists = {OWL.onProperty, RDF.first, RDF.rest}  # no rule begins with these, and those about the schema follow them
    reflexive = {RDFS.subClassOf, RDFS.subPropertyOf, OWL.equivalentClass, OWL.equivalentProperty}
    leading = {
        *(OWL.intersectionOf, OWL.unionOf, OWL.oneOf, OWL.hasKey, OWL.propertyChainAxiom, OWL.sourceIndividual),
        *(OWL.someValuesFrom, OWL.allValuesFrom, OWL.hasValue, OWL.maxCardinality, OWL.maxQualifiedCardinality),
        *((a, each) for each in (all_different, OWL.AllDisjointClasses, OWL.AllDisjointProperties)),
    }

    class Reasoner(OWLRL_Semantics):  # type: ignore[misc]
        def __init__(self, rows: Iterable[Triple], base: Iterable[Any] = ()) -> None:
            graph = as_graph(rows, {})
            self._is_schema_closed = bool(base) and not any(map(self._is_of_schema, graph))
            self._cycle, self._terms, self._added_terms = 0, set[Any](), {term for triple in graph for term in triple}
            for triple in base:
                graph.add(triple)
            super().__init__(graph, False, False, rdfs=False)

        def _is_of_schema(self, triple: tuple[Any, Any, Any]) -> bool:
            _, predicate, value = triple
            return predicate in lists or _SCHEMA_RULES in groups.get((a, value) if predicate == a else predicate, ())

        def store_triple(self, triple: tuple[Any, Any, Any]) -> None:
            if triple not in self.added_triples and triple not in self.graph:
                super().store_triple(triple)
                self._added_terms.update(triple)
                self._is_schema_closed = self._is_schema_closed and not self._is_of_schema(triple)

        def rules(self, triple: tuple[Any, Any, Any], cycle_num: int) -> None:
            if cycle_num > self._cycle:
                self._cycle, self._terms, self._added_terms = cycle_num, self._added_terms, set()
            subject, predicate, value = triple
            beginning = (a, value) if predicate == a else predicate
            if subject == value and predicate in reflexive:  # nothing follows that the term itself does not imply
                return
            if beginning in leading or subject in self._terms or value in self._terms:
                for name in groups.get(beginning, ()):
                    if name != _SCHEMA_RULES or not self._is_schema_closed:
                        getattr(self, name)(triple, cycle_num)

        def _equality(self, triple: tuple[Any, Any, Any], cycle_num: int) -> None:
            subject, predicate, value = triple
            if predicate == same or (predicate == a and value == all_different):
                super()._equality(triple, cycle_num)
            elif predicate == different and subject == value:
                self.add_error(f"{_SAME} cannot be used on the same subject-object pair: ({subject}, {value})")

    return Reasoner


def rule_groups() -> dict[Any, list[str]]:
    """Return the methods of owlrl with a rule that begins with a predicate, or with `rdf:type` and a class."""
    from rdflib.namespace import OWL, RDF, RDFS

    of_classes = {RDFS.subClassOf, OWL.equivalentClass}
    of_properties = {RDFS.domain, RDFS.range, RDFS.subPropertyOf, OWL.equivalentProperty}
    of_parts = {OWL.intersectionOf, OWL.unionOf, OWL.someValuesFrom, OWL.allValuesFrom, OWL.hasValue}
    beginnings = {
        "_properties": (
            of_properties | {OWL.propertyChainAxiom, OWL.propertyDisjointWith, OWL.inverseOf, OWL.hasKey}
            | {OWL.sourceIndividual},
            {OWL.FunctionalProperty, OWL.InverseFunctionalProperty, OWL.IrreflexiveProperty, OWL.SymmetricProperty,
             OWL.AsymmetricProperty, OWL.TransitiveProperty, OWL.AllDisjointProperties},
        ),
        "_equality": ({OWL.sameAs, OWL.differentFrom}, {OWL.AllDifferent}),
        "_classes": (
            of_parts | {OWL.complementOf, OWL.maxCardinality, OWL.maxQualifiedCardinality, OWL.oneOf}, {OWL.Nothing}
        ),
        "_class_axioms": (of_classes | {OWL.disjointWith}, {OWL.AllDisjointClasses}),
        _SCHEMA_RULES: (
            of_classes | of_properties | of_parts,
            {OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty, RDF.Property},
        ),
    }  # fmt: skip
    return grouped(
        (beginning, name)
        for name, (predicates, types) in beginnings.items()
        for beginning in (*predicates, *((RDF.type, cls) for cls in types))
    )


def _findings_of_message(
    text: str, alike: Mapping[str, list[Term]], source: TripleSource, schema: Schema
) -> list[UnplacedFinding]:
    """Return one message as findings: one for each node that the named node represents."""
    if text.startswith(_ILL_TYPED):
        return []
    named = _IRI.findall(text)
    for name in named:
        if name.startswith(_STAND_IN):
            term = next(t for t in (*schema.classes, *schema.properties) if _stand_in(t) == name.rpartition(":")[0])
            message = f"nothing can be a {plain_value(term)}, or have it: {text.replace(name, 'it')}"
            return [UnplacedFinding(term, CONSISTENT, "violation", message)]
    nodes = [name for name in reversed(named) if iri(name) in source.about]
    if not nodes:
        subject = iri(named[-1]) if named else iri(OWL + "Ontology")
        return [UnplacedFinding(subject, CONSISTENT, "violation", text)]
    items = [iri(nodes[0])] if len(nodes) > 1 else alike.get(nodes[0], [iri(nodes[0])])
    return [
        UnplacedFinding(
            item if item[0] == "<" else iri(item), CONSISTENT, "violation", text.replace(nodes[0], plain_value(item))
        )
        for item in items
    ]


def representatives(source: TripleSource, schema: Schema) -> tuple[list[Triple], dict[str, list[Term]]]:
    """Return the triples that represent all others, and the nodes that each representative stands for."""
    implications = _Implications(source, schema)
    first: dict[Signature, Triple] = {}
    facts_of: dict[Term, set[object]] = {}
    for triple in source.triples:
        implication = implications.of(triple)
        if implication is not None:
            first.setdefault(implication.signature, triple)
            for node, fact in implication.facts(triple):
                facts_of.setdefault(node, set()).add(fact)
    alike = grouped(((source.types.get(node, _NONE), frozenset(facts_of.get(node, ()))), node) for node in source.about)
    chosen = {nodes[0]: nodes for nodes in alike.values()}
    rows = dict.fromkeys(first.values())
    for triple in source.triples if facts_of else ():
        if (triple[0] in chosen and triple[0] in facts_of) or (triple[2] in chosen and triple[2] in facts_of):
            implication = implications.of(triple)
            facts = implication.facts(triple) if implication is not None else ()
            if any(node in chosen for node, _ in facts):
                rows[triple] = None
    named = {term for triple in rows for term in (triple[0], triple[2]) if term[0] != '"'} | chosen.keys()
    types = [(node, TYPE, cls) for node in named for cls in source.types.get(node, _NONE)]
    return [*rows, *types], {plain_value(node) if node[0] == "<" else node: nodes for node, nodes in chosen.items()}


class Signature(NamedTuple):
    """The parts of a triple that reasoning uses: classes of its ends, and its property.

    `group` stands for all properties with the same axioms; `individual` is the object if the ontology declares it, and
    `datatype` that of a literal.
    """

    subject: frozenset[Term]
    group: Term
    object: frozenset[Term]
    individual: Term | None = None
    datatype: str | None = None


class _Implication(NamedTuple):
    """The signature of a triple, and whether it implies more about its subject, its object, or both together."""

    signature: Signature
    of_subject: bool
    of_object: bool

    def facts(self, triple: Triple) -> Iterator[tuple[Term, object]]:
        """Yield each end about which the triple implies more, and from which part."""
        together = self.signature if self.of_subject and self.of_object else self.signature.group
        if self.of_subject:
            yield triple[0], (True, together)
        if self.of_object and triple[2][0] != '"':
            yield triple[2], (False, together)


class _Implications:
    """The implications of a triple for the classes of its ends, by the axioms about its property."""

    def __init__(self, source: TripleSource, schema: Schema) -> None:
        self._types, self._schema = source.types, schema
        axioms: dict[Term, set[tuple[Term, Term]]] = {term: set() for term in schema.properties}
        for triple in schema.triples:
            subject, predicate, value = triple
            if subject in axioms and not _is_for_readers(triple):
                axioms[subject].add((predicate, value))
            if value in axioms and predicate in (_INVERSE, _EQUIVALENT):
                axioms[value].add((predicate, subject))
            elif value in axioms and predicate != _SUBPROPERTY:
                axioms[value].add((_PART_OF, subject))
        one: dict[frozenset[tuple[Term, Term]], Term] = {}
        self._group = {term: one.setdefault(frozenset(group), term) for term, group in sorted(axioms.items())}
        self._axioms = axioms
        self._known: dict[tuple[frozenset[Term], Term, object], _Implication] = {}

    def of(self, triple: Triple) -> _Implication | None:
        """Return the implications of a triple; None if no axiom is about its property."""
        subject, predicate, value = triple
        if predicate not in self._group:
            return None
        kind: str | frozenset[Term]
        if value[0] == '"':
            kind = value[value.rindex('"') :]
        else:
            kind = value if value in self._schema.individuals else self._types.get(value, _NONE)
        key = self._types.get(subject, _NONE), predicate, kind
        implication = self._known.get(key)
        if implication is None:
            implication = self._known[key] = self._derived(*key)
        return implication

    def _derived(self, subject: frozenset[Term], predicate: Term, kind: str | frozenset[Term]) -> _Implication:
        group = self._group[predicate]
        if not isinstance(kind, str):
            signature = Signature(subject, group, kind)
        elif kind[0] == '"':
            signature = Signature(subject, group, _NONE, datatype=kind[1:])
        else:
            signature = Signature(subject, group, self._schema.individuals[kind], individual=kind)
        of_subject, of_object, in_full = self._follows(group, signature, False, set())
        return _Implication(signature, of_subject or in_full, of_object or in_full)

    def _follows(
        self, term: Term, signature: Signature, turned: bool, seen: set[tuple[Term, bool]]
    ) -> tuple[bool, bool, bool]:
        """Return whether *term* implies something about the subject, about the object, or about both together.

        With *turned* it leads from the object to the subject, like the inverse of the stated property.
        """
        seen.add((term, turned))
        ends = [False, False, False]
        for predicate, value in self._axioms.get(term, ()):
            if predicate in (_DOMAIN, _RANGE):
                end = (predicate == _RANGE) != turned
                if not (end and signature.datatype is not None):
                    ends[end] |= not self._is_below(signature.object if end else signature.subject, value)
            elif predicate in (_INVERSE, _EQUIVALENT, _SUBPROPERTY):
                there = (value, turned != (predicate == _INVERSE))
                implied = (False, False, False) if there in seen else self._follows(value, signature, there[1], seen)
                ends = [one or other for one, other in zip(ends, implied, strict=True)]
            elif predicate != TYPE or value not in _KINDS:
                ends[2] = True
        return ends[0], ends[1], ends[2]

    def _is_below(self, classes: frozenset[Term], cls: Term) -> bool:
        return any(self._schema.is_a(each, cls) for each in classes)


def stand_ins(schema: Schema) -> list[Triple]:
    """Return one imagined individual for each class and property that is not shipped, to test that it can have any."""
    rows: list[Triple] = []
    for cls in sorted(cls for cls in schema.classes if not plain_value(cls).startswith(OURS)):
        rows.append((iri(f"{_stand_in(cls)}:1"), TYPE, cls))
    for term, declared in sorted(schema.properties.items()):
        if not plain_value(term).startswith(OURS) and declared.is_object is not None:
            value = iri(f"{_stand_in(term)}:2") if declared.is_object else _literal_of(declared.range)
            if value is not None:
                rows.append((iri(f"{_stand_in(term)}:1"), term, value))
    return rows


#: A literal of each datatype that a property of a project may have; for others there is no stand-in.
_LITERALS = {"string": "text", "integer": "1", "decimal": "1.5", "double": "1.5", "float": "1.5", "boolean": "true",
             "date": "2026-01-31", "dateTime": "2026-01-31T08:00:00Z", "anyURI": "https://example.org/"}  # fmt: skip


def _literal_of(datatypes: Collection[Term]) -> Term | None:
    """Return a literal of the only one of *datatypes*, a text without one, None if no literal is known."""
    if len(datatypes) != 1:
        return None if datatypes else literal("text")
    datatype = plain_value(next(iter(datatypes)))
    text = _LITERALS.get(datatype.removeprefix(XSD)) if datatype.startswith(XSD) else None
    return None if text is None else literal(text, datatype)


def _stand_in(term: Term) -> str:
    """Return the name of the stand-in for a term, unique among terms with the same local name."""
    return f"{_STAND_IN}{local_name(term)}-{blake2b(term.encode(), digest_size=4).hexdigest()}"


def _is_axiom(triple: Triple) -> bool:
    """Return whether *triple* is about a vocabulary, and not about a thing."""
    _, predicate, value = triple
    if predicate == TYPE:
        return value.startswith((f"<{OWL}", f"<{RDFS}"))
    return predicate in _OF_VOCABULARIES or (predicate.startswith(f"<{OWL}") and predicate not in _OF_THINGS)


def _is_for_readers(triple: Triple) -> bool:
    return triple[1] in _ANNOTATIONS or triple[1].startswith(_SKOS)


_COMMIT, _PARENT = jido("recordedIn"), jido("parent")
#: The role of a curator, which a token may give.
_BY_TOKEN = "Curator"
_RESPONSIBLE = tuple(map(jido, ("assertedBy", "settledBy", "confirmedBy")))
_ENDED = tuple(map(jido, ("supersedes", "invalidates", "revives")))
_BEGINNING = datetime.min.replace(tzinfo=UTC)


def policy_changes(source: TripleSource, policy: AccessPolicy) -> Iterator[UnplacedFinding]:
    """Yield a warning for each change of the policy that the requested range brought; none without a range."""
    known = source.older.types if source.older is not None else None
    for change in policy.changes:
        if known is not None and iri(change.node) not in known:
            by = f" (by {local_name(change.by)})" if change.by else ""
            text = f"the policy changes: {change}{by}: see that this is meant: jidomem access policy show"
            yield UnplacedFinding(iri(change.node), POLICY_CHANGED, "warning", text)


#: The keys of config.toml that permit a write or a finding.
_PERMITTING = ("policy", "agents", "secrets", "conflicts")


def configured_changes(root: Path, revision: Revision) -> list[Problem]:
    """Return a warning if what the configuration of *root* permits differs from that at *revision*.

    That are the roles, the initial policy, and what is done with likely secrets and with conflicts. Raises
    InvalidRequest if git lacks the file.
    """
    path = root / "config.toml"
    try:
        texts = [data.decode() for data in (revision.content(path), path.read_bytes())]
        before, after = map(decode_toml, texts)
    except (OSError, ValueError):  # without a readable file there was no role
        return []
    changed = [key for key in _PERMITTING if before.get(key) != after.get(key)]
    text = f"the configuration changes what is permitted ({' and '.join(changed)}): see that this is meant"
    text += ": jidomem access policy show" if {"policy", "agents"} & {*changed} else ""
    pairs = enumerate(zip_longest(*(each.splitlines() for each in texts)), 1)
    line = next((number for number, (old, new) in pairs if old != new), 1)
    return [Problem(path.name, POLICY_CHANGED, "warning", text, str(path), line)] if changed and before else []


def unpermitted(
    source: TripleSource,
    schema: Schema,
    policy: AccessPolicy,
    earlier: AccessPolicy | None,
    moment: datetime,
    is_active: Callable[[Term], bool],
) -> Iterator[UnplacedFinding]:
    """Yield a finding for each active memory, and each change of the policy, that its author may not write or date so.

    It is a violation if the rule was recorded before, and a warning if another branch recorded it later. What the
    requested range brought is also judged by *earlier*, which has the configuration of before the range.
    """
    yield from _dated_ahead(source, moment, is_active)
    reported = set[Term]()
    for each in _History(source, schema, policy).unpermitted(is_active):
        reported.add(each.item)
        yield each
    if earlier is not None and source.older is not None:
        for each in _History(source, schema, earlier, source.older.types).unpermitted(is_active):
            if each.item not in reported:
                yield replace(each, message=f"by the configuration before this range, {each.message}")


def _dated_ahead(
    source: TripleSource, moment: datetime, is_active: Callable[[Term], bool]
) -> Iterator[UnplacedFinding]:
    """Yield a finding for each active memory whose timestamp is more than a day after *moment*."""
    for item, name, value in source.of(jido("hasTimestamp")):
        at = parse_moment(plain_value(value))
        if at is not None and at > moment + timedelta(days=1) and is_active(item):
            text = (
                f"its timestamp {plain_value(value)} is in the future: write it again with `valid_from`, withdraw this:"
                f" jidomem edit {short_id(plain_value(item))} --invalidate --reason TEXT"
            )
            yield UnplacedFinding(item, DUE, "warning", text, name, value)


class _History:
    """The policies that applied after each change of the policy, in the order of their records."""

    def __init__(
        self, source: TripleSource, schema: Schema, policy: AccessPolicy, older: Collection[Term] | None = None
    ) -> None:
        """Judge by *policy*; with *older* only nodes that are not in it, all of them recorded under its configuration.

        Without, nobody knows when the configuration came: its administrators bar no other from an earlier change.
        """
        self._source, self._schema, self._policy, self._older = source, schema, policy, older
        self._changes = sorted(policy.changes, key=lambda change: (self._recorded(iri(change.node)), change.node))
        self._times = [self._recorded(iri(change.node)) for change in self._changes]
        self._by_number = {len(self._changes): policy}
        self._before: dict[str, set[Term]] = {}

    def unpermitted(self, is_active: Callable[[Term], bool]) -> Iterator[UnplacedFinding]:
        """Yield the findings about changes of the policy, then those about memories."""
        yield from self._unpermitted_changes()
        for item, kinds in self._source.types.items() if self._policy.changes or not self._policy.is_open else ():
            kind = next(filter(None, map(vocab.type_of, kinds)), None)
            if kind is not None and "/alternatives/" not in item and item not in (self._older or ()):
                yield from self._judge(item, is_active)

    def _unpermitted_changes(self) -> Iterator[UnplacedFinding]:
        """Yield the active changes of the policy by agents that were no administrators while there was one."""
        active = {change.node for change in self._policy.active_changes if iri(change.node) not in (self._older or ())}
        for number, change in enumerate(self._changes):
            before = self._policy_of(number)
            permitted, granted = before.administrators, replace(before, roles={}).administrators
            by_then = granted if self._older is None else permitted
            if change.node in active and change.by and by_then and change.by not in permitted:
                named = [*map(local_name, by_then)]
                undo, by = _undone(change, self._changes[:number]), f"--agent {quote(named[0])}"
                text = (
                    f"{local_name(change.by)} may not change the policy: {change}, though {' and '.join(named)}"
                    f" administered it by then; an administrator undoes it: {undo} {by}, or makes it again:"
                    f" {change.command} {by}"
                )
                yield UnplacedFinding(iri(change.node), PERMITTED, "violation", text)

    def _judge(self, item: Term, is_active: Callable[[Term], bool]) -> Iterator[UnplacedFinding]:
        """Yield the finding about *item*, if it is active, and none of the agents responsible for it may assert it."""
        agents = [plain_value(agent) for name in _RESPONSIBLE for agent in self._source.values(item, name)]
        if not agents or plain_value(WRITER_AGENT) in agents:  # the writer settles by a rule of the policy
            return
        writes = tuple(self._writes(item))
        if any(self._verdict(self._policy, agent, writes)[0] == "assert" for agent in agents) or not is_active(item):
            return
        before = self._policy_of(bisect_left(self._times, self._recorded(item)))
        severity: Severity = "violation"
        if any(self._verdict(before, agent, writes)[0] == "assert" for agent in agents):
            beside = self._policy_beside(item)
            if any(self._verdict(beside, agent, writes)[0] == "assert" for agent in agents):
                return
            severity = "warning"
        elif not before.curators and len(agents) > 1:
            return  # without a curator, every agent settles proposals
        verdict, rule, kind = self._verdict(self._policy, agents[0], writes)
        if rule is not None:
            text = self._text(item, agents[0], verdict, rule, kind, severity)
            if self._verdict(self._policy, agents[-1], writes, _BY_TOKEN)[0] == "assert":
                judge = quote(local_name(agents[-1]))
                text += f"; or, if only a server's token made {judge} a curator, grant that here:"
                text += f" jidomem access policy grant {judge} {_BY_TOKEN}"
            yield UnplacedFinding(item, PERMITTED, severity, text, _RESPONSIBLE[0], iri(agents[0]))

    def _text(self, item: Term, agent: str, verdict: str, rule: PolicyChange, kind: str, severity: Severity) -> str:
        name, short = local_name(agent), short_id(plain_value(item))
        may = "may only propose" if verdict == "propose" else "may not write"
        when = "" if severity == "violation" else ", recorded later on another branch"
        options = [("--kind", rule.kind or kind), ("--about", rule.path), ("--scope", rule.scope)]
        fields = [part for option, value in options if value for part in (option, value)]
        first = curator_grant_command(
            PolicyChange(kind=rule.kind or kind, path=rule.path, scope=rule.scope), self._policy
        )
        return (
            f"{name} {may} this {kind.replace('_', ' ')}: {rule}{when}; a curator"
            f"{f' (after: {first})' if first else ''} ends it: jidomem edit {short} --invalidate --reason TEXT, or"
            f" confirms it: jidomem edit {short} --confirm; or allow it:"
            f" jidomem access policy set assert {join(fields)} --for {quote(name)}"
        )

    def _writes(self, item: Term) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str | None]]:
        """Yield kinds, places and scope of a memory, and of each that it ends or revives, as a write is judged."""
        ended = [other for name in _ENDED for other in self._source.values(item, name)]
        is_marker = jido(MARKER) in self._source.types[item]
        for node in ended if is_marker else [item, *ended]:
            kinds = kinds_of_classes(self._source.types.get(node, ()), self._schema)
            places = tuple(map(plain_value, self._source.values(node, jido("about"))))
            scopes = [local_name(value) for value in self._source.values(node, jido("hasConventionScope"))]
            yield kinds, places, next(iter(scopes), None)

    def _verdict(
        self,
        policy: AccessPolicy,
        agent: str,
        writes: Iterable[tuple[tuple[str, ...], tuple[str, ...], str | None]],
        role: str = "",
    ) -> tuple[str, PolicyChange | None, str]:
        """Return the first verdict on *writes* other than assert, its rule and kind; *role* replaces that granted."""
        role = role or policy.granted.get(agent, DEFAULT_ROLE)
        for kinds, places, scope in writes:
            verdict, rule = policy.verdict(agent, role, kinds, places, scope)
            if verdict == "deny" or verdict == "propose":
                return verdict, rule, kinds[0]
        return "assert", None, ""

    def _policy_of(self, number: int) -> AccessPolicy:
        if number not in self._by_number:
            self._by_number[number] = self._with(self._changes[:number])
        return self._by_number[number]

    def _policy_beside(self, item: Term) -> AccessPolicy:
        """Return the policy of the changes that were not made on top of *item*."""
        commits = set(self._source.values(item, _COMMIT))
        beside = [n for n, change in enumerate(self._changes) if commits.isdisjoint(self._commits_before(change.node))]
        key = (*beside,)
        if key not in self._policies_beside:
            self._policies_beside[key] = self._with([self._changes[number] for number in beside])
        return self._policies_beside[key]

    @cached_property
    def _policies_beside(self) -> dict[tuple[int, ...], AccessPolicy]:
        return {}

    def _with(self, changes: Iterable[PolicyChange]) -> AccessPolicy:
        return AccessPolicy(tuple(changes), self._policy.base, self._policy.roles)

    def _commits_before(self, change: str) -> set[Term]:
        """Return the commit of a change and all its ancestors."""
        if change not in self._before:
            first = self._source.values(iri(change), _COMMIT)
            self._before[change] = {*first} | reachable(first, lambda commit: self._source.values(commit, _PARENT))
        return self._before[change]

    def _recorded(self, node: Term) -> datetime:
        return self._source.recorded_at(node) or _BEGINNING


def _undone(change: PolicyChange, earlier: Iterable[PolicyChange]) -> str:
    """Return the command that takes *change* back: to the last of the *earlier* ones of the same rule, if any."""
    if same := [each for each in earlier if each.slot == change.slot]:
        return same[-1].command
    if change.grants is not None:
        return f"jidomem access policy grant {quote(local_name(change.agent or ''))} {DEFAULT_ROLE}"
    return replace(change, allows=UNSET).command
