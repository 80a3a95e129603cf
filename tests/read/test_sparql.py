import socket
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_world import PREFIXES, reader_of, short, world_index

from jidomem.errors import InvalidRequest, PolicyDenied, TooLarge
from jidomem.rdf import sparql
from jidomem.rdf.vocab import JIDO, graph_iri

PREFIX = f"PREFIX jido: <{PREFIXES['jido']}> PREFIX m: <{PREFIXES['m']}> "
DEMO, OTHER = graph_iri("demo"), graph_iri("other")


@pytest.fixture(scope="module")
def reader():
    return reader_of(world_index())


def test_select_maps_variables_to_values(reader):  # C083, C085
    rows = reader.select("demo", PREFIX + "SELECT ?status ?never { m:write-index jido:hasTaskStatus ?status }")
    assert rows == [{"status": "https://jido.ai/ontology#Planned", "never": None}]


def test_select_is_documented_as_internal(reader):  # C084
    assert "Internal: agents use the named functions" in reader.select.__doc__


def test_select_reads_the_union_of_the_graphs_of_a_project_and_the_ontology(reader):
    counts = "SELECT (COUNT(?s) AS ?n) { VALUES ?s { <https://jido.ai/code/Index> jido:Fact m:rust-180 } ?s ?p ?o }"
    assert reader.select("demo", PREFIX + counts)[0]["n"] > 10
    assert reader.select("demo", PREFIX + "SELECT ?c { <https://jido.ai/code/Index> a ?c }") != []
    assert reader.select("demo", PREFIX + "SELECT ?c { jido:Bug <http://www.w3.org/2000/01/rdf-schema#subClassOf> ?c }")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s { ?s ?p ?o FILTER(CONTAINS(STR(?s), 'apart')) }",
        f"SELECT ?s {{ GRAPH <{OTHER}> {{ ?s ?p ?o }} }}",
        "SELECT ?s { GRAPH ?g { ?s ?p ?o } FILTER(CONTAINS(STR(?s), 'apart')) }",
        f"SELECT ?s FROM <{DEMO}> FROM NAMED <{DEMO}> {{ GRAPH <{OTHER}> {{ ?s ?p ?o }} }}",
    ],
)
def test_no_query_reads_the_graphs_of_another_project(reader, text):  # C099
    assert reader.select("demo", text) == []


@pytest.mark.parametrize(
    "clause", [f"FROM <{OTHER}>", f"FROM NAMED <{OTHER}>", f"FROMNAMED<{OTHER}>", "FROM <urn:x:>", "from named\n<x>"]
)
def test_a_graph_outside_the_project_is_empty(reader, clause):  # C099
    assert reader.select("demo", f"{PREFIX} SELECT * {clause} {{ ?s ?p ?o }}") == []
    assert reader.select("demo", f"{PREFIX} SELECT * {clause} {{ GRAPH ?g {{ ?s ?p ?o }} }}") == []


def test_a_prefix_may_be_named_service(reader):
    text = "SELECT ?s { ?s service:summary ?text }"

    answers = [reader.select("demo", f"PREFIX {name}: <{JIDO}> {text.replace('service', name)}") for name in
               ("service", "SERVICE", "my.service", "s")]  # fmt: skip

    assert answers[0]
    assert answers[1:] == answers[:1] * 3


def test_from_limits_the_answer_to_its_graphs(reader):
    codebase = graph_iri("demo", "codebase")
    rows = reader.select("demo", f"SELECT DISTINCT ?s FROM <{codebase}> {{ ?s ?p ?o }}")
    subjects = {row["s"] for row in rows}
    assert any(subject.startswith("https://jido.ai/code/") for subject in subjects)
    assert not any(subject.startswith("https://jido.ai/memory/") for subject in subjects)
    assert reader.select("demo", f"SELECT ?s FROM NAMED <{codebase}> {{ ?s ?p ?o }}") == []


