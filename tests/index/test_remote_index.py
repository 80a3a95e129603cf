"""A store behind an endpoint that is stopped, wiped, restored, redacted, shared or unfit."""

import shutil
import time
from itertools import count
from threading import Event, Thread

import pytest
import sparql_servers
from click.testing import CliRunner
from conftest import intent, wait_until
from sparql_endpoint import endpoint as scripted_endpoint

import jidomem
from jidomem.base.disk import SETTLE
from jidomem.errors import Failed, InvalidRequest, QueryTimeout
from jidomem.extras.servers.remote_index import RemoteIndex, endpoint
from jidomem.extras.servers.remote_sync import RemoteGraphs, RemoteWatermark
from jidomem.index.store import MARKS, Watermark
from jidomem.journal.journal import Stream
from jidomem.rdf.sparql_client import SparqlEndpoint
from jidomem.rdf.vocab import JIDO, graph_iri
from jidomem_cli.main import cli
from tests.ports import free_port

_PROJECTS = count(1)


@pytest.fixture
def project():
    """Return the name of a project that is in no store."""
    return f"remote{next(_PROJECTS)}"


@pytest.fixture
def update(oxigraph_server):
    """Return a function that updates the store directly."""
    found = endpoint(oxigraph_server.replace("/query", "/update"))
    yield found.change
    found.close()


@pytest.fixture
def memory(root, oxigraph_server):
    with jidomem.open(root, index=oxigraph_server) as opened:
        yield opened


def remember(memory, project, *texts):
    for text in texts:
        memory.writer.submit_intent(project, intent(summary=text, applies_to_project=project, topic=text))


def facts(memory, project):
    return sorted(row["summary"] for row in memory.reader.ask("facts", project=project))


def stored_text(memory, project):
    """Return the memory of a project in the store, by a direct query."""
    graph = graph_iri(project)
    at = endpoint(f"sparql+{memory.remote.shown}")
    data = at.ask(f"SELECT ?s ?p ?o {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}", "application/sparql-results+json")
    at.close()
    return data.decode()


def test_named_queries_and_sparql_are_answered_by_the_store(memory, project, update):
    remember(memory, project, "a fact")
    assert facts(memory, project) == ["a fact"]
    update(f"INSERT DATA {{ GRAPH <{graph_iri(project)}> {{ <urn:only:there> <urn:says> 'so' }} }}")
    text = "SELECT ?o FROM <" + graph_iri(project) + "> { <urn:only:there> <urn:says> ?o }"

    assert memory.reader.select(project, text) == [{"o": "so"}]
    assert b'"so"' in memory.pool.answer(project, text, rows_as="json", graph_as="turtle")
    query = "CONSTRUCT { ?s ?p ?o } { ?s <urn:says> ?o ; ?p ?o }"
    assert memory.reader.run(project, query).triples == (("<urn:only:there>", "<urn:says>", '"so"'),)
    assert memory.reader.run(project, "ASK { <urn:only:there> ?p ?o }").truth is True
    with pytest.raises(InvalidRequest, match="line 1") as refusal:
        memory.reader.select(project, "SELECT ?x WHERE { ?x")
    assert refusal.value.code == "malformed_query"


@pytest.mark.parametrize("update_text", ["DROP ALL", "DROP GRAPH <{graph}>", f"DROP GRAPH <{MARKS}>"])
def test_a_store_that_lost_a_graph_is_filled_again(memory, project, update, update_text):
    remember(memory, project, "one", "two")
    assert facts(memory, project) == ["one", "two"]

    update(update_text.format(graph=graph_iri(project)))

    assert facts(memory, project) == ["one", "two"]
    remember(memory, project, "three")
    assert facts(memory, project) == ["one", "three", "two"]


