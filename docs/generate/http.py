"""docs/reference/http.md, written from the OpenAPI document that a server gives out at /openapi.json."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import jidomem
from docs.generate.tables import cell, code, table
from jidomem.serve.app import create_app

JsonObject = Mapping[str, Any]
_INTRODUCTION = """\
# HTTP: every route

What `jidomem serve` answers, written from the OpenAPI document that it gives out itself at `/openapi.json`, which a client
generator reads as well. [HTTP](../http.md) shows how it is used. What is refused is a [problem](#problem) with a
[code](errors.md).

## Refusals

"""


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    with tempfile.TemporaryDirectory() as folder, jidomem.open(folder, project="my-project") as memory:
        document = json.loads(create_app(memory).test_client().get("/openapi.json").data)
    routes = "".join(
        _route(method, path, operation)
        for path, methods in sorted(document["paths"].items())
        for method, operation in methods.items()
    )
    schemas = "".join(_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))
    refusals = {
        status: answer["description"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, answer in operation["responses"].items()
        if _refuses(answer)
    }
    head = _INTRODUCTION + table(["status", "when"], sorted(refusals.items()))
    return {"reference/http.md": f"{head}\n## Routes\n{routes}\n## Schemas\n{schemas}"}


def _refuses(answer: JsonObject) -> bool:
    return "application/problem+json" in answer.get("content", {})


def _route(method: str, path: str, operation: JsonObject) -> str:
    rows = [
        [code(each["name"]), each["in"], type_of(each["schema"]), each.get("description", "")]
        for each in operation.get("parameters", [])
    ]
    takes = table(["parameter", "in", "takes", ""], rows)
    reads = operation.get("requestBody", {}).get("content", {})
    body = f"The body: {_content(reads)}.\n" if reads else ""
    responses = sorted(operation["responses"].items())
    answers = [
        [status, answer["description"], _content(answer.get("content", {}))]
        for status, answer in responses
        if not _refuses(answer)
    ]
    refused = f"Refused with {', '.join(status for status, answer in responses if _refuses(answer))}.\n"
    whom = " It asks for no token." if operation.get("security") == [] else ""
    parts = [f"{operation['summary']}.{whom}\n", takes, body, table(["status", "when", "gives"], answers), refused]
    return f"\n### {method.upper()} {path}\n\n" + "\n".join(part for part in parts if part)


def _content(content: JsonObject) -> str:
    return ", ".join(f"{code(media)} {type_of(found['schema'])}".strip() for media, found in content.items())


def _schema(name: str, schema: JsonObject) -> str:
    properties = schema.get("properties", {})
    needed = schema.get("required", [])
    rows = [
        [code(each), type_of(found), "yes" if each in needed else "", found.get("description", "")]
        for each, found in properties.items()
    ]
    text = f"{schema['description']}\n\n" if "description" in schema else ""
    return f"\n### {name}\n\n{text}" + (table(["field", "takes", "always", ""], rows) or f"{type_of(schema)}.\n")


def type_of(schema: JsonObject) -> str:
    """Return in a few words what *schema* takes."""
    return " or ".join(_types(schema)) or "anything"


def _types(schema: JsonObject) -> Iterator[str]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        for each in schema.get(key, []):
            yield type_of(each)
    if "enum" in schema:
        yield ", ".join(code(cell(json.dumps(each))) for each in schema["enum"])
    elif "const" in schema:
        yield code(json.dumps(schema["const"]))
    elif schema.get("type") == "array":
        yield f"array of {type_of(schema.get('items', {}))}"
    elif "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        yield " or ".join(types) + _bounds(schema)


def _bounds(schema: JsonObject) -> str:
    bounds = [
        f"{word} {schema[key]:,}"
        for key, word in (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"))
        if key in schema
    ]
    return f", {' '.join(bounds)}" if bounds else ""
