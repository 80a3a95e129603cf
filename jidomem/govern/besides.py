"""What memory holds about files that does not govern them: what is only proposed, and what binds nothing, as facts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jidomem import active
from jidomem.errors import NotFound
from jidomem.govern.nearness import is_note
from jidomem.query import to_term
from jidomem.read.reader import MemoryReader
from jidomem.repository.ignored import matches
from jidomem.terms import iri
from jidomem.vocab import local_name, type_of
from jidomem.write.names import plain_path

#: What is said of each is looked up for those found: joined, the engine would read it of all memories.
_QUERY = (
    """
PREFIX jido: <https://jido.ai/ontology#>
SELECT DISTINCT ?item ?summary ?about ?kind ?status ?recorded ?level WHERE {
  { VALUES ?about { %s } ?item jido:about ?about }
  UNION { %s ?item jido:about ?about FILTER(CONTAINS(STR(?about), "*")) }
  UNION { ?item a jido:Convention ; jido:hasAssertionStatus jido:Proposed
          FILTER NOT EXISTS { ?item jido:about ?any } BIND("" AS ?about) }
  OPTIONAL { ?item jido:hasAssertionStatus ?status }
  OPTIONAL { ?item jido:summary ?summary }
  OPTIONAL { ?item a ?kind }
  OPTIONAL { ?item jido:recordedAt ?recorded }
  OPTIONAL { ?item jido:hasEnforcementLevel ?level }
  FILTER(BOUND(?status) && BOUND(?summary) && BOUND(?kind) && BOUND(?recorded))
"""
    + active.valid_now()
    + active.accepted()
    + active.unended()
    + """
} ORDER BY ?recorded ?item
"""
)


@dataclass(frozen=True, slots=True)
class Besides:
    """A memory about a file that does not govern it; it `waits` where it is only proposed."""

    item: str
    kind: str
    summary: str
    about: str
    waits: bool


def besides(reader: MemoryReader, project: str, paths: Sequence[str], known: Collection[str]) -> list[Besides]:
    """Return what is about *paths* and not among the items *known*, the nearest first: files, folders, all."""
    plain = [plain_path(path) for path in paths]
    places = dict.fromkeys(place for path in plain for place in _places(path))
    try:
        patterned = reader.about_patterns(project)
        among = "" if patterned is None else f"VALUES ?item {{ {' '.join(map(iri, patterned))} }}"
        rows = reader.select(project, _QUERY % (" ".join(to_term(place, "string", "path") for place in places), among))
    except NotFound:  # nothing was ever written
        return []
    found: dict[str, tuple[tuple[bool, int], Besides]] = {}
    for row in rows:
        about = row["about"]
        if row["item"] in known or is_note(about, row["level"]):
            continue
        if "*" in about and not any(matches(plain_path(about), path) for path in plain):
            continue
        near = plain_path(about) in plain, len(about.replace("*", ""))
        kind = type_of(row["kind"]) or local_name(row["kind"])
        one = Besides(row["item"], kind, row["summary"], about, local_name(row["status"]) == "Proposed")
        found[one.item] = max(found.get(one.item, (near, one)), (near, one), key=lambda each: each[0])
    return [one for _, one in sorted(found.values(), key=lambda each: each[0], reverse=True)]


def _places(path: str) -> list[str]:
    """Return the file and the folders above it, as memories may name them.

    >>> _places("src/a.py")
    ['src/a.py', './src/a.py', 'src', './src', 'src/', './src/']
    """
    parts = path.split("/")
    folders = ["/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1)]
    return [
        f"{here}{place}{end}"
        for place, ends in [(path, ("",)), *((folder, ("", "/")) for folder in folders)]
        for end in ends
        for here in ("", "./")
    ]
