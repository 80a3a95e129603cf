"""The entry cache and the turns of a conversation.

The cache has the current entries whose ids begin with one prefix, and follows the index.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from threading import Lock
from typing import Any, TypeVar

from jidomem.index.results import Solutions
from jidomem.index.search_documents import ENTRY, properties_of
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Term, Triple, literal, moment_text, plain_value
from jidomem.rdf.vocab import TYPE, conv, jido
from jidomem.records.entry import ToolUse, Turn

T = TypeVar("T")

_ID, _TEXT, _METADATA = jido("entryId"), jido("entryText"), jido("entryMetadata")
_RECORDED, _REPLACES = jido("recordedAt"), jido("replaces")
#: The most pending commits that are applied one by one; beyond it all entries are read again.
WAITING = 1_000
#: The cost of merging one entry of several sorted groups, as a multiple of filtering one entry by its group.
MERGED = 4
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
class CachedEntry:
    """An entry: IRI, id, text, recording time, and the recording time of its first version since the last retraction.

    `metadata_json` is its metadata as JSON.
    """

    node: Term
    id: str
    content: str
    recorded: str
    since: str
    metadata_json: str = field(repr=False)

    @property
    def metadata(self) -> dict[str, Any]:
        """Return a new copy of the metadata."""
        metadata: dict[str, Any] = json.loads(self.metadata_json)
        return metadata


class CachedEntries:
    """Entries by id and by group, both in the order of recording; no group is empty."""

    def __init__(self, group: Callable[[str], str]) -> None:
        """Start empty; *group* returns the group of an id."""
        self.by_id: dict[str, CachedEntry] = {}
        self.groups: dict[str, dict[str, CachedEntry]] = {}
        self._group = group
        self._ids: dict[Term, str] = {}

    def __contains__(self, node: Term) -> bool:
        return node in self._ids

    def of(self, node: Term) -> CachedEntry | None:
        """Return the entry *node*, None if it is not cached."""
        return self.by_id.get(self._ids.get(node, ""))

    def newest(self, groups: Iterable[str]) -> Iterator[CachedEntry]:
        """Return the entries of *groups*, the newest first."""
        wanted = {name: self.groups[name] for name in groups}
        if len(wanted) == len(self.groups):
            return reversed(self.by_id.values())
        if len(wanted) > 1 and MERGED * sum(map(len, wanted.values())) > len(self.by_id):
            return (one for one in reversed(self.by_id.values()) if self._group(one.id) in wanted)
        return merge(*(reversed(group.values()) for group in wanted.values()), key=_place, reverse=True)

    def add(self, one: CachedEntry) -> None:
        """Add *one*, the newest entry."""
        self.by_id[one.id] = self.groups.setdefault(self._group(one.id), {})[one.id] = one
        self._ids[one.node] = one.id

    def remove(self, node: Term) -> str | None:
        """Remove an entry; return its `since`, None if it is not cached."""
        name = self._ids.pop(node, None)
        if name is None:
            return None
        group = self.groups[self._group(name)]
        del group[name]
        if not group:
            del self.groups[self._group(name)]
        return self.by_id.pop(name).since


class EntryCache:
    """A thread-safe cache of the current entries of one graph whose ids have one prefix.

    They are read from the index once; later commits update them. Redacted entries are left out.
    """

    def __init__(
        self,
        index: OxigraphIndex,
        graph: str,
        prefix: str,
        catch_up: Callable[[], object],
        group: Callable[[str], str] = str,
    ) -> None:
        """Follow *index*, to which *catch_up* applies new commits; nothing is read before the first call of `read`.

        *prefix* is that of the ids, *group* returns the group of an id.
        """
        self._index = index
        self._catch_up = catch_up
        self._graph = graph
        self._prefix = prefix
        self._lock = Lock()
        self._news: deque[Collection[Triple] | None] = deque([None])  # None: the content was replaced
        self._group = group
        self._cached = CachedEntries(group)
        index.observers.append(self)

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Queue the *triples* added to the graph for the next call of `read`."""
        if graph == self._graph:
            if len(self._news) < WAITING:
                self._news.append(triples)
            elif self._news[-1] is not None:  # no call of `read` for many commits
                self._news = deque([None])

    def reset(self, graph: str) -> None:
        """Make the next call of `read` read all entries again."""
        if graph == self._graph:
            self._news.append(None)

    def read(self, use: Callable[[CachedEntries], T]) -> T:
        """Return the result of *use* on the current entries, which it must not change; it runs under the lock."""
        self._catch_up()
        self._index.apply_pending()
        with self._lock:
            while self._news:
                news = self._news.popleft()
                if news is None or not self._apply(news):
                    self._news.clear()  # a commit queued from here on may be read now too, and is applied twice
                    self._read_all()
            return use(self._cached)

    def _apply(self, triples: Collection[Triple]) -> bool:
        """Apply the triples of one commit; return False if merged branches require reading all entries again."""
        properties: dict[Term, dict[Term, Term]] = {}
        replaced: dict[Term, list[Term]] = {}
        for subject, predicate, value in triples:
            if predicate == _REPLACES:
                replaced.setdefault(subject, []).append(value)
            elif predicate != TYPE or value == ENTRY:
                properties.setdefault(subject, {})[predicate] = value
        since: dict[Term, str] = {}
        for node in sorted(properties):  # as they were minted, one after the other
            one = self._entry(node, properties[node]) if properties[node].get(TYPE) == ENTRY else None
            before = [self._cached.remove(old) or since.get(old) for old in replaced.get(node, ())]
            if one is None:
                continue
            since[node] = min(filter(None, before), default=one.since)
            if node in self._cached or any(self._index.triples(self._graph, None, _REPLACES, node, most=1)):
                continue
            newest = next(reversed(self._cached.by_id.values()), one)
            if one.id in self._cached.by_id or newest.recorded > one.recorded:
                return False
            self._cached.add(replace(one, since=since[node]))
        return True

    def _entry(self, node: Term, fields: Mapping[Term, Term]) -> CachedEntry | None:
        if _ID not in fields or _TEXT not in fields or _RECORDED not in fields:
            return None
        name = plain_value(fields[_ID])
        if not name.startswith(self._prefix):
            return None
        at = moment_text(fields[_RECORDED]) or ""
        return CachedEntry(node, name, plain_value(fields[_TEXT]), at, at, plain_value(fields.get(_METADATA, _NONE)))

    def _read_all(self) -> None:
        """Read all current entries; of two with one id, recorded on different branches, the newer one."""
        begins = literal(self._prefix)
        first, now = (self._index.query(text % begins, graphs=[self._graph]) for text in (_FIRST, _NOW))
        assert isinstance(first, Solutions)
        assert isinstance(now, Solutions)
        since = {entry: moment_text(at) or "" for entry, at in first.rows if at is not None}
        entries = []
        for entry, name, text, metadata, at in now.rows:
            fields = {_ID: name or "", _TEXT: text or "", _RECORDED: at or "", _METADATA: metadata or _NONE}
            one = self._entry(entry or "", fields)
            assert one is not None
            entries.append(replace(one, since=since.get(one.node, one.since)))
        self._cached = CachedEntries(self._group)
        newest = {one.id: one for one in sorted(entries, key=_place)}
        for one in sorted(newest.values(), key=_place):
            self._cached.add(one)


