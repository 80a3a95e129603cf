"""The data that a token reaches over SPARQL and the graphs: its own projects, without a sign of any other."""

import pytest
from conftest import intent
from http_world import Client, serving

from jidomem.errors import Failed
from jidomem.rdf.vocab import GRAPHS, ONTOLOGY_GRAPH, graph_iri
from jidomem.runtime.settings import load, own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app

SECRET = "the launch is on Friday"
ORIGIN = "https://yasgui.example.org"


@pytest.fixture
def ana(memory):
    """A client of an agent whose token reaches p but not q."""
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("q", intent(summary=SECRET, applies_to_project="q"))
    keyring = Keyring(own_config(), memory.settings.root)
    secret, _ = keyring.issue("ana", "agent", ["p"], memory.sources)
    client = create_app(memory, keyring=keyring, origins=[ORIGIN]).test_client()

    def send(path, method="GET", **options):
        headers = {"Authorization": f"Bearer {secret}", **options.pop("headers", {})}
        return client.open(path, method=method, headers=headers, **options)

    send.client = client
    return send


def anonymized(answer, *names):
    """The status and the text of a refusal, with *names* replaced."""
    problem = answer.json or {}
    words = f"{problem.get('code')} {problem.get('detail')} {problem.get('hint')} {answer.headers.get('Warning')}"
    words += "" if "code" in problem else answer.text
    for name in names:
        words = words.replace(name, "NAME")
    return answer.status_code, words


@pytest.mark.parametrize("graph", [*GRAPHS])
def test_a_graph_of_another_project_is_answered_like_an_unknown_one(ana, graph):
    foreign_graph, unknown_graph = graph_iri("q", graph), graph_iri("nil", graph)
    for field in ("default-graph-uri", "named-graph-uri"):
        foreign, unknown = (
            ana("/projects/p/sparql", query_string={"query": "SELECT * { ?s ?p ?o }", field: [graph_iri("p"), name]})
            for name in (foreign_graph, unknown_graph)
        )
        assert anonymized(foreign, foreign_graph) == anonymized(unknown, unknown_graph)
        assert (foreign.status_code, "Warning" in foreign.headers) == (200, True)
    for clause in ("FROM", "FROM NAMED"):
        foreign, unknown = (
            ana("/projects/p/sparql", query_string={"query": f"ASK {clause} <{name}> {{ ?s ?p ?o }}"})
            for name in (foreign_graph, unknown_graph)
        )
        assert anonymized(foreign, foreign_graph) == anonymized(unknown, unknown_graph)
    foreign, unknown = (
        ana("/projects/p/graphs", query_string={"graph": name}) for name in (foreign_graph, unknown_graph)
    )
    assert anonymized(foreign, foreign_graph) == anonymized(unknown, unknown_graph)
    assert foreign.status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"named-graph-uri": [graph_iri("p"), ONTOLOGY_GRAPH]},
        {"default-graph-uri": [graph_iri("p"), ONTOLOGY_GRAPH], "named-graph-uri": [graph_iri("p")]},
        {"as_of": "2999-01-01"},
    ],
)
def test_no_dataset_reaches_another_project(ana, fields):
    for pattern in ("?s ?p ?o", "GRAPH ?g { ?s ?p ?o }", f"GRAPH <{graph_iri('q')}> {{ ?s ?p ?o }}",
                    "GRAPH ?g { ?s (<urn:none>|!<urn:none>)* ?o }"):  # fmt: skip
        text = f"SELECT * {{ {pattern} }}"
        answer = ana("/projects/p/sparql", query_string={"query": text, **fields})
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert "/projects/q" not in answer.text


def test_graphs_and_descriptions_show_nothing_of_another_project(ana):
    for path in ("/projects/p/graphs?default", "/projects/p/graphs?graph=context", "/projects/p/sparql", "/sparql"):
        for accept in ("text/turtle", "application/n-quads"):
            answer = ana(path, headers={"Accept": accept})
            if path != "/sparql" or answer.status_code == 200:
                assert (answer.status_code, answer.mimetype) == (200, accept)
            assert SECRET not in answer.text
            assert "projects/q" not in answer.text
    for path in ("/projects/q/graphs?default", "/projects/q/sparql", "/projects/q/sparql?query=ASK{}"):
        foreign, unknown = ana(path), ana(path.replace("/q/", "/nil/"))
        assert foreign.status_code == 404
        assert anonymized(foreign, "'q'") == anonymized(unknown, "'nil'")


def test_a_preflight_needs_no_token_and_the_request_after_it_does(ana):
    preflight = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}

    before = ana.client.options("/projects/q/sparql", headers=preflight)
    unauthenticated = ana.client.get("/projects/p/sparql", headers={"Origin": ORIGIN})
    foreign = ana.client.options("/projects/p/sparql", headers={**preflight, "Origin": "https://other.example.org"})

    assert (before.status_code, before.headers["Access-Control-Allow-Origin"]) == (204, ORIGIN)
    assert (unauthenticated.status_code, unauthenticated.headers["Access-Control-Allow-Origin"]) == (401, ORIGIN)
    assert "Access-Control-Allow-Credentials" not in unauthenticated.headers
    assert foreign.status_code == 401
    assert "Access-Control-Allow-Origin" not in foreign.headers


def test_a_request_for_another_host_is_refused_for_every_method(ana):
    for path in ("/projects/p/sparql?query=ASK{}", "/projects/p/sparql", "/projects/p/graphs?default"):
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            headers = {"Host": "evil.example.org", "Origin": ORIGIN, "Access-Control-Request-Method": "GET"}
            assert ana(path, method, headers=headers).status_code == 403


@pytest.mark.usefixtures("loaded_program")
def test_allowed_origins_are_set_by_the_operator_and_not_by_a_root(tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_ALLOW_ORIGIN", f"{ORIGIN} http://localhost:3000")
    candidates = (ORIGIN, "http://localhost:3000", "https://one.example.org")

    def allowed(*options):
        with serving(tmp_path / "root", *options) as process, Client(process.url) as client:
            heads = {origin: client.ask("HEAD", "/healthz", headers={"Origin": origin})[1] for origin in candidates}
        assert all(head["Access-Control-Allow-Origin"] in (None, origin) for origin, head in heads.items())
        return [origin for origin, head in heads.items() if head["Access-Control-Allow-Origin"]]

    assert allowed() == [*candidates[:2]]
    assert allowed("--allow-origin", candidates[2], "--allow-origin", candidates[0]) == [candidates[0], candidates[2]]
    monkeypatch.delenv("JIDOMEM_ALLOW_ORIGIN")
    assert allowed() == []
    (tmp_path / "root").mkdir(exist_ok=True)
    (tmp_path / "root" / "config.toml").write_text(f'allow_origin = ["{ORIGIN}"]\n')
    with pytest.raises(Failed, match="allow_origin is not known here"):
        load(tmp_path / "root")
