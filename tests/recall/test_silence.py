"""On held-out notes scores are calibrated, few answers are lost, and most foreign questions get none."""

from functools import cache

import numpy as np
import pytest

from bench.calibration import (
    ANSWERED,
    OTHER,
    UNANSWERED,
    calibration_error,
    cut_figures,
    lost_answers,
    note_cases,
    scores,
    silent_questions,
    small_cases,
)
from bench.recall import CachedEmbedder
from jidomem.recall.ranking import CALIBRATIONS, calibration
from jidomem.records.recall import MIN_SCORE, MIN_SHARE, min_best_score

SIZES = (3, 6, 12)
EMBEDDER = CachedEmbedder()


@cache
def few_memories(by):
    """Return the held-out cases of small memories, by their number of memories."""
    embedder = EMBEDDER if by == "vectors" else None
    return {size: [*small_cases(embedder, "held out", size, seed=1, by_words=by == "words")] for size in SIZES}


@pytest.fixture(scope="module", params=["vectors", "words"])
def scored(request):
    """Return the held-out cases with their scores, and the ranking."""
    has_vectors = request.param == "vectors"
    (cases,) = note_cases(EMBEDDER if has_vectors else None, ["held out"], by_words=not has_vectors).values()
    lines = {name: pair[0 if has_vectors else 1] for name, pair in CALIBRATIONS.items()}
    return [(case, scores(case, lines[case.ranking])) for case in cases], request.param


def test_the_expected_calibration_error_is_at_most_5_percent(scored):
    cases, _ = scored
    assert sum(case.kind == ANSWERED for case, _ in cases) == 36
    assert calibration_error(cases) <= 0.05


def test_at_most_a_twentieth_of_the_answers_is_below_the_minimum_score(scored):
    cases, _ = scored
    answered, below = lost_answers(cases, MIN_SCORE)
    assert answered >= 20
    assert below <= answered / 20


def test_most_questions_of_other_projects_get_no_answer(scored):
    cases, by = scored
    total, silent_count = silent_questions(cases, OTHER, MIN_SCORE)
    assert silent_count / total >= (0.75 if by == "vectors" else 0.6)


def test_hits_far_below_the_best_are_seldom_answers(scored):
    cases, _ = scored
    whole, some = cut_figures(cases, 0.0), cut_figures(cases, MIN_SHARE)
    assert whole.lost == 0 < 15 < some.answered == whole.answered
    assert some.lost <= some.answered / 20
    assert some.shown < whole.shown - 0.5
    assert some.precision > 1.2 * whole.precision


def test_answers_have_greater_scores_than_other_hits(scored):
    cases, _ = scored
    right = np.concatenate([each[np.array(case.is_answer, dtype=bool)] for case, each in cases])
    wrong = np.concatenate([each[~np.array(case.is_answer, dtype=bool)] for case, each in cases])
    assert right.mean() > 1.5 * wrong.mean()


@pytest.mark.parametrize("by", ["vectors", "words"])
def test_scores_are_calibrated_for_few_memories(by):
    few, many = [], []
    for size, held_out in few_memories(by).items():
        for case in held_out:
            for cases, memories in ((few, size), (many, 29)):
                line = calibration(case.ranking, has_vectors=by == "vectors", memories=memories)
                cases.append((case, scores(case, line)))

    assert calibration_error(few) <= 0.06
    assert calibration_error(few) < calibration_error(many) / 1.5


def test_few_memories_answer_fewer_unanswerable_questions_and_lose_no_answer():
    counts = {"lost": [0, 0], "silent": [0, 0]}
    for size, cases in few_memories("vectors").items():
        lines = [calibration(case.ranking, has_vectors=True, memories=size) for case in cases]
        scored = [(case, scores(case, line)) for case, line in zip(cases, lines, strict=True)]
        for place, least in enumerate((MIN_SCORE, min_best_score(size))):
            counts["lost"][place] += sum(any(case.is_answer) and max(each) < least for case, each in scored)
            counts["silent"][place] += sum(silent_questions(scored, kind, least)[1] for kind in (UNANSWERED, OTHER))

    assert counts["lost"] == [0, 0]
    assert counts["silent"][1] >= counts["silent"][0] + 3
