import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pyoxigraph as ox
import pytest

from jidomem.errors import InvalidRequest
from jidomem.index import OxigraphIndex, Serialized, Solutions
from jidomem.index.oxigraph import GRAPH_FORMATS
from jidomem.terms import parts
from jidomem.vocab import ONTOLOGY_GRAPH

A, B = "https://jido.ai/projects/a/graphs/long-term-context", "https://jido.ai/projects/b/graphs/long-term-context"
ROW = ("<urn:s>", "<urn:p>", '"a \\"b\\"\\n\\u0001é"')


@pytest.fixture
def index():
    index = OxigraphIndex()
    index.apply(A, "c1", [ROW, ("<urn:s>", "<urn:q>", "<urn:o>")])
    return index


def test_what_was_applied_is_given_back_to_the_letter(index):
    assert set(index.triples(A)) == {ROW, ("<urn:s>", "<urn:q>", "<urn:o>")}
    assert list(index.triples(A, None, "<urn:p>")) == list(index.triples(A, None, None, ROW[2])) == [ROW]
    assert list(index.triples(B)) == []


def test_a_commit_is_applied_once(index):
    index.apply(A, "c1", [("<urn:x>", "<urn:p>", '"1"')])
    assert index.applied(A) == {"c1"}
    assert list(index.triples(A, "<urn:x>")) == []


def test_a_commit_that_does_not_parse_leaves_nothing_behind(index):
    with pytest.raises(SyntaxError):
        index.apply(A, "c2", [("<urn:x>", "<urn:p>", '"1"'), ("<urn:x>", "<urn:p>", "")])
    assert list(index.triples(A, "<urn:x>")) == []
    assert index.applied(A) == {"c1"}


def test_reset_gives_one_graph_other_commits_and_leaves_the_rest_alone(index):
    index.apply(B, "c1", [ROW])
    index.reset(A, {"c2": [("<urn:x>", "<urn:p>", ROW[2])]})
    assert (list(index.triples(A)), index.applied(A)) == ([("<urn:x>", "<urn:p>", ROW[2])], {"c2"})
    assert (list(index.triples(B)), index.applied(B)) == ([ROW], {"c1"})
    index.apply(A, "c1", [ROW])
    assert set(index.triples(A)) == {("<urn:x>", "<urn:p>", ROW[2]), ROW}


def test_a_reader_sees_what_was_or_what_is_when_the_content_is_replaced(index):
    before, after = ([(f"<urn:{part}:{n}>", "<urn:p>", '"1"') for n in range(2000)] for part in "ab")
    index.reset(A, {"c": before})
    seen, done = set(), threading.Event()

    def look():
        while not done.is_set():
            found = index.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", graphs=[A])
            seen.add(found.rows[0][0])

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        for content in (after, before) * 10:
            index.reset(A, {"c": content})
        done.set()
        looking.result()
    assert {parts(count).text for count in seen} == {"2000"}


def test_the_ontology_is_replaced_whole(index):
    index.put_ontology([("<urn:A>", "<urn:sub>", "<urn:B>"), ("_:x", "<urn:sub>", '"tag"@en')])
    index.put_ontology([("<urn:C>", "<urn:sub>", "<urn:D>")])
    assert list(index.triples(ONTOLOGY_GRAPH)) == [("<urn:C>", "<urn:sub>", "<urn:D>")]


def test_a_query_sees_the_graphs_it_is_given_and_no_others(index):
    index.apply(B, "c1", [("<urn:s>", "<urn:p>", '"of b"')])
    for text in ("SELECT ?o { ?s <urn:p> ?o }", "SELECT ?o { GRAPH ?g { ?s <urn:p> ?o } }"):
        assert index.query(text, graphs=[B]) == Solutions(("o",), (('"of b"',),))
        assert index.query(text, graphs=[]) == Solutions(("o",), ())
        found = index.query(text, graphs=[A, B])
        assert isinstance(found, Solutions)
        assert {row[0] for row in found.rows} == {ROW[2], '"of b"'}


