"""The SPARQL 1.1 Protocol and the Graph Store Protocol in this process: every form of a request."""

import json
import socket
from io import BytesIO
from urllib.parse import quote, urlencode

import pytest
import rdflib
from conftest import fixed_sources, intent
from rdflib.compare import to_isomorphic
from rdflib.query import Result

import jidomem
from jidomem.errors import InvalidRequest
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, graph_iri, graphs_of
from jidomem.serve.app import create_app
from jidomem.serve.routes import ROUTES

CONTEXT, CODEBASE, HISTORY = (graph_iri("p", name) for name in ("context", "codebase", "history"))
OF_Q = graph_iri("q")
FORM, QUERY = "application/x-www-form-urlencoded", "application/sparql-query"
SUMMARY = "<https://jido.ai/ontology#summary>"
JSON, XML = "application/sparql-results+json", "application/sparql-results+xml"
CSV, TSV = "text/csv", "text/tab-separated-values"
EVERYTHING = "SELECT ?s ?p ?o { ?s ?p ?o }"
SD = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("protocol") / "root", project="p", sources=fixed_sources()) as opened:
        opened.writer.submit_intent("p", intent(summary='Ünï, "quoted"\nand\ttabbed'))
        opened.writer.submit_intent("q", intent(summary="of another project", applies_to_project="q"))
        file = "https://jido.ai/code/a.py"
        opened.long_term("p").insert(
            [(file, "rdf:type", "jido:SourceFile"), (file, "jido:filePath", "a.py")], graph="codebase"
        )
        yield opened


@pytest.fixture(scope="module")
def client(memory):
    return create_app(memory, origins=["https://yasgui.example.org"]).test_client()


def post(client, body, kind=QUERY, path="/projects/p/sparql", **headers):
    return client.post(path, data=body, headers={"Content-Type": kind, **headers})


def run_query(client, text, accept="*/*", **fields):
    """The answer to a query in the query string; a field may have several values."""
    path = f"/projects/p/sparql?{urlencode({'query': text, **fields}, doseq=True)}"
    return client.get(path, headers={"Accept": accept})


def test_a_version_is_awaited_or_refused_as_missing(client, memory):
    current, form = str(memory.catch_up("p")), "application/x-www-form-urlencoded"

    def answers_at(version):
        fields = {"query": "ASK {}", "min_position": version}
        return [
            client.get("/projects/p/sparql", query_string=fields),
            post(client, urlencode(fields), form),
            post(client, b"ASK {}", path=f"/projects/p/sparql?{urlencode({'min_position': version})}"),
            client.get("/projects/p/graphs", query_string={"graph": "context", "min_position": version}),
        ]

    assert [answer.status_code for answer in answers_at(current)] == [200] * 4
    assert [refusal_of(answer) for answer in answers_at("99-abcdef")] == [(503, "index_behind")] * 4
    assert [refusal_of(answer) for answer in answers_at("new")] == [(400, "invalid_argument")] * 4


