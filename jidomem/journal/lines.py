"""The lines of a commit document in its one form: a subject, then a property and a value on each line (pure).

The usual terms are matched by a grammar here, so that no parser is needed to read or to check them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import lt

from jidomem.base.regex import lazy
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term

PREFIXES = {"jido": vocab.JIDO, "prov": vocab.PROV, "rdf": vocab.RDF, "rdfs": vocab.RDFS, "xsd": vocab.XSD}
_LOCAL_NAME = r"[A-Za-z_][A-Za-z0-9_-]*+"
LOCAL_NAME = lazy(_LOCAL_NAME)
#: IRIs and texts that a strict parser reads as they are written: some of those of RFC 3987 and of canonical N-Triples,
#: https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples. Others are parsed.
_IN_PATH = r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*+(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~!$&'()*+,;=:@/-]*+)*+"
_IN_QUERY = _IN_PATH.replace("@/", "@/?")
_IRI = (
    r"<[a-z][a-z0-9+.-]*+:(?://[A-Za-z0-9._~-]++(?::[0-9]{1,5})?(?=[/?#>])|(?!//))"
    rf"{_IN_PATH}(?:\?{_IN_QUERY})?(?:#{_IN_QUERY})?>"
)
_CHARACTERS = r'[^"\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]*+'
_TEXT = rf'"{_CHARACTERS}(?:\\[tbnrf"\\]{_CHARACTERS})*+"'
CANONICAL_IRI = lazy(_IRI)
CANONICAL_TEXT = lazy(rf"{_TEXT}(?:\^\^<{re.escape(vocab.XSD)}(?!string>)[A-Za-z]+>)?+")

#: An IRI that no prefix abbreviates, and a prefixed name.
_BARE = rf"(?!<(?:{'|'.join(map(re.escape, PREFIXES.values()))})){_IRI}"
_NAME = rf"(?:{'|'.join(PREFIXES)}):{_LOCAL_NAME}"
_NODE = lazy(f"{_BARE}|({_NAME})")
_VALUE = lazy(rf"{_BARE}|{_TEXT}(?:@[a-z]{{2,3}}|\^\^(?!xsd:string\Z)(xsd:{_LOCAL_NAME}))?|({_NAME})")
#: A form of the property `a` that sorts before any IRI, as that property does in the order of the lines.
_A = "\x01"
#: The most bytes of N-Triples that are made of a document, and the most that prefixes add to one line.
_MOST_BYTES, _LONGEST_PREFIXES = 16 << 20, 100
#: The number of rows in the cache, and the most characters of each.
_ROWS, _ROW_LENGTH = 4096, 160


class UnusualLines(Exception):
    """The lines are not in order, are very many, or have a term that is not in one of the usual forms."""


def expand(blocks: Iterable[str], size: int) -> tuple[Term, list[str], str]:
    """Return the first subject of a document of *size* bytes, its lines, and the other lines, as canonical N-Triples.

    *blocks* are the parts of the document after its top, without the empty lines between them. Raise UnusualLines
    unless each line has the form of its terms and the lines are in the one order. They are compared as N-Triples: no
    subject or property is the beginning of another one, and the space after a value sorts before all that may follow
    in a longer value.
    """
    subjects, lines, counts = list[Term](), list[str](), list[int]()
    for block in blocks:
        start, _, body = block.partition("\n    ")
        rows, subject = body[:-2].split(" ;\n    "), _node(start)
        size += (len(subject) + _LONGEST_PREFIXES) * len(rows)
        if body[-2:] != " ." or size > _MOST_BYTES:
            raise UnusualLines
        subjects.append(subject)
        counts.append(len(rows))
        lines += [subject + _TAILS[row] for row in rows]
    first, others = lines[: counts[0]], lines[counts[0] :]
    if subjects[0] in subjects[1:] or not all(map(_is_ascending, (subjects[1:], first, others))):
        raise UnusualLines
    others.append("")
    return subjects[0], [line.replace(_A, vocab.TYPE) for line in first], "\n".join(others).replace(_A, vocab.TYPE)


class _Tails(dict[str, str]):
    """The N-Triples after the subject, by row of a document; short rows come again and are cached."""

    def __missing__(self, row: str) -> str:
        verb, _, value = row.partition(" ")
        match = _VALUE.fullmatch(value)
        if match is None:
            raise UnusualLines
        if match.lastindex:
            value = value[: match.start(match.lastindex)] + _full(match[match.lastindex])
        tail = f" {_property(verb)} {value} ."
        if len(row) <= _ROW_LENGTH:
            if len(self) >= _ROWS:
                self.clear()
            self[row] = tail
        return tail


_TAILS = _Tails()


@lru_cache(maxsize=1024)
def _property(written: str) -> Term:
    """Return the property of a row; `_A` for a class."""
    if written == "rdf:type":
        raise UnusualLines
    return _A if written == "a" else _node(written)


def _node(written: str) -> Term:
    match = _NODE.fullmatch(written)
    if match is None:
        raise UnusualLines
    return _full(written) if match.lastindex else written


def _full(name: str) -> Term:
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>"


def _is_ascending(items: Sequence[str]) -> bool:
    return all(map(lt, items, items[1:]))
