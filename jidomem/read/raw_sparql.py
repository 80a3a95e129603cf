"""Raw SPARQL over the graphs of one project, now or replayed to a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jidomem.errors import InvalidRequest
from jidomem.index import OxigraphIndex, Solutions
from jidomem.rdf import sparql
from jidomem.rdf.sparql import Dataset, dataset
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import Term, Triple, plain_value
from jidomem.rdf.vocab import graphs_of
from jidomem.records.named_query import to_term

if TYPE_CHECKING:
    from jidomem.extras.servers.remote_index import RemoteIndex
    from jidomem.index.results import AnswerLimits
    from jidomem.records.intent import Version


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to raw SPARQL: rows of `variables` (select), `truth` (ask) or `triples` (graph)."""

    kind: Literal["select", "ask", "graph"]
    variables: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    truth: bool | None = None
    triples: tuple[Triple, ...] = ()


class RawSparql:
    """Read-only SPARQL over the graphs of one project at a time, including the ontology."""

    def __init__(
        self,
        index: OxigraphIndex,
        remote: RemoteIndex | None,
        catch_up: Callable[[str], Version],
        past: Callable[[str, str], OxigraphIndex] | None,
    ) -> None:
        """Query *index*, or *remote* if it answers ad-hoc queries; *past* replays a project to a moment."""
        self._index, self._remote, self._catch_up, self._past = index, remote, catch_up, past

    def run(self, project: str, text: str, *, infer: bool, as_of: object) -> Result:
        """Return the answer to the query *text* as Python values."""
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        index = self._index_at(project, as_of)
        default, named = dataset(code, graphs_of(project))
        query = sparql.with_superclasses(text) if infer else text
        answer = index.query(query, graphs=default, named=named)
        if isinstance(answer, Solutions):
            rows = tuple(dict(zip(answer.variables, map(to_value, row), strict=True)) for row in answer.rows)
            return Result("select", variables=answer.variables, rows=rows)
        return Result("ask", truth=answer) if isinstance(answer, bool) else Result("graph", triples=answer)

    def serialized(
        self,
        project: str,
        text: str,
        *,
        rows_as: str,
        graph_as: str,
        as_of: object,
        bindings: Mapping[str, Term] | None,
        limits: AnswerLimits,
        graphs: Dataset | None,
    ) -> bytes:
        """Return the answer to the query *text* in a standard format; *graphs* replaces its FROM and FROM NAMED."""
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        index = self._index_at(project, as_of)
        default, named = dataset(code, graphs_of(project), graphs)
        return index.serialized(
            text,
            graphs=default,
            named=named,
            bindings=bindings,
            rows_as=rows_as,
            graph_as=graph_as,
            within=limits,
        ).data

    def _index_at(self, project: str, as_of: object) -> OxigraphIndex | RemoteIndex:
        """Return the index with the memory of *project* now, or replayed to *as_of*."""
        self._catch_up(project)
        if as_of is None:
            return self._remote if self._remote is not None and self._remote.answers(None) else self._index
        moment = plain_value(to_term(as_of, "dateTime", "as_of"))
        if self._past is None:
            raise InvalidRequest("raw SPARQL can only query the present here", hint="leave out as_of")
        return self._past(project, moment)
