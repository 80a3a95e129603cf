"""The published formulas, each computed by hand, and their properties for any input."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from conftest import START
from hypothesis import given
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.segments import cosine, fscore, heat, jaccard, recency, relevance
from jidomem.extras.memoryos.values import DialoguePage, DialogueSegment

CONFIG = MemoryOSConfig()
numbers = st.floats(allow_nan=False, allow_infinity=False)
words = st.frozensets(st.sampled_from("abcdef"))
pair = st.integers(1, 4).flatmap(lambda size: st.tuples(*[st.lists(numbers, min_size=size, max_size=size)] * 2))


def page(number, **given):
    return DialoguePage(f"p{number}", "ada", "?", "!", START, segment_id="s1", **given)


def segment(pages=1, **fields):
    segment_pages = pages if isinstance(pages, tuple) else tuple(map(page, range(pages)))
    return DialogueSegment(
        **{"id": "s1", "agent_id": "ada", "topic_summary": "the index", "created_at": START, "last_accessed": START,
           "pages": segment_pages, **fields}
    )  # fmt: skip


# D044 D048
def test_fscore_is_the_sum_of_vector_cosine_and_keyword_jaccard():
    one = segment(embedding=(3.0, 4.0), keywords={"index", "store", "disk"})
    other = page(1, embedding=(4.0, 3.0), keywords={"store", "disk", "lock", "file"})
    # cosine  = (3*4 + 4*3) / (sqrt(9+16) * sqrt(16+9)) = 24 / (5 * 5)  = 0.96
    # jaccard = |{store, disk}| / |{index, store, disk, lock, file}|    = 2 / 5 = 0.4
    assert fscore(one, other, CONFIG) == pytest.approx(1.36)
    # the same vector and the same keywords: 1 + 1
    assert fscore(one, replace(other, embedding=(3.0, 4.0), keywords=one.keywords), CONFIG) == 2.0
    # the opposite vector and other keywords: -1 + 0
    assert fscore(one, replace(other, embedding=(-3.0, -4.0), keywords={"lock"}), CONFIG) == -1.0


# D045
def test_jaccard_is_intersection_over_union_and_zero_for_empty_sets():
    assert jaccard({"index", "store"}, {"store", "disk"}) == pytest.approx(1 / 3)  # {store} of {index, store, disk}
    assert jaccard([], []) == 0.0
    assert jaccard(["index"], []) == 0.0
    assert jaccard(["index", "index", "store"], ["store", "store"]) == 0.5  # {store} of {index, store}


# D046 D047
def test_cosine_is_zero_for_missing_or_zero_vectors_and_refuses_other_lengths():
    assert (cosine(None, (1.0,)), cosine((1.0,), None)) == (0.0, 0.0)
    assert (cosine((0.0, 0.0), (1.0, 0.0)), cosine((0.0,), (0.0,))) == (0.0, 0.0)
    with pytest.raises(InvalidRequest, match="a vector of 2 numbers is compared with one of 3") as refusal:
        cosine((1.0, 0.0), (1.0, 0.0, 0.0))
    assert refusal.value.hint.startswith("embed both by one model")
    assert cosine((1.0, 0.0), (1.0, 0.0, 0.0), strict=False) == 0.0
    mismatched = segment(embedding=(1.0,)), page(1, embedding=(1.0, 0.0))
    assert fscore(*mismatched, MemoryOSConfig(strict_vectors=False)) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((1.0, 0.0), (0.0, 1.0), 0.0),  # at right angles
        ((1.0, 0.0), (1.0, 1.0), 1 / math.sqrt(2)),  # 45 degrees: 1 / (1 * sqrt 2)
        ((1.0, 2.0, 2.0), (2.0, 1.0, 2.0), 8 / 9),  # (2 + 2 + 4) / (3 * 3)
        ((1e200, 1e200), (1e200, 0.0), 1 / math.sqrt(2)),  # lengths whose square is beyond all numbers
        ((3e-200, 4e-200), (4e-200, 3e-200), 0.96),  # and below them
        ((1e-9, 1e-9), (1e9, 0.0), 1 / math.sqrt(2)),  # one much longer than the other
    ],
)
def test_cosine_is_independent_of_vector_length(one, other, expected):
    assert cosine(one, other) == pytest.approx(expected, abs=1e-12)


# D048
@given(pair, words, words)
def test_fscore_is_within_its_bounds_and_its_parts_are_symmetric(vectors, mine, theirs):
    score = fscore(segment(embedding=vectors[0], keywords=mine), page(1, embedding=vectors[1], keywords=theirs), CONFIG)

    assert -1.0 <= score <= 2.0
    assert cosine(*vectors) == cosine(*reversed(vectors))
    assert jaccard(mine, theirs) == jaccard(theirs, mine)


@given(st.integers(2, 40).flatmap(lambda n: st.tuples(*[st.lists(st.floats(-9, 9), min_size=n, max_size=n)] * 2)))
def test_cosine_is_the_dot_product_divided_by_the_lengths(vectors):
    one, other = vectors
    lengths = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(x * x for x in other))

    if lengths > 1e-100:
        assert cosine(one, other) == pytest.approx(sum(map(math.prod, zip(*vectors, strict=True))) / lengths, abs=1e-9)


# D050 D051 D052
def test_heat_is_the_weighted_sum_of_visits_pages_and_recency():
    hot = segment(pages=3, visit_count=2)
    later = START + timedelta(seconds=1.0e7)
    # 1*2 visits + 1*3 pages + 1*exp(-0 / 1e7) = 2 + 3 + 1
    assert heat(hot, START, CONFIG) == 6.0
    # after 1e7 seconds: 2 + 3 + exp(-1) = 5.367879441
    assert heat(hot, later, CONFIG) == pytest.approx(5.367879441)
    # after a day with a time constant of a day, weights 1, 0.5 and 2: 2 + 1.5 + 2*exp(-1) = 4.235758882
    config = MemoryOSConfig(heat_beta=0.5, heat_gamma=2.0, time_constant=86_400)
    assert heat(hot, START + timedelta(days=1), config) == pytest.approx(4.235758882)


# D050 D054
@given(*[st.floats(0, 1e3)] * 3, st.integers(0, 50), st.integers(0, 9), st.floats(0, 1e8), st.floats(1, 1e8))
def test_heat_matches_its_formula_for_any_weights(alpha, beta, gamma, visits, pages, seconds, constant):
    config = MemoryOSConfig(heat_alpha=alpha, heat_beta=beta, heat_gamma=gamma, time_constant=constant)
    score = heat(segment(pages=pages, visit_count=visits), START + timedelta(seconds=seconds), config)

    elapsed = timedelta(seconds=seconds).total_seconds()  # to the microsecond
    assert score == pytest.approx(alpha * visits + beta * pages + gamma * math.exp(-elapsed / constant), abs=1e-6)


# D071
def test_heat_ignores_visits_and_pages_already_learned():
    taught = segment(visit_count=5, visits_taught=4, pages=(page(1, analysed=True), page(2), page(3)))
    # 1*(5-4) visits + 1*(3-1) pages + 1*exp(0) = 1 + 2 + 1
    assert heat(taught, START, CONFIG) == 4.0


# D053
@given(st.floats(0, 1e6), st.floats(1, 1e6))
def test_recency_is_1_at_first_decays_with_time_and_never_exceeds_1(past, more):
    def after(seconds):
        return recency(START, START + timedelta(seconds=seconds), 1.0e7)

    assert after(0) == 1.0
    assert after(-more) == 1.0
    assert after(past + more) < after(past) <= 1.0


def test_text_relevance_is_vector_similarity_plus_share_of_keywords():
    question = page(1, embedding=(3.0, 4.0), keywords={"index", "rust"})
    # cosine 0.96 as above, and one of the two words: 0.96 + 0.5
    assert relevance("Which index does Ana use?", (4.0, 3.0), question, CONFIG) == pytest.approx(1.46)
    assert relevance("nothing of it", None, question, CONFIG) == 0.0
    assert relevance("anything", None, replace(question, keywords=frozenset()), CONFIG) == 0.0
