"""How much a project remembers: its memories counted by kind and status."""

from __future__ import annotations

from jidomem.read.reader import MemoryReader
from jidomem.vocab import local_name

_COUNTS = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?kind ?status (COUNT(DISTINCT ?item) AS ?count) WHERE {
  ?item jido:hasAssertionStatus ?asserted ; a ?kind . FILTER(STRSTARTS(STR(?kind), STR(jido:)))
  BIND(EXISTS { ?item jido:invalidatedBy ?end . ?end jido:hasAssertionStatus jido:Asserted } AS ?invalid)
  BIND(EXISTS { ?item jido:supersededBy ?end . ?end jido:hasAssertionStatus jido:Asserted } AS ?old)
  BIND(IF(?invalid, "invalidated", IF(?old, "superseded", IF(?asserted = jido:Proposed, "proposed", "active")))
    AS ?status)
} GROUP BY ?kind ?status ORDER BY ?kind ?status
"""


def counts(reader: MemoryReader, project: str) -> dict[str, dict[str, int]]:
    """Return how many memories of each kind are active, superseded, invalidated and proposed."""
    found: dict[str, dict[str, int]] = {}
    for row in reader.select(project, _COUNTS):
        found.setdefault(local_name(row["kind"]), {})[row["status"]] = row["count"]
    return found
