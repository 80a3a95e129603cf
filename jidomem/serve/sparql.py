"""The SPARQL 1.1 Protocol, queries only: read from the request, judged, and answered by a child process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from flask import Response, request
from werkzeug.datastructures import MultiDict

from jidomem import sparql
from jidomem.dataset import Dataset, unknown_graphs
from jidomem.errors import InvalidRequest, PolicyDenied
from jidomem.serve import description, fields, wire
from jidomem.serve.accept import named, negotiate
from jidomem.serve.positions import reach
from jidomem.serve.site import Site
from jidomem.vocab import graphs_of

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
#: The fields that may stand several times: the dataset, and what clients say of the format, by three names at once.
DATASET, FORMAT = ("default-graph-uri", "named-graph-uri"), ("format", "output", "results")
#: What they call a format -> the media types it may be.
_FORMATS = {
    "json": ("application/sparql-results+json", "application/json", "application/ld+json"),
    "xml": ("application/sparql-results+xml", "application/xml", "application/rdf+xml"),
    "csv": ("text/csv",),
    "tsv": ("text/tab-separated-values",),
    "turtle": ("text/turtle",),
    "n3": ("text/turtle", "application/n-triples"),
    "rdf": ("application/rdf+xml",),
    "rdf+xml": ("application/rdf+xml",),
    "json-ld": ("application/ld+json",),
}
_BESIDE = ("timeout", "as_of", "min_position", *DATASET, *FORMAT)

#: Characters of an IRI that stand in a header as they are, and how many unknown graphs a header names.
_IN_IRIS, _MOST_NAMED = ":/?#[]@!$&'()*+,;=%", 5

Fields = Mapping[str, Sequence[str]]


def get(site: Site, project: str | None = None) -> Response:
    """Return the answer to the query in the query string; without any field, the description of the service."""
    if not request.query_string:
        return description.describe(site, _project(site, project), GRAPHS)
    return _answer(site, project, _known(request.args, "query", *_BESIDE))


def post(site: Site, project: str | None = None) -> Response:
    """Return the answer to the query in the body, as it is or in a form."""
    kind = wire.content_type(QUERY, FORM, UPDATE)
    if kind == UPDATE:
        raise refused("this is an update")
    data = wire.body()
    if kind == FORM:
        for name in request.args:
            raise InvalidRequest(f"{name} stands beside the form", hint=f"write {name} in the form, with the query")
        return _answer(site, project, _known(fields.read(data, "the form"), "query", *_BESIDE))
    return _answer(site, project, {**_known(request.args, *_BESIDE), "query": [_text(data)]})


def _known(found: MultiDict[str, str], *known: str) -> Fields:
    """Return the values of each field.

    Raises InvalidRequest for a field that is unknown, or stands twice, and PolicyDenied for an update.
    """
    if "update" in found and "query" not in found:
        raise refused("this is an update")
    for name in found:
        if name not in known:
            raise wire.unknown(f"{request.path} takes no {name!r} here", name, known)
    single = found.copy()
    several = {name: single.poplist(name) for name in (*DATASET, *FORMAT)}
    return {**several, **{name: [value] for name, value in wire.once(single).items()}}


def _project(site: Site, project: str | None) -> str:
    """Return the project that is asked; raises NotFound for one there is not."""
    name = site.default() if project is None else project
    site.memory.catch_up(name)
    return name


def _answer(site: Site, project: str | None, given: Fields) -> Response:
    if "query" not in given:
        raise InvalidRequest("there is no query", hint="give query=SELECT..., or POST it as application/sparql-query")
    limits = site.memory.settings.limits
    text = sparql.without_service_prefixes(given["query"][0])
    code = sparql.check(text, limits.query_text, limits.query_nesting)
    name = _project(site, project)
    word = sparql.first_word(code)
    asks_graph = word in ("CONSTRUCT", "DESCRIBE")
    reach(site, name, {"min_position": given["min_position"][0]} if "min_position" in given else {})
    media, form = _format(GRAPHS if asks_graph else TRUTHS if word == "ASK" else ROWS, given)
    instead = Dataset(*asked) if any(asked := [given[which] for which in DATASET]) else None
    unknown = unknown_graphs(code, graphs_of(name), instead)
    found = site.memory.pool.answer(
        name,
        text,
        rows_as="json" if asks_graph else form,
        graph_as=form if asks_graph else "turtle",
        as_of=given.get("as_of", (None,))[0],
        dataset=instead,
        seconds=_seconds(given, limits.query_seconds),
        asker=wire.asker(),
    )
    response = wire.document(found, media)
    if unknown:
        graphs = ", ".join(f"<{quote(graph, safe=_IN_IRIS)}>" for graph in unknown[:_MOST_NAMED])
        response.headers["Warning"] = f'199 jidomem "not a graph of this project, read as empty: {graphs}"'
    return response


def _format(offers: Mapping[str, str], given: Fields) -> tuple[str, str]:
    """Return the media type wanted most, and what the engine calls it."""
    said = [value for name in FORMAT for value in given[name]]
    offered = named(said, _FORMATS, offers) if said else offers
    return negotiate({media: (media, form) for media, form in offered.items()})


def _seconds(given: Fields, most: float) -> float:
    """Return how many seconds the query may take: the server's limit, or what lowers it."""
    if "timeout" not in given:
        return most
    text = given["timeout"][0]
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


def refused(what: str) -> PolicyDenied:
    """Return the refusal of *what* would change something."""
    return PolicyDenied(
        f"{what}, and the endpoint reads only",
        hint="submit an intent: POST /projects/{project}/intents",
        code="update_refused",
    )
