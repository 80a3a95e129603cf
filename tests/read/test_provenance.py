import pytest
from reader_world import new_index, triples

from jidomem.rdf.vocab import graph_iri
from jidomem.read.provenance import CONFLICTS, NodeLink, is_mentioned, neighbourhood, on_topic
from jidomem.schema import ontology

M = "https://jido.ai/memory/"
EVIDENCE = "https://jido.ai/evidence/e"


def memory(name, day, more=""):
    """A fact that was recorded on a day of January."""
    moment = f'"2026-01-{day:02}T00:00:00.000000Z"^^xsd:dateTime'
    return f"""m:{name} a jido:Fact ; jido:summary "{name}" ; jido:appliesToProject p:demo ;
      jido:hasAssertionStatus jido:Asserted ; jido:recordedAt {moment} {more} .
    """


WORLD = f"""
{memory("old", 1, '; jido:topic "store" ; jido:supersededBy m:new')}
{memory("new", 3, f'; jido:topic "store" ; jido:supersedes m:old ; jido:derivedFrom <{EVIDENCE}>')}
{memory("other", 4, f'; jido:derivedFrom <{EVIDENCE}> ; jido:conflictKey "duplicate:1"')}
{memory("rival", 5, '; jido:conflictKey "duplicate:1"')}
{memory("beside", 5, '; jido:conflictKey "duplicate:1" ; jido:coexistsWith m:other, m:rival')}
{memory("task", 6, "; jido:dependsOn m:other ; jido:blockedBy m:gone")}
<{EVIDENCE}> a jido:Evidence ; <http://www.w3.org/2000/01/rdf-schema#label> "a log" .
"""


@pytest.fixture(scope="module")
def index():
    filled = new_index()
    filled.apply(graph_iri("demo"), "world", triples(WORLD))
    return filled


def graph_around(index, *starts, **options):
    return neighbourhood(index, ontology.load(), "demo", starts, **options)


def names(graph):
    return [node.rpartition("/")[2] for node in graph.nodes]


def test_linked_nodes_are_found_nearest_first_in_both_directions(index):
    assert names(graph_around(index, M + "old", depth=0)) == ["old"]
    assert names(graph_around(index, M + "old", depth=1)) == ["old", "new"]
    graph = graph_around(index, M + "old", depth=3)

    assert names(graph) == ["old", "new", "e", "other"]
    assert graph.links == (
        NodeLink(M + "new", "derivedFrom", EVIDENCE),
        NodeLink(M + "new", "supersedes", M + "old"),
        NodeLink(M + "other", "derivedFrom", EVIDENCE),
    )
    assert graph.nodes[EVIDENCE] == {"iri": EVIDENCE, "class": "Evidence", "text": "a log"}
    assert graph.nodes[M + "old"]["status"] == "superseded"


def test_nodes_beyond_the_limit_are_counted_at_their_neighbours(index):
    graph = graph_around(index, M + "other", depth=2, most=3)

    assert (names(graph), graph.more) == (["other", "rival", "task"], {M + "other": 2, M + "rival": 1, M + "task": 1})


def test_memories_with_a_common_conflict_key_conflict_unless_declared_coexistent(index):
    graph = graph_around(index, M + "rival", depth=1)

    assert (NodeLink(M + "other", CONFLICTS, M + "rival")) in graph.links
    assert (NodeLink(M + "beside", "coexistsWith", M + "rival")) in graph.links
    assert [link.kind for link in graph.links].count(CONFLICTS) == 1


def test_conventions_with_a_common_key_conflict_only_where_their_places_overlap():
    of_src, of_lib, of_web = (
        memory(name, 4, f'; jido:about "{place}" ; jido:conflictKey "convention_clash:1"')
        for name, place in (("one", "src"), ("two", "lib"), ("three", "src/web"))
    )
    filled = new_index()
    filled.apply(graph_iri("demo"), "world", triples(of_src + of_lib + of_web))

    links = graph_around(filled, M + "one", depth=1).links

    assert [(link.source, link.target) for link in links if link.kind == CONFLICTS] == [(M + "one", M + "three")]


def test_a_past_graph_has_no_later_nodes_or_links(index):
    then = graph_around(index, M + "old", M + "rival", as_of="2026-01-02", depth=3)

    assert (names(then), then.links, then.more) == (["old"], (), {M + "old": 0})
    assert then.nodes[M + "old"]["status"] == "active"


def test_an_unrecorded_target_of_a_link_is_a_node_without_text(index):
    graph = graph_around(index, M + "task", depth=1)

    assert graph.nodes[M + "gone"] == {"iri": M + "gone", "class": "Evidence", "text": None}
    assert [is_mentioned(index, "demo", each) for each in (EVIDENCE, M + "old", "urn:none")] == [True, False, False]


def test_the_memories_of_a_topic_are_listed_by_id(index):
    assert on_topic(index, "demo", "store") == [M + "old", M + "new"]  # ids contain the time of creation


def test_the_number_of_triples_is_limited(index):
    everything = [*index.triples(graph_iri("demo"))]

    assert [*index.triples(graph_iri("demo"), most=3)] == everything[:3]
    assert len(everything) > 3
