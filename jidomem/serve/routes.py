"""The table of routes, and the OpenAPI 3.1 description that is generated from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from flask import Response

from jidomem.errors import CODES
from jidomem.rdf import vocab
from jidomem.records.active import STATUSES
from jidomem.records.intent import FIELDS, LIST_FIELDS
from jidomem.records.recall import MOST, SCOPES
from jidomem.serve import agents, feed, intents, memories, monitoring, sparql, wire
from jidomem.serve.server_state import RequestContext, Route
from jidomem.working.memory import CHANGES

JSON = wire.JSON
openapi_descriptions = {200: "The answer."}
AT = {"min_position": "A version that has to be reached: read no older than this."}
AS_OF = {"as_of": "A moment: answer with what was recorded by then."}
MOMENTS = {**AS_OF, "valid_at": "A moment of the world: leave out what does not hold then."}


AGENT_ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/projects/{project}/entries",
        agents.write,
        "Keep an entry of an agent in its own words, or an array of them",
        {201: "All were kept; the entry, or one outcome each.", 200: "Not all were kept; one outcome each."},
        {JSON: "EntryOutcomes"},
        reads={JSON: "EntryWrites"},
        writes=True,
    ),
    Route(
        "POST",
        "/projects/{project}/entries/remove",
        agents.remove,
        "Take entries back by their ids, all of them in one commit or none; they stay in the history",
        {200: "Done; under how many of the ids something was kept."},
        {JSON: "EntriesRemoved"},
        reads={JSON: "EntryIds"},
        writes=True,
    ),
    Route(
        "POST",
        "/projects/{project}/entries/recall",
        agents.recall,
        "Recall entries of an agent: those that answer the query, the best first, and then the newest",
        openapi_descriptions,
        {JSON: "EntriesFound"},
        {**agents.NARROWED_BY, **AS_OF, **AT},
        reads={JSON: "EntryRecall"},
    ),
    Route(
        "GET",
        "/projects/{project}/sessions",
        memories.sessions,
        "List the work sessions that have not ended",
        openapi_descriptions,
        {JSON: "Page"},
        {"all": "Those that have ended, too.", **AT},
    ),
    Route(
        "POST",
        "/projects/{project}/sessions",
        agents.start,
        "Open a work session",
        {201: "It is open; the receipt."},
        {JSON: "Receipt"},
        reads={JSON: "SessionStart"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/sessions/{id}",
        memories.session,
        "Show one work session",
        openapi_descriptions,
        {JSON: "Object"},
        AT,
    ),
    Route(
        "PATCH",
        "/projects/{project}/sessions/{id}",
        agents.move,
        "Give a work session a status, a phase, or both",
        {200: "It is moved; the receipt."},
        {JSON: "Receipt"},
        reads={JSON: "SessionMove"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/conversations/{session}",
        agents.show_conversation,
        "Give the turns of the conversation of a work session, in their order",
        openapi_descriptions,
        {JSON: "Page"},
        {"last": "So many of the last turns; all unless given.", **AS_OF, **AT},
    ),
    Route(
        "POST",
        "/projects/{project}/conversations/{session}",
        agents.record,
        "Record the next turn of a conversation: what was asked, answered, and done for it",
        {201: "It is recorded; the turn."},
        {JSON: "Turn"},
        reads={JSON: "TurnSaid"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/agents",
        agents.listed,
        "List the agents that hold something in their working memory",
        openapi_descriptions,
        {JSON: "Page"},
    ),
    Route(
        "GET",
        "/projects/{project}/agents/{agent}/memory",
        agents.show_working_memory,
        "Show the working memory of an agent: its world, its tasks, its spaces",
        openapi_descriptions,
        {JSON: "WorkingMemory"},
    ),
    Route(
        "PATCH",
        "/projects/{project}/agents/{agent}/memory",
        agents.change,
        "Change the working memory of an agent, by all of the changes or by none",
        {200: "The memory after them."},
        {JSON: "WorkingMemory"},
        reads={JSON: "WorkingChanges"},
        writes=True,
    ),
    Route(
        "DELETE",
        "/projects/{project}/agents/{agent}/memory",
        agents.forget,
        "Forget what an agent holds",
        {200: "Whether it held anything."},
        {JSON: "Object"},
        writes=True,
    ),
)


_VERSION = "0.1.0"
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_JSON_TYPES = {
    str: _TEXT, bool: {"type": "boolean"}, dict: {"type": "object"}, list: _TEXTS,
    int: {"type": "integer", "minimum": 1},
}  # fmt: skip
_TRUTH = {"enum": ["true", "false", "1", "0"]}
_MOMENT = {"type": "string", "examples": ["2026-11-01T00:00:00Z", "2026-11-01"]}
_WHOLE = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
_GRAPH_PARAMETER = {"type": "array", "items": {"type": "string", "format": "uri"}}
_SPARQL_PARAMETERS = ("query", "timeout", "as_of", "default-graph-uri", "named-graph-uri")
#: The arguments of a query string that are not any text.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "query": {"type": "string", "examples": ["SELECT ?s { ?s ?p ?o } LIMIT 5", "ASK { ?s ?p ?o }"]},
    **dict.fromkeys(("as_of", "valid_at"), _MOMENT),
    **dict.fromkeys(("limit", "budget_tokens", "last"), _WHOLE),
    **dict.fromkeys(("include_inactive", "include_sessions", "dry_run", "all", "explain"), _TRUTH),
    **dict.fromkeys(("default-graph-uri", "named-graph-uri"), _GRAPH_PARAMETER),
    "about": _TEXTS,
    "status": {"enum": list(STATUSES)},
    "timeout": {"type": "number", "exclusiveMinimum": 0},
    "min_position": {"type": "string", "examples": ["0"]},
    "graph": {"type": "string", "examples": ["context", "ontology"]},
    "default": {"const": ""},
}
_PARTS = {
    "project": "A project id: a-z, 0-9, - and _.",
    "agent": "The name of an agent.",
    "session": "The name of a work session, or its IRI, percent-encoded.",
    "name": "The name of a query, or role/name, and a suffix where one is wanted.",
    "id": "An IRI, percent-encoded, or a name: a part of a memory's id, or a session's name.",
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the description of *routes*."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jidomem",
            "version": _VERSION,
            "summary": "The governed memory of AI agents",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "security": [{}, {"token": []}],
        "components": {"schemas": _schemas(), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(route: Route) -> dict[str, Any]:
    words = re.findall(r"[a-z]+", route.path.replace(".json", "")) or ["root"]
    operation: dict[str, Any] = {
        "operationId": "_".join([route.method.lower(), *words]),
        "summary": route.summary,
        "parameters": [*_parameters(route)],
        "responses": {str(status): _success(route, text) for status, text in route.statuses.items()},
    }
    problem = {"application/problem+json": {"schema": _ref("Problem")}}
    for status in _refusals(route):
        operation["responses"][str(status)] = {"description": _REFUSALS[status], "content": problem}
    if route.public and not route.tells_more:
        operation["security"] = []
    if route.reads:
        content = {media: {"schema": _ref(schema)} for media, schema in route.reads.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _refusals(route: Route) -> list[int]:
    """Return the statuses with which *route* refuses a request."""
    found = {400, 403, 500}
    found |= set() if route.public and not route.tells_more else {401}
    found |= {404, 503} if "{project}" in route.path or route.takes else set()
    found |= {406} if len(route.gives) > 1 else set()
    found |= {413, 415} if route.reads else set()
    found |= {409, 422, 507} if route.writes else set()
    found |= {413} if route.is_open else set()
    found |= {413, 429} if "text/turtle" in route.gives and "application/trig" in route.gives else set()
    return sorted(found)


_REFUSALS = {
    400: "The request cannot be read: an argument, the query string, a query or the body.",
    401: "There is no token, or none any more, where one is needed.",
    403: "This is not theirs to do, nobody's by this way, or meant for another host.",
    404: "There is no project, memory, question, session or graph of that name.",
    406: "It can be had in none of the formats accepted.",
    409: "It disagrees with something in force, or the key stands for another intent.",
    413: "The body or the answer is larger than one may be.",
    415: "The body has another type, charset or packing.",
    422: "The intent breaks a rule.",
    429: "As many queries as may be are answered already; Retry-After says when to come back.",
    500: "Something of the root is damaged or wrongly configured.",
    503: "It was not answered in time, or somebody else holds what it needs; Retry-After says when to come back.",
    507: "The disk took nothing more.",
}


def _success(route: Route, text: str) -> dict[str, Any]:
    return {"description": text, "content": {media: {"schema": _ref(name)} for media, name in route.gives.items()}}


def _parameters(route: Route) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", route.path):
        yield {"name": name, "in": "path", "required": True, "description": _PARTS[name], "schema": _TEXT}
    for name, text in route.takes.items():
        yield {"name": name, "in": "query", "description": text, "schema": _ARGUMENTS.get(name, _TEXT)}
    for name, text in route.headers.items():
        yield {"name": name, "in": "header", "description": text, "schema": _TEXT}
    if route.is_open:
        more = {"type": "object", "additionalProperties": _TEXT}
        yield {
            "name": "params",
            "in": "query",
            "style": "form",
            "explode": True,
            "schema": more,
            "description": "The parameters of the query itself, by name, as the list of named queries has them.",
        }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _schemas() -> dict[str, Any]:
    fields: dict[str, Any] = {name: _TEXTS if name in LIST_FIELDS else _TEXT for name in FIELDS}
    fields["type"] = {"type": "string", "examples": sorted(vocab.CLASS_OF_TYPE)}
    fields["confidence"] = {"type": ["string", "number"], "description": "low, medium, high, or from 0 to 1."}
    fields["extra_triples"] = {"type": "array", "items": {"type": "array"}}
    conflicts = {"type": "array", "items": {"type": "object"}}
    receipt = {
        **dict.fromkeys(("iri", "version"), _TEXT),
        "commit": {"type": ["string", "null"]},
        "status": {"enum": ["asserted", "proposed", "deduplicated"]},
        "filled": {"type": "object"},
        "conflicts": conflicts,
        "warnings": _TEXTS,
    }
    problem = {
        **dict.fromkeys(("type", "title", "detail", "hint"), _TEXT),
        "status": {"type": "integer"},
        "code": {"enum": [*CODES, "internal_error"]},
        "violations": {"type": "array", "items": {"type": "object"}},
        "fixed_intent": {"type": ["object", "null"]},
        "conflicts": conflicts,
        "request_id": _TEXT,
    }
    page = {"rows": {"type": "array", "items": {"type": "object"}}, "cursor": {"type": ["string", "null"]}}
    return {
        "Text": _TEXT,
        "Object": {"type": "object"},
        "Linked": {"type": ["object", "array"]},
        "Query": _object({name: _ARGUMENTS[name] for name in _SPARQL_PARAMETERS}, ("query",)),
        "Intent": {**_object(fields, ()), "additionalProperties": False},
        "Intents": {"oneOf": [_ref("Intent"), {"type": "array", "items": _ref("Intent")}]},
        "Receipt": _object(receipt, tuple(receipt)),
        "Outcomes": {
            "oneOf": [_ref("Receipt"), {"type": "array", "items": {"anyOf": [_ref("Receipt"), {"type": "object"}]}}]
        },
        "Page": _object(page, tuple(page)),
        "Problem": _object(problem, ("type", "title", "status", "code", "detail", "hint")),
        "Correction": {
            **_object({name: _JSON_TYPES[kind] for name, kind in memories.CORRECTION_FIELDS.items()}, ()),
            "additionalProperties": False,
        },
        "Recall": {
            **_object({name: _JSON_TYPES[kind] for name, kind in memories.RECALL_FIELDS.items()}, ("query",)),
            "additionalProperties": False,
        },
        "Entry": _object(_ENTRY, tuple(_ENTRY)),
        "EntryWrite": {
            **_object({"entry": _ENTRY_GIVEN, "metadata": _MAPPING}, ("entry",)),
            "additionalProperties": False,
        },
        "EntryWrites": {"oneOf": [_ref("EntryWrite"), {"type": "array", "items": _ref("EntryWrite")}]},
        "EntryWritten": _object({"entry": _ref("Entry"), "status": {"const": "ok"}, "metadata": _MAPPING}, _WRITTEN),
        "EntryOutcomes": {
            "oneOf": [_ref("EntryWritten"), {"type": "array", "items": {"anyOf": [_ref("EntryWritten"), _MAPPING]}}]
        },
        "EntryIds": {
            **_object({"ids": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}}, ("ids",)),
            "additionalProperties": False,
        },
        "EntriesRemoved": _object({"removed": {"type": "integer"}}, ("removed",)),
        "EntryRecall": {**_object(_RECALLED, ("query",)), "additionalProperties": False},
        "EntriesFound": _object(
            {
                "query": _TEXT,
                "entries": {"type": "array", "items": _ref("Entry")},
                "metadata": _MAPPING,
                "inactive": _ref("Inactive"),
            },
            ("query", "entries", "metadata"),
        ),
        "Inactive": _object({"count": _NUMBER, "statuses": _MAPPING, "notice": _TEXT}, ("count", "statuses", "notice")),
        "SessionStart": {**_object(dict.fromkeys(agents.OPENING, _TEXT), ("name",)), "additionalProperties": False},
        "SessionMove": {**_object(dict.fromkeys(agents.MOVING, _TEXT), ()), "additionalProperties": False},
        "Turn": _object({"iri": _TEXT, "index": _NUMBER, "tools": {"type": "array", "items": _USE}}, ("iri", "index")),
        "TurnSaid": {**_object(_FIELD_DESCRIPTIONS, ()), "additionalProperties": False},
        "WorkingMemory": _object(_MEMORY_SCHEMA, tuple(_MEMORY_SCHEMA)),
        "WorkingChanges": {
            **_object({"changes": {"type": "array", "items": _CHANGE}, "expected_rev": _NUMBER}, ("changes",)),
            "additionalProperties": False,
        },
    }


_NUMBER, _MAPPING = {"type": "integer"}, {"type": "object"}
_NULLABLE = {"type": ["string", "null"]}
_ENTRY = {"id": _TEXT, "agent_id": _TEXT, "session_id": _NULLABLE, "content": _TEXT, "metadata": _MAPPING}
_ENTRY_GIVEN = {"type": "object", "properties": _ENTRY, "required": ["content"], "additionalProperties": False}
_WRITTEN = ("entry", "status", "metadata")
_RECALLED = {
    "agent_id": _TEXT,
    "query": _TEXT,
    "session_id": _NULLABLE,
    "scope": {"enum": [*SCOPES]},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST},
    "metadata": _MAPPING,
}
_MEMORY_SCHEMA = {"id": _TEXT, "rev": _NUMBER, "created_at": _NUMBER, "updated_at": _NUMBER, "spaces": _MAPPING,
         "metadata": _MAPPING}  # fmt: skip
_USE = {"type": "object", "properties": {"name": _TEXT, "parameters": {}, "result": {}}, "required": ["name"],
        "additionalProperties": False}  # fmt: skip
_FIELD_DESCRIPTIONS = {
    **{name: _JSON_TYPES[kind] for name, kind in agents.RECORDING.items()},
    "tools": {"type": "array", "items": _USE},
}
_CHANGE = {"type": "object", "properties": {"do": {"enum": [*CHANGES]}}, "required": ["do"]}


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_READY = {**openapi_descriptions, 503: "An index is behind its journal, or a journal is damaged; the same, and which."}
_ASKING = {
    **MOMENTS,
    "include_inactive": "Also memories that are not active: superseded, rejected, proposed, expired.",
    "status": "For lists of decisions: the decisions of this status alone, active or not.",
    "limit": "The most rows of one page.",
    "cursor": "Go on after the page that gave this cursor.",
    **AT,
}
_SPARQL = {
    "query": "The query; without it, and anything else, the service describes itself.",
    "default-graph-uri": "A graph of the default graph, in place of FROM; may stand several times.",
    "named-graph-uri": "A graph that GRAPH may name, in place of FROM NAMED; may stand several times.",
    **dict.fromkeys(sparql.FORMAT, "The format of the answer (json, csv, turtle ...), beside Accept."),
    "timeout": "Seconds it may take; lowers the server's limit.",
    "as_of": "A moment: ask a memory replayed to then, of a stated size.",
    **AT,
}
_GRAPHS = {**dict.fromkeys(sparql.GRAPHS, "Text"), "application/ld+json": "Linked"}
_RESULTS = {
    **dict.fromkeys(sparql.ROWS, "Text"),
    "application/sparql-results+json": "Object",
    JSON: "Object",
    **_GRAPHS,
}
_WRITE_RESPONSES = {
    201: "All were kept; the receipt, or one outcome each.",
    200: "Nothing new, or not all, was kept; the same.",
}


def _described(site: RequestContext) -> Response:
    """Return the description of the interface."""
    wire.arguments()
    return wire.answer(document(ROUTES))


def _sparql(path: str, of_what: str) -> tuple[Route, Route]:
    """Return the two ways to ask one dataset in SPARQL."""
    asked = {sparql.QUERY: "Text", sparql.FORM: "Query", sparql.UPDATE: "Text"}
    beside = {name: text for name, text in _SPARQL.items() if name != "query"}
    return (
        Route("GET", path, sparql.get, f"Ask {of_what} in SPARQL", openapi_descriptions, _RESULTS, _SPARQL),
        Route(
            "POST", path, sparql.post, f"Ask {of_what} in SPARQL", openapi_descriptions, _RESULTS, beside, reads=asked
        ),
    )


def _graph_store(path: str) -> Iterator[Route]:
    """Yield the one way to read a graph, and the ways to write one, which are refused."""
    takes = {
        "graph": "context, codebase, history, system or ontology, or the IRI of one of them.",
        "default": "All of them as one graph; it has no value.",
        **AT,
    }
    yield Route("GET", path, sparql.get_graph, "Give a whole graph", openapi_descriptions, _GRAPHS, takes)
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        yield Route(
            method, path, sparql.refuse, "Refuse to write a graph: intents are how memory changes", {}, {}, writes=True
        )


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/projects/{project}/intents",
        intents.submit,
        "Submit one intent, an array of them, or one a line",
        _WRITE_RESPONSES,
        {JSON: "Outcomes", intents.NDJSON: "Text"},
        {"dry_run": "Judge each as if it were alone, and keep nothing."},
        {"Idempotency-Key": "The idempotency_key of the one intent: a retry gets the first receipt."},
        {JSON: "Intents", intents.NDJSON: "Text"},
        writes=True,
    ),
    Route("GET", "/projects", memories.projects, "List the projects", openapi_descriptions, {JSON: "Object"}),
    Route(
        "GET",
        "/projects/{project}",
        memories.project,
        "Say what a project holds",
        openapi_descriptions,
        {JSON: "Object"},
        {**MOMENTS, **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/queries",
        memories.playbook,
        "List the named queries",
        openapi_descriptions,
        {JSON: "Object"},
    ),
    Route(
        "GET",
        "/projects/{project}/queries/{name}",
        memories.ask,
        "Ask a named query; .json, .csv or .tsv after its name choose the format",
        openapi_descriptions,
        {JSON: "Page", memories.CSV: "Text", memories.TSV: "Text"},
        _ASKING,
        is_open=True,
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}",
        memories.memory,
        "Show one memory, by its IRI or a unique part of its id",
        openapi_descriptions,
        {JSON: "Object", memories.TURTLE: "Text", memories.LINKED: "Linked"},
        {**MOMENTS, **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}/why",
        memories.why,
        "Explain one memory: who said it and when, its evidence and rules, what it replaced and what came of it",
        openapi_descriptions,
        {JSON: "Object"},
        {**MOMENTS, **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}/history",
        memories.history,
        "Tell what went before one memory, and what replaced, withdrew or revived it",
        openapi_descriptions,
        {JSON: "Page"},
        {**MOMENTS, **AT},
    ),
    Route(
        "POST",
        "/projects/{project}/memories/{id}/revise",
        memories.revise,
        "Correct one memory by a further one: supersede, invalidate, confirm, undo or set fields",
        {201: "It was kept; the receipt.", 200: "Nothing new was kept; the receipt."},
        {JSON: "Receipt"},
        {"dry_run": "Judge it, and keep nothing."},
        {"Idempotency-Key": "A retry gets the first receipt."},
        {JSON: "Correction"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/conflicts",
        memories.conflicts,
        "List what waits for a curator: what disagrees in force, proposals, and what is due, the most pressing first",
        openapi_descriptions,
        {JSON: "Page"},
        {"limit": "How many rows at most.", "cursor": "Go on after the page that gave it.", **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/check",
        memories.check,
        "Check the memory of a project, as jidomem check does: the report, whether anything is wrong or not",
        openapi_descriptions,
        {JSON: "Object", memories.SARIF: "Object", memories.XML: "Text"},
        {"format": "json, sarif or junit, whatever Accept says.", **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/journal",
        feed.journal,
        "Follow what is committed: what each commit added, superseded and invalidated",
        openapi_descriptions,
        {feed.NDJSON: "Text", feed.EVENTS: "Text"},
        {
            "after": "A version: all that is neither in it nor before it; everything, where it is left out.",
            "limit": "The most commits; a Link leads to the next ones.",
            "wait": "Seconds to wait for the first one, where there is none; not for events.",
            **AT,
        },
        {"Last-Event-ID": "The version of the last event read: in the place of after."},
    ),
    Route(
        "GET",
        "/projects/{project}/briefing",
        memories.briefing,
        "Tell what an agent should know first, in so many tokens",
        openapi_descriptions,
        {JSON: "Object", memories.MARKDOWN: "Text"},
        {
            "agent": "Who is briefed: its tasks come first, and what is new to it.",
            "role": "Whose matters come first; else the role the agent is declared with.",
            "budget_tokens": "How long it may be; a token is counted for every three bytes.",
            "about": "A file that will be worked on; may stand several times.",
            "task": "The work to be done, in words: memories that match come early.",
            **MOMENTS,
            **AT,
        },
    ),
    Route(
        "GET",
        "/projects/{project}/governing",
        memories.governing,
        "List the rules, decisions, errors and lessons that govern files, the nearest first",
        openapi_descriptions,
        {JSON: "Object"},
        {
            "file": "A path from the folder that holds the root; may stand several times.",
            "limit": "At most so many memories a file (default: 10); count says how many there are in all.",
            "include_inactive": "Also what is superseded, withdrawn or only proposed.",
            **MOMENTS,
            **AT,
        },
    ),
    Route(
        "POST",
        "/projects/{project}/recall",
        memories.recall,
        "Find memories by words, the best first",
        openapi_descriptions,
        {JSON: "Object", memories.MARKDOWN: "Text"},
        AT,
        reads={JSON: "Recall"},
    ),
    *AGENT_ROUTES,
    *_sparql("/projects/{project}/sparql", "a project"),
    *_sparql("/sparql", "the default project"),
    *_graph_store("/projects/{project}/graphs"),
    Route(
        "GET",
        "/healthz",
        monitoring.alive,
        "Say that the server lives",
        openapi_descriptions,
        {JSON: "Object"},
        public=True,
    ),
    Route(
        "GET",
        "/readyz",
        monitoring.ready,
        "Say whether all can be read; with a token, where one is needed, what, up to which version, and what is not",
        _READY,
        {JSON: "Object"},
        public=True,
        tells_more=True,
    ),
    Route(
        "GET",
        "/metrics",
        monitoring.metrics,
        "Give figures to Prometheus",
        openapi_descriptions,
        {"text/plain": "Text"},
    ),
    Route("GET", "/openapi.json", _described, "Describe this interface", openapi_descriptions, {JSON: "Object"}),
)
