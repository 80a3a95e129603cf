"""The ontology and shapes of a root: classes, properties, hierarchy and the terms of an overlay.

`load` reads the shipped ontology, `extended_by` adds the overlay of a root and refuses content that an overlay may not
have. `digest` identifies an overlay. `EffectiveRules` is the schema and policy of an open root, and the `ConfigWatcher`
loads them again when its files change.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import pyoxigraph as ox

from jidomem.base import files
from jidomem.base.background import time_limited
from jidomem.base.containers import grouped, reachable
from jidomem.base.json_values import check_turtle
from jidomem.base.regex import Unsearchable, compiled, lazy
from jidomem.base.words import misspelling_of
from jidomem.errors import Failed, JidomemError, QueryTimeout, TooLarge, nearest_names
from jidomem.rdf.terms import Term, Triple, iri, is_iri, parse_literal, plain_value, short_parse_error
from jidomem.rdf.vocab import (
    BASE,
    CLASS_OF_TYPE,
    CONVERSATION,
    JIDO,
    PREFIXES,
    RDF,
    RDFS,
    SHAPE,
    TYPE,
    TYPE_ALIASES,
    jido,
    local_name,
)
from jidomem.schema.shacl import ONE_AT_A_TIME, SH, Finding, PyshaclValidator

if TYPE_CHECKING:
    from jidomem.records.policy import Policy
    from jidomem.schema.shacl_compiler import CompiledValidator

ADDS_ONLY = SHAPE + "OverlayAddsOnly"
NO_IMPORT = SHAPE + "OverlayImportsNothing"
NO_CODE = SHAPE + "ShapeRunsNoCode"
BOUNDED = SHAPE + "PatternEndsSoon"

_IMPORTS = iri("http://www.w3.org/2002/07/owl#imports")
_CODE = ("sparql", "select", "ask", "validator", "nodeValidator", "propertyValidator", "rule", "target", "js",
         "ConstraintComponent")  # fmt: skip
_CODE_IN_SHAPES = {iri(SH + name) for name in _CODE}


class OverlayViolation(NamedTuple):
    """The reason why a triple is not allowed in an overlay: the IRI of the rule, the fault, and the repair."""

    rule: str
    text: str
    hint: str


def find_violation(triple: Triple) -> OverlayViolation | None:
    """Return the violation of one triple of an overlay, or None."""
    subject, predicate, value = triple
    if subject.startswith((f"<{JIDO}", f"<{SHAPE}", f"<{BASE}ontology")):
        hint = "declare a term in your own namespace, and relate it by rdfs:subClassOf or sh:targetClass"
        return OverlayViolation(ADDS_ONLY, "belongs to the shipped ontology and cannot be described again", hint)
    if predicate == _IMPORTS:
        hint = "copy the terms you need into ontology/ and drop the import"
        return OverlayViolation(NO_IMPORT, f"imports {value}, and imports are not followed", hint)
    for code in _CODE_IN_SHAPES & {predicate, value}:
        hint = "write it in SHACL Core (sh:path, sh:minCount, sh:in ...), or as a gate in queries/gates/"
        return OverlayViolation(NO_CODE, f"runs code by sh:{local_name(code)}, which an overlay may not contain", hint)
    if predicate == iri(SH + "pattern"):
        return _of_pattern(value, "pattern", value)
    return _of_pattern(value, "flags", '""', value) if predicate == iri(SH + "flags") else None


def _of_pattern(value: Term, what: str, pattern: Term, flags: Term = '""') -> OverlayViolation | None:
    if not value.startswith('"'):
        return OverlayViolation(
            BOUNDED, f"has the {what} {value}, which is not a text", f'write the {what} in quotes: "..."'
        )
    try:
        compiled(parse_literal(pattern).text, parse_literal(flags).text)
    except Unsearchable as error:
        return OverlayViolation(BOUNDED, f"has the {what} {value}, which RE2 does not run: {error}", error.hint)
    return None


def named_owner(node: Term, triples: Iterable[Triple]) -> Term:
    """Return the named node that a blank *node* belongs to in *triples*, or *node* itself if there is none.

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
    """Return twelve hex digits of the content of *sections*, whatever the order, layout and blank node labels."""
    lines = sorted(
        f"{name} {' '.join(row)}" for name, triples in sections.items() for row in label_blank_nodes(triples)
    )
    return sha256("\n".join(lines).encode()).hexdigest()[:12]


