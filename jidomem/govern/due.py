"""What is to be looked at again, found by its dates alone: `stale` of the playbook tells all of it."""

from __future__ import annotations

from typing import Any

from jidomem.query import FOREVER, to_term
from jidomem.read.reader import MemoryReader
from jidomem.terms import iri
from jidomem.vocab import BASE, graph_iri

#: What `stale` asks of each.
QUESTIONS = {
    "expired": "Does it still hold? It was to be looked at again by then.",
    "no_longer_valid": "What holds now? It said that it would hold until then.",
    "no_review_date": "When is it looked at again? It is assumed, and nobody set a date.",
}
_PREFIXES = "PREFIX jido: <https://jido.ai/ontology#>\nPREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
_ASSUMED = f"{_PREFIXES} SELECT DISTINCT ?kind WHERE {{ ?kind rdfs:subClassOf* jido:Assumption }} ORDER BY ?kind"
#: One graph is named, that of all that is asserted: looking for each pattern in each graph takes four times as long.
#: What is known of an item is looked up, as a join would go through all there are.
_DUE = """
SELECT DISTINCT %(columns)s WHERE { GRAPH <%(graph)s> {
  {
    ?item jido:expiresOn ?due BIND("expired" AS ?reason)
  } UNION {
    ?item jido:validUntil ?due BIND("no_longer_valid" AS ?reason)
  } UNION {
    VALUES ?kind { %(assumed)s } ?item a ?kind BIND("no_review_date" AS ?reason)
    FILTER NOT EXISTS { ?item jido:expiresOn|jido:validUntil ?date }
  }
  FILTER(!BOUND(?due) || ?due <= %(at)s)
  OPTIONAL { ?item jido:recordedAt ?recorded }
  FILTER(?recorded <= %(as_of)s)
  FILTER EXISTS { ?item jido:appliesToProject <%(project)s> }
  FILTER NOT EXISTS { ?item jido:hasAssertionStatus jido:Proposed }
  FILTER NOT EXISTS { ?item jido:validFrom ?from FILTER(?from > %(at)s) }
  FILTER NOT EXISTS {
    ?item jido:supersededBy|jido:invalidatedBy ?end
    FILTER EXISTS { ?end jido:hasAssertionStatus jido:Asserted }
    FILTER EXISTS { ?end jido:recordedAt ?endAt FILTER(?endAt <= %(as_of)s) }
  }
} }"""


def due(reader: MemoryReader, project: str, at: object) -> list[dict[str, Any]]:
    """Return item, reason, due and recorded of each that is to be looked at again at the moment *at*, in no order."""
    return reader.select(project, _PREFIXES + _text(reader, project, "?item ?reason ?due ?recorded", at, FOREVER))


def count(reader: MemoryReader, project: str, at: object, *, most: int, as_of: object = None) -> int:
    """Return how many are to be looked at again, as far as *most*, and as was known at *as_of*."""
    found = _text(reader, project, "?item", at, FOREVER if as_of is None else as_of)
    (row,) = reader.select(project, f"{_PREFIXES} SELECT (COUNT(*) AS ?n) WHERE {{ {{ {found} LIMIT {most:d} }} }}")
    return int(row["n"])


def _text(reader: MemoryReader, project: str, columns: str, at: object, as_of: object) -> str:
    assumed = " ".join(iri(row["kind"]) for row in reader.select(project, _ASSUMED))
    return _DUE % {
        "columns": columns,
        "graph": graph_iri(project),
        "project": f"{BASE}projects/{project}",
        "assumed": assumed,
        "at": to_term(at, "dateTime", "valid_at"),
        "as_of": to_term(as_of, "dateTime", "as_of"),
    }
