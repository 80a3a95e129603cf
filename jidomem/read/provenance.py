"""The provenance of a memory: author, evidence, rules, and the memories linked with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from jidomem.base.words import excerpt, topic_key
from jidomem.errors import NotFound
from jidomem.index.projection import CONFLICT_KINDS
from jidomem.index.results import Solutions
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import Term, iri, is_iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import GRAPHS, LABEL, MARKER, TYPE, conv, graph_iri, jido, local_name
from jidomem.read import memory_detail
from jidomem.read.history import Revisions, node_texts
from jidomem.read.memory_detail import STATES_OF_WORK
from jidomem.read.playbook import Rows
from jidomem.records.active import ACTIVE, OUTCOME, WITHDRAWAL, Convention
from jidomem.records.file_anchor import anchors_of
from jidomem.records.intent import CLASH, judgement_keys
from jidomem.records.named_query import FOREVER, to_term

if TYPE_CHECKING:
    from jidomem.read.reader import MemoryReader
    from jidomem.schema.ontology import Schema

#: The most incoming links of a node that are read: a text may be the evidence of thousands.
WIDEST = 1_000
CONFLICTS = "conflicts"
#: The links followed first, and those followed last, if the limit excludes some.
_FIRST = ("supersedes", "invalidates", "revives", CONFLICTS, "conflictsWith", "dependsOn", "blockedBy")
_LAST = ("derivedFrom",)
#: Field of a memory -> the link in the opposite direction.
_INVERSE = {"superseded_by": "supersedes", "invalidated_by": "invalidates"}
_ENDED = (jido("supersededBy"), jido("invalidatedBy"))
_ENDS = (jido("MemoryItem"), jido("Evidence"))
_TOPICS = f"SELECT DISTINCT ?topic {{ ?item {jido('topic')} ?topic }}"
_KEY, _TOPIC, _RECORDED = jido("conflictKey"), jido("topic"), jido("recordedAt")
#: The property paths to the text of a node that is not a memory.
_TEXT_PATHS = ((LABEL,), (jido("entryText"),), (conv("hasPrompt"), conv("promptText")))


class NodeLink(NamedTuple):
    """A link between two nodes; `kind` is the local name of the property, or CONFLICTS."""

    source: str
    kind: str
    target: str

    def other(self, node: str) -> str:
        """Return the end that is not *node*."""
        return self.target if node == self.source else self.source


class Neighbourhood(NamedTuple):
    """Nodes, all links between them, and the number of further linked nodes of each.

    A node is a memory in the form of `get_memory`; any other node has `iri`, `class` and `text`, which may be None.
    """

    nodes: Mapping[str, Mapping[str, Any]]
    links: tuple[NodeLink, ...]
    more: Mapping[str, int]


def neighbourhood(
    index: OxigraphIndex,
    schema: Schema,
    project: str,
    starts: Iterable[str],
    *,
    as_of: str | None = None,
    depth: int = 2,
    most: int = 300,
) -> Neighbourhood:
    """Return the nodes *starts* and those at most *depth* links away, at most *most* nodes, as known at *as_of*.

    The nearest come first, of these the newest. A start that was not recorded by then is left out.
    """
    links = _Links(index, schema, project, as_of)
    level = [*islice((start for start in dict.fromkeys(starts) if links.node(start) is not None), most)]
    nodes = dict.fromkeys(level)
    for _ in range(depth):
        nearer, level = level, []
        for other in chain.from_iterable(map(links.others, nearer)):
            if len(nodes) < most and other not in nodes and links.node(other) is not None:
                nodes[other] = None
                level.append(other)
    between = {link for node in nodes for link in links.of(node) if link.other(node) in nodes}
    more = {node: len({*links.others(node)} - nodes.keys()) for node in nodes}
    return Neighbourhood({node: links.node(node) or {} for node in nodes}, tuple(sorted(between)), more)


def on_topic(index: OxigraphIndex, project: str, topic: str) -> list[str]:
    """Return the memories on a topic, in any spelling, newest first."""
    graph, key = graph_iri(project), topic_key(topic)
    spelled = index.query(_TOPICS, graphs=[graph])
    assert isinstance(spelled, Solutions)
    alike = [value for (value,) in spelled.rows if value and topic_key(parse_literal(value).text) == key]
    items = (one for value in alike for one, _, _ in index.triples(graph, None, _TOPIC, value))
    return sorted({plain_value(one) for one in items if is_iri(one)}, reverse=True)


def is_mentioned(index: OxigraphIndex, project: str, node: str) -> bool:
    """Return whether *node* is not a memory, and is an object of a triple of the project, such as evidence."""
    term, graph = to_term(node, "iri", "item"), graph_iri(project)
    is_memory = any(index.triples(graph, term, jido("hasAssertionStatus"), most=1))
    return not is_memory and any(index.triples(graph, None, None, term, most=1))


class _Links:
    """The links of nodes of one project, as they were known at one moment."""

    def __init__(self, index: OxigraphIndex, schema: Schema, project: str, as_of: str | None) -> None:
        self._index, self._project, self._as_of = index, project, as_of
        self._graph = graph_iri(project)
        self._graphs = [graph_iri(project, name) for name in GRAPHS]
        self._moment = parse_literal(to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")).text
        self._names = _linking(schema)
        self._nodes: dict[str, Mapping[str, Any] | None] = {}
        self._of: dict[str, list[NodeLink]] = {}

    def node(self, node: str) -> Mapping[str, Any] | None:
        """Return a node; None for a memory not recorded yet, or of another project."""
        if node not in self._nodes:
            self._nodes[node] = self._load(node)
        return self._nodes[node]

    def _load(self, node: str) -> Mapping[str, Any] | None:
        recorded = self._recorded(node)
        if not self._was_recorded(recorded):
            return None
        if not recorded:
            return self._other(node)
        try:
            memory = memory_detail.load_memory(self._index, self._project, node, self._as_of)
        except NotFound:
            return None
        return memory if "hasAssertionStatus" in memory["properties"] else self._other(node)

    def others(self, node: str) -> list[str]:
        """Return the nodes that a node is linked with."""
        return [*dict.fromkeys(link.other(node) for link in self.of(node))]

    def of(self, node: str) -> list[NodeLink]:
        """Return the links from and to a node whose other end was recorded."""
        if node not in self._of:
            newest = sorted({*self._from(node), *self._to(node)}, key=lambda link: link.other(node), reverse=True)
            known = [link for link in newest if link.source != link.target and self._was_there(link.other(node))]
            self._of[node] = sorted(known, key=lambda link: _rank(link.kind))
        return self._of[node]

    def _from(self, node: str) -> Iterator[NodeLink]:
        memory = self.node(node) or {}
        for name in self._names.values():
            for value in memory.get("properties", {}).get(name, ()):
                if isinstance(value, str) and _is_node(value):
                    yield NodeLink(node, name, value)
        for name, inverse in _INVERSE.items():
            for end in memory.get(name, ()):
                yield NodeLink(end, inverse, node)
        if memory.get("status") == "active":
            yield from self._conflicts(node, memory["properties"])

    def _to(self, node: str) -> Iterator[NodeLink]:
        for subject, predicate, _ in self._index.triples(self._graph, None, None, iri(node), most=WIDEST):
            if predicate in self._names and is_iri(subject):
                yield NodeLink(plain_value(subject), self._names[predicate], node)

    def _conflicts(self, node: str, properties: Mapping[str, Any]) -> Iterator[NodeLink]:
        """Yield the links of an active memory to those that share a unique conflict key with it."""
        for key in properties.get("conflictKey", ()):
            if str(key).partition(":")[0] not in CONFLICT_KINDS:
                continue
            for subject, _, _ in self._index.triples(self._graph, None, _KEY, literal(key), most=WIDEST):
                other = plain_value(subject)
                rival = None if other == node else self.node(other)
                if rival is None or rival.get("status") != "active":
                    continue
                if _clashes(key, properties, rival["properties"]) and not (
                    _beside(properties, other) or _beside(rival["properties"], node)
                ):
                    yield NodeLink(min(node, other), CONFLICTS, max(node, other))

    def _was_there(self, node: str) -> bool:
        if node in self._nodes:
            return self._nodes[node] is not None
        return self._was_recorded(self._recorded(node))

    def _was_recorded(self, recorded: Sequence[Term]) -> bool:
        """Return whether a node was *recorded* by then, at any of its moments; a node without any always exists."""
        return not recorded or any(
            to_value(at) is not None and memory_detail.canonical_moment(at) <= self._moment for at in recorded
        )

    def _recorded(self, node: str) -> list[Term]:
        return [term for _, _, term in self._index.triples(self._graph, iri(node), _RECORDED)]

    def _other(self, node: str) -> dict[str, Any]:
        """Return the IRI, class and text of a node that is not a memory."""
        kinds = (
            local_name(term) for graph in self._graphs for _, _, term in self._index.triples(graph, iri(node), TYPE)
        )
        texts = (text for path in _TEXT_PATHS for text in self._values([iri(node)], path))
        return {"iri": node, "class": next(kinds, "Evidence"), "text": next(texts, None)}

    def _values(self, nodes: list[Term], path: Iterable[Term]) -> list[str]:
        for step in path:
            nodes = [
                term
                for graph in self._graphs
                for node in nodes
                for _, _, term in self._index.triples(graph, node, step)
            ]
        return [parse_literal(term).text for term in nodes if term.startswith('"')]


@lru_cache(maxsize=8)
def _linking(schema: Schema) -> Mapping[Term, str]:
    """Return the properties that link memories and evidence with one another, with their local names."""
    ends = {end for top in _ENDS for end in schema.subclasses(top)}
    return {
        term: local_name(term)
        for term, declared in schema.properties.items()
        if term not in _ENDED and not ends.isdisjoint(declared.domain) and not ends.isdisjoint(declared.range)
    }


def _rank(kind: str) -> int:
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST) + (kind in _LAST)


def _is_node(value: str) -> bool:
    return ":" in value and not any(sign in value for sign in ' <>"{}|\\^`\n\t')


def _clashes(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two memories with one conflict *key* disagree."""
    return not str(key).startswith(f"{CLASH}:") or _convention(one).clashes(_convention(other))


