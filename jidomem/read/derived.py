"""Values derived from the answers of a reader: counts, the access policy, work sessions and trust."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jidomem.errors import NotFound
from jidomem.rdf.terms import Term, iri, literal
from jidomem.rdf.vocab import MARKER, TRUST, TRUST_OF_SOURCE, graph_iri, local_name
from jidomem.read.named_queries import nodes_of
from jidomem.records.active import INVALIDATED, PENDING, REJECTED, SUPERSEDED, UNACCEPTED
from jidomem.records.named_query import FOREVER, to_term
from jidomem.records.policy import PRESETS, AccessPolicy, Policy, PolicyChange, unsettled

if TYPE_CHECKING:
    from jidomem.read.playbook import Rows
    from jidomem.read.reader import MemoryReader

_ENDED = "?end jido:hasAssertionStatus jido:Asserted"
_ANY = "jido:supersededBy|jido:invalidatedBy"
_UNLESS = "FILTER NOT EXISTS { ?item %s ?by . ?by jido:hasAssertionStatus jido:Asserted }"
_ASSERTED_FILTER = "FILTER EXISTS { ?item jido:hasAssertionStatus jido:Asserted }"
_PROPOSED = "FILTER EXISTS { ?item jido:hasAssertionStatus jido:Proposed }"
_STANDING = 'FILTER NOT EXISTS { ?item jido:decisionStatus ?standing FILTER(?standing != "accepted") }'
_ACTIVE_BUT = f"; a ?kind . {_ASSERTED_FILTER} {_STANDING} {_UNLESS % _ANY}"
#: The alternatives that a proposed decision lists: they are settled with it.
_LISTED = (
    '{ ?decision jido:hasAlternative ?item FILTER(STRSTARTS(STR(?item), CONCAT(STR(?decision), "/alternatives/"))) }'
)
#: A proposal to withdraw a memory of a removed source, of which no active memory is left, as in the query `proposals`.
_MOOT = """{ ?item jido:sourceState ?state FILTER NOT EXISTS {
    ?item jido:invalidates ?old . ?old (jido:supersededBy|^jido:revives)* ?now
    OPTIONAL { ?old jido:sourceBlob ?before } OPTIONAL { ?now jido:sourceBlob ?after }
    FILTER(!BOUND(?before) || STRAFTER(STR(?before), " ") = STRAFTER(STR(?after), " "))
    FILTER NOT EXISTS { ?now jido:supersededBy|jido:invalidatedBy ?last } } }"""
_WAITING = f"?item jido:hasAssertionStatus jido:Proposed ; a ?kind {_UNLESS % _ANY}"
_LISTED_PROPOSED = "listed"
#: One query for each count: one index of the store answers it in seconds for a million memories. One query for all
#: counts takes minutes.
_COUNTED = (
    ("all", "?item a ?kind"),
    (INVALIDATED, f"?item jido:invalidatedBy ?end ; a ?kind . {_ENDED} {_ASSERTED_FILTER}"),
    (REJECTED, f"?item jido:invalidatedBy ?end ; a ?kind . {_ENDED} {_PROPOSED}"),
    (SUPERSEDED, f"?item jido:supersededBy ?end ; a ?kind . {_ENDED} {_UNLESS % 'jido:invalidatedBy'}"),
    (PENDING, f"{_WAITING} FILTER NOT EXISTS {_LISTED}"),
    (_LISTED_PROPOSED, f"{_WAITING} FILTER EXISTS {_LISTED}"),
    *((status, f"?item jido:decisionStatus {literal(status)} ; a ?kind {_ASSERTED_FILTER} {_UNLESS % _ANY}")
      for status in UNACCEPTED),
    ("expired", f"?item jido:validUntil ?until {_ACTIVE_BUT} FILTER(?until <= %s)"),
    ("scheduled", f"?item jido:validFrom ?from {_ACTIVE_BUT} FILTER(?from > %s)"
     " FILTER NOT EXISTS { ?item jido:validUntil ?until FILTER(?until <= %s) }"),
)  # fmt: skip
_COUNT = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?kind (COUNT(%s) AS ?count) WHERE { GRAPH <%s> { %s } } GROUP BY ?kind ORDER BY ?kind
"""
_PENDING = (
    """
PREFIX jido: <https://jido.ai/ontology#>
SELECT (COUNT(DISTINCT ?item) AS ?count) WHERE { GRAPH <%s> {
  ?item jido:hasAssertionStatus jido:Proposed .
  FILTER EXISTS { ?item jido:recordedAt ?at FILTER(?at <= %s) }
  FILTER NOT EXISTS """
    + f"{_LISTED} FILTER NOT EXISTS {_MOOT}"
    + """
  FILTER NOT EXISTS {
    ?item jido:supersededBy|jido:invalidatedBy ?end
    FILTER EXISTS { ?end jido:hasAssertionStatus jido:Asserted }
    FILTER EXISTS { ?end jido:recordedAt ?endAt FILTER(?endAt <= %s) }
  }
} }
"""
)
#: Entries, turns and replaced entries, without those redacted, which have no id.
_COUNTED_KINDS = {
    "entries": "?kept jido:entryId ?id",
    "turns": "?kept a conv:ConversationTurn",
    "replaced": "?newer jido:replaces ?old . ?old jido:entryId ?id",
}
_BY_THEN = " . ?%s jido:recordedAt ?at FILTER(?at <= %s)"
_COUNT_ENTRIES = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX conv: <https://jido.ai/ontology/conversation-history#>
SELECT (COUNT(%s) AS ?count) WHERE { GRAPH <%s> { %s } }
"""
_KINDS_QUERY = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?kind WHERE { ?kind rdfs:subClassOf* jido:MemoryItem }
"""


