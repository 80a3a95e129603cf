"""How much a project remembers: its memories counted by kind and status."""

from __future__ import annotations

from typing import Any

from jidomem.active import UNACCEPTED
from jidomem.query import FOREVER, to_term
from jidomem.read.reader import MemoryReader
from jidomem.terms import literal
from jidomem.vocab import graph_iri, local_name

_ENDED = "?end jido:hasAssertionStatus jido:Asserted"
_ANY = "jido:supersededBy|jido:invalidatedBy"
_UNLESS = "FILTER NOT EXISTS { ?item %s ?by . ?by jido:hasAssertionStatus jido:Asserted }"
_HELD = "FILTER EXISTS { ?item jido:hasAssertionStatus jido:Asserted }"
_PROPOSED = "FILTER EXISTS { ?item jido:hasAssertionStatus jido:Proposed }"
#: The proposals that a memory took the place of, as that which accepts one does: they were never active.
_ACCEPTED = "accepted"
#: Each is answered from one index of the store: a million memories take seconds, and minutes in one query of all.
_COUNTED = (
    ("all", "?item a ?kind"),
    ("invalidated", f"?item jido:invalidatedBy ?end ; a ?kind . {_ENDED}"),
    ("superseded", f"?item jido:supersededBy ?end ; a ?kind . {_ENDED} {_UNLESS % 'jido:invalidatedBy'} {_HELD}"),
    (_ACCEPTED, f"?item jido:supersededBy ?end ; a ?kind . {_ENDED} {_UNLESS % 'jido:invalidatedBy'} {_PROPOSED}"),
    ("pending", f"?item jido:hasAssertionStatus jido:Proposed ; a ?kind {_UNLESS % _ANY}"),
    *((status, f"?item jido:decisionStatus {literal(status)} ; a ?kind {_HELD} {_UNLESS % _ANY}")
      for status in UNACCEPTED),
)  # fmt: skip
_COUNT = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?kind (COUNT(%s) AS ?count) WHERE { GRAPH <%s> { %s } } GROUP BY ?kind ORDER BY ?kind
"""
_PENDING = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT (COUNT(DISTINCT ?item) AS ?count) WHERE { GRAPH <%s> {
  ?item jido:hasAssertionStatus jido:Proposed .
  FILTER EXISTS { ?item jido:recordedAt ?at FILTER(?at <= %s) }
  FILTER NOT EXISTS {
    ?item jido:supersededBy|jido:invalidatedBy ?end
    FILTER EXISTS { ?end jido:hasAssertionStatus jido:Asserted }
    FILTER EXISTS { ?end jido:recordedAt ?endAt FILTER(?endAt <= %s) }
  }
} }
"""
#: What is kept word for word, and what of it was replaced: each is a range of one index, half a second for a million.
_KEPT = {
    "entries": "?kept a jido:Entry",
    "turns": "?kept a conv:ConversationTurn",
    "replaced": "?newer jido:replaces ?old",
}
_BY_THEN = " . ?%s jido:recordedAt ?at FILTER(?at <= %s)"
_COUNT_KEPT = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX conv: <https://jido.ai/ontology/conversation-history#>
SELECT (COUNT(%s) AS ?count) WHERE { GRAPH <%s> { %s } }
"""
_KINDS = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?kind WHERE { ?kind rdfs:subClassOf* jido:MemoryItem }
"""


def counts(reader: MemoryReader, project: str, **moment: Any) -> dict[str, dict[str, int]]:
    """Return how many memories of each kind are in each state at a *moment*, or now: active, superseded, invalidated,
    pending, of which a curator has yet to accept or reject each, and by the status of decisions proposed, rejected,
    deprecated. A proposal that was accepted is counted as the memory that took its place. Validity in the world is not
    judged, but where `valid_at` asks for it.
    """
    if all(each is None for each in moment.values()):
        return _now(reader, project)
    found: dict[str, dict[str, int]] = {}
    for row in reader.ask("counts", project=project, **moment):
        found.setdefault(local_name(row["kind"]), {})[row["status"]] = row["items"]
    return found


def pending(reader: MemoryReader, project: str, *, as_of: object = None) -> int:
    """Return how many proposals are pending at the moment *as_of*, or now."""
    moment = to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")
    (row,) = reader.select(project, _PENDING % (graph_iri(project), moment, moment))
    return int(row["count"])


def kept(reader: MemoryReader, project: str, *, as_of: object = None) -> dict[str, int]:
    """Return how many entries and turns the history of *project* holds at the moment *as_of*, or now."""
    moment = None if as_of is None else to_term(as_of, "dateTime", "as_of")
    found = {}
    for what, pattern in _KEPT.items():
        by, counted = ("newer", "DISTINCT ?old") if what == "replaced" else ("kept", "*")
        then = "" if moment is None else _BY_THEN % (by, moment)
        (row,) = reader.select(project, _COUNT_KEPT % (counted, graph_iri(project, "history"), pattern + then))
        found[what] = row["count"]
    return {"entries": found["entries"] - found["replaced"], "turns": found["turns"]}


def _now(reader: MemoryReader, project: str) -> dict[str, dict[str, int]]:
    kinds = {row["kind"] for row in reader.select(project, _KINDS)}
    found: dict[str, dict[str, int]] = {}
    for status, pattern in _COUNTED:
        text = _COUNT % ("*" if status == "all" else "DISTINCT ?item", graph_iri(project), pattern)
        for row in reader.select(project, text):
            if row["kind"] in kinds:
                of = found.setdefault(local_name(row["kind"]), {})
                of[status] = of.get(status, 0) + row["count"]
    return {kind: told for kind, of in sorted(found.items()) if (told := _by_status(of))}


def _by_status(of: dict[str, int]) -> dict[str, int]:
    """Return the counts without those of all: what neither ended nor is pending is active."""
    ended = {status: count for status, count in of.items() if status not in ("all", _ACCEPTED)}
    active = of["all"] - sum(ended.values()) - of.get(_ACCEPTED, 0)
    return {"active": active, **ended} if active else ended
