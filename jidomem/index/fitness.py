"""Whether a store answers as the engine of this process does: a few questions about a small graph, put to both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyoxigraph as ox

from jidomem.errors import Failed
from jidomem.index import virtuoso
from jidomem.index.answers import Answer, plain
from jidomem.index.endpoint import Endpoint, Refused
from jidomem.index.marked import LINES, ROWS, refusal_of
from jidomem.index.spelled import spelled
from jidomem.terms import Term

PROBE, ASIDE = "urn:jidomem:index:probe", "urn:jidomem:index:probe:aside"
_DATA = r"""
<urn:p:a> <urn:p:kind> <urn:p:K1> . <urn:p:b> <urn:p:kind> <urn:p:K2> . <urn:p:c> <urn:p:kind> <urn:p:K2> .
<urn:p:K1> <urn:p:under> <urn:p:K> . <urn:p:K2> <urn:p:under> <urn:p:K1> .
<urn:p:a> <urn:p:text> "Zo\u00EB \"\U0001F600\"\n\\end" . <urn:p:b> <urn:p:text> "a" . <urn:p:c> <urn:p:text> "B" .
<urn:p:a> <urn:p:at> "2026-01-01T00:00:00.123456Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:p:b> <urn:p:at> "2026-01-01T00:00:00.123457Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:p:c> <urn:p:at> "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:p:a> <urn:p:sure> "0.85"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<urn:p:a> <urn:p:true> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> . <urn:p:a> <urn:p:said> "chat"@fr .
<urn:p:a> <urn:p:count> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:p:a> <urn:p:url> "urn:x"^^<http://www.w3.org/2001/XMLSchema#anyURI> .
<urn:p:a> <urn:p:by> <urn:p:b> . <urn:p:b> <urn:p:by> <urn:p:c> . <urn:p:c> <urn:p:again> <urn:p:a> .
<urn:p:b> <urn:p:state> <urn:p:Open> .
"""
_AT = '"2026-01-01T00:00:00.123456Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
#: What is asked, by what it shows. All but the first are of the forms the playbook is written in.
PROBES: Mapping[str, str] = {
    "terms come back as they were put in": "SELECT ?p ?o { <urn:p:a> ?p ?o } ORDER BY ?p ?o",
    "GRAPH reaches the named graphs alone": "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g",
    "moments compare to the microsecond": f"SELECT ?s {{ ?s <urn:p:at> ?t FILTER(?t <= {_AT}) }} ORDER BY ?t",
    "texts sort by their signs": "SELECT ?t { ?s <urn:p:text> ?t } ORDER BY ?t",
    "OPTIONAL stands beside NOT EXISTS": (
        "SELECT DISTINCT ?s ?o { ?s <urn:p:kind>/<urn:p:under>* <urn:p:K> OPTIONAL { ?s <urn:p:state> ?o } "
        "FILTER(!BOUND(?o) || ?o != <urn:p:Done>) FILTER NOT EXISTS { ?s <urn:p:true> ?x } } ORDER BY ?s ?o"
    ),
    "EXISTS stands within NOT EXISTS, beside ||": (
        "SELECT DISTINCT ?s { ?s <urn:p:kind> ?k FILTER(false || NOT EXISTS { ?s <urn:p:by>|<urn:p:again> ?e "
        f"FILTER EXISTS {{ ?e <urn:p:at> ?t FILTER(?t <= {_AT}) }} }}) }} ORDER BY ?s"
    ),
    "paths of alternatives and inverses repeat": (
        "SELECT ?o { <urn:p:b> (<urn:p:by>|^<urn:p:again>)* ?o } ORDER BY ?o"
    ),
    "groups are counted": (
        "SELECT (<urn:p:K> AS ?of) ?k (COUNT(DISTINCT ?s) AS ?n) (MAX(?t) AS ?last) "
        "{ ?s <urn:p:kind> ?k ; <urn:p:at> ?t } GROUP BY (<urn:p:K>) ?k ORDER BY ?k ?n"
    ),
    "VALUES, BIND and MINUS join": (
        'SELECT ?s ?l { VALUES ?s { <urn:p:a> <urn:p:b> <urn:p:c> } ?s <urn:p:text> ?t BIND(STRLEN(?t) AS ?l) '
        "MINUS { ?s <urn:p:state> ?x } } ORDER BY ?s"
    ),
    "ASK is answered": "ASK { <urn:p:a> <urn:p:true> true }",
}  # fmt: skip
#: What nothing can do without: the terms, and that nothing is shown but what is asked of.
_NEEDED = ("GRAPH reaches the named graphs alone",)
_MISFIT = "jidomem asks stores that answer as SPARQL 1.1 has it: Oxigraph, or one that docs/backends.md names"


@dataclass(frozen=True, slots=True)
class Fit:
    """How a store is fed and asked; with `proven` it is asked these questions alone."""

    lines: int = LINES
    conditional: bool = True
    proven: frozenset[str] | None = None
    name: str = "SPARQL 1.1"

    def answers(self, question: str | None) -> bool:
        """Return whether the store may be asked a shipped question of that name; any other where there is no name."""
        return self.proven is None or question in self.proven

    def spelled(self, text: str, below: Callable[[Term], Iterable[Term]]) -> str:
        """Return *text* as the store understands it; *below* gives the classes at and below one."""
        return text if self.proven is None else virtuoso.spelled(text, below)


def judged(query: Endpoint, update: Endpoint) -> Fit:
    """Return how a store is to be asked, after it was asked about a graph of a few triples, which it is given.

    Raises Failed `store_unfit`, naming what it answers otherwise, for a store that is neither as the standard has it
    nor one whose ways are known.
    """
    wrong = _wrong(query)
    if wrong:
        _put(update)
        wrong = _wrong(query)
    if not wrong:
        return Fit()
    name = next(iter(wrong))
    if virtuoso.speaks(query) and not any(needed in wrong for needed in _NEEDED):
        return Fit(virtuoso.LINES, False, virtuoso.PROVEN, "Virtuoso")
    detail = f"{query.shown} is no store to ask: {name!r} does not hold there ({wrong[name]})"
    raise Failed(detail, hint=_MISFIT, code="store_unfit")


def _wrong(query: Endpoint) -> dict[str, str]:
    """Return what a store answers otherwise than the engine here: what that shows -> what it said."""
    here = ox.Store()
    here.load(_DATA.encode(), ox.RdfFormat.TURTLE, to_graph=ox.NamedNode(PROBE))
    found: dict[str, str] = {}
    for name, text in PROBES.items():
        graphs: list[Any] = [ox.NamedNode(PROBE)]
        wanted = plain(here.query(text, default_graph=graphs, named_graphs=graphs))
        try:
            data = query.ask(spelled(text, {}), ROWS, [PROBE], [PROBE])
            said: Answer | str = plain(ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON))
        except (Refused, SyntaxError, ValueError) as error:
            said = str(error)
        if said != wanted:
            found[name] = f"{said!s:.200}"
    return found


def _put(update: Endpoint) -> None:
    """Put the small graph in, and another beside it that no question may reach."""
    aside = f'INSERT DATA {{ GRAPH <{ASIDE}> {{ <urn:p:a> <urn:p:text> "aside" }} }}'
    try:
        update.change(f"INSERT DATA {{ GRAPH <{PROBE}> {{ {_DATA} }} }} ; {aside}")
    except Refused as refusal:
        raise refusal_of(update, refusal) from refusal
