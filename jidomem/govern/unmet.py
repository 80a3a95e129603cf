"""Shapes that no value can meet, as what they ask for contradicts itself.  Pure over triples.

What several property shapes of one shape ask of the same path holds of the same values, and is read together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import combinations

from jidomem.govern.report import MEETABLE, Found
from jidomem.judge import SH
from jidomem.moments import parse_moment
from jidomem.terms import Term, Triple, bare, iri, is_iri, parts
from jidomem.vocab import RDF, XSD, local_name

_FIRST, _REST, _NIL = iri(RDF + "first"), iri(RDF + "rest"), iri(RDF + "nil")
_PROPERTY, _PATH, _DEACTIVATED = iri(SH + "property"), iri(SH + "path"), iri(SH + "deactivated")
#: Kind of node -> what it may be.
_KINDS = {
    "IRI": {"IRI"}, "BlankNode": {"BlankNode"}, "Literal": {"Literal"}, "BlankNodeOrIRI": {"BlankNode", "IRI"},
    "BlankNodeOrLiteral": {"BlankNode", "Literal"}, "IRIOrLiteral": {"IRI", "Literal"},
}  # fmt: skip
_MOMENTS = {XSD + "dateTime", XSD + "dateTimeStamp", XSD + "date"}

#: What a shape says: each property of SHACL by its local name, with its values.
Said = dict[str, list[Term]]


def unmet(own: Sequence[Triple]) -> list[Found]:
    """Return each contradiction in the shapes of *own* triples, at the shape that brings it in."""
    about: dict[Term, dict[Term, list[Term]]] = defaultdict(lambda: defaultdict(list))
    for subject, predicate, value in own:
        about[subject][predicate].append(value)
    found: dict[Found, None] = {}
    for shapes in [[node] for node in about] + list(_together(about)):
        said: Said = defaultdict(list)
        for shape in shapes:
            if "true" not in map(bare, about[shape].get(_DEACTIVATED, ())):
                for predicate, values in about[shape].items():
                    if predicate.startswith(f"<{SH}"):
                        said[local_name(predicate)] += values
        for name, text in _contradictions(said, lambda head: _members(about, head)):
            at = next(shape for shape in reversed(shapes) if iri(SH + name) in about[shape])
            found[Found(at, MEETABLE, "violation", f"nothing can meet this shape: {text}", iri(SH + name))] = None
    return list(found)


def _together(about: dict[Term, dict[Term, list[Term]]]) -> Iterator[list[Term]]:
    """Yield the property shapes of one shape that have the same path, where there are several."""
    for node in list(about):
        by_path: dict[Term, list[Term]] = defaultdict(list)
        for part in about[node].get(_PROPERTY, ()):
            for path in about.get(part, {}).get(_PATH, ()):
                by_path[path].append(part)
        yield from (parts for path, parts in by_path.items() if is_iri(path) and len(parts) > 1)


def _members(about: dict[Term, dict[Term, list[Term]]], head: Term) -> list[Term] | None:
    """Return the members of a list; None where it is none."""
    found: list[Term] = []
    seen = set()
    while head != _NIL:
        if head in seen or len(about.get(head, {}).get(_REST, ())) != 1:
            return None
        seen.add(head)
        found += about[head].get(_FIRST, ())
        (head,) = about[head][_REST]
    return found


def _contradictions(said: Said, members: Callable[[Term], list[Term] | None]) -> Iterator[tuple[str, str]]:
    """Yield each contradiction: the property of SHACL that brings it in, and what it is."""
    for of in ("Count", "Length"):
        yield from _crossed(said, (f"min{of}",), (f"max{of}",))
    yield from _crossed(said, ("minInclusive", "minExclusive"), ("maxInclusive", "maxExclusive"))
    lists = [found for head in said.get("in", ()) if (found := members(head)) is not None]
    for values in lists:
        if not values:
            yield "in", "sh:in is empty"
        for given in said.get("hasValue", ()):
            if values and given not in values:
                yield "hasValue", f"sh:hasValue {_shown(given)} is not in sh:in"
    yield from _of_two_kinds(said)


def _crossed(said: Said, lower: Iterable[str], upper: Iterable[str]) -> Iterator[tuple[str, str]]:
    for low, least in ((name, value) for name in lower for value in said.get(name, ())):
        for high, most in ((name, value) for name in upper for value in said.get(name, ())):
            a, b = _measure(least), _measure(most)
            if a is None or b is None:
                continue
            if type(a) is not type(b):
                yield high, f"sh:{low} {_shown(least)} and sh:{high} {_shown(most)} are not compared with one value"
            elif a > b:  # type: ignore[operator]
                yield high, f"sh:{low} {_shown(least)} is more than sh:{high} {_shown(most)}"
            elif a == b and "Exclusive" in low + high:
                yield high, f"nothing lies between sh:{low} {_shown(least)} and sh:{high} {_shown(most)}"


def _of_two_kinds(said: Said) -> Iterator[tuple[str, str]]:
    """Yield what asks for values of one kind of node beside what asks for another."""
    asked = [("nodeKind", value, _KINDS.get(local_name(value), set())) for value in said.get("nodeKind", ())]
    asked += [("datatype", value, {"Literal"}) for value in said.get("datatype", ())]
    asked += [("class", value, {"IRI", "BlankNode"}) for value in said.get("class", ())]
    asked += [("hasValue", value, {"IRI" if is_iri(value) else "Literal"}) for value in said.get("hasValue", ())]
    for (one, what, kinds), (other, that, others) in combinations(asked, 2):
        if kinds and others and kinds.isdisjoint(others):
            yield other, f"sh:{one} {_shown(what)} asks for another kind of node than sh:{other} {_shown(that)}"
    for one, other in combinations(dict.fromkeys(said.get("datatype", ())), 2):
        yield "datatype", f"a value has one datatype, not {_shown(one)} and {_shown(other)}"


def _measure(term: Term) -> Decimal | datetime | None:
    """Return what a bound is compared by; None where nobody knows."""
    if is_iri(term) or term.startswith("_:"):
        return None
    literal = parts(term)
    if literal.datatype in _MOMENTS:
        return parse_moment(literal.text)
    try:
        number = Decimal(literal.text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and literal.datatype != XSD + "string" else None


def _shown(term: Term) -> str:
    return local_name(term) if is_iri(term) else bare(term)
