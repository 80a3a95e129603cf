"""The memories that govern files: rules, decisions, errors and lessons, the nearest to each file first.

`changed_files` returns the memories whose files have been changed, renamed or removed; `related_memories` those about a
file that do not govern it: proposals, facts, and records about its package or its words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jidomem.base.containers import grouped
from jidomem.base.regex import lazy
from jidomem.errors import InvalidRequest, NotFound
from jidomem.rdf.statements import Value, to_value
from jidomem.rdf.terms import Term, iri, literal, plain_value
from jidomem.rdf.vocab import TYPE, TYPE_OF_CLASS, graph_iri, jido, local_name, type_and_class, type_of
from jidomem.read import memory_detail
from jidomem.recall.nearness import FORCES, MOST_SHOWN, force, is_note, nearness
from jidomem.records import active
from jidomem.records.active import ACTIVE, Inactive
from jidomem.records.file_anchor import ANCHOR, Anchor, anchors_of, is_outside, plain_path
from jidomem.records.named_query import to_term
from jidomem.repository.freshness import (
    GONE,
    RENAMED,
    UNCHANGED,
    Freshness,
    freshness,
    moved_places,
    nearest_path,
    present_place,
)
from jidomem.repository.worktree import Worktree, matches

if TYPE_CHECKING:
    from jidomem.index.store import OxigraphIndex
    from jidomem.read.reader import MemoryReader

Row = dict[str, Any]
#: The columns of `changed_files`.
FRESHNESS_COLUMNS = ("item", "summary", "path", "state", "at", "question")
_QUESTIONS = {
    "changed": "Does it still hold? The file was changed since.",
    "gone": "Does it still hold? The file is gone.",
    "renamed": "Is it about the file by its new name, too?",
}
_PLACE_QUESTIONS = {
    "gone": "What is it about? No file matches that.",
    "renamed": "Is it about the folder by its new name, too?",
}
_OF_PLACE = """isLiteral(?place) && REGEX(STR(?place), "[*?{/]|\\\\[")"""
_PLACES = f"SELECT DISTINCT ?place WHERE {{ %s ?item <https://jido.ai/ontology#about> ?place FILTER({_OF_PLACE}) }}"
_PLACED = (
    """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?place WHERE {
  ?item jido:about ?place ; jido:summary ?summary ; jido:appliesToProject ?project .
"""
    + active.now_by_scans()
    + f" FILTER({_OF_PLACE}) }} ORDER BY ?item ?place"
)
_ANCHORS = "SELECT DISTINCT ?anchor WHERE { %s ?item <https://jido.ai/ontology#aboutBlob> ?anchor }"
_ANCHORED = (
    """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?anchor WHERE {
  %s ?item jido:aboutBlob ?anchor ; jido:summary ?summary ; jido:appliesToProject ?project .
"""
    + "%s } ORDER BY ?item ?anchor"
)


def active_anchors(
    reader: MemoryReader, project: str, items: Collection[str] | None = None
) -> list[tuple[str, str, Anchor]]:
    """Return each active memory, those of *items* if given, with its summary and one of its files, as that was when the
    memory was written.
    """
    text = _ANCHORED % ("%s", active.now_by_scans() if items is None else active.now())
    rows = select_of(reader, project, text, items)
    return [(row["item"], row["summary"], anchor) for row in rows for anchor in anchors_of([literal(row["anchor"])])]


def changed_files(reader: MemoryReader, tree: Worktree | None, project: str) -> list[Row]:
    """Return item, summary, path, state, at (the new path) and question for each file of an active memory that was
    changed, removed or renamed. The list is empty outside a repository.
    """
    if tree is None:
        return []
    anchors = active_anchors(reader, project)
    states = freshness(tree, (anchor for _, _, anchor in anchors))
    rows = [
        {"item": item, "summary": summary, **states[anchor].to_dict(), "question": _QUESTIONS[states[anchor].state]}
        for item, summary, anchor in anchors
        if states[anchor].state != UNCHANGED
    ]
    return rows + _lacking_places(reader, tree, project, {(item, anchor.path) for item, _, anchor in anchors})


def _lacking_places(
    reader: MemoryReader, tree: Worktree, project: str, anchored: Collection[tuple[str, str]]
) -> list[Row]:
    """Return a row for each place of an active memory that has no file, unless it is one of its *anchored* files."""
    named = [(row, plain_path(row["place"])) for row in reader.select(project, _PLACED)]
    lacking = [(row, place) for row, place in named if (row["item"], place) not in anchored and tree.is_missing(place)]
    moves = moved_places(tree, (place for _, place in lacking))
    rows = []
    for row, place in lacking:
        at = present_place(place, moves[place]) if place in moves else None
        state = GONE if at is None else RENAMED
        same = {"item": row["item"], "summary": row["summary"], "path": place, "state": state, "at": at}
        rows.append({**same, "question": _PLACE_QUESTIONS[state]})
    return rows


def anchors_by_item(index: OxigraphIndex, project: str, items: Iterable[str]) -> dict[str, list[Anchor]]:
    """Return the anchors of each of *items*: its files as they were when it was written."""
    graph = graph_iri(project)
    return {
        item: anchors_of(value for _, _, value in index.triples(graph, iri(item), ANCHOR))
        for item in dict.fromkeys(items)
    }


def fresh(
    index: OxigraphIndex, tree: Worktree | None, project: str, items: Iterable[str]
) -> Mapping[str, list[Freshness]]:
    """Return the state of the files of each of *items*; an empty mapping outside a repository."""
    if tree is None:
        return {}
    by_item = anchors_by_item(index, project, items)
    states = freshness(tree, (anchor for anchors in by_item.values() for anchor in anchors))
    return {item: [states[anchor] for anchor in anchors] for item, anchors in by_item.items()}


GOVERNING_COLUMNS = ("path", "item", "kind", "force", "about", "freshness", "summary", "status", "time")
_PAGE = 200
_NOWHERE = (-1, 0)
_ERROR_STATUS, _RECORDED = jido("hasErrorStatus"), jido("recordedAt")


def governing(
    reader: MemoryReader,
    index: OxigraphIndex,
    tree: Worktree | None,
    project: str,
    paths: Sequence[str],
    limit: int | None = None,
    **filters: Any,
) -> list[Row]:
    """Return the memories that govern each of *paths*, in the order of `rank`: all, or the *limit* nearest.

    Each row has path, item, kind, class, force, about (the place that matched), summary, level, status (active,
    proposed ...), time, state of a task or error, freshness of each of its files, source, agent and recorded.
    """
    ranked = rank(reader, index, tree, project, paths, **filters)
    return _described(index, tree, project, nearest(ranked, limit), filters)


class Governing(NamedTuple):
    """A memory that governs *path*: its row of the named query `governing` or `patterns`, and what it is ranked by."""

    path: str
    row: Row
    nearness: tuple[int, int]
    force: str
    recorded: Value

    @property
    def item(self) -> str:
        """Return the IRI of the memory."""
        return str(self.row["item"])


def rank(
    reader: MemoryReader,
    index: OxigraphIndex,
    tree: Worktree | None,
    project: str,
    paths: Sequence[str],
    **filters: Any,
) -> list[Governing]:
    """Return the memories that govern each of *paths*, the nearest first, then the most binding, then the newest.

    Memories of one commit keep their order.

    Paths are relative to the folder that contains the root, with forward slashes, or absolute; raises InvalidRequest
    for one outside that folder. A memory about a renamed file governs it under its new name too. A memory that names no
    place governs nothing, unless it is a strict or required convention.

    *filters* are as_of, valid_at and include_inactive.
    """
    paths = _paths_below(tree, paths)
    return _ranked(index, project, _nearest_rows(reader, project, paths, earlier_names(reader, tree, project), filters))


class _Near(NamedTuple):
    """A row of the named query `governing` or `patterns`, and its nearness to the path that it governs."""

    row: Row
    nearness: tuple[int, int]


def _nearest_rows(
    reader: MemoryReader,
    project: str,
    paths: Sequence[str],
    earlier: Mapping[str, Sequence[str]],
    filters: Mapping[str, Any],
) -> dict[tuple[str, str], _Near]:
    """Return the nearest row of each memory that governs one of *paths*, by path and memory.

    *earlier* has the former names of files.
    """
    patterns = _patterns(reader, project, filters)
    nearest_rows: dict[tuple[str, str], _Near] = {}
    for path in paths:
        for name in (plain_path(path), *earlier.get(plain_path(path), ())):
            rows = reader.ask("governing", project=project, file=name, **filters)
            rows += _matching(patterns, name)
            for row in rows:
                place, distance = (path, row["item"]), nearness(name, row["about"])
                known = nearest_rows[place].nearness if place in nearest_rows else _NOWHERE
                if distance > known and not is_note(row["about"], row["level"]):
                    nearest_rows[place] = _Near(row, distance)
    return nearest_rows


def _ranked(index: OxigraphIndex, project: str, nearest_rows: Mapping[tuple[str, str], _Near]) -> list[Governing]:
    ranked = []
    for (path, item), (row, distance) in nearest_rows.items():
        binding, recorded = _force_and_time(index, project, item, row["level"])
        ranked.append(Governing(path, row, distance, binding, recorded))
    order = {path: number for number, path in enumerate(dict.fromkeys(path for path, _ in nearest_rows))}
    ranked.sort(key=lambda one: one.item)
    ranked.sort(key=lambda one: str(one.recorded), reverse=True)
    ranked.sort(key=lambda one: (-order[one.path], one.nearness, -FORCES.index(one.force)), reverse=True)
    return ranked


def _force_and_time(index: OxigraphIndex, project: str, item: str, level: str | None) -> tuple[str, Value]:
    """Return the force of a memory with this enforcement level, and when it was recorded."""

    def values(name: Term) -> list[Term]:
        return sorted(value for _, _, value in index.triples(graph_iri(project), iri(item), name))

    states = [] if level else values(_ERROR_STATUS)
    _, kind = type_and_class([] if level or states else values(TYPE))
    state = local_name(plain_value(states[0])) if states else None
    return force(kind, local_name(level or ""), state, is_error=bool(states)), to_value(values(_RECORDED)[0])


class GoverningAnswer(NamedTuple):
    """The `rows` of `governing`, their rows of the named queries as `named`, and information on what they do not show.

    `items` has the IRI of each memory and path in order, of which `rows` may be the nearest. `left_out` has the status
    of each matching memory that is not active; `missing` each path without a file, with the most similar existing path
    or None. `conventions` is the number of conventions of the project if there are no items, else None.
    """

    rows: Sequence[Row]
    named: Sequence[Row]
    items: Sequence[str]
    left_out: Mapping[str, str]
    missing: Mapping[str, str | None]
    conventions: int | None = None

    @property
    def inactive(self) -> Inactive:
        """Return the counts of memories left out because they are not active."""
        return self.inactive_but(())

    def inactive_but(self, items: Collection[str]) -> Inactive:
        """Return the same without *items*, which were reported already."""
        statuses = Counter(status for name, status in self.left_out.items() if name not in items)
        return Inactive(statuses)

    def notices(self) -> list[str]:
        """Return a sentence about each path without a file."""
        nearest = {path: f"; the nearest name is {near}" if near else "" for path, near in self.missing.items()}
        return [f"there is no file {path}{near}" for path, near in nearest.items()]

    def to_dict(self, option: str = "include_inactive=true") -> dict[str, Any]:
        """Return plain values, except the rows; *option* is the parameter that includes inactive memories."""
        missing = [{"path": path, "nearest": near} for path, near in self.missing.items()]
        project = None if self.conventions is None else {"conventions": self.conventions, "query": "conventions"}
        return {"inactive": self.inactive.to_dict(option), "missing": missing, "whole_project": project}


def answer(
    reader: MemoryReader,
    index: OxigraphIndex,
    tree: Worktree | None,
    base: Path | None,
    project: str,
    paths: Sequence[str],
    limit: int | None = None,
    **filters: Any,
) -> GoverningAnswer:
    """Return what `governing` returns, with information on memories left out. Raises what `governing` raises.

    *base* is the folder of the files, None if no files are known. A superseded memory is not counted if its successor
    is.
    """
    inside = _paths_below(tree, paths)
    earlier = earlier_names(reader, tree, project)
    wider, as_of = {**filters, "include_inactive": True}, filters.get("as_of")
    every = _nearest_rows(reader, project, inside, earlier, wider)  # all rows of a memory have one status
    shown = {place: one for place, one in every.items() if wider == filters or one.row["status"] == ACTIVE}
    ranked = _ranked(index, project, shown)
    hidden = {item: one.row["status"] for (path, item), one in every.items() if (path, item) not in shown}
    known = {item for _, item in every}
    left_out = {
        name: status
        for name, status in hidden.items()
        if not memory_detail.has_successor(index, project, name, known, as_of)
    }
    missing: dict[str, str | None] = {}
    if base is not None and as_of is None:
        plain = dict.fromkeys(plain_path(path).rstrip("/") for path in inside)
        lacking = [path for path in plain if "://" not in path and not lexists(base / path)]
        elsewhere = tree.left_out() if lacking and tree is not None else ()
        missing = {path: nearest_path(base, path) for path in lacking if path not in elsewhere}
    moment = {name: filters[name] for name in ("as_of", "valid_at") if name in filters}
    conventions = None if ranked else len(reader.ask("conventions", project=project, **moment))
    first = nearest(ranked, limit)
    rows, named = _described(index, tree, project, first, filters), [one.row for one in first]
    return GoverningAnswer(rows, named, [one.item for one in ranked], left_out, missing, conventions)


def nearest(ranked: Sequence[Governing], limit: int | None = MOST_SHOWN) -> list[Governing]:
    """Return the first *limit* of each path in their order, all without; strict conventions take precedence."""
    count, numbers = Counter[str](), []
    for number, one in sorted(enumerate(ranked), key=lambda each: (each[1].force != "strict", each[0])):
        count[one.path] += 1
        if limit is None or count[one.path] <= limit:
            numbers.append(number)
    return [ranked[number] for number in sorted(numbers)]


def _paths_below(tree: Worktree | None, paths: Sequence[str]) -> list[str]:
    """Return the distinct *paths*, each as `_below` does; raises InvalidRequest without any, or if one is no text."""
    if not paths:
        raise InvalidRequest("a path is needed", hint="name a file: jidomem governing src/a.py")
    if any(not isinstance(path, str) for path in paths):
        raise InvalidRequest(f"paths={paths!r:.200} are not texts", hint='give "src/db.py"')
    return [*dict.fromkeys(_below(tree, path) for path in paths)]


def _below(tree: Worktree | None, path: str) -> str:
    """Return *path* relative to the folder in which the paths of memories begin; raises InvalidRequest for one outside.

    Other forms are those of `Worktree.place`.
    """
    below = path if tree is None else tree.place(path)
    if is_outside(below):
        where = str(tree.base) if tree is not None else "the folder that holds the root"
        detail = f"{path} is outside {where}, to which the paths of this memory are relative"
        raise InvalidRequest(detail, hint="name a file below it: src/a.py")
    return below


def about_patterns(reader: MemoryReader, project: str, path: str, filters: Mapping[str, Any]) -> list[Row]:
    """Return the rows of the named query `patterns` with a pattern that matches *path*."""
    return _matching(_patterns(reader, project, filters), plain_path(path))


def _matching(patterns: Iterable[Row], path: str) -> list[Row]:
    return [row for row in patterns if matches(plain_path(row["about"]), path)]


def _patterns(reader: MemoryReader, project: str, filters: Mapping[str, Any]) -> list[Row]:
    """Return the memories about patterns, read in pages, since pages are cached."""
    rows, cursor = [], None
    while True:
        page = reader.ask_page("patterns", project=project, limit=_PAGE, cursor=cursor, **filters)
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            return rows


def earlier_names(reader: MemoryReader, tree: Worktree | None, project: str) -> Mapping[str, list[str]]:
    """Return the names that files had when a memory about them, or their folder, was written, by present name."""
    places = earlier_places(reader, tree, project)
    return grouped(dict.fromkeys((now, old) for now, old, _ in places))


def earlier_places(
    reader: MemoryReader, tree: Worktree | None, project: str, items: Collection[str] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Yield the present name of a file, one that it had, and the active memory about it, empty for a file of a place.

    They are those of all memories, or of *items*.
    """
    if tree is None:
        return
    anchors = anchors_of(literal(row["anchor"]) for row in select_of(reader, project, _ANCHORS, items))
    gone = {path for path in {anchor.path for anchor in anchors} if not tree.has(path)}
    rows = active_anchors(reader, project, items) if gone else []
    missing = [(anchor, item) for item, _, anchor in rows if anchor.path in gone]
    moves = freshness(tree, (anchor for anchor, _ in missing))
    for anchor, item in missing:
        if (move := moves[anchor]).at not in (None, move.path):
            yield move.at, move.path, item
    places = (plain_path(row["place"]) for row in select_of(reader, project, _PLACES, items))
    for files in moved_places(tree, places).values():
        yield from ((now, old, "") for old, now in files.items())


#: The most memories named in one query, whose text has a limit.
_MOST_NAMED = 300


def select_of(
    reader: MemoryReader, project: str, text: str, items: Collection[str] | None, variable: str = "item"
) -> list[Row]:
    """Return the rows of a query for all memories, or for those of which *variable* is one of *items*.

    The first `%s` in *text* is the place of the restriction.
    """
    if items is None:
        return list(reader.select(project, text.replace("%s", "", 1)))
    names, rows = [*items], list[Row]()
    for start in range(0, len(names), _MOST_NAMED):
        only = f"VALUES ?{variable} {{ {' '.join(map(iri, names[start : start + _MOST_NAMED]))} }}"
        rows += reader.select(project, text.replace("%s", only, 1))
    return rows


def _described(
    index: OxigraphIndex, tree: Worktree | None, project: str, ranked: Sequence[Governing], filters: Mapping[str, Any]
) -> list[Row]:
    known = fresh(index, tree, project, (one.item for one in ranked))
    return [_row(index, project, one, known.get(one.item, ()), filters.get("as_of")) for one in ranked]


def _row(index: OxigraphIndex, project: str, one: Governing, states: Iterable[Freshness], as_of: object) -> Row:
    row, memory = one.row, memory_detail.load_memory(index, project, one.item, as_of)
    properties = {name: values[0] for name, values in memory["properties"].items() if values}
    state = properties.get("hasErrorStatus") or properties.get("hasTaskStatus") or properties.get("decisionStatus")
    return {
        "path": one.path,
        "item": one.item,
        "kind": memory["type"] or TYPE_OF_CLASS.get(memory["class"], memory["class"]),
        "force": one.force,
        "about": row["about"],
        "freshness": [each.to_dict() for each in states],
        "summary": row["summary"],
        "level": local_name(row["level"]) if row["level"] else None,
        "severity": properties.get("severityLevel"),
        "state": local_name(state) if isinstance(state, str) else None,
        "standing": row["status"],
        "status": row["status"],
        "time": properties.get("hasTimestamp"),
        "source": local_name(properties["hasSourceType"]) if "hasSourceType" in properties else None,
        "agent": local_name(properties["assertedBy"]) if "assertedBy" in properties else None,
        "recorded": one.recorded,
        **({"conflicts_with": row["conflicts_with"]} if "conflicts_with" in row else {}),
    }


#: The properties are optional patterns: in a join, the engine would read them for all memories.
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
    + active.accepted()
    + active.unended()
    + """ %s
} ORDER BY ?recorded ?item
"""
)


#: Without status and order, which cost three times as much: both are looked up for the few that match a path.
_RECORDS = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?about WHERE { ?item a jido:ArchitecturalDecision ; jido:summary ?summary ; jido:about ?about }
"""
_ACTIVE = "PREFIX jido: <https://jido.ai/ontology#> SELECT ?item WHERE { VALUES ?item { %s }\n" + active.now() + "%s }"
#: The folder of a package, followed by the folder of its documents.
_PACKAGE = lazy(r"(?:\./)?(.+?)/(?:docs?|documentation|adrs?|decisions|architecture|rfcs?)/")
#: The least letters of a part of a path that is compared with titles, and the most records it may match.
_LETTERS, _FEW = 5, 3
_WORDS = lazy(r"[^\W\d_]+")
_GENERIC = frozenset(("index", "module", "package", "source", "common", "internal", "testing", "client", "server"))


class RelatedMemory(NamedTuple):
    """A memory about a file that does not govern it; `waits` is True if it is only proposed."""

    item: str
    kind: str
    summary: str
    about: str
    waits: bool


def related_memories(
    reader: MemoryReader, project: str, paths: Sequence[str], known: Collection[str]
) -> list[RelatedMemory]:
    """Return the memories about *paths* other than the items *known*, the nearest first: files, folders, everything.

    Decision records in a folder of documents of the package of a path follow, then those whose title has the words of a
    part of the path, as "Solo machine" matches `06-solomachine`.
    """
    plain = [plain_path(path) for path in paths]
    places = dict.fromkeys(place for path in plain for place in _places(path))
    try:
        patterned = reader.about_patterns(project)
        among = "" if patterned is None else f"VALUES ?item {{ {' '.join(map(iri, patterned))} }}"
        about = " ".join(to_term(place, "string", "path") for place in places)
        rows = reader.select(project, _QUERY % (about, among, active.valid_at(reader.now())))
    except NotFound:  # nothing has been written yet
        return []
    by_item: dict[str, tuple[tuple[bool, int], RelatedMemory]] = {}
    for row in rows:
        about = row["about"]
        if row["item"] in known or is_note(about, row["level"]):
            continue
        if "*" in about and not any(matches(plain_path(about), path) for path in plain):
            continue
        near = plain_path(about) in plain, len(about.replace("*", ""))
        kind = type_of(row["kind"]) or local_name(row["kind"])
        one = RelatedMemory(row["item"], kind, row["summary"], about, local_name(row["status"]) == "Proposed")
        by_item[one.item] = max(by_item.get(one.item, (near, one)), (near, one), key=lambda each: each[0])
    for far, one in _related(reader, project, plain):
        if one.item not in known:
            by_item.setdefault(one.item, ((False, far), one))
    return [one for _, one in sorted(by_item.values(), key=lambda each: each[0], reverse=True)]


def _related(reader: MemoryReader, project: str, paths: Sequence[str]) -> Iterator[tuple[int, RelatedMemory]]:
    """Yield the records of the packages of *paths*, then those with words of a path, each with its nearness."""
    rows = sorted(reader.select(project, _RECORDS), key=lambda row: str(row["item"]), reverse=True)
    packaged = [row for row in rows if _is_in_package(row["about"], paths)]
    titled: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    parts = {part for path in paths for part in _path_words(path)}
    for row in rows if parts else ():
        letters = "".join(_WORDS.findall(row["summary"])).casefold()
        if any(part in letters for part in parts):
            for part in parts & _title_words(row["summary"]):
                titled[part].setdefault(row["item"], row)
    named = {row["item"] for row in packaged}.union(*titled.values())
    text = _ACTIVE % (" ".join(map(iri, named)), active.valid_at(reader.now()))
    among = {row["item"] for row in reader.select(project, text)} if named else set()
    yield from ((0, _record(row)) for row in packaged if row["item"] in among)
    for records in titled.values():
        chosen = [_record(row) for item, row in records.items() if item in among]
        if len(chosen) <= _FEW:
            yield from ((-1, one) for one in chosen)


def _is_in_package(about: str, paths: Sequence[str]) -> bool:
    """Return whether *about* is in the folder of documents of the package of one of *paths*."""
    package = _PACKAGE.match(about)
    return package is not None and any(path.startswith(f"{package[1]}/") for path in paths)


def _record(row: dict[str, Any]) -> RelatedMemory:
    return RelatedMemory(row["item"], "architectural_decision", row["summary"], row["about"], waits=False)


def _path_words(path: str) -> set[str]:
    """Return the folders of *path* and its name without extensions, each reduced to letters and in the singular.

    >>> sorted(_path_words("modules/light-clients/06-solomachine/client_state.go"))
    ['clientstate', 'lightclient', 'solomachine']
    """
    *folders, name = path.split("/")
    words = (_singular("".join(_WORDS.findall(part))) for part in (*folders, name.partition(".")[0]))
    return {word for word in words if len(word) >= _LETTERS and word not in _GENERIC}


def _title_words(title: str) -> set[str]:
    """Return runs of one to three consecutive words of *title*, each joined in the form of `_path_words`."""
    words = _WORDS.findall(title)
    runs = ("".join(words[at : at + count]) for count in (1, 2, 3) for at in range(len(words)))
    return {_singular(run) for run in runs}


def _singular(word: str) -> str:
    return word.casefold().removesuffix("s")


def _places(path: str) -> list[str]:
    """Return the file and the folders above it in the forms in which memories may name them.

    >>> _places("src/a.py")
    ['src/a.py', './src/a.py', 'src', './src', 'src/', './src/']
    """
    parts = path.split("/")
    folders = ["/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1)]
    return [
        f"{prefix}{place}{end}"
        for place, ends in [(path, ("",)), *((folder, ("", "/")) for folder in folders)]
        for end in ends
        for prefix in ("", "./")
    ]
