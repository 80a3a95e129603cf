"""A query as a store behind an endpoint is asked it: with the terms in it that the engine here is given beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jidomem.sparql import Token, first_word, tokens
from jidomem.terms import Term
from jidomem.vocab import BASE


def spelled(text: str, bindings: Mapping[str, Term]) -> str:
    r"""Return *text* with the terms of *bindings* in the place of their variables, and without FROM and FROM NAMED.

    The dataset goes beside the text. Each term stands as a term does, and a variable that is selected is selected
    still, under its name.

    >>> spelled("SELECT ?s ?o FROM <urn:g> { ?s ?p ?o } ORDER BY ?s", {"s": "<urn:a>"}).partition("\n")[2]
    'SELECT (<urn:a> AS ?s) ?o  { <urn:a> ?p ?o } ORDER BY (<urn:a>)'
    """
    pieces = list(_without_from(tokens(text)))
    selects = first_word(pieces) == "SELECT"
    return f"BASE <{BASE}>\n" + "".join(_placed(pieces, bindings, selects))


def _placed(pieces: Sequence[Token], bindings: Mapping[str, Term], selects: bool) -> Iterator[str]:
    """Yield the pieces, a term in place of its variable: named where it is selected, bracketed after the pattern."""
    braces = brackets = 0
    begun = False
    for piece in pieces:
        braces += (piece.text == "{") - (piece.text == "}") if piece.kind == "sign" else 0
        brackets += (piece.text == "(") - (piece.text == ")") if piece.kind == "sign" else 0
        begun |= braces > 0
        name = piece.text[1:]
        if piece.kind != "variable" or name not in bindings:
            yield piece.text
        elif braces or brackets:
            yield bindings[name]
        else:
            yield f"({bindings[name]})" if begun or not selects else f"({bindings[name]} AS ?{name})"


def _without_from(pieces: Iterator[Token]) -> Iterator[Token]:
    """Yield the pieces but for FROM, NAMED and the graph that follows: nothing else has a word of that name."""
    for piece in pieces:
        if piece.kind != "word" or piece.text.upper() not in ("FROM", "FROMNAMED"):
            yield piece
            continue
        for graph in pieces:
            if graph.kind in ("iri", "name"):
                break
