"""The queries that count memories, answered by the tallies (`jidomem.index.tallies`) with the rows of their SPARQL.

The engine reads every memory for such a query; the tallies have the numbers of all groups at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from jidomem.index import OxigraphIndex
from jidomem.index.projection import IndexedProject, moment_term, ticks
from jidomem.index.tallies import COUNTED_BY, Tallies
from jidomem.rdf.terms import Term, integer, iri, literal, plain_value
from jidomem.rdf.vocab import graph_iri, graphs_of, jido
from jidomem.records.named_query import NamedQuery

Row = tuple[Term | None, ...]


def _by_status(tallies: Tallies, kinds: Collection[str], moment: int, valid_at: int | None) -> Iterator[Row]:
    for kind, status, number in tallies.by_status(kinds, moment, valid_at):
        yield iri(kind), literal(status), integer(number)


def _by_agent(tallies: Tallies, kinds: Collection[str], moment: int, valid_at: int | None) -> Iterator[Row]:
    for agent, kind, number, first, last in tallies.by_agent(kinds, moment, valid_at):
        yield iri(agent), iri(kind), integer(number), moment_term(first), moment_term(last)


#: Named query -> its question in the tallies, and the function that returns its rows, each with all its columns.
_ROWS: Mapping[str, tuple[str, Callable[[Tallies, Collection[str], int, int | None], Iterator[Row]]]] = {
    "counts": ("status", _by_status),
    "agent-activity": ("agent", _by_agent),
}


def is_counted(query: NamedQuery) -> bool:
    """Return whether the tallies answer *query*: one of the playbook's own that counts memories."""
    return query.name in _ROWS and not query.is_isolated


def rows(
    query: NamedQuery, tallies: Tallies, index: OxigraphIndex, project: str, bindings: Mapping[str, Term]
) -> Iterator[Row] | None:
    """Return the rows of *query*; None where only the engine has them.

    That is so if a memory has a value of another form than the writer gives, or is in another graph of *project*.
    """
    question, of = _ROWS[query.name]
    moment, valid_at = ticks(bindings["asOf"]), bindings.get("validAt")
    others = [graph for graph in graphs_of(project) if graph != graph_iri(project)]
    is_elsewhere = any(
        any(index.triples(graph, None, name, most=1)) for graph in others for name in COUNTED_BY[question]
    )
    if moment is None or is_elsewhere or not tallies.has_all():
        return None
    classes = IndexedProject(index, project).subclasses(jido("MemoryItem"))
    kinds = {plain_value(name) for name in classes if name is not None}
    return of(tallies, kinds, moment, None if valid_at is None else ticks(valid_at))
