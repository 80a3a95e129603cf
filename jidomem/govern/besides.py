"""The memories about files that do not govern them: proposals, facts, and records of a package or of a path's words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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


_RECORDS = (
    """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?about WHERE { ?item a jido:ArchitecturalDecision ; jido:summary ?summary ; jido:about ?about .
"""
    + active.valid_now()
    + active.now_of_all()
    + "} ORDER BY DESC(?item) LIMIT 5000"
)
#: The folder of a package before that of its documents.
_PACKAGE = re.compile(r"(?:\./)?(.+?)/(?:docs?|documentation|adrs?|decisions|architecture|rfcs?)/")
#: A part of a path is compared with the words of a title when it has so many letters, and tells of few records.
_LETTERS, _FEW = 5, 3
_GENERIC = frozenset(("index", "module", "package", "source", "common", "internal", "testing", "client", "server"))


@dataclass(frozen=True, slots=True)
class Besides:
    """A memory about a file that does not govern it; it `waits` where it is only proposed."""

    item: str
    kind: str
    summary: str
    about: str
    waits: bool


def besides(reader: MemoryReader, project: str, paths: Sequence[str], known: Collection[str]) -> list[Besides]:
    """Return what is about *paths* and not among the items *known*, the nearest first: files, folders, all.

    Then come the decision records in a folder of documents of the package that a path lies in, and those whose title
    has the words of a part of the path, as "Solo machine" those of `06-solomachine`.
    """
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
    for far, one in _related(reader, project, plain):
        if one.item not in known:
            found.setdefault(one.item, ((False, far), one))
    return [one for _, one in sorted(found.values(), key=lambda each: each[0], reverse=True)]


def _related(reader: MemoryReader, project: str, paths: Sequence[str]) -> Iterator[tuple[int, Besides]]:
    """Yield the records of the packages of *paths*, then those with words of a path, each with how near it is."""
    rows = reader.select(project, _RECORDS)
    for row in rows:
        package = _PACKAGE.match(row["about"])
        if package and any(path.startswith(f"{package[1]}/") for path in paths):
            yield 0, _record(row)
    titled: defaultdict[str, dict[str, Besides]] = defaultdict(dict)
    parts = {part for path in paths for part in _path_words(path)}
    for row in rows if parts else ():
        for part in parts & _title_words(row["summary"]):
            titled[part].setdefault(row["item"], _record(row))
    for found in titled.values():
        if len(found) <= _FEW:
            yield from ((-1, one) for one in found.values())


def _record(row: dict[str, Any]) -> Besides:
    return Besides(row["item"], "architectural_decision", row["summary"], row["about"], waits=False)


def _path_words(path: str) -> set[str]:
    """Return the folders of *path* and its name without endings, each in its letters alone and in the singular.

    >>> sorted(_path_words("modules/light-clients/06-solomachine/client_state.go"))
    ['clientstate', 'lightclient', 'solomachine']
    """
    *folders, name = path.split("/")
    words = (_singular("".join(re.findall(r"[^\W\d_]+", part))) for part in (*folders, name.partition(".")[0]))
    return {word for word in words if len(word) >= _LETTERS and word not in _GENERIC}


def _title_words(title: str) -> set[str]:
    """Return up to three words of *title* that follow one another, joined as `_path_words` are."""
    words = re.findall(r"[^\W\d_]+", title)
    runs = ("".join(words[at : at + count]) for count in (1, 2, 3) for at in range(len(words)))
    return {_singular(run) for run in runs}


def _singular(word: str) -> str:
    return word.casefold().removesuffix("s")


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
