"""The constraint components of SHACL Core that are compiled, each a closure over the values at a node."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from jidomem.follow import Data, Left, Path, members
from jidomem.judge import Finding, Severity
from jidomem.terms import XSD, Term, bare, is_iri, parts
from jidomem.vocab import RDF, local_name

#: How rdflib reads the lexical forms of the datatypes that are compiled.
_READ: dict[str, Callable[[str], Any]] = {XSD + "string": str, XSD + "anyURI": str, RDF + "langString": str}
_READ |= {XSD + "integer": int, XSD + "decimal": Decimal, XSD + "double": float, XSD + "float": float}
_READ |= {XSD + "dateTime": datetime.fromisoformat}
_READ |= {XSD + "boolean": {"true": True, "1": True, "false": False, "0": False}.__getitem__}


class Doubt(Exception):
    """A value that only the reference can judge."""


class Broken(NamedTuple):
    """A finding, and the parameter (`minCount`, `class` ...) of the constraint that is broken."""

    constraint: str
    finding: Finding


#: What breaks a constraint at a focus node with these values: a value, None for the node itself, or what a shape found.
Check = Callable[[Data, Term, Collection[Term]], Iterable[Term | Broken | None]]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A node shape (without `values`) or property shape, ready to be held against a node; `message` may be empty."""

    name: Term
    path: str | None
    values: Path | None
    constraints: tuple[tuple[str, Check], ...]
    message: str
    severity: Severity
    #: The constraints that a property without values can break.
    of_none: tuple[tuple[str, Check], ...] = field(init=False)

    def __post_init__(self) -> None:
        of_none = tuple(each for each in self.constraints if each[0] in OF_NONE)
        object.__setattr__(self, "of_none", of_none)

    def broken(self, data: Data, focus: Term) -> list[Broken]:
        """Return what *focus* breaks; raise Doubt where only the reference can tell."""
        values = (focus,) if self.values is None else self.values(data, focus)
        broken: list[Broken] = []
        for name, check in self.constraints if values else self.of_none:
            for found in check(data, focus, values):
                if not isinstance(found, Broken):
                    found = Broken(name, Finding(focus, self.name, self.path, found, self.message, self.severity))
                broken.append(found)
        return broken

    def conforms(self, data: Data, node: Term) -> bool:
        """Return whether *node* breaks nothing."""
        return not self.broken(data, node)


class Compiler(Protocol):
    """What builds the shapes a constraint refers to."""

    rules: Data

    def shape(self, node: Term) -> Shape:
        """Return the shape *node*, compiled; raise Left where it is not covered."""


_Said = Mapping[str, list[Term]]
#: Return the check of one parameter's value, given the other SHACL properties of its shape.
Build = Callable[[Compiler, _Said, Term], Check]


def kind_of(term: Term) -> str:
    """Return IRI, BlankNode or Literal."""
    return {"<": "IRI", "_": "BlankNode"}.get(term[0], "Literal")


#: Each literal is looked at by several constraints in a row.
_parts = lru_cache(maxsize=32)(parts)


@lru_cache(maxsize=32)
def _value(term: Term) -> Any:
    """Return what rdflib reads in a literal; None for an ill-typed one, another datatype, or what is no literal."""
    if kind_of(term) != "Literal":
        return None
    text, datatype, _ = _parts(term)
    try:
        return _READ[datatype](text)
    except (KeyError, ValueError, ArithmeticError):
        return None


def flag(term: Term) -> bool:
    """Return the truth an xsd:boolean states; raise Left for any other term."""
    if not isinstance(read := _value(term), bool):
        raise Left(term)
    return read


def _count(term: Term) -> int:
    if type(read := _value(term)) is not int or read < 0:
        raise Left(term)
    return read


def _precedes(one: Term, other: Term, or_equals: bool) -> bool:
    """Return whether rdflib puts *one* before *other*; raise Doubt for what is neither text, number nor time."""
    if _is_ill_typed(one, other):
        if or_equals and _text_of(one) > _text_of(other):
            raise Doubt(one)
        return or_equals or _text_of(one) < _text_of(other)
    (kind, value), (other_kind, limit) = _ordered(one), _ordered(other)
    if kind != other_kind:
        if "text" not in (kind, other_kind):
            raise Doubt(one)
        return False
    return or_equals if value == limit else not value > limit


def _is_ill_typed(one: Term, other: Term) -> bool:
    """Return whether two literals have one known datatype and one has no value in it: rdflib orders their texts."""
    if {kind_of(one), kind_of(other)} != {"Literal"}:
        return False
    datatype = _parts(one).datatype
    return datatype in _READ and _parts(other).datatype == datatype and None in (_value(one), _value(other))


def _ordered(term: Term) -> tuple[str, Any]:
    """Return the kind of a value, and what orders it among its kind."""
    value = bare(term) if is_iri(term) else _value(term)
    if isinstance(value, datetime):
        return "time", (value.tzinfo is not None, value)
    if value is None or isinstance(value, bool):
        raise Doubt(term)
    return ("text" if isinstance(value, str) else "number"), value


def _each(holds: Callable[[Data, Term], object]) -> Check:
    """Return the check of every value by itself."""
    return lambda data, focus, values: [value for value in values if not holds(data, value)]


def _all(holds: Callable[[Collection[Term]], object]) -> Check:
    """Return the check of the values together, which names none of them."""
    return lambda data, focus, values: () if holds(values) else (None,)