def counts(reader: MemoryReader, project: str, **moment: Any) -> dict[str, dict[str, int]]:
    """Return the number of memories of each kind and state at a *moment*, or now: kind -> state -> count.

    The states are those of `jidomem.records.active`; validity is judged at `valid_at`, by default now. An accepted
    proposal is superseded. Of the markers that withdraw memories only pending ones are counted.
    """
    is_now = all(each is None for each in moment.values())
    rows = reader.counted_at_once("counts", project) if is_now else reader.ask("counts", project=project, **moment)
    by_kind: dict[str, dict[str, int]] = _now(reader, project) if rows is None else {}
    for row in rows or ():
        by_kind.setdefault(local_name(row["kind"]), {})[row["status"]] = row["items"]
    markers = by_kind.pop(MARKER, {})
    if PENDING in markers:
        by_kind[MARKER] = {PENDING: markers[PENDING]}
    return dict(sorted(by_kind.items()))


def pending(reader: MemoryReader, project: str, *, as_of: object = None) -> int:
    """Return the number of proposals pending at the moment *as_of*, or now."""
    moment = to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")
    (row,) = reader.select(project, _PENDING % (graph_iri(project), moment, moment))
    return int(row["count"])


def count_entries(reader: MemoryReader, project: str, *, as_of: object = None) -> dict[str, int]:
    """Return the number of current entries and of turns in the history of *project* at the moment *as_of*, or now."""
    moment = None if as_of is None else to_term(as_of, "dateTime", "as_of")
    numbers = {}
    for name, pattern in _COUNTED_KINDS.items():
        by, counted = ("newer", "DISTINCT ?old") if name == "replaced" else ("kept", "*")
        then = "" if moment is None else _BY_THEN % (by, moment)
        (row,) = reader.select(project, _COUNT_ENTRIES % (counted, graph_iri(project, "history"), pattern + then))
        numbers[name] = row["count"]
    return {"entries": numbers["entries"] - numbers["replaced"], "turns": numbers["turns"]}


def _now(reader: MemoryReader, project: str) -> dict[str, dict[str, int]]:
    kinds = {row["kind"] for row in reader.select(project, _KINDS_QUERY)}
    now = to_term(reader.now(), "dateTime", "now")
    by_kind: dict[str, dict[str, int]] = {}
    for status, pattern in _COUNTED:
        text = _COUNT % ("*" if status == "all" else "DISTINCT ?item", graph_iri(project), pattern.replace("%s", now))
        for row in reader.select(project, text):
            if row["kind"] in kinds:
                states = by_kind.setdefault(local_name(row["kind"]), {})
                states[status] = states.get(status, 0) + row["count"]
    return {kind: shown for kind, states in sorted(by_kind.items()) if (shown := _by_status(states))}


def _by_status(counts: dict[str, int]) -> dict[str, int]:
    """Return the counts with the total replaced by the number of active memories: those neither ended nor pending."""
    ended = {status: count for status, count in counts.items() if status not in ("all", _LISTED_PROPOSED)}
    active = counts["all"] - sum(ended.values()) - counts.get(_LISTED_PROPOSED, 0)
    return {"active": active, **ended} if active else ended


def authority(reader: MemoryReader, project: str, policy: Policy, *, as_of: object = None) -> AccessPolicy:
    """Return the access policy of *project*: the root's *policy* with the changes recorded by *as_of*."""
    rows = reader.ask("policy-changes", project=project, as_of=as_of)
    roles = {name: agent.role for name, agent in policy.agents.items()}
    return AccessPolicy(tuple(map(_change, rows)), PRESETS[policy.preset], roles)


