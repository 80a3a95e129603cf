"""docs/reference/shapes.md, written from shapes/*.ttl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import rdflib
from rdflib.collection import Collection
from rdflib.namespace import RDF, SH

from docs.generate.tables import code, table
from jidomem.base import files
from jidomem.check.terms import short
from jidomem.rdf.terms import iri

_INTRODUCTION = """\
# Shapes: every rule

What memories are held to, written from `shapes/*.ttl`. A rule is a shape: its IRI is `https://jido.ai/shapes#` and the name here, and
its message tells the author what to do. [The ontology](../ontology.md#the-shapes) says which severity counts where, and how a
project adds rules of its own.
"""
_JIDO = rdflib.Namespace("https://jido.ai/ontology#")
_DESCRIBED = {SH.message, SH.severity, SH.path, SH.property, RDF.type, _JIDO.checkSeverity, _JIDO.atWriteOnly}
_TARGETS = (SH.targetClass, SH.targetSubjectsOf, SH.targetObjectsOf, SH.targetNode)


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    text = _INTRODUCTION
    head = ["rule", "speaks about", "holds", "severity", "message"]
    for path in files.shape_files():
        text += f"\n## {path.stem}\n\n{table(head, _rules(path))}"
    return {"reference/shapes.md": text}


def _rules(path: Path) -> Iterator[list[str]]:
    graph = rdflib.Graph().parse(path)
    for shape in sorted(set(graph.subjects(SH.message))):
        owners = {shape, *graph.subjects(SH.property, shape)}
        targets = sorted({target for owner in owners for kind in _TARGETS for target in graph.objects(owner, kind)})
        message, severity = graph.value(shape, SH.message), graph.value(shape, SH.severity)
        path_of = graph.value(shape, SH.path)
        about = ", ".join(_word(graph, target) for target in targets)
        yield [
            code(str(shape).rpartition("#")[2]),
            f"{about}: {_word(graph, path_of)}" if path_of is not None else about,
            ", ".join(sorted(_constraints(graph, shape))),
            _severity(graph, shape, severity),
            str(message),
        ]


def _severity(graph: rdflib.Graph, shape: rdflib.term.Node, severity: rdflib.term.Node | None) -> str:
    grave = str(severity or SH.Violation).rpartition("#")[2].casefold()
    in_check = graph.value(shape, _JIDO.checkSeverity)
    if in_check is not None:
        grave += f"; in check {str(in_check).rpartition('#')[2].casefold()}"
    return f"{grave}; at write alone" if graph.value(shape, _JIDO.atWriteOnly) is not None else grave


def _constraints(graph: rdflib.Graph, shape: rdflib.term.Node) -> Iterator[str]:
    for predicate, value in graph.predicate_objects(shape):
        if predicate not in _DESCRIBED and predicate not in _TARGETS:
            yield f"{str(predicate).rpartition('#')[2]} {_word(graph, value)}"


def _word(graph: rdflib.Graph, value: rdflib.term.Node) -> str:
    if (value, RDF.first, None) in graph:
        return ", ".join(_word(graph, each) for each in Collection(graph, value))
    if isinstance(value, rdflib.BNode):
        constraints = ", ".join(sorted(_constraints(graph, value)))
        path = graph.value(value, SH.path)
        return f"({constraints})" if path is None else f"({_word(graph, path)}: {constraints})"
    return code(short(iri(str(value))) if isinstance(value, rdflib.URIRef) else value)
