"""One suite over every index: in memory, on disk, `oxigraph serve` and Virtuoso 7 answer the same."""

from itertools import count
from threading import Thread

import pytest
from conftest import decision, intent
from index_world import small_limits

import jidomem
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, graph_iri

EMBEDDED, REMOTE = ("memory", "disk"), ("oxigraph", "virtuoso")
_PROJECTS = count(1)
ODD = 'Zo\u00eb said "no"\n\t\\ and \U0001f600 {?x} <b> #c ' + "long " * 40_000


@pytest.fixture(params=[*EMBEDDED, *REMOTE])
def opened(request, root, monkeypatch):
    """What opens the root with this index, and a project nobody has put into it before."""
    index = "" if request.param in EMBEDDED else request.getfixturevalue(f"{request.param}_server")
    if request.param == "disk":
        small_limits(monkeypatch, large=0)
    held = []

    def opens(**more):
        held.append(jidomem.open(root, index=index, **more))
        return held[-1]

    opens.project = f"contract{next(_PROJECTS)}"
    yield opens
    for memory in held:
        memory.close()


def facts(memory, project, **asked):
    return [row["summary"] for row in memory.reader.ask("facts", project=project, **asked)]


def remember(memory, project, *summaries):
    given = [intent(summary=text, applies_to_project=project, topic=text[:40]) for text in summaries]
    return [receipt.iri for receipt in memory.writer.submit_many(project, given)]


def count_of(memory, project, *froms):
    said = " ".join(f"FROM <{graph}>" for graph in froms)
    (row,) = memory.reader.select(project, f"SELECT (COUNT(*) AS ?n) {said} WHERE {{ ?s ?p ?o }}")
    return row["n"]


def test_a_written_memory_is_read_at_once_by_every_process(opened):
    one, other, project = opened(), opened(), opened.project
    remember(one, project, "the first")
    assert facts(other, project) == ["the first"]

    remember(other, project, "the second")

    assert sorted(facts(one, project)) == sorted(facts(other, project)) == ["the first", "the second"]


def test_texts_with_special_characters_are_read_back_as_written(opened):
    memory, project = opened(), opened.project
    (iri,) = remember(memory, project, ODD.strip())

    assert facts(memory, project) == [ODD.strip()]
    assert memory.reader.get_memory(project, iri)["properties"]["summary"] == [ODD.strip()]


def test_a_superseded_decision_is_omitted_now_and_listed_as_of_its_time(opened):
    memory, project = opened(), opened.project
    first = memory.writer.submit_intent(project, decision(applies_to_project=project, topic="store"))
    before = memory.reader.get_memory(project, first.iri)["recorded_at"]
    said = decision(applies_to_project=project, topic="store", summary="Use Virtuoso", supersedes=[first.iri])
    memory.writer.submit_intent(project, said)

    now, then = (memory.reader.ask("active-decisions", project=project, as_of=at) for at in (None, before))

    assert [row["summary"] for row in now] == ["Use Virtuoso"]
    assert [row["summary"] for row in then] == ["Use Oxigraph"]
    everything = memory.reader.ask("active-decisions", project=project, include_inactive=True)
    assert {row["summary"] for row in everything} == {"Use Oxigraph", "Use Virtuoso"}


def test_the_pages_of_a_list_join_to_the_list(opened):
    memory, project = opened(), opened.project
    remember(memory, project, *(f"fact {n:02d}" for n in range(25)))
    page, rows = memory.reader.ask_page("facts", project=project, limit=10), []
    while True:
        rows += page.rows
        if page.cursor is None:
            break
        page = memory.reader.ask_page("facts", project=project, limit=10, cursor=page.cursor)

    assert rows == memory.reader.ask("facts", project=project)
    assert len(rows) == 25


def test_a_rebuilt_index_has_each_triple_once(opened):
    memory, project = opened(), opened.project
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


def test_a_cleared_graph_is_empty_and_accepts_later_statements(opened):
    memory, project = opened(), opened.project
    remember(memory, project, "a fact")
    kept, graph = memory.long_term(project), graph_iri(project, "history")
    kept.insert([("urn:talk:1", "urn:says", "before")], graph="history")
    assert count_of(memory, project, graph) > 0

    kept.clear_graph("history")
    assert count_of(memory, project, graph) == 0
    kept.insert([("urn:talk:2", "urn:says", "after")], graph="history")

    found = opened().reader.select(project, "SELECT ?s WHERE { ?s <urn:says> ?o }")
    assert [row["s"] for row in found] == ["urn:talk:2"]


def test_a_redacted_text_is_in_no_answer(opened):
    memory, project = opened(), opened.project
    remember(memory, project, "hunter2hunter is the password", "another fact")
    assert len(facts(memory, project)) == 2

    plan = memory.keeper.plan(project, None, texts=["hunter2hunter"])
    memory.keeper.redact(plan, agent="ana", reason="a password")

    asked = "SELECT ?o WHERE { ?s ?p ?o FILTER(CONTAINS(STR(?o), 'hunter2')) }"
    assert memory.reader.select(project, asked) == opened().reader.select(project, asked) == []
    assert facts(memory, project) == ["another fact"]


def test_a_query_reads_only_the_graphs_of_its_project(opened):
    memory, project = opened(), opened.project
    remember(memory, project, "mine")
    remember(memory, f"{project}x", "another's")
    graphs = {row["g"] for row in memory.reader.select(project, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }")}

    assert graphs == {graph_iri(project), ONTOLOGY_GRAPH}
    assert facts(memory, project) == ["mine"]
    assert count_of(memory, project) > count_of(memory, project, graph_iri(project)) > 0
    assert memory.reader.select(project, f"SELECT * {{ GRAPH <{graph_iri(f'{project}x')}> {{ ?s ?p ?o }} }}") == []
    assert count_of(memory, project, graph_iri(f"{project}x")) == 0


def test_concurrent_readers_see_whole_commits(opened):
    writer, project = opened(), opened.project
    remember(writer, project, "0a", "0b")
    seen, stop = [], []

    def read(memory):
        while not stop:
            seen.append(sorted(facts(memory, project)))

    readers = [Thread(target=read, args=(opened(),)) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(1, 6):
        remember(writer, project, f"{n}a", f"{n}b")
    while not any(len(rows) == 12 for rows in seen):
        pass
    stop.append(True)
    for reader in readers:
        reader.join()

    assert all(len(rows) % 2 == 0 and len(set(rows)) == len(rows) for rows in seen)
