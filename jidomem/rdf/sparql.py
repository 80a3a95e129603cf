"""The policy for raw SPARQL: a small lexer that checks a query before the engine sees it, and its dataset.

The engine has no option to ignore SERVICE, and its parser reads keywords without a word boundary (`1SERVICE<x>`,
`SERVICEex:a`). So the lexer takes as few characters as possible as names, and `service` in the rest is refused. A
dataset is the graphs of the default graph, and those that GRAPH may name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urljoin

from jidomem.base.json_values import is_unicode
from jidomem.base.regex import lazy
from jidomem.errors import InvalidRequest, PolicyDenied, TooLarge
from jidomem.rdf.vocab import BASE, RDF, RDFS

MAX_BYTES = 64 * 1024
MAX_DEPTH = 64
#: The engine recurses over patterns and operators: 567 steps of one property path overflowed a stack of 8 MB.
MAX_OPERATORS = 250

_TOKEN = lazy(
    r"""
      (?P<comment> \#[^\r\n]* )
    | (?P<iri>     < (?: [^<>"{}|^`\\\x00-\x20] | \\[uU][0-9A-Fa-f]+ )* > )
    | (?P<string>  \"{3} (?: \"{0,2} (?: [^"\\] | \\. ) )* \"{3}
                 | '{3} (?: '{0,2} (?: [^'\\] | \\. ) )* '{3}
                 | " (?: [^"\\\r\n] | \\[^\r\n] )* "
                 | ' (?: [^'\\\r\n] | \\[^\r\n] )* ' )
    | (?P<variable> [?$]\w+ )
    | (?P<tag>     @[A-Za-z]+ (?: -[A-Za-z0-9]+ )* )
    | (?P<name>    (?: [^\W\d_][\w.\-]* )? : (?: \w | - | %[0-9A-Fa-f]{2} | \\\S )* )
    | (?P<word>    [^\W\d_]\w* )
    | (?P<number>  \d+ (?: \.\d+ )? )
    | (?P<space>   \s+ )
    | (?P<sign>    \\. | \|\| | && | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_UPDATES = frozenset(("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"))
_OPERATORS = frozenset(("UNION", "OPTIONAL", "MINUS", "BIND", "GRAPH", "LATERAL", "FILTER", "VALUES"))
_OPERATOR_SIGNS = frozenset((".", ";", "/", "|", "||", "&&", "+", "-", "*", "^"))
_OPENING, _CLOSING = "{[(", "}])"
_WITH_SUPERCLASSES = f"(<{RDF}type>/<{RDFS}subClassOf>*)"


class SparqlToken(NamedTuple):
    """A token of a query: its kind and its text."""

    kind: str
    text: str


def tokens(text: str) -> Iterator[SparqlToken]:
    """Return every token of *text*, including spaces and comments; joined they are the text again.

    >>> [token.kind for token in tokens('"SERVICE"@en#x')]
    ['string', 'tag', 'comment']
    """
    return (SparqlToken(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(text))


def check(text: str, most: int = MAX_BYTES, depth: int = MAX_DEPTH) -> tuple[SparqlToken, ...]:
    """Return the tokens, without spaces and comments, of a read-only, local query.

    Raises TooLarge for a text of more than *most* bytes, PolicyDenied for an update or SERVICE, and InvalidRequest for
    a query that nests deeper than *depth*, or has so many operators that the stack of the engine could overflow.
    """
    if not isinstance(text, str) or not is_unicode(text):
        raise InvalidRequest(f"{text!r:.80} is not a text", hint="write a SPARQL query", code="malformed_query")
    size = len(text.encode())
    if size > most:
        raise TooLarge(f"the query has {size:,} bytes, more than {most:,}", hint="ask for less, or use a named query")
    code = _code_of(tokens(text))
    _refuse_service(code)
    _refuse_update(code)
    _refuse_depth(code, depth)
    return code


def _code_of(pieces: Iterable[SparqlToken]) -> tuple[SparqlToken, ...]:
    return tuple(token for token in pieces if token.kind not in ("space", "comment"))


def without_service_prefixes(text: str) -> str:
    """Return the query with every declared prefix that contains the keyword SERVICE renamed to one of the same length.

    The engine reads `SERVICE:x {...}` as a call to `:x`, even if the prefix is declared; `check` refuses such names.

    >>> without_service_prefixes("PREFIX service: <urn:x:> SELECT * { ?s service:p service:o }")
    'PREFIX serv0ce: <urn:x:> SELECT * { ?s serv0ce:p serv0ce:o }'
    """
    if not isinstance(text, str) or "service" not in text.lower():
        return text
    pieces = tuple(tokens(text))
    _, declared = _prologue(_code_of(pieces))
    names = {prefix: prefix for prefix in declared if "service" not in prefix.lower()}
    for prefix in sorted(declared.keys() - names.keys()):
        others = (re.sub("service", f"serv{digit}ce", prefix, flags=re.IGNORECASE) for digit in range(10))
        names[prefix] = next((name for name in others if name not in names.values()), prefix)
    return "".join(_renamed(token, names) for token in pieces)


def _renamed(token: SparqlToken, prefixes: Mapping[str, str]) -> str:
    if token.kind != "name":
        return token.text
    prefix, _, local = token.text.partition(":")
    return f"{prefixes.get(prefix, prefix)}:{local}"


def _refuse_service(code: Sequence[SparqlToken]) -> None:
    words = (t.text.split(":")[0] if t.kind == "name" else t.text for t in code if t.kind in ("word", "name"))
    if any("service" in word.lower() for word in words):
        raise PolicyDenied(
            "a query reads this memory only: SERVICE is refused",
            hint="query the other endpoint yourself and join the answers",
            code="federation_refused",
        )


def _refuse_update(code: Sequence[SparqlToken]) -> None:
    if first_word(code) in _UPDATES:
        raise PolicyDenied(
            f"{first_word(code)} is an update, and the reader does not write",
            hint="submit an intent: jidomem submit FILE, or memory.writer.submit_intent(...)",
            code="update_refused",
        )


def first_word(code: Sequence[SparqlToken]) -> str:
    """Return the first keyword after the prologue, in capitals; an empty text if there is none."""
    words = (token.text.upper() for token in code if token.kind == "word")
    return next((word for word in words if word not in ("BASE", "PREFIX", "VERSION")), "")


def _refuse_depth(code: Sequence[SparqlToken], depth: int) -> None:
    """Raise unless the nesting of brackets and the number of operators are within the limits of the engine."""
    opened: list[str] = []
    operators = 0
    for kind, text in code:
        if kind == "sign" and text in _OPENING:
            opened.append(text)
        elif kind == "sign" and text in _CLOSING and opened:
            opened.pop()
        listed = text == "," and bool(opened) and opened[-1] != "("
        operators += text.upper() in _OPERATORS if kind == "word" else kind == "sign" and (text in _OPERATOR_SIGNS)
        operators += listed
        if len(opened) > depth:
            raise _malformed(f"brackets nest deeper than {depth}")
    if operators > MAX_OPERATORS:
        raise _malformed(f"the query has {operators:,} patterns and operators, more than {MAX_OPERATORS}")


def with_superclasses(text: str) -> str:
    """Return the query with every `a` and `rdf:type` also matching the superclasses of the stated class."""
    pieces = tuple(tokens(text))
    _, declared = _prologue(_code_of(pieces))
    return "".join(_WITH_SUPERCLASSES if _is_type(token, declared) else token.text for token in pieces)


def _is_type(token: SparqlToken, declared: Mapping[str, str]) -> bool:
    if token.kind == "name":
        prefix, local = token.text.split(":", 1)
        return declared.get(prefix, "") + local == RDF + "type"
    return token.text == "a" if token.kind == "word" else token.text == f"<{RDF}type>"


def _malformed(what: str) -> InvalidRequest:
    return InvalidRequest(what, hint="split the query into smaller ones", code="malformed_query")


#: An always empty graph, which stands for every unknown graph.
EMPTY = "urn:jidomem:empty"
_CODE_POINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


class Dataset(NamedTuple):
    """The graphs whose union is the default graph, and those that GRAPH reaches, by IRI."""

    default: Sequence[str]
    named: Sequence[str]


def dataset(code: Sequence[SparqlToken], graphs: Sequence[str], instead: Dataset | None = None) -> Dataset:
    """Return the dataset of a query: *instead*, else that of FROM and FROM NAMED, else all *graphs* as both parts.

    A graph that is not among *graphs* counts as empty (SPARQL 1.1 Protocol, section 2.1.4).
    """
    default, named = _stated(code) if instead is None else instead
    if default or named:
        return Dataset(_known(default, graphs), _known(named, graphs))
    return Dataset(graphs, graphs)


def unknown_graphs(code: Sequence[SparqlToken], graphs: Sequence[str], instead: Dataset | None = None) -> list[str]:
    """Return the graphs that a query or *instead* names, as for `dataset`, and that are not among *graphs*."""
    default, named = _stated(code) if instead is None else instead
    return [graph for graph in dict.fromkeys((*default, *named)) if graph not in graphs]


def refuse_graphs(code: Sequence[SparqlToken]) -> None:
    """Raise InvalidRequest for a query that names a graph by FROM; it is run on all graphs of a project."""
    for graph in unknown_graphs(code, ()):
        raise InvalidRequest(f"the query names the graph <{graph}>", hint="leave out FROM: all graphs are queried")


def _known(stated: Iterable[str], graphs: Sequence[str]) -> list[str]:
    """Return each graph once, since a repeated graph would repeat every row; EMPTY for an unknown one."""
    return list(dict.fromkeys(graph if graph in graphs else EMPTY for graph in stated))


def _stated(code: Sequence[SparqlToken]) -> Dataset:
    base, prefixes = _prologue(code)
    default: list[str] = []
    named: list[str] = []
    for at, token in enumerate(code):
        word = token.text.upper()
        if token.kind == "word" and word in ("FROM", "FROMNAMED"):  # the engine accepts both without a space between
            following = [*code[at + 1 : at + 3], SparqlToken("", ""), SparqlToken("", "")]
            is_named = word == "FROMNAMED" or following[0].text.upper() == "NAMED"
            graph = following[1] if is_named and word == "FROM" else following[0]
            (named if is_named else default).append(_iri(graph, base, prefixes))
    return Dataset(default, named)


#: What follows a token that is only the beginning of a local name: a dot or a colon in it is in no token.
_LONGER_NAME = re.compile(r"\.?[\w:%\\]")


def iris(text: str) -> Iterator[tuple[str, int]]:
    """Yield each IRI of a query with its line, those of its prologue too, but no local name with a dot or colon in it.

    Names of unknown prefixes stay as they are.

    >>> [*iris("PREFIX x: <urn:x:> SELECT * { ?s x:p <urn:o> ; x:v1.2 ?o }")][-2:]
    [('urn:x:p', 1), ('urn:o', 1)]
    """
    pieces, at, line = tuple(tokens(text)), 0, 1
    base, prefixes = _prologue(_code_of(pieces))
    for token in pieces:
        at += len(token.text)
        if token.kind == "iri" or (token.kind == "name" and not _LONGER_NAME.match(text, at)):
            yield _iri(token, base, prefixes), line
        line += token.text.count("\n")


def _prologue(code: Sequence[SparqlToken]) -> tuple[str, Mapping[str, str]]:
    base, prefixes = BASE, dict[str, str]()
    for word, first, second in zip(code, code[1:], code[2:], strict=False):
        if word.kind != "word" or word.text.upper() not in ("BASE", "PREFIX", "VERSION"):
            continue
        if word.text.upper() == "BASE":
            base = _iri(first, base, {})
        elif first.kind == "name":
            prefixes[first.text[:-1]] = _iri(second, base, {})
    return base, prefixes


def _iri(token: SparqlToken, base: str, prefixes: Mapping[str, str]) -> str:
    if token.kind == "iri":
        return _resolved(base, _CODE_POINT.sub(_sign, token.text[1:-1]))
    if token.kind == "name":
        prefix, _, local = token.text.partition(":")
        return prefixes[prefix] + re.sub(r"\\(.)", r"\1", local) if prefix in prefixes else token.text
    return token.text


def _resolved(base: str, reference: str) -> str:
    try:
        joined = urljoin(base, reference)
        return f"{joined}#" if reference.endswith("#") and not joined.endswith("#") else joined  # it may drop the sign
    except ValueError:  # an invalid address, such as http://[
        return reference


def _sign(escaped: re.Match[str]) -> str:
    code = int(escaped[1] or escaped[2], 16)
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else escaped[0]
