"""A project's memory as the one Turtle file others read.  Pure: commits in, bytes out."""

from __future__ import annotations

from collections.abc import Iterable

import pyoxigraph as ox

from jidomem import vocab
from jidomem.journal.commit import COMMIT, Commit
from jidomem.terms import Triple, iri, line, literal
from jidomem.vocab import TYPE, jido

OWL = "http://www.w3.org/2002/07/owl#"
PREFIXES = {"jido": vocab.JIDO, "owl": OWL, "rdf": vocab.RDF, "rdfs": vocab.RDFS, "xsd": vocab.XSD}
#: The journal's own bookkeeping: how and when things were recorded, not what is remembered.
BOOKKEEPING = frozenset(
    map(jido, ("recordedAt", "recordedIn", "conflictKey", "idempotencyKey", "requestDigest", "receipt"))
)


def turtle(project: str, commits: Iterable[Commit], ontology_version: str) -> bytes:
    """Return `<project>_memory.ttl`: an owl:Ontology that imports the memory ontology, and all that is remembered.

    The bytes depend on what is remembered alone, not on how commits were grouped or in which order they are given.
    """
    own = iri(f"{vocab.BASE}projects/{project}/memory")
    header = [
        (own, TYPE, iri(OWL + "Ontology")),
        (own, vocab.LABEL, literal(f"The memory of {project}")),
        (own, iri(OWL + "imports"), jido("JidoMemoryOntology")),
        (own, iri(OWL + "versionInfo"), literal(ontology_version)),
    ]
    remembered = sorted({triple for commit in commits for triple in commit.triples if _is_content(triple)})
    text = "\n".join(line(triple) for triple in [*header, *remembered])
    quads = ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
    triples = (ox.Triple(quad.subject, quad.predicate, quad.object) for quad in quads)
    return ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=PREFIXES) or b""


def _is_content(triple: Triple) -> bool:
    subject, predicate, _ = triple
    return not (predicate in BOOKKEEPING or subject.startswith((f"<{COMMIT}", f"<{vocab.BASE}submissions/")))
