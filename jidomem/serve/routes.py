"""The table of routes, and the OpenAPI 3.1 description that is generated from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flask import Response

from jidomem import __version__
from jidomem.errors import CODES
from jidomem.rdf import vocab
from jidomem.records.active import STATUSES
from jidomem.records.intent import INTENT_FIELDS, LIST_FIELDS
from jidomem.records.recall import LARGEST_LIMIT, SCOPES
from jidomem.serve import agents, intents, memories, monitoring, sparql, wire
from jidomem.serve.server_state import RequestContext
from jidomem.working.memory import CHANGES

#: The handler of a route, called with the context and the parts of the path by name.
Answer = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, its handler, and its description in OpenAPI.

    `takes` are the query parameters with their descriptions; `is_open` if the named query has further ones. `reads`
    and `gives` are the media types of the body and of the answer, with the names of their schemas; `statuses`
    describes each success. A route that `writes` refuses a read-only token. A `public` route needs no token;
    `has_details` if its answer is longer for callers with one.
    """

    method: str
    path: str
    answer: Answer
    summary: str
    gives: Mapping[str, str] = field(default_factory=lambda: {"application/json": "Object"})
    takes: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "The answer."})
    is_open: bool = False
    writes: bool = False
    public: bool = False
    has_details: bool = False


JSON = wire.JSON
AT = {"min_position": "A version: wait until it is reached."}
AS_OF = {"as_of": "A moment: the state recorded by then."}
MOMENT_PARAMETERS = {**AS_OF, "valid_at": "A moment: only memories valid then, by their own dates."}