def test_infer_matches_subclasses_and_without_it_only_the_literal_class(reader):
    for type_ in ("a", "rdf:type", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"):
        text = (
            f"{PREFIX} PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>"
            f" SELECT ?e {{ ?e {type_} jido:Error ; jido:severityLevel ?a }} ORDER BY ?e"
        )
        assert [short(row["e"]) for row in reader.select("demo", text)] == ["lost-write", "write-found"]
        inferred = [short(row["e"]) for row in reader.select("demo", text, infer=True)]
        assert inferred == ["foreign-error", "lost-write", "slow-list", "torn-file", "write-found"]


def test_ask_and_construct_queries_are_run(reader):
    assert reader.run("demo", PREFIX + "ASK { m:write-index a jido:Task }").truth is True
    graph = reader.run(
        "demo", PREFIX + "CONSTRUCT { ?t a jido:Task } { ?t a jido:Task ; jido:hasTaskStatus jido:Completed }"
    )
    assert (graph.kind, len(graph.triples)) == ("graph", 1)
    assert graph.triples[0][0] == "<https://jido.ai/memory/journal-written>"


@pytest.mark.parametrize("text", ["ASK {}", "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }", "DESCRIBE <urn:x>"])
def test_select_refuses_other_query_forms(reader, text):  # C086
    with pytest.raises(InvalidRequest, match="select takes a SELECT query"):
        reader.select("demo", text)


@pytest.mark.parametrize(
    "text",
    ["INSERT DATA { <urn:a> <urn:b> 1 }", "PREFIX x: <urn:> delete where { ?s ?p ?o }", "# SELECT\nDROP ALL",
     "LOAD <http://127.0.0.1/x>", "BASE <urn:select> CLEAR ALL", "WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }"],
)  # fmt: skip
def test_an_update_is_refused(reader, text):  # C013, C086
    with pytest.raises(PolicyDenied, match="is an update") as refusal:
        reader.run("demo", text)
    assert refusal.value.code == "update_refused"


@pytest.fixture(scope="module")
def listener():
    """Open a port that records connections."""
    called = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                called.append(1)
                connection.close()

        Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1], called
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { SERVICE <{url}> { ?s ?p ?o } }",
        "SELECT * { service\tSILENT <{url}> { ?s ?p ?o } }",
        "PREFIX e: <{url}> SELECT * { SERVICEe:x{ ?s ?p ?o } }",
        "PREFIX : <{url}> SELECT * { SERVICE:x{ ?s ?p ?o } }",
        "SELECT * { FILTER(1<2)SERVICE<{url}>{ } }",
        "SELECT * { BIND(1 AS ?x)SERVICE<{url}>{ } }",
        "PREFIX e: <urn:> SELECT * { OPTIONAL { ?s ?p e:a\\# } SERVICE <{url}> { } }",
        "PREFIX e: <urn:> SELECT * { OPTIONAL { ?s ?p e:a\\' } SERVICE <{url}> { FILTER('' = '') } }",
        "SELECT * { OPTIONAL { ?s ?p <urn:\\u0061#b> } SERVICE <{url}> { } }",
        "SELECT * { VALUES ?u { <{url}> } SERVICE ?u { ?s ?p ?o } }",
        "SELECT * { OPTIONAL { ?s ?p 'a\\\\' } SERVICE <{url}> { } } # '",
        'SELECT * { OPTIONAL { ?s ?p """a""""" } SERVICE <{url}> { } } # """',
    ],
)
def test_service_is_refused_in_every_notation_without_a_connection(reader, listener, text):
    port, called = listener
    with pytest.raises(PolicyDenied, match="SERVICE is refused") as refusal:
        reader.run("demo", text.replace("{url}", f"http://127.0.0.1:{port}/"))
    assert refusal.value.code == "federation_refused"
    assert called == []


@pytest.mark.parametrize(
    "text",
    [
        'SELECT ?x { BIND("SERVICE <urn:x>" AS ?x) }',
        "SELECT ?x { BIND('''it's a \"SERVICE\"''' AS ?x) } # SERVICE <urn:x> {",
        "SELECT ?x { BIND(<urn:SERVICE> AS ?x) }",
        "PREFIX e: <urn:> SELECT ?x { BIND(e:service AS ?x) }",
        "SELECT ?x ?service { BIND('insert'@service AS ?x) }",
    ],
)
def test_a_keyword_in_a_text_name_or_comment_is_accepted(reader, text):
    assert len(reader.select("demo", text)) == 1


def test_a_syntax_error_is_reported_with_line_and_column(reader):  # C086
    with pytest.raises(InvalidRequest, match="line 2 column 9: expected") as refusal:
        reader.select("demo", "SELECT *\n{ ?s ?p ")
    assert refusal.value.code == "malformed_query"


def test_an_oversized_query_is_refused(reader):
    with pytest.raises(TooLarge, match="more than 65,536") as refusal:
        reader.select("demo", "SELECT * {} #" + "x" * sparql.MAX_BYTES)
    assert refusal.value.code == "payload_too_large"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * " + "{" * 5000 + "}" * 5000,
        "SELECT * { FILTER" + "(" * 5000 + "1" + ")" * 5000 + " }",
        "SELECT * {" + "UNION".join(["{}"] * 7000) + "}",
        "SELECT * { ?s " + "/".join(["<urn:a>"] * 600) + " ?o }",
        "SELECT * { ?s <urn:a> " + ",".join("123456789") * 70 + " }",
        "SELECT (1" + "+1" * 7000 + " AS ?x) {}",
        "SELECT * {" + "".join(f"BIND(1 AS ?x{n})" for n in range(3000)) + "}",
    ],
)  # each of these crashed the engine and its process
def test_a_query_too_deep_for_the_engine_is_refused(reader, text):
    with pytest.raises(InvalidRequest) as refusal:
        reader.select("demo", text)
    assert refusal.value.code == "malformed_query"


def test_a_long_list_of_values_is_accepted(reader):
    values = ", ".join(map(str, range(5000)))
    assert reader.select("demo", f"SELECT ?x {{ BIND(4000 AS ?x) FILTER(?x IN ({values})) }}") == [{"x": 4000}]


@given(st.text(alphabet=st.sampled_from("<>\"'\\#?:{}@ \nsSERVICEu0"), max_size=60))
def test_the_tokens_of_a_text_join_to_the_text(text):
    assert "".join(token.text for token in sparql.tokens(text)) == text