def unsettled_changes(
    reader: MemoryReader, project: str, *, as_of: object = None
) -> list[tuple[PolicyChange, PolicyChange]]:
    """Return the pairs of `jidomem.records.policy.unsettled` among the changes recorded by *as_of*."""
    changes = map(_change, reader.ask("policy-changes", project=project, as_of=as_of))
    graph = graph_iri(project)

    def values(node: Term, predicate: Term) -> list[Term]:
        return [value for _, _, value in reader.index.triples(graph, node, predicate)]

    return unsettled(changes, values)


def _change(row: dict[str, Any]) -> PolicyChange:
    same = {
        name: row[name] for name in ("agent", "kind", "path", "scope", "allows", "confirms", "days", "reason", "by")
    }
    roles: dict[str, Any] = {name: row[name] and local_name(row[name]) for name in ("role", "grants")}
    return PolicyChange(**same, **roles, recorded=row["recorded"].isoformat(), node=row["change"])


COLUMNS = ("session", "status", "phase", "agent", "start", "end")
_SESSIONS = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?session ?status ?phase ?agent ?start ?end WHERE {%s
  ?session a/rdfs:subClassOf* jido:WorkSession ; jido:startedAt ?start ; jido:hasStatus ?opened .
  OPTIONAL { ?session jido:hasPrimaryAgent ?agent }
  OPTIONAL { ?session jido:endedAt ?end }
  OPTIONAL {
    ?moved jido:ofSession ?session ; jido:eventNumber ?n ; jido:toStatus ?now .
    FILTER NOT EXISTS { ?later jido:ofSession ?session ; jido:eventNumber ?m ; jido:toStatus ?x . FILTER(?m > ?n) }
  }
  OPTIONAL {
    ?turned jido:ofSession ?session ; jido:eventNumber ?k ; jido:toPhase ?phase .
    FILTER NOT EXISTS { ?after jido:ofSession ?session ; jido:eventNumber ?l ; jido:toPhase ?y . FILTER(?l > ?k) }
  }
  BIND(COALESCE(?now, ?opened) AS ?status)
} ORDER BY ?start ?session
"""


def sessions(reader: MemoryReader, project: str, *, ended: bool = False) -> Rows:
    """Return the sessions that have not ended, or with *ended* all of them, oldest first."""
    return [row for row in reader.select(project, _SESSIONS % "") if ended or row["end"] is None]


def session(reader: MemoryReader, project: str, name: str) -> dict[str, object]:
    """Return one session, by its name or IRI; raises NotFound if it was never opened."""
    rows = reader.select(project, _SESSIONS % f" VALUES ?session {{ {' '.join(nodes_of('sessions', name))} }}")
    for row in rows:
        return row
    raise NotFound(
        f"{project} has no session {name!r:.200}", hint="open it first, or list them: jidomem agent session list --all"
    )


_STEP = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?source ?from ?by ?status WHERE { GRAPH <%s> { VALUES ?item { %s }
  OPTIONAL { ?item jido:hasSourceType ?source }
  OPTIONAL { { ?item jido:derivedFrom ?from }
    UNION { ?from jido:hasAlternative ?item FILTER(STRSTARTS(STR(?item), CONCAT(STR(?from), "/alternatives/"))) } }
  OPTIONAL { ?item jido:confirmedBy ?by }
  OPTIONAL { ?item jido:hasAssertionStatus ?status }
} } ORDER BY ?item ?source ?from ?by ?status
"""


def trust(reader: MemoryReader, project: str, item: str) -> tuple[str, str]:
    """Return the trust level of a memory (untrusted, ordinary or trusted), and the memory or evidence that limits it.

    A memory that a curator confirmed is trusted, whatever it was derived from. The level of its decision limits that of
    an alternative. Raises NotFound if there is no such memory.
    """
    start = reader.resolve(project, item)
    levels: dict[str, str] = {}
    waiting = {start}
    while waiting:
        rows = reader.select(project, _STEP % (graph_iri(project), " ".join(map(iri, sorted(waiting)))))
        confirmed = {row["item"] for row in rows if row["by"]}
        for row in rows:
            default = "ordinary" if row["status"] else "trusted"  # evidence without a source does not lower the level
            stated = TRUST_OF_SOURCE.get(local_name(row["source"] or ""), default)
            level = "trusted" if row["item"] in confirmed else stated
            levels[row["item"]] = min(level, levels.get(row["item"], level), key=TRUST.index)
        waiting = {row["from"] for row in rows if row["from"] and row["item"] not in confirmed} - levels.keys()
    least = min(levels.values(), key=TRUST.index)
    return least, min(node for node, level in levels.items() if level == least)
