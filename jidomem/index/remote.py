"""A triple store behind the SPARQL 1.1 Protocol: one request a question, one request an insert."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyoxigraph as ox

from jidomem import sparql
from jidomem.errors import InvalidRequest, JidomemError
from jidomem.index.answers import Answer, plain
from jidomem.index.endpoint import Endpoint, Refused
from jidomem.terms import Triple, bare, line

ROWS, GRAPH = "application/sparql-results+json", "application/n-triples"


class RemoteStore:
    """The graphs of a store that others may use as well; how it keeps them is its own affair."""

    def __init__(self, endpoint: str, update_endpoint: str | None) -> None:
        """Ask *endpoint*; change at *update_endpoint*, else at the `/update` beside a `/query`, else at *endpoint*."""
        self._query = Endpoint.of(endpoint)
        self._update = Endpoint.of(update_endpoint) if update_endpoint else _beside(self._query)

    def graphs(self) -> list[str]:
        """Return the graphs that hold anything; the store looks through all it holds for them."""
        found = self.ask("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", [], [])
        return [bare(row[0]) for row in getattr(found, "rows", ())]

    def insert(self, graph: str, triples: Iterable[Triple]) -> None:
        """Add *triples* to *graph* in one update."""
        rows = "\n".join(map(line, triples))
        self._change(f"INSERT DATA {{ GRAPH <{graph}> {{\n{rows}\n}} }}")

    def clear(self, graph: str) -> None:
        """Empty *graph*."""
        self._change(f"DROP SILENT GRAPH <{graph}>")

    def ask(self, text: str, default: Sequence[str], named: Sequence[str]) -> Answer:
        """Return the answer over the union of *default*; GRAPH reaches *named*.

        Raises Failed where the store does not answer, InvalidRequest `malformed_query` for what it cannot read.
        """
        triples = sparql.first_word(sparql.check(text)) in ("CONSTRUCT", "DESCRIBE")
        try:
            data = self._query.ask(text, GRAPH if triples else ROWS, default, named)
        except Refused as refusal:
            raise _refused(self._query, refusal) from refusal
        try:
            if triples:
                return tuple(dict.fromkeys((str(q.subject), str(q.predicate), str(q.object)) for q in _parsed(data)))
            return plain(ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON))
        except (SyntaxError, ValueError) as error:
            raise self._query.unavailable(f"answered with what cannot be read: {error}") from error

    def close(self) -> None:
        """Close the connections that were kept."""
        self._query.close()
        self._update.close()

    def _change(self, text: str) -> None:
        try:
            self._update.change(text)
        except Refused as refusal:
            raise _refused(self._update, refusal) from refusal


def _beside(query: Endpoint) -> Endpoint:
    """Return where updates go beside *query*."""
    path = query.beside()
    return replace(query, path=path, shown=query.shown.removesuffix(query.path) + path)


def _parsed(data: bytes) -> Iterable[ox.Quad]:
    return ox.parse(data, format=ox.RdfFormat.N_TRIPLES)


def _refused(store: Endpoint, refusal: Refused) -> JidomemError:
    """Return InvalidRequest for a text that was refused, Failed for a store that fails."""
    if refusal.status == 400:
        detail = f"{store.shown} refused it: {refusal.words}"
        return InvalidRequest(detail, hint="correct the SPARQL it names", code="malformed_query")
    return store.unavailable(f"answered {refusal.status}: {refusal.words}")
