"""The statements of callers, (subject, predicate, object), and their conversion to triples and back.

A text is an IRI if all of it is an absolute http, https or urn IRI, any absolute IRI in angle brackets, or a prefixed
name (`jido: rdf: rdfs: xsd: prov:`); every other text is a string, unchanged. bool, int, float, Decimal, datetime and
date become literals of XSD (a moment without an offset is UTC). `(text, datatype)`, or a `Literal` with a language, is
always a literal, even if its text is an IRI.

`to_value` converts RDF terms to plain Python values, the same in every interface.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyoxigraph import NamedNode

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.json_values import is_unicode
from jidomem.base.regex import lazy
from jidomem.errors import InvalidRequest
from jidomem.rdf.terms import (
    Literal,
    Term,
    Triple,
    boolean,
    date_time,
    integer,
    iri,
    literal,
    parse_literal,
    plain_value,
)
from jidomem.rdf.vocab import PREFIXES, RDF, XSD

#: The objects of statements as given by callers.
StatementValue = str | bool | int | float | Decimal | datetime | date | tuple[str, str] | Literal
Statement = tuple[str, str, StatementValue]

_PLAIN = lazy(r"(?:https?://|urn:)\S+", re.IGNORECASE)
_CURIE = lazy(r"([a-z]+):([A-Za-z_][\w-]*)")
_LANGUAGE = lazy(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_MOST_DIGITS = 400
_PARTS = ("subject", "predicate", "object")


def to_triples(statements: Iterable[Any]) -> list[Triple]:
    """Return the triples of *statements*, each once, in order; raise InvalidRequest for an invalid statement.

    >>> to_triples([("urn:a", "jido:topic", "index"), ("urn:a", "urn:size", 5)])[1]
    ('<urn:a>', '<urn:size>', '"5"^^<http://www.w3.org/2001/XMLSchema#integer>')
    """
    if isinstance(statements, (str, bytes)) or not isinstance(statements, Iterable):
        raise _refused(f"{statements!r:.80} is not a list of statements")
    return list(dict.fromkeys(_triple(number, given) for number, given in enumerate(statements, start=1)))


def as_statement(triple: Triple) -> tuple[Term, Term, Term | Literal]:
    """Return *triple* in a form that `to_triples` converts back to the same triple."""
    return (triple[0], triple[1], parse_literal(triple[2]) if triple[2].startswith('"') else triple[2])


def to_iri(text: str) -> Term | None:
    """Return the IRI that *text* names by the rules of this module, or None."""
    curie = _CURIE.fullmatch(text)
    if curie and curie[1] in PREFIXES:
        return iri(PREFIXES[curie[1]] + curie[2])
    bare = text[1:-1] if text.startswith("<") and text.endswith(">") else text if _PLAIN.fullmatch(text) else ""
    try:
        return str(NamedNode(bare)) if bare else None
    except ValueError:
        return None


def _triple(number: int, given: Any) -> Triple:
    if not isinstance(given, (list, tuple)) or len(given) != 3:
        raise _refused(f"statement {number}: {given!r:.80} is not (subject, predicate, object)")
    terms = [to_iri(part) if isinstance(part, str) else None for part in given[:2]]
    terms.append(_object(given[2]))
    for part, term, name in zip(given, terms, _PARTS, strict=True):
        if term is None:
            objects = "text, a number of at most 400 digits, a boolean, a moment or (text, datatype)"
            wanted = "an IRI" if name != "object" else objects
            raise _refused(f"statement {number}: the {name} is {wanted}, not {part!r:.80}")
    subject, predicate, value = (term for term in terms if term)
    return subject, predicate, value


def is_writable(number: float | Decimal) -> bool:
    """Return whether *number* is finite, and has at most 400 digits on each side of its point without an exponent.

    >>> is_writable(Decimal("2.50")), is_writable(Decimal("1e999999999")), is_writable(Decimal("1e-999999999"))
    (True, False, False)
    """
    if not isinstance(number, Decimal):
        return math.isfinite(number)
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_MOST_DIGITS and number.adjusted() < _MOST_DIGITS


def _object(value: Any) -> Term | None:
    if isinstance(value, str):
        return to_iri(value) or _text(value)
    if isinstance(value, bool):
        return boolean(value)
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return literal(repr(value), XSD + "double") if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return literal(f"{value:f}", XSD + "decimal") if is_writable(value) else None
    if isinstance(value, datetime):
        moment = parse_moment(value)
        return date_time(format_timestamp(moment)) if moment else None
    if isinstance(value, date):
        return literal(value.isoformat(), XSD + "date")
    return _explicit_literal(value) if isinstance(value, tuple) else None


def _explicit_literal(value: tuple[Any, ...]) -> Term | None:
    if len(value) not in (2, 3) or not all(isinstance(part, str) for part in value):
        return None
    text, datatype, language = (*value, "")[:3]
    if language:
        return _text(text, language=language) if _LANGUAGE.fullmatch(language) else None
    named = plain_value(to_iri(datatype) or "<>")
    return _text(text, named) if named not in ("", RDF + "langString") else None


def _text(text: str, datatype: str = XSD + "string", language: str = "") -> Term | None:
    """Return the literal, or None for a text with a lone surrogate, which is not Unicode."""
    if not is_unicode(text):
        return None
    return literal(text, datatype, language)


def _refused(detail: str) -> InvalidRequest:
    hint = 'write ("urn:example:a", "jido:topic", "some text"), or ("2.0", "xsd:double") for an object of another type'
    return InvalidRequest(detail, hint=hint)


#: The least and the greatest value of each bounded datatype of integers, and the most digits that Python reads.
_BITS, _MAX_DIGITS = {"byte": 8, "short": 16, "int": 32, "long": 64}, 4300
_BOUNDS: Mapping[str, tuple[float, float]] = {
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _BITS.items()},
    **{f"unsigned{name.capitalize()}": (0, 2**bits - 1) for name, bits in _BITS.items()},
    "nonNegativeInteger": (0, math.inf),
    "positiveInteger": (1, math.inf),
    "nonPositiveInteger": (-math.inf, 0),
    "negativeInteger": (-math.inf, -1),
}
#: The datatypes of numbers.
NUMERIC = frozenset(XSD + name for name in ("integer", *_BOUNDS, "decimal", "double", "float"))
_NUMBER, _DAY = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_OFFSET = "(Z|[+-][0-9]{2}:[0-9]{2})?"
_TIME = rf"[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]+)?{_OFFSET}"
#: The lexical forms of literals by datatype; other datatypes are not checked.
_LEXICAL = {
    XSD + name: lazy(pattern)
    for name, pattern in {
        "boolean": "true|false|1|0",
        **dict.fromkeys(("integer", *_BOUNDS), "[+-]?[0-9]+"),
        "decimal": _NUMBER,
        **dict.fromkeys(("double", "float"), rf"{_NUMBER}([eE][+-]?[0-9]+)?|[+-]?INF|NaN"),
        "date": _DAY + _OFFSET,
        "time": _TIME,
        "dateTime": f"{_DAY}T{_TIME}",
    }.items()
}


def is_well_formed(text: str, datatype: str) -> bool:
    """Return whether *text* has a value of *datatype*, an IRI, as far as its lexical form is known here.

    >>> is_well_formed("2026-02-28", XSD + "date"), is_well_formed("2026-02-30", XSD + "date")
    (True, False)
    """
    pattern, name = _LEXICAL.get(datatype), datatype.removeprefix(XSD)
    if pattern is None or not pattern.fullmatch(text):
        return pattern is None
    if name in _BOUNDS:
        least, most = _BOUNDS[name]
        return len(text) <= _MAX_DIGITS and least <= int(text) <= most
    moments = {"dateTime": text, "date": text[:10], "time": f"2000-01-01T{text}"}
    return name not in moments or parse_moment(moments[name]) is not None


Value = str | int | float | bool | datetime | None


def to_value(term: Term | None) -> Value:
    """Return the Python value of a term: IRIs and texts are str, moments are aware UTC datetimes, unbound is None.

    A literal that is invalid for its datatype is returned as text.

    >>> to_value('"0.85"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    0.85
    """
    if term is None:
        return None
    if not term.startswith('"'):
        return term if term.startswith("_:") else plain_value(term)
    text, datatype, _ = parse_literal(term)
    try:
        return _READERS.get(datatype, str)(text)
    except (ValueError, OverflowError, KeyError):
        return text


def own_value(term: Term) -> Value | dict[str, str]:
    """Return a term as JSON-LD has it: a text, number or truth as itself, any other as an object that loses nothing.

    >>> own_value('"hi"@en'), own_value('"7"^^<http://www.w3.org/2001/XMLSchema#integer>'), own_value("<urn:a>")
    ({'@value': 'hi', '@language': 'en'}, 7, {'@id': 'urn:a'})
    """
    if not term.startswith('"'):
        return {"@id": plain_value(term)}
    text, datatype, language = parse_literal(term)
    if language:
        return {"@value": text, "@language": language}
    if datatype == XSD + "string":
        return text
    value = to_value(term)
    if (
        datatype in _NATIVE
        and text != "NaN"
        and json.dumps(value) == text
        and (datatype != XSD + "integer" or len(text) < _EXACT_DIGITS)
    ):
        return value
    return {"@value": text, "@type": datatype}


def value_text(value: object) -> object:
    """Return a value of `own_value` for people: the text, and its language."""
    if not isinstance(value, Mapping):
        return value
    language = f" @{value['@language']}" if "@language" in value else ""
    return value.get("@id") or value["@value"] + language


#: The datatypes with a form of their own in JSON, and the digits from which many readers of JSON round a number.
_NATIVE, _EXACT_DIGITS = frozenset(XSD + name for name in ("integer", "double", "boolean")), 16


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_READERS: dict[str, Callable[[str], Value]] = {
    **{XSD + name: int for name in ("integer", *_BOUNDS)},
    XSD + "decimal": float,
    XSD + "double": float,
    XSD + "float": float,
    XSD + "boolean": lambda text: {"true": True, "1": True, "false": False, "0": False}[text],
    XSD + "dateTime": _moment,
}