def label_blank_nodes(triples: Iterable[Triple]) -> list[Triple]:
    """Return *triples*, each once, with blank nodes labelled by the hash of their content, recursively.

    >>> label_blank_nodes([("<urn:s>", "<urn:p>", "_:a"), ("_:a", "<urn:q>", '"x"')])[0][2][:12]
    '_:da79b5489b'
    """
    rows = list(dict.fromkeys(triples))
    properties: dict[Term, list[tuple[Term, Term]]] = {}
    pointing: dict[Term, list[Term]] = {}
    waiting: Counter[Term] = Counter()
    for subject, predicate, value in rows:
        for node in (subject, value):
            if node.startswith("_:"):
                properties.setdefault(node, [])
        if subject in properties:
            properties[subject].append((predicate, value))
            if value in properties:
                waiting[subject] += 1
                pointing.setdefault(value, []).append(subject)
    names: dict[Term, Term] = {}
    todo = [node for node in properties if not waiting[node]]
    while todo:
        node = todo.pop()
        text = "\n".join(sorted(f"{predicate} {names.get(value, value)}" for predicate, value in properties[node]))
        names[node] = f"_:{sha256(text.encode()).hexdigest()}"
        for above in pointing.get(node, ()):
            waiting[above] -= 1
            if not waiting[above]:
                todo.append(above)
    circle = dict.fromkeys(properties.keys() - names.keys(), "_:circle")
    names |= circle
    return [(names.get(s, s), p, names.get(o, o)) for s, p, o in rows]


OWL = "http://www.w3.org/2002/07/owl#"
ITEM = jido("MemoryItem")
#: The namespaces of the shipped ontology.
OURS = (JIDO, CONVERSATION)
_SHIPPED = tuple(f"<{space}" for space in OURS)
_NAME = lazy(r"[A-Za-z_][\w-]*")
_PREFIX = lazy(r"(?:^|\.)\s*@?prefix\s+([A-Za-z][\w-]*):\s*<([^<>\s]+)>", re.IGNORECASE | re.MULTILINE)

_SUBCLASS = iri(RDFS + "subClassOf")
_CLASSES = {iri(OWL + "Class"), iri(RDFS + "Class")}
_PROPERTIES: dict[Term, bool | None] = dict.fromkeys((iri(OWL + "AnnotationProperty"), iri(RDF + "Property")))
_PROPERTIES |= {iri(OWL + "ObjectProperty"): True, iri(OWL + "DatatypeProperty"): False}
_DECLARING = [[TYPE, kind] for kind in (*_CLASSES, *_PROPERTIES)]
_REPLACED = ("<http://purl.org/dc/terms/isReplacedBy>", iri(RDFS + "seeAlso"))
_ALIGNS = {iri(OWL + "equivalentClass"), iri(OWL + "equivalentProperty"), _SUBCLASS, iri(RDFS + "subPropertyOf")}