def _convention(properties: Mapping[str, Any]) -> Convention:
    summary, level = (next(iter(properties.get(name, ())), None) for name in ("summary", "hasEnforcementLevel"))
    return Convention.of(summary, level, map(str, properties.get("about", ())))


def _beside(properties: Mapping[str, Any], other: str) -> bool:
    return other in properties.get("coexistsWith", ())


#: Returns when and to whom a memory was shown, from project, IRI and moment.
Shown = Callable[[str, str, str], Rows]
#: The most derived memories that are listed.
MAX_DERIVED = 1_000
#: The values copied from the properties of a memory: name -> property.
_LABELS = {
    "summary": "summary", "rationale": "rationale", "explanation": "detailedExplanation", "reason": "revisionReason",
    "confidence": "hasConfidence", "timestamp": "hasTimestamp",
    "valid_from": "validFrom", "valid_until": "validUntil", "expires_on": "expiresOn",
}  # fmt: skip
_COMMITTED = (
    f"SELECT ?committer ?ontology {{ %s {jido('committer')} ?committer ; {jido('ontologyVersion')} ?ontology }}"
)
_ITEMS = f"SELECT DISTINCT ?node {{ VALUES ?node {{ %s }} ?node {jido('hasAssertionStatus')} ?status }}"
_REVIVALS = f"""SELECT ?node {{ ?node {jido("revives")} %s ; {jido("recordedAt")} ?at FILTER(?at <= %s) }}
ORDER BY ?at ?node"""
_BEFORE = f"SELECT ?item {{ %s {jido('supersedes')}+ ?item }}"
#: The withdrawals with one of the keys of the judgement that a memory stays.
_UPHELD = f"""SELECT ?node ?other ?at {{ VALUES ?key {{ %s }}
?node {jido("conflictKey")} ?key ; {jido("invalidates")} ?other ; {jido("recordedAt")} ?at FILTER(?at <= %s) }}
ORDER BY ?at ?node ?other"""


