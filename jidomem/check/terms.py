"""The terms of the ontology: their meaning, and their misuse.

`entry` describes a term with the shapes that concern it. `check_terms`, `undeclared` and `shapes` check the terms and
shapes that a project adds; `terms_used` and `literals` check the use of terms in data. Pure over triples and a schema,
except for `entry`, which reads the files of the ontology for the line of a declaration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jidomem.base import files
from jidomem.base.containers import grouped, reachable
from jidomem.check.report import (
    COMPILED,
    CURRENT,
    DECLARED,
    EXPLAINED,
    READ,
    REPAIRS,
    SATISFIABLE,
    SHACL,
    STORABLE_KIND,
    TARGETED,
    TREE,
    USABLE,
    WRITTEN,
    UnplacedFinding,
)
from jidomem.check.rules import targets, untargeted_shapes
from jidomem.check.sources import FileSource, TripleSource, by_subject, line_in
from jidomem.errors import InvalidRequest, NotFound, nearest_names, proposing
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import (
    CLASS_OF_TYPE,
    CONVERSATION,
    LABEL,
    PREFIXES,
    RDF,
    RDFS,
    SHAPE,
    TYPE,
    TYPE_ALIASES,
    XSD,
    jido,
    local_name,
    type_of,
)
from jidomem.schema.ontology import ITEM, OURS, OWL, Schema, objections, shacl_terms
from jidomem.schema.shacl import SH, Severity, severity_of
from jidomem.schema.shacl_compiler import COVERED
from jidomem.write.canonical import is_absolute, is_reserved, written
from jidomem.write.normalize import is_written

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_PREFIXES = {
    **PREFIXES,
    "conv": CONVERSATION,
    "shape": SHAPE,
    "sh": SH,
    "skos": _SKOS,
    "owl": "http://www.w3.org/2002/07/owl#",
}
_SHAPE_PROPERTY, _SHAPE_PATH = iri(SH + "property"), iri(SH + "path")
_TARGET_CLASS, _MIN_COUNT, _MAX_COUNT = (iri(SH + name) for name in ("targetClass", "minCount", "maxCount"))
_MESSAGE, _SEVERITY, _SUBCLASS_OF = iri(SH + "message"), iri(SH + "severity"), iri(RDFS + "subClassOf")


@dataclass(frozen=True, slots=True)
class TermRule:
    """A shape about a term: its IRI, message, severity and target."""

    iri: str
    message: str
    severity: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class TermEntry:
    """One term; lists are of IRIs, sorted. `path` and `line` are the place of its declaration."""

    iri: str
    kind: str
    label: str = ""
    definition: str = ""
    example: str = ""
    note: str = ""
    deprecated: bool = False
    functional: bool = False
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    individuals: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    rules: tuple[TermRule, ...] = ()
    path: str | None = None
    line: int | None = None
    replaced_by: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON values."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "rules"}
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
        rules = [{name: getattr(rule, name) for name in TermRule.__dataclass_fields__} for rule in self.rules]
        return {"name": short(iri(self.iri)), **fields, "rules": rules}


def short(term: Term) -> str:
    """Return a term with its prefix.

    >>> short(jido("Fact"))
    'jido:Fact'
    """
    text = plain_value(term)
    for prefix, space in _PREFIXES.items():
        if text.startswith(space) and "/" not in text[len(space) :] and text != space:
            return f"{prefix}:{text[len(space) :]}"
    return text


def find(schema: Schema, name: str) -> Term:
    """Return the term named *name*: an IRI, `jido:topic`, `Decision`, or the `type` of an intent.

    Raises NotFound, with the nearest names, for an unknown name, and InvalidRequest for an ambiguous one.
    """
    known = schema.declared | {subject for subject, _, _ in schema.rules if is_iri(subject)}
    prefix, _, local = name.partition(":")
    written = schema.expand(name) or (name if prefix not in _PREFIXES else _PREFIXES[prefix] + local)
    type_ = TYPE_ALIASES.get(name, name)
    for term in (f"<{written.strip('<>')}>", jido(name), jido(CLASS_OF_TYPE.get(type_, name))):
        if term in known:
            return term
    matches = sorted(term for term in known if local_name(term) == name)
    if len(matches) == 1:
        return matches[0]
    if matches:
        hint = f"give its IRI: {' or '.join(map(plain_value, matches))}"
        raise InvalidRequest(f"{len(matches)} terms are called {name!r}", hint=hint)
    if (kind := schema.kind_named(name)) is not None:
        return kind
    names = {local_name(term).casefold(): term for term in sorted(known, reverse=True)}
    near = [short(names[each]) for each in nearest_names(local_name(local or name).casefold(), names, 3)]
    hint = f"did you mean {' or '.join(near)}?" if near else "list them with: jidomem ontology show"
    raise NotFound(f"there is no term {name!r:.200}", hint=hint)


def entry(schema: Schema, term: Term, overlay: Sequence[Path] = ()) -> TermEntry:
    """Return the description of *term*; *overlay* are the folders of the project's own terms and shapes."""
    rows = [row for row in (*schema.triples, *schema.rules) if row[0] == term]
    declared = schema.properties.get(term)
    path, line = _place(term, overlay)
    classes = schema.individuals.get(term, frozenset())
    return TermEntry(
        iri=plain_value(term),
        kind=_kind(schema, term),
        label=_text(rows, LABEL),
        definition=_definition(rows),
        example=_text(rows, iri(_SKOS + "example")),
        note=_text(rows, iri(_SKOS + "scopeNote")),
        deprecated=term in schema.deprecated,
        replaced_by=plain_value(instead) if (instead := schema.replacement(term)) else None,
        functional=bool(declared and declared.functional),
        above=_listed(value for _, predicate, value in rows if predicate == _SUBCLASS_OF and is_iri(value)),
        below=_listed(s for s, p, o in schema.triples if (p, o) == (_SUBCLASS_OF, term)),
        domain=_listed(declared.domain if declared else ()),
        range=_listed(declared.range if declared else ()),
        classes=_listed(classes),
        individuals=_listed(each for each, of in schema.individuals.items() if term in of),
        properties=_listed(each for each, of in schema.properties.items() if term in of.domain),
        rules=tuple(sorted(_rules(schema, term), key=lambda rule: (rule.target or "", rule.iri, rule.message))),
        path=path,
        line=line,
    )


