"""Entries as they are read back: all that are kept, and those of an agent that fit what is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from jidomem.entry import Entry
from jidomem.index import OxigraphIndex, Solutions
from jidomem.index.kept_words import ENTRY, namespace
from jidomem.index.text_file import Own, Within
from jidomem.index.texts import Texts
from jidomem.journal.files import Stream
from jidomem.read.answering import Source, answered
from jidomem.read.gathering import Alike, Asked
from jidomem.read.search import asked_for
from jidomem.recall import NAMESPACE, RecallRequest
from jidomem.terms import Term, bare, date_time, iri
from jidomem.vocab import jido

#: The class of entries, as what is looked through is narrowed by it.
ENTRIES = frozenset([bare(ENTRY)])
#: field -> the property that says it.
_FIELDS = {"id": "entryId", "agent_id": "agentId", "content": "entryText", "session_id": "sessionId",
           "metadata": "entryMetadata"}  # fmt: skip
_FIELD_OF = {jido(name): field for field, name in _FIELDS.items()}
_KNOWN = "FILTER(?at <= %s)"
_BY_THEN = "FILTER EXISTS { ?newer jido:recordedAt ?then FILTER(?then <= %s) }"
_KEPT = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?id ?agent ?text ?session ?metadata WHERE {
  ?entry jido:entryId ?id ; jido:agentId ?agent ; jido:entryText ?text ; jido:recordedAt ?at . %s
  OPTIONAL { ?entry jido:sessionId ?session }
  OPTIONAL { ?entry jido:entryMetadata ?metadata }
  FILTER NOT EXISTS { ?newer jido:replaces ?entry %s }
} ORDER BY ?at ?entry
"""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Entries that were found, in order; `scores` and the parts of each are those of what answers, by IRI."""

    entries: Mapping[str, Entry]
    scores: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    ranking: str


class Entries:
    """What reads the entries of one project."""

    def __init__(self, project: str, texts: Texts, index: OxigraphIndex) -> None:
        self._stream = Stream(project, "history")
        self._texts = texts
        self._index = index

    def covered(self, request: RecallRequest, within: Within, now: str, alike: Alike | None) -> Recalled:
        """Return up to `limit` entries *within*: what answers, the best first, and then the newest.

        *now* is the moment asked at, *alike* what makes likeness known, if anything.
        """
        asked = Asked(request.query, asked_for(self._texts.stemmer, request.query), (), now, limit=request.limit)
        answer = answered([Source(self._texts, self._stream, within, alike)], asked)
        best = {one.candidate.passage.item: one for one in answer.found[: request.limit]}
        names = dict.fromkeys([*best, *self._newest(within, request.limit)])
        entries = {name: entry for name in names if (entry := self.entry(iri(name))) is not None}
        told = dict(islice(entries.items(), request.limit))
        scores = {name: best[name].score for name in told if name in best}
        return Recalled(told, scores, {name: best[name].parts for name in scores}, answer.ranking)

    def kept(self, moment: str | None) -> list[Entry]:
        """Return the entries of every agent, the oldest first; with a *moment* those that were kept then."""
        clauses = ("", "") if moment is None else (_KNOWN % date_time(moment), _BY_THEN % date_time(moment))
        found = self._index.query(_KEPT % clauses, graphs=[self._stream.graph])
        assert isinstance(found, Solutions)
        entries: dict[str, Entry] = {}
        for row in found.rows:
            entry = _entry({field: bare(term) for field, term in zip(_FIELDS, row, strict=True) if term is not None})
            entries.pop(entry.id, None)  # of two that branches kept under one id the newer one counts
            entries[entry.id] = entry
        return [*entries.values()]

    def entry(self, node: Term) -> Entry | None:
        """Return one entry; None for what is none, or was redacted."""
        rows = self._index.triples(self._stream.graph, node)
        said = {_FIELD_OF[predicate]: bare(value) for _, predicate, value in rows if predicate in _FIELD_OF}
        return _entry(said) if {"id", "agent_id", "content"} <= said.keys() else None

    def _newest(self, within: Within, limit: int) -> list[str]:
        return self._texts.read(self._stream, lambda file: file.newest(within, limit))


def _entry(said: Mapping[str, str]) -> Entry:
    """Return the entry of which the fields say this, metadata as JSON."""
    return Entry(**{**said, "metadata": json.loads(said.get("metadata", "{}"))})


def own(request: RecallRequest, *others: str | None, every: bool = False) -> Own:
    """Return what is looked through of entries: what the scope covers, with *every* that of all sessions.

    *others* are sessions that are named beside the one of the request.
    """
    named = frozenset(filter(None, (request.session_id, *others)))
    sessions = named if request.scope == "session" else named | {""}
    place = namespace(request.metadata[NAMESPACE]) if NAMESPACE in request.metadata else None
    return Own(ENTRIES, request.agent_id, None if every and request.scope == "agent" else sessions, place)
