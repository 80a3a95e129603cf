"""The ontology of an index in memory is loaded when it is first read: every read returns it whole."""

from io import BytesIO

import pyoxigraph as ox
import pytest

from jidomem.index.store import OxigraphIndex
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, RDFS, graph_iri, jido

BELOW = f"<{RDFS}subClassOf>"
ONTOLOGY = [(jido("Fact"), BELOW, jido("MemoryItem")), (jido("Risk"), BELOW, jido("MemoryItem"))]
OTHER = [(jido("Task"), BELOW, jido("MemoryItem"))]
GRAPHS = [graph_iri("p"), ONTOLOGY_GRAPH]
EVERY = f"SELECT ?class ?above {{ ?class {BELOW} ?above }}"


def dumped(index):
    sink = BytesIO()
    index.dump(ONTOLOGY_GRAPH, sink)
    return {line.split()[0] for line in sink.getvalue().decode().splitlines()}


READS = {
    "query": lambda index: {row[0] for row in index.query(EVERY, graphs=GRAPHS).rows},
    "named": lambda index: {
        row[0] for row in index.query(f"SELECT ?class {{ GRAPH ?g {{ ?class {BELOW} ?above }} }}",
                                      graphs=GRAPHS[:1], named=GRAPHS).rows
    },
    "serialized": lambda index: {
        line for line in index.serialized(EVERY, graphs=GRAPHS, rows_as="tsv").data.decode().split() if "#" in line
    } - {jido("MemoryItem")},
    "triples": lambda index: {row[0] for row in index.triples(ONTOLOGY_GRAPH)},
    "match": lambda index: {row[0] for row in index.match(ONTOLOGY_GRAPH, None, BELOW, None)},
    "dump": dumped,
}  # fmt: skip


@pytest.fixture(params=READS)
def classes(request):
    """Reads the classes of the ontology of an index."""
    return READS[request.param]


def subjects(ontology):
    return {row[0] for row in ontology}


def test_the_ontology_is_read_whole_also_after_its_replacement(classes):
    index = OxigraphIndex()
    index.put_ontology(OTHER)
    index.put_ontology(ONTOLOGY)
    assert classes(index) == subjects(ONTOLOGY)

    index.put_ontology(OTHER)
    assert classes(index) == subjects(OTHER)


@pytest.mark.parametrize("is_read", [False, True])
def test_the_ontology_is_replaced_with_the_content_of_another_index(classes, is_read):
    index, other = OxigraphIndex(), OxigraphIndex()
    index.put_ontology(ONTOLOGY)
    other.put_ontology(OTHER)
    assert not is_read or classes(index) == subjects(ONTOLOGY)

    index.replace_by(other)

    assert classes(index) == subjects(OTHER)


def test_a_query_during_a_replacement_reads_the_new_ontology(monkeypatch):
    index, other = OxigraphIndex(), OxigraphIndex()
    index.put_ontology(ONTOLOGY)
    other.put_ontology(OTHER)
    assert READS["query"](index) == subjects(ONTOLOGY)

    monkeypatch.setattr(index, "apply_pending", lambda: index.replace_by(other))

    assert READS["query"](index) == subjects(OTHER)


def test_the_ontology_moves_to_disk_with_the_index(classes, tmp_path):
    index, store = OxigraphIndex(), ox.Store(str(tmp_path / "store"))
    index.put_ontology(ONTOLOGY)
    index.move_to(store, str(tmp_path / "passage.nq"))

    assert len([*store.quads_for_pattern(None, None, None, ox.NamedNode(ONTOLOGY_GRAPH))]) == len(ONTOLOGY)
    assert classes(index) == subjects(ONTOLOGY)
    index.put_ontology(OTHER)
    assert classes(index) == subjects(OTHER)
