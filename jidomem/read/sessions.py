"""Work sessions: the status and the phase each is in, as its events have it."""

from __future__ import annotations

from jidomem.errors import NotFound
from jidomem.query import to_term
from jidomem.read.functions import Rows
from jidomem.read.reader import MemoryReader
from jidomem.vocab import BASE

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
    """Return one session, by its name or IRI; raises NotFound when nobody opened it."""
    node = to_term(name if ":" in name else f"{BASE}sessions/{name}", "iri", "session")
    for row in reader.select(project, _SESSIONS % f" VALUES ?session {{ {node} }}"):
        return row
    raise NotFound(f"{project} has no session {name!r}", hint="open it first, or list them: jidomem session list --all")
