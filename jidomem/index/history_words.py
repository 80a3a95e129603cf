"""What the history of a project holds, as it is looked through: entries of agents, and turns of conversations."""

from __future__ import annotations

from collections.abc import Iterable

from jidomem.index import kept_words, turn_words
from jidomem.index.documents import Document
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.terms import Term


def items(index: OxigraphIndex, graph: str) -> list[tuple[Term, Term]]:
    """Return every entry and turn of *graph*, oldest first, each after the moment it was recorded."""
    return sorted([*kept_words.items(index, graph), *turn_words.items(index, graph)])


def touched(index: OxigraphIndex, graph: str, nodes: Iterable[Term]) -> list[Term]:
    """Return what may have to be looked at again once something new was said of *nodes*, sorted."""
    return kept_words.touched(index, graph, nodes)


def document(index: OxigraphIndex, graph: str, node: Term) -> Document | None:
    """Return the entry or turn *node* as it is looked through; None for what is neither, or was redacted."""
    return kept_words.document(index, graph, node) or turn_words.document(index, graph, node)