def test_a_graph_of_an_earlier_version_is_written_again(memory, project, update):
    remember(memory, project, "one topic of several words")
    assert facts(memory, project) == ["one topic of several words"]
    graph, form = graph_iri(project), "<urn:jidomem:index:form>"
    update(f"DELETE WHERE {{ GRAPH <{graph}> {{ ?item <{JIDO}conflictKey> ?key }} }}")
    assert "conflictKey" not in stored_text(memory, project)

    update(f"DELETE WHERE {{ GRAPH <{MARKS}> {{ <{graph}> {form} ?form }} }}")

    assert facts(memory, project) == ["one topic of several words"]
    assert "conflictKey" in stored_text(memory, project)


def test_records_of_a_memory_that_branches_wrote_are_separate_as_in_the_local_index(root, oxigraph_server, project):
    item, query = "https://example.org/items/one", "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o"
    earliest, first, second = branches = [root.with_name(name) for name in ("earliest", "first", "second")]
    with jidomem.open(root) as memory:
        remember(memory, project, "what all know")
    for branch, summary in zip(branches, ("it needs 1.90", "it needs 1.80", "it needs 1.90"), strict=True):
        shutil.copytree(root, branch)
        with jidomem.open(branch) as memory:
            record = intent(iri=item, summary=summary, asserted_by=branch.name, applies_to_project=project)
            memory.writer.submit_intent(project, record)

    with jidomem.open(root, index=oxigraph_server) as memory:
        for branch, summary in ((first, "it needs 1.80"), (second, "it needs 1.80"), (earliest, "it needs 1.90")):
            shutil.copytree(branch / "projects", root / "projects", dirs_exist_ok=True)
            assert facts(memory, project) == [summary, "what all know"]
            with jidomem.open(root) as local:
                assert memory.reader.select(project, query) == local.reader.select(project, query)


def test_a_store_restored_from_before_a_redaction_discloses_nothing(memory, project, update):
    graph = graph_iri(project)
    remember(memory, project, "hunter2hunter opens it", "another")
    assert len(facts(memory, project)) == 2
    assert "hunter2" in stored_text(memory, project)
    update(f"COPY <{graph}> TO <urn:old:graph> ; COPY <{MARKS}> TO <urn:old:marks>")
    plan = memory.maintenance.plan(project, None, texts=["hunter2hunter"])
    memory.maintenance.redact(plan, agent="ana", reason="a password")
    assert facts(memory, project) == ["another"]
    assert "hunter2" not in stored_text(memory, project)

    update(f"MOVE <urn:old:graph> TO <{graph}> ; MOVE <urn:old:marks> TO <{MARKS}>")

    assert "hunter2" in stored_text(memory, project)
    assert facts(memory, project) == ["another"]
    assert "hunter2" not in stored_text(memory, project)


def test_a_delayed_write_to_an_emptied_graph_has_no_effect(memory, project, oxigraph_server):
    remember(memory, project, "old")
    (commit,) = memory.journal.read(Stream(project))
    assert facts(memory, project) == ["old"]
    at, to = endpoint(oxigraph_server), endpoint(oxigraph_server.replace("/query", "/update"))
    shelf = RemoteGraphs(at, to)
    graph = graph_iri(project)
    before = shelf.watermarks([graph])[graph]
    shelf.empty(graph, RemoteWatermark("another life", Watermark().term))

    shelf.put(graph, before, [commit])

    assert shelf.watermarks([graph])[graph] == RemoteWatermark("another life", Watermark().term)
    assert "old" not in stored_text(memory, project)
    at.close()
    to.close()