AGENT_ROUTES: tuple[Route, ...] = (
    Route("POST", "/projects/{project}/entries", agents.write, "Store an entry of an agent, or an array of them",
          gives={JSON: "EntryOutcomes"}, reads={JSON: "EntryWrites"},
          statuses={201: "All were stored; the entry, or one outcome each.",
                    200: "Not all were stored; one outcome each."},
          writes=True),
    Route("POST", "/projects/{project}/entries/remove", agents.remove,
          "Withdraw entries by their ids, in one commit or not at all; they stay in the history",
          gives={JSON: "EntriesRemoved"}, reads={JSON: "EntryIds"},
          statuses={200: "The number of ids that had an entry."}, writes=True),
    Route("POST", "/projects/{project}/entries/recall", agents.recall,
          "Recall entries of an agent: matches of the query, best first, then the newest",
          gives={JSON: "EntriesFound"}, takes={**agents.NARROWED_BY, **AS_OF, **AT}, reads={JSON: "EntryRecall"}),
    Route("GET", "/projects/{project}/sessions", memories.sessions, "List the work sessions that have not ended",
          gives={JSON: "Page"}, takes={"all": "Include ended sessions.", **AT}),
    Route("POST", "/projects/{project}/sessions", agents.start, "Open a work session", gives={JSON: "Receipt"},
          reads={JSON: "SessionStart"}, statuses={201: "The receipt."}, writes=True),
    Route("GET", "/projects/{project}/sessions/{id}", memories.session, "Show one work session", takes=AT),
    Route("PATCH", "/projects/{project}/sessions/{id}", agents.move, "Set the status or the phase of a work session",
          gives={JSON: "Receipt"}, reads={JSON: "SessionMove"}, statuses={200: "The receipt."}, writes=True),
    Route("GET", "/projects/{project}/conversations/{session}", agents.show_conversation,
          "List the turns of the conversation of a work session, in order", gives={JSON: "Page"},
          takes={"last": "The number of last turns (default: all).", **AS_OF, **AT}),
    Route("POST", "/projects/{project}/conversations/{session}", agents.record,
          "Record the next turn of a conversation: prompt, answer and tool calls", gives={JSON: "Turn"},
          headers={wire.KEY: "A retry gets the stored turn."}, reads={JSON: "TurnSaid"}, statuses={201: "The turn."},
          writes=True),
    Route("GET", "/projects/{project}/agents", agents.listed, "List the agents that have working memory",
          gives={JSON: "Page"}),
    Route("GET", "/projects/{project}/agents/{agent}/memory", agents.show_working_memory,
          "Show the working memory of an agent: world, tasks and spaces", gives={JSON: "WorkingMemory"}),
    Route("PATCH", "/projects/{project}/agents/{agent}/memory", agents.change,
          "Change the working memory of an agent, by all changes or none", gives={JSON: "WorkingMemory"},
          reads={JSON: "WorkingChanges"}, statuses={200: "The memory after the changes."}, writes=True),
    Route("DELETE", "/projects/{project}/agents/{agent}/memory", agents.forget,
          "Delete the working memory of an agent", statuses={200: "Whether there was any."}, writes=True),
)  # fmt: skip


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_JSON_TYPES = {
    str: _TEXT, bool: {"type": "boolean"}, dict: {"type": "object"}, list: _TEXTS,
    int: {"type": "integer", "minimum": 1}, float: {"type": "number", "minimum": 0, "maximum": 1},
}  # fmt: skip
_TRUTH = {"enum": ["true", "false", "1", "0"]}
_MOMENT = {"type": "string", "examples": ["2026-11-01T00:00:00Z", "2026-11-01"]}
_POSITIVE_INTEGER = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
_GRAPH_PARAMETER = {"type": "array", "items": {"type": "string", "format": "uri"}}
_SPARQL_PARAMETERS = ("query", "timeout", "as_of", "default-graph-uri", "named-graph-uri")
#: The schemas of the query parameters that are not plain texts.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "query": {"type": "string", "examples": ["SELECT ?s { ?s ?p ?o } LIMIT 5", "ASK { ?s ?p ?o }"]},
    **dict.fromkeys(("as_of", "valid_at"), _MOMENT),
    **dict.fromkeys(("limit", "budget_tokens", "last"), _POSITIVE_INTEGER),
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
    "name": "The name of a query, or role/name, with an optional suffix.",
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
            "version": __version__,
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
    if route.public and not route.has_details:
        operation["security"] = []
    if route.reads:
        content = {media: {"schema": _ref(schema)} for media, schema in route.reads.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _refusals(route: Route) -> list[int]:
    """Return the statuses with which *route* refuses a request."""
    statuses = {400, 403, 408, 414, 431, 500}
    statuses |= set() if route.public and not route.has_details else {401}
    statuses |= {404, 503} if "{project}" in route.path or route.takes else set()
    statuses |= {406} if len(route.gives) > 1 else set()
    statuses |= {413, 415} if route.reads else set()
    statuses |= {409, 422, 507} if route.writes else set()
    statuses |= {413} if route.is_open else set()
    statuses |= {413, 429} if "text/turtle" in route.gives and "application/trig" in route.gives else set()
    statuses |= {429} if route.answer in (memories.change_feed, memories.check) else set()
    return sorted(statuses)


_REFUSALS = {
    400: "The request is malformed: an argument, the query string, a query or the body.",
    401: "The token is missing, unknown or revoked.",
    403: "The role does not allow it, the interface does not, or the host is another.",
    404: "Unknown project, memory, query, session or graph.",
    406: "None of the accepted formats is available.",
    408: "The rest of the request did not arrive in time.",
    409: "A conflict with an active memory, or an idempotency key of another intent.",
    413: "The body or the answer is too large.",
    414: "The address is too long.",
    415: "The type, charset or encoding of the body is not supported.",
    422: "The intent breaks a rule.",
    429: "Too many queries, checks or waiting readers at once; see Retry-After.",
    431: "The headers are too long.",
    500: "The root is damaged or wrongly configured, or the server has a bug.",
    503: "A timeout, or a lock of another process; see Retry-After.",
    507: "The disk is full.",
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


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _whole(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with all *members*: names, separated by blanks, and their schema."""
    properties = {name: schema for names, schema in members.items() for name in names.split()}
    optional = {"reasons", "parts"}  # of a hit, if asked for
    return _object(properties, tuple(name for name in properties if name not in optional))


def _closed(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the schema of an object without further properties."""
    return {**_object(properties, required), "additionalProperties": False}


def _schemas() -> dict[str, Any]:
    fields: dict[str, Any] = {name: _TEXTS if name in LIST_FIELDS else _TEXT for name in INTENT_FIELDS}
    fields["type"] = {"type": "string", "examples": sorted(vocab.CLASS_OF_TYPE)}
    fields["confidence"] = {"type": ["string", "number"], "description": "low, medium, high, or from 0 to 1."}
    fields["due"] = {**_TEXT, "description": "Of a task: another name of expires_on."}
    fields["extra_triples"] = {"type": "array", "items": {"type": "array"}}
    conflicts = _array({"type": "object"})
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
        "violations": _array({"type": "object"}),
        "fixed_intent": {"type": ["object", "null"]},
        "conflicts": conflicts,
        "choices": _array(_MAPPING),
        "position": _NUMBER,
        "request_id": _TEXT,
    }
    return {
        "Text": _TEXT,
        "Object": {"type": "object"},
        "Linked": {"type": ["object", "array"]},
        "Query": _object({name: _ARGUMENTS[name] for name in _SPARQL_PARAMETERS}, ("query",)),
        "Intent": {
            **_closed(fields),
            "patternProperties": {_OWN: {"description": "An own property: a value or several."}},
        },
        "Intents": {"oneOf": [_ref("Intent"), _array(_ref("Intent"))]},
        "Receipt": _object(receipt | {"similar": _array({"type": "object"})}, tuple(receipt)),
        "Outcomes": {
            "oneOf": [_ref("Receipt"), {"type": "array", "items": {"anyOf": [_ref("Receipt"), {"type": "object"}]}}]
        },
        "Problem": _object(problem, ("type", "title", "status", "code", "detail", "hint")),
        "Correction": _closed({name: _JSON_TYPES[kind] for name, kind in memories.CORRECTION_FIELDS.items()}),
        "Recall": _closed(
            {name: _JSON_TYPES[kind] for name, kind in memories.RECALL_FIELDS.items()} | {"limit": _RECALLED["limit"]},
            ("query",),
        ),
        **{name: _whole(members) for name, members in _ANSWERS.items()},
        "EntryWrite": _closed({"entry": _ENTRY_GIVEN, "metadata": _MAPPING}, ("entry",)),
        "EntryWrites": {"oneOf": [_ref("EntryWrite"), _array(_ref("EntryWrite"))]},
        "EntryWritten": _object({"entry": _ref("Entry"), "status": {"const": "ok"}, "metadata": _MAPPING}, _WRITTEN),
        "EntryOutcomes": {
            "oneOf": [_ref("EntryWritten"), {"type": "array", "items": {"anyOf": [_ref("EntryWritten"), _MAPPING]}}]
        },
        "EntryIds": _closed(
            {"ids": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}}, ("ids",)
        ),
        "EntriesRemoved": _object({"removed": {"type": "integer"}}, ("removed",)),
        "EntryRecall": _closed(_RECALLED, ("query",)),
        "SessionStart": _closed(dict.fromkeys(agents.OPENING, _TEXT), ("name",)),
        "SessionMove": _closed(dict.fromkeys(agents.MOVING, _TEXT)),
        "Turn": _object({"iri": _TEXT, "index": _NUMBER, "tools": _array(_USE)}, ("iri", "index")),
        "TurnSaid": _closed(_FIELD_DESCRIPTIONS),
        "WorkingChanges": _closed({"changes": _array(_CHANGE), "expected_rev": _NUMBER}, ("changes",)),
    }


_OR_NONE, _LOGICAL = {"type": ["object", "null"]}, {"type": "boolean"}
#: The names of own properties in an intent: an IRI, or a prefixed name.
_OWN = r"^([A-Za-z][\w-]*:|https?://|urn:)"
_PROPERTIES = (
    "By the name of the ontology's property, or the IRI of another; a value of another may be an object of JSON-LD."
)
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
    "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT},
    "metadata": _MAPPING,
}
_USE = {"type": "object", "properties": {"name": _TEXT, "parameters": {}, "result": {}}, "required": ["name"],
        "additionalProperties": False}  # fmt: skip
