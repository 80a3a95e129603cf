"""The entries that are kept under ids of one beginning now, at hand in memory and level with the index."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TypeVar

from jidomem.index import OxigraphIndex, Solutions
from jidomem.index.kept_words import ENTRY
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Term, Triple, bare, literal
from jidomem.vocab import TYPE, jido

T = TypeVar("T")

_ID, _TEXT, _METADATA = jido("entryId"), jido("entryText"), jido("entryMetadata")
_RECORDED, _REPLACES = jido("recordedAt"), jido("replaces")
_NONE = literal("{}")
_NOW = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?entry ?id ?text ?metadata ?at WHERE {
  ?entry jido:entryId ?id ; jido:entryText ?text ; jido:recordedAt ?at .
  FILTER STRSTARTS(?id, %s)
  OPTIONAL { ?entry jido:entryMetadata ?metadata }
  FILTER NOT EXISTS { ?newer jido:replaces ?entry }
}
"""
_FIRST = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?entry (MIN(?at) AS ?since) WHERE {
  { SELECT ?entry WHERE {
      ?entry jido:entryId ?id ; jido:replaces ?any .
      FILTER STRSTARTS(?id, %s)
      FILTER NOT EXISTS { ?newer jido:replaces ?entry } } }
  ?entry jido:replaces+/jido:recordedAt ?at
} GROUP BY ?entry
"""


@dataclass(frozen=True, slots=True)
class Keyed:
    """An entry: its IRI, its id, what it says, when it was recorded, and when its id was first written to since it was
    last taken back.
    """

    node: Term
    id: str
    content: str
    recorded: str
    since: str
    said: str = field(repr=False)

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the metadata, made anew at each look."""
        found: dict[str, Any] = json.loads(self.said)
        return found


class KeyedEntries:
    """The entries of one graph whose ids begin with one text; any thread may ask.

    They are read from the index once, and then follow what is applied to it. What was redacted is not among them.
    """

    def __init__(self, index: OxigraphIndex, graph: str, beginning: str) -> None:
        """Follow *index*; nothing is read before somebody asks."""
        self._index = index
        self._graph = graph
        self._beginning = beginning
        self._lock = Lock()
        self._news: deque[Collection[Triple] | None] = deque([None])  # None: other content than before
        self._held: dict[str, Keyed] = {}
        self._ids: dict[Term, str] = {}
        index.observers.append(self)

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Take in, when somebody asks next, what was added to the graph."""
        if graph == self._graph:
            self._news.append(triples)

    def reset(self, graph: str) -> None:
        """Read everything anew when somebody asks next."""
        if graph == self._graph:
            self._news.append(None)

    def read(self, use: Callable[[Mapping[str, Keyed]], T]) -> T:
        """Return what *use* makes of the entries by their ids, those recorded last at the end, as the index has them.

        They are not changed meanwhile, and *use* changes nothing.
        """
        self._index.settle()
        with self._lock:
            while self._news:
                news = self._news.popleft()
                if news is None or not self._take(news):
                    self._news.clear()  # what comes from now on may be among what is read, and is taken in again
                    self._read_all()
            return use(self._held)

    def _take(self, triples: Collection[Triple]) -> bool:
        """Take in what a commit brought; return False where all is to be read again: branches were merged."""
        said: dict[Term, dict[Term, Term]] = {}
        ended: dict[Term, list[Term]] = {}
        for subject, predicate, value in triples:
            if predicate == _REPLACES:
                ended.setdefault(subject, []).append(value)
            elif predicate != TYPE or value == ENTRY:
                said.setdefault(subject, {})[predicate] = value
        since: dict[Term, str] = {}
        for node in sorted(said):  # as they were minted, one after the other
            one = self._keyed(node, said[node]) if said[node].get(TYPE) == ENTRY else None
            before = [self._forget(old) or since.get(old) for old in ended.get(node, ())]
            if one is None:
                continue
            since[node] = min(filter(None, before), default=one.since)
            if node in self._ids or self._is_replaced(node):
                continue
            newest = next(reversed(self._held.values()), one)
            if one.id in self._held or newest.recorded > one.recorded:
                return False
            self._hold(replace(one, since=since[node]))
        return True

    def _hold(self, one: Keyed) -> None:
        self._held[one.id] = one
        self._ids[one.node] = one.id

    def _forget(self, node: Term) -> str | None:
        """Hold an entry no longer; return since when its id was written to, None where it was not held."""
        name = self._ids.pop(node, None)
        return None if name is None else self._held.pop(name).since

    def _is_replaced(self, node: Term) -> bool:
        return next(self._index.triples(self._graph, None, _REPLACES, node, most=1), None) is not None

    def _keyed(self, node: Term, fields: Mapping[Term, Term]) -> Keyed | None:
        if _ID not in fields or _TEXT not in fields or _RECORDED not in fields:
            return None
        name = bare(fields[_ID])
        if not name.startswith(self._beginning):
            return None
        at = _moment(fields[_RECORDED])
        return Keyed(node, name, bare(fields[_TEXT]), at, at, bare(fields.get(_METADATA, _NONE)))

    def _read_all(self) -> None:
        """Hold all there are now; of two that branches kept under one id the newer one."""
        begins = literal(self._beginning)
        first, now = (self._index.query(text % begins, graphs=[self._graph]) for text in (_FIRST, _NOW))
        assert isinstance(first, Solutions)
        assert isinstance(now, Solutions)
        since = {entry: _moment(at) for entry, at in first.rows if at is not None}
        found = []
        for entry, name, text, metadata, at in now.rows:
            fields = {_ID: name or "", _TEXT: text or "", _RECORDED: at or "", _METADATA: metadata or _NONE}
            one = self._keyed(entry or "", fields)
            assert one is not None
            found.append(replace(one, since=since.get(one.node, one.since)))
        self._held, self._ids = {}, {}
        for one in sorted(found, key=lambda one: (one.recorded, one.node)):
            self._held.pop(one.id, None)
            self._hold(one)


def _moment(at: Term) -> str:
    """Return a moment in its one written form."""
    found = parse_moment(bare(at))
    return "" if found is None else stamp(found)
