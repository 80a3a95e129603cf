"""Short ids, compared with an exhaustive search of the index."""

import re
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.base.stems import Stemmer
from jidomem.index.projection import IndexedProject
from jidomem.index.search_tables import SearchIndexReader
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import graph_iri, jido

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