@pytest.mark.parametrize("term", [ROW[2], "<urn:o>", '"x"@en', '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'])
def test_a_variable_is_bound_as_a_term(index, term):
    assert index.query("SELECT ?o ?x {}", graphs=[A], bindings={"o": term}) == Solutions(("o", "x"), ((term, None),))


def test_ask_and_construct_are_answered(index):
    assert index.query("ASK { ?s <urn:q> ?o }", graphs=[A]) is True
    assert index.query("ASK { ?s <urn:q> ?o }", graphs=[B]) is False
    assert index.query("CONSTRUCT { ?o <urn:r> 1 } { ?s <urn:q> ?o }", graphs=[A]) == (
        ("<urn:o>", "<urn:r>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    )


def test_an_answer_is_written_in_the_format_asked_for_its_kind(index):
    select, ask = "SELECT ?o { ?s <urn:q> ?o }", "ASK { ?s <urn:q> ?o }"
    graph = "CONSTRUCT { ?s <urn:q> ?o } { ?s <urn:q> ?o }"
    assert index.serialized(select, graphs=[A], rows_as="tsv") == Serialized("select", b"?o\n<urn:o>\n")
    assert json.loads(index.serialized(select, graphs=[A]).data)["results"]["bindings"][0]["o"]["value"] == "urn:o"
    assert json.loads(index.serialized(ask, graphs=[A], rows_as="csv").data)["boolean"] is True
    assert b"<boolean>false</boolean>" in index.serialized(ask, graphs=[B], rows_as="xml").data
    assert index.serialized(graph, graphs=[A], graph_as="ntriples").data == b"<urn:s> <urn:q> <urn:o> .\n"
    for form in GRAPH_FORMATS:
        written = index.serialized(graph, graphs=[A], graph_as=form)
        assert (written.kind, [str(t) for t in ox.parse(written.data, format=GRAPH_FORMATS[form])]) == (
            "graph",
            ["<urn:s> <urn:q> <urn:o>"],
        )
    with pytest.raises(InvalidRequest, match="line 1 column 7"):
        index.serialized("SELEKT", graphs=[A])


def test_observers_are_told_of_what_is_added_and_of_what_is_replaced(index):
    told = []

    class Observer:
        def applied(self, graph, triples):
            told.append((graph, set(triples)))

        def reset(self, graph):
            told.append((graph, set(index.triples(graph))))

    index.observers.append(Observer())
    index.apply(A, "c2", [ROW])
    index.apply(A, "c2", [ROW])
    index.reset(A, {"c3": [("<urn:x>", "<urn:p>", "<urn:y>")]})
    assert told == [(A, {ROW}), (A, {("<urn:x>", "<urn:p>", "<urn:y>")})]


def test_a_query_that_does_not_parse_is_refused_with_its_place(index):
    with pytest.raises(InvalidRequest, match=r"^line 1 column 7: expected") as refusal:
        index.query("SELEKT", graphs=[A])
    assert refusal.value.code == "malformed_query"


def test_readers_see_whole_commits_while_others_apply():
    index = OxigraphIndex()

    def apply(number):
        index.apply(A, f"c{number}", [(f"<urn:s{number}>", "<urn:p>", f'"{part}"') for part in range(50)])

    def read(_):
        found = index.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s", graphs=[A])
        assert isinstance(found, Solutions)
        return {row[0] for row in found.rows} | {f'"{len(list(index.triples(A))) % 50}"'}

    with ThreadPoolExecutor(8) as pool:
        writes = [pool.submit(apply, number % 100) for number in range(200)]
        reads = set().union(*pool.map(read, range(100)))
        for write in writes:
            write.result()

    assert reads <= {'"50"^^<http://www.w3.org/2001/XMLSchema#integer>', '"0"'}
    assert len(list(index.triples(A))) == 100 * 50
