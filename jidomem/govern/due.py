"""What is to be looked at again, found by its dates alone: `stale` of the playbook tells all of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from jidomem import active
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
_DUE = (
    """
SELECT DISTINCT %(columns)s WHERE { GRAPH <%(graph)s> { %(items)s
  {
    ?item jido:expiresOn ?due BIND("expired" AS ?reason)
  } UNION {
    ?item jido:validUntil ?due BIND("no_longer_valid" AS ?reason)
  } UNION {
    VALUES ?kind { %(assumed)s } ?item a ?kind BIND("no_review_date" AS ?reason)
    FILTER NOT EXISTS { ?item jido:expiresOn|jido:validUntil ?date }
  }
  OPTIONAL { ?item jido:recordedAt ?recorded }
  FILTER(?recorded <= %(as_of)s)
  FILTER EXISTS { ?item jido:appliesToProject <%(project)s> }
  FILTER NOT EXISTS { ?item jido:hasAssertionStatus jido:Proposed }
"""
    + active.accepted()
    + """
  FILTER NOT EXISTS {
    ?item jido:supersededBy|jido:invalidatedBy ?end
    FILTER EXISTS { ?end jido:hasAssertionStatus jido:Asserted }
    FILTER EXISTS { ?end jido:recordedAt ?endAt FILTER(?endAt <= %(as_of)s) }
  } %(when)s
} }"""
)
_BY = """
  FILTER(!BOUND(?due) || ?due <= %(at)s)
  FILTER NOT EXISTS { ?item jido:validFrom ?from FILTER(?from > %(at)s) }"""
_FROM, _COLUMNS = "OPTIONAL { ?item jido:validFrom ?valid_from }", "?item ?reason ?due ?recorded"
#: Items named in one query, whose length is limited.
_AT_ONCE = 200


def due(reader: MemoryReader, project: str, at: object) -> list[dict[str, Any]]:
    """Return item, reason, due and recorded of each that is to be looked at again at the moment *at*, in no order."""
    return reader.select(project, _PREFIXES + _text(reader, project, _COLUMNS, at, FOREVER))


def dated(reader: MemoryReader, project: str, items: Collection[str] | None) -> list[dict[str, Any]]:
    """Return what `due` does at whatever moment, and valid_from, of *items* alone where they are given."""
    terms = [""] if items is None else [*map(iri, items)]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for start in range(0, len(terms), _AT_ONCE):
        named = "" if items is None else f"VALUES ?item {{ {' '.join(terms[start : start + _AT_ONCE])} }}"
        text = _text(reader, project, f"{_COLUMNS} ?valid_from", None, FOREVER, named)
        for row in reader.select(project, _PREFIXES + text):
            one = rows.setdefault((row["item"], row["reason"], row["due"], row["recorded"]), row)
            if isinstance(row["valid_from"], datetime) and row["valid_from"] > (one["valid_from"] or row["valid_from"]):
                one["valid_from"] = row["valid_from"]
    return [*rows.values()]


def is_due(row: Mapping[str, Any], at: datetime) -> bool:
    """Return whether a row of `dated` is to be looked at again at the moment *at*."""
    date, start = row["due"], row["valid_from"]
    has_come = date is None or (isinstance(date, datetime) and date <= at)
    return has_come and not (isinstance(start, datetime) and start > at)


def count(reader: MemoryReader, project: str, at: object, *, most: int, as_of: object = None) -> int:
    """Return how many are to be looked at again, as far as *most*, and as was known at *as_of*."""
    found = _text(reader, project, "?item", at, FOREVER if as_of is None else as_of)
    (row,) = reader.select(project, f"{_PREFIXES} SELECT (COUNT(*) AS ?n) WHERE {{ {{ {found} LIMIT {most:d} }} }}")
    return int(row["n"])


def _text(reader: MemoryReader, project: str, columns: str, at: object | None, as_of: object, items: str = "") -> str:
    """Return the question, as of the moment *at*, or with the date from which on each holds where that is None."""
    assumed = " ".join(iri(row["kind"]) for row in reader.select(project, _ASSUMED))
    return _DUE % {
        "columns": columns,
        "items": items,
        "when": _FROM if at is None else _BY % {"at": to_term(at, "dateTime", "valid_at")},
        "graph": graph_iri(project),
        "project": f"{BASE}projects/{project}",
        "assumed": assumed,
        "as_of": to_term(as_of, "dateTime", "as_of"),
    }
