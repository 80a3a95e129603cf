"""Turtle for people: a serialisation with one block a subject, and the line of each triple of a document. Pure.

`statements` determines the lines; another parser decides whether the document is valid Turtle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple
from urllib.parse import urljoin

from jidomem.base.regex import lazy
from jidomem.rdf import vocab
from jidomem.rdf.terms import XSD, Term, Triple, boolean, iri, literal, plain_value
from jidomem.rdf.vocab import RDF, TYPE

_PREFIXES = {"jido": vocab.JIDO, "prov": vocab.PROV, "rdfs": vocab.RDFS, "xsd": vocab.XSD}
_LOCAL = lazy(r"[A-Za-z][A-Za-z0-9_-]*")
_TYPED = lazy(r"(.*\^\^)(<[^<>]*>)", re.DOTALL)


def turtle(triples: Iterable[Triple], further: Mapping[str, str] | None = None) -> str:
    """Return *triples* as Turtle, for each subject its classes first, then sorted; with *further* prefixes."""
    prefixes = {**_PREFIXES, **(further or {})}
    header = "".join(f"@prefix {name}: <{namespace}> .\n" for name, namespace in sorted(prefixes.items()))
    ordered = sorted(triples, key=lambda triple: (triple[0], triple[1] != vocab.TYPE, triple))
    blocks = (_block(subject, [*group], prefixes) for subject, group in groupby(ordered, key=lambda triple: triple[0]))
    return header + "".join(blocks)


def _block(subject: Term, triples: list[Triple], prefixes: Mapping[str, str]) -> str:
    pairs = [f"{'a' if p == vocab.TYPE else _shown(p, prefixes)} {_shown(value, prefixes)}" for _, p, value in triples]
    return f"\n{_shown(subject, prefixes)} " + " ;\n    ".join(pairs) + " .\n"


def _shown(term: Term, prefixes: Mapping[str, str]) -> str:
    typed = _TYPED.fullmatch(term)
    if typed and term.startswith('"'):
        return typed[1] + _shown(typed[2], prefixes)
    for name, namespace in prefixes.items():
        local = term[len(namespace) + 1 : -1]
        if term.startswith(f"<{namespace}") and _LOCAL.fullmatch(local):
            return f"{name}:{local}"
    return term


_TOKEN = lazy(
    r"""
      (?P<skip>    [\s\ufeff]+ | \#[^\r\n]* )
    | (?P<iri>     < (?: [^<>"{}|^`\\\x00-\x20] | \\[uU][0-9A-Fa-f]+ )* > )
    | (?P<string>  \"{3} (?: \"{0,2} (?: [^"\\] | \\. ) )* \"{3}
                 | '{3} (?: '{0,2} (?: [^'\\] | \\. ) )* '{3}
                 | " (?: [^"\\\r\n] | \\. )* "
                 | ' (?: [^'\\\r\n] | \\. )* ' )
    | (?P<blank>   _: [\w] (?: [\w.\-]* [\w\-] )? )
    | (?P<tag>     @ [A-Za-z]+ (?: - [A-Za-z0-9]+ )* )
    | (?P<number>  [+-]? (?: \d+ (?: \.\d* )? | \.\d+ ) [eE] [+-]? \d+ | [+-]? \d* \.\d+ | [+-]? \d+ )
    | (?P<name>    (?: [^\W\d_] (?: [\w.\-]* [\w\-] )? )? : (?: (?: [\w:\-] | %[0-9A-Fa-f]{2} | \\\S )
                   (?: (?: [\w:.\-] | %[0-9A-Fa-f]{2} | \\\S )* (?: [\w:\-] | %[0-9A-Fa-f]{2} | \\\S ) )? )? )
    | (?P<word>    [^\W\d_]+ )
    | (?P<sign>    \^\^ | [\[\](){}.;,] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = lazy(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_FIRST, _REST, _NIL = iri(RDF + "first"), iri(RDF + "rest"), iri(RDF + "nil")


class LocatedTriple(NamedTuple):
    """A triple, the first line of its object, and the first line of the block of its subject."""

    triple: Triple
    line: int
    block: int


class UnsupportedTurtle(Exception):
    """A document that this parser cannot read, though it may be Turtle."""


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def statements(text: str, base: str = "") -> list[LocatedTriple]:
    r"""Return the triples of a valid document with their lines; raise UnsupportedTurtle if this parser cannot read it.

    Relative IRIs are resolved against *base*, and unchanged without one.

    >>> [(each.line, each.triple[2]) for each in statements('<urn:a> <urn:b> 1 ,\n "x" .')]
    [(1, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'), (2, '"x"')]
    """
    reader = _Reader(text, base)
    try:
        reader.document()
    except (IndexError, KeyError, ValueError) as error:
        raise UnsupportedTurtle(repr(error)) from error
    return reader.statements


class _Reader:
    def __init__(self, text: str, base: str) -> None:
        self._tokens = list(_tokens(text))
        self._at, self._blanks = 0, 0
        self._prefixes: dict[str, str] = {}
        self._base = base
        self.statements: list[LocatedTriple] = []

    def document(self) -> None:
        while self._at < len(self._tokens):
            token = self._next()
            directive = token.text.lstrip("@").lower()
            if token.kind in ("tag", "word") and directive in ("prefix", "base", "version"):
                self._directive(directive)
                if token.kind == "tag":
                    self._take(".")
            else:
                self._at -= 1
                self._block()

    def _directive(self, kind: str) -> None:
        if kind == "prefix":
            prefix = self._next().text[:-1]
            self._prefixes[prefix] = self._iri(self._next().text)
        elif kind == "base":
            self._base = self._iri(self._next().text)
        else:
            self._next()

    def _block(self) -> None:
        line, opened = self._peek().line, self._peek().text == "["
        subject = self._object(line)
        if not (opened and self._peek().text == "."):
            self._predicates(subject, line)
        self._take(".")

    def _predicates(self, subject: Term, block: int) -> None:
        while True:
            verb = self._next()
            predicate = TYPE if (verb.kind, verb.text) == ("word", "a") else self._named(verb)
            while True:
                line = self._peek().line
                self.statements.append(LocatedTriple((subject, predicate, self._object(block)), line, block))
                if self._peek().text != ",":
                    break
                self._next()
            if self._peek().text != ";":
                return
            while self._peek().text == ";":
                self._next()
            if self._peek().text in (".", "]"):
                return

    def _object(self, block: int) -> Term:
        token = self._next()
        if token.kind in ("iri", "name"):
            return self._named(token)
        if token.kind == "blank":
            return token.text
        if token.text == "[":
            return self._anonymous(block)
        if token.text == "(":
            return self._collection(block)
        return self._literal(token)

    def _anonymous(self, block: int) -> Term:
        node = self._blank()
        if self._peek().text != "]":
            self._predicates(node, block)
        self._take("]")
        return node

    def _collection(self, block: int) -> Term:
        members: list[tuple[Term, int]] = []
        while self._peek().text != ")":
            line = self._peek().line
            members.append((self._object(block), line))
        self._next()
        nodes = [*(self._blank() for _ in members), _NIL]
        for at, (member, line) in enumerate(members):
            self.statements.append(LocatedTriple((nodes[at], _FIRST, member), line, block))
            self.statements.append(LocatedTriple((nodes[at], _REST, nodes[at + 1]), line, block))
        return nodes[0]

    def _literal(self, token: _Token) -> Term:
        if token.kind == "number":
            kind = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
            return literal(token.text, XSD + kind)
        if token.kind == "word":
            return boolean({"true": True, "false": False}[token.text])
        if token.kind != "string":
            raise ValueError(token)
        quote = 3 if token.text[:3] in ('"""', "'''") and len(token.text) > 5 else 1
        text = _unescaped(token.text[quote:-quote])
        if self._peek().kind == "tag":
            return literal(text, language=self._next().text[1:])
        if self._peek().text == "^^":
            self._next()
            return literal(text, plain_value(self._named(self._next())))
        return literal(text)

    def _named(self, token: _Token) -> Term:
        if token.kind == "iri":
            return iri(self._iri(token.text))
        if token.kind != "name":
            raise ValueError(token)
        prefix, _, local = token.text.partition(":")
        return iri(self._prefixes[prefix] + re.sub(r"\\(.)", r"\1", local))

    def _iri(self, text: str) -> str:
        reference = _unescaped(text[1:-1])
        return (
            reference
            if re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:", reference) or not self._base
            else urljoin(self._base, reference)
        )

    def _blank(self) -> Term:
        self._blanks += 1
        return f"_:anonymous-{self._blanks}"

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, sign: str) -> None:
        if self._next().text != sign:
            raise ValueError(sign)


def _tokens(text: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnsupportedTurtle(text[at : at + 20])
        if match.lastgroup != "skip":
            yield _Token(str(match.lastgroup), match[0], line)
        line += match[0].count("\n")
        at = match.end()


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _CONTROL.get(m[3], m[3]), text)
