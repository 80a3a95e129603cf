"""Compiled shapes judge triples by SHACL Core; pyshacl judges shapes that are not compiled, and cases of doubt. Pure
over triples.

A shape is a list of constraints as data: the name of a SHACL parameter and its value. Paths are written in the form of
pyshacl messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from jidomem.base.containers import reachable
from jidomem.base.regex import Unsearchable, compiled
from jidomem.rdf.terms import XSD, Term, Triple, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import JIDO, RDF, RDFS, TYPE, local_name
from jidomem.schema.shacl import DEEPEST, ONE_AT_A_TIME, SH, Finding, PyshaclValidator, Severity, severity_of

_FIRST, _REST, _NIL = iri(RDF + "first"), iri(RDF + "rest"), iri(RDF + "nil")
_SUBCLASS = iri(RDFS + "subClassOf")
_NOTHING: Mapping[Term, list[Term]] = {}


class UnsupportedShape(Exception):
    """A shape with a feature that is not compiled."""


class TripleGraph:
    """Triples indexed in both directions; lists in them are well formed."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples = dict.fromkeys(triples)
        #: The properties and values of every subject.
        self.about: dict[Term, dict[Term, list[Term]]] = {}
        #: The subjects by property and value.
        self.back: dict[tuple[Term, Term], list[Term]] = {}
        about, back, self._has_tree = self.about, self.back, False
        for subject, predicate, value in self.triples:
            back.setdefault((predicate, value), []).append(subject)
            if predicate == _SUBCLASS:
                self._has_tree = True
            properties = about.get(subject)
            if properties is None:
                about[subject] = {predicate: [value]}
            elif predicate in properties:
                properties[predicate].append(value)
            else:
                properties[predicate] = [value]

    def objects(self, subject: Term, predicate: Term) -> Collection[Term]:
        """Return the values of *predicate* at *subject*."""
        return self.about.get(subject, _NOTHING).get(predicate, ())

    def types(self, node: Term) -> Collection[Term]:
        """Return the types of *node* with their superclasses in these triples."""
        types = self.about.get(node, _NOTHING).get(TYPE, ())
        return reachable(types, lambda cls: self.objects(cls, _SUBCLASS)) if self._has_tree else types

    def members(self, head: Term) -> Iterator[Term]:
        """Yield the members of an RDF list; raises UnsupportedShape for an empty one."""
        if head == _NIL:
            raise UnsupportedShape(head)
        while head != _NIL:
            yield from self.objects(head, _FIRST)
            (head,) = self.objects(head, _REST)

    def shacl(self, node: Term) -> dict[str, list[Term]]:
        """Return the values of *node* for the properties of SHACL, by local name."""
        properties = self.about.get(node, _NOTHING).items()
        return {local_name(predicate): values for predicate, values in properties if predicate.startswith(f"<{SH}")}


#: A function from a node to the values of a path.
Path = Callable[[TripleGraph, Term], Collection[Term]]


def compile_path(rules: TripleGraph, path: Term, depth: int = 0) -> tuple[str, Path]:
    """Return *path* as text in the form of pyshacl, and its function; raises UnsupportedShape."""
    if is_iri(path):
        text = f"jido:{plain_value(path).removeprefix(JIDO)}" if depth and path.startswith(f"<{JIDO}") else path
        return text, lambda data, node: data.about.get(node, _NOTHING).get(path, ())
    properties = rules.shacl(path)
    match properties:
        case {"inversePath": [prop]} if is_iri(prop):
            return f"^{compile_path(rules, prop, depth + 1)[0]}", lambda data, node: data.back.get((prop, node), ())
        case {"oneOrMorePath": [inner]} if depth < DEEPEST:
            text, step = compile_path(rules, inner, depth + 1)
            return f"{text}+", lambda data, node: reachable(step(data, node), lambda at: step(data, at))
    if properties.keys() - {"alternativePath"} or depth == DEEPEST:
        raise UnsupportedShape(path)
    members = rules.members(properties["alternativePath"][0] if properties else path)
    shown, steps = zip(*(compile_path(rules, each, depth + 1) for each in members), strict=True)
    text = (" | " if properties else " / ").join(shown)
    text = f"({text})" if depth else text
    return text, _either(steps) if properties else _in_sequence(steps)


def _either(steps: Sequence[Path]) -> Path:
    def values(data: TripleGraph, node: Term) -> Collection[Term]:
        reached = set[Term]()
        for step in steps:
            reached.update(step(data, node))
        return reached

    return values


