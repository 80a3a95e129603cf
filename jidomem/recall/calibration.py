"""The score of a recalled text: the probability that it answers the question. Pure.

The sum of a ranking has no scale of its own; its log odds are a line, fitted for each ranking to questions with known
answers, without an answer, and of other projects (`python -m bench.calibration`). One of few memories is an answer more
often than one of many with the same sum: by that factor its odds are higher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log


@dataclass(frozen=True, slots=True)
class Calibration:
    """The line of log odds over the sum of a ranking."""

    slope: float
    intercept: float

    def probability(self, total: float) -> float:
        """Return the probability of a text with this sum.

        >>> Calibration(1.0, -2.0).probability(2.0)
        0.5
        """
        odds = self.slope * total + self.intercept
        return 1 / (1 + exp(-odds)) if odds >= 0 else exp(odds) / (1 + exp(odds))


#: The name of the ranking by words alone.
WORDS = "words"
#: Ranking -> its calibration with vectors and without.
CALIBRATIONS: Mapping[str, tuple[Calibration, Calibration]] = {
    WORDS: (Calibration(3.58, -4.04), Calibration(3.58, -4.04)),
    "memories-3": (Calibration(0.530, -6.57), Calibration(0.701, -5.83)),
    "people-2": (Calibration(0.457, -7.63), Calibration(0.471, -7.43)),
    "assistant-2": (Calibration(0.593, -7.25), Calibration(0.420, -5.22)),
    "tasks-1": (Calibration(0.171, -3.74), Calibration(0.095, -3.24)),
}


#: The rankings that were fitted to corpora of MEMORIES memories; the least number for which the odds were measured.
OF_MEMORIES, MEMORIES, LEAST = (WORDS, "memories-3"), 29, 3


def calibration(ranking: str, *, has_vectors: bool, memories: int = MEMORIES) -> Calibration:
    """Return the calibration of a ranking for a corpus with this number of *memories*.

    >>> calibration(WORDS, has_vectors=False, memories=5).probability(1.0) > 0.75
    True
    """
    with_vectors, alone = CALIBRATIONS[ranking]
    line = with_vectors if has_vectors else alone
    if ranking not in OF_MEMORIES or memories >= MEMORIES:
        return line
    return Calibration(line.slope, line.intercept + log(MEMORIES / max(memories, LEAST)))
