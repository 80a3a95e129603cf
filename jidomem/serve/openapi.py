"""The description of the interface (OpenAPI 3.1), written from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from jidomem import vocab
from jidomem.active import STATUSES
from jidomem.errors import CODES
from jidomem.intent import FIELDS, LIST_FIELDS
from jidomem.recall import MOST, SCOPES
from jidomem.serve import conversations, corrections, recalls, sessions
from jidomem.serve.site import Route
from jidomem.spaces.changes import CHANGES

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
_GRAPHS = {"type": "array", "items": {"type": "string", "format": "uri"}}
_ASKED = ("query", "timeout", "as_of", "default-graph-uri", "named-graph-uri")
#: The arguments of a query string that are not any text.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "query": {"type": "string", "examples": ["SELECT ?s { ?s ?p ?o } LIMIT 5", "ASK { ?s ?p ?o }"]},
    **dict.fromkeys(("as_of", "valid_at"), _MOMENT),
    **dict.fromkeys(("limit", "budget_tokens", "last"), _WHOLE),
    **dict.fromkeys(("include_inactive", "include_sessions", "dry_run", "all", "explain"), _TRUTH),
    **dict.fromkeys(("default-graph-uri", "named-graph-uri"), _GRAPHS),
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
    """Return the statuses with which *route* refuses a request, whoever sends it."""
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
        "Query": _object({name: _ARGUMENTS[name] for name in _ASKED}, ("query",)),
        "Intent": {**_object(fields, ()), "additionalProperties": False},
        "Intents": {"oneOf": [_ref("Intent"), {"type": "array", "items": _ref("Intent")}]},
        "Receipt": _object(receipt, tuple(receipt)),
        "Outcomes": {
            "oneOf": [_ref("Receipt"), {"type": "array", "items": {"anyOf": [_ref("Receipt"), {"type": "object"}]}}]
        },
        "Page": _object(page, tuple(page)),
        "Problem": _object(problem, ("type", "title", "status", "code", "detail", "hint")),
        "Correction": {
            **_object({name: _JSON_TYPES[kind] for name, kind in corrections.TAKES.items()}, ()),
            "additionalProperties": False,
        },
        "Recall": {
            **_object({name: _JSON_TYPES[kind] for name, kind in recalls.TAKES.items()}, ("query",)),
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
        "SessionStart": {**_object(dict.fromkeys(sessions.OPENING, _TEXT), ("name",)), "additionalProperties": False},
        "SessionMove": {**_object(dict.fromkeys(sessions.MOVING, _TEXT), ()), "additionalProperties": False},
        "Turn": _object({"iri": _TEXT, "index": _NUMBER, "tools": {"type": "array", "items": _USE}}, ("iri", "index")),
        "TurnSaid": {**_object(_SAID, ()), "additionalProperties": False},
        "WorkingMemory": _object(_HELD, tuple(_HELD)),
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
_HELD = {"id": _TEXT, "rev": _NUMBER, "created_at": _NUMBER, "updated_at": _NUMBER, "spaces": _MAPPING,
         "metadata": _MAPPING}  # fmt: skip
_USE = {"type": "object", "properties": {"name": _TEXT, "parameters": {}, "result": {}}, "required": ["name"],
        "additionalProperties": False}  # fmt: skip
_SAID = {
    **{name: _JSON_TYPES[kind] for name, kind in conversations.RECORDING.items()},
    "tools": {"type": "array", "items": _USE},
}
_CHANGE = {"type": "object", "properties": {"do": {"enum": [*CHANGES]}}, "required": ["do"]}


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}
