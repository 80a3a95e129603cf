"""Every format of triples and of query results returns a text with its carriage returns."""

from xml.etree import ElementTree

import pyoxigraph as ox
import pytest

from jidomem.index import results
from jidomem.index.store import write_triples
from jidomem.rdf.terms import literal

TEXT = "one\r\ntwo\rthree\nfour"
TRIPLE = ("<urn:item>", "<urn:text>", literal(TEXT))
LIMITS = results.AnswerLimits()


@pytest.mark.parametrize("form", results.GRAPH_FORMATS)
def test_triples_keep_carriage_returns(form):
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode("urn:item"), ox.NamedNode("urn:text"), ox.Literal(TEXT)))
    graph = results.GRAPH_FORMATS[form]

    answer = store.query("CONSTRUCT WHERE { ?item ?is ?text }")
    for data in (results.write_result(answer, "json", form, LIMITS).data, write_triples([TRIPLE], form, {})):
        (row,) = ox.parse(data, format=graph)
        assert row.object.value == TEXT


def test_results_in_xml_keep_carriage_returns():
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode("urn:item"), ox.NamedNode("urn:text"), ox.Literal(TEXT)))

    data = results.write_result(store.query("SELECT ?text { ?item ?is ?text }"), "xml", "turtle", LIMITS).data
    assert [each.text for each in ElementTree.fromstring(data).iter() if each.tag.endswith("literal")] == [TEXT]
    data = results.write_result(store.query("CONSTRUCT WHERE { ?item ?is ?text }"), "xml", "rdfxml", LIMITS).data
    assert [each.text for each in ElementTree.fromstring(data).iter() if each.tag.endswith("text")] == [TEXT]
