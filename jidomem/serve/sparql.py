"""SPARQL over HTTP, queries only: read from the request, judged, and answered by a child process."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from flask import Response, request

from jidomem import sparql
from jidomem.errors import InvalidRequest, PolicyDenied
from jidomem.serve import wire
from jidomem.serve.site import Site

FORM, QUERY, UPDATE = "application/x-www-form-urlencoded", "application/sparql-query", "application/sparql-update"
#: Media type -> what the engine calls it.
TRUTHS = {
    "application/sparql-results+json": "json",
    "application/json": "json",
    "application/sparql-results+xml": "xml",
    "application/xml": "xml",
}
ROWS = {**TRUTHS, "text/csv": "csv", "text/tab-separated-values": "tsv"}
GRAPHS = {
    "text/turtle": "turtle",
    "application/n-triples": "ntriples",
    "application/rdf+xml": "rdfxml",
    "application/ld+json": "jsonld",
    "application/trig": "trig",
    "application/n-quads": "nquads",
}
_ARGUMENTS = ("query", "timeout", "as_of")


def get(site: Site, project: str | None = None) -> Response:
    """Return the answer to the query in the query string."""
    return _answer(site, project, wire.arguments(*_ARGUMENTS))


def post(site: Site, project: str | None = None) -> Response:
    """Return the answer to the query in the body, as it is or in a form."""
    kind = wire.content_type(QUERY, FORM, UPDATE)
    if kind == UPDATE:
        raise _update()
    text = _text(wire.body())
    if kind == QUERY:
        return _answer(site, project, {**wire.arguments("timeout", "as_of"), "query": text})
    wire.arguments()
    return _answer(site, project, _form(text))


def _form(text: str) -> dict[str, str]:
    """Return the fields of a form; raises InvalidRequest for one that is unknown, or stands twice."""
    try:
        fields = parse_qs(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=100)
    except ValueError as error:
        raise InvalidRequest(
            f"the form cannot be read: {error}", hint="send query=SELECT..., percent-encoded"
        ) from None
    if "update" in fields:
        raise _update()
    for name, values in fields.items():
        if name not in _ARGUMENTS:
            raise wire.unknown(f"{request.path} takes no field {name!r}", name, _ARGUMENTS)
        if len(values) > 1:
            raise InvalidRequest(f"{name} is given {len(values)} times", hint=f"give {name} once")
    return {name: values[0] for name, values in fields.items()}


def _answer(site: Site, project: str | None, given: Mapping[str, str]) -> Response:
    if "query" not in given:
        raise InvalidRequest("there is no query", hint="give query=SELECT..., or POST it as application/sparql-query")
    text = given["query"]
    limits = site.memory.settings.limits
    code = sparql.check(text, limits.query_text, limits.query_nesting)
    name = site.default() if project is None else project
    site.memory.catch_up(name)  # raises for a project there is not
    word = sparql.first_word(code)
    asks_graph = word in ("CONSTRUCT", "DESCRIBE")
    offers = GRAPHS if asks_graph else TRUTHS if word == "ASK" else ROWS
    media, form = wire.negotiate({media: (media, form) for media, form in offers.items()})
    found = site.memory.pool.answer(
        name,
        text,
        rows_as="json" if asks_graph else form,
        graph_as=form if asks_graph else "turtle",
        as_of=given.get("as_of"),
        seconds=_seconds(given, limits.query_seconds),
    )
    return Response(found, content_type=f"{media}; charset=utf-8" if media.startswith("text/") else media)


def _seconds(given: Mapping[str, str], most: float) -> float:
    """Return how many seconds the query may take: the server's limit, or what lowers it."""
    text = given.get("timeout")
    if text is None:
        return most
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= most:
        raise InvalidRequest(
            f"timeout={text!r} is no number of seconds from 0 to {most:g}", hint=f"give timeout={most:g} or less"
        )
    return seconds


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"the body is not UTF-8 at byte {error.start}", hint="send UTF-8 text", code="malformed_query"
        ) from None


def _update() -> PolicyDenied:
    return PolicyDenied(
        "this is an update, and the endpoint reads only",
        hint="submit an intent: POST /projects/{project}/intents",
        code="update_refused",
    )
