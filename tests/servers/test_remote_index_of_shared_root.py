"""A triple store as index of a shared root: two servers use one store, with faults of the store."""

import os

import pytest
import sparql_servers
from conftest import intent

import jidomem
from jidomem.errors import Failed
from jidomem.extras.servers import addresses
from jidomem.extras.servers.remote_index import endpoint
from jidomem.serve.app import create_app
from tests.ports import free_port

QUERY = "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s } ORDER BY ?s"
TERMS = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label "recipe" .
"""


@pytest.fixture(params=["postgres", "bucket"])
def address(request):
    place = request.getfixturevalue(request.param)
    return place if request.param == "bucket" else place.address()


@pytest.fixture
def port():
    if sparql_servers.OXIGRAPH is None:
        pytest.skip("there is no oxigraph here: pip install oxigraph")
    return free_port()


@pytest.fixture
def open_server(address, port, tmp_path, monkeypatch):
    """Return a function that opens the root as the server of a name, with the store at the port."""
    memories = []

    def open_server(server):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / server))
        memories.append(jidomem.open(address, project="p", index=f"sparql+http://127.0.0.1:{port}/query"))
        return memories[-1]

    yield open_server
    for memory in memories:
        memory.close()


def summaries(memory):
    """The summaries from the store, which must be the one that answers."""
    assert memory.remote.answers(None)
    return [row["s"] for row in memory.reader.select("p", QUERY)]


def stored_data(memory):
    """All data of the store, by another query."""
    at = endpoint(f"sparql+{memory.remote.shown}")
    data = at.ask("SELECT ?o { GRAPH ?g { ?s ?p ?o } }", "application/sparql-results+json")
    at.close()
    return data


def test_two_servers_share_one_store_after_its_loss_a_redaction_and_an_ontology_change(open_server, port, address):
    here, there = open_server("here"), open_server("there")
    with sparql_servers.oxigraph(port=port):
        secret = here.writer.submit_intent("p", intent(summary="a first"))
        client = create_app(there).test_client()
        answer = client.get(f"/projects/p/queries/facts?min_position={secret.version}")
        assert (answer.status_code, [row["summary"] for row in answer.json["rows"]]) == (200, ["a first"])
        assert summaries(there) == summaries(here) == ["a first"]
        there.writer.submit_intent("p", intent(summary="b second"))
        assert summaries(here) == summaries(there) == ["a first", "b second"]

    here.writer.submit_intent("p", intent(summary="c third"))  # a write does not wait for the store
    with pytest.raises(Failed) as failure:
        summaries(there)
    assert failure.value.code == "store_unreachable"

    with sparql_servers.oxigraph(port=port):  # empty
        assert summaries(there) == summaries(here) == ["a first", "b second", "c third"]
        here.close()
        reopened = open_server("here")
        assert summaries(reopened) == ["a first", "b second", "c third"]

        plan = reopened.maintenance.plan("p", item=secret.iri)
        reopened.maintenance.redact(plan, agent="architect", reason="it is a secret")
        assert summaries(there) == summaries(reopened) == ["b second", "c third"]
        assert (b"a first" in stored_data(there), b"b second" in stored_data(there)) == (False, True)

        log = addresses.open_log(address, os.environ)
        addresses.change(log, lambda now: {**now, "ontology/own.ttl": TERMS})
        log.close()
        subclasses = (
            "SELECT ?c { ?c <http://www.w3.org/2000/01/rdf-schema#subClassOf> <https://jido.ai/ontology#Fact> }"
        )
        for memory in (there, reopened):
            assert {"c": "https://my.example/kitchen#Recipe"} in memory.reader.select("p", subclasses)
