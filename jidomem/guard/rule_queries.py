"""Find in an open root all memories that govern files, and the texts by which each names them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from jidomem.base.clock import format_timestamp
from jidomem.base.containers import grouped, reachable
from jidomem.curation.review_queue import present_rows
from jidomem.guard.rules import Check, Rule, RuleInputs, Rules, file_state
from jidomem.journal.commit import COMMIT, stem
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri, plain_value
from jidomem.rdf.vocab import BASE, TYPE_OF_CLASS, graph_iri, jido, local_name
from jidomem.recall.governing import earlier_names
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
  VALUES ?kind { %s }
  ?item a ?kind ; jido:appliesToProject <%s> ; jido:summary ?summary ; jido:recordedAt ?recorded ;
    jido:assertedBy ?agent .
"""
    + active.now_of_all()
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
_PAIRS = {
    "about": "SELECT ?item ?value (isIRI(?value) AS ?is) WHERE { ?item jido:about|jido:appliesToModule ?value }",
    "module": "SELECT ?item ?value WHERE { ?item jido:affectedModule ?value }",
    "domain": "SELECT ?item ?value WHERE { ?item jido:appliesToDomain ?value }",
    "file": "SELECT ?item ?value WHERE { { ?item jido:filePath ?value } "
    "UNION { ?item jido:definedInFile ?file . ?file jido:filePath ?value } }",
    "forbids": "SELECT ?item ?value WHERE { ?item jido:forbidsPattern ?value } ORDER BY ?value",
    "requires": "SELECT ?item ?value WHERE { ?item jido:requiresPattern ?value } ORDER BY ?value",
    "command": "SELECT ?item ?value WHERE { ?item jido:checkCommand ?value } ORDER BY ?value",
}
_KEYS = "SELECT ?item ?key WHERE { ?item jido:conflictKey ?key }"
_SUCCESSORS = "SELECT ?old ?new WHERE { ?old jido:supersededBy|jido:invalidatedBy ?new }"
#: The classes of nodes beside memories in commits; they govern no file.
_BESIDE = ("Agent", "Project", "WorkSession", "SessionEvent", "Evidence", "Submission", "Commit")
_ACTIVITY = "<http://www.w3.org/ns/prov#Activity>"
_LABELS = {"strict": "strict convention", "required": "required convention", "lesson": "lesson"}


#: The most damaged files that the guard names.
_MOST_DAMAGE = 3


def gather_rules(memory: Jidomem, project: str) -> Rules:
    """Return the rules of *project*; raises the errors of the catch-up."""
    memory.catch_up(project)
    memories = _RuleRows(memory, project)
    by_item: dict[str, Rule] = {}
    commits: dict[CommitRef, None] = {}
    for row in memories.rows:
        if row["item"] in by_item:
            continue
        named = tuple(dict.fromkeys(plain_path(text) for text in memories.named(row)))
        if named:
            rule = by_item[row["item"]] = memories.rule(row)._replace(about=named)
            if (rule.checks or rule.force == "strict") and row["commit"]:
                commits[CommitRef(rule.recorded, row["commit"].removeprefix(COMMIT), 0)] = None
    now = memory.now()
    # Building the list of conflicts, which may be missing, takes longer than all else here.
    suspects = memories.in_possible_conflict() & by_item.keys()
    rivals = memory.reader.conflicts_with(project, suspects, valid_at=now) if suspects else {}
    differs = {item: {one.item: one.words for one in some} for item, some in memory.contrasts(by_item, project).items()}
    rules = []
    for item, rule in by_item.items():
        words = differs.get(item, {})
        others = (each for each in rivals.get(item, ()) if each not in words)
        rules.append(rule._replace(rivals=tuple(others), differs=tuple(words.values())))
    bounds = [bound for rule in rules for bound in (rule.valid_from, rule.valid_until) if bound > now]
    earlier = earlier_names(memory.reader, memory.tree, project)
    damage, files = _verified(memory, project, commits)
    return Rules(tuple((rule, rule.about) for rule in rules), earlier, min(bounds, default=""), damage, files)


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
    """Return the inputs of the rules of *project*, in a memory whose index is up to date."""
    known = memory.schema.subclasses
    governing = {kind for name in _FAMILIES for kind in known(jido(name))}
    kinds = known(jido("MemoryItem")) - governing | set(map(jido, _BESIDE)) | {_ACTIVITY}
    version = Version() if memory.damage(project) else memory.index.mark(graph_iri(project)).version
    return RuleInputs(version, frozenset(kinds))


class _RuleRows:
    """The rows of the index about memories that may govern a file."""

    def __init__(self, memory: Jidomem, project: str) -> None:
        def select(text: str) -> list[dict[str, Any]]:
            return memory.reader.select(project, _PREFIX + text)

        known = memory.schema.subclasses
        self._family = {plain_value(kind): name for name in _FAMILIES for kind in {jido(name), *known(jido(name))}}
        kinds = " ".join(f"<{kind}>" for kind in self._family)
        self.rows = select(_ITEMS % (kinds, f"{BASE}projects/{project}"))

        self._view = present_rows(memory.reader, project)
        self._by = {name: grouped((row["item"], row) for row in select(text)) for name, text in _PAIRS.items()}
        self._curators = memory.writer.authority(project).curators
        self._keys, self._successors = select(_KEYS), select(_SUCCESSORS)

    def in_possible_conflict(self) -> set[str]:
        """Return the active memories that share a conflict key, or came after a memory with several successors."""
        active_items = {row["item"] for row in self.rows}
        by_key = grouped((row["key"], row["item"]) for row in self._keys if row["item"] in active_items)
        sharing = {item for items in by_key.values() if len({*items}) > 1 for item in items}
        successors = grouped((row["old"], row["new"]) for row in self._successors)
        several = [item for items in successors.values() if len({*items}) > 1 for item in items]
        return active_items & (sharing | reachable(several, lambda item: successors.get(item, ())))

    def rule(self, row: Mapping[str, Any]) -> Rule:
        """Return the rule of one memory."""
        family, level = self._family[row["kind"]], local_name(row["level"] or "")
        binds = force(family, level, local_name(row["state"] or ""), is_error=family == "Error")
        checks = tuple(
            Check(kind, each["value"])
            for kind in ("forbids", "requires", "command")
            for each in self._by[kind].get(row["item"], ())
            if binds == "strict"
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
