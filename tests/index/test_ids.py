"""Short ids, compared with an exhaustive search of the index."""

import re
from contextlib import closing

from conftest import intent
from hypothesis import given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.base.containers import reachable
from jidomem.base.stems import Stemmer
from jidomem.index.projection import IndexedProject
from jidomem.index.search_tables import SearchIndexReader
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.index.tallies import recorded_between
from jidomem.journal.commit import COMMIT
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import graph_iri, jido
from jidomem.records.intent import CommitRef, Version

GRAPH, OTHER = graph_iri("p"), graph_iri("other")
PROJECT, OF = iri("https://jido.ai/projects/p"), jido("appliesToProject")
SIGNS = st.text("ab1-", min_size=1, max_size=4)
NAMES = st.builds(
    "{}{}".format, st.sampled_from(["https://jido.ai/memory/", "urn:x:ab", "http://h/a#1", "http://h/ab/"]), SIGNS
)
QUERIES = st.one_of(SIGNS, st.sampled_from(["item", "a b", "/ab", "a\n", "\ud800", "", "ab>"]))


def add_items(index, graph, names, project=PROJECT):
    index.apply(graph, f"{project} {sorted(names)}", [(iri(name), OF, project) for name in names])
    return {iri(name) for name in names}


def exhaustive(index, signs, most):
    """Return the matching names by a search of all triples."""
    names = {item[1:-1] for item, _, _ in index.triples(GRAPH, None, OF, PROJECT)}
    parts = {name: re.split("[/#:]", name)[-1] for name in names}
    fits = [name for name, part in parts.items() if signs and (part.startswith(signs) or part.endswith(signs))]
    return sorted(fits)[:most]


@settings(max_examples=60)
@given(st.lists(st.lists(NAMES, max_size=8), max_size=4), st.lists(QUERIES, min_size=1, max_size=4), st.integers(1, 10))
def test_short_ids_match_the_beginning_or_end_of_ids_in_any_order_of_addition(batches, queries, most):
    index = OxigraphIndex()
    with closing(SearchIndexReader(":memory:", Stemmer(), 0.0)) as file:
        file.fits()
        for names in [[], *batches]:
            new = add_items(index, GRAPH, names)
            new |= add_items(index, GRAPH, [f"{name}-of-another" for name in names], iri("https://jido.ai/projects/q"))
            add_items(index, OTHER, [f"{name}-elsewhere" for name in names])
            file.projection.update(new, IndexedProject(index, "p"))
            for signs in queries:
                assert file.projection.by_short_id(signs, most) == exhaustive(index, signs, most)


def test_short_ids_of_new_memories_are_resolved_without_adding_them_to_the_search_file(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="me") as memory:
        memory.writer.submit_intent("p", intent(summary="zebra"))
        memory.recall("zebra")
        version = memory.texts.status(Stream("p"))["version"]
        facts = [memory.writer.submit_intent("p", intent(summary=f"fact {number}")).iri for number in range(3)]
        named = memory.writer.submit_intent("p", intent(summary="based on a fact", evidence=[facts[0][-8:]]))

        assert named.filled["evidence"] == [facts[0]]
        assert [memory.reader.resolve("p", item[-8:]) for item in facts] == facts
        assert memory.texts.status(Stream("p"))["version"] == version


COMMITS = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=2), max_size=12)


@given(COMMITS, st.data())
def test_the_nodes_recorded_between_two_versions_are_all_of_them_or_unknown(parents, data):
    before = {number: {each % number for each in some} if number else set() for number, some in enumerate(parents)}
    index, names = OxigraphIndex(), [f"{COMMIT}{number}" for number in before]
    links = [(iri(names[one]), jido("parent"), iri(names[two])) for one in before for two in before[one]]
    nodes = [(iri(f"urn:{number}"), jido("recordedIn"), iri(names[number])) for number in before]
    index.apply(GRAPH, "commits", [*links, *nodes])

    def is_head(number, others):
        return not any(number in reachable(before[other], before.__getitem__) for other in others)

    def mark(heads):
        refs = [CommitRef(f"{number:02}", str(number), number) for number in heads]
        return Watermark(len(reachable(heads, before.__getitem__)), Version.of(refs))

    heads = st.sets(st.sampled_from([*before])) if before else st.just(set())
    start, end = ({each for each in some if is_head(each, some)} for some in (data.draw(heads), data.draw(heads)))
    new = recorded_between(index, GRAPH, mark(start), mark(end))
    lacking = reachable(end, before.__getitem__) - reachable(start, before.__getitem__)
    is_chain = all(before[number] == {number - 1} for number in [*before][1:])
    assert new is None or sorted(new) == sorted(iri(f"urn:{number}") for number in lacking)
    assert new is not None or not is_chain or max(start, default=-1) > max(end, default=-1)
