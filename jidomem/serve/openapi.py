"""The description of the interface (OpenAPI 3.1), written from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from jidomem import vocab
from jidomem.errors import CODES
from jidomem.intent import FIELDS, LIST_FIELDS
from jidomem.serve import corrections, recalls, sessions
from jidomem.serve.site import Route

_VERSION = "0.1.0"
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_JSON_TYPES = {
    str: _TEXT, bool: {"type": "boolean"}, dict: {"type": "object"}, list: _TEXTS,
    int: {"type": "integer", "minimum": 1},
}  # fmt: skip
_PARTS = {
    "project": "A project id: a-z, 0-9, - and _.",
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
    operation["responses"]["default"] = {
        "description": "A refusal: the same code, detail and hint as everywhere.",
        "content": {"application/problem+json": {"schema": _ref("Problem")}},
    }
    if route.public:
        operation["security"] = []
    if route.reads:
        content = {media: {"schema": _ref(schema)} for media, schema in route.reads.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _success(route: Route, text: str) -> dict[str, Any]:
    return {"description": text, "content": {media: {"schema": _ref(name)} for media, name in route.gives.items()}}


def _parameters(route: Route) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", route.path):
        yield {"name": name, "in": "path", "required": True, "description": _PARTS[name], "schema": _TEXT}
    for name, text in route.takes.items():
        yield {"name": name, "in": "query", "description": text, "schema": _TEXT}
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
        "Query": _object(dict.fromkeys(("query", "timeout", "as_of"), _TEXT), ("query",)),
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
        "SessionStart": {**_object(dict.fromkeys(sessions.OPENING, _TEXT), ("name",)), "additionalProperties": False},
        "SessionMove": {**_object(dict.fromkeys(sessions.MOVING, _TEXT), ()), "additionalProperties": False},
    }


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}