def _in_sequence(steps: Sequence[Path]) -> Path:
    def values(data: TripleGraph, node: Term) -> Collection[Term]:
        nodes = {node}
        for step in steps:
            reached = set[Term]()
            for each in nodes:
                reached.update(step(data, each))
            nodes = reached
        return nodes

    return values


#: The parsers of lexical forms of the compiled datatypes, as in rdflib.
_STRING = XSD + "string"
_READ: dict[str, Callable[[str], Any]] = {XSD + "string": str, XSD + "anyURI": str, XSD + "integer": int}
_READ |= {XSD + "decimal": Decimal, XSD + "dateTime": datetime.fromisoformat}
_READ |= {XSD + "boolean": {"true": True, "1": True, "false": False, "0": False}.__getitem__}

_KIND_OF_FIRST_CHARACTER = {"<": "IRI", "_": "BlankNode"}


class NeedsReference(Exception):
    """A value that only the reference validator can judge."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A node shape (without a path) or property shape; `message` may be empty.

    `predicate` is the path of most property shapes, `values` follows any other path. A constraint is the name of its
    parameter and the value of the parameter: a term, a number, a set of terms, or the shapes that it refers to.
    """

    name: Term
    path: str | None
    predicate: Term | None
    values: Path | None
    constraints: tuple[tuple[str, Any], ...]
    properties: tuple[Shape, ...]
    message: str
    severity: Severity

    def violations(self, data: TripleGraph, focus: Term, first: bool = False) -> list[Finding]:
        """Return the violations of *focus*, or only the *first*; raises NeedsReference if only pyshacl can judge."""
        values: Collection[Term]
        if self.predicate is not None:
            values = data.about.get(focus, _NOTHING).get(self.predicate, ())
        else:
            values = (focus,) if self.values is None else self.values(data, focus)
        broken: list[Term | None] = []  # None stands for the set of values
        for parameter, wanted in self.constraints:
            match parameter:
                case "minCount":
                    is_kept = len(values) >= wanted
                case "maxCount":
                    is_kept = len(values) <= wanted
                case "hasValue":
                    is_kept = wanted in values
                case "equals" | "disjoint" | "lessThanOrEquals":
                    others = data.about.get(focus, _NOTHING).get(wanted, ())
                    if values or others:
                        broken += _PAIRS[parameter](set(values), set(others))
                    continue
                case _:
                    for value in values:
                        match parameter:
                            case "class":
                                is_kept = wanted in data.types(value)
                            case "datatype":  # a literal that ends with a quote is an xsd:string
                                is_text = wanted == _STRING and value[0] == value[-1] == '"'
                                is_kept = is_text or _read(value, wanted) is not None
                            case "nodeKind":
                                is_kept = _KIND_OF_FIRST_CHARACTER.get(value[0], "Literal") in wanted
                            case "in":
                                is_kept = value in wanted
                            case "minLength":
                                is_kept = not wanted or (value[0] != "_" and len(plain_value(value)) >= wanted)
                            case "maxLength":
                                is_kept = value[0] != "_" and len(plain_value(value)) <= wanted
                            case "pattern":
                                text = plain_value(value).encode("utf-8", "replace") if value[0] != "_" else b""
                                is_kept = value[0] != "_" and wanted(text) is not None
                            case "not":
                                is_kept = bool(wanted.violations(data, value, True))
                            case "node":
                                is_kept = not wanted.violations(data, value, True)
                            case "and":
                                is_kept = True
                                for shape in wanted:
                                    if shape.violations(data, value, True):
                                        is_kept = False
                                        break
                            case _:  # or
                                is_kept = False
                                for shape in wanted:
                                    if not shape.violations(data, value, True):
                                        is_kept = True
                                        break
                        if not is_kept:
                            broken.append(value)
                    continue
            if not is_kept:
                broken.append(None)
        findings: list[Finding] = []
        for breaking in broken:
            findings.append(Finding(focus, self.name, self.path, breaking, self.message, self.severity))
        for shape in self.properties:
            if first and findings:
                break
            for value in values:
                findings += shape.violations(data, value, first)
        return findings


def _read(term: Term, datatype: str) -> Any:
    if term[0] in _KIND_OF_FIRST_CHARACTER or (literal := parse_literal(term)).datatype != datatype:
        return None
    if datatype not in _READ:
        raise NeedsReference(term)
    try:
        return _READ[datatype](literal.text)
    except (KeyError, ValueError, ArithmeticError):
        return None