class Property(NamedTuple):
    """A declared property; `is_object` is None if both IRIs and literals are values."""

    iri: Term
    is_object: bool | None
    domain: frozenset[Term]
    range: frozenset[Term]
    functional: bool


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The ontology, shipped or with the overlay of a project, as tables; and the validator of its shapes.

    An undeclared term in one of `namespaces`, ours and those of the overlay, is an error. `prefixes` are those that the
    overlay declares for them, `foreign_prefixes` those for others, `shape_files` the files of its named shapes in the
    root, `sequence_steps` the properties in paths that are sequences, such as `( my:dependsOn my:team )`.
    """

    version: str
    triples: tuple[Triple, ...]
    classes: frozenset[Term]
    properties: Mapping[Term, Property]
    individuals: Mapping[Term, frozenset[Term]]
    deprecated: frozenset[Term]
    alignment: Mapping[Term, Term]
    _ancestors: Mapping[Term, frozenset[Term]]
    _rules: tuple[Triple, ...]
    _by_reference: bool = False
    namespaces: frozenset[str] = frozenset(OURS)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    foreign_prefixes: Mapping[str, str] = field(default_factory=dict)
    shape_files: Mapping[Term, str] = field(default_factory=dict)
    sequence_steps: frozenset[Term] = frozenset()
    _judges: list[CompiledValidator] = field(default_factory=list)

    def expand(self, text: str, *, foreign: bool = False) -> str | None:
        """Return the IRI of a name with a prefix of the overlay, with *foreign* for any namespace; else None."""
        prefix, _, name = text.partition(":")
        space = self.prefixes.get(prefix) or (self.foreign_prefixes.get(prefix) if foreign else None)
        return space + name if space and _NAME.fullmatch(name) else None

    def compact(self, term: Term) -> str:
        """Return the name of *term* with its prefix, ours or of the overlay; its IRI if it has none."""
        text = plain_value(term)
        for prefix, space in {**self.prefixes, "jido": JIDO}.items():
            if text.startswith(space) and _NAME.fullmatch(text[len(space) :]):
                return f"{prefix}:{text[len(space) :]}"
        return text

    @property
    def all_own_kinds(self) -> list[Term]:
        """Return the kinds of memories of the overlay."""
        return sorted(cls for cls in self.classes if self.is_own(cls) and self.is_a(cls, ITEM))

    def is_own(self, cls: Term) -> bool:
        """Return whether *cls* is a class of the overlay."""
        return cls in self.classes and not cls.startswith(_SHIPPED)

    def own_kinds(self, name: str) -> list[Term]:
        """Return the kinds of memories of the overlay with that local name, prefixed name or IRI."""
        named = (name, self.expand(name))
        return [cls for cls in self.all_own_kinds if plain_value(cls) in named or _letters(cls) == _plain(name)]

    def kind_named(self, name: str) -> Term | None:
        """Return the kind of memory with that type, local name, prefixed name or IRI; None for none, or several."""
        if (known := CLASS_OF_TYPE.get(TYPE_ALIASES.get(name, name))) is not None:
            return jido(known)
        terms = {iri(name.strip("<>")), jido(name.removeprefix("jido:"))}
        shipped = [cls for cls in terms if cls.startswith(_SHIPPED) and cls in self.classes and self.is_a(cls, ITEM)]
        kinds = shipped or self.own_kinds(name)
        return kinds[0] if len(kinds) == 1 else None

    def property_named(self, name: str) -> Term | None:
        """Return the property of the overlay with that local name; None for none, or several."""
        named = [each for each in self.properties if local_name(each) == name and not each.startswith(_SHIPPED)]
        return named[0] if len(named) == 1 else None

    def replacement(self, term: Term) -> Term | None:
        """Return the term that replaces the deprecated *term*, None if none is named."""
        rows = self.triples if term in self.deprecated else ()
        return next((value for subject, name, value in rows if subject == term and name in _REPLACED), None)

    def ancestors(self, cls: Term) -> frozenset[Term]:
        """Return *cls* and all its superclasses."""
        return self._ancestors.get(cls) or frozenset((cls,))

    def is_a(self, cls: Term, ancestor: Term) -> bool:
        """Return whether every *cls* is an *ancestor*."""
        return ancestor in self.ancestors(cls)

    def fits(self, classes: frozenset[Term], wanted: frozenset[Term]) -> bool:
        """Return whether one of *classes* is one of *wanted* or a subclass of it."""
        return _fits(self, classes, wanted)

    def subclasses(self, cls: Term) -> frozenset[Term]:
        """Return *cls* and all its declared subclasses."""
        return frozenset(below for below in self.classes if self.is_a(below, cls)) | {cls}

    def family(self, cls: Term) -> Term | None:
        """Return the class directly below MemoryItem that *cls* belongs to, or None if it is no kind of memory."""
        kinds = [kind for kind in self.ancestors(cls) if kind != ITEM and self.is_a(kind, ITEM)]
        return min(kinds, key=lambda kind: (len(self.ancestors(kind)), kind), default=None)

    def nearest(self, term: Term) -> Term | None:
        """Return the declared term with the local name most similar to that of *term*, or None."""
        names = {local_name(known).casefold(): known for known in sorted(self.declared)}
        matches = nearest_names(local_name(term).casefold(), names)
        return names[matches[0]] if matches else None

    def misspelt(self, term: Term, among: Iterable[Term]) -> Term | None:
        """Return the one of *among* whose local name *term* misspells, or None."""
        names = {_letters(known): known for known in sorted(among) if known not in self.deprecated}
        match = names.get(_letters(term)) or names.get(misspelling_of(_letters(term), names) or "")
        return None if match == term else match

    @property
    def declared(self) -> frozenset[Term]:
        """Return every class, property and individual."""
        return self.classes | self.properties.keys() | self.individuals.keys()

    @property
    def subjects(self) -> frozenset[Term]:
        """Return all subjects of the ontology."""
        return _subjects(self)

    @property
    def rules(self) -> tuple[Triple, ...]:
        """Return the triples of the shapes, shipped and of the overlay."""
        return self._rules

    def by_reference(self) -> Schema:
        """Return the same schema with pyshacl as its validator."""
        return replace(self, _by_reference=True)

    @property
    def judge_name(self) -> str:
        """Return the name of the validator for writes: `compiled`, or `pyshacl`."""
        return "pyshacl" if self._by_reference else "compiled"

    def judge(
        self, triples: Iterable[Triple], focus: Iterable[Term] | None = None, *, in_check: bool = False
    ) -> list[Finding]:
        """Return the violations in *triples*, at the nodes of *focus* or, without it, at every targeted node.

        A node that should be validated but is targeted by no shape is a finding too. With *in_check* the severities for
        a whole memory apply, and rules for new intents only are left out; otherwise pyshacl confirms violations and
        words them. Raises QueryTimeout or TooLarge if shapes of an overlay take too long.
        """
        data, nodes = list(triples), None if focus is None else set(focus)
        judge = self._judge
        try:
            with self.bounded("judging by the shapes of this root", len(data)):
                data_entailed = data + self._entailed(data)
                if self._by_reference:
                    findings = judge.reference(data_entailed, nodes)
                else:
                    findings = judge.findings(data_entailed, nodes, confirm=not in_check)
        except (QueryTimeout, TooLarge) as error:
            if (shape := judge.interrupted) is None:
                raise
            detail = f"{error.detail}, at the shape {plain_value(shape)} ({self.shape_files.get(shape, 'shipped')})"
            raise type(error)(detail, hint=error.hint, code=error.code) from error
        findings += map(judge.pyshacl.no_shape_finding, self._unjudged(data, nodes))
        if self.shape_files:
            findings = [_in_words_of_its_shape(self, each) for each in findings]
        return sorted(judge.pyshacl.with_check_severities(findings) if in_check else findings, key=repr)

    def listed(self, shape: Term, path: str | None) -> list[Term]:
        """Return the values that *shape* lists by `sh:in` for the property *path*, empty without a list."""
        rows = grouped((subject, (name, value)) for subject, name, value in self.rules)

        def values(node: Term, name: str) -> list[Term]:
            return [value for each, value in rows.get(node, ()) if each == iri(name)]

        parts = reachable([shape], lambda node: values(node, SH + "property"))
        lists = [head for part in parts if path in values(part, SH + "path") for head in values(part, SH + "in")]
        nodes = reachable(lists, lambda node: values(node, RDF + "rest"))
        return sorted(value for node in nodes for value in values(node, RDF + "first"))

    def bounded(self, what: str, triples: int) -> AbstractContextManager[None]:
        """Return the context with a time limit for judging that number of triples, if there is an overlay."""
        return time_limited(what, triples) if "+" in self.version else nullcontext()

    @property
    def left_to_pyshacl(self) -> frozenset[Term]:
        """Return the shapes that are not compiled."""
        return self._judge.left

    @property
    def _judge(self) -> CompiledValidator:
        if not self._judges:
            from jidomem.schema.shacl_compiler import CompiledValidator  # a process that only reads judges nothing

            self._judges.append(CompiledValidator(self._rules))
        return self._judges[0]

    def _entailed(self, data: list[Triple]) -> list[Triple]:
        """Return the classes above those in *data*, and what the ontology states of the terms that *data* names."""
        individuals, stated, seen = self.individuals, _stated(self), set[Term]()
        entailed, rows = list[Triple](), [*data]
        for subject, predicate, value in rows:  # grows
            if predicate == TYPE:
                for cls in self._ancestors.get(value, ()):
                    entailed.append((subject, TYPE, cls))
            if (value in individuals or value in stated) and value not in seen:
                seen.add(value)
                for cls in individuals.get(value, ()):
                    for above in self._ancestors.get(cls) or (cls,):
                        entailed.append((value, TYPE, above))
                rows += stated.get(value, ())
                entailed += stated.get(value, ())
        return entailed

    def _unjudged(self, data: list[Triple], focus: set[Term] | None) -> list[Term]:
        """Return the nodes that are or look like memories and have no class targeted by a shape."""
        types: dict[Term, set[Term]] = {}
        for subject, predicate, value in data:
            if predicate == TYPE:
                types.setdefault(subject, set()).add(value)
        nodes = {subject for subject, _, _ in data} if focus is None else focus
        others = set[Term]()
        for node in nodes:
            for kind in types.get(node, ()):
                if kind == ITEM or ITEM in self._ancestors.get(kind, ()):
                    break
            else:
                others.add(node)
        of_items, memory, items = _of_items(self), f"<{BASE}memory/", set[Term]()
        for subject, predicate, _ in [triple for triple in data if triple[0] in others] if others else ():
            if predicate in of_items or (predicate != TYPE and subject.startswith(memory)):
                items.add(subject)
        missed = []
        for node in others:
            kinds = types.get(node, set())
            unknown = any(plain_value(kind).startswith(OURS) for kind in kinds) if focus is None else True
            if node in items or (unknown and not kinds & self.classes):
                missed.append(node)
        return missed


def _letters(term: Term) -> str:
    return _plain(local_name(term))


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


@lru_cache(maxsize=1024)
def _fits(schema: Schema, classes: frozenset[Term], wanted: frozenset[Term]) -> bool:
    return any(not wanted.isdisjoint(schema.ancestors(cls)) for cls in classes)


def _in_words_of_its_shape(schema: Schema, finding: Finding) -> Finding:
    """Return *finding* with the message of its own shape, if the validator made one up for a part without message."""
    messages, texts = _messages(schema)
    if finding.shape not in schema.shape_files or finding.message in texts or finding.shape not in messages:
        return finding
    return finding._replace(message=messages[finding.shape])


@lru_cache(maxsize=8)
def _messages(schema: Schema) -> tuple[Mapping[Term, str], frozenset[str]]:
    rows = [(shape, parse_literal(value).text) for shape, name, value in schema.rules if name == iri(SH + "message")]
    return dict(rows), frozenset(text for _, text in rows)


@lru_cache(maxsize=8)
def _stated(schema: Schema) -> Mapping[Term, list[Triple]]:
    """Return the triples of the ontology, by subject, with a property that the shapes name."""
    named = {value for _, _, value in schema.rules} - {TYPE}
    return grouped((row[0], row) for row in schema.triples if row[1] in named)


@lru_cache(maxsize=8)
def _subjects(schema: Schema) -> frozenset[Term]:
    return frozenset(subject for subject, _, _ in schema.triples)


@lru_cache(maxsize=8)
def _of_items(schema: Schema) -> frozenset[Term]:
    known = schema.properties.items()
    return frozenset(term for term, term_entry in known if any(schema.is_a(cls, ITEM) for cls in term_entry.domain))


@lru_cache(maxsize=1)
def _shipped() -> Schema:
    return _schema({path: _parse(path) for path in files.ontology_files()}, map(_parse, files.shape_files()))


def load(overlay: Sequence[Path] = (), *, by_reference: bool = False) -> Schema:
    """Return the shipped schema, extended by the terms and shapes of *overlay* folders.

    With *by_reference* pyshacl judges everything, and nothing is compiled. Raises `Failed` (invalid_config), with file
    and term, if an overlay redefines shipped terms, would run code or fetch documents, or has an invalid shape by the
    SHACL of SHACL; QueryTimeout or TooLarge if the check takes too long.
    """
    if overlay:
        with time_limited(f"reading the ontology and the shapes of {', '.join(map(str, overlay))}"):
            extended = _extended(overlay)
    else:
        extended = _shipped()
    return replace(extended, _by_reference=True) if by_reference else extended


def load_terms(overlay: Path) -> tuple[Schema, tuple[str, ...]]:
    """Return the shipped schema with the terms of *overlay* that can be used, and why others cannot; no shape is read.

    The rules of the guard need no shapes, so a faulty one must not turn it off.
    """
    terms: dict[Path, list[Triple]] = {}
    unusable: list[str] = []
    for path in sorted(overlay.glob("ontology/*.ttl")):
        try:
            terms[path] = [triple for triple in _parse(path) if find_violation(triple) is None]
        except (Failed, OSError) as error:
            unusable.append(f"{error}; its classes are unknown: jidomem ontology check")
    return extended_by(terms, {}) if terms else _shipped(), tuple(unusable)


def _extended(overlay: Sequence[Path]) -> Schema:
    terms = {path: _parse(path) for folder in overlay for path in sorted(folder.glob("ontology/*.ttl"))}
    rules = {path: _parse(path) for folder in overlay for path in sorted(folder.glob("shapes/*.ttl"))}
    for path, triples in (terms | rules).items():
        for subject, predicate, value in triples:
            if objection := find_violation((subject, predicate, value)):
                owner = named_owner(subject, triples)
                raise _unusable(f"{path}: {owner} {objection.text}", objection.hint)
    extended = extended_by(terms, rules)
    for path, triples in rules.items():
        try:
            violations = objections(extended._rules, {term for row in triples for term in (row[0], row[2])})
        except ValueError as error:  # raised by rdflib for a list without an end
            raise _unusable(f"{path}: the shapes cannot be used: {error}", "end the list with rdf:nil") from error
        for finding in violations:
            owner = named_owner(finding.focus, triples)
            detail = f"{path}: the shapes cannot be used: {owner} {finding.path or ''}: {finding.message}"
            raise _unusable(detail, "see https://www.w3.org/TR/shacl/#syntax-rules")
    return extended


def _unusable(detail: str, hint: str) -> Failed:
    return Failed(detail, hint=f"{hint}; all faults, with file and line: jidomem ontology check", code="invalid_config")


def extended_by(terms: Mapping[Path, list[Triple]], rules: Mapping[Path, list[Triple]]) -> Schema:
    """Return the shipped schema with the terms and shapes of overlay files, without checks."""
    shipped = {path: _parse(path) for path in files.ontology_files()}
    extended = _schema({**shipped, **terms}, [*map(_parse, files.shape_files()), *rules.values()])
    own = {subject for triples in terms.values() for subject, *kind in triples if kind in _DECLARING}
    spaces = {plain_value(term).removesuffix(local_name(term)) for term in own if is_iri(term)}
    mark = digest(
        {
            "terms": (triple for path, rows in terms.items() if path.name != "alignment.ttl" for triple in rows),
            "alignment": (triple for path, rows in terms.items() if path.name == "alignment.ttl" for triple in rows),
            "rules": (triple for rows in rules.values() for triple in rows),
        }
    )
    version = f"{extended.version}+{mark}" if terms or rules else extended.version
    prefixes = _prefixes((*terms, *rules))
    shape_files = {subject: f"{path.parent.name}/{path.name}" for path, triples in rules.items()
                   for subject, _, _ in triples if is_iri(subject)}  # fmt: skip
    return replace(
        extended,
        namespaces=extended.namespaces | spaces,
        version=version,
        prefixes={name: space for name, space in prefixes.items() if space in spaces},
        foreign_prefixes={name: space for name, space in prefixes.items() if space not in spaces},
        shape_files=shape_files,
        sequence_steps=_sequence_steps([triple for rows in rules.values() for triple in rows]),
    )


def _sequence_steps(rules: Collection[Triple]) -> frozenset[Term]:
    rest = {subject: value for subject, name, value in rules if name == iri(RDF + "rest")}
    paths = [value for _, name, value in rules if name == iri(SH + "path") and value in rest]
    lists = reachable(paths, lambda node: [rest[node]] if node in rest else ())
    return frozenset(value for node, name, value in rules if name == iri(RDF + "first") and node in lists)


def _prefixes(paths: Iterable[Path]) -> dict[str, str]:
    """Return the prefixes in the files *paths*; one given to several namespaces is left out."""
    texts = [path.read_text("utf-8", "replace") for path in paths if path.is_file()]
    found = grouped(pair for text in texts for pair in _PREFIX.findall(text))
    names = {name: {*given} for name, given in found.items() if name not in PREFIXES}
    return {name: given.pop() for name, given in names.items() if len(given) == 1}


def objections(rules: Iterable[Triple], focus: Iterable[Term] | None = None) -> list[Finding]:
    """Return the findings of the SHACL of SHACL, the W3C version in pyshacl, on shapes."""
    return [*_objections(tuple(rules), None if focus is None else frozenset(focus))]


@lru_cache(maxsize=8)  # the shapes of a root seldom change between two reads of a process
def _objections(rules: tuple[Triple, ...], focus: frozenset[Term] | None) -> tuple[Finding, ...]:
    import pyshacl  # takes half a second, and is needed only for overlays

    shacl_shacl = Path(pyshacl.__file__).parent / "assets" / "shacl-shacl.ttl"
    with ONE_AT_A_TIME:
        return tuple(sorted(PyshaclValidator(_parse(shacl_shacl)).findings(rules, focus), key=repr))


def shacl_terms() -> frozenset[str]:
    """Return the names of the SHACL vocabulary, from pyshacl."""
    import pyshacl  # as above

    shacl_triples = _parse(Path(pyshacl.__file__).parent / "assets" / "shacl.ttl")
    return frozenset(local_name(subject) for subject, _, _ in shacl_triples if subject.startswith(f"<{SH}"))


def _schema(files: Mapping[Path, list[Triple]], rules: Iterable[list[Triple]]) -> Schema:
    aligned = [triple for path, triples in files.items() if path.name == "alignment.ttl" for triple in triples]
    triples = tuple(triple for path, rows in files.items() if path.name != "alignment.ttl" for triple in rows)
    of: dict[Term, dict[Term, set[Term]]] = {}
    for subject, predicate, value in triples:
        of.setdefault(subject, {}).setdefault(predicate, set()).add(value)
    types = {subject: fields.get(TYPE, set()) for subject, fields in of.items()}
    classes = frozenset(subject for subject, kinds in types.items() if kinds & _CLASSES)
    return Schema(
        version=parse_literal(next(iter(of[jido("JidoMemoryOntology")][iri(OWL + "versionInfo")]))).text,
        triples=triples,
        classes=classes,
        properties={s: _property(s, of[s]) for s, kinds in types.items() if kinds & _PROPERTIES.keys()},
        individuals={s: frozenset(kinds & classes) for s, kinds in types.items() if kinds & classes},
        deprecated=frozenset(s for s, p, o in triples if p == iri(OWL + "deprecated") and plain_value(o) == "true"),
        alignment={s: o for s, p, o in aligned if p in _ALIGNS},
        _ancestors={cls: _above(cls, of) for cls in classes},
        _rules=tuple(triple for rows in rules for triple in rows),
    )


def _property(term: Term, fields: Mapping[Term, set[Term]]) -> Property:
    return Property(
        iri=term,
        is_object=next(_PROPERTIES[kind] for kind in sorted(fields[TYPE]) if kind in _PROPERTIES),
        domain=frozenset(fields.get(iri(RDFS + "domain"), ())),
        range=frozenset(fields.get(iri(RDFS + "range"), ())),
        functional=iri(OWL + "FunctionalProperty") in fields[TYPE],
    )


def _above(cls: Term, of: Mapping[Term, Mapping[Term, set[Term]]]) -> frozenset[Term]:
    return frozenset(reachable([cls], lambda term: of.get(term, {}).get(_SUBCLASS, ())))


def _parse(path: Path) -> list[Triple]:
    try:
        return [*_triples(path, path.read_bytes().removeprefix(BOM_UTF8))]
    except SyntaxError as error:
        raise _unusable(
            f"{path}:{error.lineno}: {short_parse_error(error)}", "correct the Turtle in that line"
        ) from error


@lru_cache(maxsize=64)  # the shipped files, and those of a few roots
def _triples(path: Path, data: bytes) -> tuple[Triple, ...]:
    """Return the triples of *data*, whose blank nodes are those of *path* alone."""
    check_turtle(data)
    quads = ox.parse(data, format=ox.RdfFormat.TURTLE, rename_blank_nodes=True)
    return tuple((str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads)


Config = TypeVar("Config")


class RuleSource(Protocol):
    """The location of the files of a root: its configuration, terms, rules and queries."""

    def rules(self) -> object:
        """Return the state of the files, which differs after each change, as far as known on this machine."""

    def fetch_rules(self) -> object:
        """Return the state after updating the local files."""


class ConfigWatcher(Generic[Config]):
    """The configuration of a root, loaded again when its files change; safe for threads.

    An unusable configuration is a `problem`: writes are refused with it, and reads use the previous configuration.
    """

    def __init__(self, source: RuleSource, load: Callable[[], Config], apply: Callable[[Config], object]) -> None:
        """Watch the files of *source*, which *load* reads; *apply* is called with each later configuration."""
        self.problem: JidomemError | None = None
        self._source, self._load, self._apply = source, load, apply
        self._lock = RLock()
        self._state = source.fetch_rules()
        self.first = load()

    def reload_if_changed(self) -> None:
        """Apply the changes since the last call; raises the `problem` if they cannot be used."""
        if self._source.rules() != self._state:
            with self._lock:
                self._load_changes()
        if self.problem is not None:
            raise self.problem

    def reload_or_keep(self) -> None:
        """Apply the changes since the last call, if they can be used."""
        with suppress(JidomemError):
            self.reload_if_changed()

    def _load_changes(self) -> None:
        while (state := self._source.fetch_rules()) != self._state:  # repeated if they change while they are read
            self._state, self.problem = state, None
            try:
                self._apply(self._load())
            except JidomemError as error:
                self.problem = error


class EffectiveRules:
    """The schema and the policy in effect; `number` counts their changes."""

    def __init__(self, schema: Schema, policy: Policy) -> None:
        self.schema = schema
        self.policy = policy
        self.number = 0
        #: Updates schema and policy if the root changed; raises Failed if the new ones cannot be used.
        self.reload_if_changed: Callable[[], None] = lambda: None

    def change(self, schema: Schema, policy: Policy) -> None:
        """Set schema and policy."""
        self.schema, self.policy = schema, policy
        self.number += 1
