"""The nine tools of the reference MCP memory server over governed memory: a deletion is a withdrawal.

An entity, an observation and a relation are a fact each, with a text and, in `jido:graphStatement`,
the exact value that these tools return; so they also show accepted imports of `jidomem root import
mcp-memory`. Unlike in the reference, an observation or relation that differs from an existing one in
case or white space only is not stored again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from jidomem.base.words import normal_text
from jidomem.errors import InvalidRequest, NotFound
from jidomem.exchange.other_formats import (
    NODE,
    STATEMENT,
    Entity,
    EntityGraph,
    entity_fact,
    observation_fact,
    plain_relation,
    relation_fact,
)
from jidomem.rdf.terms import iri, literal
from jidomem.records import active
from jidomem.serve.mcp.client_session import ClientSession, Tool, ToolResult

T = TypeVar("T")
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_REASON = "Deleted by {agent} through the memory server's tools."
#: The active memories, oldest first: those of the given entities, or all.
_STATEMENTS = f"""
PREFIX jido: <https://jido.ai/ontology#>
SELECT DISTINCT ?item ?statement ?summary ?recorded WHERE {{
  %s ?item <{STATEMENT}> ?statement ; jido:summary ?summary ; jido:recordedAt ?recorded .
{active.now()}
}} ORDER BY ?recorded ?item"""


def _shown(graph: EntityGraph, names: Iterable[str] | None = None) -> ToolResult:
    """Return the entities with these *names*, and the relations from or to them; without *names*, everything."""
    return _tool_result({"entities": graph.plain_entities(names), "relations": graph.plain_relations(names)})


def _tool_result(values: dict[str, Any], shown: Any = None) -> ToolResult:
    """Return *values* with the text of the reference server, which shows a single list without its key."""
    return ToolResult(values, json.dumps(values if shown is None else shown, indent=2, ensure_ascii=False))


def _graph(session: ClientSession, names: Iterable[str] | None = None) -> EntityGraph:
    """Return the active memories: all, or those with one of *names*."""
    bound = "" if names is None else f"VALUES ?node {{ {' '.join(map(literal, set(names)))} }} ?item <{NODE}> ?node ."
    graph = EntityGraph()
    try:
        rows = session.memory.reader.select(session.project, _STATEMENTS % bound)
    except NotFound:  # the project is empty
        rows = []
    for row in rows:
        graph.add(row["item"], json.loads(row["statement"]), row["summary"])
    return graph


def _keep(session: ClientSession, facts: Sequence[dict[str, Any]]) -> None:
    """Store all of *facts* in one commit, or none."""
    if not facts:
        return
    given = {
        "applies_to_project": session.project,
        "confidence": "medium",
        "source_type": "AgentSource",
        **session.begin(),
    }
    for receipt in session.writer.keep_together(session.project, (), [{**given, **fact} for fact in facts]):
        session.record(receipt)


def _withdraw(session: ClientSession, items: Sequence[str], what: str) -> dict[str, Any]:
    return {
        "type": "deleted_marker",
        "summary": f"Withdrawn: {what}",
        "rationale": _REASON.format(agent=session.agent),
        "confidence": "high",
        "invalidates": sorted(set(items)),
    }


def _named(*names: str) -> None:
    for name in names:
        if not name.strip():
            raise InvalidRequest("a name has no letters", hint="give each entity a name, and each relation its ends")


def _create_entities(session: ClientSession, given: dict[str, Any]) -> ToolResult:
    wanted = {entity["name"]: entity for entity in reversed(given["entities"])}  # the first of each name
    _named(*wanted)
    is_known = session.writer.has_value(session.project, iri(NODE), map(literal, wanted))
    known = _graph(session, wanted).entities if is_known else {}
    new = [wanted[name] for name in dict.fromkeys(one["name"] for one in given["entities"]) if name not in known]
    new = [{**entity, "observations": _new(entity["observations"], ())} for entity in new]
    facts = []
    for entity in new:
        name, kind = entity["name"], entity["entityType"]
        facts += [entity_fact(name, kind), *(observation_fact(name, kind, text) for text in entity["observations"])]
    _keep(session, facts)
    return _tool_result({"entities": new}, new)


def _create_relations(session: ClientSession, given: dict[str, Any]) -> ToolResult:
    wanted = [(one["from"], one["to"], one["relationType"]) for one in given["relations"]]
    _named(*(name for one in wanted for name in one))
    new = _new(wanted, _graph(session, [one[0] for one in wanted]).relations)
    _keep(session, [relation_fact(*one) for one in new])
    shown = [*map(plain_relation, new)]
    return _tool_result({"relations": shown}, shown)


def _add_observations(session: ClientSession, given: dict[str, Any]) -> ToolResult:
    known = _graph(session, [one["entityName"] for one in given["observations"]]).entities
    results, facts = [], []
    for one in given["observations"]:
        name = one["entityName"]
        entity = known.get(name)
        if entity is None:
            raise NotFound(f"Entity with name {name} not found", hint="create it first: create_entities")
        new = _new(one["contents"], entity.observations)
        entity.observations |= {text: [] for text in new}
        facts += [observation_fact(name, entity.kind, text) for text in new]
        results.append({"entityName": name, "addedObservations": new})
    _keep(session, facts)
    return _tool_result({"results": results}, results)


def _delete_entities(session: ClientSession, given: dict[str, Any]) -> ToolResult:
    graph, deleted = _graph(session, given["entityNames"]), set(given["entityNames"])
    items = [item for name, entity in graph.entities.items() if name in deleted for item in _items(entity)]
    items += [item for one, items_ in graph.relations.items() if deleted.intersection(one[:2]) for item in items_]
    _keep(session, [_withdraw(session, items, f"the entities {', '.join(sorted(deleted))}")] if items else [])
    return _text_result("Entities deleted successfully")


def _items(entity: Entity) -> list[str]:
    return [*entity.asserted_by, *(item for items in entity.observations.values() for item in items)]


def _delete_observations(session: ClientSession, given: dict[str, Any]) -> ToolResult:
    known = _graph(session, [one["entityName"] for one in given["deletions"]]).entities
    facts, items = [], []
    for one in given["deletions"]:
        entity = known.get(one["entityName"])
        if entity is None:
            continue
        items += [item for text in one["observations"] for item in entity.observations.pop(text, ())]
        if not entity.asserted_by and not entity.observations:  # it existed only through its observations
            facts.append(entity_fact(one["entityName"], entity.kind))
            entity.asserted_by.append("")
    _keep(session, [*facts, *([_withdraw(session, items, "observations")] if items else [])])
    return _text_result("Observations deleted successfully")


def _delete_relations(session: ClientSession, given: dict[str, Any]) -> ToolResult:
    deleted = {(one["from"], one["to"], one["relationType"]) for one in given["relations"]}
    known = _graph(session, [one[0] for one in deleted]).relations
    items = [item for one in deleted for item in known.get(one, ())]
    _keep(session, [_withdraw(session, items, "relations")] if items else [])
    return _text_result("Relations deleted successfully")


def _text_result(message: str) -> ToolResult:
    return ToolResult({"success": True, "message": message}, message)


def _search(session: ClientSession, given: dict[str, Any]) -> ToolResult:
    graph, words = _graph(session), given["query"].lower()
    return _shown(
        graph,
        [
            name
            for name, entity in graph.entities.items()
            if any(words in text.lower() for text in (name, entity.kind, *entity.observations))
        ],
    )


def _new(given: Iterable[T], known: Iterable[T]) -> list[T]:
    """Return those of *given*, texts or tuples of texts, that are not *known*; case and white space are ignored."""
    seen, new = {*map(_normal, known)}, []
    for one in given:
        if (normal := _normal(one)) not in seen:
            seen.add(normal)
            new.append(one)
    return new


def _normal(one: object) -> object:
    return tuple(map(_normal, one)) if isinstance(one, tuple) else normal_text(str(one))


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


_ENTITY = _object(name=_TEXT, entityType=_TEXT, observations=_TEXTS)
_RELATION = _object(**{"from": _TEXT, "to": _TEXT, "relationType": _TEXT})
_GRAPH = {"entities": _list(_ENTITY), "relations": _list(_RELATION)}
_SUCCESS = {"success": {"type": "boolean"}, "message": _TEXT}


def _tool(
    name: str, description: str, takes: dict[str, Any], gives: dict[str, Any], does: Any, reads: bool = True
) -> Tool:
    return Tool(name, description, takes, gives, does, required=(*takes,), always=(*gives,), reads=reads)


KNOWLEDGE: tuple[Tool, ...] = (
    _tool("create_entities", "Create multiple new entities in the knowledge graph", {"entities": _list(_ENTITY)},
          {"entities": _list(_ENTITY)}, _create_entities, reads=False),
    _tool("create_relations",
          "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
          {"relations": _list(_RELATION)}, {"relations": _list(_RELATION)}, _create_relations, reads=False),
    _tool("add_observations", "Add new observations to existing entities in the knowledge graph",
          {"observations": _list(_object(entityName=_TEXT, contents=_TEXTS))},
          {"results": _list(_object(entityName=_TEXT, addedObservations=_TEXTS))}, _add_observations, reads=False),
    _tool("delete_entities", "Delete multiple entities and their associated relations from the knowledge graph",
          {"entityNames": _TEXTS}, _SUCCESS, _delete_entities, reads=False),
    _tool("delete_observations", "Delete specific observations from entities in the knowledge graph",
          {"deletions": _list(_object(entityName=_TEXT, observations=_TEXTS))}, _SUCCESS, _delete_observations,
          reads=False),
    _tool("delete_relations", "Delete multiple relations from the knowledge graph", {"relations": _list(_RELATION)},
          _SUCCESS, _delete_relations, reads=False),
    _tool("read_graph", "Read the entire knowledge graph", {}, _GRAPH, lambda session, given: _shown(_graph(session))),
    _tool("search_nodes", "Search for nodes in the knowledge graph based on a query", {"query": _TEXT}, _GRAPH,
          _search),
    _tool("open_nodes", "Open specific nodes in the knowledge graph by their names", {"names": _TEXTS}, _GRAPH,
          lambda session, given: _shown(_graph(session, given["names"]), given["names"])),
)  # fmt: skip