def test_two_concurrent_writers_of_a_store_leave_each_memory_once(root, project, oxigraph_server):
    with jidomem.open(root, index="") as writer:
        remember(writer, project, *(f"fact {n:03d}" for n in range(40)))
    memories = [jidomem.open(root, index=oxigraph_server) for _ in range(2)]
    results = []

    def read(memory):
        results.append(facts(memory, project))
        remember(memory, project, f"by {len(results)} {id(memory)}")
        results.append(facts(memory, project))

    threads = [Thread(target=read, args=(memory,)) for memory in memories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [len(rows) for rows in results if len(rows) < 40] == []
    assert facts(memories[0], project) == facts(memories[1], project)
    assert len(facts(memories[0], project)) == 42
    ((_, mark),) = memories[0].remote._open_feed().rebuild([Stream(project)]).items()
    assert mark.commits == 42
    for memory in memories:
        memory.close()


def test_an_answer_from_a_graph_emptied_meanwhile_is_requested_again(root, project):
    """One process finds no watermark, and empties the graph after the other filled it and before its query."""
    graph, started, filled, emptied, answered = f"<{graph_iri(project)}>", *(Event() for _ in range(4))

    def before(text):
        if text.startswith(f"DROP SILENT GRAPH {graph}") and not started.is_set():
            started.set()
            filled.wait()
        elif "jido:Fact ;" in text and not filled.is_set():
            filled.set()
            emptied.wait()
        elif f"INSERT {{ GRAPH {graph}" in text and filled.is_set() and not emptied.is_set():
            emptied.set()
            answered.wait()
        elif emptied.is_set():
            answered.set()

    with scripted_endpoint() as server, jidomem.open(root, index=f"sparql+{server.url}") as one:
        server.before = before
        with jidomem.open(root, index=f"sparql+{server.url}") as other:
            remember(one, project, "the first")
            started.wait()
            try:
                assert facts(other, project) == ["the first"]
            finally:
                answered.set()


def test_an_unavailable_store_blocks_no_write_and_is_updated_after_its_return(root, project, oxigraph_server):
    port = free_port()
    address = f"sparql+http://ada:s3cret@127.0.0.1:{port}/query"
    with jidomem.open(root, index=address) as memory:
        remember(memory, project, "while it was away")
        with pytest.raises(Failed, match="did not answer") as away:
            facts(memory, project)
        with pytest.raises(Failed):
            memory.reader.select(project, "SELECT * { ?s ?p ?o }")

        with sparql_servers.oxigraph(port=port):
            assert facts(memory, project) == ["while it was away"]
        with pytest.raises(Failed):
            facts(memory, project)
        remember(memory, project, "and again")
        with sparql_servers.oxigraph(port=port):
            assert facts(memory, project) == ["and again", "while it was away"]
    assert away.value.code == "store_unreachable"
    assert f"http://127.0.0.1:{port}/query" in away.value.detail
    assert "s3cret" not in f"{away.value.detail} {away.value.hint} {memory.settings!r} {memory.remote.shown}"


def test_a_commit_reaches_the_store_before_a_query(root, project, oxigraph_server):
    with jidomem.open(root, index=oxigraph_server) as memory:
        remember(memory, project, "for other tools")
        wait_until(lambda: "for other tools" in stored_text(memory, project))


def test_a_store_of_another_memory_is_refused_until_a_reindex(tmp_path, project, oxigraph_server):
    with jidomem.open(tmp_path / "one", index=oxigraph_server) as one:
        remember(one, project, "of one")
        assert facts(one, project) == ["of one"]
    with jidomem.open(tmp_path / "two", index=oxigraph_server) as two:
        remember(two, project, "of two")
        with pytest.raises(Failed, match="has another memory") as refusal:
            facts(two, project)
        assert (refusal.value.code, "jidomem root reindex" in refusal.value.hint) == ("store_unfit", True)

        result = CliRunner().invoke(
            cli, ["--root", str(tmp_path / "two"), "--index", oxigraph_server, "root", "reindex"]
        )

        assert result.exit_code == 0, result.output
        assert facts(two, project) == ["of two"]


def test_a_store_with_another_ontology_is_refused(root, project, oxigraph_server):
    with jidomem.open(root, index=oxigraph_server) as memory:
        remember(memory, project, "a fact")
        assert facts(memory, project) == ["a fact"]
        other = RemoteIndex(oxigraph_server, memory.journal, memory.index, memory.schema.triples[:100])
        assert other.query("ASK {}", graphs=[graph_iri(project)]) is True

        with pytest.raises(Failed, match="another ontology") as refusal:
            facts(memory, project)
        other.close()
    assert refusal.value.code == "store_unfit"


def test_a_store_that_alters_terms_is_refused_with_its_address(root, project):
    answer = b'{"head": {"vars": ["s"]}, "results": {"bindings": []}}'
    with scripted_endpoint() as server, jidomem.open(root, index=f"sparql+{server.url}") as memory:
        server.answer = (200, answer)
        remember(memory, project, "a fact")
        with pytest.raises(Failed, match="terms are returned as they were written") as refusal:
            facts(memory, project)
    assert (refusal.value.code, server.url in refusal.value.detail) == ("store_unfit", True)


def test_an_oversized_request_is_split_in_halves(root, project):
    with scripted_endpoint() as server, jidomem.open(root, index=f"sparql+{server.url}") as memory:
        memory.remote.fit()
        server.most = 40_000
        remember(memory, project, *(f"fact {n} " + "x" * 5_000 for n in range(20)))

        assert len(facts(memory, project)) == 20


def test_a_query_beyond_its_time_limit_is_aborted(root, project, oxigraph_server):
    """The store is started for this test only, as a shared one would continue with the query."""
    with sparql_servers.oxigraph() as url, jidomem.open(root, index=url) as memory:
        remember(memory, project, *(f"fact {n}" for n in range(5)))
        slow = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
        with pytest.raises(QueryTimeout, match=r"did not answer in 0\.2 seconds"):
            memory.pool.answer(project, slow, rows_as="json", graph_as="turtle", seconds=0.2)


@pytest.mark.parametrize("address", ["http://localhost:7878/query", "sparql+ftp://x/", "sparql+http://", "memory"])
def test_an_invalid_address_of_a_store_is_refused(root, address, monkeypatch):
    monkeypatch.setenv("JIDOMEM_INDEX", address)
    with pytest.raises(Failed) as refusal:
        jidomem.open(root)
    assert refusal.value.code == "invalid_config"
    assert jidomem.open(root, index="").remote is None


def test_the_user_configuration_selects_the_store_and_a_root_cannot(root, config):
    config.write_text('index = "sparql+http://localhost:9/query"\n', "utf-8")
    with jidomem.open(root) as memory:
        assert memory.remote.shown == "http://localhost:9/query"
    root.mkdir()
    (root / "config.toml").write_text('index = "sparql+http://localhost:9/query"\n', "utf-8")
    with pytest.raises(Failed, match="index cannot be set by a root"):
        jidomem.open(root)


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_file_damaged_at_the_first_synchronisation_is_written_once_restored(
    root, project, oxigraph_server, is_settled
):
    with jidomem.open(root, index="") as writer:
        remember(writer, project, "first", "second", "third")
        _, second, _ = writer.journal.read(Stream(project))
    (file,) = [path for path in root.rglob("*.ttl") if second.data == path.read_bytes()]
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"second", b"zecond"))
    if is_settled:
        time.sleep(2 * SETTLE / 1e9)  # from then on an unchanged folder time proves no change
    with jidomem.open(root, index=oxigraph_server) as memory:
        assert facts(memory, project) == facts(memory, project) == ["first", "third"]

        file.write_bytes(whole)

        assert facts(memory, project) == ["first", "second", "third"]
    with jidomem.open(root, index=oxigraph_server) as another:
        assert facts(another, project) == ["first", "second", "third"]


def test_a_branch_without_the_newest_commits_removes_them_from_the_store(root, project, oxigraph_server):
    with jidomem.open(root, index=oxigraph_server) as memory:
        remember(memory, project, "first", "second")
        assert facts(memory, project) == ["first", "second"]
        _, second = memory.journal.read(Stream(project))
        (file,) = [path for path in root.rglob("*.ttl") if second.data == path.read_bytes()]
        file.unlink()

        assert facts(memory, project) == ["first"]
        assert "second" not in stored_text(memory, project)


def test_the_update_address_is_derived_from_the_query_address():
    addresses = {
        url: SparqlEndpoint.of(f"http://h{url}").update_path() for url in ("/query", "/repositories/r", "/sparql")
    }
    assert addresses == {"/query": "/update", "/repositories/r": "/repositories/r/statements", "/sparql": "/sparql"}
