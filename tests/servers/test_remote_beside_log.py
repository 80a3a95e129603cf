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

ASKED = "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s } ORDER BY ?s"
TERMS = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label "recipe" .
"""


@pytest.fixture(params=["postgres", "bucket"])
def address(request):
    found = request.getfixturevalue(request.param)
    return found if request.param == "bucket" else found.address()


@pytest.fixture
def port():
    if sparql_servers.OXIGRAPH is None:
        pytest.skip("there is no oxigraph here: pip install oxigraph")
    return sparql_servers.free_port()


@pytest.fixture
def opened(address, port, tmp_path, monkeypatch):
    """Open the root as the server of that name does, with the store at the port."""
    memories = []

    def opened(server):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / server))
        memories.append(jidomem.open(address, project="p", index=f"sparql+http://127.0.0.1:{port}/query"))
        return memories[-1]

    yield opened
    for memory in memories:
        memory.close()


def said(memory):
    """What the store answers, and that it is the store that does."""
    assert memory.remote.answers(None)
    return [row["s"] for row in memory.reader.select("p", ASKED)]


def held(memory):
    """All that the store has, asked by another way."""
    at = endpoint(f"sparql+{memory.remote.shown}")
    data = at.ask("SELECT ?o { GRAPH ?g { ?s ?p ?o } }", "application/sparql-results+json")
    at.close()
    return data


def test_two_servers_answer_by_one_store_that_is_wiped_away_and_given_another_ontology(opened, port, address):
    here, there = opened("here"), opened("there")
    with sparql_servers.oxigraph(port=port):
        kept = here.writer.submit_intent("p", intent(summary="a first"))
        client = create_app(there).test_client()
        asked = client.get(f"/projects/p/queries/facts?min_position={kept.version}")
        assert (asked.status_code, [row["summary"] for row in asked.json["rows"]]) == (200, ["a first"])
        assert said(there) == said(here) == ["a first"]
        there.writer.submit_intent("p", intent(summary="b second"))
        assert said(here) == said(there) == ["a first", "b second"]

    here.writer.submit_intent("p", intent(summary="c third"))  # nothing waits for a store
    with pytest.raises(Failed) as away:
        said(there)
    assert away.value.code == "store_unreachable"

    with sparql_servers.oxigraph(port=port):  # empty
        assert said(there) == said(here) == ["a first", "b second", "c third"]
        here.close()
        again = opened("here")
        assert said(again) == ["a first", "b second", "c third"]

        plan = again.keeper.plan("p", item=kept.iri)
        again.keeper.redact(plan, agent="architect", reason="it is a secret")
        assert said(there) == said(again) == ["b second", "c third"]
        assert (b"a first" in held(there), b"b second" in held(there)) == (False, True)

        log = addresses.open_log(address, os.environ)
        addresses.change(log, lambda now: {**now, "ontology/own.ttl": TERMS})
        log.close()
        below = "SELECT ?c { ?c <http://www.w3.org/2000/01/rdf-schema#subClassOf> <https://jido.ai/ontology#Fact> }"
        for memory in (there, again):
            assert {"c": "https://my.example/kitchen#Recipe"} in memory.reader.select("p", below)
