"""A store behind a SPARQL 1.1 endpoint as index: fed from the journal before each question, asked as the engine is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import pyoxigraph as ox

from jidomem import sparql
from jidomem.errors import Failed, InvalidRequest, JidomemError
from jidomem.index import bounded, fitness
from jidomem.index.answers import Answer, Serialized, Solutions, malformed, plain
from jidomem.index.bounded import Bounds
from jidomem.index.document import Mark
from jidomem.index.endpoint import TIMEOUT, Endpoint, Refused
from jidomem.index.feed import Feed
from jidomem.index.following import Following
from jidomem.index.marked import Shelf
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.spelled import spelled
from jidomem.journal.files import NAMES, FileJournal, Stream
from jidomem.terms import Term, Triple, iri
from jidomem.vocab import RDFS

SCHEMES = ("sparql+http://", "sparql+https://")
_ROWS, _TRIPLES = "application/sparql-results+json", "application/n-triples"
_BOUNDS = Bounds()
_UNDER = iri(RDFS + "subClassOf")
#: What a store needs more to say a row than the answer that is made of it.
_ROOM = 4


class RemoteIndex:
    """What a store behind an endpoint answers, level with the journal at every question.

    `answers` says which questions it may be asked: the index of this process answers all the others.
    """

    def __init__(self, address: str, journal: FileJournal, own: OxigraphIndex, ontology: Iterable[Triple]) -> None:
        """Ask the store at *address*, `sparql+http://...`; nothing is sent before the first question."""
        self._query = endpoint(address)
        path = self._query.beside()
        self._update = replace(self._query, path=path, shown=self._query.shown.removesuffix(self._query.path) + path)
        self._journal = journal
        self._own = own
        self._ontology = tuple(ontology)
        self._feed: Feed | None = None
        self._fit: fitness.Fit | None = None
        self._lock = Lock()
        self._following = Following(self.level)

    def put_ontology(self, ontology: Iterable[Triple]) -> None:
        """Feed the store with *ontology* from now on; one that has another is refused until it is taken over."""
        with self._lock:
            self._ontology, self._feed = tuple(ontology), None

    @property
    def shown(self) -> str:
        """Return the address of the store, without its password."""
        return self._query.shown

    def fit(self) -> fitness.Fit:
        """Return what the store can be asked; raises Failed `store_unfit` for one that nothing can be asked of."""
        with self._lock:
            if self._fit is None:
                self._fit = fitness.judged(self._query, self._update)
            return self._fit

    def level(self, streams: Sequence[Stream]) -> None:
        """Return once the store holds all that the journal has of *streams*; raises what `Feed.level` raises."""
        self._fed().level(streams)

    def told(self, stream: Stream) -> None:
        """Take note that there is more in *stream*, and return at once: the store is brought level beside this."""
        self._following.told(stream)

    def rebuild(self) -> dict[Stream, Mark]:
        """Return how far each stream reaches in the store, after all of it was put in anew."""
        return self._fed().rebuild(self._journal.streams())

    def answers(self, question: str | None) -> bool:
        """Return whether the store is asked a question of that name, of the shipped ones; without a name, any other."""
        return self.fit().answers(question)

    def query(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
    ) -> Answer:
        """Return what `OxigraphIndex.query` does; raises Failed `store_unreachable` besides."""
        found = self._asked(sparql, graphs, named, bindings)
        if isinstance(found, list):
            return tuple((str(each.subject), str(each.predicate), str(each.object)) for each in found)
        return plain(found)

    def serialized(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
        rows_as: str = "json",
        graph_as: str = "turtle",
        within: Bounds = _BOUNDS,
        seconds: float = TIMEOUT,
    ) -> Serialized:
        """Return what `OxigraphIndex.serialized` does; raises Failed, and QueryTimeout after *seconds*, besides."""
        found: Any = self._asked(sparql, graphs, named, bindings, seconds, _ROOM * within.size)
        return bounded.written(found, rows_as, graph_as, within)

    def close(self) -> None:
        """Close the connections that were kept, once what is being fed is in; that is not waited for long."""
        self._following.close()
        self._query.close()
        self._update.close()

    def _below(self, name: Term, graphs: Sequence[str]) -> list[Term]:
        """Return the classes at or below *name*, as the index of this process has them."""
        found = self._own.query(f"SELECT DISTINCT ?k {{ ?k {_UNDER}* {name} }}", graphs=graphs)
        assert isinstance(found, Solutions)
        return [row[0] or "" for row in found.rows]

    def _fed(self) -> Feed:
        fit = self.fit()
        with self._lock:
            if self._feed is None:
                shelf = Shelf(self._query, self._update, lines=fit.lines, conditional=fit.conditional)
                self._feed = Feed(self._journal, shelf, self._ontology)
            return self._feed

    def _asked(
        self,
        text: str,
        graphs: Sequence[str],
        named: Sequence[str] | None,
        bindings: Mapping[str, Term] | None,
        seconds: float = TIMEOUT,
        most: int | None = None,
    ) -> Any:
        """Return the answer as the engine of this process reads it; a set of triples is a list of them, each once."""
        reached = {*graphs, *(named or ())}
        projects = {stream.project for stream in self._journal.streams()}
        streams = (Stream(project, name) for project in sorted(projects) for name in NAMES)
        self.level([stream for stream in streams if stream.graph in reached])
        words = sparql.first_word(tuple(sparql.tokens(text)))
        accept = _TRIPLES if words in ("CONSTRUCT", "DESCRIBE") else _ROWS
        try:
            asked = self.fit().spelled(spelled(text, bindings or {}), lambda name: self._below(name, graphs))
            data = self._query.ask(
                asked, accept, graphs, graphs if named is None else named, seconds=seconds, most=most
            )
        except Refused as refusal:
            raise self._refused(refusal, text) from refusal
        try:
            if accept == _TRIPLES:
                return list(dict.fromkeys(quad.triple for quad in ox.parse(data, format=ox.RdfFormat.N_TRIPLES)))
            return ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON)
        except (SyntaxError, ValueError) as error:
            raise self._query.unavailable(f"answered with what cannot be read: {error}") from error

    def _refused(self, refusal: Refused, text: str) -> JidomemError:
        if refusal.status == 400:
            try:
                ox.Store().query(text)
            except SyntaxError as error:
                return malformed(str(error))
            hint = "correct the SPARQL it names"
            return InvalidRequest(f"{self.shown} refused it: {refusal.words}", hint=hint, code="malformed_query")
        return self._query.unavailable(f"answered {refusal.status}: {refusal.words}")


def endpoint(address: str) -> Endpoint:
    """Return where the store at *address* is asked; raises InvalidRequest for what is no `sparql+http(s)://...`."""
    if not address.startswith(SCHEMES):
        hint = 'index = "sparql+http://localhost:7878/query", or no index at all: then it is kept by this process'
        raise InvalidRequest("the index is not a sparql+http:// or sparql+https:// address", hint=hint)
    return Endpoint.of(address.removeprefix("sparql+"), "store_unreachable")


def refuse(address: str) -> None:
    """Raise Failed `invalid_config` unless *address* names a store."""
    try:
        endpoint(address)
    except InvalidRequest as error:
        raise Failed(error.detail, hint=error.hint, code="invalid_config") from None