def count_triples(client, **fields):
    """The number of triples in the default graph."""
    return int(run_query(client, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", CSV, **fields).text.split()[1])


def named_graphs(client, **fields):
    """The named graphs that are not empty."""
    return set(run_query(client, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", CSV, **fields).text.split()[1:])


def refusal_of(answer):
    return answer.status_code, answer.json["code"]


def test_the_dataset_is_the_whole_project_unless_the_request_names_one(client):
    counts = {graph: count_triples(client, **{"default-graph-uri": graph}) for graph in graphs_of("p")}

    assert [graph for graph in counts if not counts[graph]] == [HISTORY, graph_iri("p", "system")]
    assert named_graphs(client) == {CONTEXT, CODEBASE, ONTOLOGY_GRAPH}
    assert named_graphs(client, **{"default-graph-uri": CONTEXT}) == set()
    assert named_graphs(client, **{"named-graph-uri": [CONTEXT, CODEBASE]}) == {CONTEXT, CODEBASE}
    assert count_triples(client, **{"named-graph-uri": CONTEXT}) == 0
    both = {"default-graph-uri": [CODEBASE, CONTEXT, CODEBASE], "named-graph-uri": CODEBASE}
    assert count_triples(client, **both) == counts[CODEBASE] + counts[CONTEXT]
    assert named_graphs(client, **both) == {CODEBASE}


@pytest.mark.parametrize("method", ["get", "form", "direct"])
def test_the_dataset_of_the_request_replaces_that_of_the_query(client, method):
    text = (
        f"SELECT ?g ?s FROM <{CONTEXT}> FROM NAMED <{CONTEXT}> {{ {{ ?s ?p ?o }} UNION {{ GRAPH ?g {{ ?s ?p ?o }} }} }}"
    )
    fields = [("default-graph-uri", CODEBASE), ("named-graph-uri", ONTOLOGY_GRAPH), ("named-graph-uri", CODEBASE)]

    if method == "get":
        answer = client.get("/projects/p/sparql?" + urlencode([("query", text), *fields]))
    elif method == "form":
        answer = post(client, urlencode([*fields, ("query", text)]), FORM)
    else:
        answer = post(client, text, path="/projects/p/sparql?" + urlencode(fields))

    rows = answer.json["results"]["bindings"]
    assert {row["g"]["value"] for row in rows if "g" in row} == {CODEBASE, ONTOLOGY_GRAPH}
    unnamed = {row["s"]["value"] for row in rows if "g" not in row}
    assert unnamed == {row["s"]["value"] for row in rows if row.get("g", {}).get("value") == CODEBASE}


@pytest.mark.parametrize("graph", [OF_Q, graph_iri("none"), "urn:x", "", "context", "../graphs/ontology"])
@pytest.mark.parametrize("field", ["default-graph-uri", "named-graph-uri"])
def test_an_unknown_or_foreign_graph_is_empty_and_named_in_a_warning(client, field, graph):
    pattern = "{ ?s ?p ?o }" if field == "default-graph-uri" else "{ GRAPH ?g { ?s ?p ?o } }"
    foreign_alone, with_own = (
        run_query(client, f"ASK {pattern}", **{field: names}) for names in ([graph], [graph, CONTEXT])
    )

    assert (foreign_alone.status_code, foreign_alone.json["boolean"]) == (200, False)
    assert foreign_alone.headers["Warning"] == f'199 jidomem "not a graph of this project, read as empty: <{graph}>"'
    assert with_own.json["boolean"] is True
    assert "Warning" not in run_query(client, f"ASK {pattern}", **{field: [CONTEXT]}).headers


REQUESTS = {
    "a query": (f"/projects/p/sparql?query={quote('ASK {}')}", "GET", None, None),
    "pluses for spaces": ("/projects/p/sparql?query=ASK+%7B+%7D", "GET", None, None),
    "empty pairs": ("/projects/p/sparql?&query=ASK{}&&timeout=3&", "GET", None, None),
    "a form": ("/projects/p/sparql", "POST", FORM, "query=ASK%7B%7D"),
    "a form with a charset": ("/sparql", "POST", f"{FORM}; charset=UTF-8", "query=ASK+{}"),
    "a query as it is": ("/projects/p/sparql", "POST", QUERY, "ASK { # é\n}"),
    "a query with a charset": ("/sparql", "POST", 'Application/SPARQL-Query ;Charset="utf-8"', "ASK {}"),
    "a format beside it": ("/sparql?query=ASK{}&format=json&output=json&results=json", "GET", None, None),
}


@pytest.mark.parametrize("form", REQUESTS)
def test_a_query_is_answered_in_each_form_of_the_protocol(client, form):
    path, method, kind, body = REQUESTS[form]

    answer = client.open(path, method=method, data=body, content_type=kind)

    assert (answer.status_code, answer.json) == (200, {"head": {}, "boolean": True}), answer.text


MALFORMED = {
    "no query in a form": ("POST", "", FORM, "timeout=1", 400),
    "an empty form": ("POST", "", FORM, "", 400),
    "two queries": ("GET", "?query=ASK{}&query=ASK{}", None, None, 400),
    "two queries in a form": ("POST", "", FORM, "query=ASK{}&query=ASK{}", 400),
    "a query and an update": ("GET", "?query=ASK{}&update=CLEAR+ALL", None, None, 400),
    "a query and an update in a form": ("POST", "", FORM, "query=ASK{}&update=CLEAR+ALL", 400),
    "a query beside a form": ("POST", "?query=ASK{}", FORM, "query=ASK{}", 400),
    "a dataset beside a form": ("POST", f"?default-graph-uri={CONTEXT}", FORM, "query=ASK{}", 400),
    "a query beside a query": ("POST", "?query=ASK{}", QUERY, "ASK {}", 400),
    "two timeouts": ("GET", "?query=ASK{}&timeout=1&timeout=1", None, None, 400),
    "a dataset for updates": ("GET", f"?query=ASK{{}}&using-graph-uri={CONTEXT}", None, None, 400),
    "a field of another name": ("GET", "?query=ASK{}&Query=ASK{}", None, None, 400),
    "a field without a name": ("GET", "?query=ASK{}&=x", None, None, 400),
    "a dataset and no query": ("GET", f"?default-graph-uri={CONTEXT}", None, None, 400),
    "no syntax": ("GET", "?query=ASK+{", None, None, 400),
    "an empty query": ("GET", "?query=", None, None, 400),
    "nothing as it is": ("POST", "", QUERY, "", 400),
    "half an escape": ("GET", "?query=ASK{}%2", None, None, 400),
    "an escape of no digits": ("GET", "?query=ASK{}%zz", None, None, 400),
    "an escape of no digits in a form": ("POST", "", FORM, "query=ASK{}%zz", 400),
    "bytes of no UTF-8": ("GET", "?query=ASK{}%ff", None, None, 400),
    "bytes of no UTF-8 in a form": ("POST", "", FORM, b"query=ASK{}\xff", 400),
    "bytes of no UTF-8 as it is": ("POST", "", QUERY, b"ASK {} #\xff", 400),
    "a surrogate": ("GET", "?query=ASK{}%ed%a0%80", None, None, 400),
    "a body with GET": ("GET", "?query=ASK{}", QUERY, "ASK {}", 400),
    "an unknown format": ("GET", "?query=ASK{}&format=html", None, None, 400),
    "a format of graphs": ("GET", "?query=ASK{}&format=turtle", None, None, 406),
    "no type": ("POST", "", None, "ASK {}", 415),
    "an empty type": ("POST", "", "", "ASK {}", 415),
    "another type": ("POST", "", "text/plain", "ASK {}", 415),
    "a type and more": ("POST", "", "application/sparql-queryx", "ASK {}", 415),
    "a form of parts": ("POST", "", "multipart/form-data; boundary=x", "--x--", 415),
    "another charset": ("POST", "", f"{QUERY}; charset=utf-16", "ASK {}".encode("utf-16"), 415),
    "another charset in a form": ("POST", "", f"{FORM}; charset=latin1", "query=ASK{}", 415),
    "another method": ("PUT", "?query=ASK{}", None, None, 405),
    "a method of its own": ("QUERY", "?query=ASK{}", None, None, 405),
    "no method to delete by": ("DELETE", "", None, None, 405),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused_with_its_status(client, name):
    method, path, kind, body, status = MALFORMED[name]

    answer = client.open("/projects/p/sparql" + path, method=method, data=body, content_type=kind)

    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json"), answer.text
    assert answer.json["hint"]


def test_a_compressed_body_and_an_invalid_accept_header_are_refused(client):
    assert refusal_of(post(client, b"x", **{"Content-Encoding": "gzip"})) == (415, "unsupported_media_type")
    for accept in (
        "json",
        "text/csv;q=2",
        "text/csv;q=high",
        "text/csv;q=-1",
        "text//csv",
        "text/csv;q=0.1234",
        ";",
        ";;, */*",
    ):
        assert refusal_of(run_query(client, "ASK {}", accept)) == (400, "invalid_argument"), accept


@pytest.mark.parametrize(
    ("text", "accept", "media"),
    [
        (EVERYTHING, "", JSON),
        (EVERYTHING, "*/*", JSON),
        (EVERYTHING, "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", JSON),
        (EVERYTHING, "text/*", CSV),
        (EVERYTHING, "text/*, text/csv;q=0", TSV),
        (EVERYTHING, f"{XML};q=0.5, {TSV};q=0.7, {JSON};q=0.2", TSV),
        (EVERYTHING, f"*/*;q=0.1, application/*;q=0.4, {XML};q=0.300", "application/sparql-results+json"),
        (EVERYTHING, f"{JSON};q=0, */*", "application/json"),
        (EVERYTHING, f"{XML};q=1.000, {JSON};q=0.999", XML),
        (EVERYTHING, "TEXT/CSV ; charset=utf-8 ; Q=1", CSV),
        (EVERYTHING, f'text/x;p="a,b;q=1, text/csv", {TSV}', TSV),
        (EVERYTHING, "application/xml", "application/xml"),
        (EVERYTHING, "text/turtle", None),
        (EVERYTHING, "text/csv;q=0, text/csv;q=0.0", None),
        ("ASK {}", f"{CSV};q=0.9, {XML};q=0.1", XML),
        ("ASK {}", f"{CSV}, {TSV}", None),
        ("DESCRIBE <urn:x>", "", "text/turtle"),
        ("DESCRIBE <urn:x>", "application/*", "application/n-triples"),
        ("DESCRIBE <urn:x>", "application/rdf+xml, text/turtle;q=0.9", "application/rdf+xml"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "application/ld+json", "application/ld+json"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "application/trig", "application/trig"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "application/n-quads", "application/n-quads"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", JSON, None),
    ],
)
def test_the_preferred_format_is_given_or_406(client, text, accept, media):
    answer = run_query(client, text, accept)

    if media is None:
        assert refusal_of(answer) == (406, "not_acceptable")
    else:
        assert (answer.status_code, answer.mimetype) == (200, media)
        assert answer.headers.get("Content-Type") == (f"{media}; charset=utf-8" if media.startswith("text/") else media)
    assert "Accept" in answer.vary


def test_each_format_has_the_same_rows(client):
    text = f"SELECT ?s ?o ?none {{ ?s {SUMMARY} ?o }}"

    parsed = [Result.parse(BytesIO(run_query(client, text, media).data), content_type=media) for media in (JSON, XML)]

    assert set(parsed[0]) == set(parsed[1])
    assert len(parsed[0]) == 1
    assert 'Ünï, ""quoted""\nand\ttabbed' in run_query(client, text, CSV).text
    assert '"Ünï, \\"quoted\\"\\nand\\ttabbed"' in run_query(client, text, TSV).text


def describe(client, path="/projects/p/sparql", accept="text/turtle", form="turtle"):
    answer = client.get(path, headers={"Accept": accept})
    assert (answer.status_code, answer.mimetype) == (200, accept)
    return rdflib.Graph().parse(data=answer.data, format=form)


def test_the_endpoint_without_a_query_describes_the_service(client):
    graph = describe(client)

    service = graph.value(predicate=rdflib.RDF.type, object=SD.Service)
    assert graph.value(service, SD.endpoint) == rdflib.URIRef("http://localhost/projects/p/sparql")
    assert set(graph.objects(service, SD.supportedLanguage)) == {SD.SPARQL11Query}
    assert set(graph.objects(service, SD.feature)) == {SD.UnionDefaultGraph}
    assert len(set(graph.objects(service, SD.resultFormat))) == 10
    data = graph.value(service, SD.defaultDataset)
    assert graph.value(graph.value(data, SD.defaultGraph), rdflib.RDF.type) == SD.Graph
    names = {str(graph.value(each, SD.name)) for each in graph.objects(data, SD.namedGraph)}
    assert names == set(graphs_of("p"))
    assert (service, SD.endpoint, rdflib.URIRef("http://localhost/sparql")) not in graph


def test_the_description_names_the_public_url_and_ignores_forwarding_headers(memory):
    configured = create_app(memory, public_url="https://Memory.example.org:8443").test_client()
    unconfigured = create_app(memory).test_client()
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example", "Forwarded": "proto=https;host=evil"}

    def endpoints(client, path):
        graph = rdflib.Graph().parse(data=client.get(path, headers=forwarded).text)
        return {str(endpoint) for endpoint in graph.objects(predicate=SD.endpoint)}

    assert endpoints(configured, "/projects/p/sparql") == {"https://memory.example.org:8443/projects/p/sparql"}
    assert endpoints(configured, "/sparql") == {"https://memory.example.org:8443/sparql"}
    assert endpoints(unconfigured, "/sparql") == {"http://localhost/sparql"}


@pytest.mark.parametrize("url", ["", "memory.example.org", "https://memory.example.org/", "https://a/b", "ftp://a"])
def test_a_public_url_that_is_no_origin_is_refused(memory, url):
    with pytest.raises(InvalidRequest, match="is not an origin") as refusal:
        create_app(memory, public_url=url)
    assert refusal.value.hint.endswith("--public-url https://memory.example.org")


def test_a_triple_of_two_graphs_counts_twice_in_their_union_and_once_with_distinct(tmp_path):
    with jidomem.open(tmp_path, project="p", sources=fixed_sources()) as memory:
        for graph in ("codebase", "system"):
            memory.long_term("p").insert([("urn:x:a", "urn:x:b", "urn:x:c")], graph=graph)
        client = create_app(memory).test_client()
        of_both = "{ <urn:x:a> <urn:x:b> ?o }"
        both = {"default-graph-uri": [CODEBASE, graph_iri("p", "system")]}

        for fields in ({}, both):
            assert run_query(client, f"SELECT ?o {of_both}", CSV, **fields).text.split() == ["o", "urn:x:c", "urn:x:c"]
            assert run_query(client, f"SELECT DISTINCT ?o {of_both}", CSV, **fields).text.split() == ["o", "urn:x:c"]
            counted = f"SELECT (COUNT(?o) AS ?n) (COUNT(DISTINCT ?o) AS ?m) {of_both}"
            assert run_query(client, counted, CSV, **fields).text.split() == ["n,m", "2,1"]
            constructed = run_query(
                client, f"CONSTRUCT {of_both} WHERE {of_both}", "application/n-triples", **fields
            ).text
            assert constructed.splitlines() == ["<urn:x:a> <urn:x:b> <urn:x:c> ."]


@pytest.mark.parametrize(
    ("accept", "form"),
    [("application/n-triples", "nt"), ("application/rdf+xml", "xml"), ("application/ld+json", "json-ld"),
     ("application/trig", "trig"), ("application/n-quads", "nquads")],
)  # fmt: skip
def test_the_description_is_the_same_in_every_format(client, accept, form):
    graph = describe(client, accept=accept, form=form)

    assert {tuple(t) for t in graph} == {tuple(t) for t in describe(client)}
    assert client.get("/sparql", headers={"Accept": "text/html"}).status_code == 406


def test_a_graph_is_read_by_short_name_by_iri_and_as_the_union(client, memory):
    def read(which, accept="application/n-triples"):
        answer = client.get(f"/projects/p/graphs?{which}", headers={"Accept": accept})
        assert (answer.status_code, answer.mimetype) == (200, accept), answer.text
        return answer.text

    context = set(read("graph=context").splitlines())
    assert context == set(read(f"graph={quote(CONTEXT)}").splitlines())
    assert context == {f"{' '.join(triple)} ." for triple in memory.index.triples(CONTEXT)}
    codebase, ontology = (set(read(f"graph={name}").splitlines()) for name in ("codebase", "ontology"))
    assert set(read("default").splitlines()) == set(read("default=").splitlines()) == context | codebase | ontology
    assert read("graph=history") == ""
    assert read("graph=codebase", "application/n-quads").splitlines()[0].endswith(f" <{CODEBASE}> .")


@pytest.mark.parametrize("which", ["graph=context", "graph=history", "graph=ontology"])
def test_a_graph_is_the_same_in_every_format_and_named_in_quad_formats(client, which):
    forms = {"text/turtle": "turtle", "application/rdf+xml": "xml", "application/ld+json": "json-ld",
             "application/n-triples": "nt"}  # fmt: skip
    answers = {media: client.get(f"/projects/p/graphs?{which}", headers={"Accept": media}).data for media in
            (*forms, "application/trig", "application/n-quads")}  # fmt: skip

    whole = to_isomorphic(rdflib.Graph().parse(data=answers["application/n-triples"], format="nt"))
    for media, form in forms.items():
        assert to_isomorphic(rdflib.Graph().parse(data=answers[media], format=form)) == whole, media
    for media, form in (("application/trig", "trig"), ("application/n-quads", "nquads")):
        data = rdflib.Dataset()
        data.parse(data=answers[media], format=form)
        assert (
            to_isomorphic(data.graph(graphs_of("p")[("context", "", "history", "", "ontology").index(which[6:])]))
            == whole
        )
        assert len(data.default_graph) == 0


@pytest.mark.parametrize(
    ("which", "status"),
    [("", 400), ("graph=context&default", 400), ("graph=context&graph=history", 400), ("default=x", 400),
     ("default&default", 400), ("graphs=context", 400), ("graph=%zz", 400), ("graph=", 404), ("graph=contxt", 404),
     ("graph=urn:x", 404), (f"graph={OF_Q}", 404), ("graph=../q", 404)],
)  # fmt: skip
def test_an_unknown_or_malformed_graph_name_is_refused(client, which, status):
    answer = client.get(f"/projects/p/graphs?{which}")

    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")
    assert "/q/" not in answer.json["hint"]
    assert client.get("/projects/none/graphs?default").json["code"] == "unknown_project"


UPDATES = ("INSERT DATA { <urn:a> <urn:b> 1 }", "DELETE WHERE { ?s ?p ?o }", "LOAD <http://127.0.0.1/x>", "CLEAR ALL",
           "DROP GRAPH <urn:g>", "CREATE GRAPH <urn:g>", "COPY DEFAULT TO <urn:g>", "MOVE DEFAULT TO <urn:g>",
           "ADD DEFAULT TO <urn:g>", "WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }")  # fmt: skip


def test_every_update_is_refused_and_changes_nothing(client, memory):
    before = memory.catch_up("p"), count_triples(client)
    answers = []
    for text in UPDATES:
        answers.append(post(client, text, "application/sparql-update"))
        answers.append(post(client, text, "application/sparql-update", path=f"/sparql?using-graph-uri={CONTEXT}"))
        answers.append(post(client, text))
        answers.append(post(client, urlencode({"update": text}), FORM))
        answers.append(post(client, urlencode({"query": text}), FORM))
        answers += [run_query(client, text), client.get(f"/sparql?{urlencode({'update': text})}")]
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        for which in ("?graph=context", "?default", f"?graph={OF_Q}", "?graph=urn:new", ""):
            answers.append(client.open(f"/projects/p/graphs{which}", method=method, data="<urn:a> <urn:b> 1 .",
                                    content_type="text/turtle"))  # fmt: skip

    assert {refusal_of(answer) for answer in answers} == {(403, "update_refused")}
    assert (memory.catch_up("p"), count_triples(client)) == before


SERVICES = [
    "ASK { SERVICE <{url}> { ?s ?p ?o } }",
    "ASK { SeRvIcE SILENT <{url}> {} }",
    "ASK { #\n SERVICE # { }\r<{url}># x\n{} }",
    "PREFIX e: <{url}> ASK { SERVICE e: { ?s ?p ?o } }",
    "PREFIX e: <{url}> ASK { SERVICEe:x{} }",
    "PREFIX SERVICEe: <{url}> PREFIX e: <{url}> ASK { SERVICEe:x{} }",
    "PREFIX service: <{url}> PREFIX : <{url}> ASK { service:x:y # {\n { ?s ?p ?o } }",
    "ASK { { SELECT * { { SELECT * { SERVICE <{url}> {} } } } } }",
    "ASK { FILTER EXISTS { OPTIONAL { SERVICE <{url}> {} } } }",
    "ASK { FILTER NOT EXISTS { { } UNION { SERVICE <{url}> {} } } }",
    "ASK { ?s ?p ?o MINUS { GRAPH ?g { SERVICE <{url}> {} } } }",
    "ASK { VALUES ?u { <{url}> } SERVICE ?u {} }",
    "CONSTRUCT { ?s ?p ?o } { SERVICE <{url}> { ?s ?p ?o } }",
    "DESCRIBE ?s { SERVICE <{url}> { ?s ?p ?o } }",
    "ASK { S\\u0045RVICE <{url}> {} }",
    "ASK { \\u0053\\u0045\\u0052\\u0056\\u0049\\u0043\\u0045 <{url}> {} }",
    "ASK { \\U00000053ERVICE <{url}> {} }",
    "ASK \\u007B SERVICE <{url}> {} }",
    "ASK { ?s ?p '\\' } #\n' SERVICE <{url}> {} }",
    "ASK FROM <{url}> { ?s ?p ?o }",
    "ASK FROM NAMED <{url}> { GRAPH ?g { ?s ?p ?o } }",
    "LOAD <{url}> INTO GRAPH <urn:g>",
]


def test_service_clauses_in_any_form_are_refused_without_a_connection(client):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        for text in SERVICES:
            text = text.replace("{url}", url)
            for answer in (run_query(client, text), post(client, text), post(client, urlencode({"query": text}), FORM)):
                if "FROM" in text:  # a graph that is not here is empty
                    assert (answer.status_code, answer.json["boolean"]) == (200, False), text
                    continue
                assert answer.status_code in (400, 403), text
                assert answer.json["code"] in ("federation_refused", "malformed_query", "update_refused"), text
            for field in ("default-graph-uri", "named-graph-uri"):
                assert run_query(client, "ASK { ?s ?p ?o }", **{field: url}).json["boolean"] is False
        with pytest.raises(BlockingIOError):  # no connection is waiting
            server.accept()


def test_a_page_of_an_allowed_origin_is_answered_with_cors_headers_and_no_other(client, memory):
    ours, other = "https://yasgui.example.org", "https://elsewhere.example.org"
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}

    def cors_of(headers, target=client, method="GET"):
        answer = target.open("/sparql?query=ASK{}" if method == "GET" else "/sparql", method=method, headers=headers)
        return answer.status_code, {k: v for k, v in answer.headers if k.startswith("Access-Control")}, answer.vary

    status, headers_given, vary = cors_of({"Origin": ours})
    assert (status, headers_given["Access-Control-Allow-Origin"], "Origin" in vary) == (200, ours, True)
    status, headers_given, _ = cors_of({"Origin": ours, **preflight}, method="OPTIONS")
    assert status == 204
    assert headers_given["Access-Control-Allow-Origin"] == ours
    served = {route.method for route in ROUTES if route.statuses}
    assert served <= set(headers_given["Access-Control-Allow-Methods"].split(", "))
    assert {"Content-Type", "X-Request-Id"} <= set(headers_given["Access-Control-Allow-Headers"].split(", "))
    for origin in (other, "null", "*", f"{ours}.evil.example", f"{ours}:8443", ours.replace("https", "http"), ""):
        assert cors_of({"Origin": origin})[1] == {}
        assert cors_of({"Origin": origin, **preflight}, method="OPTIONS")[:2] == (200, {})
    assert cors_of({})[1] == {}
    plain = create_app(memory).test_client()
    assert cors_of({"Origin": ours}, plain)[1:] == ({}, cors_of({}, plain)[2])
    assert cors_of({"Origin": ours, **preflight}, plain, "OPTIONS")[1] == {}


@pytest.mark.parametrize("origin", ["*", "null", "example.org", "https://example.org/", "ftp://example.org", ""])
def test_an_invalid_origin_is_refused(memory, origin):
    with pytest.raises(jidomem.errors.InvalidRequest, match="is not an origin"):
        create_app(memory, origins=[origin])


def test_options_lists_the_methods(client):
    for path, methods in (("/projects/p/sparql", "GET HEAD OPTIONS POST"),
                          ("/projects/p/graphs", "DELETE GET HEAD OPTIONS PATCH POST PUT")):  # fmt: skip
        answer = client.options(path)
        assert (answer.status_code, " ".join(sorted(answer.allow))) == (200, methods)
    assert json.loads(client.put("/sparql").data)["hint"] == "use one of: GET, HEAD, OPTIONS, POST"