_FIELD_DESCRIPTIONS = {**{name: _JSON_TYPES[kind] for name, kind in agents.RECORDING.items()}, "tools": _array(_USE)}
_CHANGE = {"type": "object", "properties": {"do": {"enum": [*CHANGES]}}, "required": ["do"]}


_VERSIONED = {"project version": _TEXT, "last_commit": _NULLABLE}
_SECTION = {"name title ask": _TEXT, "entries": _array(_MAPPING), "left_out": _NUMBER, "more": _LOGICAL}
#: The answers about memories.
_ANSWERS: dict[str, dict[str, Any]] = {
    "Memory": {
        "iri class status recorded_at": _TEXT,
        "own_classes superseded_by invalidated_by": _TEXTS,
        "type commit": _NULLABLE,
        "properties": {"type": "object", "additionalProperties": {"type": "array"}, "description": _PROPERTIES},
    },
    "Why": {
        "iri class status recorded_at excerpt": _TEXT,
        "own_classes asserted_by asserted_in settled_by": _TEXTS,
        "summary rationale explanation reason confidence timestamp valid_from valid_until expires_on state commit"
        " committer": _NULLABLE,
        "source evidence replaced replaced_by revived_by upheld_by derived conflicts": _array(_MAPPING),
        "outcome in_its_place": _OR_NONE, "shown": {"type": ["array", "null"], "items": _MAPPING},
        "judged_by": _MAPPING,
        "more_derived": _LOGICAL,
    },
    "Hit": {
        "id agent_id content excerpt": _TEXT, "session_id": _NULLABLE, "metadata parts": _MAPPING, "reasons": _TEXTS,
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "Recalled": {
        "query": _TEXT, "entries": _array(_ref("Hit")), "metadata": _MAPPING, "inactive": _ref("Inactive"),
        "nearest": _OR_NONE,
    },
    "Briefing": {
        "project text": _TEXT, "agent role": _NULLABLE, "about notes": _TEXTS, "budget_tokens tokens": _NUMBER,
        "sections": _array(_whole(_SECTION)),
    },
    "Governing": {
        "rows": _array(_MAPPING), "count": _NUMBER, "inactive": _ref("Inactive"), "whole_project": _OR_NONE,
        "missing": _array(_whole({"path": _TEXT, "nearest": _NULLABLE})),
    },
    "Project": {**_VERSIONED, "ontology_version": _TEXT, "counts history": _MAPPING, "damage": _array(_MAPPING)},
    "Projects": {"projects": _array(_whole(_VERSIONED)), "default": _NULLABLE},
    "EntriesFound": {"query": _TEXT, "entries": _array(_ref("Entry")), "metadata": _MAPPING},
    "Inactive": {"count": _NUMBER, "statuses": _MAPPING, "notice": _TEXT},
    "Page": {"rows": _array(_MAPPING), "cursor": _NULLABLE},
    "Entry": {"id agent_id content": _TEXT, "session_id": _NULLABLE, "metadata": _MAPPING},
    "WorkingMemory": {"id": _TEXT, "rev created_at updated_at": _NUMBER, "spaces metadata": _MAPPING},
}  # fmt: skip


_READY = {200: "The answer.", 503: "An index is behind its journal, or a journal is damaged; the same, and which."}
_ASKING = {
    **MOMENT_PARAMETERS,
    "include_inactive": "Also memories that are not active: superseded, pending, rejected, expired.",
    "status": "For lists of decisions: the decisions of this status alone, active or not.",
    "limit": "Rows of one page, at most.",
    "cursor": "The cursor of the page before.",
    **AT,
}
_SPARQL = {
    "query": "The query; without any argument the answer is the service description.",
    "default-graph-uri": "A graph of the default graph, like FROM; may be repeated.",
    "named-graph-uri": "A named graph, like FROM NAMED; may be repeated.",
    **dict.fromkeys(sparql.FORMAT, "The format of the answer (json, csv, turtle ...), beside Accept."),
    "timeout": "Time limit in seconds, at most that of the server.",
    "as_of": "A moment: query the memory replayed to then, up to a size limit.",
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
    201: "All were written; the receipt, or one outcome each.",
    200: "Nothing new, or not all, was written; the same.",
}


def _described(site: RequestContext) -> Response:
    wire.arguments()
    return wire.answer(document(ROUTES))


def _sparql(path: str, subject: str) -> tuple[Route, Route]:
    bodies = {sparql.QUERY: "Text", sparql.FORM: "Query", sparql.UPDATE: "Text"}
    parameters = {name: text for name, text in _SPARQL.items() if name != "query"}
    return (
        Route("GET", path, sparql.get, f"Query {subject} by SPARQL", gives=_RESULTS, takes=_SPARQL),
        Route("POST", path, sparql.post, f"Query {subject} by SPARQL", gives=_RESULTS, takes=parameters, reads=bodies),
    )


def _graph_store(path: str) -> Iterator[Route]:
    """Yield the route that reads a graph, and those that would write one, which are refused."""
    takes = {
        "graph": "context, codebase, history, system or ontology, or the IRI of one of them.",
        "default": "All graphs as one; without a value.",
        **AT,
    }
    yield Route("GET", path, sparql.get_graph, "Return a whole graph", gives=_GRAPHS, takes=takes)
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        yield Route(
            method,
            path,
            sparql.refuse,
            "Refuse to write a graph: memory changes by intents",
            gives={},
            statuses={},
            writes=True,
        )


ROUTES: tuple[Route, ...] = (
    Route("POST", "/projects/{project}/intents", intents.submit,
          "Submit one intent, an array of intents, or one per line",
          gives={JSON: "Outcomes", intents.NDJSON: "Text"},
          takes={"dry_run": "Validate each as if it were alone, and write nothing: `commit` is null."},
          headers={wire.KEY: "The idempotency_key of the intent: a retry gets the first receipt."},
          reads={JSON: "Intents", intents.NDJSON: "Text"}, statuses=_WRITE_RESPONSES, writes=True),
    Route("GET", "/projects", memories.projects, "List the projects", gives={JSON: "Projects"}),
    Route("GET", "/projects/{project}", memories.project, "Summarise a project", gives={JSON: "Project"},
          takes={**MOMENT_PARAMETERS, **AT}),
    Route("GET", "/projects/{project}/queries", memories.playbook, "List the named queries"),
    Route("GET", "/projects/{project}/queries/{name}", memories.ask,
          "Run a named query; .json, .csv or .tsv after its name choose the format",
          gives={JSON: "Page", memories.CSV: "Text", memories.TSV: "Text"}, takes=_ASKING, is_open=True),
    Route("GET", "/projects/{project}/memories/{id}", memories.memory,
          "Show one memory, by its IRI or a unique part of its id",
          gives={JSON: "Memory", memories.TURTLE: "Text", memories.LINKED: "Linked"},
          takes={**MOMENT_PARAMETERS, **AT}),
    Route("GET", "/projects/{project}/memories/{id}/why", memories.why,
          "Explain one memory: author, time, evidence, rules, predecessors and successors", gives={JSON: "Why"},
          takes={**MOMENT_PARAMETERS, **AT}),
    Route("GET", "/projects/{project}/memories/{id}/history", memories.history,
          "List the versions of one memory: predecessors, successors, withdrawals and restorations",
          gives={JSON: "Page"}, takes={**MOMENT_PARAMETERS, **AT}),
    Route("POST", "/projects/{project}/memories/{id}/revise", memories.revise,
          "Correct one memory by a further one: supersede, invalidate, confirm, undo or set fields",
          gives={JSON: "Receipt"}, takes={"dry_run": "Validate, and write nothing: `commit` is null."},
          headers={wire.KEY: "A retry gets the first receipt."}, reads={JSON: "Correction"},
          statuses={201: "Written; the receipt.", 200: "Nothing new was written; the receipt."}, writes=True),
    Route("GET", "/projects/{project}/conflicts", memories.conflicts,
          "List the review queue by priority: conflicts, proposals and memories that are due; `vectors.pending` texts"
          " are not in near pairs yet", gives={JSON: "Page"},
          takes={"limit": "Rows of one page, at most.", "cursor": "The cursor of the page before.",
                 "by": "Only the proposals of this agent.", **AT}),
    Route("GET", "/projects/{project}/check", memories.check,
          "Check the memory of a project, as jidomem check does; 200 also for a report with violations",
          gives={JSON: "Object", memories.SARIF: "Object", memories.XML: "Text"},
          takes={"format": "json, sarif or junit; overrides Accept.", **AT}),
    Route("GET", "/projects/{project}/journal", memories.change_feed,
          "Follow the commits: the memories that each one added, superseded and invalidated",
          gives={memories.NDJSON: "Text", memories.EVENTS: "Text"},
          takes={"after": "A version: commits after it (default: all).",
                 "limit": "Commits of one answer, at most; a Link leads to the next ones.",
                 "wait": "Seconds to wait if there is no commit; not for events.", **AT},
          headers={"Last-Event-ID": "The version of the last event, instead of after."}),
    Route("GET", "/projects/{project}/briefing", memories.briefing,
          "Return the most important memories within a token budget",
          gives={JSON: "Briefing", memories.MARKDOWN: "Text"},
          takes={"agent": "The agent: its tasks come first, and memories that are new to it.",
                 "role": "The role whose memories come first (default: that of the agent).",
                 "budget_tokens": "Length limit; a token is three bytes.",
                 "about": "A file of the work; may be repeated.",
                 "task": "The work in words: memories that match come early.", **MOMENT_PARAMETERS, **AT}),
    Route("GET", "/projects/{project}/governing", memories.governing,
          "List the rules, decisions, errors and lessons that govern files, nearest first",
          gives={JSON: "Governing"},
          takes={"file": "A path relative to the folder of the root; may be repeated.",
                 "limit": "Memories per file, at most (default: 10); count is the total.",
                 "include_inactive": "Include superseded, withdrawn and pending memories.", **MOMENT_PARAMETERS,
                 **AT}),
    Route("POST", "/projects/{project}/recall", memories.recall, "Find memories by words, best first",
          gives={JSON: "Recalled", memories.MARKDOWN: "Text"}, takes=AT, reads={JSON: "Recall"}),
    *AGENT_ROUTES,
    *_sparql("/projects/{project}/sparql", "a project"),
    *_sparql("/sparql", "the default project"),
    *_graph_store("/projects/{project}/graphs"),
    Route("GET", "/healthz", monitoring.alive, "Report that the server runs", public=True),
    Route("GET", "/readyz", monitoring.ready, "Report readiness; with a token, also versions and problems",
          statuses=_READY, public=True, has_details=True),
    Route("GET", "/metrics", monitoring.metrics, "Return metrics for Prometheus", gives={"text/plain": "Text"}),
    Route("GET", "/openapi.json", _described, "Describe this interface"),
)  # fmt: skip
