"""Short ids, held against a look at every triple of the index."""

import re
from threading import Thread

from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.index import OxigraphIndex
from jidomem.index.disagreements import Ids
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import graph_iri, jido

GRAPH, OTHER = graph_iri("p"), graph_iri("other")
PROJECT, OF = iri("https://jido.ai/projects/p"), jido("appliesToProject")
SIGNS = st.text("ab1-", min_size=1, max_size=4)
NAMES = st.builds(
    "{}{}".format, st.sampled_from(["https://jido.ai/memory/", "urn:x:ab", "http://h/a#1", "http://h/ab/"]), SIGNS
)
ASKED = st.one_of(SIGNS, st.sampled_from(["item", "a b", "/ab", "a\n", "\ud800", "", "ab>"]))


def added(index, graph, names, project=PROJECT, kept="c"):
    index.apply(graph, f"{kept} {sorted(names)}", [(iri(name), OF, project) for name in names])


def slowly(index, signs, most):
    """What the triples say one by one."""
    names = {item[1:-1] for item, _, _ in index.triples(GRAPH, None, OF, PROJECT)}
    parts = {name: re.split("[/#:]", name)[-1] for name in names}
    fits = [name for name, part in parts.items() if signs and (part.startswith(signs) or part.endswith(signs))]
    return sorted(fits)[:most]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(NAMES, max_size=8), max_size=4), st.lists(ASKED, min_size=1, max_size=4), st.integers(1, 10))
def test_what_begins_or_ends_with_some_signs_is_found_whenever_it_came(batches, asked, most):
    index = OxigraphIndex()
    ids = Ids(index)
    for names in [[], *batches]:
        added(index, GRAPH, names)
        added(index, GRAPH, [f"{name}-of-another" for name in names], iri("https://jido.ai/projects/q"))
        added(index, OTHER, [f"{name}-elsewhere" for name in names])
        for signs in asked:
            assert ids.named(GRAPH, PROJECT, signs, most) == slowly(index, signs, most)


def test_an_index_that_becomes_another_has_the_ids_of_that():
    index, other = OxigraphIndex(), OxigraphIndex()
    ids = Ids(index)
    added(index, GRAPH, ["urn:x:first"])
    assert ids.named(GRAPH, PROJECT, "first", 10) == ["urn:x:first"]

    added(other, GRAPH, ["urn:x:second"])
    index.become(other)
    ids.reset(GRAPH)  # what no journal keeps has no mark that differs

    assert ids.named(GRAPH, PROJECT, "first", 10) == []
    assert ids.named(GRAPH, PROJECT, "second", 10) == ["urn:x:second"]


def test_what_is_written_while_others_ask_is_found_once_it_is_there():
    index, found = OxigraphIndex(), []
    ids = Ids(index)

    def write():
        for number in range(200):
            added(index, GRAPH, [f"urn:x:{number:04}-new"])

    writer = Thread(target=write)
    writer.start()
    while writer.is_alive():
        found.append(len(ids.named(GRAPH, PROJECT, "-new", 1_000)))
    writer.join()

    assert found == sorted(found)
    assert len(ids.named(GRAPH, PROJECT, "-new", 1_000)) == 200