def _text(holds: Callable[[str], object]) -> Check:
    return _each(lambda data, value: kind_of(value) != "BlankNode" and holds(_text_of(value)))


def _text_of(term: Term) -> str:
    return bare(term) if is_iri(term) else _parts(term).text


def _pair(broken: Callable[[set[Term], set[Term]], Iterable[Term]]) -> Build:
    """Return the check of the values beside those of another property of the same node."""

    def build(compiler: Compiler, said: _Said, other: Term) -> Check:
        if not is_iri(other):
            raise Left(other)
        return lambda data, focus, values: broken(set(values), set(data.objects(focus, other)))

    return build


def _datatype(compiler: Compiler, said: _Said, wanted: Term) -> Check:
    if bare(wanted) not in _READ:
        raise Left(wanted)
    return _each(lambda data, value: _value(value) is not None and _parts(value).datatype == bare(wanted))


def _pattern(compiler: Compiler, said: _Said, value: Term) -> Check:
    given = "".join(parts(flags).text.lower() for flags in said.get("flags", ()))
    try:
        return _text(
            re.compile(parts(value).text, (re.I if "i" in given else 0) | (re.M if "m" in given else 0)).search
        )
    except (re.error, ValueError) as error:
        raise Left(value) from error


def _several(enough: Callable[[int, int], bool]) -> Build:
    """Return the check that enough of the shapes in a list hold."""

    def build(compiler: Compiler, said: _Said, head: Term) -> Check:
        shapes = [compiler.shape(each) for each in members(compiler.rules, head)]
        return _each(lambda data, value: enough(sum(each.conforms(data, value) for each in shapes), len(shapes)))

    return build


def _not(compiler: Compiler, said: _Said, node: Term) -> Check:
    shape = compiler.shape(node)
    return _each(lambda data, value: not shape.conforms(data, value))


def _node(compiler: Compiler, said: _Said, node: Term) -> Check:
    shape = compiler.shape(node)
    if shape.values:
        raise Left(node)
    return _each(shape.conforms)


def _property(compiler: Compiler, said: _Said, node: Term) -> Check:
    shape = compiler.shape(node)
    if not shape.values:
        raise Left(node)
    return lambda data, focus, values: [found for value in values for found in shape.broken(data, value)]


def _qualified(enough: Callable[[int, int], bool]) -> Build:
    def build(compiler: Compiler, said: _Said, limit: Term) -> Check:
        (shape,), count = map(compiler.shape, said.get("qualifiedValueShape", ())), _count(limit)
        return lambda data, focus, values: (
            () if enough(sum(shape.conforms(data, value) for value in values), count) else (None,)
        )

    return build


def _class(compiler: Compiler, said: _Said, cls: Term) -> Check:
    return _each(lambda data, value: data.is_a(value, cls))


def _precede(or_equals: bool) -> Build:
    return _pair(lambda values, others: [v for v in values if any(not _precedes(v, o, or_equals) for o in others)])


def _unique_languages(compiler: Compiler, said: _Said, wanted: Term) -> Check:
    if not flag(wanted):
        return _all(lambda values: True)

    def unique(values: Collection[Term]) -> bool:
        tags = [parts(value).language for value in values if kind_of(value) == "Literal"]
        return len(list(filter(None, tags))) == len(set(filter(None, tags)))

    return _all(unique)


def _in(compiler: Compiler, said: _Said, head: Term) -> Check:
    known = frozenset(members(compiler.rules, head))
    return _each(lambda data, value: value in known)


def _limit(build: Callable[[int], Check]) -> Build:
    return lambda compiler, said, limit: build(_count(limit))


def _term(build: Callable[[Term], Check]) -> Build:
    return lambda compiler, said, value: build(value)


BUILD: dict[str, Build] = {
    "class": _class,
    "datatype": _datatype,
    "nodeKind": _term(lambda kinds: _each(lambda data, value: kind_of(value) in local_name(kinds).split("Or"))),
    "in": _in,
    "hasValue": _term(lambda wanted: _all(lambda values: wanted in values)),
    "minCount": _limit(lambda limit: _all(lambda values: len(values) >= limit)),
    "maxCount": _limit(lambda limit: _all(lambda values: len(values) <= limit)),
    "minLength": _limit(lambda limit: _text(lambda text: len(text) >= limit) if limit else _all(lambda values: True)),
    "maxLength": _limit(lambda limit: _text(lambda text: len(text) <= limit)),
    "pattern": _pattern,
    "equals": _pair(set.symmetric_difference),
    "disjoint": _pair(set.intersection),
    "lessThan": _precede(False),
    "lessThanOrEquals": _precede(True),
    "uniqueLang": _unique_languages,
    "and": _several(lambda held, given: held == given),
    "or": _several(lambda held, given: held > 0),
    "xone": _several(lambda held, given: held == 1),
    "not": _not,
    "node": _node,
    "property": _property,
    "qualifiedMinCount": _qualified(lambda held, limit: held >= limit),
    "qualifiedMaxCount": _qualified(lambda held, limit: held <= limit),
}
#: The constraint components that are compiled, by their parameters; shapes that use others are left to pyshacl.
COVERED = tuple(BUILD)
#: Those that no value at all can break; the others speak about each value there is.
OF_NONE = frozenset(("hasValue", "minCount", "equals", "qualifiedMinCount"))
