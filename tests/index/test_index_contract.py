"""One suite over every index: in memory, on disk, `oxigraph serve` and Virtuoso 7 answer the same."""

from itertools import count
from threading import Thread

import pytest
from conftest import decision, intent, wait_until
from index_world import small_limits

import jidomem
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, graph_iri

EMBEDDED, REMOTE = ("memory", "disk"), ("oxigraph", "virtuoso")
_PROJECTS = count(1)
ODD = 'Zo\u00eb said "no"\n\t\\ and \U0001f600 {?x} <b> #c ' + "long " * 40_000


@pytest.fixture(params=[*EMBEDDED, *REMOTE])
def open_root(request, root, monkeypatch):
    """Return a function that opens the root with this index, and a new project."""
    index = "" if request.param in EMBEDDED else request.getfixturevalue(f"{request.param}_server")
    if request.param == "disk":
        small_limits(monkeypatch, large=0)
    memories = []

    def open_next(**more):
        memories.append(jidomem.open(root, index=index, **more))
        return memories[-1]

    open_next.project = f"contract{next(_PROJECTS)}"
    yield open_next
    for memory in memories:
        memory.close()


def facts(memory, project, **asked):
    return [row["summary"] for row in memory.reader.ask("facts", project=project, **asked)]


def remember(memory, project, *summaries):
    intents_ = [intent(summary=text, applies_to_project=project, topic=text[:40]) for text in summaries]
    return [receipt.iri for receipt in memory.writer.submit_many(project, intents_)]


def count_of(memory, project, *froms):
    clauses = " ".join(f"FROM <{graph}>" for graph in froms)
    (row,) = memory.reader.select(project, f"SELECT (COUNT(*) AS ?n) {clauses} WHERE {{ ?s ?p ?o }}")
    return row["n"]


def test_a_written_memory_is_read_at_once_by_every_process(open_root):
    one, other, project = open_root(), open_root(), open_root.project
    remember(one, project, "the first")
    assert facts(other, project) == ["the first"]

    remember(other, project, "the second")

    assert sorted(facts(one, project)) == sorted(facts(other, project)) == ["the first", "the second"]


def test_texts_with_special_characters_are_read_back_as_written(open_root):
    memory, project = open_root(), open_root.project
    (iri,) = remember(memory, project, ODD.strip())

    assert facts(memory, project) == [ODD.strip()]
    assert memory.reader.get_memory(project, iri)["properties"]["summary"] == [ODD.strip()]


def test_a_superseded_decision_is_omitted_now_and_listed_as_of_its_time(open_root):
    memory, project = open_root(), open_root.project
    first = memory.writer.submit_intent(project, decision(applies_to_project=project, topic="store"))
    before = memory.reader.get_memory(project, first.iri)["recorded_at"]
    fields = decision(applies_to_project=project, topic="store", summary="Use Virtuoso", supersedes=[first.iri])
    memory.writer.submit_intent(project, fields)

    now, then = (memory.reader.ask("active-decisions", project=project, as_of=at) for at in (None, before))

    assert [row["summary"] for row in now] == ["Use Virtuoso"]
    assert [row["summary"] for row in then] == ["Use Oxigraph"]
    everything = memory.reader.ask("active-decisions", project=project, include_inactive=True)
    assert {row["summary"] for row in everything} == {"Use Oxigraph", "Use Virtuoso"}


def test_the_pages_of_a_list_join_to_the_list(open_root):
    memory, project = open_root(), open_root.project
    remember(memory, project, *(f"fact {n:02d}" for n in range(25)))
    page, rows = memory.reader.ask_page("facts", project=project, limit=10), []
    while True:
        rows += page.rows
        if page.cursor is None:
            break
        page = memory.reader.ask_page("facts", project=project, limit=10, cursor=page.cursor)

    assert rows == memory.reader.ask("facts", project=project)
    assert len(rows) == 25


def test_a_rebuilt_index_has_each_triple_once(open_root):
    memory, project = open_root(), open_root.project
    remember(memory, project, "a", "b")
    remember(memory, project, "c")
    before = count_of(memory, project, graph_iri(project))

    memory.follower.rebuild()
    if memory.remote is not None:
        memory.remote.rebuild()

    written = {triple for stream in memory.journal.streams() for commit in memory.journal.read(stream)
               if stream.graph == graph_iri(project) for triple in commit.triples}  # fmt: skip
    assert count_of(memory, project, graph_iri(project)) == before == len(written)
    assert sorted(facts(memory, project)) == ["a", "b", "c"]


def test_a_cleared_graph_is_empty_and_accepts_later_statements(open_root):
    memory, project = open_root(), open_root.project
    remember(memory, project, "a fact")
    store, graph = memory.long_term(project), graph_iri(project, "history")
    store.insert([("urn:talk:1", "urn:says", "before")], graph="history")
    assert count_of(memory, project, graph) > 0

    store.clear_graph("history")
    assert count_of(memory, project, graph) == 0
    store.insert([("urn:talk:2", "urn:says", "after")], graph="history")

    rows = open_root().reader.select(project, "SELECT ?s WHERE { ?s <urn:says> ?o }")
    assert [row["s"] for row in rows] == ["urn:talk:2"]


def test_a_redacted_text_is_in_no_answer(open_root):
    memory, project = open_root(), open_root.project
    remember(memory, project, "hunter2hunter is the password", "another fact")
    assert len(facts(memory, project)) == 2

    plan = memory.maintenance.plan(project, None, texts=["hunter2hunter"])
    memory.maintenance.redact(plan, agent="ana", reason="a password")

    query = "SELECT ?o WHERE { ?s ?p ?o FILTER(CONTAINS(STR(?o), 'hunter2')) }"
    assert memory.reader.select(project, query) == open_root().reader.select(project, query) == []
    assert facts(memory, project) == ["another fact"]


def test_a_query_reads_only_the_graphs_of_its_project(open_root):
    memory, project = open_root(), open_root.project
    remember(memory, project, "mine")
    remember(memory, f"{project}x", "another's")
    graphs = {row["g"] for row in memory.reader.select(project, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }")}

    assert graphs == {graph_iri(project), ONTOLOGY_GRAPH}
    assert facts(memory, project) == ["mine"]
    assert count_of(memory, project) > count_of(memory, project, graph_iri(project)) > 0
    assert memory.reader.select(project, f"SELECT * {{ GRAPH <{graph_iri(f'{project}x')}> {{ ?s ?p ?o }} }}") == []
    assert count_of(memory, project, graph_iri(f"{project}x")) == 0


def test_concurrent_readers_see_whole_commits(open_root):
    writer, project = open_root(), open_root.project
    remember(writer, project, "0a", "0b")
    results, stop = [], []

    def read(memory):
        while not stop:
            results.append(sorted(facts(memory, project)))

    readers = [Thread(target=read, args=(open_root(),)) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(1, 6):
        remember(writer, project, f"{n}a", f"{n}b")
    wait_until(lambda: any(len(rows) == 12 for rows in results))
    stop.append(True)
    for reader in readers:
        reader.join()

    assert all(len(rows) % 2 == 0 and len(set(rows)) == len(rows) for rows in results)