def _later(values: Collection[Term], others: Collection[Term]) -> list[Term]:
    """Return the times after one of *others*; raises NeedsReference for a value that is no time or has no time zone."""
    times = [_read(other, XSD + "dateTime") for other in others]
    try:
        return [value for value in values if any(_read(value, XSD + "dateTime") > time for time in times)]
    except TypeError as error:
        raise NeedsReference(error) from error


#: The values that violate a constraint between two properties of a node.
_PAIRS: Mapping[str, Callable[[set[Term], set[Term]], Collection[Term]]] = {
    "equals": set.symmetric_difference,
    "disjoint": set.intersection,
    "lessThanOrEquals": _later,
}
#: The parameters of the constraints that are compiled, in the order in which they are judged.
PARAMETERS = (
    "class", "datatype", "nodeKind", "in", "hasValue", "minCount", "maxCount", "minLength", "maxLength", "pattern",
    "equals", "disjoint", "lessThanOrEquals", "and", "or", "not", "node",
)  # fmt: skip
#: The parameters that a compiled shape may have; pyshacl judges shapes with others.
COVERED = (*PARAMETERS, "property")


_TARGETS = ("targetClass", "targetSubjectsOf")
#: The parameters of a shape other than constraints, and those that may be repeated.
_BESIDE = {"path", "message", "severity", "name", "description", "order", "group", *_TARGETS}
_MANY = {"property", *_TARGETS}
_NODE_SHAPE, _PROPERTY_SHAPE = iri(SH + "NodeShape"), iri(SH + "PropertyShape")


class CompiledValidator:
    """The compiled shapes, with pyshacl for the shapes that are not compiled (`left`) and for cases of doubt.

    The shapes are well formed: those of an overlay are checked by the SHACL of SHACL when they are loaded.
    """

    def __init__(self, rules: Iterable[Triple]) -> None:
        shapes = TripleGraph(rules)
        self._by: dict[str, dict[Term, list[Shape]]] = {target: {} for target in _TARGETS}
        self.left = frozenset(node for node in shapes.about if not self._take(shapes, node))
        self._speaking = lru_cache(maxsize=1024)(self._of)  # memories of one kind have the same shapes
        self.pyshacl, self._rest = (
            PyshaclValidator(shapes.triples, linear=True),
            PyshaclValidator(shapes.triples, self.left, linear=True),
        )

    @property
    def interrupted(self) -> Term | None:
        """Return the shape at which pyshacl was stopped, None if it was not."""
        return self._rest.interrupted or self.pyshacl.interrupted

    def _take(self, shapes: TripleGraph, node: Term) -> bool:
        """Register the shape *node* by its targets; return whether it is compiled, or has no targets."""
        properties, types = shapes.shacl(node), set(shapes.objects(node, TYPE))
        if properties and types - {_PROPERTY_SHAPE if "path" in properties else _NODE_SHAPE}:
            return False  # it may be a class, and so its own target
        if not any(name.startswith("target") for name in properties):
            return True
        try:
            shape = _shape(shapes, node)
        except (UnsupportedShape, Unsearchable):
            return False
        for target, by in self._by.items():
            for term in properties.get(target, ()):
                by.setdefault(term, []).append(shape)
        return True

    def judged(self, triples: Iterable[Triple], focus: set[Term] | None) -> tuple[set[Finding], set[Term]]:
        """Return the findings of the compiled shapes, and the nodes that only the reference can judge or word."""
        data, results, unsure = TripleGraph(triples), set[Finding](), set[Term]()
        for node in data.about if focus is None else focus:
            shapes = self._about(data, node)
            try:
                broken: list[Finding] = []
                for shape in shapes:
                    broken += shape.violations(data, node)
            except NeedsReference:
                unsure.add(node)
                continue
            if broken:
                if all(finding.message for finding in broken):
                    results.update(broken)
                else:
                    unsure.add(node)
        return results, unsure

    def _about(self, data: TripleGraph, node: Term) -> Collection[Shape]:
        of_subject = self._by["targetSubjectsOf"]
        return self._speaking(
            tuple(data.types(node)), tuple([prop for prop in data.about.get(node, ()) if prop in of_subject])
        )

    def _of(self, types: tuple[Term, ...], props: tuple[Term, ...]) -> Collection[Shape]:
        of_class, of_subject = self._by.values()
        shapes = {shape: None for cls in types for shape in of_class.get(cls, ())}
        return tuple(shapes | {shape: None for prop in props for shape in of_subject[prop]})

    def findings(self, triples: Iterable[Triple], focus: set[Term] | None, *, confirm: bool = False) -> list[Finding]:
        """Return the findings, those of pyshacl for shapes in `left` and for nodes in doubt.

        With *confirm* violations are confirmed by pyshacl, whose findings count; a difference between the two is a
        finding itself.
        """
        triples = list(triples)
        results, unsure = self.judged(triples, focus)
        if unsure:
            results.update(self.reference(triples, unsure))
        if self.left:
            with ONE_AT_A_TIME:
                results.update(self._rest.findings(triples, focus))
        findings = list(results)
        if not confirm or not findings or all(finding.severity != "violation" for finding in findings):
            return findings
        reference = self.reference(triples, focus)
        for finding in sorted(set(reference) ^ set(findings), key=repr)[:1]:
            text = f"The compiled shapes and pyshacl differ on {finding.shape} (pyshacl counts): please report this."
            grave = any(other.severity == "violation" for other in reference)
            reference.append(finding._replace(message=text, severity="violation" if grave else "warning"))
        return reference

    def reference(self, triples: Iterable[Triple], focus: set[Term] | None) -> list[Finding]:
        """Return the findings of pyshacl."""
        with ONE_AT_A_TIME:
            return self.pyshacl.findings(triples, focus)


