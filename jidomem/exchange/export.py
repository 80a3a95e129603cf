"""A project's memory as the one document others read, in the forms of RDF.  Pure: commits in, bytes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import orjson
import pyoxigraph as ox

from jidomem import vocab
from jidomem.journal.commit import COMMIT, Commit
from jidomem.terms import Term, Triple, bare, iri, is_iri, line, literal, parts
from jidomem.vocab import TYPE, jido

OWL = "http://www.w3.org/2002/07/owl#"
_STRING = vocab.XSD + "string"
PREFIXES = {"jido": vocab.JIDO, "owl": OWL, "rdf": vocab.RDF, "rdfs": vocab.RDFS, "xsd": vocab.XSD}
#: The journal's own bookkeeping: how and when things were recorded, not what is remembered.
BOOKKEEPING = frozenset(
    map(jido, ("recordedAt", "recordedIn", "conflictKey", "idempotencyKey", "requestDigest", "receipt"))
)


def turtle(project: str, commits: Iterable[Commit], ontology_version: str) -> bytes:
    """Return `<project>_memory.ttl`: an owl:Ontology that imports the memory ontology, and all that is remembered.

    The bytes depend on what is remembered alone, not on how commits were grouped or in which order they are given.
    """
    text = "\n".join(map(line, _document(project, commits, ontology_version)))
    quads = ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
    triples = (ox.Triple(quad.subject, quad.predicate, quad.object) for quad in quads)
    return ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=PREFIXES) or b""


def jsonld(project: str, commits: Iterable[Commit], ontology_version: str) -> bytes:
    """Return the same document as JSON-LD 1.1, its context in it: an object for each thing described, in order."""
    rows = _document(project, commits, ontology_version)
    schemes = {term[1:].partition(":")[0] for row in rows for term in row if is_iri(term)}
    context = {prefix: whole for prefix, whole in PREFIXES.items() if prefix not in schemes}  # jido:x may be an IRI
    graph = [_node(subject, said, context) for subject, said in groupby(rows, key=lambda row: row[0])]
    return orjson.dumps({"@context": context, "@graph": graph}, option=orjson.OPT_INDENT_2) + b"\n"


def nquads(graphs: Mapping[str, Iterable[Commit]]) -> bytes:
    """Return what the commits of *graphs* (bare IRI -> commits) say, a statement a line, each with its graph."""
    lines = (f"{line(row)[:-2]} {iri(graph)} .\n" for graph in sorted(graphs) for row in _said(graphs[graph]))
    return "".join(lines).encode()


def _document(project: str, commits: Iterable[Commit], ontology_version: str) -> list[Triple]:
    own = iri(f"{vocab.BASE}projects/{project}/memory")
    header = [
        (own, TYPE, iri(OWL + "Ontology")),
        (own, vocab.LABEL, literal(f"The memory of {project}")),
        (own, iri(OWL + "imports"), jido("JidoMemoryOntology")),
        (own, iri(OWL + "versionInfo"), literal(ontology_version)),
    ]
    return [*header, *_said(commits)]


def _said(commits: Iterable[Commit]) -> list[Triple]:
    return sorted({triple for commit in commits for triple in commit.triples if _is_content(triple)})


def _is_content(triple: Triple) -> bool:
    subject, predicate, _ = triple
    return not (predicate in BOOKKEEPING or subject.startswith((f"<{COMMIT}", f"<{vocab.BASE}submissions/")))


def _node(subject: Term, said: Iterable[Triple], context: Mapping[str, str]) -> dict[str, Any]:
    node: dict[str, Any] = {"@id": bare(subject)}
    for predicate, rows in groupby(said, key=lambda row: row[1]):
        if predicate == TYPE:
            key, values = "@type", [_compact(bare(value), context) for _, _, value in rows]
        else:
            key, values = _compact(bare(predicate), context), [_value(value, context) for _, _, value in rows]
        node[key] = values[0] if len(values) == 1 else values
    return node


def _value(value: Term, context: Mapping[str, str]) -> Any:
    if is_iri(value):
        return {"@id": bare(value)}
    said = parts(value)
    if said.language:
        return {"@value": said.text, "@language": said.language}
    return said.text if said.datatype == _STRING else {"@value": said.text, "@type": _compact(said.datatype, context)}


def _compact(name: str, context: Mapping[str, str]) -> str:
    """Return an IRI with its prefix, where it has one of *context*."""
    for prefix, whole in context.items():
        rest = name.removeprefix(whole)
        if rest not in ("", name) and not rest.startswith("//"):
            return f"{prefix}:{rest}"
    return name
