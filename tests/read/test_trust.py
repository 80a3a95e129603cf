"""The trust of a memory is the least of its own and that of all its sources."""

import tempfile

import pytest
from conftest import decision, fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.rdf.vocab import TRUST, TRUST_OF_SOURCE
from jidomem.read.derived import trust

SOURCES = [None, *TRUST_OF_SOURCE]
#: Each memory has a source, and is derived from some of those before it.
graphs = st.lists(st.tuples(st.sampled_from(SOURCES), st.sets(st.integers(0, 20))), min_size=1, max_size=7)


def build(memory, graph):
    items = []
    for n, (source, parents) in enumerate(graph):
        evidence = [items[parent] for parent in sorted(parents) if parent < n]
        fields = {"source_type": source, "evidence": [*evidence, "a log"], "iri": f"urn:m:{n}"}
        items.append(memory.writer.submit_intent("p", intent(summary=f"number {n}", **fields)).iri)
    return items


@settings(max_examples=25)
@given(graphs)
def test_the_trust_of_a_memory_is_at_most_that_of_its_sources(graph):
    with tempfile.TemporaryDirectory() as root, jidomem.open(root, sources=fixed_sources()) as memory:
        items = build(memory, graph)
        levels = [TRUST.index(trust(memory.reader, "p", item)[0]) for item in items]
        for n, (source, parents) in enumerate(graph):
            own = TRUST.index(TRUST_OF_SOURCE.get(source, "ordinary"))
            assert levels[n] == min([own, *(levels[parent] for parent in parents if parent < n)])
            status = memory.reader.get_memory("p", items[n])["status"]
            assert (status == "pending") == (TRUST[levels[n]] == "untrusted")


def test_the_source_of_distrust_is_named_and_a_curator_restores_trust(memory):
    first, second, third = build(memory, [("ExternalDocumentSource", set()), ("UserSource", {0}), (None, {1})])
    assert trust(memory.reader, "p", third) == ("untrusted", first)
    curator = memory.writer.acting_as("rita", "curator")
    accepted = curator.settle("p", second, "accept").iri
    assert trust(memory.reader, "p", accepted) == ("trusted", accepted)
    assert trust(memory.reader, "p", second) == ("untrusted", first)


def status(memory, item):
    return memory.reader.get_memory("p", item)["status"]


def test_the_trust_of_an_alternative_is_at_most_that_of_its_decision(memory):
    rash = memory.writer.submit_intent(
        "p", decision(alternatives=["Use Lucene", "Use SQLite"], source_type="ExternalDocumentSource")
    ).iri
    concluded = memory.writer.submit_intent("p", intent(evidence=[f"{rash}/alternatives/2"])).iri
    assert trust(memory.reader, "p", concluded) == ("untrusted", rash)
    assert status(memory, concluded) == "pending"

    accepted = memory.writer.acting_as("rita", "curator").settle("p", rash, "accept").iri
    derived = memory.writer.submit_intent("p", intent(summary="so it is", evidence=[f"{accepted}/alternatives/1"])).iri
    assert trust(memory.reader, "p", derived)[0] == "ordinary"
    assert status(memory, derived) == "active"


@pytest.mark.parametrize("way", ["proposed", "against what is active"])
def test_a_proposal_of_a_curator_gains_no_trust(tmp_path, way):
    (tmp_path / "config.toml").write_text('[conflicts]\ndecision = "propose"\n')
    with jidomem.open(tmp_path, sources=fixed_sources()) as memory:
        curator = memory.writer.acting_as("rita", "curator")
        memory.writer.submit_intent("p", decision(topic="store"))
        page = decision(summary="Use magic", topic="store", source_type="ExternalDocumentSource", asserted_by="rita")
        given = curator.submit_intent("p", page, propose=way == "proposed").iri
        concluded = memory.writer.submit_intent("p", intent(evidence=[given])).iri

        assert [trust(memory.reader, "p", item)[0] for item in (given, concluded)] == ["untrusted"] * 2
        assert [status(memory, item) for item in (given, concluded)] == ["pending"] * 2
