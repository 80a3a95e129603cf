"""What each part of a score counts, worked out by hand."""

from dataclasses import replace
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


def of(score: float, **fields: object) -> ScoredMatch:
    return ScoredMatch(replace(MATCH, **fields), score, {"lexical": score}, {})


def test_a_word_tells_the_more_the_fewer_memories_hold_it_and_never_nothing():
    assert weights(["journal", "common", "absent"], COUNTS) == pytest.approx(
        {"journal": log(8.5 / 2.5), "common": log(1 + 1.5 / 9.5) / 2, "absent": log(10.5 / 0.5)}
    )


def test_a_score_is_what_its_words_count_and_what_tells_equals_apart():
    found = scored(MATCH, {"journal": 2.0, "absent": 5.0}, COUNTS)

    often = 3.0 + 2 * 2.0  # once in the summary, twice in what it is about
    damping = 1.2 * (0.25 + 0.75 * 20 / 10)  # twice as long as the others are
    words = 2.0 * often * 2.2 / (often + damping)
    assert found.words == pytest.approx({"journal": words})
    assert found.parts == pytest.approx(
        {"lexical": words, "about": 0.0, "recency": words * 0.015, "confidence": words * 0.02}
    )
    assert found.score == pytest.approx(words * 1.035)


def test_every_field_counts_as_much_as_it_is_worth():
    each = [
        scored(replace(MATCH, length=10, fields=tuple("x" if at == n else "" for at in range(7))), {"x": 1.0}, COUNTS)
        for n in range(7)
    ]

    assert [found.words["x"] for found in each] == pytest.approx(
        [value * 2.2 / (value + 1.2) for value in (3.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.5)]
    )


def test_a_memory_about_the_file_asked_for_counts_half_as_much_again():
    plain = scored(MATCH, {"journal": 2.0}, COUNTS)
    about = scored(replace(MATCH, is_about=True), {"journal": 2.0}, COUNTS)

    assert about.parts["about"] == pytest.approx(plain.parts["lexical"] / 2)
    assert about.score - plain.score == pytest.approx(plain.parts["lexical"] / 2)


@pytest.mark.parametrize(
    ("recorded", "late"),
    [("2026-03-31", 0.03), ("2026-03-01", 0.015), ("2026-01-30", 0.0075), ("2026-04-30", 0.03)],
)
def test_what_was_recorded_late_counts_more_by_half_a_month_and_nothing_is_newer_than_the_newest(recorded, late):
    assert ties(f"{recorded}T00:00:00.000000Z", "Low", NEWEST) == pytest.approx((late, 0.0))


def test_what_is_held_to_be_sure_counts_more():
    assert [ties(NEWEST, level, NEWEST)[1] for level in ("High", "Medium", "Low", "")] == [0.02, 0.01, 0.0, 0.0]
    assert sum(ties(NEWEST, "High", NEWEST)) == TIES == pytest.approx(0.05)


def test_the_best_comes_first_of_equals_the_newest_then_the_first_iri():
    moments = [f"20{digit}9-01-01" for digit in range(10)]
    newest_first = [of(1.0, recorded=moment) for moment in reversed(moments)]
    best, second = of(2.0), of(1.0, recorded=moments[-1], item="<urn:b>")

    ranked = sorted([*reversed(newest_first), second, best], key=lambda found: found.place)

    assert ranked == [best, newest_first[0], second, *newest_first[1:]]


def test_what_was_superseded_comes_behind_each_that_came_in_its_place():
    found = of(4.0)

    assert demote_superseded(found, []) is found
    assert demote_superseded(found, [of(5.0)]) is found
    assert demote_superseded(of(0.999), [of(1.0)]).parts == {"lexical": 0.999}
    lower = demote_superseded(found, [of(3.0), of(2.0)])
    assert (lower.match, lower.words) == (found.match, found.words)
    assert lower.score == pytest.approx(2.0 * 0.999)
    assert lower.parts == pytest.approx({"lexical": 4.0, "superseded": 2.0 * 0.999 - 4.0})


def test_how_much_a_score_can_exceed_what_sqlite_scores():
    told = log(8.5 / 2.5)  # what SQLite weighs "journal" with

    assert ceiling({"journal": told}, COUNTS, COUNTS) == pytest.approx((1.0, 0.0))
    assert ceiling({"journal": 2 * told, "common": 3.0}, COUNTS, COUNTS) == pytest.approx((2.0, most([3.0])))
    assert ceiling({"journal": told, "merge": 2.5 * told}, COUNTS, COUNTS) == pytest.approx((1.0, most([2.5 * told])))
    assert most([3.0, 1.0]) == pytest.approx(4.0 * 2.2)


def test_where_all_words_are_common_the_farthest_tells_where_to_stop():
    assert ceiling({"common": 3.0}, COUNTS, COUNTS) == pytest.approx((3.0 / 1e-6, 0.0))


def test_where_memories_were_longer_once_a_score_can_exceed_it_by_as_much():
    then, shorter = replace(COUNTS, memories=5), replace(COUNTS, memories=20)
    told = log(8.5 / 2.5)

    assert ceiling({"journal": told}, COUNTS, then) == pytest.approx((2.0, 0.0))
    assert ceiling({"journal": told}, COUNTS, shorter) == pytest.approx((1.0, 0.0))
    assert ceiling({"common": 3.0}, COUNTS, then) == pytest.approx((2 * 3.0 / 1e-6, 0.0))
