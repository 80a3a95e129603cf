"""A root's index as a triple store: it answers, and what only the journal may change it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from jidomem import sparql
from jidomem.dataset import dataset
from jidomem.errors import PolicyDenied
from jidomem.index.answers import Answer
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.store import Found, shown
from jidomem.statements import Statement


class DerivedStore:
    """The graphs of one project of a root, for reading."""

    def __init__(self, index: OxigraphIndex, graphs: Sequence[str], catch_up: Callable[[], object]) -> None:
        """Ask *index* about *graphs*, each time after *catch_up* has brought it up to the journal."""
        self._index = index
        self._graphs = tuple(graphs)
        self._catch_up = catch_up

    def answer(self, text: str, graphs: Sequence[str] | None = None) -> Answer:
        """Return what *text* asks of the union of *graphs*; raises what the reader raises for raw SPARQL."""
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        default, named = dataset(code, self._graphs if graphs is None else graphs)
        self._catch_up()
        return self._index.query(text, graphs=default, named=named)

    def query(self, text: str) -> Found:
        """Return rows, a truth or triples: what SPARQL asks of the graphs together."""
        return shown(self.answer(text))

    def insert(self, triples: Iterable[Statement], graph: str = "default") -> NoReturn:
        """Raise PolicyDenied `index_is_derived`."""
        raise _derived("an insert")

    def clear_graph(self, graph: str = "default") -> NoReturn:
        """Raise PolicyDenied `index_is_derived`."""
        raise _derived("a clear")


def _derived(what: str) -> PolicyDenied:
    return PolicyDenied(
        f"a root's index is built from its journal: {what} would be lost, and is refused",
        hint="memory.long_term(project).insert(statements, graph) writes to the journal",
        code="index_is_derived",
    )
