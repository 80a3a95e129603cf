"""Recall by words: what is in force and says something of what is asked, the best first."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from jidomem.errors import InvalidRequest, NotFound
from jidomem.index import OxigraphIndex
from jidomem.index.text_file import Within
from jidomem.index.texts import Texts
from jidomem.journal.files import Stream
from jidomem.query import to_term
from jidomem.read import item
from jidomem.read.rank import Scored
from jidomem.read.search import asked_for, search
from jidomem.recall import Found, Hit, Narrowing, RecallRequest
from jidomem.schema import ITEM, Schema
from jidomem.terms import bare
from jidomem.vocab import BASE, CLASS_OF_TYPE, JIDO, TYPE_ALIASES, local_name

#: What says of a memory that it holds no more, and is left out with it.
_TOMBSTONES = frozenset((f"{JIDO}DeletedMarker",))
#: property -> what a hit calls its value.
_TOLD = {
    "topic": "topic",
    "rationale": "rationale",
    "detailedExplanation": "detailed_explanation",
    "hasConfidence": "confidence",
    "hasSourceType": "source",
    "hasTaskStatus": "state",
    "hasErrorStatus": "state",
    "decisionStatus": "state",
    "severityLevel": "severity",
    "hasEnforcementLevel": "enforcement_level",
}


class Recalling:
    """What answers recall over the texts of one root."""

    def __init__(self, texts: Texts, index: OxigraphIndex, schema: Schema) -> None:
        self._texts = texts
        self._index = index
        self._schema = schema

    def recall(self, project: str, request: RecallRequest, narrowing: Narrowing) -> Found:
        """Return up to `limit` memories that hold words of the query; raises InvalidRequest for what is no filter."""
        within = self._within(project, request, narrowing)
        stems = asked_for(self._texts.stemmer, request.query)
        found, looked_for, counts = self._texts.read(
            Stream(project), lambda file: search(file, stems, within, narrowing.about, request.limit + 1)
        )
        hits = [hit for one in found[: request.limit] if (hit := self._hit(project, one, narrowing)) is not None]
        metadata = {
            "project": project,
            "words": looked_for,
            "unknown_words": [stem for stem in stems if not counts.holding.get(stem)],
            "memories": counts.memories,
            "more": len(found) > request.limit,
        }
        return Found(request, hits, metadata)

    def _within(self, project: str, request: RecallRequest, narrowing: Narrowing) -> Within:
        """Return what is looked through."""
        if request.scope == "session" and request.session_id is None:
            raise InvalidRequest("the scope session needs a session", hint="give session_id, or leave scope out")
        session = _named("sessions", request.session_id if request.scope == "session" else narrowing.session)
        return Within(
            moment=_moment(narrowing, "as_of"),
            inactive=narrowing.include_inactive,
            kinds=self._kinds(narrowing),
            but=frozenset() if narrowing.kinds or narrowing.include_inactive else _TOMBSTONES,
            since=_moment(narrowing, "since"),
            until=_moment(narrowing, "until"),
            valid_at=_moment(narrowing, "valid_at"),
            agent=_named("agents", narrowing.agent),
            sessions=None if session is None else frozenset((session,)),
        )

    def _kinds(self, narrowing: Narrowing) -> frozenset[str] | None:
        """Return the classes asked for with all below them, None where none is."""
        if not narrowing.kinds:
            return None
        known = {local_name(cls): cls for cls in sorted(self._schema.subclasses(ITEM))}
        found: set[str] = set()
        for kind in narrowing.kinds:
            name = CLASS_OF_TYPE.get(TYPE_ALIASES.get(kind, kind), local_name(kind))
            if name not in known:
                near = get_close_matches(kind, [*CLASS_OF_TYPE, *known], n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(CLASS_OF_TYPE)}"
                raise InvalidRequest(f"{kind!r} is no kind of memory", hint=hint)
            found.update(map(bare, self._schema.subclasses(known[name])))
        return frozenset(found)

    def _hit(self, project: str, found: Scored, narrowing: Narrowing) -> Hit | None:
        """Return what is told of a memory that was found; None where this process has not yet heard of it."""
        try:
            told = item.get(self._index, project, found.match.item, narrowing.as_of)
        except NotFound:
            return None
        said = {name: values[0] for name, values in told["properties"].items() if values}
        metadata: dict[str, Any] = {
            "kind": told["type"] or told["class"],
            "status": told["status"],
            "recorded_at": told["recorded_at"],
            "about": told["properties"].get("about", []),
        }
        for name, called in _TOLD.items():
            if name in said:
                is_term = str(said[name]).startswith(JIDO)
                metadata[called] = local_name(said[name]) if is_term else said[name]
        metadata |= {name: told[name] for name in ("superseded_by", "invalidated_by") if told[name]}
        parts = {**found.parts, "words": dict(found.words)} if narrowing.explain else None
        agent, session = (local_name(said[name]) if name in said else None for name in ("assertedBy", "assertedIn"))
        return Hit(id=found.match.item, agent_id=agent or "unknown", session_id=session,
                   content=str(said.get("summary") or found.match.item), score=found.score, metadata=metadata,
                   parts=parts)  # fmt: skip


def _moment(narrowing: Narrowing, name: str) -> str | None:
    value = getattr(narrowing, name)
    return None if value is None else bare(to_term(value, "dateTime", name))


def _named(folder: str, name: str | None) -> str | None:
    """Return the IRI that the name of an agent or session stands for."""
    return name if name is None or name.startswith((BASE, "urn:", "http")) else f"{BASE}{folder}/{name}"
