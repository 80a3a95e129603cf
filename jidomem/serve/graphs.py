"""The SPARQL 1.1 Graph Store Protocol, reads only: one graph of a project, or the union of all, in any format."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from flask import Response, request

from jidomem.dataset import Dataset
from jidomem.errors import InvalidRequest, NotFound
from jidomem.serve import wire
from jidomem.serve.accept import negotiate
from jidomem.serve.positions import reach
from jidomem.serve.site import Site
from jidomem.serve.sparql import GRAPHS, refused
from jidomem.vocab import GRAPHS as NAMES
from jidomem.vocab import ONTOLOGY_GRAPH, graph_iri

_ALL = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


def get(site: Site, project: str) -> Response:
    """Return the graph that is asked for by its short name, or by its IRI; or the default graph."""
    site.memory.catch_up(project)  # raises for a project there is not
    found = wire.arguments("graph", "default", "min_position")
    graph = _graph(project, {name: value for name, value in found.items() if name != "min_position"})
    reach(site, project, found)
    media, form = negotiate({media: (media, form) for media, form in GRAPHS.items()})
    data = site.memory.pool.answer(
        project,
        _ALL,
        rows_as="json",
        graph_as=_UNNAMED.get(form, form),
        dataset=None if graph is None else Dataset([graph], []),
        asker=wire.asker(),
    )
    return wire.document(data if graph is None else _named(data, graph, form), media)


def refuse(site: Site, project: str) -> Response:
    """Raise PolicyDenied: no graph is written here."""
    raise refused(f"{request.method} would change a graph")


def _graph(project: str, found: Mapping[str, str]) -> str | None:
    """Return the IRI of the graph that is asked for, None for the default one; raises what cannot be read or found."""
    if len(found) != 1 or found.get("default", "") != "":
        hint = f"give ?graph={'|'.join(_short(project))}, or ?default"
        raise InvalidRequest("this names no graph, or more than one", hint=hint)
    if "default" in found:
        return None
    name, known = found["graph"], _short(project)
    if name in known.values():
        return name
    if name not in known:
        near = get_close_matches(name, [*known, *known.values()], n=1) or known
        raise NotFound(f"there is no graph {name!r} in {project}", hint=f"there is {', '.join(near)}")
    return known[name]


def _short(project: str) -> dict[str, str]:
    """Return the IRI of each graph by its short name."""
    return {**{name: graph_iri(project, name) for name in NAMES}, "ontology": ONTOLOGY_GRAPH}


#: The formats that name the graph -> the one each is made of.
_UNNAMED = {"nquads": "ntriples", "trig": "turtle"}


def _named(data: bytes, graph: str, form: str) -> bytes:
    """Return triples with the name of their graph, in the formats that have one."""
    name = f"<{graph}>".encode()
    if form == "nquads":
        return b"".join(b"%s %s .\n" % (line[:-2].rstrip(), name) for line in data.splitlines())
    if form == "trig":
        lines = data.splitlines(keepends=True)
        head = sum(1 for line in lines if line.startswith(b"@prefix "))
        return b"".join([*lines[:head], name, b" {\n", *lines[head:], b"}\n"])
    return data
