"""RDF terms as strings in canonical N-Triples form, and triples as tuples of three of them.

`<https://jido.ai/ontology#Fact>` is an IRI, `"text"` a string, `"2"^^<http://www.w3.org/2001/XMLSchema#integer>` a
typed literal. The form is that of https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples and equals `str()` of a
pyoxigraph term, so digests, comparisons and lookups need no term objects.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from jidomem.base.clock import format_timestamp, parse_moment

Term = str
Triple = tuple[Term, Term, Term]

XSD = "http://www.w3.org/2001/XMLSchema#"

_ESCAPES = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\", 0x7F: "\\u007F"}
_ESCAPES |= {code: f"\\u{code:04X}" for code in (*range(0x20), 0xFFFE, 0xFFFF) if code not in _ESCAPES}
_UNESCAPE = re.compile(r"\\(?:([tbnrf\"'\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
#: The most characters of a parser message, which may quote a whole document.
_LONGEST_FAULT = 200
_PLAIN = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_LITERAL = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)


#: The datatypes of numbers that a store writes in another form, or as another of them.
_EXACT = frozenset(
    ("decimal", "integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "negativeInteger",
     "nonPositiveInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte")
)  # fmt: skip


class Literal(NamedTuple):
    """The three parts of a literal; `datatype` is a bare IRI, `language` is empty except for language-tagged text."""

    text: str
    datatype: str
    language: str = ""


def iri(value: str) -> Term:
    """Return the term of the bare IRI *value*.

    >>> iri("urn:a")
    '<urn:a>'
    """
    return f"<{value}>"


def literal(text: str, datatype: str = XSD + "string", language: str = "") -> Term:
    r"""Return the term of a literal.

    >>> literal('say "hi"\n')
    '"say \\"hi\\"\\n"'
    """
    plain = text.isprintable() and '"' not in text and "\\" not in text
    quoted = f'"{text if plain else text.translate(_ESCAPES)}"'
    if language:
        return f"{quoted}@{language.lower()}"
    return quoted if datatype == XSD + "string" else f"{quoted}^^<{datatype}>"


def integer(value: int) -> Term:
    """Return the term of an xsd:integer."""
    return f'"{value:d}"^^<{XSD}integer>'


def boolean(value: bool) -> Term:
    """Return the term of an xsd:boolean."""
    return literal("true" if value else "false", XSD + "boolean")


def decimal(value: float) -> Term:
    """Return the xsd:decimal with the shortest digits that read back as *value*, never in exponent form."""
    from decimal import Decimal  # takes 1 ms, and few memories have such a number

    return literal(f"{Decimal(repr(value)):f}", XSD + "decimal")


def date_time(text: str) -> Term:
    """Return the term of an xsd:dateTime."""
    return literal(text, XSD + "dateTime")


def is_iri(term: Term) -> bool:
    """Return whether *term* is an IRI."""
    return term.startswith("<")


def plain_value(term: Term) -> str:
    """Return the IRI without its angle brackets, or the text of a literal."""
    if term.startswith("<") or (term[:1] == term[-1:] == '"' and "\\" not in term and term.count('"') == 2):
        return term[1:-1]
    return parse_literal(term).text


def parse_literal(term: Term) -> Literal:
    """Return text, datatype and language of a literal term; raises ValueError for another one."""
    match = _LITERAL.fullmatch(term)
    if match is None:
        raise ValueError(f"not a literal: {term}")
    text, language, datatype = match.groups()
    if "\\" in text:
        text = _UNESCAPE.sub(lambda m: _PLAIN[m[1]] if m[1] else chr(int(m[2] or m[3], 16)), text)
    if language:
        return Literal(text, "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", language)
    return Literal(text, datatype or XSD + "string")


_DIGITS = frozenset("+-.0123456789")


def value_of(part: Literal) -> object:
    """Return the value of a moment, number or truth value, equal for all its forms; any other literal unchanged.

    >>> value_of(Literal("1.0", XSD + "decimal")) == value_of(Literal("01", XSD + "decimal"))
    True
    >>> value_of(Literal("1e999999999", XSD + "decimal")).text
    '1e999999999'
    """
    kind = part.datatype.removeprefix(XSD)
    if kind == "dateTime":
        return parse_moment(part.text) or part
    if kind == "boolean":
        return part.text in ("true", "1")
    try:
        if kind in _EXACT:
            if not _DIGITS.issuperset(part.text):  # an exponent, which is no decimal, may take hours
                return part
            from fractions import Fraction  # takes some milliseconds, and few memories have such a number

            return Fraction(part.text)
        return float(part.text) if kind in ("double", "float") else part
    except ValueError:
        return part


def moment_in(term: Term | None) -> datetime | None:
    """Return the moment that *term* states, in UTC; None for no term, or one that states none."""
    return None if term is None else parse_moment(plain_value(term))


@lru_cache(maxsize=4_096)  # memories of one commit share their moments, and each moment is read several times
def moment_text(term: Term) -> str | None:
    """Return the moment that *term* states in its normal form, in which two compare as texts; None if it states none.

    A store may have written it in a shorter form.

    >>> moment_text(date_time("2026-11-21T08:00:00Z"))
    '2026-11-21T08:00:00.000000Z'
    """
    moment = moment_in(term)
    return None if moment is None else format_timestamp(moment)


def ntriples_line(triple: Triple) -> str:
    """Return the canonical N-Triples line of *triple*, without a line end."""
    return f"{triple[0]} {triple[1]} {triple[2]} ."


def short_parse_error(error: SyntaxError) -> str:
    """Return the message of a parser, with at most 200 characters.

    >>> short = short_parse_error(SyntaxError("no prefix: " + 400 * "x"))
    >>> short[:14], len(short)
    ('no prefix: xxx', 200)
    """
    message = str(error.msg)
    return message if len(message) <= _LONGEST_FAULT else f"{message[: _LONGEST_FAULT - 1]}…"