def _shape(rules: TripleGraph, node: Term, within: Term = "", depth: int = 0) -> Shape:
    """Return *node* compiled, with its own name or that of the shape *within* which it is nested.

    Raises UnsupportedShape if it cannot be compiled.
    """
    properties = rules.shacl(node)
    unknown = properties.keys() - _BESIDE - set(COVERED) or any(
        len(properties[each]) > 1 for each in properties.keys() - _MANY
    )
    shared = not is_iri(node) and [value for _, _, value in rules.triples].count(node) > 1
    name = node if is_iri(node) else within
    if unknown or shared or not name or depth > DEEPEST:
        raise UnsupportedShape(node)
    path, values = compile_path(rules, properties["path"][0]) if "path" in properties else (None, None)
    predicate = properties["path"][0] if "path" in properties and is_iri(properties["path"][0]) else None
    given = {
        each: _given(rules, each, properties[each][0], name, depth + 1) for each in PARAMETERS if each in properties
    }
    return Shape(
        name=name,
        path=path,
        predicate=predicate,
        values=values,
        constraints=tuple(given.items()),
        properties=tuple(_shape(rules, each, name, depth + 1) for each in properties.get("property", ())),
        message="".join(map(plain_value, properties.get("message", ()))),
        severity=severity_of("".join(properties.get("severity", ()))),
    )


def _given(rules: TripleGraph, parameter: str, value: Term, name: Term, depth: int) -> Any:
    if parameter in ("not", "node"):
        return _shape(rules, value, name, depth)
    if parameter in ("and", "or"):
        return [_shape(rules, each, name, depth) for each in rules.members(value)]
    if parameter == "in":
        return frozenset(rules.members(value))
    if parameter == "datatype":
        return plain_value(value)
    if parameter == "pattern":
        return compiled(plain_value(value)).search
    if not parameter.endswith(("Count", "Length")):
        return value
    if (limit := int(plain_value(value))) < 0:
        raise UnsupportedShape(value)
    return limit


class CompiledShape(NamedTuple):
    """A shape with a message: its IRI, its severity and the message to the author."""

    shape: str
    severity: str
    message: str


def about(shapes: Iterable[Triple], classes: Collection[Term], properties: Collection[Term]) -> list[CompiledShape]:
    """Return the shapes for a node with *classes*, including superclasses, and *properties*."""
    data = TripleGraph(shapes)
    targets = {"targetClass": classes, "targetSubjectsOf": properties}
    compiled: set[CompiledShape] = set()
    for node in data.about:
        values = data.shacl(node)
        if any(not set(of).isdisjoint(values.get(target, ())) for target, of in targets.items()):
            compiled.update(_rules(data, node))
    return sorted(compiled)


def _rules(data: TripleGraph, node: Term) -> Iterator[CompiledShape]:
    properties = data.shacl(node)
    if "message" in properties and is_iri(node):
        severity = severity_of(plain_value(properties["severity"][0])) if "severity" in properties else "violation"
        yield CompiledShape(plain_value(node), severity, plain_value(properties["message"][0]))
    for further in properties.get("property", ()):
        yield from _rules(data, further)