def summaries(schema: Schema) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, IRI and definition, else label, of each declared term, by one pass over the ontology."""
    rows = grouped((row[0], row) for row in (*schema.triples, *schema.rules))
    for term in glossary_terms(schema):
        about = rows.get(term, [])
        yield _kind(schema, term), plain_value(term), _definition(about) or _text(about, LABEL)


def definitions(schema: Schema) -> dict[Term, str]:
    """Return the definition of each term, by one pass over the ontology."""
    defines = iri(_SKOS + "definition")
    return {term: parse_literal(text).text for term, predicate, text in schema.triples if predicate == defines}


def labels(schema: Schema) -> dict[Term, str]:
    """Return the label of each term, in English if there is one."""
    rows = [(term, text) for term, predicate, text in schema.triples if predicate == LABEL]
    in_order = sorted(rows, key=lambda row: (row[1].endswith("@en"), row[1]))
    return {term: parse_literal(text).text for term, text in in_order}


def glossary_terms(schema: Schema) -> list[Term]:
    """Return the declared terms: classes, properties, individuals, each sorted."""
    others = schema.individuals.keys() - schema.classes - schema.properties.keys()
    return [*sorted(schema.classes), *sorted(schema.properties), *sorted(others)]


def tree(schema: Schema) -> Iterator[tuple[int, Term]]:
    """Yield every class after its superclass, with its depth; a class with two superclasses is yielded twice."""
    below = grouped(
        (above, cls)
        for cls, predicate, above in sorted(schema.triples)
        if predicate == _SUBCLASS_OF and cls in schema.classes and above in schema.classes
    )
    seen = set[Term]()

    def walk(cls: Term, path: tuple[Term, ...]) -> Iterator[tuple[int, Term]]:
        seen.add(cls)
        yield len(path), cls
        for each in below.get(cls, ()):
            if each not in (*path, cls):
                yield from walk(each, (*path, cls))

    placed = {each for classes in below.values() for each in classes}
    for top in (*sorted(schema.classes - placed), *sorted(schema.classes & placed)):
        if top not in seen:  # a cycle has no top
            yield from walk(top, ())


def described(schema: Schema, chosen: Iterable[Term]) -> list[Triple]:
    """Return the triples about *chosen* terms, with those of their blank nodes."""
    rows = [*schema.triples, *schema.rules]
    parts = grouped((subject, value) for subject, _, value in rows if value.startswith("_:"))
    nodes = reachable(chosen, lambda node: parts.get(node, ()))
    return [row for row in rows if row[0] in nodes]


def _kind(schema: Schema, term: Term) -> str:
    kinds = {"class": schema.classes, "property": schema.properties, "individual": schema.individuals}
    return next((name for name, terms in kinds.items() if term in terms), "shape")


def _rules(schema: Schema, term: Term) -> Iterator[TermRule]:
    """Yield the rules about a class or its superclasses, those about a property, or those of a shape itself."""
    above = schema.ancestors(term) if term in schema.classes else frozenset((term,))
    properties = grouped((shape, (predicate, value)) for shape, predicate, value in schema.rules)
    grades = {
        shape: severity_of(plain_value(value)) for shape, predicate, value in schema.rules if predicate == _SEVERITY
    }
    for shape, _, target in targets(schema.rules):
        for part in (shape, *(value for predicate, value in properties[shape] if predicate == _SHAPE_PROPERTY)):
            rows = properties.get(part, ())
            if target in above or term in (shape, part) or (_SHAPE_PATH, term) in rows:
                rule = part if is_iri(part) else shape
                grade = grades.get(part, grades.get(shape, "violation"))
                yield from (
                    TermRule(
                        plain_value(rule), plain_value(value), grade, plain_value(target) if is_iri(target) else None
                    )
                    for predicate, value in rows
                    if predicate == _MESSAGE
                )


def _place(term: Term, overlay: Sequence[Path]) -> tuple[str | None, int | None]:
    own = [
        path for folder in overlay for name in ("ontology", "shapes") for path in sorted(folder.glob(f"{name}/*.ttl"))
    ]
    for path in (*files.ontology_files(), *files.shape_files(), *own):
        data = path.read_bytes()
        if local_name(term).encode() in data and term in (lines := _lines(str(path), data)):
            return str(path), lines[term]
    return None, None


@lru_cache(maxsize=16)  # a page of the ontology asks for each term in turn
def _lines(path: str, data: bytes) -> dict[Term, int | None]:
    source = FileSource(path, data)
    by = by_subject(source.statements_with_lines)
    declared = dict.fromkeys(subject for subject, predicate, _ in source.triples if predicate == TYPE)
    return {term: line_in(by, UnplacedFinding(term, "", "info", "", TYPE)) for term in declared}


def _text(rows: Iterable[Triple], predicate: Term) -> str:
    texts = sorted(
        (value for _, verb, value in rows if verb == predicate), key=lambda text: (not text.endswith("@en"), text)
    )
    return plain_value(texts[0]) if texts else ""


def _definition(rows: Collection[Triple]) -> str:
    return _text(rows, iri(_SKOS + "definition")) or _text(rows, iri(RDFS + "comment"))


def _listed(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(sorted(plain_value(term) for term in terms if is_iri(term)))


_SUBCLASS, _DOMAIN, _RANGE = (iri(RDFS + name) for name in ("subClassOf", "domain", "range"))
_DEFINITIONS = {iri("http://www.w3.org/2004/02/skos/core#definition"), iri(RDFS + "comment")}
_OF_A_CLASS = {_SUBCLASS, _DOMAIN, iri(SH + "class")}
_TARGETS = {iri(SH + name) for name in ("targetClass", "targetSubjectsOf", "targetObjectsOf")}
_STANDARD = tuple(f"<{space}" for space in (RDF, RDFS, OWL, XSD))
#: Predicates of SHACL that are not constraints.
_BESIDE = {"path", "property", "name", "description", "order", "group", "severity", "deactivated", "node"}


def check_terms(own: Sequence[Triple], schema: Schema) -> list[UnplacedFinding]:
    """Return the problems of the terms that *own* declares."""
    predicates: dict[Term, set[Term]] = {}
    for subject, predicate, _ in own:
        predicates.setdefault(subject, set()).add(predicate)
    findings = [_misplaced(row) for row in own if is_shacl(row) and row[1] != TYPE]
    for term in sorted(predicates.keys() & schema.declared):
        missing = [] if LABEL in predicates[term] else ["a label (rdfs:label)"]
        missing += [] if predicates[term] & _DEFINITIONS else ["a definition (skos:definition or rdfs:comment)"]
        if missing:
            text = f"{plain_value(term)} has no {' and no '.join(each[2:] for each in missing)}: add it"
            findings.append(UnplacedFinding(term, EXPLAINED, "warning", text, TYPE))
        if not is_absolute(plain_value(term)):
            name = plain_value(term)
            text = f"no memory may use {name}, which would be written as {written(name)}: use an IRI of your own"
            findings.append(UnplacedFinding(term, USABLE, "violation", text, TYPE))
        elif is_reserved(plain_value(term)):
            text = f"{plain_value(term)} is in a namespace of jidomem, and no memory may use it: use one of your own"
            findings.append(UnplacedFinding(term, USABLE, "violation", text, TYPE))
        if term in schema.classes:
            findings += _class(term, schema)
        if term in schema.properties:
            findings += _property(term, schema)
    return findings


def is_shacl(triple: Triple) -> bool:
    """Return whether a triple uses a term of SHACL."""
    return triple[1].startswith(f"<{SH}") or (triple[1] == TYPE and triple[2].startswith(f"<{SH}"))


def _class(cls: Term, schema: Schema) -> Iterator[UnplacedFinding]:
    above = [value for subject, predicate, value in schema.triples if (subject, predicate) == (cls, _SUBCLASS)]
    for parent in above:
        if is_iri(parent) and cls in schema.ancestors(parent):
            text = (
                f"{plain_value(cls)} is a subclass of itself through {plain_value(parent)}: remove one rdfs:subClassOf"
            )
            yield UnplacedFinding(cls, TREE, "violation", text, _SUBCLASS, parent)
    if schema.is_a(cls, ITEM):
        types = {kind: len(schema.ancestors(each)) for each in schema.ancestors(cls)
                 if (kind := type_of(each)) and each in schema.classes}  # fmt: skip
        triple = f'"extra_triples": [["rdf:type", "{plain_value(cls)}"]]'
        text = f"an intent of any type keeps one: {triple}"
        if types:
            closest = max(types, key=lambda each: types[each])
            text = f"a memory of it, of the type {closest!r} too: jidomem remember TEXT --type {local_name(cls)}"
        yield UnplacedFinding(cls, STORABLE_KIND, "info", text, TYPE)


#: Classes of literals that are no datatype of XML Schema.
_LITERAL_CLASSES = frozenset((iri(f"{vocab.RDF}langString"), iri(f"{vocab.RDFS}Literal")))


def _property(term: Term, schema: Schema) -> Iterator[UnplacedFinding]:
    declared = schema.properties[term]
    for value in sorted(declared.range):
        takes_values = value.startswith(f"<{XSD}")
        if declared.is_object is not None and is_iri(value) and declared.is_object == takes_values:
            kind = "owl:DatatypeProperty" if takes_values else "owl:ObjectProperty"
            pair = f"{plain_value(term)} can have no value in {plain_value(value)}"
            way = f"make it an {kind}, or give it another range"
            if value in _LITERAL_CLASSES:
                way = "leave the range out, and it takes any text, also with a language"
            text = f"{pair}: {way}"
            yield UnplacedFinding(term, USABLE, "violation", text, _RANGE, value)


def described_terms(schema: Schema) -> set[Term]:
    """Return the terms that the ontology, the shapes or the alignment of *schema* describe."""
    return {row[0] for row in (*schema.triples, *schema.rules)} | schema.alignment.keys()


def undeclared(own: Sequence[Triple], schema: Schema) -> list[UnplacedFinding]:
    """Return each use of an undeclared term in an overlay; a foreign term as a class is a warning."""
    spaces = tuple(f"<{space}" for space in schema.namespaces)
    known = described_terms(schema)
    findings = []
    for subject, predicate, value in dict.fromkeys(own):
        if predicate.startswith(spaces) and predicate not in schema.properties:
            findings.append(_unknown((subject, predicate, value), predicate, "property", schema))
        if predicate in _TARGETS or not is_iri(value) or value.startswith(_STANDARD):
            continue
        as_class = predicate in _OF_A_CLASS or predicate == _RANGE
        if value.startswith(spaces) and (value not in known or (as_class and value not in schema.classes)):
            findings.append(_unknown((subject, predicate, value), value, "class" if as_class else "term", schema))
        elif as_class and value not in schema.classes:
            text = f"{plain_value(value)} is a class of a foreign vocabulary: its instances are unknown here"
            findings.append(UnplacedFinding(subject, DECLARED, "warning", text, predicate, value))
    return findings


def _unknown(triple: Triple, term: Term, word: str, schema: Schema) -> UnplacedFinding:
    return UnplacedFinding(triple[0], DECLARED, "violation", not_declared(term, word, schema), *triple[1:])


def not_declared(term: Term, word: str, schema: Schema) -> str:
    """Return the message on an undeclared *term* that is used as a *word*, with the nearest declared one."""
    near = schema.nearest(term)
    meant = f"; did you mean {plain_value(near)}?" if near and near != term else ""
    return f"{plain_value(term)} is not a declared {word}{meant}"


def shapes(own: Sequence[Triple], schema: Schema) -> list[UnplacedFinding]:
    """Return the problems of the shapes: of their form by the SHACL of SHACL, their targets, and their messages."""
    if not own:
        return []
    nodes = {term for row in own for term in (row[0], row[2])}
    try:
        broken = objections(schema.rules, nodes)
    except ValueError as error:  # raised by rdflib for a list without an end
        return [
            UnplacedFinding(
                own[0][0], SHACL, "violation", f"the shapes cannot be used: {error}: end the list with rdf:nil"
            )
        ]
    findings = [
        UnplacedFinding(
            each.focus,
            SHACL,
            "violation",
            f"this is not a valid shape: {each.path or ''}: {each.message}",
            _iri(each.path),
        )
        for each in broken
    ]
    findings += [each for each in untargeted_shapes(schema.rules, schema) if each.item in nodes]
    return [
        *findings,
        *_unheard(own),
        *_ignored_severities(own),
        *_unsatisfiable({subject for subject, _, _ in own}, schema),
        *_spoken(own, schema.left_to_pyshacl if not broken else frozenset()),
    ]


_CHECK_SEVERITY = jido("checkSeverity")
_SEVERITIES = tuple(iri(f"{SH}{name}") for name in ("Violation", "Warning", "Info"))


def _unheard(own: Sequence[Triple]) -> Iterator[UnplacedFinding]:
    """Yield each use of a term that SHACL does not have: validators ignore it silently."""
    known = shacl_terms()
    for triple in own:
        for term in (triple[1], triple[2]):
            if term.startswith(f"<{SH}") and (name := local_name(term)) not in known:
                near = nearest_names(name, known)
                meant = f": did you mean sh:{near[0]}?" if near else ": see https://www.w3.org/TR/shacl/"
                yield UnplacedFinding(
                    triple[0], SHACL, "violation", f"sh:{name} is not a term of SHACL{meant}", *triple[1:]
                )


def _ignored_severities(own: Sequence[Triple]) -> Iterator[UnplacedFinding]:
    """Yield each jido:checkSeverity that counts nowhere: on a shape without a name, or with another value."""
    for shape, name, value in own:
        if name != _CHECK_SEVERITY:
            continue
        if value not in _SEVERITIES:
            text = f"jido:checkSeverity is not {short(value)}: give {', '.join(map(short, _SEVERITIES))}"
        elif shape.startswith("_:"):
            text = "jido:checkSeverity is ignored on a shape without a name: name it, or move it to the named one"
        else:
            continue
        yield UnplacedFinding(shape, SHACL, "violation", text, name, value)


class _Count(NamedTuple):
    """The least and the most values of a property that one part of a shape asks for."""

    shape: Term
    part: Term
    path: Term
    least: int
    most: int | None


def _unsatisfiable(own: Collection[Term], schema: Schema) -> Iterator[UnplacedFinding]:
    """Yield the parts of own shapes that ask for more values of a property than another part for the class allows."""
    by_class = grouped((target, shape) for shape, kind, target in targets(schema.rules) if kind == _TARGET_CLASS)
    rows = grouped((subject, (predicate, value)) for subject, predicate, value in schema.rules)
    seen = set[tuple[Term, Term]]()
    for cls in sorted(by_class):
        shapes_of_class = [shape for above in sorted(schema.ancestors(cls)) for shape in by_class.get(above, ())]
        counts = [count for shape in dict.fromkeys(shapes_of_class) for count in _counts(shape, rows)]
        for one in counts:
            for other in counts:
                is_at_odds = one.path == other.path and other.most is not None and one.least > other.most
                if is_at_odds and not {one.part, other.part}.isdisjoint(own) and (one.part, other.part) not in seen:
                    seen.add((one.part, other.part))
                    where = "here" if one.part == other.part else f"in {_shape_name(other)}"
                    text = (
                        f"no {local_name(cls)} can have {one.least} or more values of {short(one.path)} (sh:minCount in"
                        f" {_shape_name(one)}) and {other.most} or fewer (sh:maxCount {where}): change one of the two"
                    )
                    node = one.part if one.part in own else other.part
                    yield UnplacedFinding(node, SATISFIABLE, "warning", text, iri(SH + "path"))


def _counts(shape: Term, rows: Mapping[Term, list[tuple[Term, Term]]]) -> Iterator[_Count]:
    """Yield the counts of the parts of *shape*, and of itself if it has a path."""
    for part in (shape, *(value for name, value in rows.get(shape, ()) if name == _SHAPE_PROPERTY)):
        values = dict(rows.get(part, ()))
        path, least, most = (values.get(name) for name in (_SHAPE_PATH, _MIN_COUNT, _MAX_COUNT))
        if path is not None and is_iri(path) and (least or most):
            yield _Count(shape, part, path, _whole(least) or 0, _whole(most))


def _whole(value: Term | None) -> int | None:
    text = parse_literal(value).text if value is not None and value.startswith('"') else ""
    return int(text) if text.isdecimal() else None


def _shape_name(count: _Count) -> str:
    return short(count.part if is_iri(count.part) else count.shape)


def _spoken(own: Sequence[Triple], left: frozenset[Term]) -> Iterator[UnplacedFinding]:
    """Yield the missing parts of each shape, and the shapes *left* to pyshacl."""
    names: dict[Term, set[str]] = {}
    pointed = {value for _, _, value in own}
    parts = {value: subject for subject, predicate, value in own if predicate == _SHAPE_PROPERTY}
    for subject, predicate, _ in own:
        if predicate.startswith(f"<{SH}"):
            names.setdefault(subject, set()).add(local_name(predicate))
    for node, words in names.items():
        aims = {word for word in words if word.startswith("target")}
        is_said = "message" in words or "message" in names.get(parts.get(node, ""), ())
        if words - _BESIDE - aims and not is_said and (aims or node in parts):
            text = 'say what to do in sh:message, as in "A recipe says for how many: give it my:serves."'
            yield UnplacedFinding(node, REPAIRS, "warning", text, iri(SH + "path") if "path" in words else TYPE)
        if is_iri(node) and node not in pointed and not aims:
            text = "nothing refers to this shape and it has no target: give it sh:targetClass, or remove it"
            yield UnplacedFinding(node, TARGETED, "violation", text, TYPE)
        if node in left:
            used = words.union(*(names.get(part, ()) for part, shape in parts.items() if shape == node))
            others = sorted(used - _BESIDE - {*COVERED, "message", "targetClass", "targetSubjectsOf"})
            what = " and ".join(f"sh:{word}" for word in others) or "its form"
            text = f"judged by pyshacl, which is as right and slower: {what} is not compiled"
            yield UnplacedFinding(node, COMPILED, "info", text, TYPE)


def _iri(path: Term | str | None) -> Term | None:
    return path if path is not None and is_iri(path) else None


def _misplaced(triple: Triple) -> UnplacedFinding:
    text = f"sh:{local_name(triple[1])} in ontology/ has no effect: move the shape to a file in shapes/"
    return UnplacedFinding(triple[0], READ, "warning", text, triple[1], triple[2])


#: The namespaces that any memory may use: those of RDF and of the journal format.
_ANYWHERE = tuple(f"<{space}" for space in (vocab.RDF, vocab.RDFS, vocab.PROV, "http://www.w3.org/2002/07/owl#"))
_WRITTEN_SO = {
    "dateTime": "2026-01-31T08:00:00Z",
    "date": "2026-01-31",
    "boolean": "true",
    "decimal": "0.85",
    "integer": "7",
}


def terms_used(source: TripleSource, schema: Schema, *, strict: bool = False) -> list[UnplacedFinding]:
    """Return each use of an undeclared or deprecated term; of a foreign term only the first use, unless *strict*."""
    spaces = tuple(f"<{space}" for space in schema.namespaces)
    doubtful: dict[tuple[Term, str], str] = {}
    known = {"class": schema.classes, "property": schema.properties.keys(), "value": {s for s, _, _ in schema.triples}}
    for term, role in _used(source, spaces):
        if term in schema.deprecated:
            doubtful[term, role] = "deprecated"
        elif term not in known[role]:
            doubtful[term, role] = "undeclared" if term.startswith(spaces) or strict else "foreign"
    if not doubtful:
        return []
    findings: list[UnplacedFinding] = []
    for triple in sorted(source.triples):
        for term, role in _roles(triple, spaces):
            how = doubtful.get((term, role))
            if how == "foreign":
                del doubtful[term, role]
            if how is not None:
                findings.append(_term_finding(triple, term, role, how, schema))
    return findings


def _used(source: TripleSource, spaces: tuple[str, ...]) -> set[tuple[Term, str]]:
    """Return the used terms, each with its role."""
    used = {(predicate, "property") for predicate in source.by_property if not predicate.startswith(_ANYWHERE)}
    used |= {(cls, "class") for kinds in source.types.values() for cls in kinds if not cls.startswith(_ANYWHERE)}
    classes = {cls for kinds in source.types.values() for cls in kinds}
    values = {value for value in source.objects - classes if value.startswith(spaces)}
    return used | {(value, "value") for value in values - source.types.keys()}


def _roles(triple: Triple, spaces: tuple[str, ...]) -> Iterator[tuple[Term, str]]:
    _, predicate, value = triple
    if predicate == TYPE:
        yield value, "class"
        return
    yield predicate, "property"
    if value.startswith(spaces):
        yield value, "value"


def _term_finding(triple: Triple, term: Term, role: str, how: str, schema: Schema) -> UnplacedFinding:
    subject, predicate, value = triple
    if how == "deprecated":
        instead = schema.replacement(term)
        text = f"{plain_value(term)} is deprecated"
        if instead is not None:
            text = ": ".join((text, f"use {plain_value(instead)}", *_replacing(triple, role, instead, schema)))
        return UnplacedFinding(subject, CURRENT, "warning", text, predicate, value)
    if how == "foreign":
        text = (
            f"{plain_value(term)} is a {role} of a foreign vocabulary: kept, not judged (said once, for its first use)"
        )
        return UnplacedFinding(subject, DECLARED, "info", text, predicate, value)
    near = schema.nearest(term)
    text = f"{plain_value(term)} is not a declared {role}" + (
        " ".join((f"; did you mean {plain_value(near)}?", *_replacing(triple, role, near, schema)))
        if near
        else f"; {proposing(plain_value(term))}"
    )
    severity: Severity = "violation"
    return UnplacedFinding(subject, DECLARED, severity, text, predicate, value)


def _replacing(triple: Triple, role: str, new: Term, schema: Schema) -> list[str]:
    """Return the command that replaces a term of a memory by *new*, none for other nodes and shipped terms."""
    subject, predicate, _ = triple
    if (
        not subject.startswith(f"<{vocab.BASE}memory/")
        or "/alternatives/" in subject
        or plain_value(new).startswith(OURS)
    ):
        return []
    name = schema.compact(new)
    changes = {
        "class": f"--set type={local_name(new)}",
        "property": f"--set {name}=VALUE --set {schema.compact(predicate)}=",
        "value": f"--set {schema.compact(predicate)}={name}",
    }
    return [f"jidomem edit {vocab.short_id(plain_value(subject))} {changes[role]} --reason WHY"]


def literals(source: TripleSource) -> list[UnplacedFinding]:
    """Return the literals that do not have the form of their datatype."""
    texts: dict[Term, str] = {}
    for value in source.objects:
        if value[0] == '"' and value[-1] == ">":
            literal = parse_literal(value)
            if not is_written(literal.text, literal.datatype):
                texts[value] = f"{literal.text[:80]!r} is not a valid {vocab.local_name(literal.datatype)}: correct it"
                if example := _WRITTEN_SO.get(vocab.local_name(literal.datatype)):
                    texts[value] += f", as in {example}"
    rows = [triple for triple in source.triples if triple[2] in texts] if texts else []
    return [
        UnplacedFinding(subject, WRITTEN, "violation", texts[value], predicate, value)
        for subject, predicate, value in rows
    ]
