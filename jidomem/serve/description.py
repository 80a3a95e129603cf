"""What a SPARQL endpoint says of itself: a service description (SPARQL 1.1), in any format for graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from flask import Response, request

from jidomem.index.answers import written
from jidomem.serve import wire
from jidomem.serve.accept import negotiate
from jidomem.serve.site import Site
from jidomem.terms import Triple, iri
from jidomem.vocab import RDF, graphs_of

_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS = "http://www.w3.org/ns/formats/"
_RESULTS = (
    *("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV"),
    *("Turtle", "N-Triples", "RDF_XML", "JSON-LD", "TriG", "N-Quads"),
)


def describe(site: Site, project: str, offers: Mapping[str, str]) -> Response:
    """Return the description of the endpoint that was asked, in the format of *offers* wanted most."""
    media, form = negotiate({media: (media, form) for media, form in offers.items()})
    endpoint = request.base_url if site.public_url is None else site.public_url + quote(request.path)
    data = written(triples(endpoint, graphs_of(project)), form, {"sd": _SD, "format": _FORMATS})
    return wire.document(data, media)


def triples(endpoint: str, graphs: list[str]) -> Iterator[Triple]:
    """Yield what is said of the service at *endpoint*, whose default graph is the union of *graphs*."""
    service, data, union = (f"{endpoint}#{part}" for part in ("service", "dataset", "default-graph"))
    yield _said(service, "a", "Service")
    yield iri(service), iri(f"{_SD}endpoint"), iri(endpoint)
    yield _said(service, "supportedLanguage", "SPARQL11Query")
    yield _said(service, "feature", "UnionDefaultGraph")
    yield iri(service), iri(f"{_SD}defaultEntailmentRegime"), iri("http://www.w3.org/ns/entailment/Simple")
    for name in _RESULTS:
        yield iri(service), iri(f"{_SD}resultFormat"), iri(f"{_FORMATS}{name}")
    yield iri(service), iri(f"{_SD}defaultDataset"), iri(data)
    yield _said(data, "a", "Dataset")
    yield iri(data), iri(f"{_SD}defaultGraph"), iri(union)
    yield _said(union, "a", "Graph")
    for number, name in enumerate(graphs, start=1):
        graph = f"{endpoint}#graph-{number}"
        yield iri(data), iri(f"{_SD}namedGraph"), iri(graph)
        yield _said(graph, "a", "NamedGraph")
        yield iri(graph), iri(f"{_SD}name"), iri(name)


def _said(subject: str, predicate: str, value: str) -> Triple:
    return iri(subject), iri(f"{RDF}type" if predicate == "a" else f"{_SD}{predicate}"), iri(f"{_SD}{value}")
