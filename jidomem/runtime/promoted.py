"""What long-term memory holds of what was promoted: by its key, by its content, by its IRI."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from jidomem.errors import NotFound
from jidomem.runtime.long_term import LongTerm
from jidomem.terms import iri, literal
from jidomem.vocab import JIDO, TYPE_OF_CLASS, local_name, type_uri

_HELD = f"""\
PREFIX jido: <{JIDO}>
SELECT ?item ?type ?summary ?explanation ?key ?value WHERE {{
  %s
  ?item a ?type ; jido:summary ?summary ; jido:recordedAt ?recorded ; jido:hasAssertionStatus jido:Asserted .
  OPTIONAL {{ ?item jido:detailedExplanation ?explanation }}
  OPTIONAL {{ ?item jido:key ?key }}
  OPTIONAL {{ ?item jido:value ?value }}
  FILTER NOT EXISTS {{
    ?item jido:supersededBy|jido:invalidatedBy ?end . ?end jido:hasAssertionStatus jido:Asserted
  }}
}} ORDER BY DESC(?recorded) DESC(?item) ?key ?value
"""


@dataclass(slots=True)
class Held:
    """A memory in force: what it says, the keys it was promoted under, and the values that are given back for them."""

    iri: str
    type: str
    summary: str
    explanation: str | None
    keys: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


class Promoted:
    """The memories in force of a project, the newest first."""

    def __init__(self, long_term: LongTerm) -> None:
        self._long_term = long_term

    def under(self, *keys: str) -> list[Held]:
        """Return the memories that were promoted under one of *keys*."""
        return self._held(f"VALUES ?known {{ {' '.join(map(literal, keys))} }} ?item jido:key ?known .") if keys else []

    def saying(self, kind: str, summary: str) -> list[Held]:
        """Return the memories of the type *kind* with this summary, to the letter."""
        return self._held(f"?item a {iri(type_uri(kind))} ; jido:summary {literal(summary)} .")

    def named(self, items: Iterable[str]) -> list[Held]:
        """Return the memories *items*, in their order."""
        order = {item: place for place, item in enumerate(items)}
        found = self._held(f"VALUES ?item {{ {' '.join(map(iri, order))} }}") if order else []
        return sorted(found, key=lambda held: order[held.iri])

    def _held(self, where: str) -> list[Held]:
        try:
            rows = cast(list[dict[str, Any]], self._long_term.query(_HELD % where))
        except NotFound as missing:
            if missing.code != "unknown_project":
                raise
            return []  # nothing was ever written
        found: dict[str, Held] = {}
        for row in rows:
            kind = TYPE_OF_CLASS.get(local_name(row["type"]), "")
            held = found.setdefault(row["item"], Held(row["item"], kind, row["summary"], row["explanation"]))
            held.type = held.type or kind
            for known, value in ((held.keys, row["key"]), (held.values, row["value"])):
                if value is not None and value not in known:
                    known.append(value)
        return [*found.values()]