def _place(one: CachedEntry) -> tuple[str, Term]:
    """Return the sort key of the order of recording."""
    return one.recorded, one.node


NodeProperties = Mapping[Term, Sequence[Term]]


def turns(index: OxigraphIndex, project: str, conversation: Term, moment: str | None = None) -> list[Turn]:
    """Return the turns of a conversation in order; with a *moment* only those recorded by then."""
    graph = Stream(project, "history").graph
    nodes = [node for node, _, _ in index.triples(graph, None, conv("partOfConversation"), conversation)]
    all_turns = [turn(index, project, node) for node in nodes]
    known = [one for one in all_turns if moment is None or one.recorded_at <= moment]
    return sorted(known, key=lambda one: (one.index, one.recorded_at, one.iri))


def turn(index: OxigraphIndex, project: str, node: Term) -> Turn:
    """Return one turn; redacted texts are None."""
    graph = Stream(project, "history").graph
    properties = properties_of(index, graph, node)
    prompt, answer = (_part(index, graph, properties, conv(name)) for name in ("hasPrompt", "hasAnswer"))
    return Turn(
        iri=plain_value(node),
        index=int(_one(properties, conv("turnIndex")) or 0),
        prompt=_one(prompt, conv("promptText")),
        answer=_one(answer, conv("answerText")),
        asked_by=_one(prompt, jido("saidBy")),
        answered_by=_one(answer, jido("saidBy")),
        tools=tuple(
            _use(index, graph, call) for call in sorted(properties.get(conv("involvesToolInvocation"), ()), key=_number)
        ),
        timestamp=_turn_time(properties, conv("timestamp")),
        recorded_at=_turn_time(properties, jido("recordedAt")),
    )


def _use(index: OxigraphIndex, graph: str, call: Term) -> ToolUse:
    properties = properties_of(index, graph, call)
    result = _part(index, graph, properties, conv("hasResult"))
    parameters, data = _one(properties, conv("invocationParameters")), _one(result, conv("resultData"))
    tool = _one(properties, conv("toolName")) or ""
    return ToolUse(tool, parameters and json.loads(parameters), data and json.loads(data))


def _number(call: Term) -> tuple[int, Term]:
    """Return the sort key of the calls of a turn: the number at the end of the IRI, 0 without one, then the IRI."""
    number = plain_value(call).rpartition("/")[2]
    return int(number) if number.isdecimal() else 0, call


def _part(index: OxigraphIndex, graph: str, properties: NodeProperties, link: Term) -> NodeProperties:
    """Return the properties of the first object of *link*; empty without one."""
    nodes = properties.get(link)
    return properties_of(index, graph, nodes[0]) if nodes else {}


def _one(properties: NodeProperties, predicate: Term) -> str | None:
    values = properties.get(predicate)
    return plain_value(values[0]) if values else None


def _turn_time(properties: NodeProperties, predicate: Term) -> str:
    """Return the earliest stated moment in its canonical form; empty without one."""
    return min(filter(None, map(moment_text, properties.get(predicate, ()))), default="")
