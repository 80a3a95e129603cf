"""The SPARQL 1.1 routes: queries by the protocol, the service description, and graphs by the Graph Store Protocol.

Updates are refused; queries run in worker processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from flask import Response, request
from werkzeug.datastructures import MultiDict

from jidomem.errors import InvalidRequest, NotFound, PolicyDenied, nearest_names
from jidomem.index.store import write_triples
from jidomem.rdf import sparql
from jidomem.rdf.sparql import Dataset, unknown_graphs
from jidomem.rdf.terms import Triple, iri
from jidomem.rdf.vocab import GRAPHS as NAMES
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, RDF, graph_iri, graphs_of
from jidomem.serve import wire
from jidomem.serve.memories import wait_for_version
from jidomem.serve.server_state import RequestContext
from jidomem.serve.wire import named, negotiate

_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMAT_NAMESPACE = "http://www.w3.org/ns/formats/"
_RESULTS = (
    *("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV"),
    *("Turtle", "N-Triples", "RDF_XML", "JSON-LD", "TriG", "N-Quads"),
)


def describe(site: RequestContext, project: str, offers: Mapping[str, str]) -> Response:
    """Return the service description of the endpoint, in the preferred format of *offers*."""
    media, form = negotiate({media: (media, form) for media, form in offers.items()})
    endpoint = request.base_url if site.public_url is None else site.public_url + quote(request.path)
    data = write_triples(triples(endpoint, graphs_of(project)), form, {"sd": _SD, "format": _FORMAT_NAMESPACE})
    return wire.document(data, media)


def triples(endpoint: str, graphs: Sequence[str]) -> Iterator[Triple]:
    """Yield the service description of *endpoint*, whose default graph is the union of *graphs*."""
    service, data, union = (f"{endpoint}#{part}" for part in ("service", "dataset", "default-graph"))
    yield _description_triple(service, "a", "Service")
    yield iri(service), iri(f"{_SD}endpoint"), iri(endpoint)
    yield _description_triple(service, "supportedLanguage", "SPARQL11Query")
    yield _description_triple(service, "feature", "UnionDefaultGraph")
    yield iri(service), iri(f"{_SD}defaultEntailmentRegime"), iri("http://www.w3.org/ns/entailment/Simple")
    for name in _RESULTS:
        yield iri(service), iri(f"{_SD}resultFormat"), iri(f"{_FORMAT_NAMESPACE}{name}")
    yield iri(service), iri(f"{_SD}defaultDataset"), iri(data)
    yield _description_triple(data, "a", "Dataset")
    yield iri(data), iri(f"{_SD}defaultGraph"), iri(union)
    yield _description_triple(union, "a", "Graph")
    for number, name in enumerate(graphs, start=1):
        graph = f"{endpoint}#graph-{number}"
        yield iri(data), iri(f"{_SD}namedGraph"), iri(graph)
        yield _description_triple(graph, "a", "NamedGraph")
        yield iri(graph), iri(f"{_SD}name"), iri(name)


def _description_triple(subject: str, predicate: str, value: str) -> Triple:
    return iri(subject), iri(f"{RDF}type" if predicate == "a" else f"{_SD}{predicate}"), iri(f"{_SD}{value}")


FORM, QUERY, UPDATE = "application/x-www-form-urlencoded", "application/sparql-query", "application/sparql-update"
#: Media type -> the format of booleans in the engine.
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
#: The fields that may be repeated: the dataset; and the three names of the field for the format.
DATASET, FORMAT = ("default-graph-uri", "named-graph-uri"), ("format", "output", "results")
#: The name of a format -> its media types.
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

#: Characters of an IRI that need no escape in a header, and the most unknown graphs that a header names.
_IN_IRIS, _MOST_NAMED = ":/?#[]@!$&'()*+,;=%", 5

Fields = Mapping[str, Sequence[str]]


def get(site: RequestContext, project: str | None = None) -> Response:
    """Return the answer to the query in the query string; without any field, the service description."""
    if not request.query_string:
        return describe(site, _project(site, project), GRAPHS)
    return _answer(site, project, _single_fields(request.args, "query", *_BESIDE))


def post(site: RequestContext, project: str | None = None) -> Response:
    """Return the answer to the query in the body, plain or as a form."""
    kind = wire.content_type(QUERY, FORM, UPDATE)
    if kind == UPDATE:
        raise refused("this is an update")
    data = wire.body()
    if kind == FORM:
        for name in request.args:
            raise InvalidRequest(
                f"{name} is in the query string beside the form", hint=f"write {name} in the form, with the query"
            )
        return _answer(site, project, _single_fields(wire.read(data, "the form"), "query", *_BESIDE))
    return _answer(site, project, {**_single_fields(request.args, *_BESIDE), "query": [_text(data)]})


def _single_fields(given: MultiDict[str, str], *allowed: str) -> Fields:
    """Return the values of each field.

    Raises InvalidRequest for a field that is unknown or given twice, and PolicyDenied for an update.
    """
    if "update" in given and "query" not in given:
        raise refused("this is an update")
    for name in given:
        if name not in allowed:
            raise wire.unknown(f"{request.path} takes no {name!r:.200} here", name, allowed)
    single = given.copy()
    several = {name: single.poplist(name) for name in (*DATASET, *FORMAT)}
    return {**several, **{name: [value] for name, value in wire.single_values(single).items()}}


def _project(site: RequestContext, project: str | None) -> str:
    """Return the project; raise NotFound for an unknown one."""
    name = site.default() if project is None else project
    site.memory.catch_up(name)
    return name


def _answer(site: RequestContext, project: str | None, given: Fields) -> Response:
    if "query" not in given:
        raise InvalidRequest("there is no query", hint="give query=SELECT..., or POST it as application/sparql-query")
    limits = site.memory.settings.limits
    text = sparql.without_service_prefixes(given["query"][0])
    code = sparql.check(text, limits.query_text, limits.query_nesting)
    name = _project(site, project)
    word = sparql.first_word(code)
    asks_graph = word in ("CONSTRUCT", "DESCRIBE")
    wait_for_version(site, name, given["min_position"][0] if "min_position" in given else None)  # also of a form
    media, form = _format(GRAPHS if asks_graph else TRUTHS if word == "ASK" else ROWS, given)
    dataset = Dataset(*dataset_values) if any(dataset_values := [given[which] for which in DATASET]) else None
    unknown = unknown_graphs(code, graphs_of(name), dataset)
    answer = site.memory.pool.answer(
        name,
        text,
        rows_as="json" if asks_graph else form,
        graph_as=form if asks_graph else "turtle",
        as_of=given.get("as_of", (None,))[0],
        dataset=dataset,
        seconds=_seconds(given, limits.query_seconds),
        asker=wire.client_descriptor(),
    )
    response = wire.document(answer, media)
    if unknown:
        graphs = ", ".join(f"<{quote(graph, safe=_IN_IRIS)}>" for graph in unknown[:_MOST_NAMED])
        response.headers["Warning"] = f'199 jidomem "not a graph of this project, read as empty: {graphs}"'
    return response


def _format(offers: Mapping[str, str], given: Fields) -> tuple[str, str]:
    """Return the preferred media type, and the name of its format in the engine."""
    names = [value for name in FORMAT for value in given[name]]
    offered = named(names, _FORMATS, offers) if names else offers
    return negotiate({media: (media, form) for media, form in offered.items()})


def _seconds(given: Fields, most: float) -> float:
    """Return the seconds that the query may take: the limit of the server, or a lower one of the request."""
    if "timeout" not in given:
        return most
    text = given["timeout"][0]
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= most:
        raise InvalidRequest(
            f"timeout={text!r:.200} is not a number of seconds from 0 to {most:g}",
            hint=f"give timeout={most:g} or less",
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
    """Return the refusal of *what*, an update."""
    return PolicyDenied(
        f"{what}, and the endpoint is read-only",
        hint="submit an intent: POST /projects/{project}/intents",
        code="update_refused",
    )


_ALL = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


def get_graph(site: RequestContext, project: str) -> Response:
    """Return a graph by its short name or IRI, or the default graph."""
    site.memory.catch_up(project)  # raises for an unknown project
    arguments = wire.arguments("graph", "default", "min_position")
    graph = _graph(project, {name: value for name, value in arguments.items() if name != "min_position"})
    media, form = negotiate({media: (media, form) for media, form in GRAPHS.items()})
    data = site.memory.pool.answer(
        project,
        _ALL,
        rows_as="json",
        graph_as=_UNNAMED.get(form, form),
        dataset=None if graph is None else Dataset([graph], []),
        asker=wire.client_descriptor(),
    )
    return wire.document(data if graph is None else _named(data, graph, form), media)


def refuse(site: RequestContext, project: str) -> Response:
    """Raise PolicyDenied: graphs are read-only over HTTP."""
    raise refused(f"{request.method} would change a graph")


def _graph(project: str, given: Mapping[str, str]) -> str | None:
    """Return the IRI of the graph, None for the default one; raise InvalidRequest and NotFound."""
    if len(given) != 1 or given.get("default", "") != "":
        hint = f"give ?graph={'|'.join(_short(project))}, or ?default"
        raise InvalidRequest("this names no graph, or more than one", hint=hint)
    if "default" in given:
        return None
    name, known = given["graph"], _short(project)
    if name in known.values():
        return name
    if name not in known:
        near = nearest_names(name, [*known, *known.values()]) or known
        raise NotFound(f"there is no graph {name!r:.200} in {project}", hint=f"there is {', '.join(near)}")
    return known[name]


def _short(project: str) -> dict[str, str]:
    return {**{name: graph_iri(project, name) for name in NAMES}, "ontology": ONTOLOGY_GRAPH}


#: The formats with graph names -> the triple format from which each is made.
_UNNAMED = {"nquads": "ntriples", "trig": "turtle"}


def _named(data: bytes, graph: str, form: str) -> bytes:
    """Add the name of the graph to *data*, in the formats that have one."""
    name = f"<{graph}>".encode()
    if form == "nquads":
        return b"".join(b"%s %s .\n" % (line[:-2].rstrip(), name) for line in data.splitlines())
    if form == "trig":
        lines = data.splitlines(keepends=True)
        head = sum(1 for line in lines if line.startswith(b"@prefix "))
        return b"".join([*lines[:head], name, b" {\n", *lines[head:], b"}\n"])
    return data
