"""The constraint components of SHACL Core that are compiled, each a closure over the values at a node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from jidomem.follow import Data, Path
from jidomem.judge import Finding, Severity
from jidomem.patterns import finder
from jidomem.terms import XSD, Term, bare, parts

#: How rdflib reads the lexical forms of the datatypes that are compiled.
_READ: dict[str, Callable[[str], Any]] = {XSD + "string": str, XSD + "anyURI": str, XSD + "integer": int}
_READ |= {XSD + "decimal": Decimal, XSD + "dateTime": datetime.fromisoformat}
_READ |= {XSD + "boolean": {"true": True, "1": True, "false": False, "0": False}.__getitem__}

_KINDS = {"<": "IRI", "_": "BlankNode"}

#: The values that break a constraint, of these at a focus node; None where it is the node itself.
Check = Callable[[Data, Term, Collection[Term]], Collection[Term | None]]


class Doubt(Exception):
    """A value that only the reference can judge."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A node shape (without `values`) or property shape, ready to be held against a node; `message` may be empty."""

    name: Term
    path: str | None
    values: Path | None
    checks: tuple[Check, ...]
    properties: tuple[Shape, ...]
    message: str
    severity: Severity

    def broken(self, data: Data, focus: Term) -> Iterator[Finding]:
        """Yield what *focus* breaks; raise Doubt where only the reference can tell."""
        values = (focus,) if self.values is None else self.values(data, focus)
        for check in self.checks:
            for value in check(data, focus, values):
                yield Finding(focus, self.name, self.path, value, self.message, self.severity)
        for shape in self.properties:
            for value in values:
                yield from shape.broken(data, value)

    def conforms(self, data: Data, node: Term) -> bool:
        """Return whether *node* breaks nothing; raise Doubt where only the reference can tell."""
        values = (node,) if self.values is None else self.values(data, node)
        for check in self.checks:
            if check(data, node, values):
                return False
        for shape in self.properties:
            for value in values:
                if not shape.conforms(data, value):
                    return False
        return True


def _each(holds: Callable[[Data, Term], object]) -> Check:
    """Return the check of every value by itself."""
    return lambda data, focus, values: [value for value in values if not holds(data, value)]


def _all(holds: Callable[[Collection[Term]], object]) -> Check:
    """Return the check of the values together, which names none of them."""
    return lambda data, focus, values: () if holds(values) else (None,)


def _text(holds: Callable[[str], object]) -> Check:
    return lambda data, focus, values: [value for value in values if value[0] == "_" or not holds(bare(value))]


def _kind_of(term: Term) -> str:
    return _KINDS.get(term[0], "Literal")


def _read(term: Term, datatype: str) -> Any:
    """Return what rdflib reads in a literal of *datatype*, None in any other term and in an ill-typed one."""
    if _kind_of(term) != "Literal" or (said := parts(term)).datatype != datatype:
        return None
    if datatype not in _READ:
        raise Doubt(term)
    try:
        return _READ[datatype](said.text)
    except (KeyError, ValueError, ArithmeticError):
        return None


def _of_datatype(datatype: str) -> Check:
    if datatype == XSD + "string":  # of what ends in its text no other is the datatype
        return lambda data, focus, values: [
            value for value in values if not (value[0] == value[-1] == '"') and _read(value, datatype) is None
        ]
    return lambda data, focus, values: [value for value in values if _read(value, datatype) is None]


def _pair(broken: Callable[[set[Term], set[Term]], Collection[Term]]) -> Callable[[Term], Check]:
    """Return the check of the values beside those of another property of the same node."""
    return lambda other: lambda data, focus, values: broken(set(values), set(data.objects(focus, other)))


def _later(values: set[Term], others: set[Term]) -> list[Term]:
    """Return the times after one of *others*; raise Doubt for what is no time, or is told by another clock."""
    times = [_read(other, XSD + "dateTime") for other in others]
    try:
        return [value for value in values if any(_read(value, XSD + "dateTime") > time for time in times)]
    except TypeError as error:
        raise Doubt(error) from error


#: Of every parameter its check, given its value: a term, the members of a list, or the shapes it refers to.
BUILD: dict[str, Callable[[Any], Check]] = {
    "class": lambda cls: lambda data, focus, values: [value for value in values if cls not in data.types(value)],
    "datatype": lambda wanted: _of_datatype(bare(wanted)),
    "nodeKind": lambda kinds: lambda data, focus, values: [value for value in values if _kind_of(value) not in kinds],
    "in": lambda known: lambda data, focus, values: [value for value in values if value not in known],
    "hasValue": lambda wanted: _all(lambda values: wanted in values),
    "minCount": lambda limit: lambda data, focus, values: () if len(values) >= limit else (None,),
    "maxCount": lambda limit: lambda data, focus, values: () if len(values) <= limit else (None,),
    "minLength": lambda limit: _text(lambda text: len(text) >= limit) if limit else _all(lambda values: True),
    "maxLength": lambda limit: _text(lambda text: len(text) <= limit),
    "pattern": lambda pattern: _text(finder(bare(pattern))),
    "equals": _pair(set.symmetric_difference),
    "disjoint": _pair(set.intersection),
    "lessThanOrEquals": _pair(_later),
    "and": lambda shapes: _each(lambda data, value: all(shape.conforms(data, value) for shape in shapes)),
    "or": lambda shapes: _each(lambda data, value: any(shape.conforms(data, value) for shape in shapes)),
    "not": lambda shape: _each(lambda data, value: not shape.conforms(data, value)),
    "node": lambda shape: _each(shape.conforms),
}
#: The constraint components that are compiled, by their parameters; shapes that use others are left to pyshacl.
COVERED = (*BUILD, "property")
