"""The graph of the reference MCP memory server (`memory.jsonl`) as facts.  Pure: bytes in, values out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.exchange.foreign import Broken, ForeignEntry, Reading, line_of, objects, text_of, wrong
from jidomem.intent import parse_line
from jidomem.vocab import JIDO

#: What such a memory says, exactly; and each entity it says it of.
STATEMENT, NODE = JIDO + "graphStatement", JIDO + "graphNode"


def entity_fact(name: str, kind: str) -> dict[str, Any]:
    """Return the fields of the fact that an entity is known, and of which kind it is."""
    return _fact(f"{name} is of the kind {kind}" if kind else f"{name} is known", [name], ["entity", name, kind])


def observation_fact(name: str, kind: str, text: str) -> dict[str, Any]:
    """Return the fields of the fact that *text* was observed of an entity."""
    subject = f"{name} ({kind})" if kind else name
    return _fact(f"{subject}: {text}", [name], ["observation", name, kind, text])


def relation_fact(source: str, target: str, relation: str) -> dict[str, Any]:
    """Return the fields of the fact that one entity is related to another."""
    ends = list(dict.fromkeys((source, target)))
    return _fact(f"{source} {relation} {target}", ends, ["relation", source, target, relation])


def _fact(summary: str, entities: list[str], said: list[str]) -> dict[str, Any]:
    triples = [[STATEMENT, json.dumps(said, ensure_ascii=False)], *([NODE, entity] for entity in entities)]
    return {"type": "fact", "summary": summary, "about": entities, "extra_triples": triples}


@dataclass(slots=True)
class Entity:
    """One entity: what kind it is, what was observed, and the memories that say so."""

    kind: str = ""
    said_by: list[str] = field(default_factory=list)
    observations: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Graph:
    """Entities by name, and relations as (from, to, relationType), with the memories that say each."""

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def add(self, item: str, statement: Sequence[str], summary: str) -> None:
        """Add what the memory *item* states; its *summary*, where that was changed since, is the observation."""
        match statement:
            case ["entity", name, kind]:
                self._entity(name, kind).said_by.append(item)
            case ["observation", name, kind, text]:
                said = text if _same(summary, observation_fact(name, kind, text)["summary"]) else summary
                self._entity(name, kind).observations.setdefault(said, []).append(item)
            case ["relation", source, target, relation]:
                self.relations.setdefault((source, target, relation), []).append(item)

    def _entity(self, name: str, kind: str) -> Entity:
        entity = self.entities.setdefault(name, Entity(kind))
        entity.kind = entity.kind or kind
        return entity

    def plain_entities(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Return the entities of these *names*, all without names, as the reference server writes them."""
        wanted = self.entities.keys() if names is None else self.entities.keys() & set(names)
        return [
            {"name": name, "entityType": entity.kind, "observations": [*entity.observations]}
            for name, entity in self.entities.items()
            if name in wanted
        ]

    def plain_relations(self, names: Iterable[str] | None = None) -> list[dict[str, str]]:
        """Return the relations that begin or end at an entity of these *names*, all without names."""
        wanted = None if names is None else self.entities.keys() & set(names)
        ends = [one for one in self.relations if wanted is None or one[0] in wanted or one[1] in wanted]
        return [*map(plain_relation, ends)]


def plain_relation(one: tuple[str, str, str]) -> dict[str, str]:
    """Return a relation as the reference server writes it."""
    return {"from": one[0], "to": one[1], "relationType": one[2]}


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()


def read(name: str, data: bytes) -> Reading:
    """Return a fact for each observation of an entity, for an entity without any, and for each relation.

    A graph that is one JSON object, with `entities` and `relations`, as other servers keep it, is read too.
    """
    reading = Reading("ToolSource")
    for place, line in _whole(name, data) or objects(name, data, reading):
        kind = line.get("type")
        if kind == "entity":
            _entity(name, place, line, reading)
        elif kind == "relation":
            _relation(name, place, line, reading)
        else:
            reading.broken.append(Broken(place, wrong("a line is an entity or a relation")))
    return reading


def _whole(name: str, data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the entities and relations of a graph that is one JSON object, nothing for what is none."""
    if b'"entities"' not in data:
        return []
    try:
        graph = parse_line(1, data.removeprefix(b"\xef\xbb\xbf"))
    except InvalidRequest:
        return []
    if not isinstance(graph, dict):
        return []
    parts = (("entity", graph.get("entities")), ("relation", graph.get("relations")))
    return [
        (f"{name}: {kind} {number}", {**each, "type": kind})
        for kind, listed in parts
        for number, each in enumerate(listed if isinstance(listed, list) else (), start=1)
        if isinstance(each, dict)
    ]


def _entity(name: str, place: str, line: dict[str, Any], reading: Reading) -> None:
    entity, kind, said = text_of(line.get("name")), text_of(line.get("entityType")), line.get("observations")
    if not entity or not isinstance(said, list):
        reading.broken.append(Broken(place, wrong("an entity has a name and a list of observations")))
        return
    facts = [observation_fact(entity, kind, text_of(each)) for each in said if text_of(each)]
    if len(facts) < len(said):
        reading.broken.append(
            Broken(place, wrong(f"{len(said) - len(facts)} observations of {entity:.80} are no texts"))
        )
    for fact in facts if said else [entity_fact(entity, kind)]:
        fields = {**fact, "evidence": [f"{name}: entity {entity}"]}
        reading.entries.append(ForeignEntry(entity, place, fields, line=line_of(place)))


def _relation(name: str, place: str, line: dict[str, Any], reading: Reading) -> None:
    source, target, relation = (text_of(line.get(part)) for part in ("from", "to", "relationType"))
    if not (source and target and relation):
        reading.broken.append(Broken(place, wrong("a relation has from, to and relationType")))
        return
    fact = relation_fact(source, target, relation)
    fields = {**fact, "evidence": [f"{name}: relation {fact['summary']}"]}
    reading.entries.append(ForeignEntry(fact["summary"], place, fields, line=line_of(place)))
