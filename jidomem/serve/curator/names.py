"""What pages call a property, a class or a value of ours: its label in the ontology, with its IRI at hand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from jidomem.govern import glossary
from jidomem.schema import Schema
from jidomem.terms import bare
from jidomem.vocab import local_name


class Named(NamedTuple):
    """What something is called, and the IRI it has; None where the ontology does not know it."""

    text: str
    iri: str | None


def named(schema: Schema, name: str) -> Named:
    """Return what a term is called, by its IRI or its local name.

    >>> from jidomem import schema
    >>> named(schema.load(), "detailedExplanation")
    Named(text='detailed explanation', iri='https://jido.ai/ontology#detailedExplanation')
    >>> named(schema.load(), "colour")
    Named(text='colour', iri=None)
    """
    return _names(schema).get(name) or Named(name, None)


@lru_cache(maxsize=4)
def _names(schema: Schema) -> Mapping[str, Named]:
    """Return the terms by IRI and by local name; ours before those of a root, which are called after them."""
    labels, found = glossary.labels(schema), dict[str, Named]()
    for term in sorted(schema.declared, key=lambda term: (term not in schema.properties, term)):
        name = Named(labels.get(term) or local_name(term), bare(term))
        found[bare(term)] = name
        found.setdefault(local_name(term), name)
    return found
