"""The W3C SHACL test suite (core and SHACL-SPARQL), whole, as `check --data --shapes` judges it."""

import re
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from jidomem.check.rules import check_data
from jidomem.check.sources import read
from jidomem.errors import Failed, PolicyDenied
from jidomem.rdf.terms import iri, plain_value
from jidomem.rdf.vocab import RDF, local_name
from jidomem.schema.shacl import validate_graph

SUITE = Path(__file__).parent / "shacl"
MF, SHT = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#", "http://www.w3.org/ns/shacl-test#"
SH = "http://www.w3.org/ns/shacl#"
#: Tests that do not pass, each with the reason that docs/check.md gives.
EXCEPTIONS = {
    "core/misc/severity-002": "a severity of its own counts as a violation",
    "sparql/pre-binding/shapesGraph-001": "`$shapesGraph`",
}


class Graph:
    """The triples of one file, its own location as base IRI."""

    def __init__(self, path):
        self.triples = read(str(path), path.read_bytes(), path.as_uri())
        self._by = defaultdict(list)
        for subject, predicate, value in self.triples:
            self._by[subject, predicate].append(value)

    def values(self, node, name):
        return self._by[node, iri(name)]

    def value(self, node, name):
        return next(iter(self.values(node, name)), None)


def suite():
    """Every test of the suite: its name, and the graph and node that describe it."""
    for path in sorted(SUITE.rglob("*.ttl")):
        graph = Graph(path)
        for node in [s for s, p, o in graph.triples if (p, o) == (iri(RDF + "type"), iri(SHT + "Validate"))]:
            yield pytest.param(graph, node, id=path.relative_to(SUITE).with_suffix("").as_posix())


def file_of(node):
    return Path(unquote(urlparse(plain_value(node)).path))


def compared(term):
    """A term as results are compared: the labels of blank nodes mean nothing."""
    return None if term is None else "_:" if term.startswith("_:") else term


def single(path):
    """A path of one step; None for no path, and for longer ones, which have no IRI to compare."""
    return path if path and re.fullmatch("<[^<>]*>", path) else None


def expected(graph, report):
    """The results of a report, and those of their shapes that have an IRI."""
    results, shapes = Counter(), set()
    for result in graph.values(report, SH + "result"):
        focus, value = (compared(graph.value(result, SH + name)) for name in ("focusNode", "value"))
        path, severity = graph.value(result, SH + "resultPath"), graph.value(result, SH + "resultSeverity")
        results[focus, single(path), value, local_name(plain_value(severity)).lower()] += 1
        shapes.add((focus, single(path), value, graph.value(result, SH + "sourceShape")))
    return results, {each for each in shapes if each[3].startswith("<")}


CASES = list(suite())


@pytest.mark.filterwarnings("ignore")  # pyshacl and rdflib warn about what the suite is made to try
@pytest.mark.parametrize(("graph", "node"), [case for case in CASES if case.id not in EXCEPTIONS])
def test_a_report_is_the_one_the_suite_expects(graph, node):
    action, result = graph.value(node, MF + "action"), graph.value(node, MF + "result")
    data, shapes = (file_of(graph.value(action, SHT + name)) for name in ("dataGraph", "shapesGraph"))
    files = (str(data), data.read_bytes()), (str(shapes), shapes.read_bytes())
    if result == iri(SHT + "Failure"):
        with pytest.raises((Failed, PolicyDenied)):
            check_data(*files)
        return

    results, of_shapes = expected(graph, result)
    findings = validate_graph(Graph(data).triples, Graph(shapes).triples)
    actual = [(compared(each.focus), single(each.path), compared(each.value)) for each in findings]

    assert Counter((*key, each.severity) for key, each in zip(actual, findings, strict=True)) == results
    assert of_shapes <= {(*key, each.shape) for key, each in zip(actual, findings, strict=True)}
    assert bool(check_data(*files).problems) == (plain_value(graph.value(result, SH + "conforms")) == "false")


def test_the_suite_is_whole_and_its_exceptions_are_documented():
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text("utf-8")

    assert len(CASES) == 121
    assert set(EXCEPTIONS) <= {case.id for case in CASES}
    assert [name for name, reason in EXCEPTIONS.items() if name not in page or reason not in page] == []
