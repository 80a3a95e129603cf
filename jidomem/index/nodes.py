"""Terms as the store's own objects, and the marks that a store holds."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyoxigraph as ox

from jidomem.index.document import HOLDS, MARKS, Mark
from jidomem.terms import XSD, Term, bare, is_iri, parts
from jidomem.vocab import ONTOLOGY_GRAPH

_STRING = XSD + "string"


def marks(store: Any) -> dict[str, Mark]:
    """Return how far each graph of a store reaches; of two marks, left by a crash between, the later one counts."""
    found: dict[str, Mark] = {}
    for quad in store.quads_for_pattern(None, ox.NamedNode(HOLDS), None, ox.NamedNode(MARKS)):
        if quad.subject.value != ONTOLOGY_GRAPH:
            mark = Mark.of(str(quad.object))
            if mark.commits >= found.get(quad.subject.value, mark).commits:
                found[quad.subject.value] = mark
    return found


@lru_cache(maxsize=512)  # properties, agents, sessions and graphs are asked about again and again
def named(term: Term) -> Any:
    """Return the pyoxigraph object of an IRI."""
    return ox.NamedNode(bare(term))


def node(term: Term) -> Any:
    """Return the pyoxigraph object of a term."""
    if is_iri(term):
        return named(term)
    if term.startswith("_:"):
        return ox.BlankNode(term[2:])
    text, datatype, language = parts(term)
    if language:
        return ox.Literal(text, language=language)
    return ox.Literal(text) if datatype == _STRING else ox.Literal(text, datatype=ox.NamedNode(datatype))
