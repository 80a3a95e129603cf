"""The parts of a score, computed by hand."""

from math import log

import pytest

from jidomem.recall.bm25 import TIES, ScoredMatch, ceiling, demote_superseded, most, scored, ties, weights
from jidomem.records.interfaces import CorpusStats, Match

NEWEST = "2026-03-31T00:00:00.000000Z"
COUNTS = CorpusStats(memories=10, words=100, holding={"journal": 2, "merge": 2, "common": 9}, newest=NEWEST)
MATCH = Match(
    number=1,
    item="<urn:a>",
    recorded="2026-03-01T00:00:00.000000Z",
    confidence="High",
    length=20,
    fields=("journal merge", "", "journal journal", "", "", "", ""),
)


def scored_match(score: float, **fields: object) -> ScoredMatch:
    return ScoredMatch(MATCH._replace(**fields), score, {"lexical": score}, {})


def test_a_rare_word_weighs_more_and_every_word_weighs_something():
    assert weights(["journal", "common", "absent"], COUNTS) == pytest.approx(
        {"journal": log(8.5 / 2.5), "common": log(1 + 1.5 / 9.5) / 2, "absent": log(10.5 / 0.5)}
    )


def test_a_score_is_the_bm25_of_its_words_plus_recency_and_confidence():
    result = scored(MATCH, {"journal": 2.0, "absent": 5.0}, COUNTS)

    often = 3.0 + 2 * 2.0  # once in the summary, twice in the about field
    damping = 1.2 * (0.25 + 0.75 * 20 / 10)  # twice the average length
    words = 2.0 * often * 2.2 / (often + damping)
    assert result.words == pytest.approx({"journal": words})
    assert result.parts == pytest.approx(
        {"lexical": words, "about": 0.0, "recency": words * 0.015, "confidence": words * 0.02}
    )
    assert result.score == pytest.approx(words * 1.035)


def test_a_match_counts_by_the_weight_of_its_field():
    each = [
        scored(MATCH._replace(length=10, fields=tuple("x" if at == n else "" for at in range(7))), {"x": 1.0}, COUNTS)
        for n in range(7)
    ]

    assert [result.words["x"] for result in each] == pytest.approx(
        [value * 2.2 / (value + 1.2) for value in (3.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.5)]
    )


def test_a_memory_about_the_requested_file_gets_half_its_score_added():
    plain = scored(MATCH, {"journal": 2.0}, COUNTS)
    about = scored(MATCH._replace(is_about=True), {"journal": 2.0}, COUNTS)

    assert about.parts["about"] == pytest.approx(plain.parts["lexical"] / 2)
    assert about.score - plain.score == pytest.approx(plain.parts["lexical"] / 2)


@pytest.mark.parametrize(
    ("recorded", "late"),
    [("2026-03-31", 0.03), ("2026-03-01", 0.015), ("2026-01-30", 0.0075), ("2026-04-30", 0.03)],
)
def test_the_recency_bonus_halves_each_month_and_is_capped_at_the_newest_memory(recorded, late):
    assert ties(f"{recorded}T00:00:00.000000Z", "Low", NEWEST) == pytest.approx((late, 0.0))


def test_a_memory_of_higher_confidence_scores_more():
    assert [ties(NEWEST, level, NEWEST)[1] for level in ("High", "Medium", "Low", "")] == [0.02, 0.01, 0.0, 0.0]
    assert sum(ties(NEWEST, "High", NEWEST)) == TIES == pytest.approx(0.05)


def test_hits_are_ordered_by_score_then_newest_then_iri():
    moments = [f"20{digit}9-01-01" for digit in range(10)]
    newest_first = [scored_match(1.0, recorded=moment) for moment in reversed(moments)]
    best, second = scored_match(2.0), scored_match(1.0, recorded=moments[-1], item="<urn:b>")

    ranked = sorted([*reversed(newest_first), second, best], key=lambda match: match.place)

    assert ranked == [best, newest_first[0], second, *newest_first[1:]]


def test_a_superseded_memory_scores_below_all_its_successors():
    match = scored_match(4.0)

    assert demote_superseded(match, []) is match
    assert demote_superseded(match, [scored_match(5.0)]) is match
    assert demote_superseded(scored_match(0.999), [scored_match(1.0)]).parts == {"lexical": 0.999}
    lower = demote_superseded(match, [scored_match(3.0), scored_match(2.0)])
    assert (lower.match, lower.words) == (match.match, match.words)
    assert lower.score == pytest.approx(2.0 * 0.999)
    assert lower.parts == pytest.approx({"lexical": 4.0, "superseded": 2.0 * 0.999 - 4.0})


def test_the_ceiling_bounds_a_score_by_the_sqlite_score():
    weight = log(8.5 / 2.5)  # the weight of "journal" in SQLite

    assert ceiling({"journal": weight}, COUNTS, COUNTS) == pytest.approx((1.0, 0.0))
    assert ceiling({"journal": 2 * weight, "common": 3.0}, COUNTS, COUNTS) == pytest.approx((2.0, most([3.0])))
    assert ceiling({"journal": weight, "merge": 2.5 * weight}, COUNTS, COUNTS) == pytest.approx(
        (1.0, most([2.5 * weight]))
    )
    assert most([3.0, 1.0]) == pytest.approx(4.0 * 2.2)


def test_common_words_alone_have_the_greatest_ceiling():
    assert ceiling({"common": 3.0}, COUNTS, COUNTS) == pytest.approx((3.0 / 1e-6, 0.0))


def test_the_ceiling_rises_for_a_past_with_longer_memories():
    then, shorter = COUNTS._replace(memories=5), COUNTS._replace(memories=20)
    weight = log(8.5 / 2.5)

    assert ceiling({"journal": weight}, COUNTS, then) == pytest.approx((2.0, 0.0))
    assert ceiling({"journal": weight}, COUNTS, shorter) == pytest.approx((1.0, 0.0))
    assert ceiling({"common": 3.0}, COUNTS, then) == pytest.approx((2 * 3.0 / 1e-6, 0.0))