def _sources(properties: dict[str, list[str]]) -> Rows:
    """Return the file, and the line unless it is a record, that a memory was imported from."""
    line = next(iter(properties.get("sourceLine", ())), None)
    return [{"path": each.path, "line": line} for each in anchors_of(map(literal, properties.get("sourceBlob", ())))]


class Why:
    """Explains memories of one project as they were known at one moment."""

    def __init__(
        self,
        reader: MemoryReader,
        schema: Schema,
        shown: Shown | None,
        project: str,
        *,
        as_of: object,
        valid_at: object,
    ) -> None:
        """Query *reader*; *schema* has the rules, and *shown* returns the read log of a memory."""
        self._reader = reader
        self._schema = schema
        self._shown = shown
        self._project = project
        self._as_of, self._valid_at = as_of, valid_at
        self._moment = to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")

    def explain(self, memory_id: str) -> dict[str, Any]:
        """Return the provenance of one memory as plain values; raises what `get_memory` raises."""
        item = self._reader.resolve(self._project, memory_id, as_of=self._as_of)
        memory = self._reader.get_memory(self._project, item, as_of=self._as_of, valid_at=self._valid_at)
        properties, committed = memory["properties"], self._committed(memory["commit"])
        revivals = self._reader.select(self._project, _REVIVALS % (iri(item), self._moment))
        derived = self._query("derived", item, limit=MAX_DERIVED + 1)
        return {
            **{name: memory[name] for name in ("iri", "class", "own_classes", "status")},
            **{name: properties.get(prop, [None])[0] for name, prop in _LABELS.items()},
            "state": next((local_name(state) for link in STATES_OF_WORK for state in properties.get(link, ())), None),
            OUTCOME: memory.get(OUTCOME),
            "excerpt": excerpt(properties),
            "asserted_by": properties.get("assertedBy", []),
            "asserted_in": properties.get("assertedIn", []),
            "settled_by": properties.get("settledBy", []),
            "recorded_at": memory["recorded_at"],
            "source": _sources(properties),
            "commit": memory["commit"],
            "committer": committed.get("committer"),
            "evidence": self._evidence(properties.get("derivedFrom", [])),
            "judged_by": self._judged(memory, committed.get("ontology")),
            "replaced": self._replaced(item, properties),
            "replaced_by": self._linked(memory, ("superseded_by", "invalidated_by")),
            "revived_by": [self._summary(row["node"]) for row in revivals],
            "upheld_by": self._upheld(item),
            "in_its_place": self._latest(memory),
            "derived": [{"iri": row.pop("derived"), **row} for row in derived[:MAX_DERIVED]],
            "more_derived": len(derived) > MAX_DERIVED,
            "conflicts": [{"iri": row.pop("other"), **row} for row in self._query("disagreements", item)],
            "shown": None if self._shown is None else self._shown(self._project, item, plain_value(self._moment)),
        }

    def _query(self, name: str, item: str, **options: Any) -> Rows:
        moments = {"as_of": self._as_of, "valid_at": self._valid_at}
        return self._reader.ask(name, project=self._project, item=item, **moments, **options)

    def _committed(self, commit: str | None) -> dict[str, Any]:
        """Return the committer and ontology version of a commit; empty without one."""
        text = _COMMITTED % iri(f"urn:jido:commit:{commit}")
        return next(iter(self._reader.select(self._project, text) if commit else []), {})

    def _judged(self, memory: dict[str, Any], ontology: str | None) -> dict[str, Any]:
        """Return the current rules about a memory, with their version and that of its commit, which may differ."""
        from jidomem.schema import shacl_compiler  # imported here, as no other answer needs it

        own = map(self._schema.ancestors, map(iri, memory["own_classes"]))
        classes = self._schema.ancestors(jido(memory["class"])).union(*own)
        found_rules = shacl_compiler.about(self._schema.rules, classes, [*map(jido, memory["properties"])])
        return {
            "judge": self._schema.judge_name,
            "ontology": ontology,
            "rules_of": self._schema.version,
            "rules": [{"rule": rule.shape, "severity": rule.severity, "message": rule.message} for rule in found_rules],
        }

    def _evidence(self, named: list[str]) -> Rows:
        """Return the evidence of a memory: summaries of memories, else IRI and text, None if the node has none."""
        values = " ".join(map(iri, named))
        rows = self._reader.select(self._project, _ITEMS % values) if named else []
        items = {row["node"] for row in rows}
        texts = node_texts(self._reader, self._project, named)
        return [self._summary(node) if node in items else {"iri": node, "text": texts.get(node)} for node in named]

    def _linked(self, properties: dict[str, list[str]], names: Iterable[str]) -> Rows:
        return [{"how": how, **self._summary(other)} for how in names for other in properties.get(how, [])]

    def _replaced(self, item: str, properties: dict[str, list[str]]) -> Rows:
        """Return the memories that *item* replaced, each with the reason; a withdrawal with its own."""
        rows = self._linked(properties, ("supersedes", "invalidates", "revives"))
        reason = Revisions(self._reader, self._project, self._as_of).of(item)["reason"] if rows else None
        return [row if row["class"] == MARKER else {**row, "reason": reason} for row in rows]

    def _upheld(self, item: str) -> Rows:
        """Return the withdrawals of memories that disagreed with *item*, or with one it replaced, which was to stay."""
        before = [item, *(row["item"] for row in self._reader.select(self._project, _BEFORE % iri(item)))]
        keys = " ".join(literal(judgement_keys(each, stays=True)[1]) for each in before)
        rows = self._reader.select(self._project, _UPHELD % (keys, self._moment))
        upheld = [
            {**self._summary(row["node"]), "against": self._summary(row["other"]), "recorded_at": row["at"]}
            for row in rows
            if row["other"] not in before
        ]
        return [each for each in upheld if each["status"] in (ACTIVE, WITHDRAWAL)]

    def _summary(self, item: str) -> dict[str, Any]:
        """Return the summary of one memory; all but its IRI is None if there is no such memory."""
        try:
            memory = self._reader.get_memory(self._project, item, as_of=self._as_of)
        except NotFound:
            memory = {"class": None, "status": None, "properties": {}}
        properties = memory["properties"]
        return {
            "iri": item,
            "class": memory["class"],
            "status": memory["status"],
            "summary": properties.get("summary", [None])[0],
            "reason": Revisions(self._reader, self._project, self._as_of).of(item)["reason"],
            "asserted_by": properties.get("assertedBy", []),
        }

    def _latest(self, memory: dict[str, Any]) -> str | None:
        """Return the active memory at the end of the chain of successors; None without successors or an active one."""
        seen = {memory["iri"]}
        while (after := next(iter(memory["superseded_by"]), None)) is not None and after not in seen:
            seen.add(after)
            memory = self._reader.get_memory(self._project, after, as_of=self._as_of)
        return memory["iri"] if len(seen) > 1 and memory["status"] == "active" else None
