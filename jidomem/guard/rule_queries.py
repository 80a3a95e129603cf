"""Find in an open root all memories that govern files, and the texts by which each names them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from jidomem.base.clock import format_timestamp
from jidomem.base.containers import grouped, reachable
from jidomem.curation.review_queue import present_rows
from jidomem.guard.rules import Check, Rule, RuleInputs, Rules, file_state
from jidomem.journal.commit import COMMIT, stem
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri, plain_value
from jidomem.rdf.vocab import BASE, REDACTED, TYPE_OF_CLASS, graph_iri, jido, local_name
from jidomem.recall.governing import earlier_places, select_of
from jidomem.recall.nearness import BINDING, force, is_note
from jidomem.records import active
from jidomem.records.file_anchor import plain_path
from jidomem.records.intent import CommitRef, Version
from jidomem.runtime.root import Jidomem
from jidomem.write.permissions import check_waits

_PREFIX = "PREFIX jido: <https://jido.ai/ontology#>\n"
_FAMILIES = ("Convention", "Decision", "Error", "RootCause", "LessonLearned")
_ITEMS = (
    """SELECT ?item ?kind ?summary ?recorded ?agent ?level ?state ?from ?until ?scope ?commit ?dated ?cause WHERE {
  %s VALUES ?kind { %s }
  ?item a ?kind ; jido:appliesToProject <%s> ; jido:summary ?summary ; jido:recordedAt ?recorded ;
    jido:assertedBy ?agent .
"""
    + "%s"
    + """
  OPTIONAL { ?item jido:hasEnforcementLevel ?level }
  OPTIONAL { ?item jido:hasErrorStatus ?state }
  OPTIONAL { ?item jido:detailedExplanation ?cause }
  OPTIONAL { ?item jido:hasTimestamp ?dated FILTER NOT EXISTS { ?item jido:isUndated true } }
  OPTIONAL { ?item jido:validFrom ?from }
  OPTIONAL { ?item jido:validUntil ?until }
  OPTIONAL { ?item jido:hasConventionScope ?scope }
  OPTIONAL { ?item jido:recordedIn ?commit }
} ORDER BY DESC(?recorded) DESC(?item) ?kind ?agent"""
)
#: Queries of pairs; `%s` is the place of a restriction to some memories.
_PAIRS = {
    "about": "SELECT ?item ?value (isIRI(?value) AS ?is) WHERE { %s ?item jido:about|jido:appliesToModule ?value }",
    "module": "SELECT ?item ?value WHERE { %s ?item jido:affectedModule ?value }",
    "domain": "SELECT ?item ?value WHERE { %s ?item jido:appliesToDomain ?value }",
    "file": "SELECT ?item ?value WHERE { %s { ?item jido:filePath ?value } "
    "UNION { ?item jido:definedInFile ?file . ?file jido:filePath ?value } }",
    "forbids": "SELECT ?item ?value WHERE { %s ?item jido:forbidsPattern ?value } ORDER BY ?value",
    "requires": "SELECT ?item ?value WHERE { %s ?item jido:requiresPattern ?value } ORDER BY ?value",
    "command": "SELECT ?item ?value WHERE { %s ?item jido:checkCommand ?value } ORDER BY ?value",
}
_KEYS = "SELECT ?item ?key WHERE { ?item jido:conflictKey ?key }"
_SUCCESSORS = "SELECT ?old ?new WHERE { ?old jido:supersededBy|jido:invalidatedBy ?new }"
#: The same of the active memories with a key of one of the `?of`.
_KEYS_OF = (
    "SELECT DISTINCT ?item ?key WHERE { %s ?of jido:conflictKey ?key . ?item jido:conflictKey ?key "
    + active.now()
    + "}"
)
_ENDS = (jido("supersededBy"), jido("invalidatedBy"))
#: The classes of nodes beside memories in commits; they govern no file.
_BESIDE = ("Agent", "Project", "WorkSession", "SessionEvent", "Evidence", "Submission", "Commit")
_ACTIVITY = "<http://www.w3.org/ns/prov#Activity>"
_LABELS = {"strict": "strict convention", "required": "required convention", "lesson": "lesson"}


#: The most damaged files that the guard names.
_MOST_DAMAGE = 3
#: The most rules, the newest ones, whose near memories are looked for again.
_MOST_PENDING = 1_000


def gather_rules(memory: Jidomem, project: str, items: Collection[str] | None = None) -> Rules:
    """Return the rules of *project*, of *items* only if given; raises the errors of the catch-up.

    The time for some items does not depend on the number of memories.
    """
    memory.catch_up(project)
    memories = _RuleRows(memory, project, items)
    by_item: dict[str, Rule] = {}
    commits: dict[CommitRef, None] = {}
    for row in memories.rows:
        if row["item"] in by_item:
            continue
        named = tuple(sorted({plain_path(text) for text in memories.named(row)}))
        if named:
            rule = by_item[row["item"]] = memories.rule(row)._replace(about=named)
            if (rule.checks or rule.force == "strict") and row["commit"]:
                commits[CommitRef(rule.recorded, row["commit"].removeprefix(COMMIT), 0)] = None
    now = memory.now()
    rivals, differs = _disagreements(memory, project, memories, by_item)
    rules = []
    for item, rule in by_item.items():
        words = differs.get(item, {})
        others = (each for each in rivals.get(item, ()) if each not in words)
        linked = {*rivals.get(item, ()), *words, *memories.lineage([item])} - {item}
        rules.append(rule._replace(rivals=tuple(others), differs=tuple(words.values()), linked=tuple(sorted(linked))))
    bounds = [(each, rule.item) for rule in rules for each in (rule.valid_from, rule.valid_until) if each > now]
    earlier = earlier_places(memory.reader, memory.tree, project, items)
    unknown = memory.lag(project).get("vectors", {}).get("pending", 0)
    pending = tuple(rule.item for rule in rules[: min(unknown, _MOST_PENDING)])
    damage, files = _verified(memory, project, commits)
    return Rules(tuple(rules), tuple(earlier), tuple(bounds), pending, damage, files)


def with_partners(memory: Jidomem, project: str, items: Collection[str]) -> set[str]:
    """Return *items*, their lineages, and the memories in a disagreement with one of these."""
    memories = _RuleRows(memory, project, items)
    lineage = memories.lineage(items)
    rivals, differs = _disagreements(memory, project, memories, lineage)
    return {*lineage, *(other for each in (rivals, differs) for others in each.values() for other in others)}


def _disagreements(
    memory: Jidomem, project: str, memories: _RuleRows, items: Collection[str]
) -> tuple[Mapping[str, Collection[str]], Mapping[str, Mapping[str, str]]]:
    """Return the memories in conflict with each of *items*, and those that differ in a value, with the words."""
    # Building the list of conflicts, which may be missing, takes longer than all else here.
    suspects = memories.in_possible_conflict() & {*items}
    rivals = memory.reader.conflicts_with(project, suspects, valid_at=memory.now()) if suspects else {}
    contrasts = memory.contrasts(items, project)
    return rivals, {item: {one.item: one.words for one in some} for item, some in contrasts.items()}


def _verified(
    memory: Jidomem, project: str, commits: Iterable[CommitRef]
) -> tuple[tuple[str, ...], dict[str, list[int] | None]]:
    """Verify *commits*, which an index on disk may have from before a change of their files.

    Return texts on all damage of the project, and the states of the files with *commits* and of damaged files.
    """
    stream = Stream(project)
    places = (memory.journal.document(stream, commit) for commit in commits)
    files = {path: file_state(path) for path in dict.fromkeys(place[0] for place in places if place)}
    deque(memory.journal.inspect(stream).commits(map(stem, commits), set()), maxlen=0)
    damage = memory.damage(project)
    texts = [f"{each.code}: {each.detail}; {each.hint}" for each in damage[:_MOST_DAMAGE]]
    if len(damage) > _MOST_DAMAGE:
        texts.append(f"{len(damage) - _MOST_DAMAGE:,} more damaged files: jidomem journal verify lists them")
    return tuple(texts), {each.path: file_state(each.path) for each in damage} | files


def basis(memory: Jidomem, project: str) -> RuleInputs:
    """Return the inputs of the rules of *project*, with the present version of the memory."""
    memory.catch_up(project)
    known = memory.schema.subclasses
    governing = {kind for name in _FAMILIES for kind in known(jido(name))}
    kinds = known(jido("MemoryItem")) - governing | set(map(jido, _BESIDE)) | {_ACTIVITY}
    version = Version() if memory.damage(project) else memory.index.mark(graph_iri(project)).version
    return RuleInputs(version, frozenset(kinds), frozenset(governing))


def _lineage_pairs(memory: Jidomem, project: str, items: Iterable[str]) -> set[tuple[str, str]]:
    """Return each memory of the lineages of *items* with one that replaced or withdrew it."""
    graph, pairs = graph_iri(project), set[tuple[str, str]]()

    def step(item: str) -> Iterator[str]:
        node = iri(item)
        for end in _ENDS:
            triples = *memory.index.triples(graph, node, end), *memory.index.triples(graph, None, end, node)
            for pair in ((plain_value(old), plain_value(new)) for old, _, new in triples):
                pairs.add(pair)
                yield from pair

    reachable(items, step)
    return pairs


class _RuleRows:
    """The rows of the index about memories that may govern a file: all, or *items*."""

    def __init__(self, memory: Jidomem, project: str, items: Collection[str] | None = None) -> None:
        def select(text: str, names: Collection[str] | None = items, variable: str = "item") -> list[dict[str, Any]]:
            return select_of(memory.reader, project, _PREFIX + text, names, variable)

        known = memory.schema.subclasses
        self._family = {plain_value(kind): name for name in _FAMILIES for kind in {jido(name), *known(jido(name))}}
        kinds = " ".join(f"<{kind}>" for kind in self._family)
        is_active = active.now_by_scans() if items is None else active.now()
        self.rows = select(_ITEMS % ("%s", kinds, f"{BASE}projects/{project}", is_active))

        self._view = present_rows(memory.reader, project)
        about = select(_PAIRS["about"])
        files = None if items is None else {row["value"] for row in about if row["is"]}
        self._by = {"about": grouped((row["item"], row) for row in about)}
        for name, text in _PAIRS.items():
            if name != "about":
                rows = select(text, files if name == "file" else items)
                self._by[name] = grouped((row["item"], row) for row in rows)
        self._curators = memory.writer.authority(project).curators
        if items is None:
            active_items = {row["item"] for row in self.rows}
            self._keys = [row for row in select(_KEYS) if row["item"] in active_items]
            pairs = [(row["old"], row["new"]) for row in select(_SUCCESSORS)]
        else:
            self._keys = select(_KEYS_OF, items, "of")
            pairs = [*_lineage_pairs(memory, project, items)]
        self._successors = grouped(pairs)
        self._related = grouped(each for old, new in pairs for each in ((old, new), (new, old)))

    def lineage(self, items: Iterable[str]) -> set[str]:
        """Return *items*, and all that replaced or withdrew one of them, or that these replaced or withdrew."""
        return reachable(items, lambda item: self._related.get(item, ()))

    def in_possible_conflict(self) -> set[str]:
        """Return the memories that share a conflict key, or came after a memory with several successors."""
        by_key = grouped((row["key"], row["item"]) for row in self._keys)
        sharing = {item for items in by_key.values() if len({*items}) > 1 for item in items}
        several = [item for items in self._successors.values() if len({*items}) > 1 for item in items]
        return sharing | reachable(several, lambda item: self._successors.get(item, ()))

    def rule(self, row: Mapping[str, Any]) -> Rule:
        family, level = self._family[row["kind"]], local_name(row["level"] or "")
        binds = force(family, level, local_name(row["state"] or ""), is_error=family == "Error")
        checks = tuple(
            Check(kind, each["value"])
            for kind in ("forbids", "requires", "command")
            for each in self._by[kind].get(row["item"], ())
            if binds == "strict" and each["value"] != REDACTED
        )
        waits = bool(checks) and check_waits(iri(row["item"]), self._view, self._curators)
        kind = local_name(row["kind"])
        label = _LABELS.get(binds) or (binds if family == "Error" else TYPE_OF_CLASS.get(kind, kind).replace("_", " "))
        return Rule(row["item"], binds, label, row["summary"], _moment(row["recorded"]), local_name(row["agent"]),
                    _moment(row["from"]), _moment(row["until"]), () if waits else checks, waits,
                    dated=_moment(row["dated"]), cause=row["cause"] or "" if family == "Error" else "")  # fmt: skip

    def named(self, row: Mapping[str, Any]) -> list[str]:
        """Return the texts that name the files governed by a memory."""
        names = []
        for each in self._by["about"].get(row["item"], ()):
            files = self._by["file"].get(each["value"], ()) if each["is"] else ()
            names += [file["value"] for file in files] if each["is"] else [each["value"]]
        names += [each["value"] for each in self._by["module"].get(row["item"], ())]
        names = [text for text in names if not is_note(text, row["level"])]
        is_bound = row["item"] in self._by["about"] or row["item"] in self._by["domain"]
        is_binding = local_name(row["level"] or "") in BINDING
        of_all = is_binding and not is_bound and local_name(row["scope"] or "") != "AgentScope"
        return [*names, ""] if of_all else names


def _moment(value: Any) -> str:
    return "" if value is None else format_timestamp(value)
