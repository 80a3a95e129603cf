"""The dataset of a query, from its FROM clauses or from the protocol."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest, JidomemError
from jidomem.rdf import sparql
from jidomem.rdf.sparql import EMPTY, Dataset, dataset, refuse_graphs, unknown_graphs

A, B = "https://jido.ai/a", "urn:b"


def dataset_of(text, protocol_dataset=None):
    return dataset(sparql.check(text), [A, B], protocol_dataset)


def test_a_query_without_from_uses_all_graphs_as_default_and_named_graphs():
    assert dataset_of("SELECT ?from { ?from <urn:from> 'FROM <urn:x>' } # FROM <urn:x>") == ([A, B], [A, B])


@pytest.mark.parametrize(
    "query",
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
def test_a_from_clause_is_parsed_in_every_spelling(query):
    assert dataset_of(query) == ([A], [])


def test_from_named_leaves_the_default_graph_empty_and_repeated_graphs_are_removed():
    assert dataset_of(f"SELECT * FROM NAMED <{B}> FROM NAMED <{B}> {{}}") == ([], [B])
    assert dataset_of(f"SELECT * FROMNAMED<{B}>{{}}") == ([], [B])
    assert dataset_of(f"ASK FROM <{A}> FROM NAMED <{B}> FROM <{B}> {{}}") == ([A, B], [B])


def test_a_protocol_dataset_overrides_from():
    text = f"SELECT * FROM <{A}> FROM NAMED <{A}> {{}}"

    assert dataset_of(text, Dataset([B, B], [])) == ([B], [])
    assert dataset_of(text, Dataset([], [B])) == ([], [B])
    assert dataset_of("SELECT * FROM <urn:unknown> {}", Dataset([A], [])) == ([A], [])


@pytest.mark.parametrize(
    ("text", "protocol_dataset", "unknown"),
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
def test_an_unknown_graph_is_replaced_by_the_empty_graph_and_reported(text, protocol_dataset, unknown):
    result = dataset_of(text, protocol_dataset)

    assert (*result.default, *result.named) == (EMPTY,)
    if unknown is not None:
        assert unknown_graphs(sparql.check(text), [A, B], protocol_dataset) == [unknown]


def test_an_unknown_graph_beside_a_known_one_is_replaced_by_the_empty_graph():
    assert dataset_of(f"ASK FROM <{A}> FROM <urn:c> FROM <urn:d> {{}}") == ([A, EMPTY], [])


@pytest.mark.parametrize("text", [f"ASK FROM <{A}> {{}}", "ASK FROM NAMED <urn:c> {}"])
def test_a_query_with_from_is_refused_where_graphs_are_fixed(text):
    with pytest.raises(InvalidRequest, match="the query names the graph") as refusal:
        refuse_graphs(sparql.check(text))
    assert "leave out FROM" in refusal.value.hint


@given(
    st.lists(st.sampled_from(["FROM", "NAMED", "BASE", "PREFIX", f"<{A}>", "<a>", "x:", "x:a", "<http://[>", "{", "}"]))
)
def test_no_query_text_addresses_a_graph_outside_the_dataset(tokens):
    try:
        result = dataset_of(" ".join(tokens))
    except JidomemError:
        return
    assert {*result.default, *result.named} <= {A, B, EMPTY}
