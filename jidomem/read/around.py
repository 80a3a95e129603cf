"""What is linked with a memory, directly or by way of others: what it replaced, rests on, needs and disagrees with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

from jidomem.conflict_keys import CLASH, Convention
from jidomem.errors import NotFound
from jidomem.index import OxigraphIndex, Solutions
from jidomem.index.rivals import KINDS
from jidomem.query import FOREVER, to_term
from jidomem.read import item
from jidomem.schema import Schema
from jidomem.terms import Term, bare, iri, is_iri, literal, parts
from jidomem.values import to_value
from jidomem.vocab import GRAPHS, LABEL, TYPE, conv, graph_iri, jido, local_name
from jidomem.words import topic_key

#: How many links that lead to one node are looked at: a text may be the evidence of thousands.
WIDEST = 1_000
CONFLICTS = "conflicts"
#: Which links are followed first, where there is no room for all; the others come after.
_FIRST = ("supersedes", "invalidates", "revives", CONFLICTS, "conflictsWith", "dependsOn", "blockedBy")
_LAST = ("derivedFrom",)
#: What is the other side of a link that says the same.
_INVERSE = {"superseded_by": "supersedes", "invalidated_by": "invalidates"}
_ENDED = (jido("supersededBy"), jido("invalidatedBy"))
_ENDS = (jido("MemoryItem"), jido("Evidence"))
_TOPICS = f"SELECT DISTINCT ?topic {{ ?item {jido('topic')} ?topic }}"
_KEY, _TOPIC, _RECORDED = jido("conflictKey"), jido("topic"), jido("recordedAt")
#: What says in words what is no memory, each as a path.
_TEXTS = ((LABEL,), (jido("entryText"),), (conv("hasPrompt"), conv("promptText")))


class Link(NamedTuple):
    """That one node is linked with another; `kind` is the local name of the property, or CONFLICTS."""

    source: str
    kind: str
    target: str

    def other(self, node: str) -> str:
        """Return the end that is not *node*."""
        return self.target if node == self.source else self.source


@dataclass(frozen=True, slots=True)
class Around:
    """Nodes with all links between them, and of each how many more it is linked with.

    A node is a memory as `get_memory` gives it, or else has `iri`, `class` and `text`, None where it has none.
    """

    nodes: Mapping[str, Mapping[str, Any]]
    links: tuple[Link, ...]
    more: Mapping[str, int]


def around(
    index: OxigraphIndex,
    schema: Schema,
    project: str,
    starts: Iterable[str],
    *,
    as_of: str | None = None,
    depth: int = 2,
    most: int = 300,
) -> Around:
    """Return the nodes *starts* and what is linked with them by at most *depth* links, *most* nodes in all.

    All is as it was known at *as_of*; the nearest come first, of those the newest. A start that was not there by then
    is left out.
    """
    links = _Links(index, schema, project, as_of)
    level = [*islice((start for start in dict.fromkeys(starts) if links.told(start) is not None), most)]
    found = dict.fromkeys(level)
    for _ in range(depth):
        nearer, level = level, []
        for other in chain.from_iterable(map(links.others, nearer)):
            if len(found) < most and other not in found and links.told(other) is not None:
                found[other] = None
                level.append(other)
    between = {link for node in found for link in links.of(node) if link.other(node) in found}
    more = {node: len({*links.others(node)} - found.keys()) for node in found}
    return Around({node: links.told(node) or {} for node in found}, tuple(sorted(between)), more)


def on_topic(index: OxigraphIndex, project: str, topic: str) -> list[str]:
    """Return the memories on a topic, however it is spelled, the newest first."""
    graph, key = graph_iri(project), topic_key(topic)
    spelled = index.query(_TOPICS, graphs=[graph])
    assert isinstance(spelled, Solutions)
    alike = [value for (value,) in spelled.rows if value and topic_key(parts(value).text) == key]
    found = (one for value in alike for one, _, _ in index.triples(graph, None, _TOPIC, value))
    return sorted({bare(one) for one in found if is_iri(one)}, reverse=True)


def is_mentioned(index: OxigraphIndex, project: str, node: str) -> bool:
    """Return whether *node*, which is no memory, stands in what memories of the project say; evidence does."""
    term, graph = to_term(node, "iri", "item"), graph_iri(project)
    is_memory = any(index.triples(graph, term, jido("hasAssertionStatus"), most=1))
    return not is_memory and any(index.triples(graph, None, None, term, most=1))


class _Links:
    """The links of nodes of one project, as they were known at one moment."""

    def __init__(self, index: OxigraphIndex, schema: Schema, project: str, as_of: str | None) -> None:
        self._index, self._project, self._as_of = index, project, as_of
        self._graph = graph_iri(project)
        self._graphs = [graph_iri(project, name) for name in GRAPHS]
        self._moment = parts(to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")).text
        self._names = _linking(schema)
        self._told: dict[str, Mapping[str, Any] | None] = {}
        self._of: dict[str, list[Link]] = {}

    def told(self, node: str) -> Mapping[str, Any] | None:
        """Return what is known of a node; None for a memory that was not there yet, or is of another project."""
        if node not in self._told:
            self._told[node] = self._looked_up(node)
        return self._told[node]

    def _looked_up(self, node: str) -> Mapping[str, Any] | None:
        recorded = self._recorded(node)
        if not self._was_recorded(recorded):
            return None
        if not recorded:
            return self._other(node)
        try:
            found = item.get(self._index, self._project, node, self._as_of)
        except NotFound:
            return None
        return found if "hasAssertionStatus" in found["properties"] else self._other(node)

    def others(self, node: str) -> list[str]:
        """Return what a node is linked with."""
        return [*dict.fromkeys(link.other(node) for link in self.of(node))]

    def of(self, node: str) -> list[Link]:
        """Return the links from and to a node whose other end was there."""
        if node not in self._of:
            newest = sorted({*self._from(node), *self._to(node)}, key=lambda link: link.other(node), reverse=True)
            known = [link for link in newest if link.source != link.target and self._was_there(link.other(node))]
            self._of[node] = sorted(known, key=lambda link: _rank(link.kind))
        return self._of[node]

    def _from(self, node: str) -> Iterator[Link]:
        said = self.told(node) or {}
        for name in self._names.values():
            for value in said.get("properties", {}).get(name, ()):
                if isinstance(value, str) and _is_node(value):
                    yield Link(node, name, value)
        for name, inverse in _INVERSE.items():
            for end in said.get(name, ()):
                yield Link(end, inverse, node)
        if said.get("status") == "active":
            yield from self._conflicts(node, said["properties"])

    def _to(self, node: str) -> Iterator[Link]:
        for subject, predicate, _ in self._index.triples(self._graph, None, None, iri(node), most=WIDEST):
            if predicate in self._names and is_iri(subject):
                yield Link(bare(subject), self._names[predicate], node)

    def _conflicts(self, node: str, said: Mapping[str, Any]) -> Iterator[Link]:
        """Yield with what a memory in force shares a key that two may not share."""
        for key in said.get("conflictKey", ()):
            if str(key).partition(":")[0] not in KINDS:
                continue
            for subject, _, _ in self._index.triples(self._graph, None, _KEY, literal(key), most=WIDEST):
                other = bare(subject)
                rival = None if other == node else self.told(other)
                if rival is None or rival.get("status") != "active":
                    continue
                if _clashes(key, said, rival["properties"]) and not (
                    _beside(said, other) or _beside(rival["properties"], node)
                ):
                    yield Link(min(node, other), CONFLICTS, max(node, other))

    def _was_there(self, node: str) -> bool:
        if node in self._told:
            return self._told[node] is not None
        return self._was_recorded(self._recorded(node))

    def _was_recorded(self, recorded: Sequence[Term]) -> bool:
        """Return whether one of the moments at which it was *recorded* had come; what was not is there always."""
        return not recorded or any(to_value(at) is not None and _text(at) <= self._moment for at in recorded)

    def _recorded(self, node: str) -> list[Term]:
        return [term for _, _, term in self._index.triples(self._graph, iri(node), _RECORDED)]

    def _other(self, node: str) -> dict[str, Any]:
        """Return what is known of a node that is no memory."""
        kinds = (
            local_name(term) for graph in self._graphs for _, _, term in self._index.triples(graph, iri(node), TYPE)
        )
        texts = (text for path in _TEXTS for text in self._values([iri(node)], path))
        return {"iri": node, "class": next(kinds, "Evidence"), "text": next(texts, None)}

    def _values(self, nodes: list[Term], path: Iterable[Term]) -> list[str]:
        for step in path:
            nodes = [
                term
                for graph in self._graphs
                for node in nodes
                for _, _, term in self._index.triples(graph, node, step)
            ]
        return [parts(term).text for term in nodes if term.startswith('"')]


@lru_cache(maxsize=8)
def _linking(schema: Schema) -> Mapping[Term, str]:
    """Return the properties by which memories and evidence are linked with one another, and their local names."""
    ends = {end for top in _ENDS for end in schema.subclasses(top)}
    return {
        term: local_name(term)
        for term, said in schema.properties.items()
        if term not in _ENDED and not ends.isdisjoint(said.domain) and not ends.isdisjoint(said.range)
    }


def _rank(kind: str) -> int:
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST) + (kind in _LAST)


def _is_node(value: str) -> bool:
    return ":" in value and not any(sign in value for sign in ' <>"{}|\\^`\n\t')


def _clashes(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether the *key* that both properties hold is a disagreement."""
    return not str(key).startswith(f"{CLASH}:") or _convention(one).clashes(_convention(other))


def _convention(said: Mapping[str, Any]) -> Convention:
    summary, level = (next(iter(said.get(name, ())), None) for name in ("summary", "hasEnforcementLevel"))
    return Convention.of(summary, level, map(str, said.get("about", ())))


def _beside(said: Mapping[str, Any], other: str) -> bool:
    return other in said.get("coexistsWith", ())


def _text(moment: Term) -> str:
    """Return a moment in its one written form."""
    return bare(to_term(parts(moment).text, "dateTime", "a moment"))
