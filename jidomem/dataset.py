"""What a query is asked of: the graphs that make up the default graph, and those that GRAPH may name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urljoin

from jidomem.errors import InvalidRequest
from jidomem.sparql import Token
from jidomem.vocab import BASE

#: A graph in which nothing is ever stated: it stands for every graph that is not there to be asked.
EMPTY = "urn:jidomem:empty"
_CODE_POINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


class Dataset(NamedTuple):
    """The graphs whose union is the default graph, and those that GRAPH reaches, by their IRIs."""

    default: Sequence[str]
    named: Sequence[str]


def dataset(code: Sequence[Token], graphs: Sequence[str], instead: Dataset | None = None) -> Dataset:
    """Return the dataset of a query as *instead* says, else as FROM and FROM NAMED do; else all *graphs* twice.

    A graph that is not among *graphs* is an empty one (SPARQL 1.1 Protocol, section 2.1.4).
    """
    default, named = _stated(code) if instead is None else instead
    if default or named:
        return Dataset(_known(default, graphs), _known(named, graphs))
    return Dataset(graphs, graphs)


def unknown_graphs(code: Sequence[Token], graphs: Sequence[str], instead: Dataset | None = None) -> list[str]:
    """Return the graphs that a query or *instead* names, as for `dataset`, and that are not among *graphs*."""
    default, named = _stated(code) if instead is None else instead
    return [graph for graph in dict.fromkeys((*default, *named)) if graph not in graphs]


def refuse_graphs(code: Sequence[Token]) -> None:
    """Raise InvalidRequest for a query that names a graph by FROM: it is asked of the graphs of a project."""
    for graph in unknown_graphs(code, ()):
        raise InvalidRequest(f"the query names the graph <{graph}>", hint="leave out FROM: all graphs are asked")


def _known(stated: Iterable[str], graphs: Sequence[str]) -> list[str]:
    """Return each graph once, since one that is asked twice gives every row twice; EMPTY for an unknown one."""
    return list(dict.fromkeys(graph if graph in graphs else EMPTY for graph in stated))


def _stated(code: Sequence[Token]) -> Dataset:
    """Return the graphs that FROM and FROM NAMED name; as they stand in the query where they cannot be read."""
    base, prefixes = _prologue(code)
    default: list[str] = []
    named: list[str] = []
    for at, token in enumerate(code):
        word = token.text.upper()
        if token.kind == "word" and word in ("FROM", "FROMNAMED"):  # the engine needs no space between the two
            following = [*code[at + 1 : at + 3], Token("", ""), Token("", "")]
            is_named = word == "FROMNAMED" or following[0].text.upper() == "NAMED"
            graph = following[1] if is_named and word == "FROM" else following[0]
            (named if is_named else default).append(_iri(graph, base, prefixes))
    return Dataset(default, named)


def _prologue(code: Sequence[Token]) -> tuple[str, Mapping[str, str]]:
    """Return the base of relative IRIs, and what each prefix stands for."""
    base, prefixes = BASE, dict[str, str]()
    for word, first, second in _threes(code):
        if word.kind != "word" or word.text.upper() not in ("BASE", "PREFIX", "VERSION"):
            continue
        if word.text.upper() == "BASE":
            base = _iri(first, base, {})
        elif first.kind == "name":
            prefixes[first.text[:-1]] = _iri(second, base, {})
    return base, prefixes


def _threes(code: Sequence[Token]) -> Iterator[tuple[Token, Token, Token]]:
    return zip(code, code[1:], code[2:], strict=False)


def _iri(token: Token, base: str, prefixes: Mapping[str, str]) -> str:
    if token.kind == "iri":
        return _resolved(base, _CODE_POINT.sub(_sign, token.text[1:-1]))
    if token.kind == "name":
        prefix, _, local = token.text.partition(":")
        return prefixes[prefix] + re.sub(r"\\(.)", r"\1", local) if prefix in prefixes else token.text
    return token.text


def _resolved(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:  # of an address that is none, such as http://[
        return reference


def _sign(escaped: re.Match[str]) -> str:
    code = int(escaped[1] or escaped[2], 16)
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else escaped[0]
