"""Which graphs a query is asked of, as FROM or who asks it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest, JidomemError
from jidomem.rdf import sparql
from jidomem.rdf.sparql import EMPTY, Dataset, dataset, refuse_graphs, unknown_graphs

A, B = "https://jido.ai/a", "urn:b"


def of(text, instead=None):
    return dataset(sparql.check(text), [A, B], instead)


def test_without_from_all_graphs_are_the_default_graph_and_can_be_named():
    assert of("SELECT ?from { ?from <urn:from> 'FROM <urn:x>' } # FROM <urn:x>") == ([A, B], [A, B])


@pytest.mark.parametrize(
    "written",
    [
        f"SELECT * FROM <{A}> {{}}",
        f"SELECT*FROM<{A}>{{}}",
        f"SELECT * from # a comment\n <{A}> FROM <{A}> {{}}",
        "SELECT * FROM <a> {}",
        "BASE <https://jido.ai/b/c> SELECT * FROM <../a> {}",
        "BASE <https://jido.ai/> BASE <b/> SELECT * FROM </a> {}",
        "PREFIX j: <https://jido.ai/> SELECT * FROM j:a {}",
        "BASE <https://jido.ai/b> PREFIX : <> PREFIX j: <> SELECT * FROM j:\\a {}".replace("<>", "<.>"),
        "SELECT * FROM <https://jido.ai/\\u0061> {}",
        "CONSTRUCT { ?s ?p ?o } FROM <a> { ?s ?p ?o }",
    ],
)
def test_from_is_read_however_its_graph_is_written(written):
    assert of(written) == ([A], [])


def test_from_named_leaves_the_default_graph_empty_and_each_graph_is_asked_once():
    assert of(f"SELECT * FROM NAMED <{B}> FROM NAMED <{B}> {{}}") == ([], [B])
    assert of(f"SELECT * FROMNAMED<{B}>{{}}") == ([], [B])
    assert of(f"ASK FROM <{A}> FROM NAMED <{B}> FROM <{B}> {{}}") == ([A, B], [B])


def test_what_is_said_instead_stands_in_place_of_from():
    text = f"SELECT * FROM <{A}> FROM NAMED <{A}> {{}}"

    assert of(text, Dataset([B, B], [])) == ([B], [])
    assert of(text, Dataset([], [B])) == ([], [B])
    assert of("SELECT * FROM <urn:unknown> {}", Dataset([A], [])) == ([A], [])


@pytest.mark.parametrize(
    ("text", "instead", "unknown"),
    [
        ("SELECT * FROM <urn:c> {}", None, "urn:c"),
        ("SELECT * FROM NAMED <urn:c> {}", None, "urn:c"),
        ("SELECT * FROM x:c {}", None, "x:c"),
        ("SELECT * FROM <http://[> {}", None, "http://["),
        ("SELECT * FROM <\\uD800> {}", None, None),
        ("SELECT * FROM", None, ""),
        ("SELECT * {}", Dataset(["urn:c"], []), "urn:c"),
        ("SELECT * {}", Dataset([], ["urn:c"]), "urn:c"),
        ("SELECT * {}", Dataset([f"<{A}>"], []), f"<{A}>"),
        ("SELECT * {}", Dataset([""], []), ""),
    ],
)
def test_a_graph_that_is_not_among_those_asked_is_an_empty_one_and_can_be_named(text, instead, unknown):
    found = of(text, instead)

    assert (*found.default, *found.named) == (EMPTY,)
    if unknown is not None:
        assert unknown_graphs(sparql.check(text), [A, B], instead) == [unknown]


def test_an_unknown_graph_beside_a_known_one_leaves_that_one():
    assert of(f"ASK FROM <{A}> FROM <urn:c> FROM <urn:d> {{}}") == ([A, EMPTY], [])


@pytest.mark.parametrize("text", [f"ASK FROM <{A}> {{}}", "ASK FROM NAMED <urn:c> {}"])
def test_a_query_that_may_name_no_graph_is_refused_where_it_does(text):
    with pytest.raises(InvalidRequest, match="the query names the graph") as refusal:
        refuse_graphs(sparql.check(text))
    assert "leave out FROM" in refusal.value.hint


@given(
    st.lists(st.sampled_from(["FROM", "NAMED", "BASE", "PREFIX", f"<{A}>", "<a>", "x:", "x:a", "<http://[>", "{", "}"]))
)
def test_no_text_asks_a_graph_that_is_not_among_them(words):
    try:
        found = of(" ".join(words))
    except JidomemError:
        return
    assert {*found.default, *found.named} <= {A, B, EMPTY}
