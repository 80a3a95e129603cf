"""The queries of the playbook on remote stores: the answers are those of the local engine."""

import json
from functools import cache
from pathlib import Path

import pytest
from reader_world import DATA, needed, reader_of, shortened, triples, world_index

import jidomem
from bench.generate import intents
from jidomem.extras.servers import remote_index
from jidomem.extras.servers.remote_index import RemoteIndex, endpoint
from jidomem.journal.journal import FileJournal
from jidomem.rdf.terms import ntriples_line
from jidomem.rdf.vocab import graph_iri
from jidomem.read.playbook import Playbook

CASES = Path(__file__).parents[1] / "queries" / "cases"
SHIPPED = {query.name: query for query in Playbook()}
STORES = ("oxigraph", "virtuoso")
MOMENTS = (
    {},
    {"as_of": "2026-01-04"},
    {"valid_at": "2026-01-04"},
    {"as_of": "2026-01-02T12:00:00Z", "valid_at": "2026-02-02"},
)


@pytest.fixture(scope="module", params=STORES)
def worlds(request, tmp_path_factory):
    """A reader of the files in a remote store, and that store."""
    own, address = world_index(), request.getfixturevalue(f"{request.param}_server")
    ontology = triples((DATA / "ontology.ttl").read_text("utf-8"))
    remote = RemoteIndex(address, FileJournal(tmp_path_factory.mktemp("none")), own, ontology)
    update = endpoint(address.replace("/query", "/update"))
    files = sorted(DATA.glob("*/*.ttl"))
    for file in files:
        rows = "\n".join(map(ntriples_line, triples(file.read_text("utf-8"))))
        update.change(f"INSERT DATA {{ GRAPH <{graph_iri(file.parent.name, file.stem)}> {{ {rows} }} }}")
    remote.rebuild()
    yield reader_of(own, remote=remote), remote
    remote.close()
    for file in files:
        update.change(f"DROP SILENT GRAPH <{graph_iri(file.parent.name, file.stem)}>")
    update.close()


@pytest.fixture(scope="module")
def local_answer():
    """Return a function that answers a query from the same files in the index of this process."""
    reader = reader_of(world_index())
    return cache(lambda name, project, more: reader.ask(name, project=project, **needed(SHIPPED[name]), **dict(more)))


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_query_on_a_remote_store_returns_the_rows_of_its_cases(worlds, name):
    remote_reader, remote = worlds
    for case in json.loads((CASES / f"{name}.json").read_text("utf-8")).values():
        assert shortened(remote_reader.ask(name, project="demo", **case["asked"])) == case["rows"], case["asked"]
    assert remote.answers(name) == (remote.fit().proven is None or name in remote_index.PROVEN)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_query_on_a_remote_store_answers_every_moment_as_locally(worlds, local_answer, name):
    remote_reader, _ = worlds
    query = SHIPPED[name]
    rows = [("demo", moment) for moment in MOMENTS if "valid_at" not in moment or query.takes("validAt")]
    if query.takes("includeInactive"):
        rows += [("demo", rows[0][1] | {"include_inactive": True}), ("demo", rows[-1][1] | {"include_inactive": True})]
    if query.takes("project") and not query.takes("item"):
        rows.append(("other", {}))
    for project, more in rows:
        local = local_answer(name, project, tuple(more.items()))
        assert remote_reader.ask(name, project=project, **needed(query), **more) == local, (project, more)


@pytest.mark.parametrize("store", STORES)
def test_a_generated_memory_is_answered_by_a_remote_store_as_locally(store, request, root):
    address, project = request.getfixturevalue(f"{store}_server"), f"lived{store}"
    with jidomem.open(root, index="") as local_memory, jidomem.open(root, index=address) as remote_memory:
        local_memory.writer.submit_many(project, [{**fields, "applies_to_project": project} for fields in intents(200)])
        (row,) = local_memory.reader.select(project, "SELECT * { ?x <https://jido.ai/ontology#supersedes> ?old . "
                                            "?old <https://jido.ai/ontology#recordedAt> ?at } LIMIT 1")  # fmt: skip
        for query in local_memory.playbook:
            arguments = {**needed(query), **({"item": row["old"]} if query.takes("item") else {})}
            inactive = [{"include_inactive": True}] if query.takes("includeInactive") else []
            for more in ({}, {"limit": 7, "as_of": row["at"]}, *inactive):
                local, remote = (
                    each.reader.ask(query.name, project=project, **arguments, **more)
                    for each in (local_memory, remote_memory)
                )
                assert remote == local, (query.name, more)


def test_the_queries_proven_on_virtuoso_are_shipped_queries():
    assert not remote_index.PROVEN.difference(SHIPPED)
