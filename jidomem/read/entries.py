"""Entries as they are read back: all that are kept, and those of an agent that fit what is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice

from jidomem.entry import Entry
from jidomem.index import OxigraphIndex, Solutions
from jidomem.index.kept_words import ENTRY, namespace
from jidomem.index.text_file import TextFile, Within
from jidomem.index.texts import Texts
from jidomem.journal.files import Stream
from jidomem.read.search import asked_for, search
from jidomem.recall import NAMESPACE, RecallRequest
from jidomem.terms import Term, bare, date_time, iri
from jidomem.vocab import jido

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


class Entries:
    """What reads the entries of one project."""

    def __init__(self, project: str, texts: Texts, index: OxigraphIndex) -> None:
        self._stream = Stream(project, "history")
        self._texts = texts
        self._index = index

    def covered(
        self, request: RecallRequest, *, include_sessions: bool, moment: str | None
    ) -> list[tuple[Entry, float]]:
        """Return up to `limit` entries within the scope, each with its score: by its words, and then the newest.

        Those that hold none of the words have no score. With a *moment* it is what was kept then.
        """
        within = Within(
            moment=moment,
            kinds=frozenset([bare(ENTRY)]),
            agents=frozenset([request.agent_id]),
            sessions=_sessions(request, include_sessions),
            place=namespace(request.metadata[NAMESPACE]) if NAMESPACE in request.metadata else None,
        )
        found = self._texts.read(self._stream, lambda file: self._found(file, request, within))
        return [(entry, score) for name, score in found.items() if (entry := self.entry(iri(name))) is not None]

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

    def _found(self, file: TextFile, request: RecallRequest, within: Within) -> Mapping[str, float]:
        """Return the IRIs of what is found, each with its score, the best first."""
        stems = asked_for(self._texts.stemmer, request.query)
        scores = {found.match.item: found.score for found in search(file, stems, within, (), request.limit)[0]}
        others = (name for name in file.newest(within, request.limit) if name not in scores)
        return {**scores, **dict.fromkeys(islice(others, request.limit - len(scores)), 0.0)}


def _entry(said: Mapping[str, str]) -> Entry:
    """Return the entry of which the fields say this, metadata as JSON."""
    return Entry(**{**said, "metadata": json.loads(said.get("metadata", "{}"))})


def _sessions(request: RecallRequest, every: bool) -> frozenset[str] | None:
    """Return the sessions whose entries are within the scope, the empty one standing for none; None for all."""
    if request.scope == "agent" and every:
        return None
    named = [] if request.session_id is None else [request.session_id]
    return frozenset([*named, ""] if request.scope == "agent" else named)
